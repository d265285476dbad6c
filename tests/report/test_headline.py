"""The rules of the headline, as a table of small cases; networks by what they are; and whole runs."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from headwind.arm import H1, H2, H3, PLAIN, Arm, Overrides, Protocol
from headwind.model import Condition, Proof, Repetition
from headwind.report import RunData, render
from headwind.report.answer import answer_of, workloads
from headwind.report.cells import cell_by
from headwind.report.certainty import Certainty, certainty_of, known_of
from headwind.report.headline import Tally, tallies_of, tally_of
from headwind.report.networks import networks_of
from headwind.report.ranking import Standing, columns_of, ordered_pairs, standings
from headwind.report.trust import trust_line
from headwind.report.verdicts import leader, possible_text
from headwind.servers import SERVERS
from headwind.settings import Windows
from headwind.verdicts.pairs import Pair
from headwind.workloads.objects import UNLIKE, Objects
from headwind.workloads.transfer import FIRST_BYTE_OF_ANY, Transfer
from headwind.workloads.ttfb import Ttfb
from tests.comparisons import OPEN, OTHERS, finding, line
from tests.fake import PROFILES, example_matrix, timeout, trials_of
from tests.golden.runs import RUNS, Golden, shaken, took
from tests.pages import parse, section, words
from tests.report.racing import over_eight, raced

Ends = tuple[float, float]
WIN, LOSS, TIE, MAYBE, SLIGHT, BIG = (1.3, 1.5), (0.6, 0.8), (0.97, 1.03), (0.8, 1.4), (1.02, 1.2), (1.8, 2.2)
SURE = {WIN, LOSS, TIE, BIG}
DONE = OTHERS[0]
BY_DONE = (
    "By mean completion time (over all requests, counted from client start), "
    "HTTP/3 is faster than HTTP/1.1 and HTTP/2 under 100 ± 10 ms delay."
)


def over(*ends: Ends, newest: bool = True, other: Ends | None = None) -> Tally:
    """The tally of HTTP/3 (or HTTP/2) against HTTP/1.1 over one network for each of `ends`; SURE ones survive."""
    matrix = example_matrix(*PROFILES[: len(ends)], arms=(H1, H3) if newest else (H1, H2))
    new, found = matrix.newest, []
    for condition, each in zip(matrix.conditions, ends, strict=True):
        more = [finding(*other, survives=other in SURE, metric=DONE, new=new, base=H1)] if other else []
        known = known_of(line(finding(*each, survives=each in SURE, new=new, base=H1), *more))
        network = networks_of(matrix)[condition.id]
        found.append(Standing(condition, network, (known,), {}, {}, {}, {}, {}, ""))
    return tally_of(found[0].known[0].line.pair, found)


def test_networks_are_counted_by_what_is_sure_there() -> None:
    tally = over(WIN, LOSS, BIG, TIE, SLIGHT)
    counts = {word: len(ids) for word, ids in tally.sure["total_s"].items()}
    assert (tally.arm, tally.rival, counts) == (H3, H1, {"faster": 2, "slower": 1, "tied": 1})
    turned = {word: len(ids) for word, ids in tally.seen_from(H1).sure["total_s"].items()}
    assert turned == {"faster": 1, "slower": 2, "tied": 1}


@pytest.mark.parametrize(
    ("total", "other", "differs"),
    [
        (MAYBE, WIN, True),
        (MAYBE, TIE, True),
        (SLIGHT, WIN, True),
        (WIN, LOSS, True),
        (TIE, WIN, True),
        (WIN, WIN, False),
        (WIN, MAYBE, False),
    ],
)
def test_another_metric_counts_where_it_says_more_or_something_else(total: Ends, other: Ends, differs: bool) -> None:
    assert over(total, other=other).differing == ({DONE} if differs else set())


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        (
            (1, 1, 2),
            "By total time, HTTP/3 is faster than HTTP/1.1 and HTTP/2 in both networks.",
        ),
        (
            (3, 1, 2),
            ("By total time, HTTP/3 is slower than HTTP/1.1 in both networks; faster than HTTP/2 in both networks."),
        ),
        (
            (1, 1, 1),
            "By total time, HTTP/3 is tied with HTTP/1.1 and HTTP/2 within 5 % in both networks.",
        ),
    ],
)
def test_the_headline_of_a_run_in_which_all_is_sure(speeds: tuple[float, float, float], said: str) -> None:
    assert answer_of(raced(dict(zip(PLAIN, speeds, strict=True)), *PROFILES[:2])).headline == said


def test_of_one_network_the_headline_has_its_name() -> None:
    answer = answer_of(raced({H1: 1.0, H2: 1.0, H3: 2.0}, PROFILES[1]))
    assert answer.headline == ("By total time, HTTP/3 is faster than HTTP/1.1 and HTTP/2 under 100 ± 10 ms delay.")


def test_if_nothing_is_sure_by_any_metric_one_sentence_says_so() -> None:
    """`Nothing is sure yet by total time.` read as if something were sure by another one."""
    matrix = example_matrix(PROFILES[1], repeat=12)
    results = [
        replace(result, metrics={**result.metrics, **dict.fromkeys(("mean_done_s", "request_p50_s"), noise_s)})
        for trial in trials_of(matrix)
        for noise_s in [shaken(trial) ** 30]
        for result in [took(trial, noise_s)]
    ]
    data = Golden(matrix, tuple(results)).data("x")
    assert answer_of(data).headline == "Nothing is sure yet."
    assert answer_of(data).by_others == ()


def test_what_is_sure_by_another_metric_alone_has_a_sentence_of_its_own() -> None:
    matrix, results = example_matrix(PROFILES[1], repeat=12), []
    for trial in trials_of(matrix):
        result = took(trial, shaken(trial) ** 30)
        done_s = shaken(trial) ** 0.1 * (0.4 if trial.arm is H3 else 0.5)
        results.append(replace(result, metrics={**result.metrics, "mean_done_s": done_s}))
    answer = answer_of(Golden(matrix, tuple(results)).data("x"))
    assert (answer.headline, answer.by_others) == (
        "Nothing is sure yet by total time.",
        (BY_DONE,),
    )


def test_against_whom_nothing_is_sure_is_said() -> None:
    matrix = example_matrix(*PROFILES[1:3], repeat=12)
    results = [
        took(trial, shaken(trial) ** (60 if trial.arm is H1 else 0.3) / (1.1 if trial.arm is H3 else 1))
        for trial in trials_of(matrix)
    ]
    assert answer_of(Golden(matrix, tuple(results)).data("x")).headline == (
        "By total time, HTTP/3 is faster than HTTP/2 in both networks; against HTTP/1.1 nothing is sure."
    )


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.8, 1.4, "1.25x slower to 1.40x faster"),
        (1.01, 1.04, "1.01x to 1.04x faster"),
        (0.8, 0.9, "1.11x to 1.25x slower"),
        (1.004, 2.02, "1.004x to 2.02x faster"),
        (0.8, math.inf, "at most 1.25x slower, or faster by any factor"),
        (0, 3.24, "at most 3.24x faster, or slower by any factor"),
        (1.98, math.inf, "at least 1.98x faster"),
        (0.95, 1.004, "1.053x slower to 1.004x faster"),
        (0.96, 1.004, "1.04x slower to 1.004x faster"),
        (0.999, 1.3, "1.001x slower to 1.30x faster"),
        (1.0, 1.004, "at most 1.004x faster"),
        (1.0, 1.0, "equal"),
        (*OPEN, "anything is possible"),
    ],
)
def test_an_interval_is_told_as_what_may_be(low: float, high: float, said: str) -> None:
    assert possible_text(finding(low, high).comparison.interval) == said


def test_six_of_eight_networks_are_counted() -> None:
    answer = answer_of(over_eight({H3: dict.fromkeys(range(6), 2.0)}))
    assert "faster than both HTTP/1.1 and HTTP/2 in 6 of 8 networks and slower in none (2 not sure)." in answer.headline


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("small", "Nothing is sure yet: no network has the 7 blocks that a sure result takes."),
        ("one-trial", "There is one protocol, so nothing to compare."),
        ("killed-at-once", "No trials have run yet."),
    ],
)
def test_without_a_verdict_the_headline_says_why(name: str, said: str) -> None:
    assert answer_of(RUNS[name]().data(name)).headline == said


@pytest.mark.parametrize("name", RUNS)
def test_the_headline_counts_exactly_the_sure_verdicts(name: str) -> None:
    data = RUNS[name]().data(name)
    shown = columns_of(data.matrix, data.judgement)[0]
    sure = {
        (finding.condition.id, each.pair, metric.key, winner.name if (winner := leader(finding)) else "")
        for each in data.judgement.compared if each.pair in shown
        for metric, finding in each.findings.items() if certainty_of(finding) is Certainty.SURE
    }  # fmt: skip
    tallied = {
        (condition, Pair(tally.rival, tally.arm), metric, winner)
        for tally in tallies_of(data, standings(data))
        for metric, by_word in tally.sure.items() for word, ids in by_word.items() for condition in ids
        for winner in [{"faster": tally.arm.name, "slower": tally.rival.name}.get(word, "")]
    }  # fmt: skip
    assert tallied == (sure if any(known.has_interval for each in standings(data) for known in each.known) else set())


def test_a_row_leads_with_the_newest_protocol_and_variants_of_its_own_come_last() -> None:
    data = RUNS["arms"]().data("x")
    assert list(map(str, ordered_pairs(data.matrix, data.judgement))) == [
        "h3 against h2", "h3-as-shipped against h3", "h1-six against h1", "h2-bbr against h2",
    ]  # fmt: skip


def test_protocols_on_another_server_are_shown_whenever_the_matrix_compares_them() -> None:
    """Six pairs were named; HTTP/3 against HTTP/2 on Caddy was left to the page, behind variants of HTTP/3."""
    caddy = next(server for server in SERVERS.values() if server.name == "caddy")
    h2_caddy, h3_caddy = Arm("h2-caddy", Protocol.H2, server=caddy), Arm("h3-caddy", Protocol.H3, server=caddy)
    compare = ((H3, H2), (H3, H1), (h3_caddy, H3), (H2, H1), (h2_caddy, H2), (h3_caddy, h2_caddy))
    matrix = example_matrix(*PROFILES[:2], repeat=12, arms=(*PLAIN, h2_caddy, h3_caddy), compare=compare)
    speed = {H1: 1.0, H2: 1.2, H3: 1.5, h2_caddy: 1.0, h3_caddy: 2.0}
    results = tuple(took(trial, shaken(trial) / speed[trial.arm]) for trial in trials_of(matrix))
    data = Golden(matrix, results).data("x")
    shown, rest = columns_of(data.matrix, data.judgement)
    assert not rest
    assert list(map(str, shown)) == [
        "h3 against h2", "h3 against h1", "h3-caddy against h2-caddy", "h3-caddy against h3", "h2 against h1",
        "h2-caddy against h2",
    ]  # fmt: skip
    answer = answer_of(data)
    sure = "By total time, HTTP/3 (caddy) is faster than HTTP/2 (caddy) in both networks."
    assert sure in answer.by_others


def test_a_headline_without_a_sure_result_points_to_those_of_other_arms() -> None:
    """`Nothing is sure of HTTP/3 yet` stood above a sure result of caddy's HTTP/3 against nginx's HTTP/2."""
    caddy = next(server for server in SERVERS.values() if server.name == "caddy")
    h3_caddy = Arm("h3-caddy", Protocol.H3, server=caddy)
    compare = ((H3, H2), (h3_caddy, H2))
    matrix = example_matrix(PROFILES[0], repeat=12, arms=(H2, H3, h3_caddy), compare=compare)
    seconds = {H2: (1.0, 1.0), H3: (0.5, 2.0), h3_caddy: (0.5, 0.5)}
    results = tuple(
        took(trial, shaken(trial) ** 0.1 * seconds[trial.arm][trial.block.index % 2]) for trial in trials_of(matrix)
    )
    headline_ = answer_of(Golden(matrix, results).data("x")).headline
    assert headline_ == "Nothing is sure of h3 yet by total time; the table has what is sure of other arms."


def test_another_arm_has_its_own_sentence_by_another_metric_too() -> None:
    """HTTP/3 with windows as shipped led by mean completion time, and only the table said so."""
    shipped = Arm("h3-as-shipped", Protocol.H3, overrides=Overrides(server_windows=Windows.AS_SHIPPED))
    matrix = example_matrix(PROFILES[0], repeat=12, arms=(H2, H3, shipped), compare=((H3, H2), (shipped, H2)))
    results = []
    for trial in trials_of(matrix):
        result = took(trial, shaken(trial) ** 0.1 * (2.0 if trial.block.index % 2 and trial.arm is not H2 else 1.0))
        done_s = 0.5 if trial.arm is shipped else 1.0
        results.append(replace(result, metrics={**result.metrics, "mean_done_s": done_s * shaken(trial) ** 0.1}))
    answer = answer_of(Golden(matrix, tuple(results)).data("x"))
    assert (
        "By mean completion time (over all requests, counted from client start), HTTP/3 (as-shipped) is faster than "
        "HTTP/2 with no impairment."
    ) in answer.by_others


def test_protocols_that_are_not_compared_are_not_mentioned() -> None:
    matrix = example_matrix(PROFILES[0], arms=(H2, H3), workload=Objects("page", 40, 0, 0, path="/bytes/15000"))
    (said,) = workloads(Golden(matrix, ()).data("x"))
    assert "over 1 new connection" in said
    assert "HTTP/1.1" not in said
    matrix = example_matrix(PROFILES[0], workload=Objects("page", 40, 0, 0, path="/bytes/15000"))
    assert "6 new connections (HTTP/1.1) or 1 (HTTP/2 and HTTP/3)" in workloads(Golden(matrix, ()).data("x"))[0]


# where another metric says otherwise


def measured_as(**metrics: dict[Arm, float]) -> RunData:
    """HTTP/3 needs half of the others' total over one network; and these metrics, by arm."""
    matrix = example_matrix(PROFILES[1], repeat=12)
    speed = {H1: 1.0, H2: 1.0, H3: 2.0}
    results = []
    for trial in trials_of(matrix):
        result = took(trial, shaken(trial) ** 0.3 / speed[trial.arm])
        own = {key: by_arm[trial.arm] for key, by_arm in metrics.items()}
        results.append(replace(result, metrics={**result.metrics, **own}))
    return Golden(matrix, tuple(results)).data("x")


