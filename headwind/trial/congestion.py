"""Sets an arm's TCP congestion control on both endpoints, and reads that of the trial's connections.

QUIC's is part of the programs: nginx and h2load offer no choice.
"""

from __future__ import annotations

from headwind.arm import Protocol
from headwind.model import Trial
from headwind.proof.evidence import TcpSockets
from headwind.testbed.agent import Request
from headwind.testbed.operations import CONGESTION_SEEN, SENT, USE_CONGESTION
from headwind.testbed.path import Path
from impair.messages import ClientRun

LOOK_S = 3.0  # longest wait of the server for a connection whose congestion control it could see


def use_congestion(path: Path, wanted: str) -> None:
    """Set TCP's on the routes of both endpoints, if it is not set yet. Raises AgentError if one of them refuses."""
    if wanted != path.tcp:
        path.tcp = ""  # unknown, should one of the two refuse
        path.ask_endpoints(USE_CONGESTION, congestion=wanted)
        path.tcp = wanted


def start_look(path: Path, trial: Trial, timeout_s: float) -> Request[list[str]] | None:
    """Have the server watch the congestion control of the client's connections; None over QUIC (not in the kernel).

    Call it right before the client starts: the next request to the server ends it. Returns the request to wait for.
    """
    if trial.protocol is Protocol.H3:
        return None
    return path.server.start(CONGESTION_SEEN, timeout_s=min(timeout_s, LOOK_S))


def finish_look(path: Path, look: Request[list[str]] | None, run: ClientRun) -> TcpSockets | None:
    """The congestion control at both ends; None if the server did not watch. Call it when the client has ended."""
    if look is None:
        return None
    ends_it = path.server.start(SENT)  # as any request does: a connection of a few ms may not have been seen
    server = path.server.wait(look, LOOK_S + 10.0, path.agents)
    path.server.wait(ends_it, 10.0, path.agents)
    return TcpSockets(path.tcp, run.congestion, server)
