"""The host's ends of the containers' veth pairs: only interfaces that point back."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwind.testbed import veth_peers
from impair.messages import FarEnds


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with a veth whose far end has index 7 in a container, and a network card of the same number range."""
    for name, index, link in (("eth0", 4, 4), ("veth1", 12, 7)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ifindex").write_text(f"{index}\n")
        (tmp_path / name / "iflink").write_text(f"{link}\n")
    boot_id = tmp_path.parent / "boot_id"
    boot_id.write_text("this kernel's\n")
    monkeypatch.setattr(veth_peers, "DEVICES", tmp_path)
    monkeypatch.setattr(veth_peers, "BOOT_ID", boot_id)
    return tmp_path


def test_an_end_that_points_back_is_examined(host: Path) -> None:
    assert host.is_dir()
    assert veth_peers.on_this_host([FarEnds("this kernel's", [12], [7])]) == (12,)
    assert veth_peers.on_this_host([FarEnds("another kernel's", [12], [7])]) == ()


def test_a_network_card_of_the_same_number_is_left_alone(host: Path) -> None:
    """Of rootless Docker, whose indices are of another namespace: the advice was to change the host's own card."""
    assert host.is_dir()
    assert veth_peers.on_this_host([FarEnds("this kernel's", [4], [2])]) == ()
