"""The keys under `published` in matrix.yaml: figures of earlier articles, each with its network.

A row is bound to its network: if the profile of its name is a different network, from the start or by an edit, the row
gets a gap in place of a counterpart. Otherwise the report would compare the article with a network that it did not
measure. A gap is not a mistake: an edited experiment does not require an edited article.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Self

from pydantic import (
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from headwind.arm import ARM_NAME
from headwind.matrix import units, values
from headwind.matrix.keys import Keys, key
from headwind.matrix.mistakes import Slip, Slips, from_pydantic, raise_any, unknown
from headwind.matrix.profile import ProfileKeys
from headwind.matrix.spelling import respelt
from headwind.matrix.units import Mistake, choose, listed, quoted
from headwind.matrix.values import Written, between
from headwind.metric import Use
from headwind.model import Condition, Published, PublishedRow
from impair.profile import Profile

UNFINISHED = "unfinished"  # in place of a figure
STATISTICS = ("mean", "median", "p90", "p99")
WITHOUT_REASON = ("true", "yes", "on", "false", "no", "off")  # in place of a reason for not measuring
FIGURE_AT = 5  # steps to a figure: `published`, the article, `times`, the row, the arm
SECONDS, BPS = (1e-6, 7 * 86_400.0), (1.0, 1e12)
SHARES = (0.01, 100.0)
_STATISTIC = re.compile(r"(?:p|percentile)\W*([0-9.]+)\W*|([0-9.]+)(?:[a-z]{2}|p|%)?(?: ?percentile)?", re.IGNORECASE)
_NAMED = re.compile(r"([A-Za-z][\w()]*|p\([0-9.]+\)|[0-9.]+%)(?:\s*[:=]\s*|\s+)(\S.*)")  # a figure with its statistic
_IS_RATE = re.compile(r"bit|bps|[kmgt]b(?:/s|ps|\Z)|b/s", re.IGNORECASE)
RELATIVE = "ratio"  # the unit of figures that an article prints relative to each other


@dataclass(frozen=True, slots=True)
class Figure:
    """A published value in `s`, `bps` or RELATIVE; None: no result, in any unit."""

    unit: str
    value: float | None


def _figure(value: Any) -> Figure:
    """Parse a time, a rate, a share such as `103%`, or `unfinished`. Raises Mistake."""
    if value == UNFINISHED:
        return Figure("", None)
    if isinstance(value, str) and (named := _by_statistic(value)):
        figures = ", ".join(f"{name}: {figure}" for name, figure in named.items())
        raise Mistake(f"{quoted(value)} is not one figure", f"did you mean {{{figures}}}?")
    if isinstance(value, str) and re.fullmatch(units.RATIO.pattern, value):
        return Figure(
            RELATIVE, between(float(units.RATIO.parse(value)), SHARES, value, "a relative figure is from 1% to 10000%")
        )
    otherwise = f"(`{UNFINISHED}` if there was no result)"
    is_rate = isinstance(value, str) and _IS_RATE.search(value) is not None
    try:
        number = units.bits_per_second(value) if is_rate else units.seconds(value)
    except Mistake as mistake:
        raise Mistake(str(mistake), f"{mistake.hint} {otherwise}") from None
    bounds, hint = (BPS, "rate is from 1bit to 1tbit") if is_rate else (SECONDS, "time is from 1us to 604800s")
    return Figure("bps" if is_rate else "s", between(number, bounds, value, f"a published {hint} {otherwise}"))


def _statistic(name: str) -> str:
    """Return the name of a statistic. Raises Mistake: a percentile is not another one that is close to it."""
    words = {"avg": "mean", "average": "mean", "med": "median", **{each: each for each in STATISTICS}}
    number = "".join(each or "" for each in found.groups()) if (found := _STATISTIC.fullmatch(name)) else ""
    near = words.get(name.casefold()) or {"50": "median", "90": "p90", "99": "p99"}.get(number, "")
    near = near or ("" if number else respelt(name, STATISTICS))
    if name in STATISTICS:
        return name
    message, others = f"{quoted(name)} is not a statistic of an article's runs", listed([*STATISTICS])
    if number and not near:
        raise Mistake(message, f"{others}; there is no key for other percentiles: write it into `note`")
    raise Mistake(message, f"did you mean {quoted(near)}? {others}" if near else others)


def _by_statistic(text: str) -> dict[str, str]:
    """The figures of `p90 130ms` and `mean 862ms, median 549ms` by their statistics; empty for other texts."""
    found = {}
    for part in re.split(r"\s*[,;]\s*", text):
        if not (named := _NAMED.fullmatch(part)):
            return {}
        try:
            name = _statistic(named[1])
        except Mistake as mistake:
            near = re.match(r"did you mean `(\w+)`\?", mistake.hint)
            name = near[1] if near else named[1]
        try:
            _figure(named[2])
        except Mistake:
            return {}
        found[name] = named[2]
    return found


def of_figure(path: Sequence[str | int], written: Any) -> str:
    """Hint for a number without a unit, or in another one, in a row of rates; empty for others."""
    if path[0] != "published" or len(path) < FIGURE_AT or not metric_of(str(path[FIGURE_AT - 2])).endswith("_bps"):
        return ""
    try:
        units.bits_per_second(written)
    except Mistake as mistake:
        return mistake.hint
    return ""


def of_row(written: Any, names: Sequence[str]) -> str:
    """Hint for a text or a list in place of a row; `names` are those of the arms of the file."""
    arms = [*names, "h2", "h3"][:2] if len(names) != 1 else [*names, "h3" if names[0] != "h3" else "h2"]
    words = written if isinstance(written, list) else re.split(r"\s*[,;/]\s*|\s+", str(written))
    figures = [str(word) for word in words if _is_figure(word)]
    arms = [word for word in words if word in names] or arms
    if 1 < len(figures) == len(arms):
        return f"a row has a figure of each arm: {{{', '.join(map(': '.join, zip(arms, figures, strict=True)))}}}"
    arms, first = [*arms, "h3"][:2], figures[0] if len(figures) == 1 else "..."
    return f"a row has a figure of each arm: {{{arms[0]}: {first}, {arms[1]}: ...}}"


def _is_figure(value: Any) -> bool:
    try:
        _figure(value)
    except Mistake:
        return False
    return True


def _reason(value: Any) -> str:
    """Return the text if it is a reason for not measuring. Raises Mistake."""
    text = values.note(value)
    if text.casefold() in WITHOUT_REASON:
        raise Mistake(f"{quoted(text)} is not a reason", "why it is not measured, in a few words; or remove the key")
    return text


Reason = Annotated[str, Written(_reason, {"type": "string", "minLength": 1, "maxLength": values.LONGEST_NOTE})]


def _figures(value: Any) -> dict[str, Figure]:
    """Parse figures by statistic; a single figure is under "". Raises Mistake or Slips."""
    if not isinstance(value, dict):
        return {"": _figure(value)}
    found, slips = {}, []
    for name, written in value.items():
        try:
            found[_statistic(name)] = _figure(written)
        except Mistake as mistake:
            slips.append(Slip((name,), mistake, at_key=name not in STATISTICS))
    if not value:
        slips.append(Slip((), Mistake("there is no figure here", "such as {mean: 862ms, p90: 1.766s}")))
    raise_any(slips)
    return found


_FIGURE = {
    "type": "string", "pattern": f"{units.TIME.pattern}|{units.RATE.pattern}|{units.RATIO.pattern}|^{UNFINISHED}$",
    "examples": ["406ms", "103%", UNFINISHED],
}  # fmt: skip
PublishedFigures = Annotated[
    dict[str, Figure],
    Written(
        _figures,
        {"anyOf": [_FIGURE, {"type": "object", "properties": dict.fromkeys(STATISTICS, _FIGURE),
                             "additionalProperties": False, "minProperties": 1}]},
    ),
]  # fmt: skip


NO_CONDITION = "there is no such condition"
SEVERAL = "several workloads; write profile/workload"
NO_NETWORK = "no network given, which means a clean one; the profile is not clean"
OTHER_NETWORK = "the profile is a different network now"
NOT_COMPARED = "the matrix does not compare these arms"

Pairs = Collection[frozenset[str]]  # names of arms that are compared


def _arms_alone(schema: dict[str, Any]) -> None:
    """Declare in the JSON schema that keys other than the model's are names of arms."""
    schema["patternProperties"] = {f"^{ARM_NAME.pattern}$": schema.pop("additionalProperties")}
    schema["additionalProperties"] = False
    schema["anyOf"] = [{"required": ["unmeasured"]}, {"minProperties": 2}]


