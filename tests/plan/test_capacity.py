"""The bare path is measured, and what it cannot do is refused before the first trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwind.matrix.complaint import MatrixError
from headwind.model import Matrix
from headwind.plan.capacity import FAR_BELOW, FLOORS, Load, PathTooSlow, check_capacity
from headwind.run.earlier import earlier_ceilings
from headwind.trial.calibration import measure_capacity
from impair.profile import Direction
from tests.fake_testbed import World, fake_path
from tests.matrix_files import MINIMAL, load

HOST = {"kernel": "6.1", "machine": "x86_64", "cpu": "fast", "cores": 2, "rmem_max_bytes": 212992}
USUAL = {"rate_bps": 900e6, "small_frames_per_s": 90_000.0, "shown_bps": 650e6}


def ceiling(**figures: float) -> dict[str, dict[str, float]]:
    return {direction.value: {**USUAL, **figures} for direction in Direction}


def rated(rate: str, folder: Path) -> Matrix:
    return load(MINIMAL.replace("clean: {}", f"p: {{downlink: {{rate: {rate}}}}}"), folder)


def test_a_host_shows_the_highest_rate_that_leaves_a_reserve() -> None:
    with fake_path(World(frame_s=1514 * 8 / 500e6)) as path:
        measured = measure_capacity(path)
    for direction in Direction:
        assert measured[direction]["rate_bps"] == pytest.approx(500e6)
        assert measured[direction]["shown_bps"] == 400e6
        assert measured[direction]["lost_ratio"] == 0


def test_what_is_possible_runs(tmp_path: Path) -> None:
    check_capacity(rated("650mbit", tmp_path), ceiling(), [ceiling()])
    check_capacity(load(MINIMAL, tmp_path), ceiling(shown_bps=0.0), [])  # nobody asks for a rate


def test_a_rate_that_cannot_be_shown_is_refused_with_the_figures(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"downlink: a rate of 651mbit is not possible.* 900 Mbit/s .* 650 Mbit/s"):
        check_capacity(rated("651mbit", tmp_path), ceiling(), [])


@pytest.mark.parametrize("name", FLOORS)
def test_a_path_below_the_floor_is_refused_whatever_is_asked(name: str, tmp_path: Path) -> None:
    matrix = load(MINIMAL, tmp_path)
    check_capacity(matrix, ceiling(**{name: FLOORS[name]}), [])
    with pytest.raises(PathTooSlow, match=r"uplink it carries .* the minimum is"):
        check_capacity(matrix, ceiling(**{name: 0.99 * FLOORS[name]}), [])


@pytest.mark.parametrize(
    ("busy", "told"),
    [
        (
            Load(7.9, 2),
            r"Likely cause: other programs .* \(load average 7\.9 on 2 CPUs\)\. Wait .* below 2",
        ),
        (Load(0.4, 2), r"not the cause \(load average 0\.4 on 2 CPUs\)\. Check whether anything shapes"),
        (None, r"Check whether other programs .* and whether anything shapes"),
    ],
)
def test_a_refusal_names_the_likely_cause_and_the_way_out(busy: Load | None, told: str, tmp_path: Path) -> None:
    with pytest.raises(PathTooSlow, match=rf"{told}.*then run the same command again"):
        check_capacity(load(MINIMAL, tmp_path), ceiling(rate_bps=1e6), [], busy)


@pytest.mark.parametrize("name", FLOORS)
def test_a_path_is_compared_with_the_middle_of_what_it_was_before(name: str, tmp_path: Path) -> None:
    matrix, earlier = load(MINIMAL, tmp_path), [ceiling(), ceiling(), ceiling(**{name: 100 * USUAL[name]})]
    check_capacity(matrix, ceiling(**{name: 1.01 * FAR_BELOW * USUAL[name]}), earlier)
    with pytest.raises(PathTooSlow, match="in 3 runs before"):
        check_capacity(matrix, ceiling(**{name: 0.99 * FAR_BELOW * USUAL[name]}), earlier)


def note(reports: Path, name: str, content: Any) -> None:
    (reports / name).mkdir(parents=True)
    (reports / name / "environment.json").write_text(content if isinstance(content, str) else json.dumps(content))


def test_only_runs_of_the_same_engine_on_the_same_host_are_remembered(tmp_path: Path) -> None:
    usual = {"engine": "uml", "host": HOST, "testbed": {"ceiling": ceiling()}}
    note(tmp_path, "a", usual)
    note(tmp_path, "b", {**usual, "engine": "kernel"})
    note(tmp_path, "c", {**usual, "host": {**HOST, "cores": 64}})
    note(tmp_path, "d", {**usual, "testbed": {"ceiling": {"uplink": {"frames_per_s": 1.0}}}})  # of an older lab
    note(tmp_path, "e", "not JSON")
    note(tmp_path, "f", [1])
    (tmp_path / "g").mkdir()
    assert len(earlier_ceilings(tmp_path, "uml", HOST)) == 1
    assert earlier_ceilings(tmp_path / "nowhere", "uml", HOST) == []
