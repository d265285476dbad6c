"""The keys under `published` in matrix.yaml: times from earlier articles, each with the network it was found over.

A row is bound to that network: where the profile of its name is another one, by an edit or from the start, the row has
a gap in the place of a counterpart. Otherwise the report would set the article beside something that it never saw. A
gap is no mistake: whoever edits the experiment need not look after the article.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Self

from pydantic import ConfigDict, field_validator, model_validator

from headwind.arm import Protocol
from headwind.matrix import values
from headwind.matrix.direction import Keys, key
from headwind.matrix.mistakes import Slip
from headwind.matrix.profile import ProfileKeys
from headwind.matrix.units import Mistake, quoted
from headwind.model import Condition, Published, PublishedRow
from impair.profile import Profile

NO_CONDITION = "there is no such condition"
SEVERAL = "several workloads; profile/workload says which"
NO_NETWORK = "no network written, so a clean one, which the profile is not"
OTHER_NETWORK = "another network than the profile now is"


class RowKeys(ProfileKeys):
    """What an article found in one condition: a time for each protocol, over the network that `downlink` and so on say.

    Without them it was a clean one.
    """

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [one, other]} for one, other in combinations(map(str, Protocol), 2)]}
    )

    h1: values.PublishedTime | None = key("HTTP/1.1's total time, or `unfinished`", None)
    h2: values.PublishedTime | None = key("HTTP/2's total time, or `unfinished`", None)
    h3: values.PublishedTime | None = key("HTTP/3's total time, or `unfinished`", None)

    @model_validator(mode="after")
    def _two(self) -> Self:
        if len(self.times_s) < 2:
            raise Mistake("a comparison needs the times of two protocols", "such as {h1: 406ms, h3: unfinished}")
        return self

    @property
    def times_s(self) -> dict[Protocol, float | None]:
        """What was written about each protocol; None: unfinished."""
        return {protocol: getattr(self, protocol) for protocol in Protocol if protocol in self.model_fields_set}


class SourceKeys(Keys):
    """An article that compared the same protocols over the same networks."""

    title: values.Heading = key("of the article, and who wrote it")
    note: values.Note | None = key("what differs from this experiment, in a sentence", None)
    times: dict[values.ConditionName, RowKeys] = key(
        "by profile/workload, or by profile where that has one workload", minProperties=1, additionalProperties=False
    )

    @field_validator("times")
    @classmethod
    def _some(cls, times: dict[str, RowKeys]) -> dict[str, RowKeys]:
        if not times:
            raise Mistake("`times` is empty", "at least one is needed")
        return times

    def to_model(self, name: str, conditions: Conditions, arms: Collection[str]) -> Published:
        """The article as it stands beside these conditions and arms, by name. Cannot fail."""
        rows = (_row(row, written, conditions, arms) for row, written in self.times.items())
        return Published(name, self.title, tuple(rows), self.note or "")


class Conditions:
    """The conditions of a matrix by what a row may call them: `profile/workload`, or the profile alone.

    The profile alone says which condition is meant as long as the profile has only one.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._called: dict[str, dict[str, Condition]] = {}
        for condition in conditions:
            for name in (condition.id, condition.profile.name):
                self._called.setdefault(name, {})[condition.id] = condition

    def called(self, name: str) -> list[Condition]:
        """Every condition that may be meant."""
        return list(self._called.get(name, {}).values())


def _row(name: str, written: RowKeys, conditions: Conditions, arms: Collection[str]) -> PublishedRow:
    meant = conditions.called(name)
    if len(meant) != 1:
        return PublishedRow(name, written.times_s, SEVERAL if meant else NO_CONDITION)
    return PublishedRow(meant[0].id, written.times_s, _gap(written, meant[0].profile, arms))


def _gap(written: RowKeys, profile: Profile, arms: Collection[str]) -> str:
    """Why a row cannot be set beside its condition; empty where it can."""
    if written.to_model(profile.name) != profile:
        return NO_NETWORK if written.model_fields_set.isdisjoint(ProfileKeys.model_fields) else OTHER_NETWORK
    absent = [protocol.value for protocol in written.times_s if protocol not in arms]
    return f"the matrix has no {' and no '.join(absent)}" if len(written.times_s) - len(absent) < 2 else ""


def published_slips(published: Mapping[str, SourceKeys], conditions: Conditions) -> Iterator[Slip]:
    """Rows of the same source that mean the same condition."""
    for source, written in published.items():
        seen: set[str] = set()
        for name in written.times:
            meant = conditions.called(name)
            if len(meant) != 1:
                continue
            if meant[0].id in seen:
                mistake = Mistake(f"the condition {quoted(meant[0].id)} is there twice", "keep one of the two rows")
                yield Slip(("published", source, "times", name), mistake, at_key=True)
            seen.add(meant[0].id)
