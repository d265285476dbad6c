"""Snapshot of everything on this host that routes, queues or filters packets, as short texts to be compared.

Read from the kernel directly (linux/rtnetlink.h, linux/if_link.h, linux/ethtool.h): every trial pays for it on each
host. State that packets change as they pass, statistics and caches, is left out. Filters need no separate dump:
each is attached to a queueing discipline that supports filters, and neither noqueue nor netem does.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

from impair import kept
from impair.firewall import NOT_THERE, firewall, listed
from impair.netlink import NLM_F_DUMP, Netlink, attributes
from impair.processors import limits

RTM_GETLINK, RTM_GETROUTE, RTM_GETNEIGH, RTM_GETRULE, RTM_GETQDISC = 18, 26, 30, 34, 38
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_QDISC, IFLA_MASTER, IFLA_EXT_MASK, IFLA_XDP = 1, 3, 4, 6, 10, 29, 43
RTEXT_FILTER_SKIP_STATS = 8
IFF_UP, IFF_LOWER_UP = 1, 1 << 16
RTA_DST, RTA_OIF, RTA_METRICS, RTA_CACHEINFO, RTM_F_CLONED = 1, 4, 8, 12, 0x200
RTAX_CC_ALGO = 16
NDA_DST, NDA_LLADDR, NUD_PERMANENT = 1, 2, 0x80
TCA_KIND, TCA_OPTIONS = 1, 2
SIOCETHTOOL, ETHTOOL_GFEATURES, FEATURE_BLOCKS = 0x8946, 0x3A, 4  # 32 features in a block; kernel 7 has three
ROOT, SYSCTLS = "/", "/proc/sys/net"
SYSCTL_NAMES = ("ipv4/ip_forward", "ipv4/tcp_no_metrics_save", "ipv6/conf/all/disable_ipv6")
# Defaults of a new network namespace, independent of the host's (net/ipv4/tcp_ipv4.c, tcp_sk_init), since 5.4.
TRANSPORT_DEFAULTS = {
    "tcp_sack": "1", "tcp_dsack": "1", "tcp_window_scaling": "1", "tcp_timestamps": "1", "tcp_moderate_rcvbuf": "1",
    "tcp_slow_start_after_idle": "1", "tcp_frto": "2", "tcp_recovery": "1", "tcp_early_retrans": "3",
    "tcp_reordering": "3", "tcp_max_reordering": "300", "tcp_retries2": "15", "tcp_syn_retries": "6",
    "tcp_synack_retries": "5", "tcp_mtu_probing": "0", "tcp_min_snd_mss": "48", "tcp_autocorking": "1",
    "tcp_notsent_lowat": "4294967295", "tcp_thin_linear_timeouts": "0", "tcp_pacing_ss_ratio": "200",
    "tcp_pacing_ca_ratio": "120", "tcp_app_win": "31", "tcp_retrans_collapse": "1", "ip_no_pmtu_disc": "0",
    "ip_default_ttl": "64",
}  # fmt: skip
# ... and what depends on the host or is the lab's to set, and must not change while it measures.
TRANSPORT = (
    *(f"ipv4/{name}" for name in TRANSPORT_DEFAULTS),
    "ipv4/tcp_rmem", "ipv4/tcp_wmem", "ipv4/tcp_mem", "ipv4/udp_mem", "ipv4/tcp_ecn", "ipv4/tcp_congestion_control",
    "ipv4/tcp_limit_output_bytes", "ipv4/tcp_adv_win_scale", "ipv4/tcp_min_tso_segs", "ipv4/tcp_fastopen",
)  # fmt: skip
# Programs that determine a trial's speed, besides the kernel: if one of these files changes, so does the experiment.
PROGRAMS = (
    "usr/local/bin", "usr/local/bin/h2load", "usr/local/bin/h2load-as-shipped", "usr/sbin/nginx",
    "opt/headwind/nginx", "opt/headwind/nginx/nginx.conf",
    "srv/headwind", "srv/headwind/index.html", "etc", "etc/ld.so.preload",
)  # fmt: skip
FURTHER_PROGRAMS = Path(__file__).parent.parent / "servers"  # <name>/programs: the same of the server in this image
TC_H_ROOT = 0xFFFFFFFF

_LINK = struct.Struct("@BBHiII")  # ifinfomsg: family, padding, type, index, flags, change
_NEIGHBOUR = struct.Struct("@BBHiHBB")  # ndmsg: family, padding, padding, index, state, flags, type
_QDISC = struct.Struct("@BBHiIII")  # tcmsg: family, padding, padding, index, handle, parent, info
ROUTE_BYTES, _ROUTE_FLAGS_AT = 12, 8  # rtmsg


def fingerprint(*, roots: bool = True, transport: bool = True) -> dict[str, str]:
    """{topic: text}: links, routes, rules, neighbours, qdiscs, firewall, offloads, sysctls, limits and programs.

    "congestion" is what routes say of TCP's congestion control, apart from "routes", because arms change it. Equal
    texts mean that the topic is as it was. Without `roots` the interfaces' own queueing disciplines are left out: those
    of a router are replaced for every trial. Without `transport` TCP's settings are, which a router does not need.
    Raises OSError without the capability NET_ADMIN.
    """
    with Netlink() as sock:
        links = read_links(sock)
        names = {index: _text(found[IFLA_IFNAME]) for index, (_, found) in links.items()}
        routes = list(_routes(sock))
        topics = {
            "links": listed(_link(flags, found, roots) for flags, found in links.values()),
            "routes": _digest(route for route, _ in routes),
            "congestion": listed(name for _, name in routes if name),
            "rules": _digest(_dump(sock, RTM_GETRULE, bytes([socket.AF_INET]).ljust(12, b"\0"))),
            "neighbours": listed(_neighbours(sock, names)),
            "qdiscs": listed(
                f"{qdisc.device} {qdisc.kind} {qdisc.handle:x} on {qdisc.parent:x} ({qdisc.options})"
                for qdisc in read_qdiscs(sock, names)
                if roots or qdisc.parent != TC_H_ROOT
            ),
        }
    return {
        **topics,
        "firewall": listed(firewall()),
        "offloads": _offloads(names.values()),
        "sysctls": listed(_sysctls(TRANSPORT if transport else ())),
        "limits": listed(f"{name} {text}" for name, text in limits().items()),
        "programs": _digest(_programs()),
    }


def interfaces(indices: Collection[int]) -> dict[str, str]:
    """{topic: text} of some of this namespace's interfaces alone: "links" and "qdiscs". Needs no capability."""
    with Netlink() as sock:
        links = read_links(sock, indices)
        names = {index: _text(found[IFLA_IFNAME]) for index, (_, found) in links.items()}
        return {
            "links": listed(_link(flags, found, roots=True) for flags, found in links.values()),
            "qdiscs": listed(
                f"{qdisc.device} {qdisc.kind} {qdisc.handle:x} on {qdisc.parent:x} ({qdisc.options})"
                for qdisc in read_qdiscs(sock, names, indices)
            ),
        }


