"""Finds deviations of a testbed's host from a plain one: queues, routes, rules, filters, settings.

Only facts of the kernel are compared, so nothing here depends on which protocol will be measured.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator

from impair import fingerprint as read
from impair.firewall import foreign_rules
from impair.interface import MTU_BYTES
from impair.netlink import NLM_F_DUMP, Netlink, attributes
from impair.processors import limits

LOOPBACK, NO_QUEUE = "lo", "noqueue"
# Queues that kernels give a new interface by default (net.core.default_qdisc), and the lab's own. The user-mode
# kernel's interfaces need one; every trial puts netem in its place.
ROUTERS_QUEUES = (NO_QUEUE, "pfifo_fast", "fq_codel", "fq", "pfifo", "netem")
RTM_GETRULE, RTM_GETROUTE = read.RTM_GETRULE, read.RTM_GETROUTE
FRA_PRIORITY = 6
RULES = {0: 255, 32766: 254, 32767: 253}  # priority -> table: local, main, default
RTA_METRICS, RTA_TABLE, RTA_ENCAP_TYPE, RTAX_CC_ALGO = 8, 15, 21, 16
UNICAST, LOCAL, BROADCAST, ANYCAST = 1, 2, 3, 4  # types of routes


def deviations(ports: Collection[str], networks: Collection[str], *, endpoint: bool) -> list[str]:
    """Deviations of this host from a plain testbed, as text; `ports` are the interfaces in the path.

    An endpoint's ports have no queue; a router's have the kernel's default, or the lab's netem. Routes lead to
    `networks` (CIDR) and, from a router, out of it. Raises OSError without the capability NET_ADMIN.
    """
    with Netlink() as sock:
        links = read.read_links(sock)
        names = {index: found[read.IFLA_IFNAME].rstrip(b"\0").decode() for index, (_, found) in links.items()}
        queues = (NO_QUEUE,) if endpoint else ROUTERS_QUEUES
        found = [
            *_links(links, names, ports),
            *(_queue(qdisc) for qdisc in read.read_qdiscs(sock, names)
              if qdisc.parent != read.TC_H_ROOT or qdisc.kind not in (queues if qdisc.device in ports else (NO_QUEUE,))
              if qdisc.device in (LOOPBACK, *ports)),
            *_rules(sock),
            *_routes(sock, names, networks if endpoint else (*networks, "0.0.0.0/0")),
        ]  # fmt: skip
    if (quota := limits()["quota"]) != "none":
        found.append(f"a quota of CPU time ({quota}): `docker update --cpu-quota -1`")
    return [*found, *foreign_rules(), *(_settings() if endpoint else ())]


def _links(
    links: dict[int, tuple[int, dict[int, bytes]]], names: dict[int, str], ports: Collection[str]
) -> Iterator[str]:
    for index, (flags, found) in links.items():
        name = names[index]
        if name != LOOPBACK and name not in ports and flags & read.IFF_UP:
            yield f"a further interface, {name}, that is up"
        if name not in ports:
            continue
        (mtu,) = struct.unpack("@I", found[read.IFLA_MTU])
        if mtu != MTU_BYTES:
            yield f"{name} with an MTU of {mtu} instead of {MTU_BYTES}"
        if read.IFLA_MASTER in found:
            yield f"{name} as a part of another interface (ip -d link)"
        if any(b"".join(attributes(found.get(read.IFLA_XDP, b"")).values())):
            yield f"{name} with an XDP program (`ip link set dev {name} xdp off`)"


def odd_interfaces(indices: Collection[int]) -> list[str]:
    """Deviations of some interfaces of this host, the containers' far ends, as text."""
    with Netlink() as sock:
        links = {index: link for index, link in read.read_links(sock).items() if index in indices}
        for _, found in links.values():
            found.pop(read.IFLA_MASTER, None)  # the bridge
        names = {index: found[read.IFLA_IFNAME].rstrip(b"\0").decode() for index, (_, found) in links.items()}
        queues = [
            _queue(qdisc)
            for qdisc in read.read_qdiscs(sock, names)
            if qdisc.device in names.values() and (qdisc.kind != NO_QUEUE or qdisc.parent != read.TC_H_ROOT)
        ]
        return [*_links(links, names, list(names.values())), *queues]


def _queue(qdisc: read.Qdisc) -> str:
    kind = "filters at the hook" if qdisc.kind in ("ingress", "clsact") else "the queueing discipline"
    where = "root" if qdisc.parent == read.TC_H_ROOT else qdisc.kind if qdisc.kind in ("ingress", "clsact") else "child"
    return f"{qdisc.device} with {kind} {qdisc.kind} (`tc qdisc del dev {qdisc.device} {where}`)"


def _rules(sock: Netlink) -> Iterator[str]:
    """Routing rules other than the three of every network namespace."""
    left = dict(RULES)
    for message in sock.ask(RTM_GETRULE, NLM_F_DUMP, bytes([socket.AF_INET]).ljust(12, b"\0")):
        found = attributes(message[12:])
        priority = struct.unpack("@I", found.get(FRA_PRIORITY, bytes(4)))[0]
        (table,) = struct.unpack("@I", found.get(RTA_TABLE, bytes(4)))
        if left.get(priority) != table:
            yield f"a routing rule with priority {priority} (`ip rule`)"
        else:
            del left[priority]
    for priority in left:
        yield f"no routing rule with priority {priority} (`ip rule`)"


def _routes(sock: Netlink, names: dict[int, str], networks: Collection[str]) -> Iterator[str]:
    """Routes to other destinations than `networks`, and those that block or have their own settings."""
    for message in sock.ask(RTM_GETROUTE, NLM_F_DUMP, bytes([socket.AF_INET]).ljust(read.ROUTE_BYTES, b"\0")):
        _, length, _, _, small_table, _, _, kind, flags = struct.unpack_from("@BBBBBBBBI", message)
        if flags & read.RTM_F_CLONED:
            continue
        found = attributes(message[read.ROUTE_BYTES :])
        table = struct.unpack("@I", found[RTA_TABLE])[0] if RTA_TABLE in found else small_table
        to = f"{socket.inet_ntoa(found.get(read.RTA_DST, bytes(4)))}/{length}"
        where = f"{to} (`ip route show table {table}`)"
        metrics = attributes(found.get(RTA_METRICS, b"")).keys() - {RTAX_CC_ALGO}
        if table not in RULES.values():
            yield f"a route in another table: {where}"
        elif kind not in (UNICAST, LOCAL, BROADCAST, ANYCAST):
            yield f"a blocking route: {where}"
        elif metrics or RTA_ENCAP_TYPE in found:
            yield f"a route with its own settings: {where}"
        elif kind == UNICAST and to not in networks:
            yield f"a route that is not the lab's: {where}"
        elif read.RTA_OIF in found and struct.unpack("@i", found[read.RTA_OIF])[0] not in names:
            yield f"a route through an unknown interface: {where}"


def _settings() -> Iterator[str]:
    for name, plain in read.TRANSPORT_DEFAULTS.items():
        if (now := read.setting(f"ipv4/{name}")) not in (plain, "none"):
            yield f"net.ipv4.{name} = {now} instead of {plain}"
