"""The answer of a run: what the page, the terminal and summary.md begin with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwind.format import enumerated, served_text
from headwind.metric import Workload
from headwind.report.headline import Card, cards_of, headline
from headwind.report.search import search_text
from headwind.report.standing import Standing, standings
from headwind.report.trust import trust_line
from headwind.run.data import RunData


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader must know first, in sentences, and the networks in the order in which they are shown."""

    headline: str  # in how many networks something is sure; of a search, where the winner changes
    by_others: tuple[str, ...]  # the same by other metrics, where they say more or otherwise
    cards: tuple[Card, ...]  # each comparison over all networks
    measured: str  # what was fetched, in plain words
    trust: str
    standings: Sequence[Standing]


def answer_of(data: RunData) -> Answer:
    """The answer of a run as far as it went."""
    found = standings(data)
    cards = cards_of(data, found)
    first, *others = headline(data, found, cards)
    return Answer(
        search_text(data) or first,
        tuple(others),
        tuple(cards),
        " ".join(workloads(data)),
        trust_line(data),
        found,
    )


def workloads(data: RunData) -> list[str]:
    """What was measured, in plain words: a sentence for all workloads that go by the same metric.

    Workloads with the same description are named together; if the server waits differently, from what to what.
    """
    protocols = {arm.protocol.value for arm in data.matrix.arms}
    alike: dict[tuple[str, str, str], list[Workload]] = {}  # by what they go by, what they are, and the server
    for workload in dict.fromkeys(condition.workload for condition in data.matrix.conditions):
        metrics = [
            result.metrics
            for result in data.latest
            if result.trial.block.condition.workload == workload and not result.trial.arm.overrides.workload
        ]
        asked = served_text(replace(workload, server_delay_s=0.0))
        alike.setdefault((workload.primary().label, workload.in_short(metrics, protocols), asked), []).append(workload)
    parts: dict[tuple[str, str, str], list[str]] = {}  # by what they go by, what they are not, and the server
    for (metric, short, _), mine in alike.items():
        what, _, limit = short.partition("; ")
        names = [workload.name for workload in mine]
        text = f"{names[0]}, {what}" if len(mine) == 1 else f"{what} ({enumerated(names)})"
        parts.setdefault((metric, limit, served_text(*mine)), []).append(
            what if data.matrix.place == "network" else text
        )
    return [
        f"Compared by {metric}: {'; '.join(texts)}{f'; {limit}' if limit else ''}.{served}"
        for (metric, limit, served), texts in parts.items()
    ]
