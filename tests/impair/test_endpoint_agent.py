"""What an endpoint makes of what the kernel's tools say. The real interface is in net/test_endpoint.py."""

from __future__ import annotations

import ipaddress
import os
import re
import time

import pytest

from impair.endpoint import agent
from impair.endpoint.agent import (
    OPERATIONS,
    SNMP_COUNTERS,
    TCP_COUNTERS,
    Endpoint,
    EndpointError,
    connections,
    snmp_counters,
    tcp_counters,
)
from impair.endpoint.path import OnlyLink
from impair.interface import InterfaceError
from impair.messages import TcpCounters
from impair.wire import answer

SNMP = """\
Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors
Ip: 1 64 5023 3 0
Icmp: InMsgs InErrors
Icmp: 4 0
Tcp: RtoAlgorithm MaxConn ActiveOpens CurrEstab RetransSegs InErrs OutRsts InCsumErrors
Tcp: 1 -1 12 3 17 0 5 9
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 100 1 2 90 6 7 8 0 0
"""


# TCPDSACKRecv counts every DSACK, also of a copy that the network made.
NETSTAT = """\
TcpExt: TCPDSACKRecv TCPFastRetrans TCPTimeouts TCPLossProbes TCPDSACKRecvSegs TCPSpuriousRTOs TCPSynRetrans
TcpExt: 99 11 12 13 14 15 16
IpExt: InNoRoutes InCEPkts
IpExt: 0 0
"""


def test_counters_are_found_by_their_names() -> None:
    assert snmp_counters(SNMP) == {
        "ip_in_receives": 5023, "ip_in_hdr_errors": 3, "udp_in_datagrams": 100, "udp_rcvbuf_errors": 6,
        "udp_sndbuf_errors": 7, "udp_in_csum_errors": 8, "tcp_in_csum_errors": 9, "tcp_retrans_segs": 17,
    }  # fmt: skip


@pytest.mark.parametrize("column", [column for _, column in SNMP_COUNTERS.values()])
def test_a_counter_that_is_missing_is_not_zero(column: str) -> None:
    with pytest.raises(KeyError, match=column):
        snmp_counters(SNMP.replace(column, "Other"))


def test_established_connections_are_counted_without_a_listing() -> None:
    assert connections(SNMP) == 3


@pytest.mark.parametrize("text", [b'{"id": 8, "op": "sent"}\n', b""])
def test_a_look_for_connections_ends_when_the_lab_has_its_next_request_or_is_gone(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint()
    endpoint._peer_network = ipaddress.IPv4Network("192.0.2.0/24")
    reading, writing = os.pipe()
    monkeypatch.setattr(agent, "LAB", reading)
    began_s = time.monotonic()
    assert endpoint.congestion_seen(0.2) == []
    assert time.monotonic() - began_s >= 0.2  # while nothing comes, it uses its time
    os.write(writing, text)
    os.close(writing)
    assert endpoint.congestion_seen(600.0) == []
    assert os.read(reading, 100) == text  # which `serve` then carries out
    os.close(reading)


def test_why_tcp_sent_anything_again_is_found_by_name() -> None:
    assert tcp_counters(NETSTAT) == TcpCounters(
        rtos=12, fast_retransmits=11, loss_probes=13, syn_retransmits=16, spurious_rtos=15, spurious_retransmits=14
    )


@pytest.mark.parametrize("column", TCP_COUNTERS.values())
def test_a_kernel_that_does_not_tell_why_is_no_kernel_that_sent_nothing_again(column: str) -> None:
    assert tcp_counters(re.sub(rf"\b{column}\b", "Other", NETSTAT)) is None
    assert tcp_counters("IpExt: InNoRoutes\nIpExt: 0\n") is None


@pytest.mark.parametrize(
    ("addresses", "words"),
    [
        ([], "found: none"),
        (["10.0.0.1 eth0", "10.0.1.1 eth1"], "found: 10.0.0.1 on eth0, 10.0.1.1 on eth1"),
    ],
)
def test_an_endpoint_has_exactly_one_address(addresses: list[str], words: str) -> None:
    links = [{"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "scope": "host"}]}] + [
        {"ifname": text.split()[1], "addr_info": [{"local": text.split()[0], "scope": "global"}]} for text in addresses
    ]
    with pytest.raises(InterfaceError, match=words):
        OnlyLink.find(lambda *_: links)


def test_what_needs_join_says_so() -> None:
    with pytest.raises(EndpointError, match="before `join`"):
        Endpoint().forget()


def test_the_agent_answers_the_operations_of_an_endpoint_and_outlives_bad_arguments() -> None:
    assert {"hello", "join", "counters", "forget", "send_train", "train_seen"} <= set(OPERATIONS)
    refused = answer(OPERATIONS, '{"id": 3, "op": "send_train", "peer_ip": "127.0.0.1", "nonce": 1, "count": 0,'
                     '"interval_s": 0, "size_bytes": 64}')  # fmt: skip
    assert isinstance(refused, dict)
    assert (refused["id"], refused["kind"]) == (3, "ProbeError")
