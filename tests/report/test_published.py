"""What articles published is kept with the run and set beside what was measured, and changes nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.arm import H1, H2, H3, Arm, Protocol
from headwind.model import Matrix, Published, PublishedRow, Result
from headwind.report.compare.comparison import warnings
from headwind.report.html.page import render
from headwind.report.html.panels import published_pictures
from headwind.report.overview import published_md, render_overview
from headwind.report.published import Row, measured_text, published_rows, published_verdict, word_for
from headwind.run.codec import State, Status, matrix_from_json, matrix_to_json
from headwind.run.data import RunData
from headwind.run.differences import differences
from headwind.run.journal import Run
from headwind.verdicts.verdict import Verdict
from headwind.workloads.h2load import TOTAL
from headwind.workloads.transfer import Transfer
from tests.fake import ENVIRONMENT, PROFILES, STARTED_AT, example_matrix, ok, timeout, trials_of
from tests.pages import parse, section, words

MARGIN = 0.05
ARTICLE = Published(
    "nginx-quic",
    "HTTP/1.1 against HTTP/3",
    (
        PublishedRow("clean/article", {Protocol.H1: 0.4, Protocol.H3: 0.6}),
        PublishedRow("delay/article", {Protocol.H1: 1.9, Protocol.H3: 3.65}),
        PublishedRow("loss/article", {Protocol.H1: None, Protocol.H3: 15.0}),
    ),
    "single runs",
)
GONE = PublishedRow("gone", {Protocol.H1: 1.0, Protocol.H3: 1.0}, "there is no such condition")


# With the run


NAMES = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.builds(
    PublishedRow, NAMES, st.dictionaries(NAMES, st.none() | st.floats(1e-6, 1e5)), NAMES, NAMES, NAMES, st.booleans()
)


def with_article(matrix: Matrix, *sources: Published) -> Matrix:
    return replace(matrix, published=sources)


def test_what_was_published_is_kept_with_the_run(tmp_path: Path) -> None:
    matrix = with_article(example_matrix(), ARTICLE, replace(ARTICLE, name="other", note=""))
    assert matrix_from_json(json.loads(json.dumps(matrix_to_json(matrix)))) == replace(matrix, source="")
    with Run.create(tmp_path, matrix, ENVIRONMENT) as run:
        assert run.matrix.published == matrix.published


@given(st.lists(st.builds(Published, NAMES, NAMES, st.lists(ROWS, max_size=3).map(tuple), NAMES, NAMES), max_size=3))
def test_whatever_was_published_comes_back_with_its_gaps(sources: list[Published]) -> None:
    matrix = with_article(example_matrix(), *sources)
    assert matrix_from_json(json.loads(json.dumps(matrix_to_json(matrix)))).published == tuple(sources)


def test_a_matrix_without_published_figures_has_no_key_for_them() -> None:
    data = matrix_to_json(example_matrix())
    assert "published" not in data
    assert matrix_from_json(data).published == ()


def test_a_run_goes_on_and_compares_whatever_was_published(tmp_path: Path) -> None:
    before, after = example_matrix(), with_article(example_matrix(), ARTICLE)
    apart = with_article(example_matrix(), replace(ARTICLE, rows=(GONE,)))
    for old, new in permutations((before, after, apart), 2):
        assert list(differences(matrix_to_json(old), matrix_to_json(new))) == []
        assert list(warnings(run_data(old, []), run_data(new, []))) == []
        with Run.create(tmp_path, old, ENVIRONMENT) as run:
            run.check_resumable(new, ENVIRONMENT["images"], "uml")


# In the report


def run_data(matrix: Matrix, results: list[Result], state: State = State.FINISHED) -> RunData:
    return RunData("run", matrix, tuple(results), ENVIRONMENT, Status(state, "", STARTED_AT, STARTED_AT + 60))


def data_of(matrix: Matrix, times_s: Mapping[str, Mapping[Arm, float | None]]) -> RunData:
    """A run in which each protocol took about so long by profile; None: it never finished."""
    results = []
    for trial in trials_of(matrix):
        if trial.block.condition.profile.name in times_s:
            time_s = times_s[trial.block.condition.profile.name][trial.arm]
            results.append(timeout(trial) if time_s is None else ok(trial, time_s * (1 + trial.block.index / 1000)))
    return run_data(matrix, results)


def rows_of(matrix: Matrix, times_s: Mapping[str, Mapping[Arm, float | None]]) -> list[Row]:
    """The report's rows for such a run."""
    data = data_of(matrix, times_s)
    (source,) = published_rows(data, data.judgement)
    assert (source.title, source.note) == (ARTICLE.title, ARTICLE.note)
    return list(source.rows)


