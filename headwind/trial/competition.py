"""Starts and ends the competing downloads of a trial, in the client's container."""

from __future__ import annotations

from headwind.model import Trial
from headwind.testbed.operations import COMPETE, END_COMPETITION
from headwind.testbed.path import Path
from impair.messages import Competed
from impair.profile import Direction

LARGE_OBJECT = "/100m"  # fetched again and again (servers/objects.py)
LEAD_S, LEAD_ROUND_TRIPS = 2.0, 20  # before the measured client starts: for slow start, and to see the flows alone
GRACE_S = 15.0  # of the agent beyond its own limits


def start_competition(path: Path, trial: Trial, port: int, timeout_s: float) -> None:
    """Start the competing downloads, if there are any, and wait until they fill the path. Raises AgentError."""
    if not (wanted := trial.workload.competing):
        return
    delays = (trial.profile.link(direction).delay for direction in Direction)
    lead_s = LEAD_S + LEAD_ROUND_TRIPS * sum(delay.delay_s for delay in delays if delay)
    path.client.call(
        COMPETE, timeout_s + lead_s + GRACE_S, path.agents, protocol=wanted.protocol, flows=wanted.flows,
        host=path.server_ip, port=port, path=LARGE_OBJECT, lead_s=lead_s, timeout_s=timeout_s,
    )  # fmt: skip


def end_competition(path: Path, trial: Trial) -> Competed | None:
    """End the competing downloads; what they received. None if there were none."""
    return path.client.call(END_COMPETITION, GRACE_S, path.agents) if trial.workload.competing else None
