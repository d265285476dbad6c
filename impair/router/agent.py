"""The router's agent: impairs the traffic between its two ports, in every engine. Speaks impair/wire.py.

uplink's netem sits on the port towards the server, downlink's on the port towards the client: where packets leave.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from impair import interface
from impair.baseline import deviations
from impair.capabilities import NetemCapabilities
from impair.fingerprint import fingerprint
from impair.messages import FarEnds, NetemState, Port, PortFrames, Processors, RouterCounters, RouterHello
from impair.processors import kept_waiting
from impair.profile import Delay, Direction, Link, Profile
from impair.pulse import Pulse
from impair.router import mailbox
from impair.router.netem import Netem, Reading
from impair.router.try_netem import try_netem
from impair.wire import serve

SIDES = ("client", "server")
READ_TRIES = 5
Frames = dict[str, PortFrames]  # by interface


class Launcher:
    """The launcher's view of a user-mode kernel, sent with each `show` request (impair/router/uml.py)."""

    def __init__(self) -> None:
        self._largest_s = 0.0
        self.processors: Processors | None = None  # the last report
        self.container: Processors | None = None  # likewise, of everything around it

    def heed(self, note: str) -> None:
        """Parse {"largest_gap_s", "processors", "container"} as JSON."""
        seen = json.loads(note)
        self.processors, self.container = Processors(**seen["processors"]), Processors(**seen["container"])
        self._largest_s = max(self._largest_s, seen["largest_gap_s"])

    def largest_gap_s(self) -> float | None:
        """The longest pause since the last call; None without an outside watcher."""
        largest_s, self._largest_s = self._largest_s, 0.0
        return largest_s if self.processors else None


@dataclass(frozen=True, slots=True)
class Machine:
    """The router's interface to its machine: changes and queries."""

    netem: Callable[[], Netem] = Netem
    try_netem: Callable[[Iterable[Profile]], NetemCapabilities] = try_netem
    describe: Callable[[str], Port] = interface.describe
    frame_counters: Callable[[], Frames] = interface.frame_counters
    forward: Callable[[], None] = interface.forward
    set_up: Callable[[str, str, Mapping[str, str]], None] = interface.set_up
    fingerprint: Callable[..., dict[str, str]] = fingerprint


