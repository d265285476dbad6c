"""The differences between two runs: their settings, named as in matrix.yaml, and their environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwind.arm import PLAIN
from headwind.format import as_written, network_settings, override_settings, program_settings, short_digests
from headwind.model import Condition, Matrix, Repetition, SelfCheck
from headwind.run.codec import matrix_from_json
from headwind.site import site_changes
from headwind.workloads import workload_to_json
from impair.profile import Direction
from servers.objects import is_on_demand, size_of

NOT_SET, NOTHING = "not set", "none"
# trials of hosts that differ in these are not comparable
HOST_FACTS = ("kernel", "machine", "cpu", "cores", "rmem_max_bytes")


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """A line for every setting that differs between two resolved matrices, named as in matrix.yaml, in its units.

    `before` and `after` are JSON objects of `matrix_to_json`. The title, the number of lanes and the published figures
    decide nothing and are not compared.
    """
    old, new = matrix_from_json(before), matrix_from_json(after)
    first, second = _settings(old), _settings(new)
    yield from (f"{group}: removed" for group in first if group not in second)
    yield from (f"{group}: added" for group in second if group not in first)
    yield from _different_settings(first, second)
    yield from site_changes(old.content, new.content)
    # Conditions of a profile or workload that only one side has were listed above.
    both = first.keys() & second.keys()
    order = [[item.id for item in matrix.conditions if both.issuperset(_groups(item))] for matrix in (old, new)]
    yield from _different_keys("", {"conditions": ", ".join(order[0])}, {"conditions": ", ".join(order[1])})


def different_settings(before: Matrix, after: Matrix) -> Iterator[str]:
    """Like `differences`, for the common parts of both matrices; the order is not a setting."""
    common = {arm.name for arm in before.arms} & {arm.name for arm in after.arms}

    def settings(matrix: Matrix) -> dict[str, dict[str, str]]:
        arms = sorted((arm for arm in matrix.arms if arm.name in common), key=str)
        return _settings(replace(matrix, arms=tuple(arms), compare=tuple(sorted(matrix.compare, key=str))))

    yield from _different_settings(settings(before), settings(after))
    yield from site_changes(before.content, after.content)


def _different_settings(
    first: Mapping[str, Mapping[str, str]], second: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    for group in (group for group in first if group in second):
        yield from _different_keys(group, first[group], second[group])


def setup_differences(
    environment: Mapping[str, Any], images: Mapping[str, str], engine: str, host: Mapping[str, Any]
) -> Iterator[str]:
    """A line for each image, for the engine and for each fact of the host that differs from the environment."""
    before = environment.get("images", {})
    for name in sorted({*before, *images}):
        if before.get(name) != images.get(name):
            old, new = before.get(name, NOTHING), images.get(name, NOTHING)
            yield short_digests(f"image {name}: {old} -> {new}{_rebuilt(name, old, new)}")
    if environment.get("engine") != engine:
        yield f"engine: {environment.get('engine', NOTHING)} -> {engine}"
    known = environment.get("host", {})
    for name in HOST_FACTS:
        if name in known and name in host and known[name] != host[name]:
            yield f"host's {name}: {known[name]} -> {host[name]}"


def _rebuilt(name: str, old: str, new: str) -> str:
    """For one of the lab's images whose sources have not changed: why it differs, and how to get the old one back."""
    (tag, _, identity), is_own = old.partition("@"), " " in name
    if is_own or not identity or tag != new.partition("@")[0]:
        return ""
    restore = f"`docker tag {identity} headwind-{name}:{tag}`"
    return f" (rebuilt from the same sources; {restore} restores the first one, unless it was removed)"


def what_changed(files: tuple[str, str], matrix: Sequence[str], setup: Sequence[str]) -> str:
    """Reasons why a run cannot be resumed, line by line, and what to do.

    `files` are the named matrix and the run's own.
    """
    other = f" {files[0]} is not the same matrix as {files[1]}." if matrix else ""
    lines = "".join(f"\n  {line}" for line in (*(f"matrix: {line}" for line in matrix), *setup))
    undo = "To resume with the run's own matrix, name none" if matrix else "Revert these changes"
    undo += " and revert the other changes" if matrix and setup else ""
    return f"its trials would not be comparable.{other} Changed:{lines}\n{undo}, or start a new run."


def _groups(condition: Condition) -> tuple[str, str]:
    return f"profiles.{condition.profile.name}", f"workloads.{condition.workload.name}"


def _different_keys(group: str, first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[str]:
    for key in list(first) + [key for key in second if key not in first]:
        old, new = first.get(key, NOT_SET), second.get(key, NOT_SET)
        if old != new:
            yield f"{group}.{key}: {old} -> {new}" if group else f"{key}: {old} -> {new}"


def _settings(matrix: Matrix) -> dict[str, dict[str, str]]:
    """Settings by group and key; the groups are the matrix itself (""), each profile and each workload."""
    groups = {
        "": {
            "protocols": ", ".join(map(str, matrix.arms)),
            **{f"arms.{arm}": _settings_text(override_settings(arm)) for arm in matrix.arms if arm not in PLAIN},
            **(
                {"compare": ", ".join(f"{new} against {base}" for new, base in matrix.compare)}
                if matrix.compare
                else {}
            ),
            **_repetition_settings(matrix.repeat),
            **({"judge": ", ".join(matrix.judge)} if matrix.judge is not None else {}),
            "timeout": as_written("timeout_s", matrix.timeout_s),
            "seed": str(matrix.seed),
            "congestion.tcp": matrix.congestion.tcp,
            "congestion.quic": matrix.congestion.quic,
            "settings.server": matrix.settings.server,
            "settings.client": matrix.settings.client,
            **_selfcheck_settings(matrix.selfcheck),
        }
    }
    for arm in matrix.arms:
        if arm.server.program:
            groups[f"servers.{arm.server.name}"] = program_settings(arm.server.program)
    for condition in matrix.conditions:
        profile, workload = _groups(condition)
        groups[profile] = {
            f"{direction.value}.{key}": value
            for direction in Direction
            for key, value in network_settings(condition.profile, direction, as_written).items()
        }
        settings = _with_size(workload_to_json(condition.workload))
        groups[workload] = {key: str(value) for key, value in settings.items() if key not in ("name", "files")}
    return groups


def _with_size(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a workload with the `size` that made the lab's own path, as it is written in matrix.yaml."""
    path = str(settings.get("path", ""))
    if not is_on_demand(path):
        return dict(settings)
    size = {"size": as_written("size_memory_bytes", size_of(path) or 0)}
    return size | {key: value for key, value in settings.items() if key != "path"}


def _settings_text(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in settings.items()) or NOTHING


def _repetition_settings(repeat: Repetition) -> dict[str, str]:
    """Settings that must not change in a resumed run; the budget may, because anytime-valid statistics allow for it."""
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
        "selfcheck.protocol": selfcheck.arm.name,
        **{f"selfcheck.{key}": ", ".join(names) for key, names in profiles.items() if names},
    }
