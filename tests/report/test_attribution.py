"""Why one protocol was faster: what is said follows from the figures, a planted cause is found, and no other."""

from __future__ import annotations

import itertools
import random
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.arm import H1, H2, H3, Arm
from headwind.format import measured
from headwind.metric import Workload
from headwind.model import Condition, Outcome, Repetition, Result, Trial
from headwind.observed import Observed
from headwind.report import RunData, render
from headwind.report.attribution import MOSTLY, Why, account_of, whys
from headwind.report.condition import condition_view
from headwind.report.html import charts
from headwind.report.ranking import standings
from headwind.report.request_progress import columns, unrecorded
from headwind.run.codec import State, Status
from headwind.workloads.h2load import PROGRESS
from headwind.workloads.transfer import Transfer
from headwind.workloads.ttfb import Ttfb
from impair.profile import Delay, Link, Loss, Profile, Rate
from tests.drawn import Drawn
from tests.fake import ARTICLE, ENVIRONMENT, STARTED_AT, example_matrix, metrics_of, timeout, trials_of
from tests.golden.runs import RUNS, took
from tests.pages import parse, section, words

LOSSY = Profile("loss", downlink=Link(Delay(0.02), Loss(0.1)))
SLOW_LINK = Profile("narrow", downlink=Link(rate=Rate(10_000_000)))
BLOCKS = 20
NAMES = {H1: "HTTP/1.1", H2: "HTTP/2", H3: "HTTP/3"}
ROOT = Path(__file__).resolve().parent.parent.parent
Metrics = Callable[[Trial, random.Random], Mapping[str, float]]


def run(metrics: Metrics, profile: Profile = LOSSY, blocks: int = BLOCKS) -> RunData:
    """A run of one network, each of whose trials has its own metrics beside the usual ones."""
    matrix = example_matrix(profile, repeat=Repetition(least=blocks, most=blocks))
    results = []
    for trial in trials_of(matrix):
        own = metrics(trial, random.Random(trial.id))
        usual = took(trial, own["total_s"])
        results.append(replace(usual, metrics={**usual.metrics, **own}))
    return data_of(tuple(results), profile, blocks)


def data_of(results: tuple[Result, ...], profile: Profile = LOSSY, blocks: int = BLOCKS) -> RunData:
    matrix = example_matrix(profile, repeat=Repetition(least=blocks, most=blocks))
    return RunData("why", matrix, results, ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT + 60))


def told(data: RunData) -> Why:
    (found,) = whys(data, standings(data))
    return found


def lost_s(data: RunData, loser: Arm, winner: Arm, key: str = "total_s") -> float:
    """What the median block says, computed without the code that is tested."""
    by_arm: dict[Arm, list[float]] = {}
    for result in data.results:
        by_arm.setdefault(result.trial.arm, []).append(result.metrics[key])
    return statistics.median(slow - fast for slow, fast in zip(by_arm[loser], by_arm[winner], strict=True))


HANDSHAKES_S = {H1: 20.0, H2: 9.0, H3: 3.0}


def waiting(trial: Trial, rng: random.Random) -> Mapping[str, float]:
    """A planted cause: the slowest handshake takes what it takes, and the requests after it hardly anything."""
    slowest_s = HANDSHAKES_S[trial.arm] * rng.uniform(0.7, 1.3)
    total_s = slowest_s + rng.uniform(0.02, 0.05)
    return {
        "total_s": total_s, "connect_max_s": slowest_s, "connect_p50_s": 0.1, "done_p50_s": 0.4, "done_p90_s": 1.9,
        "done_p99_s": 0.9 * total_s, "done_all_s": total_s, "packet_gap_max_s": 0.3,
    }  # fmt: skip


