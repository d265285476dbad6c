"""Captured trials on real containers: every frame at both ends, and the keys of all their connections."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.arm import H3, PLAIN, Arm
from headwind.browsers import CHROMIUM, FIREFOX
from headwind.metric import Workload
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.run.captures import FILM
from headwind.settings import TrialRules
from headwind.testbed import testbed as testbeds
from headwind.trial.capture import KEYS, Capture
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from headwind.workloads.objects import Objects
from headwind.workloads.streams import Streams
from headwind.workloads.transfer import Transfer
from headwind.workloads.ttfb import Ttfb
from impair.profile import Delay, Direction, Link, Loss, Profile
from tests.net.page_trials import PAGE, assert_clean

pytestmark = pytest.mark.timeout(400, func_only=True)  # the first test may have to build the images

LOSSY = Profile("lossy", Link(Delay(0.01)), Link(Delay(0.01), Loss(0.05)))
MANY = H2load("many", requests=100, connections=5, streams=5)
LATE_FRAMES = 20  # at most, of five connections that end, between the last count and the end of the capture
PAINT_LATE_S = 0.2  # between the paint and its picture, on a busy machine
CLIENT_HELLO = re.compile(rb"\x16\x03\x01..\x01.{3}\x03\x03(.{32})", re.DOTALL)  # its record, and the random (RFC 8446)
DISSECTED = {"h1": "http.request", "h2": "http2.headers.method", "h3": "http3"}  # what tshark shows of each


def captured(page_bed: testbeds.Testbed, arm: Arm, workload: Workload) -> tuple[Capture, Result]:
    """A captured trial, again if the machine was so busy that its network could not be proven."""
    trial = Trial(Block(Condition(LOSSY, workload), 0, (arm,), dict.fromkeys(Direction, 1)), 0, arm)
    while True:
        capture = Capture(trial)
        result = run_trial(page_bed.path(), trial, TrialRules(30.0), capture=capture)
        if result.outcome is not Outcome.INVALID:
            assert (result.outcome, result.reason) == (Outcome.OK, "")
            return capture, result


def frames_of(content: bytes) -> list[bytes]:
    """The frames in a pcapng file."""
    found = []
    while content:
        kind, size = struct.unpack_from("<II", content)
        if kind == 6:
            (length,) = struct.unpack_from("<I", content, 20)
            found.append(content[28 : 28 + length])
        content = content[size:]
    return found


def randoms_of(keys: bytes) -> set[bytes]:
    """The client randoms in a key log that has the secrets of application data."""
    lines = [line.split() for line in keys.splitlines() if line and not line.startswith(b"#")]
    return {bytes.fromhex(line[1].decode()) for line in lines if line[0] == b"CLIENT_TRAFFIC_SECRET_0"}


def shown_by_tshark(content: bytes, what: str, folder: Path) -> int:
    """The number of frames in which tshark, with nothing but the file, sees this."""
    (folder / "it.pcapng").write_bytes(content)
    command = ["tshark", "-r", str(folder / "it.pcapng"), "-Y", what]
    return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_capture_has_every_frame_at_both_ends_and_the_keys_of_every_connection(
    page_bed: testbeds.Testbed, arm: Arm, tmp_path: Path
) -> None:
    capture, result = captured(page_bed, arm, MANY)
    before, after = (result.proof.counters[name] for name in ("before", "after"))
    seen = {end: frames_of(capture.files[f"{end}.pcapng"]) for end in ("client", "server")}
    for end, frames in seen.items():
        counted = sum(after[end][name] - before[end][name] for name in ("rx_frames", "tx_frames"))
        assert len(frames) == capture.packets[end]
        assert counted <= len(frames) <= counted + LATE_FRAMES, "as the kernel counted"
    assert capture.missed == {"client": 0, "server": 0}
    assert len(seen["server"]) > len(seen["client"]), "before the router nothing is lost"
    randoms = randoms_of(capture.files[KEYS])
    assert len(randoms) == MANY.connections
    if arm != H3:  # over QUIC the hello is encrypted, with keys that everybody can derive
        hellos = [found[1] for frame in seen["server"] if (found := CLIENT_HELLO.search(frame))]
        assert set(hellos) == randoms
    logs = [name for name in capture.files if name.startswith("qlog/")]
    assert len(logs) == (MANY.connections if arm == H3 else 0)
    if shutil.which("tshark"):
        assert shown_by_tshark(capture.files["client.pcapng"], DISSECTED[arm.name], tmp_path) >= MANY.connections


@pytest.mark.parametrize(
    "workload",
    [
        Streams("streams", 3, 0, 0, path="/bytes/20000"),
        Objects("objects", 3, 0, 0, path="/bytes/20000"),
        Transfer("transfer", 1, 1, 1, path="/bytes/200000"),
        Ttfb("ttfb", "/bytes/10000"),
    ],
    ids=lambda workload: workload.kind,
)
def test_every_kind_of_workload_is_captured_with_keys_and_qlogs(page_bed: testbeds.Testbed, workload: Workload) -> None:
    capture, _ = captured(page_bed, H3, workload)
    assert frames_of(capture.files["client.pcapng"])
    assert randoms_of(capture.files[KEYS])
    assert any(name.startswith("qlog/") for name in capture.files)


def assert_shows(film: Mapping[str, bytes], result: Result) -> None:
    """The pictures of a film begin with the navigation, and one comes with the first paint."""
    assert all(content.startswith(b"\xff\xd8\xff") for content in film.values())
    times_s = [int(re.fullmatch(rf"{FILM}/(\d+)\.jpg", name)[1]) / 1000 for name in sorted(film)]  # type: ignore[index]
    paint_s = result.metrics["first_paint_s"]
    assert any(abs(at_s - paint_s) < PAINT_LATE_S for at_s in times_s), (paint_s, times_s)


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_page_in_chromium_is_captured_with_keys_and_its_netlog(
    page_bed: testbeds.Testbed, arm: Arm, tmp_path: Path
) -> None:
    capture, result = captured(page_bed, arm, replace(PAGE, browser=CHROMIUM))
    film = {name: content for name, content in capture.files.items() if name.startswith(f"{FILM}/")}
    assert sorted(set(capture.files) - set(film)) == ["client.pcapng", KEYS, "netlog.json", "server.pcapng"]
    assert_shows(film, result)
    assert b"HTTP_STREAM_JOB" in capture.files["netlog.json"]
    if arm != H3:
        frames = frames_of(capture.files["client.pcapng"])
        hellos = {found[1] for frame in frames if (found := CLIENT_HELLO.search(frame))}
        assert hellos
        assert hellos <= randoms_of(capture.files[KEYS])
    if shutil.which("tshark"):
        assert shown_by_tshark(capture.files["client.pcapng"], DISSECTED[arm.name], tmp_path)
    assert_clean(page_bed, arm)


def test_a_page_in_firefox_is_captured_with_its_qlog_and_without_keys(page_bed: testbeds.Testbed) -> None:
    capture, _ = captured(page_bed, H3, replace(PAGE, browser=FIREFOX))
    assert KEYS not in capture.files
    assert any(name.endswith(".sqlog") for name in capture.files)
    assert frames_of(capture.files["client.pcapng"])
    assert_clean(page_bed, H3, FIREFOX)


def test_after_a_captured_trial_no_logs_are_left_and_none_are_written(page_bed: testbeds.Testbed) -> None:
    captured(page_bed, H3, MANY)
    for agent in page_bed.agents[:-1]:
        assert agent.call("files") == {"sizes": {}, "left_out": []}
