"""A testbed without containers: the same agents' answers, from a model of the network. For tests only.

`World` counts frames as real hosts do, so that the real proof (headwind/proof/trial_checks.py) judges it. `Sabotage`
breaks one thing at a time, so that a test can show that the lab notices.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from browsers.page import COLUMNS, figures
from client.agent import fetch_of
from headwind.arm import CUBIC, H3, PLAIN, Arm
from headwind.browsers import BROWSERS
from headwind.cli.dependencies import Dependencies
from headwind.cli.redrawing import Redrawing
from headwind.clock import CLOCK, Clock
from headwind.engines import Engine
from headwind.model import Block, Condition, Trial
from headwind.proof.expectation import stationary_loss
from headwind.servers import Program, own_server
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.testbed.addresses import Addresses
from headwind.testbed.agent import Agent, AgentDied, AgentError, Request
from headwind.testbed.images import Images
from headwind.testbed.operations import HEALTH, Operation
from headwind.testbed.own_server import OwnImage, OwnServer, OwnServerError
from headwind.testbed.testbed import Testbed
from headwind.workloads.h2load import H2load
from impair import pcapng
from impair.endpoint.agent import PACKETS
from impair.messages import Health
from impair.profile import FRAME_BYTES, Corrupt, Delay, Direction, Duplicate, Link, Loss, Profile
from impair.profile import Clock as ProfileClock
from impair.taken import Files
from impair.trace import Trace
from impair.wire import encoded
from servers.objects import content, is_on_demand
from servers.page_files import DOCUMENT, page_of
from tests import quiet

ADDRESSES = Addresses("10.70.1.0/24", "10.70.2.0/24")
SERVER_IP = ADDRESSES.host("server", 10)
RULES = TrialRules(60.0)
ENGINE = Engine("fake", "", "netem of a model")
FRAMES_PER_REQUEST = 4
NUMBERS = itertools.count(1)  # of testbeds
BAD = Profile("bad", downlink=Link(Delay(0.1, 0.01), Loss(0.3), Duplicate(0.1), Corrupt(0.1)))
AT_ONCE = Clock(sleep=lambda _: None)  # nobody waits for anything
BASE_S = {"h1": 0.20, "h2": 0.18, "h3": 0.16}


@dataclass(slots=True)
class Sabotage:
    """What goes wrong, and in which run of the client (counted from 0) it does."""

    dies: str = ""  # "client", "server" or "router"
    nginx_dies: bool = False
    bypass: bool = False  # frames go round the router
    clipped: bool = False  # netem loses half of what was asked
    late: bool = False  # the delay line is 20 ms too long
    alpn: str = ""  # what is negotiated instead
    hangs: bool = False  # the client never finishes
    crashes: bool = False  # the browser does, or its page
    deaf: bool = False  # a delay costs the client no time
    failed: int = 0  # requests that fail
    clock_step_s: float = 0.0  # by which the machine's clock is set
    odd: str = ""  # what the server has that a plain testbed has not
    changed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # topics of fingerprints, by host
    vanishing: int = 0  # datagrams of each train that are lost inside hosts
    translated: bool = False  # somebody masquerades on the way
    starved: int = 0  # so many trains of full frames show half the rate
    unsteady: int = 0  # so many of them do, and most of their pairs show other ones
    shortened: bool = False  # answers end a byte too early
    altered: bool = False  # an object has other bytes, as many as it should
    unfetched: bool = False  # nothing comes when the client fetches for comparison
    session: str = ""  # what the server sees instead of the asked session; "late": early data comes too late
    workers: int = 0  # that nginx has instead of those it was told to have
    unseen_rebinding: bool = False  # no packet from the new source reaches the server
    late_change_s: float = 0.0  # by which changes of the network are late
    skipped_changes: int = 0  # so many are not made
    hasty: bool = False  # the server answers at once, although it was to wait
    congestion: str = ""  # what the client's sockets have instead of what their route says
    at: Sequence[int] = ()  # runs of the client that are hit; empty: all

    def hits(self, run: int) -> bool:
        """True when this run of the client is a broken one."""
        return not self.at or run in self.at


@dataclass(slots=True)
class World:
    """Everything that the fake agents share."""

    sabotage: Sabotage = field(default_factory=Sabotage)
    profile: Profile = field(default_factory=lambda: Profile("clean"))
    applied: list[tuple[Profile, dict[str, int]]] = field(default_factory=list)
    rebound_source: tuple[str, str] | None = None  # the rebound source whose packets the server counts
    traces: dict[Direction, Trace] = field(default_factory=dict)  # those that the router was told to replay
    schedule: list[dict[str, Any]] = field(default_factory=list)  # the changes that the router was told to make
    seeds: dict[str, int] = field(default_factory=dict)  # of the last changes
    client_s: float = 0.0  # the time of the client's last run
    order: list[str] = field(default_factory=list)  # every operation asked for, in order
    offers: list[str] = field(default_factory=list)  # conditions that the server was given
    provided: list[str] = field(default_factory=list)  # paths of objects that the server was told to make
    runs: int = 0
    bulks: int = 0  # trains of full frames
    frame_s: float = 0.00001  # what the machine takes for a frame, whatever its size
    clock_s: float = 0.0  # time that clients took so far
    slowness: float = 1.0  # of every client
    packet_gap_max_s: float = 0.02  # the longest time without a frame while a client runs
    noise_ratio: float = 0.1  # how far a client's time may lie from the usual one
    nginx: int = 1
    memory_bytes: int = 20_000_000  # its peak; each look finds it larger
    workers: int = 1  # of it
    log: str = ""  # the end of its log
    load: float | None = None  # processors that each host keeps busy while the client runs; None: nobody tells
    pressure: float = 0.0  # share of that time in which something waits for a processor
    machine_busy: float = 0.8  # share of the machine's processors, niced work not counted
    stolen: float = 0.0  # what of that its own host keeps from it
    comparing: Sabotage = field(default_factory=Sabotage)  # that of the last run, for the fetch that follows it
    frames: dict[str, dict[str, int]] = field(default_factory=lambda: {
        name: {"tx_frames": 0, "rx_frames": 0} for name in ("client", "server", "port client", "port server")
    })  # fmt: skip
    netem: dict[str, dict[str, int]] = field(default_factory=dict)
    capturing: set[str] = field(default_factory=set)  # hosts that capture packets
    opened: list[str] = field(default_factory=list)  # pages that are open in a browser, with nothing in them
    visited: list[tuple[str, str]] = field(default_factory=list)  # first visits before repeat visits, and the networks
    asked: list[dict[str, Any]] = field(default_factory=list)  # of each run of the client
    congestion: dict[str, str] = field(default_factory=lambda: dict.fromkeys(("client", "server"), "cubic"))
    lacking: set[str] = field(default_factory=set)  # congestion controls that the server has not got
    dead: set[str] = field(default_factory=set)
    # What a program but h2load leaves in its folder, from its command and the time that it takes, by the file's name.
    programs: dict[str, Callable[[list[str], float, Path], None]] = field(default_factory=dict)
    # What a page reports is handed to it, to be changed: browsers/page.py, COLLECT.
    page: Callable[[dict[str, Any]], None] = lambda _: None
    files: dict[str, bytes] = field(default_factory=dict)  # of the user's site, by the path of a request
    late_trains: int | None = None  # how many of each direction's first trains a late delay line delays; None: all
    vanishing_trains: int | None = None  # of how many of each direction's first trains datagrams are lost; None: all

    @property
    def broken(self) -> Sabotage:
        """The sabotage of this run of the client; a harmless one when it is not hit."""
        return self.sabotage if self.sabotage.hits(self.runs) else Sabotage()

    def body(self, path: str) -> bytes:
        """What the server has at a path."""
        return self.files.get(path) or content(path) or b""

    def wait(self, pause_s: float) -> None:
        """Time passes."""
        self.clock_s += pause_s

    @property
    def processors(self) -> dict[str, Any]:
        """As impair/processors.py tells it; empty where nobody does."""
        if self.load is None:
            return {}
        told = {"clock_s": self.clock_s, "cpu_s": self.load * self.clock_s, "throttled_s": 0.0, "pressure_s": None}
        return {"processors": {**told, "host_pressure_s": self.pressure * self.clock_s}}

    def carry(self, direction: Direction, count: int, rng: random.Random) -> None:
        """Send `count` frames one way, through netem's model."""
        link = self.profile.link(direction)
        sender, receiver = direction.sender, direction.receiver
        loss = stationary_loss(link.loss)[0] * (0.5 if self.broken.clipped else 1)
        copies = link.duplicate.ratio if link.duplicate else 0.0
        gained = dict.fromkeys(("packets", "drops", "dropped", "duplicated", "corrupted"), 0)
        for _ in range(count):
            doubled, lost = rng.random() < copies, rng.random() < loss
            lost_copy = doubled and not lost and rng.random() < loss
            gained["duplicated"] += doubled
            gained["dropped"] += lost + lost_copy
            gained["drops"] += (lost and not doubled) + lost_copy
            gained["packets"] += 1 + doubled - lost - lost_copy
        out = gained["packets"]
        gained["corrupted"] = sum(rng.random() < (link.corrupt.ratio if link.corrupt else 0) for _ in range(out))
        self.frames[sender]["tx_frames"] += count
        self.frames[receiver]["rx_frames"] += out
        if self.broken.bypass:
            return
        self.frames[f"port {sender}"]["rx_frames"] += count
        self.frames[f"port {receiver}"]["tx_frames"] += out
        for name, value in gained.items():
            self.netem[direction][name] += value