def test_a_planted_cause_is_found_with_its_figures() -> None:
    data = run(waiting)
    shares = {}
    for loser in (H1, H2):
        whole, part = lost_s(data, loser, H3), lost_s(data, loser, H3, "connect_max_s")
        shares[loser] = round(100 * part / whole)
    by = " and ".join(f"{NAMES[loser]} by {measured('by_s', lost_s(data, loser, H3))}" for loser in (H1, H2))
    each = (f"{share} % of the lead over {NAMES[loser]}" for loser, share in shares.items())
    share = "all of these leads" if min(shares.values()) == 100 else " and ".join(each)
    found = told(data)
    assert f"HTTP/3 beats {by}; the slowest handshake accounts for {share}." in found.sentences
    assert (
        f"HTTP/2 beats HTTP/1.1 by {measured('by_s', lost_s(data, H1, H2))}; "
        "the slowest handshake accounts for all of this lead."
    ) in found.sentences


def test_a_total_that_is_little_else_than_its_handshake_has_a_sentence() -> None:
    data = run(waiting)
    shares = []
    for arm in (H1, H2, H3):
        of = [result.metrics for result in data.results if result.trial.arm is arm]
        shares.append(statistics.median(each["connect_max_s"] / each["total_s"] for each in of))
    assert min(shares) > MOSTLY
    last = told(data).sentences[-1]
    h1, h2, h3 = (f"{100 * share:.0f} %" for share in shares)
    parts = f"{h1} (HTTP/1.1), {h2} (HTTP/2) and {h3} (HTTP/3)"
    assert last == f"The slowest handshake takes {parts} of the total time (medians)."


def test_where_one_total_is_its_handshake_all_shares_are_named() -> None:
    def only_h3(trial: Trial, rng: random.Random) -> Mapping[str, float]:
        total_s = rng.uniform(0.9, 1.1)
        return {"total_s": total_s, "connect_max_s": total_s * (0.901 if trial.arm is H3 else 0.5)}

    assert (
        "The slowest handshake takes 50 % (HTTP/1.1), 50 % (HTTP/2) and 90 % (HTTP/3) of the total time (medians)."
        in told(run(only_h3)).sentences
    )


def test_the_page_says_it_beside_its_figures() -> None:
    data = run(waiting)
    text = words(section(parse(render(data, 0.0)), "why"))
    for sentence in told(data).sentences:
        assert sentence in text
    of = [result.metrics for result in data.results if result.trial.arm is H3]
    assert measured("connect_max_s", statistics.median(each["connect_max_s"] for each in of)) in text
    assert measured("packet_gap_max_s", 0.3) in text
    assert f"{2.5:.2f}" in text, "bytes on the wire for each byte of payload"


def paused(trial: Trial, rng: random.Random) -> Mapping[str, float]:
    """One pause, as a retransmission timer makes it."""
    pause_s = {H1: 3.0, H2: 1.0, H3: 0.5}[trial.arm] * rng.uniform(0.9, 1.1)
    return {"total_s": 1.0 + pause_s, "packet_gap_max_s": pause_s, "connect_max_s": rng.uniform(0.1, 0.2)}


def test_packet_gaps_are_no_cause_of_leads_below_their_error() -> None:
    def short(trial: Trial, rng: random.Random) -> Mapping[str, float]:
        return {key: value / 40 for key, value in paused(trial, rng).items()}

    assert "the longest time without a packet accounts for" in " ".join(told(run(paused)).sentences)
    assert "the longest time without a packet accounts for" not in " ".join(told(run(short)).sentences)


def working(trial: Trial, rng: random.Random) -> Mapping[str, float]:
    """The client's processor is what everything waits for."""
    busy_s = {H1: 1.0, H2: 1.6, H3: 3.0}[trial.arm] * rng.uniform(0.95, 1.05)
    return {"total_s": busy_s + 0.1, "client_cpu_s": busy_s, "connect_max_s": 0.05, "packet_gap_max_s": 0.02}


