"""Who is best in one condition, from the verdicts of all pairs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from headwind.verdicts.verdict import Verdict


class Lead(StrEnum):
    """How clear the top of a condition is."""

    WINNER = "winner"
    TIE = "tie at the top"
    OPEN = "not decided"


@dataclass(frozen=True, slots=True)
class Top:
    """The protocols that nobody clearly beats, in the order given, and how clear that is."""

    protocols: tuple[str, ...]
    lead: Lead


def winner(protocols: Iterable[str], verdicts: Mapping[tuple[str, str], Verdict]) -> Top:
    """Who is best in one condition, from the verdict of every pair, keyed (base, new) in either order.

    A winner clearly beats every other protocol, so also the runner-up, whichever that is. A false winner needs one of
    the k - 1 intervals against the truly best to err on one side: at most 5 % for three protocols at 95 %.
    A pair without a verdict, because nobody compared it, is not decided.
    """
    names = tuple(protocols)

    def verdict_for(new: str, base: str) -> Verdict:
        return verdicts.get((base, new), verdicts.get((new, base), Verdict.UNDECIDED).opposite)

    def beats(one: str, other: str) -> bool:
        verdict = verdict_for(one, other)
        return verdict.is_clear and verdict.favours > 0

    for name in names:
        if all(beats(name, other) for other in names if other != name):
            return Top((name,), Lead.WINNER)
    unbeaten = tuple(name for name in names if not any(beats(other, name) for other in names if other != name))
    top = unbeaten or names  # medians can form a circle
    pairs = [(one, other) for i, one in enumerate(top) for other in top[i + 1 :]]
    tied = bool(pairs) and all(verdict_for(one, other) is Verdict.TIE for one, other in pairs)
    return Top(top, Lead.TIE if tied else Lead.OPEN)
