"""The router's agent: impairs the traffic between its two ports, in every engine. Speaks impair/wire.py.

uplink's netem sits on the port towards the server, downlink's on the port towards the client: where packets leave.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from impair import interface
from impair.baseline import deviations
from impair.capabilities import NetemCapabilities
from impair.fingerprint import fingerprint
from impair.messages import (
    Course,
    FarEnds,
    NetemState,
    Port,
    PortFrames,
    Processors,
    QueueState,
    RouterCounters,
    RouterHello,
    RouterReading,
    Traced,
)
from impair.processors import kept_waiting
from impair.profile import Clock, Direction, Link, Profile, Rate, Rebind
from impair.pulse import Pulse
from impair.queue_options import kept, settings_of
from impair.queues import Queue
from impair.router import mailbox
from impair.router.bottleneck import Bottleneck, Poke
from impair.router.netem import Netem, Reading
from impair.router.rebinding import Translation
from impair.router.replay import Line, Replay
from impair.router.schedule import Action, Answer, FirstPacket, Schedule, Timed, at_once
from impair.router.try_netem import try_netem
from impair.trace import Trace
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
    bottleneck: Callable[[], Bottleneck] = Bottleneck
    poke: Callable[[str], Poke] = Poke
    try_netem: Callable[[Iterable[Profile]], NetemCapabilities] = try_netem
    describe: Callable[[str], Port] = interface.describe
    frame_counters: Callable[[], Frames] = interface.frame_counters
    first_packet: Callable[[str], FirstPacket] = FirstPacket
    translation: Callable[..., Translation] = Translation
    forward: Callable[[], None] = interface.forward
    set_up: Callable[[str, str, Mapping[str, str]], None] = interface.set_up
    fingerprint: Callable[..., dict[str, str]] = fingerprint


class Kernel:
    """The sockets of one thread to the kernel: netem, and bottlenecks once there is one."""

    def __init__(self, machine: Machine) -> None:
        self.netem = machine.netem()
        self._machine = machine
        self._bottleneck: Bottleneck | None = None

    @property
    def bottleneck(self) -> Bottleneck:
        """Bottlenecks, through their own socket."""
        self._bottleneck = self._bottleneck or self._machine.bottleneck()
        return self._bottleneck

    def close(self) -> None:
        """Close the sockets; what they made stays."""
        self.netem.close()
        if self._bottleneck:
            self._bottleneck.close()


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
        self._kernel = Kernel(machine)
        self._applied: dict[Direction, Link] = {}
        self._schedule: Timed | None = None
        self._of_schedule: Kernel | None = None  # its own: an object has one socket, and serves one thread
        self._pokes: dict[Direction, Poke] = {}
        self._translation: Translation | None = None
        self._actions: dict[str, Callable[..., Action]] = {"change": self._change, "rebind": self._rebind}  # by kind
        self._networks: list[str] = []

    def operations(self) -> dict[str, Callable[..., Any]]:
        """Name -> operation, as `serve` takes them."""
        names = (
            "hello", "setup", "examine", "veth_peers", "apply", "clear", "show", "fingerprint", "probe",
            "start_schedule", "start_replay", "stop_schedule",
        )  # fmt: skip
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
            self._remove_bottleneck(direction)
            if poke := self._pokes.pop(direction, None):
                poke.close()
            reading = self._kernel.netem.apply(self._ports[direction.receiver], link, seeds[direction])
            self._applied[direction] = link
            queue = None
            if link.queue:
                queue = self._kernel.bottleneck.apply(self._ports[direction.sender], _device(direction), link)
            readings[direction] = _shown(reading, link, queue)
        return readings

    def _remove_bottleneck(self, direction: Direction) -> None:
        applied = self._applied.get(direction)
        if applied and applied.queue:
            self._kernel.bottleneck.clear(self._ports[direction.sender], _device(direction))

    def clear(self) -> None:
        """End a schedule that was not stopped, undo a rebinding, and remove netem and bottlenecks."""
        self._end_schedule()
        if self._translation:
            self._translation.remove()
        self._translation = None
        for direction in Direction:
            self._kernel.netem.clear(self._ports[direction.receiver])
            self._remove_bottleneck(direction)
        self._applied.clear()

    def show(self) -> RouterCounters:
        """Both directions' netem as it is read back now, and the frames that went through the ports."""
        read = self._reading(self._kernel)
        return RouterCounters(
            ports=read.ports,
            rx_while_read=read.rx_while_read,
            processors=self._launcher.processors or kept_waiting(),
            largest_gap_s=self._largest_gap_s(),
            container=self._launcher.container,
            rebound=self._translation.seen() if self._translation else None,
            uplink=read.uplink,
            downlink=read.downlink,
        )

    def _reading(self, kernel: Kernel) -> RouterReading:
        counters, queues, readings, later = self._read_together(kernel)
        ports = {side: counters[name] for side, name in self._ports.items()}
        return RouterReading(
            ports=ports,
            rx_while_read={side: later[name].rx_frames - ports[side].rx_frames for side, name in self._ports.items()},
            uplink=self._state(Direction.UPLINK, readings, queues),
            downlink=self._state(Direction.DOWNLINK, readings, queues),
        )

    def start_schedule(self, actions: Sequence[Mapping[str, Any]], clock: str) -> None:
        """Start to carry out `actions`, each {"at_s", "kind"} and the arguments of its kind, by their moments.

        The moments are in s since the start of the clock: `packet`, the next one from the client, or `trial`, now.
        Returns once no packet can be missed; `stop_schedule` ends it. Raises LookupError for an unknown kind.
        """
        self._end_schedule()
        kernel = self._of_schedule = Kernel(self._machine)
        known = [self._action(**action) for action in actions]
        ordered = sorted(known, key=lambda action: action.at_s)
        self._schedule = Schedule(ordered, self._clock(clock), lambda: self._reading(kernel))

    def start_replay(self, traces: Mapping[str, Mapping[str, Any]], clock: str) -> None:
        """Start to replay rate traces, {direction: Trace.to_json()}; else as `start_schedule`."""
        self._end_schedule()
        kernel = self._of_schedule = Kernel(self._machine)
        lines = [self._line(Direction(name), Trace.from_json(trace)) for name, trace in traces.items()]
        self._schedule = Replay(lines, self._clock(clock), kernel.bottleneck)

    def _clock(self, clock: str) -> Callable[[threading.Event], float | None]:
        port = self._ports[Direction.UPLINK.sender]
        return self._machine.first_packet(port).wait if clock == Clock.PACKET else at_once

    def _line(self, direction: Direction, trace: Trace) -> Line:
        link = self._applied.get(direction, Link())
        if not (link.queue and link.rate):
            raise LookupError(f"the {direction} has no bottleneck whose rate a trace could change")
        return Line(trace, _device(direction), link.queue, link.rate.rate_bps, self._poke(direction), Traced(direction))

    def _poke(self, direction: Direction) -> Poke:
        if direction not in self._pokes:
            self._pokes[direction] = self._machine.poke(_device(direction))
        return self._pokes[direction]

    def stop_schedule(self) -> Course:
        """Stop the schedule after what is due, and return how it was carried out. Raises LookupError without one."""
        if self._schedule is None:
            raise LookupError("no schedule was started")
        return self._end_schedule()

    def _end_schedule(self) -> Course:
        course = self._schedule.stop() if self._schedule else Course(None)
        if self._of_schedule:
            self._of_schedule.close()
        self._schedule = self._of_schedule = None
        return course

    def _action(self, at_s: float, kind: str, **arguments: Any) -> Action:
        if kind not in self._actions:
            raise LookupError(f"no action {kind!r}; there are {', '.join(sorted(self._actions))}")
        return self._actions[kind](at_s, **arguments)

    def _change(self, at_s: float, direction: str, link: Mapping[str, Any], seed: int | None) -> Action:
        """Change netem and bottleneck of a direction in place; whatever reads back otherwise is an error."""
        towards, kernel = Direction(direction), self._of_schedule
        device, wanted = self._ports[towards.receiver], link
        assert kernel

        def prepare() -> Callable[[], Callable[[], Answer]]:
            asked, before = Link.from_json(wanted), self._applied.get(towards, Link())
            change = kernel.netem.change(device, asked, seed)
            has_new_rate = asked.queue and asked.rate and asked.rate != before.rate

            def report() -> Answer:
                change.check(kernel.netem.read(device))
                if asked.queue and asked.rate and has_new_rate:
                    kernel.bottleneck.check(_device(towards), asked.rate.rate_bps)
                return {}

            def carry_out() -> Callable[[], Answer]:
                kernel.netem.carry_out(change)
                if asked.queue and asked.rate and has_new_rate:
                    kernel.bottleneck.change(_device(towards), asked.queue, asked.rate.rate_bps)
                    self._poke(towards).send()
                self._applied[towards] = asked
                return report

            return carry_out

        return Action(at_s, "change", prepare, towards)

    def _rebind(self, at_s: float, to: str, client: str, other: str) -> Action:
        """Give the client another port, or the address `other`; `clear` undoes it. Raises OSError without the means."""
        if self._translation:
            raise LookupError("the client can be rebound once, until netem is cleared")
        translation = self._translation = self._machine.translation(self._ports, Rebind(to), client, other)
        translation.install()

        def carry_out() -> Callable[[], Answer]:
            translation.carry_out()
            return dict

        return Action(at_s, "rebind", lambda: carry_out)

    def _state(
        self, direction: Direction, readings: Mapping[Direction, Reading | None],
        queues: Mapping[Direction, QueueState | None],
    ) -> NetemState | None:  # fmt: skip
        reading = readings[direction]
        return _shown(reading, self._applied.get(direction), queues.get(direction)) if reading else None

    def fingerprint(self) -> dict[str, str]:
        """See impair/fingerprint.py; the queueing disciplines are the directions, new with every `apply`."""
        return self._machine.fingerprint(roots=False, transport=False)

    def _largest_gap_s(self) -> float:
        """The shorter of the pauses seen inside and outside.

        A kernel that is busy with frames runs none of its programs, and a busy host none of the launcher's, so
        either alone can report a standstill that was none; a real one is seen by both.
        """
        inside_s, outside_s = self._pulse.largest_gap_s(), self._launcher.largest_gap_s()
        return inside_s if outside_s is None else min(inside_s, outside_s)

    def _queue(self, kernel: Kernel, direction: Direction, queue: Queue) -> QueueState | None:
        """The bottleneck of a direction as it is read back now, without the frames that a replay sent itself."""
        state = kernel.bottleneck.read(self._ports[direction.sender], _device(direction), queue)
        poke = self._pokes.get(direction)
        return replace(state, counters=poke.without(state.counters)) if state and poke else state

    def _read_together(
        self, kernel: Kernel
    ) -> tuple[Frames, dict[Direction, QueueState | None], dict[Direction, Reading | None], Frames]:
        """The ports' counters, those of the bottlenecks if there are any, netem's, and the ports' again.

        Frames counted by the first reading are in netem's by then. If netem does not count its own decisions
        they follow from both, so the reading is repeated a few times until no frame comes in meanwhile.
        """
        for attempt in count(1):
            before = self._machine.frame_counters()
            queues = {
                direction: self._queue(kernel, direction, link.queue)
                for direction, link in self._applied.items()
                if link.queue
            }
            readings = {direction: kernel.netem.read(self._ports[direction.receiver]) for direction in Direction}
            after = self._machine.frame_counters()
            quiet = all(after[name].rx_frames == before[name].rx_frames for name in self._ports.values())
            if quiet or self._ability.counters or attempt == READ_TRIES:
                return before, queues, readings, after
        raise AssertionError("counting has an end")


def _device(direction: Direction) -> str:
    """The name of a direction's bottleneck."""
    return f"queue-{direction.value}"


def _shown(reading: Reading, applied: Link | None, queue: QueueState | None) -> NetemState:
    """The state as read back; the distribution, which no kernel reports, is the one that was applied."""
    distribution = applied.delay.distribution if applied and applied.delay else "uniform"
    options, unverified = reading.options, [] if distribution == "uniform" else ["delay.distribution"]
    link = options.link(distribution)
    if queue and applied and applied.queue:
        asked = kept(applied.queue, settings_of(applied.queue, queue.rate_bps))
        same = all(queue.settings[name] == value for name, value in asked.items())
        link = replace(link, limit_packets=None, rate=Rate(queue.rate_bps), queue=applied.queue if same else None)
        unverified += ["queue.stab"] if queue.kind == "red" else []
    return NetemState(link, options.limit, reading.counters, unverified, options.seed, queue)


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
