"""The plan: what would run and how long it takes; nothing is started, and no earlier run is needed or changed."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import lab
from headwind.arm import H2
from headwind.cli import plan
from headwind.cli.plan import print_plan
from headwind.format import about
from headwind.model import AUTO, Matrix, Repetition, SelfCheck
from headwind.plan import cpu_demand
from headwind.plan.block_order import plan_blocks
from headwind.plan.doubts import changes_missed
from headwind.plan.forecast import LANE_S, START_S, Forecast
from headwind.plan.minimum import GUESSED
from headwind.proof.spans import UNCHANGED
from headwind.run.earlier import earlier_results
from impair.profile import Link, Loss, Profile
from tests import fake
from tests.matrix_files import MINIMAL, load

CLEAN, LOSS, OTHER = Profile("clean"), Profile("loss [b]", downlink=Link(loss=Loss(0.3))), Profile("other")
MATRIX = fake.example_matrix(CLEAN, LOSS, repeat=3, title="Two [networks]")


def plan_of(matrix: Matrix, reports: Path) -> str:
    out = io.StringIO()
    print_plan(matrix, reports, Console(file=out, width=140))
    return out.getvalue()


def test_every_condition_has_a_line_with_its_blocks_and_where_the_time_comes_from(tmp_path: Path) -> None:
    shown = plan_of(MATRIX, tmp_path / "nothing")
    assert "Two [networks]" in shown
    for name in ("clean", "loss [b]"):
        (line,) = [line for line in shown.splitlines() if name in line and "#" not in line]
        assert "3" in line
        assert "a guess" in line


def test_the_plan_names_what_a_block_runs(tmp_path: Path) -> None:
    assert "each block runs, in changing order: h1, h2, h3" in plan_of(MATRIX, tmp_path).splitlines()


def test_the_plan_warns_of_what_is_hardly_meant_and_notes_what_a_rate_does_to_a_jitter(tmp_path: Path) -> None:
    network = "{delay: 15ms, jitter: 5ms, rate: 10mbit, loss: {gemodel: {p: 30%, r: 1%}}}"
    shown = plan_of(load(MINIMAL.replace("clean: {}", f"far: {{downlink: {network}}}"), tmp_path), tmp_path)
    assert "about 100 packets, 96.8 % lost on average" in shown.replace("\n", " ")
    assert "a late one delays those sent right after it: far (downlink)." in shown.replace("\n", " ")
    assert "`far` loses 96.8 % of all packets on average" in shown
    assert "are `p` and `r` swapped? {p: 1%, r: 30%} loses 3.23 %" in shown


@pytest.mark.parametrize(("changes", "said"), [
    ("{1s: {both: {loss: 100%}}}", "to end it add a later moment: `1.5s: {}`"),
    ("{1s: {both: {loss: 100%}}, 1.5s: {}}", ""),
    ("{1s: {downlink: {loss: {packets: 1}}}}", ""),
])  # fmt: skip
def test_a_blackout_without_an_end_is_warned_of(changes: str, said: str, tmp_path: Path) -> None:
    network = f"out: {{both: {{delay: 10ms}}, at: {changes}}}"
    shown = " ".join(plan_of(load(MINIMAL.replace("clean: {}", network), tmp_path), tmp_path).split())
    assert ("loses 100 % of all packets" in shown) is bool(said)
    assert said in shown


def test_the_time_has_an_upper_end(tmp_path: Path) -> None:
    matrix = fake.example_matrix(CLEAN, repeat=10, timeout_s=120.0)
    assert "30 trials, about" in plan_of(matrix, tmp_path)
    assert "about 1 h if every trial times out" in plan_of(matrix, tmp_path)


def test_an_earlier_run_of_the_same_conditions_teaches(tmp_path: Path) -> None:
    earlier = fake.example_matrix(CLEAN, OTHER, repeat=2)
    with fake.recorded(tmp_path, earlier, fake.ok_results(earlier)):
        pass
    known = earlier_results(MATRIX, tmp_path)
    assert len(known) == 6
    assert {result.trial.block.condition.id for result in known} == {"clean/article"}
    shown = plan_of(MATRIX, tmp_path).splitlines()
    assert any("clean" in line and "6 earlier trials" in line for line in shown)
    assert any("loss [b]" in line and "a guess" in line for line in shown)


def test_the_run_that_asks_is_no_earlier_one(tmp_path: Path) -> None:
    with fake.recorded(tmp_path, MATRIX, fake.ok_results(MATRIX)) as run:
        folder = run.folder
    assert len(earlier_results(MATRIX, tmp_path)) == 18
    assert earlier_results(MATRIX, tmp_path, folder) == []


def test_the_plan_says_what_spells_lose_and_how_many_trials_meet_one(tmp_path: Path) -> None:
    def note_on(spells: str) -> str:
        text = MINIMAL.replace("clean: {}", f"far: {{downlink: {{loss: 1%, spells: {spells}}}}}")
        lines = plan_of(load(text, tmp_path), tmp_path).splitlines()
        return next(line for line in lines if line.startswith("note: spells of "))

    long, short = note_on("{good: 20s, bad: 5s, loss: 81%}"), note_on("{good: 40ms, bad: 40ms, loss: 99%}")
    assert "`far` (downlink), 20 s good and 5 s bad: 17.0 % of packets lost on average; only about" in long
    assert short.endswith("`far` (downlink), 40 ms good and 40 ms bad: 50.0 % of packets lost on average")


@pytest.mark.parametrize(("first", "is_noted"), [("50ms", False), ("30s", True)])
def test_the_plan_notes_a_change_that_most_trials_end_before(tmp_path: Path, first: str, is_noted: bool) -> None:
    """Only the report said so, after the minutes were spent: `32 of 32 trials ended before the network changed`."""
    changes = f"{{{first}: {{both: {{loss: 100%}}}}, 31s: {{}}}}"
    text = MINIMAL.replace("clean: {}", f"far: {{both: {{delay: 10ms}}, at: {changes}}}")
    notes = [line for line in plan_of(load(text, tmp_path), tmp_path).splitlines() if "does not change before" in line]
    assert bool(notes) == is_noted
    assert all("`far` does not change before 30 s, and its trials take" in note for note in notes)


def test_the_plan_notes_a_change_that_earlier_trials_ended_before(tmp_path: Path) -> None:
    """`forecast from 40 earlier trials`, all of which had ended early, and no note."""
    text = MINIMAL.replace("clean: {}", "far: {both: {delay: 10ms}, at: {1s: {both: {loss: 100%}}, 1.1s: {}}}")
    matrix = load(text, tmp_path)
    slow = [replace(fake.ok(trial, 3.0), phases_s={"client": 3.0}) for trial in fake.trials_of(matrix)]
    warned = [replace(each, proof=replace(each.proof, warnings=(f"{UNCHANGED}: by 1 s",))) for each in slow]
    assert not list(changes_missed(matrix, Forecast(matrix.rules, earlier=slow), slow))
    (note,) = changes_missed(matrix, Forecast(matrix.rules, earlier=warned), warned)
    assert f"{len(warned)} of {len(warned)} earlier trials ended before that" in note


def test_the_plan_notes_a_network_that_stays_changed(tmp_path: Path) -> None:
    def notes_on(at: str) -> list[str]:
        text = MINIMAL.replace("clean: {}", f"far: {{downlink: {{rate: 30mbit}}, at: {at}}}")
        return [line for line in plan_of(load(text, tmp_path), tmp_path).splitlines() if "stays changed" in line]

    (note,) = notes_on("{1s: {downlink: {rate: 1mbit}}}")
    assert note.endswith("`far` stays changed from 1 s to the end of the trial; a later moment restores it: `1.5s: {}`")
    assert notes_on("{1s: {downlink: {rate: 1mbit}}, 3s: {}}") == []
    assert notes_on("{1s: {downlink: {loss: {packets: 1}}}}") == [], "only the next packet is dropped"


def test_the_plan_notes_an_uplink_that_drops_acknowledgements(tmp_path: Path) -> None:
    """A quarter to a half of a satellite's uplink packets were dropped, and nothing said so."""

    def notes_on(uplink: str) -> list[str]:
        far = f"far: {{downlink: {{delay: 280ms, rate: 6mbit}}, uplink: {uplink}}}"
        said = plan_of(load(MINIMAL.replace("clean: {}", far), tmp_path), tmp_path).splitlines()
        return [line for line in said if "acknowledgements" in line]

    (note,) = notes_on("{delay: 280ms, rate: 1mbit}")
    assert "the uplink of `far` holds few packets" in note
    assert note.endswith("such as `queue: 139`")
    assert notes_on("{delay: 280ms, rate: 1mbit, queue: 139}") == []
    assert notes_on("{delay: 20ms, rate: 1mbit}") == [], "few are on their way"
    assert notes_on("{delay: 280ms}") == [], "without a rate the delay line holds 100,000"