def test_a_metric_that_reverses_the_total_time_has_a_sentence() -> None:
    slower = {H1: 0.1, H2: 0.1, H3: 0.2}
    answer = answer_of(measured_as(request_p50_s=slower))
    (said,) = answer.by_others
    assert said == (
        "By median time per request (from sending to last byte, without handshakes), "
        "HTTP/3 is slower than HTTP/1.1 and HTTP/2 under 100 ± 10 ms delay."
    )
    agreeing = measured_as(mean_done_s={H1: 1.0, H2: 1.0, H3: 0.5})
    assert answer_of(agreeing).by_others == ()


def test_a_row_with_a_sure_comparison_has_the_forecast_of_the_others_too() -> None:
    """It was only in the list of blocks still needed."""
    matrix = example_matrix(PROFILES[1], repeat=Repetition(12, 60))
    results = [
        took(trial, shaken(trial) ** (60 if trial.arm is H1 else 0.3) / (1.1 if trial.arm is H3 else 1))
        for trial in trials_of(matrix)
    ]
    page = words(section(parse(render(Golden(matrix, tuple(results)).data("x"), 0.0)), "answer"))
    assert re.search(r"12 blocks, (about \d+|at least \d+|hundreds) more until all are sure by some metric", page)


def test_a_lead_by_another_metric_in_a_tie_has_a_sentence() -> None:
    even = {
        "total_s": dict.fromkeys(PLAIN, 1.0),
        "request_p50_s": dict.fromkeys(PLAIN, 0.1),
        "mean_done_s": {H1: 0.5, H2: 0.5, H3: 0.46},
    }
    answer = answer_of(measured_as(**even))
    assert answer.headline == (
        "By total time, HTTP/3 is tied with HTTP/1.1 and HTTP/2 within 5 % under 100 ± 10 ms delay."
    )
    assert answer.by_others == (BY_DONE,)


