"""Compares a testbed with an unmodified one: all hosts when it starts, the path again when it ends.

All of it reads hosts or sends its own datagrams; none of it depends on a protocol.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

from headwind.errors import HeadwindError
from headwind.proof.evidence import OUTSIDE
from headwind.proof.trial_checks import DELAY_ALLOWANCE_S
from headwind.testbed.docker import docker
from headwind.testbed.operations import EXAMINE
from headwind.testbed.path import HERE, Path
from headwind.testbed.site_copy import COPY, site_deviations
from headwind.trial.probes import send
from impair.baseline import odd_interfaces
from impair.profile import FRAME_BYTES, HEADER_BYTES, Direction, Link, Profile

TRAIN_PACKETS = 2000  # each way
TRAIN_INTERVAL_S = 0.0003  # full frames: 40 Mbit/s, more than a shaper lets pass and less than any path here carries
TRAIN_PAYLOAD_BYTES = FRAME_BYTES - HEADER_BYTES
TRAIN_PATIENCE_S = 0.5
TRAIN_LOSS = 0.001  # of a train inside hosts: the machine may cause less
# A train that fails is sent again after each of these pauses: a fault that spares a later one is not the path's.
TRAIN_PAUSES_S = (0.0, 0.5, 1.0, 2.0, 4.0)
QUOTA_REMEDY = "docker update --cpu-quota -1"  # of impair/baseline.py
PROGRAMS = ("/usr", "/opt", "/srv", "/lib", "/bin", "/sbin", "/etc/ld.so")  # paths that no container changes by itself
# A changed file's ctime cannot be set back, and a removed file leaves that of its directory. /dev/fd is the last that a
# container gets before its first program runs. (`docker diff` takes seconds on storage drivers that compare trees.)
CHANGED_SINCE_START = (
    "find", "/", "-xdev", "(", "-path", "/var", "-o", "-path", "/run", "-o", "-path", "/tmp", ")", "-prune",  # noqa: S108 - not used, left out
    "-o", "-newercc", "/dev/fd", "-not", "-newerct", "now", "-print",
)  # fmt: skip


class UnexpectedState(HeadwindError):
    """The testbed has something in its path, or lost packets on it, unlike an unmodified testbed."""


def examine_start(path: Path) -> dict[str, Any]:
    """Examine every host, and send a long train each way.

    Returns {"train": see `long_train`}, to be kept with the run. Raises UnexpectedState, which lists every difference
    by host, and the remedy.
    """
    odd = [
        f"{host}: {_with_container(what, _container_of(host, path))}"
        for host, found in path.ask_hosts(EXAMINE).items()
        for what in found
    ]
    with ThreadPoolExecutor() as pool:
        changed = pool.map(changed_programs, path.containers.values(), repeat(path.content is not None))
        odd += [f"{host}: {what}" for host, found in zip(path.containers, changed, strict=True) for what in found]
    if path.content and path.server_container:
        odd += [f"server: {what}" for what in site_deviations(path.content, path.server_container)]
    odd += [f"{HERE}: {what}" for what in (odd_interfaces(path.veth_peers) if path.veth_peers else ())]
    odd += _unlike(path.fingerprints)
    if odd:
        listed = "".join(f"\n  {what}" for what in odd)
        raise UnexpectedState(
            f"the testbed check failed, so no trial was run on it. Unexpected:{listed}\n"
            "Remove the cause, on this host or in the images; `make lab-down` removes testbeds that were left over."
        )
    train = long_train(path)
    if any(seen["lost"] == seen["sent"] for seen in train.values()):
        raise UnexpectedState(_nothing_passes(path, train))
    if trouble := list(troubles(train)):
        raise UnexpectedState(
            f"the path between the hosts is not clean, so no trial was run on it: {'; '.join(trouble)}. Something on "
            "the way delays, limits, changes or drops packets: look for queueing disciplines, filters and firewall "
            "rules on the host's side of the containers' interfaces (`tc qdisc`, `nft list ruleset`), or free the "
            "processors"
        )
    return {"train": train}


def _container_of(host: str, path: Path) -> str:
    """The id of a host's container; empty if it is not known."""
    server = next(
        (id_ for name, id_ in path.containers.items() if name not in ("client", "impair", *path.browsers)), ""
    )
    return {"client": path.containers.get("client", ""), "server": server}.get(host, path.containers.get("impair", ""))


def _with_container(what: str, container: str) -> str:
    """A difference, in which the command that removes a quota has its container: the host does not know its id."""
    return what.replace(QUOTA_REMEDY, f"{QUOTA_REMEDY} {container[:12]}") if container else what


