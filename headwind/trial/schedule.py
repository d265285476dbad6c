"""Starts what is to happen on the path at given moments of a trial, and ends it: changes of the network, a rebinding.

The router carries it out (impair/router/schedule.py), after one request: none is sent while the client runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from headwind.model import Trial
from headwind.proof.evidence import CHANGE, REBIND
from headwind.testbed.operations import REBOUND, STOP_SCHEDULE
from headwind.testbed.path import Path
from impair.messages import Course
from impair.profile import Direction, Rebind

SEED_STEP = 0x9E3779B97F4A7C15  # odd, so that no two changes of a direction have the same seed (G. Steele, 2014)
OTHER_HOST = 200  # of the client's network: the address that a rebinding gives it
START_S = 30.0  # to send and parse thousands of actions


def actions_of(trial: Trial, until_s: float, *, has_seeds: bool) -> list[dict[str, Any]]:
    """The changes of a trial's network in its first `until_s` seconds, as the router's operation takes them."""
    profile, seeds = trial.profile, trial.block.seeds
    return [
        {
            "at_s": at_s, "kind": CHANGE, "direction": direction.value,
            "link": profile.after(direction, number).to_json(),
            "seed": (seeds[direction] + number * SEED_STEP) % 2**64 if has_seeds else None,
        }
        for direction in Direction
        for number, at_s in enumerate(moments(trial, direction, until_s), 1)
    ]  # fmt: skip


def moments(trial: Trial, direction: Direction, until_s: float) -> Iterator[float]:
    """The moments of a direction's changes in a trial, up to `until_s`."""
    return takewhile(lambda at_s: at_s <= until_s, trial.profile.moments(direction, trial.block.seeds[direction]))


def start_schedule(path: Path, trial: Trial, until_s: float) -> bool:
    """Have the router carry out what is due in the next `until_s` seconds; False, and no request, if nothing is."""
    if trial.profile.is_steady or not path.engine.netem:
        return False
    traces = {each.value: trace.to_json() for each in Direction if (trace := trial.profile.trace(each))}
    if traces:  # and no other changes: a matrix has either
        clock = trial.profile.clock.value
        path.router.call("start_replay", START_S, path.agents, traces=traces, clock=clock)
        return True
    actions = [*actions_of(trial, until_s, has_seeds=path.has_seeds), *_rebinding(path, trial)]
    path.router.call("start_schedule", START_S, path.agents, actions=actions, clock=trial.profile.clock.value)
    return True


def _rebinding(path: Path, trial: Trial) -> Iterator[dict[str, Any]]:
    """The rebinding of the client, if the trial has one; the server's host counts from now on what comes of it."""
    if rebinding := trial.profile.rebinding:
        client, other = path.ips["client"], path.addresses.host("client", OTHER_HOST)
        source = other if rebinding.kind is Rebind.ADDRESS else client
        path.server.call("await_rebound", 10.0, path.agents, kind=rebinding.kind.value, address=source)
        yield {"at_s": rebinding.at_s, "kind": REBIND, "to": rebinding.kind.value, "client": client, "other": other}


def rebound(path: Path, trial: Trial) -> int | None:
    """The packets of the rebound client that reached the server; None if the trial has no rebinding."""
    return path.server.call(REBOUND, 10.0, path.agents) if trial.profile.rebinding and path.engine.netem else None


def stop_schedule(path: Path, trial: Trial) -> tuple[Course, dict[Direction, list[float]]]:
    """End what `start_schedule` started: what was carried out, and the moments that were due by then."""
    course = path.router.call(STOP_SCHEDULE, 10.0, path.agents)
    until_s = -1.0 if course.stopped_s is None else course.stopped_s
    return course, {
        direction: [*moments(trial, direction, until_s)] for direction in Direction if trial.profile.changes(direction)
    }
