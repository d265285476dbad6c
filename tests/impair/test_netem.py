"""netem's netlink messages: every bit as the kernel's headers say, read as written, and refused when not taken."""

from __future__ import annotations

import errno
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impair import netem_options
from impair.capabilities import EVERY_KIND
from impair.messages import DecisionCounters, NetemCounters
from impair.netem_options import ALL, Options, distribution_table
from impair.profile import (
    Corrupt,
    Delay,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Profile,
    Rate,
    Reorder,
    Slot,
)
from impair.queues import Red
from impair.router import netem, try_netem
from impair.router.netem import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    RTM_DELQDISC,
    RTM_GETQDISC,
    RTM_NEWQDISC,
    Netem,
    NetemRefused,
    Reading,
    counted,
    decoded,
    parsed,
    request,
)
from tests.strategies import LINKS

ROOT = Path(__file__).resolve().parent.parent.parent
U32, U64 = st.integers(0, ALL), st.integers(0, 2**64 - 1)
S32, COUNT, NS = st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
OPTIONS = st.builds(
    Options, limit=U32, latency=NS, jitter=NS, loss=U32, gilbert_elliott=st.none() | st.tuples(U32, U32, U32, U32),
    duplicate=U32, corrupt=U32, reorder=U32, gap=U32, rate=U64, ecn=st.integers(0, 1),
    slot=st.none() | st.tuples(NS, NS, COUNT, COUNT, NS, NS), seed=st.none() | U64,
) | st.builds(
    Options, limit=U32, four_state=st.tuples(U32, U32, U32, U32, U32), rate=st.integers(1, 2**64 - 1),
    packet_overhead=S32, cell_size=U32, cell_overhead=S32,
)  # fmt: skip
EVERYTHING = Link(
    delay=Delay(0.001234567, 0.000123456), loss=GilbertElliott(0.0123, 0.321, 0.95, 0.004), duplicate=Duplicate(0.321),
    corrupt=Corrupt(0.2), reorder=Reorder(0.33, 3), rate=Rate(80_000_000_000, 5, 48, -3),
    slot=Slot(0.0005, 0.0015, 40, 60_000), ecn=True, limit_packets=4321,
)  # fmt: skip
SEED = 2**63 + 5
# What kernel 7.2.7 answers to RTM_GETQDISC when EVERYTHING was applied and 100 frames of 100 bytes were sent.
KERNEL_7_2_7 = bytes.fromhex(
    "e00100002400000004000000e7020000000000000300000000000100ffffffff020000000a0001006e6574656d000000d40002005a4b0000"
    "e11000000000000003000000560e2d52890700000c000a0087d61200000000000c000b0040e2010000000000100001000000000000000000"
    "000000000c00030047e17a54000000000c00040033333333000000000c00080000e40b540200000014000600ffffffff0500000030000000"
    "fdffffff08000700010000001800050014000200c2172603560e2d52cdcccc0cdd2406012c000c0020a107000000000060e3160000000000"
    "2800000060ea0000000000000000000000000000000000000c000e00050000000000008005000c00000000006c0007003c00040067000000"
    "0000000001000000000000001a0000000000000021000000000000001d000000000000000000000000000000000000000000000014000100"
    "90330000000000008400000000000000180003000000000000000000010000001d000000000000002c000300903300000000000084000000"
    "010000000000000000000000000000000000000000000000000000003c000400670000000000000001000000000000001a00000000000000"
    "21000000000000001d0000000000000000000000000000000000000000000000"
)


Join = Callable[["FakeKernel"], Netem]


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def chance(ratio: float) -> int:
    return round(ratio * (2**32 - 1))


