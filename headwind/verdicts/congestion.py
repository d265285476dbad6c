"""Comparisons of two protocols whose arms also differ in congestion control. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from headwind.arm import UNKNOWN, Arm, arm_named
from headwind.format import arm_name, counted
from headwind.model import Condition, Matrix
from headwind.verdicts.pairs import pairs_of

MOST_NAMED = 2  # sentences; the other pairs are counted
LABELS = {"reno": "Reno", "newreno": "New Reno", UNKNOWN: UNKNOWN}  # the others are capitals


def control_of(arm: Arm, matrix: Matrix, condition: Condition) -> str:
    """The congestion control of the arm's transport in a condition: `bbr`."""
    both = arm.congestion(matrix.congestion, arm.workload(condition.workload))
    return both.quic if arm.protocol.transport == "quic" else both.tcp


def difference_text(first: Arm, second: Arm, matrix: Matrix, condition: Condition) -> str:
    """`differ in congestion control: BBR and CUBIC` for two arms; empty if they have the same one.

    Of a user's own server the congestion control over QUIC is unknown: `may differ in congestion control: CUBIC and
    unknown`. Also empty for arms of one protocol and one server, whose congestion control is what is compared.
    """
    one, other = (control_of(arm, matrix, condition) for arm in (first, second))
    if one == other or (first.protocol is second.protocol and first.server == second.server):
        return ""
    perhaps = UNKNOWN in (one, other)
    what = f"congestion control: {_label(one)} and {_label(other)}"
    if first.server == second.server:
        return f"{'may ' if perhaps else ''}differ in {what}"
    servers = f"differ in server, {first.server.name} and {second.server.name}, and "
    return f"{servers}{'perhaps ' if perhaps else ''}in {what}"


def confounded(matrix: Matrix) -> list[str]:
    """A sentence for each comparison of protocols that may be one of congestion controls; without a full stop.

    Such as `HTTP/2 (bbr) and HTTP/3 differ in congestion control: BBR and CUBIC; add h2: against HTTP/3 it does
    not`.
    """
    found: dict[str, None] = {}
    for condition in matrix.conditions:
        for pair in (pair for pair in pairs_of(matrix, condition) if not pair.is_check):
            if text := difference_text(pair.base, pair.new, matrix, condition):
                advice = next(_separating(pair.base, pair.new, matrix, condition), "")
                found[f"{arm_name(pair.base)} and {arm_name(pair.new)} {text}{advice}"] = None
    left = len(found) - MOST_NAMED
    more = f"{counted(left, 'more pair')} of arms {'differs' if left == 1 else 'differ'} in the same way"
    return [*list(found)[:MOST_NAMED], *[more] * (left > 0)]


def _separating(first: Arm, second: Arm, matrix: Matrix, condition: Condition) -> Iterator[str]:
    """Arms that have the protocol of one and the congestion control of the other: those of the matrix first."""
    plain = tuple(arm_named(arm.protocol.value) for arm in (first, second))
    for candidates, text in ((matrix.arms, "; {} against {} does not"), (plain, "; add {}: against {} it does not")):
        for candidate in candidates:
            for arm, other in ((first, second), (second, first)):
                if _is_like(candidate, arm) and control_of(candidate, matrix, condition) == control_of(
                    other, matrix, condition
                ):
                    name = arm_name(candidate) if candidate in matrix.arms else candidate
                    yield text.format(name, arm_name(other))


def _is_like(one: Arm, other: Arm) -> bool:
    """True if two arms are the same, except for congestion control and windows."""
    return (one.protocol, one.server, one.overrides.workload) == (
        other.protocol, other.server, other.overrides.workload,
    )  # fmt: skip


def _label(control: str) -> str:
    return LABELS.get(control, control.upper())
