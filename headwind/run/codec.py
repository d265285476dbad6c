"""The matrix and results as JSON objects and back, without loss; and what differs between two runs.

The classes `Stored...` are the format of a run folder: pydantic reads and writes them by their types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from json import dumps, loads
from typing import Annotated, Any, TypeVar

from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter, ValidationError

from headwind.format import as_written, link_settings
from headwind.model import (
    NOWHERE,
    Arm,
    Block,
    Check,
    Condition,
    Congestion,
    Matrix,
    Outcome,
    Place,
    Proof,
    Protocol,
    Published,
    PublishedRow,
    Repetition,
    Result,
    SelfCheck,
    Trial,
    arm_named,
)
from headwind.settings import UNBOUND, Settings
from headwind.workloads import workload_from_json, workload_to_json
from impair.profile import Direction, Profile

NOT_SET, NOTHING = "not set", "none"
T = TypeVar("T")
HOST_FACTS = ("kernel", "machine", "cpu", "cores", "rmem_max_bytes")  # trials of two such hosts are no pairs


class State(StrEnum):
    """What became of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Status:
    """State of a run, why, and when it began and ended (seconds since the epoch; None: it runs, or was killed)."""

    state: State
    reason: str
    started_at: float
    ended_at: float | None


def _stored(read: Callable[[Any], Any], write: Callable[[Any], Any]) -> tuple[PlainValidator, PlainSerializer]:
    """How a data class that has a JSON form of its own is read and written inside another one."""
    return PlainValidator(read), PlainSerializer(write)


def _condition_to_json(condition: Condition) -> dict[str, Any]:
    return {"profile": condition.profile.to_json(), "workload": workload_to_json(condition.workload)}


def _condition_from_json(data: Mapping[str, Any]) -> Condition:
    return _known_condition(dumps(data))


@lru_cache(maxsize=1024)
def _known_condition(text: str) -> Condition:
    # A run of 10,000 trials has some 40 conditions: parsing and checking each once makes reading it twice as fast.
    data = loads(text)
    return Condition(Profile.from_json(data["profile"]), workload_from_json(data["workload"]))


def _repetition_to_json(repeat: Repetition) -> int | Repetition:
    return repeat.least if repeat == Repetition.fixed(repeat.least) else repeat