class RowKeys(ProfileKeys):
    """Figures of an article for one condition: one for each arm, over the network of `downlink` and so on.

    Without these it was an unimpaired one. Every further key is the name of an arm.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_arms_alone)
    __pydantic_extra__: dict[str, PublishedFigures]

    unmeasured: Reason | None = key("why this experiment does not measure it; figures are then optional", None)

    @model_validator(mode="wrap")
    @classmethod
    def _only_arms(cls, written: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Report every key that is neither a field nor the name of an arm, together with other mistakes."""
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
                    [Slip((other,), Mistake(f"`{one}` and `{other}` have different statistics", "give both the same"))]
                )
        if len({figure.unit for each in figures.values() for figure in each.values()} - {""}) > 1:
            raise Mistake("times, rates or shares are mixed in this row", "a row has figures of one unit")
        return self

    @property
    def figures(self) -> dict[str, dict[str, Figure]]:
        """Figures of each arm, by statistic."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def unit(self) -> str:
        """Unit of the figures: "s", "bps" or RELATIVE; empty without any result."""
        return next((each.unit for arm in self.figures.values() for each in arm.values() if each.unit), "")

    def rows(self, condition_id: str, metric: str, gap: str) -> Iterator[PublishedRow]:
        """Rows for the report, one for each statistic."""
        statistics: Collection[str] = next(iter(self.figures.values()), {"": None})
        for statistic in statistics:
            figures = {arm: each[statistic].value for arm, each in self.figures.items()}
            yield PublishedRow(condition_id, figures, gap, metric, statistic, is_relative=self.unit == RELATIVE)


class SourceKeys(Keys):
    """An article that compared the same protocols over the same networks."""

    title: values.Heading = key("title and author of the article")
    source: values.Note | None = key("where to read it", None)
    note: values.Note | None = key("differences from this experiment, and results, in a few sentences", None)
    times: dict[values.RowName, RowKeys] = key(
        "rows by profile/workload, or by profile if it has one workload; with /METRIC if it is not the first one",
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
            if row.unit not in ("", RELATIVE) and row.unit != (metric.rpartition("_")[2] or "s"):
                wanted = f"`{metric}` is in {metric.rpartition('_')[2]}" if metric else "a total time is a time"
                slips.append(Slip((name,), Mistake(f"the figures are in {row.unit}", f"{wanted}; name another metric")))
        raise_any(slips)
        return times

    def to_model(self, name: str, conditions: Conditions, arms: Collection[str], pairs: Pairs) -> Published:
        """Convert to the article's rows for these conditions, arms and comparisons, by name. Cannot fail."""
        rows = (
            each for row, written in self.times.items()
            for each in _rows(row, written, conditions, arms, pairs)
        )  # fmt: skip
        return Published(name, self.title, tuple(rows), self.note or "", self.source or "")


