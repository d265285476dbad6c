"""Every bench runs, at its smallest, and prints what it is for. What the figures are is no promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.disk import is_possible

ROOT = Path(__file__).resolve().parent.parent.parent
BENCHES = {
    "clean_path.py": "--pairs 1 --requests 50 --connections 5 --streams 2",
    "overhead.py": "--trials 1",
    "noise.py": "repeat --runs 1 --profile clean --most 9 --budget 5s",
    "lanes.py": "--profiles clean,delay --blocks 1 --requests 100 --lanes 2",
    "processors.py": "--budget= --matrix experiments/smoke.yaml --lanes 1",
    "report.py": "--trials 120 --times 1",
    "judging.py": "--trials 60 --times 1",
    "memory.py": "--trials 120 --requests 10",
    "faults.py": "--short",
    "endurance.py": "--minutes 1 --trials 12 --lanes 1",
}
PRINTED = {
    "clean_path.py": ["h1: uml", "h2: uml", "h3: uml", "n=1"],
    "overhead.py": ["clean, with the probe train: 1 trials", "delay, without the probe train: 1 trials"],
    "noise.py": ["| 1 | clean/article | h2-again against h2", "| finding | runs |"],
    "lanes.py": ["one lane: ", "--lanes 2: ", "x the time", "| delay/article | h3 |"],
    "processors.py": ["| agents of the client | ", "| all Python | ", "| clean/small | 3 |", "| blocks | 3.0 |"],
    "report.py": ["| large | 120 |"],
    "judging.py": ["| 40 | 120 |", "| 360 |"],
    "memory.py": ["| lab | 120 |", "| report | 120 |"],
    "endurance.py": ["| real containers, ", "| fake testbeds, ", "- **fake testbeds**: 12 trials, 12 of them `ok`"],
    "faults.py": ["| **all** | 2 |", "| 0 | 0 | 0 | 0 | 0 | 0 |"],
}

pytestmark = [
    pytest.mark.timeout(300, func_only=True),  # the first one may have to build the images
    pytest.mark.labs,
]
WITHOUT_CONTAINERS = ("report.py", "judging.py", "memory.py")


REFUSED = "too slow even without an impairment"  # what the lab says of a machine that is much busier than before


def run(script: str, *arguments: str, tries: int = 3) -> str:
    """The output of a bench, which is tried again if other tests left too little of the machine."""
    result = subprocess.run(
        [sys.executable, ROOT / "bench" / script, *arguments], capture_output=True, text=True, check=False
    )
    if tries > 1 and REFUSED in result.stdout + result.stderr:
        return run(script, *arguments, tries=tries - 1)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_every_bench_is_tried_here() -> None:
    others = {
        "pictures.py",
        "findings.py",
        "scheduling.py",
        "answered.py",
        "same.py",
        "priorities.py",
        "traces.py",
    }  # measure nothing; tried by tests of reports, plans and traces
    others |= {"images.py"}  # builds all images twice from nothing: too long for a test
    others |= {"fuzz.py"}  # its parsers are tried by tests/test_fuzz.py
    others |= {"page_driver.py"}  # needs Playwright in a container, for which the project has no other use
    assert {path.name for path in (ROOT / "bench").glob("*.py")} - others == BENCHES.keys() == PRINTED.keys()


@pytest.mark.parametrize("script", WITHOUT_CONTAINERS)
def test_a_bench_without_containers_runs_and_prints_what_it_is_for(script: str) -> None:
    assert_prints(script)


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("script", [name for name in BENCHES if name not in WITHOUT_CONTAINERS])
def test_a_bench_runs_and_prints_what_it_is_for(script: str, tmp_path: Path) -> None:
    reports = ("--reports", str(tmp_path)) if script in ("noise.py", "lanes.py", "processors.py") else ()
    if script == "faults.py" and not is_possible():
        pytest.skip("needs root and loop devices: it makes a small disk")
    assert_prints(script, *reports)
    if script == "noise.py":
        (folder,) = tmp_path.glob("*/")
        assert "comparisons of protocols" in run(script, "pilot", str(folder))


def assert_prints(script: str, *more: str) -> None:
    said = run(script, *BENCHES[script].split(), *more)
    assert [words for words in PRINTED[script] if words not in said] == [], said
