"""junit.xml tells a CI system whether the figures can be believed, and calls nothing a fault that is data."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from headwind.arm import H2, H3, Arm, Role
from headwind.format import clean
from headwind.model import Outcome
from headwind.proof.pooled import Pooled
from headwind.report.formats.junit import junit_xml
from headwind.run.codec import State, Status
from headwind.run.data import RunData
from headwind.run.journal import STOPPED
from headwind.run.shortfall import FAULTS, shortfalls
from impair.profile import Direction
from tests.fake import STARTED_AT, checked_matrix, ok, trials_of
from tests.golden.runs import HOSTILE, RUNS, Golden, everything

NETWORK = "the network was the requested one"


def root_of(data: RunData) -> ET.Element:
    return ET.fromstring(junit_xml(data, data.judgement))


def state(case: ET.Element) -> str:
    """`passed`, or what the case has instead."""
    found = [part.tag for part in case if part.tag in ("failure", "error", "skipped")]
    assert len(found) <= 1, "CI systems want one"
    return found[0] if found else "passed"


def cases(root: ET.Element) -> dict[tuple[str, str], ET.Element]:
    """By suite and name, each of which is there once."""
    listed = [
        ((suite.get("name", ""), case.get("name", "")), case) for suite in root for case in suite.iter("testcase")
    ]
    assert len(dict(listed)) == len(listed)
    return dict(listed)


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_a_suite_for_each_condition_and_sums_that_are_right(name: str) -> None:
    data = RUNS[name]().data(name)
    root = root_of(data)
    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == ["run", *(clean(item.id) for item in data.matrix.conditions)]
    for element in (root, *root):
        states = [state(case) for case in element.iter("testcase")]
        assert element.get("tests") == str(len(states))
        for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert element.get(attribute) == str(states.count(kind))
        assert float(element.get("time", "")) >= 0
    for (suite, _), case in cases(root).items():
        assert case.get("classname") == suite


def test_a_network_that_was_not_proven_is_a_failure_and_what_protocols_do_is_not() -> None:
    found = cases(root_of(RUNS["mixed"]().data("mixed")))
    assert state(found.pop(("run", "the run finished"))) == "failure", "a condition lacks a block"
    faults = {place: case for place, case in found.items() if state(case) != "passed"}
    ((place, case),) = faults.items()
    assert place == ("loss/article", f"h1: {NETWORK}")
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == "the network of 1 of 3 trials was not verified"
    assert failure.text == "loss/article#2/h1: invalid: impairment not verified: loss"
    timeouts = found["loss-corrupt/article", f"h1: {NETWORK}"].findtext("system-out") or ""
    assert "1 ok, 2 timeout" in timeouts
    assert "loss-corrupt/article#0/h1: timeout: stopped after 60.0 s" in timeouts


@pytest.mark.parametrize("passed", [True, False])
def test_a_network_that_only_all_trials_together_show_to_be_another_one_is_a_failure(passed: bool) -> None:
    data = RUNS["mixed"]().data("mixed")
    condition = data.matrix.conditions[0]
    question = Pooled(
        condition, Direction.DOWNLINK, "loss_ratio", (H3,), False, 0.02, 0.022, 40_000, "packets", 1e-6,
        0.0007, 0.0, passed=passed,
    )  # fmt: skip
    vars(data)["pooled"] = (question,)
    case = cases(root_of(data))[clean(condition.id), "all trials together: the network was the requested one"]
    failure = case.find("failure")
    assert (failure is None) is passed
    assert passed or question.text in (case.findtext("failure") or "")


def test_what_the_lab_broke_for_good_is_an_error() -> None:
    states = [state(case) for case in cases(root_of(RUNS["every-impairment"]().data("x"))).values()]
    assert states == ["failure", "error", "error", "error"]


@pytest.mark.parametrize(
    ("ended", "expected"),
    [(State.FINISHED, "passed"), (State.RUNNING, "skipped"), (State.INTERRUPTED, "error"), (State.FAILED, "error")],
)
def test_a_run_that_did_not_go_to_its_end_is_an_error(ended: State, expected: str) -> None:
    data = RUNS["small"]().data("small")
    told = root_of(replace(data, status=Status(ended, "because", STARTED_AT, None)))
    assert state(cases(told)["run", "the run finished"]) == expected


def test_a_run_that_ended_with_status_1_fails_with_the_reasons_that_the_lab_printed() -> None:
    """Every case was green although the lab had printed why the run was not good enough."""
    data = replace(RUNS["small"]().data("small"), environment={FAULTS: ["testbed 1 was slow", "a capture failed"]})
    failure = cases(root_of(data))["run", "the run finished"].find("failure")
    assert failure is not None
    assert (failure.text or "").splitlines() == shortfalls(data) == ["testbed 1 was slow", "a capture failed"]
    assert failure.get("message") == "testbed 1 was slow; a capture failed"


@pytest.mark.parametrize("reason", HOSTILE)
def test_a_reason_is_text_that_xml_can_hold(reason: str) -> None:
    data = RUNS["small"]().data("small")
    told = root_of(replace(data, status=Status(State.FAILED, reason, STARTED_AT, None)))
    error = cases(told)["run", "the run finished"].find("error")
    assert error is not None
    assert clean(reason) in (error.get("message") or "")


@pytest.mark.parametrize("skipped", [False, True])
def test_what_never_ran_is_skipped(skipped: bool) -> None:
    golden = RUNS["one-trial"]()
    results = tuple(replace(result, outcome=Outcome.SKIPPED, reason="no time") for result in golden.results)
    data = replace(golden, results=results if skipped else ()).data("x")
    assert state(cases(root_of(data))["clean/article", f"h3: {NETWORK}"]) == "skipped"


def test_an_arm_of_which_every_trial_was_cut_short_or_never_ran_is_skipped() -> None:
    """Ctrl-C in the first block of a network made a pass of an arm whose network nobody had checked."""
    golden = RUNS["small"]()
    first, *others = golden.results
    stopped = replace(first, outcome=Outcome.LAB_ERROR, reason=STOPPED, proof=replace(first.proof, checks=()))
    skipped = replace(next(each for each in others if each.trial.arm == first.trial.arm), outcome=Outcome.SKIPPED)
    place = first.trial.block.condition.id, f"{first.trial.arm}: {NETWORK}"
    for results in ((stopped,), (stopped, skipped)):
        case = cases(root_of(replace(golden, results=results).data("x")))[place]
        assert state(case) == "skipped"
        assert "1 stopped with the run" in (case.findtext("system-out") or "")
    assert state(cases(root_of(replace(golden, results=(stopped, *others)).data("x")))[place]) == "passed"


def test_self_checks_fail_pass_or_are_open() -> None:
    matrix = checked_matrix()
    slow: dict[Arm, float] = {H2.twin(Role.AGAIN): 1.0, H2.twin(Role.SLOWER): 1.0}
    data = Golden(matrix, tuple(ok(trial, slow.get(trial.arm, 1.0)) for trial in trials_of(matrix))).data("x")
    told = {place: state(case) for place, case in cases(root_of(data)).items() if place[1].startswith("self-check")}
    assert told == {
        ("clean/article", "self-check: h2-again against h2"): "passed",
        ("delay/article", "self-check: h2-again against h2"): "passed",
        ("delay/article", "self-check: h2-slower against h2"): "failure",
    }
    started = cases(root_of(everything()))
    assert state(started["clean/article", "self-check: h2-again against h2"]) == "skipped"
    assert ("delay/article", f"h2-slower: {NETWORK}") in started, "a twin is an arm like any other"
