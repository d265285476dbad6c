"""The first screen says what is settled, the winner first, and nothing that is stronger than the verdicts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import pytest
from rich.console import Console

from headwind.arm import H1, H2, H3, PLAIN, Arm, Overrides, Protocol
from headwind.format import arm_name
from headwind.metric import STOLEN
from headwind.model import Condition, Outcome, SelfCheck
from headwind.observed import Observed
from headwind.report import RunData, render
from headwind.report.answer import headline, headline_sentences, scores, seen, workloads
from headwind.report.formats.terminal import print_summary
from headwind.report.html import charts
from headwind.report.html.charts import DotSeries
from headwind.report.html.panels import panels
from headwind.report.perhaps import noise_floor
from headwind.report.standing import first_in, is_reference, standings
from headwind.report.summary import notices
from headwind.report.trust import believed, trust
from headwind.report.verdicts import Word, lead_text, sides, toward, word_of
from headwind.verdicts.findings import rows_of
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Verdict
from headwind.workloads.h2load import H2load
from impair.profile import Profile
from tests.drawn import Drawn
from tests.fake import PROFILES, example_matrix, invalid, ok, timeout, trials_of
from tests.golden.runs import RUNS, Golden, shaken, took
from tests.pages import parse, section, words


def data_of(name: str) -> RunData:
    return RUNS[name]().data(name)


def raced(speeds: dict[Arm, float], *profiles: Profile, repeat: int = 12) -> RunData:
    """A run in which each protocol is so many times as fast, give or take 1 %."""
    matrix = example_matrix(*profiles, repeat=repeat)
    return Golden(
        matrix, tuple(took(trial, shaken(trial) ** 0.3 / speeds[trial.arm]) for trial in trials_of(matrix))
    ).data("x")


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        (
            (1, 1, 2),
            "HTTP/3 beats HTTP/1.1 and HTTP/2 in both networks (RATIO). HTTP/2 and HTTP/1.1 tie in both networks.",
        ),
        (
            (3, 1, 2),
            (
                "HTTP/1.1 beats HTTP/3 in both networks (RATIO); HTTP/3 beats HTTP/2 in both (RATIO). "
                "HTTP/1.1 beats HTTP/2 in both networks (RATIO)."
            ),
        ),
        (
            (1, 1, 1.052),
            "HTTP/3 against HTTP/1.1 and HTTP/2 is open in both networks. HTTP/2 and HTTP/1.1 tie in both networks.",
        ),
        (
            (1, 1, 1),
            "All tie in both networks.",
        ),
    ],
)
def test_the_headline_names_the_winner_first(speeds: tuple[float, float, float], said: str) -> None:
    told = headline(raced(dict(zip(PLAIN, speeds, strict=True)), *PROFILES[:2]))
    assert without_ratios(told) == said
    assert all(float(ratio) > 1 for ratio in re.findall(r"([\d.]+)x", told))


def test_what_is_settled_nowhere_is_open() -> None:
    assert headline(data_of("published")) == (
        "HTTP/1.1 beats HTTP/3 in 2 of 3 networks: clean, delay (1.27x); "
        "HTTP/2 beats HTTP/3 in 2: clean, delay (1.25x). "
        "Elsewhere: HTTP/1.1 against HTTP/3 open in loss; HTTP/2 against HTTP/3 open in loss. "
        "HTTP/2 and HTTP/1.1 tie in 1 of 3 networks: clean (open in delay and loss)."
    )
    data = raced({H1: 1, H2: 1, H3: 1.05}, PROFILES[0])
    assert headline(data).startswith("HTTP/3 against HTTP/1.1 and HTTP/2 is open in the network.")


def test_who_wins_by_finishing_is_given_no_ratio_of_times() -> None:
    matrix = example_matrix(PROFILES[3], repeat=12)
    results = [timeout(trial) if trial.arm is H1 else took(trial, 20 * shaken(trial)) for trial in trials_of(matrix)]
    by_arms = {(score.first, score.second): score for score in scores(Golden(matrix, tuple(results)).data("x"))}
    assert by_arms[H3, H1].beats == (PROFILES[3].name,)
    assert by_arms[H3, H1].ratios == ()
    assert headline(Golden(matrix, tuple(results)).data("x")).startswith("HTTP/3 beats HTTP/1.1 in the network;")


@pytest.mark.parametrize("name", RUNS)
def test_what_is_said_of_two_arms_makes_all_conditions(name: str) -> None:
    data = data_of(name)
    for score in scores(data):
        names = [*score.beats, *score.loses, *score.ties, *score.open]
        assert sorted(names) == sorted(map(data.matrix.name_of, data.matrix.conditions))
        assert len(score.beats) >= len(score.loses)
        assert all(ratio >= 1 for ratio in score.ratios)


def test_the_newest_protocol_against_each_of_its_rivals_is_always_told() -> None:
    data = data_of("arms")
    newest, first = data.matrix.newest, headline_sentences(data)[0]
    rivals = {arm for pair in data.judgement.pairs for arm in (pair.new, pair.base) if newest in (pair.new, pair.base)}
    assert newest is H3
    assert len(rivals) == 3
    assert all(arm_name(arm) in first for arm in rivals)
    assert headline_sentences(data)[-1] == (
        "Not compared: HTTP/3 with HTTP/1.1, HTTP/1.1 (six) and HTTP/2 (bbr); "
        "HTTP/3 (as-shipped) with any other protocol."
    )
    for standing in standings(data):
        told = "; ".join((standing.claim, *standing.notes))
        assert standing.claim == "all tie" or all(arm_name(arm) in told for arm in rivals - {newest}), told


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("small", "Nothing is settled: no network has the 6 blocks that a verdict needs."),
        ("one-trial", "There is one protocol, so nothing to compare."),
        ("killed-at-once", "Nothing has run, so nothing is known."),
    ],
)
def test_without_a_verdict_the_headline_says_why(name: str, said: str) -> None:
    assert headline(data_of(name)) == said


NAME = r"HTTP/[\d.]*\d(?: \([\w-]+\))?"  # of an arm


def beaten_in(data: RunData) -> dict[tuple[str, str], set[str]]:
    """In which conditions one arm beats another: a clear verdict by the primary metric that survives among all."""
    found: dict[tuple[str, str], set[str]] = {}
    for line in data.judgement.compared:
        if line.primary.survives and line.primary.verdict.is_clear:
            winner, loser = map(arm_name, sides(line.primary))
            found.setdefault((winner, loser), set()).add(data.matrix.name_of(line.condition))
    return found


def tied_in(data: RunData) -> dict[frozenset[str], set[str]]:
    """In which conditions two arms tie, and that stands among all."""
    found: dict[frozenset[str], set[str]] = {}
    for line in data.judgement.compared:
        if line.primary.survives and line.primary.verdict is Verdict.TIE:
            pair = frozenset(map(arm_name, (line.pair.new, line.pair.base)))
            found.setdefault(pair, set()).add(data.matrix.name_of(line.condition))
    return found


def holds(told: str | None, names: set[str], total: int) -> bool:
    """Whether names, or a number of them, are those."""
    if not told or told == "none":
        return not names
    number = {"both": 2, "all": total, "the": 1}.get(told.split()[0])
    if number or told.split()[0].isdigit():
        return len(names) == (number or int(told.split()[0]))
    return set(re.split(", | and ", told)) == names


WHERE = r"((?:both|all|the|\d+)(?: \d+| of \d+)?(?: networks?| conditions?)?)(?:: ([^()]+?))?(?: \(([^()]*)\))?"
ARMS = rf"((?:{NAME}(?:, | and )?)+)"


def told_in_the_headline(data: RunData) -> list[str]:
    return [clause for text in headline_sentences(data) for clause in text.removesuffix(".").split("; ")]


@pytest.mark.parametrize("name", RUNS)
def test_no_sentence_is_stronger_than_the_verdicts(name: str) -> None:
    """Every `A beats B` and `A and B tie` of the first screen is a settled verdict, in as many and those conditions."""
    data = data_of(name)
    beats, ties, total = beaten_in(data), tied_in(data), len(data.matrix.conditions)
    for clause in told_in_the_headline(data):
        if found := re.match(rf"({NAME}) beats (.+)", clause):
            for losers, count, names, ratios in re.findall(rf"{ARMS} in {WHERE}(?=,? and {NAME}|$)", found[2]):
                for loser in re.findall(NAME, losers):
                    where = beats[found[1], loser]
                    assert holds(count, where, total)
                    assert not names or holds(names, where, total)
                    assert set(re.findall(r"[\d.]+x", ratios)) <= ratios_of(data, found[1])
        elif found := re.match(rf"({NAME}) and ({NAME}) tie in {WHERE}$", clause):
            assert holds(found[3], ties[frozenset((found[1], found[2]))], total)
            assert not found[4] or holds(found[4], ties[frozenset((found[1], found[2]))], total)
    for standing in standings(data):
        for text in (standing.claim, *standing.notes):
            for winner, loser in re.findall(rf"({NAME}) beats ({NAME})", text):
                assert data.matrix.name_of(standing.condition) in beats[winner, loser]


def ratios_of(data: RunData, winner: str) -> set[str]:
    """The ratios by which an arm leads, as the rows tell them."""
    leads = (line.primary for line in data.judgement.compared if arm_name(sides(line.primary)[0]) == winner)
    return {lead_text(finding).split()[0] for finding in leads}


@pytest.mark.parametrize("name", RUNS)
def test_where_a_winner_is_beaten_or_ties_is_what_the_verdicts_say(name: str) -> None:
    says_where_the_winner_does_not_win(data_of(name))


ELSEWHERE = (
    rf"(?:Elsewhere: )?(?:({NAME}) )?(?:against {ARMS} )?"
    r"(?=beaten|tied|open)(?:beaten in (.+?)(?: \(([\d.x to]+)\))?)?(?:, )?(?:tied in (.+?))?(?:, )?(?:open in (.+))?"
)


def says_where_the_winner_does_not_win(data: RunData) -> int:
    """How many such clauses there are."""
    beats, ties, total = beaten_in(data), tied_in(data), len(data.matrix.conditions)
    winner, rivals, clauses = "", "", 0
    for clause in told_in_the_headline(data):
        if found := re.match(rf"({NAME}) beats (.+)", clause):
            winner, rivals = found[1], found[2]
        if not (found := re.fullmatch(ELSEWHERE, clause)):
            continue
        clauses += 1
        winner = found[1] or winner
        for rival in dict.fromkeys(re.findall(NAME, found[2] or rivals)):
            lost, tied = beats.get((rival, winner), set()), ties.get(frozenset((rival, winner)), set())
            assert holds(found[3], lost, total)
            assert set(re.findall(r"[\d.]+x", found[4] or "")) <= {
                ratio for each in re.findall(NAME, found[2] or rivals) for ratio in ratios_of(data, each)
            }
            assert holds(found[5], tied, total)
            open_ = set(map(data.matrix.name_of, data.matrix.conditions)) - lost - tied - beats[winner, rival]
            assert holds(found[6], open_, total)
    return clauses


def over_eight(beats: dict[Arm, dict[int, float]]) -> RunData:
    """Eight networks; in some an arm is so many times as fast as the others, the rest are too noisy to tell."""
    profiles = [*PROFILES, *(replace(profile, name=f"{profile.name}-b") for profile in PROFILES[:3])]
    matrix, known = example_matrix(*profiles, repeat=12), {number for found in beats.values() for number in found}
    place = {profile.name: number for number, profile in enumerate(profiles)}
    results = []
    for trial in trials_of(matrix):
        number = place[trial.profile.name]
        speed = beats.get(trial.arm, {}).get(number, 1.0)
        results.append(took(trial, shaken(trial) ** (0.3 if number in known else 30) / speed))
    return Golden(matrix, tuple(results)).data("x")


def without_ratios(text: str) -> str:
    return re.sub(r"\d\.\d\dx( to \d\.\d\dx)?", "RATIO", text)


def test_few_networks_are_named_and_it_is_said_where_the_winner_is_beaten_and_by_how_much() -> None:
    first, second, *_ = map(without_ratios, headline_sentences(over_eight({H3: {2: 2.0, 4: 3.0, 5: 2.5}})))
    assert first == "HTTP/3 beats HTTP/1.1 and HTTP/2 in 3 of 8 networks: loss, loss-duplicate, clean-b (RATIO)."
    assert second == "Elsewhere: open in 5."
    data = over_eight({H3: {2: 2.0, 4: 3.0, 0: 0.5}})
    first, second, *_ = map(without_ratios, headline_sentences(data))
    assert first == "HTTP/3 beats HTTP/1.1 and HTTP/2 in 2 of 8 networks: loss, loss-duplicate (RATIO)."
    assert second == "Elsewhere: beaten in clean (RATIO), open in 5."
    assert says_where_the_winner_does_not_win(data) == 1
    lost = sorted({lead_text(line.primary).split()[0] for line in data.judgement.compared
                   if line.condition.profile.name == "clean" and sides(line.primary)[1] is H3})  # fmt: skip
    assert f"beaten in clean ({' to '.join(lost)})" in headline_sentences(data)[1]
    data = over_eight({H3: dict.fromkeys(range(6), 2.0)})
    assert without_ratios(headline_sentences(data)[0]) == "HTTP/3 beats HTTP/1.1 and HTTP/2 in 6 of 8 networks (RATIO)."


def test_ties_and_losses_against_each_rival_are_told_apart() -> None:
    data = over_eight({H3: {0: 0.8, 1: 1.0, 2: 2.0, 5: 2.0, 6: 2.0}, H1: {3: 4.0}})
    assert says_where_the_winner_does_not_win(data) >= 2
    assert without_ratios(headline_sentences(data)[1]) == (
        "Elsewhere: against HTTP/1.1 beaten in clean and loss-corrupt (RATIO), tied in delay, "
        "open in loss-duplicate and loss-b; "
        "against HTTP/2 beaten in clean (RATIO), tied in delay and loss-corrupt, open in loss-duplicate and loss-b."
    )


def test_in_a_single_network_each_rival_has_its_own_ratio() -> None:
    data = over_eight({H3: {2: 2.0}, H2: {2: 1.25}})
    first, *_ = headline_sentences(data)
    ratios = {
        arm_name(sides(line.primary)[1]): lead_text(line.primary).split()[0]
        for line in data.judgement.compared
        if line.condition.profile.name == "loss" and sides(line.primary)[0] is H3
    }
    assert first == (
        "HTTP/3 beats HTTP/1.1 and HTTP/2 in 1 of 8 networks: loss "
        f"(HTTP/1.1 {ratios['HTTP/1.1']}, HTTP/2 {ratios['HTTP/2']})."
    )


def test_variants_of_the_winner_come_last() -> None:
    data = data_of("arms")
    assert re.fullmatch(
        r"HTTP/3 beats HTTP/2 in both networks \(1\.\d\dx\) and HTTP/3 \(as-shipped\) in both "
        r"\(3\.\d\dx to 3\.\d\dx\)\.",
        headline_sentences(data)[0],
    )
    for standing in standings(data):
        assert re.fullmatch(r"HTTP/3 beats HTTP/2 1\S+ \[.+\] and HTTP/3 \(as-shipped\) 3\S+ \[.+\]", standing.claim)


def test_a_ratio_is_that_of_the_winner() -> None:
    data = raced({H1: 2, H2: 1, H3: 1}, PROFILES[0])
    (standing,) = standings(data)
    assert (standing.word, standing.leader) == (Word.BEATS, H1)
    ratio = r"(1\.9\d|2\.0\d)x \[(1\.9\d|2\.0\d), (1\.9\d|2\.0\d)\]"
    assert re.fullmatch(rf"HTTP/1.1 beats HTTP/3 {ratio} and HTTP/2 {ratio}", standing.claim)
    assert standing.notes == ("HTTP/3 and HTTP/2 tie",)
    assert standing.seen == "HTTP/1.1 fastest in 12 of 12 blocks"
    assert standing.blocks_text == "12 blocks"


def test_of_two_that_beat_the_same_arm_the_one_with_the_larger_lead_comes_first() -> None:
    for faster, slower in ((H1, H2), (H2, H1)):
        (standing,) = standings(raced({faster: 1.34, slower: 1.31, H3: 1}, PROFILES[0]))
        assert standing.leader is faster
        assert standing.claim.startswith(f"{arm_name(faster)} beats HTTP/3 1.3")
        assert any(note.startswith(f"{arm_name(slower)} beats HTTP/3 1.3") for note in standing.notes)


def test_the_interval_of_the_other_side_is_the_inverse() -> None:
    interval = Interval(-0.2, -0.1, -0.15, 9)
    estimate, low, high = toward(interval, -1).ratios
    assert (1 / (estimate or 0), 1 / high, 1 / low) == pytest.approx(interval.ratios)
    assert toward(interval, 1) == interval


def test_who_completes_more_often_beats_and_says_how_often_both_finished() -> None:
    matrix = example_matrix(PROFILES[3], repeat=12)
    results = [timeout(trial) if trial.arm is H1 else took(trial, 20 * shaken(trial)) for trial in trials_of(matrix)]
    (standing,) = standings(Golden(matrix, tuple(results)).data("x"))
    finding = next(line.primary for line in Golden(matrix, tuple(results)).data("x").judgement.compared)
    assert finding.verdict is Verdict.COMPLETES_MORE
    assert lead_text(finding) == "finished 12 against 0 of 12"
    assert standing.claim.startswith("HTTP/3 beats HTTP/1.1 (finished 12 against 0 of 12)")


def test_below_the_fewest_blocks_there_is_a_count_and_no_interval() -> None:
    for standing in standings(data_of("small")):
        assert (standing.word, standing.claim, standing.blocks_text) == (Word.FEW, "too few blocks", "3 of 6 blocks")
        assert re.fullmatch(r"(HTTP/\S+|nobody is) fastest in (more than )?[123] of 3 blocks|", standing.seen)
    page = words(section(parse(render(data_of("small"), 0.0)), "answer"))
    assert "\N{INFINITY}" not in page
    assert "[0" not in page


def test_who_was_first_is_counted_over_blocks_in_which_all_gave_data() -> None:
    matrix = example_matrix(PROFILES[3], repeat=5)
    times = {0: (1, 2, 3), 1: (2, 1, 3), 2: (60, 2, 60), 3: (60, 60, 60), 4: (2, 2, 3)}
    results = [
        timeout(trial) if times[trial.block.index][PLAIN.index(trial.arm)] == 60
        else ok(trial, times[trial.block.index][PLAIN.index(trial.arm)])
        for trial in trials_of(matrix)
    ]  # fmt: skip
    (rows,) = rows_of(results).values()
    firsts, blocks = first_in(rows, matrix.arms)
    assert (firsts, blocks) == ({H1: 1, H2: 2}, 5), "equal times, or none, make nobody first"
    without = [replace(each, outcome=Outcome.INVALID) if each.trial.id.endswith("#0/h2") else each for each in results]
    assert first_in(next(iter(rows_of(without).values())), matrix.arms) == ({H2: 2}, 4)


@pytest.mark.parametrize("name", RUNS)
def test_the_fastest_is_named_only_where_claim_and_medians_name_no_other(name: str) -> None:
    data = data_of(name)
    for standing in standings(data):
        firsts, _ = first_in(standing.rows, data.matrix.arms)
        for who, count in re.findall(rf"({NAME}|nobody is) fastest in (?:more than )?(\d+) of", standing.seen):
            assert int(count) == max(firsts.values())
            if who == "nobody is":
                continue
            assert who in {arm_name(arm) for arm, times in firsts.items() if times == int(count)}
            assert standing.lowest is None or who == arm_name(standing.lowest)
            if standing.word in (Word.BEATS, Word.TIE, Word.PERHAPS):
                assert standing.leader is not None
                assert who == arm_name(standing.leader)


def test_two_that_are_as_often_the_fastest_are_not_named() -> None:
    matrix = example_matrix(PROFILES[3], repeat=2)
    results = [ok(trial, 1 if trial.arm is (H1, H3)[trial.block.index] else 2) for trial in trials_of(matrix)]
    (standing,) = standings(Golden(matrix, tuple(results)).data("x"))
    assert standing.seen == "nobody is fastest in more than 1 of 2 blocks"


def test_stopped_trials_stand_beside_a_tie_and_say_whose_they_are() -> None:
    matrix = example_matrix(PROFILES[3], repeat=60)
    results = [
        timeout(trial)
        if (trial.block.index, trial.arm) in ((0, H1), (1, H1), (2, H2))
        else took(trial, shaken(trial) ** 0.1)
        for trial in trials_of(matrix)
    ]
    data = Golden(matrix, tuple(results)).data("x")
    (standing,) = standings(data)
    assert (standing.claim, standing.stopped) == (
        "all tie",
        "stopped at the timeout: HTTP/1.1 2, HTTP/2 1 of 60",
    )
    assert standing.stopped in words(section(parse(render(data, 0.0)), "answer"))
    assert standing.stopped in " ".join(" ".join(printed(data, 100)).split())
    assert "stopped at the timeout: HTTP/1.1 2, HTTP/2 1, HTTP/3 0" in map(str, trust(data))


def test_who_is_ahead_and_stalled_is_named() -> None:
    matrix = example_matrix(PROFILES[3], repeat=60)
    results = [
        timeout(trial) if (trial.block.index, trial.arm) == (0, H3)
        else took(trial, shaken(trial) ** 0.3 / (2 if trial.arm is H3 else 1))
        for trial in trials_of(matrix)
    ]  # fmt: skip
    data = Golden(matrix, tuple(results)).data("x")
    assert standings(data)[0].claim.endswith("], HTTP/3 unfinished in 1 of 60")
    assert standings(data)[0].claim.count("unfinished") == 1
    found = [lead_text(line.primary) for line in data.judgement.compared if sides(line.primary)[0] is H3]
    assert [text.endswith("], HTTP/3 unfinished in 1 of 60") for text in found] == [True, True]


def test_networks_in_which_all_tie_for_sure_are_not_among_what_is_not_proven() -> None:
    data = over_eight({H3: {0: 2.0, 1: 1.0}})
    tied = {standing.condition.profile.name for standing in standings(data) if standing.claim == "all tie"}
    assert tied == {"delay"}
    assert not re.search(r"\bdelay\b(?!-)", seen(data, standings(data)))
    only_ties = raced(dict.fromkeys(PLAIN, 1.0), *PROFILES[:2])
    assert seen(only_ties, standings(only_ties)) == ""


def test_lowest_medians_are_called_seen_and_not_proven() -> None:
    data = data_of("small")
    said = seen(data, standings(data))
    assert said.startswith("Seen, not proven: HTTP/3 has the lowest median in ")
    leads = {each.condition.profile.name: each.lowest for each in standings(data)}
    assert f"in {sum(arm is H3 for arm in leads.values())} of 5 networks" in said


@pytest.mark.parametrize("name", ["checked", "arms", "sweep", "published"])
def test_who_perhaps_beats_whom_is_counted_and_called_not_proven(name: str) -> None:
    data = data_of(name)
    rule = data.judgement.rule
    perhaps = Counter(
        tuple(map(arm_name, sides(line.primary)))
        for line in data.judgement.compared
        if word_of(line.primary, rule) is Word.PERHAPS and line.primary.verdict.favours
    )
    said = seen(data, standings(data))
    clauses = re.findall(rf"({NAME}) perhaps beats ([^;.]+(?:\.[\d][^;.]*)*)", said)
    assert bool(clauses) == bool(perhaps)
    for winner, rest in clauses:
        for loser, count in re.findall(rf"({NAME}) in (\d+)", rest):
            assert perhaps[winner, loser] == int(count)
    assert not said or said.startswith("Seen, not proven: ")


def test_a_median_that_nobody_knows_leads_nowhere() -> None:
    (all_failed, *_) = standings(data_of("all-failed"))
    assert all_failed.lowest is None
    (half,) = standings(data_of("timeouts-half"))
    assert half.lowest is None, "three bounds are equal"


def test_the_reference_comes_first_and_then_the_faster_networks() -> None:
    order = [each.condition.profile.name for each in standings(data_of("small"))]
    assert order == ["clean", "delay", "loss", "loss-duplicate", "loss-corrupt"]
    assert is_reference(standings(data_of("small"))[0].condition)


def test_the_workload_is_told_in_plain_words() -> None:
    assert workloads(data_of("small")) == [
        "By total time: 1,000 requests for 612 bytes over 100 new connections; not a page load."
    ]


def test_an_arm_that_fetches_something_larger_does_not_change_what_the_workload_is() -> None:
    large = Arm("h2-large", Protocol.H2, overrides=Overrides((("path", "/64kb"),)))
    matrix = example_matrix(PROFILES[0], repeat=2, arms=(H1, large))
    results = [ok(trial, 1.0) for trial in trials_of(matrix)]
    larger = tuple(
        replace(each, metrics={**each.metrics, "bytes_body": 65536.0 * 1000}) if each.trial.arm == large else each
        for each in results
    )
    (said,) = workloads(Golden(matrix, larger).data("x"))
    assert "1,000 requests for 612 bytes" in said


def test_workloads_that_differ_only_in_how_long_the_server_waits_are_one_sentence() -> None:
    waiting = [H2load(f"{ms} ms", 100, 6, 10, server_delay_s=ms / 1000) for ms in (0, 10, 40)]
    other = H2load("other", 50, 6, 10)
    matrix = example_matrix(PROFILES[0])
    for more, said in (
        ([], ""),
        ([other], "By total time: other, 50 requests for / over 6 new connections; not a page load."),
    ):
        conditions = tuple(Condition(PROFILES[0], workload) for workload in (*waiting, *more))
        assert workloads(Golden(replace(matrix, conditions=conditions), ()).data("x")) == [
            (
                "By total time: 100 requests for / over 6 new connections (0 ms, 10 ms and 40 ms); not a page load. "
                "The server waits 0 s to 40 ms with each answer."
            ),
            *([said] if said else []),
        ]


def test_what_to_trust_names_what_went_wrong_and_with_whom() -> None:
    assert [str(item) for item in trust(data_of("mixed"))] == [
        "\N{WARNING SIGN} 1 trial wrong-protocol (HTTP/2)",
        "\N{WARNING SIGN} 1 trial invalid, in no figure (HTTP/1.1)",
        "\N{WARNING SIGN} 2 trials with a warning",
        "failed: HTTP/1.1 0, HTTP/2 1, HTTP/3 0",
        "stopped at the timeout: HTTP/1.1 2, HTTP/2 1, HTTP/3 0",
        "\N{CHECK MARK} 678 network checks passed",
    ]
    assert believed(trust(data_of("mixed"))) == "with care"
    assert believed(trust(data_of("checked"))) == "no"
    assert believed(trust(data_of("small"))) == "yes", "what a protocol does is no reason to doubt the lab"
    assert believed(trust(data_of("timeouts-half"))) == "yes"
    checked = [item.text for item in trust(data_of("checked"))]
    assert "self-checks FAILED in delay" in "; ".join(checked)
    assert noise_floor(data_of("checked").judgement.checks, data_of("checked").matrix.conditions[0]) is not None


@pytest.mark.parametrize(("lost", "told"), [({H1: 2, H3: 2}, False), ({H1: 1, H3: 2}, False), ({H3: 10}, True)])
def test_an_arm_whose_attempts_were_left_unproven_far_more_often_is_named(lost: dict[Arm, int], *, told: bool) -> None:
    matrix = example_matrix(PROFILES[2], repeat=30)
    good = [ok(trial, 1.0) for trial in trials_of(matrix)]
    first = [invalid(result.trial, 1.0) for arm, count in lost.items()
             for result in [each for each in good if each.trial.arm == arm][:count]]  # fmt: skip
    lost_ids = {result.trial.id for result in first}
    later = [replace(result, attempt=1) if result.trial.id in lost_ids else result for result in good]
    data = Golden(matrix, (*first, *later)).data("x")
    said = [str(item) for item in trust(data) if "not proven far more often" in item.text]
    assert bool(said) == told
    if told:
        assert "HTTP/3: HTTP/3 10 of 40, " in said[0]
    (notice,) = (each for each in notices(data) if "not proven at an earlier attempt" in each.text)
    assert len(notice.trials) == sum(lost.values())
    for arm, count in lost.items():
        assert f"{arm_name(arm)} {count} of {30 + count}" in notice.text


@pytest.mark.parametrize(("stolen", "told"), [(0.18, True), (0.01, False)])
def test_a_machine_whose_own_host_kept_processors_from_it_is_told(stolen: float, *, told: bool) -> None:
    matrix = example_matrix(PROFILES[0], repeat=9)
    results = [took(trial, 1.0) for trial in trials_of(matrix)]
    robbed = tuple(replace(each, metrics={**each.metrics, STOLEN.key: stolen}) for each in results)
    sentence = "\N{WARNING SIGN} the machine's own host kept 18% of its processors from it (steal)"
    assert (sentence in map(str, trust(Golden(matrix, robbed).data("x")))) == told


def test_warnings_about_comparisons_are_counted_in_what_to_trust() -> None:
    matrix = example_matrix(PROFILES[0], repeat=40)
    results = [
        took(trial, shaken(trial) ** 0.3 * (2 if trial.arm is H3 and trial.block.index >= 20 else 1))
        for trial in trials_of(matrix)
    ]
    told = list(map(str, trust(Golden(matrix, tuple(results)).data("x"))))
    assert "\N{WARNING SIGN} 2 comparisons with a warning: ratio drift" in told, "those of HTTP/3, which became slower"


def test_the_runs_name_and_date_stand_beside_the_title() -> None:
    (top,) = parse(render(data_of("small"), 0.0)).iter("header")
    title = "HTTP/1.1, HTTP/2 and HTTP/3 on nginx under bad networks"
    assert words(top).startswith(f"{title} \N{MIDDLE DOT} small, 2026-11-21 ")


def test_a_failed_self_check_is_loud_on_the_first_screen() -> None:
    answer = section(parse(render(data_of("checked"), 0.0)), "answer")
    alerts = [words(item) for item in answer.iter("p") if item.get("role") == "alert"]
    assert len(alerts) == 1
    assert "delays that are 10 % longer do not even slow it by 2 %" in alerts[0]


def test_a_lead_below_the_noise_says_between_whom_it_is() -> None:
    matrix = example_matrix(PROFILES[0], repeat=12, arms=(H2, H3), selfcheck=SelfCheck(H2, again=("clean",)))
    results = [
        took(trial, shaken(trial) ** (10 if trial.arm.is_twin else 0.3) / (1.052 if trial.arm is H3 else 1))
        for trial in trials_of(matrix)
    ]
    data = Golden(matrix, tuple(results)).data("x")
    (standing,) = standings(data)
    floor = noise_floor(data.judgement.checks, matrix.conditions[0])
    assert floor is not None
    (note,) = (note for note in standing.notes if "noise floor" in note)
    assert note.startswith("HTTP/3 against HTTP/2: below the noise floor, ")
    assert any("%, HTTP/2 against itself)" in str(item) for item in trust(data))


def picture(*series: tuple[str, list[Observed]], timeout_s: float | None = 60.0) -> Drawn:
    drawn = [DotSeries(arm, arm, marks) for arm, marks in series]
    axis = charts.strip_axis([mark for _, marks in series for mark in marks], "total_s", timeout_s)
    medians = {arm: sorted(marks, key=lambda mark: mark.known)[len(marks) // 2] for arm, marks in series}
    return Drawn(charts.strip("x", drawn, axis, medians=medians, title="t"))


def exact(*seconds: float) -> list[Observed]:
    return [Observed.finished(value) for value in seconds]


def test_every_trial_is_where_its_time_is_and_a_stopped_one_at_the_timeout() -> None:
    axis = charts.strip_axis([*exact(1, 2, 5), Observed.unfinished(60.0)], "total_s", 60.0)
    drawn = picture(("h1", exact(1, 2, 5)), ("h2", [*exact(1, 2), Observed.unfinished(60.0)]))
    places = sorted(x for x, _ in drawn.marks("h1", 520))
    assert places == pytest.approx(sorted(axis.x(value) for value in (1, 2, 2, 2, 5)), abs=0.26), "the median thrice"
    (stopped,) = drawn.paths("h2", "onward")
    assert min(x for x, _ in stopped) < axis.x(60.0) < max(x for x, _ in stopped)
    (line,) = drawn.paths("timeout")
    assert line[0][0] == pytest.approx(axis.x(60.0), abs=0.06)


def test_without_a_stopped_trial_the_axis_does_not_reach_to_the_timeout() -> None:
    assert charts.strip_axis(exact(1, 2, 5), "total_s", 60.0).scale.high < 6
    assert picture(("h1", exact(1, 2, 5))).paths("timeout") == []


@pytest.mark.parametrize(("slowest_s", "on_axis"), [(50.0, True), (12.0, True), (11.9, False), (0.1, False)])
def test_a_timeout_far_from_all_trials_stands_beyond_the_axis_which_follows_the_trials(
    slowest_s: float, on_axis: bool
) -> None:
    stopped = Observed.unfinished(60.0)
    axis = charts.strip_axis([*exact(0.05, slowest_s), stopped, Observed.unfinished(30.0)], "total_s", 60.0)
    assert axis.scale.holds(60.0) is on_axis
    assert axis.x(slowest_s) < axis.x(60.0) < 520
    assert on_axis or axis.x(slowest_s) <= axis.x(30.0) < axis.x(60.0), "a bound between the two"
    labels = Drawn(charts.strip_labels("x", axis)).texts
    assert ("timeout 60 s" if on_axis else "… timeout 60 s") in labels


def test_the_timeout_is_drawn_only_where_a_trial_was_stopped() -> None:
    axis = charts.strip_axis([*exact(1, 2), Observed.unfinished(60.0)], "total_s", 60.0)
    rows = {"stopped": [*exact(1), Observed.unfinished(60.0)], "finished": exact(1, 2)}
    lines = {
        name: Drawn(charts.strip("x", [DotSeries("h1", "h1", marks)], axis, medians={}, title="t")).paths("timeout")
        for name, marks in rows.items()
    }
    assert lines["finished"] == []
    (((x, _), _),) = lines["stopped"]
    assert x == pytest.approx(axis.x(60.0), abs=0.06)


def test_a_trial_without_a_time_is_a_cross_at_the_right_end() -> None:
    drawn = picture(("h1", [*exact(1, 2), Observed.unfinished()]))
    crosses = drawn.paths("h1", "failed")
    assert len(crosses) >= 1
    assert min(x for corners in crosses for x, _ in corners) > 500


def test_labels_of_the_axis_do_not_meet() -> None:
    axis = charts.strip_axis([*exact(0.2, 50), Observed.unfinished(60.0)], "total_s", 60.0)
    drawn = Drawn(charts.strip_labels("x", axis))
    boxes = sorted((left, right) for _, left, _, right, _ in drawn.boxes())
    assert "timeout 60 s" in drawn.texts
    assert all(one[1] <= other[0] for one, other in pairwise(boxes))
    assert boxes[0][0] >= 0


# the comparisons, and the terminal


def test_a_comparison_names_the_winner_first_and_its_interval_lies_right_of_one() -> None:
    data = raced({H1: 2, H2: 1, H3: 1}, PROFILES[0])
    total, *others = panels(data)
    assert (total.metric.key, total.judged) == ("total_s", True)
    assert [item.judged for item in others] == [True, True, False]
    rows = {row.claim: row for row in total.groups[0].rows}
    assert set(rows) == {"HTTP/1.1 beats HTTP/3", "HTTP/3 and HTTP/2 tie", "HTTP/1.1 beats HTTP/2"}
    row = rows["HTTP/1.1 beats HTTP/3"]
    assert (row.look, row.blocks) == ("settled arm h1", "12 blocks")
    assert re.fullmatch(r"(1\.9\d|2\.0\d)x \[(1\.9\d|2\.0\d), (1\.9\d|2\.0\d)\]", row.ratio)
    drawn = Drawn(row.picture)
    ((one, _),) = [(path[0][0], path[-1][0]) for path in Drawn(total.axis).paths("one")]
    assert drawn.marks("h1", 320)[0][0] > one


def test_below_the_fewest_blocks_no_interval_is_drawn() -> None:
    for panel in panels(data_of("small")):
        for group in panel.groups:
            assert all(row.picture == "" and "[" not in row.ratio for row in group.rows)
    (total, *_) = panels(data_of("small"))
    row = total.groups[0].rows[0]
    assert row.blocks == "3 of 6 blocks"
    assert re.fullmatch(r"h\d first in [123](, h\d first in [12])?", row.ratio)


@pytest.mark.parametrize("name", RUNS)
def test_ratios_are_of_the_one_who_is_ahead(name: str) -> None:
    for panel in panels(data_of(name)):
        for group in panel.groups:
            for row in group.rows:
                for ratio in re.findall(r"^(\d+\.\d+)x", row.ratio):
                    assert float(ratio) >= 1


def printed(data: RunData, width: int, *, full: bool = False) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    print_summary(data, console, full=full)
    return console.export_text().splitlines()


def test_the_terminal_says_the_answer_in_thirty_lines_of_a_hundred_columns() -> None:
    data = raced(
        {H1: 1, H2: 1, H3: 2}, *PROFILES, *(replace(profile, name=f"{profile.name}-b") for profile in PROFILES[:3])
    )
    lines = printed(data, 140)
    assert len(data.matrix.conditions) == 8
    assert len(lines) < 30
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("HTTP/3 beats HTTP/1.1 and HTTP/2 in all 8 networks (")
    assert len(printed(data, 140, full=True)) > 2 * len(lines)


def test_a_narrow_terminal_loses_no_word() -> None:
    data = raced({H1: 1, H2: 1, H3: 2}, *PROFILES[:2])
    wide, narrow = (" ".join(" ".join(printed(data, width)).split()) for width in (140, 60))
    assert Counter(re.findall(r"[\w./]+", wide)) == Counter(re.findall(r"[\w./]+", narrow))