def metric_of(name: str) -> str:
    """Key of the metric at the end of a row's name; empty without one."""
    return "".join(name.split("/", 2)[2:])


def condition_of(name: str) -> str:
    """Condition in a row's name."""
    return "/".join(name.split("/", 2)[:2])


class Conditions:
    """Conditions of a matrix by their names in rows: `profile/workload`, or the profile alone.

    The profile alone is unambiguous if it has only one condition.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._called: dict[str, dict[str, Condition]] = {}
        for condition in conditions:
            for name in (condition.id, condition.profile.name):
                self._called.setdefault(name, {})[condition.id] = condition

    def called(self, name: str) -> list[Condition]:
        """Every condition that the name may mean."""
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
    """Reason why a row cannot be compared with its condition; empty if it can."""
    if not same_network(written, condition.profile):
        return NO_NETWORK if written.model_fields_set.isdisjoint(ProfileKeys.model_fields) else OTHER_NETWORK
    if metric and metric not in {each.key for each in condition.metrics(Use.JUDGED, Use.COMPARED)}:
        return f"its workload has no {metric}"
    named = list(written.figures)
    absent = [arm for arm in named if arm not in arms]
    if len(named) - len(absent) < 2:
        return f"the matrix has no {' and no '.join(absent)}"
    return "" if any(pair <= set(named) for pair in pairs) else NOT_COMPARED


def same_network(written: ProfileKeys, profile: Profile) -> bool:
    """True if the keys define the same network as the profile."""
    return written.to_model(profile.name) == profile


def published_slips(published: Mapping[str, SourceKeys], conditions: Conditions) -> Iterator[Slip]:
    """Mistakes of rows of one source about the same metric of the same condition."""
    for source, written in published.items():
        seen: set[tuple[str, str]] = set()
        for name in written.times:
            meant = conditions.called(condition_of(name))
            if len(meant) != 1:
                continue
            row = (meant[0].id, metric_of(name) or meant[0].workload.primary().key)
            if row in seen:
                mistake = Mistake(f"the condition {quoted(meant[0].id)} appears twice", "keep one of the two rows")
                yield Slip(("published", source, "times", name), mistake, at_key=True)
            seen.add(row)
