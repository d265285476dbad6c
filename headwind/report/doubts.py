"""Warnings about comparisons, those alike together with the conditions that they concern."""

from __future__ import annotations

from dataclasses import dataclass

from headwind.verdicts.assumptions import Concern
from headwind.verdicts.judgement import Judgement


@dataclass(frozen=True, slots=True)
class Doubt:
    """A warning about comparisons, and the conditions that it concerns."""

    concern: Concern
    comparisons: int
    condition_ids: tuple[str, ...]


def doubts(verdicts: Judgement) -> list[Doubt]:
    """What is to be said before any verdict: that the network was another one, then the most frequent first."""
    concerned: dict[Concern, list[str]] = {}
    for line in verdicts.lines:
        for concern in dict.fromkeys(caveat.concern for caveat in line.caveats):
            concerned.setdefault(concern, []).append(line.condition.id)
    found = [Doubt(concern, len(ids), tuple(dict.fromkeys(ids))) for concern, ids in concerned.items()]
    return sorted(found, key=lambda doubt: (doubt.concern is not Concern.NETWORK, -doubt.comparisons))
