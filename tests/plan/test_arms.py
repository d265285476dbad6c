"""An arm that this host cannot have is refused before the first trial, where it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwind.matrix.reader import MatrixError
from headwind.plan.arms import check_arms
from tests.fake_testbed import World, fake_path
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
    with fake_path(world) as path:
        check_arms(load(TEXT, tmp_path), path)
    assert world.congestion == {"client": "cubic", "server": "cubic"}
    assert world.order.count("server use_congestion") == 3


def test_a_congestion_control_that_is_not_there_is_refused_with_its_place(tmp_path: Path) -> None:
    world = World(lacking={"vegas"})
    with fake_path(world) as path, pytest.raises(MatrixError) as refusal:
        check_arms(load(TEXT, tmp_path), path)
    (complaint,) = refusal.value.complaints
    assert (complaint.line, complaint.column) == (4, 28)
    assert "`h2-vegas` cannot have the congestion control vegas here" in str(complaint)
    assert "no such thing" in str(complaint)
    assert "`modprobe tcp_vegas` on this host may load it; `sysctl net.ipv4.tcp_available" in str(complaint)
    assert world.congestion["server"] == "cubic"


def test_that_of_a_workload_is_tried_once_and_refused_where_the_workload_has_it(tmp_path: Path) -> None:
    text = TEXT.replace("  h2-vegas: {protocol: h2, congestion: vegas}\n", "").replace(
        "connections: 1}", "connections: 1, congestion: {tcp: bbr}}"
    )
    world = World(lacking={"bbr"})
    with fake_path(world) as path, pytest.raises(MatrixError) as refusal:
        check_arms(load(text, tmp_path), path)
    arm, workload = refusal.value.complaints
    assert "`h2-bbr` cannot have the congestion control bbr here" in str(arm)
    assert "`page` cannot have the congestion control bbr here" in str(workload)
    assert workload.line == 5
    assert world.order.count("client use_congestion") == 2, "bbr for both, then the usual one"
