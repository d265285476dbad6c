"""Rates on the real testbed: the right one is believed, a wrong one is found, an impossible one is refused at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwind.proof.trial_checks import shows_rate
from headwind.testbed import path as paths
from headwind.testbed.docker import docker
from headwind.trial.probes import send_bulk
from impair.profile import Direction, Link, Profile, Rate

ROOT = Path(__file__).resolve().parent.parent.parent
ASKED = Link(rate=Rate(100_000_000))
MATRIX = """
protocols: [h2]
lanes: 1
profiles:
  clean: {}
  fast: {both: {rate: 10gbit}}
workloads:
  some: {requests: 10, connections: 1}
"""

pytestmark = pytest.mark.timeout(300, func_only=True)  # the first test may have to build the images


def is_believed(bed: paths.Path, real: Link, direction: Direction) -> bool:
    """Whether the trains through `real` show what ASKED asks for."""
    profile = Profile("rated", real, real)
    bed.apply(profile, dict.fromkeys(Direction, 1))
    return shows_rate(ASKED, send_bulk(bed, direction, ASKED).rate.rate_bps)


@pytest.mark.parametrize("direction", Direction)
def test_the_asked_rate_is_believed_and_one_a_twentieth_off_is_not(bed: paths.Path, direction: Direction) -> None:
    assert ASKED.rate
    believed = {
        percent: is_believed(bed, Link(rate=Rate(ASKED.rate.rate_bps * percent // 100)), direction)
        for percent in (90, 95, 100, 105, 110)
    }
    assert believed == {90: False, 95: False, 100: True, 105: False, 110: False}


def test_a_shaper_at_half_the_rate_is_found_in_its_direction(bed: paths.Path) -> None:
    shaper = ("tc", "qdisc", "{}", "dev", "eth0", "root", "tbf", "rate", "50mbit", "burst", "32k", "latency", "400ms")
    server = bed.containers["server"]
    docker("exec", server, *(word.format("add") for word in shaper))
    try:
        assert {direction: is_believed(bed, ASKED, direction) for direction in Direction} == {
            Direction.UPLINK: True,
            Direction.DOWNLINK: False,
        }
    finally:
        docker("exec", server, "tc", "qdisc", "del", "dev", "eth0", "root")


@pytest.mark.labs
@pytest.mark.usefixtures("images")
def test_a_rate_above_what_the_path_carries_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    matrix, reports = tmp_path / "matrix.yaml", tmp_path / "reports"
    matrix.write_text(MATRIX)
    result = subprocess.run(
        [sys.executable, ROOT / "lab.py", "run", matrix, "--reports", reports],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 2, result.stdout + result.stderr
    assert f"{matrix}:6:3: `fast` uplink: a rate of 10gbit is not possible here" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(reports.glob("*/")) == []
