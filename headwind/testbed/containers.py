"""The Docker objects of testbeds: containers and networks, found by their labels. Knows no agent."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from headwind.browsers import BROWSERS
from headwind.format import counted
from headwind.own_command import lab_command
from headwind.servers import FURTHER
from headwind.testbed.addresses import Addresses, pick_addresses
from headwind.testbed.docker import Docker, DockerError, Say, docker
from headwind.testbed.owner import is_alive, is_elsewhere, this_lab
from headwind.testbed.scratch import remove_scratch

LABEL = "headwind.project"
OWNER_LABEL = "headwind.owner"
MEMORY_SHARE = 0.75  # of the machine's memory, that a container can use: no trial needs so much
TEARDOWN_S = 30.0  # for each call of docker while a testbed is taken down; removing three containers takes 1 s


def _labelled(kind: str, docker: Docker) -> list[tuple[str, str, str]]:
    """(id, project, owner) of every container or network that a lab started."""
    listing = ("ps", "-a") if kind == "container" else ("network", "ls")
    columns = "\t".join(("{{.ID}}", f'{{{{.Label "{LABEL}"}}}}', f'{{{{.Label "{OWNER_LABEL}"}}}}'))
    found = docker(*listing, "--no-trunc", "--filter", f"label={LABEL}", "--format", columns, silence_s=TEARDOWN_S)
    return [(item, project, owner) for item, project, owner in (line.split("\t") for line in found.splitlines())]


def _of_project(project: str, kind: str, docker: Docker) -> list[str]:
    return [identity for identity, name, _ in _labelled(kind, docker) if name == project]


def remove_project(project: str, docker: Docker = docker) -> None:
    """Remove every container and network of one testbed at once, in any state.

    Raises DockerError if Docker does not answer in time.
    """
    try:
        left = []
        for kind, remove in (("container", ("rm", "-f", "-v")), ("network", ("network", "rm"))):
            ours = _of_project(project, kind, docker)
            removed = docker(*remove, *ours, check=False, silence_s=TEARDOWN_S).split() if ours else []
            if {*ours} - {*removed}:  # which others may have removed
                left += _of_project(project, kind, docker)
        if left:
            names = ", ".join(each[:12] for each in left)
            raise DockerError(f"Docker could not remove {names}; does something else use them?")
    except DockerError as error:
        raise DockerError(f"testbed {project} may be left; `{lab_command('down')}` removes it: {error}") from error


def projects(docker: Docker = docker) -> dict[str, bool]:
    """Every existing testbed, and whether its lab still runs."""
    return {project: is_alive(owner) for project, owner in _owners(docker).items()}


def _owners(docker: Docker) -> dict[str, str]:
    """The owner of every existing testbed, by project."""
    return {project: owner for kind in ("container", "network") for _, project, owner in _labelled(kind, docker)}


def sweep(say: Say, include_living: bool = False, docker: Docker = docker) -> int:
    """Remove testbeds whose lab has ended (all of them with `include_living`); return how many were removed.

    Temporary folders of labs that have ended are removed as well.
    """
    remove_scratch()
    found = _owners(docker)
    gone = [project for project, owner in found.items() if include_living or not is_alive(owner)]
    for project in gone:
        say(f"removing {project}, left by an earlier run")
        remove_project(project, docker)
    if living := sorted(found.keys() - set(gone)):
        stay = "is in use and stays" if len(living) == 1 else "are in use and stay"
        say(f"{counted(len(living), 'testbed')} of other Headwind runs {stay}: {', '.join(living)}")
    for host in sorted({found[project].partition(":")[0] for project in living if is_elsewhere(found[project])}):
        say(f"runs of host {host} count as running; if that is the former name of this machine, or its runs have "
            f"ended, `{lab_command('down', '--all')}` removes their testbeds, and all others")  # fmt: skip
    return len(gone)


def other_labs(docker: Docker = docker) -> dict[str, int]:
    """The number of testbeds of other labs that are running, by owner."""
    owners = {project: owner for _, project, owner in _labelled("container", docker)}.values()
    return dict(Counter(owner for owner in owners if owner != this_lab() and is_alive(owner)))


def taken_subnets(docker: Docker = docker) -> list[str]:
    """Every subnet that Docker or the host's routing table uses."""
    identities = docker("network", "ls", "-q").split()
    networks = json.loads(docker("network", "inspect", *identities, check=False) or "[]")
    subnets = [pool["Subnet"] for net in networks for pool in net["IPAM"]["Config"] or [] if "Subnet" in pool]
    if shutil.which("ip"):
        routes = subprocess.run(["ip", "-json", "-4", "route"], capture_output=True, text=True, check=False).stdout
        subnets += [route["dst"] for route in json.loads(routes or "[]") if route["dst"] != "default"]
    return subnets


