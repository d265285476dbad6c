"""Whole runs on a fake testbed: what a user sees, what stays on disk, and with which exit code the lab ends."""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import lab
from headwind.cli import console as plain
from headwind.cli import progress
from headwind.model import Outcome
from headwind.plan import scheduler
from headwind.proof.attempts import MOST_ATTEMPTS
from headwind.report.row_text import headline
from headwind.report.trust import OTHER_LABS
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.run.journal import Run
from headwind.testbed.docker import DockerError
from tests.fake_testbed import Sabotage, World, fake_dependencies, fake_testbed
from tests.matrix_files import FOUR_BLOCKS as MATRIX

ROOT = Path(__file__).resolve().parent.parent.parent
TRIALS = 12
SEARCH = """
protocols: [h2, h3]
timeout: 60s
repeat: {max: 60}
find: {crossover: [h3, h2], along: downlink.loss, from: 0%, to: 10%, within: 1%}
profiles:
  far: {both: {delay: 20ms}}
workloads:
  small: {requests: 500, connections: 5, streams: 5}
lanes: 1
"""


class Lab:
    """The lab with a fake testbed under it and its own folder."""

    def __init__(self, folder: Path, world: World) -> None:
        self.folder, self.world = folder, world
        self.others: Callable[[], Mapping[str, int]] = dict
        self.matrix = folder / "matrix.yaml"
        self.matrix.write_text(MATRIX)

    def run(self, *arguments: str) -> int:
        deps = fake_dependencies(lambda: fake_testbed(self.world), other_labs=self.others)
        return lab.main(["run", str(self.matrix), "--reports", str(self.folder / "reports"), *arguments], deps)

    @property
    def folders(self) -> list[Path]:
        return [folder for folder in sorted((self.folder / "reports").glob("*/")) if (folder / "matrix.json").exists()]

    def outcomes(self) -> list[Outcome]:
        with Run.open(self.folders[-1]) as run:
            return [result.outcome for result in run.results()]


@pytest.fixture
def fake_lab(tmp_path: Path, signals: None) -> Lab:
    return Lab(tmp_path, World())


