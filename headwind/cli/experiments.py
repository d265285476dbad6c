"""`lab.py experiments`: runs every experiment within one budget, and generates one page over all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from headwind.format import about
from headwind.matrix.reader import load_matrix
from headwind.model import Matrix
from headwind.plan.adaptive import time_left
from headwind.plan.block_order import plan_blocks
from headwind.plan.forecast import START_S, Forecast
from headwind.report.files import write_page
from headwind.report.html.page import REPORT
from headwind.report.overview import render_overview
from headwind.run.data import RunData
from headwind.run.journal import Run
from headwind.testbed.docker import Say
from headwind.verdicts.pending import Open

PAGE = "experiments.html"
SHORTEST_S = 120.0  # shorter pieces would mostly pay for starting a testbed
SLICES = 6  # maximum number of pieces of the remaining budget; each goes to the most promising experiment

Measure = Callable[[Matrix, Path | None], tuple[Path, int]]  # -> the run's folder and the exit status


@dataclass(slots=True)
class Experiment:
    """A matrix, and once there is one its run, with its last exit status."""

    matrix: Matrix
    folder: Path | None = None
    status: int = 1

    @property
    def name(self) -> str:
        """The title of its matrix, or else the file."""
        return self.matrix.title or self.matrix.path

    @property
    def is_elastic(self) -> bool:
        """True if a budget can make it longer or shorter."""
        return self.matrix.repeat.is_adaptive

    def open(self) -> Sequence[Open]:
        """Comparisons of its run that are not settled, and that more blocks may settle."""
        if self.folder is None:
            return ()
        with Run.open(self.folder) as run:
            return [item for item in RunData.of(run).still_open if item.n < item.most]

    def within(self, budget_s: float) -> Matrix:
        """The matrix with this budget."""
        return replace(self.matrix, repeat=replace(self.matrix.repeat, budget_s=budget_s))


def chosen(paths: Sequence[Path], folder: Path) -> list[Matrix]:
    """The matrices that were named, or else all in `folder` that have published figures. Raises MatrixError."""
    if paths:
        return [load_matrix(path) for path in paths]
    return [matrix for path in sorted(folder.glob("*.yaml")) if (matrix := load_matrix(path)).published]


def minimum_s(matrix: Matrix) -> float:
    """Forecast duration of the minimum blocks of every condition, in seconds."""
    return START_S + sum(map(Forecast(matrix.rules).block_s, plan_blocks(matrix)))


def shares(least_s: Sequence[float], budget_s: float) -> list[float]:
    """Initial share of the budget of each experiment in seconds: its minimum, scaled down if the minima exceed it."""
    part = min(1.0, budget_s / sum(least_s)) if least_s else 1.0
    return [part * each for each in least_s]


def promise(items: Sequence[Open], left_s: float) -> float:
    """Settled comparisons per second at best, of blocks that still fit; a run's scheduler uses the same criterion."""
    return max((item.rate / item.block_s for item in items if item.block_s <= left_s), default=0.0)


def run_all(experiments: Sequence[Experiment], budget_s: float | None, measure: Measure, say: Say) -> int:
    """Run every experiment to its minimum, then repeatedly resume the most promising one.

    Returns the worst of the experiments' last exit statuses; 1 for those that the budget left no time for. Without a
    budget, each runs once with the budget of its matrix. The clock starts with the first one.
    """
    left_s = time_left(budget_s)
    least_s = [minimum_s(experiment.matrix) for experiment in experiments]
    for experiment, share_s in zip(experiments, shares(least_s, budget_s or 0.0), strict=True):
        if budget_s is not None and left_s() <= 0:
            left = [each.name for each in experiments if each.folder is None]
            say(f"Not run, because the budget is over: {', '.join(left)}.")
            break
        bounded = budget_s is not None and experiment.is_elastic
        matrix = experiment.within(min(share_s, left_s())) if bounded else experiment.matrix
        say(f"{experiment.name}{f': about {about(share_s)}' if bounded else ''}")
        experiment.folder, experiment.status = measure(matrix, None)
    if budget_s is not None:
        _continue(experiments, left_s, measure, say)
    return max((each.status for each in experiments), default=0)


def _continue(experiments: Sequence[Experiment], left_s: Callable[[], float], measure: Measure, say: Say) -> None:
    """Resume the most promising experiment, for as long as there is time and something to settle."""
    slice_s = max(SHORTEST_S, left_s() / SLICES)
    while left_s() >= SHORTEST_S:
        promises = [promise(each.open(), left_s()) if each.is_elastic else 0.0 for each in experiments]
        if not any(promises):
            return
        best = experiments[promises.index(max(promises))]
        before = left_s()
        say(f"{best.name}: {about(min(slice_s, before))} more, as the most promising experiment")
        best.folder, best.status = measure(best.within(min(slice_s, before)), best.folder)


def draw(experiments: Sequence[Experiment], reports: Path) -> Path:
    """Generate the page over all experiments, next to their run folders. Returns its path."""
    with ExitStack() as opened:
        folders = [each.folder for each in experiments if each.folder]
        runs = [RunData.of(opened.enter_context(Run.open(folder))) for folder in folders]
    page = overview([each.matrix for each in experiments], runs, folders, reports)
    return write_page(reports / PAGE, page)


def overview(matrices: Sequence[Matrix], runs: Sequence[RunData], folders: Sequence[Path], where: Path) -> str:
    """The page's HTML, with links relative to the folder `where`."""
    links = [Path(os.path.relpath(folder.resolve() / REPORT, where.resolve())).as_posix() for folder in folders]
    return render_overview(matrices, runs, links, time.time())
