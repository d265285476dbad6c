"""The command line, and the commands that need no testbed. Imports are lazy: `--help` must answer at once."""

from __future__ import annotations

import argparse
import errno
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from headwind.cli.options import (
    how_long,
    how_to_advise,
    how_to_capture,
    how_to_compare,
    how_to_measure,
    how_to_publish,
    how_to_report,
    how_to_try,
    where_and_how_much,
)
from headwind.cli.terminal import say
from headwind.format import blocks_text, counted, planned_text

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
    """The matrix with the size and the lanes of the command line, if given.

    Raises UsageError if a budget is given and the matrix has a fixed number of blocks; a smoke test may have both.
    """
    if not options.smoke:
        with_budget(matrix, options.budget)
    matrix = matrix.in_short() if options.smoke else matrix
    return matrix if options.lanes is None else replace(matrix, lanes=options.lanes)


def with_budget(matrix: Matrix, budget_s: float | None) -> Matrix:
    """The matrix with another budget. Raises UsageError if the matrix has a fixed number of blocks."""
    from headwind.errors import UsageError

    if budget_s is None:
        return matrix
    if not matrix.repeat.is_adaptive:
        number = blocks_text(matrix.repeat)
        name = matrix.path or "this matrix"
        raise UsageError(f"--budget: {name} fixes the number of blocks ({number}); set repeat: {{min, max}}")
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
        say(line)


def ended(error: BaseException, sentence: str, code: int) -> int:
    """Print why the program ended, followed by the notes of the error. Returns the exit code."""
    say(f"lab.py: {sentence}", file=sys.stderr)
    for line in getattr(error, "__notes__", ()):
        say(line)
    return code


def lacking(error: ModuleNotFoundError, arguments: Sequence[str]) -> str:
    """Sentence on a package that this Python lacks, with the same command in the virtual environment.

    Raises the error again if it is about a module of the lab.
    """
    package = (error.name or "").partition(".")[0]
    if not package or (ROOT / package).exists():
        raise error
    command = shlex.join([str(ROOT / ".venv/bin/python"), str(ROOT / "lab.py"), *arguments])
    where = "in the virtual environment, which `make lab-plan` creates"
    return f"{sys.executable} lacks the package {package}; run it {where}:\n  {command}"


def finish_report(run: Run, *, junit: bool = False, full: bool = False) -> RunData:
    """Write the last report and all other files, and print the result. Returns the content of the run folder."""
    from headwind.cli.console import console
    from headwind.report.files import write_files
    from headwind.report.formats.terminal import print_summary
    from headwind.report.html.page import REPORT

    data = write_files(run, junit=junit)
    print_summary(data, console(), full=full)
    say(f"report: {run.folder / REPORT}")
    return data


def command_report(options: argparse.Namespace) -> int:
    """Regenerate the report of a run, or combine several runs on one page."""
    from headwind.cli.resume_advice import how_to_resume
    from headwind.cli.runs import run_folders
    from headwind.errors import UsageError
    from headwind.report.files import write_page
    from headwind.report.html.page import REPORT
    from headwind.run.journal import Run

    output = Path(options.output) if options.output else None
    with ExitStack() as opened:
        runs = [opened.enter_context(Run.open(folder)) for folder in run_folders(options.run)]
        if len(runs) > 1 and options.junit:
            raise UsageError("--junit: junit.xml is about a single run; give one run")
        if len(runs) > 1 and options.full:
            raise UsageError("--full: the terminal has no result of several runs; give one run")
        if len(runs) > 1:
            report_several(runs, output)
            return 0
        data = finish_report(runs[0], junit=options.junit, full=options.full)
        for line in how_to_resume(runs[0], data):
            say(line)
        if output:
            say(f"copy: {write_page(output, (runs[0].folder / REPORT).read_text(encoding='utf-8'))}")
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
    from headwind.run.journal import fits_together

    refuse_twins(runs)
    with fits_together(*(run.folder for run in runs)):
        page = render_several([RunData.of(run) for run in runs], time.time())
    say(f"report: {write_page(output or several_path(runs), page)}")


