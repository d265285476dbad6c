"""A chart shows every trial where its value is, says what is missing, and reads the same everywhere."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import html5lib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from headwind.arm import PLAIN, TWINS, Arm, Protocol
from headwind.matrix.arms import MOST_ARMS
from headwind.observed import NOTHING, Observed
from headwind.report.html import charts
from headwind.report.html.charts import Bar, DotSeries, RunningPoint, SweepPoint
from headwind.report.html.charts.marks import arm_style, stamp
from headwind.report.html.charts.svg import WIDTH, Point
from headwind.workloads.h2load import TOTAL
from tests.drawn import Drawn

CSS = (Path(charts.__file__).parent.parent / "templates" / "charts.css").read_text()
NAMES: dict[str, Any] = {"title": "Total time", "description": "Every trial."}
ARMS = ["h1", "h2", "h3", "h2-again", "h2-slower"]
HOSTILE = ["<script>alert(1)</script> & \"'", "\N{FAMILY}\u200d\u05e2\u05d1\u202e\u05e8", "long " * 60, "]]>\x00\ud800"]


def times(arm: str, values: Sequence[float], *, stopped: int = 0, failed: int = 0, label: str = "") -> DotSeries:
    marks = [Observed.finished(value) for value in values]
    marks += [Observed.unfinished(60.0)] * stopped + [NOTHING] * failed
    random.Random(arm).shuffle(marks)
    return DotSeries(arm, label or arm, marks)


def noisy(arm: str, middle: float, count: int = 60, sd: float = 0.4, stopped: int = 0, failed: int = 0) -> DotSeries:
    chance = random.Random(arm)
    return times(arm, [middle * math.exp(chance.gauss(0, sd)) for _ in range(count)], stopped=stopped, failed=failed)


def three(name: str, series: Sequence[DotSeries]) -> dict[str, Markup]:
    blocks = range(max(len(item.marks) for item in series))
    series = [DotSeries(s.arm, s.label, [*s.marks, *[None] * (len(blocks) - len(s.marks))]) for s in series]
    return {
        f"dots {name}": charts.dots("a", series, blocks=blocks, metric=TOTAL, **NAMES),
        f"ecdf {name}": charts.ecdf("a", series, timeout_s=60, metric=TOTAL, **NAMES),
        f"violin {name}": charts.violin("a", series, metric=TOTAL, **NAMES),
    }


def run(points: Sequence[tuple[float | None, float, float]]) -> Markup:
    numbered = [RunningPoint(blocks, *point) for blocks, point in enumerate(points, 1)]
    return charts.running("a", numbered, margin_ratio=0.05, **NAMES)


def swept(curves: Sequence[Sequence[SweepPoint]], *evens: float, quantity: str = "loss_ratio") -> Markup:
    named = [(f"key {index}", f"HTTP/{index} against x", curve) for index, curve in enumerate(curves)]
    crossovers = [("h3 and h1", value) for value in evens]
    return charts.sweep("a", named, quantity=quantity, margin_ratio=0.05, crossovers=crossovers, **NAMES)


def glyph(estimate: float | None, low: float, high: float, label: str = "1.23x") -> Markup:
    return charts.interval("a", estimate, low, high, margin_ratio=0.05, domain=(0.5, 2.0), label=label)


def near(found: Sequence[Point], expected: Sequence[Point], within: float = 0.21) -> bool:
    return len(found) == len(expected) and bool(np.allclose(found, expected, rtol=0, atol=within))


STEPS = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2]
RISING = [
    SweepPoint(v, 0.8 * math.exp(6 * v), 0.7 * math.exp(6 * v), 0.9 * math.exp(6 * v), "beats", v > 0.05) for v in STEPS
]
OPEN = SweepPoint(0.2, None, 0.0, 0.5, "▼", is_clear=True)
CLOSING = [(1.2, 0.0, math.inf)] * 6 + [(1.2, 1.2 - 2 / n, 1.2 + 3 / n) for n in range(7, 61)]
BARS = [
    Bar(arm, n % 2, 9.0 * n + 3 * i, 2.5, None if n == 7 else 1 + n / 90, n != 7)
    for n in range(40)
    for i, arm in enumerate(ARMS[:3])
]


def specimens() -> dict[str, Markup]:
    """Every kind of chart, of usual values and of the strangest."""
    usual = [noisy("h1", 22, 50, stopped=6, failed=4), noisy("h2", 9, 45, stopped=15), noisy("h3", 3)]
    found = three("usual", usual) | three("twins", [noisy(arm, 1, 30, 0.1) for arm in ARMS])
    found |= three("one", [times("h1", [0.4]), DotSeries("h3", "h3", [None])])
    found |= three("equal", [times("h1", [0.4] * 9), times("h2", [0.4] * 9)])
    found |= three("failed", [times("h1", [], failed=9)]) | three("stopped", [times("h1", [], stopped=9)])
    found |= three("both", [times("h1", [], failed=9), times("h3", [], stopped=9)])
    found |= three("nothing", [DotSeries("h1", "h1", [None] * 9)])
    found |= three("decades", [noisy("h1", 1, 200, 3), noisy("h2", 0.01, 200, 2, stopped=9)])
    found |= three("zero", [times("h1", [0.0, 0.0, 1.0, 2.0, 3.0]), times("h2", [0.0] * 6)])
    found |= three(
        "hostile", [times(arm, [1, 2, 3], failed=1, label=label) for arm, label in zip(ARMS[:4], HOSTILE, strict=True)]
    )
    found |= {"running usual": run(CLOSING), "running one": run([(1.2, 0, math.inf)]), "running none": run([])}
    found |= {"running unknown": run([(None, 0, math.inf)] * 9), "running far": run([(math.inf, 2, math.inf)] * 200)}
    found |= {"running gone": run([(0.0, 0.0, 1e-9)] * 3), "running tie": run([(1.0, 0.98, 1.02)] * 20)}
    found |= {"sweep usual": swept([RISING, [*RISING[:-1], OPEN]], 0.03, 0.04), "sweep none": swept([], 0.1)}
    found |= {
        "sweep one": swept([RISING[3:4]]),
        "sweep far": swept([[SweepPoint(1, math.inf, 2, math.inf, "beats", True)]]),
    }
    found |= {
        "sweep delays": swept([[SweepPoint(v, 1.1, 1, 1.2, "=", False) for v in (0.001, 0.1, 1)]], quantity="delay_s")
    }
    found |= {"timeline usual": charts.timeline("a", BARS, ["clean/pages", HOSTILE[0]], **NAMES)}
    found |= {"timeline one": charts.timeline("a", [Bar("h1", 0, 0, 60, None, False)], [HOSTILE[2]], **NAMES)}
    found |= {"timeline none": charts.timeline("a", [], [], **NAMES)}
    found |= {
        f"interval {n}": glyph(*args) for n, args in enumerate([(1.2, 1.1, 1.3), (None, 0, math.inf), (9, 8, 11)])
    }
    return found | {"interval hostile": glyph(1, 0.9, 1.1, HOSTILE[0])}


SPECIMENS = specimens()
every = pytest.mark.parametrize("name", SPECIMENS)


@every
def test_every_chart_is_well_formed_and_reads_itself_out(name: str) -> None:
    chart = SPECIMENS[name]
    page = f"<!DOCTYPE html><html lang='en'><head><title>x</title></head><body>{chart}</body></html>"
    html5lib.HTMLParser(strict=True).parse(page)
    root = Drawn(chart).root
    assert (root.tag, root.get("role"), root.get("id")) == ("svg", "img", "a")
    ids = [item.attrib["id"] for item in root.iter() if "id" in item.attrib]
    assert len(set(ids)) == len(ids)
    assert all(found == "a" or found.startswith("a-") for found in ids)
    heard = [item.tag for item in root if item.tag in ("title", "desc") and item.text]
    assert heard == [item.tag for item in root][: len(heard)] == ["title", "desc"][: 1 if "interval" in name else 2]


@every
def test_nothing_in_a_chart_decides_a_colour_runs_or_is_fetched(name: str) -> None:
    for item in Drawn(SPECIMENS[name]).root.iter():
        assert item.tag in {"svg", "title", "desc", "defs", "use", "g", "path", "text"}
        assert not {key for key in item.attrib if key in ("style", "fill", "stroke") or key.startswith("on")}
        assert item.get("href", "#").startswith("#")


@every
def test_places_are_short_finite_and_inside_the_picture(name: str) -> None:
    drawn = Drawn(SPECIMENS[name])
    _, _, width, height = map(float, drawn.root.attrib["viewBox"].split())
    for item in drawn.root.iter():
        for key in {"d", "x", "y", "viewBox", "stroke-width", "data-x", "data-y"} & item.attrib.keys():
            assert not re.search("nan|inf", item.attrib[key])
            assert key.startswith("data") or not re.search(r"\.\d\d", item.attrib[key])
    for x, y in itertools.chain(*drawn.paths()):
        assert -0.5 <= x <= width + 0.5
        assert -0.5 <= y <= height + 0.5


@every
def test_no_two_texts_overlap_and_none_leaves_the_picture(name: str) -> None:
    drawn = Drawn(SPECIMENS[name])
    _, _, width, height = map(float, drawn.root.attrib["viewBox"].split())
    boxes = list(drawn.boxes())
    for text, left, top, right, bottom in boxes:
        assert max(-left, -top, right - width, bottom - height) <= 1, text
    for (one, *a), (other, *b) in itertools.combinations(boxes, 2):
        apart = max(a[0] - b[2], b[0] - a[2], a[1] - b[3], b[1] - a[3])
        assert apart >= 0, (one, other)


@every
def test_every_class_has_a_rule_in_the_stylesheet(name: str) -> None:
    used = {word for item in Drawn(SPECIMENS[name]).root.iter() for word in item.get("class", "").split()}
    unstyled = {"dots", "ecdf", "violin", "running", "sweep", "above", "failed", "ticks"}
    assert {word for word in used - unstyled if not re.search(rf"\.{word}\b(?!-)", CSS)} == set()


def test_the_same_values_give_the_same_bytes() -> None:
    assert specimens() == SPECIMENS


def test_charts_are_small_enough_for_a_page_of_forty_conditions() -> None:
    assert len(SPECIMENS["dots usual"].encode()) < 8_000
    assert len(SPECIMENS["ecdf usual"].encode()) < 5_000
    assert len(SPECIMENS["violin usual"].encode()) < 8_000
    assert len(SPECIMENS["running usual"].encode()) < 4_000
    assert len(SPECIMENS["interval 0"].encode()) < 500


marks = st.lists(
    st.none() | st.floats(1e-3, 60).map(Observed.finished) | st.just(Observed.unfinished(60.0)) | st.just(NOTHING),
    min_size=1,
    max_size=40,
)


@given(marks, st.sampled_from(ARMS))
def test_a_dot_stands_for_every_trial_at_its_block_and_time(given_marks: list[Observed | None], arm: str) -> None:
    blocks = range(3, 3 + len(given_marks))
    present = [(block, mark) for block, mark in zip(blocks, given_marks, strict=True) if mark]
    chart = charts.dots("a", [DotSeries(arm, arm, given_marks)], blocks=blocks, metric=TOTAL, **NAMES)
    drawn = Drawn(chart)
    if not present:
        assert drawn.texts == ["No trial gave data yet."]
        return
    x = drawn.axis("x")
    dots = drawn.marks(arm, x.end)
    arrows, crosses = drawn.paths(arm, "above"), drawn.paths(arm, "failed")
    done = [(block, mark.known) for block, mark in present if mark.is_finished]
    assert len(dots) + len(arrows) + len(crosses) == len(present)
    assert [dot[0] for dot in dots] == pytest.approx([x.place(block) for block, _ in done], abs=0.3)
    if done:
        y = drawn.axis("y")
        assert [dot[1] for dot in dots] == pytest.approx([y.place(value) for _, value in done], abs=0.4)
    for kind, shapes in (("above", arrows), ("failed", crosses)):
        expected = [x.place(block) for block, mark in present if mark.kind == kind]
        assert [shape[0][0] for shape in shapes] == pytest.approx(expected, abs=0.2)
    heights = [max((y for _, y in shape), default=0) for shape in (*crosses, *arrows)] + [y for _, y in dots]
    order = ["failed"] * len(crosses) + ["above"] * len(arrows) + ["dot"] * len(dots)
    for (one, kind), (other, other_kind) in itertools.combinations(zip(heights, order, strict=True), 2):
        assert kind == other_kind or one < other


def test_trials_that_were_stopped_or_failed_are_counted_beside_their_row() -> None:
    drawn = Drawn(SPECIMENS["dots usual"])
    assert [text for text in drawn.texts if " of " in text] == ["4 of 60", "6 of 60", "15 of 60"]
    assert {"failed", "> 60 s"} <= set(drawn.texts)
    assert len(drawn.paths("timeout")) == 1


def test_a_series_without_a_mark_for_each_block_is_refused() -> None:
    with pytest.raises(ValueError, match="for each block"):
        charts.dots("a", [times("h1", [1, 2])], blocks=[0], metric=TOTAL, **NAMES)


@given(st.lists(st.floats(0.01, 59), min_size=1, max_size=50), st.integers(0, 9), st.integers(0, 9))
def test_a_curve_is_at_each_time_as_high_as_the_share_that_was_done(
    values: list[float], stopped: int, failed: int
) -> None:
    series = times("h2", values, stopped=stopped, failed=failed)
    drawn = Drawn(charts.ecdf("a", [series], timeout_s=60, metric=TOTAL, **NAMES))
    x, y = drawn.axis("x"), drawn.axis("y")
    (curve,) = drawn.paths("h2", "curve")
    total = len(values) + stopped + failed
    assert curve[-1] == pytest.approx((x.end, y.place(len(values) / total)), abs=0.2)
    for place in np.linspace(x.start, x.end, 23):
        if min(abs(x.place(value) - place) for value in values) > 1:  # the ends of an axis have six digits
            share = sum(x.place(value) < place for value in values) / total
            height = next((py for px, py in reversed(curve) if px <= place), y.start)
            assert height == pytest.approx(y.place(share), abs=0.2)
    assert bool(drawn.paths("bracket")) == bool(stopped or failed)
    assert any("not finished" in text for text in drawn.texts) == bool(stopped or failed)
    is_drawn = bool(stopped) and 5 * max(values) >= 60
    assert [line[0][0] for line in drawn.paths("timeout")] == pytest.approx([x.end] * is_drawn, abs=0.1)


@pytest.mark.parametrize("arm", [*PLAIN, Arm("h2-bbr", Protocol.H2)], ids=str)
def test_twins_for_self_checks_have_marks_of_their_own(arm: Arm) -> None:
    """That of h2-bbr on a slower network was a square like h2-bbr itself."""
    of_arm, again, slower = (stamp(twin.name, [(9, 9)], 5) for twin in (arm, *map(arm.twin, TWINS)))
    (outline,) = re.findall(r' d="([^"]*)"', slower)
    assert outline == re.findall(r' d="([^"]*)"', stamp("h2-slower", [(9, 9)], 5))[0]
    assert outline not in of_arm
    assert outline not in again
    assert "hollow" in again
    assert ("hollow" in of_arm) is (arm not in PLAIN)


def test_curves_of_an_arm_and_its_twins_have_dashes_of_their_own() -> None:
    rules = arm_style([Arm("h2-bbr", Protocol.H2)])
    dashes = dict(re.findall(r"\.(h2-bbr\S*)\.curve \{ stroke-dasharray: ([^;]+);", rules))
    assert set(dashes) == {"h2-bbr", "h2-bbr-again", "h2-bbr-slower"}
    assert len(set(dashes.values())) == 3


def test_the_missing_mass_is_told_and_measured_by_a_bracket() -> None:
    drawn = Drawn(
        charts.ecdf("a", [times("h1", [1, 2, 3, 20], stopped=1, failed=1)], timeout_s=60, metric=TOTAL, **NAMES)
    )
    assert "33 % not finished" in drawn.texts
    assert "timeout 60 s" in drawn.texts
    (bracket,) = drawn.paths("bracket")
    y = drawn.axis("y")
    assert sorted({point[1] for point in bracket}) == pytest.approx([y.place(1), y.place(4 / 6)], abs=0.1)


def test_the_legend_names_the_arms_in_their_order_whoever_is_ahead() -> None:
    slow_first = [times("h1", [4, 5, 6]), times("h2", [2, 3, 4]), times("h3", [1, 2, 3])]
    fast_first = [times("h1", [1, 2, 3]), times("h2", [2, 3, 4]), times("h3", [4, 5, 6])]
    for series in (slow_first, fast_first):
        for chart in (
            charts.ecdf("a", series, timeout_s=60, metric=TOTAL, **NAMES),
            charts.dots("a", series, blocks=[0, 1, 2], metric=TOTAL, **NAMES),
        ):
            places = {text: top for text, _, top, _, _ in Drawn(chart).boxes()}
            assert places["h1"] < places["h2"] < places["h3"]


def test_all_charts_of_a_condition_share_one_logarithmic_axis() -> None:
    series = [noisy("h1", 20, 32), noisy("h2", 24, 30, stopped=2)]
    span = charts.span(series, 60)
    drawn = (
        charts.dots("a", series, blocks=range(32), metric=TOTAL, span=span, **NAMES),
        charts.violin("a", series, metric=TOTAL, span=span, **NAMES),
    )
    along = Drawn(charts.ecdf("a", series, timeout_s=60, metric=TOTAL, span=span, **NAMES)).axis("x")
    for chart in drawn:
        up = Drawn(chart).axis("y")
        assert up.kind == "log"
        assert (up.kind, up.low, up.high) == (along.kind, along.low, along.high)
    assert along.high >= 60, "a trial was stopped there"
    assert charts.span([times("h1", [0.0, 1.0])], None) is None, "zero has no logarithm"


def test_a_timeout_far_beyond_all_times_takes_no_room_from_them() -> None:
    assert not Drawn(charts.ecdf("a", [times("h1", [0.4, 0.5])], timeout_s=60, metric=TOTAL, **NAMES)).paths("timeout")
    for slowest_s, is_drawn in ((25, True), (0.5, False)):
        stopped = times("h1", [0.4, slowest_s], stopped=1)
        drawn = Drawn(charts.ecdf("a", [stopped], timeout_s=60, metric=TOTAL, **NAMES))
        assert bool(drawn.paths("timeout")) is is_drawn
        assert (drawn.axis("x").high >= 60) is is_drawn
        _, high = charts.span([stopped], 60) or (0, 0)
        assert (high >= 60) is is_drawn
    for slowest_s in (0.5, 25, 59):
        finished = Drawn(charts.ecdf("a", [times("h1", [0.4, slowest_s])], timeout_s=60, metric=TOTAL, **NAMES))
        assert not finished.paths("timeout"), "nothing was stopped"


def test_a_violin_has_its_box_at_the_quartiles_and_a_dot_for_every_time() -> None:
    series = noisy("h2", 1, 30)
    drawn = Drawn(charts.violin("a", [series], metric=TOTAL, **NAMES))
    y, values = drawn.axis("y"), series.values()
    (box,), (median,), (whisker,) = (drawn.paths(part) for part in ("box", "median", "whisker"))
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    assert sorted({point[1] for point in box}) == pytest.approx([y.place(high), y.place(low)], abs=0.1)
    assert median[0][1] == pytest.approx(y.place(middle), abs=0.1)
    assert [whisker[0][1], whisker[1][1]] == pytest.approx([y.place(min(values)), y.place(max(values))], abs=0.1)
    dots = drawn.marks("h2", WIDTH)
    assert [dot[1] for dot in dots] == pytest.approx(sorted(map(y.place, values), reverse=True), abs=0.2)
    assert max(x for x, _ in dots) < min(x for x, _ in box)
    assert max(x for x, _ in box) < min(x for x, _ in drawn.paths("density")[0])
    assert all(math.dist(*pair) > 3.8 for pair in itertools.combinations(dots, 2))


@pytest.mark.parametrize(("count", "dots", "boxes"), [(4, 4, 0), (5, 5, 1), (30, 30, 1), (31, 0, 1)])
def test_few_times_are_dots_and_many_a_shape(count: int, dots: int, boxes: int) -> None:
    drawn = Drawn(charts.violin("a", [noisy("h1", 1, count)], metric=TOTAL, **NAMES))
    assert (len(drawn.marks("h1", WIDTH)), len(drawn.paths("box")), len(drawn.paths("density"))) == (dots, boxes, boxes)


def test_a_violin_counts_what_has_no_time_and_leaves_its_box_open() -> None:
    drawn = Drawn(
        charts.violin("a", [noisy("h1", 1, 6, stopped=4), noisy("h2", 1, 6, failed=6)], metric=TOTAL, **NAMES)
    )
    assert [text for text in drawn.texts if " of " in text] == ["4 of 10", "6 of 12"]
    assert min(y for _, y in drawn.paths("h1", "box")[0]) == pytest.approx(drawn.axis("y").end)
    assert not drawn.all("h1", "box")[0].attrib["d"].endswith("z")
    assert "\N{EM DASH}" in drawn.texts  # half of h2's trials failed: there is no median
    assert "> 60 s" in Drawn(charts.violin("a", [times("h1", [1], stopped=3)], metric=TOTAL, **NAMES)).texts


def test_a_running_interval_is_drawn_block_by_block_and_its_last_value_told() -> None:
    drawn = Drawn(SPECIMENS["running usual"])
    x, y = drawn.axis("x"), drawn.axis("y")
    (curve,), (ribbon,) = drawn.paths("curve"), drawn.paths("ribbon")
    assert near(curve, [(x.place(n), y.place(1.2)) for n in range(1, 61)])
    assert near(ribbon[:6], [(x.place(n), y.end) for n in range(1, 7)])  # open above
    assert ribbon[-7] == pytest.approx((x.place(6), y.start), abs=0.1)  # and below
    assert ribbon[59] == pytest.approx((x.place(60), y.place(1.2 + 3 / 60)), abs=0.1)
    assert {"1.20x", "[1.17, 1.25]"} <= set(drawn.texts)
    (tie,), (one,) = drawn.paths("tie"), drawn.paths("one")
    assert sorted({point[1] for point in tie}) == pytest.approx([y.place(1.05), y.place(1 / 1.05)], abs=0.1)
    assert one[0][1] == pytest.approx(y.place(1), abs=0.1)


def test_an_estimate_that_is_not_known_interrupts_the_line() -> None:
    points = [(1.0, 0.9, 1.1), (1.1, 0.9, 1.2), (None, 0.0, 1.5), (1.1, 0.9, 1.2), (1.2, 0.9, 1.3)]
    assert [len(line) for line in Drawn(run(points)).paths("curve")] == [2, 2]
    assert "?" in Drawn(run(points[:3])).texts


def test_a_sweep_shows_every_step_and_fills_only_what_is_clear() -> None:
    drawn = Drawn(SPECIMENS["sweep usual"])
    x, y = drawn.axis("x"), drawn.axis("y")
    points = drawn.marks("c1", x.end + 2)
    expected = [(x.place(p.value), y.place(p.estimate or 0)) for p in RISING]
    assert near(sorted(points), expected)
    assert len(drawn.paths("c1", "hollow")) == sum(not point.is_clear for point in RISING)
    assert [item.text for item in drawn.all("c2", "symbol")] == ["▼"]
    assert [line[0][0] for line in drawn.paths("crossover")] == pytest.approx([x.place(0.03), x.place(0.04)], abs=0.1)
    assert {"h3 and h1 even at 3.00 %", "h3 and h1 even at 4.00 %", "loss"} <= set(drawn.texts)
    told = [item.text for item in drawn.root.iter("title")]
    assert "HTTP/0 against x, 10 %: beats 1.46x [1.28, 1.64]" in told


def test_a_timeline_has_every_trial_in_its_lane_and_its_drift_below() -> None:
    drawn = Drawn(SPECIMENS["timeline usual"])
    x, y = drawn.axis("x"), drawn.axis("y")
    top, height, lanes = map(float, drawn.root.attrib["data-lanes"].split())
    bars = {arm: [line for line in drawn.paths(arm, "bar") if line[0][1] > top] for arm in ARMS[:3]}
    for arm, lines in bars.items():
        mine = sorted((bar for bar in BARS if bar.arm == arm), key=lambda bar: (bar.lane, bar.start_s))
        assert [line[0][0] for line in lines] == pytest.approx([x.place(bar.start_s) for bar in mine], abs=0.1)
        assert [(line[0][1] - top) // height for line in lines] == [bar.lane for bar in mine]
        assert all(line[1][0] - line[0][0] >= 1 for line in lines)
    rows = {round((line[0][1] - top) % height, 1) for lines in bars.values() for line in lines}
    assert (lanes, len(rows)) == (2, 3)  # an arm is known by its row as well
    assert len(drawn.paths("stop")) == 1 + sum(not bar.finished for bar in BARS)  # one of them in the key
    told = [(x.place(bar.start_s), y.place(bar.relative)) for bar in BARS if bar.relative]
    assert near([dot[0] for dot in drawn.paths("drift")], told, within=0.6)
    (median,) = drawn.paths("median")
    assert median[0][1] > median[-1][1]  # it rose, as the times did


def test_the_shortest_trial_of_a_long_run_can_still_be_seen() -> None:
    day = [Bar("h1", 0, 0, 0.4, 1, finished=True), Bar("h2", 0, 86_000, 60, 1, finished=True)]
    for arm in ("h1", "h2"):
        _, (begin, end) = Drawn(charts.timeline("a", day, ["x"], **NAMES)).paths(arm, "bar")
        assert end[0] - begin[0] == pytest.approx(1)


def test_an_interval_that_leaves_the_domain_has_an_arrow_head_on_that_side() -> None:
    def heads(low: float, high: float) -> list[float]:
        return [head[0][0] for head in Drawn(glyph(1, low, high)).paths("head")]

    assert [heads(0.9, 1.1), heads(0.4, 1.1), heads(0.9, math.inf), heads(0, 3)] == [[], [0], [120], [0, 120]]
    assert not Drawn(glyph(2.5, 2.2, 3)).paths("c1")  # the estimate lies outside as well
    assert Drawn(glyph(1, 0.9, 1.1)).paths("c1")[0][0] == (60, 7)
    with pytest.raises(ValueError, match="no ratios"):
        charts.interval("a", 1, 1, 1, margin_ratio=0.05, domain=(2, 1), label="")


def test_hostile_labels_are_text_and_long_ones_are_whole_in_their_title() -> None:
    chart = SPECIMENS["ecdf hostile"]
    assert "<script" not in chart
    assert "\u202e" not in chart
    assert "\x00" not in chart
    titles = [item.text for item in Drawn(chart).root.iter("title")]
    assert HOSTILE[0] in titles
    assert HOSTILE[2] in titles
    assert not any(len(text) > 30 for text in Drawn(chart).texts)


def test_every_arm_beyond_the_plain_ones_has_a_colour_and_a_line_of_its_own() -> None:
    arms = [Arm(f"h2-n{number}", Protocol.H2) for number in range(MOST_ARMS)]
    rules = arm_style([*PLAIN, *arms])
    marks = re.findall(r"\.chart \.([\w-]+), \.arm\.\1, \.cell\.\1 \{ --mark: var\(--(a\d)\); \}", rules)
    assert [name for name, _ in marks] == [arm.name for arm in arms]
    assert {f"--{colour}" for _, colour in marks} == {f"--a{number}" for number in range(1, MOST_ARMS + 1)}
    dashes = re.findall(r"\.chart \.([\w-]+)\.curve \{ stroke-dasharray: ([^;]+); \}", rules)
    own = [dash for name, dash in dashes if name in {arm.name for arm in arms}]
    assert len(set(own)) == len(own) == MOST_ARMS
    assert all(f"--{colour}:" in CSS for _, colour in marks)
    assert arm_style(PLAIN) == ""


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_colour_stands_out_from_its_ground() -> None:
    roots = [dict(re.findall(r"--(\w+): (#\w{6})", body)) for body in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)]
    assert len(roots) == 3
    assert roots[0] == roots[2]
    for colours, ground in zip(roots, ("#ffffff", "#12161c", "#ffffff"), strict=True):
        assert len(colours) == 19
        arms = [colour for name, colour in colours.items() if not name.startswith("c")]
        assert len(set(arms)) == len(arms), "two arms of a chart look alike"
        for colour in colours.values():
            dark, light = sorted((luminance(colour), luminance(ground)))
            assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_a_square_is_seen_on_paper_too() -> None:
    """A line of no length with square ends is nothing in a PDF (ISO 32000-1, 8.5.3.2); with round ones it is a dot."""
    for arm, look in (("h2", "square"), ("h1", "round")):
        drawn = Drawn(f"<svg>{charts.icon(arm)}</svg>")
        ((first, last),) = drawn.paths(arm, look)
        assert (first != last) is (look == "square")
        assert math.dist(first, last) <= 0.1


def test_names_under_many_columns_are_whole() -> None:
    names = [
        "HTTP/1.1",
        "HTTP/2",
        "HTTP/3",
        "HTTP/1.1 (six)",
        "HTTP/2 (bbr)",
        "HTTP/3 (as-shipped)",
        "HTTP/2 (bbr-again)",
    ]
    series = [times(f"h{number % 3 + 1}", [1, 2, 3], label=name) for number, name in enumerate(names)]
    drawn = Drawn(charts.violin("a", series, metric=TOTAL, **NAMES))
    assert {word for name in names for word in name.split()} <= {word for text in drawn.texts for word in text.split()}
    boxes = list(drawn.boxes())
    assert max(right for _, _, _, right, _ in boxes) <= WIDTH + 1
    for (one, left, top, right, bottom), (other, *box) in itertools.combinations(boxes, 2):
        assert right <= box[0] or box[2] <= left or bottom <= box[1] or box[3] <= top, (one, other)
