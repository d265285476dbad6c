"""The bottleneck of a direction with its own queue: a device before netem, read back like netem.

Frames that enter the router are redirected to an intermediate functional block (ifb), whose root is tbf with the queue
as its child, or cake, which has its own shaper. From there they go on as if they had just come in, through
routing to netem on the other port. Below netem a queue would hold the delay line, too. Structures: linux/pkt_sched.h,
linux/pkt_cls.h, linux/tc_act/tc_mirred.h, linux/gen_stats.h.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from impair import interface
from impair.messages import QueueCounters, QueueState
from impair.netlink import NLM_F_ACK, NLM_F_DUMP, Netlink, attributes
from impair.profile import Link
from impair.queue_options import Settings, discipline, kept, red_idle, settings_of, tokens_bytes
from impair.queues import Cake, Fifo, Queue, Red
from impair.router.modules import load

RTM_NEWLINK, RTM_DELLINK, RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 16, 17, 36, 37, 38
RTM_NEWTFILTER, RTM_GETTFILTER = 44, 46
NLM_F_CREATE_NEW, NLM_F_ECHO = 0x600, 0x8
ROOT, INGRESS, INGRESS_HANDLE = 0xFFFFFFFF, 0xFFFFFFF1, 0xFFFF0000
HANDLE, CLASS, CHILD_HANDLE = 0x10000, 0x10001, 0x20000  # 1: is tbf or cake, 1:1 the class of tbf, 2: its child
EVERY_PROTOCOL = 1 << 16 | socket.htons(3)  # of a filter: priority 1, ETH_P_ALL
STOLEN, REDIRECT = 4, 1  # TC_ACT_STOLEN, TCA_EGRESS_REDIR
ETHERNET = 1  # TC_LINKLAYER_ETHERNET
TICK_NS = 64  # of tbf's tokens
ROUNDING = 1e-5  # of a time that the kernel computes from a rate by a multiplication
MODULES = ("ifb", "sch_ingress", "cls_matchall", "act_mirred", "sch_tbf")

_LINK = struct.Struct("@BBHiII")  # struct ifinfomsg
_QDISC = struct.Struct("@BBHiIII")  # struct tcmsg
_TBF = struct.Struct("@BBHhHI12xIII")  # struct tc_tbf_qopt: rate, no peak rate, limit, buffer, mtu
_RED = struct.Struct("@IIIBBBB")  # struct tc_red_qopt
_MIRRED = struct.Struct("@IIiiiiI")  # struct tc_mirred
IFLA_IFNAME, IFLA_LINKINFO, IFLA_INFO_KIND, IFF_UP = 3, 18, 1, 1
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_TBF_PARMS, TCA_TBF_RATE64, TCA_TBF_BURST = 1, 4, 6
TCA_RED_PARMS, TCA_RED_STAB, TCA_RED_MAX_P = 1, 2, 3
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8
TCA_MATCHALL_ACT, TCA_ACT_KIND, TCA_ACT_OPTIONS, TCA_MIRRED_PARMS = 2, 1, 2, 2
CAKE_TINS, CAKE_MARKED, CAKE_AVERAGE_US = 10, 8, 19  # TCA_CAKE_STATS_TIN_STATS, TCA_CAKE_TIN_STATS_...
RED_STRUCT = ("limit", "qth_min", "qth_max", "wlog", "plog", "scell_log", "flags")
NUMBERS: Mapping[str, Mapping[str, int]] = {  # discipline -> setting -> its attribute: 32 bits, or 64 by its name
    "fq_codel": {"target": 1, "limit": 2, "interval": 3, "ecn": 4, "flows": 5, "quantum": 6, "memory_limit": 9},
    "pie": {"target": 1, "limit": 2, "ecn": 6, "bytemode": 7},
    "cake": {
        "base_rate64": 2, "diffserv_mode": 3, "flow_mode": 5, "rtt": 7, "target": 8, "autorate": 9, "wash": 13,
        "ingress": 15, "ack_filter": 16,
    },
}  # fmt: skip
# Where a discipline's own statistics have the packets that it marked: an offset, in 32-bit words.
MARKS_AT = {"fq_codel": 3, "red": 3, "pie": 9}
POKE = bytes(12) + b"\x88\xb5" + bytes(2)  # without a receiver, of an EtherType for experiments (IEEE 802)
ABSENT = {errno.ENOENT, errno.EINVAL, errno.ENODEV}


class BottleneckRefused(ValueError):
    """The kernel reads back something else than the bottleneck that was requested."""

    def __init__(self, device: str, what: str, asked: Any, got: Any) -> None:
        super().__init__(f"bottleneck on {device}: requested {what} = {asked}, the kernel reads back {got}")


def attribute(kind: int, content: bytes) -> bytes:
    """Encode a netlink attribute, padded."""
    return struct.pack("@HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


class Poke:
    """Frames that make the tbf of a device look whether it may send: a change of its rate does not.

    They wait in its queue like others, and the device drops them: `passed` and `dropped` were counted there too.
    """

    def __init__(self, device: str) -> None:
        self.passed = self.dropped = 0
        self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._packets.bind((device, 0))

    def send(self) -> None:
        """Send one; also one that the queue drops makes tbf look."""
        try:
            self._packets.send(POKE)
            self.passed += 1
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            self.dropped += 1

    def close(self) -> None:
        """Send no more."""
        self._packets.close()

    def without(self, counters: QueueCounters) -> QueueCounters:
        """The counters of the queue as if there had been none."""
        return replace(
            counters, packets=counters.packets - self.passed, bytes=counters.bytes - self.passed * len(POKE),
            drops=counters.drops - self.dropped,
        )  # fmt: skip


class Bottleneck:
    """Bottlenecks of the network namespace in which this object was made, through one netlink socket."""

    def __init__(self, load_modules: Callable[[Iterable[str]], None] = load) -> None:
        self._route, self._load = Netlink(), load_modules

    def close(self) -> None:
        """Close the socket; bottlenecks stay."""
        self._route.close()

    def apply(self, port: str, device: str, link: Link) -> QueueState:
        """Make `device` the bottleneck of frames that come in at `port`, and read it back.

        Raises BottleneckRefused if something differs, and OSError with the kernel's words if it refuses.
        """
        assert link.queue
        assert link.rate
        queue, rate_bps = link.queue, link.rate.rate_bps
        self._load((*MODULES, f"sch_{discipline(queue)}"))
        self.clear(port, device)
        try:
            self._make(device)
            self._shape(socket.if_nametoindex(device), queue, rate_bps)
            self._redirect(socket.if_nametoindex(port), socket.if_nametoindex(device))
        except OSError as error:
            raise OSError(error.errno, f"bottleneck on {device}: {error.strerror}") from error
        state = self.read(port, device, queue)
        if state is None:
            raise BottleneckRefused(device, "qdiscs and redirection", discipline(queue), None)
        _compare(device, (state.rate_bps, state.tokens_ns), rate_bps, has_tokens=not isinstance(queue, Cake))
        for name, wanted in kept(queue, settings_of(queue, rate_bps)).items():
            if state.settings[name] != wanted:
                raise BottleneckRefused(device, name, wanted, state.settings[name])
        return state

    def clear(self, port: str, device: str) -> None:
        """Remove the bottleneck, if there is one: frames that wait in it are lost."""
        head = _QDISC.pack(0, 0, 0, socket.if_nametoindex(port), INGRESS_HANDLE, INGRESS, 0)
        self._remove(RTM_DELQDISC, head)
        self._remove(RTM_DELLINK, bytes(_LINK.size) + attribute(IFLA_IFNAME, device.encode() + b"\0"))

    def _remove(self, kind: int, payload: bytes) -> None:
        try:
            self._route.ask(kind, NLM_F_ACK, payload)
        except OSError as error:
            if error.errno not in ABSENT:
                raise

    def _make(self, device: str) -> None:
        name = attribute(IFLA_IFNAME, device.encode() + b"\0")
        kind = attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, b"ifb"))
        self._route.ask(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE_NEW, bytes(_LINK.size) + name + kind)
        interface.turn_ipv6_off(device)  # before it is up: discovery would send packets
        up = _LINK.pack(0, 0, 0, socket.if_nametoindex(device), IFF_UP, IFF_UP)
        self._route.ask(RTM_NEWLINK, NLM_F_ACK, up)

    def _shape(self, index: int, queue: Queue, rate_bps: int) -> None:
        kind, options = discipline(queue), _options(queue, settings_of(queue, rate_bps), rate_bps)
        if isinstance(queue, Cake):
            self._add(index, HANDLE, ROOT, kind, options)
            return
        self._add(index, HANDLE, ROOT, "tbf", _tbf(rate_bps))
        self._add(index, CHILD_HANDLE, CLASS, kind, options)

    def _redirect(self, port: int, device: int) -> None:
        self._add(port, INGRESS_HANDLE, INGRESS, "ingress", b"")
        mirred = attribute(TCA_MIRRED_PARMS, _MIRRED.pack(0, 0, STOLEN, 0, 0, REDIRECT, device))
        action = attribute(1, attribute(TCA_ACT_KIND, b"mirred\0") + attribute(TCA_ACT_OPTIONS, mirred))
        head = _QDISC.pack(0, 0, 0, port, 0, INGRESS_HANDLE, EVERY_PROTOCOL)
        options = attribute(TCA_OPTIONS, attribute(TCA_MATCHALL_ACT, action))
        payload = head + attribute(TCA_KIND, b"matchall\0") + options
        self._route.ask(RTM_NEWTFILTER, NLM_F_ACK | NLM_F_CREATE_NEW, payload)

    def _add(
        self, index: int, handle: int, parent: int, kind: str, options: bytes, flags: int = NLM_F_CREATE_NEW
    ) -> None:
        head = _QDISC.pack(0, 0, 0, index, handle, parent, 0)
        payload = head + attribute(TCA_KIND, kind.encode() + b"\0") + attribute(TCA_OPTIONS, options)
        self._route.ask(RTM_NEWQDISC, NLM_F_ACK | flags, payload)

    def change(self, device: str, queue: Queue, rate_bps: int, bucket_bytes: int | None = None) -> None:
        """Change the rate in place: the queue keeps its packets and counters, and the bucket of tokens is full again.

        `bucket_bytes`: its new size; None: as `apply` has it. A timer of tbf's that is set stays as it is: after a slow
        rate `Poke.send` makes it look.
        """
        limit = queue.packets if isinstance(queue, Fifo) else 0  # which tbf_change gives to a child that is a pfifo
        self._add(socket.if_nametoindex(device), HANDLE, ROOT, "tbf", _tbf(rate_bps, bucket_bytes, limit), flags=0)

    def check(self, device: str, rate_bps: int) -> None:
        """Raise BottleneckRefused if a rate that was changed does not read back as requested."""
        _compare(device, self.rate(device), rate_bps)

    def rate(self, device: str) -> tuple[int, int]:
        """The rate in bit/s of a bottleneck with tbf, and the time in ns that its tokens last."""
        root = self._qdisc(socket.if_nametoindex(device), HANDLE, "tbf")
        return _shaper("tbf", {}, root[TCA_OPTIONS]) if root else (0, 0)

    def counters(self, device: str, queue: Queue) -> QueueCounters:
        """The counters of the queue of a bottleneck with tbf. Raises OSError if it is gone."""
        kind = discipline(queue)
        child = self._qdisc(socket.if_nametoindex(device), CHILD_HANDLE, kind)
        if child is None:
            raise OSError(errno.ENOENT, f"bottleneck on {device}: its {kind} is gone")
        return _counted(kind, attributes(child[TCA_STATS2]))[0]

    def read(self, port: str, device: str, queue: Queue) -> QueueState | None:
        """The bottleneck as the kernel reports it now; None if something else has taken its place."""
        with suppress(OSError):
            index = socket.if_nametoindex(device)
            if self._targets(socket.if_nametoindex(port)) != [(STOLEN, REDIRECT, index)]:
                return None
            kind = discipline(queue)
            root = self._qdisc(index, HANDLE, "cake" if isinstance(queue, Cake) else "tbf")
            child = root if isinstance(queue, Cake) else self._qdisc(index, CHILD_HANDLE, kind)
            if root is None or child is None:
                return None
            settings = _settings(kind, child[TCA_OPTIONS])
            counters, delay_s = _counted(kind, attributes(child[TCA_STATS2]))
            rate_bps, tokens_ns = _shaper(kind, settings, root[TCA_OPTIONS])
            return QueueState(kind, settings, rate_bps, tokens_ns, counters, delay_s)
        return None

    def _qdisc(self, index: int, handle: int, kind: str) -> dict[int, bytes] | None:
        head = _QDISC.pack(0, 0, 0, index, handle, 0, 0)
        for answer in self._route.ask(RTM_GETQDISC, NLM_F_ACK | NLM_F_ECHO, head):
            found = attributes(answer[_QDISC.size :])
            if found[TCA_KIND].rstrip(b"\0").decode() == kind:
                return found
        return None

    def _targets(self, port: int) -> list[tuple[int, int, int]]:
        """The actions of the filters at a port's ingress: what becomes of a frame, how it goes on, and where to."""
        found = []
        head = _QDISC.pack(0, 0, 0, port, 0, INGRESS_HANDLE, 0)
        for answer in self._route.ask(RTM_GETTFILTER, NLM_F_DUMP, head):
            options = attributes(attributes(answer[_QDISC.size :]).get(TCA_OPTIONS, b""))
            for action in attributes(options.get(TCA_MATCHALL_ACT, b"")).values():
                mirred = attributes(attributes(action).get(TCA_ACT_OPTIONS, b"")).get(TCA_MIRRED_PARMS)
                if mirred:
                    _, _, verdict, _, _, way, target = _MIRRED.unpack_from(mirred)
                    found.append((verdict, way, target))
        return found