def _digest(entries: Iterable[bytes]) -> str:
    """Their number, and a hash of them that does not depend on their order."""
    ordered = sorted(entries)
    return f"{len(ordered)}: {blake2b(b''.join(ordered), digest_size=8).hexdigest()}" if ordered else "none"


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


def _dump(sock: Netlink, kind: int, payload: bytes) -> list[bytes]:
    """All objects of a kind; none when this kernel is built without them."""
    try:
        return sock.ask(kind, NLM_F_DUMP, payload)
    except OSError as error:
        if error.errno in NOT_THERE:
            return []
        raise


def read_links(sock: Netlink, indices: Collection[int] | None = None) -> dict[int, tuple[int, dict[int, bytes]]]:
    """{index: (flags, attributes)} of these interfaces, or of every one."""
    mask = struct.pack("@HHI", 8, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS)
    found = {}
    for message in _dump(sock, RTM_GETLINK, bytes(_LINK.size) + mask):
        _, _, _, index, flags, _ = _LINK.unpack_from(message)
        if indices is None or index in indices:
            found[index] = (flags, attributes(message[_LINK.size :]))
    return found


def _link(flags: int, found: dict[int, bytes], roots: bool) -> str:
    # LOWER_UP is the carrier at once; RUNNING follows up to a second later.
    state = "up" if flags & IFF_UP and flags & IFF_LOWER_UP else "without carrier" if flags & IFF_UP else "down"
    mtu = struct.unpack("@I", found[IFLA_MTU])[0]
    words = [_text(found[IFLA_IFNAME]), found.get(IFLA_ADDRESS, b"").hex(":"), f"mtu {mtu}", state]
    if roots:
        words.append(_text(found.get(IFLA_QDISC, b"")))
    if IFLA_MASTER in found:
        words.append(f"in {struct.unpack('@I', found[IFLA_MASTER])[0]}")
    program = attributes(found.get(IFLA_XDP, b""))
    if any(b"".join(program.values())):  # otherwise only "nothing attached", a zero
        words.append(f"xdp {sorted(program.items())}")
    return " ".join(words)


