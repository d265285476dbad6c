"""The presets are those that their sources publish, and a matrix takes them by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lab
from headwind.matrix.presets import NETWORKS
from headwind.matrix.profile import network
from headwind.matrix.reader import MatrixError, load_matrix
from headwind.settings import LARGEST_BDP_BYTES, largest_bdp_bytes
from impair.profile import Profile

MATRIX = """
protocols: [h1, h3]
profiles:
  mine: {profile}
workloads:
  some: {{requests: 10, connections: 1}}
"""


def profile_of(written: str, folder: Path) -> Profile:
    path = folder / "matrix.yaml"
    path.write_text(MATRIX.format(profile=written))
    return load_matrix(path).conditions[0].profile


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_is_one_that_a_matrix_may_have(name: str, tmp_path: Path) -> None:
    found = profile_of(f"{{preset: {name}}}", tmp_path)
    assert replace(found, name=name) == network(name).to_model(name)
    assert found.downlink.delay
    assert largest_bdp_bytes(found) <= LARGEST_BDP_BYTES
    assert NETWORKS[name].label
    assert NETWORKS[name].source


def test_a_name_means_what_its_source_says(tmp_path: Path) -> None:
    """A round trip of 200 ms, half of it each way, 780 kbit/s down and 330 up."""
    written = "{downlink: {rate: 780kbit, delay: 100ms}, uplink: {rate: 330kbit, delay: 100ms}}"
    assert profile_of("{preset: wpt-3g-slow}", tmp_path) == profile_of(written, tmp_path)


@pytest.mark.parametrize(
    ("written", "place", "message"),
    [
        ("{preset: wpt-3g-slo}", "4:18", "did you mean `wpt-3g-slow`?"),
        ("{preset: [lte]}", "4:18", "`lte`"),
        ("{preset: lte, uplink: {loss: 1%}}", "4:23", "`uplink` and `preset` both define the network"),
        ("{both: {delay: 1ms}, preset: lte}", "4:10", "`both` and `preset` both define the network"),
    ],
)
def test_a_mistake_is_shown_where_it_is(written: str, place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as raised:
        profile_of(written, tmp_path)
    assert f"matrix.yaml:{place}: " in str(raised.value)
    assert message in str(raised.value)


def test_the_list_has_every_network_and_every_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert lab.main(["profiles"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(name in said for name in NETWORKS)
    assert all(each.source in said for each in NETWORKS.values())
    assert "delay 100 ms, rate 780 kbit/s" in said
