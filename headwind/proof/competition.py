"""Competing downloads of a trial: whether they ran all the time, and how the path was divided. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwind.metric import COMPETING, FAIRNESS, KEPT, SHARE, Competing
from headwind.model import Check
from impair.messages import Competed
from impair.profile import Direction


def jain(amounts: Sequence[float]) -> float:
    """Jain's fairness index: 1 if all amounts are equal, 1/n if one has everything.

    R. Jain, D. Chiu and W. Hawe, "A quantitative measure of fairness and discrimination for resource allocation in
    shared computer systems", DEC-TR-301, 1984. Raises ZeroDivisionError if all amounts are 0.
    """
    return sum(amounts) ** 2 / (len(amounts) * sum(amount**2 for amount in amounts))


def check_competition(asked: Competing | None, seen: Competed | None) -> Iterator[Check]:
    """Check that every competing flow received bytes before the client ended and after it; nothing without any.

    Not while it ran: libcurl delivers whole TLS records, and a short trial can lie between two of a slow flow.
    """
    if asked is None:
        return
    flows = list(zip(seen.alone_bytes, seen.during_bytes, seen.after_bytes, strict=True)) if seen else []
    running = sum(alone + during > 0 and after > 0 for alone, during, after in flows)
    note = (seen and seen.error) or "competing downloads that received bytes before the client ended and after it"
    passed = seen is not None and not seen.error and running == len(flows) == asked.flows
    yield Check(Direction.DOWNLINK, "competing_flows", float(asked.flows), None, float(running), 0.0, passed, note)


def division(seen: Competed | None, body_bytes: float | None) -> dict[str, float]:
    """The metrics of the division between the client, which received `body_bytes`, and each competing flow."""
    if seen is None or body_bytes is None or seen.during_s <= 0:
        return {}
    others, alone_bps = sum(seen.during_bytes), sum(seen.alone_bytes) * 8 / seen.alone_s
    competing_bps = others * 8 / seen.during_s
    found = {COMPETING.key: competing_bps}
    if body_bytes + others:
        found[SHARE.key] = body_bytes / (body_bytes + others)
        found[FAIRNESS.key] = jain([body_bytes, *seen.during_bytes])
    if alone_bps:
        found[KEPT.key] = competing_bps / alone_bps
    return found
