"""What decides which way packets take on this host, and what becomes of them, as short texts that can be compared.

Read from the kernel directly (linux/rtnetlink.h, linux/if_link.h, linux/netfilter/nf_tables.h, linux/ethtool.h):
every trial pays for it twice on each host. What packets change as they pass, statistics and caches, is left out.
"""

from __future__ import annotations

import array
import errno
import fcntl
import socket
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from impair.leftovers import NLM_F_ACK, NLM_F_DUMP, ask, attributes

NETLINK_NETFILTER = 12
RTM_GETLINK, RTM_GETROUTE, RTM_GETNEIGH, RTM_GETRULE, RTM_GETQDISC = 18, 26, 30, 34, 38
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_QDISC, IFLA_EXT_MASK, IFLA_XDP = 1, 3, 4, 6, 29, 43
RTEXT_FILTER_SKIP_STATS = 8
IFF_UP, IFF_LOWER_UP = 1, 1 << 16
RTA_CACHEINFO, RTM_F_CLONED = 12, 0x200
NDA_DST, NDA_LLADDR, NUD_PERMANENT = 1, 2, 0x80
TCA_KIND, TCA_OPTIONS = 1, 2
NFT_MSG_GETTABLE, NFT_MSG_GETGEN = 10 << 8 | 1, 10 << 8 | 16  # 10: NFNL_SUBSYS_NFTABLES
NFTA_TABLE_NAME, NFTA_GEN_ID = 1, 1
SIOCETHTOOL, ETHTOOL_GFEATURES, FEATURE_BLOCKS = 0x8946, 0x3A, 4  # 32 features in a block; kernel 7 has three
NOT_THERE = (errno.EOPNOTSUPP, errno.ENOENT, errno.EINVAL, errno.EPROTONOSUPPORT)  # a kernel without the subsystem
MODULES = Path("/proc/modules")
LEGACY_TABLES = Path("/proc/net/ip_tables_names")
SYSCTLS = Path("/proc/sys/net")
SYSCTL_NAMES = ("ipv4/ip_forward", "ipv4/tcp_no_metrics_save", "ipv6/conf/all/disable_ipv6")

_LINK = struct.Struct("@BBHiII")  # ifinfomsg: family, padding, type, index, flags, change
_NEIGHBOUR = struct.Struct("@BBHiHBB")  # ndmsg: family, padding, padding, index, state, flags, type
_QDISC = struct.Struct("@BBHiIII")  # tcmsg: family, padding, padding, index, handle, parent, info
_ROUTE_BYTES, _ROUTE_FLAGS_AT = 12, 8  # rtmsg


