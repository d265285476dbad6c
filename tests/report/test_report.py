"""The report says what the run folder holds: the right numbers, every failure, and nothing else."""

from __future__ import annotations

import base64
import csv
import hashlib
import math
import re
import shutil
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from io import StringIO
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from headwind.arm import H1, H3, Arm, Overrides, Protocol, Role
from headwind.format import arm_name, clean, measured, variants_text
from headwind.metric import Better
from headwind.model import Outcome, Place, Repetition, Result
from headwind.observed import NOTHING, Kind, Observed, from_best
from headwind.observed import median as median_of
from headwind.plan.doubts import IN_ORDER
from headwind.report import RunData, render, summary_table, write_report
from headwind.report.condition import trial_text
from headwind.report.files import write_files
from headwind.report.formats.terminal import print_summary
from headwind.report.impairment_checks import pooled, truth_table
from headwind.report.method import method
from headwind.report.row_text import headline, network, network_text
from headwind.report.times_table import Row, notices
from headwind.run.codec import State
from headwind.run.data import latest_of
from headwind.run.journal import Run
from headwind.run.shortfall import FAULTS
from headwind.run.tables import trials_table
from headwind.settings import Windows
from headwind.workloads.h2load import H2load
from impair.profile import Delay, Direction, Link, Loss, Profile, Rate, Steps
from tests.fake import (
    PROFILES,
    STARTED_AT,
    example_matrix,
    failed,
    invalid,
    ok,
    ok_results,
    recorded,
    timeout,
    trials_csv,
    trials_of,
)
from tests.golden.runs import HOSTILE, RUNS, large
from tests.pages import parse, section, table, words

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
DRAWN_AT = STARTED_AT + 7200
EVERYDAY = "../../experiments/everyday.yaml"
GUIDE = "../../docs/report.md"  # from reports/<run-id>/report.html


@cache
def page_of(name: str) -> str:
    return render(RUNS[name]().data(name), DRAWN_AT)


def exact(*seconds: float) -> list[Observed]:
    return [Observed.finished(time_s) for time_s in seconds]


REQUESTS, GOODPUT = H2load.rates
STOPPED = Observed.unfinished(60.0)


@pytest.mark.parametrize(
    ("times", "median"),
    [
        (exact(1), exact(1)[0]),
        (exact(1, 2, 4), exact(2)[0]),
        (exact(1, 2, 4, 10), exact(3)[0]),
        ([*exact(1, 2), STOPPED], exact(2)[0]),
        ([*exact(1), STOPPED], Observed.unfinished(30.5)),
        ([*exact(1, 2), STOPPED, STOPPED], Observed.unfinished(31.0)),
        ([*exact(1), STOPPED, STOPPED], STOPPED),
        ([STOPPED], STOPPED),
        ([*exact(1, 2), NOTHING], exact(2)[0]),
        ([*exact(1), STOPPED, NOTHING], STOPPED),
        ([*exact(1), NOTHING], NOTHING),
        ([STOPPED, NOTHING], NOTHING),
        ([*exact(1), NOTHING, NOTHING], NOTHING),
    ],
)
def test_an_unfinished_trial_is_slower_than_all_that_finished(times: Sequence[Observed], median: Observed) -> None:
    assert median_of(times) == median


@given(
    st.lists(st.floats(0.001, 60), max_size=9),
    st.lists(st.floats(60, 1e6), max_size=9),
    st.integers(0, 4),
)
def test_the_median_holds_whatever_the_unfinished_trials_would_have_taken(
    finished: list[float], true_times_of_stopped: list[float], never: int
) -> None:
    times = from_best([*exact(*finished), *[STOPPED] * len(true_times_of_stopped), *[NOTHING] * never], Better.LESS)
    if not times:
        return
    median = median_of(times)
    truth = statistics.median([*finished, *true_times_of_stopped, *[math.inf] * never])
    if median.is_finished:
        assert truth == pytest.approx(median.known)
    elif median.kind is Kind.BOUND:
        assert truth >= median.known * (1 - 1e-12)
    else:
        assert truth == math.inf


