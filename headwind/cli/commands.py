"""The command line, and the commands that need no testbed. Imports are lazy: `--help` must answer at once."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headwind.cli.options import how_long, how_to_compare, how_to_measure
from headwind.format import blocks_text

if TYPE_CHECKING:
    from headwind.cli.means import Means
    from headwind.model import Matrix
    from headwind.run.data import RunData
    from headwind.run.journal import Run

ROOT = Path(__file__).resolve().parent.parent.parent
Command = Callable[[argparse.Namespace], int]


def matrix_path(options: argparse.Namespace) -> Path:
    """The matrix file that was named, or the default one."""
    return ROOT / "matrix.yaml" if options.matrix is None else Path(options.matrix)


def with_options(matrix: Matrix, options: argparse.Namespace) -> Matrix:
    """The matrix with the size, the budget and the lanes that the command line asks for instead of its own."""
    return with_budget(with_size(matrix, options), options.budget)


def with_size(matrix: Matrix, options: argparse.Namespace) -> Matrix:
    """The same but for the budget."""
    matrix = matrix.in_short() if options.smoke else matrix
    return matrix if options.lanes is None else replace(matrix, lanes=options.lanes)


def with_budget(matrix: Matrix, budget_s: float | None) -> Matrix:
    """The matrix with another budget. Raises UsageError where a budget would have to break a fixed number of blocks."""
    from headwind.errors import UsageError

    if budget_s is None:
        return matrix
    if not matrix.repeat.is_adaptive:
        number = blocks_text(matrix.repeat)
        raise UsageError(f"--budget: this matrix asks for {number}, neither more nor less; write repeat: {{min, max}}")
    return replace(matrix, repeat=replace(matrix.repeat, budget_s=budget_s))


def means_of(options: argparse.Namespace) -> Means:
    """What was brought along instead of this machine's Docker and clock, or these."""
    from headwind.cli.means import Means

    brought: Means | None = options.means
    return brought or Means()


def reports_folder(options: argparse.Namespace) -> Path:
    """Where new run folders go. Raises UsageError where they cannot: minutes of building come before the first one."""
    from headwind.errors import UsageError

    folder = Path(options.reports)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "it may not be written")
    except OSError as error:
        raise UsageError(f"--reports {folder}: run folders cannot be made here: {error.strerror}") from error
    return folder


@contextmanager
def followed_by(ending: Sequence[str]) -> Iterator[None]:
    """Print these lines after everything inside; if an error ends it, they are notes of the error."""
    try:
        yield
    except BaseException as error:
        for line in ending:
            error.add_note(line)
        raise
    for line in ending:
        print(line)


def ended(error: BaseException, sentence: str, code: int) -> int:
    """Print what ended the program, and below it the notes of the error. Returns the exit code."""
    print(f"lab.py: {sentence}", file=sys.stderr)
    for line in getattr(error, "__notes__", ()):
        print(line)
    return code


def finish_report(run: Run, *, junit: bool = False, full: bool = False) -> RunData:
    """Write the last report and all other files, and print the result. Returns the content of the run folder."""
    from headwind.cli.progress import console
    from headwind.report.files import write_files
    from headwind.report.formats.terminal import print_summary
    from headwind.report.html.page import REPORT

    data = write_files(run, junit=junit)
    print_summary(data, console(), full=full)
    print(f"report: {run.folder / REPORT}")
    return data


def command_report(options: argparse.Namespace) -> int:
    """Draw the report of a run again, or one page of several runs."""
    from headwind.cli.resume import how_to_resume
    from headwind.errors import UsageError
    from headwind.report.files import write_page
    from headwind.report.html.page import REPORT
    from headwind.run.journal import Run

    output = Path(options.output) if options.output else None
    with ExitStack() as opened:
        runs = [opened.enter_context(Run.open(Path(folder))) for folder in options.run]
        if len(runs) > 1 and options.junit:
            raise UsageError("--junit: junit.xml is about a single run; give one run")
        if len(runs) > 1:
            report_several(runs, output)
            return 0
        data = finish_report(runs[0], junit=options.junit, full=options.full)
        for line in how_to_resume(runs[0], data):
            print(line)
        if output:
            print(f"and: {write_page(output, (runs[0].folder / REPORT).read_text(encoding='utf-8'))}")
    return 0


