"""Refuses a run of which an arm cannot be had on this host: before the first trial, with its place in the matrix."""

from __future__ import annotations

from headwind.arm import H1
from headwind.matrix.reader import arms_refused
from headwind.model import Matrix
from headwind.testbed.testbed import AgentError, Testbed
from headwind.trial.congestion import use_congestion


def check_arms(matrix: Matrix, testbed: Testbed) -> None:
    """Try the TCP congestion control of every arm on both endpoints. Raises MatrixError for what cannot be had."""
    refused = {}
    for arm in matrix.arms:
        try:
            use_congestion(testbed, arm)
        except AgentError as error:
            refused[arm.name] = f"cannot have the congestion control {arm.overrides.congestion} here: {error}"
    use_congestion(testbed, H1)
    if refused:
        raise arms_refused(matrix, refused, "`sysctl net.ipv4.tcp_available_congestion_control` says what is there")
