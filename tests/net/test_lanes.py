"""Two real lanes: blocks side by side on testbeds of their own; one that breaks leaves the other alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from headwind.matrix.reader import load_matrix
from headwind.model import Block, Outcome, Result
from headwind.plan.block_order import plan_blocks
from headwind.run.journal import Run
from headwind.testbed import containers
from headwind.testbed import testbed as testbeds
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.docker import docker
from headwind.testbed.images import ensure_images, needed
from headwind.trial.block import Task
from headwind.trial.lane import Lane
from headwind.trial.lanes import Begun, Lanes

# Responses of 612 bytes at 600 kbit/s: trials of seconds that leave the processors alone.
MATRIX = """
protocols: [h2]
timeout: 60s
repeat: 4
profiles:
  slow: {downlink: {rate: 600kbit}}
  slower: {downlink: {rate: 500kbit}}
workloads:
  some: {requests: 100, connections: 2, streams: 10}
"""

pytestmark = [pytest.mark.timeout(400), pytest.mark.alone]


class Row:
    """A plan that gives block after block to whoever asks."""

    def __init__(self, blocks: Collection[Block]) -> None:
        self.waiting = list(blocks)

    def next(self, in_flight: Collection[Task], elsewhere: Collection[Task] = ()) -> Task | None:
        assert len(in_flight) < 2
        assert not elsewhere
        return Task(block := self.waiting.pop(0), dict.fromkeys(block.order, 0)) if self.waiting else None

    def tell(self, results: Collection[Result]) -> None:
        assert results

    def repeat(self, blocks: Collection[Block]) -> None:
        assert not blocks

    def worth(self, up: int, most: int, up_s: float, *, running: Collection[Task] = ()) -> int:
        assert len(running) <= up
        assert up <= most
        assert up_s > 0
        return most


def test_two_lanes_measure_side_by_side_and_one_that_breaks_leaves_the_other_alone(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    matrix, tags = load_matrix(tmp_path / "matrix.yaml"), ensure_images(print, needed()).tags
    killed = False
    with Run.create(tmp_path, matrix, {}) as run, run.recording():
        first = Lane(lambda engine: testbeds.Testbed.up(BedSpec(tags, matrix.congestion, engine)), matrix.rules)
        with Lanes(first, 2) as lanes:
            for event in lanes.run(Row(plan_blocks(matrix)), run):
                if isinstance(event, Begun) and event.lane == 2 and not killed:
                    (lane,) = (lane for lane in lanes.lanes if lane.number == 2)
                    assert isinstance(lane, Lane)
                    docker("kill", lane.path.containers["server"])
                    killed = True
            lanes.retire()
        results = run.results()
    names = [life["testbed"] for life in lanes.lives]
    assert [len(lane.lives) for lane in lanes.lanes] == [1, 2], "one testbed of the second lane was lost"
    errors = [result for result in results if result.outcome is Outcome.LAB_ERROR]
    assert [(result.place.lane, result.place.testbed) for result in errors] == [(2, names[1])]
    good = [result for result in results if result not in errors]
    assert {result.trial.id for result in good} == {
        trial.id for block in plan_blocks(matrix) for trial in block.trials()
    }
    assert all(result.proof.passed for result in good), "the network was proven on both"
    assert {result.outcome for result in good} == {Outcome.OK}
    assert any(result.place.beside for result in good)
    assert {result.place.lane for result in good} == {1, 2}
    assert all(result.metrics[f"{host}_cpu_s"] > 0 for result in good for host in ("client", "router", "server"))
    for name in names:
        kept = f"label={containers.LABEL}={name}"
        assert docker("ps", "-aq", "--filter", kept) + docker("network", "ls", "-q", "--filter", kept) == ""
