"""The command line, and the commands that need no testbed. Imports are lazy: `--help` must answer at once."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from headwind.cli.options import how_long, how_to_compare, how_to_measure, how_to_try
from headwind.format import blocks_text, counted

if TYPE_CHECKING:
    from headwind.cli.dependencies import Dependencies
    from headwind.model import Matrix
    from headwind.run.data import RunData
    from headwind.run.journal import Run

ROOT = Path(__file__).resolve().parent.parent.parent
Command = Callable[[argparse.Namespace], int]


def matrix_path(options: argparse.Namespace) -> Path:
    """The matrix file that was named, or the default one."""
    return ROOT / "matrix.yaml" if options.matrix is None else Path(options.matrix)


def with_options(matrix: Matrix, options: argparse.Namespace) -> Matrix:
    """The matrix with the size, the budget and the lanes of the command line, if given."""
    return with_budget(with_size(matrix, options), options.budget)


def with_size(matrix: Matrix, options: argparse.Namespace) -> Matrix:
    """The matrix with the size and the lanes of the command line, if given."""
    matrix = matrix.in_short() if options.smoke else matrix
    return matrix if options.lanes is None else replace(matrix, lanes=options.lanes)


def with_budget(matrix: Matrix, budget_s: float | None) -> Matrix:
    """The matrix with another budget. Raises UsageError if the matrix has a fixed number of blocks."""
    from headwind.errors import UsageError

    if budget_s is None:
        return matrix
    if not matrix.repeat.is_adaptive:
        number = blocks_text(matrix.repeat)
        raise UsageError(f"--budget: this matrix fixes the number of blocks ({number}); set repeat: {{min, max}}")
    return replace(matrix, repeat=replace(matrix.repeat, budget_s=budget_s))


def dependencies_of(options: argparse.Namespace) -> Dependencies:
    """The injected dependencies, or this machine's Docker and clock."""
    from headwind.cli.dependencies import Dependencies

    brought: Dependencies | None = options.deps
    return brought or Dependencies()


def reports_folder(options: argparse.Namespace) -> Path:
    """The folder for new run folders. Raises UsageError if it cannot be written to, before minutes of building."""
    from headwind.errors import UsageError

    folder = Path(options.reports)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "not writable")
    except OSError as error:
        raise UsageError(f"--reports {folder}: cannot create run folders: {error.strerror}") from error
    return folder


@contextmanager
def followed_by(ending: Sequence[str]) -> Iterator[None]:
    """Print these lines after the code inside; if an error ends it, add them to the error as notes."""
    try:
        yield
    except BaseException as error:
        for line in ending:
            error.add_note(line)
        raise
    for line in ending:
        print(line)


def ended(error: BaseException, sentence: str, code: int) -> int:
    """Print why the program ended, followed by the notes of the error. Returns the exit code."""
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
    """Regenerate the report of a run, or combine several runs on one page."""
    from headwind.cli.resume_advice import how_to_resume
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
            print(f"copy: {write_page(output, (runs[0].folder / REPORT).read_text(encoding='utf-8'))}")
    return 0


def refuse_twins(runs: Sequence[Run]) -> None:
    """Raise UsageError if a run is given twice, also as a copy or with an earlier state of itself."""
    from headwind.errors import UsageError

    known: dict[float, Run] = {}  # by start time, which copies of a run share
    for run in runs:
        twin = known.setdefault(run.status.started_at, run)
        if twin is not run:
            raise UsageError(f"{run.folder} and {twin.folder}: both are the same run; give each run once")


def report_several(runs: Sequence[Run], output: Path | None) -> None:
    """Generate one page of several runs; their folders do not change. Raises UsageError if a run is given twice."""
    from headwind.report.compare.page import render_several
    from headwind.report.files import several_path, write_page
    from headwind.run.data import RunData

    refuse_twins(runs)
    page = render_several([RunData.of(run) for run in runs], time.time())
    print(f"report: {write_page(output or several_path(runs), page)}")