def one_cell(*results: Result) -> Row:
    """The row of these results, all of one condition and of h1."""
    matrix = replace(example_matrix(PROFILES[2], repeat=len(results)), arms=(H1,))
    trials = list(trials_of(matrix))
    moved = tuple(replace(result, trial=trial) for result, trial in zip(results, trials, strict=True))
    data = replace(RUNS["small"]().data("x"), matrix=matrix, results=moved)
    (row,) = summary_table(data)
    return row


TRIAL = next(trials_of(example_matrix(PROFILES[2])))


@given(st.lists(st.floats(0.01, 59), min_size=1, max_size=8), st.integers(0, 8))
def test_rates_are_those_of_the_median_time(times_s: list[float], unfinished: int) -> None:
    row = one_cell(*(ok(TRIAL, time_s) for time_s in times_s), *([timeout(TRIAL)] * unfinished))
    truth = 1000 / statistics.median(times_s + [60.0] * unfinished)
    if unfinished * 2 < len(times_s) + unfinished:
        assert row.rates[REQUESTS] == pytest.approx(truth)
        assert row.rates[GOODPUT] == pytest.approx(truth * 612 * 8)
    else:
        assert set(row.rates.values()) == {None}, "the median would be that of a trial that never ended"


def test_without_an_amount_there_is_no_rate_and_without_a_time_no_median() -> None:
    row = one_cell(ok(TRIAL, 1.0, metrics={"total_s": 1.0, "requests_succeeded": 1000.0}))
    assert row.rates[REQUESTS] == 1000.0
    assert row.rates[GOODPUT] is None
    without_time = one_cell(ok(TRIAL, 1.0, metrics={}))
    assert without_time.time is not None
    assert without_time.time.median == NOTHING


def test_trials_without_proof_or_that_the_lab_broke_are_counted_but_in_no_figure() -> None:
    broken = ok(TRIAL, 500.0, outcome=Outcome.LAB_ERROR, reason="the router died")
    row = one_cell(ok(TRIAL, 1.0), ok(TRIAL, 2.0), invalid(TRIAL, 900.0), broken)
    assert row.time is not None
    assert (row.time.median, row.time.worst) == (Observed.finished(1.5), Observed.finished(2.0))
    assert (row.analysed, row.finished, row.planned) == (2, 2, 4)
    assert row.outcomes == {Outcome.OK: 2, Outcome.INVALID: 1, Outcome.LAB_ERROR: 1}


def test_a_failed_trial_has_no_time_but_a_count_of_what_it_got_done() -> None:
    row = one_cell(ok(TRIAL, 5.0), failed(TRIAL, 0.1, 951), failed(TRIAL, 0.1, 990))
    assert row.time is not None
    assert row.time.median == row.time.worst == NOTHING
    assert row.time.best == Observed.finished(5.0)
    assert row.got_done == "951 to 990 of 1,000 requests succeeded"


def test_another_protocol_than_asked_is_not_a_time_of_this_one() -> None:
    row = one_cell(ok(TRIAL, 5.0), ok(TRIAL, 0.1, outcome=Outcome.WRONG_PROTOCOL, reason="h2"))
    assert row.time is not None
    assert row.time.best == Observed.finished(5.0)
    assert row.time.median == NOTHING


def test_only_the_latest_attempt_counts() -> None:
    data = RUNS["mixed"]().data("mixed")
    again = [result for result in data.results if result.trial.id == "delay/article#1/h3"]
    assert [result.attempt for result in again] == [0, 1]
    assert len(latest_of(again)) == 1
    assert len(data.results) == data.planned + 1 == len(data.latest) + 1
    row = next(row for row in summary_table(data) if row.repeated)
    assert (row.condition.profile.name, row.arm, row.finished) == ("delay", H3, 3)


def test_the_truth_is_pooled_over_packets() -> None:
    """Checked against the raw counters: of all packets that were offered, the share that netem dropped."""
    data = RUNS["small"]().data("small")
    condition = next(item for item in data.matrix.conditions if item.profile.name == "loss")
    dropped = offered = 0
    for result in data.results:
        if result.trial.block.condition is condition:
            after = result.proof.counters["after"]["router"]["downlink"]["counters"]  # all was 0 before
            dropped += after["dropped"]
            offered += after["dropped"] + after["packets"]
    (truth,) = [item for item in truth_table(data, condition) if item.quantity == "loss_ratio"]
    assert truth.measured == pytest.approx(dropped / offered, rel=1e-12)
    assert (truth.direction, truth.requested, truth.configured) == (Direction.DOWNLINK, 0.3, (0.3,))
    assert (truth.passed, truth.trials, truth.unmeasured) == (9, 9, 0)