class FakeAgent(Agent):
    """Answers at once, from the world; dies when the world says so."""

    def __init__(self, name: str, world: World) -> None:
        self.name, self.world = name, world
        self.answers: dict[int, Any] = {}
        self.trains = 0
        self.files = Files()
        self._next_id = 1
        self._held = None

    @property
    def alive(self) -> bool:
        return self.name not in self.world.dead

    def close(self) -> None:
        self.world.dead.add(self.name)

    def start(self, op: Operation[Any] | str, /, **arguments: Any) -> Any:
        request = Request(self._next_id, Operation(op) if isinstance(op, str) else op)
        name = request.op.name
        if not self.alive:
            raise AgentDied(f"the {self.name} has ended (request: {name})")
        self.world.order.append(f"{self.name} {name}")
        self._next_id += 1
        self.answers[request.id] = getattr(self, f"do_{name}")(**json.loads(encoded(arguments)))
        return request

    def wait(self, request: Request[Any], timeout_s: float, peers: Sequence[Agent] = ()) -> Any:
        dead = [agent.name for agent in (self, *peers) if not agent.alive]
        if dead or timeout_s <= 0:
            raise AgentDied(f"the {' and '.join(dead)} died")
        return self.understood(request.op, json.loads(encoded({"ok": self.answers.pop(request.id)}))["ok"])

    def do_capture_packets(self) -> None:
        self.world.capturing.add(self.name)

    def do_finish_capture(self) -> dict[str, int]:
        self.world.capturing.remove(self.name)
        self.files.keep({PACKETS: pcapng.packet(7, f"a frame at the {self.name}".encode(), 60)})
        return {"packets": 1, "missed": 0}

    def do_files(self) -> dict[str, Any]:
        return self.files.files()

    def do_piece(self, name: str, start: int) -> str:
        return self.files.piece(name, start)

    def do_forget_files(self) -> None:
        self.files.forget_files()

    def do_sent(self) -> int:
        return self.world.frames[self.name]["tx_frames"]

    def do_counters(self) -> dict[str, Any]:
        return quiet.endpoint(**self.world.frames[self.name], **self.world.processors)

    def do_fingerprint(self) -> dict[str, str]:
        return {**self.usual_fingerprint(), **self.world.comparing.changed.get(self.name, {})}

    def usual_fingerprint(self) -> dict[str, str]:
        """As impair/fingerprint.py: each host's own topics, and those that are alike in all containers."""
        own = {topic: f"{topic} of {self.name}" for topic in ("links", "routes", "neighbours", "qdiscs", "firewall")}
        alike = {"rules": "0:local 32766:main", "sysctls": "ipv4/ip_forward=1", "limits": "cpu.max=max"}
        congestion = {"congestion": self.world.congestion[self.name]} if self.name in self.world.congestion else {}
        return {**own, **alike, **congestion}

    def do_use_congestion(self, congestion: str) -> dict[str, Any]:
        if self.name == "server" and congestion in self.world.lacking:
            raise AgentError(f"{self.name}: use_congestion: no such thing")
        self.world.congestion[self.name] = congestion
        return {"congestion": congestion}

    def do_congestion_seen(self, timeout_s: float) -> list[str]:
        assert timeout_s > 0
        return [self.world.congestion[self.name]]

    def do_examine(self) -> list[str]:
        return [self.world.broken.odd] if self.world.broken.odd and self.name == "server" else []

    def do_forget(self) -> dict[str, Any]:
        return {"sockets_destroyed": 0}

    def do_send_train(self, **arguments: Any) -> dict[str, Any]:
        self.world.bulks += arguments["size_bytes"] > 1000
        return {"sent": arguments["count"], "seconds": 0.0, "latest_s": 0.0}

    def _sender(self) -> str:
        return ADDRESSES.host("server" if self.name == "client" else "client", 10)

    def _is_among_the_first(self, trains: int | None) -> bool:
        """Whether this train of the direction is one of so many; None: each is."""
        return trains is None or self.trains < trains

    def do_train_seen(self, nonce: int, expect: int, timeout_s: float, missing_took_time: bool) -> dict[str, Any]:
        assert timeout_s > 0
        direction = Direction.DOWNLINK if self.name == "client" else Direction.UPLINK
        link, rng = self.world.profile.link(direction), random.Random(nonce)
        assert missing_took_time == bool(link.corrupt or link.reorder)
        vanishing = self.world.broken.vanishing if self._is_among_the_first(self.world.vanishing_trains) else 0
        arrived = round(expect * (1 - stationary_loss(link.loss)[0])) - vanishing
        late = self.world.broken.late and self._is_among_the_first(self.world.late_trains)
        self.trains += 1
        delay_s = (link.delay.delay_s if link.delay else 0) + (0.02 if late else 0) + 0.0002
        jitter_s = link.delay.jitter_s if link.delay else 0.0
        delays = [delay_s + rng.uniform(-jitter_s, jitter_s) for _ in range(arrived)]
        frame_s = 8 * FRAME_BYTES / link.rate.rate_bps if link.rate else 0.0
        frame_s = max(frame_s, self.world.frame_s)
        unsteady = self.world.bulks <= self.world.broken.unsteady
        frame_s *= 2 if unsteady or self.world.bulks <= self.world.broken.starved else 1
        seen = quiet.train(
            expect, delays, 8 * FRAME_BYTES / frame_s,
            sources=["10.9.9.9" if self.world.broken.translated else self._sender()],
            sequences=list(range(arrived)), arrivals_s=[frame_s * position for position in range(arrived)],
        )  # fmt: skip
        seen["rate"]["agreeing"] *= not unsteady
        return seen


