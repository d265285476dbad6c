"""The kind `streams`: which streams a lost packet blocked, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from headwind.arm import H2
from headwind.metric import Losses, Use
from headwind.model import Block, Trial
from headwind.proof.evidence import Evidence
from headwind.report.condition import inside_of
from headwind.trial.trial import _after_loss
from headwind.verdicts.findings import compared_beside, judged_metrics, metrics_of
from headwind.verdicts.pairs import pairs_of
from headwind.workloads.h2load import TOTAL
from headwind.workloads.streams import BLOCKED, BLOCKED_STREAMS, PAYLOAD_GAP, Streams, blocks
from impair.messages import Course
from impair.profile import Direction
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


def blocked(*streams: list[list[int]], by: Sequence[Losses] = (ONE,)) -> list[float]:
    return [blocks([ms / 1000 for ms, _ in stream], by) for stream in streams]


def test_a_stream_is_blocked_for_its_pause_beyond_the_usual_one() -> None:
    assert blocked(STEADY, paused(1000, 1200)) == pytest.approx([0.0, 0.19])


def test_pauses_before_and_long_after_the_loss_are_not_its() -> None:
    assert blocked(paused(600, 650), paused(1400, 1900)) == [0.0, 0.0]


def test_a_usual_pause_is_no_block() -> None:
    bursts = [[ms, 1000] for ms in range(0, 2000, 100)]
    later = [replace(ONE, from_s=1.05, until_s=1.05)]
    assert blocked(bursts, by=later) == [0.0]
    assert blocked([each for each in bursts if each[0] != 1100], by=later) == pytest.approx([0.1])


def test_streams_that_have_ended_or_not_begun_are_left_out() -> None:
    assert blocked(STEADY[:50], STEADY[150:], []) == [0.0] * 3


def test_a_pause_that_spans_two_losses_counts_once() -> None:
    load = Streams("streams", 2, 0, 0, path="/bytes/1000")
    two = [ONE, Losses(1.2, 1.2, 1, 0.05)]
    found = load.after_loss({"arrivals": [paused(1000, 1500), STEADY]}, two)
    assert found == {BLOCKED.key: pytest.approx(0.49 / 2), BLOCKED_STREAMS.key: 1}


def test_a_stream_that_several_losses_blocked_is_one_stream() -> None:
    load = Streams("streams", 1, 0, 0, path="/bytes/1000")
    thrice = [each for each in STEADY if not any(from_ms < each[0] < from_ms + 200 for from_ms in (400, 1000, 1600))]
    found = load.after_loss({"arrivals": [thrice]}, [replace(ONE, from_s=at_s, until_s=at_s) for at_s in (0.4, 1, 1.6)])
    assert found == {BLOCKED.key: pytest.approx(0.19), BLOCKED_STREAMS.key: 1}


def test_a_pause_that_a_loss_caused_is_not_usual_before_the_next_one() -> None:
    twice = [each for each in paused(1000, 1100) if not 1200 < each[0] < 1300]
    assert blocked(twice, by=[ONE, Losses(1.2, 1.2, 1, 0.05)]) == pytest.approx([0.09 + 0.09])


def test_a_loss_that_dropped_no_packet_blocked_none() -> None:
    load = Streams("streams", 1, 0, 0, path="/bytes/1000")
    twice = {"arrivals": [[each for each in paused(500, 580) if not 1500 < each[0] < 1700]]}
    real, none = Losses(0.5, 0.5, 1, 0.05), Losses(1.5, 1.5, 0, 0.05)
    assert load.after_loss(twice, [real, none])[BLOCKED.key] == pytest.approx(0.07)
    assert load.after_loss(twice, [none]) == {}


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
        ("at: {800ms: {downlink: {loss: {packets: 1}}}}, clock: trial", False),
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
    early = STREAMS.format("at: {800ms: {downlink: {loss: {packets: 1}}}}, clock: trial")
    assert "and `net` has `clock: trial`" in str(refusal(f"{early}judge: [blocked_stream_s]\n", tmp_path))
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
    assert blocked(late) == [0.0]
    assert blocked(late, by=[replace(ONE, latency_s=0.6)]) == pytest.approx([0.29])


def test_every_pause_during_a_loss_counts() -> None:
    twice = [each for each in paused(1000, 1200) if not 1500 < each[0] < 1800]
    assert blocked(twice, by=[Losses(1.0, 1.6, 9, 0.05)]) == pytest.approx([0.19 + 0.29])


@pytest.mark.parametrize(("clock", "is_known"), [("packet", True), ("trial", False)])
def test_losses_and_payload_have_one_clock_or_no_metric(
    clock: str, is_known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client starts later than the schedule: a block of 78 ms was subtracted from itself as a usual pause."""
    (condition,) = load(
        STREAMS.format(f"at: {{1s: {{downlink: {{loss: {{packets: 1}}}}}}}}, clock: {clock}"), tmp_path
    ).conditions
    monkeypatch.setattr("headwind.trial.trial.downlink_losses", lambda *_: [ONE])
    trial = Trial(Block(condition, 0, (H2,), dict.fromkeys(Direction, 1)), 0, H2)
    evidence = cast("Evidence", SimpleNamespace(course=Course()))
    assert bool(_after_loss(trial, {"arrivals": [paused(1000, 1200)]}, evidence)) == is_known
