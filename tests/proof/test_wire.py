"""What a trial took of the network is what both ends counted while its client ran, and nothing is made up."""

from __future__ import annotations

from typing import Any

from headwind.metric import RESENT, SILENCE, SYN_RESENT, TIMEOUTS, WIRE_BYTES, WIRE_PACKETS
from headwind.proof.evidence import Evidence
from headwind.proof.wire import wire
from impair.profile import Direction, Link
from tests import quiet

TCP = {"timeouts": 3, "fast_resent": 5, "loss_probes": 2, "syn_resent": 1, "spurious_timeouts": 1, "needless": 4}


def evidence(**changes: dict[str, Any]) -> Evidence:
    """Counters that stood at 100 and then grew by what is named, by side."""
    before, after = ({side: quiet.endpoint() for side in ("client", "server")} for _ in range(2))
    for side, grown in changes.items():
        for name, more in grown.items():
            before[side][name] = dict.fromkeys(more, 100) if isinstance(more, dict) else 100
            after[side][name] = (
                {key: 100 + each for key, each in more.items()} if isinstance(more, dict) else 100 + more
            )
    states = {direction: quiet.netem(Link()) for direction in Direction}
    moments = [{**ends, "router": quiet.router(states)} for ends in (before, after)]
    return Evidence.from_json({"configured": states, "before": moments[0], "after": moments[1]})


def test_both_ends_are_added_up_over_the_clients_run() -> None:
    found = wire(
        evidence(
            client={"tx_frames": 10, "tx_bytes": 1000, "tcp_retrans_segs": 2, "tcp": TCP},
            server={"tx_frames": 20, "tx_bytes": 30_000, "tcp_retrans_segs": 7, "tcp": TCP},
        ),
        0.25,
        over_tcp=True,
    )
    assert [found[metric.key] for metric in (WIRE_PACKETS, WIRE_BYTES, RESENT, SILENCE)] == [30, 31_000, 9, 0.25]
    assert (found[TIMEOUTS.key], found[SYN_RESENT.key]) == (6, 2)
    assert {key: value for key, value in found.items() if key.startswith("tcp_")}.keys() == {
        "tcp_resent", "tcp_timeouts", "tcp_fast_resent", "tcp_loss_probes", "tcp_syn_resent", "tcp_spurious_timeouts",
        "tcp_needless",
    }  # fmt: skip


def test_over_quic_tcp_counted_nothing_so_nothing_is_said_of_it() -> None:
    found = wire(evidence(client={"tx_frames": 10, "tcp": TCP}), 0.1, over_tcp=False)
    assert not [key for key in found if key.startswith("tcp_")]
    assert found[WIRE_PACKETS.key] == 10


def test_what_a_kernel_does_not_tell_is_absent_and_not_zero() -> None:
    told = evidence(client={"tx_frames": 10}).to_json()
    for moment in ("before", "after"):
        del told[moment]["server"]["tcp"]
    found = wire(Evidence.from_json(told), 0.1, over_tcp=True)
    assert TIMEOUTS.key not in found
    assert found[RESENT.key] == 0
