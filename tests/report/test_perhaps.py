"""What is only perhaps so says why, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from headwind.arm import H1, H2, H3, Arm
from headwind.model import Matrix
from headwind.report import RunData, render
from headwind.report.perhaps import why_perhaps
from headwind.report.standing import standings
from headwind.report.verdicts import Word, word_of
from headwind.verdicts.assumptions import Caveat, Concern
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.pending import blocks_to_stand
from tests.fake import PROFILES, example_matrix, trials_of
from tests.golden.runs import RUNS, Golden, shaken, took
from tests.pages import parse, section, words

LACKING = re.compile(
    r"perhaps: clear by itself, but not yet among all (\d+) comparisons; about (\d+) more blocks? may do"
)


def raced(matrix: Matrix, speeds: dict[Arm, float], spread: float = 0.3) -> RunData:
    return Golden(
        matrix, tuple(took(trial, shaken(trial) ** spread / speeds[trial.arm]) for trial in trials_of(matrix))
    ).data("x")


def findings(judgement: Judgement) -> list[Finding]:
    return [finding for line in judgement.compared for finding in line.findings.values()]


def one_of_many(repeat: int) -> RunData:
    """HTTP/3 is ahead in one network; in the others all is too noisy to tell, and all are compared."""
    matrix = example_matrix(*PROFILES, repeat=repeat)
    results = (
        took(trial, shaken(trial) / (1.2 if trial.arm is H3 else 1.0) if trial.profile is PROFILES[0]
             else shaken(trial) ** 30)
        for trial in trials_of(matrix)
    )  # fmt: skip
    return Golden(matrix, tuple(results)).data("x")


def test_a_lead_in_every_block_that_is_only_perhaps_so_says_how_many_more_it_needs() -> None:
    data = one_of_many(9)
    lines = [line for line in data.judgement.compared if line.condition.profile is PROFILES[0]]
    first = next(each for each in standings(data) if each.condition.profile is PROFILES[0])
    assert (first.word, first.seen) == (Word.PERHAPS, "HTTP/3 fastest in 9 of 9 blocks")
    (note,) = (note for note in first.notes if note.startswith("perhaps: "))
    found = LACKING.fullmatch(note)
    assert found
    assert int(found[1]) == len(findings(data.judgement)) == 45
    assert note in words(section(parse(render(data, 0.0)), "answer"))
    more = blocks_to_stand(findings(data.judgement))
    mine = [line.primary for line in lines if word_of(line.primary, data.judgement.rule) is Word.PERHAPS]
    assert int(found[2]) == max(more[finding.key] for finding in mine) > 0
    later = next(each for each in standings(one_of_many(9 + 2 * int(found[2]))) if each.condition == first.condition)
    assert later.word is Word.BEATS
    assert not [note for note in later.notes if "not yet among all" in note and "HTTP/3" in note]


@pytest.mark.parametrize("name", RUNS)
def test_whatever_is_perhaps_so_says_why_and_nothing_else_does(name: str) -> None:
    data = RUNS[name]().data(name)
    rule = data.judgement.rule
    perhaps = {line.condition.id for line in data.judgement.compared if word_of(line.primary, rule) is Word.PERHAPS}
    for standing in standings(data):
        said = [note for note in standing.notes if re.search("not yet among all|may be less|the limit|requested", note)]
        assert bool(said) is (standing.condition.id in perhaps)


def test_a_lead_that_may_be_slight_says_so() -> None:
    (standing,) = standings(raced(example_matrix(PROFILES[0], repeat=12), {H1: 1, H2: 1, H3: 1.052}))
    assert any(note.startswith("HTTP/3 perhaps beats HTTP/1.1") for note in standing.notes)
    assert "perhaps: the lead may be less than 5 %" in standing.notes


def doubted(line: Line, *concerns: Concern) -> Line:
    """The same comparison, with such warnings, which take it out of what counts."""
    told = tuple(Caveat(concern, "so") for concern in concerns)
    return replace(
        line, findings={metric: replace(each, survives=False, caveats=told) for metric, each in line.findings.items()}
    )


def said(data: RunData, lines: Sequence[Line]) -> list[str]:
    others = [line for line in data.judgement.compared if line.condition != lines[0].condition]
    return list(why_perhaps(replace(data.judgement, lines=(*lines, *others)), lines))


def test_another_network_and_busy_processors_are_reasons_and_names_stand_where_there_are_several() -> None:
    data = raced(example_matrix(PROFILES[0], repeat=12), {H1: 1, H2: 2, H3: 4})
    first, second, third = data.judgement.compared
    assert said(data, [first, second, third]) == []
    assert said(data, [doubted(first, Concern.NETWORK)]) == ["perhaps: the network was not the requested one"]
    assert said(data, [doubted(first, Concern.PROCESSORS)]) == ["perhaps: the machine's processors were the limit"]
    assert said(data, [doubted(first, Concern.NETWORK), doubted(second, Concern.PROCESSORS), third]) == [
        "HTTP/3 against HTTP/1.1: the network was not the requested one",
        "HTTP/3 against HTTP/2: the machine's processors were the limit",
    ]


def test_of_what_more_blocks_do_not_help_no_number_is_told() -> None:
    data = raced(example_matrix(PROFILES[0], repeat=12), {H1: 1, H2: 2, H3: 4})
    first, *_ = data.judgement.compared
    for concern in (Concern.NETWORK, Concern.PROCESSORS):
        assert blocks_to_stand(doubted(first, concern).findings.values()) == {}
    assert blocks_to_stand(findings(data.judgement)) == {}, "all stand"
