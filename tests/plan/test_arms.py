"""An arm that this host cannot have is refused before the first trial, where it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwind.matrix.reader import MatrixError
from headwind.plan.arms import check_arms
from headwind.testbed.testbed import AgentError
from tests.fake_testbed import FakeServer, World, fake_testbed
from tests.matrix_files import load

TEXT = """protocols: [h1, h2]
arms:
  h2-bbr: {protocol: h2, congestion: bbr}
  h2-vegas: {protocol: h2, congestion: vegas}
profiles: {clean: {}}
workloads: {page: {requests: 1, connections: 1}}
"""


def test_what_every_arm_asks_for_is_tried_and_the_usual_one_set_again(tmp_path: Path) -> None:
    world = World()
    with fake_testbed(world) as testbed:
        check_arms(load(TEXT, tmp_path), testbed)
    assert world.congestion == {"client": "cubic", "server": "cubic"}
    assert world.order.count("server use_congestion") == 3


def test_a_congestion_control_that_is_not_there_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = FakeServer.do_use_congestion

    def lacks(server: FakeServer, congestion: str) -> dict[str, Any]:
        if congestion == "vegas":
            raise AgentError("server: use_congestion: no such thing")
        return has(server, congestion)

    monkeypatch.setattr(FakeServer, "do_use_congestion", lacks)
    world = World()
    with fake_testbed(world) as testbed, pytest.raises(MatrixError) as refusal:
        check_arms(load(TEXT, tmp_path), testbed)
    (complaint,) = refusal.value.complaints
    assert (complaint.line, complaint.column) == (4, 28)
    assert "`h2-vegas` cannot have the congestion control vegas here" in str(complaint)
    assert "no such thing" in str(complaint)
    assert world.congestion["server"] == "cubic"
