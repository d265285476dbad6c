"""Every experiment works on real containers: a block of each condition of its quick look."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwind.matrix.reader import load_matrix
from headwind.model import Matrix, Outcome, Result
from headwind.plan.block_order import plan_blocks
from headwind.servers import NGINX
from headwind.testbed import path as paths
from headwind.testbed import testbed as testbeds
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.images import Images
from headwind.trial.trial import run_trial
from tests.net.builds import built

FOLDER = Path(__file__).parent.parent.parent / "experiments"
MATRICES = {path.stem: load_matrix(path) for path in sorted(FOLDER.glob("*.yaml"))}
ARTICLES = [name for name, matrix in MATRICES.items() if matrix.published]
FINDINGS = ["everyday", *(name for name in MATRICES if name.startswith("finding_"))]
PUSHES = [name for name in ARTICLES if MATRICES[name].servers != (NGINX,)]  # over their own server
PAGES = [name for name in (*ARTICLES, *FINDINGS) if MATRICES[name].browsers]


@pytest.mark.parametrize("name", [name for name in ARTICLES if name not in (*PAGES, *PUSHES)])
def test_an_experiment_gives_data(bed: paths.Path, name: str) -> None:
    assert reasons(run_all(bed, MATRICES[name].in_short()), Outcome.OK) == {}


@pytest.mark.timeout(400, func_only=True)  # it may have to build the image
@pytest.mark.parametrize("name", PUSHES)
def test_an_experiment_with_pushes_gives_data(images: Images, name: str) -> None:
    (server,) = MATRICES[name].servers
    spec = BedSpec({**images.tags, **built([server.name]).tags}, servers=(server,))
    with testbeds.Testbed.up(spec) as up:
        assert reasons(run_all(up.path(server.name), MATRICES[name].in_short()), Outcome.OK) == {}


@pytest.mark.pages
@pytest.mark.timeout(400, func_only=True)  # the first one may have to build the image
@pytest.mark.parametrize("name", PAGES)
def test_an_experiment_with_pages_gives_data(page_bed: testbeds.Testbed, name: str) -> None:
    assert reasons(run_all(page_bed.path(), MATRICES[name].in_short()), Outcome.OK) == {}


@pytest.mark.timeout(300)
@pytest.mark.beside
@pytest.mark.parametrize("name", [name for name in FINDINGS if name not in PAGES])
def test_a_finding_gives_data(bed: paths.Path, name: str) -> None:
    """Beside other tests a network may stay unproven."""
    found = run_all(bed, MATRICES[name].in_short())
    assert reasons(found, Outcome.OK, Outcome.INVALID) == {}


def run_all(bed: paths.Path, matrix: Matrix) -> dict[str, Result]:
    """A result for each trial; again where the machine was so busy that a network could not be proven."""
    found: dict[str, Result] = {}
    for trial in [trial for block in plan_blocks(matrix) for trial in block.trials()]:
        for _ in range(4):
            found[trial.id] = run_trial(bed, trial, matrix.rules)
            if found[trial.id].outcome is not Outcome.INVALID:
                break
    return found


def reasons(found: dict[str, Result], *accepted: Outcome) -> dict[str, str]:
    """Of the results with another outcome."""
    return {name: each.reason for name, each in found.items() if each.outcome not in accepted}
