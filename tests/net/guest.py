"""The `kernel` engine's own code in a kernel that has netem: runs inside the user-mode kernel, as its only program.

Two network namespaces, `client` and `server`, hang on veth pairs; their endpoint agents and the router's agent (in the
main namespace) are spoken to through one wire. A request says whom it is for: `{"to": "client", "id": 7, "op": ...}`.
`guest` is this program itself: it runs commands and reads netem beside the router's agent.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from impair.router import mailbox
from impair.router.netem import Netem
from impair.wire import answer

SUBNETS = {"client": "10.1.0", "server": "10.2.0"}
_writing = threading.Lock()


def say(line: str) -> None:
    """One line to the outside; agents answer at the same time."""
    with _writing:
        sys.stdout.write(line)
        sys.stdout.flush()


def run(command: list[str]) -> str:
    """The output of a command in the main namespace, where the router's netem is."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read(device: str) -> dict[str, Any] | None:
    """What impair/router/netem.py reads of a device, whoever has set it."""
    netem = Netem()
    reading = netem.read(device)
    netem.close()
    return asdict(reading) if reading else None


def start(*command: str) -> subprocess.Popen[str]:
    """An agent; its answers go to our output once it has said that it is ready."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert json.loads(process.stdout.readline()) == {"ready": True}
    threading.Thread(target=pass_on, args=(process.stdout,), daemon=True).start()
    return process


def pass_on(answers: IO[str]) -> None:
    """Everything that an agent says."""
    for line in answers:
        say(line)


def start_endpoint(side: str) -> subprocess.Popen[str]:
    """An endpoint's agent in its own namespace, joined to the main one by the veth pair `to-SIDE` -- `eth0`.

    /sys is mounted anew, because a mount shows the interfaces of the namespace that made it.
    """
    agent = "mount -t sysfs sysfs /sys && exec python3 -m pattern"
    process = start("unshare", "--net", "--mount", "sh", "-c", agent)
    inside = ["nsenter", f"--net=/proc/{process.pid}/ns/net"]
    for command in (
        ["ip", "link", "add", f"to-{side}", "type", "veth", "peer", "name", "eth0", "netns", str(process.pid)],
        [*inside, "ip", "address", "add", f"{SUBNETS[side]}.10/24", "dev", "eth0"],
        [*inside, "ip", "link", "set", "dev", "lo", "up"],
        [*inside, "ip", "link", "set", "dev", "eth0", "up"],
    ):
        run(command)
    return process


def main() -> None:
    """Build the path, then pass requests on until they end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mailbox", type=Path, required=True)
    box = parser.parse_args().mailbox
    run(["insmod", f"/usr/lib/uml/modules/{os.uname().release}/kernel/drivers/net/veth.ko"])
    agents = {side: start_endpoint(side) for side in SUBNETS}
    ports = [word for side in SUBNETS for word in (f"--{side}-port", f"to-{side}")]
    agents["router"] = start("python3", "-m", "impair.router.agent", *ports)
    say(json.dumps({"ready": True}) + "\n")
    for line in mailbox.collect(box, sys.stdin.fileno()):
        request = json.loads(line)
        name = request.pop("to")
        if name == "guest":
            say(json.dumps(answer({"run": run, "read": read}, json.dumps(request))) + "\n")
            continue
        wire = agents[name].stdin
        assert wire
        wire.write(json.dumps(request) + "\n")
        wire.flush()


if __name__ == "__main__":
    main()