def test_the_plan_notes_self_checks_without_a_network(tmp_path: Path) -> None:
    said = plan_of(load(MINIMAL + "selfcheck: {protocol: h3}\n", tmp_path), tmp_path)
    assert "`selfcheck` checks nothing: add profiles, such as `again: [clean]`" in said


def test_the_plan_notes_a_key_that_the_next_moment_does_not_repeat(tmp_path: Path) -> None:
    """The delay of a handover was silently undone by a moment that changed the rate alone."""

    def notes_on(at: str) -> list[str]:
        text = MINIMAL.replace("clean: {}", f"far: {{both: {{delay: 30ms}}, at: {at}}}")
        return [line for line in plan_of(load(text, tmp_path), tmp_path).splitlines() if "of the start" in line]

    (note,) = notes_on("{1s: {both: {delay: 80ms}}, 2s: {downlink: {rate: 6mbit}}}")
    assert "in `far`, the `delay` of the start returns at 2 s: each moment replaces the one before" in note
    assert notes_on("{1s: {both: {delay: 80ms}}, 2s: {downlink: {rate: 6mbit}, both: {delay: 80ms}}}") == []
    assert notes_on("{1s: {both: {delay: 80ms}}, 2s: {}}") == [], "a moment without keys restores on purpose"


@pytest.mark.parametrize(
    ("at", "outage"),
    [
        ("{1s: {both: {loss: 100%}}, 31s: {}}", "30 s"),
        ("{1s: {uplink: {loss: 100%}}, 5s: {uplink: {loss: 100%}, downlink: {loss: 1%}}, 41s: {}}", "40 s"),
        ("{1s: {both: {loss: 100%}}}", "59 s"),
        ("{1s: {both: {loss: 100%}}, 30.9s: {}}", ""),
        ("{1s: {both: {loss: 99%}}, 50s: {}}", ""),
        ("{1s: {both: {loss: 100%, duplicate: 50%}}, 50s: {}}", ""),
    ],
)
def test_the_plan_notes_an_outage_that_ends_connections_of_quic_alone(tmp_path: Path, at: str, outage: str) -> None:
    text = MINIMAL.replace("clean: {}", f"far: {{both: {{delay: 9ms}}, at: {at}}}")
    notes = [line for line in plan_of(load(text, tmp_path), tmp_path).splitlines() if "has an outage" in line]
    assert [f"`far` has an outage of {outage}: h2load closes" in note for note in notes] == [True] * bool(outage)


