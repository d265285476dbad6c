"""Applies a Link to the kernel's netem and reads it back, or raises NetemRefused. The only user of pyroute2.

pyroute2's own netem plugin lacks the seed, nanoseconds, loss models, ecn, slots, 64-bit rates, tables and statistics,
and ignores what it does not know. So the messages are described here, as classes of pyroute2's netlink machinery, after
include/uapi/linux/pkt_sched.h and gen_stats.h.
"""

# mypy: allow-subclassing-any
# (pyroute2 has no types, and netlink messages are described by subclassing its own)
from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.util import find_spec, module_from_spec
from typing import Any

from impair.messages import DecisionCounters, NetemCounters
from impair.netem_options import Options, distribution_table
from impair.netlink import Netlink
from impair.profile import Link


@contextmanager
def modules_only(package: str) -> Iterator[None]:
    """Import modules of a package without its `__init__`, which runs when the package is imported."""
    spec = None if package in sys.modules else find_spec(package)
    if spec:
        sys.modules[package] = module_from_spec(spec)
    try:
        yield
    finally:
        if spec:
            del sys.modules[package]


with modules_only("pyroute2"):  # whose own imports take ten times as long as everything else of an agent
    from pyroute2.netlink import nla, nlmsg

RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x8, 0x200, 0x400
HANDLE, ROOT = 0x10000, 0xFFFFFFFF  # "1:" and TC_H_ROOT
IMPAIRMENT_COUNTERS = (  # struct tc_netem_xstats, kernel 7.2 and later
    "delayed", "dropped", "corrupted", "duplicated", "reordered", "ecn_marked", "allocation_errors",
)  # fmt: skip


class NetemRefused(ValueError):
    """The kernel reads back an attribute that differs from the request."""

    def __init__(self, device: str, attribute: str, asked: Any, got: Any) -> None:
        hint = "; this kernel cannot seed netem (6.6 and later can)" if attribute == "seed" and got is None else ""
        super().__init__(f"netem on {device}: requested {attribute} = {asked}, the kernel reads back {got}{hint}")
        self.attribute, self.asked, self.got = attribute, asked, got


class NetemOptions(nla):
    """TCA_OPTIONS of netem: struct tc_netem_qopt, then attributes."""

    fields = tuple((name, "I") for name in ("latency", "limit", "loss", "gap", "duplicate", "jitter"))
    nla_map = (
        ("TCA_NETEM_UNSPEC", "none"), ("TCA_NETEM_CORR", "Correlations"), ("TCA_NETEM_DELAY_DIST", "cdata"),
        ("TCA_NETEM_REORDER", "Chance"), ("TCA_NETEM_CORRUPT", "Chance"), ("TCA_NETEM_LOSS", "LossModel"),
        ("TCA_NETEM_RATE", "Rate"), ("TCA_NETEM_ECN", "uint32"), ("TCA_NETEM_RATE64", "uint64"),
        ("TCA_NETEM_PAD", "none"), ("TCA_NETEM_LATENCY64", "int64"), ("TCA_NETEM_JITTER64", "int64"),
        ("TCA_NETEM_SLOT", "Slot"), ("TCA_NETEM_SLOT_DIST", "cdata"), ("TCA_NETEM_PRNG_SEED", "uint64"),
    )  # fmt: skip

    class Correlations(nla):
        """struct tc_netem_corr."""

        fields = (("delay", "I"), ("loss", "I"), ("duplicate", "I"))

    class Chance(nla):
        """struct tc_netem_reorder and tc_netem_corrupt."""

        fields = (("probability", "I"), ("correlation", "I"))

    class Rate(nla):
        """struct tc_netem_rate."""

        fields = (("rate", "I"), ("packet_overhead", "i"), ("cell_size", "I"), ("cell_overhead", "i"))

    class Slot(nla):
        """struct tc_netem_slot."""

        fields = (
            ("min_delay", "q"), ("max_delay", "q"), ("max_packets", "i"), ("max_bytes", "i"),
            ("dist_delay", "q"), ("dist_jitter", "q"),
        )  # fmt: skip

    class LossModel(nla):
        """TCA_NETEM_LOSS: one of the two models."""

        nla_map = (("NETEM_LOSS_UNSPEC", "none"), ("NETEM_LOSS_GI", "FourState"), ("NETEM_LOSS_GE", "GilbertElliott"))

        class FourState(nla):
            """struct tc_netem_gimodel."""

            fields = tuple((name, "I") for name in ("p13", "p31", "p32", "p14", "p23"))

        class GilbertElliott(nla):
            """struct tc_netem_gemodel."""

            fields = tuple((name, "I") for name in ("p", "r", "h", "k1"))