def start_containers(
    project: str, tags: Mapping[str, str], services: Sequence[str], docker: Docker, compose: Docker
) -> Addresses:
    """Run `compose up` for services with free subnets, and return them; try another pair if one was taken meanwhile.

    Raises DockerError.
    """
    rng = random.SystemRandom()
    taken, failure = taken_subnets(docker), DockerError("not attempted")
    for _ in range(4):
        addresses = pick_addresses(rng, taken)
        try:
            environment = compose_environment(project, tags, addresses)
            compose(
                "-p", project, *compose_files(services), "up", "-d", "--no-build", *services, environment=environment
            )
            return addresses
        except DockerError as error:
            remove_project(project, docker)
            if "overlap" not in str(error).lower():
                raise
            failure = error
    raise failure


def compose_files(services: Collection[str]) -> Iterator[str]:
    """The options that name compose.yaml, and the file of each further server or browser among these services."""
    folders = {**dict.fromkeys(FURTHER, "servers"), **dict.fromkeys(BROWSERS, "browsers")}
    yield from ("-f", "compose.yaml")
    for name, folder in folders.items():
        if name in services:
            yield from ("-f", f"{folder}/{name}/compose.yaml")


def compose_environment(project: str, tags: Mapping[str, str], addresses: Addresses) -> dict[str, str]:
    """The values of all variables in compose.yaml and in the files of further servers and browsers."""
    names = {"HEADWIND_PROJECT": project, "HEADWIND_OWNER": this_lab()}
    names |= {f"HEADWIND_{name.upper()}_TAG": tag for name, tag in tags.items()}
    names["HEADWIND_MEMORY"] = most_memory()
    for side in ("client", "server"):
        subnet = addresses.client_subnet if side == "client" else addresses.server_subnet
        names[f"HEADWIND_{side.upper()}_SUBNET"] = subnet
        names[f"HEADWIND_{side.upper()}_ADDRESS"] = addresses.host(side, 10)
        names[f"HEADWIND_ROUTER_{side.upper()}_ADDRESS"] = addresses.host(side, 253)
        names[f"HEADWIND_{side.upper()}_BRIDGE_ADDRESS"] = addresses.host(side, 1)
    for number, service in enumerate(FURTHER, start=11):
        names[f"HEADWIND_{service.upper()}_ADDRESS"] = addresses.host("server", number)
    return names


def most_memory() -> str:
    """The memory that a container can use, as Docker's options take it."""
    return f"{int(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') * MEMORY_SHARE) >> 20}m"


def containers_of(project: str, services: Sequence[str], docker: Docker) -> dict[str, str]:
    """The id of the container of each service, by service. Raises DockerError unless each has exactly one."""
    columns = '{{.ID}}\t{{.Label "com.docker.compose.service"}}'
    listed = docker("ps", "-a", "--filter", f"label={LABEL}={project}", "--format", columns).splitlines()
    found = [(service, identity) for identity, service in (line.split("\t") for line in listed)]
    counts = Counter(service for service, _ in found)
    for service in services:
        if counts[service] != 1:
            raise DockerError(f"{counts[service]} containers of service {service} in {project}: there should be one")
    return {service: identity for service, identity in found if service in services}


def last_lines(containers: Mapping[str, str], docker: Docker) -> Iterator[str]:
    """The last output of the containers' programs: no agent's output has the reason why nginx ended."""
    for service, container in containers.items():
        log = docker("logs", "--tail", "8", container, check=False, stream=lambda _: None, silence_s=TEARDOWN_S)
        yield from (f"  log of {service}: {line}" for line in log.splitlines())
