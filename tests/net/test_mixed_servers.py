"""Whole labs whose arms have different servers: interrupted and resumed; and one that needs no nginx."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwind.testbed.docker import docker
from headwind.testbed.images import Images, needed
from tests.net.builds import built
from tests.net.live_lab import ROOT, finished_by, left_by, live_lab

pytestmark = [pytest.mark.timeout(600, func_only=True), pytest.mark.killed]  # the first test may build images

# Two conditions, three servers; 60 responses of 612 bytes at 200 kbit/s take about two seconds.
THREE = """
protocols: [h2]
arms:
  h1-caddy: {{protocol: h1, server: caddy}}
  h3-haproxy: {{protocol: h3, server: haproxy}}
timeout: 30s
repeat: {trials}
profiles:
  slow: {{downlink: {{rate: 200kbit}}}}
  slower: {{downlink: {{rate: 190kbit}}}}
workloads:
  some: {{requests: 60, connections: 2, streams: 10, path: /}}
"""
CADDY = """
arms:
  h2-caddy: {{protocol: h2, server: caddy}}
  h3-caddy: {{protocol: h3, server: caddy}}
lanes: 1
timeout: 30s
repeat: {trials}
profiles: {{clean: {{}}}}
workloads:
  some: {{requests: 60, connections: 2, streams: 10, path: /}}
"""


@pytest.fixture(scope="module", autouse=True)
def further(images: Images) -> None:
    """The images of all servers."""
    assert images.tags.keys() | built(["caddy", "haproxy"]).tags.keys() == set(needed(["nginx", "caddy", "haproxy"]))


def test_a_run_with_three_servers_on_two_lanes_is_interrupted_and_resumed(tmp_path: Path) -> None:
    with live_lab(tmp_path, 1, "--lanes", "2", text=THREE) as lab:
        lab.wait_until_done(2)
        lab.process.send_signal(signal.SIGINT)
        code, said = lab.end()
    assert code == 130, said
    assert left_by(lab) == ""
    first = finished_by(lab)
    assert 2 <= len(first) < 2 * 3

    with live_lab(tmp_path, 1, "--lanes", "2", "--resume", str(lab.run.folder), text=THREE) as second:
        code, said = second.end()
    assert code == second.due(), said
    assert left_by(second) == ""
    assert first <= finished_by(second)
    assert len({trial for trial, _ in finished_by(second)}) == 2 * 3
    with second.run as run:
        servers = {(each.trial.arm.name, each.trial.arm.server.name) for each in run.results()}
        assert servers == {("h2", "nginx"), ("h1-caddy", "caddy"), ("h3-haproxy", "haproxy")}


def test_a_matrix_without_nginx_neither_starts_it_nor_needs_its_image(tmp_path: Path) -> None:
    with live_lab(tmp_path, 1, text=CADDY) as lab:
        lab.wait_for("^run ")
        running = docker("ps", "--format", "{{.Image}}", *lab.ours).split()
        code, said = lab.end()
    assert code == lab.due(), said
    assert sorted(image.partition(":")[0] for image in running) == [
        "headwind-caddy", "headwind-client", "headwind-impair",
    ]  # fmt: skip
    with lab.run as run:
        assert sorted(run.environment["images"]) == ["caddy", "client", "impair"]


@pytest.mark.parametrize("name", ["haproxy"])
def test_a_server_that_is_tried_gives_the_same_bytes_over_every_protocol(name: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "lab.py", "try-server", name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every protocol gives the bytes of /1m" in done.stdout
    assert re.search(r"^certificate: commonName=server until .* GMT$", done.stdout, re.MULTILINE)
