"""Captures one trial: the packets at both ends of the path, and the logs of the client's programs.

Both ends are inside the testbed, so a packet that netem delays or drops is in both captures at other times, or in one
of them only. Recording disturbs a trial, so a captured trial is an extra one, which is never counted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from headwind.model import Trial
from headwind.testbed.agent import Agent
from headwind.testbed.path import Path
from impair import pcapng

PACKETS = "packets"  # the name that the agents give to the blocks of packets
KEYS = "keys.log"
TAKE_S = 30.0  # longest time until an agent hands over a piece


@dataclass(slots=True)
class Capture:
    """The capture of a trial: `reset` before it, `begin` and `end` around its client, and its files at the end."""

    trial: Trial
    files: dict[str, bytes] = field(default_factory=dict)
    packets: dict[str, int] = field(default_factory=dict)  # number of captured packets, by the end of the path
    missed: dict[str, int] = field(default_factory=dict)  # number of later ones, for which there was no room
    left_out: list[str] = field(default_factory=list)  # files that were too long

    def reset(self, path: Path) -> None:
        """Drop what agents kept of an earlier capture that was not finished."""
        for agent in self._sources(path).values():
            agent.call("forget_files")

    def begin(self, path: Path) -> None:
        """Begin to capture packets at both ends. Raises AgentError."""
        for agent in (path.client, path.server):
            agent.call("capture_packets")

    def end(self, path: Path) -> None:
        """End it, and take all files from the agents."""
        counts = {name: agent.call("finish_capture", TAKE_S) for name, agent in _ends(path).items()}
        self.packets = {name: count["packets"] for name, count in counts.items()}
        self.missed = {name: count["missed"] for name, count in counts.items()}
        found = {name: dict(self._taken(agent)) for name, agent in self._sources(path).items()}
        self.files = {name: content for each in found.values() for name, content in each.items() if name != PACKETS}
        for name in counts:
            self.files[f"{name}.pcapng"] = self._with_header(name, found[name].get(PACKETS, b""))

    def _with_header(self, end: str, blocks: bytes) -> bytes:
        comment = f"Headwind: trial {self.trial.id}, captured at the {end}"
        return pcapng.header(end, comment, self.files.get(KEYS, b"")) + blocks

    def _sources(self, path: Path) -> Mapping[str, Agent]:
        browser = self.trial.workload.browser
        return {**_ends(path), **({browser: path.runner(browser)} if browser else {})}

    def _taken(self, agent: Agent) -> Iterator[tuple[str, bytes]]:
        """The files that an agent kept; it has none afterwards."""
        kept = agent.call("files", TAKE_S)
        self.left_out += kept["left_out"]
        for name, size in kept["sizes"].items():
            content = b""
            while len(content) < size:
                content += base64.b64decode(agent.call("piece", TAKE_S, name=name, start=len(content)))
            yield name, content
        agent.call("forget_files")


@contextmanager
def capturing(path: Path, capture: Capture | None) -> Iterator[None]:
    """Capture what happens inside, if there is a capture. Raises AgentError."""
    if capture:
        capture.begin(path)
    yield
    if capture:
        capture.end(path)


def _ends(path: Path) -> Mapping[str, Agent]:
    return {"client": path.client, "server": path.server}
