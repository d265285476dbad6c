"""docs/findings.md is filled from run folders, and what is written by hand stays."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.findings import main
from headwind.arm import H3
from headwind.matrix.reader import load_matrix
from headwind.model import Matrix, Trial
from headwind.plan.block_order import plan_block
from tests.fake import ok, recorded
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
    assert "Crossover of h3 and h2 along delay in both directions: between 400 ms, where h3 is ahead" in text


def test_a_run_without_a_place_is_refused(document: Path, tmp_path: Path) -> None:
    folder = folder_of(load_matrix(ROOT / "experiments/smoke.yaml"), 1, tmp_path / "reports")
    with pytest.raises(SystemExit, match=r"has no place for .*Smoke test"):
        main(["--into", str(tmp_path), str(folder)])
    assert document.read_text() == DOCUMENT