def _compare(device: str, read: tuple[int, int], rate_bps: int, *, has_tokens: bool = True) -> None:
    """Raise BottleneckRefused if rate and time of tokens read back otherwise."""
    if read[0] != rate_bps:
        raise BottleneckRefused(device, "rate", rate_bps, read[0])
    tokens_ns = tokens_bytes(rate_bps) * 8e9 / rate_bps if has_tokens else 0.0
    if abs(read[1] - tokens_ns) > 2 * TICK_NS + ROUNDING * tokens_ns:
        raise BottleneckRefused(device, "time of tokens in ns", round(tokens_ns), read[1])


def _tbf(rate_bps: int, bucket_bytes: int | None = None, limit: int = 0) -> bytes:
    """The options of tbf; its mtu is only used with a peak rate, its limit by the child that replaces its own."""
    rate = rate_bps // 8
    parameters = _TBF.pack(0, ETHERNET, 0, 0, 0, min(rate, 2**32 - 1), limit, 0, 0)
    wide = attribute(TCA_TBF_RATE64, struct.pack("@Q", rate)) if rate >= 2**32 else b""
    burst = attribute(TCA_TBF_BURST, struct.pack("@I", bucket_bytes or tokens_bytes(rate_bps)))
    return attribute(TCA_TBF_PARMS, parameters) + wide + burst