# several workloads that go by different metrics first


def two_workloads(compare: tuple[Arm, Arm] = (H3, H2)) -> RunData:
    """A page and a first byte over two networks; HTTP/3's first byte is sooner in all, its page nowhere surely."""
    networks = PROFILES[:2]
    workloads = Transfer("bulk", 1, 1, 1, path="/bytes/100000"), Ttfb("first", "/bytes/1000")
    matrix = replace(
        example_matrix(*networks, repeat=12), arms=(H2, H3), compare=(compare,), judge=("total_s", "ttfb_s"),
        conditions=tuple(Condition(profile, each) for profile in networks for each in workloads),
    )  # fmt: skip
    trials = [*trials_of(matrix)]
    some = {each.profile: took(each, 1.0) for each in trials if each.block.condition.workload == workloads[0]}
    results = []
    for trial in trials:
        first_s = shaken(trial) ** 0.05 * (0.3 if trial.arm is H3 else 0.5)
        own = {"total_s": shaken(trial) ** 30, "ttfb_s": first_s, "handshake_s": first_s / 2}
        results.append(replace(some[trial.profile], trial=trial, metrics=own))
    return Golden(matrix, tuple(results)).data("x")


def test_counts_by_a_metric_are_of_all_conditions_that_it_judges() -> None:
    answer = answer_of(two_workloads())
    assert [answer.headline, *answer.by_others] == [
        "Nothing is sure yet by total time.",
        f"By time to first byte ({FIRST_BYTE_OF_ANY.note}), HTTP/3 is faster than HTTP/2 in all 4 conditions.",
    ]


