"""Lossless conversion of the matrix and of results to JSON objects and back.

The classes `Stored...` are the format of a run folder: pydantic reads and writes them by their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import lru_cache
from json import dumps, loads
from typing import Annotated, Any, TypeVar

from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter, ValidationError

from headwind.arm import Arm, Congestion, Overrides, Protocol, Role, arm_named
from headwind.metric import Unfinished
from headwind.model import (
    NOWHERE,
    Block,
    Check,
    Condition,
    Matrix,
    Outcome,
    Place,
    Proof,
    Published,
    PublishedRow,
    Repetition,
    Result,
    Search,
    SelfCheck,
    Trial,
)
from headwind.servers import NGINX, SERVERS, Program, Server, own_server
from headwind.settings import UNLIMITED, Settings, Windows
from headwind.site import Site, SiteFile
from headwind.workloads import workload_from_json, workload_to_json
from impair.profile import Direction, Profile

T = TypeVar("T")
_PROGRAM = TypeAdapter(Program)
# More than any matrix can have (headwind/matrix/document.py) or any trial gives: time and memory stay bounded.
MOST_CONDITIONS, MOST_ARMS, MOST_PAIRS, MOST_BLOCKS, MOST_TRIALS = 10_000, 20, 50, 1_000, 20_000
MOST_METRICS, MOST_CHECKS = 500, 10_000


class State(StrEnum):
    """State of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Status:
    """State of a run with its reason, and its start and end (seconds since the epoch; None: in progress, or killed)."""

    state: State
    reason: str
    started_at: float
    ended_at: float | None


def _stored(read: Callable[[Any], Any], write: Callable[[Any], Any]) -> tuple[PlainValidator, PlainSerializer]:
    """How a data class with its own JSON form is read and written inside another one."""
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


def _arm_to_json(arm: Arm) -> str | dict[str, Any]:
    """The name, if it suffices: for a plain arm, and for the twin of one."""
    with suppress(ValueError):
        if arm_named(arm.name) == arm:
            return arm.name
    own = {key: value for key, value in asdict(arm.overrides).items() if value is not None}
    own["workload"] = dict(arm.overrides.workload)
    found = {"name": arm.name, "protocol": arm.protocol.value, "role": arm.role.value, "overrides": own}
    return found if arm.server == NGINX else {**found, "server": _server_to_json(arm.server)}


def _arm_from_json(data: str | Mapping[str, Any]) -> Arm:
    if isinstance(data, str):
        return arm_named(data)
    own = dict(data["overrides"])
    windows = {end: Windows(own.pop(end)) for end in ("server_windows", "client_windows") if end in own}
    overrides = Overrides(**{**own, **windows, "workload": tuple(own.get("workload", {}).items())})
    server = _server_from_json(data["server"]) if "server" in data else NGINX
    return Arm(data["name"], Protocol(data["protocol"]), Role(data["role"]), overrides, server)


def _server_to_json(server: Server) -> str | dict[str, Any]:
    """The name of a shipped server; everything about the user's server."""
    if server.program is None:
        return server.name
    written: dict[str, Any] = _PROGRAM.dump_python(server.program, mode="json")
    return {"name": server.name, **written, "env": dict(server.program.env)}


def _server_from_json(data: str | Mapping[str, Any]) -> Server:
    if isinstance(data, str):
        return SERVERS[data]
    own = {key: value for key, value in data.items() if key != "name"}
    return own_server(data["name"], _PROGRAM.validate_python({**own, "env": tuple(own["env"].items())}))


def _repetition_to_json(repeat: Repetition) -> int | Repetition:
    return repeat.least if repeat == Repetition.fixed(repeat.least) else repeat


