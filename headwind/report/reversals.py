"""Where another judged metric surely differs from the primary one, with size and meaning. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import arm_name, enumerated
from headwind.metric import Metric
from headwind.observed import Observed
from headwind.report.certainty import Certainty, Known
from headwind.report.networks import Network, placed
from headwind.report.standing import Standing
from headwind.report.tracks import track_of
from headwind.report.verdicts import sides, sizes_text
from headwind.run.data import RunData
from headwind.verdicts.findings import Finding

MOST_LISTED = 4  # networks by name; of more their number
MOST_NAMED = 2  # rivals by name
MOST_SENTENCES = 3  # those of the newest protocol come first
# What is done by a share of PROGRESS (headwind/workloads/h2load.py), and what is left then.
PARTS = {0.99: "last hundredth", 0.9: "last tenth", 0.5: "later half"}


@dataclass(frozen=True, slots=True)
class _Contrast:
    """What a metric says, and what the primary one does instead. Equal ones share a sentence."""

    metric: Metric
    primary: Metric
    arm: Arm  # the one that leads by the primary metric; where it has a tie, the one that leads by the other
    ties: bool  # by the primary metric
    ties_by_other: bool
    is_sure: bool  # the primary metric
    part: str  # in which part of the requests the lead by the primary metric is


def reversals(data: RunData, found: Sequence[Standing]) -> list[str]:
    """A sentence for all networks in which a metric says the same against the primary one.

    `By mean completion time, HTTP/2 ties with HTTP/3 under 30 % loss, where HTTP/3 is ahead by total time: that lead is
    in the last tenth of the requests.`
    """
    alike: dict[tuple[_Contrast, tuple[Arm, ...]], dict[Network, str]] = {}
    for standing in found:
        rivals: dict[_Contrast, dict[Arm, Finding]] = {}
        for known in standing.known:
            for other in known.differing:
                contrast, rival = _contrast(data, standing, known, other)
                rivals.setdefault(contrast, {})[rival] = other
        for contrast, others in rivals.items():
            size = "" if contrast.ties_by_other else sizes_text(others.values())
            alike.setdefault((contrast, tuple(others)), {})[standing.network] = size
    told = sorted(alike.items(), key=lambda item: data.matrix.newest not in (item[0][0].arm, *item[0][1]))
    return [_sentence(contrast, rivals, where, data) for (contrast, rivals), where in told[:MOST_SENTENCES]]


def _contrast(data: RunData, standing: Standing, known: Known, other: Finding) -> tuple[_Contrast, Arm]:
    """What a sentence is about, and the rival of its arm."""
    arm, rival = sides(other) if known.is_tie else sides(known.finding)
    part, ties_by_other = _part(data, standing, known), not other.verdict.favours
    return _Contrast(
        other.metric, known.finding.metric, arm, known.is_tie, ties_by_other, known.certainty is Certainty.SURE, part
    ), rival


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
    meaning = f": that lead is in the {contrast.part} of the requests" if contrast.part else ""
    return f"By {metric}, {said} {_where(where, data)}, where {against} by {contrast.primary.label}{meaning}."


def _where(networks: Mapping[Network, str], data: RunData) -> str:
    if len(networks) <= MOST_LISTED:
        return placed(networks)
    return f"in {len(networks)} of {len(data.matrix.conditions)} {data.matrix.place}s"


def _part(data: RunData, standing: Standing, known: Known) -> str:
    """In which part of the requests the lead by the primary metric is; empty where the figures do not show it."""
    if known.is_tie or not known.is_by_primary:
        return ""
    winner, loser = sides(known.finding)
    fast, slow = (_reached(standing, arm) for arm in (winner, loser))
    margin = 1 + data.judgement.rule.margin_ratio
    return next((part for share, part in PARTS.items() if _as_early(fast, slow, share, margin)), "")


def _reached(standing: Standing, arm: Arm) -> Mapping[float, Observed]:
    return track_of(standing.condition, standing.rows, arm).reached


def _as_early(fast: Mapping[float, Observed], slow: Mapping[float, Observed], share: float, margin: float) -> bool:
    """Whether the slower arm had this share of its requests done within the margin of when the faster one had."""
    if share not in fast or share not in slow or not (fast[share].is_finished and slow[share].is_finished):
        return False
    return slow[share].known <= margin * fast[share].known
