"""summary.md: one screen for a pull request, in which every name is text and nothing else."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree.ElementTree import Element

import html5lib
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from headwind.arm import H2, Arm, Protocol, Role
from headwind.format import clean
from headwind.model import Repetition
from headwind.report.formats.markdown import code, summary_md, text
from headwind.report.html.page import render
from headwind.report.html.templating import coded, whole
from headwind.report.trust import trust_line
from headwind.report.verdicts import sure_text, without_forecast
from headwind.run.data import RunData
from impair.profile import Profile
from tests import fake
from tests.fake import PROFILES, checked_matrix, example_matrix, ok, trials_of
from tests.golden.runs import HOSTILE, RUNS, Golden, everything
from tests.pages import words

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OURS = {"h2", "p", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "br", "a", "blockquote"}
# Everything that has a meaning to Markdown, HTML or GitHub, more often than chance would bring it.
NASTY = st.lists(
    st.sampled_from(
        [*"\\`*_{}[]<>&|~#@$^!():;-+=.\"'\n\t /", *"ab1", "www.x.test", "http://x.test", "<b>", "&lt;", "```", "\\|"]
    )
    | st.characters(),
    max_size=20,
).map("".join)


def page(markdown: str) -> Element:
    """What a reader gets to see."""
    html = GITHUB.render(markdown).replace("<!-- -->", "")
    body = html5lib.parse(html, namespaceHTMLElements=False).find("body")
    assert isinstance(body, Element)
    return body


def tags(element: Element) -> list[str]:
    return [item.tag for item in element.iter()][1:]


def summary(data: RunData) -> str:
    return summary_md(data, data.judgement, "report.html")


def plain(value: str) -> str:
    return " ".join(clean(value).split())


def uncoded(value: str) -> str:
    """What is shown of a text, in which single backticks around something make it code."""
    return re.sub(r"(?<!`)`([^\s`](?:[^`]*[^\s`])?)`(?!`)", r"\1", plain(value))


@given(NASTY)
@example("www.x.test`\\`")
def test_any_text_is_shown_as_it_is(value: str) -> None:
    shown = page(f"- {text(value)} .\n")
    assert [tag for tag in tags(shown) if tag != "code"] == ["ul", "li"]
    assert words(shown) == " ".join(f"{uncoded(value)} .".split())
    if plain(value):
        assert [tag for tag in tags(page(f"- {text(value)}\n")) if tag != "code"] == ["ul", "li"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("raise `max`, or `selfcheck: {protocol: h2, again: [rural dsl]}`",) * 2,
        ("loss 1 % & 2 %, x < 3, > 60 s, 21:35, {a} [b] (c) a_b",) * 2,
        ("see https://example.test/a_b?c=1.", "see `https://example.test/a_b?c=1`."),
        ("a <b> &lt; c", "a &#60;b> &#38;lt; c"),
        ("one ` alone", "one &#96; alone"),
    ],
)
def test_only_what_would_be_obeyed_at_its_place_is_escaped(value: str, written: str) -> None:
    assert text(value) == written


def test_a_name_is_readable_in_a_terminal_too() -> None:
    assert code("lossy 1%/bulk") == "`lossy 1%/bulk`"


@given(NASTY, NASTY)
def test_any_name_and_text_fit_into_a_cell(first: str, second: str) -> None:
    shown = page(f"| a | b |\n| --- | --- |\n| {code(first)} | {text(second)} |\n")
    cells = [words(cell) for cell in shown.iter("td")]
    assert cells == [plain(first), uncoded(second)]
    assert set(tags(shown)) <= OURS


@given(NASTY)
def test_nothing_becomes_a_link_a_person_or_an_issue(value: str) -> None:
    for written in (text(value), code(value)):
        left = re.sub(r"`[^`]*`", "", written.replace("<!-- -->", ""))  # nothing is looked for in code
        assert not re.search(r"@|://|www\.|(?<!&)#|\$", left, re.IGNORECASE)


def test_github_finds_nobody_in_the_finished_page() -> None:
    html = GITHUB.render(text("thanks @somebody, see owner/name#12"))
    assert not re.search(r"@\w|#\d", html), "a comment stands between"


@pytest.mark.parametrize("name", RUNS)
def test_every_summary_has_a_table_for_each_judged_metric_with_a_row_for_each_condition(name: str) -> None:
    data = RUNS[name]().data(name)
    shown = page(summary(data))
    tables = [[[words(cell) for cell in row] for row in each.iter("tr")] for each in shown.iter("table")]
    pairs = len(data.matrix.compare) or len(data.matrix.arms) * (len(data.matrix.arms) - 1) // 2
    widths = [1 + len(data.matrix.arms) + pairs + 1, *[1 + pairs] * 2] if pairs else []
    assert [len(rows[0]) for rows in tables] == widths
    for rows, width in zip(tables, widths, strict=True):
        assert {len(row) for row in rows} == {width}
        assert len(rows) == 1 + len(data.matrix.conditions)
    keys = {plain(condition.profile.name) for condition in data.matrix.conditions}
    assert not tables or all(any(key in row[0] for row in tables[0][1:]) for key in keys)
    assert [rows[0][0] for rows in tables[1:]] == ["by mean completion time", "by median time per request"][
        : len(tables)
    ]
    assert set(tags(shown)) <= OURS
    assert [item.get("href") for item in shown.iter("a")] == ["report.html"]


def test_hostile_names_are_read_as_they_were_written() -> None:
    shown = words(page(summary(RUNS["hostile"]().data("hostile"))))
    for name in HOSTILE:
        assert plain(name) in shown


def test_a_cell_says_everything_about_a_comparison() -> None:
    matrix = example_matrix(PROFILES[0], repeat=Repetition(least=24, most=24))
    time_s = {Protocol.H1: 1.23, Protocol.H2: 1.0, Protocol.H3: 1.0}
    results = tuple(ok(trial, time_s[trial.protocol]) for trial in trials_of(matrix))
    said = summary(Golden(matrix, results).data("x"))
    assert (
        "| `clean`: no impairment | 1.23 s | 1.00 s | 1.00 s | ✓ HTTP/3 1.23x [1.23, 1.23] | "
        "✓ tie 1.00x [1.00, 1.00] | ✓ HTTP/2 1.23x [1.23, 1.23] | 24 |" in said
    )
    assert (
        "| `clean`: no impairment | ✓ HTTP/3 1.23x [1.23, 1.23] | ✓ tie 1.00x [1.00, 1.00] | "
        "✓ HTTP/2 1.23x [1.23, 1.23] |" in said
    ), "by another judged metric"


def test_warnings_come_before_the_table_and_trials_that_did_not_finish_are_in_it() -> None:
    said = summary(RUNS["mixed"]().data("mixed"))
    assert said.index("the network was not verified") < said.index("`clean`: no impairment")
    row, *_ = (line for line in said.splitlines() if "| `loss-corrupt`: " in line)
    assert "unfinished trials: 2 (HTTP/1.1), 1 (HTTP/2) |" in row


def test_a_self_check_that_failed_comes_before_everything_and_cannot_be_overlooked() -> None:
    matrix = checked_matrix()
    slow: dict[Arm, float] = {H2.twin(Role.AGAIN): 1.5}
    results = tuple(ok(trial, slow.get(trial.arm, 1.0)) for trial in trials_of(matrix))
    shown = page(summary(Golden(matrix, results).data("x")))
    (alarm,) = shown.iter("blockquote")
    assert list(shown).index(alarm) == 1, "after the heading"
    assert words(alarm).count("self-check FAILED") == 3
    assert not [item for item in shown.iter("li") if "FAILED" in words(item)]


@pytest.mark.parametrize("name", ["mixed", "checked", "in-progress"])
def test_the_page_of_a_job_says_what_to_trust_as_the_report_does(name: str) -> None:
    data = RUNS[name]().data(name)
    shown = words(page(summary(data)))
    assert uncoded(trust_line(data)) in shown


def test_comparisons_are_called_as_in_the_matrix() -> None:
    """The candidate first, also if it is a variant of the newest protocol."""
    heads = [line for line in summary(RUNS["arms"]().data("x")).splitlines() if " against " in line and "|" in line]
    assert len(heads) > 1
    assert all("HTTP/3 (as-shipped) against HTTP/3 " in line for line in heads)
    assert not any("HTTP/3 against HTTP/3 (as-shipped)" in line for line in heads)


def test_what_is_open_has_a_price() -> None:
    data = everything()
    assert data.judgement.open
    assert re.search(r"(clean|delay): HTTP/.+ not sure by any metric; ", summary(data))
    assert "self-check open: " in summary(data)


def test_a_run_without_a_title_has_a_heading() -> None:
    data = RUNS["small"]().data("small")
    assert summary(replace(data, matrix=replace(data.matrix, title=""))).startswith("## Headwind\n")


@pytest.mark.parametrize("word", ["unclear", "likely"])
def test_what_another_metric_settled_says_how_to_settle_the_first(tmp_path: Path, word: str) -> None:
    """It got no more blocks, was listed nowhere, and nothing named `judge`."""
    matrix = fake.example_matrix(Profile("clean"), repeat=Repetition(12, 60))
    rng, results = random.Random(3), []
    for good in fake.ok_results(replace(matrix, repeat=Repetition.fixed(12))):
        done_s = {"h1": 4.0, "h2": 2.0, "h3": 1.0}[good.trial.arm.name] * (1 + good.trial.block.index / 1000)
        slight = (1.01, 1.06)[good.trial.block.index % 2] ** {"h1": 2, "h2": 1, "h3": 0}[good.trial.arm.name]
        total_s = slight if word == "likely" else rng.uniform(1, 3)
        results.append(replace(good, metrics={**good.metrics, "total_s": total_s, "mean_done_s": done_s}))
    with fake.recorded(tmp_path, matrix, results) as run:
        data = RunData.of(run)
    (sentence,) = without_forecast(data)
    first = "clean (HTTP/3 against HTTP/1.1, HTTP/3 against HTTP/2, and HTTP/2 against HTTP/1.1)"
    assert sentence == (
        "No more blocks are planned for these comparisons, since another metric is sure (total time is not): "
        f"{first}. To run until total time is sure as well, start a new run with `judge: [total_s]` in its matrix file."
    )
    assert "`judge: [total_s]`" in unescape(summary_md(data, data.judgement, "report.html"))
    page = render(data, 0.0)
    assert "<code>judge: [total_s]</code>" in page
    assert ("Times are for blocks that run one after another" in page) == bool(data.still_open)
    assert without_forecast(replace(data, matrix=replace(matrix, repeat=Repetition.fixed(12)))) == []


def test_sure_has_one_definition() -> None:
    """The first one of the page lacked the correction for the number of comparisons."""
    data = RUNS["small"]().data("small")
    sure = sure_text(data.judgement.rule)
    assert sure.endswith("significant after correction for multiple comparisons")
    assert f"sure: {sure} (" in summary(data)
    page = render(data, 0.0)
    assert page.count(f"<dt>✓ sure</dt><dd>{sure}; at most 10 % of sure results") == 1
    assert "is sure: " not in page.replace(sure, "") or f"is sure: {sure}" in page


def test_code_in_a_sentence_leaves_names_with_a_hyphen_whole() -> None:
    assert coded("delay-loss: raise `max`", whole) == '<span class="whole">delay-loss:</span> raise <code>max</code>'