def test_a_request_has_every_bit_as_pkt_sched_h_says() -> None:
    wanted = b"".join([
        struct.pack("=IIIIII", 0, 4321, 0, 3, chance(0.321), 0),  # struct tc_netem_qopt
        attribute(10, struct.pack("=q", 1_234_567)),  # TCA_NETEM_LATENCY64
        attribute(11, struct.pack("=q", 123_456)),  # TCA_NETEM_JITTER64
        attribute(2, struct.pack("=3h", -8192, 0, 8192)),  # TCA_NETEM_DELAY_DIST
        attribute(3, struct.pack("=II", chance(0.33), 0)),  # TCA_NETEM_REORDER
        attribute(4, struct.pack("=II", chance(0.2), 0)),  # TCA_NETEM_CORRUPT
        attribute(5, attribute(2, struct.pack(  # TCA_NETEM_LOSS, NETEM_LOSS_GE
            "=IIII", chance(0.0123), chance(0.321), chance(0.05), chance(0.004)))),
        attribute(6, struct.pack("=IiIi", 2**32 - 1, 5, 48, -3)),  # TCA_NETEM_RATE
        attribute(8, struct.pack("=Q", 10_000_000_000)),  # TCA_NETEM_RATE64, in bytes/s
        attribute(7, struct.pack("=I", 1)),  # TCA_NETEM_ECN
        attribute(12, struct.pack("=qqiiqq", 500_000, 1_500_000, 40, 60_000, 0, 0)),  # TCA_NETEM_SLOT
        attribute(14, struct.pack("=Q", SEED)),  # TCA_NETEM_PRNG_SEED
    ])  # fmt: skip
    body = struct.pack("=BBHiIII", 0, 0, 0, 3, 0x10000, 0xFFFFFFFF, 0)  # struct tcmsg: interface 3, handle 1:, root
    body += attribute(1, b"netem\0") + attribute(2, wanted)
    header = struct.pack("=IHHII", 16 + len(body), 36, 0x1 | 0x4 | 0x200 | 0x400, 0, 0)
    table = struct.pack("=3h", -8192, 0, 8192)
    assert request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, 3, Options.of(EVERYTHING, SEED), table) == header + body


def test_a_change_sends_every_attribute_also_those_that_are_not_there() -> None:
    """The kernel keeps correlations, reorder, corrupt, rate, ecn and slots that it is not sent (netem_change)."""
    wanted = b"".join([
        struct.pack("=IIIIII", 0, 100_000, 0, 0, 0, 0),
        attribute(10, bytes(8)), attribute(11, bytes(8)), attribute(1, bytes(12)), attribute(3, bytes(8)),
        attribute(4, bytes(8)), attribute(6, bytes(16)), attribute(7, bytes(4)), attribute(12, bytes(40)),
        attribute(14, struct.pack("=Q", SEED)),
    ])  # fmt: skip
    body = struct.pack("=BBHiIII", 0, 0, 0, 3, 0x10000, 0xFFFFFFFF, 0)
    body += attribute(1, b"netem\0") + attribute(2, wanted)
    sent = request(RTM_NEWQDISC, 0, 3, Options.of(Link(), SEED), whole=True)
    assert sent == struct.pack("=IHHII", 16 + len(body), 36, 0x1 | 0x4, 0, 0) + body


def test_a_change_neither_deletes_nor_creates(join: Join) -> None:
    kernel = FakeKernel()
    ours = join(kernel)
    ours.apply("lo", EVERYTHING, SEED)
    kernel.requests.clear()
    change = ours.change("lo", Link(), 3)
    ours.carry_out(change)
    change.check(ours.read("lo"))
    assert kernel.requests == [RTM_NEWQDISC, RTM_GETQDISC]
    assert kernel.held == Options.of(Link(), 3)


def test_a_change_that_reads_back_otherwise_is_refused(join: Join) -> None:
    kernel = FakeKernel(tells=lambda held: replace(held, rate=1))
    ours = join(kernel)
    change = ours.change("lo", Link(), None)
    ours.carry_out(change)
    with pytest.raises(NetemRefused, match="rate"):
        change.check(ours.read("lo"))
    with pytest.raises(NetemRefused, match="qdisc"):
        change.check(None)


def test_the_four_state_model_has_its_parameters_in_the_kernels_order() -> None:
    link = Link(loss=FourState(p13=0.1, p31=0.2, p32=0.3, p23=0.4, p14=0.5))
    gi = attribute(5, attribute(1, struct.pack("=IIIII", *(chance(p) for p in (0.1, 0.2, 0.3, 0.5, 0.4)))))
    assert gi in request(RTM_NEWQDISC, 0, 3, Options.of(link, None))