def command_published(options: argparse.Namespace) -> int:
    """Compare the results of runs with numbers from published articles; print a table, or write it to a file."""
    from headwind.cli.experiments import overview
    from headwind.cli.runs import run_folders
    from headwind.errors import UsageError
    from headwind.matrix.reader import load_matrix
    from headwind.report.articles import unused
    from headwind.report.files import write_page
    from headwind.report.overview import published_md
    from headwind.run.data import RunData
    from headwind.run.journal import Run

    output = Path(options.write) if options.write else None
    if output and output.suffix not in (".md", ".html"):
        raise UsageError(f"--write {output}: the file is Markdown or a page; end its name in .md or .html")
    matrices = [load_matrix(path) for path in sorted((ROOT / "experiments").glob("*.yaml"))]
    folders = run_folders(options.run)
    with ExitStack() as opened:
        runs = [RunData.of(opened.enter_context(Run.open(folder))) for folder in folders]
    for data in runs:
        if not data.matrix.published:
            raise UsageError(f"{data.id}: its matrix has no key `published`, so there is nothing to compare")
    for name in unused(matrices, runs):
        say(f"{name} fills no row: it measured the condition of none, or a later run fills the same", file=sys.stderr)
    is_page = output is not None and output.suffix == ".html"
    document = overview(matrices, runs, folders, output.parent) if output and is_page else published_md(matrices, runs)
    say(f"written: {write_page(output, document)}" if output else document)
    return 0


def command_advise(options: argparse.Namespace) -> int:
    """Derive and print an nginx configuration that offers HTTP/3 only to clients on networks where it helps."""
    from headwind.cli.advise import print_advice
    from headwind.cli.console import console
    from headwind.cli.runs import run_folders
    from headwind.report.advice import advised, snippet
    from headwind.report.files import write_page
    from headwind.run.data import RunData
    from headwind.run.journal import Run

    with ExitStack() as opened:
        runs = [opened.enter_context(Run.open(folder)) for folder in run_folders(options.run)]
        refuse_twins(runs)
        found = advised([RunData.of(run) for run in runs])
    print_advice(found, console())
    if options.write and (text := snippet(found)):
        say(f"written: {write_page(Path(options.write), text)}")
    elif options.write:
        say(f"{options.write} was not written: there is no rule")
    return 0


def command_compare(options: argparse.Namespace) -> int:
    """Compare two runs: which protocols became faster or slower relative to others? Exit with 3 if any got slower."""
    from headwind.cli.console import console
    from headwind.cli.runs import run_folders
    from headwind.report.compare.changes_json import changes_text
    from headwind.report.compare.comparison import compared
    from headwind.report.compare.terminal import print_changes
    from headwind.report.files import write_page
    from headwind.run.journal import Run, fits_together

    earlier_folder, later_folder = run_folders([options.earlier, options.later])
    with Run.open(earlier_folder) as earlier, Run.open(later_folder) as later:
        refuse_twins([earlier, later])
        with fits_together(earlier.folder, later.folder):
            comparison = compared(earlier, later, absolute=options.absolute)
    print_changes(comparison, console())
    if options.json:
        say(f"JSON: {write_page(Path(options.json), changes_text(comparison))}")
    if comparison.is_regression:
        return 3
    return 4 if options.strict and comparison.is_inconclusive else 0


def command_plan(options: argparse.Namespace) -> int:
    """List the conditions of a matrix and forecast their duration, without starting anything."""
    from headwind.cli.console import console
    from headwind.cli.plan import print_plan
    from headwind.matrix.reader import load_matrix

    print_plan(with_options(load_matrix(matrix_path(options)), options), Path(options.reports), console())
    return 0


