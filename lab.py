#!/usr/bin/env python3
"""Measure HTTP/1.1, HTTP/2 and HTTP/3 over impaired networks."""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the reason in place of an ImportError
    sys.stderr.write(
        f"lab.py: this is Python {sys.version_info[0]}.{sys.version_info[1]}, and 3.11 or newer is needed; run it as "
        ".venv/bin/python lab.py, which `make lab-plan` creates\n"
    )
    sys.exit(2)

import argparse
import errno
import os
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headwind import stops
from headwind.cli import commands
from headwind.cli.terminal import say
from headwind.engines import AUTO

if TYPE_CHECKING:  # everything else is imported where it is used: `--help` must answer at once
    from rich.console import Console

    from headwind.cli.cluster import Backend
    from headwind.cli.dependencies import Dependencies
    from headwind.model import Condition, Matrix
    from headwind.run.journal import Run
    from headwind.testbed.docker import Say
    from headwind.testbed.testbed import Testbed


def run_matrix(
    matrix: Matrix, reports: Path, engine: str, resume: Path | None, cluster: str | None = None, *,
    deps: Dependencies, ending: list[str], capture: Collection[Condition] = (), verbose: bool = False, **wanted: bool,
) -> tuple[Path, int]:  # fmt: skip
    """Run every trial of the matrix, then `capture`. Write a report after each block, and the last one as `wanted`.

    Returns the run's folder and the exit code. Adds the text on how to resume the run to `ending`.
    """
    from headwind.cli.cluster import remote_backend
    from headwind.cli.console import console
    from headwind.cli.resume_advice import how_to_resume
    from headwind.run.data import LAST_BUDGET
    from headwind.run.journal import Run
    from headwind.run.shortfall import shortfalls

    out = console()
    print_warnings(matrix, out)
    with ExitStack() as opened:
        earlier = opened.enter_context(Run.open(resume)) if resume else None
        if earlier and engine == AUTO:
            engine = earlier.environment.get("engine", engine)
        with starting(earlier, matrix, cluster, ending):
            backend = opened.enter_context(
                remote_backend(matrix, cluster, engine, earlier, out.print, deps) if cluster else
                local_backend(matrix, reports, engine, earlier, out.print, deps)
            )  # fmt: skip
            run = earlier or opened.enter_context(Run.create(reports, matrix, backend.environment))
        on_engine = "" if engine == AUTO else f", engine {backend.lanes.first.engine}"  # auto gave its reason above
        out.print(f"run folder: {run.folder}{on_engine}", markup=False)
        redrawing = deps.redrawing(run, partial(out.print, markup=False))
        failures = list[str]()
        with run.claimed():  # until the report is written
            try:
                with run.recording(), redrawing:
                    if earlier:
                        run.note_environment(**backend.joined(earlier.environment))
                    if matrix.repeat.budget_s:
                        run.note_environment(**{LAST_BUDGET: matrix.repeat.budget_s})
                    run_trials(backend, run, matrix, deps, redrawing, out, verbose=verbose)
                    failures += capture_trials(backend, run, capture, out)
                    backend.lanes.retire()
            finally:  # also Ctrl-C and a broken lab leave a whole report
                note_session(backend, run, failures)
                data = commands.finish_report(run, **wanted)
                ending += how_to_resume(run, data, cluster)
        reasons = shortfalls(data)
        for trouble in filter(None, (*reasons, redrawing.trouble)):
            say(f"lab.py: {trouble}", file=sys.stderr)
        return run.folder, 1 if reasons else 0


def print_warnings(matrix: Matrix, out: Console) -> None:
    """Print warnings and notes about the matrix and this clone, before anything is started."""
    from headwind.cli.doctor import checkout
    from headwind.plan.doubts import notes_of, warnings_of
    from headwind.plan.minimum import too_few_blocks

    if trouble := checkout(commands.ROOT)[1]:
        out.print(f"the run cannot record the commit: {trouble}; `make lab-doctor` prints a fix", markup=False)
    for warning in filter(None, (*warnings_of(matrix), too_few_blocks(matrix), *notes_of(matrix))):
        out.print(warning, markup=False)


def note_session(backend: Backend, run: Run, failures: Sequence[str]) -> None:
    """Record the testbeds of this session, their faults, and `failures` of captured trials."""
    from headwind.run.shortfall import FAULTS

    doubts = [f"{doubt}; do not trust the trials that ran on it" for doubt in backend.lanes.doubts]
    lives = [*run.environment.get("testbeds", []), *backend.lanes.lives]
    run.note_environment(testbeds=lives, **{FAULTS: [*doubts, *failures]})


