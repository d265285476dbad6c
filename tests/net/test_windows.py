"""Windows and buffers on a real path: what each setting has, and that a planted one is named by the trial itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headwind.arm import H3, PLAIN, Arm
from headwind.model import Block, Condition, Result, Trial
from headwind.settings import LARGEST_BDP_BYTES, PORTS, UNLIMITED, Settings, TrialRules, Windows
from headwind.testbed import path as paths
from headwind.testbed.docker import docker
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from impair.profile import Delay, Direction, Link, Profile

FAR = Link(delay=Delay(0.02))
BULK = H2load("bulk", requests=2, connections=1, streams=1, path="/10m")
PAGES = H2load("pages", requests=50, connections=1, streams=1)
FEW = replace(PAGES, name="few", requests=5)
AS_SHIPPED = Settings(Windows.AS_SHIPPED, Windows.AS_SHIPPED)
NAMED = "limited by a window of 64 KB (nginx's http3_stream_buffer_size)"
TIMEOUT_S = 8.0  # 64 KB in each of its round trips of 40 ms are 13 MB


def result(bed: paths.Path, settings: Settings, arm: Arm = H3, work: H2load = BULK) -> Result:
    seeds = dict.fromkeys(Direction, 1)
    block = Block(Condition(Profile("far", FAR, FAR), work), 0, (arm,), seeds)
    return run_trial(bed, Trial(block, 0, arm), TrialRules(TIMEOUT_S, settings))


def test_a_planted_send_buffer_is_named_and_without_it_no_window_is(bed: paths.Path) -> None:
    warnings = list[str]()
    for _ in range(4):  # on a busy machine other things limit it as well
        planted = result(bed, Settings(server=Windows.AS_SHIPPED))
        assert "total_s" not in planted.metrics, "20 MB take longer than that"
        warnings += planted.proof.warnings
        if NAMED in " ".join(warnings):
            break
    assert NAMED in " ".join(warnings)
    free = result(bed, UNLIMITED)
    assert not [warning for warning in free.proof.warnings if "window" in warning]
    assert "total_s" in free.metrics


def test_what_a_trial_had_is_what_its_settings_say(bed: paths.Path) -> None:
    for arm in PLAIN:
        had = result(bed, UNLIMITED, arm, FEW).proof.counters["windows"]
        tcp = [had[side][name] for side in had for name in ("tcp_rmem_max_bytes", "tcp_wmem_max_bytes")]
        assert min(tcp) // 2 >= 2 * LARGEST_BDP_BYTES
        assert had["server"]["http3_stream_buffer_bytes"] >= 2 * LARGEST_BDP_BYTES
        shipped = result(bed, AS_SHIPPED, arm, FEW).proof.counters["windows"]
        assert shipped["server"]["http3_stream_buffer_bytes"] == 64 << 10
        if arm is H3:
            for side, name in (("server", "udp_rcvbuf_bytes"), ("client", "udp_rcvbuf_bytes")):
                assert had[side][name] >= shipped[side][name] > 0
            assert had["client"]["udp_rcvbuf_bytes"] == 32 << 20, "NET_ADMIN is not bound by net.core.rmem_max"


@pytest.mark.parametrize(("settings", "buffer_bytes"), [(UNLIMITED, 16 << 20), (AS_SHIPPED, 64 << 10)])
def test_nginx_grants_the_flow_control_that_its_configuration_says(
    bed: paths.Path, settings: Settings, buffer_bytes: int
) -> None:
    """QUIC's transport parameters show the buffer that nginx runs with, not the one that is written down."""
    bed.router.call("apply", profile=Profile("clean").to_json(), seeds={"uplink": 1, "downlink": 1})
    url = f"https://{bed.addresses.host('server', 10)}:{PORTS[settings.server]}/"
    script = f"cd /tmp && h2load -n 1 --alpn-list=h3 --qlog-file-base=said {url} >/dev/null && cat said.0.0.sqlog"
    said = docker("exec", bed.containers["client"], "sh", "-c", script)
    events = [json.loads(line.lstrip("\x1e")) for line in said.splitlines()[1:] if line.strip("\x1e ")]
    remote: dict[str, Any] = next(
        event["data"] for event in events
        if event.get("name", "").endswith("parameters_set") and event["data"].get("owner") == "remote"
    )  # fmt: skip
    assert remote["initial_max_stream_data_bidi_remote"] == buffer_bytes


def test_requests_are_padded_by_the_shipped_client_only(bed: paths.Path) -> None:
    frames = {}
    for windows in Windows:
        proof = result(bed, Settings(client=windows), work=PAGES).proof
        before, after = (proof.counters[moment]["client"] for moment in ("before", "after"))
        frames[windows] = (after["tx_bytes"] - before["tx_bytes"]) // (after["tx_frames"] - before["tx_frames"])
    assert frames[Windows.UNLIMITED] < 300
    assert frames[Windows.AS_SHIPPED] > 500
