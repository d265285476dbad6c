"""The lines that `lab.py advise` writes are a configuration that the image's nginx accepts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headwind.arm import PLAIN
from headwind.report.advice import Advised, snippet
from headwind.testbed.docker import DockerError, docker
from headwind.verdicts.advice import Advice, Network
from tests.net.builds import built

pytestmark = [pytest.mark.timeout(900, func_only=True), pytest.mark.images]

SERVER = "server { listen 8080; root /srv/headwind; }"
TRY = 'printf %s "$1" >/dev/shm/nginx.conf && nginx -t -c /dev/shm/nginx.conf'


def accepts(lines: str) -> str:
    """nginx's verdict on a configuration with these lines; raises DockerError if it refuses them."""
    configuration = f"events {{}}\nhttp {{\n{lines}\n{SERVER}\n}}\n"
    image = built(["nginx"]).reference("nginx")
    return docker("run", "--rm", "--network", "none", "--entrypoint", "sh", image, "-c", TRY, "sh", configuration)


def advice_of(factor: float) -> Advised:
    """Advice from networks on whose farther half h3 is so many times as slow."""
    networks = []
    for rtt_s in (0.004, 0.01, 0.02, 0.03, 0.08, 0.1, 0.16, 0.3):
        logs = (0.5, 0.0, np.log(factor) if rtt_s > 0.05 else -np.log(factor))
        costs = np.random.default_rng(1).normal(0, 0.01, (9, 3)) + logs
        networks.append(Network(f"{rtt_s}", {"rtt_s": rtt_s, "rttvar_s": 0.28 * rtt_s}, (costs,)))
    return Advised(Advice(tuple(networks), (0, 1), (2,)), PLAIN, ("20261121-0935-3f0a",), 72)


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_nginx_accepts_a_rule_in_either_direction(factor: float) -> None:
    lines = snippet(advice_of(factor))
    assert "map $tcpinfo_rtt $headwind_offer" in lines
    accepts(lines)


def test_nginx_refuses_a_broken_one() -> None:
    found = advice_of(0.7)
    with pytest.raises(DockerError, match="map parameters"):
        accepts(snippet(replace(found, runs=("x",))).replace("default", "default;"))
