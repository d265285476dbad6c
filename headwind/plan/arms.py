"""Refuses a run of which an arm cannot be had on this host: before the first trial, with its place in the matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwind.arm import H1, Arm
from headwind.matrix.reader import arms_refused
from headwind.model import Matrix
from headwind.testbed.testbed import AgentError, Testbed
from headwind.trial.congestion import use_congestion


def check_arms(matrix: Matrix, testbed: Testbed) -> None:
    """Try the TCP congestion control of every arm on both endpoints. Raises MatrixError for what cannot be had."""
    refuse_arms(matrix, refused_arms(matrix.arms, testbed))


def refused_arms(arms: Iterable[Arm], testbed: Testbed) -> dict[str, str]:
    """By name: why an arm cannot be had there."""
    refused = {}
    for arm in arms:
        try:
            use_congestion(testbed, arm)
        except AgentError as error:
            refused[arm.name] = f"cannot have the congestion control {arm.overrides.congestion} here: {error}"
    use_congestion(testbed, H1)
    return refused


def refuse_arms(matrix: Matrix, refused: Mapping[str, str]) -> None:
    """Raises MatrixError, with their places, where there are any."""
    if refused:
        raise arms_refused(matrix, refused, "`sysctl net.ipv4.tcp_available_congestion_control` says what is there")