def test_a_good_run_ends_with_0_and_leaves_report_and_data(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert fake_lab.run() == 0
    assert fake_lab.outcomes() == [Outcome.OK] * TRIALS
    folder = fake_lab.folders[-1]
    assert f"report: {folder / 'report.html'}" in capsys.readouterr().out.replace("\n", "")
    assert len((folder / "trials.csv").read_text().splitlines()) == TRIALS + 1


def test_a_run_forecasts_from_earlier_runs_and_not_from_itself(fake_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    begun_with: list[int] = []

    class Watched(scheduler.Scheduler):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            if "earlier" in named:  # advice on resuming does not ask for them
                begun_with.append(sum(self.forecast.learnt.values()))

    monkeypatch.setattr(scheduler, "Scheduler", Watched)
    assert fake_lab.run() == 0
    assert fake_lab.run() == 0
    assert begun_with == [0, TRIALS]


def test_an_unproven_attempt_is_kept_and_its_trial_runs_again(fake_lab: Lab) -> None:
    fake_lab.world.sabotage = Sabotage(late=True, at=[4])
    assert fake_lab.run() == 0
    assert sorted(fake_lab.outcomes()) == sorted([*[Outcome.OK] * TRIALS, Outcome.INVALID])
    with Run.open(fake_lab.folders[-1]) as run:
        (lost,) = (result for result in run.results() if result.outcome is Outcome.INVALID)
        (again,) = (result for result in run.results() if result.attempt == 1)
        data = RunData.of(run)
    assert (again.trial, again.outcome) == (lost.trial, Outcome.OK)
    assert [result.outcome for result in data.latest] == [Outcome.OK] * TRIALS, "the first attempt counts nowhere"
    (line,) = (line for line in data.judgement.lines if again.trial.arm in (line.pair.new, line.pair.base)
               and line.condition == again.trial.block.condition and line.pair.base.name != "h2")  # fmt: skip
    assert line.blocks == 2
    assert "the network was not verified in an earlier attempt" in (fake_lab.folders[-1] / "summary.md").read_text()


def test_a_trial_that_is_never_proven_ends_the_run_with_1_and_a_sentence(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.world.sabotage = Sabotage(bypass=True)
    assert fake_lab.run() == 1
    printed = capsys.readouterr()
    said = [line for line in printed.err.splitlines() if line.startswith("lab.py: ")]
    assert "two trials in a row were invalid: " in printed.out + printed.err
    assert len(said) == 2, "each reason has a line"
    assert said[1].startswith("lab.py: the network was not verified in ")
    assert "has 0 complete blocks of the 2 that it needs, and 1 further condition too few" in said[0]
    assert f"the last of {MOST_ATTEMPTS} attempts at " in said[0]
    assert " gave no data: impairment not verified: " in said[0]


def test_many_unproven_attempts_end_the_run_with_1_although_all_of_its_trials_are_data(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.world.sabotage = Sabotage(late=True, at=[1, 3, 6, 8])
    assert fake_lab.run("--junit") == 1
    with Run.open(fake_lab.folders[-1]) as run:
        assert [result.outcome for result in RunData.of(run).latest] == [Outcome.OK] * TRIALS
    (said,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("lab.py: "))
    junit = (fake_lab.folders[-1] / "junit.xml").read_text()
    assert f'<failure message="{said.removeprefix("lab.py: ")}">' in junit
    assert f"the network was not verified in 4 of {TRIALS + 4} attempts, above the limit of 3; failed checks: " in said


def test_a_busy_machine_does_not_make_a_run_fail(fake_lab: Lab) -> None:
    fake_lab.world.load, fake_lab.world.pressure, fake_lab.world.machine_busy = 0.1, 0.9, 0.95
    fake_lab.world.stolen = 0.17
    assert fake_lab.run("--lanes", "3") == 0
    assert fake_lab.outcomes() == [Outcome.OK] * TRIALS
    summary = (fake_lab.folders[-1] / "summary.md").read_text()
    assert "had to wait for CPU time (contention): " in summary
    for name in ("HTTP/1.1", "HTTP/2", "HTTP/3"):
        assert f"{name}: 4 of 4" in summary


def test_a_broken_trial_is_written_down_as_what_it_was_and_run_again(fake_lab: Lab) -> None:
    fake_lab.world.sabotage = Sabotage(dies="router", at=[5])
    assert fake_lab.run() == 0
    assert fake_lab.outcomes() == [*[Outcome.OK] * 5, Outcome.LAB_ERROR, *[Outcome.OK] * (TRIALS - 5)]


def test_what_is_hardly_meant_is_printed_before_the_start(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.matrix.write_text(
        MATRIX.replace("clean: {}", "clean: {uplink: {loss: 95%}}").replace("repeat: 2", "repeat: 1")
    )
    fake_lab.run()
    said = capsys.readouterr().out
    assert f"{fake_lab.matrix}:7:20: `clean` loses 95.0 % of all packets on average" in said
    assert said.index("warning:") < said.index("bringing the testbed up")


def test_a_bad_matrix_starts_nothing_and_ends_with_2(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.matrix.write_text(MATRIX.replace("20%", "20"))
    assert fake_lab.run() == 2
    assert fake_lab.world.order == []
    assert f"{fake_lab.matrix}:8" in capsys.readouterr().err
    assert fake_lab.folders == []


def test_a_rate_above_what_this_host_can_show_is_refused_where_it_was_written(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.matrix.write_text(MATRIX.replace("loss: {", "fast: {both: {rate: 900mbit}}\n  loss: {"))
    fake_lab.world.frame_s = 1514 * 8 / 500e6
    assert fake_lab.run() == 2
    said = capsys.readouterr().err
    assert f"{fake_lab.matrix}:8:3" in said
    assert "900mbit" in said
    assert "500 Mbit/s" in said  # what the path carries
    assert "400 Mbit/s" in said  # what it shows, with a reserve
    assert (fake_lab.world.runs, fake_lab.folders) == (0, [])
    fake_lab.matrix.write_text(MATRIX.replace("loss: {", "fast: {both: {rate: 400mbit}}\n  loss: {"))
    assert fake_lab.run() == 0


def test_a_path_far_below_what_this_host_gave_before_is_refused(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fake_lab.run() == 0
    fake_lab.world.frame_s *= 3  # such as other work beside the lab
    assert fake_lab.run() == 0
    fake_lab.world.frame_s *= 4
    assert fake_lab.run() == 1
    assert "in 2 runs before" in capsys.readouterr().err
    assert len(fake_lab.folders) == 2


def test_ctrl_c_keeps_everything_and_resume_goes_on_to_the_same_end(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    assert fake_lab.run() == 130
    with Run.open(fake_lab.folders[-1]) as run:
        assert run.status.state is State.INTERRUPTED
        finished = [result.outcome for result in run.results()].count(Outcome.OK)
    assert 0 < finished < TRIALS
    assert (fake_lab.folders[-1] / "report.html").exists()

    fake_lab.world.sabotage = Sabotage()
    capsys.readouterr()
    assert fake_lab.run("--resume", str(fake_lab.folders[-1])) == 0
    assert re.search(rf"run folder: {fake_lab.folders[-1]}, engine \w+\n", capsys.readouterr().out)
    with Run.open(fake_lab.folders[-1]) as run:
        latest = {result.trial.id: result.outcome for result in run.results()}
        assert list(latest.values()) == [Outcome.OK] * TRIALS
        assert run.status.state is State.FINISHED
        (pause,) = run.environment["pauses"]
        assert run.status.ended_at
        assert run.status.started_at < pause["from"] < pause["to"] < run.status.ended_at
    for name in ("report.html", "summary.md"):
        assert "Resumed once: " in (fake_lab.folders[-1] / name).read_text()


@dataclass
class Interrupting(Sabotage):
    """Ctrl-C in the middle of a trial, which goes on until the lab closes its agents."""

    closed: set[str] = field(default_factory=set)

    def hits(self, run: int) -> bool:
        if run in self.at and not self.closed:
            os.kill(os.getpid(), signal.SIGINT)
            deadline_s = time.monotonic() + 30
            while not self.closed and time.monotonic() < deadline_s:
                time.sleep(0.001)
        return False


@dataclass
class Street:
    """Other labs on the machine, from one look on; the clock goes on by a minute with each."""

    since: int
    looks: int = 0

    def look(self) -> dict[str, int]:
        self.looks += 1
        if self.looks == 2:
            raise DockerError("`docker ps` printed nothing for 30 s")
        return {"elsewhere:4711:1": 3 + self.looks % 2} if self.looks > self.since else {}


@pytest.mark.parametrize(("since", "kept"), [(0, True), (2, True), (99, False)])
def test_another_lab_beside_this_one_is_said_once_kept_with_the_run_and_in_its_report(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, since: int, *, kept: bool
) -> None:
    monkeypatch.setattr(progress, "LOOK_EVERY_S", 0.0)
    street = Street(since)
    fake_lab.others = street.look
    assert fake_lab.run() == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("another Headwind run (process 4711 on host elsewhere) has") == kept
    assert said.count("if both must run at once, start each with `LANES=1`") == kept
    assert "networks that change" not in said, "the matrix has none"
    assert street.looks > 3, "at the start, and after blocks"
    with Run.open(fake_lab.folders[-1]) as run:
        labs = run.environment.get(OTHER_LABS, [])
    assert [(lab["owner"], lab["testbeds"]) for lab in labs] == ([("elsewhere:4711:1", 4)] if kept else [])
    assert all(lab["from"] < lab["to"] for lab in labs)
    page = (fake_lab.folders[-1] / "report.html").read_text()
    assert ("At least 1 other Headwind run used this machine during this run: times are longer" in page) == kept


def test_notices_stand_above_the_progress_bar_in_lines_of_their_own(
    fake_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`2 min 33 s left of 3 minanother lab (process 13671 ...` stood in the line of the bar."""
    screen = io.StringIO()
    terminal = partial(Console, file=screen, width=140, force_terminal=True, color_system=None)
    monkeypatch.setattr(plain, "console", terminal)
    monkeypatch.setattr(progress, "LOOK_EVERY_S", 0.0)
    fake_lab.others = Street(since=2).look
    assert fake_lab.run() == 0
    before, _, _ = screen.getvalue().partition("another Headwind run (process")
    assert "#0" in before, "the bar was there"
    assert before.endswith(("\n", "\x1b[2K")), "the line of the bar is erased first"


def test_a_trial_that_ctrl_c_cut_is_stopped_and_no_reason_to_doubt(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    assert fake_lab.run("--junit") == 130
    told = " ".join(capsys.readouterr().out.split())
    assert "Stopped by Ctrl-C. 4 of 12 trials ran: 4 ok; 1 more was stopped with the run, in no figure." in told
    assert "lab-error" not in told
    assert "lab error" not in told
    assert "! " not in told  # no warning
    page = (fake_lab.folders[-1] / "report.html").read_text()
    assert "1 more was stopped with the run, in no figure" in page
    junit = (fake_lab.folders[-1] / "junit.xml").read_text()
    assert "the lab broke" not in junit
    with Run.open(fake_lab.folders[-1]) as run:
        assert "4 ok; 1 more was stopped" in headline(RunData.of(run))


def last_command(out: str) -> list[str]:
    """What the last line says to type, after the name of the program."""
    return shlex.split(out.rstrip().splitlines()[-1])[2:]


def test_the_last_line_of_a_run_that_was_stopped_goes_on_with_it(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.matrix.write_text(MATRIX.replace("repeat: 2", "repeat: {min: 2, max: 2, budget: 90s}"))
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    assert fake_lab.run() == 130
    out = capsys.readouterr().out
    assert "\nNot finished; 1 min 30 s more may bring" not in out, "two blocks settle nothing"
    nothing = "another 1 min 30 s will probably add none."
    nothing += "\n  For clean, loss, raise `max` (2) in a new run."
    assert f"\nNot finished; {nothing}\nTo resume anyway:\n" in out
    command = last_command(out)
    assert command == ["run", "--resume", str(fake_lab.folders[-1]), "--budget", "90s"]
    fake_lab.world.sabotage = Sabotage()
    assert lab.main(command, fake_dependencies(lambda: fake_testbed(fake_lab.world))) == 0
    out = capsys.readouterr().out
    assert "12 trials ran" in " ".join(out.split())
    assert "--resume" not in out, "every condition is at its maximum"


def test_a_budget_for_a_run_with_a_fixed_number_of_blocks_is_refused_with_what_can_be_done(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was to set other bounds in the matrix, which a run keeps."""
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    assert fake_lab.run() == 130
    fake_lab.world.sabotage = Sabotage()
    resume = ["--resume", str(fake_lab.folders[-1])]
    refused = "--budget: this run has a fixed number of blocks (2 blocks)"
    assert fake_lab.run(*resume, "--budget", "20s") == 2
    assert f"{refused}; leave out --budget" in capsys.readouterr().err
    assert fake_lab.run(*resume) == 0
    assert fake_lab.run(*resume, "--budget", "20s") == 2
    assert f"{refused}; all are complete: for more, start a new run" in capsys.readouterr().err


def test_a_matrix_for_a_resumed_run_is_said_to_be_its_own_or_refused(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fake_lab.run() == 0
    said = f"{fake_lab.matrix} is the matrix of this run already: only its `budget` and `lanes` count"
    assert said not in capsys.readouterr().out
    assert fake_lab.run("--resume", str(fake_lab.folders[-1])) == 0
    assert said in capsys.readouterr().out.replace("\n", "")
    fake_lab.matrix.write_text(MATRIX.replace("seed: 7", "seed: 8"))
    assert fake_lab.run("--resume", str(fake_lab.folders[-1])) == 2
    told = capsys.readouterr()
    assert said not in told.out.replace("\n", "")
    assert "is not the same matrix as" in told.err


def test_the_last_line_of_a_run_that_left_comparisons_open_goes_on_with_them(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.matrix.write_text(MATRIX.replace("repeat: 2", "repeat: {min: 2, max: 60}"))
    fake_lab.run("--budget", "1s")  # too short for a block
    out = capsys.readouterr().out
    missing = "Blocks still to run (minimum 2): clean 2, loss 2; 3 min will probably complete them"
    missing += " (a guess: no trial has run in clean, loss)."
    expected = f"{missing} Another 1 s may be too short for the 8 blocks that a sure result takes in clean, loss."
    assert f"0 of 6 comparisons are sure by at least one metric. {expected} Resume with:" in " ".join(out.split())
    assert "More time would settle" not in out, "said once"
    command = last_command(out)
    assert command == ["run", "--resume", str(fake_lab.folders[-1]), "--budget", "3min"]
    lab.main([*command[:-1], "8s"], fake_dependencies(lambda: fake_testbed(fake_lab.world)))
    assert fake_lab.outcomes()


def test_the_resume_line_names_what_its_budget_may_settle(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.matrix.write_text(MATRIX.replace("repeat: 2", "repeat: {min: 9, max: 60, budget: 1h}"))
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    assert fake_lab.run() == 130
    told = " ".join(capsys.readouterr().out.split())
    assert "Not finished. Blocks still to run (minimum 9): " in told
    assert "may settle" not in told, "a block or two are no ground for a forecast"
    again = ["run", "--resume", str(fake_lab.folders[-1]), "--budget", "2h"]
    fake_lab.world.sabotage = Interrupting(at=[8], closed=fake_lab.world.dead)
    assert lab.main(again, fake_dependencies(lambda: fake_testbed(fake_lab.world))) == 130
    assert last_command(capsys.readouterr().out) == again, "not the first budget"


def test_the_last_budget_is_recorded_and_used_by_report(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.matrix.write_text(MATRIX.replace("repeat: 2", "repeat: {min: 9, max: 60, budget: 1h}"))
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    assert fake_lab.run() == 130
    folder = fake_lab.folders[-1]
    for budget, seconds in ((None, 3600.0), ("2h", 7200.0)):
        if budget:
            fake_lab.world.sabotage = Interrupting(at=[8], closed=fake_lab.world.dead)
            again = ["run", "--resume", folder.name, "--reports", str(folder.parent), "--budget", budget]
            assert lab.main(again, fake_dependencies(lambda: fake_testbed(fake_lab.world))) == 130
        with Run.open(folder) as run:
            assert run.environment["last_budget_s"] == seconds
    capsys.readouterr()
    lab.main(["report", str(folder)])
    assert last_command(capsys.readouterr().out)[-2:] == ["--budget", "2h"]
    assert "(1 h at first, 2 h when last resumed)" in (folder / "report.html").read_text()


def test_ctrl_c_before_the_testbed_is_up_says_again_how_to_resume(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped() -> AbstractContextManager[Any]:
        os.kill(os.getpid(), signal.SIGINT)
        return fake_testbed(fake_lab.world)

    reports = str(fake_lab.folder / "reports")
    assert lab.main(["run", str(fake_lab.matrix), "--reports", reports], fake_dependencies(stopped)) == 130
    out, err = capsys.readouterr()
    assert "Resume with" not in out, "there is no run yet"
    assert err == "lab.py: stopped by Ctrl-C; nothing is left running\n"
    fake_lab.world.sabotage = Interrupting(at=[1], closed=fake_lab.world.dead)
    assert fake_lab.run() == 130
    again = ["run", "--resume", str(fake_lab.folders[-1])]
    out = capsys.readouterr().out
    assert last_command(out) == again
    assert "\nThere is no result yet: no block is complete.\n" in out
    assert lab.main(again, fake_dependencies(stopped)) == 130
    assert last_command(capsys.readouterr().out) == again


def test_a_fixed_number_of_blocks_says_what_is_left_of_it(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    assert fake_lab.run() == 130
    out, err = capsys.readouterr()
    assert "\nNot finished; 8 trials are left, about " in out
    assert last_command(out) == ["run", "--resume", str(fake_lab.folders[-1])]
    assert err == "lab.py: stopped by Ctrl-C; nothing is left running\n"


def test_experiments_say_how_to_resume_each_once_all_have_run(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        budget = MATRIX.replace("repeat: 2", "repeat: {min: 2, max: 60, budget: 1s}")  # too short for a block
        (fake_lab.folder / f"{name}.yaml").write_text(f"title: About {name}\n{budget}")
    files = [str(fake_lab.folder / f"{name}.yaml") for name in ("one", "two")]
    deps = fake_dependencies(lambda: fake_testbed(fake_lab.world))
    lab.main(["experiments", *files, "--reports", str(fake_lab.folder / "reports")], deps)
    between, last = re.split(r"^page: .*\n", capsys.readouterr().out, flags=re.MULTILINE)
    assert between.count("report: ") == 2
    assert "--resume" not in between
    lines = last.splitlines()
    sentences = [line.removesuffix(".") for line in lines if line.startswith("About ")]
    assert sentences == [f"About {name}: 0 of 6 comparisons are sure by at least one metric" for name in ("one", "two")]
    commands = [lines[number + 1] for number, line in enumerate(lines) if line == "Resume with:"]
    assert {str(folder) for folder in fake_lab.folders} == {shlex.split(line)[4] for line in commands}


def test_a_budget_of_experiments_is_refused_if_a_matrix_fixes_its_blocks_but_not_for_a_smoke_test(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = str(fake_lab.folder / "reports")
    deps = fake_dependencies(lambda: fake_testbed(fake_lab.world))
    command = ["experiments", str(fake_lab.matrix), "--reports", reports, "--budget", "1min"]
    assert lab.main(command, deps) == 2
    assert f"--budget: {fake_lab.matrix} fixes the number of blocks (2 blocks)" in capsys.readouterr().err
    assert not list(Path(reports).iterdir())
    lab.main([*command, "--smoke"], deps)
    assert len(list(Path(reports).glob("*/report.html"))) == 1


def test_a_network_that_never_ran_is_a_reason_to_resume_without_any_comparison(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = MATRIX.replace("[h1, h2, h3]", "[h3]").replace("repeat: 2", "repeat: {min: 9, max: 60}")
    fake_lab.matrix.write_text(alone)
    fake_lab.run("--budget", "1s")  # too short for a block
    out = capsys.readouterr().out
    assert "2 of 2 networks have fewer than the 9 blocks requested; " in out
    assert last_command(out) == ["run", "--resume", str(fake_lab.folders[-1]), "--budget", "1min"]


def test_a_search_that_its_budget_ended_can_be_resumed(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fake_lab.matrix.write_text(SEARCH)
    fake_lab.run("--budget", "1s")
    out = capsys.readouterr().out
    assert "The search is not finished; " in out
    assert last_command(out) == ["run", "--resume", str(fake_lab.folders[-1]), "--budget", "1s"]


def test_the_resume_command_works_from_another_folder(
    fake_lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    assert fake_lab.run() == 130
    python, program, *_ = shlex.split(capsys.readouterr().out.rstrip().splitlines()[-1])
    assert Path(python) == Path(sys.executable)
    assert Path(program) == ROOT / "lab.py"


def test_the_command_comes_below_the_sentence_that_ends_the_run(
    fake_lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", sys.stdout)  # as on a terminal
    fake_lab.world.sabotage = Interrupting(at=[5], closed=fake_lab.world.dead)
    fake_lab.run()
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert lines[-4] == "lab.py: stopped by Ctrl-C; nothing is left running"
    assert lines[-3].startswith("Not finished; ")


def test_make_lab_run_names_no_matrix_so_that_a_run_goes_on_by_its_own() -> None:
    """`make lab-run ARGS="--resume RUN"` once passed matrix.yaml as well, which was refused."""

    def printed(*arguments: str) -> str:
        command = ["make", "--just-print", *arguments]
        out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return next(" ".join(line.split()) for line in out.splitlines() if "lab.py run" in line)

    assert printed("lab-run", "ARGS=--resume reports/a").endswith("lab.py run --resume reports/a")
    assert printed("lab-run", "MATRIX=experiments/smoke.yaml").endswith('lab.py run "experiments/smoke.yaml"')
    assert printed("lab-resume", "RUN=reports/a", "BUDGET=1min").endswith('run --resume "reports/a" --budget "1min"')


def test_resume_refuses_another_matrix_and_says_what_changed(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert fake_lab.run() == 0
    fake_lab.matrix.write_text(MATRIX.replace("20%", "30%"))
    assert fake_lab.run("--resume", str(fake_lab.folders[-1])) == 2
    said = capsys.readouterr().err
    assert f"{fake_lab.matrix} is not the same matrix as {fake_lab.folders[-1] / 'matrix.yaml'}" in said
    assert "name none" in said
    assert "20" in said
    assert "30" in said


def test_a_wrong_run_folder_is_a_usage_error(fake_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab.main(["report", str(fake_lab.folder / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err


def test_a_full_disk_is_said_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "reports/page.html")

    monkeypatch.setitem(lab.COMMANDS, "down", full)
    assert lab.main(["down"]) == 1
    assert "No space left on device: 'reports/page.html'; `make lab-doctor` prints" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["validate"]])
def test_light_commands_do_not_load_the_heavy_libraries(arguments: list[str]) -> None:
    code = (
        "import sys, lab\n"
        "try: lab.main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('pandas', 'numpy', 'scipy', 'rich', 'jinja2', 'pyroute2') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_run_says_at_its_start_that_its_matrix_has_too_few_blocks(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fake_lab.run() == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("note: a sure result takes 7 blocks if their number is fixed, and this matrix has 2: ")


def test_a_stop_while_the_testbed_comes_up_says_that_nothing_was_recorded(
    fake_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    def up() -> AbstractContextManager[Any]:
        raise KeyboardInterrupt

    assert lab.main(["run", str(fake_lab.matrix)], fake_dependencies(up)) == 130
    said = capsys.readouterr()
    assert "stopped by Ctrl-C" in said.err
    assert "nothing was measured yet, and no run folder was written" in said.out + said.err
