"""CONTRIBUTING's recipe "a workload kind", followed: two files and a name are all that a kind of workload takes."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
MATRIX = """\
protocols: [h1, h2, h3]
arms: {h3-long: {protocol: h3, pages: 20}}
repeat: 9
profiles:
  clean: {}
  delay: {downlink: {delay: 20ms}}
workloads:
  holidays: {kind: album, pages: 10}
  plain: {requests: 20, connections: 2}
conditions: [{workloads: [holidays]}, {profiles: [clean], workloads: [plain]}]
"""
# argv: those of lab.py. The lab on a fake testbed, where `leaf` is twice as fast over h3.
DRIVE = """
import sys
from pathlib import Path
import lab
from tests.fake_testbed import World, fake_means, fake_testbed

def leaf(command: list[str], took_s: float, directory: Path) -> None:
    protocol, pages = command[1].removeprefix("--"), int(command[2].removeprefix("--pages="))
    alpn = {"h1": "http/1.1"}.get(protocol, protocol)
    (directory / "stdout").write_text(f"{alpn} {pages} 0 {612 * pages} {took_s / (2 if protocol == 'h3' else 1)}")

world = World(programs={"album": leaf})
sys.exit(lab.main(sys.argv[1:], fake_means(lambda: fake_testbed(world))))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with the kind `album` in it, as the recipe says."""
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "golden", "net", "distfiles")
    for name in ("headwind", "client", "impair", "nginx", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    shutil.copy(ROOT / "lab.py", tree)
    shutil.copy(HERE / "album.py", tree / "headwind/workloads/album.py")
    shutil.copy(HERE / "album_client.py", tree / "client/album.py")
    kinds = tree / "headwind/workloads/__init__.py"
    text, named = re.subn(r"(?m)^(KEYS: .* = \(.*?),?\)", r"\1, AlbumKeys)", kinds.read_text(), count=1)
    assert named == 1, "the list of kinds has another form: bring this test up to date"
    first = "from headwind.workloads.h2load"
    kinds.write_text(text.replace(first, f"from headwind.workloads.{'album'} import AlbumKeys\n{first}", 1))
    return tree


def lab(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DRIVE, *arguments], cwd=tree, capture_output=True, text=True, check=False, timeout=110
    )


@pytest.fixture(scope="module")
def run(tree: Path) -> Path:
    """The folder of a whole run."""
    (tree / "matrix.yaml").write_text(MATRIX.replace("arms: {h3-long: {protocol: h3, pages: 20}}\n", ""))
    done = lab(tree, "run", "matrix.yaml", "-v", "--reports", "reports")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pages/s" in done.stdout
    (folder,) = (tree / "reports").glob("*/")
    return folder


def test_its_trials_are_data_with_its_metrics(run: Path) -> None:
    with (run / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["outcome"] for row in rows} == {"ok"}
    albums = [row for row in rows if row["workload"] == "holidays"]
    assert len(albums) == 2 * 3 * 9
    assert all(float(row["pages_per_s"]) > 0 and row["misses"] == "0" and row["total_s"] == "" for row in albums)
    assert albums[0]["command"].startswith("leaf --h")
    assert all(row["pages_per_s"] == "" and float(row["total_s"]) > 0 for row in rows if row["workload"] == "plain")


def test_more_of_what_is_better_is_found_to_be_better(run: Path) -> None:
    text = (run / "verdicts.json").read_text()
    verdicts: dict[str, Any] = json.loads(text)
    jsonschema.validate(verdicts, json.loads((ROOT / "docs/verdicts.schema.json").read_text()))
    lines = {(line["condition"], line["candidate"], line["baseline"]): line for line in verdicts["comparisons"]}
    found = lines["clean/holidays", "h3", "h1"]["metrics"]
    assert list(found) == ["pages_per_s", "misses", "picture_bytes"]
    assert found["pages_per_s"]["verdict"] == "faster"
    assert found["pages_per_s"]["ratio"]["estimate"] > 2
    assert found["misses"]["verdict"] == "tie"
    assert "total_s" in lines["clean/plain", "h3", "h1"]["metrics"]


def test_the_page_and_the_summary_show_it(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert "Albums were leafed through." in page
    assert "10 pages of an album." in page
    assert "pages per second" in page
    assert "clean/holidays" in (run / "summary.md").read_text()


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("pages: 10", "pages: 0", "8:34", "0 is out of range"),
        ("kind: album", "kind: albun", "8:20", "did you mean `album`"),
        ("pages: 10", "leaves: 10", "8:27", "unknown key `leaves`"),
        ("pages: 10", "requests: 10", "8:27", "unknown key `requests`"),
        (", pages: 10", "", "8:3", "`pages` is missing"),
        ("requests: 20", "kind: h2load, requests: 0", "9:35", "0 is out of range"),
        ("", "", "2:39", "the workload `plain`, which is of kind h2load, has no `pages`"),
    ],
)
def test_what_is_wrong_with_it_is_shown_where_it_stands(
    tree: Path, old: str, new: str, place: str, message: str
) -> None:
    (tree / "wrong.yaml").write_text(MATRIX.replace(old, new) if old else MATRIX)
    done = lab(tree, "validate", "wrong.yaml")
    assert done.returncode == 2
    assert f"wrong.yaml:{place}: " in done.stderr, done.stderr
    assert message in done.stderr


def test_an_arm_may_set_its_keys_where_every_workload_has_them(tree: Path) -> None:
    only = MATRIX.replace("  plain: {requests: 20, connections: 2}\n", "").replace(
        "conditions: [{workloads: [holidays]}, {profiles: [clean], workloads: [plain]}]\n", ""
    )
    (tree / "arm.yaml").write_text(only)
    done = lab(tree, "plan", "arm.yaml")
    assert done.returncode == 0, done.stderr
    assert "h3-long" in done.stdout
