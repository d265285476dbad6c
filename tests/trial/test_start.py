"""A testbed that is wrong from the start runs no trial: it is refused with what is wrong, and nothing stays."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.clock import Clock
from headwind.testbed import testbed
from headwind.trial import start
from headwind.trial.lane import Lane
from headwind.trial.start import (
    CHANGED_SINCE_START,
    TRAIN_LOSS,
    TRAIN_PACKETS,
    TRAIN_PAUSES_S,
    UnexpectedState,
    changed_paths,
    examine_start,
)
from tests.fake_testbed import RULES, Sabotage, World, fake_path, fake_testbed

ROOT = Path(__file__).resolve().parent.parent.parent
ALLOWED = int(TRAIN_LOSS * TRAIN_PACKETS) - 1
HURRIED = Clock(sleep=lambda _: None)


def test_a_plain_testbed_is_taken_and_its_train_kept() -> None:
    with fake_path(World()) as up:
        found = examine_start(up)
    assert {direction: seen["lost"] for direction, seen in found["train"].items()} == {"uplink": 0, "downlink": 0}


def test_what_a_host_has_too_much_is_said_with_the_hosts_name() -> None:
    bed = fake_path(World(Sabotage(odd="eth0 with the queueing discipline tbf")))
    with bed as up, pytest.raises(UnexpectedState, match="server: eth0 with the queueing discipline tbf") as refusal:
        examine_start(up)
    assert refusal.value.exit_code == 1


@pytest.mark.parametrize(
    ("host", "container"), [("client", "c1"), ("server", "s1"), ("router", "r1"), ("router's container", "r1")]
)
def test_the_command_that_removes_a_quota_has_its_container(host: str, container: str) -> None:
    found = f"a quota of CPU time (50000 100000): `{start.QUOTA_REMEDY}`"
    assert f'`{start.QUOTA_REMEDY}`")' in (ROOT / "impair" / "baseline.py").read_text(), "it is added to that"
    with fake_path(World()) as up:
        bed = replace(up, containers={"client": "c1" * 32, "impair": "r1" * 32, "nginx": "s1" * 32})
        command = start._with_container(found, start._container_of(host, bed))
        assert command.endswith(f"`docker update --cpu-quota -1 {container * 6}`")
        assert start._with_container(found, start._container_of(host, up)) == found, "it has no containers"


@pytest.mark.parametrize(("vanishing", "refused"), [(ALLOWED, False), (ALLOWED + 1, True)])
def test_a_path_that_loses_a_thousandth_by_itself_is_refused(vanishing: int, refused: bool) -> None:
    with fake_path(World(Sabotage(vanishing=vanishing)), HURRIED) as up:
        if refused:
            with pytest.raises(UnexpectedState, match=f"uplink lost {vanishing} of {TRAIN_PACKETS}"):
                examine_start(up)
        else:
            assert examine_start(up)["train"]["uplink"]["lost"] == vanishing


def test_a_path_that_lets_nothing_through_is_said_with_what_to_do() -> None:
    with fake_path(World(Sabotage(vanishing=TRAIN_PACKETS)), HURRIED) as up:
        with pytest.raises(UnexpectedState, match="nothing passes between client and server") as refused:
            examine_start(up)
        assert up.addresses.client_subnet in str(refused.value)


def test_a_path_that_holds_packets_back_is_refused() -> None:
    with (
        fake_path(World(Sabotage(late=True)), HURRIED) as up,
        pytest.raises(UnexpectedState, match="held datagrams back"),
    ):
        examine_start(up)


def test_a_path_that_translates_addresses_is_refused() -> None:
    with (
        fake_path(World(Sabotage(translated=True)), HURRIED) as up,
        pytest.raises(UnexpectedState, match="address into"),
    ):
        examine_start(up)


def test_a_train_that_loses_is_sent_again_and_how_often_is_told() -> None:
    with fake_path(World(Sabotage(vanishing=9), vanishing_trains=1)) as up:
        train = examine_start(up)["train"]
    assert [(seen["lost"], seen["tries"]) for seen in train.values()] == [(0, 2), (0, 2)]


def test_a_machine_that_is_busy_for_seconds_is_no_unclean_path() -> None:
    slept: list[float] = []
    with fake_path(World(Sabotage(vanishing=9), vanishing_trains=4), Clock(sleep=slept.append)) as up:
        train = examine_start(up)["train"]
    assert {(seen["lost"], seen["tries"]) for seen in train.values()} == {(0, 5)}
    assert slept == list(TRAIN_PAUSES_S)


def test_client_and_server_must_have_the_same_settings() -> None:
    with fake_path(World()) as up:
        up.fingerprints = {"client": {"sysctls": "ipv4.tcp_rmem=1"}, "server": {"sysctls": "ipv4.tcp_rmem=2"}}
        with pytest.raises(UnexpectedState, match="tcp_rmem"):
            examine_start(up)


def test_after_a_refusal_nothing_stays() -> None:
    down: list[bool] = []

    @contextmanager
    def up(_: str) -> Iterator[testbed.Testbed]:
        try:
            with fake_testbed(World(Sabotage(odd="eth0 with an XDP program"))) as bed:
                yield bed
        finally:
            down.append(True)

    with pytest.raises(UnexpectedState), Lane(up, RULES):
        pytest.fail("the lane was entered")
    assert down == [True]


def test_a_program_that_is_not_the_images_is_named_and_what_containers_write_is_not() -> None:
    own = ["/", "/etc", "/etc/resolv.conf", "/root"]
    assert list(changed_paths(own)) == []
    foreign = ["/usr", "/usr/local", "/usr/local/bin", "/usr/local/bin/h2load", "/etc/ld.so.preload"]
    assert list(changed_paths([*own, *foreign])) == ["/etc/ld.so.preload", "/usr/local/bin/h2load"]


def test_a_program_that_was_removed_is_noticed_by_its_directory() -> None:
    assert list(changed_paths(["/opt", "/opt/headwind", "/opt/headwind/nginx"])) == ["/opt/headwind/nginx"]


def since(place: Path, then: Callable[[], object]) -> list[str]:
    """What is found below `place` when `then` is done, with everything before that as the image's."""
    (place / "fd").symlink_to("nowhere")
    time.sleep(0.02)  # the clock of a file system is a coarse one
    then()
    time.sleep(0.02)
    command = [{"/": str(place), "/dev/fd": str(place / "fd")}.get(word, word) for word in CHANGED_SINCE_START]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def put_back(program: Path) -> None:
    """Another program of the same size and with the same time of modification."""
    before = program.stat()
    program.write_text("other")
    os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda _: None, []),
        (lambda usr: put_back(usr / "program"), ["usr/program"]),
        (lambda usr: (usr / "program").chmod(0o700), ["usr/program"]),
        (lambda usr: (usr / "new").write_text(""), ["usr", "usr/new"]),
        (lambda usr: (usr / "program").unlink(), ["usr"]),
        (lambda usr: (usr / "program").rename(usr / "real"), ["usr", "usr/real"]),
    ],
)
def test_what_was_changed_since_the_start_is_found_whatever_its_times_say(
    change: Callable[[Path], object], seen: list[str], tmp_path: Path
) -> None:
    usr = tmp_path / "usr"
    usr.mkdir()
    (usr / "program").write_text("first")
    (usr / "library").write_text("")
    assert since(tmp_path, lambda: change(usr)) == [str(tmp_path / path) for path in seen]