StoredCondition = Annotated[Condition, *_stored(_condition_from_json, _condition_to_json)]
StoredArm = Annotated[Arm, *_stored(_arm_from_json, _arm_to_json)]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A PublishedRow in matrix.json."""

    condition: str
    values: dict[str, float | None]
    gap: Annotated[str, Field(exclude_if=lambda gap: not gap)] = ""
    metric: Annotated[str, Field(exclude_if=lambda metric: not metric)] = ""
    statistic: Annotated[str, Field(exclude_if=lambda statistic: not statistic)] = ""
    relative: Annotated[bool, Field(exclude_if=lambda relative: not relative)] = False


@dataclass(frozen=True, slots=True)
class StoredPublished:
    """A Published in matrix.json."""

    name: str
    title: str
    note: str
    rows: tuple[StoredRow, ...]
    source: Annotated[str, Field(exclude_if=lambda source: not source)] = ""


@dataclass(frozen=True, slots=True)
class StoredSelfCheck:
    """A SelfCheck in matrix.json."""

    protocol: StoredArm
    again: tuple[str, ...]
    slower: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredSearch:
    """A Search in matrix.json."""

    new: str
    base: str
    along: str
    points: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class StoredSite:
    """A Site in matrix.json."""

    folder: str
    files: tuple[SiteFile, ...]


@dataclass(frozen=True, slots=True)
class StoredMatrix:
    """matrix.json: the Matrix as resolved, in SI units. Unset values are left out."""

    title: str
    protocols: Annotated[tuple[StoredArm, ...], Field(max_length=MOST_ARMS)]
    conditions: Annotated[tuple[StoredCondition, ...], Field(max_length=MOST_CONDITIONS)]
    repeat: int | Repetition  # a number if the number of blocks is fixed
    timeout_s: float
    seed: int
    congestion: Congestion
    settings: Annotated[Settings, Field(exclude_if=lambda settings: settings == UNLIMITED)] = UNLIMITED
    selfcheck: Annotated[StoredSelfCheck | None, Field(exclude_if=lambda selfcheck: selfcheck is None)] = None
    lanes: Annotated[int, Field(exclude_if=lambda lanes: lanes == 1)] = 1
    published: Annotated[tuple[StoredPublished, ...], Field(exclude_if=lambda published: not published)] = ()
    judge: Annotated[tuple[str, ...] | None, Field(exclude_if=lambda judge: judge is None)] = None
    compare: Annotated[
        tuple[tuple[str, str], ...], Field(max_length=MOST_PAIRS, exclude_if=lambda compare: not compare)
    ] = ()  # arms by name
    find: Annotated[StoredSearch | None, Field(exclude_if=lambda find: find is None)] = None
    content: Annotated[StoredSite | None, Field(exclude_if=lambda content: content is None)] = None


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A Trial in the journal, with its whole block and condition: a row explains itself."""

    condition: StoredCondition
    block: int
    order: Annotated[tuple[StoredArm, ...], Field(max_length=2 * MOST_ARMS)]
    seeds: dict[Direction, int]
    position: int
    protocol: StoredArm


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A row of the journal: everything of a Result except its samples, which are large and stored separately."""

    trial: StoredTrial
    outcome: Outcome
    reason: str
    metrics: Annotated[dict[str, int | float], Field(max_length=MOST_METRICS)]
    checks: Annotated[tuple[Check, ...], Field(max_length=MOST_CHECKS)]
    counters: dict[str, Any]
    warnings: tuple[str, ...]
    command: str
    phases_s: dict[str, float]
    attempt: int
    started_at: float
    place: Annotated[Place, Field(exclude_if=lambda place: place == NOWHERE)] = NOWHERE
    ended_at: Annotated[float, Field(exclude_if=lambda time_s: not time_s)] = 0.0


_MATRIX, _TRIAL, _RESULT = TypeAdapter(StoredMatrix), TypeAdapter(StoredTrial), TypeAdapter(StoredResult)


def validated(adapter: TypeAdapter[T], data: Mapping[str, Any]) -> T:
    """Validate data. Raises ValueError with the place and the reason, in one line."""
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _stored_row(row: PublishedRow) -> StoredRow:
    return StoredRow(row.condition_id, dict(row.values), row.gap, row.metric, row.statistic, row.is_relative)


def matrix_to_json(matrix: Matrix) -> dict[str, Any]:
    """The matrix as resolved, in SI units, without `source` and `path`: matrix.yaml is stored next to it."""
    published = (
        StoredPublished(each.name, each.title, each.note, tuple(map(_stored_row, each.rows)), each.source)
        for each in matrix.published
    )
    check, find = matrix.selfcheck, matrix.find
    stored = StoredMatrix(
        matrix.title, matrix.arms, matrix.conditions, _repetition_to_json(matrix.repeat), matrix.timeout_s,
        matrix.seed, matrix.congestion, matrix.settings,
        StoredSelfCheck(check.arm, check.again, check.slower) if check else None, matrix.lanes, tuple(published),
        matrix.judge, tuple((new.name, base.name) for new, base in matrix.compare),
        StoredSearch(find.new.name, find.base.name, find.along, find.points) if find else None,
        StoredSite(matrix.content.folder, matrix.content.files) if matrix.content else None,
    )  # fmt: skip
    written: dict[str, Any] = _MATRIX.dump_python(stored, mode="json")
    return written


def matrix_from_json(data: Mapping[str, Any], source: str = "", path: str = "") -> Matrix:
    """The matrix from the output of `matrix_to_json`. Raises KeyError, TypeError or ValueError for anything else."""
    stored = validated(_MATRIX, data)
    _check_size(stored)
    published = (
        Published(
            each.name, each.title,
            tuple(
                PublishedRow(row.condition, row.values, row.gap, row.metric, row.statistic, row.relative)
                for row in each.rows
            ),
            each.note, each.source,
        )
        for each in stored.published
    )  # fmt: skip
    find = stored.find
    check, arms = stored.selfcheck, {arm.name: arm for arm in stored.protocols}
    return Matrix(
        stored.protocols, stored.conditions,
        Repetition.fixed(stored.repeat) if isinstance(stored.repeat, int) else stored.repeat,
        stored.timeout_s, stored.seed, stored.congestion, stored.settings, stored.lanes, stored.title, source, path,
        SelfCheck(check.protocol, check.again, check.slower) if check else None, tuple(published), stored.judge,
        tuple((arms[new], arms[base]) for new, base in stored.compare),
        find=Search(arms[find.new], arms[find.base], find.along, find.points) if find else None,
        content=Site(stored.content.folder, stored.content.files) if stored.content else None,
    )  # fmt: skip


def _check_size(stored: StoredMatrix) -> None:
    """Raise ValueError for more blocks than a matrix can ask for: a resumed run would list all of them."""
    repeat = Repetition.fixed(stored.repeat) if isinstance(stored.repeat, int) else stored.repeat
    trials = len(stored.conditions) * len(stored.protocols) * repeat.least
    if repeat.most > MOST_BLOCKS or (trials > MOST_TRIALS and not stored.find):
        raise ValueError(f"repeat: {repeat.most} blocks of {len(stored.conditions)} conditions are more than a run has")


def planned_trials(matrix: Matrix) -> int:
    """The minimum number of trials of the matrix."""
    if matrix.find:
        return 1  # the results decide all others
    return sum(len(matrix.arms_in(condition)) for condition in matrix.conditions) * matrix.repeat.least


def _stored_trial(trial: Trial) -> StoredTrial:
    block = trial.block
    return StoredTrial(block.condition, block.index, block.order, dict(block.seeds), trial.position, trial.arm)


def _trial(stored: StoredTrial) -> Trial:
    return Trial(Block(stored.condition, stored.block, stored.order, stored.seeds), stored.position, stored.protocol)


def trial_to_json(trial: Trial) -> dict[str, Any]:
    """A trial with its whole block, as a JSON object."""
    written: dict[str, Any] = _TRIAL.dump_python(_stored_trial(trial), mode="json")
    return written


def trial_from_json(data: Mapping[str, Any]) -> Trial:
    """The trial from the output of `trial_to_json`. Raises KeyError, TypeError or ValueError for anything else."""
    return _trial(validated(_TRIAL, data))


def result_to_json(result: Result) -> str:
    """Everything of a result except its samples, as JSON text."""
    stored = StoredResult(
        _stored_trial(result.trial), result.outcome, result.reason, dict(result.metrics), result.proof.checks,
        dict(result.proof.counters), result.proof.warnings, result.command, dict(result.phases_s), result.attempt,
        result.started_at, result.place, result.ended_at,
    )  # fmt: skip
    # pydantic's own text would have null for infinity.
    written: dict[str, Any] = _RESULT.dump_python(stored)
    for check in written["checks"]:
        if not check["span"]:  # as in every network that does not change
            del check["span"]
    return dumps(written)


def result_from_json(text: str, samples: Mapping[str, Any]) -> Result:
    """The result from the output of `result_to_json`, with `samples`.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    try:
        stored = _RESULT.validate_json(text)  # in two thirds of the time of json.loads
    except ValidationError:  # also for half a surrogate pair, which json.loads reads
        stored = validated(_RESULT, loads(text))
    trial = stored.trial
    bounded = [metric.low_key for metric in trial.condition.workload.metrics if metric.unfinished is Unfinished.BOUNDED]
    if stored.outcome is Outcome.TIMEOUT and any(stored.metrics.get(key, 0.0) < 0 for key in bounded):
        raise ValueError(f"{trial.condition.id}#{trial.block}/{trial.protocol}: a negative bound")
    return Result(
        _trial(stored.trial), stored.outcome, stored.reason, stored.metrics,
        Proof(stored.checks, stored.counters, stored.warnings), samples, stored.command, stored.phases_s,
        stored.attempt, stored.started_at, stored.place, stored.ended_at,
    )  # fmt: skip
