"""The keys under `published` in matrix.yaml: figures from earlier articles, each with the network it was found over.

A row is bound to that network: where the profile of its name is another one, by an edit or from the start, the row has
a gap in the place of a counterpart. Otherwise the report would set the article beside something that it never saw. A
gap is no mistake: whoever edits the experiment need not look after the article.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Self

from pydantic import (
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from headwind.arm import ARM_NAME
from headwind.matrix import values
from headwind.matrix.direction import Keys, key
from headwind.matrix.figure import Figure, PublishedFigures
from headwind.matrix.mistakes import Slip, Slips, from_pydantic, raise_any, unknown
from headwind.matrix.profile import ProfileKeys
from headwind.matrix.units import Mistake, choose, quoted
from headwind.metric import Use
from headwind.model import Condition, Published, PublishedRow
from impair.profile import Profile

NO_CONDITION = "there is no such condition"
SEVERAL = "several workloads; profile/workload says which"
NO_NETWORK = "no network written, so a clean one, which the profile is not"
OTHER_NETWORK = "another network than the profile now is"
NOT_COMPARED = "the matrix compares no two of its arms"

Pairs = Collection[frozenset[str]]  # names of arms that are compared


def _arms_alone(schema: dict[str, Any]) -> None:
    """Say to editors that a key which is none of the model's is the name of an arm."""
    schema["patternProperties"] = {f"^{ARM_NAME.pattern}$": schema.pop("additionalProperties")}
    schema["additionalProperties"] = False
    schema["anyOf"] = [{"required": ["unmeasured"]}, {"minProperties": 2}]


class RowKeys(ProfileKeys):
    """What an article found in one condition: a figure for each arm, over the network that `downlink` and so on say.

    Without them it was a clean one. Every further key is the name of an arm.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_arms_alone)
    __pydantic_extra__: dict[str, PublishedFigures]

    unmeasured: values.Note | None = key("why this experiment does not measure it; figures may be left out then", None)

    @model_validator(mode="wrap")
    @classmethod
    def _only_arms(cls, written: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Name every key that is neither a field nor the name of an arm, beside whatever else is wrong."""
        slips: list[Slip] = []
        if isinstance(written, dict):
            strange = [name for name in written if name not in cls.model_fields and not ARM_NAME.fullmatch(name)]
            allowed = [*cls.model_fields, "h1", "h2", "h3"]
            slips = [Slip((name,), unknown(name, allowed), at_key=True) for name in strange]
            written = {name: value for name, value in written.items() if name not in strange}
        try:
            found = validate(written)
        except ValidationError as error:
            raise Slips(slips + from_pydantic(error, cls)) from None
        raise_any(slips)
        return found

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        figures = self.figures
        if len(figures) < 2 and not self.unmeasured:
            raise Mistake("a comparison needs the figures of two arms", "such as {h1: 406ms, h3: unfinished}")
        for one, other in combinations(figures, 2):
            if figures[one].keys() != figures[other].keys():
                raise Slips(
                    [Slip((other,), Mistake(f"`{one}` and `{other}` have other statistics", "give both the same"))]
                )
        units = {figure.unit for each in figures.values() for figure in each.values()} - {""}
        if len(units) > 1:
            raise Mistake("times and rates are mixed in this row", "a row is about one metric")
        return self

    @property
    def figures(self) -> dict[str, dict[str, Figure]]:
        """What was written about each arm, by statistic."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def unit(self) -> str:
        """Of its figures: "s" or "bps"; empty where nothing says."""
        return next((each.unit for arm in self.figures.values() for each in arm.values() if each.unit), "")

    def rows(self, condition_id: str, metric: str, gap: str) -> Iterator[PublishedRow]:
        """One for each statistic."""
        statistics: Collection[str] = next(iter(self.figures.values()), {"": None})
        for statistic in statistics:
            figures = {arm: each[statistic].value for arm, each in self.figures.items()}
            yield PublishedRow(condition_id, figures, gap, metric, statistic)


class SourceKeys(Keys):
    """An article that compared the same protocols over the same networks."""

    title: values.Heading = key("of the article, and who wrote it")
    source: values.Note | None = key("where it can be read", None)
    note: values.Note | None = key("what differs from this experiment, and what was found, in some sentences", None)
    times: dict[values.RowName, RowKeys] = key(
        "by profile/workload, or by profile where that has one workload; with /METRIC if not the total time is meant",
        minProperties=1, additionalProperties=False,
    )  # fmt: skip

    @field_validator("times")
    @classmethod
    def _some(cls, times: dict[str, RowKeys], info: ValidationInfo) -> dict[str, RowKeys]:
        if not times:
            raise Mistake("`times` is empty", "at least one is needed")
        slips, known = [], (info.context or {}).get("metrics", [])
        for name, row in times.items():
            metric = metric_of(name)
            try:
                if metric:
                    choose(metric, known, "a metric that can be judged")
            except Mistake as mistake:
                slips.append(Slip((name,), mistake, at_key=True))
                continue
            if row.unit and row.unit != (metric.rpartition("_")[2] or "s"):
                wanted = f"`{metric}` is in {metric.rpartition('_')[2]}" if metric else "a total time is a time"
                slips.append(Slip((name,), Mistake(f"the figures are in {row.unit}", f"{wanted}; name another metric")))
        raise_any(slips)
        return times

    def to_model(self, name: str, conditions: Conditions, arms: Collection[str], pairs: Pairs) -> Published:
        """The article as it stands beside these conditions, arms and comparisons, by name. Cannot fail."""
        rows = (
            each for row, written in self.times.items()
            for each in _rows(row, written, conditions, arms, pairs)
        )  # fmt: skip
        return Published(name, self.title, tuple(rows), self.note or "", self.source or "")


def metric_of(name: str) -> str:
    """The key of the metric that a row's name ends in; empty where it names none."""
    return "".join(name.split("/", 2)[2:])