class Message(nlmsg):
    """An rtnetlink message about a qdisc that is netem: struct tcmsg, then attributes."""

    fields = (
        ("family", "B"), ("pad1", "B"), ("pad2", "H"), ("index", "i"), ("handle", "I"), ("parent", "I"), ("info", "I"),
    )  # fmt: skip
    nla_map = (
        ("TCA_UNSPEC", "none"), ("TCA_KIND", "asciiz"), ("TCA_OPTIONS", "NetemOptions"), ("TCA_STATS", "none"),
        ("TCA_XSTATS", "none"), ("TCA_RATE", "none"), ("TCA_FCNT", "none"), ("TCA_STATS2", "Statistics"),
    )  # fmt: skip
    NetemOptions = NetemOptions

    class Statistics(nla):
        """TCA_STATS2 (gen_stats.h)."""

        nla_map = (
            ("TCA_STATS_UNSPEC", "none"), ("TCA_STATS_BASIC", "Basic"), ("TCA_STATS_RATE_EST", "none"),
            ("TCA_STATS_QUEUE", "Queue"), ("TCA_STATS_APP", "Impairments"), ("TCA_STATS_RATE_EST64", "none"),
            ("TCA_STATS_PAD", "none"), ("TCA_STATS_BASIC_HW", "none"), ("TCA_STATS_PKT64", "uint64"),
        )  # fmt: skip

        class Basic(nla):
            """struct gnet_stats_basic."""

            fields = (("bytes", "Q"), ("packets", "I"))

        class Queue(nla):
            """struct gnet_stats_queue."""

            fields = tuple((name, "I") for name in ("packets", "bytes", "drops", "requeues", "overlimits"))

        class Impairments(nla):
            """struct tc_netem_xstats, kernel 7.2 and later."""

            fields = tuple((name, "Q") for name in IMPAIRMENT_COUNTERS)


def request(
    kind: int, flags: int, index: int, options: Options | None = None, table: bytes = b"", *, whole: bool = False
) -> bytearray:
    """The bytes of a request about the root qdisc of interface number `index`; with options it describes a netem.

    `whole`: with the attributes that it has not, too, as a change in place needs.
    """
    message = Message()
    message["index"], message["parent"], message["handle"] = index, ROOT, HANDLE if options else 0
    message["header"]["type"], message["header"]["flags"] = kind, NLM_F_REQUEST | NLM_F_ACK | flags
    if options:
        message["attrs"] = [("TCA_KIND", "netem"), ("TCA_OPTIONS", _encoded(options, table, whole=whole))]
    message.encode()
    return bytearray(message.data)


