"""Standstills: a pulse's gaps, and the silences of a process that is watched from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from impair.pulse import LOOK_S, TICK_S, Pulse, Snapshot, Watch, glance_at, working_s


def watch_over(*moments: tuple[float, float]) -> dict[str, float]:
    """What a watch tells that looked at these (time, processor time), the last of them when it was asked."""
    readings = iter([Snapshot(*moment) for moment in moments])
    watch = Watch(lambda: next(readings))
    for _ in moments[2:]:
        watch.look()
    return watch.tell()


def test_a_process_that_idles_but_wakes_up_is_not_silent() -> None:
    told = watch_over(*((0.02 * tick, 0.0001 * tick) for tick in range(100)))
    assert told["largest_gap_s"] < 0.021
    assert told["cpu_s"] == pytest.approx(0.0099)


def test_a_process_that_never_sleeps_is_not_silent() -> None:
    told = watch_over((0, 0), (0.02, 0.02), (3.0, 2.95), (3.02, 2.97))  # the watcher itself came 3 s late
    assert told["largest_gap_s"] == pytest.approx(0.05)


def test_a_stopped_process_is_silent_however_often_one_looks() -> None:
    stopped = [(0.02 * tick, 0.5) for tick in range(2, 51)]
    told = watch_over((0, 0.49), (0.02, 0.5), *stopped, (1.02, 0.501))
    assert told["largest_gap_s"] == pytest.approx(0.999)


def test_a_watcher_that_was_stopped_with_the_process_sees_it() -> None:
    told = watch_over((0, 0), (0.02, 0.001), (1.05, 0.002), (1.07, 0.003))
    assert told["largest_gap_s"] == pytest.approx(1.029)


def test_a_process_that_is_held_to_a_tenth_is_never_silent_for_long() -> None:
    told = watch_over(*((0.1 * period, 0.01 * period) for period in range(20)))
    assert told["largest_gap_s"] == pytest.approx(0.09)
    assert told["cpu_s"] == pytest.approx(0.19)


def test_each_reading_of_the_largest_starts_afresh_but_a_silence_goes_on() -> None:
    moments = [(0.0, 0.0), (0.4, 0.0), (0.9, 0.0), (0.92, 0.01), (0.94, 0.02)]
    readings = iter([Snapshot(*moment) for moment in moments])
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
    watch.look()
    assert watch.tell()["cpu_s"] >= told["cpu_s"]


def test_a_pulse_that_could_not_tick_shows_the_gap_once() -> None:
    pulse = Pulse()
    pulse.largest_gap_s()
    with pulse._lock:  # its thread cannot tick meanwhile
        time.sleep(4 * TICK_S)
    assert pulse.largest_gap_s() >= 4 * TICK_S
    assert pulse.largest_gap_s() < TICK_S


def test_a_pulse_takes_others_along_for_as_long_as_they_want_and_survives_their_errors() -> None:
    pulse, looks = Pulse(), list[float]()

    def look() -> None:
        looks.append(time.monotonic())
        raise OSError("the interface is gone")

    with pulse.along(look):
        time.sleep(TICK_S + 10 * LOOK_S)
    seen = len(looks)
    assert 4 <= seen <= 12
    time.sleep(3 * TICK_S)
    assert len(looks) == seen
    assert pulse.largest_gap_s() > 0


def test_a_process_works_while_it_runs_or_waits_for_a_processor_and_not_while_it_sleeps() -> None:
    napping, spinning = ("import time\ntime.sleep(60)", "while True: pass")
    gained_s = {}
    for name, program in (("asleep", napping), ("busy", spinning)):
        with subprocess.Popen([sys.executable, "-S", "-c", program]) as process:
            time.sleep(0.5)  # it starts
            before_s = working_s(process.pid)
            time.sleep(1.0)
            after_s = working_s(process.pid)
            process.kill()
        assert before_s is not None
        assert after_s is not None
        gained_s[name] = after_s - before_s
    assert gained_s["asleep"] < 0.05
    # Whatever else the machine does, to wait for a processor counts; a wait that has not ended is not yet seen.
    assert gained_s["busy"] > 0.7


def test_of_a_process_that_is_gone_nobody_knows_how_long_it_worked() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert working_s(process.pid) is None
