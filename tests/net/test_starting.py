"""A testbed that does not come up says why, and one that is stopped meanwhile leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwind.errors import HeadwindError
from headwind.testbed import containers
from headwind.testbed import testbed as testbeds
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.docker import docker
from headwind.testbed.images import Images, reference

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.beside

ODD = "FROM {nginx}\nRUN sed -i '1i keepalive_requests 5;' /opt/headwind/nginx/nginx.conf\n"


@pytest.fixture
def odd(images: Images, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The tags of images of which nginx's has a directive in the wrong place of nginx.conf."""
    tags = {**images.tags, "nginx": f"{images.tags['nginx']}-odd-{os.getpid()}"}
    (tmp_path / "Dockerfile").write_text(ODD.format(nginx=images.reference("nginx")))
    docker("build", "--network", "none", "--tag", reference("nginx", tags["nginx"]), str(tmp_path))
    yield tags
    docker("rmi", reference("nginx", tags["nginx"]))


def test_a_server_that_does_not_come_up_shows_what_nginx_said(odd: dict[str, str]) -> None:
    with (
        pytest.raises(HeadwindError, match=r"log of server: .*\[emerg\].*keepalive_requests.* is not allowed here"),
        testbeds.Testbed.up(BedSpec(odd)),
    ):
        pytest.fail("it is up")


def left(owner: int) -> list[str]:
    names = docker("ps", "-a", "--filter", f"label={containers.LABEL}", "--format", "{{.Names}}").split()
    names += docker("network", "ls", "--filter", f"label={containers.LABEL}", "--format", "{{.Name}}").split()
    return [name for name in names if name.startswith(f"headwind-{owner}-")]


def test_a_polite_kill_while_the_testbed_comes_up_ends_with_a_sentence_and_leaves_nothing(
    images: Images, tmp_path: Path
) -> None:
    command = [sys.executable, "lab.py", "run", "experiments/smoke.yaml", "--reports", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as lab:
        end = time.monotonic() + 120
        while not left(lab.pid):
            assert time.monotonic() < end
            time.sleep(0.1)
        lab.send_signal(signal.SIGTERM)
        _, complaints = lab.communicate(timeout=120)
    assert lab.returncode == 130
    assert complaints.splitlines()[-1] == "lab.py: stopped by SIGTERM; nothing is left running"
    assert "Traceback" not in complaints
    assert left(lab.pid) == []
    assert list(tmp_path.iterdir()) == []
