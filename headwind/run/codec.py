"""The matrix, trials and results as JSON objects and back, without loss; and what differs between two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from json import dumps, loads
from typing import Any

from headwind.format import as_written, link_settings
from headwind.model import (
    Block,
    Check,
    Condition,
    Congestion,
    Matrix,
    Outcome,
    Proof,
    Protocol,
    Published,
    PublishedRow,
    Repetition,
    Result,
    SelfCheck,
    Trial,
    arm_named,
    to_json,
)
from headwind.settings import UNBOUND, Settings, Windows
from headwind.workloads import workload_from_json, workload_to_json
from impair.profile import Direction, Profile

NOT_SET, NOTHING = "not set", "none"


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


def matrix_to_json(matrix: Matrix) -> dict[str, Any]:
    """The matrix as resolved, in SI units; `source` and `path` stay out of it: matrix.yaml is kept beside it."""
    return {
        "title": matrix.title,
        "protocols": list(matrix.protocols),
        "conditions": [_condition_to_json(condition) for condition in matrix.conditions],
        "repeat": _repetition_to_json(matrix.repeat),
        "timeout_s": matrix.timeout_s,
        "seed": matrix.seed,
        "congestion": to_json(matrix.congestion),
        **({"settings": to_json(matrix.settings)} if matrix.settings != UNBOUND else {}),
        **({"selfcheck": to_json(matrix.selfcheck)} if matrix.selfcheck else {}),
        **({"published": [_published_to_json(source) for source in matrix.published]} if matrix.published else {}),
    }


def _repetition_to_json(repeat: Repetition) -> int | dict[str, Any]:
    """A plain number where the number of blocks is fixed."""
    return repeat.least if repeat == Repetition.fixed(repeat.least) else to_json(repeat)


def _repetition_from_json(data: int | Mapping[str, Any]) -> Repetition:
    return Repetition.fixed(data) if isinstance(data, int) else Repetition(**data)


def _selfcheck_from_json(data: Mapping[str, Any] | None) -> SelfCheck | None:
    return SelfCheck(Protocol(data["protocol"]), tuple(data["again"]), tuple(data["slower"])) if data else None


def _published_to_json(source: Published) -> dict[str, Any]:
    rows = [
        {
            "condition": row.condition_id,
            "times_s": {name.value: time_s for name, time_s in row.times_s.items()},
            **({"gap": row.gap} if row.gap else {}),
        }
        for row in source.rows
    ]
    return {"name": source.name, "title": source.title, "note": source.note, "rows": rows}


def _published_from_json(data: Mapping[str, Any]) -> Published:
    rows = tuple(
        PublishedRow(
            row["condition"], {Protocol(name): row["times_s"][name] for name in row["times_s"]}, row.get("gap", "")
        )
        for row in data["rows"]
    )
    return Published(data["name"], data["title"], rows, data["note"])


def matrix_from_json(data: Mapping[str, Any], source: str = "", path: str = "") -> Matrix:
    """What `matrix_to_json` was given. Raises KeyError, TypeError or ValueError for anything else."""
    return Matrix(
        protocols=tuple(Protocol(name) for name in data["protocols"]),
        conditions=tuple(_condition_from_json(condition) for condition in data["conditions"]),
        repeat=_repetition_from_json(data["repeat"]),
        timeout_s=data["timeout_s"],
        seed=data["seed"],
        congestion=Congestion(**data["congestion"]),
        settings=Settings(**{end: Windows(each) for end, each in data.get("settings", {}).items()}),
        title=data["title"],
        source=source,
        path=path,
        selfcheck=_selfcheck_from_json(data.get("selfcheck")),
        published=tuple(_published_from_json(source) for source in data.get("published", ())),
    )


def planned_trials(matrix: Matrix) -> int:
    """How many trials the matrix asks for at least."""
    return sum(len(matrix.arms(condition)) for condition in matrix.conditions) * matrix.repeat.least


def fewest_trials(matrix: Matrix) -> int:
    """How many trials a run of the matrix has if all goes well; where a budget decides, it may be a single one."""
    return 1 if matrix.repeat.is_adaptive else planned_trials(matrix)


def _condition_to_json(condition: Condition) -> dict[str, Any]:
    return {"profile": condition.profile.to_json(), "workload": workload_to_json(condition.workload)}


def _condition_from_json(data: Mapping[str, Any]) -> Condition:
    return _known_condition(dumps(data))


@lru_cache(maxsize=1024)
def _known_condition(text: str) -> Condition:
    # A run of 10,000 trials has some 40 conditions: parsing and checking each once makes reading it twice as fast.
    data = loads(text)
    return Condition(Profile.from_json(data["profile"]), workload_from_json(data["workload"]))


def trial_to_json(trial: Trial) -> dict[str, Any]:
    """The trial with its whole block and condition: a row of the journal explains itself."""
    block = trial.block
    return {
        "condition": _condition_to_json(block.condition),
        "block": block.index,
        "order": [arm.value for arm in block.order],
        "seeds": {direction.value: seed for direction, seed in block.seeds.items()},
        "position": trial.position,
        "protocol": trial.arm.value,
    }


def trial_from_json(data: Mapping[str, Any]) -> Trial:
    """What `trial_to_json` was given. Raises KeyError, TypeError or ValueError for anything else."""
    block = Block(
        condition=_condition_from_json(data["condition"]),
        index=data["block"],
        order=tuple(arm_named(name) for name in data["order"]),
        seeds={Direction(name): seed for name, seed in data["seeds"].items()},
    )
    return Trial(block, data["position"], arm_named(data["protocol"]))


def result_to_json(result: Result) -> dict[str, Any]:
    """Everything of a result but its samples, which are large and stored on their own."""
    return {
        "trial": trial_to_json(result.trial),
        "outcome": result.outcome.value,
        "reason": result.reason,
        "metrics": dict(result.metrics),
        "checks": [to_json(check) for check in result.proof.checks],
        "counters": dict(result.proof.counters),
        "warnings": list(result.proof.warnings),
        "command": result.command,
        "phases_s": dict(result.phases_s),
        "attempt": result.attempt,
        "started_at": result.started_at,
    }


def result_from_json(data: Mapping[str, Any], samples: Mapping[str, Any]) -> Result:
    """What `result_to_json` was given, with `samples`. Raises KeyError, TypeError or ValueError for anything else."""
    checks = tuple(Check(**{**check, "direction": Direction(check["direction"])}) for check in data["checks"])
    return Result(
        trial=trial_from_json(data["trial"]),
        outcome=Outcome(data["outcome"]),
        reason=data["reason"],
        metrics=data["metrics"],
        proof=Proof(checks, data["counters"], tuple(data["warnings"])),
        samples=samples,
        command=data["command"],
        phases_s=data["phases_s"],
        attempt=data["attempt"],
        started_at=data["started_at"],
    )


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """One line for every setting of two resolved matrices that differs, named as in matrix.yaml, in its units.

    `before` and `after` are JSON objects of `matrix_to_json`. The title and
    what others published decide nothing and are not compared.
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
