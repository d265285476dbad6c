"""The first screen: every comparison with its certainty and its numbers, every trial, and what to trust."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import pytest
from rich.console import Console

from headwind.arm import H1, H2, H3, Arm, Overrides, Protocol, Role
from headwind.format import arm_name
from headwind.metric import BUSY, STEAL
from headwind.model import Check, Condition, Outcome, Place, Proof, Repetition, SelfCheck
from headwind.observed import Kind, Observed
from headwind.proof.spans import BAD_SPELLS
from headwind.report import RunData, render
from headwind.report.answer import answer_of, workloads
from headwind.report.cells import Cell, cell_by, cell_of
from headwind.report.certainty import Certainty, known_of, most_apart
from headwind.report.formats.markdown import summary_md
from headwind.report.formats.terminal import print_summary
from headwind.report.html import charts
from headwind.report.html.charts import DotSeries
from headwind.report.html.page import GROUPS
from headwind.report.html.panels import panels
from headwind.report.method import method
from headwind.report.ranking import Standing, is_reference, standings
from headwind.report.times_table import notices
from headwind.report.trust import doubts, noise_floors, trust_line
from headwind.report.verdicts import end, finding_text, lead_text, ratio_text, toward, two
from headwind.settings import Settings, Windows
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Verdict
from headwind.workloads.h2load import H2load
from headwind.workloads.page import Page
from impair.profile import Delay, Direction, Link, Loss, Profile, Rate, Spells
from tests.comparisons import OPEN, OTHERS, finding, line
from tests.drawn import Drawn
from tests.fake import PROFILES, example_matrix, invalid, ok, timeout, trials_of
from tests.golden.runs import RUNS, Golden, shaken, took
from tests.pages import parse, section, words
from tests.report.racing import MORE, raced

BY_TOTAL = "Compared by total time (until the last request is done, so the slowest connection determines it)."


def data_of(name: str) -> RunData:
    return RUNS[name]().data(name)


def test_the_interval_of_the_other_side_is_the_inverse() -> None:
    interval = Interval(-0.2, -0.1, -0.15, 9)
    estimate, low, high = toward(interval, -1).ratios
    assert (1 / (estimate or 0), 1 / high, 1 / low) == pytest.approx(interval.ratios)
    assert toward(interval, 1) == interval


def test_the_reference_comes_first_and_then_the_faster_networks() -> None:
    order = [each.condition.profile.name for each in standings(data_of("small"))]
    assert order == ["clean", "delay", "loss", "loss-duplicate", "loss-corrupt"]
    assert is_reference(standings(data_of("small"))[0].condition)


def test_the_workload_is_told_in_plain_words() -> None:
    (sentence,) = workloads(data_of("small"))
    work = "1,000 requests, each for 612 bytes, over 100 new connections; not a page load."
    assert sentence == f"Workload: {work} {BY_TOTAL}"


def test_a_single_request_is_not_each() -> None:
    text = H2load("one", 1, 1, 1).in_short([{"bytes_body": 612.0, "requests_succeeded": 1.0}], ["h2"])
    assert text == "1 request for 612 bytes over 1 new connection; not a page load"


def test_an_arm_that_fetches_something_larger_does_not_change_what_the_workload_is() -> None:
    large = Arm("h2-large", Protocol.H2, overrides=Overrides((("path", "/64kb"),)))
    matrix = example_matrix(PROFILES[0], repeat=2, arms=(H1, large))
    results = [ok(trial, 1.0) for trial in trials_of(matrix)]
    larger = tuple(
        replace(each, metrics={**each.metrics, "bytes_body": 65536.0 * 1000}) if each.trial.arm == large else each
        for each in results
    )
    (said,) = workloads(Golden(matrix, larger).data("x"))
    assert "1,000 requests, each for 612 bytes" in said


@pytest.mark.parametrize(
    ("browsers", "said"),
    [({}, "Chromium"), ({"h2": "firefox"}, "Chromium and in Firefox"), ({"h1": "firefox", "h2": "firefox"}, "Firefox")],
    ids=str,
)
def test_a_page_is_told_with_the_browsers_that_load_it(browsers: dict[str, str], said: str) -> None:
    arms = [
        replace(arm, overrides=Overrides((("browser", browsers[arm.name]),))) if arm.name in browsers else arm
        for arm in (H1, H2)
    ]
    matrix = replace(example_matrix(PROFILES[0], arms=arms), conditions=(Condition(PROFILES[0], Page("page", 5, 100)),))
    (sentence,) = workloads(Golden(matrix, ()).data("x"))
    assert sentence.startswith(
        f"Workload: a page with 5 pictures of 100 bytes in {said}. Compared by time until the load "
    )


def test_workloads_that_differ_only_in_how_long_the_server_waits_are_one_sentence() -> None:
    waiting = [H2load(f"{ms} ms", 100, 6, 10, server_delay_s=ms / 1000) for ms in (0, 10, 40)]
    other = H2load("other", 50, 6, 10)
    matrix = example_matrix(PROFILES[0])
    for more, said in (
        ([], ""),
        (
            [other],
            f"Workload: other, 50 requests for / over 6 new connections; not a page load. {BY_TOTAL}",
        ),
    ):
        conditions = tuple(Condition(PROFILES[0], workload) for workload in (*waiting, *more))
        assert workloads(Golden(replace(matrix, conditions=conditions), ()).data("x")) == [
            (
                "Workload: 100 requests for / over 6 new connections (0 ms, 10 ms and 40 ms); not a page load. "
                f"{BY_TOTAL} The server waits 0 s to 40 ms with each answer."
            ),
            *([said] if said else []),
        ]


@pytest.mark.parametrize(("lost", "told"), [({H1: 2, H3: 2}, False), ({H1: 1, H3: 2}, False), ({H3: 10}, True)])
def test_an_arm_whose_attempts_were_left_unproven_far_more_often_is_named(lost: dict[Arm, int], *, told: bool) -> None:
    matrix = example_matrix(PROFILES[2], repeat=30)
    good = [ok(trial, 1.0) for trial in trials_of(matrix)]
    first = [invalid(result.trial, 1.0) for arm, count in lost.items()
             for result in [each for each in good if each.trial.arm == arm][:count]]  # fmt: skip
    lost_ids = {result.trial.id for result in first}
    later = [replace(result, attempt=1) if result.trial.id in lost_ids else result for result in good]
    data = Golden(matrix, (*first, *later)).data("x")
    said = re.findall(r"Network checks failed far more often with (.*)", trust_line(data))
    assert bool(said) == told
    if told:
        assert said[0].startswith("HTTP/3 (of all attempts HTTP/3: 10 of 40, ")
    (notice,) = (each for each in notices(data) if "not verified in an earlier attempt" in each.text)
    assert len(notice.trials) == sum(lost.values())
    for arm, count in lost.items():
        assert f"{arm_name(arm)}: {count} of {30 + count}" in notice.text


@pytest.mark.parametrize(("stolen", "told"), [(0.18, True), (0.01, False)])
def test_a_machine_whose_own_host_kept_processors_from_it_is_told(stolen: float, *, told: bool) -> None:
    matrix = example_matrix(PROFILES[0], repeat=9)
    results = [took(trial, 1.0) for trial in trials_of(matrix)]
    robbed = tuple(replace(each, metrics={**each.metrics, STEAL.key: stolen}) for each in results)
    sentence = "18 % CPU steal: so much of the CPUs the hypervisor gave to others."
    assert (sentence in trust_line(Golden(matrix, robbed).data("x"))) == told


@pytest.mark.parametrize(
    ("up_after", "busy", "told"), [(0, 1.3, True), (60, 1.3, True), (90, 1.3, False), (0, 0.3, False)]
)
def test_networks_that_cpus_limit_are_named_if_several_testbeds_were_up(
    up_after: int, busy: float, *, told: bool
) -> None:
    """`HTTP/3 beats HTTP/1.1 1.19x` was sure on `clean` with twelve testbeds, and a near tie with one."""
    matrix = example_matrix(PROFILES[0], repeat=30)
    results = tuple(
        replace(took(trial, 1.0), metrics={"total_s": 1.0, BUSY.key: busy}, place=Place("host"), ended_at=1.0 + number)
        for number, trial in enumerate(trials_of(matrix))
    )
    lives = [{"began_at": 0.0, "ended_at": 100.0}, {"began_at": float(up_after)}, {"host": "other", "began_at": 0.0}]
    data = replace(Golden(matrix, results).data("x"), environment={"host": {"cores": 2}, "testbeds": lives})
    assert ("CPUs limit clean, and several testbeds lengthen its times" in trust_line(data)) == told


def test_warnings_about_comparisons_are_counted() -> None:
    matrix = example_matrix(PROFILES[0], repeat=40)
    results = [
        took(trial, shaken(trial) ** 0.3 * (2 if trial.arm is H3 and trial.block.index >= 20 else 1))
        for trial in trials_of(matrix)
    ]
    counts = {each.kind.value: each.comparisons for each in doubts(Golden(matrix, tuple(results)).data("x").judgement)}
    assert counts["drift of the ratio"] == 2, "those of HTTP/3, which became slower"


def test_the_runs_name_and_date_stand_beside_the_title() -> None:
    (top,) = parse(render(data_of("small"), 0.0)).iter("header")
    title = "HTTP/1.1, HTTP/2 and HTTP/3 on nginx over bad networks"
    assert words(top).startswith(f"{title} \N{MIDDLE DOT} small, 2026-11-21 ")


def test_a_failed_self_check_is_loud_on_the_first_screen() -> None:
    answer = section(parse(render(data_of("checked"), 0.0)), "answer")
    alerts = [words(item) for item in answer.iter("p") if item.get("role") == "alert"]
    assert len(alerts) == 1
    assert "over a network that is 10 % slower, times were less than 2 % longer" in alerts[0]


def the_only(data: RunData) -> Standing:
    (standing,) = standings(data)
    return standing


def cells(standing: Standing) -> dict[str, Cell]:
    return {str(pair): cell for pair, cell in standing.cells.items()}


@pytest.mark.parametrize("name", RUNS)
def test_every_comparison_has_a_number_whatever_its_certainty(name: str) -> None:
    data = data_of(name)
    for standing in standings(data):
        assert len(standing.known) == len(standing.cells)
        for known in standing.known:
            cell = standing.cells[known.line.pair]
            assert known.certainty in (cell.certainty, *(other.certainty for other in cell.others))
            assert re.search(r"\d|no data", cell.text + cell.interval)
            largest = most_apart(known.finding.comparison.interval)
            if known.certainty is Certainty.UNCLEAR and known.has_interval and largest < math.inf:
                ends = re.findall(r" ([\d.]+)x", cell.text)
                assert len(ends) == 2
                assert end(largest) in ends, "the bound needs no inversion to be found"


def test_a_ratio_is_that_of_the_winner() -> None:
    found = cells(the_only(raced({H1: 2, H2: 1, H3: 1}, PROFILES[0])))
    for name in ("h3 against h1", "h2 against h1"):
        assert (found[name].certainty, found[name].winner) == (Certainty.SURE, H1)
        assert re.fullmatch(r"HTTP/1.1 (1\.9\d|2\.0\d)x", found[name].text)
        assert re.fullmatch(r"\[(1\.9\d|2\.0\d), (1\.9\d|2\.0\d)\]", found[name].interval)
    assert found["h3 against h2"].text == "tie"
    assert found["h3 against h2"].winner is None


@pytest.mark.parametrize("speed", [0.98, 1.02])
def test_the_ratio_of_a_tie_is_that_of_the_first_arm_of_its_column(speed: float) -> None:
    found = cells(the_only(raced({H1: 2, H2: 1, H3: speed}, PROFILES[0])))
    shown = "1.02x" if speed > 1 else "0.98x"
    assert str(found["h3 against h2"]).startswith(f"\N{CHECK MARK} tie {shown} [")


def test_a_likely_lead_says_what_keeps_it_from_being_sure() -> None:
    slight = cells(the_only(raced({H1: 1, H2: 1, H3: 1.052}, PROFILES[0])))["h3 against h1"]
    assert (slight.certainty, slight.winner, slight.notes) == (Certainty.LIKELY, H3, ("may lead by less than 5 %",))


def test_a_row_counts_the_blocks_that_its_comparisons_count() -> None:
    """The last block was cut after its first trial: the row once had 8 blocks beside `unclear: only 7 blocks`."""
    matrix = example_matrix(PROFILES[0], repeat=Repetition(least=9, most=60))
    trials = [trial for trial in trials_of(matrix) if trial.block.index < 8][:-2]
    data = Golden(matrix, tuple(ok(trial, 1.0) for trial in trials)).data("x")
    (standing,) = standings(data)
    assert standing.blocks == 7
    assert {str(cell) for cell in standing.cells.values()} == {"unclear: only 7 blocks"}
    out = StringIO()
    print_summary(data, Console(file=out, width=120))
    assert "7 blocks" in out.getvalue()
    assert "\n8 blocks" not in out.getvalue()


def test_below_the_fewest_blocks_there_is_a_count_and_no_ratio() -> None:
    for standing in standings(data_of("small")):
        assert {str(cell) for cell in standing.cells.values()} == {"unclear: only 3 blocks"}
        assert standing.certainty is Certainty.UNCLEAR
    page = words(section(parse(render(data_of("small"), 0.0)), "answer"))
    assert "\N{INFINITY}" not in page
    assert "[0" not in page


def test_who_completes_more_often_says_how_often_both_finished() -> None:
    matrix = example_matrix(PROFILES[3], repeat=12)
    results = [timeout(trial) if trial.arm is H1 else took(trial, 20 * shaken(trial)) for trial in trials_of(matrix)]
    standing = the_only(Golden(matrix, tuple(results)).data("x"))
    first = standing.known[0].line.primary
    assert first.verdict is Verdict.COMPLETES_MORE
    assert lead_text(first) == "finished 12 against 0 of 12"
    assert str(cells(standing)["h3 against h1"]) == "\N{CHECK MARK} HTTP/3 finishes more 12 against 0 of 12"
    assert standing.timeouts == {H1: 12}


def test_who_is_ahead_and_stalled_is_named() -> None:
    matrix = example_matrix(PROFILES[3], repeat=60)
    results = [
        timeout(trial) if (trial.block.index, trial.arm) == (0, H3)
        else took(trial, shaken(trial) ** 0.3 / (2 if trial.arm is H3 else 1))
        for trial in trials_of(matrix)
    ]  # fmt: skip
    standing = the_only(Golden(matrix, tuple(results)).data("x"))
    assert cells(standing)["h3 against h1"].notes == ("unfinished trials: HTTP/3: 1 of 60",)


def test_a_lead_below_the_noise_says_so_and_the_line_on_trust_says_where() -> None:
    matrix = example_matrix(PROFILES[0], repeat=12, arms=(H2, H3), selfcheck=SelfCheck(H2, again=("clean",)))
    results = [
        took(trial, shaken(trial) ** (10 if trial.arm.is_twin else 0.3) / (1.09 if trial.arm is H3 else 1))
        for trial in trials_of(matrix)
    ]
    data = Golden(matrix, tuple(results)).data("x")
    (floor,) = noise_floors(data.judgement.checks).values()
    assert floor > 0.09
    assert any(
        note == f"may be noise: under the noise floor of {two(1 + floor)}x"
        for note in cells(the_only(data))["h3 against h2"].notes
    )
    assert (
        f"Noise floor: with 95 % confidence, HTTP/2 differs from itself by at most {1 + floor:.2f}x in clean; smaller "
        "leads may be noise."
    ) in trust_line(data)


def test_a_slower_network_that_was_not_detected_is_a_self_check_without_a_result() -> None:
    check = SelfCheck(H2, again=("clean",), slower=("clean",))
    matrix = example_matrix(PROFILES[0], repeat=12, arms=(H2, H3), selfcheck=check)
    for slowdown, is_missed in ((1.03, True), (1.1, False)):
        slow = [took(trial, shaken(trial) ** 10 * (slowdown if trial.arm.role is Role.SLOWER else 1))
                for trial in trials_of(matrix)]  # fmt: skip
        line_ = trust_line(Golden(matrix, tuple(slow)).data("x"))
        assert (
            "2 self-checks: 0 passed, 2 inconclusive so far (in clean; more blocks may settle them)." in line_
        ) == is_missed
        assert (
            "2 self-checks: 1 passed, 1 inconclusive so far (in clean; more blocks may settle it)." in line_
        ) != is_missed


@pytest.mark.parametrize(
    ("met", "sentence"),
    [
        (0, "In fades, none of 24 trials met a bad spell: they ended"),
        (4, "In fades, only 4 of 24 trials met a bad spell: the others ended"),
        (12, ""),
    ],
)
def test_bad_spells_that_most_trials_ended_before_are_counted(met: int, sentence: str) -> None:
    fades = Profile("fades", downlink_changes=Spells(2.0, 0.2, Link(loss=Loss(0.5))))
    matrix = example_matrix(fades, repeat=12, arms=(H2, H3))
    seen = Check(Direction.DOWNLINK, "loss_ratio", 0.5, 0.5, 0.4, 0.3, passed=True, span=BAD_SPELLS)
    results = [
        replace(each, proof=replace(each.proof, checks=(*each.proof.checks, *([seen] if number < met else []))))
        for number, each in enumerate(took(trial, 1.0) for trial in trials_of(matrix))
    ]
    data = Golden(matrix, tuple(results)).data("x")
    said = trust_line(data)
    assert (sentence in said) if sentence else ("met a bad spell" not in said)
    first = words(section(parse(render(data, 0.0)), "answer"))
    terminal = " ".join(" ".join(printed(data, 120)).split())
    for seen_there in (first.partition(" Key ")[2], terminal, summary_md(data, data.judgement, "x")):
        assert f"a bad spell began in {met} of 24 trials" in seen_there


@pytest.mark.parametrize(("excluded", "is_milder"), [(12, True), (2, False)])
def test_a_network_whose_changes_excluded_its_trials_is_called_milder(excluded: int, is_milder: bool) -> None:
    """The counted trials were those that met no bad spell, and the reason given was that they ended before one."""
    fades = Profile("fades", downlink_changes=Spells(2.0, 0.2, Link(loss=Loss(0.5))))
    matrix = example_matrix(fades, repeat=12, arms=(H2, H3))
    seen = Check(Direction.DOWNLINK, "change_late_s", 0.0, None, 0.05, 0.002, passed=False)
    every = [took(trial, 1.0) for trial in trials_of(matrix)]
    late = [replace(each, outcome=Outcome.INVALID, reason="late", proof=Proof((seen,))) for each in every[:excluded]]
    lost = [*late, *(replace(each, attempt=1) for each in late)]
    met = [
        replace(each, attempt=2, proof=Proof((*each.proof.checks, replace(seen, passed=True)))) for each in every[:12]
    ]
    data = Golden(matrix, (*lost, *met, *every[12:])).data("x")
    sentence = "of 36 attempts that met a change of the network were excluded, and none of the other 12"
    assert (f"In fades, 24 {sentence}: the compared trials had a milder network." in trust_line(data)) == is_milder
    assert bool(data.network_doubts) == is_milder


def test_each_network_has_its_own_noise() -> None:
    again = SelfCheck(H2, again=("clean", "delay"))
    matrix = example_matrix(*PROFILES[:3], repeat=12, arms=(H2, H3), selfcheck=again)
    spread = {"clean": 10, "delay": 20}
    results = [took(trial, shaken(trial) ** (spread[trial.profile.name] if trial.arm.is_twin else 0.3))
               for trial in trials_of(matrix)]  # fmt: skip
    data = Golden(matrix, tuple(results)).data("x")
    clean, delay = (f"{1 + floor:.2f}x" for floor in noise_floors(data.judgement.checks).values())
    assert clean != delay
    assert (
        f"Noise floor: with 95 % confidence, HTTP/2 differs from itself by at most {clean} in clean and {delay} in "
        "delay (not measured in the other network); smaller leads may be noise."
    ) in trust_line(data)


def test_what_is_only_likely_has_its_reason_by_every_metric() -> None:
    assert str(cell_by(finding(1.02, 1.3))).endswith("may lead by less than 5 %")
    assert str(cell_by(finding(1.048, 1.3))).endswith("may lead by just less than 5 %"), "it reads [1.05, 1.30]"
    assert str(cell_by(finding(1 / 1.3, 1 / 1.048))).endswith("may lead by just less than 5 %")
    assert str(cell_by(finding(1.2, 1.5, survives=False))).endswith("not significant after correction")


def test_a_cell_by_another_metric_than_the_drawn_one_says_so() -> None:
    known = known_of(line(finding(0.8, 1.4), finding(1.2, 1.5, survives=True, metric=OTHERS[0])))
    cell = cell_of(known, {})
    assert (cell.certainty, cell.metric, cell.winner) == (Certainty.UNCLEAR, "", None)
    assert str(cell) == (
        "unclear: HTTP/3 is 1.25x slower to 1.40x faster; "
        "by mean completion time: \N{CHECK MARK} HTTP/3 1.34x [1.20, 1.50]"
    )


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.61, 1.39, "unclear: HTTP/3 is 1.64x slower to 1.39x faster"),
        (0.8, math.inf, "unclear: HTTP/3 is at most 1.25x slower, or faster by any factor"),
        (*OPEN, "unclear: anything is possible"),
    ],
)
def test_an_unclear_cell_has_the_bound_of_each_side(low: float, high: float, said: str) -> None:
    assert str(cell_of(known_of(line(finding(low, high))), {})) == said


def test_a_table_has_the_estimate_of_what_is_unclear_and_the_lead_of_each_side() -> None:
    assert finding_text(finding(0.61, 1.39)) == "unclear: h3 1.09x slower (1.64x slower to 1.39x faster)"
    assert finding_text(finding(0.8, math.inf)) == "unclear: h3 is at most 1.25x slower, or faster by any factor"
    assert finding_text(finding(*OPEN)) == "unclear: anything is possible"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.97, 1.06, "1.03x slower to 1.06x faster"),
        (0, 1.06, "at most 1.06x faster, or slower by any factor"),
        (0.97, math.inf, "at most 1.03x slower, or faster by any factor"),
        (math.inf, math.inf, "faster by any factor"),
        (1.18, math.inf, "at least 1.18x faster"),
        (*OPEN, "anything is possible"),
    ],
)
def test_a_ratio_that_unfinished_trials_leave_open_has_the_bounds_that_are_known(
    low: float, high: float, said: str
) -> None:
    """`at most 1.06x apart` in one table was `anything is possible, because trials did not finish` in the other."""
    ends = math.log(low) if low else -math.inf, math.log(high)
    assert ratio_text(Interval(*ends, None, 12)) == said


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.048, "1.05"), (1.052, "1.052"), (1.0502, "1.0502"), (1.05004, "1.05"), (0.953, "0.953"), (0.951, "0.95"),
     (0.9998, "0.9998"), (1.00004, "1.00"), (1.0, "1.00"), (9.994, "9.99"), (12.3, "12"), (math.inf, "\N{INFINITY}")],
)  # fmt: skip
def test_a_rounded_end_is_on_the_same_side_of_1_and_of_the_margin(ratio: float, shown: str) -> None:
    """`1.01x [0.96, 1.05]` looked like a tie, whose margin is 5 %, and was called open."""
    assert end(ratio) == shown


@pytest.mark.parametrize(("survives", "said"), [(True, "\N{CHECK MARK}"), (False, "likely:")])
def test_a_lead_without_an_estimate_has_its_least_ratio(*, survives: bool, said: str) -> None:
    cell = str(cell_of(known_of(line(finding(1.98, math.inf, survives=survives))), {}))
    assert cell.startswith(f"{said} HTTP/3 at least 1.98x faster")


def test_what_to_trust_is_told_by_what_it_means() -> None:
    verified = "The network of every compared trial was verified."
    unknown = (
        "No self-check ran, so how far a protocol differs from itself is unknown: "
        "add `selfcheck: {protocol: h2, again: [clean]}` to the matrix of a new run."
    )
    assert trust_line(data_of("small")) == f"{verified} {unknown}"
    assert trust_line(data_of("checked")) == "Do not rely on this run: self-checks FAILED in delay."
    floor = "Noise floor: with 95 % confidence, HTTP/2 (bbr) differs from itself by less than 5 % in the network clean "
    floor += "(not measured in the other network)."
    assert trust_line(data_of("arms")) == f"{verified} {floor} The self-check passed."


def test_which_trials_went_wrong_and_with_whom_is_behind_the_link() -> None:
    found = {notice.text.partition(":")[0]: notice for notice in notices(data_of("mixed"))}
    assert [len(found[word].trials) for word in ("invalid", "wrong protocol", "failed", "timed out")] == [1, 1, 1, 3]
    assert found["failed"].text.endswith(" (HTTP/1.1: 0 of 15, HTTP/2: 1 of 15, HTTP/3: 0 of 15)")
    assert found["timed out"].text.endswith(" (HTTP/1.1: 2 of 15, HTTP/2: 1 of 15, HTTP/3: 0 of 15)")
    page = parse(render(data_of("mixed"), 0.0))
    checks = [check for result in data_of("mixed").latest for check in result.proof.checks]
    failed = sum(not check.passed for check in checks)
    assert failed
    assert f"{failed} of {len(checks)} network checks failed" in words(page)
    assert len(re.findall(r"\d (?:network )?checks?\b", words(page))) == 1, "one count, said once"
    assert "#trust" in [link.get("href") for link in section(page, "answer").iter("a")]


def picture(*series: tuple[str, list[Observed]], timeout_s: float | None = 60.0) -> Drawn:
    drawn = [DotSeries(arm, arm, marks) for arm, marks in series]
    axis = charts.strip_axis([mark for _, marks in series for mark in marks], "total_s", timeout_s)
    medians = {arm: sorted(marks, key=lambda mark: mark.known)[len(marks) // 2] for arm, marks in series}
    return Drawn(charts.strip("x", drawn, axis, medians=medians, title="t"))


def exact(*seconds: float) -> list[Observed]:
    return [Observed.finished(value) for value in seconds]


def test_every_trial_is_where_its_time_is_and_outlines_of_medians_hide_none() -> None:
    drawn = picture(("h1", exact(1, 2, 5)), ("h2", exact(1, 2, 2)))
    axis = charts.strip_axis(exact(1, 2, 5), "total_s", 60.0)
    assert sorted(x for x, _ in drawn.marks("h1", 520)) == pytest.approx(
        [axis.x(value) for value in (1, 2, 2, 5)], abs=0.3
    )
    (outline,) = drawn.paths("h1", "hollow")
    assert min(x for x, _ in outline) < axis.x(2) < max(x for x, _ in outline)
    assert drawn.all("outline")


def test_trials_without_a_time_are_counted_in_a_column_of_their_kind() -> None:
    stopped, failed = Observed.unfinished(60.0), Observed.unfinished()
    axis = charts.strip_axis([*exact(1, 5), stopped, failed], "total_s", 60.0)
    assert axis.scale.high < 6, "the axis does not reach to the timeout"
    assert axis.scale.end < axis.columns[Kind.BOUND] < axis.columns[Kind.NOTHING] < 520
    drawn = picture(("h1", [*exact(1, 2), stopped, stopped, stopped]), ("h2", [*exact(1, 5), failed]))
    assert drawn.texts == ["3", "1"]
    assert Drawn(charts.strip_labels("x", axis)).texts[:2] == ["timed out", "no result"]
    assert "timed out" not in Drawn(charts.strip_labels("x", charts.strip_axis(exact(1), "total_s", 60.0))).texts
    (outline,) = drawn.paths("h1", "hollow")
    assert min(x for x, _ in outline) < axis.columns[Kind.BOUND] < max(x for x, _ in outline), "its median timed out"


def test_labels_of_the_axis_do_not_meet() -> None:
    axis = charts.strip_axis([*exact(0.2, 50), Observed.unfinished(60.0)], "total_s", 60.0)
    boxes = sorted((left, right) for _, left, _, right, _ in Drawn(charts.strip_labels("x", axis)).boxes())
    assert all(one[1] <= other[0] for one, other in pairwise(boxes))
    assert boxes[0][0] >= 0


def rows_of_page(data: RunData) -> list[str]:
    answer = section(parse(render(data, 0.0)), "answer")
    return [words(row) for row in answer.iter("tr")]


@pytest.mark.parametrize("name", ["checked", "arms", "mixed", "sweep"])
def test_the_page_has_every_cell_and_groups_networks_by_certainty(name: str) -> None:
    data = data_of(name)
    rows = rows_of_page(data)
    for standing in standings(data):
        (row,) = [row for row in rows if row.startswith(f"{data.matrix.name_of(standing.condition)} ")]
        for cell in standing.cells.values():
            assert all(" ".join(part.split()) in row for part in (cell.text, cell.interval, cell.metric, *cell.notes))
    groups = [row for row in rows if " by total time" in row and " comparison" in row]
    words_ = [word for word in Certainty if any(each.certainty is word for each in standings(data))]
    assert [group.split(" by ")[0] for group in groups] == [GROUPS[word][0] for word in words_]


def test_the_comparisons_of_many_arms_are_shown_on_demand() -> None:
    golden = RUNS["arms"]()
    every = replace(golden, matrix=replace(golden.matrix, compare=())).data("arms")
    (summary, *_) = (words(item) for item in section(parse(render(every, 0.0)), "answer").iter("summary"))
    assert summary == "6 other comparisons"
    named = section(parse(render(data_of("arms"), 0.0)), "answer")
    assert not any("other comparison" in words(item) for item in named.iter("summary")), "the matrix names only four"


def test_synthetic_networks_lead_to_those_that_people_have() -> None:
    page = words(section(parse(render(data_of("small"), 0.0)), "answer"))
    assert "run make lab-run MATRIX=experiments/everyday.yaml" in page


# the comparisons, and the terminal


def test_below_the_fewest_blocks_no_interval_is_drawn() -> None:
    for panel in panels(data_of("small")):
        for group in panel.groups:
            assert all(row.picture == "" and "[" not in row.ratio for row in group.rows)
    (total, *_) = panels(data_of("small"))
    assert total.groups[0].rows[0].blocks == "3"


def test_a_comparison_names_the_winner_first_and_its_interval_lies_right_of_one() -> None:
    data = raced({H1: 2, H2: 1, H3: 1}, PROFILES[0])
    total, *others = panels(data)
    assert (total.metric.key, total.judged) == ("total_s", True)
    assert [item.judged for item in others] == [True, True, False]
    rows = {row.claim: row for row in total.groups[0].rows}
    assert set(rows) == {"HTTP/1.1 beats HTTP/3", "HTTP/2 and HTTP/3 tie", "HTTP/1.1 beats HTTP/2"}
    row = rows["HTTP/1.1 beats HTTP/3"]
    assert (row.look, row.blocks) == ("sure arm h1", "12")
    assert re.fullmatch(r"(1\.9\d|2\.0\d)x \[(1\.9\d|2\.0\d), (1\.9\d|2\.0\d)\]", row.ratio)
    drawn = Drawn(row.picture)
    ((one, _),) = [(path[0][0], path[-1][0]) for path in Drawn(total.axis).paths("one")]
    assert drawn.marks("h1", 320)[0][0] > one


def test_without_verdicts_too_the_one_ahead_is_named_first() -> None:
    """The axis says so: a mark right of 1 is a lead of the first."""
    *_, last = panels(raced({H1: 4, H2: 2, H3: 1}, PROFILES[0]))
    assert not last.judged
    claims = {row.claim for row in last.groups[0].rows}
    assert claims == {"HTTP/1.1 against HTTP/3", "HTTP/2 against HTTP/3", "HTTP/1.1 against HTTP/2"}
    assert all(row.ratio[0].isdigit() for row in last.groups[0].rows), "the claim names the leader"


@pytest.mark.parametrize("name", RUNS)
def test_ratios_are_of_the_one_who_is_ahead(name: str) -> None:
    for panel in panels(data_of(name)):
        for group in panel.groups:
            for row in group.rows:
                for ratio in re.findall(r"^(\d+\.\d+)x", row.ratio):
                    assert float(ratio) >= 1


def printed(data: RunData, width: int, *, full: bool = False) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    print_summary(data, console, full=full)
    return console.export_text().splitlines()


def test_the_terminal_says_the_answer_on_a_screen_below_its_table() -> None:
    data = raced({H1: 1, H2: 1, H3: 2}, *PROFILES, *MORE)
    lines = printed(data, 140)
    assert len(data.matrix.conditions) == 8
    assert len(lines) < 35
    assert max(map(len, lines)) <= 120
    (place,) = [
        number
        for number, text in enumerate(lines)
        if text == "By total time, HTTP/3 is faster than HTTP/1.1 and HTTP/2 in all 8 networks."
    ]
    assert place == 20, "the answer is below the title, two lines of headings, and two or three for each network"
    assert answer_of(data).measured in " ".join(" ".join(lines).split())
    assert len(printed(data, 140, full=True)) > 2 * len(lines)


def test_the_name_that_a_user_gave_a_network_leads_its_row() -> None:
    lte = Link(delay=Delay(0.035), rate=Rate(12_000_000))
    data = raced({H1: 1, H2: 1, H3: 2}, PROFILES[0], Profile("LTE", lte, lte))
    assert any(line.startswith("LTE, 12 blocks") for line in printed(data, 140))
    assert "| `LTE`: 35 ms delay + 12 Mbit/s both ways | " in summary_md(data, data.judgement, "report.html")


def test_the_terminal_says_which_warnings_there_are() -> None:
    said = " ".join(" ".join(printed(data_of("mixed"), 140)).split())
    assert "! 1 trial: invalid: the network was not verified" in said
    assert "! 2 trials in clean: server: 12 to 761 datagrams lost" in said
    assert "timed out: stopped" not in said, "that is a finding, and in the tally"
    assert "trials with a warning" not in said


def test_a_narrow_terminal_loses_no_word() -> None:
    data = raced({H1: 1, H2: 1, H3: 2}, *PROFILES[:2])
    wide, narrow = (" ".join(" ".join(printed(data, width)).split()) for width in (100, 60))
    assert Counter(re.findall(r"[\w./]+", wide)) == Counter(re.findall(r"[\w./]+", narrow))


def test_one_phrase_says_how_confidence_and_false_share_fit() -> None:
    text = words(parse(render(raced({H1: 1, H2: 1, H3: 2}, PROFILES[1]), 0.0)))
    assert "the true ratio lies between 1.1 and 1.3 with 95 % confidence" in text
    assert "for multiple comparisons; at most 10 % of sure results are expected to be wrong" in text


def test_what_is_between_backticks_is_code_on_the_page() -> None:
    data = data_of("mixed")
    assert "`selfcheck: {" in trust_line(data)
    trust = section(parse(render(data, 0.0)), "trust")
    assert "`" not in words(trust)
    assert "selfcheck: {protocol: h2, again: [clean]}" in [words(each) for each in trust.iter("code")]


def test_windows_as_shipped_are_named_next_to_the_workload() -> None:
    """nginx's 64 KB made HTTP/3 four times slower over 600 ms, and only the method said so."""
    data = data_of("small")
    shipped = replace(data, matrix=replace(data.matrix, settings=Settings(server=Windows.AS_SHIPPED)))
    assert answer_of(shipped).measured.endswith(
        " Windows and buffers of the server are as shipped, and can limit transfers over long paths."
    )
    assert "as shipped" not in answer_of(data).measured


def test_the_method_names_the_arms_whose_client_pads_packets() -> None:
    (said,) = [sentence for _, sentence in method(data_of("arms")) if "pads QUIC packets" in sentence]
    assert said.startswith("The client of HTTP/3 (as-shipped) is h2load as shipped")
    assert not any("pads QUIC packets" in sentence for _, sentence in method(data_of("small")))
