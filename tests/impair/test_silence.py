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


@pytest.mark.parametrize("name", COUNTERS)
def test_a_frame_either_way_ends_a_silence(tmp_path: Path, name: str) -> None:
    counters = interface(tmp_path)
    start_s = time.monotonic()
    with Silence("eth0", tmp_path) as silence, Pulse().along(silence.look):
        for frames in (8, 9):
            time.sleep(6 * LOOK_S)
            (counters / name).write_text(f"{frames}\n")
    whole_s = time.monotonic() - start_s
    assert 6 * LOOK_S - TICK_S <= silence.longest_s < whole_s - LOOK_S


def test_a_silence_that_lasts_to_the_end_counts(tmp_path: Path) -> None:
    interface(tmp_path)
    with Silence("eth0", tmp_path) as silence:
        time.sleep(3 * LOOK_S)
    assert silence.longest_s >= 3 * LOOK_S
