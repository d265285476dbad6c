#!/usr/bin/env python3
"""Headwind: how do HTTP/1.1, HTTP/2 and HTTP/3 behave when the network is bad? The story of a run, top to bottom."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from headwind.cli import commands

if TYPE_CHECKING:  # everything else is imported where it is used: `--help` must answer at once
    from headwind.model import Matrix
    from headwind.run.journal import Run
    from headwind.testbed.images import Images
    from headwind.trial.lane import Lane


def run_matrix(matrix: Matrix, reports: Path, engine: str, resume: Path | None, *, junit: bool) -> int:
    """Run every trial of the matrix, block by block; the report is written again after each. Returns the exit code."""
    from headwind.cli.doctor import host_facts
    from headwind.cli.progress import console
    from headwind.plan.capacity import check_capacity, earlier_ceilings
    from headwind.run.codec import State
    from headwind.run.journal import Run
    from headwind.testbed.images import ensure_images
    from headwind.testbed.testbed import Testbed, sweep
    from headwind.trial.lane import Lane

    out = console()
    earlier = Run.open(resume) if resume else None
    sweep(out.print)
    images = ensure_images(out.print)
    if earlier:  # before anything is started
        earlier.check_resumable(matrix, images.ids, earlier.environment.get("engine", ""), host_facts())
        engine = earlier.environment.get("engine", engine) if engine == "auto" else engine
    out.print("bringing the testbed up")
    profiles = tuple({condition.profile.name: condition.profile for condition in matrix.conditions}.values())

    def up(engine: str) -> AbstractContextManager[Testbed]:
        return Testbed.up(images.tag, matrix.congestion, engine, out.print, profiles)

    with Lane(up, matrix.timeout_s, engine, matrix.settings) as lane:
        check_capacity(matrix, lane.facts["ceiling"], earlier_ceilings(reports, lane.engine, host_facts()))
        run = open_run(earlier, matrix, reports, images, lane)
        out.print(f"engine {lane.engine}; run {run.folder}")
        try:
            with run.recording():
                run_trials(lane, run, matrix)
                lane.retire()
        finally:  # Ctrl-C and a broken lab too leave a whole report
            run.note_environment(testbeds=[*run.environment.get("testbeds", []), *lane.lives])
            commands.finish_report(run, junit=junit)
            if run.status.state is not State.FINISHED:
                again = f".venv/bin/python lab.py run --resume {shlex.quote(str(run.folder))}"
                print(f"not finished; this goes on where it was:\n  {again}")
    for doubt in lane.doubts:
        print(f"lab.py: {doubt}; do not trust the trials that ran on it", file=sys.stderr)
    return 0 if run.every_trial_is_data() and not lane.doubts else 1


def open_run(earlier: Run | None, matrix: Matrix, reports: Path, images: Images, lane: Lane) -> Run:
    """A new run folder, or the earlier one when nothing that matters has changed."""
    from headwind.cli.doctor import host_facts
    from headwind.run.journal import Run

    facts = {"engine": lane.engine, "images": images.ids, "host": host_facts(), "testbed": lane.facts}
    if earlier is None:
        return Run.create(reports, matrix, facts)
    earlier.check_resumable(matrix, images.ids, lane.engine, host_facts())
    return earlier


def run_trials(lane: Lane, run: Run, matrix: Matrix) -> None:
    """Every trial that is still worth its time; each is on disk before the next one starts."""
    from headwind.cli.progress import Reporter, console
    from headwind.plan.adaptive import time_left, upcoming
    from headwind.plan.forecast import Forecast
    from headwind.report import redrawing
    from headwind.verdicts.judgement import Judge

    results = run.results()
    judge, forecast = Judge(matrix, results), Forecast(matrix.timeout_s, results)
    redraw = redrawing(run, judge)
    with Reporter(console(), forecast, matrix, results).showing() as show:
        for block in upcoming(judge, results, forecast, time_left(matrix.repeat.budget_s)):
            for result in lane.run_block(block, run, run.attempts, show.starting):
                results.append(result)
                judge.tell([result])
                show.finished(result)
            redraw()


def command_run(options: argparse.Namespace) -> int:
    """Run every trial of a matrix and write the report."""
    from headwind.matrix.reader import load_matrix
    from headwind.run.journal import Run

    resume = Path(options.resume) if options.resume else None
    matrix = Run.open(resume).matrix if resume and not options.matrix else load_matrix(commands.matrix_path(options))
    matrix = commands.with_budget(matrix, options.budget)
    return run_matrix(matrix, commands.reports_folder(options), options.engine, resume, junit=options.junit)


COMMANDS = {"run": command_run, **commands.COMMANDS}


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, a polite kill, a closed terminal


def interrupt(number: int, frame: FrameType | None) -> None:
    """The first of STOPS: stop where we are and clean up; further ones find us already doing so."""
    del number, frame
    for each in STOPS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Exit code: 0 every trial is data, 1 the lab failed, 2 a bad matrix or usage, 3 a regression, 130 interrupted."""
    options = commands.parse(arguments, __doc__ or "", COMMANDS)
    from headwind.errors import HeadwindError

    for each in STOPS:
        signal.signal(each, interrupt)
    try:
        return COMMANDS[options.command](options)
    except HeadwindError as error:
        print(f"lab.py: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
