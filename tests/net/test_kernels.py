"""A whole lab with the kernels that people have in the router: nothing falsely invalid, and corruption measured."""

from __future__ import annotations

from pathlib import Path

import pytest

import lab
from headwind.cli.dependencies import Dependencies
from headwind.matrix.reader import load_matrix
from headwind.model import DATA_OUTCOMES, Result
from headwind.run.journal import Run
from headwind.testbed.images import Images
from headwind.trial.probes import describe
from impair.profile import Direction
from tests.net.kernels import KERNELS, with_kernel_of

pytestmark = [pytest.mark.timeout(900, func_only=True), pytest.mark.alone]  # the first test may have to build images

SHORT = """
protocols: [h1, h3]
lanes: 1
timeout: 20s
repeat: 1
profiles:
  delay: {both: {delay: 20ms, jitter: 2ms}}
  corrupt: {downlink: {corrupt: 20%}}
workloads:
  some: {requests: 300, connections: 20, streams: 10}
"""


def run(suite: str, text: str, folder: Path, present: Images) -> list[Result]:
    """The results of a matrix with the kernel of a Debian suite in the router ("forky": the image's own)."""
    folder.mkdir(exist_ok=True)
    (folder / "matrix.yaml").write_text(text)
    prepared = with_kernel_of(suite, present)
    matrix, deps = load_matrix(folder / "matrix.yaml"), Dependencies(ensure_images=lambda *_: prepared)
    reports = folder / "reports"
    made, code = lab.run_matrix(matrix, reports, "uml", None, deps=deps, ending=[], verbose=True, junit=False)
    results = results_in(made)
    assert code == 0, [result.reason for result in results]
    return results


def results_in(folder: Path) -> list[Result]:
    """Every attempt, also those that were repeated."""
    with Run.open(folder) as run:
        return run.results()


def assert_proven(results: list[Result]) -> None:
    """Every attempt is data, by all of the lab's rules; where corruption was asked for it was measured."""
    assert [result.reason for result in results if result.outcome not in DATA_OUTCOMES] == []
    for result in results:
        link, checks = result.trial.profile.downlink, result.proof.checks
        assert [describe(check) for check in checks if not check.passed] == []
        corruption = [check for check in checks if check.quantity == "corrupt_ratio"]
        assert len(corruption) == (link.corrupt is not None)
        for check in corruption:
            assert check.measured is not None
            assert link.corrupt
            assert check.measured > link.corrupt.ratio / 2


@pytest.mark.parametrize("suite", KERNELS)
def test_a_lab_works_with_an_older_kernel(suite: str, images: Images, tmp_path: Path) -> None:
    results = run(suite, SHORT, tmp_path, images)
    assert len(results) == 4
    assert_proven(results)
    for result in results:
        corrupt = result.trial.profile.downlink.corrupt is not None
        quantities = {check.quantity for check in result.proof.checks if check.direction is Direction.DOWNLINK}
        assert ("probe_missing_ratio" in quantities) == corrupt, "probes tell of it, too"
    seeds = {result.proof.counters["configured"]["downlink"].get("seed") for result in results}
    assert (seeds == {None}) == (KERNELS[suite] == "6.1")


@pytest.mark.parametrize("suite", [*KERNELS, "forky"])
@pytest.mark.parametrize("name", ["experiments/smoke.yaml", "matrix.yaml"])
def test_the_labs_own_matrices_work_with_every_kernel(
    request: pytest.FixtureRequest, images: Images, suite: str, name: str, tmp_path: Path
) -> None:
    """One block of each condition."""
    if not request.config.getoption("--kernels"):
        pytest.skip("long: make test-kernels")
    text = Path(name).read_text()
    lines = ["repeat: 1" if line.startswith("repeat:") else line for line in text.splitlines()]
    assert_proven(run(suite, "\n".join(lines), tmp_path, images))
