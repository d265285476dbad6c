"""A rebinding: the frames that the server's host counts, the filters of the router, and what they are read back as."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from impair.endpoint.agent import rebound_frames
from impair.messages import Rebound
from impair.profile import PORT_BIT, Rebind
from impair.router import rebinding
from impair.router.rebinding import Translation

CLIENT, OTHER = "10.0.0.10", "10.0.0.200"
PORTS = {"client": "vec0", "server": "vec1"}
TCP, UDP, ICMP = 6, 17, 1


def frame(source: str, port: int, protocol: int = UDP, ethertype: int = 0x0800) -> bytes:
    """A frame with an IPv4 header of 20 bytes and two ports."""
    address = bytes(map(int, source.split(".")))
    return bytes(12) + struct.pack("!H9xB2x", ethertype, protocol) + address + bytes(4) + struct.pack("!HH", port, 443)


def kept(program: Sequence[tuple[int, int, int, int]], data: bytes) -> int:
    """The result of a classic BPF program of loads, conditional jumps and returns."""
    place, accumulator = 0, 0
    while True:
        code, if_true, if_false, value = program[place]
        if code == 0x06:
            return value
        if code in (0x20, 0x28, 0x30):
            accumulator = int.from_bytes(data[value : value + {0x20: 4, 0x28: 2, 0x30: 1}[code]], "big")
            place += 1
            continue
        is_met = {0x15: accumulator == value, 0x45: bool(accumulator & value)}[code]
        place += 1 + (if_true if is_met else if_false)


@pytest.mark.parametrize("protocol", [TCP, UDP])
def test_packets_of_the_new_source_are_counted_and_no_others(protocol: int) -> None:
    address = rebound_frames(Rebind.ADDRESS, OTHER)
    assert kept(address, frame(OTHER, 40_000, protocol)) == 1
    assert kept(address, frame(CLIENT, 40_000, protocol)) == 0
    port = rebound_frames(Rebind.PORT, CLIENT)
    assert kept(port, frame(CLIENT, 40_000 - PORT_BIT, protocol)) == 1
    assert kept(port, frame(CLIENT, 40_000, protocol)) == 0
    assert kept(port, frame(OTHER, 40_000 - PORT_BIT, protocol)) == 0


def test_packets_without_ports_and_other_frames_are_not_counted() -> None:
    port = rebound_frames(Rebind.PORT, CLIENT)
    assert kept(port, frame(CLIENT, 0x0301, ICMP)) == 0
    for program in (port, rebound_frames(Rebind.ADDRESS, CLIENT)):
        assert kept(program, frame(CLIENT, 7000, ethertype=0x0806)) == 0


def filters(*actions: dict[str, Any]) -> str:
    """The listing of `tc -s -j filter show`, as iproute2 6.17 prints it: heads without options among the filters."""
    heads = [{"protocol": "ip", "pref": 1, "kind": "u32", "chain": 0}]
    return json.dumps([*heads, *({**heads[0], "options": {"actions": [each]}} for each in actions)])


def test_packets_are_counted_by_what_the_filters_did_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    drop = {"kind": "gact", "control_action": {"type": "drop"}, "stats": {"packets": 12}}
    back = {"type": "nat", "control_action": {"type": "pass"}, "stats": {"packets": 300}}
    there = {"type": "nat", "control_action": {"type": "pass"}, "stats": {"packets": 150}}
    listings = {"vec0": filters(there), "vec1": filters(drop, back)}
    monkeypatch.setattr(rebinding, "_listing", listings.__getitem__)
    assert Translation(PORTS, Rebind.ADDRESS, CLIENT, OTHER).seen() == Rebound(150, 300, 12)
    monkeypatch.setattr(rebinding, "_listing", lambda _: "")
    assert Translation(PORTS, Rebind.ADDRESS, CLIENT, OTHER).seen() == Rebound(0, 0, 0)


def test_a_kernel_without_the_means_is_named_with_tcs_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(OSError, match="tc"):
        Translation(PORTS, Rebind.PORT, CLIENT, OTHER).install()
