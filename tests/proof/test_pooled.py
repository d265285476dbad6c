"""All trials of a run together: what they find, what they leave alone, and what becomes of the verdicts then."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from functools import cache

import pytest

from headwind.arm import H3, PLAIN, Protocol
from headwind.model import Outcome, Proof, Trial
from headwind.proof.evidence import Evidence
from headwind.proof.expectation import stationary_loss
from headwind.proof.pooled import FALSE_ALARM_PER_RUN, Pooled, pooled
from headwind.proof.tally import Seen, Tally, ratio_p_value
from headwind.proof.trial_checks import prove
from headwind.report.certainty import Certainty, certainty_of
from headwind.report.formats.markdown import summary_md
from headwind.report.formats.verdicts_json import verdicts_json
from headwind.report.html.page import render
from headwind.report.impairment_checks import truth_table
from headwind.report.times_table import notices
from headwind.report.trust import doubts
from headwind.run.codec import State, Status
from headwind.run.data import RunData
from headwind.verdicts.assumptions import WarningKind
from headwind.workloads.h2load import TOTAL
from impair.profile import Delay, Direction, Duplicate, GilbertElliott, Link, Loss, Profile, Rate
from tests.fake import ENVIRONMENT, STARTED_AT, example_matrix, metrics_of, ok, trials_of, typical_evidence

LOSS = Profile("loss", downlink=Link(loss=Loss(0.02)))
PACKETS = 10_000  # of one typical trial in each direction
Given = dict[Protocol, Profile]


def down(name: str, **parts: object) -> Profile:
    return Profile(name, downlink=Link(**parts))  # type: ignore[arg-type]


@cache
def proof_of(asked: Profile, given: Profile) -> Proof:
    """The proof of a trial that was read back as asked and did what was given."""
    data, configured = typical_evidence(given).to_json(), typical_evidence(asked).to_json()["configured"]
    for moment in (data["before"], data["after"]):
        for direction, read in configured.items():
            moment["router"][direction] |= {"link": read["link"]}
    return prove(asked, Evidence.from_json({**data, "configured": configured}))


def a_run(*asked: Profile, given: Given | None = None, blocks: int = 4) -> RunData:
    """Every trial passes by itself. The first profile's network was the `given` one, the others' the asked one."""
    matrix = example_matrix(*asked, repeat=blocks)

    def seen(trial: Trial) -> Profile:
        return (given or {}).get(trial.protocol, trial.profile) if trial.profile == asked[0] else trial.profile

    results = []
    for trial in trials_of(matrix):
        time_s = {Protocol.H1: 1.0, Protocol.H2: 1.001, Protocol.H3: 0.5}[trial.protocol]
        time_s *= random.Random(trial.id).uniform(0.99, 1.01)
        proof = proof_of(trial.profile, seen(trial))
        assert proof.passed, [check for check in proof.checks if not check.passed]
        results.append(ok(trial, time_s, proof=proof, metrics=metrics_of(trial.block.condition.workload, time_s)))
    return RunData("run", matrix, tuple(results), ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT + 60))


def failed(data: RunData) -> list[Pooled]:
    return [question for question in data.pooled if not question.passed]


def test_2_percent_asked_and_2_2_given_over_40000_packets_is_a_finding() -> None:
    data = a_run(LOSS, given={Protocol.H3: down("loss", loss=Loss(0.022))})
    (finding,) = (question for question in failed(data) if not question.between)
    assert (finding.arms, finding.count, finding.direction) == ((H3,), 40_000, Direction.DOWNLINK)
    assert finding.measured == pytest.approx(0.022)
    assert finding.text.startswith("downlink loss 2.20 % instead of 2 % (h3: 40,000 packets, detection limit ± 0.")


def test_what_is_wrong_for_every_arm_is_found_in_all_of_them_and_not_between_them() -> None:
    wrong = down("loss", loss=Loss(0.022))
    found = failed(a_run(LOSS, given=dict.fromkeys(Protocol, wrong)))
    assert {question.arms for question in found} == {*((arm,) for arm in PLAIN), PLAIN}
    assert not any(question.between for question in found)


def test_arms_that_each_look_right_may_still_have_met_different_networks() -> None:
    given = {Protocol.H1: down("loss", loss=Loss(0.0184)), Protocol.H3: down("loss", loss=Loss(0.0216))}
    found = failed(a_run(LOSS, given=given, blocks=4))
    assert [question.between for question in found] == [True]
    assert "downlink loss differs by 0.320 % between h1, h2, h3" in found[0].text


@pytest.mark.parametrize(
    ("asked", "given", "quantity"),
    [
        (down("x", delay=Delay(0.1, 0.01)), down("x", delay=Delay(0.103, 0.01)), "delay_s"),
        (down("x", delay=Delay(0.1)), down("x", delay=Delay(0.0975)), "delay_s"),
        (down("x", duplicate=Duplicate(0.7)), down("x", duplicate=Duplicate(0.72)), "duplicate_ratio"),
        (down("x", loss=GilbertElliott(0.01, 0.3)), down("x", loss=GilbertElliott(0.012, 0.3)), "loss_ratio"),
    ],
    ids=["late", "early", "duplicate", "bursts"],
)
def test_every_quantity_has_its_finding(asked: Profile, given: Profile, quantity: str) -> None:
    assert failed(a_run(asked, blocks=12)) == []
    found = failed(a_run(asked, given=dict.fromkeys(Protocol, given), blocks=12))
    assert {question.quantity for question in found} == {quantity}


@pytest.mark.parametrize(("share", "fails"), [(1.0, False), (0.985, False), (0.97, True), (1.03, True)])
def test_a_rate_is_off_when_most_trains_of_a_run_are(share: float, fails: bool) -> None:
    data = a_run(down("slow", rate=Rate(20_000_000)), blocks=1)
    (result, *_) = data.results
    checks = tuple(replace(check, measured=20e6 * share) if check.quantity == "rate_bps" else check
                   for check in result.proof.checks)  # fmt: skip
    results = [
        replace(result, trial=trial, proof=replace(result.proof, checks=checks))
        for trial in trials_of(replace(data.matrix, repeat=example_matrix(repeat=12).repeat))
    ]
    assert any(not question.passed for question in pooled(data.matrix, map(Seen.of, results))) is fails


def test_few_trains_can_tell_nothing_and_say_so() -> None:
    data = a_run(down("slow", rate=Rate(20_000_000)), blocks=2)
    result = data.results[0]
    checks = tuple(replace(check, measured=19.1e6) if check.quantity == "rate_bps" else check
                   for check in result.proof.checks)  # fmt: skip
    results = tuple(replace(each, proof=replace(result.proof, checks=checks)) for each in data.results)
    assert failed(replace(data, results=results)) == []
    page = render(replace(data, results=results), STARTED_AT)
    assert "trials: too few" in page
    assert not re.search(r"\d trials in \d+ trials", page)


def test_one_late_trial_is_no_finding_and_few_trials_cannot_tell() -> None:
    asked, late = down("far", delay=Delay(0.02)), down("far", delay=Delay(0.0225))
    few = a_run(asked, given={Protocol.H1: late}, blocks=2)
    assert failed(few) == []
    page = render(few, STARTED_AT)
    assert "too few trials" in page
    assert "no useful detection limit" in page
    many, moment = a_run(asked, blocks=12), a_run(asked, given={Protocol.H1: late}, blocks=12).results[0]
    results = tuple(moment if result.trial.id == moment.trial.id else result for result in many.results)
    assert failed(replace(many, results=results)) == []
    assert failed(a_run(asked, given={Protocol.H1: late}, blocks=12)) != []


def test_trials_that_are_no_data_do_not_count() -> None:
    wrong = {Protocol.H3: down("loss", loss=Loss(0.022))}
    data = a_run(LOSS, given=wrong)
    results = tuple(
        replace(result, outcome=Outcome.INVALID) if result.trial.protocol is Protocol.H3 else result
        for result in data.results
    )
    assert failed(replace(data, results=results)) == []


@pytest.mark.parametrize("chain", [GilbertElliott(0.02, 0.3), GilbertElliott(0.01, 0.1), GilbertElliott(0.05, 0.95)])
def test_an_honest_network_is_seldom_accused_whatever_its_bursts(chain: GilbertElliott) -> None:
    rng, runs, packets, level, alarms = random.Random(7), 1000, 1000, 0.02, 0
    ratio, inflation = stationary_loss(chain)
    for _ in range(runs):
        bad, lost = False, 0
        for _ in range(packets):
            bad = rng.random() >= chain.r if bad else rng.random() < chain.p
            lost += bad
        alarms += ratio_p_value(Tally(lost, packets, 1.0, 1), ratio, inflation, 1) < level
    assert alarms <= 1.5 * level * runs


def test_a_question_that_the_network_passed_does_not_read_as_a_fault() -> None:
    """`delay 4.36 ms instead of 4 ms (20 probes, detection limit ± inf s)` stood at a check that had passed."""
    question = next(each for each in a_run(LOSS).pooled if not each.between)
    assert question.text.startswith("downlink loss 2.00 % as requested (2 %) (h1: 40,000 packets, detection limit ± 0.")
    assert replace(question, resolution=math.inf).text.endswith("(h1: 40,000 packets, too few)")


def test_the_questions_of_a_run_share_one_chance_of_a_false_alarm() -> None:
    few, many = a_run(LOSS), a_run(LOSS, *(down(f"loss{n}", loss=Loss(0.1)) for n in range(12)))
    assert max(q.resolution for q in few.pooled) < max(
        q.resolution for q in many.pooled if q.condition.id == "loss/article"
    )
    honest = [question.p_value for question in many.pooled]
    assert min(honest) > FALSE_ALARM_PER_RUN / len(honest)


WRONG = {Protocol.H3: down("loss", loss=Loss(0.022))}
OTHER = down("other", loss=Loss(0.05))


def test_verdicts_over_another_network_are_neither_decided_nor_counted_and_say_why() -> None:
    good, bad = (a_run(LOSS, OTHER, given=given, blocks=20).judgement for given in (None, WRONG))
    for before, after in zip(good.compared, bad.compared, strict=True):
        assert before.is_decided
        assert after.findings[TOTAL].verdict is before.findings[TOTAL].verdict
        concerned = after.condition.id == "loss/article"
        assert (after.is_decided, after.network_held) == (not concerned, not concerned)
        assert any(caveat.kind is WarningKind.NETWORK for caveat in after.warnings) is concerned
        assert not (concerned and any(finding.survives for finding in after.findings.values()))
    assert doubts(bad)[0].kind is WarningKind.NETWORK
    words = {line.condition.id: certainty_of(line.primary) for line in bad.compared}
    assert words["loss/article"] in (Certainty.LIKELY, Certainty.UNCLEAR)


def test_the_finding_stands_first_wherever_the_run_is_told() -> None:
    data = a_run(LOSS, OTHER, given=WRONG, blocks=20)
    told = "loss did not have the requested network, so nothing is sure: downlink loss 2.20 % instead of 2 %"
    first = notices(data)[0]
    assert first.text.startswith(told)
    assert set(first.trials) == {result.trial.id for result in data.results if "loss/article" in result.trial.id}
    document = verdicts_json(data, data.judgement)
    assert document["warnings"][0]["message"].startswith(told)
    assert [entry["condition"] for entry in document["network"] if not entry["passed"]] == ["loss/article"] * 2
    assert told.partition(":")[0] in summary_md(data, data.judgement, "report.html")
    page = render(data, STARTED_AT)
    assert told in page
    assert page.index(told) < page.index('id="truth"')


def test_the_truth_table_says_what_so_many_packets_can_tell() -> None:
    data = a_run(LOSS)
    (truth,) = (line for line in truth_table(data, data.matrix.conditions[0]) if line.quantity == "loss_ratio")
    assert truth.whole
    assert (truth.whole.count, truth.findings) == (3 * 4 * PACKETS, [])
    assert truth.tolerance
    assert truth.whole.resolution < truth.tolerance / 2
    page = render(data, STARTED_AT)
    assert "120,000 packets: detection limit ± 0." in page
    assert "no useful detection limit" not in page
