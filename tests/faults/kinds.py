"""The kinds of fault: each is injected into a session, and says what it hit."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from headwind.errors import HeadwindError
from headwind.run.journal import JOURNAL, Run
from headwind.testbed.docker import docker
from tests.faults import disk as disks
from tests.faults import labs
from tests.faults.labs import POLL_S, Container
from tests.faults.scenes import Scene
from tests.faults.session import Broken, Fault, Hit, Session, Then, read

PAUSE_S = 10.0
APPEAR_S = 6.0  # how long to wait for a program that only runs in a part of each trial
AFTER_S = 2.0  # of a kill, in which a trial may still be wrong
CLOCK_S = 3600
IDLE = ("docker-init", "sleep", "tini")
SERVERS = ("server", "caddy", "haproxy", "nghttpd")
BROWSERS = ("chromium", "firefox")

Process = tuple[int, tuple[int, str, str]]


def is_agent(process: Process) -> bool:
    """Whether it runs the lab's own code, rather than a server or a client."""
    return process[1][1].startswith("python3")


def is_kernel(process: Process) -> bool:
    """Whether it belongs to a user-mode kernel."""
    return process[1][1] in ("linux.uml", "uml-userspace")


def is_program(process: Process) -> bool:
    """Whether it is a server, a client or a browser."""
    return not is_agent(process) and process[1][1] not in IDLE


def killed(services: Collection[str], wanted: Callable[[Process], bool]) -> Callable[[Session], Hit | None]:
    """Kill a random process in a container of one of these services, once there is one."""

    def inject(session: Session) -> Hit | None:
        end = time.monotonic() + APPEAR_S
        while time.monotonic() < end:
            containers = [each for each in session.containers() if each.service in services]
            session.chance.shuffle(containers)
            for container in containers:
                found = [process for process in container.processes().items() if wanted(process)]
                if found:
                    pid, (_, name, command) = session.chance.choice(sorted(found))
                    with suppress(ProcessLookupError):
                        began_at = time.time()
                        os.kill(pid, signal.SIGKILL)
                        return at(container, f"{name} ({command[:50]})", began_at)
            time.sleep(POLL_S)
        return None

    return inject


def at(container: Container, what: str, began_at: float, lasted_s: float = 0.0) -> Hit:
    """A hit of one testbed."""
    return Hit(f"{container.service}: {what}", frozenset({container.testbed}), began_at,
               began_at + lasted_s + AFTER_S)  # fmt: skip


def kill_container(session: Session) -> Hit | None:
    """Kill every process of a random container."""
    if not (containers := session.containers()):
        return None
    container, began_at = session.chance.choice(containers), time.time()
    docker("kill", container.id, check=False)
    return at(container, "the container", began_at)


def pause(session: Session) -> Hit | None:
    """Stop all processes of a random container for a while."""
    if not (containers := session.containers()):
        return None
    container, began_at = session.chance.choice(containers), time.time()
    docker("pause", container.id, check=False)
    time.sleep(PAUSE_S)
    docker("unpause", container.id, check=False)
    return at(container, f"paused for {PAUSE_S:g} s", began_at, PAUSE_S)


def remove_network(session: Session) -> Hit | None:
    """Disconnect all containers of a random network, and remove it."""
    containers, networks = session.containers(), session.networks()
    if not networks:
        return None
    network, began_at = session.chance.choice(networks), time.time()
    project = docker("network", "inspect", network, "--format", '{{index .Labels "headwind.project"}}', check=False)
    ours = [each for each in containers if each.testbed == project.strip()]
    for each in ours:
        docker("network", "disconnect", "-f", network, each.id, check=False)
    docker("network", "rm", network, check=False)
    return at(ours[0], f"network {network}", began_at) if ours else None


def kill_child(words: str) -> Callable[[Session], Hit | None]:
    """Kill a random process of the lab on the host whose command has these words."""

    def inject(session: Session) -> Hit | None:
        found = [(pid, command) for owner in filter(None, (session.lab, *session.owners()))
                 for pid, command in owner.children() if words in command]  # fmt: skip
        if not found:
            return None
        pid, command = session.chance.choice(sorted(found))
        with suppress(ProcessLookupError):
            began_at = time.time()
            os.kill(pid, signal.SIGKILL)
            return Hit(command[-60:], frozenset({"*"}), began_at, began_at + AFTER_S)
        return None

    return inject


