"""Refuses a run before the first trial if this host lacks a congestion control, with its place in the matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headwind.matrix.refused import congestion_refused
from headwind.model import Matrix
from headwind.testbed.agent import AgentError
from headwind.testbed.path import Path
from headwind.trial.congestion import use_congestion

Place = tuple[str, str]  # in a matrix: "arms" or "workloads", and the name


def check_arms(matrix: Matrix, path: Path) -> None:
    """Try TCP's congestion controls of arms and workloads on both endpoints. Raises MatrixError for missing ones."""
    refuse(matrix, refused(asked_of_tcp(matrix), path))


def asked_of_tcp(matrix: Matrix) -> tuple[str, ...]:
    """TCP's congestion controls that arms or workloads set, each once."""
    return tuple(dict.fromkeys(name for _, name in _asked(matrix)))


def _asked(matrix: Matrix) -> Iterator[tuple[Place, str]]:
    for arm in matrix.arms:
        if arm.overrides.congestion and arm.congestion(matrix.congestion).tcp == arm.overrides.congestion:
            yield ("arms", arm.name), arm.overrides.congestion
    for workload in dict.fromkeys(condition.workload for condition in matrix.conditions):
        if workload.tcp_congestion:
            yield ("workloads", workload.name), workload.tcp_congestion


def refused(names: Iterable[str], path: Path) -> dict[str, str]:
    """Errors of the congestion controls that the path's ends refuse, by name. Afterwards it has its usual one again."""
    why = {}
    for name in names:
        try:
            use_congestion(path, name)
        except AgentError as error:
            why[name] = str(error)
    use_congestion(path, path.congestion.tcp)
    return why


def refuse(matrix: Matrix, why: Mapping[str, str]) -> None:
    """Raise MatrixError, with the places of the missing congestion controls, if there are any."""
    found = {
        place: f"cannot have the congestion control {name} here: {why[name]}"
        for place, name in _asked(matrix)
        if name in why
    }
    if found:
        load = " ".join(["modprobe", *(["-a"] if len(why) > 1 else []), *(f"tcp_{name}" for name in why)])
        available = "`sysctl net.ipv4.tcp_available_congestion_control` lists the available ones"
        raise congestion_refused(matrix, found, f"`{load}` on this host may load it; {available}")
