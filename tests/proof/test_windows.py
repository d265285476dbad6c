"""Windows and buffers: which of them a trial has met, and over which networks none may be."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from client.h2load import Fetch
from headwind.arm import H1, H2, H3, Arm, Protocol
from headwind.model import Block, Condition, Trial
from headwind.proof.evidence import Evidence, WindowSizes
from headwind.proof.windows import Window, limiting, window_warnings, windows
from headwind.settings import LARGEST_BDP_BYTES, Settings, TrialRules, Windows, largest_bdp_bytes
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from impair.endpoint.buffers import smallest, tcp_limits, udp_sockets
from impair.profile import Delay, Direction, Link, Profile, Rate
from tests import quiet
from tests.fake_testbed import RULES, World, fake_path

FAR = Profile("far", Link(delay=Delay(0.02)), Link(delay=Delay(0.02)))
BULK = H2load("bulk", requests=10, connections=1, streams=1, path="/10m")
SERVER: WindowSizes = {"tcp_wmem_max_bytes": 1 << 25, "http3_stream_buffer_bytes": 64 << 10}
CLIENT: WindowSizes = {
    "tcp_rmem_max_bytes": 1 << 25,
    "window_bytes": (1 << 24) - 1,
    "connection_window_bytes": (1 << 30) - 1,
}


def trial(profile: Profile = FAR, workload: H2load = BULK, arm: Arm = H3) -> Trial:
    return Trial(Block(Condition(profile, workload), 0, (arm,), {}), 0, arm)


def evidence(payload_bps: float, wall_s: float, server: WindowSizes = SERVER, rtt_s: float = 0.04) -> Evidence:
    """What the counters show of a client that received so much in full frames."""
    frames = round(payload_bps / 8 * wall_s / 1200)
    states = {direction: quiet.netem(Link()) for direction in Direction}
    before, after = quiet.moment(states), quiet.moment(states)
    after["client"] |= {"rx_frames": frames, "rx_bytes": frames * 1270}
    trains = {direction: {"probe": quiet.train(3, [rtt_s / 2] * 3)} for direction in Direction}
    windows = {"server": server, "client": CLIENT}
    return Evidence.from_json(
        {"configured": states, "before": before, "after": after, "trains": trains, "windows": windows}
    )


def test_a_transfer_that_fills_a_window_in_each_round_trip_is_limited_by_it() -> None:
    (warning,) = window_warnings(trial(), evidence(0.95 * 65536 * 8 / 0.04, 20), 20)
    assert warning.startswith("limited by a window of 64 KB (nginx's http3_stream_buffer_size): 12.5 Mbit/s")
    assert warning.endswith("over a round trip of 40 ms")


@pytest.mark.parametrize("share", [0.6, 1.5])
def test_a_transfer_that_moves_much_less_or_more_than_a_window_has_not_met_it(share: float) -> None:
    assert not list(window_warnings(trial(), evidence(share * 65536 * 8 / 0.04, 20), 20))


def test_a_rate_that_is_reached_is_what_limits() -> None:
    payload_bps = 0.95 * 65536 * 8 / 0.04
    slow = replace(FAR, downlink=Link(delay=Delay(0.02), rate=Rate(round(payload_bps))))
    assert not list(window_warnings(trial(slow), evidence(payload_bps, 20), 20))


def test_a_window_of_a_stream_is_there_for_each_stream_and_counts_for_http3_only() -> None:
    payload_bps = 3 * 65536 * 8 / 0.04
    many = replace(BULK, streams=3)
    assert list(window_warnings(trial(workload=many), evidence(payload_bps, 20), 20))
    assert not list(window_warnings(trial(), evidence(payload_bps, 20), 20))
    assert not list(window_warnings(trial(workload=many, arm=H2), evidence(payload_bps, 20), 20))


def test_a_small_buffer_of_tcp_is_named() -> None:
    tight = {**SERVER, "tcp_wmem_max_bytes": 128 << 10}
    (warning,) = window_warnings(trial(arm=H1), evidence(65536 * 8 / 0.04, 20, tight), 20)
    assert warning.startswith("limited by a window of 64 KB (the server's TCP buffer (tcp_wmem))")


def test_a_client_that_never_ran_has_met_nothing() -> None:
    assert not list(window_warnings(trial(), evidence(0, 1), 0.0))
    assert limiting(1e6, 0.04, iter(()), 1, 1) is None


def test_what_is_not_known_is_no_window() -> None:
    assert list(windows(Protocol.H3, {}, {})) == list(windows(Protocol.H1, {}, {})) == []
    assert Window("h2load's --window-bits", (1 << 24) - 1, per_stream=True) in windows(Protocol.H3, SERVER, CLIENT)


def test_the_largest_product_is_that_of_a_rate_and_the_whole_round_trip() -> None:
    link = Link(delay=Delay(0.3), rate=Rate(50_000_000))
    assert largest_bdp_bytes(Profile("p", Link(delay=Delay(0.1)), link)) == 50e6 / 8 * 0.4
    assert largest_bdp_bytes(FAR) == 0


@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_the_clients_windows_exceed_twice_the_largest_product_and_are_stated(protocol: str) -> None:
    fetch = Fetch(protocol, "192.0.2.1", 443, "/", requests=1, connections=1, streams=1, threads=1)
    assert min(fetch.windows().values()) >= 2 * LARGEST_BDP_BYTES
    command = fetch.command()
    assert command[0] == "h2load"
    assert f"--window-bits={fetch.windows()['window_bytes'].bit_length()}" in command
    shipped = replace(fetch, settings="as-shipped").command()
    assert shipped[0] == "h2load-as-shipped"
    assert not [word for word in shipped if "window" in word]
    with pytest.raises(ValueError, match="settings"):
        replace(fetch, settings="large")


def test_a_trial_keeps_what_both_ends_had_and_runs_with_the_settings_that_were_asked_for() -> None:
    world = World()
    with fake_path(world) as path:
        kept = run_trial(path, trial(), TrialRules(60.0, Settings(server=Windows.AS_SHIPPED))).proof.counters["windows"]
        default = run_trial(path, trial(), RULES).proof.counters["windows"]
    assert kept["server"]["http3_stream_buffer_bytes"] == 64 << 10
    assert default["server"]["http3_stream_buffer_bytes"] == 16 << 20
    assert default["client"] == {"window_bytes": (1 << 24) - 1}


def test_a_sockets_buffers_are_as_the_kernel_has_them() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100_000)
        found = [each for each in udp_sockets() if each.port == sock.getsockname()[1]]
        if not found:
            pytest.skip("this kernel does not tell of UDP sockets (no udp_diag)")
        assert smallest(found) == {
            "udp_rcvbuf_bytes": sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            "udp_sndbuf_bytes": sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        }
        assert found[0].rcvbuf_bytes == 200_000


def test_without_sockets_there_is_no_buffer() -> None:
    assert set(smallest([]).values()) == {None}
    assert min(tcp_limits().values()) > 4096
