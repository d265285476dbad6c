"""The kind `ttfb`: what it asks of libcurl and the server, and what becomes of another session than the asked one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from client.curl import Fetch, perform
from headwind.arm import H1, H2, H3, Arm, Overrides, Protocol
from headwind.metric import Use
from headwind.model import Block, Condition, Outcome, Repetition, Result, Trial
from headwind.plan.block_order import plan_blocks
from headwind.report.files import write_files
from headwind.report.html.page import REPORT
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.trial.trial import run_trial
from headwind.workloads.discovery import SHARE
from headwind.workloads.h2load import TOTAL
from headwind.workloads.transfer import FIRST_BYTE
from headwind.workloads.ttfb import EARLY, Ttfb
from impair.profile import Delay, Direction, Link, Loss, Profile
from servers.objects import size_of
from tests.fake import recorded
from tests.fake_testbed import RULES, Sabotage, World, fake_path
from tests.matrix_files import MINIMAL, load, refusal

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
NEW = Ttfb("first byte", "/bytes/1000")
RESUMED, EARLIER = (replace(NEW, session=session) for session in ("resumed", "early"))
WORKLOAD = "{requests: 10, connections: 2}"
OFFERED = 255  # bytes of a request


def libcurl(early_bytes: int | None = None, **measured: Any) -> World:
    """A world whose libcurl tells this of the measured connection; early data is accepted where it is sent."""

    def program(command: list[str], took_s: float, directory: Path) -> None:
        _, _, _, protocol, session, _, path, *_ = command
        sent = OFFERED if session == "early" else 0
        told = {"status": 200, "alpn": {"h1": "http/1.1"}.get(protocol, protocol), "bytes": size_of(path),
                "early_bytes": sent if early_bytes is None else early_bytes, "error": "",
                "ttfb_s": 0.9 * took_s, "total_s": took_s, "handshake_s": took_s / 2}  # fmt: skip
        lines = ({"prepared": {**told, "status": 204, "early_bytes": 0}, "began_at": 2.5},
                 {"measured": {**told, **measured}})  # fmt: skip
        (directory / "stdout").write_text("".join(json.dumps(line) + "\n" for line in lines))

    return World(programs={"curl": program})


def outcome(workload: Ttfb, world: World, arm: Arm = H3, profile: Profile = FAR) -> Result:
    block = Block(Condition(profile, workload), 0, (arm,), dict.fromkeys(Direction, 1))
    with fake_path(world) as path:
        return run_trial(path, Trial(block, 0, arm), RULES)


@pytest.mark.parametrize("arm", [H1, H2, H3], ids=str)
@pytest.mark.parametrize("workload", [NEW, RESUMED, EARLIER], ids=lambda load: load.session)
def test_a_trial_gives_the_time_to_first_byte_of_the_asked_session(workload: Ttfb, arm: Arm) -> None:
    world = libcurl()
    result = outcome(workload, world, arm)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert result.metrics[FIRST_BYTE.key] == pytest.approx(0.9 * result.metrics[TOTAL.key])
    assert result.metrics[EARLY.key] == (OFFERED if workload is EARLIER else 0)
    (asked,) = world.asked
    assert (asked["program"], asked["port"], asked["session"]) == ("curl", 444, workload.session)
    assert result.command.endswith(f"{arm.protocol.value} {workload.session} https://10.70.2.10:444 /bytes/1000")
    assert result.samples["served"]["resumed"] == (workload is not NEW)


@pytest.mark.parametrize(
    ("workload", "seen", "early_bytes", "reason"),
    [
        (RESUMED, "new", 0, "the server resumed no session"),
        (EARLIER, "new", 0, "the server resumed no session"),
        (EARLIER, "new", -OFFERED, "the server resumed no session"),
        (EARLIER, "resumed", -OFFERED, "the server refused 255 bytes of early data"),
        (EARLIER, "resumed", 0, "the server was sent no early data"),
        (EARLIER, "resumed", OFFERED, "the server had the request only after the handshake"),
        (NEW, "resumed", 0, "resumed a session although none was offered"),
        (RESUMED, "resumed", OFFERED, "early data was sent although none was requested"),
    ],
)
def test_another_session_than_the_asked_one_has_a_name(
    workload: Ttfb, seen: str, early_bytes: int, reason: str
) -> None:
    world = libcurl(early_bytes)
    world.sabotage = Sabotage(session=seen)
    result = outcome(workload, world)
    assert result.outcome is Outcome.WRONG_SESSION
    assert reason in result.reason
    assert result.metrics[EARLY.key] == max(0, early_bytes), "refused are none"


class Handle:
    """A transfer of libcurl that stops after the first line of its answer."""

    def __init__(self, lines: list[str]) -> None:
        self._options: dict[str, Any] = {}
        self._lines = lines

    def setopt(self, name: str, value: Any) -> None:
        self._options[name] = value

    def getinfo(self, name: Any) -> int:
        del name
        return 0

    def perform(self) -> None:
        self._options["HEADERFUNCTION"](b"HTTP/2 200\r\n")
        self._options["HEADERFUNCTION"](b"content-length: 10000000\r\n")
        self._lines.append("stopped")


def test_the_first_byte_is_told_when_it_comes_and_not_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body outlasted the timeout, and `> 59.7 s` was the bound of a first byte that came after 0.2 s."""
    names = ("URL", "HEADERFUNCTION", "WRITEFUNCTION", "RESPONSE_CODE", "INFO_HTTP_VERSION", "APPCONNECT_TIME")
    pycurl = SimpleNamespace(error=OSError, **{name: name for name in names})
    monkeypatch.setitem(sys.modules, "pycurl", pycurl)
    events: list[Any] = []
    answer = perform(Handle(events), "https://192.0.2.1/", came=events.append)
    assert events == [pytest.approx(answer["ttfb_s"], abs=1e-6), "stopped"]


