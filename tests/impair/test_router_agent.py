"""The router's agent: which direction is impaired where, what it tells, and how it answers on its wire."""

from __future__ import annotations

import io
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from impair.capabilities import NetemCapabilities
from impair.messages import NetemCounters, Port, PortFrames, Processors
from impair.netem_options import Options
from impair.profile import Delay, Direction, Link, Loss, Profile
from impair.router import agent
from impair.router.agent import Machine, Router
from impair.router.netem import Change, Netem, NetemRefused, Reading
from impair.trace import Trace
from impair.wire import serve

INTERFACES = {"client": "eth-c", "server": "eth-s"}
PROFILE = Profile("test", uplink=Link(loss=Loss(0.25)), downlink=Link(delay=Delay(0.1, 0.01, "normal")))
SEEDS = {"uplink": 1, "downlink": 2}
SEVEN = NetemCounters(7, 0, 0, 0, 0, 0, 0)


@dataclass
class FakeNetem:
    """Takes everything, and remembers it."""

    held: dict[str, Options] = field(default_factory=dict)
    refuses: str = ""
    changed: list[str] = field(default_factory=list)
    deaf: bool = False  # a change does nothing

    def close(self) -> None:
        pass

    def change(self, device: str, link: Link, seed: int | None) -> Change:
        return Change(device, Options.of(link, seed), bytearray(), seed is not None)

    def carry_out(self, change: Change) -> None:
        self.changed.append(change.device)
        self.held[change.device] = self.held[change.device] if self.deaf else change.asked

    def apply(self, device: str, link: Link, seed: int | None) -> Reading:
        if device == self.refuses:
            raise NetemRefused(device, "seed", seed, None)
        self.held[device] = Options.of(link, seed)
        return Reading(self.held[device], NetemCounters(0, 0, 0, 0, 0, 0, 0))

    def clear(self, device: str) -> None:
        self.held.pop(device, None)

    def read(self, device: str) -> Reading | None:
        return Reading(self.held[device], SEVEN) if device in self.held else None


@pytest.fixture
def netem() -> FakeNetem:
    return FakeNetem()


@pytest.fixture
def done() -> list[tuple[Any, ...]]:
    """What was done to the machine."""
    return []


@pytest.fixture
def machine(netem: FakeNetem, done: list[tuple[Any, ...]]) -> Machine:
    frames = PortFrames(3, 3, 3, 3, 3, 3)
    return Machine(
        netem=lambda: cast("Netem", netem),
        try_netem=lambda profiles: NetemCapabilities(
            True, "tried", "7.2", True, True, {p.name: "no" for p in profiles}
        ),
        describe=lambda name: Port(name, f"mac of {name}", 1500),
        frame_counters=lambda: {"lo": frames, "eth-c": frames, "eth-s": replace(frames, rx_frames=4)},
        forward=lambda: done.append(("forward",)),
        set_up=lambda *arguments: done.append(arguments),
        fingerprint=lambda *, roots, transport: {"asked": f"{roots} {transport}"},
    )


@pytest.fixture
def router(machine: Machine) -> Router:
    return Router("kernel", INTERFACES, machine=machine)


def test_uplink_is_impaired_towards_the_server_and_downlink_towards_the_client(
    router: Router, netem: FakeNetem
) -> None:
    told = router.apply(PROFILE.to_json(), SEEDS)
    assert netem.held == {"eth-s": Options.of(PROFILE.uplink, 1), "eth-c": Options.of(PROFILE.downlink, 2)}
    assert [told[direction].seed for direction in Direction] == [1, 2]


def test_the_read_back_can_be_asked_for_again(router: Router) -> None:
    told = router.apply(PROFILE.to_json(), SEEDS)
    shown = router.show()
    for direction in Direction:
        again = shown.netem(direction)
        assert again
        assert Options.of(again.link, None) == Options.of(PROFILE.link(direction), None)
        assert again == replace(told[direction], counters=SEVEN)
        assert again.limit == PROFILE.link(direction).limit
    assert shown.ports["client"].rx_frames == 3
    assert shown.ports["server"].rx_frames == 4


def test_what_the_kernel_does_not_tell_is_said_to_be_unverified(router: Router) -> None:
    router.apply(PROFILE.to_json(), SEEDS)
    shown = router.show()
    assert shown.uplink
    assert shown.downlink
    assert shown.downlink.link.delay == PROFILE.downlink.delay
    assert shown.downlink.unverified == ["delay.distribution"]
    assert shown.uplink.unverified == []


def test_the_router_shows_its_fingerprint_without_what_every_trial_replaces_and_whether_it_kept_running(
    router: Router,
) -> None:
    router.hello()
    time.sleep(0.1)
    assert router.fingerprint() == {"asked": "False False"}
    assert router.show().largest_gap_s > 0


@pytest.mark.parametrize(("outside_s", "least_s", "most_s"), [(0.001, 0.001, 0.001), (1e6, 0.1, 1e5)])
def test_a_router_stood_still_only_as_long_as_it_was_silent_inside_and_outside(
    machine: Machine, netem: FakeNetem, outside_s: float, least_s: float, most_s: float
) -> None:
    launcher = agent.Launcher()
    router = Router("uml", INTERFACES, launcher, machine)
    router.hello()
    router._pulse._last_s -= 0.1  # its own programs did not run for so long
    for gap_s in (outside_s, 0.0):
        seen = {"processors": {"clock_s": 1.0, "working_s": 0.5}, "container": {"clock_s": 1.0, "cpu_s": 0.7}}
        launcher.heed(json.dumps({"largest_gap_s": gap_s, **seen}))
    shown = router.show()
    assert least_s <= shown.largest_gap_s <= most_s
    assert shown.processors == Processors(1.0, working_s=0.5)
    assert shown.container == Processors(1.0, cpu_s=0.7)
    assert netem.held == {}


