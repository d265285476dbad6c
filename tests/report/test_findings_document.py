"""docs/findings.md is filled from run folders, and what is written by hand stays."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.findings import figures, main
from headwind.arm import H1, H2, H3, PLAIN, Arm, Overrides, Protocol
from headwind.matrix.reader import load_matrix
from headwind.model import Matrix, Trial
from headwind.plan.block_order import plan_block
from headwind.run.data import RunData
from impair.profile import Delay, Link, Profile
from tests.fake import example_matrix, ok, recorded, trials_of
from tests.matrix_files import ROOT

DOCUMENT = "Before.\n\n<!-- finding_far -->\n<!-- end -->\n\nAfter.\n<!-- finding_search_far -->\n<!-- end -->\n"
SVG = "{http://www.w3.org/2000/svg}"


def folder_of(matrix: Matrix, blocks: int, reports: Path) -> Path:
    """A run in which HTTP/3 is twice as fast where the delay is below half a second, and half as fast above."""

    def time_s(trial: Trial) -> float:
        delay = trial.profile.downlink.delay
        near = delay is not None and delay.delay_s < 0.5
        return (4.0 if trial.arm is not H3 else 2.0 if near else 8.0) * (1 + trial.block.index / 1000)

    ends = [matrix.conditions[0], matrix.conditions[-1]]
    planned = [plan_block(matrix, condition, index) for condition in ends for index in range(blocks)]
    results = [ok(trial, time_s(trial)) for block in planned for trial in block.trials()]
    with recorded(reports, matrix, results) as run:
        return run.folder


@pytest.fixture
def document(tmp_path: Path) -> Path:
    file = tmp_path / "findings.md"
    file.write_text(DOCUMENT)
    return file


def test_a_run_fills_its_own_place_with_verdicts_counts_and_a_picture(document: Path, tmp_path: Path) -> None:
    folder = folder_of(load_matrix(ROOT / "experiments/finding_far.yaml"), 15, tmp_path / "reports")
    main(["--into", str(tmp_path), str(folder)])
    text = document.read_text()
    main(["--into", str(tmp_path), str(folder)])
    assert document.read_text() == text, "figures replace those of before"
    assert "| far 400ms | HTTP/3 beats HTTP/2 2.00x [2.00, 2.00] | 15 |" in text
    assert "| far 600ms | HTTP/2 beats HTTP/3 2.00x [2.00, 2.00] | 15 |" in text
    assert "| far 600ms | h3 | 8.06 s |" in text
    assert f"Run {folder.name} of " in text
    assert text.startswith("Before.\n\n<!-- finding_far -->\n![")
    assert text.endswith("<!-- end -->\n\nAfter.\n<!-- finding_search_far -->\n<!-- end -->\n")
    root = ET.parse(tmp_path / "findings/finding_far.svg").getroot()
    shown = [node.text for node in root.iter(f"{SVG}text")]
    assert "far 600ms" in shown
    assert any("\N{CHECK MARK} HTTP/2 2.00x" in (said or "") for said in shown)


def test_a_search_has_its_answer(document: Path, tmp_path: Path) -> None:
    folder = folder_of(load_matrix(ROOT / "experiments/finding_search_far.yaml"), 15, tmp_path / "reports")
    main(["--into", str(tmp_path), str(folder)])
    text = document.read_text()
    assert "Crossover of h3 and h2 along delay in both directions: between 400 ms (h3 is ahead)" in text


def test_a_run_without_a_place_is_refused(document: Path, tmp_path: Path) -> None:
    folder = folder_of(load_matrix(ROOT / "experiments/smoke.yaml"), 1, tmp_path / "reports")
    with pytest.raises(SystemExit, match=r"has no place for .*Smoke test"):
        main(["--into", str(tmp_path), str(folder)])
    assert document.read_text() == DOCUMENT


def test_an_arm_that_follows_a_deciding_server_is_compared_with_each_protocol_by_regret(tmp_path: Path) -> None:
    auto = Arm("h3-auto", Protocol.H3, overrides=Overrides((("offer_if", "rtt >= 80ms"),)))
    times_s = {H1: 4.0, H2: 2.0, H3: 1.0, auto: 1.1}
    profiles = (Profile(f"{ms}ms", downlink=Link(delay=Delay(ms / 1000))) for ms in (1, 10, 50, 100))
    matrix = example_matrix(*profiles, repeat=5, arms=(*PLAIN, auto))
    results = [ok(trial, times_s[trial.arm]) for trial in trials_of(matrix)]
    with recorded(tmp_path, matrix, results) as run:
        text = figures(RunData.of(run))
    assert "Regrets: 4 networks, 20 blocks; 95 % intervals." in text
    assert "| always h2 | 2.00x [2.00, 2.00] | 2.00x 1ms | 0.550x [0.550, 0.550] |" in text
    assert "| h3-auto | 1.10x [1.10, 1.10] | 1.10x 1ms |  |" in text
    assert "| 100ms | 100 ms | 28.3 ms | 4.00x | 2.00x | 1.00x | 1.10x |" in text
    assert "the rule" not in text
    plain = example_matrix(repeat=5)
    with recorded(tmp_path / "plain", plain, [ok(trial, 1.0) for trial in trials_of(plain)]) as run:
        assert "Regrets" not in figures(RunData.of(run))