def command_validate(options: argparse.Namespace) -> int:
    """List the mistakes in a matrix, without starting anything; some are found only after others are fixed."""
    from headwind.matrix.reader import load_matrix
    from headwind.plan.doubts import notes_of, warnings_of

    path = matrix_path(options)
    matrix = load_matrix(path)
    arms = counted(len(matrix.arms), matrix.arms_word)
    conditions = counted(len(matrix.conditions), "condition")
    size = f"{arms}, {planned_text(matrix)}" if matrix.find else f"{conditions}, {arms}, {planned_text(matrix)} each"
    say(f"{path}: valid, {size}")
    for note in (*warnings_of(matrix), *notes_of(matrix)):
        say(note)
    for source in matrix.published:
        if gaps := "; ".join(f"{', '.join(rows)} ({reason})" for reason, rows in source.gaps.items()):
            say(f"published {source.name}, not compared: {gaps}")
    return 0


def command_profiles(options: argparse.Namespace) -> int:
    """List the built-in networks that a matrix can use by name, with their sources."""
    from headwind.cli.console import console
    from headwind.cli.profiles import print_profiles

    del options
    print_profiles(console())
    return 0


def command_doctor(options: argparse.Namespace) -> int:
    """Check whether this machine can run Headwind, and print a fix for each problem."""
    from headwind.cli.console import console
    from headwind.cli.doctor import Machine, examine, print_findings

    del options
    return print_findings(examine(Machine.here()), console())


def command_try_server(options: argparse.Namespace) -> int:
    """Start a server and check that it returns the same bytes over every protocol it supports."""
    from headwind.cli.try_server import try_server
    from headwind.servers import SERVERS

    servers, site = SERVERS, None
    if options.matrix:
        from headwind.matrix.reader import load_matrix

        matrix = load_matrix(Path(options.matrix))
        servers, site = SERVERS | {server.name: server for server in matrix.servers}, matrix.content
    return try_server(options.server, servers, say, dependencies_of(options), site)


def command_worker(options: argparse.Namespace) -> int:
    """Until Ctrl-C, make this machine a worker for runs that are started on another one."""
    from headwind.cli.cluster import work

    work(options.address, options.name, say, dependencies_of(options))
    return 0


def command_images(options: argparse.Namespace) -> int:
    """Pull the container images from the registry $HEADWIND_REGISTRY, or build those that it lacks."""
    from headwind.testbed.images import IMAGES, ensure_images, push_images

    if options.push:
        push_images(say, IMAGES)
    else:
        images = ensure_images(say, IMAGES)
        say(f"images ready: {', '.join(images.reference(name) for name in IMAGES)}")
    return 0


def command_sbom(options: argparse.Namespace) -> int:
    """Write the software bill of materials (CycloneDX): all image packages and Python packages, with licences."""
    from headwind.cli.sbom import write_sbom
    from headwind.report.files import place_for
    from headwind.testbed.images import IMAGES, ensure_images

    output = Path(options.output)
    place_for(output)  # before minutes of building
    say(f"{write_sbom(ensure_images(say, IMAGES), output, ROOT)} components: {output}")
    return 0


def command_down(options: argparse.Namespace) -> int:
    """Remove Docker containers and networks left behind by earlier runs."""
    from headwind.testbed.kept_images import shared, staying

    deps = dependencies_of(options)
    say(f"{counted(deps.sweep(say, options.all), 'testbed')} removed")
    if options.images:
        say("\n".join([f"{counted(deps.remove_images(say), 'image')} removed", *shared()]))
    elif options.all:
        say("\n".join(staying(deps.kept_images())))
    return 0


EXIT_CODES = """exit status:
  0    success; for a run: it has enough data, and the network was as requested in nearly every trial
  1    Headwind itself failed; or, after a run: too little data, or the network deviated in too many trials;
       doctor: a problem prevents runs; try-server: a protocol failed or gave wrong bytes
  2    a mistake in the matrix or on the command line
  3    compare: a protocol became slower relative to others (others becoming faster does not count)
  4    compare --strict: no protocol became slower, but some comparisons have too little data for an answer, or a
       self-check failed
  130  stopped by Ctrl-C or SIGTERM

If the status is 1, the output states the cause. docs/files.md explains how much data is enough."""


