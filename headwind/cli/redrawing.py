"""Generates the report during a run, in a niced process that gets a small share of the time.

    python -m headwind.cli.redrawing RUN        what the lab starts once the first block is over

The process reads the run folder as `lab.py report` does, and only reads what is new. The lab reports its errors; they
end nothing. It inherits the lock of the folder, so no other lab can claim the folder while it may write there. It ends
when its standard input does: at the end of the run, and when the lab dies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headwind.clock import CLOCK, Clock
from headwind.errors import HeadwindError
from headwind.run.disk import remove_drafts

if TYPE_CHECKING:
    from headwind.run.journal import Run

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = (sys.executable, "-W", "ignore", "-m", "headwind.cli.redrawing")
SHARE = 0.01  # maximum share of the time spent on generating: half of what the agents of a lane use
SHORTEST_PAUSE_S = 1.0
NICENESS = 19  # measuring comes first; the lab does not count niced work as contention
END_S = 5.0  # time that the process gets to end


class Redrawing:
    """Context manager: `with Redrawing(run, say) as redraw`. Call `redraw` after each block. The process ends on exit.

    It raises nothing: the first error goes to `say`, and stays in `trouble`.
    """

    def __init__(self, run: Run, say: Callable[[str], None], program: Sequence[str] = PROGRAM) -> None:
        self._run, self._say, self._program = run, say, program
        self._process: subprocess.Popen[bytes] | None = None
        self._output = b""
        self.trouble = ""

    def __call__(self) -> None:
        """Start the process after the first block, and report its errors so far."""
        if self._process is None and not self.trouble:
            self._start()
        self._look()

    @property
    def process(self) -> int | None:
        """Process ID, or None before the start."""
        return self._process.pid if self._process else None

    def _start(self) -> None:
        lock = self._run.claim.descriptor
        try:
            self._process = subprocess.Popen(
                [*self._program, str(self._run.folder.resolve())], cwd=ROOT, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=() if lock is None else (lock,),
                process_group=0,  # Ctrl-C is for the lab
            )  # fmt: skip
        except OSError as error:
            self._report(str(error))
        else:
            assert self._process.stdout
            os.set_blocking(self._process.stdout.fileno(), False)

    def _look(self) -> None:
        """Report an error of the process, or its end."""
        if self._process is None:
            return
        status = self._process.poll()
        assert self._process.stdout
        self._output += self._process.stdout.read() or b""
        lines = self._output.decode(errors="replace").strip().splitlines()
        if status is not None or b"\n" in self._output:
            self._report(lines[0] if lines else f"its process ended with status {status}")

    def _report(self, why: str) -> None:
        if not self.trouble:
            self.trouble = f"the report was not kept up to date during the run: {why}"
            self._say(f"{self.trouble} (the run goes on)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin
        assert process.stdout
        process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def keep_drawing(draw: Callable[[], bool], say: Callable[[str], None], clock: Clock = CLOCK) -> None:
    """Generate the report again and again, for at most SHARE of the time: after t seconds of work, pause t / SHARE.

    `draw` returns whether anything was new. Each error is reported once.
    """
    reported = set[str]()
    while True:
        start = clock.monotonic()
        try:
            was_new = draw()
        except Exception as error:  # noqa: BLE001 - the run continues whatever the error
            was_new, text = True, one_line(error)
            if text not in reported:
                reported.add(text)
                say(text)
        took_s = clock.monotonic() - start
        clock.sleep(max(SHORTEST_PAUSE_S, took_s / SHARE if was_new else 0.0))


def one_line(error: Exception) -> str:
    """The error as one line, with its type unless it is a HeadwindError."""
    kind = "" if isinstance(error, HeadwindError) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".split())


def main(folder: Path) -> None:
    """Generate the report of a run folder until standard input ends."""
    os.nice(NICENESS)
    threading.Thread(target=_end_with_the_lab, args=(folder,), daemon=True).start()
    try:
        from headwind.report.html.page import write_report
        from headwind.run.data import Reading
        from headwind.run.journal import Run

        with Run.open(folder) as run:
            reading = Reading(run)

            def draw() -> bool:
                is_new = reading.read() > 0
                if is_new:
                    write_report(run, reading.data)
                return is_new

            keep_drawing(draw, _say)
    except Exception as error:  # noqa: BLE001 - before the first report
        _say(one_line(error))
        sys.exit(1)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _end_with_the_lab(folder: Path) -> None:
    """Wait for the end of standard input, then end the process at any point; only its draft files are removed."""
    with suppress(OSError):
        sys.stdin.buffer.read()
    remove_drafts(folder)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
