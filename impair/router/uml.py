"""Engine `uml`: the router in a user-mode kernel, for hosts whose own kernel has no netem.

    python3 -m impair.router.uml --client-subnet 10.1.0.0/24 --server-subnet 10.2.0.0/24

runs Debian's `linux.uml`, a Linux kernel that is an ordinary process. It is handed the container's two interfaces as
open sockets, and runs agent.py with the launcher's standard input (through mailbox.py) and output as its wire. When
the input ends, the agent ends and the kernel powers off. What stops the boot, or the kernel later on, is said as one
JSON line `{"error": ...}`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from impair import interface
from impair.processors import kept_waiting
from impair.pulse import TICK_S, Watch, glance_at, working_s
from impair.router import mailbox
from impair.sockets import enlarge
from impair.wire import encoded

KERNEL = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
MEMORY_MB = 384  # of the user-mode kernel: a delay line of 100,000 full frames takes 250; lies in WORKPLACE
WORKPLACE = Path("/run/uml")  # must be a tmpfs that allows execution: the kernel maps its memory from a file there
SOCKET_BUFFER_BYTES = 64 << 20  # a default one (208 KiB) loses 28 % of the datagrams of an unimpaired HTTP/3 run
VECTOR_DEPTH = 128  # frames that the vector driver moves in one system call
MACS = {"client": "02:48:57:00:00:01", "server": "02:48:57:00:00:02"}  # locally administered
DEVICES = {"client": "vec0", "server": "vec1"}
POWER_OFF_S = 2.0
SHOW = '"show"'  # in a request: only this operation uses what is seen from outside

ETH_P_ALL = 3
SO_ATTACH_FILTER = 26  # asm-generic/socket.h
PACKET_OUTGOING = 4
# Classic BPF: load the packet type; frames sent by this machine are not for the guest.
NOT_OUR_OWN = (
    (0x30, 0, 0, 0xFFFFF000 + 4),  # ldb #pkttype (SKF_AD_OFF + SKF_AD_PKTTYPE)
    (0x15, 0, 1, PACKET_OUTGOING),  # jeq #4
    (0x06, 0, 0, 0),  # ret 0
    (0x06, 0, 0, 0x40000),  # ret 262144
)


class BootError(Exception):
    """The user-mode kernel cannot start here: the reason and what to do."""


@dataclass(frozen=True, slots=True)
class Host:
    """The machine that boots the user-mode kernel."""

    processor: str = platform.machine()
    modules: Path = MODULES
    workplace: Path = WORKPLACE
    which: Callable[[str], str | None] = shutil.which
    free_bytes: Callable[[Path], int] = lambda place: shutil.disk_usage(place).free
    map_memory: Callable[..., mmap.mmap] = mmap.mmap


def check_host(host: Host = Host()) -> str:
    """The path of the user-mode kernel, if it can run here. Raises BootError otherwise."""
    if host.processor != "x86_64":
        raise BootError(f"user-mode Linux exists for x86_64 only, and this is {host.processor}: use a host whose "
                        "kernel has sch_netem (engine kernel)")  # fmt: skip
    kernel, place = host.which(KERNEL), host.workplace
    if not kernel or not any(host.modules.glob("*/kernel/net/sched/sch_netem.ko")):
        raise BootError(f"{KERNEL} or its sch_netem is missing from this image: install the package user-mode-linux")
    if not place.is_dir():
        raise BootError(f"{place} is missing: mount it as a tmpfs with exec and size=400m (compose.yaml: tmpfs)")
    free_mb = host.free_bytes(place) >> 20
    if free_mb < MEMORY_MB:
        raise BootError(f"{place} has {free_mb} MB free, the user-mode kernel needs {MEMORY_MB}: mount it larger")
    with tempfile.TemporaryFile(dir=place) as trial:
        trial.truncate(mmap.PAGESIZE)
        try:
            host.map_memory(trial.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
        except PermissionError as error:
            raise BootError(f"{place} is mounted noexec: mount it as a tmpfs with exec") from error
    return kernel


def open_interface(name: str, new_socket: Callable[..., socket.socket] = socket.socket) -> socket.socket:
    """A packet socket that has every frame of interface `name` but our own, with buffers that hold a burst.

    Raises BootError when the kernel does not grant it.
    """
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in NOT_OUR_OWN)
    memory = ctypes.create_string_buffer(program)
    try:
        packets = new_socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        packets.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(NOT_OUR_OWN), ctypes.addressof(memory))
        )
        enlarge(packets, SOCKET_BUFFER_BYTES, send=True)
        packets.bind((name, ETH_P_ALL))
    except PermissionError as error:
        raise BootError(f"no packet socket on {name} ({error}): the router's container needs NET_RAW and NET_ADMIN "
                        "(compose.yaml: cap_add)") from error  # fmt: skip
    except OSError as error:
        raise BootError(f"no packet socket on {name}: {error.strerror or error}") from error
    packets.set_inheritable(True)
    return packets


def kernel_arguments(descriptors: dict[str, int], command: list[str]) -> list[str]:
    """The user-mode kernel's command line: the sides' packet sockets become its interfaces, `command` its program."""
    interfaces = [
        f"{DEVICES[side]}:transport=fd,fd={descriptor},depth={VECTOR_DEPTH},mac={MACS[side]},mtu={interface.MTU_BYTES}"
        for side, descriptor in descriptors.items()
    ]
    return [
        KERNEL, f"mem={MEMORY_MB}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
        f"init={Path(__file__).with_name('guest-init')}",
        f"uml_dir={WORKPLACE}/",
        "seccomp=auto",  # cheaper system calls than ptrace, where the host allows it
        "initcall_blacklist=raid6_init",  # which measures RAID algorithms for 0.9 s
        "con=null", "con0=fd:0,fd:1", "con1=null,fd:2", "console=tty1", "quiet", "loglevel=3",
        *interfaces, "--", *command,
    ]  # fmt: skip


def run(interfaces: dict[str, str], command: list[str], turn: int = 0) -> None:
    """Run `command` in a user-mode kernel that owns `interfaces` {side: name}, until our standard input ends.

    The command gets `--mailbox DIRECTORY` added, where its requests are (mailbox.py); `turn` is that of its CPU.
    Raises BootError, also when the kernel ends by itself, and InterfaceError.
    """
    kernel = check_host()
    for name in interfaces.values():
        interface.turn_offloads_off(name, interface.GLUEING)
    sockets = {side: open_interface(name) for side, name in interfaces.items()}
    descriptors = {side: packets.fileno() for side, packets in sockets.items()}
    with tempfile.TemporaryDirectory(dir=WORKPLACE) as box:
        with _one_processor(turn):
            guest = subprocess.Popen(
                kernel_arguments(descriptors, [*command, "--mailbox", box]), executable=kernel, stdin=subprocess.PIPE,
                pass_fds=descriptors.values(), env={**os.environ, "TMPDIR": str(WORKPLACE)},
            )  # fmt: skip
        ended = threading.Event()
        threading.Thread(target=_feed, args=(guest, Path(box), ended), daemon=True).start()
        status = guest.wait()
    if not ended.is_set():
        raise BootError(f"the user-mode kernel ended by itself with status {status}: its last words are on our "
                        "standard error")  # fmt: skip


@contextmanager
def _one_processor(turn: int) -> Iterator[None]:
    """Pin child processes to one CPU: of the usable ones, the one given by `turn`.

    So the guests of several testbeds are spread evenly. A user-mode kernel and its programs are processes that wake
    each other at every system call: on two CPUs each call costs twice as much (a trial's requests to the router: 12
    ms instead of 4), and frames pass no faster.
    """
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(allowed)[turn % len(allowed)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _feed(guest: subprocess.Popen[bytes], box: Path, ended: threading.Event) -> None:
    """Pass our input on; when it ends, the guest powers off, or is killed."""
    assert guest.stdin
    watch = Watch(glance_at(guest.pid))  # the kernel wakes up as often as that: impair/router/agent.py has a pulse
    bell = mailbox.Bell(guest.stdin)
    threading.Thread(target=_tick, args=(watch, bell), daemon=True).start()
    mailbox.post(sys.stdin, box, bell, lambda line: _seen(watch, guest.pid) if SHOW in line else "")
    ended.set()
    guest.stdin.close()
    try:
        guest.wait(POWER_OFF_S)
    except subprocess.TimeoutExpired:
        guest.kill()


def _tick(watch: Watch, bell: mailbox.Bell) -> None:
    while True:
        time.sleep(TICK_S)
        watch.look()
        bell.again()


def _seen(watch: Watch, guest: int) -> str:
    """Facts that a kernel cannot know about itself, for its agent: see `Launcher` in impair/router/agent.py."""
    seen, container = watch.tell(), kept_waiting()
    processors = replace(container, cpu_s=seen["cpu_s"], working_s=working_s(guest) or seen["cpu_s"])
    return encoded({"largest_gap_s": seen["largest_gap_s"], "processors": processors, "container": container})


def main() -> None:
    """Boot the router's user-mode kernel between the container's interfaces in two subnets."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--client-subnet", metavar="CIDR", required=True)
    parser.add_argument("--server-subnet", metavar="CIDR", required=True)
    parser.add_argument("--turn", metavar="N", type=int, default=0, help="index of the CPU to use (modulo)")
    given = parser.parse_args()
    subnets = {"client": given.client_subnet, "server": given.server_subnet}
    agent = ["python3", "-m", "impair.router.agent", "--engine", "uml"]
    for side, device in DEVICES.items():
        agent += [f"--{side}-port", device]
    try:
        run({side: interface.interface_in(subnet) for side, subnet in subnets.items()}, agent, given.turn)
    except (BootError, interface.InterfaceError) as error:
        print(json.dumps({"error": str(error)}), flush=True)  # noqa: T201 - the wire
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
