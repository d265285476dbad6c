"""The kinds `objects` and `transfer`: what they ask of the client for each protocol, and what they tell of a trial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwind.arm import H1, H2, H3, PLAIN, Arm, Overrides, Protocol
from headwind.metric import Competing, Use
from headwind.model import Block, Condition, Outcome, Repetition, Trial
from headwind.plan.block_order import plan_blocks
from headwind.plan.forecast import guess_s
from headwind.report.files import write_files
from headwind.report.html.page import REPORT
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.run.frames import open_run
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import DONE, TOTAL
from headwind.workloads.objects import Objects
from headwind.workloads.streams import Streams
from headwind.workloads.transfer import FIRST_BYTE, GOODPUT, HANDSHAKE, Transfer
from impair.profile import Delay, Direction, Link, Profile
from servers import objects
from tests.fake import recorded
from tests.fake_testbed import RULES, Sabotage, World, fake_path
from tests.matrix_files import MINIMAL, load, refusal

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
PICTURES = Objects("pictures", 60, 0, 0, path="/bytes/10000")
LARGE = Transfer("large", 1, 1, 1, path="/bytes/1000000")
WORKLOAD = "{requests: 10, connections: 2}"


def trial_of(workload: Objects | Transfer, arm: Arm = H3) -> Trial:
    return Trial(Block(Condition(FAR, workload), 0, (arm,), dict.fromkeys(Direction, 1)), 0, arm)


def test_keys_become_workloads_and_stay_themselves_in_a_run_folder(tmp_path: Path) -> None:
    assert WORKLOAD in MINIMAL
    for written, workload in (
        ("{kind: objects, requests: 60, size: 10kB}", PICTURES),
        ("{kind: objects, requests: 60, size: 10000B, connections: 3}", replace(PICTURES, connections=3)),
        ("{kind: transfer, size: 1MB}", LARGE),
        ("{kind: transfer, size: 1MB, server_delay: 0.03s}", replace(LARGE, server_delay_s=0.03)),
        ("{kind: transfer, size: 1MB, competing: {over: h2}}", replace(LARGE, competing=Competing("h2"))),
        (
            "{kind: objects, requests: 60, size: 10kB, competing: {over: h1, flows: 3}}",
            replace(PICTURES, competing=Competing("h1", 3)),
        ),
        ("{kind: objects, requests: 60, size: 10kB, server_delay: 5s}", replace(PICTURES, server_delay_s=5.0)),
        ("{kind: transfer, size: 1MB, workers: 2}", replace(LARGE, workers=2)),
        ("{kind: transfer, size: 1MB, congestion: {tcp: reno}}", replace(LARGE, tcp_congestion="reno")),
        (
            "{kind: transfer, size: 1MB, congestion: cubic}",
            replace(LARGE, tcp_congestion="cubic", quic_congestion="cubic"),
        ),
        ("{kind: streams, streams: 20, size: 10kB}", Streams("streams", 20, 0, 0, path="/bytes/10000")),
        ("{kind: streams, size: 1MB}", Streams("streams", 1, 0, 0, path="/bytes/1000000")),
        ("{kind: transfer, size: 1MiB}", replace(LARGE, path=f"/bytes/{1 << 20}")),
    ):
        matrix = load(MINIMAL.replace(WORKLOAD, written), tmp_path)
        (found,) = {condition.workload for condition in matrix.conditions}
        assert found == replace(workload, name=found.name)
        assert type(found) is type(workload)
        again = matrix_from_json(matrix_to_json(matrix))
        assert again.conditions == matrix.conditions


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{kind: objects, requests: 60}", "`size` is missing"),
        ("{kind: objects, requests: 60, size: 10}", "`10` has no unit"),
        ("{kind: objects, requests: 60, size: 10KB}", "`KB` is not a unit of it"),
        ("{kind: objects, requests: 60, size: 0B}", "`0B` is out of range"),
        ("{kind: objects, requests: 60, size: 65MiB}", "`65MiB` is out of range"),
        ("{kind: objects, requests: 60, size: 1.0005kB}", "`1.0005kB` is not a whole number of bytes"),
        ("{kind: objects, requests: 1025, size: 1kB}", "1025 is out of range"),
        ("{kind: objects, requests: 2, size: 1kB, connections: 3}", "3 connections are more than the 2 objects"),
        ("{kind: objects, requests: 2, size: 1kB, streams: 3}", "unknown key `streams`"),
        ("{kind: transfer, size: 1kB, requests: 2}", "unknown key `requests`"),
        ("{kind: transfer, size: -1kB}", "`-1kB` is negative"),
        ("{kind: [transfer], size: 1kB}", "there is a list where one value is expected"),
        ("{kind: Transfer, size: 1kB}", "`Transfer` is not a kind of workload"),
        ("[transfer]", "this must be a mapping"),
        ("{requests: 1, connections: 1, workers: 0}", "0 is out of range"),
        ("{requests: 1, connections: 1, workers: 17}", "17 is out of range"),
        ("{requests: 1, connections: 1, workers: auto}", "`auto` is not a plain number"),
        ("{kind: transfer, size: 1kB, workers: 2.5}", "`2.5` is not a plain number"),
        ("{kind: transfer, size: 1kB, congestion: bbr}", "nginx's QUIC does not support `bbr`"),
        ("{kind: transfer, size: 1kB, congestion: {tcp: brb}}", "`brb` is not a congestion control"),
        ("{kind: transfer, size: 1kB, congestion: {udp: bbr}}", "unknown key `udp`"),
        ("{kind: transfer, size: 1kB, congestion: [bbr]}", "there is a list where one value is expected"),
        ("{kind: transfer, size: 1kB, competing: {over: h3}}", "`h3` is not a protocol over TCP"),
        ("{kind: transfer, size: 1kB, competing: {flows: 2}}", "`over` is missing"),
        ("{kind: transfer, size: 1kB, competing: {over: h2, flows: 17}}", "17 is out of range"),
        ("{kind: transfer, size: 1kB, competing: {over: h2}, server_delay: 9ms}", "downloads with a server_delay"),
        ("{kind: ttfb, competing: {over: h2}}", "unknown key `competing`"),
        ("{kind: transfer, size: 1kB, server_delay: 30}", "`30` has no unit"),
        ("{kind: transfer, size: 1kB, server_delay: 0ms}", "`0ms` is out of range"),
        ("{kind: transfer, size: 1kB, server_delay: 5001ms}", "`5001ms` is out of range"),
        ("{kind: transfer, size: 1kB, server_delay: 1500us}", "`1500us` is not a whole number of milliseconds"),
        ("{kind: transfer, size: 1kB, server_delay: [1ms]}", "there is a list where one value is expected"),
        ("{kind: transfer, size: 1kB, server_dely: 1ms}", "unknown key `server_dely`"),
        ("{requests: 1, connections: 1, size: 1kB}", "unknown key `size`"),
    ],
)
def test_bad_input_is_refused_where_it_stands(tmp_path: Path, written: str, message: str) -> None:
    text = MINIMAL.replace(WORKLOAD, written)
    (complaint,) = refusal(text, tmp_path).complaints
    assert message in complaint.message
    assert text.splitlines()[complaint.line - 1] == next(line for line in text.splitlines() if written in line)


def test_a_server_that_answers_when_the_trial_is_over_is_refused(tmp_path: Path) -> None:
    slow = "{kind: transfer, size: 1kB, server_delay: 2s}"
    text = MINIMAL.replace(WORKLOAD, slow) + "timeout: 2s\n"
    (complaint,) = refusal(text, tmp_path).complaints
    assert "the server would answer when the trial is over" in complaint.message
    line = text.splitlines()[complaint.line - 1]
    assert line[complaint.column - 1 :].startswith("2s"), "where the delay stands"
    assert load(text.replace("timeout: 2s", "timeout: 2.1s"), tmp_path).timeout_s == 2.1


def test_no_arm_has_a_server_delay_of_its_own(tmp_path: Path) -> None:
    arm = "\narms: {h1-slow: {protocol: h1, server_delay: 30ms}}\nprotocols"
    text = MINIMAL.replace(WORKLOAD, "{kind: transfer, size: 1kB}").replace("\nprotocols", arm)
    assert "unknown key `server_delay`" in refusal(text, tmp_path).complaints[0].message


def test_what_an_arm_sets_must_fit_every_workload(tmp_path: Path) -> None:
    arms = "\narms: {h1-two: {protocol: h1, connections: 2}}\nprotocols"
    matrix = load(
        MINIMAL.replace(WORKLOAD, "{kind: objects, requests: 9, size: 1kB}").replace("\nprotocols", arms), tmp_path
    )
    two = next(arm for arm in matrix.arms if arm.name == "h1-two")
    assert two.workload(matrix.conditions[0].workload).at_once() == (2, 1)
    for workload, message in (
        ("{kind: transfer, size: 1kB}", "of kind transfer, has no `connections`"),
        ("{kind: objects, requests: 1, size: 1kB}", "2 connections are more than the 1 object"),
    ):
        (complaint,) = refusal(MINIMAL.replace(WORKLOAD, workload).replace("\nprotocols", arms), tmp_path).complaints
        assert message in complaint.message
    size = arms.replace("connections: 2", "size: 2kB")
    text = MINIMAL.replace(WORKLOAD, "{kind: transfer, size: 1kB}").replace("\nprotocols", size)
    assert "unknown key `size`" in refusal(text, tmp_path).complaints[0].message, "all arms fetch the same"


def test_a_browsers_connections_are_those_of_the_protocol() -> None:
    asked = {arm.name: arm.workload(PICTURES).asked() for arm in PLAIN}
    assert {name: (each["connections"], each["streams"]) for name, each in asked.items()} == {
        "h1": (6, 1), "h2": (1, 60), "h3": (1, 60),
    }  # fmt: skip
    assert {each["requests"] for each in asked.values()} == {60}
    assert H1.workload(replace(PICTURES, requests=4)).asked()["connections"] == 4, "no more than there are objects"
    three = Arm("h2-three", Protocol.H2, overrides=Overrides((("connections", 3),)))
    assert three.workload(PICTURES).at_once() == (3, 20)
    assert H2.workload(LARGE) == LARGE


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_objects_give_the_time_of_the_last_and_keep_each(arm: Arm) -> None:
    world = World()
    with fake_path(world) as path:
        result = run_trial(path, trial_of(PICTURES, arm), RULES)
    assert result.outcome is Outcome.OK, result.reason
    assert world.provided == ["/bytes/10000"]
    assert {TOTAL.key, DONE.key} <= result.metrics.keys()
    assert result.metrics["bytes_body"] == 60 * 10_000
    assert len(result.samples["samples"]["request_took_s"]) == 60


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_server_delay_is_asked_for_and_proven_by_the_servers_log(arm: Arm) -> None:
    world = World()
    slow = replace(PICTURES, server_delay_s=0.03)
    with fake_path(world) as path:
        result = run_trial(path, trial_of(slow, arm), RULES)
        without = run_trial(path, trial_of(PICTURES, arm), RULES)
    assert result.outcome is without.outcome is Outcome.OK, result.reason
    assert [asked["path"] for asked in world.asked] == ["/after/30ms/bytes/10000", "/bytes/10000"]
    assert world.provided[-1] == "/bytes/10000"
    assert world.order.count("server answers") == 1, "without a delay nobody looks at a log"
    (check,) = [check for check in result.proof.checks if check.quantity == "server_delay_s"]
    assert (check.requested, check.measured) == (0.03, 0.03)
    assert result.samples["served"]["waited"] == 60


def test_answers_that_did_not_wait_are_no_proof() -> None:
    with fake_path(World(sabotage=Sabotage(hasty=True))) as path:
        result = run_trial(path, trial_of(replace(LARGE, server_delay_s=0.03)), RULES)
    assert result.outcome is Outcome.INVALID
    assert "server delay" in result.reason


def test_the_workers_of_a_workload_or_an_arm_are_there_and_others_are_no_proof() -> None:
    two = Arm("h3-two", Protocol.H3, overrides=Overrides((("workers", 2),)))
    world = World()
    with fake_path(world) as path:
        for arm, workers in ((two, 2), (H3, 1)):
            result = run_trial(path, trial_of(LARGE, arm), RULES)
            assert result.outcome is Outcome.OK, result.reason
            assert world.workers == workers
        assert run_trial(path, trial_of(replace(LARGE, workers=3)), RULES).outcome is Outcome.OK
        world.sabotage = Sabotage(workers=2)
        broken = run_trial(path, trial_of(LARGE), RULES)
    assert broken.outcome is Outcome.INVALID
    assert "workers" in broken.reason


def test_the_congestion_control_of_a_condition_is_that_of_its_arms_but_for_those_with_their_own() -> None:
    own = Arm("h2-vegas", Protocol.H2, overrides=Overrides(congestion="vegas"))
    world = World()
    with fake_path(world) as path:
        for arm, name in ((H2, "reno"), (own, "vegas"), (H1, "reno")):
            result = run_trial(path, trial_of(replace(LARGE, tcp_congestion="reno"), arm), RULES)
            assert result.outcome is Outcome.OK, result.reason
            assert world.congestion == dict.fromkeys(("client", "server"), name)
            assert result.proof.counters["congestion"]["asked"] == name
        run_trial(path, trial_of(LARGE, H2), RULES)
    assert world.congestion["server"] == "cubic", "the next condition has the usual one again"


def test_a_transfer_tells_of_its_handshake_its_first_byte_and_its_goodput() -> None:
    with fake_path(World()) as path:
        result = run_trial(path, trial_of(LARGE), RULES)
    assert result.outcome is Outcome.OK, result.reason
    columns = result.samples["samples"]
    assert result.metrics[HANDSHAKE.key] == columns["connect_s"][0]
    assert result.metrics[FIRST_BYTE.key] == columns["ttfb_s"][0]
    assert result.metrics[HANDSHAKE.key] < result.metrics[FIRST_BYTE.key] < result.metrics[TOTAL.key]
    assert Transfer.with_use(Use.JUDGED) == (TOTAL,), "the first byte may be of the server's settings"
    assert [each.key for each in Transfer.with_use(Use.COMPARED)] == [FIRST_BYTE.key, GOODPUT.key, HANDSHAKE.key]


def test_a_transfer_that_was_stopped_is_a_bound() -> None:
    with fake_path(World(sabotage=Sabotage(hangs=True))) as path:
        result = run_trial(path, trial_of(LARGE), RULES)
    assert result.outcome is Outcome.TIMEOUT
    assert result.metrics["timeout_s"] == 60.0


def test_a_whole_run_of_both_is_judged_by_their_metrics_and_drawn(tmp_path: Path) -> None:
    conditions = tuple(Condition(Profile("clean"), workload) for workload in (PICTURES, LARGE))
    matrix = replace(load(MINIMAL, tmp_path), arms=PLAIN, conditions=conditions, repeat=Repetition.fixed(12))
    world = World(noise_ratio=0.01)
    with fake_path(world) as path:
        results = [run_trial(path, trial, RULES) for block in plan_blocks(matrix) for trial in block.trials()]
    with recorded(tmp_path, matrix, results) as run:
        write_files(run)
        page, frames = (run.folder / REPORT).read_text(), open_run(run.folder)
    assert {result.outcome for result in results} == {Outcome.OK}
    for told in ("60 objects of 10,000 bytes over 6 new connections (HTTP/1.1) or 1 (HTTP/2 and HTTP/3)",
                 "one object of 1,000,000 bytes over a new connection", "The total time of a transfer is"):  # fmt: skip
        assert told in page
    judged = frames.verdicts[frames.verdicts["judged"]].groupby("workload", observed=True)["metric"].unique()
    assert list(judged["pictures"]) == [TOTAL.key, DONE.key]
    assert list(judged["large"]) == [TOTAL.key]
    row = frames.verdicts.query("workload == 'large' and candidate == 'h3' and baseline == 'h1'").set_index("metric")
    assert row.loc[TOTAL.key, "verdict"] == "faster", "the fake's h3 is faster"
    assert not row.loc[FIRST_BYTE.key, "judged"], "an interval and no verdict"
    assert row.loc[GOODPUT.key, "ratio"] == pytest.approx(row.loc[TOTAL.key, "ratio"]), "more of it is better"


def test_other_bytes_are_found_out() -> None:
    for sabotage in (Sabotage(shortened=True), Sabotage(altered=True)):
        with fake_path(World(sabotage=sabotage)) as path:
            assert run_trial(path, trial_of(LARGE), RULES).outcome is Outcome.WRONG_CONTENT


def test_a_larger_object_is_expected_to_take_longer() -> None:
    times_s = [guess_s(Condition(FAR, replace(LARGE, path=path))) for path in ("/bytes/1", "/bytes/50000000")]
    assert times_s[1] > times_s[0] + 1


def test_objects_of_any_size_are_made_once_and_are_what_the_host_expects(tmp_path: Path) -> None:
    for size_bytes in (1, 15_000, objects.LARGEST_BYTES):
        path = objects.path_of(size_bytes)
        assert objects.is_on_demand(path)
        assert objects.size_of(path) == size_bytes
        assert objects.make(tmp_path, path)
        assert not objects.make(tmp_path, path)
        file = tmp_path / path[1:]
        assert file.stat().st_size == size_bytes
        if size_bytes < objects.LARGEST_BYTES:
            assert file.read_bytes() == objects.content(path)
    assert sorted(file.name for file in (tmp_path / "bytes").iterdir()) == sorted(["1", "15000", "67108864"])


@pytest.mark.parametrize("path", ["/bytes/0", "/bytes/67108865", "/bytes/1e3", "/bytes/../1", "/1k", "/", "/bytes/01"])
def test_nothing_else_is_made(tmp_path: Path, path: str) -> None:
    assert not objects.is_on_demand(path)
    with pytest.raises(ValueError, match="not created on demand"):
        objects.make(tmp_path, path)
    assert list(tmp_path.iterdir()) == []


def test_competing_downloads_over_tcp_are_the_same_for_every_arm(tmp_path: Path) -> None:
    arms = "\narms: {h2-reno: {protocol: h2, congestion: reno}}\nprotocols"
    text = MINIMAL.replace(WORKLOAD, "{kind: transfer, size: 1kB, competing: {over: h2}}")
    assert load(text, tmp_path).conditions
    uneven = text.replace("\nprotocols", arms)
    (complaint,) = refusal(uneven, tmp_path).complaints
    assert "competing downloads over TCP would have cubic or reno" in complaint.message


def test_competing_downloads_over_tcp_do_not_outlive_a_rebinding(tmp_path: Path) -> None:
    text = MINIMAL.replace(WORKLOAD, "{kind: transfer, size: 1MB, competing: {over: h2}}")
    text = text.replace("profiles: {", "profiles: {moved: {at: {1s: {rebind: port}}}, ")
    (complaint,) = refusal(text, tmp_path).complaints
    assert complaint.message == "competing downloads over TCP end when `moved` rebinds the client"
    assert complaint.hint == "list the pairs that you want under `conditions`, without this one"
    assert load(f"{text}conditions: [{{profiles: [clean]}}]\n", tmp_path).conditions