def kill_lab(session: Session) -> Hit | None:
    """Kill the lab's process (of a cluster: the controller)."""
    assert session.lab
    if session.lab.code is not None:
        return None
    session.lab.send(signal.SIGKILL)
    return Hit("the process", has_ended=True)


def kill_and_tear(session: Session) -> Hit | None:
    """Kill it, and damage the last page that it wrote to the journal."""
    if kill_lab(session) is None:
        return None
    assert session.lab
    session.lab.ended(10)
    folder = session.run_folder()
    whole = disks.tear(folder, session.chance, session.work) if folder else None
    if whole is None:
        return Hit("the process, before it wrote anything", has_ended=True)
    with suppress(HeadwindError):  # the first commit of all makes the tables
        kept = read(whole)
        shutil.rmtree(whole)
        gone = frozenset(key for key, result in session.known.items() if kept.get(key) != result)
        return Hit(f"the last page, with the records of {len(gone)} finished trials", has_ended=True, destroyed=gone)
    shutil.rmtree(whole)
    return Hit("the page of the first commit", has_ended=True, destroyed=frozenset(session.known))


def tear_copy(session: Session) -> Hit | None:
    """Cut the journal's main file short in a copy of the run, and ask to resume the copy: it must be refused."""
    if kill_lab(session) is None:
        return None
    assert session.lab
    session.lab.ended(10)
    session.lab.outlived(labs.POLL_S * 25)
    folder = session.run_folder()
    if not folder or not session.known:
        return Hit("the process, before it wrote anything", has_ended=True)
    copy = session.work / f"torn-{folder.name}"
    shutil.copytree(folder, copy)
    with Run.open(copy):
        pass  # writes the log into the main file, and removes it
    disks.tear_database(copy / JOURNAL, session.chance)
    resumed = labs.finished_lab(session.logs, "run", "--resume", str(copy), limit_s=90)
    report = labs.finished_lab(session.logs, "report", str(copy))
    shutil.rmtree(copy)
    for process in (resumed, report):
        session.check_refusal("journal: main file cut", process)
    return Hit("a copy of the run, whose journal ends too early", has_ended=True, then=Then.REFUSED)


def stop(session: Session) -> Hit | None:
    """Stop the lab as people do: Ctrl-C, kill, a closed terminal."""
    assert session.lab
    number = session.chance.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    session.lab.send(number)
    return Hit(signal.Signals(number).name)


def fill_disk(session: Session) -> Hit | None:
    """Leave no byte on the disk of the run folder, once something is there."""
    if not session.known:
        return None
    session.disk.fill()
    return Hit("no byte left")


def break_disk(session: Session) -> Hit | None:
    """Make the disk of the run folder read-only while files are open."""
    if not session.known:
        return None
    session.disk.break_down()
    return Hit("read-only")


def change_clock(session: Session) -> Hit | None:
    """Set the wall clock of the lab's processes an hour forward or back."""
    if not session.known:
        return None
    offset_s = session.chance.choice((-CLOCK_S, CLOCK_S))
    session.set_clock(offset_s)
    return Hit(f"{offset_s:+d} s", frozenset({"*"}))


def remove_image(session: Session) -> Hit | None:
    """Remove the image of nginx that only this copy of the tree uses, and the container that was made of it."""
    servers = [each for each in session.containers() if each.service == "server"]
    if not servers:
        return None
    container, began_at = servers[0], time.time()
    image = docker("inspect", container.id, "--format", "{{.Config.Image}}", check=False).strip()
    if not image:
        return None
    docker("rmi", "-f", image, check=False)
    docker("kill", container.id, check=False)
    return at(container, image, began_at)


def same_run_twice(session: Session) -> Hit | None:
    """Start a second lab on the same run: it must be refused."""
    folder = session.run_folder()
    if not folder or not session.known or session.lab is None or session.lab.code is not None:
        return None
    second = labs.finished_lab(session.logs, "run", "--resume", str(folder), limit_s=90)
    session.check_refusal("a second lab on the same run", second)
    return Hit(second.output.strip().splitlines()[-1][-80:], then=Then.REFUSED)


