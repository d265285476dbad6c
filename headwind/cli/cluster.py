"""Lanes on other machines: brought up for a run, and offered by a worker."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwind.errors import HeadwindError, UsageError

if TYPE_CHECKING:
    from headwind.cli.means import Means
    from headwind.cluster.far_lane import FarLane, Line
    from headwind.cluster.messages import Host, Order
    from headwind.model import Matrix
    from headwind.run.journal import Run
    from headwind.testbed.docker import Say
    from headwind.trial.lanes import Lanes


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a run's trials run: lanes that are up, and what a run's environment says of them."""

    lanes: Lanes
    environment: Mapping[str, Any]
    host: str  # on which blocks may be ended that were begun there; empty: on none
    cores: int  # of the smallest host


@contextmanager
def bench_far(
    matrix: Matrix, address: str, engine: str, earlier: Run | None, say: Say, means: Means
) -> Iterator[Bench]:
    """The lanes of all stations that a scheduler knows, as far as they are alike. Raises HeadwindError without any."""
    from headwind.cluster.admission import admitted
    from headwind.cluster.link import Link
    from headwind.cluster.station import code_digest
    from headwind.testbed.docker import ROOT
    from headwind.trial.lanes import Lanes

    with ExitStack() as lanes_up:
        link = Link(address, means.patience_s)
        hosts, refused = link.hosts(matrix.lanes)
        taken, unlike = admitted(hosts, code_digest(ROOT), earlier.environment if earlier else None)
        up = _opened(lanes_up, link, taken, matrix, engine, refused := {**refused, **unlike})
        for name, reason in refused.items():
            say(f"without {name}: {reason}")
        if not up:
            raise HeadwindError(f"--cluster {address}: no machine can take part; `lab.py worker {address}` offers one")
        environment = _environment(up, refused)
        if earlier:
            earlier.check_resumable(matrix, environment["images"], environment["engine"])
        first, *others = up
        say(f"lanes on {', '.join(lane.host for lane, _ in up)}")
        elsewhere = [(lane, host.lanes) for lane, host in others]
        with Lanes(first[0], first[1].lanes, say, elsewhere=elsewhere, clock=means.clock) as lanes:
            yield Bench(lanes, environment, "", min(int(host.facts.get("cores") or 1) for _, host in up))


def _opened(
    lanes_up: ExitStack, link: Line, hosts: list[Host], matrix: Matrix, engine: str, refused: dict[str, str]
) -> list[tuple[FarLane, Host]]:
    """The first lane of each host, up until `lanes_up` is closed.

    A host is refused, and its lane closed, if the lane does not come up, has another engine than the first, or cannot
    do what the matrix asks.
    """
    from headwind.cluster.far_lane import FarLane
    from headwind.plan.arms import refuse
    from headwind.plan.capacity import check_capacity

    order = _order(matrix, engine)
    up: list[tuple[FarLane, Host]] = []
    for number, host in enumerate(hosts, start=1):
        lane = FarLane(link, host.name, _numbered(order, number, engine), engine=engine, settings=matrix.settings,
                       number=number)  # fmt: skip
        lanes_up.callback(lane.close)
        try:
            refuse(matrix, lane.open().refused)
            check_capacity(matrix, lane.facts["ceiling"], ())
        except HeadwindError as error:
            lane.close()
            refused[host.name] = str(error)
            continue
        engine = lane.engine  # never mixed
        up.append((lane, host))
    return up


def _order(matrix: Matrix, engine: str) -> Order:
    from headwind.cluster.messages import Order
    from headwind.plan.arms import asked_of_tcp
    from headwind.plan.capacity import profiles_of

    return Order(uuid.uuid4().hex, 1, engine, matrix.timeout_s, matrix.settings, matrix.congestion, profiles_of(matrix),
                 asked_of_tcp(matrix))  # fmt: skip


def _numbered(order: Order, number: int, engine: str) -> Order:
    from dataclasses import replace

    return replace(order, number=number, engine=engine)


def _environment(up: list[tuple[FarLane, Host]], refused: Mapping[str, str]) -> dict[str, Any]:
    first, host = up[0]
    hosts = {each.name: {**each.facts, "lanes": each.lanes} for _, each in up}
    more = {"hosts refused": dict(refused)} if refused else {}
    return {
        "engine": first.engine, "images": dict(host.images), "host": dict(host.facts), "hosts": hosts,
        "testbed": first.facts, **more,
    }  # fmt: skip


def work(address: str, name: str | None, say: Say, means: Means) -> None:
    """Offer this machine to the runs of a scheduler, until interrupted; testbeds are then taken down."""
    from headwind.cli.doctor import host_facts, lanes_here
    from headwind.cluster.link import serve
    from headwind.cluster.messages import Host
    from headwind.cluster.station import Station, code_digest
    from headwind.testbed.docker import ROOT

    if not address.strip():
        raise UsageError("worker: the address of a scheduler is needed, such as tcp://lab:8786")
    means.sweep(say, False)
    images, facts, called = means.ensure_images(say), host_facts(), name or os.uname().nodename
    code = code_digest(ROOT)
    station = Station(
        called,
        lambda asked: Host(called, code, images.ids, facts, lanes_here(asked)),
        lambda order: means.up(images.tag, order.congestion, order.engine, say, order.profiles),
        busy_s=means.busy_s,
    )
    try:
        serve(address, called, station, say)
    finally:
        station.close()
