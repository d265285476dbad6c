#!/usr/bin/env python3
"""Headwind: how do HTTP/1.1, HTTP/2 and HTTP/3 behave when the network is bad? The story of a run, top to bottom."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headwind import stops
from headwind.cli import commands

if TYPE_CHECKING:  # everything else is imported where it is used: `--help` must answer at once
    from headwind.cli.cluster import Bench
    from headwind.cli.means import Means
    from headwind.model import Matrix
    from headwind.run.journal import Run
    from headwind.testbed.docker import Say
    from headwind.testbed.testbed import Testbed


def run_matrix(
    matrix: Matrix, reports: Path, engine: str, resume: Path | None, cluster: str | None = None, *,
    means: Means, ending: list[str], verbose: bool = False, **wanted: bool,
) -> tuple[Path, int]:  # fmt: skip
    """Run every trial of the matrix; a report follows each block, the last one as `wanted`.

    Returns the run's folder and the exit code. How to resume the run, for people, is added to `ending`.
    """
    from headwind.cli.cluster import bench_far
    from headwind.cli.progress import console
    from headwind.cli.resume import how_to_resume
    from headwind.run.journal import Run
    from headwind.run.shortfall import shortfall

    out = console()
    with ExitStack() as opened:
        earlier = opened.enter_context(Run.open(resume)) if resume else None
        if earlier and engine == "auto":
            engine = earlier.environment.get("engine", engine)
        bench = opened.enter_context(
            bench_far(matrix, cluster, engine, earlier, out.print, means) if cluster else
            bench_here(matrix, reports, engine, earlier, out.print, means)
        )  # fmt: skip
        run = earlier or opened.enter_context(Run.create(reports, matrix, bench.environment))
        on_engine = "" if engine == "auto" else f", engine {bench.lanes.first.engine}"  # auto gave its reason above
        out.print(f"run {run.folder}{on_engine}", markup=False)
        redrawing = means.redrawing(run, partial(out.print, markup=False))
        with run.claimed():  # until the report is written
            try:
                with run.recording(), redrawing:
                    run_trials(bench, run, matrix, means, redrawing, verbose=verbose)
                    bench.lanes.retire()
            finally:  # Ctrl-C and a broken lab too leave a whole report
                run.note_environment(testbeds=[*run.environment.get("testbeds", []), *bench.lanes.lives])
                data = commands.finish_report(run, **wanted)
                ending += how_to_resume(run, data, cluster, matrix.repeat.budget_s)
        doubts = [f"{doubt}; do not trust the trials that ran on it" for doubt in bench.lanes.doubts]
        reasons = [each for each in (shortfall(matrix, data.results), *doubts) if each]
        for trouble in filter(None, (*reasons, redrawing.trouble)):
            print(f"lab.py: {trouble}", file=sys.stderr)
        return run.folder, 1 if reasons else 0


@contextmanager
def bench_here(
    matrix: Matrix, reports: Path, engine: str, earlier: Run | None, say: Say, means: Means
) -> Iterator[Bench]:
    """Lanes on this machine, of which the first is up and can do what the matrix asks. Raises HeadwindError."""
    from headwind.cli.cluster import Bench
    from headwind.cli.doctor import host_facts, lanes_here
    from headwind.plan.arms import check_arms
    from headwind.plan.capacity import check_capacity, profiles_of
    from headwind.run.ceilings import earlier_ceilings
    from headwind.trial.lane import Lane
    from headwind.trial.lanes import Lanes

    means.sweep(say, False)
    images = means.ensure_images(say)
    if earlier:  # before anything is started
        earlier.check_resumable(matrix, images.ids, earlier.environment.get("engine", ""), host_facts())
    say("bringing the testbed up")

    def up(engine: str) -> AbstractContextManager[Testbed]:
        return means.up(images.tag, matrix.congestion, engine, say, profiles_of(matrix))

    first = Lane(up, matrix.timeout_s, engine=engine, settings=matrix.settings)
    with Lanes(first, lanes_here(matrix.lanes), say, clock=means.clock) as lanes:
        check_arms(matrix, first.running)
        check_capacity(matrix, first.facts["ceiling"], earlier_ceilings(reports, first.engine, host_facts()))
        facts = {"engine": first.engine, "images": images.ids, "host": host_facts(), "testbed": first.facts}
        if earlier:
            earlier.check_resumable(matrix, images.ids, first.engine, host_facts())
        yield Bench(lanes, facts, os.uname().nodename, os.cpu_count() or 1)


def run_trials(
    bench: Bench, run: Run, matrix: Matrix, means: Means, redraw: Callable[[], None], *, verbose: bool
) -> None:
    """Every block that is still worth its time; each trial is on disk before its lane begins the next one."""
    from headwind.cli.beside import Beside
    from headwind.cli.progress import Reporter, console
    from headwind.model import Result
    from headwind.plan.adaptive import time_left
    from headwind.plan.scheduler import Scheduler
    from headwind.run.data import results_of
    from headwind.trial.lanes import Begun, Ended

    left_s = time_left(matrix.repeat.budget_s, means.clock)
    scheduler = Scheduler(matrix, results_of(run), left_s, bench.lanes.most, bench.cores, means.clock)
    scheduler.repeat(scheduler.begun_elsewhere(bench.host))
    other_labs = means.other_labs if bench.host else dict  # the machine that leads a cluster measures nothing
    beside = Beside(run, other_labs, partial(console().print, markup=False), means.clock)
    beside.look()
    with Reporter(console(), scheduler, verbose=verbose).showing() as show:
        for event in bench.lanes.run(scheduler, run):
            match event:
                case Begun(lane, trial):
                    show.begun(lane, trial)
                case Result():
                    show.finished(event)
                case Ended():
                    show.ended(event.lane)
                    beside.look()
                    redraw()


def command_run(options: argparse.Namespace) -> int:
    """Run every trial of a matrix and write the report."""
    from headwind.matrix.reader import load_matrix
    from headwind.run.journal import Run

    resume = Path(options.resume) if options.resume else None
    if resume and not options.matrix:
        with Run.open(resume) as earlier:
            matrix = earlier.matrix
    else:
        matrix = load_matrix(commands.matrix_path(options))
    matrix = commands.with_options(matrix, options)
    reports = commands.reports_folder(options)
    wanted = {name: getattr(options, name) for name in ("verbose", "junit", "full")}
    means, ending = commands.means_of(options), list[str]()
    with commands.followed_by(ending):
        return run_matrix(
            matrix, reports, options.engine, resume, options.cluster, means=means, ending=ending, **wanted
        )[1]


def command_experiments(options: argparse.Namespace) -> int:
    """Run all experiments within one budget, and draw one page over them."""
    from headwind.cli.experiments import Experiment, chosen, draw, run_all

    reports = commands.reports_folder(options)
    matrices = chosen([Path(name) for name in options.matrix], commands.ROOT / "experiments")
    experiments = [Experiment(commands.with_size(matrix, options)) for matrix in matrices]
    endings: dict[str, list[str]] = {}  # of each experiment's last round, by its file

    def measure(matrix: Matrix, resume: Path | None) -> tuple[Path, int]:
        endings[matrix.path] = []
        return run_matrix(
            matrix, reports, options.engine, resume, options.cluster,
            means=commands.means_of(options), verbose=options.verbose, ending=endings[matrix.path],
        )  # fmt: skip

    worst, ending = 0, list[str]()
    with commands.followed_by(ending):
        try:
            for code in run_all(experiments, options.budget, measure, print):
                worst = max(worst, code)
        finally:  # Ctrl-C leaves what was measured
            print(f"page: {draw(experiments, reports)}")
            titles = {each.path: each.title or each.path for each in matrices}
            ending += [f"{titles[path]}: {lines[0]}\n{lines[1]}" for path, lines in endings.items() if lines]
    return worst


COMMANDS = {"run": command_run, "experiments": command_experiments, **commands.COMMANDS}


def main(arguments: list[str], means: Means | None = None) -> int:
    """The exit code, as EXIT_CODES says.

    Of `compare`: 3 a regression, 4 cannot tell.
    `means` are this machine's unless somebody brings others.
    """
    options = commands.parse(arguments, __doc__ or "", COMMANDS)
    options.means = means
    from headwind.errors import HeadwindError

    stops.listen()
    try:
        return COMMANDS[options.command](options)
    except HeadwindError as error:
        return commands.ended(error, str(error), error.exit_code)
    except KeyboardInterrupt as stop:
        return commands.ended(stop, stops.sentence(), 130)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