def heavy(trial: Trial, rng: random.Random) -> Mapping[str, float]:
    """Bytes at the rate of the downlink."""
    down = {H1: 2e6, H2: 3e6, H3: 4e6}[trial.arm] * rng.uniform(0.98, 1.02)
    seconds = 8 * down / 10e6
    return {"total_s": seconds + 0.1, "wire_down_bytes": down, "wire_bytes": down + 5e4, "connect_max_s": 0.05,
            "packet_gap_max_s": 0.02}  # fmt: skip


@pytest.mark.parametrize(
    ("metrics", "profile", "cause"),
    [
        (paused, LOSSY, "the longest time without a packet"),
        (working, LOSSY, "CPU time of the client"),
        (heavy, SLOW_LINK, "sending more bytes at the downlink's rate"),
    ],
)
def test_every_kind_of_cause_is_found_where_it_is_planted(metrics: Metrics, profile: Profile, cause: str) -> None:
    led = [sentence for sentence in told(run(metrics, profile)).sentences if "beats" in sentence]
    assert led
    assert all(f"; {cause} accounts for " in sentence for sentence in led)


def unexplained(trial: Trial, rng: random.Random) -> Mapping[str, float]:
    """Nothing that is counted has to do with it."""
    return {
        "total_s": {H1: 3.0, H2: 2.0, H3: 1.0}[trial.arm] * rng.uniform(0.95, 1.05), "connect_max_s": 0.2,
        "packet_gap_max_s": 0.1, "client_cpu_s": 0.3, "done_p90_s": 0.4, "done_all_s": 0.5,
    }  # fmt: skip


def test_where_nothing_accounts_for_it_that_is_said() -> None:
    led = [sentence for sentence in told(run(unexplained)).sentences if "beats" in sentence]
    assert led
    assert all(sentence.endswith("; no cause found.") for sentence in led)


def test_where_a_difference_lies_is_said_when_its_cause_is_not_known() -> None:
    def late(trial: Trial, rng: random.Random) -> Mapping[str, float]:
        total_s = {H1: 3.0, H2: 2.0, H3: 1.0}[trial.arm] * rng.uniform(0.95, 1.05)
        return {
            "total_s": total_s,
            "connect_max_s": 0.2,
            "packet_gap_max_s": 0.1,
            "done_p90_s": 0.4,
            "done_all_s": total_s,
        }

    assert (
        told(run(late))
        .sentences[0]
        .endswith("; no cause found, but nearly all of each lead arose in the last 10 % of the requests.")
    )


def test_medians_that_agree_are_no_cause_where_the_blocks_do_not() -> None:
    """Handshakes as long as in `waiting`, but those of other trials."""

    def shuffled(trial: Trial, rng: random.Random) -> Mapping[str, float]:
        wait_s, other_s = (HANDSHAKES_S[trial.arm] * rng.uniform(0.1, 1.9) for _ in range(2))
        return {"total_s": wait_s + 0.1, "connect_max_s": other_s, "packet_gap_max_s": 0.1}

    data = run(shuffled, blocks=40)
    account = account_of(data.matrix.conditions[0], data.rows["loss/article"], H3, H1)
    assert account.difference_s == pytest.approx(lost_s(data, H1, H3))
    assert account.cause == ""


def test_a_processor_that_worked_little_is_no_cause_although_its_seconds_fit() -> None:
    def idle(trial: Trial, rng: random.Random) -> Mapping[str, float]:
        more_s = {H1: 0.3, H2: 0.2, H3: 0.1}[trial.arm] * rng.uniform(0.99, 1.01)
        return {"total_s": 2.0 + more_s, "client_cpu_s": more_s, "connect_max_s": 0.1, "packet_gap_max_s": 0.1}

    data = run(idle)
    assert account_of(data.matrix.conditions[0], data.rows["loss/article"], H3, H1).cause == ""


def test_without_a_lead_there_is_nothing_to_explain() -> None:
    data = run(lambda _, rng: {"total_s": rng.uniform(0.99, 1.01)})
    assert told(data).sentences[0] == "No sure or likely lead by total time."