@pytest.mark.parametrize(
    ("arms", "size", "is_noted"),
    [
        ("h3: {protocol: h3}", "5MB", True),
        ("h3: {protocol: h3}", "20kB", False),
        ("h2: {protocol: h2}", "5MB", False),
        ("h3: {protocol: h3}, h3-shipped: {protocol: h3, settings: as-shipped}", "5MB", False),
    ],
)
def test_the_plan_notes_where_nginx_as_installed_would_be_slower(
    tmp_path: Path, arms: str, size: str, is_noted: bool
) -> None:
    """A default that no server is installed with, found only under Method: a file took 2.5 s, as installed 5.9 s."""
    near = "near: {both: {delay: 1ms}, downlink: {rate: 100mbit}}"
    train = "train: {both: {delay: 35ms}, downlink: {rate: 20mbit}}"
    text = f"arms: {{h1: {{protocol: h1}}, {arms}}}\nrepeat: 9\nprofiles: {{{near}, {train}}}\n"
    text += f"workloads: {{pdf: {{kind: transfer, size: {size}}}}}"
    notes = [line for line in plan_of(load(text, tmp_path), tmp_path).splitlines() if "nginx as installed" in line]
    assert ["which would slow it down in `train`;" in note for note in notes] == [True] * is_noted


def test_a_condition_that_only_has_the_same_name_teaches_nothing(tmp_path: Path) -> None:
    earlier = fake.example_matrix(Profile("clean", downlink=Link(loss=Loss(0.01))), repeat=1)
    with fake.recorded(tmp_path, earlier, fake.ok_results(earlier)):
        pass
    assert earlier_results(fake.example_matrix(CLEAN), tmp_path) == []


def test_the_latest_run_counts(tmp_path: Path) -> None:
    for name, repeat in (("20260101-0000-aaaa", 1), ("20260102-0000-aaaa", 2)):
        matrix = fake.example_matrix(CLEAN, repeat=repeat)
        with fake.recorded(tmp_path / "new", matrix, fake.ok_results(matrix)) as run:
            folder = run.folder
        folder.rename(tmp_path / name)
    assert len(earlier_results(MATRIX, tmp_path)) == 6