def test_the_check_of_a_jittered_delay_notes_that_a_rate_keeps_the_order(tmp_path: Path) -> None:
    delay = Delay(0.015, 0.005)
    profile = Profile("slow", uplink=Link(delay=delay), downlink=Link(delay=delay, rate=Rate(10_000_000)))
    matrix = example_matrix(profile, repeat=1)
    with recorded(tmp_path, matrix, [ok(trial, 1.0) for trial in trials_of(matrix)]) as run:
        data = RunData.of(run)
        table_ = truth_table(data, matrix.conditions[0])
        assert [each.direction for each in table_ if IN_ORDER in each.notes] == [Direction.DOWNLINK]
        assert ("Reordering", f"{IN_ORDER}: slow (downlink).") in method(data)


def test_larger_trials_weigh_more_and_unknown_weights_weigh_the_same() -> None:
    assert pooled([(0.1, 1000), (0.4, 3000)]) == pytest.approx(0.325)
    assert pooled([(0.1, 0), (0.4, 3000)]) == pytest.approx(0.25)
    assert pooled([]) is None


def test_a_network_that_was_not_the_requested_one_is_marked() -> None:
    data = RUNS["mixed"]().data("mixed")
    regions = section(parse(page_of("mixed")), "truth").iter("div")
    asked, whole, unasked = (region for region in regions if region.get("class") == "scroll")
    assert [(row[0], row[-1]) for row in table(asked) if "✗" in row[-1]] == [("loss", "✗ 8 of 9")]
    assert [(row[0], row[2], row[-1][:8]) for row in table(whole) if "✗" in row[-1]] == [("loss", "loss", "✗ 8 of 9")]
    assert not [row for row in table(unasked) if "✗" in row[-1]]
    condition = next(item for item in data.matrix.conditions if item.profile.name == "loss")
    (truth,) = [item for item in truth_table(data, condition) if item.passed < item.trials]
    assert truth.lowest is not None
    assert truth.lowest < 0.2, "the clipped trial shows in the range"


def test_measured_values_are_those_of_every_network_but_the_slower_one_of_a_self_check() -> None:
    """They were said to be of all trials; the slower twin's have another network."""
    said = "from the packets of all trials except those of HTTP/2 (slower)."
    assert said in words(section(parse(page_of("checked")), "truth"))
    assert "from the packets of all trials." in words(section(parse(page_of("small")), "truth"))


def test_an_arm_is_explained_where_the_page_first_names_it() -> None:
    page = words(section(parse(page_of("arms")), "answer"))
    assert page.index("one trial of every arm, one after another") < page.index("a protocol with its settings")
    assert "one trial of every protocol, one after" in words(section(parse(page_of("small")), "answer"))


def test_a_budget_of_the_command_line_is_not_called_the_matrixs() -> None:
    golden = RUNS["checked"]()
    matrix = replace(golden.matrix, repeat=replace(golden.matrix.repeat, budget_s=300.0))
    (said,) = [text for _, text in method(replace(golden, matrix=matrix).data("x")) if "budget" in text]
    assert "within the time budget (5 min)" in said


def test_the_order_of_blocks_is_that_of_verdicts_only_beyond_the_minimum() -> None:
    golden = RUNS["checked"]()
    for least, said in ((99, "No condition has more blocks than the minimum of 99"), (1, "The next blocks were given")):
        matrix = replace(golden.matrix, repeat=Repetition(least, 100, budget_s=300.0))
        ((_, text),) = [row for row in method(replace(golden, matrix=matrix).data("x")) if row[0] == "Order of blocks"]
        assert text.startswith(said)