COMMANDS_MEANT = {  # words of other tools for a command, by the command line that does it
    "run": "start begin go execute bench benchmark measure up", "run --smoke": "smoke test try",
    "run --resume RUN": "resume continue restart", "run --capture CONDITION": "capture record pcap tcpdump",
    "report RUN": "status show results result summary open html view export stats logs log",
    "plan": "list ls estimate forecast dry-run dryrun preview trials", "validate": "check lint verify",
    "down": "clean cleanup stop kill rm remove prune delete destroy teardown", "profiles": "networks presets",
    "images": "build pull install", "images push": "push", "doctor": "info diagnose setup",
    "try-server NAME": "server servers", "compare RUN_A RUN_B": "diff", "--help": "commands usage",
}  # fmt: skip
PARTS = ("only", "filter", "select", "include", "exclude", "skip")  # options of other tools for a part of a matrix


class Suggesting(argparse.ArgumentParser):
    """A parser that takes no abbreviations, and whose errors propose the command or option that was meant."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Print the error with a proposal for a wrong choice, and exit with 2."""
        if wrong := re.match(r"argument .*: invalid choice: '([^']*)'", message):
            known = [str(each) for action in self._actions for each in action.choices or ()]
            meant = _command_meant(wrong[1]) if self._subparsers else ""
            meant = meant or _resembling(wrong[1], [*known, *self._option_string_actions])[0]
            message += f"; did you mean `{meant}`?" if meant else ""
        super().error(message)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments; arguments that the command does not take are its error, not that of `lab.py`."""
        for word in args or ():
            if hint := self._foreign(word):
                self.error(f"{word}: {hint}")
        if self._subparsers and args and args[0].startswith("--") and args[0] not in self._option_string_actions:
            self.error(f"the command comes before its options: lab.py COMMAND {args[0]}")
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}{self._instead_of(rest[0])}")
        return found, rest

    def _foreign(self, word: str) -> str:
        """Hint for a dash that a word processor made, and for a variable of `make`."""
        options = self._option_string_actions
        dashes = re.match("[-\u2010-\u2015]*", word)
        if dashes and not dashes[0].isascii():
            return f"an option begins with plain hyphens: --{word[dashes.end() :]}"
        name, equals, value = word.partition("=")
        option = f"--{name.casefold()}"
        return f"variables are for `make`: here it is {option} {value}" if equals and option in options else ""

    def _instead_of(self, word: str) -> str:
        """Proposal for an argument that the command does not take: an option, or a key of the matrix."""
        from headwind.matrix.document import MatrixKeys
        from headwind.matrix.spelling import respelt, synonym

        option, is_near = _resembling(word, list(self._option_string_actions))
        name = _bare(word)
        if is_near and option:
            return f"; did you mean `{option}`?"
        if not word.startswith("-"):
            return ""
        if key := respelt(name, list(MatrixKeys.model_fields)):
            return f"; `{key}` is a key of the matrix"
        takes_matrix = any(action.dest == "matrix" for action in self._actions)
        if name == "matrix" and takes_matrix:
            return "; the matrix is named without an option: lab.py COMMAND FILE"
        if name in PARTS and takes_matrix:
            return "; `conditions` in the matrix lists what is measured, and `smoke` there what --smoke runs"
        if meant := synonym(name, [each.lstrip("-") for each in self._option_string_actions]):
            return f"; did you mean `--{meant}`?"
        return f"; did you mean `{option}`?" if option else ""


def _command_meant(word: str) -> str:
    """The command line for another tool's word, or for a matrix in the place of the command; empty for others."""
    if word.endswith((".yaml", ".yml")):
        return f"run {word}"
    return next((line for line, words in COMMANDS_MEANT.items() if word.casefold() in words.split()), "")


def _bare(word: str) -> str:
    """Name of an option: `budget` for `--Budget=5min`."""
    return word.partition("=")[0].lstrip("-").casefold()


