"""Ctrl-C: at once wherever it comes, but for a file that is being written, which is then whole."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any

import pytest

from headwind import own_command, stops
from headwind.run.disk import write_whole

pytestmark = pytest.mark.usefixtures("signals")


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


class Busy(type(Path())):  # type: ignore[misc]
    """A path; whoever opens it is interrupted at the very moment in which the file is open and nobody has it yet."""

    def open(self, *how: Any, **more: Any) -> IO[Any]:
        file: IO[Any] = super().open(*how, **more)
        press_ctrl_c()
        return file


class Slow(str):
    """Content during whose encoding Ctrl-C is pressed."""

    __slots__ = ()

    def encode(self, *how: str) -> bytes:
        press_ctrl_c()
        return super().encode(*how)


WRITES: dict[str, Callable[[Path], object]] = {
    "while it opens": lambda path: write_whole(Busy(path), "new"),
    "while it writes": lambda path: write_whole(path, Slow("new")),
}


@pytest.mark.parametrize("when", WRITES)
def test_a_file_is_written_to_its_end_and_then_the_program_stops(tmp_path: Path, when: str) -> None:
    """A file that stays open would be a ResourceWarning, which is an error in tests."""
    page = tmp_path / "report.html"
    page.write_text("old")
    stops.listen()
    with pytest.raises(KeyboardInterrupt):
        WRITES[when](page)
    assert page.read_text() == "new"
    assert list(tmp_path.iterdir()) == [page]
    stops.listen()
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()  # nothing is held back any more


def test_what_cannot_be_written_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("old")

    class Broken(str):
        __slots__ = ()

        def encode(self, *_: str) -> bytes:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_whole(page, Broken("new"))
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


def test_a_stop_outside_is_at_once_and_one_inside_waits_for_the_outermost_end() -> None:
    stops.listen()
    done = []

    def work() -> None:
        with stops.held_back():
            with stops.held_back():
                press_ctrl_c()
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]
    press_ctrl_c()  # a further one changes nothing: it is cleaning up


def test_another_thread_holds_nothing_back() -> None:
    stops.listen()
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with stops.held_back():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    try:
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c()
    finally:
        leave.set()
        thread.join()


HANGING = """
import sys, time
from headwind import stops
stops.GIVE_UP_S = float(sys.argv[1])
stops.listen()
try:
    print("measuring", flush=True)
    time.sleep(60)
finally:
    print("cleaning up", flush=True)
    time.sleep(60)  # such as a Docker that does not answer
"""


def test_a_second_stop_after_a_while_gives_up_with_the_command_that_cleans_up() -> None:
    with subprocess.Popen([sys.executable, "-c", HANGING, "0.5"], stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "measuring\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "cleaning up\n"
        time.sleep(0.6)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
        assert process.stderr
        assert process.stderr.read() == (
            "\nlab.py: stopping\n"
            "\nlab.py: gave up cleaning up; containers and networks may be left. This removes them:\n"
            f"  {own_command.lab_command('down')}\n"
        )


def test_a_closed_terminal_stops_nothing_that_was_begun_with_nohup() -> None:
    """`nohup make lab-run &` ended with `stopped by SIGHUP` at log-out."""
    ignoring = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{HANGING}"
    with subprocess.Popen([sys.executable, "-c", ignoring, "0"], stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "measuring\n"
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "cleaning up\n"
        process.send_signal(signal.SIGHUP)  # it would give up
        time.sleep(0.2)
        assert process.poll() is None
        process.kill()
        assert process.stderr
        assert process.stderr.read() == "\nlab.py: stopping\n", "by Ctrl-C alone"


def test_a_closed_terminal_stops_what_does_not_ignore_it() -> None:
    stops.listen()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGHUP)
    assert stops.cause() == "stopped by SIGHUP"


def test_a_command_is_printed_as_it_works_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`.venv/bin/python lab.py down` only works in the clone."""
    program = own_command.ROOT / "lab.py"
    monkeypatch.chdir(tmp_path)
    assert own_command.lab_command("down", "a b") == shlex.join([sys.executable, str(program), "down", "a b"])
    monkeypatch.chdir(own_command.ROOT)
    assert own_command.lab_command("down").endswith(" lab.py down")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert str(program) in own_command.lab_command("down")


def test_a_second_stop_at_once_says_when_another_one_gives_up(capfd: pytest.CaptureFixture[str]) -> None:
    stops.listen()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
    press_ctrl_c()
    said = "\nlab.py: stopping\n\nlab.py: cleaning up; in 10 s another Ctrl-C skips the cleanup\n"
    assert capfd.readouterr().err == said
    assert stops.sentence() == "stopped by SIGTERM; nothing is left running"