@pytest.mark.parametrize(
    ("share", "said"),
    [(1, "Blocks ran in parallel"), (4, "Some blocks ran in parallel"), (0, "Blocks ran one at a time")],
)
def test_blocks_that_ran_alone_did_not_run_in_parallel(share: int, said: str) -> None:
    golden = RUNS["small"]()
    others = [("clean/article#1",) if share and not number % share else () for number in range(len(golden.results))]
    results = tuple(
        replace(each, place=Place("here", 1 + number % 2, beside=others[number]))
        for number, each in enumerate(golden.results)
    )
    texts = [text for _, text in method(replace(golden, results=results).data("x"))]
    assert any(text.startswith(f"{said} on 2 separate testbeds") for text in texts)


def test_changes_that_are_the_same_in_both_directions_are_described_once() -> None:
    first, gone = Link(Delay(0.02)), Link(Delay(0.02), Loss(1.0))
    steps = Steps((1.0, 1.5), (gone, first))
    both = Profile("blackout", first, first, uplink_changes=steps, downlink_changes=steps)
    text = network_text(network(both, both_ways=True))
    assert text == "delay ↓ 20 ms, delay ↑ 20 ms, ↓↑ at 1 s loss 100 %, at 1.5 s as at the beginning"
    other = replace(both, uplink_changes=replace(steps, moments_s=(1.0, 2.0)))
    assert network_text(network(other, both_ways=True)).count("loss 100 %") == 2


def test_the_fakes_pass_the_real_proof() -> None:
    assert all(result.proof.passed for result in RUNS["small"]().results)


def test_the_table_of_the_page_holds_medians_computed_another_way() -> None:
    """From trials.csv, by pandas."""
    golden = RUNS["small"]()
    frame = pd.read_csv(StringIO(trials_csv(golden.data("small").trials)))
    rows = list(table(section(parse(page_of("small")), "results")))[1:]
    assert len(rows) == 15
    names = {"HTTP/1.1": "h1", "HTTP/2": "h2", "HTTP/3": "h3"}
    for row in rows:
        cell = frame[(frame["profile"] == row[0].split()[0]) & (frame["protocol"] == names[row[5]])]
        assert len(cell) == 3
        assert row[6] == measured("total_s", cell["total_s"].median())
        assert row[7].startswith(f"[{measured('total_s', cell['total_s'].min()).split()[0]}")
        assert row[7].endswith(f"{measured('total_s', cell['total_s'].max())}]")
        assert row[10] == measured("rate", cell["requests_per_s"].median())
        assert row[11] == measured("goodput_bps", cell["goodput_bps"].median())


def test_the_article_table_names_every_impairment_in_its_direction() -> None:
    rows = list(table(section(parse(page_of("small")), "results")))
    assert rows[0] == [
        "Network", "Delay", "Loss", "Duplicate", "Corrupt", "Protocol", "Total time", "Range", "Ratio to clean",
        "Trials", "Requests/s", "Throughput",
    ]  # fmt: skip
    cells = {row[0].split()[0]: row[1:5] for row in rows[1:]}
    assert cells == {
        "clean": ["–"] * 4,
        "delay": ["↓ 100 ms ± 10 ms", "–", "–", "–"],
        "loss": ["–", "↓ 30 %", "–", "–"],
        "loss-corrupt": ["–", "↓ 30 %", "–", "↓ 20 %"],
        "loss-duplicate": ["–", "↓ 30 %↑ 10 %", "↓ 70 %", "–"],
    }


def test_a_matrix_that_impairs_one_direction_only_needs_no_arrows() -> None:
    assert network(PROFILES[1], both_ways=False)["delay"] == ["100 ms ± 10 ms"]
    assert "All impairments are on the downlink" in words(section(parse(page_of("timeouts-half")), "results"))


def test_the_summary_gives_directions_and_missing_rates_under_its_table() -> None:
    text = words(section(parse(page_of("small")), "answer"))
    of_no_rate, of_key = (
        text.index("has a rate limit"),
        text.index("server to client; impairments without a stated direction are on the downlink"),
    )
    assert of_no_rate < of_key
    data = RUNS["small"]().data("small")
    far = Link(delay=Delay(0.1))
    both = tuple(replace(item, profile=Profile(item.profile.name, uplink=far, downlink=far))
                 for item in data.matrix.conditions)  # fmt: skip
    page = render(replace(data, matrix=replace(data.matrix, conditions=both)), 0.0)
    assert "without a direction" not in words(section(parse(page), "answer"))