def test_the_latest_run_of_each_condition_counts(tmp_path: Path) -> None:
    both = fake.example_matrix(CLEAN, OTHER, repeat=1)
    first = [result for result in fake.ok_results(both) if result.trial.block.condition.profile == CLEAN]
    for name, results in (("20260101-0000-aaaa", fake.ok_results(both)), ("20260102-0000-aaaa", first[:1])):
        with fake.recorded(tmp_path / "new", both, results) as run:
            folder = run.folder
        folder.rename(tmp_path / name)
    learnt = [result.trial.block.condition.profile for result in earlier_results(both, tmp_path)]
    assert (learnt.count(CLEAN), learnt.count(OTHER)) == (1, 3)


def test_folders_that_are_no_run_or_a_broken_one_are_passed_over(tmp_path: Path) -> None:
    matrix = fake.example_matrix(CLEAN, repeat=1)
    with fake.recorded(tmp_path, matrix, fake.ok_results(matrix)):
        pass
    (tmp_path / "zzz-something-else").mkdir()
    (tmp_path / "zzz-broken").mkdir()
    (tmp_path / "zzz-broken" / "matrix.json").write_text("{}")
    (tmp_path / "zzz-broken" / "journal.sqlite").write_text("this is no database")
    assert len(earlier_results(matrix, tmp_path)) == 3


def test_nothing_is_written(tmp_path: Path) -> None:
    plan_of(MATRIX, tmp_path / "reports")
    assert list(tmp_path.iterdir()) == []


def test_the_plan_says_which_file_it_is_of(tmp_path: Path) -> None:
    path = str(tmp_path / ("a-long-folder-" * 12) / "lte [b].yaml")
    assert plan_of(replace(MATRIX, path=path), tmp_path).splitlines()[0] == f"matrix {path}"


