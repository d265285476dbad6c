"""Standstills: a pulse's gaps, and the silences of a process that is watched from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from impair.pulse import Glance, Watch, glance_at


def watch_over(*moments: tuple[float, float], asleep: bool = False) -> dict[str, float]:
    """What a watch tells that looked at these (time, processor time), the last of them when it was asked."""
    readings = iter([Glance(*moment, asleep) for moment in moments])
    watch = Watch(lambda: next(readings))
    for _ in moments[2:]:
        watch.look()
    return watch.tell()


def test_a_process_that_idles_but_wakes_up_is_not_silent() -> None:
    told = watch_over(*((0.02 * tick, 0.0001 * tick) for tick in range(100)), asleep=True)
    assert told["largest_gap_s"] < 0.021
    assert told["working_s"] == 0.0
    assert told["cpu_s"] == pytest.approx(0.0099)


def test_a_process_that_never_sleeps_is_not_silent() -> None:
    told = watch_over((0, 0), (0.02, 0.02), (3.0, 2.95), (3.02, 2.97))  # the watcher itself came 3 s late
    assert told["largest_gap_s"] == pytest.approx(0.05)
    assert told["working_s"] == pytest.approx(3.02)


def test_a_stopped_process_is_silent_however_often_one_looks() -> None:
    stopped = [(0.02 * tick, 0.5) for tick in range(2, 51)]
    told = watch_over((0, 0.49), (0.02, 0.5), *stopped, (1.02, 0.501))
    assert told["largest_gap_s"] == pytest.approx(0.999)


def test_a_watcher_that_was_stopped_with_the_process_sees_it() -> None:
    told = watch_over((0, 0), (0.02, 0.001), (1.05, 0.002), (1.07, 0.003))
    assert told["largest_gap_s"] == pytest.approx(1.029)


def test_a_process_that_is_held_to_a_tenth_has_work_all_the_time_and_is_never_silent_for_long() -> None:
    told = watch_over(*((0.1 * period, 0.01 * period) for period in range(20)))
    assert told["largest_gap_s"] == pytest.approx(0.09)
    assert told["working_s"] == pytest.approx(1.9)
    assert told["cpu_s"] == pytest.approx(0.19)


def test_each_reading_of_the_largest_starts_afresh_but_a_silence_goes_on() -> None:
    moments = [(0.0, 0.0), (0.4, 0.0), (0.9, 0.0), (0.92, 0.01), (0.94, 0.02)]
    readings = iter([Glance(*moment, is_asleep=False) for moment in moments])
    watch = Watch(lambda: next(readings))
    assert [watch.tell()["largest_gap_s"] for _ in range(4)] == pytest.approx([0.4, 0.9, 0.91, 0.01])


def test_a_real_process_that_is_stopped_is_seen_and_its_end_is_no_error() -> None:
    ticking = "import time\nwhile True: time.sleep(0.005)"
    with subprocess.Popen([sys.executable, "-c", ticking]) as process:
        watch = Watch(glance_at(process.pid))
        deadline = time.monotonic() + 10
        while watch.tell()["cpu_s"] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGSTOP)
        for _ in range(20):
            time.sleep(0.02)
            watch.look()
        os.kill(process.pid, signal.SIGCONT)
        told = watch.tell()
        process.kill()
    assert told["largest_gap_s"] > 0.35
    assert told["cpu_s"] > 0
    assert told["working_s"] > 0.3  # it was not asleep but stopped
    watch.look()
    assert watch.tell()["cpu_s"] >= told["cpu_s"]
