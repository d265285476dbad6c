"""Where another judged metric surely differs from the primary one, with size and meaning. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import arm_name, enumerated
from headwind.metric import Metric
from headwind.report.certainty import Certainty, Known
from headwind.report.networks import Network, placed, share_of
from headwind.report.standing import Standing
from headwind.report.verdicts import sides, sizes_text
from headwind.run.data import RunData
from headwind.verdicts.findings import Finding

MOST_LISTED = 4  # networks by name; of more their number
MOST_NAMED = 2  # rivals by name
MOST_SENTENCES = 3  # those of the newest protocol come first


@dataclass(frozen=True, slots=True)
class _Contrast:
    """What a metric says, and what the primary one does instead. Equal ones share a sentence."""

    metric: Metric
    primary: Metric
    arm: Arm  # the one that leads by the primary metric; where it has a tie, the one that leads by the other
    ties: bool  # by the primary metric
    ties_by_other: bool
    is_sure: bool  # the primary metric


def reversals(data: RunData, found: Sequence[Standing]) -> list[str]:
    """A sentence for all networks in which a metric says the same against the primary one.

    `By mean completion time, HTTP/2 ties with HTTP/3 under 30 % loss, where HTTP/3 is ahead by total time.`
    """
    alike: dict[tuple[_Contrast, tuple[Arm, ...]], dict[Network, str]] = {}
    for standing in found:
        rivals: dict[_Contrast, dict[Arm, Finding]] = {}
        for known in standing.known:
            for other in known.differing:
                contrast, rival = _contrast(known, other)
                rivals.setdefault(contrast, {})[rival] = other
        for contrast, others in rivals.items():
            size = "" if contrast.ties_by_other else sizes_text(others.values())
            alike.setdefault((contrast, tuple(others)), {})[standing.network] = size
    told = sorted(alike.items(), key=lambda item: data.matrix.newest not in (item[0][0].arm, *item[0][1]))
    return [_sentence(contrast, rivals, where, data) for (contrast, rivals), where in told[:MOST_SENTENCES]]


def _contrast(known: Known, other: Finding) -> tuple[_Contrast, Arm]:
    """What a sentence is about, and the rival of its arm."""
    arm, rival = sides(other) if known.is_tie else sides(known.finding)
    is_sure, ties_by_other = known.certainty is Certainty.SURE, not other.verdict.favours
    return _Contrast(other.metric, known.finding.metric, arm, known.is_tie, ties_by_other, is_sure), rival


def _sentence(contrast: _Contrast, rivals: Sequence[Arm], where: Mapping[Network, str], data: RunData) -> str:
    name, few = arm_name(contrast.arm), len(rivals) <= MOST_NAMED
    others = enumerated(map(arm_name, rivals)) if few else f"{len(rivals)} others"
    if contrast.ties_by_other:
        said = f"{others} {'ties' if len(rivals) == 1 else 'tie'} with {name}"
    elif contrast.ties:
        said = f"{name} beats {others}"
    else:
        said = f"{others} {'beats' if len(rivals) == 1 else 'beat'} {name}"
    metric = ", ".join(filter(None, (contrast.metric.label, contrast.metric.note)))
    likely = "" if contrast.is_sure else "likely "
    against = f"they {likely}tie" if contrast.ties else f"{name} is {likely}ahead"
    place = placed(where) if len(where) <= MOST_LISTED else share_of(where, data.matrix)
    return f"By {metric}, {said} {place}, where {against} by {contrast.primary.label}."