class FakeRouter(FakeAgent):
    """The router's operations."""

    def do_apply(self, profile: dict[str, Any], seeds: dict[str, int]) -> dict[str, Any]:
        self.world.profile = Profile.from_json(profile)
        self.world.applied.append((self.world.profile, seeds))
        self.world.seeds.clear()
        self.world.netem = {direction.value: dict.fromkeys(quiet.NETEM, 0) for direction in Direction}
        return {direction.value: self._direction(direction) for direction in Direction}

    def _direction(self, direction: Direction) -> dict[str, Any]:
        link: Link = self.world.profile.link(direction)
        seed = self.world.seeds.get(direction.value, 1)
        return {**quiet.netem(link, seed, **self.world.netem[direction]), "limit": link.limit}

    def do_clear(self) -> None:
        self.world.profile = Profile("clean")

    def do_start_schedule(self, actions: list[dict[str, Any]], clock: str) -> None:
        assert clock in [*ProfileClock]
        self.world.schedule = actions

    def do_start_replay(self, traces: dict[str, dict[str, Any]], clock: str) -> None:
        assert clock in [*ProfileClock]
        self.world.traces = {Direction(name): Trace.from_json(each) for name, each in traces.items()}

    def _replayed(self, direction: Direction, trace: Trace) -> dict[str, Any]:
        """A trace whose steps are a little late, before a queue that was always empty."""
        late_s = self.world.comparing.late_change_s + 0.0002
        steps = [*takewhile(lambda step: step.at_s <= self.world.client_s, trace.steps())]
        steps = steps[self.world.comparing.skipped_changes :]
        at_s, nothing = [step.at_s for step in steps], [0] * (len(steps) + 1)
        return {
            "direction": direction.value, "at_s": at_s, "began_s": at_s, "done_s": [each + late_s for each in at_s],
            "rates_bps": [step.rate_bps + 8 * self.world.comparing.clipped for step in steps],
            "frames": nothing, "bytes": nothing, "waiting": nothing, "ended_s": self.world.client_s,
        }  # fmt: skip

    def do_stop_schedule(self) -> dict[str, Any]:
        """As if the client had sent nothing after its end, when all that was due in its time was carried out."""
        stopped_s, late_s = self.world.client_s, self.world.comparing.late_change_s
        if self.world.traces:
            return {"stopped_s": stopped_s, "traced": [self._replayed(*each) for each in self.world.traces.items()]}
        carried = []
        due = [action for action in self.world.schedule if action["at_s"] <= stopped_s]
        for action in due[self.world.comparing.skipped_changes :]:
            before = self.do_show()
            if action["kind"] == "rebind":
                at_s = action["at_s"]
                carried.append({"kind": "rebind", "at_s": at_s, "began_s": at_s, "done_s": at_s + late_s + 0.01,
                                "before": before, "after": before})  # fmt: skip
                continue
            direction = Direction(action["direction"])
            link = Link() if self.world.comparing.clipped else Link.from_json(action["link"])
            up, down = (link if each is direction else self.world.profile.link(each) for each in Direction)
            self.world.profile = replace(self.world.profile, uplink=up, downlink=down)
            self.world.seeds[direction.value] = action["seed"]
            began_s, done_s = action["at_s"] + late_s, action["at_s"] + late_s + 0.0002
            carried.append({
                "kind": action["kind"], "at_s": action["at_s"], "began_s": began_s, "done_s": done_s,
                "before": before, "after": self.do_show(), "direction": direction.value,
            })  # fmt: skip
        return {"stopped_s": stopped_s, "carried": carried}

    def do_show(self) -> dict[str, Any]:
        shown = quiet.router({direction: self._direction(direction) for direction in Direction})
        for side in ("client", "server"):
            shown["ports"][side] |= self.world.frames[f"port {side}"]
        return {**shown, **self.world.processors}