def _routes(sock: Netlink) -> Iterator[tuple[bytes, str]]:
    """The routes of all tables with their metrics, and apart from these the congestion control, which arms set."""
    for message in _dump(sock, RTM_GETROUTE, bytes([socket.AF_INET]).ljust(ROUTE_BYTES, b"\0")):
        if struct.unpack_from("@I", message, _ROUTE_FLAGS_AT)[0] & RTM_F_CLONED:
            continue  # learned from traffic: an exception of a route, as path MTU discovery makes them
        found = attributes(message[ROUTE_BYTES:])
        found.pop(RTA_CACHEINFO, None)
        metrics = attributes(found.pop(RTA_METRICS, b""))
        congestion = _text(metrics.pop(RTAX_CC_ALGO, b""))
        yield message[:ROUTE_BYTES] + repr([*sorted(found.items()), *sorted(metrics.items())]).encode(), congestion


def _neighbours(sock: Netlink, names: dict[int, str]) -> Iterator[str]:
    """The permanent neighbours; entries from ARP come and go."""
    for message in _dump(sock, RTM_GETNEIGH, bytes([socket.AF_INET]).ljust(_NEIGHBOUR.size, b"\0")):
        _, _, _, index, state, _, _ = _NEIGHBOUR.unpack_from(message)
        if state & NUD_PERMANENT:
            found = attributes(message[_NEIGHBOUR.size :])
            address = socket.inet_ntoa(found[NDA_DST])
            yield f"{address} {found.get(NDA_LLADDR, b'').hex(':')} on {names.get(index, index)}"


@dataclass(frozen=True, slots=True)
class Qdisc:
    """A queueing discipline, or a hook for filters, which the kernel keeps as one."""

    device: str
    kind: str
    handle: int
    parent: int
    options: str  # a digest of its settings as the kernel reports them


def read_qdiscs(sock: Netlink, names: Mapping[int, str], indices: Collection[int] | None = None) -> Iterator[Qdisc]:
    """Every one of these interfaces, or of this network namespace; `names` are the interfaces by index."""
    for message in _dump(sock, RTM_GETQDISC, bytes(_QDISC.size)):
        _, _, _, index, handle, parent, _ = _QDISC.unpack_from(message)
        if indices is not None and index not in indices:
            continue
        found = attributes(message[_QDISC.size :])
        options = _digest([found[TCA_OPTIONS]]) if found.get(TCA_OPTIONS) else "no options"
        yield Qdisc(names.get(index, str(index)), _text(found[TCA_KIND]), handle, parent, options)


def _offloads(names: Iterable[str]) -> str:
    """The active features of each interface, as the kernel's bits."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return listed(f"{name} {_features(sock, name)}" for name in names)


def _features(sock: socket.socket, name: str) -> str:
    answer = array.array("I", [ETHTOOL_GFEATURES, FEATURE_BLOCKS, *([0] * 4 * FEATURE_BLOCKS)])
    address, _ = answer.buffer_info()
    fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("@16sP16x", name.encode(), address))
    active = answer[4::4]  # each block is: available, requested, active, never changed
    return "".join(f"{block:08x}" for block in reversed(active))


def _sysctls(more: Iterable[str]) -> Iterator[str]:
    for name in (*SYSCTL_NAMES, *more):
        yield f"{name.replace('/', '.')}={setting(name)}"


def setting(name: str) -> str:
    """A setting below net, such as `ipv4/tcp_rmem`; "none" if this kernel lacks it."""
    try:
        return " ".join(kept.read(f"{SYSCTLS}/{name}").split())
    except FileNotFoundError:
        return "none"


@cache
def _watched() -> tuple[str, ...]:
    """PROGRAMS, and those of the image's server with the folder that lists them: paths below ROOT."""
    lists = sorted(FURTHER_PROGRAMS.glob("*/programs"))
    folders = [str(path.parent).removeprefix(ROOT) for path in lists]
    return (*PROGRAMS, *folders, *(name for path in lists for name in path.read_text().split()))


def _programs() -> Iterator[bytes]:
    """The identity of each watched file, and its time of last change (ctime), which cannot be set back."""
    for name in _watched():
        with suppress(FileNotFoundError):
            status = os.stat(f"{ROOT}{name}")  # noqa: PTH116 - in every trial
            yield f"{name} {status.st_ino} {status.st_size} {status.st_ctime_ns}".encode()
