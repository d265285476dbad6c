"""A search through the scheduler: whole runs over a made-up lab in which the place of the crossover is known."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from headwind.arm import H3
from headwind.model import Matrix, Outcome, Result, Trial
from headwind.plan.scheduler import Scheduler
from headwind.report.formats.markdown import summary_md
from headwind.report.formats.verdicts_json import verdicts_text
from headwind.report.html.page import render
from headwind.report.search import Answer, search_text
from headwind.report.trust import trust_line
from headwind.run.codec import State, Status
from headwind.run.data import RunData
from headwind.verdicts.search import Tally, brackets, sides_of, tallies_of
from tests import fake
from tests.matrix_files import ROOT, load

SEARCH = """protocols: [h2, h3]
find: {{crossover: [h3, h2], along: downlink.loss, from: 0%, to: 10%, within: {within}}}
repeat: {{max: 100, budget: 1h}}
profiles: {{far: {{both: {{delay: 20ms}}}}}}
workloads: {{page: {{requests: 10, connections: 2}}}}
"""


def matrix_of(tmp_path: Path, within: str = "1%") -> Matrix:
    return load(SEARCH.format(within=within), tmp_path)


def time_s(trial: Trial, at: float, generator: random.Random) -> float:
    """HTTP/3 gains on HTTP/2 with the loss, and overtakes it at `at`; times scatter by a tenth."""
    loss = getattr(trial.profile.downlink.loss, "ratio", 0.0)
    return generator.lognormvariate(0.0, 0.1) * (math.exp(40 * (at - loss)) if trial.arm is H3 else 1.0)


def took(trial: Trial, at: float, generator: random.Random) -> Result:
    """A trial that went well, without anything that a report would want."""
    seconds = time_s(trial, at, generator)
    return Result(trial, Outcome.OK, metrics={metric.key: seconds for metric in trial.workload.judged(None)})


def run(matrix: Matrix, at: float, seed: int, lanes: int = 1) -> Scheduler:
    """Everything that the scheduler asks for, done."""
    generator, scheduler = random.Random(seed), Scheduler(matrix, lanes=lanes)
    while task := scheduler.next():
        scheduler.tell([took(trial, at, generator) for trial in task.trials])
    return scheduler


@pytest.mark.parametrize("within", ["2%"])
def test_a_crossover_that_was_put_there_is_in_the_answer_of_19_in_20_searches(tmp_path: Path, within: str) -> None:
    matrix = matrix_of(tmp_path, within)
    assert matrix.find is not None
    right = 0
    for seed in range(40):
        at = random.Random(1000 + seed).uniform(0.01, 0.09)
        tallies = tallies_of(matrix, run(matrix, at, seed).judge.rows_of)
        found = brackets(sides_of(tallies, matrix.repeat.confidence))
        values = [value for value, _ in matrix.find.points]
        right += len(found) == 1 and found[0].above == 1 and values[found[0].low] <= at <= values[found[0].high]
    assert right >= 38


def test_a_search_measures_few_of_its_values_and_begins_with_the_ends(tmp_path: Path) -> None:
    matrix = matrix_of(tmp_path)
    scheduler = Scheduler(matrix)
    task = scheduler.next()
    assert task is not None
    assert task.block.condition == matrix.conditions[0]
    judge = run(matrix, 0.033, 1).judge
    tried = [condition.id for condition in matrix.conditions if judge.rows_of(condition.id)]
    assert {matrix.conditions[0].id, matrix.conditions[-1].id} <= set(tried)
    assert len(tried) < 12


def test_a_search_that_goes_on_asks_for_what_is_missing(tmp_path: Path) -> None:
    matrix = matrix_of(tmp_path)
    generator, whole = random.Random(5), run(matrix, 0.04, 5)
    first: list[Result] = []
    scheduler = Scheduler(matrix)
    for _ in range(20):
        task = scheduler.next()
        assert task is not None
        results = [took(trial, 0.04, generator) for trial in task.trials]
        first += results
        scheduler.tell(results)
    again, ahead = Scheduler(matrix, first).next(), scheduler.next()
    assert again is not None
    assert ahead is not None
    assert again.block.id == ahead.block.id
    assert whole.next() is None, "a search that has its answer asks for nothing"


def data_of(tmp_path: Path, at: float, seed: int = 2, budget_blocks: int = 1000) -> RunData:
    matrix = matrix_of(tmp_path)
    generator, scheduler, results = random.Random(seed), Scheduler(matrix), list[Result]()
    while len(results) < 2 * budget_blocks and (task := scheduler.next()):
        done = [fake.ok(trial, time_s(trial, at, generator), started_at=fake.STARTED_AT) for trial in task.trials]
        results += done
        scheduler.tell(done)
    with fake.recorded(tmp_path / "reports", matrix, results) as recorded:
        return RunData.of(recorded)


def test_the_report_says_where_it_is_how_sure_that_is_and_what_it_took(tmp_path: Path) -> None:
    data = data_of(tmp_path, 0.043)
    text = search_text(data)
    assert "Crossover of h3 and h2 along downlink loss: between " in text
    assert "(h2 is ahead) and" in text
    assert "95 % confidence" in text
    assert f"This took {len(data.results)} trials at" in text
    (cost,) = re.findall(r"A grid of the same precision \(11 values\) would take about ([0-9,]+) trials", text)
    assert len(data.results) < int(cost.replace(",", "")) <= 2 * 11 * 100
    assert text in summary_md(data, data.judgement, "report.html")
    assert "Crossover of h3 and h2 along downlink loss" in render(data, 0.0)
    assert {line.condition.id for line in data.judgement.lines} == {
        result.trial.block.condition.id for result in data.results
    }


def test_without_a_crossover_the_report_says_so(tmp_path: Path) -> None:
    text = search_text(data_of(tmp_path, -0.05))
    assert "No crossover was found along downlink loss: h3 is ahead at 0 %" in text
    early = search_text(data_of(tmp_path, 0.043, budget_blocks=3))
    assert "It is not known yet" in early


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        ({0: 1}, "h3 is ahead at 0 %, with 95 % confidence at any stopping time. This does not cover other values."),
        ({0: 1, 20: 1}, "0 % and 10 %, with 95 % confidence at any stopping time. This does not cover the values "),
        ({0: 1, 10: 0, 20: 1}, "0 % and 10 %, with 95 % confidence at any stopping time; unclear at 1 of 3 values"),
        ({0: 1, 20: 0}, "0 %, with 95 % confidence at any stopping time; unclear at 1 of 2 values tried. This"),
    ],
)
def test_only_values_that_were_tried_are_called_unclear(tmp_path: Path, sides: dict[int, int], said: str) -> None:
    """After its first value, a search reported on `the other values that were tried`; after both ends, on no others."""
    matrix = matrix_of(tmp_path)
    assert matrix.find is not None
    places = range(len(matrix.conditions))
    tallies = [Tally(14, 14 if sides[each] else 7, 0 if sides[each] else 7) if each in sides else Tally()
               for each in places]  # fmt: skip
    assert said in Answer(matrix, matrix.find, tallies, [sides.get(each, 0) for each in places]).text()


def test_a_search_is_not_told_to_add_a_self_check_which_it_cannot_have(tmp_path: Path) -> None:
    unknown = "No self-check ran, so how far a protocol differs from itself is unknown."
    assert unknown in trust_line(data_of(tmp_path, 0.043))


def answer(data: RunData) -> dict[str, Any]:
    """The search in verdicts.json, which is as its schema says."""
    document = json.loads(verdicts_text(data, data.judgement))
    jsonschema.Draft202012Validator(json.loads((ROOT / "docs/verdicts.schema.json").read_text())).validate(document)
    found = document["search"]
    assert isinstance(found, dict)
    return found


def test_programs_are_told_the_answer_and_what_it_rests_on(tmp_path: Path) -> None:
    data = data_of(tmp_path, 0.043)
    found = answer(data)
    (place,) = found["crossovers"]
    assert place["from"] <= 0.043 <= place["to"]
    assert (place["ahead_before"], place["ahead_after"], place["is_narrow"]) == ("h2", "h3", True)
    assert place["to"] - place["from"] == pytest.approx(2 * found["step"])
    claims = {each["value"]: each["ahead"] for each in found["values"]}
    assert (claims[place["from"]], claims[place["to"]]) == ("h2", "h3")
    assert (claims[0.0], claims[0.1]) == ("h2", "h3")
    assert 2 * sum(each["blocks"] for each in found["values"]) == found["trials"] == len(data.results)
    assert f"about {found['grid_trials']:,} trials" in found["sentence"] == search_text(data)


@pytest.mark.parametrize("blocks", [0, 3])
def test_programs_are_told_that_nothing_is_known_yet(tmp_path: Path, blocks: int) -> None:
    found = answer(data_of(tmp_path, 0.043, budget_blocks=blocks))
    assert (found["crossovers"], found["trials"]) == ([], 2 * blocks)
    assert [(each["blocks"], each["ahead"]) for each in found["values"]] == ([(blocks, None)] if blocks else [])
    assert (found["grid_trials"] is None) == (blocks == 0)


def test_a_run_without_a_search_says_nothing_of_one() -> None:
    matrix = fake.example_matrix(repeat=1)
    data = RunData("run", matrix, (), fake.ENVIRONMENT, Status(State.FINISHED, "", 0.0, 1.0))
    assert search_text(data) == ""
    assert json.loads(verdicts_text(data, data.judgement))["search"] is None
