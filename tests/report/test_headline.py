"""The rules of the headline, as a table of small cases; networks by what they are; and whole runs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from headwind.arm import H1, H2, H3, PLAIN, Arm, Protocol
from headwind.model import Condition, Proof, Repetition
from headwind.report import RunData, render
from headwind.report.answer import answer_of, workloads
from headwind.report.cells import cell_by
from headwind.report.certainty import Certainty, certainty_of, known_of
from headwind.report.headline import Card, card_of, lines_of
from headwind.report.networks import networks_of
from headwind.report.ranking import Standing, columns_of, ordered_pairs
from headwind.report.trust import trust_line
from headwind.report.verdicts import leader, possible_text
from headwind.servers import SERVERS
from headwind.workloads.objects import UNLIKE, Objects
from headwind.workloads.transfer import Transfer
from headwind.workloads.ttfb import Ttfb
from tests.comparisons import OPEN, OTHERS, finding, line
from tests.fake import PROFILES, example_matrix, trials_of
from tests.golden.runs import RUNS, Golden, shaken, took
from tests.pages import parse, section, words
from tests.report.racing import over_eight, raced

Ends = tuple[float, float]
WIN, LOSS, TIE, MAYBE, SLIGHT, BIG = (1.3, 1.5), (0.6, 0.8), (0.97, 1.03), (0.8, 1.4), (1.02, 1.2), (1.8, 2.2)
SURE = {WIN, LOSS, TIE, BIG}
DONE = OTHERS[0]
BY_DONE = (
    "Sure by mean completion time (over all requests, counted from client start): "
    "HTTP/3 is faster than HTTP/1.1 and HTTP/2 under 100 ± 10 ms delay."
)


def texts_of(cards: Sequence[Card]) -> list[str]:
    """The lines as in summary.md."""
    return [f"{label}, {line}" for label, _, line in lines_of(cards)]


def over(*ends: Ends, newest: bool = True, other: Ends | None = None) -> list[Card]:
    """The cards of HTTP/3 (or HTTP/2) against HTTP/1.1 over one network for each of `ends`; SURE ones survive."""
    matrix = example_matrix(*PROFILES[: len(ends)], arms=(H1, H3) if newest else (H1, H2))
    new, found = matrix.newest, []
    for condition, each in zip(matrix.conditions, ends, strict=True):
        more = [finding(*other, survives=other in SURE, metric=DONE, new=new, base=H1)] if other else []
        known = known_of(line(finding(*each, survives=each in SURE, new=new, base=H1), *more))
        network = networks_of(matrix)[condition.id]
        found.append(Standing(condition, network, (known,), {}, {}, {}, {}, {}, ""))
    return [card_of(found[0].known[0].line.pair, found, {})]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (WIN, "sure faster: no impairment (1.40x)"),
        (LOSS, "sure slower: no impairment (1.44x)"),
        (TIE, "sure tied: no impairment (at most 1.03x apart)"),
        (SLIGHT, "likely faster: no impairment (1.02x to 1.20x, lead may be under 5 %)"),
        ((1.01, 1.06), "likely faster: no impairment (1.01x to 1.06x, lead may be under 5 %)"),
        (MAYBE, "unclear unclear: no impairment (1.25x slower to 1.40x faster)"),
        (OPEN, "unclear unclear: no impairment (left open by unfinished trials)"),
    ],
)
def test_a_comparison_says_how_sure_it_is_who_leads_and_how_far(ends: Ends, said: str) -> None:
    (card,) = over(ends)
    assert card.label == "HTTP/3 against HTTP/1.1"
    assert [f"{each.certainty} {each.word}: {each.parts[0]}" for each in card.points] == [said]


def test_the_surest_come_first_and_of_each_the_largest() -> None:
    (card,) = over(MAYBE, WIN, LOSS, BIG, TIE)
    assert list(texts_of([card])) == [
        "HTTP/3 against HTTP/1.1, faster: 30 % loss + 20 % corruption (1.99x), 100 ± 10 ms delay (1.40x)",
        "HTTP/3 against HTTP/1.1, slower: 30 % loss (1.44x)",
        "HTTP/3 against HTTP/1.1, tied: loss-duplicate (at most 1.03x apart)",
        "HTTP/3 against HTTP/1.1, unclear: no impairment (1.25x slower to 1.40x faster)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("total", "other", "said"),
    [
        (MAYBE, WIN, ["unclear: (1.25x slower to 1.40x faster)", "faster by mean completion time: (1.40x)"]),
        (
            MAYBE,
            TIE,
            ["unclear: (1.25x slower to 1.40x faster)", "tied by mean completion time: (at most 1.03x apart)"],
        ),
        (
            SLIGHT,
            WIN,
            ["likely faster: (1.02x to 1.20x, lead may be under 5 %)", "faster by mean completion time: (1.40x)"],
        ),
        (WIN, LOSS, ["faster: (1.40x)", "slower by mean completion time: (1.44x)"]),
        (TIE, WIN, ["tied: (at most 1.03x apart)", "faster by mean completion time: (1.40x)"]),
        (WIN, WIN, ["faster: (1.40x)"]),
        (WIN, MAYBE, ["faster: (1.40x)"]),
    ],
)
def test_another_metric_is_told_where_it_says_more_or_otherwise(total: Ends, other: Ends, said: list[str]) -> None:
    (card,) = over(total, other=other)
    lines = [each.removeprefix("HTTP/3 against HTTP/1.1, ") for each in texts_of([card])]
    assert [each.replace("no impairment ", "") for each in lines] == said


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        (
            (1, 1, 2),
            "Sure by total time: HTTP/3 is faster than HTTP/1.1 and HTTP/2 in both networks.",
        ),
        (
            (3, 1, 2),
            (
                "Sure by total time: HTTP/3 is slower than HTTP/1.1 in both networks; "
                "faster than HTTP/2 in both networks."
            ),
        ),
        (
            (1, 1, 1),
            "Sure by total time: HTTP/3 is tied with HTTP/1.1 and HTTP/2 within 5 % in both networks.",
        ),
    ],
)
def test_the_headline_of_a_run_in_which_all_is_sure(speeds: tuple[float, float, float], said: str) -> None:
    assert answer_of(raced(dict(zip(PLAIN, speeds, strict=True)), *PROFILES[:2])).headline == said


def test_of_one_network_the_headline_has_its_name() -> None:
    answer = answer_of(raced({H1: 1.0, H2: 1.0, H3: 2.0}, PROFILES[1]))
    assert answer.headline == ("Sure by total time: HTTP/3 is faster than HTTP/1.1 and HTTP/2 under 100 ± 10 ms delay.")


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
        "Sure by total time: HTTP/3 is faster than HTTP/2 in both networks; against HTTP/1.1 nothing is sure."
    )


def test_what_is_not_sure_says_how_large_a_difference_is_possible() -> None:
    answer = answer_of(over_eight({H3: {2: 2.0}}))
    said = " ".join(texts_of(answer.cards))
    told = [float(size) for ends in re.findall(r"\(([\d.]+)x slower to ([\d.]+)x faster\)", said) for size in ends]
    unclear = [known.line.primary.comparison.interval for each in answer.standings for known in each.known
               if known.by_primary is Certainty.UNCLEAR]  # fmt: skip
    ends = [math.exp(abs(end)) for interval in unclear for end in (interval.low, interval.high)]
    assert told
    assert sorted(told) == pytest.approx(sorted(ends), abs=0.006)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.8, 1.4, "1.25x slower to 1.40x faster"),
        (1.01, 1.04, "1.01x to 1.04x faster"),
        (0.8, 0.9, "1.11x to 1.25x slower"),
        (1.004, 2.02, "1.004x to 2.02x faster"),
        (0.8, math.inf, "1.25x slower to any factor faster"),
        (0, 3.24, "3.24x faster to any factor slower"),
        (1.98, math.inf, "at least 1.98x faster"),
        (0.95, 1.004, "1.05x slower to 1.004x faster"),
        (0.999, 1.3, "1.001x slower to 1.30x faster"),
        (1.0, 1.004, "at most 1.004x faster"),
        (1.0, 1.0, "equal"),
        (*OPEN, "left open by unfinished trials"),
    ],
)
def test_an_interval_is_told_as_what_may_be(low: float, high: float, said: str) -> None:
    assert possible_text(finding(low, high).comparison.interval) == said


def test_many_networks_are_named_up_to_eight_and_of_more_four() -> None:
    answer = answer_of(over_eight({H3: dict.fromkeys(range(6), 2.0)}))
    assert "faster than both HTTP/1.1 and HTTP/2 in 6 of 8 networks and slower in none (2 not sure)." in answer.headline
    card = over(*[WIN] * 5)[0]
    many = replace(card.points[0], networks=card.points[0].networks * 4)
    assert many.parts[4:] == ["and 16 more (1.40x)"]
    assert all(part.endswith(" (1.40x)") for part in many.parts[:4])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("small", "Nothing is sure yet: no network has the 6 blocks that a sure result takes."),
        ("one-trial", "There is one protocol, so nothing to compare."),
        ("killed-at-once", "No trials have run yet."),
    ],
)
def test_without_a_verdict_the_headline_says_why(name: str, said: str) -> None:
    answer = answer_of(RUNS[name]().data(name))
    assert (answer.headline, answer.cards) == (said, ())


@pytest.mark.parametrize("name", RUNS)
def test_no_card_is_stronger_than_the_verdicts(name: str) -> None:
    """Protocols that are called faster, slower or tied surely are; by the primary metric nothing sure is left out."""
    data = RUNS[name]().data(name)
    shown = columns_of(data.matrix, data.judgement)[0]
    sure = {
        (finding.condition.id, each.pair, metric, winner.name if (winner := leader(finding)) else "")
        for each in data.judgement.compared if each.pair in shown
        for metric, finding in each.findings.items() if certainty_of(finding) is Certainty.SURE
    }  # fmt: skip
    primary = {each.primary.metric for each in data.judgement.compared}
    told = {
        (finding.condition.id, finding.pair, finding.metric, winner)
        for card in answer_of(data).cards for point in card.points if point.certainty is Certainty.SURE
        for winner in [{"faster": card.arm.name, "slower": card.rival.name}.get(point.word, "")]
        for _, finding in point.networks
    }  # fmt: skip
    assert told <= sure
    assert {each for each in sure if each[2] in primary} <= told


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
    assert "HTTP/3 (caddy) against HTTP/2 (caddy)" in [card.label for card in answer.cards]
    sure = "Sure by total time: HTTP/3 (caddy) is faster than HTTP/2 (caddy) in both networks."
    assert sure in answer.by_others


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


def test_a_metric_that_reverses_the_total_time_has_a_sentence_and_its_size_in_the_card() -> None:
    slower = {H1: 0.1, H2: 0.1, H3: 0.2}
    answer = answer_of(measured_as(request_p50_s=slower))
    (said,) = answer.by_others
    assert said == (
        "Sure by median time per request (from sending to last byte, without handshakes): "
        "HTTP/3 is slower than HTTP/1.1 and HTTP/2 under 100 ± 10 ms delay."
    )
    assert "slower by median time per request: 100 ± 10 ms delay (2.00x)" in " ".join(texts_of(answer.cards))
    agreeing = measured_as(mean_done_s={H1: 1.0, H2: 1.0, H3: 0.5})
    assert answer_of(agreeing).by_others == ()
    key = "Each list has every network by total time; sure results by another metric"
    assert [key in render(data, 0.0) for data in (measured_as(request_p50_s=slower), agreeing)] == [True, False]


def test_a_row_with_a_sure_comparison_has_the_forecast_of_the_others_too() -> None:
    """It was only in the list of blocks still needed."""
    matrix = example_matrix(PROFILES[1], repeat=Repetition(12, 60))
    results = [
        took(trial, shaken(trial) ** (60 if trial.arm is H1 else 0.3) / (1.1 if trial.arm is H3 else 1))
        for trial in trials_of(matrix)
    ]
    page = words(section(parse(render(Golden(matrix, tuple(results)).data("x"), 0.0)), "answer"))
    assert re.search(r"12 blocks · HTTP/3 against HTTP/1.1 and HTTP/2 against HTTP/1.1 not sure by any metric; ", page)


def test_a_lead_by_another_metric_in_a_tie_has_a_sentence() -> None:
    even = {
        "total_s": dict.fromkeys(PLAIN, 1.0),
        "request_p50_s": dict.fromkeys(PLAIN, 0.1),
        "mean_done_s": {H1: 0.5, H2: 0.5, H3: 0.46},
    }
    answer = answer_of(measured_as(**even))
    assert answer.headline == (
        "Sure by total time: HTTP/3 is tied with HTTP/1.1 and HTTP/2 within 5 % under 100 ± 10 ms delay."
    )
    assert answer.by_others == (BY_DONE,)


# several workloads that go by different metrics first


def two_workloads(compare: tuple[Arm, Arm] = (H3, H2)) -> RunData:
    """A page and a first byte over two networks; HTTP/3's first byte is sooner in all, its page nowhere surely."""
    networks = PROFILES[:2]
    workloads = Transfer("bulk", 1, 1, 1, path="/bytes/100000"), Ttfb("first", "/bytes/1000")
    matrix = replace(
        example_matrix(*networks, repeat=12), arms=(H2, H3), compare=(compare,),
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
        "Sure by time to first byte: HTTP/3 is faster than HTTP/2 in all 4 conditions.",
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
    assert {card.label for card in answer.cards} == {"HTTP/2 against HTTP/3"}
    assert "HTTP/2 against HTTP/3, slower" in " ".join(texts_of(answer.cards))
    assert answer.by_others == ("Sure by time to first byte: HTTP/3 is faster than HTTP/2 in all 4 conditions.",)


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
    assert "do not rely" not in trust_line(unmet).lower()


def test_the_limitation_of_times_per_request_is_above_their_comparisons() -> None:
    workload = Objects("page", 40, 0, 0, path="/bytes/15000")
    matrix = example_matrix(PROFILES[1], repeat=9, workload=workload)
    results = [took(trial, 1.0) for trial in trials_of(matrix)]
    results = [replace(each, metrics={**each.metrics, "request_p50_s": 0.1}) for each in results]
    page = words(section(parse(render(Golden(matrix, tuple(results)).data("x"), 0.0)), "comparisons"))
    assert f"{UNLIKE[0].upper()}{UNLIKE[1:]}." in page
