"""Ctrl-C: at once wherever it comes, but for a file that is being written, which is then whole."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from headwind import stops
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
    assert {signal.getsignal(number) for number in stops.STOPS} == {signal.SIG_IGN}, "further ones change nothing"


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
