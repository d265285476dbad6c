"""The report is drawn while a run goes on, by a separate process: it can neither end the run nor outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import lab
from headwind.cli import commands
from headwind.cli.redrawing import NICENESS, SHARE, Redrawing, keep_drawing
from headwind.clock import Clock
from headwind.model import Result
from headwind.run.data import RunData
from headwind.run.journal import ResumeRefused, Run
from headwind.testbed.docker import Say
from tests.fake import ENVIRONMENT, example_matrix, ok_results
from tests.fake_testbed import Sabotage, World, fake_dependencies, fake_testbed

ROOT = Path(__file__).resolve().parent.parent.parent
MATRIX = """
protocols: [h1, h2, h3]
timeout: 60s
repeat: 2
profiles:
  clean: {}
workloads:
  small: {requests: 500, connections: 5, streams: 5}
"""
PATIENCE_S = 240.0  # a niced process gets next to nothing of a busy machine

pytestmark = pytest.mark.timeout(300)


def wait_for(truth: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not truth():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def called(redraw: Redrawing) -> Redrawing:
    redraw()
    return redraw


def add(run: Run, results: list[Result]) -> None:
    for result in results:
        run.begin(result.trial, result.attempt)
        run.append(result)


def run_lab(folder: Path, world: World, *arguments: str, redrawing: Callable[[Run, Say], Redrawing] = Redrawing) -> int:
    (folder / "matrix.yaml").write_text(MATRIX)
    deps = fake_dependencies(lambda: fake_testbed(world), redrawing=redrawing)
    return lab.main(["run", str(folder / "matrix.yaml"), "--reports", str(folder / "reports"), *arguments], deps)


def folder_in(reports: Path) -> Path:
    (found,) = (path.parent for path in reports.glob("reports/*/matrix.json"))
    return found


# The process


def test_the_report_follows_the_run_and_the_process_is_niced_and_ends_with_it(tmp_path: Path) -> None:
    matrix, troubles = example_matrix(), list[str]()
    results = ok_results(matrix)
    with Run.create(tmp_path, matrix, ENVIRONMENT) as run, run.recording():
        with Redrawing(run, troubles.append) as redraw:
            assert redraw.process is None, "nothing is there to be drawn yet"
            add(run, results[:3])
            redraw()
            process = redraw.process
            assert process
            wait_for((run.folder / "report.html").exists)
            assert os.getpriority(os.PRIO_PROCESS, process) == NICENESS
            assert "In progress, 3 of 45 trials" in (run.folder / "report.html").read_text()
            add(run, results[3:])
            redraw()
            assert redraw.process == process
        assert not is_running(process)
        assert not list(run.folder.glob(".*")), "no half of a file is left"
    assert (troubles, redraw.trouble) == ([], "")


def test_an_error_in_drawing_is_reported_once_and_is_no_error_of_the_lab(tmp_path: Path) -> None:
    matrix, troubles = example_matrix(), list[str]()
    with Run.create(tmp_path, matrix, ENVIRONMENT) as run, run.recording():
        (run.folder / "report.html").mkdir()
        add(run, ok_results(matrix)[:3])
        with Redrawing(run, troubles.append) as redraw:
            redraw()
            wait_for(lambda: called(redraw).trouble)
            redraw()
            process = redraw.process
            assert process
            assert is_running(process), "it tries again after its pause"
    assert "cannot write report.html" in redraw.trouble
    assert troubles == [f"{redraw.trouble} (the run goes on)"]


def test_a_process_that_cannot_even_start_is_trouble_and_no_error(tmp_path: Path) -> None:
    troubles = list[str]()
    with (
        Run.create(tmp_path, example_matrix(), ENVIRONMENT) as run,
        Redrawing(run, troubles.append, ("/no/such/program",)) as redraw,
    ):
        redraw()
        redraw()
    assert len(troubles) == 1
    assert "No such file" in troubles[0]


LAB = """
import sys, time
from pathlib import Path
from headwind.cli.redrawing import PROGRAM, Redrawing
from headwind.run.journal import Run
from tests.fake import ENVIRONMENT, example_matrix
run = Run.create(Path(sys.argv[1]), example_matrix(), ENVIRONMENT)
with run.recording(), Redrawing(run, print, sys.argv[2:] or PROGRAM) as redraw:
    redraw()
    print(redraw.process, run.folder, flush=True)
    time.sleep(600)
"""


def process_of_a_killed_lab(reports: Path, *program: str) -> tuple[int, Path]:
    """The process that drew for a lab, and the run's folder."""
    command = [sys.executable, "-c", LAB, str(reports), *program]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as lab_process:
        assert lab_process.stdout
        process, folder = lab_process.stdout.readline().split()
        lab_process.kill()
    return int(process), Path(folder)


def test_a_lab_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    process, folder = process_of_a_killed_lab(tmp_path)
    wait_for(lambda: not is_running(process))
    with Run.open(folder) as other, other.recording():
        pass