def test_of_trials_that_were_stopped_no_difference_is_made_up() -> None:
    data = run(waiting)
    stopped = tuple(timeout(each.trial) if each.trial.arm is H1 and each.trial.block.index % 3 else each
                    for each in data.results)  # fmt: skip
    account = account_of(data.matrix.conditions[0], data_of(stopped).rows["loss/article"], H3, H1)
    assert (account.difference_s, account.cause) == (None, "")


def test_a_difference_says_if_some_blocks_have_none() -> None:
    data = run(waiting)
    stopped = tuple(timeout(each.trial, 600.0) if each.trial.arm is H1 and each.trial.block.index % 4 == 0 else each
                    for each in data.results)  # fmt: skip
    assert not any("finished" in sentence for sentence in told(data).sentences if " beats " in sentence)
    led = [sentence for sentence in told(data_of(stopped)).sentences if " HTTP/1.1 by " in sentence]
    assert led
    for sentence in led:
        several = "(each in blocks that both protocols finished)"
        assert (several if " and " in sentence else "(in blocks that both protocols finished)") in sentence


def test_a_median_trial_that_was_stopped_leaves_its_progress_as_far_as_it_came() -> None:
    data = run(waiting)
    ends = {metric.low_key: 5.0 if share < 0.9 else 60.0 for share, metric in PROGRESS.items()}
    ends |= {PROGRESS[0.5].high_key: 5.0}
    stopped = tuple(timeout(each.trial, 60.0, ends) if each.trial.arm is H1 else each for each in data.results)
    (h1, *_) = told(data_of(stopped)).tracks
    assert h1.reached[0.5] == Observed.finished(5.0)
    assert h1.reached[1.0] == Observed.unfinished(60.0)


def test_a_run_from_before_all_this_says_what_it_does_not_have() -> None:
    old = {key for key in metrics_of(ARTICLE, 1.0) if key.split("_")[0] in ("done", "connect", "wire", "packet")}
    data = RUNS["sweep"]().data("sweep")
    results = tuple(
        replace(each, metrics={key: value for key, value in each.metrics.items() if key not in old})
        for each in data.results
    )
    data = replace(data, results=results)
    found = whys(data, standings(data))
    assert all(track.reached == {} for why in found for track in why.tracks)
    missing = unrecorded(ARTICLE, [track for why in found for track in why.tracks])
    assert missing == ["when requests were done", *columns(ARTICLE)]
    led = [sentence for why in found for sentence in why.sentences if "beats" in sentence]
    assert led
    assert all(sentence.endswith("; no cause found.") for sentence in led)
    text = words(section(parse(render(data, 0.0)), "why"))
    assert f"Not recorded: {', '.join(missing)}." in text


def test_what_the_servers_quic_sent_again_is_not_known() -> None:
    """The packets that the client declared lost, nearly always 0, stood where TCP has the retransmits of both ends."""

    def lossy(trial: Trial, rng: random.Random) -> Mapping[str, float]:
        own = {"quic_packets_lost": 7} if trial.arm is H3 else {"tcp_retransmits": 1200, "tcp_rtos": 31}
        return {"total_s": 1.0, **own}

    found = told(run(lossy))
    place = columns(ARTICLE).index("retransmits")
    assert [track.figures[place : place + 2] for track in found.tracks] == [
        ("1,200", "31"),
        ("1,200", "31"),
        ("—", "—"),
    ]


def test_a_track_is_drawn_where_its_figures_are() -> None:
    values = [Observed.finished(value) for value in (1.0, 2.0, 4.0, 8.0)]
    axis = charts.strip_axis(values, "total_s", 60.0)
    drawn = Drawn(charts.track("x", axis, "h2", values, 3.0))
    ends = [(path[0][0], path[-1][0]) for path in drawn.paths("h2", "bar")]
    places = [axis.x(value.known) for value in values]
    for end, wanted in zip(ends, itertools.pairwise(places), strict=True):
        assert end == pytest.approx(wanted, abs=0.06)
    assert drawn.marks("h2", 520)[-1][0] == pytest.approx(places[3], abs=0.11)
    ((tick, *_),) = drawn.paths("stop")
    assert tick[0] == pytest.approx(axis.x(3.0), abs=0.06)


