"""The kind `push`: what it asks of nghttp, and what becomes of an object that was pushed, or was not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from client.nghttp import Fetch, interpret
from headwind.arm import H2, Arm
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.servers import SERVERS
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import TOTAL
from headwind.workloads.push import OBJECT, PUSHED, Push
from impair.profile import Delay, Direction, Link, Profile
from servers.objects import size_of
from tests.fake_testbed import RULES, World, fake_path
from tests.matrix_files import load, refusal

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
ASKED = Push("file", 290_000)
GIVEN = replace(ASKED, delivery="pushed")
PAGE, PICTURE = "/bytes/1-of-290000.html", "/bytes/290000.png?1"
# Recorded from nghttp 1.70 (the paths are this test's), over a path without delay.
STATISTICS = f"""\
sorted by 'complete'

id  responseEnd requestStart  process code size request path
  1     +5.65ms       +136us   5.51ms  200   61 {PAGE}
  2    +1.27s {{star}}     +1.26s   3.98ms  200 283K {PICTURE}
"""
ARMS = """\
arms:
  h2-pushed:    {protocol: h2, server: nghttpd, delivery: pushed}
  h2-requested: {protocol: h2, server: nghttpd}
profiles: {far: {both: {delay: 20ms}}}
workloads: {file: {kind: push, size: 290kB}}
"""


def entries(*pushed: bool, sizes: tuple[int, ...] = (), status: int = 200) -> list[dict[str, Any]]:
    """Entries of nghttp's HAR file, as far as they are read."""
    paths = (PAGE, PICTURE)[: len(pushed)]
    known = sizes or tuple(size_of(path) or 0 for path in paths)
    return [
        {
            "comment": "Pushed Object" if is_pushed else "", "request": {"url": f"https://10.0.0.1:443{path}"},
            "response": {"status": status, "content": {"size": size}},
            "timings": {"dns": 0.5, "connect": 8.0, "wait": 5.0, "receive": 0.514} if path == PAGE
            else {"dns": 0.0, "connect": 0.0, "wait": 0.021, "receive": 3.962},
        }
        for path, is_pushed, size in zip(paths, pushed, known, strict=True)
    ]  # fmt: skip


def nghttp(har: list[dict[str, Any]]) -> World:
    """A world whose nghttp leaves this HAR file."""

    def program(command: list[str], took_s: float, directory: Path) -> None:
        del command, took_s
        (directory / "page.har").write_text(json.dumps({"log": {"entries": har}}))
        (directory / "stdout").write_text(STATISTICS.format(star="*" if any(each["comment"] for each in har) else " "))

    return World(programs={"nghttp": program})


def outcome(workload: Push, har: list[dict[str, Any]], arm: Arm = H2) -> Result:
    block = Block(Condition(FAR, workload), 0, (arm,), dict.fromkeys(Direction, 1))
    with fake_path(nghttp(har)) as path:
        return run_trial(path, Trial(block, 0, arm), RULES)


@pytest.mark.parametrize("is_pushed", [True, False])
def test_times_are_those_of_the_whole_page_and_of_the_picture(is_pushed: bool) -> None:
    answer = interpret(entries(False, is_pushed), STATISTICS.format(star="*" if is_pushed else " "))
    assert answer["negotiated"] == {"alpn": "h2"}
    assert answer["metrics"][TOTAL.key] == pytest.approx(0.0085 + 1.26 + 0.003983)
    assert answer["metrics"][OBJECT.key] == pytest.approx(0.003983), "of steps of 10 ms it was 0, 10 or 20 ms"
    assert answer["metrics"]["handshake_s"] == 0.0085
    assert answer["metrics"][PUSHED.key] == is_pushed
    assert [each["path"] for each in answer["objects"]] == [PAGE, PICTURE]


def test_a_program_that_was_killed_gives_no_figures(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    assert Fetch("h2", "10.0.0.1", 443, PAGE, True).answer(tmp_path, 0.0)["metrics"] == {}
    with pytest.raises(ValueError, match="no h3"):
        Fetch("h3", "10.0.0.1", 443, PAGE, True)


def test_a_client_accepts_pushes_only_if_the_picture_is_to_be_pushed() -> None:
    for workload, is_refused in ((ASKED, True), (GIVEN, False)):
        command = Fetch("h2", "10.0.0.1", 443, **workload.asked()).command()
        assert ("--no-push" in command) == is_refused
        assert command[-1] == f"https://10.0.0.1:443{PAGE}"


@pytest.mark.parametrize(
    ("workload", "har", "expected", "reason"),
    [
        (GIVEN, entries(False, True), Outcome.OK, ""),
        (ASKED, entries(False, False), Outcome.OK, ""),
        (GIVEN, entries(False, False), Outcome.LAB_ERROR, "pushed were no objects instead of"),
        (ASKED, entries(False, True), Outcome.LAB_ERROR, "instead of none"),
        (GIVEN, entries(False), Outcome.FAILED, f"{PICTURE} did not arrive"),
        (ASKED, entries(False, False, status=404), Outcome.FAILED, f"{PAGE} and {PICTURE} did not arrive"),
        (GIVEN, entries(False, True, sizes=(size_of(PAGE) or 0, 289_999)), Outcome.WRONG_CONTENT, "289999 bytes"),
    ],
)
def test_a_trial_counts_only_if_the_picture_came_in_the_way_that_was_asked_for(
    workload: Push, har: list[dict[str, Any]], expected: Outcome, reason: str
) -> None:
    result = outcome(workload, har)
    assert result.outcome is expected, result.reason
    assert reason in result.reason


def test_the_arms_of_a_matrix_differ_in_who_starts_the_picture(tmp_path: Path) -> None:
    matrix = load(ARMS, tmp_path)
    pushed, requested = matrix.arms
    (condition,) = matrix.conditions
    assert [arm.workload(condition.workload).asked()["pushed"] for arm in (pushed, requested)] == [True, False]
    assert {arm.server for arm in matrix.arms} == {SERVERS["nghttpd"]}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("nghttpd, delivery", "caddy, delivery", "caddy cannot serve the workload `file`: it has no server push"),
        ("h2, server: nghttpd}", "h2, server: nghttp}", "did you mean `nghttpd`?"),
        ("delivery: pushed", "delivery: push", "did you mean `pushed`?"),
        ("h2-requested: {protocol: h2,", "h1-requested: {protocol: h1,", "nghttpd does not speak h1"),
        ("arms:", "protocols: [h3]\narms:", "the workload `file`, which is of kind push, has no h3"),
        ("size: 290kB", "size: 10B", "10 bytes are too few for a picture"),
        ("size: 290kB", "size: 290kB, delivery: pushed", "nginx cannot serve the workload `file`"),
    ],
)  # fmt: skip
def test_what_cannot_be_pushed_is_refused(before: str, after: str, message: str, tmp_path: Path) -> None:
    text = ARMS.replace(before, after)
    if message.startswith("nginx"):
        text = text.replace("arms:", "protocols: [h2]\narms:")
    assert message in str(refusal(text, tmp_path))


def test_quic_congestion_of_a_server_without_quic_is_refused_by_its_protocol(tmp_path: Path) -> None:
    text = ARMS.replace("h2-requested: {protocol: h2,", "h3-requested: {protocol: h3, congestion: cubic,")
    assert "nghttpd does not speak h3" in str(refusal(text, tmp_path))