def _encoded(options: Options, table: bytes, *, whole: bool) -> dict[str, Any]:
    """The value of TCA_OPTIONS. Absent options are only sent if it is to be `whole`: a fresh netem has none.

    netem_change (net/sched/sch_netem.c) keeps what it is not sent: correlations, reordering, corruption, rate, ecn and
    slots, which a zero takes back. Without a loss model it returns to independent losses. Only the table of a delay
    distribution cannot be taken back, which is why a direction has one distribution (impair/profile.py). A change
    restarts the random numbers: from the seed, or from one of the kernel's.
    """
    rate = min(options.rate, 2**32 - 1), options.packet_overhead, options.cell_size, options.cell_overhead
    model: dict[str, Any] = {}
    if options.gilbert_elliott:
        model = {"NETEM_LOSS_GE": _struct(NetemOptions.LossModel.GilbertElliott, options.gilbert_elliott)}
    elif options.four_state:
        model = {"NETEM_LOSS_GI": _struct(NetemOptions.LossModel.FourState, options.four_state)}
    attributes = [
        ("TCA_NETEM_LATENCY64", options.latency, True),
        ("TCA_NETEM_JITTER64", options.jitter, True),
        ("TCA_NETEM_CORR", {}, whole),
        ("TCA_NETEM_DELAY_DIST", table, table),
        ("TCA_NETEM_REORDER", {"probability": options.reorder}, whole or options.reorder),
        ("TCA_NETEM_CORRUPT", {"probability": options.corrupt}, whole or options.corrupt),
        ("TCA_NETEM_LOSS", {"attrs": list(model.items())}, model),
        ("TCA_NETEM_RATE", _struct(NetemOptions.Rate, rate), whole or options.rate),
        ("TCA_NETEM_RATE64", options.rate, options.rate >= 2**32),
        ("TCA_NETEM_ECN", options.ecn, whole or options.ecn),
        ("TCA_NETEM_SLOT", _struct(NetemOptions.Slot, options.slot or ()), whole or options.slot),
        ("TCA_NETEM_PRNG_SEED", options.seed, options.seed is not None),
    ]
    return {
        **{name: getattr(options, name) for name in ("limit", "loss", "gap", "duplicate")},
        "attrs": [(name, value) for name, value, present in attributes if present],
    }


def _struct(kind: type[nla], values: tuple[int, ...]) -> dict[str, int]:
    return {name: value for (name, _), value in zip(kind.fields, values, strict=False)}


def _values(read: nla | None, absent: tuple[int, ...] | None) -> Any:
    return absent if read is None else tuple(read[name] for name, _ in read.fields)


def parsed(data: bytes) -> Message:
    """A message of the kernel, with its attributes accessible."""
    message = Message(data)
    message.decode()
    return message


def decoded(message: Message) -> Options:
    """The options in a message that describes a netem; unreported ones are 0 or None."""
    netem = message.get_attr("TCA_OPTIONS")
    model = netem.get_attr("TCA_NETEM_LOSS") or NetemOptions.LossModel()
    rate, packet_overhead, cell_size, cell_overhead = _values(netem.get_attr("TCA_NETEM_RATE"), (0, 0, 0, 0))
    reorder, reorder_correlation = _values(netem.get_attr("TCA_NETEM_REORDER"), (0, 0))
    corrupt, corrupt_correlation = _values(netem.get_attr("TCA_NETEM_CORRUPT"), (0, 0))
    correlations = _values(netem.get_attr("TCA_NETEM_CORR"), (0, 0, 0))
    return Options(
        **{name: netem[name] for name in ("limit", "loss", "gap", "duplicate")},
        latency=netem.get_attr("TCA_NETEM_LATENCY64") or 0,
        jitter=netem.get_attr("TCA_NETEM_JITTER64") or 0,
        gilbert_elliott=_values(model.get_attr("NETEM_LOSS_GE"), None),
        four_state=_values(model.get_attr("NETEM_LOSS_GI"), None),
        reorder=reorder,
        corrupt=corrupt,
        rate=netem.get_attr("TCA_NETEM_RATE64") or rate,
        packet_overhead=packet_overhead,
        cell_size=cell_size,
        cell_overhead=cell_overhead,
        slot=_values(netem.get_attr("TCA_NETEM_SLOT"), None),
        ecn=netem.get_attr("TCA_NETEM_ECN") or 0,
        correlations=(*correlations, reorder_correlation, corrupt_correlation),
        seed=netem.get_attr("TCA_NETEM_PRNG_SEED"),
    )


