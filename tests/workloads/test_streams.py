"""The kind `streams`: which streams a lost packet blocked, and for how long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwind.metric import Losses, Use
from headwind.report.condition import inside_of
from headwind.verdicts.findings import compared_beside, judged_metrics, metrics_of
from headwind.verdicts.pairs import pairs_of
from headwind.workloads.h2load import TOTAL
from headwind.workloads.streams import BLOCKED, BLOCKED_STREAMS, PAYLOAD_GAP, Streams, blocks
from tests.matrix_files import ROOT, load, refusal

STREAMS = """
protocols: [h2, h3]
profiles: {{net: {{{}}}}}
workloads: {{page: {{kind: streams, streams: 20, size: 1MB}}}}
"""
ONE = Losses(1.0, 1.0, 1, 0.05)
STEADY = [[ms, 1000] for ms in range(0, 2000, 10)]


def paused(from_ms: int, until_ms: int) -> list[list[int]]:
    """A stream with payload every 10 ms, except for a pause."""
    return [[ms, 1000] for ms, _ in STEADY if not from_ms < ms < until_ms]


def test_a_stream_is_blocked_for_its_pause_beyond_the_usual_one() -> None:
    assert blocks([STEADY, paused(1000, 1200)], ONE) == pytest.approx([0.0, 0.19])


def test_pauses_before_and_long_after_the_loss_are_not_its() -> None:
    assert blocks([paused(600, 650), paused(1400, 1900)], ONE) == [0.0, 0.0]


def test_a_usual_pause_is_no_block() -> None:
    bursts = [[ms, 1000] for ms in range(0, 2000, 100)]
    later = replace(ONE, from_s=1.05, until_s=1.05)
    assert blocks([bursts], later) == [0.0]
    assert blocks([[each for each in bursts if each[0] != 1100]], later) == pytest.approx([0.1])


def test_streams_that_have_ended_or_not_begun_are_left_out() -> None:
    assert blocks([STEADY[:50], STEADY[150:], []], ONE) == []


def test_the_metric_is_for_each_lost_packet() -> None:
    load = Streams("streams", 2, 0, 0, path="/bytes/1000")
    answer = {"arrivals": [paused(1000, 1200), paused(1000, 1100)]}
    found = load.after_loss(answer, [replace(ONE, packets=2)])
    assert found == {BLOCKED.key: pytest.approx((0.19 + 0.09) / 2), BLOCKED_STREAMS.key: 2}
    assert load.after_loss(answer, []) == load.after_loss({"arrivals": []}, [ONE]) == {}


@pytest.mark.parametrize(
    ("network", "has_losses"),
    [
        ("both: {delay: 20ms}", False),
        ("downlink: {loss: 2%}", False),
        ("downlink: {loss: 2%}, at: {1s: {downlink: {loss: 0%}}}", False),
        ("downlink: {loss: 2%}, at: {1s: {downlink: {loss: 0%}}}, every: 2s", True),
        ("downlink: {loss: 2%}, at: {1s: {downlink: {delay: 5ms}}}", True),
        ("at: {1s: {uplink: {loss: 100%}}, 2s: {}}", False),
        ("at: {1s: {both: {loss: 0%}}, 2s: {}}", False),
        ("at: {1s: {both: {loss: 100%}}, 2s: {}}", True),
        ("at: {800ms: {downlink: {loss: {packets: 1}}}}", True),
        ("downlink: {spells: {good: 1s, bad: 100ms, loss: 100%}}", True),
        ("downlink: {rate: 20mbit}, at: {800ms: {downlink: {loss: {packets: 1}}}}", False),
        ("uplink: {rate: 1mbit}, at: {800ms: {downlink: {loss: {packets: 1}}}}", True),
        (f"downlink: {{trace: {ROOT}/experiments/traces/train.trace}}", False),
    ],
)
def test_only_a_change_that_drops_packets_gives_metrics_of_what_followed(
    network: str, has_losses: bool, tmp_path: Path
) -> None:
    """A table of `0 blocks` for a metric that no trial could have."""
    matrix = load(STREAMS.format(network), tmp_path)
    (condition,) = matrix.conditions
    for metrics in (matrix.judged(condition), judged_metrics(matrix), metrics_of(matrix, Use.JUDGED)):
        assert metrics == (TOTAL, PAYLOAD_GAP, BLOCKED)[: 2 + has_losses]
    assert (BLOCKED_STREAMS in inside_of(condition)) == (BLOCKED in inside_of(condition)) == has_losses
    pair = pairs_of(matrix, condition)[0]
    assert BLOCKED not in compared_beside(replace(matrix, judge=(TOTAL.key,)), condition, pair) or has_losses


def test_a_network_without_such_a_loss_is_not_judged_by_what_follows_one(tmp_path: Path) -> None:
    text = STREAMS.format("both: {delay: 20ms}")
    refused = str(refusal(f"{text}judge: [blocked_stream_s]\n", tmp_path))
    assert "`blocked_stream_s` is judged alone, and no change of `net` drops packets of the downlink" in refused
    assert "add `total_s`, or list the pairs you want under `conditions`" in refused
    limited = STREAMS.format("downlink: {rate: 20mbit}, at: {800ms: {downlink: {loss: {packets: 1}}}}")
    refused = str(refusal(f"{limited}judge: [blocked_stream_s]\n", tmp_path))
    assert "`blocked_stream_s` is judged alone, and `net` has a `rate`" in refused
    steady = STREAMS.format("downlink: {rate: 20mbit}")
    assert "no change of `net` drops packets" in str(refusal(f"{steady}judge: [blocked_stream_s]\n", tmp_path))
    assert load(f"{text}judge: [blocked_stream_s, total_s]\n", tmp_path).judge == ("blocked_stream_s", "total_s")


def test_without_a_stream_in_progress_nothing_is_known() -> None:
    """A blackout met a connection between its objects, and `0 blocked streams` was the figure of all of them."""
    load = Streams("streams", 2, 0, 0, path="/bytes/1000")
    answer = {"arrivals": [STEADY[:50], STEADY[150:]]}
    blackout, after_all = Losses(0.9, 1.5, 10, 0.05), Losses(3.0, 4.0, 10, 0.05)
    assert load.after_loss(answer, [blackout]) == {}
    answer["arrivals"].append(paused(1000, 1500))
    found = load.after_loss(answer, [blackout, after_all])
    assert found == {BLOCKED.key: pytest.approx(0.49 / 10), BLOCKED_STREAMS.key: 1}


def test_what_the_path_held_comes_before_the_pause() -> None:
    late = paused(1600, 1900)
    assert blocks([late], ONE) == [0.0]
    assert blocks([late], replace(ONE, latency_s=0.6)) == pytest.approx([0.29])


def test_every_pause_during_a_loss_counts() -> None:
    twice = [each for each in paused(1000, 1200) if not 1500 < each[0] < 1800]
    assert blocks([twice], Losses(1.0, 1.6, 9, 0.05)) == pytest.approx([0.19 + 0.29])