def second_lab(session: Session) -> Hit | None:
    """Start a second lab with its own run, kill it, and clean up: the first one must not be affected."""
    second = labs.lab(session.logs, "run", session.work / "matrix.yaml", "--lanes", "1",
                      "--reports", session.disk.path / "second")  # fmt: skip
    second.ended(session.chance.uniform(2, 15))
    second.send(signal.SIGKILL)
    second.ended(10)
    session.down()
    if second.outlived(15):
        session.violation("a second lab", Broken.STUCK, str(second.outlived(0)))
    if left := second.left():
        session.violation("a second lab", Broken.LEFT, str(left))
    shutil.rmtree(session.disk.path / "second", ignore_errors=True)
    return Hit("killed")


def kill_worker(session: Session) -> Hit | None:
    """Kill a worker of the cluster."""
    assert session.cluster
    workers = [each for each in session.cluster.workers if each.code is None]
    if not workers:
        return None
    worker, began_at = session.chance.choice(workers), time.time()
    testbeds = frozenset(each.testbed for each in worker.containers())
    worker.send(signal.SIGKILL)
    worker.ended(10)
    session.down()
    return Hit(str(worker.command[-1]), testbeds, began_at, began_at + AFTER_S)


def kill_scheduler(session: Session) -> Hit | None:
    """Kill the scheduler of the cluster, and start another one at its address."""
    assert session.cluster
    session.cluster.scheduler.send(signal.SIGKILL)
    session.cluster.scheduler.ended(10)
    time.sleep(session.chance.uniform(0, 5))
    session.cluster.complete()
    return Hit("the process")


def is_cluster(scene: Scene) -> bool:
    """Whether workers run the trials."""
    return scene.workers > 0


def is_local(scene: Scene) -> bool:
    """Whether the lab runs them itself."""
    return not scene.workers


KINDS = (
    Fault("server: kill -9 of a process", killed(SERVERS, is_program), 10),
    Fault("client: kill -9 of the program", killed(("client",), is_program), 8),
    Fault("browser: kill -9 of a process", killed(BROWSERS, is_program), 40, lambda scene: bool(scene.browsers)),
    Fault("agent: kill -9", killed((*SERVERS, *BROWSERS, "client", "impair"), is_agent), 10),
    Fault("user-mode kernel: kill -9", killed(("impair",), is_kernel), 7),
    Fault("container: kill -9", kill_container, 8),
    Fault("container: paused for 10 s", pause, 8),
    Fault("network: removed", remove_network, 6),
    Fault("connection to an agent: kill -9", kill_child("docker exec"), 6, is_local),
    Fault("report process: kill -9", kill_child("headwind.cli.redrawing"), 3),
    Fault("lab: kill -9", kill_lab, 8, within_s=30),
    Fault("lab: kill -9, journal's last page torn", kill_and_tear, 8, is_local, within_s=20),
    Fault("lab: kill -9, journal's main file cut", tear_copy, 3, is_local, within_s=10),
    Fault("lab: SIGINT, SIGTERM, SIGHUP", stop, 5, ends=True, within_s=30),
    Fault("disk: full", fill_disk, 5, is_local, ends=True, repairs=lambda session: session.disk.empty()),
    Fault("disk: read-only", break_disk, 5, is_local, ends=True, repairs=lambda session: session.disk.repair()),
    Fault("a second lab on the same run", same_run_twice, 3, is_local),
    Fault("a second lab, killed", second_lab, 3, is_local),
    Fault("clock: an hour forward or back", change_clock, 300, lambda scene: scene.clock),
    Fault("image: removed", remove_image, 250, lambda scene: scene.copy),
    Fault("worker: kill -9", kill_worker, 30, is_cluster),
    Fault("scheduler: kill -9", kill_scheduler, 25, is_cluster),
)  # fmt: skip


def kinds_of(scene: Scene) -> tuple[Fault, ...]:
    """The faults that a scene can have."""
    return tuple(kind for kind in KINDS if kind.fits(scene))


def folder_of(work: Path, scene: Scene) -> Path:
    """Where a scene keeps its files."""
    return work / scene.name.replace(" ", "-")
