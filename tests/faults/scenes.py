"""The runs that faults are injected into: together they have every server, browser and kind of workload."""

from __future__ import annotations

from dataclasses import dataclass

NETWORK = "slow: {both: {delay: 20ms}, downlink: {rate: 1mbit}}"
BYTES_PER_S = 1e6 / 8
LEAST_BYTES = 100_000  # that any trial here transfers, so that none is quicker than 0.8 s
MATRIX = """
{arms}
lanes: {lanes}
timeout: 30s
repeat: 400
profiles: {{{network}}}
workloads: {{{workloads}}}
"""
OBJECTS = "objects: {kind: objects, requests: 20, size: 10kB}"
TRANSFER = "transfer: {kind: transfer, size: 200kB}"
ALL_KINDS = f"""{OBJECTS}, {TRANSFER}, first byte: {{kind: ttfb, size: 100kB}},
  streams: {{kind: streams, streams: 5, size: 40kB}}, many: {{requests: 200, connections: 2, streams: 10}}"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A run: its matrix in parts, its servers and workloads in words, and how often a fault is drawn for it.

    `clock`: the lab's wall clock can be changed. `copy`: the lab runs from a copy of the tree with its own image.
    `workers`: number of workers of a cluster; 0: no cluster.
    """

    name: str
    arms: str
    workloads: str
    servers: str
    kinds: str
    share: float
    lanes: int = 1
    browsers: tuple[str, ...] = ()
    clock: bool = False
    copy: bool = False
    workers: int = 0

    @property
    def matrix(self) -> str:
        """The matrix as text."""
        return MATRIX.format(arms=self.arms, lanes=self.lanes, network=NETWORK, workloads=self.workloads)


PROTOCOLS = "protocols: [h1, h2, h3]"
SCENES = (
    Scene("one lane", PROTOCOLS, ALL_KINDS, "nginx", "objects, transfer, ttfb, streams, h2load", 0.28),
    Scene("four lanes", PROTOCOLS, ALL_KINDS, "nginx", "objects, transfer, ttfb, streams, h2load", 0.24, lanes=4),
    Scene("three servers", """arms:
  h2: {protocol: h2}
  h1-caddy: {protocol: h1, server: caddy}
  h3-caddy: {protocol: h3, server: caddy}
  h2-haproxy: {protocol: h2, server: haproxy}
  h3-haproxy: {protocol: h3, server: haproxy}""", f"{OBJECTS}, {TRANSFER}", "nginx, caddy, haproxy",
          "objects, transfer", 0.16),
    Scene("server push", """arms:
  h2-pushed: {protocol: h2, server: nghttpd, delivery: pushed}
  h2-requested: {protocol: h2, server: nghttpd}""", "push: {kind: push, size: 200kB}", "nghttpd", "push", 0.06),
    Scene("browsers", """arms:
  h2: {protocol: h2}
  h3: {protocol: h3}
  h2-firefox: {protocol: h2, browser: firefox}
  h3-caddy: {protocol: h3, server: caddy}""", "page: {kind: page, requests: 4, size: 50kB}", "nginx, caddy", "page",
          0.12, browsers=("chromium", "firefox")),
    Scene("changed clock", PROTOCOLS, f"{OBJECTS}, {TRANSFER}", "nginx", "objects, transfer", 0.05, clock=True),
    Scene("removed image", PROTOCOLS, f"{OBJECTS}, {TRANSFER}", "nginx", "objects, transfer", 0.03, copy=True),
    Scene("cluster", PROTOCOLS, f"{OBJECTS}, {TRANSFER}", "nginx", "objects, transfer", 0.06, workers=2),
)  # fmt: skip
