"""Sure, likely or unclear: small cases of one comparison, by one metric and by several."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.answered import narrowest
from headwind.arm import H1, H2, H3, Role
from headwind.report.cells import cell_of
from headwind.report.certainty import Certainty, certainty_of, known_of, most_apart
from headwind.report.verdicts import sides
from headwind.verdicts.findings import Finding
from headwind.verdicts.verdict import Verdict
from tests.comparisons import OPEN, OTHERS, TOTAL, finding, line
from tests.golden.runs import RUNS


@pytest.mark.parametrize(
    ("case", "certainty"),
    [
        (finding(1.10, 1.30, survives=True), Certainty.SURE),
        (finding(0.70, 0.90, survives=True), Certainty.SURE),
        (finding(0.97, 1.03, survives=True), Certainty.SURE),
        (finding(1.10, 1.30), Certainty.LIKELY),  # not among all comparisons
        (finding(0.97, 1.03), Certainty.LIKELY),
        (finding(1.02, 1.30), Certainty.LIKELY),  # may be within the margin; nothing has ended yet
        (finding(0.92, 1.19), Certainty.UNCLEAR),
        (finding(*OPEN, blocks=3), Certainty.UNCLEAR),
        (finding(*OPEN, verdict=Verdict.COMPLETES_MORE, survives=True), Certainty.SURE),
        (finding(*OPEN, verdict=Verdict.COMPLETES_LESS), Certainty.LIKELY),
        (finding(1.10, 1.30, withheld=Verdict.FASTER), Certainty.UNCLEAR),  # it stalls too often
        (finding(0.97, 1.03, new=H2.twin(Role.AGAIN)), Certainty.SURE),  # a self-check is judged alone
    ],
)
def test_how_sure_a_comparison_is_by_one_metric(case: Finding, certainty: Certainty) -> None:
    if case.comparison.withheld:
        stalls = replace(case.comparison.completion, only_base=3, new_finished=9)
        case = replace(case, comparison=replace(case.comparison, completion=stalls))
    assert certainty_of(case) is certainty


@pytest.mark.parametrize(
    ("low", "high", "ratio"), [(0.92, 1.19, 1.19), (0.5, 1.19, 2.0), (1.1, 1.3, 1.3), (0.0, 1.2, math.inf)]
)
def test_an_interval_says_how_far_apart_they_may_be_at_most(low: float, high: float, ratio: float) -> None:
    assert most_apart(finding(low, high).comparison.interval) == pytest.approx(ratio)


def test_where_the_primary_metric_is_not_sure_one_that_is_speaks() -> None:
    unclear, second, third = finding(0.8, 1.4), *(
        finding(1.2, 1.5, survives=True, metric=metric) for metric in OTHERS[:2]
    )  # fmt: skip
    known = known_of(line(unclear, second, third))
    assert (known.certainty, known.finding, known.is_by_primary) == (Certainty.SURE, second, False)
    assert known.differing == ()
    likely = finding(1.02, 1.3)
    assert known_of(line(likely, second)).finding is second
    known = known_of(line(unclear, replace(second, survives=False)))
    assert (known.certainty, known.finding) == (Certainty.UNCLEAR, unclear)
    assert most_apart(known.finding.comparison.interval) == pytest.approx(1.4)


@pytest.mark.parametrize(
    ("primary", "other", "differs"),
    [
        ((1.2, 1.5, True), (0.6, 0.9, True), True),  # the other way round
        ((0.97, 1.03, True), (1.06, 1.09, True), True),  # a lead in a tie
        ((1.2, 1.5, True), (0.97, 1.03, True), True),  # a tie in a lead
        ((1.2, 1.5, True), (0.6, 0.9, False), False),  # what is likely reverses nothing
        ((1.2, 1.5, True), (1.1, 1.2, True), False),
        ((0.8, 1.4, False), (1.1, 1.2, True), False),  # it speaks itself
        ((1.2, 1.5, False), (0.6, 0.9, True), True),  # a likely lead that another metric surely reverses
    ],
)
def test_what_another_metric_surely_says_otherwise_is_named(
    primary: tuple[float, float, bool], other: tuple[float, float, bool], differs: bool
) -> None:
    first, second = (
        finding(low, high, survives=survives, metric=metric)
        for (low, high, survives), metric in zip((primary, other), (TOTAL, OTHERS[0]), strict=True)
    )
    assert known_of(line(first, second)).differing == ((second,) if differs else ())


def test_the_narrowest_metric_bounds_a_difference_that_the_primary_one_leaves_open() -> None:
    wide, narrow = finding(0.5, 2.1), finding(0.98, 1.10, metric=OTHERS[0])
    assert narrowest(line(wide, narrow)) is narrow
    assert narrowest(line(narrow)) is narrow


@pytest.mark.parametrize(
    ("narrow", "withheld", "note"),
    [
        ((0.96, 1.10), None, ""),
        ((1.02, 1.10), None, "likely HTTP/3 1.06x [1.02, 1.10] by {by} (may lead by less than 5 %)"),
        ((0.98, 1.04), None, "likely a tie by {by}: 1.02x slower to 1.04x faster (not significant after correction)"),
        ((0.98, 1.04), Verdict.TIE, ""),
    ],
)
def test_what_the_narrowest_metric_adds_to_an_unclear_cell(
    narrow: tuple[float, float], withheld: Verdict | None, note: str
) -> None:
    """`At most 1.16x apart` was written of what was likely by that metric, and of what too many stalls kept open."""
    other = finding(*narrow, metric=OTHERS[0], withheld=withheld)
    if withheld:
        stalls = replace(other.comparison.completion, only_base=3, new_finished=9)
        other = replace(other, comparison=replace(other.comparison, completion=stalls))
    cell = cell_of(known_of(line(finding(0.5, 2.1), other)), {})
    assert cell.notes == (() if not note else (note.format(by=OTHERS[0].label),))


def test_a_likely_metric_is_named_however_little_the_first_one_leaves_open() -> None:
    """`1.02x slower to 1.10x faster` alone, while the mean completion time was likely 1.20x [1.12, 1.24]."""
    cell = cell_of(known_of(line(finding(0.98, 1.10), finding(1.12, 1.24, metric=OTHERS[0]))), {})
    assert cell.notes == (f"likely HTTP/3 1.18x [1.12, 1.24] by {OTHERS[0].label} (not significant after correction)",)


def test_below_the_fewest_blocks_nothing_is_claimed() -> None:
    known = known_of(line(finding(*OPEN, blocks=1)))
    assert (known.has_interval, known.needs, known.certainty) == (False, 8, Certainty.UNCLEAR)


@pytest.mark.parametrize("name", RUNS)
def test_only_what_survives_among_all_comparisons_is_sure(name: str) -> None:
    data = RUNS[name]().data(name)
    for each in data.judgement.compared:
        known = known_of(each)
        assert (known.certainty is Certainty.SURE) <= known.finding.survives
        if known.certainty is Certainty.SURE and known.verdict is not Verdict.TIE:
            assert {*sides(known.finding)} <= {H1, H2, H3, *data.matrix.arms}
            assert known.verdict.is_clear


@pytest.mark.parametrize(
    ("first", "other", "notes"),
    [
        ((0.98, 1.02), (1.12, 1.24), ("likely HTTP/3 1.18x [1.12, 1.24] by {by} (not significant after correction)",)),
        ((1.10, 1.20), (0.82, 0.90), ("likely HTTP/2 1.16x [1.11, 1.22] by {by} (not significant after correction)",)),
        ((1.10, 1.20), (1.12, 1.24), ()),
        ((1.10, 1.20), (0.98, 1.02), ()),
    ],
)
def test_a_likely_result_does_not_hide_another_likely_lead(
    first: tuple[float, float], other: tuple[float, float], notes: tuple[str, ...]
) -> None:
    """A likely tie by total time stood alone while HTTP/3 likely led by mean completion time."""
    cell = cell_of(known_of(line(finding(*first), finding(*other, metric=OTHERS[0]))), {})
    assert cell.certainty is Certainty.LIKELY
    assert [each for each in cell.notes if " by " in each] == [note.format(by=OTHERS[0].label) for note in notes]