def condition_of(name: str) -> str:
    """What a row's name calls its condition."""
    return "/".join(name.split("/", 2)[:2])


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


def _rows(
    name: str, written: RowKeys, conditions: Conditions, arms: Collection[str], pairs: Pairs
) -> Iterator[PublishedRow]:
    meant, metric = conditions.called(condition_of(name)), metric_of(name)
    if len(meant) == 1:
        gap = written.unmeasured or _gap(written, metric, meant[0], arms, pairs)
        return written.rows(meant[0].id, metric, gap)
    return written.rows(condition_of(name), metric, written.unmeasured or (SEVERAL if meant else NO_CONDITION))


def _gap(written: RowKeys, metric: str, condition: Condition, arms: Collection[str], pairs: Pairs) -> str:
    """Why a row cannot be set beside its condition; empty where it can."""
    if not same_network(written, condition.profile):
        return NO_NETWORK if written.model_fields_set.isdisjoint(ProfileKeys.model_fields) else OTHER_NETWORK
    if metric and metric not in {each.key for each in condition.workload.with_use(Use.JUDGED, Use.COMPARED)}:
        return f"its workload has no {metric}"
    named = list(written.figures)
    absent = [arm for arm in named if arm not in arms]
    if len(named) - len(absent) < 2:
        return f"the matrix has no {' and no '.join(absent)}"
    return "" if any(pair <= set(named) for pair in pairs) else NOT_COMPARED


def same_network(written: ProfileKeys, profile: Profile) -> bool:
    """Whether the keys say what the profile is, in whatever words."""
    return written.to_model(profile.name) == profile


def published_slips(published: Mapping[str, SourceKeys], conditions: Conditions) -> Iterator[Slip]:
    """Rows of the same source that mean the same metric of the same condition."""
    for source, written in published.items():
        seen: set[tuple[str, str]] = set()
        for name in written.times:
            meant = conditions.called(condition_of(name))
            if len(meant) != 1:
                continue
            row = (meant[0].id, metric_of(name) or meant[0].workload.primary().key)
            if row in seen:
                mistake = Mistake(f"the condition {quoted(meant[0].id)} is there twice", "keep one of the two rows")
                yield Slip(("published", source, "times", name), mistake, at_key=True)
            seen.add(row)