def test_what_the_article_did_not_have_gets_a_column_of_its_own() -> None:
    profile = RUNS["every-impairment"]().matrix.conditions[0].profile
    text = network_text(network(profile, both_ways=True))
    assert "delay ↓ 100 ms ± 10 ms (normal), loss ↓ gemodel: p 1 %, r 30 %, bad 100 %" in text
    assert "↓ reorder 25 %, reorder.gap 5, rate 10 Mbit/s" in text
    assert "↑ slot.min_delay 10 ms" in text
    assert "Other" in words(section(parse(page_of("every-impairment")), "results"))


def test_the_page_leads_to_the_guide_to_its_symbols() -> None:
    assert (ROOT / "reports" / "run-id" / GUIDE).resolve().is_file()
    links = [item.get("href") for item in parse(page_of("small")).iter("a")]
    assert GUIDE in links


@pytest.mark.parametrize("name", RUNS)
def test_a_page_is_well_formed_and_refers_to_nothing_outside_itself(name: str) -> None:
    page = page_of(name)
    root = parse(page)
    assert {item.tag for item in root.iter()} & {"link", "img", "iframe", "object", "embed", "base"} == set()
    scripts = list(root.iter("script"))
    assert [item.get("src") for item in scripts] == [None] * len(scripts)
    (policy,) = [item.get("content", "") for item in root.iter("meta") if item.get("http-equiv")]
    (digest,) = re.findall("script-src 'sha256-([^']*)'", policy)
    runs = [item.text or "" for item in scripts if not item.get("type")]
    assert [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in runs] == [digest]
    ids = [item.get("id") for item in root.iter() if item.get("id")]
    assert len(ids) == len(set(ids))
    for item in root.iter():
        assert not [key for key, _ in item.items() if key.startswith("on")]
        target = item.get("href") or item.get("src")
        assert target in (None, GUIDE, EVERYDAY) or (target.startswith("#") and target[1:] in ids)
    (style,) = (item.text or "" for item in root.iter("style"))
    assert not re.search(r"url\(|@import|https?:", style)


@pytest.mark.parametrize("name", RUNS)
def test_what_a_chart_repeats_brings_the_class_that_its_style_asks_for(name: str) -> None:
    """A browser may match styles of a repeated element without what stands around the original: it would be black."""
    root = parse(page_of(name))
    targets = {item.get("id"): item for item in root.iter() if item.get("id")}
    for item in root.iter("use"):
        assert targets[(item.get("href") or "")[1:]].get("class") == "chart"


def test_a_page_is_small_also_of_thousands_of_trials() -> None:
    golden = large()
    assert len(golden.results) == 7200
    assert len(render(golden.data("large"), DRAWN_AT).encode()) < 2_000_000
    assert {name: size for name in RUNS if (size := len(page_of(name).encode())) > 500_000} == {}


@pytest.mark.parametrize("name", RUNS)
def test_redrawing_gives_the_same_bytes_but_for_the_stamp(name: str) -> None:
    again, later = (render(RUNS[name]().data(name), drawn_at) for drawn_at in (DRAWN_AT, DRAWN_AT + 86400))
    stamp = re.compile('<span id="generated">[^<]*</span>')
    assert page_of(name) == again
    assert page_of(name) != later
    assert stamp.sub("", page_of(name)) == stamp.sub("", later)


def test_names_are_text_and_nothing_else() -> None:
    page = page_of("hostile")
    shown = words(parse(page))
    for name in HOSTILE:
        assert " ".join(clean(name).split()) in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff\ufffe]", page)


def test_a_run_in_progress_says_so() -> None:
    root = parse(page_of("in-progress"))
    assert "In progress, 20 of 45 trials." in words(section(root, "answer"))
    assert "In progress, 20 of 45 trials: 20 ok." in words(section(root, "trust"))
    rows = [row[-3] for row in table(section(parse(page_of("in-progress")), "results"))]
    assert "1 of 1 finished, 2 to come" in rows