def command_published(options: argparse.Namespace) -> int:
    """Compare published figures with the results of runs, in one document."""
    from headwind.cli.experiments import overview
    from headwind.matrix.reader import load_matrix
    from headwind.report.files import write_page
    from headwind.report.overview import published_md
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
    """Report which protocols got better or worse between two runs; exits with 3 if one got worse."""
    from headwind.cli.progress import console
    from headwind.report.compare.changes_json import changes_text
    from headwind.report.compare.comparison import compared
    from headwind.report.compare.terminal import print_changes
    from headwind.report.files import write_page
    from headwind.run.journal import Run

    with Run.open(Path(options.earlier)) as earlier, Run.open(Path(options.later)) as later:
        refuse_twins([earlier, later])
        comparison = compared(earlier, later, absolute=options.absolute)
    print_changes(comparison, console())
    if options.json:
        print(f"JSON: {write_page(Path(options.json), changes_text(comparison))}")
    if comparison.is_regression:
        return 3
    return 4 if options.strict and comparison.unknown else 0


def command_plan(options: argparse.Namespace) -> int:
    """List what would run and in which order, and estimate the duration."""
    from headwind.cli.plan import print_plan
    from headwind.cli.progress import console
    from headwind.matrix.reader import load_matrix

    print_plan(with_options(load_matrix(matrix_path(options)), options), Path(options.reports), console())
    return 0


def command_validate(options: argparse.Namespace) -> int:
    """Check a matrix file without starting anything."""
    from headwind.matrix.reader import load_matrix
    from headwind.plan.doubts import notes_of

    path = matrix_path(options)
    matrix = load_matrix(path)
    arms = counted(len(matrix.arms), matrix.arms_word)
    print(f"{path}: valid, {counted(len(matrix.conditions), 'condition')}, {arms}, {blocks_text(matrix.repeat)} each")
    for note in notes_of(matrix):
        print(note)
    for source in matrix.published:
        if gaps := "; ".join(f"{', '.join(rows)} ({reason})" for reason, rows in source.gaps.items()):
            print(f"published {source.name}, not compared: {gaps}")
    return 0


def command_profiles(options: argparse.Namespace) -> int:
    """List the network profiles that a matrix can use by name."""
    from headwind.cli.profiles import print_profiles
    from headwind.cli.progress import console

    del options
    print_profiles(console())
    return 0


def command_doctor(options: argparse.Namespace) -> int:
    """Check this host, and suggest fixes."""
    from headwind.cli.doctor import Machine, examine, print_findings
    from headwind.cli.progress import console

    del options
    return print_findings(examine(Machine.here()), console())


def command_try_server(options: argparse.Namespace) -> int:
    """Start one server, and check that every protocol gets the same bytes from it."""
    from headwind.cli.try_server import try_server
    from headwind.servers import SERVERS

    servers, site = SERVERS, None
    if options.matrix:
        from headwind.matrix.reader import load_matrix

        matrix = load_matrix(Path(options.matrix))
        servers, site = {server.name: server for server in matrix.servers}, matrix.content
    return try_server(options.server, servers, print, dependencies_of(options), site)


def command_worker(options: argparse.Namespace) -> int:
    """Offer this machine's lanes to runs with --cluster, until Ctrl-C."""
    from headwind.cli.cluster import work

    work(options.address, options.name, lambda text: print(text, flush=True), dependencies_of(options))
    return 0


def command_images(options: argparse.Namespace) -> int:
    """Pull or build the images, or push them to HEADWIND_REGISTRY."""
    from headwind.testbed.images import IMAGES, ensure_images, push_images

    if options.push:
        push_images(print, IMAGES)
    else:
        images = ensure_images(print, IMAGES)
        print(f"images ready: {', '.join(images.reference(name) for name in IMAGES)}")
    return 0


def command_down(options: argparse.Namespace) -> int:
    """Remove containers and networks that earlier runs left."""
    print(f"{dependencies_of(options).sweep(print, options.all)} testbeds removed")
    return 0


