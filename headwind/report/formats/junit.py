"""junit.xml, for CI systems: the validity of a run's figures.

A test suite is a condition, a test case an arm of it or a self-check:

- an arm passes if its network was proven in every trial. It fails if the network of a trial was not, is an error if a
  trial remains a lab error, and is skipped if no trial was completed;
- a self-check fails if the lab detected a difference that does not exist, or missed one that does, and is skipped while
  it is open;
- the first suite has the run itself: an error if it was interrupted or failed, a failure with the reasons if its exit
  status is 1 although it ended by itself, skipped while it is in progress.

The behaviour of a protocol is data and not a fault: trials that failed, timed out or used another protocol are counted
in the case's output and fail no case. `lab.py compare` reports whether a protocol got worse between runs. `clean`
leaves of any text only what XML 1.0 can hold (section 2.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from headwind.arm import Arm
from headwind.format import arm_name, clean, counted
from headwind.model import DATA_OUTCOMES, Condition, Outcome, Result
from headwind.report.row_text import headline
from headwind.report.verdicts import check_text
from headwind.run.codec import State
from headwind.run.data import RunData, latest_of, outcome_text, was_stopped
from headwind.run.journal import STOPPED_WITH_RUN
from headwind.run.shortfall import shortfalls
from headwind.verdicts.findings import SelfCheckFinding
from headwind.verdicts.judgement import Judgement

ERROR, FAILURE, SKIPPED = "error", "failure", "skipped"
NAMED = 20  # trials in the text of a failure; the others are counted


def junit_xml(data: RunData, verdicts: Judgement) -> bytes:
    """The whole file, as UTF-8."""
    root = ET.Element("testsuites", name=clean(f"Headwind {data.id}"))
    _run(root, data)
    for condition in data.matrix.conditions:
        suite = _suite(root, condition.id, data)
        for arm in data.matrix.arms_in(condition):
            _arm(suite, data, condition, arm)
        _together(suite, data, condition)
        for check in verdicts.checks:
            if check.finding.condition == condition:
                _self_check(suite, check)
    for suite in root:
        _count(suite, [suite])
    _count(root, list(root))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(root: ET.Element, name: str, data: RunData) -> ET.Element:
    started = datetime.fromtimestamp(data.status.started_at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return ET.SubElement(root, "testsuite", name=clean(name), timestamp=started)


def _case(suite: ET.Element, name: str, took_s: float = 0.0) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=suite.get("name", ""), name=name, time=f"{took_s:.3f}")


def _mark(case: ET.Element, kind: str, message: str, lines: Sequence[str] = ()) -> None:
    """Mark a case as failure, error or skipped; without a mark it passes."""
    ET.SubElement(case, kind, message=clean(message)).text = clean("\n".join(lines)) or None


def _run(root: ET.Element, data: RunData) -> None:
    case = _case(_suite(root, "run", data), "the run finished")
    state = data.status.state
    if state is State.RUNNING:
        _mark(case, SKIPPED, headline(data))
    elif state is not State.FINISHED:
        _mark(case, ERROR, headline(data))
    elif reasons := shortfalls(data):
        _mark(case, FAILURE, "; ".join(reasons), reasons)
    ET.SubElement(case, "system-out").text = clean(headline(data))


def _arm(suite: ET.Element, data: RunData, condition: Condition, arm: Arm) -> None:
    attempts = data.attempts(condition, arm)
    results = latest_of(attempts)
    took_s = sum(sum(result.phases_s.values()) for result in attempts)
    case = _case(suite, f"{arm.name}: the network was the requested one", took_s)
    own = [result for result in results if not was_stopped(result)]  # the case of the run reports the others
    broken, unproven, never = (
        [result for result in own if result.outcome is outcome]
        for outcome in (Outcome.LAB_ERROR, Outcome.INVALID, Outcome.SKIPPED)
    )
    if broken:
        _mark(case, ERROR, f"lab error in {len(broken)} of {counted(len(results), 'trial')}", _lines(broken + unproven))
    elif unproven:
        message = f"the network of {len(unproven)} of {counted(len(results), 'trial')} was not verified"
        _mark(case, FAILURE, message, _lines(unproven))
    elif len(never) == len(own):
        _mark(case, SKIPPED, "no trial was completed")
    tally = Counter(map(outcome_text, results))
    tally_text = ", ".join(f"{tally[word]} {word}" for word in (*Outcome, STOPPED_WITH_RUN) if tally[word])
    unfinished = [result for result in results if result.outcome in DATA_OUTCOMES - {Outcome.OK}]
    lines = [f"{arm_name(arm)}: {tally_text or 'no trial ran'}", *_lines(unfinished)]
    ET.SubElement(case, "system-out").text = clean("\n".join(lines))


def _together(suite: ET.Element, data: RunData, condition: Condition) -> None:
    """Add a case for deviations of the network that single trials are too short to show (headwind/proof/pooled.py)."""
    questions = [question for question in data.pooled if question.condition == condition]
    if questions:
        case = _case(suite, "all trials together: the network was the requested one")
        if doubts := [question.text for question in questions if not question.passed]:
            _mark(case, FAILURE, doubts[0], doubts)


def _lines(results: Sequence[Result]) -> list[str]:
    lines = [f"{result.trial.id}: {result.outcome.value}: {result.reason}" for result in results[:NAMED]]
    return lines + ([f"and {len(results) - NAMED} more"] if len(results) > NAMED else [])


def _self_check(suite: ET.Element, check: SelfCheckFinding) -> None:
    case = _case(suite, f"self-check: {check.finding.pair}")
    if check.passed is not True:
        _mark(case, SKIPPED if check.passed is None else FAILURE, check.message)
    ET.SubElement(case, "system-out").text = clean(check_text(check, check.finding.condition.id))


def _count(element: ET.Element, suites: Sequence[ET.Element]) -> None:
    """Set an element's attributes to the sums of its cases."""
    cases = [case for suite in suites for case in suite.findall("testcase")]
    element.set("tests", str(len(cases)))
    for attribute, kind in (("failures", FAILURE), ("errors", ERROR), ("skipped", SKIPPED)):
        element.set(attribute, str(sum(case.find(kind) is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")