def report_several(runs: Sequence[Run], output: Path | None) -> None:
    """Draw one page of several runs; their folders stay as they are."""
    from headwind.errors import UsageError
    from headwind.report.compare.page import render_several
    from headwind.report.files import several_path, write_page
    from headwind.run.data import RunData

    told: dict[float, Run] = {}  # by the instant at which they began: a copy of a run is the same run
    for run in runs:
        twin = told.setdefault(run.status.started_at, run)
        if twin is not run:
            raise UsageError(f"{run.folder}: this is the same run as {twin.folder}; give each run once")
    page = render_several([RunData.of(run) for run in runs], time.time())
    print(f"report: {write_page(output or several_path(runs), page)}")


def command_published(options: argparse.Namespace) -> int:
    """Set what articles published beside what runs found, in one document."""
    from headwind.cli.experiments import overview
    from headwind.matrix.reader import load_matrix
    from headwind.report.files import write_page
    from headwind.report.formats.published_md import published_md
    from headwind.run.data import RunData
    from headwind.run.journal import Run

    matrices = [load_matrix(path) for path in sorted((ROOT / "experiments").glob("*.yaml"))]
    folders = [Path(folder) for folder in options.run]
    with ExitStack() as opened:
        runs = [RunData.of(opened.enter_context(Run.open(folder))) for folder in folders]
    output = Path(options.write) if options.write else None
    is_page = output is not None and output.suffix == ".html"
    document = overview(matrices, runs, folders, output.parent) if output and is_page else published_md(matrices, runs)
    print(f"written: {write_page(output, document)}" if output else document)
    return 0


def command_compare(options: argparse.Namespace) -> int:
    """Say which protocols got better or worse from one run to another; exits with 3 when one got worse."""
    from headwind.cli.progress import console
    from headwind.report.compare.changes_json import changes_text
    from headwind.report.compare.comparison import compared
    from headwind.report.compare.terminal import print_changes
    from headwind.report.files import write_page
    from headwind.run.journal import Run

    with Run.open(Path(options.earlier)) as earlier, Run.open(Path(options.later)) as later:
        comparison = compared(earlier, later, absolute=options.absolute)
    print_changes(comparison, console())
    if options.json:
        print(f"and: {write_page(Path(options.json), changes_text(comparison))}")
    if comparison.is_regression:
        return 3
    return 4 if options.strict and comparison.unknown else 0


def command_plan(options: argparse.Namespace) -> int:
    """Say what would run, in which order, and about how long."""
    from headwind.cli.plan import print_plan
    from headwind.cli.progress import console
    from headwind.matrix.reader import load_matrix

    print_plan(with_options(load_matrix(matrix_path(options)), options), Path(options.reports), console())
    return 0


def command_validate(options: argparse.Namespace) -> int:
    """Check a matrix file; nothing is started."""
    from headwind.matrix.reader import load_matrix

    path = matrix_path(options)
    matrix = load_matrix(path)
    blocks = f"{matrix.repeat.least} to {matrix.repeat.most}" if matrix.repeat.is_adaptive else matrix.repeat.least
    arms = f"{len(matrix.arms)} {matrix.arms_word}s"
    print(f"{path}: valid, {len(matrix.conditions)} conditions, {arms}, {blocks} blocks each")
    for source in matrix.published:
        if gaps := "; ".join(f"{', '.join(rows)} ({reason})" for reason, rows in source.gaps.items()):
            print(f"published {source.name}, not compared: {gaps}")
    return 0


def command_profiles(options: argparse.Namespace) -> int:
    """List the networks that a matrix may take by name."""
    from headwind.cli.profiles import print_profiles
    from headwind.cli.progress import console

    del options
    print_profiles(console())
    return 0


def command_doctor(options: argparse.Namespace) -> int:
    """Say what this host can do, and what fixes the rest."""
    from headwind.cli.doctor import Machine, examine, print_findings
    from headwind.cli.progress import console

    del options
    return print_findings(examine(Machine.here()), console())


