"""Refuses a run of which a congestion control cannot be had on this host: before the first trial, with its places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headwind.matrix.reader import congestion_refused
from headwind.model import Matrix
from headwind.testbed.testbed import AgentError, Testbed
from headwind.trial.congestion import use_congestion

Place = tuple[str, str]  # in a matrix: "arms" or "workloads", and the name


def check_arms(matrix: Matrix, testbed: Testbed) -> None:
    """Try TCP's congestion controls of arms and workloads on both endpoints. Raises MatrixError for those missing."""
    refuse(matrix, refused(asked_of_tcp(matrix), testbed))


def asked_of_tcp(matrix: Matrix) -> tuple[str, ...]:
    """TCP's congestion controls that arms or workloads have for themselves, each once."""
    return tuple(dict.fromkeys(name for _, name in _asked(matrix)))


def _asked(matrix: Matrix) -> Iterator[tuple[Place, str]]:
    for arm in matrix.arms:
        if arm.overrides.congestion and arm.congestion(matrix.congestion).tcp == arm.overrides.congestion:
            yield ("arms", arm.name), arm.overrides.congestion
    for workload in dict.fromkeys(condition.workload for condition in matrix.conditions):
        if workload.tcp_congestion:
            yield ("workloads", workload.name), workload.tcp_congestion


def refused(names: Iterable[str], testbed: Testbed) -> dict[str, str]:
    """Why a congestion control cannot be had there, by its name. Afterwards the testbed has its usual one."""
    why = {}
    for name in names:
        try:
            use_congestion(testbed, name)
        except AgentError as error:
            why[name] = str(error)
    use_congestion(testbed, testbed.congestion.tcp)
    return why


def refuse(matrix: Matrix, why: Mapping[str, str]) -> None:
    """Raises MatrixError, with the places of those that cannot be had, where there are any."""
    found = {
        place: f"cannot have the congestion control {name} here: {why[name]}"
        for place, name in _asked(matrix)
        if name in why
    }
    if found:
        load = " ".join(["modprobe", *(["-a"] if len(why) > 1 else []), *(f"tcp_{name}" for name in why)])
        there = "`sysctl net.ipv4.tcp_available_congestion_control` lists what is there"
        raise congestion_refused(matrix, found, f"`{load}` on this host may load it; {there}")
