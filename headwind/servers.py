"""Data class of servers: what serves an arm, and what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

OWN = "own"  # the kind of the user's servers


class Offer(StrEnum):
    """A feature that not every server has; the values are those of servers/contract.py."""

    ALT_SVC = "alt-svc"  # a further pair of ports, on which every answer offers HTTP/3
    DELAY = "delay"  # holds back each answer, and logs how long
    OFFER_IF = "offer-if"  # decides for each answer whether it offers HTTP/3
    SESSIONS = "sessions"  # a second pair of ports, on which connections resume TLS sessions
    WORKERS = "workers"  # a number of processes that share the connections
    WINDOWS = "windows"  # a second port, with the windows and buffers that it is shipped with
    PUSH = "push"  # sends an object before it is requested (RFC 9113, section 8.4)

    @property
    def words(self) -> str:
        """The feature in a sentence: `caddy has no ...`."""
        return {
            Offer.ALT_SVC: "port whose answers have an Alt-Svc", Offer.DELAY: "`server_delay`",
            Offer.OFFER_IF: "condition for its Alt-Svc (`offer_if`)",
            Offer.SESSIONS: "log of TLS sessions (for `ttfb`, and for `visit: repeat`)",
            Offer.WORKERS: "number of `workers`", Offer.WINDOWS: "windows `as-shipped`",
            Offer.PUSH: "server push",
        }[self]  # fmt: skip


class Contract(StrEnum):
    """A convention that an image follows, beyond being started with its command and variables."""

    PLAIN = "plain"
    QUIC_INTEROP = "quic-interop"  # of the QUIC interop runner: ROLE, TESTCASE, /www, /certs, port 443


class Fresh(StrEnum):
    """Treatment of a user's program before each trial."""

    RESTART = "restart"  # forgets everything
    KEEP = "keep"  # only its TCP connections are destroyed: connections over QUIC, sessions and caches stay


@dataclass(frozen=True, slots=True)
class Program:
    """The user's server: its image, and how it is started, reached and made fresh.

    `command` replaces the image's, unless empty; `ready` is a path that must be answered before a trial, or empty;
    `protocols` are h1, h2, h3, as far as it speaks them.
    """

    image: str
    protocols: tuple[str, ...]
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    port: int = 443
    ready: str = ""
    contract: Contract = Contract.PLAIN
    fresh: Fresh = Fresh.RESTART

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it gets: those of its contract, and the user's own."""
        of_contract = {"ROLE": "server", "TESTCASE": "http3"} if self.contract is Contract.QUIC_INTEROP else {}
        return of_contract | dict(self.env)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that the lab can start; its image, service and agent are in the folder of its name.

    `quic_congestion`: congestion controls of its QUIC that can be set, the default one first. `quic_window`: the
    name of what is behind "http3_stream_buffer_bytes" (servers/contract.py), empty if it has none.
    `protocols` are those that it speaks, if not all. Without `has_ranges` it sends whole objects only.
    `program` is set if it is the user's own (`servers/own`).
    """

    name: str
    offers: frozenset[Offer]
    quic_congestion: tuple[str, ...]
    quic_window: str
    is_window_per_stream: bool = True  # else per connection
    program: Program | None = None
    protocols: tuple[str, ...] = ()
    has_ranges: bool = True

    @property
    def kind(self) -> str:
        """The name of the image in which its agent runs."""
        return self.name if self.program is None else OWN

    def speaks(self, protocol: str) -> bool:
        """Whether it speaks `h1`, `h2` or `h3`."""
        return not self.protocols or protocol in self.protocols


NGINX = Server("nginx", frozenset(Offer) - {Offer.PUSH}, ("cubic",), "http3_stream_buffer_size")  # since 1.27.5
SERVERS = {server.name: server for server in (
    NGINX,
    Server("caddy", frozenset({Offer.ALT_SVC, Offer.WORKERS}), ("newreno",), ""),  # quic-go's sender has no other
    Server("haproxy", frozenset({Offer.ALT_SVC, Offer.WINDOWS, Offer.WORKERS}), ("cubic",), "largest congestion window",
           False),
    Server("nghttpd", frozenset({Offer.PUSH, Offer.WORKERS}), (), "", protocols=("h2",), has_ranges=False),
)}  # fmt: skip
FURTHER = tuple(name for name in SERVERS if name != NGINX.name)  # each is a folder of servers/


def own_server(name: str, program: Program) -> Server:
    """The user's server; its windows and the congestion control of its QUIC are unknown.

    Whether its answers offer HTTP/3 is known once a browser has asked.
    """
    return Server(name, frozenset({Offer.ALT_SVC}), (), "", program=program, protocols=program.protocols)