def test_no_other_lab_gets_the_folder_while_a_process_of_the_killed_one_may_write(tmp_path: Path) -> None:
    process, folder = process_of_a_killed_lab(tmp_path, sys.executable, "-c", "import time; time.sleep(600)")
    with Run.open(folder) as other:
        with pytest.raises(ResumeRefused, match="another lab is running"), other.recording():
            pytest.fail("two may write")
        os.kill(process, signal.SIGKILL)
        wait_for(lambda: not is_running(process))
        with other.recording():
            pass


# Its share of the time


@dataclass
class Drawer:
    """Time that passes by drawing and by pauses only; an error ends it where its time is up."""

    drawing_s: float
    until_s: float
    now_s: float = 0.0
    drawn: int = 0
    errors: list[Exception] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def draw(self) -> bool:
        self.now_s += self.drawing_s
        self.drawn += 1
        if self.errors:
            raise self.errors.pop(0)
        return True

    def sleep(self, pause_s: float) -> None:
        self.now_s += pause_s
        if self.now_s > self.until_s:
            raise KeyboardInterrupt

    def go(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            keep_drawing(self.draw, self.said.append, Clock(lambda: self.now_s, self.sleep))


@pytest.mark.parametrize("drawing_s", [0.1, 2.0, 30.0])
def test_drawing_takes_its_share_of_the_time_and_no_more(drawing_s: float) -> None:
    drawer = Drawer(drawing_s, until_s=4000)
    drawer.go()
    assert drawer.drawn * drawing_s <= SHARE * drawer.now_s
    assert drawer.drawn >= 0.9 * min(SHARE / drawing_s, 1.0) * 4000 / (1 + SHARE) - 1, "and it is drawn now and then"


def test_the_same_error_is_reported_once_and_another_one_too() -> None:
    errors = [OSError("full"), OSError("full"), ValueError("no value\nlies between"), OSError("full")]
    drawer = Drawer(1.0, 1.2 * (len(errors) + 1) / SHARE, errors=list[Exception](errors))
    drawer.go()
    assert drawer.said == ["OSError: full", "ValueError: no value lies between"]
    assert drawer.drawn > len(errors)


# The lab


class Broken(Redrawing):
    """Its process ends with an error, for which it waits."""

    def __init__(self, run: Run, say: Say) -> None:
        super().__init__(run, say, (sys.executable, "-c", "print('no value lies between')"))

    def __call__(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while not self.trouble and time.monotonic() < until:
            super().__call__()
            time.sleep(0.02)


def test_a_run_goes_on_to_its_end_although_its_report_cannot_be_drawn(
    tmp_path: Path, signals: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_lab(tmp_path, World(), redrawing=Broken) == 0
    out, err = capsys.readouterr()
    said = "the report was not kept up to date during the run: no value lies between"
    assert out.replace("\n", " ").count(said) == 1
    assert f"lab.py: {said}\n" in err, "and again at the end"
    assert (folder_in(tmp_path) / "report.html").exists()


class InTheWay(Sabotage):
    """There is a folder in place of the report between the first trial and the last."""

    reports: Path

    def hits(self, run: int) -> bool:
        for folder in self.reports.glob("reports/*/"):
            page = folder / "report.html"
            if run == 0:
                page.mkdir(exist_ok=True)
            elif run == 5 and page.is_dir():
                page.rmdir()
        return False


def test_a_page_that_cannot_be_written_does_not_end_the_run(tmp_path: Path, signals: None) -> None:
    sabotage = InTheWay()
    sabotage.reports = tmp_path
    assert run_lab(tmp_path, World(sabotage)) == 0
    assert (folder_in(tmp_path) / "report.html").is_file()


def test_no_other_lab_gets_the_folder_before_the_last_report_is_written(
    tmp_path: Path, signals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def finish_report(run: Run, **_: bool) -> RunData:
        with Run.open(run.folder) as other, pytest.raises(ResumeRefused), other.recording():
            pytest.fail("two may write")
        refused.append(run.status.state.value)
        return RunData.of(run)

    monkeypatch.setattr(commands, "finish_report", finish_report)
    assert run_lab(tmp_path, World()) == 0
    assert refused == ["finished"]
    with Run.open(folder_in(tmp_path)) as other, other.recording():
        pass


def test_a_lab_writes_nothing_into_a_folder_that_another_one_has(
    tmp_path: Path, signals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_lab(tmp_path, World()) == 0
    folder = folder_in(tmp_path)
    monkeypatch.setattr(Run, "check_resumable", lambda *_: None)  # the other one comes just after that
    with Run.open(folder) as other, other.recording():
        before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if "journal" not in path.name}
        assert run_lab(tmp_path, World(), "--resume", str(folder)) == 2
        after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if "journal" not in path.name}
    assert before == after