def fingerprint(*, queueing: bool = True) -> dict[str, str]:
    """{topic: text}: links, routes, rules, neighbours, firewall, offloads, sysctls and, with `queueing`, qdiscs.

    Equal texts mean that the topic is as it was. Without `queueing` no queueing discipline is told, neither by itself
    nor as a link's: those of a router are replaced for every trial. Raises OSError without the capability NET_ADMIN.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        links = _read_links(sock)
        names = {index: _text(found[IFLA_IFNAME]) for index, (_, found) in links.items()}
        told = {
            "links": _listed(_link(flags, found, queueing) for flags, found in links.values()),
            "routes": _digest(_routes(sock)),
            "rules": _digest(_dump(sock, RTM_GETRULE, bytes([socket.AF_INET]).ljust(12, b"\0"))),
            "neighbours": _listed(_neighbours(sock, names)),
        }
        if queueing:
            told["qdiscs"] = _listed(_qdiscs(sock, names))
    return {
        **told,
        "firewall": _listed((*_nftables(), *_legacy_tables())),
        "offloads": _offloads(names.values()),
        "sysctls": _listed(_sysctls()),
    }


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words)) or "none"


def _digest(entries: Iterable[bytes]) -> str:
    """How many there are, and a hash of them that does not depend on their order."""
    ordered = sorted(entries)
    return f"{len(ordered)}: {blake2b(b''.join(ordered), digest_size=8).hexdigest()}" if ordered else "none"


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


def _dump(sock: socket.socket, kind: int, payload: bytes) -> list[bytes]:
    """All objects of a kind; none when this kernel is built without them."""
    try:
        return ask(sock, kind, NLM_F_DUMP, payload)
    except OSError as error:
        if error.errno in NOT_THERE:
            return []
        raise


def _read_links(sock: socket.socket) -> dict[int, tuple[int, dict[int, bytes]]]:
    """{index: (flags, attributes)} of every interface."""
    mask = struct.pack("@HHI", 8, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS)
    found = {}
    for message in _dump(sock, RTM_GETLINK, bytes(_LINK.size) + mask):
        _, _, _, index, flags, _ = _LINK.unpack_from(message)
        found[index] = (flags, attributes(message[_LINK.size :]))
    return found


def _link(flags: int, found: dict[int, bytes], queueing: bool) -> str:
    # LOWER_UP is the carrier at once; RUNNING follows up to a second later.
    state = "up" if flags & IFF_UP and flags & IFF_LOWER_UP else "without carrier" if flags & IFF_UP else "down"
    mtu = struct.unpack("@I", found[IFLA_MTU])[0]
    words = [_text(found[IFLA_IFNAME]), found.get(IFLA_ADDRESS, b"").hex(":"), f"mtu {mtu}", state]
    if queueing:
        words.append(_text(found.get(IFLA_QDISC, b"")))
    program = attributes(found.get(IFLA_XDP, b""))
    if any(b"".join(program.values())):  # otherwise only "nothing attached", a zero
        words.append(f"xdp {sorted(program.items())}")
    return " ".join(words)


def _routes(sock: socket.socket) -> Iterator[bytes]:
    """The routes of all tables, with their metrics."""
    for message in _dump(sock, RTM_GETROUTE, bytes([socket.AF_INET]).ljust(_ROUTE_BYTES, b"\0")):
        if struct.unpack_from("@I", message, _ROUTE_FLAGS_AT)[0] & RTM_F_CLONED:
            continue  # learned from traffic: an exception of a route, as path MTU discovery makes them
        found = attributes(message[_ROUTE_BYTES:])
        found.pop(RTA_CACHEINFO, None)
        yield message[:_ROUTE_BYTES] + repr(sorted(found.items())).encode()


def _neighbours(sock: socket.socket, names: dict[int, str]) -> Iterator[str]:
    """The permanent neighbours; those that ARP finds come and go."""
    for message in _dump(sock, RTM_GETNEIGH, bytes([socket.AF_INET]).ljust(_NEIGHBOUR.size, b"\0")):
        _, _, _, index, state, _, _ = _NEIGHBOUR.unpack_from(message)
        if state & NUD_PERMANENT:
            found = attributes(message[_NEIGHBOUR.size :])
            address = socket.inet_ntoa(found[NDA_DST])
            yield f"{address} {found.get(NDA_LLADDR, b'').hex(':')} on {names.get(index, index)}"


def _qdiscs(sock: socket.socket, names: dict[int, str]) -> Iterator[str]:
    for message in _dump(sock, RTM_GETQDISC, bytes(_QDISC.size)):
        _, _, _, index, handle, parent, _ = _QDISC.unpack_from(message)
        found = attributes(message[_QDISC.size :])
        options = _digest([found[TCA_OPTIONS]]) if found.get(TCA_OPTIONS) else "no options"
        yield f"{names.get(index, index)} {_text(found[TCA_KIND])} {handle:x} on {parent:x} ({options})"


def _nftables() -> list[str]:
    """The tables, and the number of the rule set's generation: it grows with every change, also one taken back."""
    loaded = (
        frozenset(line.split()[0] for line in MODULES.read_text().splitlines()) if MODULES.exists() else frozenset()
    )
    if not _has_nftables(loaded):
        return []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as sock:
        tables = [_text(attributes(message[4:])[NFTA_TABLE_NAME])
                  for message in ask(sock, NFT_MSG_GETTABLE, NLM_F_DUMP, bytes(4))]  # fmt: skip
        return [*(f"nft {name}" for name in tables), f"nft generation {_generation(sock)}"]


@lru_cache(maxsize=1)
def _has_nftables(modules: frozenset[str]) -> bool:  # noqa: ARG001 - the key of the cache
    """Asked once for the same loaded modules: a kernel that has not got it starts modprobe each time, for 10 ms."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as sock:
            return _generation(sock) > 0
    except OSError as error:
        if error.errno in NOT_THERE:
            return False
        raise


def _generation(sock: socket.socket) -> int:
    answer = ask(sock, NFT_MSG_GETGEN, NLM_F_ACK, bytes(4))[0]
    return int.from_bytes(attributes(answer[4:])[NFTA_GEN_ID])


def _legacy_tables() -> list[str]:
    return [f"legacy {name}" for name in LEGACY_TABLES.read_text().split()] if LEGACY_TABLES.exists() else []


def _offloads(names: Iterable[str]) -> str:
    """The active features of each interface, as the kernel's bits."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return _listed(f"{name} {_features(sock, name)}" for name in names)


def _features(sock: socket.socket, name: str) -> str:
    answer = array.array("I", [ETHTOOL_GFEATURES, FEATURE_BLOCKS, *([0] * 4 * FEATURE_BLOCKS)])
    address, _ = answer.buffer_info()
    fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("@16sP16x", name.encode(), address))
    active = answer[4::4]  # each block is: available, requested, active, never changed
    return "".join(f"{block:08x}" for block in reversed(active))


def _sysctls() -> Iterator[str]:
    for name in SYSCTL_NAMES:
        path = SYSCTLS / name
        yield f"{name.replace('/', '.')}={path.read_text().strip() if path.exists() else 'none'}"