class FakeServer(FakeAgent):
    """nginx's operations."""

    def do_await_rebound(self, kind: str, address: str) -> None:
        self.world.rebound_source = (kind, address)

    def do_rebound(self) -> int:
        assert self.world.rebound_source
        return 0 if self.world.comparing.unseen_rebinding else 50

    def do_provide(self, path: str) -> dict[str, Any]:
        self.world.provided.append(path)
        return {"made": is_on_demand(path)}

    def do_fresh(self, workers: int | None = None) -> dict[str, Any]:
        self.world.workers = workers or self.world.workers
        return {"workers": list(range(self.world.workers))}

    def do_windows(self, port: int) -> dict[str, Any]:
        return {"http3_stream_buffer_bytes": BUFFERS_BYTES[port]}

    def do_answers(self) -> dict[str, Any]:
        """Of the last run of the client, as far as it came."""
        asked, broken = self.world.asked[-1], self.world.comparing
        wait = re.match(r"/after/(\d+)ms/", asked["path"])
        count = requests_of(asked) - broken.failed
        wait_s = None if wait is None or broken.hasty else int(wait[1]) / 1000
        waits = dict.fromkeys(("shortest_wait_s", "median_wait_s", "longest_wait_s"), wait_s)
        session = broken.session or asked.get("session", "resumed" if self.world.visited else "new")
        sessions = {"resumed": count * (session != "new"), "early": count * (session == "early")}
        return {"count": count, "others": 0, **sessions, "waited": count if wait_s else 0, **waits}

    def do_offer(self, condition: str) -> dict[str, Any]:
        self.world.offers.append(condition)
        return {"changed": True}

    def do_log(self) -> str:
        return self.world.log

    def do_info(self) -> dict[str, Any]:
        windows = {"http3_stream_buffer_bytes": 16 << 20, "udp_rcvbuf_bytes": None}
        return {
            "name": "nginx", "version": "1.30.6", "tls_library": "OpenSSL 3.6.0", "quic_congestion": "cubic",
            "behind": "", "offers": ["windows"], "streams": {"h2": 1024}, "windows": {"443": windows},
        }  # fmt: skip

    def do_health(self) -> dict[str, Any]:
        workers = self.world.broken.workers or self.world.workers
        self.world.memory_bytes += 1_000_000  # so that its growth is no other health
        return {
            "master": self.world.nginx, "workers": list(range(workers)), "master_started_s": 1.0,
            "memory_bytes": self.world.memory_bytes,
        }  # fmt: skip