NETWORKS = example_matrix(*PROFILES[:3], repeat=12)


def test_each_published_comparison_stands_beside_the_measured_one() -> None:
    times_s = {"clean": {H1: 1.0, H2: 1.0, H3: 2.0}, "delay": {H1: 2.0, H2: 1.0, H3: 1.0}}
    clean, delay, loss = rows_of(with_article(NETWORKS, ARTICLE), times_s)
    assert (clean.condition_id, clean.base, clean.new) == ("clean/article", H1, H3)
    assert (clean.published_base, clean.published_new) == (0.4, 0.6)
    assert clean.published_ratio == pytest.approx(0.4 / 0.6)
    assert clean.finding is not None
    assert clean.finding.metric == TOTAL
    assert (clean.published_verdict, clean.finding.verdict, clean.word) == (
        Verdict.SLOWER, Verdict.SLOWER, "reproduced",
    )  # fmt: skip
    assert (delay.published_verdict, delay.word) == (Verdict.SLOWER, "contradicted")
    assert (loss.published_verdict, loss.published_ratio, loss.word) == (Verdict.COMPLETES_MORE, None, "no verdict")


def test_who_alone_gave_a_result_is_reproduced_by_who_completes_more_often_or_is_faster() -> None:
    matrix = with_article(NETWORKS, replace(ARTICLE, rows=ARTICLE.rows[2:]))
    (stalled,) = rows_of(matrix, {"loss": {H1: None, H2: 1.0, H3: 2.0}})
    (slow,) = rows_of(matrix, {"loss": {H1: 3.0, H2: 1.0, H3: 2.0}})
    assert stalled.finding is not None
    assert slow.finding is not None
    assert (stalled.finding.verdict, stalled.word) == (Verdict.COMPLETES_MORE, "reproduced")
    assert (slow.finding.verdict, slow.word) == (Verdict.FASTER, "reproduced")


def test_the_candidate_is_the_later_protocol_of_the_matrix_in_whatever_order_an_article_tells() -> None:
    rows = (PublishedRow("clean/article", {Protocol.H3: 0.6, Protocol.H2: 0.5, Protocol.H1: 0.4}),)
    forwards = with_article(NETWORKS, replace(ARTICLE, rows=rows))
    pairs = [(row.base, row.new, row.published_verdict) for row in rows_of(forwards, {})]
    assert pairs == [(H1, H3, Verdict.SLOWER), (H2, H3, Verdict.SLOWER), (H1, H2, Verdict.SLOWER)]
    backwards = replace(forwards, arms=(H3, H1))
    assert [(row.base, row.new, row.published_verdict) for row in rows_of(backwards, {})] == [(H3, H1, Verdict.FASTER)]


def test_a_row_of_a_condition_that_is_not_there_is_left_out() -> None:
    rows = (*ARTICLE.rows, replace(GONE, gap=""))
    assert len(rows_of(with_article(NETWORKS, replace(ARTICLE, rows=rows)), {})) == 3


def test_a_row_with_a_gap_is_not_compared_even_if_its_condition_is_there() -> None:
    rows = (replace(ARTICLE.rows[0], gap="another network"), *ARTICLE.rows[1:])
    found = rows_of(with_article(NETWORKS, replace(ARTICLE, rows=rows)), {})
    assert [row.condition_id for row in found] == ["delay/article", "loss/article"]


def page(*sources: Published) -> str:
    """The section of a report in words, one space between them."""
    html = render(run_data(with_article(NETWORKS, *sources), []), 0.0)
    return " ".join(html.partition('<section id="published">')[2].partition("</section>")[0].split())


def test_the_page_tells_below_each_article_what_is_not_compared_and_why() -> None:
    rows = (GONE, replace(ARTICLE.rows[0], gap="another network"), replace(GONE, condition_id="<b>"), *ARTICLE.rows[1:])
    shown = page(ARTICLE, replace(ARTICLE, rows=rows))
    assert shown.count("<table ") == 2
    assert shown.count("Not compared") == 1
    assert shown.endswith(
        '<p class="quiet">Not compared: <bdi>gone</bdi>, <bdi>&lt;b&gt;</bdi> '
        "(there is no such condition); <bdi>clean</bdi> (another network). </p>"
    )


def test_an_article_of_which_nothing_is_compared_stays_with_the_reason() -> None:
    shown = page(replace(ARTICLE, rows=(GONE,)))
    assert ARTICLE.title in shown
    assert "<bdi>gone</bdi> (there is no such condition)." in shown
    assert "<table" not in shown