def test_what_the_kernel_answers_is_understood() -> None:
    message = parsed(KERNEL_7_2_7)
    assert decoded(message) == Options.of(EVERYTHING, SEED)
    assert counted(message) == DecisionCounters(
        packets=132, bytes=13200, drops=1, overlimits=0, requeues=29, backlog_packets=0, backlog_bytes=0, delayed=103,
        dropped=1, corrupted=26, duplicated=33, reordered=29, ecn_marked=0, allocation_errors=0,
    )  # fmt: skip


@given(OPTIONS)
def test_what_is_written_is_read_alike(asked: Options) -> None:
    asked = asked if asked.rate else replace(asked, packet_overhead=0, cell_size=0, cell_overhead=0)
    assert decoded(parsed(bytes(request(RTM_NEWQDISC, 0, 3, asked)))) == asked


@given(LINKS, st.none() | U64)
def test_a_link_survives_the_kernels_units(link: Link, seed: int | None) -> None:
    asked = Options.of(link, seed)
    distribution = link.delay.distribution if link.delay else "uniform"
    shown = asked.link(distribution)
    assert Options.of(shown, seed) == asked
    assert Link.from_json(shown.to_json()) == shown
    assert shown.limit == link.limit


def test_chances_that_exclude_each_other_never_add_up_to_more_than_all() -> None:
    p13, p31, p32, p14, _ = Options.of(Link(loss=FourState(0.5, 0.5, 0.5, 0.1, 0.5)), None).four_state or ()
    assert p31 + p32 == p13 + p14 == ALL  # in the kernel's 32 bits, one more would be none


