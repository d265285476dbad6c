"""Remote lanes: set them up for a run, and offer this machine's lanes as a worker."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headwind.errors import HeadwindError, UsageError

if TYPE_CHECKING:
    from headwind.cli.dependencies import Dependencies
    from headwind.cluster.messages import Host, LaneSpec
    from headwind.cluster.remote_lane import Line, RemoteLane
    from headwind.model import Matrix
    from headwind.run.journal import Run
    from headwind.testbed.docker import Say
    from headwind.trial.lanes import Lanes


ADDRESS = re.compile(r"([a-z]+://)?[^\s/]+:[0-9]+/?")


@dataclass(frozen=True, slots=True)
class Backend:
    """Lanes of a run that are up, and their part of the run's environment."""

    lanes: Lanes
    environment: Mapping[str, Any]
    host: str  # host name; the run may end blocks that were begun there; empty: may end none
    cores: int  # CPUs of the smallest host

    def joined(self, environment: Mapping[str, Any]) -> dict[str, Any]:
        """Facts that a resumed run adds to its environment: the machines that it has from now on, and those refused."""
        hosts, refused = (self.environment.get(key, {}) for key in ("hosts", "hosts refused"))
        if not hosts:
            return {}
        before = {name: why for name, why in environment.get("hosts refused", {}).items() if name not in hosts}
        return {"hosts": {**environment.get("hosts", {}), **hosts}, "hosts refused": {**before, **refused}}


@contextmanager
def remote_backend(
    matrix: Matrix, address: str, engine: str, earlier: Run | None, say: Say, deps: Dependencies
) -> Iterator[Backend]:
    """The lanes of all workers of a scheduler that match each other. Raises HeadwindError if there are none."""
    from headwind.cluster.admission import admitted
    from headwind.cluster.connection import Link
    from headwind.cluster.worker import code_digest
    from headwind.testbed.docker import ROOT
    from headwind.testbed.images import needed
    from headwind.trial.lanes import Lanes

    if own := [server.name for server in matrix.servers if server.program]:
        raise UsageError(f"--cluster: {', '.join(own)}: your own servers run on this machine only; leave it out")
    if matrix.content:
        raise UsageError("--cluster: `content` is served on this machine only; leave out one of them")
    with ExitStack() as lanes_up:
        link = Link(address, deps.patience_s)
        hosts, refused = link.hosts(matrix.lanes)
        taken, unlike = admitted(
            [host.using(needed([server.kind for server in matrix.servers], matrix.browsers)) for host in hosts],
            code_digest(ROOT),
            earlier.environment if earlier else None,
        )
        up = _opened(lanes_up, link, taken, matrix, engine, refused := {**refused, **unlike})
        for name, reason in refused.items():
            say(f"without {name}: {reason}")
        if not up:
            raise HeadwindError(f"--cluster {address}: no usable worker; start one with `lab.py worker {address}`")
        environment = _environment(up, refused)
        if earlier:
            earlier.check_resumable(matrix, environment["images"], environment["engine"])
        first, *others = up
        say(f"lanes on {', '.join(lane.host for lane, _ in up)}")
        elsewhere = [(lane, host.lanes) for lane, host in others]
        with Lanes(first[0], first[1].lanes, say, elsewhere=elsewhere, clock=deps.clock) as lanes:
            yield Backend(lanes, environment, "", min(int(host.facts.get("cores") or 1) for _, host in up))


def _opened(
    lanes_up: ExitStack, link: Line, hosts: list[Host], matrix: Matrix, engine: str, refused: dict[str, str]
) -> list[tuple[RemoteLane, Host]]:
    """The first lane of each host, up until `lanes_up` is closed.

    A host is refused, and its lane closed, if the lane does not come up, has another engine than the first, or does not
    support what the matrix needs.
    """
    from headwind.cluster.remote_lane import RemoteLane
    from headwind.plan.arms import refuse
    from headwind.plan.capacity import check_capacity

    spec = _lane_spec(matrix, engine)
    up: list[tuple[RemoteLane, Host]] = []
    for number, host in enumerate(hosts, start=1):
        lane = RemoteLane(link, host.name, replace(spec, number=number).on(engine), engine=engine, number=number)
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


def _lane_spec(matrix: Matrix, engine: str) -> LaneSpec:
    from headwind.cluster.messages import LaneSpec
    from headwind.plan.arms import asked_of_tcp
    from headwind.plan.capacity import profiles_of
    from headwind.testbed.bed_spec import BedSpec

    bed = BedSpec({}, matrix.congestion, engine, profiles_of(matrix), matrix.servers, browsers=matrix.browsers)
    return LaneSpec(uuid.uuid4().hex, 1, bed, matrix.rules, asked_of_tcp(matrix))


def _environment(up: list[tuple[RemoteLane, Host]], refused: Mapping[str, str]) -> dict[str, Any]:
    first, host = up[0]
    hosts = {each.name: {**each.facts, "lanes": each.lanes} for _, each in up}
    more = {"hosts refused": dict(refused)} if refused else {}
    return {
        "engine": first.engine, "images": dict(host.images), "host": dict(host.facts), "hosts": hosts,
        "testbed": first.facts, **more,
    }  # fmt: skip


def work(address: str, name: str | None, say: Say, deps: Dependencies) -> None:
    """Offer this machine to the runs of a scheduler until interrupted, then remove its testbeds. Raises UsageError."""
    from headwind.cli.doctor import host_facts, lanes_here
    from headwind.cluster.connection import serve
    from headwind.cluster.messages import Host
    from headwind.cluster.worker import RunWorker, code_digest
    from headwind.testbed.docker import ROOT
    from headwind.testbed.images import IMAGES

    if not ADDRESS.fullmatch(address.strip()):
        raise UsageError(f"worker {address}: the address of a scheduler has a port, such as tcp://lab:8786")
    deps.sweep(say, False)
    images, facts, called = deps.ensure_images(say, IMAGES), host_facts(), name or os.uname().nodename
    code = code_digest(ROOT)
    station = RunWorker(
        called,
        lambda asked: Host(called, code, images.recorded, facts, lanes_here(asked)),
        lambda bed: deps.up(replace(bed, tags=images.tags), say),
        busy_s=deps.busy_s,
    )
    try:
        serve(address, called, station, say)
    finally:
        station.close()