def test_early_data_that_a_lossy_network_brings_late_is_not_refused() -> None:
    world = libcurl(OFFERED)
    world.sabotage = Sabotage(session="resumed")
    lossy = replace(FAR, uplink=Link(Delay(0.02), Loss(0.02)))
    assert outcome(EARLIER, world, profile=lossy).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("measured", "expected", "reason"),
    [
        ({"error": "Recv failure"}, Outcome.FAILED, "the measured connection: Recv failure"),
        ({"status": 503}, Outcome.FAILED, "the measured connection: status 503"),
        ({"bytes": 999}, Outcome.WRONG_CONTENT, "the answer had 999 bytes instead of 1000"),
        ({"alpn": "http/1.1"}, Outcome.WRONG_PROTOCOL, "http/1.1 was negotiated instead of h3"),
    ],
)
def test_what_else_goes_wrong_is_called_by_its_name(measured: dict[str, Any], expected: Outcome, reason: str) -> None:
    result = outcome(EARLIER, libcurl(**measured))
    assert (result.outcome, result.reason) == (expected, reason)


@pytest.mark.parametrize(
    ("alpn", "expected", "share"),
    [("h3", Outcome.OK, 1.0), ("h2", Outcome.OK, 0.0), ("http/1.1", Outcome.WRONG_PROTOCOL, 0.0)],
)
def test_a_client_that_discovers_http3_may_use_http2_and_no_other(alpn: str, expected: Outcome, share: float) -> None:
    world = libcurl(alpn=alpn)
    result = outcome(replace(NEW, discovery="alt-svc", offer_if="rtt >= 80ms"), world)
    assert (result.outcome, result.metrics[SHARE.key]) == (expected, share)
    assert (world.asked[-1]["port"], world.offers) == (446, ["rtt >= 80ms"])
    assert result.command.endswith(" discovers")
    forced = outcome(NEW, libcurl(alpn=alpn))
    assert (forced.outcome is Outcome.OK) is (alpn == "h3"), "without discovery h2 is the wrong protocol"
    assert SHARE.key not in forced.metrics


def test_the_server_is_asked_to_wait_as_in_other_kinds() -> None:
    world = libcurl()
    result = outcome(replace(EARLIER, server_delay_s=0.03), world)
    assert result.outcome is Outcome.OK, result.reason
    assert world.asked[0]["path"] == "/after/30ms/bytes/1000"
    assert [check.measured for check in result.proof.checks if check.quantity == "server_delay_s"] == [0.03]


def test_a_client_that_was_stopped_bounds_the_time_by_what_the_measured_connection_had(tmp_path: Path) -> None:
    fetch = Fetch("h3", "10.0.0.1", 444, "/bytes/1000", "resumed")
    prepared = json.dumps({"prepared": {"status": 204, "error": ""}, "began_at": 1002.5}) + "\n"
    came = json.dumps({"first_byte_s": 0.2}) + "\n"
    for printed, bounds in (
        ("", {}),
        (prepared, {"ttfb_low_s": 7.5, "total_low_s": 7.5}),
        (prepared + came, {"ttfb_low_s": 0.2, "ttfb_high_s": 0.2, "total_low_s": 7.5}),
    ):
        (tmp_path / "stdout").write_text(printed)
        assert RESUMED.bounds(fetch.answer(tmp_path, 1000.0), 10.0) == bounds