def test_a_run_that_ended_early_says_why() -> None:
    data = RUNS["killed-at-once"]().data("x")
    assert headline(data) == ("The lab was killed, so no reason was recorded. 0 of 45 trials ran.")
    rows = list(table(section(parse(page_of("killed-at-once")), "results")))[1:]
    assert {(row[-5], row[-3]) for row in rows} == {("—", "not run")}


def test_when_no_trial_completed_there_is_no_time() -> None:
    rows = list(table(section(parse(page_of("all-failed")), "results")))[1:]
    assert {(*row[-5:-3], *row[-2:]) for row in rows} == {("not completed", "[not completed]", "—", "—")}
    assert all("0 of 3 finished, 3 failed (" in row[-3] for row in rows)


def test_when_half_timed_out_the_median_is_a_bound() -> None:
    rows = list(table(section(parse(page_of("timeouts-half")), "results")))[1:]
    # of 11 s, 13 s and two above 60 s, the median is above (13 + 60) / 2
    assert {(*row[-5:-3], *row[-2:]) for row in rows} == {("> 36.5 s", "[11.0 s to > 60 s]", "—", "—")}
    assert {row[-3] for row in rows} == {"2 of 4 finished, 2 timed out"}


def test_warnings_are_one_link_from_the_first_screen_and_lead_to_their_trials() -> None:
    root = parse(page_of("mixed"))
    answer, trust = section(root, "answer"), section(root, "trust")
    assert "\N{WARNING SIGN} 2 trials in clean: server: 12 to 761 datagrams lost" in words(trust)
    assert "#trust" in [link.get("href") for link in answer.iter("a")]
    links = {words(link): link.get("href", "") for link in trust.iter("a")}
    row = root.find(f".//tr[@id='{links['loss #1 h2'][1:]}']")
    assert row is not None
    assert [words(cell) for cell in row][:4] == ["1", "9.71 s", "failed", "4.90 s"]
    assert "49 of 1000 requests failed (block/protocol: 1/h2)" in words(section(root, "conditions"))


def test_warnings_that_differ_only_in_numbers_are_one() -> None:
    (notice,) = [item for item in notices(RUNS["mixed"]().data("x")) if "datagrams" in item.text]
    assert notice.text.startswith("in clean: server: 12 to 761 datagrams lost")
    assert notice.trials == ("clean/article#0/h3", "clean/article#2/h3")


def test_ranges_of_merged_warnings_are_of_whole_numbers() -> None:
    delays = {"h1": "106 ms", "h2": "71.68 ms", "h3": "1,020 ms"}
    golden = RUNS["small"]()
    results = tuple(
        replace(each, proof=replace(each.proof, warnings=(f"over HTTP/1.1: late by {delays[each.trial.arm.name]}",)))
        for each in golden.results if each.trial.arm.name in delays
    )  # fmt: skip
    texts = [item.text for item in notices(replace(golden, results=results).data("x")) if "late" in item.text]
    assert texts == ["over HTTP/1.1: late by 71.68 to 1,020 ms"]


def test_the_page_begins_with_the_reasons_for_exit_status_1() -> None:
    """The terminal and summary.md had them, and a reader of the page alone took the run for a good one."""
    data = replace(RUNS["small"]().data("small"), environment={FAULTS: ["testbed 1 was slow", "a capture failed"]})
    page = render(data, DRAWN_AT)
    reasons = [f'<p class="bad" role="alert">\N{WARNING SIGN} {each}</p>' for each in data.environment[FAULTS]]
    places = [page.index(reason) for reason in reasons]
    assert places == sorted(places)
    assert places[-1] < page.index("<h1")
    running = replace(data, status=replace(data.status, state=State.RUNNING))
    assert "testbed 1 was slow</p>" not in render(running, DRAWN_AT)