def _shaper(kind: str, settings: Settings, options: bytes) -> tuple[int, int]:
    """The rate in bit/s, and the time in ns that tbf's tokens last (0: cake has none)."""
    if kind == "cake":
        return settings["base_rate64"] * 8, 0
    found = attributes(options)
    *_, rate, _, ticks, _ = _TBF.unpack_from(found[TCA_TBF_PARMS])
    if TCA_TBF_RATE64 in found:
        (rate,) = struct.unpack("@Q", found[TCA_TBF_RATE64])
    return rate * 8, ticks * TICK_NS


def _options(queue: Queue, settings: Settings, rate_bps: int) -> bytes:
    """The value of TCA_OPTIONS for a queue."""
    kind = discipline(queue)
    if isinstance(queue, Red):
        _, table = red_idle(queue.weight_log, rate_bps)
        parameters = attribute(TCA_RED_PARMS, _RED.pack(*(settings[name] for name in RED_STRUCT)))
        chance = attribute(TCA_RED_MAX_P, struct.pack("@I", settings["max_p"]))
        return parameters + attribute(TCA_RED_STAB, table) + chance
    if kind == "pfifo":
        return struct.pack("@I", settings["limit"])
    return b"".join(
        attribute(NUMBERS[kind][name], struct.pack("@Q" if name.endswith("64") else "@I", value))
        for name, value in settings.items()
    )