def _nothing_passes(path: Path, train: Mapping[str, Mapping[str, Any]]) -> str:
    """The error if no packet passes in a direction, usually because the host's firewall filters bridged frames."""
    silent = " and ".join(way for way, seen in train.items() if seen["lost"] == seen["sent"])
    subnets = path.addresses.client_subnet, path.addresses.server_subnet
    return (
        f"nothing passes between client and server ({silent}: not one of {TRAIN_PACKETS} datagrams), so no trial was "
        f"run. The containers' networks are {' and '.join(subnets)}. Usually a firewall of this host drops what it "
        "forwards, also between containers: look at `iptables -S FORWARD` and `nft list ruleset`. Either allow it for "
        "Docker's networks (`iptables -I DOCKER-USER -i br-+ -o br-+ -j ACCEPT`; another firewall needs a "
        "separate rule for it), or keep bridged frames from it (`sysctl -w net.bridge.bridge-nf-call-iptables=0`)"
    )


def _unlike(fingerprints: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Differences between containers, which are alike unless someone changed one of them."""
    client, server = (fingerprints.get(side, {}) for side in ("client", "server"))
    if client.get("sysctls") != server.get("sysctls"):
        yield (f"client and server: different settings of the network (`sysctl -a`): {client.get('sysctls')} and "
               f"{server.get('sysctls')}")  # fmt: skip
    router = OUTSIDE if OUTSIDE in fingerprints else "router"
    found = {host: fingerprints.get(host, {}).get("limits", "") for host in ("client", "server", router)}
    if len(set(found.values())) > 1:
        shares = "; ".join(f"{host}: {limits}" for host, limits in found.items())
        yield f"client, server and router: different shares of the machine (`docker update`): {shares}"


def changed_programs(container: str, has_content: bool = False) -> list[str]:
    """Programs and configurations that differ from the container's image, as text. Raises DockerError.

    With `has_content`, the copy of the user's site is left out: it has its own check.
    """
    found = docker("exec", "--user", "root", container, *CHANGED_SINCE_START).splitlines()
    return [
        f"{path} is not the image's"
        for path in changed_paths(found)
        if not (has_content and f"{path}/".startswith(f"{COPY}/"))
    ]


def changed_paths(changed: Collection[str]) -> Iterator[str]:
    """The files among PROGRAMS; a directory only if none of its files is listed: then one was removed from it."""
    folders = {path.rpartition("/")[0] for path in changed}
    for path in sorted(changed):
        if path.startswith(PROGRAMS) and path not in folders:
            yield path


def long_train(path: Path) -> dict[str, dict[str, Any]]:
    """TRAIN_PACKETS full frames each way over a clean path.

    Returns {direction: {"sent", "lost", "delay_s", "tries", "foreign"}}.
    `delay_s` is the median one-way delay, `foreign` are source addresses that are not the sender's. A train
    that lost too much or took too long is sent again, after TRAIN_PAUSES_S; the last one counts.
    """
    path.apply(Profile("clean"), dict.fromkeys(Direction, 1))
    plan = dict.fromkeys(Direction, (TRAIN_PACKETS, TRAIN_INTERVAL_S, TRAIN_PAYLOAD_BYTES))
    found: dict[str, dict[str, Any]] = {}
    for tries, pause_s in enumerate(TRAIN_PAUSES_S, start=1):
        path.clock.sleep(pause_s)
        seen = send(path, dict.fromkeys(Direction, Link()), plan, TRAIN_PATIENCE_S)
        found = {
            direction.value: {
                "sent": train.sent,
                "lost": train.sent - train.unique,
                "delay_s": statistics.median(train.delays_s or [float("inf")]),
                "tries": tries,
                "foreign": sorted({*train.sources} - {path.ips[direction.sender]}),
            }
            for direction, train in seen.items()
        }
        if not list(troubles(found)):
            break
    return found


def troubles(train: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The deviations of a long train from a clean path, as text."""
    for direction, seen in train.items():
        if seen["lost"] >= TRAIN_LOSS * seen["sent"]:
            yield f"{direction} lost {seen['lost']:.0f} of {seen['sent']:.0f} datagrams, in try {seen['tries']:.0f}"
        elif seen["delay_s"] > DELAY_ALLOWANCE_S:
            yield f"{direction} held datagrams back for {seen['delay_s'] * 1000:.1f} ms"
        if seen["foreign"]:
            yield f"{direction} translated the sender's address into {', '.join(seen['foreign'])}, as masquerading does"