def test_reordering_with_no_chance_sends_no_gap() -> None:
    assert Options.of(Link(reorder=Reorder(0.0, 5)), None).gap == 0  # a gap alone is 100 % for the kernel


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_has_64_bits(seed: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 2\\^64 - 1"):
        Options.of(Link(), seed)


@dataclass
class FakeKernel:
    """The other end of a netlink socket: keeps one qdisc, and tells what a kernel of some age tells of it."""

    tells: Callable[[Options], Options] = lambda held: held
    counts: bool = True  # one counter for each impairment: kernel 7.2 and later
    refuses: tuple[int, str] | None = None
    stale: bool = False
    held: Options | None = None
    requests: list[int] = field(default_factory=list)
    _answers: list[bytes] = field(default_factory=list)

    def send(self, data: bytes) -> int:
        message = parsed(bytes(data))
        kind, sequence = message["header"]["type"], message["header"]["sequence_number"]
        self.requests.append(kind)
        if self.stale:
            self._answers.append(self._ack(sequence - 1, -errno.EBUSY))
        if kind == RTM_NEWQDISC and self.refuses:
            self._answers.append(self._ack(sequence, -self.refuses[0], self.refuses[1]))
            return len(data)
        if kind == RTM_DELQDISC and self.held is None:
            self._answers.append(self._ack(sequence, -errno.ENOENT, "Cannot delete qdisc with handle of zero."))
            return len(data)
        if kind == RTM_GETQDISC and self.held:
            self._answers.append(self._dump(sequence))
        self._answers.append(self._ack(sequence, 0))
        if kind == RTM_NEWQDISC:
            asked = decoded(message)  # slots of nothing are none (get_slot in net/sched/sch_netem.c)
            self.held = replace(asked, slot=asked.slot if any(asked.slot or ()) else None)
        elif kind == RTM_DELQDISC:
            self.held = None
        return len(data)

    def recv(self, _size: int) -> bytes:
        return self._answers.pop(0)

    def close(self) -> None:
        assert not self._answers

    def _ack(self, sequence: int, status: int, words: str = "") -> bytes:
        said = attribute(1, words.encode() + b"\0") if words else b""
        body = struct.pack("=i", status) + bytes(16) + said
        return struct.pack("=IHHII", 16 + len(body), 2, 0x100 | (0x200 if words else 0), sequence, 0) + body

    def _dump(self, sequence: int) -> bytes:
        assert self.held
        statistics = attribute(1, struct.pack("=QI4x", 1000, 10))  # TCA_STATS_BASIC
        statistics += attribute(3, struct.pack("=IIIII", 1, 100, 2, 3, 4))  # TCA_STATS_QUEUE
        if self.counts:
            statistics += attribute(4, struct.pack("=7Q", *[5] * 7))  # TCA_STATS_APP
        dump = request(RTM_NEWQDISC, 0, 3, self.tells(self.held)) + attribute(7, statistics)
        struct.pack_into("=I4xI", dump, 0, len(dump), sequence)
        return bytes(dump)


@pytest.fixture
def join() -> Iterator[Callable[[FakeKernel], Netem]]:
    """A Netem that speaks to a fake kernel."""
    joined: list[Netem] = []

    def make(kernel: FakeKernel) -> Netem:
        ours = Netem()
        ours.close()
        ours._route._socket = kernel  # type: ignore[assignment]
        joined.append(ours)
        return ours

    yield make
    for ours in joined:
        ours.close()


def test_apply_deletes_adds_and_reads_back(join: Join) -> None:
    kernel = FakeKernel()
    ours = join(kernel)
    assert ours.apply("lo", EVERYTHING, SEED).options == Options.of(EVERYTHING, SEED)
    reading = ours.apply("lo", Link(), SEED)
    assert reading.options == Options.of(Link(), SEED)
    assert kernel.requests == [RTM_DELQDISC, RTM_NEWQDISC, RTM_GETQDISC] * 2
    assert isinstance(reading.counters, DecisionCounters)
    assert (reading.counters.packets, reading.counters.delayed) == (10, 5)
    ours.clear("lo")
    assert ours.read("lo") is None


def test_a_kernel_without_impairment_counters_gives_the_others(join: Join) -> None:
    counters = join(FakeKernel(counts=False)).apply("lo", Link(), SEED).counters
    assert counters == NetemCounters(
        packets=10, bytes=1000, drops=2, overlimits=4, requeues=3, backlog_packets=1, backlog_bytes=100
    )


def test_a_kernel_before_6_6_has_no_seed_and_that_is_an_error_unless_none_was_asked(join: Join) -> None:
    kernel = FakeKernel(tells=lambda held: replace(held, seed=None))
    with pytest.raises(NetemRefused, match="this kernel cannot seed netem"):
        join(kernel).apply("lo", Link(), seed=1)
    assert join(kernel).apply("lo", Link(), seed=None).options.seed is None


def test_the_kernels_own_seed_is_accepted_when_none_was_asked(join: Join) -> None:
    kernel = FakeKernel(tells=lambda held: replace(held, seed=99))
    assert join(kernel).apply("lo", Link(), seed=None).options.seed == 99


@pytest.mark.parametrize(
    ("attribute_name", "got"),
    [
        ("jitter", 2**31 - 1),  # what kernels clip a longer one to
        ("latency", 0),  # what a kernel without TCA_NETEM_LATENCY64 tells
        ("gilbert_elliott", None),
        ("rate", 2**32 - 1),  # what a kernel without TCA_NETEM_RATE64 tells
        ("correlations", (0, 1, 0, 0, 0)),
        ("limit", 1000),
        ("ecn", 0),
        ("slot", None),
        ("seed", 3),
    ],
)
def test_any_difference_is_refused_by_name(
    join: Join, monkeypatch: pytest.MonkeyPatch, attribute_name: str, got: object
) -> None:
    told = replace(Options.of(EVERYTHING, SEED), **{attribute_name: got})  # type: ignore[arg-type]
    monkeypatch.setattr(netem, "decoded", lambda _message: told)
    with pytest.raises(NetemRefused) as refused:
        join(FakeKernel()).apply("lo", EVERYTHING, SEED)
    assert (refused.value.attribute, refused.value.got) == (attribute_name, got)
    assert refused.value.asked == getattr(Options.of(EVERYTHING, SEED), attribute_name)


def test_what_the_kernel_says_against_the_whole_is_passed_on(join: Join) -> None:
    kernel = FakeKernel(refuses=(errno.ENOENT, "Specified qdisc kind is unknown"))
    with pytest.raises(OSError, match="Specified qdisc kind is unknown") as refused:
        join(kernel).apply("lo", Link(), SEED)
    assert refused.value.errno == errno.ENOENT


def test_the_answer_to_an_earlier_request_is_not_taken_for_this_one(join: Join) -> None:
    assert join(FakeKernel(stale=True)).apply("lo", Link(), SEED).options == Options.of(Link(), SEED)


def test_netem_is_tried_and_taken_away_again(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeKernel()
    ours = join(kernel)
    monkeypatch.setattr(netem, "distribution_table", lambda _: b"")  # of an iproute2 that the host may not have
    plain = [each for each in EVERY_KIND if not each.uplink.queue]
    found = try_netem.try_netem(plain, netem=lambda: ours)
    assert (found.netem, found.seed, found.counters, found.refused) == (True, True, True, {})
    assert kernel.held is None


def test_a_kernel_without_netem_is_quoted(join: Join) -> None:
    ours = join(FakeKernel(refuses=(errno.ENOENT, "Specified qdisc kind is unknown")))
    found = try_netem.try_netem(netem=lambda: ours)
    assert (found.netem, found.seed, found.counters) == (False, False, False)
    assert re.fullmatch(r'"Specified qdisc kind is unknown" \(tried .*\)', found.why)


def test_a_network_that_the_kernel_refuses_has_its_words_alone(join: Join) -> None:
    ours = join(FakeKernel(refuses=(errno.EINVAL, "Invalid slot")))
    assert try_netem._refused(ours, [Profile("mine", downlink=Link(slot=Slot(0.1, 0.2)))]) == {"mine": "Invalid slot"}


class Half(Netem):
    """A netem that takes neither slots nor seeds."""

    def apply(self, device: str, link: Link, seed: int | None) -> Reading:
        if link.slot:
            raise NetemRefused(device, "slot", "1 ms", None)
        if seed is not None:
            raise NetemRefused(device, "seed", seed, None)
        return Reading(Options.of(link, None), NetemCounters(0, 0, 0, 0, 0, 0, 0))


class WithoutRed:
    """Bottlenecks of a kernel that lacks RED; all that were made were removed."""

    there: ClassVar[set[str]] = set()

    def apply(self, _port: str, device: str, link: Link) -> None:
        if isinstance(link.queue, Red):
            raise OSError(errno.ENOENT, "Specified qdisc kind is unknown")
        self.there.add(device)

    def clear(self, _port: str, device: str) -> None:
        self.there.discard(device)

    def close(self) -> None:
        assert not self.there


def test_each_kind_of_queue_is_tried_and_taken_away_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_netem, "Bottleneck", WithoutRed)
    found = try_netem.try_netem(EVERY_KIND, Half)
    assert found.refused["queue red"] == "Specified qdisc kind is unknown"
    assert [name for name in found.refused if name.startswith("queue")] == ["queue red"]


def test_each_kind_of_impairment_is_tried_for_itself(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    join(FakeKernel())
    monkeypatch.setattr(try_netem, "Bottleneck", WithoutRed)
    found = try_netem.try_netem(EVERY_KIND, Half)
    assert (found.netem, found.seed, found.counters, list(found.refused)) == (True, False, False, ["slot", "queue red"])
    assert "requested slot" in found.refused["slot"]
    assert try_netem.try_netem([Profile("mine", downlink=Link(slot=Slot(0.1, 0.2)))], Half).refused.keys() == {"mine"}


def test_an_agent_starts_with_pyroute2s_messages_alone_and_the_rest_can_still_be_imported() -> None:
    program = (
        "import sys, impair.router.netem\n"
        "print(len([name for name in sys.modules if name.startswith('pyroute2')]))\n"
        "from pyroute2 import IPRoute, netlink\n"
        "print(IPRoute.__name__, impair.router.netem.nlmsg is netlink.nlmsg)\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    modules, *rest = told.split()
    assert int(modules) < 10
    assert rest == ["IPRoute", "True"]


def test_tables_are_read_as_iproute2_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "lib" / "tc"
    place.mkdir(parents=True)
    (place / "normal.dist").write_text("# a table\n -32768 -1\n 0\t28307 # the last\n")
    monkeypatch.setattr(netem_options, "TABLE_PLACES", (f"{tmp_path}/nowhere", f"{tmp_path}/*/tc"))
    distribution_table.cache_clear()
    assert distribution_table("normal") == struct.pack("=4h", -32768, -1, 0, 28307)
    assert distribution_table("uniform") == b""
    with pytest.raises(FileNotFoundError, match=r"no pareto\.dist in"):
        distribution_table("pareto")
    distribution_table.cache_clear()