def test_a_metric_that_adds_somewhere_counts_where_it_agrees_too() -> None:
    """Sure by total time in six of eight networks, by mean completion time in all: not in two."""
    data = over_eight({H3: dict.fromkeys(range(6), 2.0)})
    results = []
    for each in data.results:
        done_s = shaken(each.trial) ** 0.1 * (0.5 if each.trial.arm is H3 else 1.0)
        results.append(replace(each, metrics={**each.metrics, "mean_done_s": done_s}))
    (said,) = answer_of(replace(data, results=tuple(results))).by_others
    assert "HTTP/3 is faster than HTTP/1.1 and HTTP/2 in all 8 networks." in said


def test_candidate_and_baseline_stand_as_in_the_matrix() -> None:
    """Also where the newest protocol is the baseline; the headline is about it all the same."""
    data = two_workloads((H2, H3))
    answer = answer_of(data)
    (said,) = answer.by_others
    assert said.endswith("HTTP/3 is faster than HTTP/2 in all 4 conditions.")


# where the network never changed


def test_results_of_trials_that_ended_before_the_network_changed_are_not_sure() -> None:
    """A blackout that no trial met is no result about a blackout; one that one protocol outran is."""

    def ended_early(*arms: Arm) -> RunData:
        data = measured_as()
        warned = Proof(warnings=("the network did not change: the client had ended by 1 s",))
        results = [replace(each, proof=warned) if each.trial.arm in arms else each for each in data.results]
        return Golden(data.matrix, tuple(results)).data("x")

    met, outrun, unmet = measured_as(), ended_early(H3), ended_early(H1, H2, H3)
    counted = [answer_of(data).headline for data in (met, outrun, unmet)]
    assert counted[0] == counted[1]
    assert counted[2] != counted[0]
    assert [line.network_held for line in unmet.judgement.compared] == [False] * 3
    assert {note for each in unmet.judgement.compared for note in cell_by(each.primary).notes} == {
        "trials ended before the network changed"
    }
    assert unmet.network_doubts == {unmet.matrix.conditions[0].id: ["36 of 36 trials ended before the network changed"]}
    assert "write an earlier moment or a larger workload" in trust_line(unmet)
    assert "ended before the network changed" not in trust_line(met)
    assert "ended before the network changed (HTTP/3 12 of 12), and most of the other protocols' did" in trust_line(
        outrun
    )
    assert "do not rely" not in trust_line(unmet).lower()