def test_without_articles_there_is_nothing_to_show() -> None:
    data = run_data(NETWORKS, [])
    assert published_rows(data, data.judgement) == []


def test_the_picture_has_a_cross_for_each_published_ratio_and_an_interval_where_there_are_blocks_enough() -> None:
    def drawn(blocks: int) -> list[str]:
        matrix = replace(NETWORKS, published=(ARTICLE,))
        trials = [trial for trial in trials_of(matrix) if trial.block.index < blocks]
        data = run_data(matrix, [ok(trial, 1.0 + 0.2 * (trial.arm is H1)) for trial in trials])
        (picture,) = published_pictures(published_rows(data, data.judgement), data.judgement.rule)
        assert "first-named ahead" in picture.labels
        return [str(row) for row in picture.rows]

    for blocks, marks in ((12, 1), (2, 1), (0, 0)):
        clean, delay, loss = drawn(blocks)
        assert [row.count("published stroke") for row in (clean, delay, loss)] == [1, 1, 0], "one gave no result"
        assert clean.count("open hollow") == marks


# Statistics and metrics

CLEAN = example_matrix(*PROFILES[:1], repeat=90)


def the_row(matrix: Matrix, row: PublishedRow, *times_s: tuple[float, float]) -> Row:
    """What the report says of one published row, if blocks took HTTP/1.1 and HTTP/3 so long, again and again."""
    times = {
        (index, arm): pair[arm is H3]
        for index in range(90)
        for pair in [times_s[index % len(times_s)]]
        for arm in (H1, H3)
    }
    matrix = replace(matrix, arms=(H1, H3))
    results = [ok(trial, times[trial.block.index, trial.arm]) for trial in trials_of(matrix)]
    data = run_data(with_article(matrix, replace(ARTICLE, rows=(row,))), results)
    (source,) = published_rows(data, data.judgement)
    (found,) = source.rows
    return found


TAIL = [(1.0, 1.1)] * 8 + [(9.0, 1.1)] * 3  # HTTP/3 is a little slower, but HTTP/1.1 has a tail


def test_a_percentile_is_compared_with_the_percentile_of_all_trials_and_not_with_the_median() -> None:
    published = PublishedRow("clean/article", {"h1": 5.0, "h3": 1.0}, statistic="p90")
    tail, median = the_row(CLEAN, published, *TAIL), the_row(CLEAN, replace(published, statistic="median"), *TAIL)
    assert (tail.word, tail.what) == ("reproduced", "p90 total time")
    assert tail.interval is not None
    assert tail.interval.low == pytest.approx(math.log(9.0 / 1.1))
    assert median.word == "contradicted"


def test_a_percentile_of_too_few_blocks_has_no_verdict() -> None:
    assert the_row(CLEAN, PublishedRow("clean/article", {"h1": 5.0, "h3": 1.0}, statistic="p99"), *TAIL).word == (
        "no verdict"
    )


def test_a_mean_has_no_verdict_where_tails_put_it_on_the_other_side_of_the_median() -> None:
    published = PublishedRow("clean/article", {"h1": 1.0, "h3": 1.1}, statistic="mean")
    assert the_row(CLEAN, published, *TAIL).word == "no verdict"
    assert the_row(CLEAN, published, (1.0, 1.1)).word == "reproduced"


def test_a_mean_has_no_verdict_where_the_medians_tie_and_the_means_do_not() -> None:
    """The means of article and run had one direction, and the tie of the medians was said to contradict them."""
    tails = [(1.0, 1.0)] * 10 + [(5.0, 1.0)]
    published = PublishedRow("clean/article", {"h1": 2.0, "h3": 1.0}, statistic="mean")
    row = the_row(CLEAN, published, *tails)
    assert row.finding is not None
    assert (row.finding.verdict, row.word) == (Verdict.TIE, "no verdict")
    assert the_row(CLEAN, replace(published, statistic="median"), *tails).word == "contradicted"
    assert the_row(CLEAN, replace(published, values={"h1": 1.0, "h3": 2.0}), *tails).word == "contradicted"
    assert the_row(CLEAN, published, (1.0, 1.0)).word == "contradicted"


def test_relative_figures_are_compared_like_times_and_shown_in_percent() -> None:
    published = PublishedRow("clean/article", {"h1": 1.0, "h3": 0.8125}, is_relative=True)
    row = the_row(CLEAN, published, (1.0, 0.5))
    assert (row.published_ratio, row.published_verdict, row.word) == (1 / 0.8125, Verdict.FASTER, "reproduced")
    assert row.figures == ["81.25 %", "100 %"]
    empty = document([with_article(CLEAN, replace(ARTICLE, rows=(published,)))])
    assert "| h1 100 %, h3 81.25 % |" in empty


