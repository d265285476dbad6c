"""Sweeps are found in any matrix that has them, and a crossover only where both its sides are clear."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from headwind.arm import H1, H2, H3, Role
from headwind.matrix.reader import load_matrix
from headwind.metric import Metric
from headwind.model import Condition, Matrix, SelfCheck
from headwind.report import render
from headwind.report.formats.terminal import print_summary
from headwind.report.sweeps import Curve, Step, Sweep, crossovers, curves, grids_of, sweeps_of
from headwind.run.codec import State, Status
from headwind.run.data import RunData
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.pairs import Pair
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Comparison, Completion, Rule, Verdict
from headwind.workloads.h2load import REQUEST, TOTAL, H2load
from impair.profile import Corrupt, Delay, Duplicate, GilbertElliott, Link, Loss, Profile, Rate
from tests.fake import ARTICLE, ENVIRONMENT, STARTED_AT, example_matrix, ok, trials_of
from tests.golden.runs import RUNS
from tests.matrix_files import ROOT
from tests.pages import parse, section, words

CLEAN = Profile("clean")


def down(name: str, **parts: object) -> Profile:
    return Profile(name, downlink=Link(**parts))  # type: ignore[arg-type]


def losses(*percents: float, **more: object) -> list[Profile]:
    return [down(f"loss {percent}", loss=Loss(percent / 100), **more) for percent in percents]


def told(*profiles: Profile) -> list[tuple[str, str, list[tuple[float, str]]]]:
    """Every sweep of a matrix with these profiles: parameter, quantity, values with the names of their profiles."""
    return [
        (sweep.parameter, sweep.quantity, [(step.value, step.condition.profile.name) for step in sweep.steps])
        for sweep in sweeps_of(example_matrix(*profiles))
    ]


# Which conditions are a sweep


def test_profiles_that_differ_in_one_number_are_a_sweep_by_rising_value() -> None:
    assert told(*losses(10, 2, 5)) == [
        ("downlink loss", "loss_ratio", [(0.02, "loss 2"), (0.05, "loss 5"), (0.1, "loss 10")])
    ]


def test_two_values_are_no_sweep() -> None:
    assert told(*losses(2, 5)) == []


def test_what_is_not_there_counts_as_zero_whether_it_is_written_or_not() -> None:
    for lowest in (CLEAN, down("nothing", loss=Loss(0.0))):
        ((_, _, steps),) = told(lowest, *losses(2, 5))
        assert steps[0] == (0.0, lowest.name)
    assert len(told(*losses(1, 2), *losses(5, corrupt=Corrupt(0.0), duplicate=Duplicate(0.0)))) == 1


@pytest.mark.parametrize("name", ["delay", "duplicate", "corrupt"])
def test_delay_duplication_and_corruption_are_swept_like_loss(name: str) -> None:
    kind = {"delay": Delay, "duplicate": Duplicate, "corrupt": Corrupt}[name]
    ((parameter, _, steps),) = told(CLEAN, *(down(f"p{share}", **{name: kind(share)}) for share in (0.1, 0.2)))
    assert (parameter, [value for value, _ in steps]) == (f"downlink {name}", [0.0, 0.1, 0.2])


def test_a_rate_that_is_not_there_is_no_step_of_a_sweep_of_rates() -> None:
    rates = [down(f"{mbit} mbit", rate=Rate(mbit * 10**6)) for mbit in (1, 10, 100)]
    assert told(CLEAN, *rates) == [
        ("downlink rate", "rate_bps", [(1e6, "1 mbit"), (1e7, "10 mbit"), (1e8, "100 mbit")])
    ]
    assert told(CLEAN, *rates[:2]) == []


def test_everything_else_must_be_equal() -> None:
    one, two, five = losses(1, 2, 5)
    other = down("other", loss=Loss(0.1), delay=Delay(0.1))
    normal = down("normal", loss=Loss(0.05), delay=Delay(0.1, 0.01, "normal"))
    uniform = [down(f"p{percent}", loss=Loss(percent / 100), delay=Delay(0.1, 0.01)) for percent in (1, 2)]
    upwards = Profile("up", uplink=Link(loss=Loss(0.1)))
    bursty = down("bursty", loss=GilbertElliott(0.01, 0.2))
    assert told(one, two, other) == told(*uniform, normal) == told(one, two, upwards) == told(one, two, bursty) == []
    assert len(told(one, two, five, other, normal, upwards, bursty)) == 1


def test_delay_and_jitter_that_grow_together_are_no_sweep() -> None:
    assert told(*(down(f"d{ms}", delay=Delay(ms / 1000, ms / 10_000)) for ms in (10, 20, 50))) == []
    assert [name for name, _, _ in told(*(down(f"d{ms}", delay=Delay(ms / 1000, 0.005)) for ms in (10, 20, 50)))] == [
        "downlink delay"
    ]


def test_both_directions_alike_are_one_parameter() -> None:
    alike = [Profile(f"d{ms}", Link(delay=Delay(ms / 1000)), Link(delay=Delay(ms / 1000))) for ms in (10, 20)]
    unlike = Profile("unlike", Link(delay=Delay(0.04)), Link(delay=Delay(0.05)))
    assert told(CLEAN, *alike, unlike) == [
        ("delay in both directions", "delay_s", [(0.0, "clean"), (0.01, "d10"), (0.02, "d20")])
    ]


def test_one_direction_is_swept_while_the_other_stays() -> None:
    up = Link(loss=Loss(0.1))
    profiles = [Profile(f"p{percent}", up, Link(loss=Loss(percent / 100))) for percent in (5, 10, 20)]
    assert [name for name, _, _ in told(*profiles)] == ["downlink loss"]


def test_a_part_of_a_loss_model_is_a_parameter_of_its_own() -> None:
    bursts = [down(f"r{share}", loss=GilbertElliott(0.01, share)) for share in (0.1, 0.2, 0.5)]
    ((parameter, quantity, steps),) = told(*bursts)
    assert (parameter, quantity, len(steps)) == ("downlink loss gemodel r", "loss.gemodel.r_ratio", 3)


def test_a_profile_may_be_in_several_sweeps() -> None:
    delays = [down(f"d{ms}", delay=Delay(ms / 1000)) for ms in (10, 20)]
    found = told(CLEAN, *losses(2, 5), *delays)
    assert [name for name, _, _ in found] == ["downlink loss", "downlink delay"]
    assert all(steps[0] == (0.0, "clean") for _, _, steps in found)


def test_of_equal_networks_the_first_is_taken() -> None:
    ((_, _, steps),) = told(*losses(1, 2, 5), down("again", loss=Loss(0.02)))
    assert [name for _, name in steps] == ["loss 1", "loss 2", "loss 5"]
    assert told(*losses(1, 2), down("again", loss=Loss(0.02))) == []


def test_each_workload_has_its_own_sweeps() -> None:
    page, feed = H2load("page", 10, 1, 1), H2load("feed", 10, 1, 1)
    profiles = losses(1, 2, 5)
    conditions = (
        *(Condition(profile, workload) for profile in profiles[:2] for workload in (page, feed)),
        Condition(profiles[2], feed),
    )
    (sweep,) = sweeps_of(Matrix((H1,), conditions, example_matrix().repeat, 60.0, 1))
    assert (sweep.workload, len(sweep.steps)) == ("feed", 3)


def test_the_default_matrix_has_no_sweep() -> None:
    assert sweeps_of(load_matrix(ROOT / "matrix.yaml")) == []


SHARES = st.sampled_from([0.0, 0.1, 0.2])
SMALL_LINKS = st.builds(
    Link,
    loss=st.none() | SHARES.map(Loss),
    corrupt=st.none() | SHARES.map(Corrupt),
    rate=st.sampled_from([None, Rate(10**6), Rate(10**7), Rate(10**8)]),
)
NETWORKS = st.lists(st.tuples(SMALL_LINKS, SMALL_LINKS), min_size=1, max_size=40)


@given(NETWORKS)
def test_sweeps_rise_differ_and_lie_in_no_other(networks: list[tuple[Link, Link]]) -> None:
    profiles = [Profile(f"p{number}", *links) for number, links in enumerate(networks)]
    sweeps = sweeps_of(example_matrix(*profiles))
    for sweep in sweeps:
        assert len(sweep.steps) >= 3
        assert all(left.value < right.value for left, right in pairwise(sweep.steps))
    for one, other in combinations(sweeps, 2):
        assert len({step.condition for step in one.steps} & {step.condition for step in other.steps}) <= 1


@given(NETWORKS, st.randoms())
def test_the_order_of_the_profiles_does_not_decide_what_is_swept(
    networks: list[tuple[Link, Link]], random: object
) -> None:
    def found(order: list[tuple[Link, Link]]) -> list[tuple[str, list[float]]]:
        profiles = [Profile(f"p{number}", *links) for number, links in enumerate(order)]
        sweeps = sweeps_of(example_matrix(*profiles))
        return sorted((sweep.parameter, [step.value for step in sweep.steps]) for sweep in sweeps)

    shuffled = list(networks)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert found(networks) == found(shuffled)


# What was found along a sweep


def swept() -> tuple[Sweep, Judgement]:
    """h3 is slower without loss and faster with it; h2 is like h1."""
    matrix = example_matrix(
        *losses(5, 1), CLEAN, repeat=12, selfcheck=SelfCheck(H2, ("clean",)), title="any"
    )  # written by falling value
    quick = {"clean": 2.0, "loss 1": 0.8, "loss 5": 0.5}
    results = [
        ok(trial, (quick[trial.profile.name] if trial.arm is H3 else 1.0) * (1 + trial.block.index / 1000))
        for trial in trials_of(matrix)
    ]
    data = RunData("run", matrix, tuple(results), ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT))
    (sweep,) = sweeps_of(matrix)
    return sweep, data.judgement


@pytest.mark.parametrize("metric", [TOTAL, REQUEST])
def test_a_curve_has_the_finding_of_every_step_for_every_pair_of_protocols(metric: Metric) -> None:
    sweep, verdicts = swept()
    found = curves(sweep, verdicts, metric)
    assert list(found) == [Pair(H1, H3), Pair(H2, H3), Pair(H1, H2)]
    for pair, curve in found.items():
        assert [step for step, _ in curve] == list(sweep.steps)
        for step, finding in curve:
            assert (finding.condition, finding.pair, finding.metric) == (step.condition, pair, metric)
    assert Pair(H2, H2.twin(Role.AGAIN)) not in found


def test_the_crossover_of_a_run_lies_between_the_losses_where_its_verdict_turns_over() -> None:
    sweep, verdicts = swept()
    found = curves(sweep, verdicts, TOTAL)
    (value,) = crossovers(found[Pair(H1, H3)])
    assert value == pytest.approx(0.01 * math.log(2) / (math.log(2) - math.log(0.8)), rel=1e-6)
    assert crossovers(found[Pair(H1, H2)]) == []


def curve(*points: tuple[float, float | None, Verdict]) -> Curve:
    """Findings made by hand: value, ratio, verdict."""
    found = []
    for value, ratio, verdict in points:
        condition = Condition(down(f"p{value}", loss=Loss(value)), ARTICLE)
        interval = Interval(-math.inf, math.inf, None if ratio is None else math.log(ratio), 9)
        comparison = Comparison(verdict, interval, Completion(9, 9, 9, 0, 0, Verdict.UNDECIDED), 0.0)
        finding = Finding(condition, Pair(H1, H3), TOTAL, comparison, Rule(), survives=True)
        found.append((Step(value, condition), finding))
    return found


FASTER, SLOWER, TIE = Verdict.FASTER, Verdict.SLOWER, Verdict.TIE


def test_a_crossover_is_where_the_straight_line_of_ln_ratio_meets_zero() -> None:
    assert crossovers(curve((0.0, 1 / 2, SLOWER), (0.3, 4.0, FASTER))) == [pytest.approx(0.1)]
    assert crossovers(curve((0.0, 4.0, FASTER), (0.3, 1 / 2, SLOWER))) == [pytest.approx(0.2)]


def test_values_over_more_than_a_factor_of_ten_are_interpolated_by_their_logarithm() -> None:
    turn = (0.01, 1 / 2, SLOWER), (0.04, 2.0, FASTER)
    assert crossovers(curve(*turn, (1.0, 2.0, FASTER))) == [pytest.approx(0.02)]
    assert crossovers(curve(*turn, (0.1, 2.0, FASTER))) == [pytest.approx(0.025)]
    assert crossovers(curve((0.0, 1 / 2, SLOWER), *turn, (1.0, 2.0, FASTER))) == [pytest.approx(0.025)]


@pytest.mark.parametrize(
    "between",
    [
        (1.0, TIE), (1.2, Verdict.SLIGHTLY_FASTER), (0.8, Verdict.SLIGHTLY_SLOWER),
        (1.5, Verdict.INCONCLUSIVE), (1.5, Verdict.UNDECIDED), (None, Verdict.INCONCLUSIVE),
    ],
)  # fmt: skip
def test_without_clear_verdicts_on_both_sides_there_is_no_crossover(between: tuple[float | None, Verdict]) -> None:
    assert crossovers(curve((0.1, 0.5, SLOWER), (0.2, *between), (0.3, 2.0, FASTER))) == []


@pytest.mark.parametrize("ratio", [None, 0.8])
def test_a_verdict_on_completion_without_a_ratio_of_its_side_gives_no_place(ratio: float | None) -> None:
    assert crossovers(curve((0.1, 0.5, SLOWER), (0.2, ratio, Verdict.COMPLETES_MORE))) == []
    assert crossovers(curve((0.1, 2.0, FASTER), (0.2, ratio, Verdict.COMPLETES_MORE))) == []


def test_a_verdict_may_turn_over_more_than_once() -> None:
    found = crossovers(curve((0.1, 0.5, SLOWER), (0.2, 2.0, FASTER), (0.3, 0.5, SLOWER), (0.4, 0.4, SLOWER)))
    assert found == [pytest.approx(0.15), pytest.approx(0.25)]


def test_a_curve_of_no_or_one_step_has_no_crossover() -> None:
    assert crossovers([]) == crossovers(curve((0.1, 2.0, FASTER))) == []


VALUES = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
POINTS = st.lists(st.tuples(VALUES, st.floats(0.1, 10.0)), max_size=8, unique_by=lambda point: point[0])


@given(POINTS)
def test_a_crossover_lies_between_neighbours_whose_verdicts_are_opposite(points: list[tuple[float, float]]) -> None:
    rising = [
        (value, ratio, FASTER if ratio > 1.05 else SLOWER if ratio < 1 / 1.05 else TIE)
        for value, ratio in sorted(points)
    ]
    turns = [(a[0], b[0]) for a, b in pairwise(rising) if {a[2], b[2]} == {FASTER, SLOWER}]
    found = crossovers(curve(*rising))
    assert len(found) == len(turns)
    assert all(low < value < high for value, (low, high) in zip(found, turns, strict=True))


# Grids of two parameters


def grid(*without: str) -> list[Profile]:
    """Three delays by four losses, but for those named."""
    every = [
        down(f"d{ms}-l{percent}", delay=Delay(ms / 1000), loss=Loss(percent / 100) if percent else None)
        for ms in (50, 10, 20)
        for percent in (0, 1, 5, 2)
    ]
    return [profile for profile in every if profile.name not in without]


def test_two_parameters_each_value_with_each_are_a_grid() -> None:
    (found,) = grids_of(example_matrix(*grid()))
    assert (found.down, found.along) == ("downlink delay", "downlink loss")
    assert (found.down_values, found.along_values) == ((0.01, 0.02, 0.05), (0.0, 0.01, 0.02, 0.05))
    assert {place: each.profile.name for place, each in found.cells.items()} == {
        (ms / 1000, percent / 100): f"d{ms}-l{percent}" for ms in (10, 20, 50) for percent in (0, 1, 2, 5)
    }


def test_a_grid_has_no_gap_and_three_values_of_each() -> None:
    assert grids_of(example_matrix(*grid("d20-l2"))) == []
    assert grids_of(example_matrix(*grid("d50-l0", "d50-l1", "d50-l2", "d50-l5"))) == []
    assert grids_of(example_matrix(CLEAN, *losses(1, 2, 5))) == []


def test_every_sweep_of_a_grid_is_one_of_its_rows_or_columns() -> None:
    matrix = example_matrix(*grid(), down("other", rate=Rate(10**6)), *losses(1, 2, 5, rate=Rate(10**6)))
    (found,) = grids_of(matrix)
    inside = [sweep for sweep in sweeps_of(matrix) if found.holds(sweep)]
    assert len(inside) == 3 + 4
    assert [sweep.parameter for sweep in sweeps_of(matrix) if not found.holds(sweep)] == ["downlink loss"]


def test_a_grid_shows_who_leads_in_each_cell_and_the_deeper_the_further() -> None:
    shown = section(parse(render(RUNS["grid"]().data("grid"), 0.0)), "sweeps")
    first, *others = shown.findall(".//table")
    assert len(others) == 2, "a table for each comparison"
    rows = first.findall("./tbody/tr")
    assert [words(row.find("th")) for row in rows] == ["10 ms", "50 ms", "200 ms"]
    for row in rows:
        cells = row.findall("td")
        assert [cell.get("class") for cell in cells] == [
            "cell h1 sure deep0", "cell h3 sure deep1", "cell h3 sure deep2",
        ]  # fmt: skip
        for cell, (who, ratio) in zip(cells, (("h1", 1.18), ("h3", 1.4), ("h3", 2.5)), strict=True):
            name, said = words(cell).split()
            assert name == who
            assert float(said.removesuffix("x")) == pytest.approx(ratio, rel=0.05)
    assert {words(cell) for cell in others[1].iter("td")} == {"tie"}
    assert not shown.findall(".//figure"), "a sweep that is a row or column of it has no chart of its own"


def test_where_the_lead_changes_along_a_grid_is_said_for_each_row() -> None:
    said = words(section(parse(render(RUNS["grid"]().data("grid"), 0.0)), "sweeps"))
    for delay in ("10 ms", "50 ms", "200 ms"):
        pattern = rf"HTTP/3 and HTTP/1.1 at a downlink loss of about 0\.\d+ % where downlink delay is {delay}"
        assert re.search(pattern, said)
    assert said.count("HTTP/3 and HTTP/1.1 at a") == 3, "no delay turns it over"


def test_the_unit_of_a_crossover_is_written_as_everywhere() -> None:
    """The sentence began with a capital letter, and the rest of it had none: `2.78 mbit/s`."""
    matrix = example_matrix(*(down(f"{mbit} mbit", rate=Rate(mbit * 10**6)) for mbit in (1, 10, 100)), repeat=12)
    quick = {"1 mbit": 2.0, "10 mbit": 0.5, "100 mbit": 0.5}
    times = ((trial, quick[trial.profile.name] if trial.arm is H3 else 1.0) for trial in trials_of(matrix))
    results = tuple(ok(trial, time_s * (1 + trial.block.index / 1000)) for trial, time_s in times)
    data = RunData("run", matrix, results, ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT))
    assert "h3 and h1 are even at about 3.16 Mbit/s;" in words(section(parse(render(data, 0.0)), "sweeps"))


def test_a_matrix_that_judges_no_total_time_names_the_metric_that_it_compares_by() -> None:
    """Its page could not be written for a sweep, and said elsewhere that it compares by total time."""
    golden = RUNS["sweep"]()
    data = replace(golden, matrix=replace(golden.matrix, judge=("request_p95_s",))).data("x")
    page = parse(render(data, 0.0))
    assert "Ratio of 95th percentile per request over downlink loss" in words(section(page, "sweeps"))
    answer = words(section(page, "answer"))
    assert "Compared by 95th percentile per request (" in answer
    assert "Protocol ahead, and speed ratio by 95th percentile per request" in answer
    assert "total time; one mark per trial" in answer.lower()
    out = io.StringIO()
    print_summary(data, Console(file=out, width=120))
    assert "ratios of 95th percentile per request within blocks" in " ".join(out.getvalue().split())
