"""The testbed: addresses nobody else has, and nothing left behind but what belongs to a lab that still runs."""

from __future__ import annotations

import ipaddress
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.browsers import BROWSERS
from headwind.errors import HeadwindError
from headwind.own_command import lab_command
from headwind.servers import FURTHER
from headwind.testbed import containers, testbed
from headwind.testbed.addresses import Addresses, pick_addresses
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.containers import (
    LABEL,
    OWNER_LABEL,
    other_labs,
    projects,
    remove_project,
    sweep,
    taken_subnets,
)
from headwind.testbed.docker import ROOT, DockerError
from headwind.testbed.owner import is_alive, this_lab

HOST = os.uname().nodename
TAGS = {"client": "tag-1", "impair": "tag-2", "nginx": "tag-3", "caddy": "tag-4", "haproxy": "tag-5",
        "nghttpd": "tag-8", "chromium": "tag-6", "firefox": "tag-7"}  # fmt: skip
NETWORKS = st.builds(
    lambda address, length: f"{ipaddress.IPv4Address(address)}/{length}", st.integers(10 << 24, (11 << 24) - 1),
    st.integers(8, 32),
)  # fmt: skip


# Addresses


@given(st.lists(NETWORKS.filter(lambda text: not text.endswith("/8")), max_size=12), st.integers())
def test_addresses_never_overlap_what_is_taken_nor_each_other(taken: list[str], seed: int) -> None:
    found = pick_addresses(random.Random(seed), taken)
    subnets = [ipaddress.IPv4Network(text) for text in (found.client_subnet, found.server_subnet)]
    others = [ipaddress.IPv4Network(text, strict=False) for text in taken]
    assert not subnets[0].overlaps(subnets[1])
    assert not any(subnet.overlaps(other) for subnet in subnets for other in others)
    assert all(subnet.is_private and subnet.prefixlen == 24 for subnet in subnets)


class Drawn(random.Random):
    """Draws what it was given."""

    def __init__(self, *numbers: int) -> None:
        super().__init__()
        self.numbers = list(numbers)

    def randrange(self, *_: Any, **__: Any) -> int:
        return self.numbers.pop(0)


def test_a_subnet_that_is_drawn_twice_is_used_once() -> None:
    rng = Drawn(0x0A460100, 0x0A460100, 0x0A460200)
    assert pick_addresses(rng, []) == Addresses("10.70.1.0/24", "10.70.2.0/24")


def test_where_all_of_10_is_taken_other_private_networks_serve() -> None:
    found = pick_addresses(random.Random(1), ["10.0.0.0/8", "fd00::/8"])
    assert ipaddress.IPv4Network(found.client_subnet).subnet_of(ipaddress.IPv4Network("172.16.0.0/12"))


def test_a_vpn_that_is_the_default_route_takes_nothing() -> None:
    pick_addresses(random.Random(1), ["0.0.0.0/1", "128.0.0.0/1", "0.0.0.0/0"])


def test_where_everything_is_taken_that_is_said() -> None:
    everything = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15"]
    with pytest.raises(HeadwindError, match="disconnect it") as refused:
        pick_addresses(random.Random(1), everything)
    assert all(net in str(refused.value) for net in everything)