def test_a_rate_is_better_where_it_is_more_and_without_a_verdict_where_it_is_not_judged() -> None:
    published = PublishedRow("clean/article", {"h1": 1e6, "h3": 2e6}, metric="goodput_bps")
    workload = Transfer("article", 1, 1, 1, path="/bytes/1000000")
    matrix = replace(CLEAN, arms=(H1, H3), conditions=(replace(CLEAN.conditions[0], workload=workload),))
    results = [
        replace(ok(trial, 1.0), metrics={"total_s": 1.0, "ttfb_s": 0.1, "goodput_bps": 2e6 if trial.arm is H3 else 1e6})
        for trial in trials_of(matrix)
    ]
    for judge, word in ((None, "no verdict"), (("goodput_bps",), "reproduced")):
        data = run_data(with_article(replace(matrix, judge=judge), replace(ARTICLE, rows=(published,))), results)
        (row,) = published_rows(data, data.judgement)[0].rows
        assert (row.published_ratio, row.published_verdict, row.word) == (2.0, Verdict.FASTER, word)
        assert row.figures == ["2.00 Mbit/s", "1.00 Mbit/s"]
        assert row.interval is not None
        assert row.interval.estimate == pytest.approx(math.log(2))
        assert "h3 2.00x" in measured_text(row, data.judgement.rule)


# The document


def document(matrices: Sequence[Matrix], *runs: RunData) -> str:
    return published_md(matrices, runs)


def test_the_document_has_every_row_and_says_which_were_not_measured() -> None:
    matrix = with_article(NETWORKS, replace(ARTICLE, rows=(*ARTICLE.rows, GONE), source="a journal"))
    empty = document([matrix])
    assert "**0 of 4 rows measured.**" in empty
    assert empty.count("not measured yet") == 3
    assert "there is no such condition" in empty
    assert "Source: a journal" in empty
    times_s = {"clean": {H1: 1.0, H2: 1.0, H3: 2.0}, "delay": {H1: 2.0, H2: 1.0, H3: 1.0}}
    filled = document([matrix], data_of(matrix, times_s))
    assert "**2 of 4 rows measured: 1 reproduced, 1 contradicted.**" in filled
    (clean,) = [line for line in filled.splitlines() if line.startswith("| `clean/article`")]
    assert clean.endswith("| reproduced | 12 |")


def test_a_row_with_several_statistics_counts_once_and_its_comparisons_are_counted_apart() -> None:
    means = replace(ARTICLE.rows[0], statistic="mean")
    article = replace(ARTICLE, rows=(means, replace(means, statistic="median"), replace(means, statistic="p99"), GONE))
    matrix = with_article(NETWORKS, article)
    assert "**0 of 2 rows measured.**" in document([matrix])
    filled = document([matrix], data_of(matrix, {"clean": {H1: 1.0, H2: 1.0, H3: 2.0}}))
    assert "**1 of 2 rows measured, in 3 comparisons: 2 reproduced, 1 no verdict.**" in filled


def test_a_run_of_another_network_or_workload_fills_no_row_and_the_last_run_counts() -> None:
    matrix = with_article(NETWORKS, ARTICLE)
    slow, fast = ({"clean": {H1: 1.0, H2: 1.0, H3: h3}} for h3 in (2.0, 0.5))
    other = replace(NETWORKS.conditions[0], workload=Transfer("article", 1, 1, 1, path="/1m"))
    apart = replace(matrix, conditions=(other, *NETWORKS.conditions[1:]))
    assert "**0 of 3 rows measured.**" in document([matrix], data_of(apart, slow))
    assert "1 contradicted" in document([matrix], data_of(matrix, slow), data_of(matrix, fast), data_of(apart, slow))
    assert "1 reproduced" in document([matrix], data_of(matrix, fast), data_of(matrix, slow))


def test_a_run_is_judged_by_the_figures_of_today_and_not_by_those_of_its_own_matrix() -> None:
    """After a correction, the old figures stood below the new note, and were reproduced; a row with a gap counted."""
    times_s = {"clean": {H1: 1.0, H2: 1.0, H3: 2.0}, "delay": {H1: 1.0, H2: 1.0, H3: 2.0}}
    run = data_of(with_article(NETWORKS, ARTICLE), times_s)
    clean, delay, loss = ARTICLE.rows
    assert "2 of 3 rows measured: 2 reproduced." in document([with_article(NETWORKS, ARTICLE)], run)
    corrected = replace(clean, values={H1.name: 0.6, H3.name: 0.4})
    today = replace(ARTICLE, rows=(corrected, replace(delay, gap="another network"), loss))
    shown = document([with_article(NETWORKS, today)], run)
    assert "**1 of 3 rows measured: 1 contradicted.**" in shown
    assert "| h3 600 ms, h1 400 ms |" not in shown
    assert "| h3 400 ms, h1 600 ms |" in shown
    (gap,) = [line for line in shown.splitlines() if line.startswith("| `delay/article`")]
    assert gap.endswith("| another network | 0 |")


