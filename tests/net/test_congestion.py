"""Which congestion control a connection has, as a listing of real sockets shows it, whatever the host's default is.

In its own network namespace, whose default is each of those that the kernel lets it have.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

from headwind.proof.ends import check_congestion
from headwind.proof.evidence import TcpSockets

pytestmark = pytest.mark.beside

ROOT = Path(__file__).resolve().parent.parent.parent
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
PAIRS = list(permutations(("bbr", "cubic", "reno"), 2))
REFUSED = "only the host itself may have this default"
# argv: the host's default, what the route asks for. Prints what congestion_of() finds: of one connection ("made"), also
# while another one begins that has the default, as every socket has it between tcp_v4_connect() and
# tcp_connect_init() ("beginning"), and after the connection itself was given the default ("other").
LISTING = f"""
import ipaddress, json, socket, subprocess, sys
from impair.endpoint.tcp_state import congestion_of

default, asked = sys.argv[1:]
try:
    with open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as file:
        file.write(default)
except PermissionError:
    sys.exit({REFUSED!r})
for words in ("link set lo up", "address add 10.79.2.10/32 dev lo",
              f"route replace local 10.79.2.10 dev lo table local src 10.79.2.10 congctl {{asked}}"):
    subprocess.run(["ip", *words.split()], check=True)

def found():
    return sorted(congestion_of(ipaddress.IPv4Network("10.79.2.0/24")))

def give_default(sock):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, default.encode())

listening = socket.create_server(("10.79.2.10", 7000), backlog=0)
connected = socket.create_connection(("10.79.2.10", 7000))  # fills the queue: the next one gets no answer
answer = {{"made": found()}}
beginning = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
beginning.connect_ex(("10.79.2.10", 7000))
give_default(beginning)
state = beginning.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
assert state == 2, f"the connection is not in SYN_SENT but in {{state}}"
answer["beginning"] = found()
give_default(connected)
answer["other"] = found()
print(json.dumps(answer))
"""


def listing(default: str, asked: str) -> dict[str, list[str]]:
    """What LISTING prints on a host with this default, of connections over routes with what was asked."""
    missing = [tool for tool in ("ip", "unshare") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        pytest.skip(f"not installed: {missing}" if missing else "network namespaces need root")
    if lacking := {default, asked}.difference(AVAILABLE.read_text().split()):
        pytest.skip(f"this kernel has no {' and no '.join(sorted(lacking))}")
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", LISTING, default, asked], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if REFUSED in done.stderr:
        pytest.skip(f"the kernel lets no namespace have {default} as its default")
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("default", "asked"), PAIRS)
def test_only_a_connection_that_was_made_is_judged_and_a_really_different_one_is_found(
    default: str, asked: str
) -> None:
    found = listing(default, asked)
    assert found == {"made": [asked] * 2, "beginning": [asked] * 2, "other": sorted([default, asked])}
    (check,) = check_congestion(TcpSockets(asked, found["other"], found["made"]))
    assert not check.passed