def test_a_vpn_that_owns_all_private_networks_leaves_those_for_measuring() -> None:
    found = pick_addresses(random.Random(1), ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"])
    measuring = ipaddress.IPv4Network("198.18.0.0/15")
    assert ipaddress.IPv4Network(found.client_subnet).subnet_of(measuring)
    assert ipaddress.IPv4Network(found.server_subnet).subnet_of(measuring)


def test_every_host_has_its_number() -> None:
    addresses = Addresses("10.70.1.0/24", "10.70.2.0/24")
    assert addresses.host("client", 10) == "10.70.1.10"
    assert addresses.host("server", 10) == "10.70.2.10"
    assert addresses.gateway("server") == "10.70.2.254/24"


def test_compose_is_told_every_variable_that_the_file_uses_and_no_other() -> None:
    environment = containers.compose_environment("headwind-1", TAGS, Addresses("10.70.1.0/24", "10.70.2.0/24"))
    services = ("server", *FURTHER, *BROWSERS)
    files = [(ROOT / file).read_text() for file in containers.compose_files(services) if file != "-f"]
    assert len(files) == len(services)
    used = {word.partition("}")[0].partition(":")[0] for file in files for word in file.split("${")[1:]}
    used.discard("HEADWIND_READ_ONLY")  # which only tests set
    assert used == environment.keys(), "a misspelt one would be empty, or its default"
    assert environment["HEADWIND_ROUTER_SERVER_ADDRESS"] == "10.70.2.253"
    assert environment["HEADWIND_CLIENT_BRIDGE_ADDRESS"] == "10.70.1.1"
    assert environment["HEADWIND_NGINX_TAG"] == "tag-3"
    assert len(set(environment.values())) == len(environment)


# Owners


def test_this_process_is_a_living_owner() -> None:
    assert is_alive(this_lab())


def test_a_process_that_ended_owns_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    assert not is_alive(f"{HOST}:{process.pid}:1")


def test_a_number_that_was_given_to_another_process_is_not_its_owner() -> None:
    assert not is_alive(f"{HOST}:{os.getpid()}:1")


@pytest.mark.parametrize(
    ("owner", "alive"),
    [
        (f"{HOST}:1:", True),  # somebody else's process, of which we know no start
        (f"another-{HOST}:1:1", True),  # another host's lab on the same daemon
        ("", False),
        (f"{HOST}:", False),
        (f"{HOST}:not-a-number:1", False),
    ],
)
def test_who_cannot_be_judged_is_left_alone_and_who_is_nobody_is_not(owner: str, alive: bool) -> None:
    assert is_alive(owner) == alive


def test_a_process_of_another_user_is_alive() -> None:
    def forbidden(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    assert is_alive(this_lab(), forbidden)
    assert is_alive(f"{HOST}:{1 << 30}:1", forbidden), "its start time is not known"


def test_a_process_of_another_user_with_a_number_that_was_given_again_is_not_the_owner() -> None:
    """After a reboot, what a user's run left stayed as long as that other process."""

    def forbidden(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    assert not is_alive(f"{HOST}:{os.getpid()}:1", forbidden)


# What is left of earlier labs


@dataclass
class FakeDocker:
    """A daemon's containers and networks: identity -> (project, owner)."""

    container: dict[str, tuple[str, str]] = field(default_factory=dict)
    network: dict[str, tuple[str, str]] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)  # networks that are no lab's
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, *arguments: str, **_: object) -> str:
        self.asked.append(arguments)
        match arguments:
            case ("ps", "-a", *filtered):
                return self.listed(self.container, filtered)
            case ("network", "ls", "-q"):
                return "\n".join([*self.network, *[net["Id"] for net in self.others]])
            case ("network", "ls", *filtered):
                return self.listed(self.network, filtered)
            case ("network", "inspect", *identities):
                networks = [{"Id": one, "Labels": self.labels(one)} for one in identities if one in self.network]
                return json.dumps([*networks, *(net for net in self.others if net["Id"] in identities)])
            case ("rm", "-f", "-v", *identities):
                self.container = {one: what for one, what in self.container.items() if one not in identities}
            case ("network", "rm", *identities):
                self.network = {one: what for one, what in self.network.items() if one not in identities}
            case _:
                raise AssertionError(arguments)
        return ""

    def listed(self, items: dict[str, tuple[str, str]], options: Sequence[str]) -> str:
        """One line for each, as the template asks for."""
        filtered, template = options[options.index("--filter") + 1], options[options.index("--format") + 1]
        assert filtered == f"label={LABEL}"
        assert "--no-trunc" in options, "what is compared are whole identities"
        columns = [{"{{.ID}}": one} | {f'{{{{.Label "{label}"}}}}': text for label, text in self.labels(one).items()}
                   for one in items]  # fmt: skip
        return "\n".join("\t".join(values[name] for name in template.split("\t")) for values in columns)

    def labels(self, identity: str) -> dict[str, str]:
        project, owner = (self.container | self.network)[identity]
        return {LABEL: project, OWNER_LABEL: owner}

    def testbed(self, project: str, owner: str) -> None:
        """A whole testbed of somebody's."""
        for name in ("client", "server", "impair"):
            self.container[f"{project}-{name}"] = (project, owner)
        for name in ("client", "server"):
            self.network[f"{project}-{name}-net"] = (project, owner)

    @property
    def projects(self) -> set[str]:
        return {project for project, _ in (self.container | self.network).values()}


@pytest.fixture
def daemon() -> FakeDocker:
    return FakeDocker()


DEAD = f"{HOST}:{os.getpid()}:1"


def test_sweeping_removes_dead_labs_and_leaves_living_ones(daemon: FakeDocker) -> None:
    daemon.testbed("dead", DEAD)
    daemon.testbed("living", this_lab())
    daemon.testbed("alive", this_lab())
    daemon.network["half-net"] = ("half", DEAD)  # of a lab that was killed while it started
    said: list[str] = []
    assert sweep(said.append, docker=daemon) == 2
    assert daemon.projects == {"living", "alive"}
    assert sorted(said) == [
        "2 testbeds of other Headwind runs are in use and stay: alive, living",
        "removing dead, left by an earlier run",
        "removing half, left by an earlier run",
    ]


def test_what_a_machine_left_under_its_former_name_comes_with_the_way_to_remove_it(daemon: FakeDocker) -> None:
    """It counted as running for ever, and nothing named `--all`."""
    daemon.testbed("old", "former:1:1")
    said: list[str] = []
    assert sweep(said.append, docker=daemon) == 0
    assert said[0] == "1 testbed of other Headwind runs is in use and stays: old"
    (hint,) = said[1:]
    assert hint.startswith("runs of host former count as running; if that is the former name of this machine")
    assert "lab.py down --all` removes their testbeds" in hint
    assert sweep(said.append, include_living=True, docker=daemon) == 1


def test_other_labs_are_those_that_run_and_are_not_this_one(daemon: FakeDocker) -> None:
    daemon.testbed("mine", this_lab())
    daemon.testbed("dead", DEAD)
    assert other_labs(daemon) == {}
    for name in ("lane-1", "lane-2"):
        daemon.testbed(name, f"{HOST}:1:")
    daemon.testbed("far", f"another-{HOST}:1:1")
    assert other_labs(daemon) == {f"{HOST}:1:": 2, f"another-{HOST}:1:1": 1}


def test_sweeping_everything_takes_living_labs_too(daemon: FakeDocker) -> None:
    daemon.testbed("living", this_lab())
    assert sweep(lambda _: None, include_living=True, docker=daemon) == 1
    assert daemon.projects == set()


def test_what_docker_cannot_remove_is_no_success(daemon: FakeDocker) -> None:
    """`1 testbeds removed` was printed of a network that another container used."""
    daemon.testbed("dead", DEAD)

    def stubborn(*arguments: str, **more: Any) -> str:
        return "" if arguments[:2] == ("network", "rm") else daemon(*arguments, **more)

    with pytest.raises(DockerError, match="could not remove dead-client"):
        sweep(lambda _: None, docker=stubborn)


def test_sweeping_a_clean_host_removes_and_says_nothing(daemon: FakeDocker) -> None:
    said: list[str] = []
    assert sweep(said.append, docker=daemon) == 0
    assert said == []


def test_removing_one_testbed_spares_the_others(daemon: FakeDocker) -> None:
    daemon.testbed("one", DEAD)
    daemon.testbed("two", DEAD)
    remove_project("one", daemon)
    assert projects(daemon) == {"two": False}
    assert len(daemon.container) == 3
    assert len(daemon.network) == 2


def test_containers_go_before_the_networks_that_they_hang_on(daemon: FakeDocker) -> None:
    daemon.testbed("one", DEAD)
    remove_project("one", daemon)
    removals = [arguments[0] for arguments in daemon.asked if "rm" in arguments]
    assert removals == ["rm", "network"]


def test_subnets_of_docker_and_of_the_hosts_routes_are_taken(
    daemon: FakeDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.others = [
        {"Id": "bridge", "IPAM": {"Config": [{"Subnet": "172.17.0.0/16"}, {"Gateway": "172.17.0.1"}]}},
        {"Id": "host", "IPAM": {"Config": None}},
    ]
    routes = '[{"dst": "default"}, {"dst": "10.8.0.0/16"}, {"dst": "192.168.1.7"}]'
    (tmp_path / "ip").write_text(f"#!/bin/sh\necho '{routes}'\n")
    (tmp_path / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert taken_subnets(daemon) == ["172.17.0.0/16", "10.8.0.0/16", "192.168.1.7"]
    monkeypatch.setenv("PATH", "")
    assert taken_subnets(daemon) == ["172.17.0.0/16"]


# Coming up


@dataclass
class FakeCompose:
    """Compose that fails with these errors, one for each time; then it succeeds."""

    failures: list[str]
    tried: list[str] = field(default_factory=list)

    def __call__(self, *arguments: str, environment: dict[str, str]) -> str:
        assert arguments[:4] == ("-p", environment["HEADWIND_PROJECT"], "-f", "compose.yaml")
        self.tried.append(environment["HEADWIND_CLIENT_SUBNET"])
        if self.failures:
            raise DockerError(self.failures.pop(0))
        return ""


OVERLAP = "Error: Pool overlaps with other one on this address space"


@pytest.mark.parametrize(
    ("failures", "tries", "raised"),
    [([], 1, ""), ([OVERLAP], 2, ""), ([OVERLAP] * 9, 4, "overlaps"), (["no such image"], 1, "no such image")],
)
def test_another_pair_of_subnets_is_tried_only_when_somebody_was_quicker(
    daemon: FakeDocker, failures: list[str], tries: int, raised: str
) -> None:
    compose = FakeCompose(list(failures))
    if raised:
        with pytest.raises(DockerError, match=raised):
            containers.start_containers("headwind-1", TAGS, ("client",), daemon, compose)
    else:
        assert (
            containers.start_containers("headwind-1", TAGS, ("client",), daemon, compose).client_subnet
            == compose.tried[-1]
        )
    assert len(compose.tried) == tries


def test_a_testbed_that_cannot_come_up_leaves_nothing(daemon: FakeDocker) -> None:
    def compose(*_: str, environment: dict[str, str]) -> str:
        daemon.testbed(environment["HEADWIND_PROJECT"], environment["HEADWIND_OWNER"])
        raise DockerError("port is already allocated")

    with (
        pytest.raises(DockerError, match="already allocated"),
        testbed.Testbed.up(BedSpec(TAGS), docker=daemon, compose=compose),
    ):
        pytest.fail("it is not up")
    assert daemon.projects == set()


def test_a_docker_that_does_not_answer_ends_the_teardown_with_the_command_that_does_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(containers, "TEARDOWN_S", 0.1)
    with pytest.raises(DockerError, match=r"printed nothing for 0\.1 s") as caught:
        remove_project("headwind-1-abc")
    assert f"headwind-1-abc may be left; `{lab_command('down')}` removes it" in str(caught.value)


def test_every_call_of_docker_in_the_teardown_has_a_deadline(daemon: FakeDocker) -> None:
    def docker(*arguments: str, silence_s: float = 0.0, **more: object) -> str:
        assert silence_s == containers.TEARDOWN_S, arguments
        return daemon(*arguments, **more)

    daemon.testbed("dead", DEAD)
    sweep(lambda _: None, docker=docker)
    assert daemon.projects == set()