def test_a_range_of_figures_is_of_one_network_which_is_named() -> None:
    golden = RUNS["small"]()
    slow, fast = list(dict.fromkeys(each.trial.block.condition for each in golden.results))[:2]
    told = {slow: ("9 s", "7 s", "8 s"), fast: ("1 s", "1 s")}
    results = tuple(
        replace(each, proof=replace(each.proof, warnings=(f"late by {left.pop()}",)))
        if (left := waiting.get(each.trial.block.condition)) else each
        for waiting in [{condition: [*texts] for condition, texts in told.items()}] for each in golden.results
    )  # fmt: skip
    data = replace(golden, results=results).data("x")
    (text,) = [item.text for item in notices(data) if "late" in item.text]
    first, second = map(data.matrix.name_of, (slow, fast))
    assert text == f"in {first} (3) and {second} (2), for example: late by 8 s"
    assert [item.line for item in notices(data) if "late" in item.text] == [f"5 trials {text}"]


def test_a_warning_about_the_slower_twin_of_a_self_check_names_it() -> None:
    """Its uplink was `requested 16.5 ms`, beside a matrix that says 15 ms."""
    golden = RUNS["checked"]()
    (one, *_) = (each for each in golden.results if each.trial.arm.role is Role.SLOWER)
    results = tuple(
        replace(each, proof=replace(each.proof, warnings=("requested 16.5 ms",))) if each is one else each
        for each in golden.results
    )
    data = replace(golden, results=results).data("x")
    texts = [item.text for item in notices(data) if "requested 16.5" in item.text]
    name = data.matrix.name_of(one.trial.block.condition)
    assert texts == [f"in {name} with {arm_name(one.trial.arm)}: requested 16.5 ms"]


def test_every_attempt_is_on_the_page() -> None:
    golden = RUNS["mixed"]()
    conditions = section(parse(page_of("mixed")), "conditions")
    tables = [item for item in conditions.iter("table") if item.get("class") == "blocks"]
    cells = [words(cell) for item in tables for row in item.findall("./tbody/tr") for cell in row[1:4]]
    shown = [trial_text(result) for result in latest_of(golden.results)]
    assert Counter(cells) == Counter(shown)
    assert len(cells) == len(golden.results) - 1
    assert "lab-error (repeated): the router died (block/protocol: 1/h3)" in words(conditions)


def test_the_method_states_the_settings_of_this_run() -> None:
    text = words(section(parse(page_of("small")), "method"))
    facts = ("5 conditions", "3 blocks", "1,000 requests", "60 s", "cubic for TCP", "in: delay (downlink)", "user-mode")
    for fact in facts:
        assert fact in text


