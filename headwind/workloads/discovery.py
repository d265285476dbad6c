"""Clients that start over TCP and follow the server's offer of HTTP/3 (Alt-Svc, RFC 7838): browsers, and libcurl."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import model_validator

from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.matrix.mistakes import Slip, Slips
from headwind.matrix.units import Mistake
from headwind.matrix.workload import DelayedKeys
from headwind.metric import Metric, Use, Workload

SHARE = Metric("h3_ratio", "share of requests over HTTP/3", "over HTTP/3", "ratio", use=Use.SHOWN)


class Discovery(StrEnum):
    """How the client comes to use HTTP/3."""

    FORCED = "forced"  # the lab forces it, from the first request on
    ALT_SVC = "alt-svc"  # by the server's offer


class Discovering(Workload):
    """A workload whose client may discover HTTP/3. Its dataclass has the fields `discovery` and `offer_if`."""

    discovery: str

    @property
    def discovers(self) -> bool:
        """Whether the client starts over TCP and follows the server's offer of HTTP/3."""
        return self.discovery == Discovery.ALT_SVC

    def over(self, protocol: str) -> Self:
        """The workload over a protocol: only HTTP/3 can be discovered."""
        changes: dict[str, Any] = {"discovery": Discovery.FORCED.value, "offer_if": ""}
        return self if protocol == "h3" else replace(self, **changes)

    def is_over(self, alpn: str, answer: Mapping[str, Any]) -> bool:
        """Whether all measured requests used this protocol; if HTTP/3 is discovered, HTTP/2 counts as well."""
        return {*self.spoken(answer)} <= {alpn, "h2"} if self.discovers else super().is_over(alpn, answer)

    @abstractmethod
    def spoken(self, answer: Mapping[str, Any]) -> Collection[str]:
        """The ALPN identifiers of the measured requests in a client's answer."""


def share(spoken: Sequence[str]) -> dict[str, float]:
    """The share of requests over HTTP/3, by the metric's key; none without requests."""
    return {SHARE.key: spoken.count("h3") / len(spoken)} if spoken else {}


def discovered_text(condition: str) -> str:
    """How HTTP/3 is discovered, and when the server offers it, if not always."""
    return f"HTTP/3 discovered by Alt-Svc{f', which nginx sends if {condition}' if condition else ''}"


DiscoveryKey = Annotated[str, values.choice([each.value for each in Discovery], "a way to discover HTTP/3")]


class DiscoveringKeys(DelayedKeys):
    """Keys of kinds whose client can discover HTTP/3."""

    discovery: DiscoveryKey = key(
        "how h3 comes about: `forced`, or `alt-svc`: over TCP first, then by the server's offer", "forced", "forced"
    )
    offer_if: values.OfferCondition | None = key(
        "with `discovery: alt-svc`: when nginx offers HTTP/3 in an answer, by the round trip (`rtt`) of the connection "
        "or its variation (`rttvar`); default: always", None,
    )  # fmt: skip

    @model_validator(mode="after")
    def _accepted(self) -> Self:
        self.check()
        return self

    def check(self) -> None:
        """Raise Slips if the server decides about an offer that no client follows."""
        if self.offer_if and self.discovery != Discovery.ALT_SVC:
            mistake = Mistake(
                "`offer_if` without `discovery: alt-svc`", "add it: only then does a client follow offers"
            )
            raise Slips([Slip(("offer_if",), mistake)])

    def workload(self, name: str) -> Workload:
        """Workload of this name, with all of its keys."""
        own: dict[str, Any] = {"discovery": self.discovery, "offer_if": self.offer_if or ""}
        return replace(super().workload(name), **own)
