"""All experiments within one budget: each gets its minimum, the rest goes where it decides, and one page shows all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from headwind.arm import Protocol
from headwind.cli.experiments import PAGE, Experiment, chosen, draw, minimum_s, promise, run_all, shares
from headwind.matrix.reader import load_matrix
from headwind.model import Matrix, Published, PublishedRow, Repetition
from headwind.run.journal import Run
from tests.fake import ENVIRONMENT, PROFILES, example_matrix, good_blocks
from tests.matrix_files import ROOT

ADAPTIVE = Repetition(9, 60, budget_s=900.0)
ROW = PublishedRow("clean/article", {Protocol.H1: 1.0, Protocol.H3: 2.0})
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))


def matrix_of(title: str) -> Matrix:
    published = (Published(title, f"An article about {title}", (ROW,)),)
    return replace(example_matrix(PROFILES[0]), title=title, repeat=ADAPTIVE, published=published)


@dataclass
class Lab:
    """Measures without a testbed: nine blocks each time it is asked."""

    reports: Path
    asked: list[tuple[str, float | None, bool]] = field(default_factory=list)
    speeds: dict[str, float] = field(
        default_factory=dict
    )  # h3's of each experiment; without one it is ahead in every other block

    def measure(self, matrix: Matrix, folder: Path | None) -> tuple[Path, int]:
        self.asked.append((matrix.title, matrix.repeat.budget_s, folder is not None))
        run = Run.open(folder) if folder else Run.create(self.reports, matrix, ENVIRONMENT)
        with run:
            before = len(run.results())
            blocks = before // 3 + 9
            speeds = [self.speeds[matrix.title]] * 2 if matrix.title in self.speeds else [0.8, 1.2]
            results = good_blocks(
                matrix, matrix.conditions[0], blocks,
                lambda trial: 1 / (speeds[trial.block.index % 2] if trial.protocol is Protocol.H3 else 1),
            )  # fmt: skip
            with run.recording():
                for result in results[before:]:
                    run.append(result)
            return run.folder, len(self.asked) == 1


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_each_has_its_minimum_and_a_part_of_it_where_the_budget_is_too_short() -> None:
    assert shares([100.0, 300.0], 1000.0) == [100.0, 300.0]
    assert shares([100.0, 300.0], 200.0) == [50.0, 150.0]
    assert shares([], 200.0) == []


def test_every_experiment_runs_first_and_the_rest_goes_where_something_is_open(lab: Lab) -> None:
    open_, settled = Experiment(matrix_of("open")), Experiment(matrix_of("settled"))
    lab.speeds["settled"] = 2.0
    status = run_all([settled, open_], 3600.0, lab.measure, print)
    (first, first_s, _), (second, second_s, _), *rest = lab.asked
    assert (first, second) == ("settled", "open")
    assert first_s == pytest.approx(minimum_s(settled.matrix))
    assert second_s == pytest.approx(minimum_s(open_.matrix))
    assert rest, "time was left, and something open"
    assert all(again for _, _, again in rest)
    assert sum(item == "open" for item, _, _ in rest) >= sum(item == "settled" for item, _, _ in rest)
    assert (settled.status, open_.status, status) == (1, 0, 1)


def test_experiments_for_which_no_time_is_left_are_named_and_make_the_status_1(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    experiments = [Experiment(matrix_of("one")), Experiment(matrix_of("two"))]
    assert run_all(experiments, 1e-9, lab.measure, print) == 1
    assert capsys.readouterr().out == "Not run, because the budget is over: one, two.\n"


def test_without_a_budget_each_has_that_of_its_matrix_once(lab: Lab) -> None:
    experiments = [Experiment(matrix_of("one")), Experiment(matrix_of("two"))]
    run_all(experiments, None, lab.measure, print)
    assert lab.asked == [("one", 900.0, False), ("two", 900.0, False)]


def test_a_later_round_that_ends_well_replaces_the_status_of_an_earlier_one(lab: Lab) -> None:
    experiment = Experiment(matrix_of("open"))
    assert run_all([experiment], 3600.0, lab.measure, print) == 0, "the first round ended with 1"
    assert len(lab.asked) > 1


def test_a_quick_look_is_one_block_whatever_the_budget(lab: Lab) -> None:
    experiment = Experiment(matrix_of("one").in_short())
    run_all([experiment], 3600.0, lab.measure, print)
    assert lab.asked == [("one", None, False)]


def test_an_experiment_without_a_title_is_called_by_its_file(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    run_all([Experiment(replace(matrix_of(""), path="here/m.yaml"))], 3600.0, lab.measure, print)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(line.startswith("here/m.yaml: ") for line in lines)


def test_a_condition_whose_block_does_not_fit_promises_nothing(lab: Lab) -> None:
    experiment = Experiment(matrix_of("open"))
    experiment.folder, _ = lab.measure(experiment.matrix, None)
    items = experiment.open()
    assert promise(items, 3600.0) > 0
    assert promise(items, 0.0) == 0


def test_the_page_leads_to_every_report_and_has_every_published_row(lab: Lab, tmp_path: Path) -> None:
    experiments = [Experiment(matrix_of("one")), Experiment(matrix_of("<two>")), Experiment(matrix_of("never ran"))]
    for experiment in experiments[:2]:
        experiment.folder, _ = lab.measure(experiment.matrix, None)
    page = draw(experiments, tmp_path)
    text = page.read_text()
    assert page == tmp_path / PAGE
    for experiment in experiments[:2]:
        assert experiment.folder is not None
        assert f'href="{experiment.folder.name}/report.html"' in text
    assert "An article about &lt;two&gt;" in text
    assert "An article about never ran" in text
    assert "2 of 3 rows measured" in text


# The experiments of this repository


def test_without_names_all_that_carry_figures_of_an_article_run() -> None:
    named = {Path(matrix.path).name for matrix in chosen([], ROOT / "experiments")}
    assert {"nginx_quic.yaml", "http2_study_network.yaml"} <= named
    assert not named & {"smoke.yaml", "bulk.yaml"}
    assert [matrix.title for matrix in chosen([EXPERIMENTS[0]], ROOT)] == [load_matrix(EXPERIMENTS[0]).title]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_of_an_article_has_a_quick_look_and_a_counterpart_for_every_figure(path: Path) -> None:
    matrix = load_matrix(path)
    for source in matrix.published:
        assert source.note
        assert {row.gap for row in source.rows if row.values} == {""} or not any(row.values for row in source.rows)
    if matrix.published:
        assert 0 < len(matrix.in_short().conditions) < len(matrix.conditions)
        assert matrix.in_short().repeat == Repetition.fixed(1)