class FakeClient(FakeAgent):
    """The operations of programs that measure, and libcurl's."""

    def do_fetch(self, **asked: Any) -> dict[str, Any]:
        first, wanted, broken = asked["first_byte"], asked["bytes_wanted"], self.world.comparing
        data = self.world.body(asked["path"])[first : first + wanted]
        data = bytes(reversed(data)) if broken.altered else data
        alpn = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}[asked["protocol"]]
        answer = {"status": 206, "alpn": alpn, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        return {**answer, "error": "Connection timed out" if broken.unfetched else ""}

    def do_run(self, *, captured: bool = False, **asked: Any) -> dict[str, Any]:
        world, broken = self.world, self.world.broken
        world.asked.append(asked)
        assert captured == bool(world.capturing)
        if captured:
            self.files.keep({"keys.log": b"CLIENT_RANDOM 00 11\n", "qlog/a.sqlog": b"{}"})
        rng = random.Random(f"{world.applied[-1][1]} {asked['protocol']}")
        if broken.dies:
            world.dead.add(broken.dies)
        for direction in Direction:
            world.carry(direction, FRAMES_PER_REQUEST * requests_of(asked, 20), rng)
        world.nginx += 1 if broken.nginx_dies else 0
        world.runs += 1
        links = [world.profile.link(direction) for direction in Direction]
        slow = 1 + 40 * sum(stationary_loss(link.loss)[0] for link in links)
        delay_s = 0.0 if broken.deaf else sum(link.delay.delay_s for link in links if link.delay)
        world.comparing = broken
        noise = 1 + world.noise_ratio * random.Random(world.runs).uniform(-1, 1)
        total_s = (BASE_S[asked["protocol"]] * slow + 20 * delay_s) * noise * world.slowness
        world.client_s = asked["timeout_s"] if broken.hangs else total_s
        world.clock_s += world.client_s
        answer: dict[str, Any] = {
            "exit_code": 0, "timed_out": broken.hangs, "wall_s": total_s, "stderr_tail": "",
            "clock_step_s": broken.clock_step_s,
            **self._report(asked, total_s),
            "packet_gap_max_s": world.packet_gap_max_s, "cpu_s": 0.0,
            "machine": {"cpus": 2, "busy_s": 2 * world.machine_busy * total_s,
                        "steal_s": 2 * world.stolen * total_s},
            "congestion": [] if asked["protocol"] == "h3" else [broken.congestion or world.congestion["client"]],
        }  # fmt: skip
        if broken.crashes:
            answer |= {"metrics": {}, "samples": {}, "exit_code": -9, "stderr_tail": "the page's renderer crashed"}
        if broken.hangs:
            answer |= {"metrics": {}, "totals": {}, "wall_s": asked["timeout_s"], "exit_code": -15}
        return answer

    def _report(self, asked: dict[str, Any], total_s: float) -> dict[str, Any]:
        if asked["program"] == "h2load":
            return self._h2load(asked, total_s)
        return self._page(asked, total_s) if asked["program"] in BROWSERS else self._other(asked, total_s)

    def _page(self, asked: dict[str, Any], total_s: float) -> dict[str, Any]:
        """As browsers/chromium: one request after the other."""
        alpn = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}[asked["protocol"]]
        paths = requests_of_page(asked["path"]) or [asked["path"], *set(self.world.files) - {asked["path"]}]
        step_ms = 1000 * total_s / len(paths)
        bodies = [len(self.world.body(path)) for path in paths]
        rows = [
            [0.0, 0.0, step_ms / 2 * (number == 0), step_ms, step_ms * (number + 0.5), step_ms * (number + 1), 200,
             self.world.comparing.alpn or alpn, body + 300, body - self.world.comparing.shortened,
             f"https://server{paths[number]}", "img" if number else "navigation"]
            for number, body in enumerate(bodies)
        ]  # fmt: skip
        times = {"load": 1000 * total_s, "paint": 500 * total_s, "largest": 900 * total_s}
        collected = {"url": asked["path"], **times, "rows": rows}
        assert len(rows[0]) == len(COLUMNS)
        self.world.page(collected)
        return {"command": ["chromium", asked["protocol"]], "windows": {}, "error": "", **figures(collected)}

    def _other(self, asked: dict[str, Any], total_s: float) -> dict[str, Any]:
        """By the program's own file in client/, of what World.programs says that it leaves."""
        usual = ("program", "timeout_s")
        fetch = fetch_of(asked["program"], {name: value for name, value in asked.items() if name not in usual})
        with TemporaryDirectory() as name:
            self.world.programs[asked["program"]](fetch.command(), total_s, Path(name))
            return {"command": fetch.command(), "windows": fetch.windows(), **fetch.answer(Path(name), 0.0)}

    def _h2load(self, asked: dict[str, Any], total_s: float) -> dict[str, Any]:
        broken = self.world.comparing
        alpn = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}[asked["protocol"]]
        succeeded = asked["requests"] - broken.failed
        body_bytes = succeeded * (len(self.world.body(asked["path"])) - broken.shortened)
        return {
            "command": ["h2load", asked["protocol"]], "negotiated": {"alpn": broken.alpn or alpn},
            "reconciled": True, "discrepancies": [],
            "totals": {"requests": asked["requests"], "succeeded": succeeded},
            "metrics": {
                "total_s": total_s, "mean_done_s": 0.4 * total_s, "requests_per_s": asked["requests"] / total_s,
                "request_p50_s": total_s / 10,
                "request_p95_s": total_s / 2, "requests_succeeded": succeeded, "requests_failed": broken.failed,
                "bytes_body": body_bytes, "goodput_bps": 8 * body_bytes / total_s,
            },
            "samples": {
                "request_start_s": [0.0] * succeeded, "request_status": [200] * succeeded,
                "request_took_s": [total_s * (number + 1) / succeeded for number in range(succeeded)],
                "connect_s": [total_s / 4, total_s / 2], "ttfb_s": [total_s / 3, total_s * 2 / 3],
            },
            "windows": {"window_bytes": (1 << 24) - 1},
        }  # fmt: skip


