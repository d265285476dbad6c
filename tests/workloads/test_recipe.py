"""CONTRIBUTING's recipe "a workload kind", followed: two files and a name are all that a kind of workload takes."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
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
# argv: commands of lab.py, as a JSON list. The lab on a fake testbed, where `leaf` is twice as fast over h3.
# Prints a JSON list of exit code, output and errors of each.
DRIVE = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
import lab
from tests.fake_testbed import World, fake_dependencies, fake_testbed

def leaf(command: list[str], took_s: float, directory: Path) -> None:
    protocol, pages = command[1].removeprefix("--"), int(command[2].removeprefix("--pages="))
    alpn = {"h1": "http/1.1"}.get(protocol, protocol)
    (directory / "stdout").write_text(f"{alpn} {pages} 0 {612 * pages} {took_s / (2 if protocol == 'h3' else 1)}")

done = []
for arguments in json.loads(sys.argv[1]):
    world = World(programs={"album": leaf})
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
        code = lab.main(arguments, fake_dependencies(lambda: fake_testbed(world)))
    done.append((code, out.getvalue(), errors.getvalue()))
print(json.dumps(done))
"""
MISTAKES = {
    ("pages: 10", "pages: 0"): ("8:34", "0 is out of range"),
    ("kind: album", "kind: albun"): ("8:20", "did you mean `album`"),
    ("pages: 10", "leaves: 10"): ("8:27", "unknown key `leaves`"),
    ("pages: 10", "requests: 10"): ("8:27", "unknown key `requests`"),
    (", pages: 10", ""): ("8:3", "`pages` is missing"),
    ("requests: 20", "kind: h2load, requests: 0"): ("9:35", "0 is out of range"),
    ("", ""): ("2:39", "the workload `plain`, of kind h2load, has no `pages`"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with the kind `album` in it, as the recipe says."""
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "golden", "net", "distfiles")
    for name in ("headwind", "client", "browsers", "impair", "nginx", "servers", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    shutil.copy(ROOT / "lab.py", tree)
    shutil.copy(HERE / "album.py", tree / "headwind/workloads/album.py")
    shutil.copy(HERE / "album_client.py", tree / "client/album.py")
    kinds = tree / "headwind/workloads/__init__.py"
    text, named = re.subn(r"(?ms)^(KEYS: .*? = \(.*?),?\s*\)", r"\1, AlbumKeys)", kinds.read_text(), count=1)
    assert named == 1, "the list of kinds has another form: bring this test up to date"
    first = "from headwind.workloads.h2load"
    kinds.write_text(text.replace(first, f"from headwind.workloads.{'album'} import AlbumKeys\n{first}", 1))
    return tree


def lab(tree: Path, *commands: Sequence[str]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each command, all run by one process."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVE, json.dumps(commands)], cwd=tree, capture_output=True, text=True, check=False,
        timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(code, out, errors) for code, out, errors in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def run(tree: Path) -> Path:
    """The folder of a whole run."""
    (tree / "matrix.yaml").write_text(MATRIX.replace("arms: {h3-long: {protocol: h3, pages: 20}}\n", ""))
    ((code, out, errors),) = lab(tree, ("run", "matrix.yaml", "-v", "--reports", "reports"))
    assert code == 0, out + errors
    assert "pages/s" in out
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


def test_each_mistake_in_it_is_shown_at_its_place(tree: Path) -> None:
    names = [f"wrong{number}.yaml" for number in range(len(MISTAKES))]
    for name, (old, new) in zip(names, MISTAKES, strict=True):
        (tree / name).write_text(MATRIX.replace(old, new) if old else MATRIX)
    answers = lab(tree, *(("validate", name) for name in names))
    for name, (code, _, errors), (place, message) in zip(names, answers, MISTAKES.values(), strict=True):
        assert code == 2
        assert f"{name}:{place}: " in errors, errors
        assert message in errors


def test_an_arm_may_set_its_keys_where_every_workload_has_them(tree: Path) -> None:
    only = MATRIX.replace("  plain: {requests: 20, connections: 2}\n", "").replace(
        "conditions: [{workloads: [holidays]}, {profiles: [clean], workloads: [plain]}]\n", ""
    )
    (tree / "arm.yaml").write_text(only)
    ((code, out, errors),) = lab(tree, ("plan", "arm.yaml"))
    assert code == 0, errors
    assert "h3-long" in out