def _resembling(word: str, known: Sequence[str]) -> tuple[str, bool]:
    """The known word that a misspelt or abbreviated one resembles, or none, and whether it is one error away."""
    import difflib

    from headwind.matrix.spelling import respelt

    bare, name = {_bare(each): each for each in known}, _bare(word)
    begun = [each for each in bare if name and each.startswith(name)]
    near = begun[0] if len(begun) == 1 else respelt(name, list(bare))
    far = difflib.get_close_matches(name, bare, 1, 0.7)
    return bare.get(near or next(iter(far), ""), ""), bool(near)


class _Version(argparse.Action):
    """Prints the version of pyproject.toml, and the commit if this is a checkout."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import tomllib

        from headwind.cli.doctor import commit_of

        version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        commit = commit_of(ROOT)
        say(f"Headwind {version}{f', commit {commit}' if commit else ''}")
        parser.exit()


OPTIONS = {
    "try-server": how_to_try, "compare": how_to_compare, "report": how_to_report, "advise": how_to_advise,
    "published": how_to_publish,
}  # fmt: skip
MEASURING = {  # commands, what --budget does, and its default
    "run": (
        (
            "time limit, counted from when the first testbed is ready; a block (one trial of every protocol) that is "
            "running at the end is completed. TIME is a duration"
        ),
        "the budget in the matrix; with --resume, that much again",
    ),
    "experiments": ("total time of all experiments together", "each has the budget in its matrix"),
}  # fmt: skip


def parse(arguments: list[str], description: str, commands_: Mapping[str, Command]) -> argparse.Namespace:
    """Parse the command line; a usage error exits with 2. The docstring of a command is its help."""
    parser = Suggesting(
        prog="lab.py", description=description, epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and the commit, and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in commands_.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").rstrip("."), description=function.__doc__)
        if name in ("run", "plan", "validate"):
            command.add_argument("matrix", nargs="?", help="the matrix file (default: matrix.yaml)")
        if name in ("run", "plan", "experiments"):
            where_and_how_much(command, str(ROOT / "reports"), is_plan=name == "plan")
        if name in MEASURING:
            how_to_measure(command, *MEASURING[name])
        if name == "plan":
            how_long(command, "plan for a run of at most this long")
    commands.choices["run"].add_argument(
        "--resume",
        metavar="RUN",
        help="continue the earlier run RUN (its folder or id); it keeps its own matrix, so do not give one",
    )
    how_to_capture(commands.choices["run"])
    commands.choices["experiments"].add_argument(
        "matrix", nargs="*", help="matrix files (default: those in experiments/ that contain published numbers)"
    )
    for name, add in OPTIONS.items():
        add(commands.choices[name])
    commands.choices["worker"].add_argument(
        "address", metavar="ADDRESS", help="the dask scheduler that you started for these runs, such as tcp://lab:8786"
    )
    commands.choices["worker"].add_argument("--name", help="name of this machine in reports (default: its host name)")
    for command in (commands.choices["run"], commands.choices["report"]):
        command.add_argument("--junit", action="store_true", help="also write junit.xml, a test report for CI")
        command.add_argument(
            "--full", action="store_true", help="also print every metric, comparison and warning to the terminal"
        )
    commands.choices["images"].add_argument(
        "push", nargs="?", choices=["push"], help="also upload the images to that registry"
    )
    commands.choices["sbom"].add_argument("output", metavar="FILE", help="the file to write, such as sbom.cdx.json")
    down = commands.choices["down"]
    down.add_argument("--all", action="store_true", help="also stop runs in progress, including those of other users")
    down.add_argument("--images", action="store_true", help="also remove Headwind's images that no container uses")
    return parser.parse_args(arguments)


COMMANDS: dict[str, Command] = {
    "plan": command_plan, "validate": command_validate, "report": command_report, "compare": command_compare,
    "published": command_published, "advise": command_advise,
    "profiles": command_profiles, "doctor": command_doctor, "try-server": command_try_server,
    "worker": command_worker, "images": command_images, "sbom": command_sbom,
    "down": command_down,
}  # fmt: skip