# Behind each port of nginx.
BUFFERS_BYTES = {base + number: size for base, size in ((443, 16 << 20), (8443, 64 << 10)) for number in range(4)}


class FakeBrowser(FakeClient):
    """The operations of a browser, next to the client."""

    def do_prepare(self, *, captured: bool = False, **asked: Any) -> dict[str, Any]:
        del captured
        assert self.world.profile == Profile("clean"), "its first page comes over an unimpaired path"
        self.world.opened.append(opened(asked))
        return {"started_s": None}

    def do_visit(self, **asked: Any) -> dict[str, Any]:
        assert self.world.opened[-1] == opened(asked)
        self.world.visited.append((opened(asked), self.world.profile.name))
        return {"took_s": 0.1}

    def do_run(self, **asked: Any) -> dict[str, Any]:
        assert self.world.opened.pop() == opened(asked)
        return super().do_run(**asked)


def opened(asked: Mapping[str, Any]) -> str:
    """How a browser uses the page that a request names."""
    manner = f"{asked['isolation']}{' discovers' * asked['discovers']}"
    return f"{asked['protocol']} {asked['host']}:{asked['port']}{asked['path']} {manner}"


def requests_of_page(path: str) -> list[str]:
    """The paths that a browser requests for a generated page, the document first; none of any other object."""
    if found := re.search(r"/(\d+)-of-(\d+)\.html$", path):
        return [path, *(f"/bytes/{found[2]}.png?{number}" for number in range(1, int(found[1]) + 1))]
    page = page_of(path.split("/")[-2]) if path.endswith(DOCUMENT) else None
    return [path.replace(DOCUMENT, name) for name in page.sizes()] if page else []


