"""A run that was stopped has one count of its blocks wherever it is read: that of the complete ones."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from headwind.arm import H2
from headwind.model import Repetition, SelfCheck
from headwind.plan.block_order import plan_block
from headwind.plan.scheduler import Scheduler
from headwind.report.formats.junit import junit_xml
from headwind.report.formats.markdown import summary_md
from headwind.report.formats.terminal import print_summary
from headwind.report.formats.verdicts_json import verdicts_json
from headwind.report.html.page import render
from headwind.report.row_text import headline, resumed_text, trials_text
from headwind.report.times_table import summary_table
from headwind.run.codec import State
from headwind.run.data import LAST_BUDGET, RunData, was_stopped
from headwind.run.journal import PAUSES, STOPPED, Run
from tests import fake

CHECK = SelfCheck(H2, again=("clean",), slower=())
MATRIX = fake.example_matrix(*fake.PROFILES[:3], repeat=Repetition(9, 60), selfcheck=CHECK)


@pytest.fixture
def data(tmp_path: Path) -> RunData:
    """Ten blocks of `clean` and seven of `delay`; of the next of each all but one trial, which was stopped."""
    with suppress(KeyboardInterrupt), Run.create(tmp_path, MATRIX, fake.ENVIRONMENT) as run, run.recording():
        for condition, blocks in zip(MATRIX.conditions, (10, 7), strict=False):
            *done, last = fake.good_blocks(MATRIX, condition, blocks + 1)
            for number, result in enumerate(done):
                run.begin(result.trial, 0)
                run.append(replace(result, started_at=fake.STARTED_AT + number))
            run.begin(last.trial, 0)
        raise KeyboardInterrupt
    with Run.open(run.folder) as stopped:
        return RunData.of(stopped)


@pytest.mark.parametrize(
    ("pauses_s", "ended_after_s", "sentence"),
    [
        ([], 158.0, ""),
        ([105.2], 158.0, "Resumed once: 53 s without the pause."),
        ([100.0, 3600.0], 3953.0, "Resumed 2 times: 4 min 13 s without the pauses."),
        ([100.0], None, "Resumed once."),
    ],
)
def test_a_resumed_run_says_so_and_how_long_it_was_without_its_pauses(
    data: RunData, pauses_s: list[float], ended_after_s: float | None, sentence: str
) -> None:
    """A run of 53 s seemed to have taken 2 min 38 s."""
    start_s = data.status.started_at
    status = replace(data.status, ended_at=ended_after_s and start_s + ended_after_s)
    pauses = [{"from": start_s + 10, "to": start_s + 10 + pause_s} for pause_s in pauses_s]
    resumed = replace(data, status=status, environment={**data.environment, PAUSES: pauses})
    assert resumed_text(resumed) == sentence
    for text in (render(resumed, fake.STARTED_AT), summary_md(resumed, resumed.judgement, "report.html")):
        assert sentence in text
        assert bool(sentence) == ("Resumed " in text)


def test_the_terminal_counts_complete_blocks(data: RunData) -> None:
    console = Console(width=140, color_system=None, record=True)
    with console.capture() as shown:
        print_summary(data, console)
    said = shown.get()
    first, second = said.splitlines()[:2]
    assert first.startswith("network, complete ")
    assert second.startswith("blocks ")
    assert re.search(r"^clean, 10 blocks ", said, re.MULTILINE)
    assert re.search(r"^delay, 7 blocks .*unclear: only 7 blocks .*only 7 blocks .*only 7", said, re.MULTILINE)
    assert re.search(r"^loss, not run ", said, re.MULTILINE)
    assert "blocks excluded" not in said
    assert "\nNot run: loss.\n" in said
    assert "\n\nNot run: loss.\n\n" in summary_md(data, data.judgement, "report.html")


def test_the_summary_counts_complete_blocks(data: RunData) -> None:
    lines = summary_md(data, data.judgement, "report.html").splitlines()
    (head,) = (line for line in lines if "median |" in line)
    assert head.endswith("| complete blocks |")
    rows = {line.split("`")[1]: line for line in lines[lines.index(head) + 2 :][:3]}
    counts = {name: row.split("|")[-2].strip() for name, row in rows.items()}
    assert counts == {"clean": "10", "delay": "7", "loss": "0"}
    (check,) = (line for line in lines if line.startswith("- self-check"))
    assert ", 10 blocks" in check
    assert rows["delay"].count("only 7 blocks") == 3
    assert "- loss is not run" in lines
    assert not [line for line in lines if re.search(r"after [0-9]+ .*blocks", line)]


def test_the_page_counts_complete_blocks(data: RunData) -> None:
    page = re.sub(r"<[^>]*>|\s+", " ", render(data, 0.0))
    for name, count in (("clean", 10), ("delay", 7)):
        assert re.search(rf" {name}  [^;]*; {count} complete blocks ", page), name
        assert f"Blocks and trials: {count} complete blocks, 1 not complete" in page


def test_what_a_budget_cut_short_is_compared_with_the_minimum(data: RunData) -> None:
    """`102 of 126 trials ran: 102 ok` read as if 24 trials had been lost."""
    assert headline(data).startswith("Stopped by Ctrl-C. 66 of at least 97 trials ran: 66 ok; 2 more were stopped with")
    assert Scheduler(MATRIX, data.results).counts == (66, 97), "what the resumed run shows"
    over = replace(data, status=replace(data.status, state=State.FINISHED))
    assert headline(over) == (
        "The budget ended before every network had 9 blocks: 31 trials are missing. 66 trials ran: 66 ok; "
        "2 more were stopped with the run, in no figure."
    )


def test_trials_that_were_stopped_and_not_repeated_did_not_run(data: RunData) -> None:
    """`All 121 trials ran: 116 ok, 5 stopped` after a resume that repeated none of them."""
    few = replace(data.matrix, conditions=data.matrix.conditions[:1])
    own = [each for each in data.results if each.trial.block.condition == few.conditions[0]]
    over = replace(data, matrix=few, results=tuple(own), status=replace(data.status, state=State.FINISHED), judge=None)
    assert headline(over) == "43 trials ran: 43 ok; 1 more was stopped with the run, in no figure."
    whole = replace(over, results=tuple(each for each in own if not was_stopped(each)))
    assert headline(whole).startswith("All ")


def test_trials_beyond_the_minimum_make_up_for_none_that_did_not_run(data: RunData) -> None:
    """`79 of 81 trials ran` stood beside four trials `not run`: two that ran were of a block beyond the 81."""
    rows = summary_table(data)
    not_run = sum(max(0, row.planned - sum(row.outcomes.values()) + row.stopped) for row in rows)
    done, total = re.findall(r"(\d+) of at least (\d+) trials ran", headline(data))[0]
    assert int(total) - int(done) == not_run


@pytest.mark.parametrize("state", [State.FINISHED, State.INTERRUPTED])
def test_a_fixed_number_of_blocks_needs_as_many_for_a_verdict_when_it_is_stopped(data: RunData, state: State) -> None:
    """A finished run needed six blocks, and the same one eight if it was stopped."""
    few = replace(data, matrix=replace(MATRIX, repeat=Repetition.fixed(9)), judge=None, results=data.results[-8:])
    seen = replace(few, status=replace(data.status, state=state))
    assert "no network has the 6 blocks that a sure result takes" in summary_md(seen, seen.judgement, "report.html")
    early = 6 if state is State.FINISHED else 8  # a look before the end needs the blocks of any stopping time
    assert seen.judgement.rule.blocks_needed(6) == early


def test_what_was_stopped_has_one_name(data: RunData) -> None:
    told = [text for row in summary_table(data) for text in trials_text(row)]
    assert told.count("1 stopped with the run") == 2
    assert {result.reason for result in data.results if was_stopped(result)} == {STOPPED}
    assert STOPPED.startswith("stopped with the run")
    pages = render(data, 0.0), junit_xml(data, data.judgement).decode()
    for text in (*told, *pages):
        assert "lab-error" not in text
    assert all("stopped with the run" in page for page in pages)


def test_the_trials_of_a_block_that_was_stopped_stay_in_the_tally(data: RunData) -> None:
    assert data.judgement.lines[0].blocks == 10
    assert len(data.latest) == 11 * len(MATRIX.arms_in(MATRIX.conditions[0])) + 8 * 3
    assert plan_block(MATRIX, MATRIX.conditions[0], 10).order[-1] in data.rows["clean/article"][10]


@pytest.mark.parametrize("state", [State.INTERRUPTED, State.FINISHED])
def test_the_file_counts_the_trials_as_the_headline_does(data: RunData, state: State) -> None:
    """`90 of at least 100 trials ran: 90 ok, 6 stopped` was `planned: 96, ran: 96, lab-error: 6` in verdicts.json."""
    seen = replace(data, status=replace(data.status, state=state))
    trials = verdicts_json(seen, seen.judgement)["trials"]
    told = headline(seen)
    assert (trials["outcomes"]["ok"], trials["outcomes"]["lab-error"], trials["stopped"]) == (66, 0, 2)
    if state is State.INTERRUPTED:
        assert f"{trials['ran']} of at least {trials['planned']} trials ran" in told
    else:
        assert f"had 9 blocks: {trials['planned'] - trials['ran']} trials are missing" in told
        assert f"{trials['ran']} trials ran" in told


def test_a_network_that_the_budget_left_no_time_for_is_in_the_reason_for_status_1_only(data: RunData) -> None:
    """`Not run: loss.` stood above `lab.py: the budget left no time for loss`."""
    environment = {**data.environment, LAST_BUDGET: 60.0}
    over = replace(data, environment=environment, status=replace(data.status, state=State.FINISHED))
    console = Console(width=140, color_system=None, record=True)
    with console.capture() as shown:
        print_summary(over, console)
    assert "Not run" not in shown.get()
    text = summary_md(over, over.judgement, "report.html")
    assert "\n\n- Exit status 1: the budget left no time for loss\n\n" in text
    assert "Not run" not in text


def test_networks_in_which_nothing_finished_are_named(tmp_path: Path) -> None:
    matrix = replace(MATRIX, selfcheck=None, repeat=Repetition.fixed(1))
    results = [
        fake.timeout(trial) if trial.block.condition.profile.name == "loss" else fake.ok(trial, 1.0)
        for trial in fake.trials_of(matrix)
    ]
    with fake.recorded(tmp_path, matrix, results) as run:
        text = summary_md(data := RunData.of(run), data.judgement, "report.html")
    assert "\n\nNo trial finished: loss.\n\n" in text
    assert "Not run" not in text
