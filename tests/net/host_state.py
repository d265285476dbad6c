"""The state of this host that a lab must leave as it was: settings, queues, routes, firewall, /run, Docker's objects.

Other labs may come and go meanwhile. So what belongs to one lab's containers is looked up by name (`marks_of`), and the
rest is compared without the interfaces of any container.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from headwind.testbed.docker import docker
from tests.net.live_lab import LiveLab

CONTAINERS = re.compile(r"\b(docker0|veth[0-9a-f]+|br-[0-9a-f]{12})\b")  # interfaces that Docker makes
COMMANDS = {
    "qdiscs": ("tc", "qdisc"),
    "routes": ("ip", "-4", "route", "show", "table", "all"),
    "rules": ("ip", "rule"),
    "interfaces": ("ip", "-o", "link"),
    "nftables": ("nft", "--stateless", "list", "ruleset"),
    "iptables": ("iptables-save",),
    "older iptables": ("iptables-legacy-save",),
    "networks": ("docker", "network", "ls", "--no-trunc"),
    "volumes": ("docker", "volume", "ls", "-q"),
    "containers": ("docker", "ps", "-aq", "--no-trunc"),
}
PASSED = re.compile(r" \[\d+:\d+\]$")  # packets and bytes that passed a chain of iptables
OF_ANY_LAB = ("networks", "volumes", "containers")  # compared by the marks alone
VOLATILE = re.compile(
    r"/proc/sys/(fs/(file-nr|inode-|dentry-state|aio-nr|quota)|kernel/(random|ns_last_pid|pty/nr|tainted)"
    r"|net/(netfilter/nf_conntrack_count|ipv4/tcp_(mem|fastopen_key)|.*/stat)|debug|vm/(stat_refresh|user_reserve))"
)
# Below /run: Docker's folders of each container, and network namespaces, which other tests make and a lab never does.
RUN_OF_OTHERS = ("docker", "containerd", "runc", "netns")


def host_state() -> dict[str, set[str]]:
    """Lines of text by topic; topics that cannot be read here are left out."""
    found = {"settings": set(_settings()), "/run": set(_run())}
    for topic, command in COMMANDS.items():
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                found[topic] = {PASSED.sub("", line) for line in done.stdout.splitlines() if not line.startswith("#")}
    return found


def _settings() -> Iterator[str]:
    for folder, _, files in os.walk("/proc/sys"):  # which, unlike Path.rglob, bears that a folder goes meanwhile
        for name in (f"{folder}/{file}" for file in files):
            if not VOLATILE.match(name) and not CONTAINERS.search(name):
                with suppress(OSError, UnicodeDecodeError):
                    yield f"{name} = {' '.join(Path(name).read_text().split())}"


def _run() -> Iterator[str]:
    for path in Path("/run").glob("*"):
        if path.name in RUN_OF_OTHERS:
            continue
        yield str(path)
        if path.is_dir() and not path.is_symlink():
            for folder, folders, files in os.walk(path):
                yield from (f"{folder}/{inner}" for inner in [*folders, *files])


def marks_of(lab: LiveLab) -> set[str]:
    """Names and ids of this lab's containers, volumes, networks, bridges and interfaces, while it runs."""
    containers = docker("ps", "-aq", "--no-trunc", *lab.ours).split()
    networks = docker("network", "ls", "-q", "--no-trunc", *lab.ours).split()
    volumes = [mount["Name"] for each in json.loads(docker("inspect", *containers)) for mount in each["Mounts"]]
    indices = [docker("exec", each, "cat", "/sys/class/net/eth0/iflink").strip() for each in containers]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    ends = [found[1] for index in indices for found in re.finditer(rf"^{index}: ([^@:]+)", links, re.MULTILINE)]
    assert containers
    assert networks
    assert volumes
    return {*containers, *volumes, *networks, *(f"br-{each[:12]}" for each in networks), *ends}


def changes(before: Mapping[str, set[str]], after: Mapping[str, set[str]], marks: set[str]) -> list[str]:
    """What the lab left, or changed, as text; empty if the host is as it was."""
    found = []
    for topic, lines in after.items():
        found += [f"{topic}: left {line}" for line in lines if any(mark in line for mark in marks)]
        if topic not in OF_ANY_LAB:
            differing = (line for line in lines ^ before[topic] if not CONTAINERS.search(line))
            found += [f"{topic}: {'new' if line in lines else 'gone'} {line}" for line in differing]
    return sorted(found)