@contextmanager
def starting(earlier: Run | None, matrix: Matrix, cluster: str | None, ending: list[str]) -> Iterator[None]:
    """If a run is stopped while it starts, say that it recorded nothing, or how to resume the one that it resumed."""
    from headwind.cli.resume_advice import how_to_resume
    from headwind.run.data import LAST_BUDGET, RunData

    try:
        yield
    except KeyboardInterrupt as stop:
        if earlier is None:
            stop.add_note("nothing was measured yet, and no run folder was written: start the same command again")
        else:
            data, budget_s = RunData.of(earlier), matrix.repeat.budget_s
            given = {LAST_BUDGET: budget_s} if budget_s else {}  # the run has not recorded it yet
            ending += how_to_resume(earlier, replace(data, environment={**data.environment, **given}), cluster)
        raise


@contextmanager
def local_backend(
    matrix: Matrix, reports: Path, engine: str, earlier: Run | None, say: Say, deps: Dependencies
) -> Iterator[Backend]:
    """Lanes on this machine; the first one is up and supports what the matrix needs. Raises HeadwindError."""
    from headwind.cli.cluster import Backend
    from headwind.cli.doctor import host_facts, lanes_here
    from headwind.plan.arms import check_arms
    from headwind.plan.capacity import Load, check_capacity, profiles_of
    from headwind.run.earlier import earlier_ceilings
    from headwind.site_folder import snapshot_of
    from headwind.testbed.bed_spec import BedSpec
    from headwind.testbed.images import needed
    from headwind.trial.lane import Lane
    from headwind.trial.lanes import Lanes

    deps.sweep(say, False)
    content = snapshot_of(matrix.content) if matrix.content else None
    own = {server.name: deps.ensure_own_image(server, say) for server in matrix.servers if server.program}
    images = deps.ensure_images(say, needed([server.kind for server in matrix.servers], matrix.browsers))
    recorded = images.recorded | {f"server {name}": image.recorded for name, image in own.items()}
    if earlier:  # before anything is started
        earlier.check_resumable(matrix, recorded, earlier.environment.get("engine", ""), host_facts())
    say("bringing the testbed up")
    profiles = profiles_of(matrix)

    def up(engine: str) -> AbstractContextManager[Testbed]:
        bed = BedSpec(images.tags, matrix.congestion, engine, profiles, matrix.servers, own, matrix.browsers, content)
        return deps.up(bed, say)

    first = Lane(up, matrix.rules, engine=engine)
    with Lanes(first, lanes_here(matrix.lanes), say, clock=deps.clock) as lanes:
        check_arms(matrix, first.path)
        check_capacity(
            matrix, first.facts["ceiling"], earlier_ceilings(reports, first.engine, host_facts()), Load.here()
        )
        facts = {"engine": first.engine, "images": recorded, "host": host_facts(), "testbed": first.facts}
        if earlier:
            earlier.check_resumable(matrix, recorded, first.engine, host_facts())
        yield Backend(lanes, facts, os.uname().nodename, os.cpu_count() or 1)


def run_trials(
    backend: Backend, run: Run, matrix: Matrix, deps: Dependencies, redraw: Callable[[], None], out: Console, *,
    verbose: bool,
) -> None:  # fmt: skip
    """Run every block that is still worth its time. Each trial is on disk before its lane begins the next one.

    All output during the run goes through `out`, which has the progress bar: other output would write into the bar's
    line.
    """
    from headwind.cli.progress import Beside, Reporter
    from headwind.model import Result
    from headwind.plan.adaptive import time_left
    from headwind.plan.scheduler import Scheduler
    from headwind.run.data import results_of
    from headwind.run.earlier import earlier_results
    from headwind.trial.lanes import Begun, Ended

    left_s = time_left(matrix.repeat.budget_s, deps.clock)
    known = earlier_results(matrix, run.folder.parent, run.folder)
    scheduler = Scheduler(matrix, results_of(run), left_s, backend.lanes.most, backend.cores, deps.clock, earlier=known)
    scheduler.repeat(scheduler.incomplete)
    backend.lanes.consult(scheduler)
    other_labs = deps.other_labs if backend.host else dict  # the controller of a cluster measures nothing
    beside = Beside(run, other_labs, partial(out.print, markup=False), deps.clock)
    beside.look()
    with Reporter(out, scheduler, verbose=verbose).showing() as show:
        for event in backend.lanes.run(scheduler, run):
            if isinstance(event, Begun):  # `match` is a syntax error to Python 3.9, which then gives no reason
                show.begun(event.lane, event.trial)
            elif isinstance(event, Result):
                show.finished(event)
            elif isinstance(event, Ended):
                show.ended(event.lane)
                beside.look()
                redraw()