def test_a_row_names_its_metric_in_words_whether_it_is_measured_or_not() -> None:
    """What was not measured had the key of the metric: `mean total_s`."""
    row = PublishedRow("clean/article", {H1.name: 1.0, H3.name: 2.0}, metric="total_s", statistic="mean")
    matrix = with_article(NETWORKS, replace(ARTICLE, rows=(row,)))
    for runs in ([], [data_of(matrix, {"clean": {H1: 1.0, H2: 1.0, H3: 2.0}})]):
        (line,) = [line for line in document([matrix], *runs).splitlines() if line.startswith("| `clean")]
        assert line.startswith("| `clean/article` | mean total time | ")


def test_the_page_counts_complete_blocks() -> None:
    """Of a run that was stopped, it counted the block that had begun."""
    data = data_of(with_article(NETWORKS, ARTICLE), {"clean": {H1: 1.0, H2: 1.0, H3: 2.0}})
    stopped = replace(data, results=data.results[:-1])
    root = parse(render_overview([], [stopped], [""], 0.0))
    (row,) = section(root, "runs").iterfind(".//tbody/tr")
    assert [words(cell) for cell in row.iter("td")][2] == "11"


# Verdicts and words


@pytest.mark.parametrize(
    ("base_s", "new_s", "verdict"),
    [
        (1.06, 1.0, Verdict.FASTER),
        (1.05, 1.0, Verdict.TIE),
        (1.0, 1.0, Verdict.TIE),
        (1.0, 1.04, Verdict.TIE),
        (1.0, 1.06, Verdict.SLOWER),
        (None, 15.09, Verdict.COMPLETES_MORE),
        (15.09, None, Verdict.COMPLETES_LESS),
        (None, None, Verdict.INCONCLUSIVE),
    ],
)
def test_two_published_times_are_judged_by_the_margin(
    base_s: float | None, new_s: float | None, verdict: Verdict
) -> None:
    assert published_verdict(base_s, new_s, MARGIN) is verdict


@pytest.mark.parametrize(
    ("published", "measured", "word"),
    [
        (Verdict.FASTER, Verdict.FASTER, "reproduced"),
        (Verdict.FASTER, Verdict.SLIGHTLY_FASTER, "reproduced"),
        (Verdict.FASTER, Verdict.COMPLETES_MORE, "reproduced"),
        (Verdict.FASTER, Verdict.SLIGHTLY_SLOWER, "contradicted"),
        (Verdict.FASTER, Verdict.TIE, "contradicted"),
        (Verdict.FASTER, Verdict.COMPLETES_LESS, "contradicted"),
        (Verdict.COMPLETES_MORE, Verdict.TIE, "contradicted"),
        (Verdict.TIE, Verdict.TIE, "reproduced"),
        (Verdict.TIE, Verdict.SLOWER, "contradicted"),
        (Verdict.TIE, Verdict.SLIGHTLY_SLOWER, "no verdict"),
        (Verdict.FASTER, Verdict.INCONCLUSIVE, "no verdict"),
        (Verdict.FASTER, Verdict.UNDECIDED, "no verdict"),
        (Verdict.TIE, Verdict.INCONCLUSIVE, "no verdict"),
        (Verdict.INCONCLUSIVE, Verdict.TIE, "no verdict"),
    ],
)
def test_a_word_compares_directions(published: Verdict, measured: Verdict, word: str) -> None:
    assert word_for(published, measured) == word


TIMES = st.none() | st.floats(1e-6, 1e5)


@given(TIMES, TIMES, st.floats(0.001, 0.5))
def test_exchanging_the_sides_exchanges_the_published_verdict(
    base_s: float | None, new_s: float | None, margin_ratio: float
) -> None:
    swapped = published_verdict(new_s, base_s, margin_ratio)
    assert published_verdict(base_s, new_s, margin_ratio) is swapped.opposite


@given(st.sampled_from(Verdict), st.sampled_from(Verdict))
def test_exchanging_the_sides_changes_no_word(published: Verdict, measured: Verdict) -> None:
    assert word_for(published, measured) == word_for(published.opposite, measured.opposite)