def requests_of(asked: Mapping[str, Any], usual: int = 1) -> int:
    """The number of requests that a run of a client makes; `usual` if it does not say."""
    return len(requests_of_page(asked.get("path", ""))) or int(asked.get("requests", usual))


@contextmanager
def fake_testbed(world: World, clock: Clock = CLOCK) -> Iterator[Testbed]:
    """A Testbed whose agents answer from `world`."""
    world.dead.clear()
    client, server, router = FakeClient("client", world), FakeServer("server", world), FakeRouter("router", world)
    servers, name = {paths.NGINX: server}, f"fake-{next(NUMBERS)}"
    browsers = {browser: FakeBrowser(browser, world) for browser in BROWSERS}
    testbed = Testbed(client, servers, router, ADDRESSES, ENGINE, name=name, clock=clock, browsers=browsers)
    world.congestion |= dict.fromkeys(world.congestion, CUBIC.tcp)  # of new containers
    testbed.make_paths({paths.NGINX: SERVER_IP})
    testbed.path().fingerprints = {host.name: host.usual_fingerprint() for host in (client, server, router)}
    yield testbed


@contextmanager
def fake_path(world: World, clock: Clock = CLOCK) -> Iterator[paths.Path]:
    """The only path of a fake testbed."""
    with fake_testbed(world, clock) as testbed:
        yield testbed.path()


