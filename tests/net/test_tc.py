"""impair/router/netem.py and iproute2's `tc` mean the same by every attribute: what one writes, the other reads."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any

import pytest

from headwind.report.tc_commands import tc_command
from impair.netem_options import Options
from impair.profile import (
    Corrupt,
    Delay,
    Direction,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    Rate,
    Reorder,
    Slot,
)
from tests.net.impaired import ImpairedPath, Member, Project, ask

pytestmark = [pytest.mark.timeout(300, func_only=True), pytest.mark.beside]  # the first test may build the images
in_the_guest = pytest.mark.parametrize("path", ["kernel-in-uml"], indirect=True)  # where tc sees the router's netem
DEVICE = "lo"

WRITTEN_BY_TC = [
    ("delay 100ms", Link(delay=Delay(0.1))),
    ("delay 12.345678ms 1.5us", Link(delay=Delay(0.012345678, 0.0000015))),
    ("delay 100ms 10ms distribution normal", Link(delay=Delay(0.1, 0.01, "normal"))),
    ("loss 30%", Link(loss=Loss(0.3))),
    ("loss random 0.001%", Link(loss=Loss(0.00001))),
    ("loss gemodel 1% 30% 90% 2%", Link(loss=GilbertElliott(0.01, 0.3, 0.9, 0.02))),
    ("loss gemodel 1% 30%", Link(loss=GilbertElliott(0.01, 0.3))),
    ("loss state 1% 30% 10% 20% 0.5%", Link(loss=FourState(0.01, 0.3, p32=0.1, p23=0.2, p14=0.005))),
    ("loss 5% ecn", Link(loss=Loss(0.05), ecn=True)),
    ("duplicate 70%", Link(duplicate=Duplicate(0.7))),
    ("corrupt 20%", Link(corrupt=Corrupt(0.2))),
    ("delay 10ms reorder 25% gap 5", Link(delay=Delay(0.01), reorder=Reorder(0.25, 5))),
    ("rate 10mbit", Link(rate=Rate(10_000_000))),
    ("rate 1mbit 20 48 5", Link(rate=Rate(1_000_000, 20, 48, 5))),
    ("rate 1mbit -14", Link(rate=Rate(1_000_000, -14))),
    ("rate 80gbit", Link(rate=Rate(80_000_000_000))),
    ("slot 800us 1ms packets 42 bytes 1500", Link(slot=Slot(0.0008, 0.001, 42, 1500))),
]


@in_the_guest
@pytest.mark.parametrize(("words", "link"), WRITTEN_BY_TC, ids=[words for words, _ in WRITTEN_BY_TC])
def test_what_tc_writes_we_read(path: ImpairedPath, words: str, link: Link) -> None:
    guest = guest_of(path)
    command = ["tc", "qdisc", "add", "dev", DEVICE, "root", "netem", "limit", "77", "seed", "5", *words.split()]
    ask(guest, "run", command=command)
    try:
        reading = ask(guest, "read", device=DEVICE)
    finally:
        ask(guest, "run", command=["tc", "qdisc", "del", "dev", DEVICE, "root"])
    limited = Link.from_json({**link.to_json(), "limit_packets": 77})
    assert as_tuples(reading["options"]) == as_tuples(plain(Options.of(limited, 5)))


SHOWN_TO_A_READER = [
    *(link for _, link in WRITTEN_BY_TC),
    Link(),
    Link(delay=Delay(0.1, 0.0105, "pareto"), reorder=Reorder(1 / 3, 2)),
    Link(loss=GilbertElliott(1 / 3, 1 / 7, 2 / 3, 1 / 9), duplicate=Duplicate(1 / 2**31), corrupt=Corrupt(1 / 3)),
    Link(loss=FourState(0.5, 0.5, p32=0.5, p23=1 / 3, p14=0.5), ecn=True),  # halves would wrap round if not clipped
    Link(delay=Delay(10.000000001), rate=Rate(8, 5, 48, -3), slot=Slot(0, 1.5, 3, 4)),
]


@in_the_guest
@pytest.mark.parametrize("link", SHOWN_TO_A_READER, ids=lambda link: tc_command(link, 5, DEVICE).partition("netem ")[2])
def test_the_command_on_a_condition_s_page_sets_what_the_lab_sets(path: ImpairedPath, link: Link) -> None:
    guest, seed = guest_of(path), 2**64 - 1
    ask(guest, "run", command=shlex.split(tc_command(link, seed, DEVICE)))
    try:
        reading = ask(guest, "read", device=DEVICE)
    finally:
        ask(guest, "run", command=["tc", "qdisc", "del", "dev", DEVICE, "root"])
    assert as_tuples(reading["options"]) == as_tuples(plain(Options.of(link, seed)))


WRITTEN_BY_US = [
    (Link(delay=Delay(0.1, 0.01)), ["delay 100ms  10ms"]),
    (
        Link(loss=Loss(0.3), duplicate=Duplicate(0.7), corrupt=Corrupt(0.2)),
        ["loss 30%", "duplicate 70%", "corrupt 20%"],
    ),
    (Link(loss=GilbertElliott(0.01, 0.3, 0.9, 0.02), ecn=True), ["loss gemodel p 1% r 30% 1-h 90% 1-k 2%", "ecn"]),
    (Link(loss=FourState(0.01, 0.3, 0.1, 0.2, 0.05)), ["loss state p13 1% p31 30% p32 10% p23 20% p14 5%"]),
    (Link(delay=Delay(0.01), reorder=Reorder(0.25, 5)), ["reorder 25%", "gap 5"]),
    (Link(rate=Rate(80_000_000_000, 5, 48, -3)), ["rate 80Gbit packetoverhead 5 cellsize 48 celloverhead -3"]),
    (Link(slot=Slot(0.001, 0.002, 3, 4)), ["slot 1ms 2ms packets 3 bytes 4"]),
]


@in_the_guest
@pytest.mark.parametrize(("link", "words"), WRITTEN_BY_US, ids=[words[0] for _, words in WRITTEN_BY_US])
def test_what_we_write_tc_reads(path: ImpairedPath, link: Link, words: list[str]) -> None:
    shown = path.impair(Direction.UPLINK, link, seed=2**63 + 1)
    printed = ask(guest_of(path), "run", command=["tc", "-s", "-d", "qdisc", "show", "dev", "to-server"])
    for word in (*words, f"limit {shown['limit']}", f"seed {2**63 + 1}"):
        assert word in printed


@in_the_guest
def test_counters_are_those_that_tc_shows(path: ImpairedPath) -> None:
    path.impair(Direction.UPLINK, Link(loss=Loss(0.3), duplicate=Duplicate(0.7), corrupt=Corrupt(0.2)), seed=3)
    path.train(Direction.UPLINK, 500, expect=501, patience_s=0.2)
    counters = path.netem_counters(Direction.UPLINK)
    printed = ask(guest_of(path), "run", command=["tc", "-s", "-d", "qdisc", "show", "dev", "to-server"])
    assert counters["dropped"] > 100
    for words in (
        "Sent {bytes} bytes {packets} pkt (dropped {drops}, overlimits {overlimits} requeues {requeues})",
        "delayed {delayed} dropped {dropped} corrupted {corrupted} duplicated {duplicated} reordered {reordered}",
    ):
        assert words.format(**counters) in printed


ENCODE = """
import json, sys
from impair.router.netem import RTM_NEWQDISC, decoded, parsed, request
from impair.netem_options import Options
from impair.profile import Link
for link in json.load(sys.stdin):
    asked = Options.of(Link.from_json(link), 2**64 - 1)
    written = bytes(request(RTM_NEWQDISC, 0, 3, asked, bytes(8192)))
    assert decoded(parsed(written)) == asked
    print(written.hex())
"""


def test_the_images_pyroute2_writes_the_same_bytes_as_ours(project: Project) -> None:
    links = json.dumps([link.to_json() for _, link in WRITTEN_BY_TC])
    here, there = (
        [sys.executable, "-c", ENCODE],
        ["docker", "run", "--rm", "-i", project.image, "python3", "-c", ENCODE],
    )
    written = [
        subprocess.run(command, input=links, capture_output=True, text=True, check=True).stdout.split()
        for command in (here, there)
    ]
    assert len(written[0]) == len(WRITTEN_BY_TC)
    assert written[0] == written[1]


def guest_of(path: ImpairedPath) -> Member:
    assert path.guest
    return path.guest


def plain(options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in Options.__slots__}


def as_tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