def test_a_cleared_router_has_no_netem(router: Router, netem: FakeNetem) -> None:
    router.apply(PROFILE.to_json(), SEEDS)
    router.clear()
    shown = router.show()
    assert (shown.uplink, shown.downlink, netem.held) == (None, None, {})


def test_hello_says_who_and_with_which_ports(router: Router) -> None:
    told = router.hello()
    assert told.engine == "kernel"
    assert told.netem_counters is True
    assert told.ports["client"] == Port("eth-c", "mac of eth-c", 1500)


def test_setup_gives_each_port_its_gateway_and_neighbours(router: Router, done: list[tuple[Any, ...]]) -> None:
    servers = [{"ip": "10.2.0.10", "mac": "s"}, {"ip": "10.2.0.11", "mac": "t"}]
    neighbours = {"client": [{"ip": "10.1.0.10", "mac": "c"}], "server": servers}
    told = router.setup("10.1.0.254/24", "10.2.0.254/24", neighbours)
    assert done == [("forward",), ("eth-c", "10.1.0.254/24", {"10.1.0.10": "c"}),
                    ("eth-s", "10.2.0.254/24", {"10.2.0.10": "s", "10.2.0.11": "t"})]  # fmt: skip
    assert told == router.hello()


def test_a_refusal_is_an_answer_and_the_agent_goes_on(router: Router, netem: FakeNetem) -> None:
    netem.refuses = "eth-c"
    unknown = {**PROFILE.to_json(), "downlink": {"loss": {"model": "none"}}}
    requests = [
        {"id": 1, "op": "apply", "profile": PROFILE.to_json(), "seeds": SEEDS},
        {"id": 2, "op": "apply", "profile": unknown, "seeds": SEEDS},
        {"id": 3, "op": "probe", "profiles": [Profile("far").to_json()]},
    ]
    said = io.StringIO()
    serve(router.operations(), io.StringIO("".join(json.dumps(request) + "\n" for request in requests)), said)
    ready, refused, impossible, probed = (json.loads(line) for line in said.getvalue().splitlines())
    assert ready == {"ready": True}
    assert "requested seed = 2, the kernel reads back None; this kernel cannot seed netem" in refused["error"]
    assert refused["kind"] == "NetemRefused"
    assert impossible["kind"] == "KeyError"
    assert probed["ok"] == {
        "netem": True, "why": "tried", "kernel": "7.2", "seed": True, "counters": True, "refused": {"far": "no"},
    }  # fmt: skip


def test_a_missing_interface_is_said_on_the_wire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ip").write_text("#!/bin/sh\necho '[]'\n")
    (tmp_path / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit):
        agent.main(["--client-subnet", "10.9.0.0/24", "--server-port", "eth1"])
    said = json.loads(capsys.readouterr().out)
    assert said["error"].startswith("0 interfaces have an address in 10.9.0.0/24")


def test_a_schedule_changes_a_direction_in_place_and_the_read_back_follows(router: Router, netem: FakeNetem) -> None:
    router.apply(PROFILE.to_json(), SEEDS)
    lost = Link(loss=Loss(1.0))
    action = {"at_s": 0.0, "kind": "change", "direction": "uplink", "link": lost.to_json(), "seed": 3}
    router.start_schedule([action], "trial")
    time.sleep(0.05)
    (carried,) = router.stop_schedule().carried
    assert (carried.kind, carried.direction, carried.error) == ("change", Direction.UPLINK, "")
    assert carried.before.uplink
    assert Options.of(carried.before.uplink.link, 1) == Options.of(PROFILE.uplink, 1)
    assert carried.after.uplink
    assert (carried.after.uplink.link.loss, carried.after.uplink.seed) == (Loss(1.0), 3)
    assert netem.changed == ["eth-s"]


def test_a_change_that_is_not_read_back_is_an_error_of_the_schedule(router: Router, netem: FakeNetem) -> None:
    router.apply(PROFILE.to_json(), SEEDS)
    netem.deaf = True
    action = {"at_s": 0.0, "kind": "change", "direction": "uplink", "link": {}, "seed": 3}
    router.start_schedule([action], "trial")
    time.sleep(0.05)
    assert "the kernel reads back" in router.stop_schedule().carried[0].error


def test_an_unknown_action_and_a_schedule_that_was_not_started_are_refused(router: Router) -> None:
    with pytest.raises(LookupError, match="no action 'explode'; there are change"):
        router.start_schedule([{"at_s": 1.0, "kind": "explode"}], "trial")
    with pytest.raises(LookupError, match="no schedule was started"):
        router.stop_schedule()


def test_clear_ends_a_schedule_that_nobody_stopped(router: Router, netem: FakeNetem) -> None:
    router.apply(PROFILE.to_json(), SEEDS)
    action = {"at_s": 0.1, "kind": "change", "direction": "uplink", "link": {}, "seed": 3}
    router.start_schedule([action], "trial")
    router.clear()
    time.sleep(0.2)
    assert netem.changed == []


def test_a_trace_without_a_bottleneck_is_refused(router: Router) -> None:
    router.apply(PROFILE.to_json(), SEEDS)
    trace = Trace("x.trace", "0" * 64, 0.1, (5,)).to_json()
    with pytest.raises(LookupError, match="the downlink has no bottleneck whose rate a trace could change"):
        router.start_replay({"downlink": trace}, "trial")
