"""The user-mode kernel's launcher: what it asks of a host, and what it tells the kernel."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from impair.interface import MTU_BYTES
from impair.router import uml
from impair.router.uml import BootError, Host, check_host, kernel_arguments


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine that could boot it."""
    module = tmp_path / "modules/7.2.7/kernel/net/sched/sch_netem.ko"
    module.parent.mkdir(parents=True)
    module.touch()
    place = tmp_path / "run"
    place.mkdir()
    return Host("x86_64", tmp_path / "modules", place, lambda name: f"/usr/bin/{name}", lambda _: 400 << 20)


def refuse(*_: object, **__: object) -> Any:
    raise PermissionError(1, "Operation not permitted")


def test_a_fitting_host_gives_the_kernels_path(host: Host) -> None:
    assert check_host(host) == "/usr/bin/linux.uml"
    assert not list(host.workplace.iterdir())


def test_another_processor_is_refused(host: Host) -> None:
    with pytest.raises(BootError, match="x86_64 only, and this is aarch64: use a host whose kernel has sch_netem"):
        check_host(replace(host, processor="aarch64"))


def test_a_missing_module_is_refused(host: Host) -> None:
    with pytest.raises(BootError, match="install the package user-mode-linux"):
        check_host(replace(host, modules=host.workplace))


def test_a_missing_place_is_refused(host: Host) -> None:
    host.workplace.rmdir()
    with pytest.raises(BootError, match="mount it as a tmpfs with exec"):
        check_host(host)


def test_a_small_place_is_refused(host: Host) -> None:
    with pytest.raises(BootError, match=f"100 MB free, the user-mode kernel needs {uml.MEMORY_MB}"):
        check_host(replace(host, free_bytes=lambda _: 100 << 20))


def test_a_place_without_execution_is_refused(host: Host) -> None:
    with pytest.raises(BootError, match="mounted noexec"):
        check_host(replace(host, map_memory=refuse))


def test_without_the_right_to_packet_sockets_it_is_said_which() -> None:
    with pytest.raises(BootError, match="needs NET_RAW and NET_ADMIN"):
        uml.open_interface("lo", refuse)


def test_a_small_buffer_is_refused() -> None:
    small: Any = SimpleNamespace(setsockopt=lambda *_: None, bind=lambda _: None, getsockopt=lambda *_: 212_992)
    with pytest.raises(BootError, match="on lo: the kernel grants a socket 104 KiB, and 4096 are needed"):
        uml.open_interface("lo", lambda *_: small)


def test_the_guests_of_several_testbeds_lie_evenly_on_the_processors() -> None:
    allowed = os.sched_getaffinity(0)
    pinned: list[int] = []
    for turn in range(7, 7 + 2 * len(allowed)):
        with uml._one_processor(turn):
            pinned += os.sched_getaffinity(0)
    assert sorted(pinned) == sorted([*allowed, *allowed])
    assert os.sched_getaffinity(0) == allowed


def test_the_kernel_is_told_its_interfaces_and_its_program() -> None:
    words = kernel_arguments({"client": 4, "server": 5}, ["python3", "-m", "impair.router.agent"])
    assert f"vec0:transport=fd,fd=4,depth=128,mac=02:48:57:00:00:01,mtu={MTU_BYTES}" in words
    assert f"vec1:transport=fd,fd=5,depth=128,mac=02:48:57:00:00:02,mtu={MTU_BYTES}" in words
    assert words[words.index("--") + 1 :] == ["python3", "-m", "impair.router.agent"]
    assert len(" ".join(words)) < 2000  # COMMAND_LINE_SIZE of arch/um is 2048
    (init,) = (word.removeprefix("init=") for word in words if word.startswith("init="))
    assert os.access(init, os.X_OK)
