"""Silence: how long an interface carried nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from impair.endpoint.packet_gap import COUNTERS, Silence
from impair.pulse import LOOK_S, TICK_S, Pulse


def interface(folder: Path) -> Path:
    counters = folder / "eth0" / "statistics"
    counters.mkdir(parents=True)
    for name in COUNTERS:
        (counters / name).write_text("7\n")
    return counters


class Clock:
    """A clock that only moves when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr("impair.endpoint.packet_gap.time.monotonic", lambda: self.now_s)


def longest_s(tmp_path: Path, clock: Clock, *frames_at: float, until_s: float) -> float:
    """The longest gap that looks every LOOK_S find, of frames at these times."""
    counters, begun_s, frames = interface(tmp_path), clock.now_s, 7
    with Silence("eth0", tmp_path) as silence:
        while clock.now_s < begun_s + until_s:
            clock.now_s += LOOK_S
            frames = 7 + sum(begun_s + at_s <= clock.now_s for at_s in frames_at)
            (counters / "rx_packets").write_text(f"{frames}\n")
            silence.look()
    return silence.longest_s


@pytest.mark.parametrize("name", COUNTERS)
def test_a_frame_either_way_ends_a_silence(tmp_path: Path, name: str) -> None:
    counters = interface(tmp_path)
    with Silence("eth0", tmp_path) as silence, Pulse().along(silence.look):
        begun_s = time.monotonic()
        (counters / name).write_text("8\n")
        time.sleep(6 * LOOK_S)
        (counters / name).write_text("9\n")
        gap_s = time.monotonic() - begun_s
    assert 6 * LOOK_S - 2 * TICK_S <= silence.longest_s <= gap_s


@pytest.mark.parametrize("gap_s", [0.0, 0.01, 0.12, 0.5, 2.0])
def test_a_gap_is_no_shorter_than_what_is_found_and_at_most_two_looks_longer(
    gap_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shift in range(10):
        first_s = 0.1 + shift * LOOK_S / 10
        (tmp_path / str(shift)).mkdir()
        found_s = longest_s(tmp_path / str(shift), Clock(monkeypatch), first_s, first_s + gap_s, until_s=gap_s + 0.5)
        assert max(0.0, gap_s - 2 * LOOK_S) - 1e-9 <= found_s <= gap_s + 1e-9


def test_frames_without_a_gap_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet each millisecond was a gap of 51 ms: the time between two looks."""
    assert longest_s(tmp_path, Clock(monkeypatch), *(n / 1000 for n in range(600)), until_s=0.6) == 0.0


def test_the_start_of_a_program_and_its_end_are_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert longest_s(tmp_path, Clock(monkeypatch), 0.5, 0.52, until_s=1.3) == 0.0


def test_a_long_silence_at_the_end_counts_and_one_without_any_frame_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert longest_s(tmp_path, Clock(monkeypatch), 0.1, until_s=30.0) == pytest.approx(30.0, abs=4 * LOOK_S)
    (tmp_path / "other").mkdir()
    assert longest_s(tmp_path / "other", Clock(monkeypatch), until_s=30.0) == 0.0
