"""A newcomer's mistake is reported once, at its place, and what its hint proposes is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix_files import load, refusal
from tests.matrix_newcomer import EVERY, OWN, WIFI, Change


def test_the_file_without_mistakes_is_taken(tmp_path: Path) -> None:
    assert len(load(OWN, tmp_path).conditions) == 5


@pytest.mark.parametrize("change", EVERY, ids=lambda change: change.new)
def test_a_newcomers_mistake_names_its_place_and_its_repair(change: Change, tmp_path: Path) -> None:
    assert change.broken != OWN
    (complaint,) = refusal(change.broken, tmp_path).complaints
    rest = complaint.source[complaint.column - 1 :]
    assert rest.startswith(change.marked) if change.marked else not rest
    assert change.hint in f"{complaint.message}, {complaint.hint}"


@pytest.mark.parametrize("change", [each for each in EVERY if each.mended], ids=lambda change: change.new)
def test_what_a_hint_proposes_is_accepted(change: Change, tmp_path: Path) -> None:
    assert load(change.whole, tmp_path).conditions


@pytest.mark.parametrize(
    "keys",
    [
        "latency: 100, downloadThroughput: 180000, uploadThroughput: 84000",
        "latencyMs: 100, download_throughput: 180000",
        "download: 1.6Mbps, upload: 750kbps, latency: 100ms",
    ],
)
def test_the_latency_of_chromes_networks_is_halved(keys: str, tmp_path: Path) -> None:
    (complaint,) = refusal(OWN.replace(WIFI, f"wifi: {{{keys}}}"), tmp_path).complaints
    assert complaint.hint.startswith("in place of these keys write downlink: {")
    assert complaint.hint.count("delay: 50ms") == 2
    assert complaint.hint.endswith("; the latency of Chrome is a round trip, half of it each way")
