"""Plants sabotages (tests/net/sabotages.py) in a testbed's hosts, and removes them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headwind.testbed import path as paths
from headwind.testbed.agent import Agent
from headwind.testbed.docker import docker
from headwind.testbed.operations import RUN
from tests.net.sabotages import Sabotage

ATTACH_XDP = """
import ctypes, os, socket, struct
program = struct.pack("<BBhi", 0xB7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)  # r0 = XDP_PASS; exit
code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
addresses = ctypes.addressof(code), ctypes.addressof(licence)
request = ctypes.create_string_buffer(struct.pack("IIQQ", 6, 2, *addresses).ljust(128, bytes(1)), 128)
libc = ctypes.CDLL(None, use_errno=True)
loaded = libc.syscall(321, 5, request, 128)  # bpf(BPF_PROG_LOAD)
assert loaded >= 0, os.strerror(ctypes.get_errno())
inner = struct.pack("HHi", 8, 1, loaded) + struct.pack("HHI", 8, 3, 2)  # IFLA_XDP_FD, IFLA_XDP_FLAGS: generic
body = struct.pack("BBHiII", 0, 0, 0, socket.if_nametoindex("eth0"), 0, 0) + struct.pack("HH", 20, 43 | 0x8000) + inner
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
    netlink.send(struct.pack("IHHII", 16 + len(body), 19, 5, 1, 0) + body)
    assert struct.unpack_from("i", netlink.recv(4096), 16)[0] == 0
"""


@contextmanager
def writable() -> Iterator[None]:
    """Let the root file systems of testbeds that are started meanwhile be written to: some tests change programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWIND_READ_ONLY", "false")
        yield


def words_of(bed: paths.Path, sabotage: Sabotage) -> dict[str, str]:
    """What the placeholders in a command stand for."""
    side, peer = ("client", "server") if sabotage.host == "client" else ("server", "client")
    identity = bed.containers[sabotage.host]
    index = docker("exec", identity, "cat", "/sys/class/net/eth0/iflink").strip()
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.splitlines()
    far = {line.split(":")[0]: line.split()[1].partition("@")[0] for line in links}
    rmem = docker("exec", identity, "cat", "/proc/sys/net/ipv4/tcp_rmem").strip()
    return {
        "id": identity, "far": far.get(index, ""), "rmem": rmem, "xdp": ATTACH_XDP,
        "peer": getattr(bed.addresses, f"{peer}_subnet"), "gateway": bed.addresses.host(side, 254),
    }  # fmt: skip


def execute(bed: paths.Path, sabotage: Sabotage, commands: tuple[str, ...], words: dict[str, str]) -> None:
    identity = bed.containers[sabotage.host]
    prefix: dict[str, Callable[[], list[str]]] = {
        "in": lambda: ["docker", "exec", identity],
        "net": lambda: ["nsenter", "-t", docker("inspect", "-f", "{{.State.Pid}}", identity).strip(), "-n"],
        "host": list,
    }
    for command in commands:
        program, *rest = command.split(" ") if "'" not in command else _quoted(command)
        arguments = [" ".join(rest)] if program == "nft" else rest
        filled = [word.format(**words) if word.startswith("{") and word.endswith("}") and " " not in word
                  else word.replace("{rmem}", words["rmem"]) for word in arguments]  # fmt: skip
        done = subprocess.run([*prefix[sabotage.way](), program, *filled], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"


def _quoted(command: str) -> list[str]:
    """`sh -c '...'` as words: what stands in quotes is one."""
    before, quoted, _ = command.split("'", 2)
    after = command.rpartition("'")[2]
    return [*before.split(), quoted, *after.split()]


def possible(sabotage: Sabotage) -> None:
    """Skip what this host has not got the means for."""
    if sabotage.needs and not shutil.which(sabotage.needs):
        pytest.skip(f"not installed here: {sabotage.needs}")
    if (sabotage.way == "net" or sabotage.needs == "tc") and os.geteuid() != 0:
        pytest.skip("needs root on this host")


class Saboteur:
    """The client's agent; before it runs the client, something is done."""

    def __init__(self, agent: Agent, action: Callable[[], None]) -> None:
        self.agent, self.action = agent, action

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)

    def call(self, op: str, *others: Any, **arguments: Any) -> Any:
        if op == RUN.name:
            self.action()
        return self.agent.call(op, *others, **arguments)