StoredCondition = Annotated[Condition, *_stored(_condition_from_json, _condition_to_json)]
StoredArm = Annotated[Arm, *_stored(arm_named, str)]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A PublishedRow in matrix.json."""

    condition: str
    times_s: dict[Protocol, float | None]
    gap: Annotated[str, Field(exclude_if=lambda gap: not gap)] = ""


@dataclass(frozen=True, slots=True)
class StoredPublished:
    """A Published in matrix.json."""

    name: str
    title: str
    note: str
    rows: tuple[StoredRow, ...]


@dataclass(frozen=True, slots=True)
class StoredMatrix:
    """matrix.json: the Matrix as resolved, in SI units. What is not set is left out."""

    title: str
    protocols: tuple[Protocol, ...]
    conditions: tuple[StoredCondition, ...]
    repeat: int | Repetition  # a number where that of the blocks is fixed
    timeout_s: float
    seed: int
    congestion: Congestion
    settings: Annotated[Settings, Field(exclude_if=lambda settings: settings == UNBOUND)] = UNBOUND
    selfcheck: Annotated[SelfCheck | None, Field(exclude_if=lambda selfcheck: selfcheck is None)] = None
    lanes: Annotated[int, Field(exclude_if=lambda lanes: lanes == 1)] = 1
    published: Annotated[tuple[StoredPublished, ...], Field(exclude_if=lambda published: not published)] = ()


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A Trial in the journal, with its whole block and condition: a row explains itself."""

    condition: StoredCondition
    block: int
    order: tuple[StoredArm, ...]
    seeds: dict[Direction, int]
    position: int
    protocol: StoredArm


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A row of the journal: everything of a Result but its samples, which are large and stored on their own."""

    trial: StoredTrial
    outcome: Outcome
    reason: str
    metrics: dict[str, int | float]
    checks: tuple[Check, ...]
    counters: dict[str, Any]
    warnings: tuple[str, ...]
    command: str
    phases_s: dict[str, float]
    attempt: int
    started_at: float
    place: Annotated[Place, Field(exclude_if=lambda place: place == NOWHERE)] = NOWHERE


_MATRIX, _RESULT = TypeAdapter(StoredMatrix), TypeAdapter(StoredResult)


def _read(adapter: TypeAdapter[T], data: Mapping[str, Any]) -> T:
    """Raises ValueError that says what is wrong where, in one line."""
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def matrix_to_json(matrix: Matrix) -> dict[str, Any]:
    """The matrix as resolved, in SI units; `source` and `path` stay out of it: matrix.yaml is kept beside it."""
    published = (
        StoredPublished(each.name, each.title, each.note,
                        tuple(StoredRow(row.condition_id, dict(row.times_s), row.gap) for row in each.rows))
        for each in matrix.published
    )  # fmt: skip
    stored = StoredMatrix(
        matrix.title, matrix.protocols, matrix.conditions, _repetition_to_json(matrix.repeat), matrix.timeout_s,
        matrix.seed, matrix.congestion, matrix.settings, matrix.selfcheck, matrix.lanes, tuple(published),
    )  # fmt: skip
    written: dict[str, Any] = _MATRIX.dump_python(stored, mode="json")
    return written


def matrix_from_json(data: Mapping[str, Any], source: str = "", path: str = "") -> Matrix:
    """What `matrix_to_json` was given. Raises KeyError, TypeError or ValueError for anything else."""
    stored = _read(_MATRIX, data)
    published = (
        Published(each.name, each.title,
                  tuple(PublishedRow(row.condition, row.times_s, row.gap) for row in each.rows), each.note)
        for each in stored.published
    )  # fmt: skip
    return Matrix(
        stored.protocols, stored.conditions,
        Repetition.fixed(stored.repeat) if isinstance(stored.repeat, int) else stored.repeat,
        stored.timeout_s, stored.seed, stored.congestion, stored.settings, stored.lanes, stored.title, source, path,
        stored.selfcheck, tuple(published),
    )  # fmt: skip


def planned_trials(matrix: Matrix) -> int:
    """How many trials the matrix asks for at least."""
    return sum(len(matrix.arms(condition)) for condition in matrix.conditions) * matrix.repeat.least


def fewest_trials(matrix: Matrix) -> int:
    """How many trials a run of the matrix has if all goes well; where a budget decides, it may be a single one."""
    return 1 if matrix.repeat.is_adaptive else planned_trials(matrix)


def result_to_json(result: Result) -> str:
    """Everything of a result but its samples, as JSON text."""
    trial, block = result.trial, result.trial.block
    stored = StoredResult(
        StoredTrial(block.condition, block.index, block.order, dict(block.seeds), trial.position, trial.arm),
        result.outcome, result.reason, dict(result.metrics), result.proof.checks, dict(result.proof.counters),
        result.proof.warnings, result.command, dict(result.phases_s), result.attempt, result.started_at,
        result.place,
    )  # fmt: skip
    # pydantic's own text would have null for what is infinite.
    return dumps(_RESULT.dump_python(stored))


def result_from_json(text: str, samples: Mapping[str, Any]) -> Result:
    """What `result_to_json` was given, with `samples`. Raises KeyError, TypeError or ValueError for anything else."""
    try:
        stored = _RESULT.validate_json(text)  # in two thirds of the time that json.loads needs
    except ValidationError:  # also of half a surrogate pair, which json.loads reads
        stored = _read(_RESULT, loads(text))
    trial = stored.trial
    return Result(
        Trial(Block(trial.condition, trial.block, trial.order, trial.seeds), trial.position, trial.protocol),
        stored.outcome, stored.reason, stored.metrics, Proof(stored.checks, stored.counters, stored.warnings), samples,
        stored.command, stored.phases_s, stored.attempt, stored.started_at, stored.place,
    )  # fmt: skip


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """One line for every setting of two resolved matrices that differs, named as in matrix.yaml, in its units.

    `before` and `after` are JSON objects of `matrix_to_json`. The title, the number
    of lanes and what others published decide nothing and are not compared.
    """
    old, new = matrix_from_json(before), matrix_from_json(after)
    first, second = _settings(old), _settings(new)
    yield from (f"{group}: removed" for group in first if group not in second)
    yield from (f"{group}: added" for group in second if group not in first)
    for group in (group for group in first if group in second):
        yield from _different_keys(group, first[group], second[group])
    # Conditions of a profile or workload that only one side has were told above.
    both = first.keys() & second.keys()
    order = [[item.id for item in matrix.conditions if both.issuperset(_groups(item))] for matrix in (old, new)]
    yield from _different_keys("", {"conditions": ", ".join(order[0])}, {"conditions": ", ".join(order[1])})


def setup_differences(
    environment: Mapping[str, Any], images: Mapping[str, str], engine: str, host: Mapping[str, Any]
) -> Iterator[str]:
    """One line for each image, for the engine and for each fact of the host that is not what the environment says."""
    before = environment.get("images", {})
    for name in sorted({*before, *images}):
        if before.get(name) != images.get(name):
            yield f"image {name}: {before.get(name, NOTHING)} -> {images.get(name, NOTHING)}"
    if environment.get("engine") != engine:
        yield f"engine: {environment.get('engine', NOTHING)} -> {engine}"
    known = environment.get("host", {})
    for name in HOST_FACTS:
        if name in known and name in host and known[name] != host[name]:
            yield f"host's {name}: {known[name]} -> {host[name]}"


def _groups(condition: Condition) -> tuple[str, str]:
    return f"profiles.{condition.profile.name}", f"workloads.{condition.workload.name}"


def _different_keys(group: str, first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[str]:
    for key in list(first) + [key for key in second if key not in first]:
        old, new = first.get(key, NOT_SET), second.get(key, NOT_SET)
        if old != new:
            yield f"{group}.{key}: {old} -> {new}" if group else f"{key}: {old} -> {new}"


def _settings(matrix: Matrix) -> dict[str, dict[str, str]]:
    """Settings by group (the matrix itself is "", each profile and workload is one) and key."""
    groups = {
        "": {
            "protocols": ", ".join(matrix.protocols),
            **_repetition_settings(matrix.repeat),
            "timeout": as_written("timeout_s", matrix.timeout_s),
            "seed": str(matrix.seed),
            "congestion.tcp": matrix.congestion.tcp,
            "congestion.quic": matrix.congestion.quic,
            "settings.server": matrix.settings.server,
            "settings.client": matrix.settings.client,
            **_selfcheck_settings(matrix.selfcheck),
        }
    }
    for condition in matrix.conditions:
        profile, workload = _groups(condition)
        groups[profile] = {
            f"{direction.value}.{key}": value
            for direction in Direction
            for key, value in link_settings(condition.profile.link(direction), as_written).items()
        }
        settings = workload_to_json(condition.workload)
        groups[workload] = {key: str(value) for key, value in settings.items() if key != "name"}
    return groups


def _repetition_settings(repeat: Repetition) -> dict[str, str]:
    """What must not change while a run goes on; the budget may, because anytime-valid statistics allow for it."""
    if not repeat.is_adaptive:
        return {"repeat": str(repeat.least)}
    return {
        "repeat": f"{repeat.least} to {repeat.most}",
        "repeat.margin": as_written("margin_ratio", repeat.margin_ratio),
        "repeat.confidence": as_written("confidence_ratio", repeat.confidence),
    }


def _selfcheck_settings(selfcheck: SelfCheck | None) -> dict[str, str]:
    if selfcheck is None:
        return {}
    profiles = {"again": selfcheck.again, "slower": selfcheck.slower}
    return {
        "selfcheck.protocol": selfcheck.protocol.value,
        **{f"selfcheck.{key}": ", ".join(names) for key, names in profiles.items() if names},
    }