class FakeOwn:
    """The program of a user's own server; its trials may end it."""

    server = own_server("mine", Program("my/app:1", ("h1", "h2"), port=8443))

    def __init__(self, path: paths.Path, *, dies: bool = False) -> None:
        self.path, self.dies, self.made_fresh = path, dies, 0

    @property
    def program(self) -> Program:
        assert self.server.program
        return self.server.program

    def fresh(self) -> float:
        self.made_fresh += 1
        return 0.0

    def health(self) -> Health:
        if self.dies:
            raise OwnServerError("mine", "server mine (my/app:1): its program ended with status 3. Its log is empty.")
        return self.path.server.call(HEALTH)

    def last_log_lines(self) -> list[str]:
        return ["out of luck"]


def own_path(path: paths.Path, *, dies: bool = False) -> tuple[paths.Path, FakeOwn]:
    """A path to a user's own server, on the testbed of `path`, with the agent of its server."""
    found = replace(path, server_name="mine")
    own = FakeOwn(found, dies=dies)
    found.owns = path.owns = {"mine": cast("OwnServer", own)}
    return found, own


IDS = {"nginx": "sha256:1", "client": "sha256:2", "impair": "sha256:3"}
IMAGES = Images(dict.fromkeys(IDS, "tag"), IDS)


class NoRedrawing(Redrawing):
    """For tests that read the last report only."""

    def __call__(self) -> None:
        pass


def fake_dependencies(up: Callable[[], AbstractContextManager[Testbed]], **others: Any) -> Dependencies:
    """What `lab.main` needs to run on fake testbeds, which `up` makes; nothing asks Docker for anything, or pauses."""
    given: dict[str, Any] = {
        "clock": AT_ONCE,
        "sweep": lambda *_: 0, "other_labs": dict, "ensure_images": lambda *_: IMAGES,
        "ensure_own_image": lambda server, _: OwnImage(server.program.image, "sha256:4"), "up": lambda *_: up(),
        "redrawing": NoRedrawing, **others,
    }  # fmt: skip
    return Dependencies(**given)


def a_trial(profile: Profile = BAD, arm: Arm = H3) -> Trial:
    """The last one of a block."""
    condition = Condition(profile, H2load("small", 1000, 10, 10))
    seeds = {Direction.UPLINK: 11, Direction.DOWNLINK: 22}
    return Trial(Block(condition, 0, PLAIN, seeds), 2, arm)
