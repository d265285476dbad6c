"""The first screen says what is settled, the winner first, and nothing that is stronger than the verdicts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import pytest
from rich.console import Console

from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.format import arm_name
from headwind.model import Outcome
from headwind.observed import Observed
from headwind.report import RunData, render
from headwind.report.answer import headline, seen, trust, workloads
from headwind.report.formats.terminal import print_summary
from headwind.report.html import charts
from headwind.report.html.charts import DotSeries
from headwind.report.html.panels import panels
from headwind.report.standing import first_in, is_reference, noise_floor, standings
from headwind.report.verdicts import Word, lead_text, sides, toward, word_of
from headwind.verdicts.findings import rows_of
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Verdict
from impair.profile import Profile
from tests.drawn import Drawn
from tests.fake import PROFILES, example_matrix, ok, timeout, trials_of
from tests.golden.runs import RUNS, Golden, shaken, took
from tests.pages import parse, section, words


def data_of(name: str) -> RunData:
    return RUNS[name]().data(name)


def raced(speeds: dict[Arm, float], *profiles: Profile, repeat: int = 12) -> RunData:
    """A run in which each protocol is so many times as fast, give or take 1 %."""
    matrix = example_matrix(*profiles, repeat=repeat)
    return Golden(
        matrix, tuple(took(trial, shaken(trial) ** 0.3 / speeds[trial.arm]) for trial in trials_of(matrix))
    ).data("x")


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        ((1, 1, 2), "HTTP/3 beats HTTP/1.1 and HTTP/2 in both networks; HTTP/2 and HTTP/1.1 tie in 2."),
        ((3, 1, 2), "HTTP/1.1 beats HTTP/2 and HTTP/3 in both networks; HTTP/3 beats HTTP/2 in 2."),
        (
            (1, 1, 1.052),
            "HTTP/2 and HTTP/1.1 tie in both networks. HTTP/3 against HTTP/1.1 and HTTP/3 against HTTP/2 are open.",
        ),
        (
            (1, 1, 1),
            "All tie in both networks.",
        ),
    ],
)
def test_the_headline_names_the_winner_first(speeds: tuple[float, float, float], said: str) -> None:
    assert headline(raced(dict(zip(PLAIN, speeds, strict=True)), *PROFILES[:2])) == said


def test_what_is_settled_nowhere_is_open() -> None:
    assert headline(data_of("published")) == (
        "HTTP/1.1 beats HTTP/3 in 2 of 3 networks; HTTP/2 beats HTTP/3 in 2; HTTP/2 and HTTP/1.1 tie in 1. "
        "Nothing is settled in loss."
    )
    data = raced({H1: 1, H2: 1, H3: 1.05}, PROFILES[0])
    assert headline(data).endswith("HTTP/3 against HTTP/1.1 and HTTP/3 against HTTP/2 are open.")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("small", "Nothing is settled: no network has the 6 blocks that a verdict needs."),
        ("one-trial", "There is one protocol, so nothing to compare."),
        ("killed-at-once", "Nothing has run, so nothing is known."),
    ],
)
def test_without_a_verdict_the_headline_says_why(name: str, said: str) -> None:
    assert headline(data_of(name)) == said


NAME = r"HTTP/[\d.]*\d(?: \([\w-]+\))?"  # of an arm


@pytest.mark.parametrize("name", RUNS)
def test_no_sentence_is_stronger_than_the_verdicts(name: str) -> None:
    """Every `A beats B` of the first screen is a clear verdict that survives among all, in as many conditions."""
    data = data_of(name)
    settled = {
        (line.condition.id, tuple(map(arm_name, sides(line.primary))))
        for line in data.judgement.compared
        if line.primary.survives and line.primary.verdict.is_clear
    }
    for winner, rest in re.findall(rf"({NAME}) beats ([^;]+)", headline(data)):
        for losers, count in re.findall(rf"((?:{NAME}(?:, | and )?)+) in (?:all )?(\d+)", rest):
            for loser in re.findall(NAME, losers):
                assert sum(pair == (winner, loser) for _, pair in settled) == int(count)
    for standing in standings(data):
        for text in (standing.claim, *standing.notes):
            for winner, loser in re.findall(rf"({NAME}) beats ({NAME})", text):
                assert (standing.condition.id, (winner, loser)) in settled


def test_a_ratio_is_that_of_the_winner() -> None:
    data = raced({H1: 2, H2: 1, H3: 1}, PROFILES[0])
    (standing,) = standings(data)
    assert (standing.word, standing.leader) == (Word.BEATS, H1)
    assert re.fullmatch(r"HTTP/1.1 beats HTTP/3 (1\.9\d|2\.0\d)x, HTTP/2 (1\.9\d|2\.0\d)x", standing.claim)
    assert standing.notes == ("HTTP/3 and HTTP/2 tie", "HTTP/1.1 first in 12 of 12")
    assert standing.blocks_text == "12 blocks"


def test_the_interval_of_the_other_side_is_the_inverse() -> None:
    interval = Interval(-0.2, -0.1, -0.15, 9)
    estimate, low, high = toward(interval, -1).ratios
    assert (1 / (estimate or 0), 1 / high, 1 / low) == pytest.approx(interval.ratios)
    assert toward(interval, 1) == interval


def test_who_completes_more_often_beats_and_says_how_often_both_finished() -> None:
    matrix = example_matrix(PROFILES[3], repeat=12)
    results = [timeout(trial) if trial.arm is H1 else took(trial, 20 * shaken(trial)) for trial in trials_of(matrix)]
    (standing,) = standings(Golden(matrix, tuple(results)).data("x"))
    finding = next(line.primary for line in Golden(matrix, tuple(results)).data("x").judgement.compared)
    assert finding.verdict is Verdict.COMPLETES_MORE
    assert lead_text(finding) == "finished 12 against 0 of 12"
    assert standing.claim.startswith("HTTP/3 beats HTTP/1.1 finished 12 against 0 of 12")


def test_below_the_fewest_blocks_there_is_a_count_and_no_interval() -> None:
    for standing in standings(data_of("small")):
        assert (standing.word, standing.claim, standing.blocks_text) == (Word.FEW, "too few blocks", "3 of 6 blocks")
        assert all(re.fullmatch(r"HTTP/\S+ first in [123] of 3", note) for note in standing.notes)
    page = words(section(parse(render(data_of("small"), 0.0)), "answer"))
    assert "\N{INFINITY}" not in page
    assert "[0" not in page


def test_who_was_first_is_counted_over_blocks_in_which_all_gave_data() -> None:
    matrix = example_matrix(PROFILES[3], repeat=5)
    times = {0: (1, 2, 3), 1: (2, 1, 3), 2: (60, 2, 60), 3: (60, 60, 60), 4: (2, 2, 3)}
    results = [
        timeout(trial) if times[trial.block.index][PLAIN.index(trial.arm)] == 60
        else ok(trial, times[trial.block.index][PLAIN.index(trial.arm)])
        for trial in trials_of(matrix)
    ]  # fmt: skip
    (rows,) = rows_of(results).values()
    firsts, blocks = first_in(rows, matrix.arms)
    assert (firsts, blocks) == ({H1: 1, H2: 2}, 5), "equal times, or none, make nobody first"
    without = [replace(each, outcome=Outcome.INVALID) if each.trial.id.endswith("#0/h2") else each for each in results]
    assert first_in(next(iter(rows_of(without).values())), matrix.arms) == ({H2: 2}, 4)


def test_lowest_medians_are_called_seen_and_not_proven() -> None:
    data = data_of("small")
    said = seen(data, standings(data))
    assert said.startswith("Seen, not proven: HTTP/3 has the lowest median in ")
    leads = {each.condition.profile.name: each.lowest for each in standings(data)}
    assert f"in {sum(arm is H3 for arm in leads.values())} of 5 networks" in said


def test_a_median_that_nobody_knows_leads_nowhere() -> None:
    (all_failed, *_) = standings(data_of("all-failed"))
    assert all_failed.lowest is None
    (half,) = standings(data_of("timeouts-half"))
    assert half.lowest is None, "three bounds are equal"


def test_the_reference_comes_first_and_then_the_faster_networks() -> None:
    order = [each.condition.profile.name for each in standings(data_of("small"))]
    assert order == ["clean", "delay", "loss", "loss-duplicate", "loss-corrupt"]
    assert is_reference(standings(data_of("small"))[0].condition)


def test_the_workload_is_told_in_plain_words() -> None:
    assert workloads(data_of("small")) == [
        "By total time: 1,000 requests for 612 bytes over 100 new connections; not a page load."
    ]


def test_what_to_trust_names_what_went_wrong_and_with_whom() -> None:
    said = [f"{item.mark} {item.text}" for item in trust(data_of("mixed"))]
    assert said == [
        "\N{CHECK MARK} 678 network checks passed",
        "\N{WARNING SIGN} 1 failed (HTTP/2)",
        "\N{WARNING SIGN} 3 timeout (HTTP/1.1 and HTTP/2)",
        "\N{WARNING SIGN} 1 wrong-protocol (HTTP/2)",
        "\N{WARNING SIGN} 1 invalid, in no figure (HTTP/1.1)",
        "\N{WARNING SIGN} 2 trials with a warning",
    ]
    checked = [item.text for item in trust(data_of("checked"))]
    assert "self-checks FAILED in delay" in "; ".join(checked)
    assert noise_floor(data_of("checked").judgement.checks, data_of("checked").matrix.conditions[0]) is not None


def test_a_failed_self_check_is_loud_on_the_first_screen() -> None:
    answer = section(parse(render(data_of("checked"), 0.0)), "answer")
    alerts = [words(item) for item in answer.iter("p") if item.get("role") == "alert"]
    assert len(alerts) == 1
    assert "delays that are 10 % longer do not even slow it by 2 %" in alerts[0]


def test_a_slight_lead_is_a_perhaps_and_says_when_the_noise_is_larger() -> None:
    data = data_of("checked")
    lines = [line for line in data.judgement.compared if line.condition.profile.name == "clean"]
    rule = data.judgement.rule
    assert {word_of(line.primary, rule) for line in lines} <= set(Word)


def picture(*series: tuple[str, list[Observed]], timeout_s: float | None = 60.0) -> Drawn:
    drawn = [DotSeries(arm, arm, marks) for arm, marks in series]
    axis = charts.strip_axis([mark for _, marks in series for mark in marks], "total_s", timeout_s)
    medians = {arm: sorted(marks, key=lambda mark: mark.known)[len(marks) // 2] for arm, marks in series}
    return Drawn(charts.strip("x", drawn, axis, medians=medians, title="t"))


def exact(*seconds: float) -> list[Observed]:
    return [Observed.finished(value) for value in seconds]


def test_every_trial_is_where_its_time_is_and_a_stopped_one_at_the_timeout() -> None:
    axis = charts.strip_axis([*exact(1, 2, 5), Observed.unfinished(60.0)], "total_s", 60.0)
    drawn = picture(("h1", exact(1, 2, 5)), ("h2", [*exact(1, 2), Observed.unfinished(60.0)]))
    places = sorted(x for x, _ in drawn.marks("h1", 520))
    assert places == pytest.approx(sorted(axis.x(value) for value in (1, 2, 2, 2, 5)), abs=0.26), "the median thrice"
    (stopped,) = drawn.paths("h2", "onward")
    assert min(x for x, _ in stopped) < axis.x(60.0) < max(x for x, _ in stopped)
    (line,) = drawn.paths("timeout")
    assert line[0][0] == pytest.approx(axis.x(60.0), abs=0.06)


def test_without_a_stopped_trial_the_axis_does_not_reach_to_the_timeout() -> None:
    assert charts.strip_axis(exact(1, 2, 5), "total_s", 60.0).x.high < 6
    assert picture(("h1", exact(1, 2, 5))).paths("timeout") == []


def test_a_trial_without_a_time_is_a_cross_at_the_right_end() -> None:
    drawn = picture(("h1", [*exact(1, 2), Observed.unfinished()]))
    crosses = drawn.paths("h1", "failed")
    assert len(crosses) >= 1
    assert min(x for corners in crosses for x, _ in corners) > 500


def test_labels_of_the_axis_do_not_meet() -> None:
    axis = charts.strip_axis([*exact(0.2, 50), Observed.unfinished(60.0)], "total_s", 60.0)
    drawn = Drawn(charts.strip_labels("x", axis))
    boxes = sorted((left, right) for _, left, _, right, _ in drawn.boxes())
    assert "timeout 60 s" in drawn.texts
    assert all(one[1] <= other[0] for one, other in pairwise(boxes))
    assert boxes[0][0] >= 0


# the comparisons, and the terminal


def test_a_comparison_names_the_winner_first_and_its_interval_lies_right_of_one() -> None:
    data = raced({H1: 2, H2: 1, H3: 1}, PROFILES[0])
    total, *others = panels(data)
    assert (total.metric.key, total.judged) == ("total_s", True)
    assert [item.judged for item in others] == [True, True, False]
    rows = {row.claim: row for row in total.groups[0].rows}
    assert set(rows) == {"▲ HTTP/1.1 beats HTTP/3", "= HTTP/3 and HTTP/2 tie", "▲ HTTP/1.1 beats HTTP/2"}
    row = rows["▲ HTTP/1.1 beats HTTP/3"]
    assert (row.look, row.blocks) == ("settled arm h1", "12 blocks")
    assert re.fullmatch(r"(1\.9\d|2\.0\d)x \[(1\.9\d|2\.0\d), (1\.9\d|2\.0\d)\]", row.ratio)
    drawn = Drawn(row.picture)
    ((one, _),) = [(path[0][0], path[-1][0]) for path in Drawn(total.axis).paths("one")]
    assert drawn.marks("h1", 320)[0][0] > one


def test_below_the_fewest_blocks_no_interval_is_drawn() -> None:
    for panel in panels(data_of("small")):
        for group in panel.groups:
            assert all(row.picture == "" and "[" not in row.ratio for row in group.rows)
    (total, *_) = panels(data_of("small"))
    row = total.groups[0].rows[0]
    assert row.blocks == "3 of 6 blocks"
    assert re.fullmatch(r"h\d first in [123](, h\d first in [12])?", row.ratio)


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


def test_the_terminal_says_the_answer_in_thirty_lines_of_a_hundred_columns() -> None:
    data = raced(
        {H1: 1, H2: 1, H3: 2}, *PROFILES, *(replace(profile, name=f"{profile.name}-b") for profile in PROFILES[:3])
    )
    lines = printed(data, 140)
    assert len(data.matrix.conditions) == 8
    assert len(lines) < 30
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("HTTP/3 beats HTTP/1.1 and HTTP/2 in all 8 networks")
    assert len(printed(data, 140, full=True)) > 2 * len(lines)


def test_a_narrow_terminal_loses_no_word() -> None:
    data = raced({H1: 1, H2: 1, H3: 2}, *PROFILES[:2])
    wide, narrow = (" ".join(" ".join(printed(data, width)).split()) for width in (140, 60))
    assert Counter(re.findall(r"[\w./]+", wide)) == Counter(re.findall(r"[\w./]+", narrow))