def test_the_limitation_of_times_per_request_is_above_their_comparisons() -> None:
    workload = Objects("page", 40, 0, 0, path="/bytes/15000")
    matrix = example_matrix(PROFILES[1], repeat=9, workload=workload)
    results = [took(trial, 1.0) for trial in trials_of(matrix)]
    results = [replace(each, metrics={**each.metrics, "request_p50_s": 0.1}) for each in results]
    page = words(section(parse(render(Golden(matrix, tuple(results)).data("x"), 0.0)), "comparisons"))
    assert f"{UNLIKE[0].upper()}{UNLIKE[1:]}." in page


def test_a_protocol_that_only_finishes_more_is_not_called_faster() -> None:
    """`HTTP/3 is faster than HTTP/2 in both networks` stood next to medians of 5 s and 20 s."""
    slow = raced({H1: 1, H2: 4, H3: 1}, PROFILES[0], repeat=24)
    stopped = tuple(
        timeout(each.trial) if each.trial.arm is H2 and each.trial.block.index % 2 else each for each in slow.results
    )
    data = Golden(slow.matrix, stopped).data("x")
    sentence = answer_of(data).headline
    assert "more reliable than HTTP/2" in sentence
    assert "faster than HTTP/2" not in sentence
    text = words(section(parse(render(data, 0.0)), "why"))
    assert "HTTP/3 finishes more trials than HTTP/2." in text
    assert "beats HTTP/2 by -" not in text


def test_an_unclear_cell_says_which_arm_left_trials_unfinished() -> None:
    """`HTTP/3 is 1.66x to 1.67x faster` was called unclear, without the reason."""
    fast = raced({H1: 1, H2: 1, H3: 2}, PROFILES[0], repeat=24)
    stopped = tuple(
        timeout(each.trial) if each.trial.arm is H3 and each.trial.block.index % 8 == 0 else each
        for each in fast.results
    )
    (row,) = standings(Golden(fast.matrix, stopped).data("x"))
    cell = row.cells[Pair(H2, H3)]
    assert cell.certainty is Certainty.UNCLEAR
    assert "no verdict: HTTP/3 left 3 of 24 trials unfinished" in cell.notes
