"""Differences between runs besides their results: settings, environment, and networks that share only a name. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headwind.arm import Arm
from headwind.format import (
    arm_name,
    as_written,
    counted,
    duration,
    listed,
    network_settings,
    override_settings,
    override_texts,
    planned_text,
    program_settings,
    served_text,
)
from headwind.model import Condition, Matrix
from headwind.report.compare.comparison import NOT_NOTED, named_facts
from headwind.report.row_text import ARROWS
from headwind.run.data import RunData

NAMED_CONDITIONS = 12  # conditions listed by name among those that not every run has; the others are counted
ARROW = "\N{RIGHTWARDS ARROW}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A setting or a fact of the environment that differs between runs; one value for each, in their order."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """Different conditions or arms of the same name: each with its description and the indices of its runs."""

    noun: str  # "condition" or "protocol"
    name: str
    kinds: tuple[tuple[str, tuple[int, ...]], ...]


def differing_facts(runs: Sequence[RunData]) -> list[Fact]:
    """Settings first, then lasting facts of the environment; only those that differ."""
    settings = [dict(_settings(data.searched or data.matrix)) for data in runs]
    environments = [
        {f"environment {ARROW} {name}": value for name, value in named_facts(data.environment).items()} for data in runs
    ]
    facts = [{**one, **other} for one, other in zip(settings, environments, strict=True)]
    for data, known in zip(runs, facts, strict=True):
        known["conditions not in all runs"] = _own_conditions(data, runs)
    names = dict.fromkeys([name for known in (*settings, *facts) for name in known])
    absent = {name: "none" for known in settings for name in known}  # such as of a server that a run does not have
    found = [Fact(name, tuple(known.get(name, absent.get(name, NOT_NOTED)) for known in facts)) for name in names]
    return [fact for fact in found if len(set(fact.values)) > 1]


def _settings(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """All settings of a matrix besides its conditions, each to the last digit."""
    repeat, check = matrix.repeat, matrix.selfcheck
    yield "protocols", ", ".join(map(arm_name, matrix.arms))
    yield "overrides", "; ".join(override_texts(matrix.arms)) or "none"
    pairs = sorted(f"{arm_name(new)} against {arm_name(base)}" for new, base in matrix.compare)
    yield "comparisons", ", ".join(pairs) or "every pair"
    for server in matrix.servers:
        for key, value in (program_settings(server.program) if server.program else {}).items():
            yield f"server {server.name} {ARROW} {key}", value
    site = matrix.content
    yield "content", f"{counted(len(site.files), 'file')}, sha256 {site.sha256[:12]}" if site else "none"
    yield "blocks", planned_text(matrix)
    yield "time budget", "none" if repeat.budget_s is None else duration(repeat.budget_s)
    yield "judged metrics", ", ".join(matrix.judge) if matrix.judge is not None else "default"
    yield "margin", as_written("margin_ratio", repeat.margin_ratio)
    yield "confidence", as_written("confidence_ratio", repeat.confidence)
    yield "timeout", as_written("timeout_s", matrix.timeout_s)
    yield "seed", str(matrix.seed)
    yield "congestion control of TCP", matrix.congestion.tcp
    yield "congestion control of QUIC", matrix.congestion.quic
    yield "windows and buffers of the server", matrix.settings.server.value
    yield "windows and buffers of h2load", matrix.settings.client.value
    yield "self-check", str(check.arm) if check else "none"
    for role in ("again", "slower"):
        yield f"self-check {ARROW} {role}", ", ".join(getattr(check, role) if check else ()) or "none"


def _own_conditions(data: RunData, runs: Sequence[RunData]) -> str:
    others = [set(run.matrix.conditions) for run in runs]
    own = [item.id for item in data.matrix.conditions if not all(item in conditions for conditions in others)]
    return f"{counted(len(own), 'condition')}: {listed(own, NAMED_CONDITIONS)}" if own else "none"


def kept_apart(runs: Sequence[RunData]) -> list[Apart]:
    """Every name that belongs to more than one condition or arm: their results cannot be compared."""
    found: dict[tuple[str, str], dict[Condition | Arm, list[int]]] = {}
    for place, data in enumerate(runs):
        for condition in data.matrix.conditions:
            found.setdefault(("condition", condition.id), {}).setdefault(condition, []).append(place)
        for arm in data.matrix.arms:
            found.setdefault(("protocol", arm_name(arm)), {}).setdefault(arm, []).append(place)
    return [
        Apart(noun, name, tuple((describe(item), tuple(places)) for item, places in kinds.items()))
        for (noun, name), kinds in found.items()
        if len(kinds) > 1
    ]


def describe(item: Condition | Arm) -> str:
    """Network and workload of a condition, or the settings of an arm and its server; each value to the last digit."""
    if isinstance(item, Arm):
        program = program_settings(item.server.program) if item.server.program else {}
        return ", ".join(f"{key} {value}" for key, value in {**override_settings(item), **program}.items())
    network = [
        f"{arrow} {key} {value}"
        for direction, arrow in ARROWS.items()
        for key, value in network_settings(item.profile, direction, as_written).items()
    ]
    load = item.workload
    text = f"{', '.join(network) or 'unimpaired'}; {load.brief()}.{served_text(load)}"
    return text.removesuffix(".")