def command_worker(options: argparse.Namespace) -> int:
    """Offer this machine's lanes to runs with --cluster, until Ctrl-C."""
    from headwind.cli.cluster import work

    work(options.address, options.name, lambda text: print(text, flush=True), means_of(options))
    return 0


def command_images(options: argparse.Namespace) -> int:
    """Pull or build the images, and `push` them to HEADWIND_REGISTRY."""
    from headwind.testbed.images import ensure_images, push_images

    if options.push:
        push_images(print)
    else:
        print(f"the images are there: {ensure_images(print).tag}")
    return 0


def command_down(options: argparse.Namespace) -> int:
    """Remove what earlier runs left: containers and networks."""
    print(f"{means_of(options).sweep(print, options.all)} testbeds removed")
    return 0


EXIT_CODES = """exit status:
  0    every condition has its data, and few attempts were left unproven: 3, or 1 % of all, whichever is more
  1    a condition lacks data, more attempts were left unproven, or the lab failed; a sentence names the cause
  2    a bad matrix or command line
  3    compare: a protocol got worse
  4    compare --strict: none surely did, but some comparison cannot tell
  130  stopped by Ctrl-C

A condition has its data with as many blocks complete, every arm giving data, as the matrix asks for at least;
under a budget with one. A condition that the budget left no time for is listed as not run."""


def parse(arguments: list[str], description: str, commands_: Mapping[str, Command]) -> argparse.Namespace:
    """The command line; a usage error exits with 2. A command's docstring is its help."""
    parser = argparse.ArgumentParser(
        prog="lab.py", description=description, epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in commands_.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").rstrip("."), description=function.__doc__)
        if name in ("run", "plan", "validate"):
            command.add_argument("matrix", nargs="?", help="the matrix file (default: matrix.yaml)")
        if name in ("run", "plan", "experiments"):
            command.add_argument("--reports", default=str(ROOT / "reports"), help="where run folders are kept")
            command.add_argument(
                "--smoke", action="store_true", help="one block of each condition that the matrix names under `smoke`"
            )
        if name in ("run", "experiments"):
            how_to_measure(command)
        if name == "plan":
            how_long(command)
    commands.choices["run"].add_argument(
        "--resume", metavar="RUN", help="go on with this run folder, by its own matrix"
    )
    commands.choices["experiments"].add_argument(
        "matrix", nargs="*", help="matrix files (default: all of experiments/ that carry figures of an article)"
    )
    commands.choices["worker"].add_argument("address", metavar="ADDRESS", help="of a dask scheduler (`dask scheduler`)")
    commands.choices["worker"].add_argument("--name", help="what reports call this machine (default: its own name)")
    how_to_compare(commands.choices["compare"])
    report = commands.choices["report"]
    report.add_argument(
        "run", nargs="+", metavar="RUN", help="a run folder, such as reports/<run-id>; of several: one page"
    )
    report.add_argument("--output", metavar="FILE", help="put the page there too (of several runs: there)")
    for command in (commands.choices["run"], report):
        command.add_argument("--junit", action="store_true", help="write junit.xml as well, for CI")
        command.add_argument("--full", action="store_true", help="print every figure and comparison, too")
    published = commands.choices["published"]
    published.add_argument(
        "run", nargs="*", metavar="RUN", help="a run folder; of several the last that measured a row"
    )
    published.add_argument("--write", metavar="FILE", help="write it there: docs/published.md, or a page.html")
    commands.choices["images"].add_argument("push", nargs="?", choices=["push"], help="push them to HEADWIND_REGISTRY")
    commands.choices["down"].add_argument("--all", action="store_true", help="also of labs that are still running")
    return parser.parse_args(arguments)


COMMANDS: dict[str, Command] = {
    "plan": command_plan, "validate": command_validate, "report": command_report, "compare": command_compare,
    "published": command_published,
    "profiles": command_profiles, "doctor": command_doctor, "worker": command_worker, "images": command_images,
    "down": command_down,
}  # fmt: skip