def test_the_method_says_which_twins_ran() -> None:
    text = words(section(parse(page_of("checked")), "method"))
    assert "HTTP/2 runs again in blocks of clean and delay, and over a 10 % slower network in blocks of" in text
    assert "twins" not in words(section(parse(page_of("small")), "method"))


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb or #rgb (WCAG 2.2)."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    shares = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_text_has_enough_contrast_in_light_dark_and_print() -> None:
    style = words(next(parse(page_of("small")).iter("style")))
    roots = re.findall(r":root \{([^}]*)\}", style)
    palettes = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", root)) for root in roots]
    palettes = [palette for palette in palettes if "ground" in palette]
    assert len(palettes) == 3
    for palette in palettes:
        pairs = [*product(("ink", "quiet", "link", "good", "bad"), ("ground", "warn")), ("ink", "band")]
        for ink, ground in pairs:
            bright, dim = sorted((luminance(palette[ink]), luminance(palette[ground])), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, (ink, ground, palette)


def test_the_report_is_a_function_of_the_run_folder(tmp_path: Path) -> None:
    golden = RUNS["mixed"]()
    with recorded(tmp_path / "here", golden.matrix, golden.results) as run:
        path = write_report(run)
        assert path == run.folder / "report.html"
        shutil.copytree(run.folder, tmp_path / "there" / run.id)
        drawn = path.read_text(encoding="utf-8")
        name = run.id
    with Run.open(tmp_path / "there" / name) as copy:
        again = write_report(copy).read_text(encoding="utf-8")
    stamp = re.compile('<span id="generated">[^<]*</span>')
    assert stamp.sub("", drawn) == stamp.sub("", again)


def test_a_report_can_be_drawn_while_the_run_goes_on(tmp_path: Path) -> None:
    matrix = example_matrix()
    first, second, *_ = trials_of(matrix)
    with Run.create(tmp_path, matrix, {}) as run, run.recording():
        run.begin(first, 0)
        run.append(ok(first, 0.2))
        run.begin(second, 0)
        page = write_report(run).read_text(encoding="utf-8")
        assert "In progress, 1 of 45 trials: 1 ok." in page
        with Run.open(run.folder) as reader:
            assert RunData.of(reader).status.state is State.RUNNING


def terminal(name: str, tmp_path: Path) -> str:
    golden = RUNS[name]()
    with recorded(tmp_path, golden.matrix, golden.results) as run:
        return printed(run)


def printed(run: Run) -> str:
    console = Console(width=140, record=True, file=StringIO())
    print_summary(RunData.of(run), console)
    return console.export_text()


def test_the_terminal_says_the_same_answer(tmp_path: Path) -> None:
    text = "\n".join(line.rstrip() for line in terminal("mixed", tmp_path).splitlines()) + "\n"
    assert text == (GOLDEN / "terminal-mixed.txt").read_text(encoding="utf-8")


def test_four_arms_have_their_medians_in_the_terminal(tmp_path: Path) -> None:
    named = Arm("h3-as-shipped", Protocol.H3, overrides=Overrides(client_windows=Windows.AS_SHIPPED))
    matrix = example_matrix()
    matrix = replace(matrix, arms=(*matrix.arms, named))
    with recorded(tmp_path, matrix, ok_results(matrix)) as run:
        first, second = printed(run).splitlines()[1:3]
    assert second.split()[2:6] == ["h1", "h2", "h3", "h3-as-shipped"], first


def test_names_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    golden = RUNS["hostile"]()
    writable = [result for result in golden.results if "\ud800" not in result.trial.id]
    with recorded(tmp_path, golden.matrix, writable) as run:
        text = printed(run)
    assert "<script>" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", text)


def test_trials_csv_has_every_attempt_and_every_number(tmp_path: Path) -> None:
    golden = RUNS["mixed"]()
    with recorded(tmp_path, golden.matrix, golden.results) as run:
        write_files(run)
        with (run.folder / "trials.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    assert len(rows) == len(golden.results)
    for row, result in zip(rows, golden.results, strict=True):
        trial = result.trial
        assert (row["trial"], row["attempt"], row["outcome"]) == (trial.id, str(result.attempt), result.outcome.value)
        assert (row["block"], row["position"]) == (str(trial.block.index), str(trial.position))
        assert row["seed_downlink"] == str(trial.block.seeds[Direction.DOWNLINK])
        assert {name: float(row[name]) for name in result.metrics} == result.metrics
        measurements = {f"{check.direction.value}_{check.quantity}": check.measured for check in result.proof.checks}
        assert {name: float(row[name]) if row[name] else None for name in measurements} == measurements
        assert bool(row["total_s"]) == ("total_s" in result.metrics)


def test_hostile_names_survive_trials_csv() -> None:
    results = [result for result in RUNS["hostile"]().results if "\x00" not in result.trial.id]
    text = trials_csv(trials_table(RUNS["hostile"]().matrix, results))
    rows = list(csv.DictReader(StringIO(text, newline="")))
    assert [row["profile"] for row in rows] == [result.trial.block.condition.profile.name for result in results]


def test_what_arms_set_for_themselves_is_said_on_the_first_screen_and_in_the_method() -> None:
    shown = words(parse(render(RUNS["arms"]().data("arms"), 0.0)))
    said = "HTTP/1.1 (six): connections 6; HTTP/2 (bbr): congestion bbr; HTTP/3 (as-shipped): settings as-shipped."
    assert shown.count(said) == 2, "below the first picture, and in the method"
    assert "h2-bbr-again against h2-bbr" in shown or "HTTP/2 (bbr-again) against HTTP/2 (bbr)" in shown


def test_windows_as_shipped_are_explained_where_an_arm_has_them_whatever_its_name() -> None:
    named = Arm("h3-as-shipped", Protocol.H3, overrides=Overrides((("connections", 6),)))
    has = Arm("h3-slow", Protocol.H3, overrides=Overrides(server_windows=Windows.AS_SHIPPED))
    assert variants_text([named]) == "Variants: HTTP/3 (as-shipped): connections 6."
    assert variants_text([has]).endswith(". As shipped are the windows and buffers that the programs come with.")