def _settings(kind: str, options: bytes) -> Settings:
    """The settings in TCA_OPTIONS, by the names that `settings_of` has; an unreported one is -1."""
    if kind == "pfifo":
        return {"limit": struct.unpack_from("@I", options)[0]}
    found = attributes(options)
    if kind == "red":
        settings = dict(zip(RED_STRUCT, _RED.unpack_from(found[TCA_RED_PARMS]), strict=True))
        return {**settings, "max_p": struct.unpack("@I", found[TCA_RED_MAX_P])[0]}
    return {
        name: struct.unpack("@Q" if name.endswith("64") else "@I", found[number])[0] if number in found else -1
        for name, number in NUMBERS[kind].items()
    }


def _counted(kind: str, statistics: Mapping[int, bytes]) -> tuple[QueueCounters, float | None]:
    """The counters in TCA_STATS2, and how long packets waited lately, if the discipline reports it."""
    size_bytes, packets = struct.unpack_from("@QI", statistics[TCA_STATS_BASIC])
    if TCA_STATS_PKT64 in statistics:
        (packets,) = struct.unpack("@Q", statistics[TCA_STATS_PKT64])
    waiting, waiting_bytes, drops, _, _ = struct.unpack_from("@IIIII", statistics[TCA_STATS_QUEUE])
    marks, delay_s, own = 0, None, statistics.get(TCA_STATS_APP, b"")
    if kind == "cake":
        tin = attributes(attributes(attributes(own)[CAKE_TINS])[1])
        (marks,) = struct.unpack("@I", tin[CAKE_MARKED])
        delay_s = struct.unpack("@I", tin[CAKE_AVERAGE_US])[0] / 1e6
    elif kind in MARKS_AT and own:
        (marks,) = struct.unpack_from("@I", own, 4 * MARKS_AT[kind])
    if kind == "pie" and own:
        delay_s = struct.unpack_from("@I", own, 8)[0] / 1e6
    return QueueCounters(packets, size_bytes, drops, marks, waiting, waiting_bytes), delay_s