def test_the_plan_takes_the_budget_and_the_lanes_that_a_run_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.main(["plan", "--budget", "2h", "--lanes", "1", "--reports", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "on one lane; more blocks follow until the budget of 2 h ends or every comparison is sure" in told
    assert "comparison is sure by" not in told
    assert lab.main(["plan", "--budget", "2min", "--lanes", "1", "--reports", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "on one lane: more than the budget of 2 min " in told
    assert "more blocks follow" not in told


def test_there_is_one_time_and_it_is_that_of_the_lanes_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`plan` gave the time on one lane, and below it another one on six, without a word on which of the two it is."""
    monkeypatch.setattr(plan, "lanes_here", lambda asked: asked or 6)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(cpu_demand, "MIN_GAP_S", 0.0)
    short = replace(MATRIX, lanes=1, repeat=Repetition(9, 60, budget_s=1.0))
    long = replace(short, lanes=6, repeat=Repetition(9, 60, budget_s=1000.0))
    work_s = sum(map(Forecast(short.rules).block_s, plan_blocks(short)))
    shown = {each.lanes: " ".join(plan_of(each, tmp_path).split()) for each in (short, long)}
    assert f"of each network), about {about(START_S + work_s)} on one lane: more than the budget of 1 s " in shown[1]
    start_s = START_S + 5 * LANE_S
    here = f"{about(start_s + work_s / 6)} on 6 lanes (testbeds in parallel)"
    assert f"of each network), about {here}; more blocks" in shown[6]
    assert [("time for 9 blocks, one testbed (lane)" in said) for said in shown.values()] == [False, True]
    fixed = " ".join(plan_of(replace(MATRIX, lanes=6), tmp_path).split())
    assert f"18 trials, about {about(start_s + work_s / 3 / 6)} on 6 lanes (testbeds in parallel); about" in fixed


@pytest.mark.parametrize(("budget", "lanes"), [("2s", "one lane"), ("1h", "on 6 lanes")])
def test_a_budget_that_is_too_short_for_further_testbeds_is_planned_with_one(
    budget: str, lanes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plan, "lanes_here", lambda asked: asked or 6)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert lab.main(["plan", "--budget", budget, "--reports", str(tmp_path)]) == 0
    assert lanes in " ".join(capsys.readouterr().out.split())


def test_a_plan_on_fewer_lanes_than_a_run_may_open_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`plan` said `up to 4 lanes`; the run of the same matrix opened 6 once it knew how little CPU it needs."""
    monkeypatch.setattr(plan, "lanes_here", lambda asked: asked or 9)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    repeat = Repetition(9, 60, budget_s=3600.0)
    few, nine = (" ".join(plan_of(replace(MATRIX, lanes=each, repeat=repeat), tmp_path).split()) for each in (AUTO, 9))
    assert "on 6 lanes (testbeds in parallel)" in few
    assert few.endswith("may then open more lanes, up to 9.")
    assert "may open" not in nine


def test_a_time_names_the_blocks_that_it_is_for(tmp_path: Path) -> None:
    """A row once had 9 to 60 blocks and the time of 9."""
    adaptive = replace(MATRIX, repeat=Repetition(least=9, most=60))
    shown = plan_of(adaptive, tmp_path)
    assert "time for 9 blocks" in shown
    assert "the minimum is 54 trials (9 blocks of each network), about " in shown
    fixed = plan_of(MATRIX, tmp_path)
    assert "time for 3 blocks" in fixed
    assert "more blocks follow" not in plan_of(replace(MATRIX, repeat=Repetition(least=9, most=9)), tmp_path)


@pytest.mark.parametrize(("blocks", "warns"), [(1, True), (6, True), (7, False)])
def test_a_fixed_number_of_blocks_that_allows_no_verdict_is_said_with_what_does(
    tmp_path: Path, blocks: int, *, warns: bool
) -> None:
    shown = " ".join(plan_of(replace(MATRIX, repeat=Repetition.fixed(blocks)), tmp_path).split())
    warning = f"note: a sure result takes 7 blocks if their number is fixed, and this matrix has {blocks}: nothing"
    assert (warning in shown) == warns


def test_a_minimum_that_may_exceed_the_budget_as_a_guess_says_how_long_it_may_take(tmp_path: Path) -> None:
    """`the minimum is about 2 min 38 s` stood beside `may not reach its 9 blocks in 3 min`."""
    work_s = 9 / 3 * sum(map(Forecast(MATRIX.rules).block_s, plan_blocks(MATRIX)))
    matrix = replace(MATRIX, lanes=1, repeat=Repetition(9, 60, budget_s=1.2 * work_s + START_S))
    shown = " ".join(plan_of(matrix, tmp_path).split())
    longest = about(START_S + GUESSED * work_s)
    assert f"about {about(START_S + work_s)} on one lane, or up to {longest}, since it is a guess; more" in shown
    assert " may be too short " in shown


def test_one_earlier_trial_is_in_the_singular(tmp_path: Path) -> None:
    earlier = fake.example_matrix(CLEAN, repeat=1)
    with fake.recorded(tmp_path, earlier, list(fake.ok_results(earlier))[:1]):
        pass
    assert "1 earlier trial, partly a guess " in plan_of(MATRIX, tmp_path)


def test_the_plan_explains_its_self_checks_and_has_a_sum(tmp_path: Path) -> None:
    check = SelfCheck(H2, again=("clean",), slower=("other",))
    matrix = fake.example_matrix(CLEAN, OTHER, repeat=Repetition(9, 60), selfcheck=check)
    shown = " ".join(plan_of(matrix, tmp_path).split())
    explained = "h2-again is h2 a second time, only in clean; h2-slower is h2 over a 10 % slower network, only in other"
    assert f"self-checks: {explained} " in f"{shown} "
    everywhere = replace(matrix, selfcheck=SelfCheck(H2, again=("clean", "other")))
    said = " ".join(plan_of(everywhere, tmp_path).split())
    assert ("self-checks: h2-again is h2 a second time " in said, "only in" in said) == (True, False)
    forecast = Forecast(matrix.rules)
    assert f"both networks │ │ {about(sum(map(forecast.block_s, plan_blocks(matrix))))} │" in shown
    assert "blocks, min to max" in shown
    assert " 9 to 60 │" in shown


def test_a_network_that_no_condition_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = MINIMAL.replace("profiles: {clean: {}}", "profiles: {clean: {}, outage: {both: {loss: 2%}}, far: {}}")
    assert text != MINIMAL
    file = tmp_path / "matrix.yaml"
    file.write_text(f"{text}conditions: [{{profiles: [clean, outage]}}]\n")
    assert lab.main(["plan", str(file), "--reports", str(tmp_path)]) == 0
    assert "note: no entry of `conditions` has the profile `far`: not measured" in capsys.readouterr().out


def test_the_shipped_matrix_has_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its networks are those of an article, with a jitter that reorders packets: a note, since it is meant."""
    assert lab.main(["plan", "--reports", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "warning:" not in said
    assert "note: networks `delay` and `delay-loss`: jitter reorders packets" in said