def capture_trials(backend: Backend, run: Run, conditions: Collection[Condition], out: Console) -> list[str]:
    """Run a trial of each arm in these conditions that is captured, and not counted; the text of each that failed."""
    if not conditions:
        return []
    from headwind.cli.capturing import capture_all
    from headwind.run.data import results_of
    from headwind.trial.lane import Lane

    lane = backend.lanes.first
    assert isinstance(lane, Lane)  # a cluster's are refused
    measured = {result.trial.block.condition.id for result in results_of(run)}
    return capture_all(lane, run, conditions, measured, partial(out.print, markup=False))


def command_run(options: argparse.Namespace) -> int:
    """Run a matrix (the file that defines an experiment) and write the report."""
    from headwind.cli.capturing import chosen
    from headwind.cli.runs import run_folder
    from headwind.matrix.reader import load_matrix

    resume = run_folder(options.resume, Path(options.reports)) if options.resume else None
    matrix = resumed_matrix(resume, options) if resume else load_matrix(commands.matrix_path(options))
    matrix = commands.with_options(matrix, options)
    reports = commands.reports_folder(options)
    capture = chosen(matrix, options.capture, options.cluster)
    wanted = {name: getattr(options, name) for name in ("verbose", "junit", "full")}
    deps, ending = commands.dependencies_of(options), list[str]()
    with commands.followed_by(ending):
        return run_matrix(
            matrix, reports, options.engine, resume, options.cluster,
            deps=deps, ending=ending, capture=capture, **wanted,
        )[1]  # fmt: skip


def resumed_matrix(folder: Path, options: argparse.Namespace) -> Matrix:
    """The matrix with which a run is resumed: its own, or a given one. Raises UsageError for a pointless budget."""
    from headwind.cli.resume_advice import check_budget
    from headwind.matrix.reader import load_matrix
    from headwind.run.codec import matrix_to_json
    from headwind.run.differences import differences
    from headwind.run.journal import Run

    with Run.open(folder) as earlier:
        if options.budget is not None:
            check_budget(earlier)
        if not options.matrix:
            return earlier.matrix
        given = load_matrix(Path(options.matrix))
        if not list(differences(matrix_to_json(earlier.matrix), matrix_to_json(given))):
            say(f"{options.matrix} is the matrix of this run already: only its `budget` and `lanes` count")
        return given


def command_experiments(options: argparse.Namespace) -> int:
    """Repeat experiments from published articles and write one page of results."""
    from headwind.cli.experiments import Experiment, chosen, draw, run_all

    reports = commands.reports_folder(options)
    matrices = chosen([Path(name) for name in options.matrix], commands.ROOT / "experiments")
    experiments = [Experiment(commands.with_size(matrix, options)) for matrix in matrices]
    endings: dict[str, list[str]] = {}  # lines of each experiment's last round, by file

    def measure(matrix: Matrix, resume: Path | None) -> tuple[Path, int]:
        endings[matrix.path] = []
        return run_matrix(
            matrix, reports, options.engine, resume, options.cluster,
            deps=commands.dependencies_of(options), verbose=options.verbose, ending=endings[matrix.path],
        )  # fmt: skip

    ending = list[str]()
    with commands.followed_by(ending):
        try:
            return run_all(experiments, options.budget, measure, say)
        finally:  # Ctrl-C keeps what was measured
            say(f"page: {draw(experiments, reports)}")
            titles = {each.path: each.title or each.path for each in matrices}
            ending += [
                "\n".join([f"{titles[path]}: {lines[0]}", *lines[1:]]) for path, lines in endings.items() if lines
            ]


COMMANDS = {"run": command_run, "experiments": command_experiments, **commands.COMMANDS}


def main(arguments: list[str], deps: Dependencies | None = None) -> int:
    """Run the command. Returns its exit code (EXIT_CODES).

    `deps` are this machine's by default; tests inject others.
    """
    options = commands.parse(arguments, __doc__ or "", COMMANDS)
    options.deps = deps
    from headwind.errors import HeadwindError

    stops.listen()
    try:
        return COMMANDS[options.command](options)
    except HeadwindError as error:
        return commands.ended(error, str(error), error.exit_code)
    except ModuleNotFoundError as error:
        return commands.ended(error, commands.lacking(error, arguments), 2)
    except KeyboardInterrupt as stop:
        return commands.ended(stop, stops.sentence(), 130)
    except BrokenPipeError:  # the reader of the output is gone, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return commands.ended(error, f"{error}; `make lab-doctor` prints how much space is free", 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