def test_a_track_that_was_stopped_ends_in_an_arrow_and_one_that_failed_in_a_cross() -> None:
    stopped = [Observed.finished(1.0), Observed.unfinished(60.0), Observed.unfinished(60.0), Observed.unfinished(60.0)]
    axis = charts.strip_axis(stopped, "total_s", 60.0)
    drawn = Drawn(charts.track("x", axis, "h2", stopped, None))
    assert len(drawn.paths("h2", "bar")) == 1, "nothing is known beyond the first bound"
    assert drawn.all("h2", "onward")
    assert not drawn.all("stop")
    failed = Drawn(charts.track("x", axis, "h2", [Observed(0.0, float("inf"))] * 4, None))
    assert failed.all("h2", "failed")
    assert not failed.all("h2", "bar")


def test_every_outcome_but_ok_is_left_out_of_the_figures_beside() -> None:
    data = run(waiting)
    odd = tuple(
        replace(each, outcome=Outcome.FAILED, metrics={**each.metrics, "packet_gap_max_s": 50.0})
        if number < 9
        else each
        for number, each in enumerate(data.results)
    )
    place = columns(ARTICLE).index("longest packet gap")
    assert {track.figures[place] for track in told(data_of(odd)).tracks} == {"300 ms"}
    none = tuple(replace(each, metrics={**each.metrics, "packet_gap_max_s": 0.0}) for each in data.results)
    assert {track.figures[place] for track in told(data_of(none)).tracks} == {"< 100 ms"}


def test_a_connect_time_is_one_number_on_the_whole_page() -> None:
    """Under *Why* it was the median of finished trials, 449 ms, and under *Figures* that of all, 466 ms."""
    data = run(waiting)
    odd = tuple(
        replace(timeout(each.trial), trial=each.trial) if each.trial.arm is H1 and number < 30 else each
        for number, each in enumerate(data.results)
    )
    data = data_of(odd)
    first = next(track for track in told(data).tracks if track.arm is H1)
    view = condition_view(data, data.matrix.conditions[0], "c1", (), data.judgement.rule)
    figures = dict(zip([metric.heading for metric in view.inside], view.figures[0].inside, strict=True))
    both = [name for name in columns(ARTICLE) if name in figures]
    assert both
    assert all(first.figures[columns(ARTICLE).index(name)] == figures[name] for name in both)


def first_bytes(kind: type[Ttfb | Transfer]) -> RunData:
    """One object over a new connection: HTTP/3's handshake takes half of the time, and what follows the same."""
    workload = Ttfb("first", "/bytes/1000") if kind is Ttfb else Transfer("bulk", 1, 1, 1, path="/bytes/1000")
    matrix = example_matrix(LOSSY, repeat=BLOCKS)
    some = {trial.id: took(trial, 1.0) for trial in trials_of(matrix)}
    matrix = replace(matrix, conditions=(Condition(LOSSY, workload),))
    results = []
    for trial, sample in zip(trials_of(matrix), some.values(), strict=True):
        rng = random.Random(trial.id)
        handshake_s = {H1: 0.1, H2: 0.09, H3: 0.04}[trial.arm] * rng.uniform(0.97, 1.03)
        first_s = handshake_s + rng.uniform(0.0495, 0.0505)
        own = {"handshake_s": handshake_s, "ttfb_s": first_s, "total_s": first_s + 0.001}
        results.append(replace(sample, trial=trial, metrics=own))
    return RunData("why", matrix, tuple(results), ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT + 60))


