"""Data classes of arms: the protocols, with their settings, that each block runs and compares."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import prod
from typing import Any

from headwind.metric import Workload
from headwind.servers import NGINX, Server
from headwind.settings import Settings, Windows

# Its protocol, then words: it is part of trials' names, of addresses inside pages, and a class of their style sheets.
ARM_NAME = re.compile(r"(h[123])((?:-[A-Za-z0-9]+)*)")


class Protocol(StrEnum):
    """h1, h2, h3: HTTP/1.1, HTTP/2 and HTTP/3, all over TLS 1.3."""

    H1 = "h1"
    H2 = "h2"
    H3 = "h3"

    @property
    def alpn(self) -> str:
        """The ALPN identifier (RFC 7301) that proves the protocol was spoken."""
        return {"h1": "http/1.1", "h2": "h2", "h3": "h3"}[self.value]

    @property
    def transport(self) -> str:
        """`tcp`, or `quic` for HTTP/3: the key of its congestion control."""
        return "quic" if self is Protocol.H3 else "tcp"


class Role(StrEnum):
    """The purpose of an arm."""

    PLAIN = "plain"  # compared with the others
    AGAIN = "again"  # A/A: identical, so the lab must find no difference
    SLOWER = "slower"  # positive control: its network is slower by CONTROL_RATIO, which the lab must find


TWINS = (Role.AGAIN, Role.SLOWER)  # the arms of self-checks


@dataclass(frozen=True, slots=True)
class Congestion:
    """Congestion control of both endpoints: the kernel's for TCP, the libraries' for QUIC."""

    tcp: str = "cubic"
    quic: str = "cubic"


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings of a single arm; what is absent or None follows the condition and the matrix."""

    workload: tuple[tuple[str, int | str], ...] = ()  # keys of the workload, with their values
    congestion: str | None = None  # of what the arm runs over: TCP's, or QUIC's
    server_windows: Windows | None = None
    client_windows: Windows | None = None


CUBIC, NO_OVERRIDES = Congestion(), Overrides()
UNKNOWN = "unknown"  # the congestion control of a user's own server


@dataclass(frozen=True, slots=True)
class Arm:
    """A protocol, with or without its own settings, under a name; each block runs every arm once.

    A name begins with its protocol: `h2`, which sets nothing; `h2-bbr`; the twins of a self-check, `h2-again`.
    """

    name: str
    protocol: Protocol
    role: Role = Role.PLAIN
    overrides: Overrides = NO_OVERRIDES
    server: Server = NGINX

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)  # arms are keys in every loop over trials

    def __post_init__(self) -> None:
        if not ARM_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} cannot be the name of an arm")

    @property
    def is_twin(self) -> bool:
        """Whether this is a twin for a self-check."""
        return self.role in TWINS

    def twin(self, role: Role) -> Arm:
        """The same arm a second time in the block, under another name (`h2-again`)."""
        return replace(self, name=f"{self.name}-{role}", role=role)

    def settings(self, usual: Settings) -> Settings:
        """Windows and buffers of both ends; `usual` are the matrix's."""
        own = self.overrides
        return Settings(own.server_windows or usual.server, own.client_windows or usual.client)

    def congestion(self, usual: Congestion, workload: Workload | None = None) -> Congestion:
        """Congestion control; `usual` is the matrix's, or the workload's if the condition's workload sets one.

        QUIC's is the server's default if the server cannot have the usual one, and UNKNOWN if nothing is known of it.
        """
        if workload:
            usual = Congestion(workload.tcp_congestion or usual.tcp, workload.quic_congestion or usual.quic)
        if usual.quic not in self.server.quic_congestion:
            usual = replace(usual, quic=next(iter(self.server.quic_congestion), UNKNOWN))
        own = self.overrides.congestion
        if own is None:
            return usual
        return replace(usual, **{self.protocol.transport: own})

    def workload(self, usual: Workload) -> Workload:
        """The workload to fetch; `usual` is the condition's."""
        own: dict[str, Any] = dict(self.overrides.workload)
        return replace(usual, **own).over(self.protocol.value)

    def in_flight(self, usual: Workload) -> int:
        """Number of requests that its trial of a workload can have in flight, over all connections."""
        return prod(self.workload(usual).at_once())

    def pipelines(self, usual: Workload) -> bool:
        """True for an arm of HTTP/1.1 whose client pipelines the requests of a workload."""
        return self.protocol is Protocol.H1 and self.workload(usual).pipelines()


H1, H2, H3 = PLAIN = tuple(Arm(protocol.value, protocol) for protocol in Protocol)


BROWSER_CONNECTIONS = {"h1": 6, "h2": 1, "h3": 1}  # that browsers open to one host


@cache
def arm_named(name: str) -> Arm:
    """The plain arm, or the twin of one, of this name. Raises ValueError for any other name."""
    protocol, dash, role = name.partition("-")
    arm = PLAIN[list(Protocol).index(Protocol(protocol))]
    if not dash:
        return arm
    if Role(role) not in TWINS:
        raise ValueError(f"unknown twin {name!r}")
    return arm.twin(Role(role))