class Router:
    """Two ports and a netem on each; every public method is an operation of the agent."""

    def __init__(
        self, engine: str, interfaces: Mapping[str, str], launcher: Launcher | None = None,
        machine: Machine = Machine(),
    ) -> None:  # fmt: skip
        self._engine = engine
        self._ports = dict(interfaces)  # side -> interface
        self._launcher = launcher or Launcher()
        self._machine = machine
        self._netem = machine.netem()
        self._applied: dict[Direction, Link] = {}
        self._networks: list[str] = []

    def operations(self) -> dict[str, Callable[..., Any]]:
        """Name -> operation, as `serve` takes them."""
        names = ("hello", "setup", "examine", "veth_peers", "apply", "clear", "show", "fingerprint", "probe")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def _ability(self) -> NetemCapabilities:
        return self._machine.try_netem(())

    @cached_property
    def _pulse(self) -> Pulse:
        return Pulse()

    def probe(self, profiles: Sequence[Mapping[str, Any]] = ()) -> NetemCapabilities:
        """Capabilities of the kernel's netem, found by trying, and which of `profiles` (as JSON) it refuses."""
        return self._machine.try_netem(Profile.from_json(profile) for profile in profiles)

    def hello(self) -> RouterHello:
        """The identity of this router; starts the detection of standstills."""
        self._largest_gap_s()
        described = {side: self._machine.describe(name) for side, name in self._ports.items()}
        return RouterHello(os.uname().release, self._engine, self._ability.counters, self._ability.seed, described)

    def setup(
        self, client_gateway: str, server_gateway: str, neighbours: Mapping[str, Sequence[Mapping[str, str]]]
    ) -> RouterHello:
        """Make this a router between two networks; return what `hello` returns.

        The gateways are addresses with a prefix length, `neighbours` {side: [{"ip", "mac"}, ...]} the endpoints.
        Everything is read back; raises InterfaceError on a difference.
        """
        self._machine.forward()
        for side, gateway in (("client", client_gateway), ("server", server_gateway)):
            hosts = {host["ip"]: host["mac"] for host in neighbours[side]}
            self._machine.set_up(self._ports[side], gateway, hosts)
            self._networks.append(str(ipaddress.ip_interface(gateway).network))
        return self.hello()

    def examine(self) -> list[str]:
        """Deviations of this router from a plain testbed, as text (impair/baseline.py)."""
        return [
            *deviations(self._ports.values(), self._networks, endpoint=False),
            *interface.odd_offloads(self._ports.values(), interface.GLUEING),
        ]

    def veth_peers(self) -> FarEnds:
        """The far ends of the ports, on the host."""
        return interface.veth_peers(self._ports.values())

    def apply(self, profile: Mapping[str, Any], seeds: Mapping[str, int | None]) -> dict[Direction, NetemState]:
        """Give both directions a fresh netem and read it back.

        `profile` is Profile.to_json(), `seeds` {direction: seed, or None for the kernel's choice}. Raises NetemRefused
        when the kernel reads back anything else, OSError when it refuses.
        """
        wanted = Profile.from_json(profile)
        readings = {}
        for direction in Direction:
            link = wanted.link(direction)
            reading = self._netem.apply(self._ports[direction.receiver], link, seeds[direction])
            self._applied[direction] = link
            readings[direction] = _shown(reading, link.delay)
        return readings

    def clear(self) -> None:
        """Take netem off both ports."""
        for side in SIDES:
            self._netem.clear(self._ports[side])
        self._applied.clear()

    def show(self) -> RouterCounters:
        """Both directions' netem as it is read back now, and the frames that went through the ports."""
        counters, readings, later = self._read_together()
        ports = {side: counters[name] for side, name in self._ports.items()}
        return RouterCounters(
            ports=ports,
            rx_while_read={side: later[name].rx_frames - ports[side].rx_frames for side, name in self._ports.items()},
            processors=self._launcher.processors or kept_waiting(),
            largest_gap_s=self._largest_gap_s(),
            container=self._launcher.container,
            uplink=self._state(Direction.UPLINK, readings),
            downlink=self._state(Direction.DOWNLINK, readings),
        )

    def _state(self, direction: Direction, readings: Mapping[Direction, Reading | None]) -> NetemState | None:
        reading, applied = readings[direction], self._applied.get(direction)
        return _shown(reading, applied.delay if applied else None) if reading else None

    def fingerprint(self) -> dict[str, str]:
        """See impair/fingerprint.py; the queueing disciplines are the directions, new with every `apply`."""
        return self._machine.fingerprint(roots=False, transport=False)

    def _largest_gap_s(self) -> float:
        """The shorter of the pauses seen inside and outside.

        A kernel that is busy with frames runs no program of its own, and a busy host none of the launcher's, so
        either alone can report a standstill that was none; a real one is seen by both.
        """
        inside_s, outside_s = self._pulse.largest_gap_s(), self._launcher.largest_gap_s()
        return inside_s if outside_s is None else min(inside_s, outside_s)

    def _read_together(self) -> tuple[Frames, dict[Direction, Reading | None], Frames]:
        """The ports' counters, netem's, and the ports' again.

        Frames counted by the first reading are in netem's by then. If netem does not count its own decisions
        they follow from both, so the reading is repeated a few times until no frame comes in meanwhile.
        """
        for attempt in count(1):
            before = self._machine.frame_counters()
            readings = {direction: self._netem.read(self._ports[direction.receiver]) for direction in Direction}
            after = self._machine.frame_counters()
            quiet = all(after[name].rx_frames == before[name].rx_frames for name in self._ports.values())
            if quiet or self._ability.counters or attempt == READ_TRIES:
                return before, readings, after
        raise AssertionError("counting has an end")


def _shown(reading: Reading, written: Delay | None) -> NetemState:
    distribution = written.distribution if written else "uniform"
    options, unverified = reading.options, [] if distribution == "uniform" else ["delay.distribution"]
    return NetemState(options.link(distribution), options.limit, reading.counters, unverified, options.seed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a router: `--client-subnet CIDR --server-subnet CIDR`, or `--client-port NAME --server-port NAME`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for side in SIDES:
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument(f"--{side}-subnet", metavar="CIDR")
        group.add_argument(f"--{side}-port", metavar="INTERFACE")
    parser.add_argument("--engine", choices=("kernel", "uml"), default="kernel")
    parser.add_argument("--mailbox", type=Path, help="directory of requests, if standard input only signals them")
    given = vars(parser.parse_args(arguments))
    try:
        interfaces = {side: given[f"{side}_port"] or interface.interface_in(given[f"{side}_subnet"]) for side in SIDES}
    except interface.InterfaceError as error:
        print(json.dumps({"error": str(error)}), flush=True)  # noqa: T201 - the wire
        raise SystemExit(1) from error
    launcher = Launcher()
    box, bell = given["mailbox"], sys.stdin.fileno()
    lines = mailbox.collect(box, bell, launcher.heed) if box else sys.stdin
    serve(Router(given["engine"], interfaces, launcher).operations(), lines)


if __name__ == "__main__":
    main()