def counted(message: Message) -> NetemCounters:
    """The counters in a message that describes a netem; those of its decisions only if the kernel has them."""
    statistics = message.get_attr("TCA_STATS2")
    basic, queue = statistics.get_attr("TCA_STATS_BASIC"), statistics.get_attr("TCA_STATS_QUEUE")
    packets, decisions = statistics.get_attr("TCA_STATS_PKT64"), statistics.get_attr("TCA_STATS_APP")
    counters = (
        packets or basic["packets"], basic["bytes"], *(queue[name] for name in ("drops", "overlimits", "requeues")),
        queue["packets"], queue["bytes"],
    )  # fmt: skip
    if decisions:
        return DecisionCounters(*counters, *(decisions[name] for name in IMPAIRMENT_COUNTERS))
    return NetemCounters(*counters)


@dataclass(frozen=True, slots=True)
class Reading:
    """The kernel's report of one interface's netem."""

    options: Options
    counters: NetemCounters


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an interface's netem in place, whose request is made before its moment."""

    device: str
    asked: Options
    request: bytearray
    has_seed: bool

    def check(self, reading: Reading | None) -> None:
        """Raise NetemRefused if the netem does not read back as requested."""
        _compare(self.device, self.asked, reading, has_seed=self.has_seed)


def _compare(device: str, asked: Options, reading: Reading | None, *, has_seed: bool) -> Reading:
    """Raise NetemRefused if an attribute reads back otherwise; the seed only counts if there is one."""
    if reading is None:
        raise NetemRefused(device, "qdisc", "netem", None)
    for field in fields(Options):
        wanted, got = getattr(asked, field.name), getattr(reading.options, field.name)
        if wanted != got and (field.name != "seed" or has_seed):
            raise NetemRefused(device, field.name, wanted, got)
    return reading


class Netem:
    """netem on the interfaces of the network namespace in which this object was made, through one netlink socket."""

    def __init__(self) -> None:
        self._route = Netlink()

    def close(self) -> None:
        """Close the socket; netem stays."""
        self._route.close()

    def apply(self, device: str, link: Link, seed: int | None) -> Reading:
        """Replace whatever `device` has by one fresh netem, and read it back.

        del and add, not change: nothing of an old one is left, and no packet in its delay line. Raises NetemRefused
        when one attribute differs (a seed that is not read back, too, unless `seed` is None) and OSError with the
        kernel's words when it refuses the whole. A distribution's table cannot be read back: the kernel does not
        report it.
        """
        asked = Options.of(link, seed)
        table = distribution_table(link.delay.distribution if link.delay else "uniform")
        index = socket.if_nametoindex(device)
        self.clear(device)
        try:
            self._route.send(request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, index, asked, table))
        except OSError as error:
            raise OSError(error.errno, f"netem on {device}: {error.strerror}") from error
        return _compare(device, asked, self.read(device), has_seed=seed is not None)

    def change(self, device: str, link: Link, seed: int | None) -> Change:
        """Prepare a change of the netem of `device` in place, which keeps its counters and the packets that it holds.

        `carry_out` carries it out; `Change.check` compares a reading after it. Packets in the delay line leave when
        the netem decided that they should, as it was when they came.
        """
        asked = Options.of(link, seed)
        table = distribution_table(link.delay.distribution if link.delay and link.delay.jitter_s else "uniform")
        index = socket.if_nametoindex(device)
        return Change(device, asked, request(RTM_NEWQDISC, 0, index, asked, table, whole=True), seed is not None)

    def carry_out(self, change: Change) -> None:
        """Carry out a change. Raises OSError with the kernel's words when it refuses."""
        try:
            self._route.send(change.request)
        except OSError as error:
            raise OSError(error.errno, f"netem on {change.device}: {error.strerror}") from error

    def clear(self, device: str) -> None:
        """Give `device` back its default queue; does nothing if it has it."""
        try:
            self._route.send(request(RTM_DELQDISC, 0, socket.if_nametoindex(device)))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise

    def read(self, device: str) -> Reading | None:
        """Options and counters of the netem of `device`; None when it has none."""
        answers = self._route.send(request(RTM_GETQDISC, NLM_F_ECHO, socket.if_nametoindex(device)))
        for answer in answers:
            message = parsed(answer)
            if message.get_attr("TCA_KIND") == "netem":
                return Reading(decoded(message), counted(message))
        return None