def test_a_connection_that_left_no_session_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text(json.dumps({"prepared": {"status": 0, "error": "timed out"}, "began_at": 3.0}))
    answer = Fetch("h1", "10.0.0.1", 444, "/bytes/1000", "early").answer(tmp_path, 0.0)
    assert EARLIER.shortfall(answer) == "the connection that leaves a session: timed out"
    assert answer["metrics"] == {}


@pytest.mark.parametrize("asked", [{"protocol": "h4"}, {"session": "old"}])
def test_what_libcurl_cannot_do_is_refused(asked: dict[str, str]) -> None:
    usual: dict[str, Any] = {"protocol": "h2", "session": "new"}
    with pytest.raises(ValueError, match="none of libcurl's"):
        Fetch(host="a", port=444, path="/", **{**usual, **asked})


def test_keys_become_workloads_and_an_arm_has_a_session_of_its_own(tmp_path: Path) -> None:
    for written, workload in (
        ("{kind: ttfb}", NEW),
        ("{kind: ttfb, session: early, size: 15kB}", replace(EARLIER, path="/bytes/15000")),
        ("{kind: ttfb, server_delay: 5ms}", replace(NEW, server_delay_s=0.005)),
    ):
        arms = "\narms: {h3-resumed: {protocol: h3, session: resumed}}\nprotocols"
        matrix = load(MINIMAL.replace(WORKLOAD, written).replace("\nprotocols", arms), tmp_path)
        (found,) = {condition.workload for condition in matrix.conditions}
        assert found == replace(workload, name=found.name)
        own = next(arm for arm in matrix.arms if arm.name == "h3-resumed")
        assert own.workload(found) == replace(found, session="resumed")
        assert matrix_from_json(matrix_to_json(matrix)).conditions == matrix.conditions


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{kind: ttfb, session: earl}", "did you mean `early`"),
        ("{kind: ttfb, session: [early]}", "there is a list where one value is expected"),
        ("{kind: ttfb, sessions: early}", "unknown key `sessions`"),
        ("{kind: ttfb, size: 1}", "`1` has no unit"),
        ("{kind: ttfb, connections: 2}", "unknown key `connections`"),
        ("{kind: transfer, size: 1kB, session: early}", "unknown key `session`"),
    ],
)
def test_bad_input_is_refused_where_it_stands(tmp_path: Path, written: str, message: str) -> None:
    text = MINIMAL.replace(WORKLOAD, written)
    (complaint,) = refusal(text, tmp_path).complaints
    assert message in str(complaint)
    assert text.splitlines()[complaint.line - 1] == next(line for line in text.splitlines() if written in line)


def test_a_session_of_an_arm_needs_workloads_that_have_one(tmp_path: Path) -> None:
    arms = "\narms: {h3-early: {protocol: h3, session: early}}\nprotocols"
    (complaint,) = refusal(MINIMAL.replace("\nprotocols", arms), tmp_path).complaints
    assert "of kind h2load, has no `session`" in complaint.message


def test_a_whole_run_meets_sessions_in_one_block_and_is_drawn(tmp_path: Path) -> None:
    early = Arm("h3-early", Protocol.H3, overrides=Overrides((("session", "early"),)))
    matrix = replace(
        load(MINIMAL, tmp_path), arms=(H2, early), conditions=(Condition(FAR, RESUMED),), repeat=Repetition.fixed(12)
    )
    world = libcurl()
    world.noise_ratio = 0.01
    with fake_path(world) as path:
        results = [run_trial(path, trial, RULES) for block in plan_blocks(matrix) for trial in block.trials()]
    assert {result.outcome for result in results} == {Outcome.OK}
    with recorded(tmp_path, matrix, results) as run:
        write_files(run)
        page = (run.folder / REPORT).read_text()
    for told in ("one object of 1,000 bytes over a connection that resumes a session", "session early",
                 "The time to first byte is libcurl"):  # fmt: skip
        assert told in page
    assert [metric.key for metric in Ttfb.with_use(Use.JUDGED)] == [FIRST_BYTE.key]