@pytest.mark.parametrize(
    ("workload", "is_named"),
    [(Transfer("bulk", 1, 1, 1, path="/bytes/1000"), True), (Ttfb("first", "/bytes/1000"), False)],
)
def test_counters_of_an_earlier_connection_are_no_cause(workload: Workload, *, is_named: bool) -> None:
    """The gap of trials whose first connection is not measured was 2.05 s, their first byte came after 0.55 s."""
    plain = example_matrix(LOSSY, repeat=BLOCKS)
    matrix = replace(plain, conditions=(Condition(LOSSY, workload),))
    results = []
    for trial, other in zip(trials_of(matrix), trials_of(plain), strict=True):
        gap_s = {H1: 2.0, H2: 1.5, H3: 0.5}[trial.arm]
        own = {"ttfb_s": gap_s + 0.1, "total_s": gap_s + 0.1, "handshake_s": 0.05, "packet_gap_max_s": gap_s}
        results.append(replace(took(other, gap_s), trial=trial, metrics=own))
    data = RunData("why", matrix, tuple(results), ENVIRONMENT, Status(State.FINISHED, "", STARTED_AT, STARTED_AT + 60))
    said = " ".join(told(data).sentences)
    assert "beats" in said
    assert ("the longest time without a packet accounts for" in said) is is_named


@pytest.mark.parametrize("kind", [Ttfb, Transfer])
def test_the_only_handshake_of_a_trial_is_recorded_and_a_cause(kind: type[Ttfb | Transfer]) -> None:
    data = first_bytes(kind)
    led = [sentence for sentence in told(data).sentences if "beats" in sentence]
    assert led
    assert all("; the handshake accounts for " in sentence for sentence in led)
    text = words(section(parse(render(data, 0.0)), "why"))
    assert measured("handshake_s", told(data).tracks[0].handshake_s) in text
    assert "slowest handshake" not in text
    assert "Not recorded: handshake" not in text


def test_a_lead_by_another_metric_is_not_passed_over() -> None:
    """The headline's link to the causes led to `No lead to explain`."""

    def late(trial: Trial, rng: random.Random) -> Mapping[str, float]:
        done_s = {H1: 0.5, H2: 0.5, H3: 0.8}[trial.arm] * rng.uniform(0.99, 1.01)
        return {"total_s": rng.uniform(0.99, 1.01), "mean_done_s": done_s, "request_p50_s": 0.1}

    assert told(run(late)).sentences[0] == "By mean completion time, HTTP/1.1 and HTTP/2 beat HTTP/3."
    text = words(section(parse(render(run(late), 0.0)), "why"))
    assert "A cause (such as a slower handshake) is named if it explains the lead by total time to within 25 %" in text


def test_a_window_that_limited_the_slower_trials_is_named_where_nothing_else_explains_it() -> None:
    data = run(unexplained)
    window = "limited by a window of 64 KB (nginx's http3_stream_buffer_size)"
    results = tuple(
        replace(each, proof=replace(each.proof, warnings=(f"{window}: 0.8 Mbit/s over a round trip of 600 ms",)))
        if each.trial.arm is H1 else each for each in data.results
    )  # fmt: skip
    led = [sentence for sentence in told(data_of(results)).sentences if "beats HTTP/1.1" in sentence]
    assert led
    assert all(sentence.endswith(f"; the slower trials were {window}.") for sentence in led)


def test_the_legends_name_the_columns() -> None:
    """`Resent`, `Timeouts` and `Silence` were none of them."""
    page = words(section(parse(render(RUNS["small"]().data("small"), 0.0)), "why"))
    guide = (ROOT / "docs/findings.md").read_text().partition("\n## ")[0]
    for name in columns(ARTICLE)[2:5]:
        assert f"{name[:1].upper()}{name[1:]}" in guide.replace("*RTOs*", "RTOs")
    assert {"Retransmits", "RTOs"} <= set(page.replace(":", "").split())
    assert not re.search("Resent|Timeouts|Silence", page + guide)
