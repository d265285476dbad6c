"""Gives an arm its TCP congestion control on both endpoints, and looks what the connections of its trial then have.

QUIC's is the programs' own: nginx and h2load have no choice to offer.
"""

from __future__ import annotations

from headwind.arm import Protocol
from headwind.model import Trial
from headwind.proof.evidence import TcpSockets
from headwind.testbed.agent import Request
from headwind.testbed.operations import CONGESTION_SEEN, USE_CONGESTION
from headwind.testbed.testbed import Testbed
from impair.messages import ClientRun

LOOK_S = 3.0  # longest wait of the server for a connection whose congestion control it could see


def use_congestion(testbed: Testbed, wanted: str) -> None:
    """Set TCP's on the routes of both endpoints, where it is not set yet. Raises AgentError where one cannot."""
    if wanted != testbed.tcp:
        testbed.tcp = ""  # unknown, should one of the two refuse
        testbed.ask_endpoints(USE_CONGESTION, congestion=wanted)
        testbed.tcp = wanted


def expected_fingerprints(testbed: Testbed) -> dict[str, dict[str, str]]:
    """The fingerprints of the start, with the congestion control that was set since."""
    return {
        host: {**topics, "congestion": testbed.tcp} if host in ("client", "server") and topics else topics
        for host, topics in testbed.fingerprints.items()
    }


def start_look(testbed: Testbed, trial: Trial, timeout_s: float) -> Request[list[str]] | None:
    """Have the server look what the client's connections get; None over QUIC, of which the kernel knows nothing.

    Call it before the client starts. Returns the request to wait for.
    """
    if trial.protocol is Protocol.H3:
        return None
    return testbed.server.start(CONGESTION_SEEN, timeout_s=min(timeout_s, LOOK_S))


def finish_look(testbed: Testbed, look: Request[list[str]] | None, run: ClientRun) -> TcpSockets | None:
    """What both ends saw; None where nobody looked."""
    if look is None:
        return None
    server = testbed.server.wait(look, LOOK_S + 10.0, testbed.agents)
    return TcpSockets(testbed.tcp, run.congestion, server)
