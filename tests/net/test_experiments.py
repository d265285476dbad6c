"""Every experiment of an article, and of a finding, works on real containers: a block of each of its quick look."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwind.matrix.reader import load_matrix
from headwind.model import Outcome, Result
from headwind.plan.schedule import plan_blocks
from headwind.testbed import testbed as testbeds
from headwind.trial.trial import run_trial

FOLDER = Path(__file__).parent.parent.parent / "experiments"
MATRICES = {path: load_matrix(path) for path in sorted(FOLDER.glob("*.yaml"))}
EXPERIMENTS = [path for path, matrix in MATRICES.items() if matrix.published or matrix.smoke or matrix.find]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_gives_data(bed: testbeds.Testbed, path: Path) -> None:
    """Again where the machine was so busy that a network could not be proven."""
    matrix = MATRICES[path].in_short()
    found: dict[str, Result] = {}
    for trial in [trial for block in plan_blocks(matrix) for trial in block.trials()]:
        for _ in range(4):
            found[trial.id] = run_trial(bed, trial, matrix.timeout_s)
            if found[trial.id].outcome is not Outcome.INVALID:
                break
    assert {name: each.reason for name, each in found.items() if each.outcome is not Outcome.OK} == {}
