"""The rules of the headline, as a table of small cases; networks by what they are; and whole runs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.metric import Metric
from headwind.report import RunData
from headwind.report.answer import answer_of, workloads
from headwind.report.certainty import Certainty, known_of
from headwind.report.headline import Claim, Kind, claims_of
from headwind.report.reversals import reversals
from headwind.report.standing import ordered_pairs, standings
from headwind.report.verdicts import sides, sizes_text, two
from headwind.verdicts.findings import Finding
from headwind.verdicts.verdict import Verdict
from headwind.workloads.objects import Objects
from tests.comparisons import OPEN, OTHERS, RULE, TOTAL, finding, line
from tests.fake import PROFILES, example_matrix, trials_of
from tests.golden.runs import RUNS, Golden, shaken, took
from tests.report.racing import over_eight, raced

Ends = tuple[float, float]
WIN, LOSS, TIE, MAYBE = (1.3, 1.5), (0.6, 0.8), (0.97, 1.03), (0.8, 1.4)
SURE = {WIN, LOSS, TIE}
DONE = OTHERS[0]


def claims(
    totals: Mapping[tuple[Arm, Arm], Ends], others: Mapping[tuple[Arm, Arm], Ends] | None = None
) -> dict[Claim, Sequence[Finding]]:
    """Of comparisons (candidate, baseline), by the total time and by another metric; WIN, LOSS and TIE are sure."""

    def told(pair: tuple[Arm, Arm], ends: Ends, metric: Metric) -> Finding:
        return finding(*ends, survives=ends in SURE, metric=metric, new=pair[0], base=pair[1])

    lines = []
    for pair, ends in totals.items():
        more = [told(pair, (others or {})[pair], DONE)] if pair in (others or {}) else []
        lines.append(line(told(pair, ends, TOTAL), *more))
    arms = tuple(arm for arm in PLAIN if any(arm in pair for pair in totals))
    return claims_of([known_of(each, RULE) for each in lines], arms, H3)


THREE = ((H3, H1), (H3, H2), (H2, H1))


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ((WIN, WIN, MAYBE), [Claim(Kind.FASTEST, H3, ())]),
        ((WIN, WIN, WIN), [Claim(Kind.FASTEST, H3, ())]),
        ((LOSS, LOSS, MAYBE), [Claim(Kind.SLOWEST, H3, ())]),
        ((MAYBE, WIN, LOSS), [Claim(Kind.SLOWEST, H2, ())]),
        ((LOSS, MAYBE, LOSS), [Claim(Kind.FASTEST, H1, ())]),
        ((WIN, MAYBE, MAYBE), [Claim(Kind.BEATS, H3, (H1,))]),
        ((MAYBE, MAYBE, WIN), [Claim(Kind.BEATS, H2, (H1,))]),
        ((LOSS, MAYBE, MAYBE), [Claim(Kind.BEATS, H1, (H3,))]),
        ((WIN, MAYBE, LOSS), [Claim(Kind.BEATS, H3, (H1,))]),  # the newest protocol's comes before two older ones'
        ((TIE, TIE, TIE), [Claim(Kind.TIES, H3, ())]),
        ((TIE, MAYBE, MAYBE), [Claim(Kind.TIES, H3, (H1,))]),
        ((TIE, MAYBE, WIN), [Claim(Kind.BEATS, H2, (H1,))]),
        ((MAYBE, MAYBE, MAYBE), []),
        ((OPEN, OPEN, OPEN), []),
    ],
)
def test_what_is_claimed_of_three_protocols(ends: tuple[Ends, ...], found: list[Claim]) -> None:
    assert list(claims(dict(zip(THREE, ends, strict=True)))) == found


@pytest.mark.parametrize(
    ("ends", "found"),
    [(WIN, Claim(Kind.BEATS, H3, (H2,))), (LOSS, Claim(Kind.BEATS, H2, (H3,))), (TIE, Claim(Kind.TIES, H3, (H2,)))],
)
def test_of_two_protocols_one_beats_the_other(ends: Ends, found: Claim) -> None:
    assert list(claims({(H3, H2): ends})) == [found]


BY_OTHER = Claim(Kind.BEATS, H3, (H2,), DONE.label)


@pytest.mark.parametrize(
    ("total", "other", "found"),
    [
        (TIE, WIN, [Claim(Kind.TIES, H3, (H2,))]),  # so is a lead in a tie
        (MAYBE, WIN, [BY_OTHER]),
        (MAYBE, TIE, [Claim(Kind.TIES, H3, (H2,), DONE.label)]),
        (WIN, LOSS, [Claim(Kind.BEATS, H3, (H2,))]),  # the primary metric is told; the reversal has its own sentence
        (TIE, MAYBE, [Claim(Kind.TIES, H3, (H2,))]),
    ],
)
def test_another_metric_is_named_where_the_total_time_has_no_winner(
    total: Ends, other: Ends, found: list[Claim]
) -> None:
    assert list(claims({(H3, H2): total}, {(H3, H2): other})) == found


def test_another_metric_names_every_lead_that_it_has() -> None:
    found = claims(dict.fromkeys(THREE, MAYBE), dict(zip(THREE, (LOSS, LOSS, MAYBE), strict=True)))
    ((claim, leads),) = found.items()
    assert claim == Claim(Kind.SLOWEST, H3, (), DONE.label)
    assert [sides(each)[0] for each in leads] == [H1, H2]


def test_a_claim_has_the_leads_over_every_rival_in_the_order_of_arms() -> None:
    ((_, leads),) = claims(dict(zip(THREE, ((1.8, 2.2), WIN, MAYBE), strict=True)) | {(H3, H1): WIN}).items()
    assert [sides(each) for each in leads] == [(H3, H1), (H3, H2)]
    assert sizes_text(leads) == "by 1.40x"


def without_ratios(text: str) -> str:
    return re.sub(
        r"\d+\.\d\dx( (over|for) HTTP/[\d.]+)?( (to|and) \d+\.\d\dx( (over|for) HTTP/[\d.]+)?)?", "RATIO", text
    )


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        ((1, 1, 2), "HTTP/3 is fastest with no impairment (by RATIO) and under 100 ± 10 ms delay (by RATIO)."),
        ((3, 1, 2), "HTTP/1.1 is fastest with no impairment (by RATIO) and under 100 ± 10 ms delay (by RATIO)."),
        ((1, 1, 1), "All are equal within 5 % with no impairment and under 100 ± 10 ms delay."),
    ],
)
def test_the_headline_of_a_run_in_which_all_is_sure(speeds: tuple[float, float, float], said: str) -> None:
    answer = answer_of(raced(dict(zip(PLAIN, speeds, strict=True)), *PROFILES[:2]))
    assert (without_ratios(answer.headline), answer.open) == (said, ())


def test_what_is_not_sure_says_how_large_a_difference_is_possible() -> None:
    answer = answer_of(over_eight({H3: {2: 2.0}}))
    assert without_ratios(answer.headline) == "HTTP/3 is fastest under 30 % loss (by RATIO)."
    said = " ".join(answer.open)
    bounds = [float(ratio) for ratio in re.findall(r"at most ([\d.]+)x", said)]
    most = [max(known.most_apart for known in each.known) for each in answer.standings
            if each.certainty is Certainty.UNCLEAR]  # fmt: skip
    assert bounds
    assert max(bounds) == pytest.approx(max(ratio for ratio in most if ratio < math.inf), rel=0.05)


def test_open_comparisons_of_networks_with_a_verdict_are_named() -> None:
    matrix = example_matrix(*PROFILES[2:4], repeat=12)
    results = [took(trial, shaken(trial) ** 30 / (30 if trial.arm is H3 else 1)) for trial in trials_of(matrix)]
    data = Golden(matrix, tuple(results)).data("x")
    bounds = [two(standing.known[-1].most_apart) for standing in standings(data)]
    assert without_ratios(answer_of(data).headline).startswith("HTTP/3 is fastest under 30 % loss")
    (still,) = answer_of(data).open
    assert still == (
        f"Unclear pairs: HTTP/2 against HTTP/1.1 under 30 % loss + 20 % corruption (at most {bounds[0]}x) "
        f"and 30 % loss (at most {bounds[1]}x)."
    )


def test_many_networks_are_counted() -> None:
    data = over_eight({H3: dict.fromkeys(range(6), 2.0)})
    assert without_ratios(answer_of(data).headline) == "HTTP/3 is fastest in 6 of 8 networks (by RATIO)."


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("small", "Nothing is sure yet: no network has the 6 blocks that a verdict needs."),
        ("one-trial", "There is one protocol, so nothing to compare."),
        ("killed-at-once", "Nothing has run, so nothing is known."),
    ],
)
def test_without_a_verdict_the_headline_says_why(name: str, said: str) -> None:
    answer = answer_of(RUNS[name]().data(name))
    assert (answer.headline, answer.open) == (said, ())


@pytest.mark.parametrize("name", RUNS)
def test_no_headline_is_stronger_than_the_verdicts(name: str) -> None:
    """Everybody who is said to beat anybody does so surely, and whoever is fastest beats all others."""
    data = RUNS[name]().data(name)
    sure = {(standing.condition.id, *sides(known.finding)) for standing in standings(data) for known in standing.known
            if known.certainty is Certainty.SURE and not known.is_tie}  # fmt: skip
    for standing in standings(data):
        for claim in claims_of(standing.known, data.matrix.arms, data.matrix.newest):
            others = [arm for arm in data.matrix.arms if arm != claim.arm]
            if claim.kind in (Kind.FASTEST, Kind.BEATS) and not claim.metric:
                rivals = others if claim.kind is Kind.FASTEST else claim.rivals
                assert all((standing.condition.id, claim.arm, rival) in sure for rival in rivals)
            if claim.kind is Kind.SLOWEST:
                assert all((standing.condition.id, rival, claim.arm) in sure for rival in others)


def test_a_row_leads_with_the_newest_protocol_and_variants_of_its_own_come_last() -> None:
    data = RUNS["arms"]().data("x")
    assert list(map(str, ordered_pairs(data.matrix, data.judgement))) == [
        "h3 against h2", "h3-as-shipped against h3", "h1-six against h1", "h2-bbr against h2",
    ]  # fmt: skip


def test_protocols_that_are_not_compared_are_not_mentioned() -> None:
    matrix = example_matrix(PROFILES[0], arms=(H2, H3), workload=Objects("page", 40, 0, 0, path="/bytes/15000"))
    (said,) = workloads(Golden(matrix, ()).data("x"))
    assert "1 new connection of HTTP/2 and HTTP/3" in said
    assert "HTTP/1.1" not in said
    matrix = example_matrix(PROFILES[0], workload=Objects("page", 40, 0, 0, path="/bytes/15000"))
    assert "6 new connections of HTTP/1.1 and 1 of HTTP/2 and HTTP/3" in workloads(Golden(matrix, ()).data("x"))[0]


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


def said_otherwise(data: RunData) -> list[str]:
    return reversals(data, standings(data))


def test_a_metric_that_reverses_the_total_time_has_a_sentence_with_its_size() -> None:
    slower = {H1: 0.1, H2: 0.1, H3: 0.2}
    (said,) = said_otherwise(measured_as(request_p50_s=slower))
    assert said == (
        "By median time per request, which counts only from when each was sent, HTTP/1.1 and HTTP/2 beat HTTP/3 "
        "under 100 ± 10 ms delay (by 2.00x), where HTTP/3 is ahead by total time."
    )
    assert said_otherwise(measured_as(mean_done_s={H1: 1.0, H2: 1.0, H3: 0.5})) == []


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([(1.0, 4.0)], "by 2.00x"),
        ([(0.25, 1.0)], "by 2.00x"),
        ([(1.0, 4.0), (1.21, 1.21)], "by 2.00x and 1.21x"),
        ([(1.0, 4.0), (1.21, 1.21), (1.5, 1.5)], "by 1.21x to 2.00x"),
        ([(1.32, math.inf)], "by at least 1.32x"),
        ([(1.32, math.inf), (1.2, 1.2)], "by at least 1.32x and 1.20x"),
        ([(1.32, math.inf), (1.2, 1.2), (2.0, 2.0)], "by at least 1.20x to 2.00x"),
    ],
)
def test_leads_have_sizes_also_if_unfinished_trials_leave_a_bound(ends: list[Ends], said: str) -> None:
    sides_of = [Verdict.SLOWER if high <= 1 else Verdict.FASTER for _, high in ends]
    assert sizes_text(finding(*each, verdict=verdict) for each, verdict in zip(ends, sides_of, strict=True)) == said


def test_of_finishing_more_the_size_says_so() -> None:
    won = finding(*OPEN, verdict=Verdict.COMPLETES_MORE)
    assert sizes_text([won, finding(1.2, 1.2, verdict=Verdict.FASTER)]) == "by 1.20x and finishing more"
    assert sizes_text([]) == ""


def test_the_slowest_of_three_has_the_leads_of_both_winners() -> None:
    answer = answer_of(raced({H1: 1.2, H2: 1.0, H3: 1.3}, *PROFILES[:1]))
    said = re.fullmatch(
        r"HTTP/3 is fastest with no impairment \(by (.*)x over HTTP/1.1 and (.*)x over HTTP/2\)\.", answer.headline
    )
    assert said
    assert float(said[1]) == pytest.approx(1.3 / 1.2, rel=0.02)
    assert float(said[2]) == pytest.approx(1.3, rel=0.02)
    answer = answer_of(raced({H1: 1.3, H2: 1.0, H3: 1.3}, *PROFILES[:1]))
    assert without_ratios(answer.headline) == "HTTP/1.1 and HTTP/3 beat HTTP/2 with no impairment (by RATIO)."
    assert re.search(r"\(by \S+x for HTTP/1.1 and \S+x for HTTP/3\)", answer.headline)


def test_a_lead_by_another_metric_in_a_tie_has_a_sentence() -> None:
    even = {
        "total_s": dict.fromkeys(PLAIN, 1.0),
        "request_p50_s": dict.fromkeys(PLAIN, 0.1),
        "mean_done_s": {H1: 0.5, H2: 0.5, H3: 0.46},
    }
    data = measured_as(**even)
    assert answer_of(data).headline == "All are equal within 5 % under 100 ± 10 ms delay."
    assert answer_of(data).open == ()
    (said,) = said_otherwise(data)
    assert said == (
        "By mean completion time, HTTP/3 beats HTTP/1.1 and HTTP/2 under 100 ± 10 ms delay (by 1.09x), "
        "where they tie by total time."
    )