EXIT_CODES = """exit status:
  0    every condition has enough data, and at most 3 attempts or 1 %, whichever is more, were left unverified
  1    a condition lacks data, more attempts were left unverified, or the lab failed; the output names the cause
  2    a bad matrix or command line
  3    compare: a protocol got worse
  4    compare --strict: no sure regression, but some comparison is unknown
  130  stopped by Ctrl-C

A condition has enough data after the minimum number of complete blocks, in which every arm gave data; under a budget,
after one. A condition for which the budget left no time is listed as not run."""


class Suggesting(argparse.ArgumentParser):
    """A parser whose errors propose the command or option that a misspelt one resembles."""

    def error(self, message: str) -> NoReturn:
        """Print the error with a proposal, and exit with 2."""
        import difflib

        known = self.options()
        for action in self._actions:
            known += map(str, action.choices or ())
            if isinstance(action.choices, Mapping):
                known += [option for command in action.choices.values() for option in command.options()]
        words = re.findall(r"invalid choice: '([^']*)'|(--?[\w-]+)", message.partition("(choose")[0])
        for word in ("".join(each) for each in words):
            if word not in known and (near := difflib.get_close_matches(word, known, 1)):
                message += f"; did you mean `{near[0]}`?"
        super().error(message)

    def options(self) -> list[str]:
        """The options of this command: `--budget`."""
        return [*self._option_string_actions]


def parse(arguments: list[str], description: str, commands_: Mapping[str, Command]) -> argparse.Namespace:
    """Parse the command line; a usage error exits with 2. The docstring of a command is its help."""
    parser = Suggesting(
        prog="lab.py", description=description, epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in commands_.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").rstrip("."), description=function.__doc__)
        if name in ("run", "plan", "validate"):
            command.add_argument("matrix", nargs="?", help="the matrix file (default: matrix.yaml)")
        if name in ("run", "plan", "experiments"):
            command.add_argument("--reports", metavar="DIR", default=str(ROOT / "reports"), help="folder for runs")
            command.add_argument(
                "--smoke", action="store_true", help="run only one block of each condition under `smoke` in the matrix"
            )
        if name in ("run", "experiments"):
            how_to_measure(command)
        if name == "plan":
            how_long(command)
    commands.choices["run"].add_argument("--resume", metavar="RUN", help="resume this run, with its own matrix")
    commands.choices["experiments"].add_argument(
        "matrix", nargs="*", help="matrix files (default: all of experiments/ that have published figures)"
    )
    how_to_try(commands.choices["try-server"])
    commands.choices["worker"].add_argument("address", metavar="ADDRESS", help="address of a dask scheduler")
    commands.choices["worker"].add_argument("--name", help="name of this machine in reports (default: host name)")
    how_to_compare(commands.choices["compare"])
    report = commands.choices["report"]
    report.add_argument(
        "run", nargs="+", metavar="RUN", help="run folder, such as reports/<run-id>; several give one page"
    )
    report.add_argument(
        "--output", metavar="FILE", help="write a copy of the page to FILE; with several runs, write it only there"
    )
    for command in (commands.choices["run"], report):
        command.add_argument("--junit", action="store_true", help="also write junit.xml, for CI")
        command.add_argument("--full", action="store_true", help="also print every figure and comparison")
    published = commands.choices["published"]
    published.add_argument(
        "run", nargs="*", metavar="RUN", help="run folder (a row uses the last run that measured it)"
    )
    published.add_argument("--write", metavar="FILE", help="output file, .md or .html")
    commands.choices["images"].add_argument("push", nargs="?", choices=["push"], help="push them to HEADWIND_REGISTRY")
    commands.choices["down"].add_argument("--all", action="store_true", help="also remove testbeds of runs in progress")
    return parser.parse_args(arguments)


COMMANDS: dict[str, Command] = {
    "plan": command_plan, "validate": command_validate, "report": command_report, "compare": command_compare,
    "published": command_published,
    "profiles": command_profiles, "doctor": command_doctor, "try-server": command_try_server,
    "worker": command_worker, "images": command_images,
    "down": command_down,
}  # fmt: skip
