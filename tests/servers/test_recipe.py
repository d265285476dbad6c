"""CONTRIBUTING's recipe "a server", followed: a folder and a line are all that a server takes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PATTERN = "caddy"  # the server whose folder the toy's is copied from
MATRIX = """\
protocols: [h2]
arms: {h3-toyd: {protocol: h3, server: toyd}}
profiles: {clean: {}}
workloads: {small: {requests: 20, connections: 2}}
"""
# What follows from the folder and the line, as Python expressions and their values.
FOLLOWS = {
    "list(compose_files(('server', 'toyd')))": ["-f", "compose.yaml", "-f", "servers/toyd/compose.yaml"],
    "needed(('toyd',))": ("client", "impair", "toyd"),
    "needed(('nginx',))": ("nginx", "client", "impair"),
    "[arm.server.name for arm in load_matrix(Path('matrix.yaml')).arms]": ["nginx", "toyd"],
    "compose_environment('p', {}, pick_addresses(Random(1), []))['HEADWIND_TOYD_ADDRESS'].rpartition('.')[2]": "14",
}
IMPORTS = """
from pathlib import Path
from random import Random
from headwind.matrix.reader import load_matrix
from headwind.testbed.addresses import pick_addresses
from headwind.testbed.containers import compose_environment, compose_files
from headwind.testbed.images import needed
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with the server `toyd` in it, as the recipe says."""
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "golden", "distfiles")
    for name in ("headwind", "client", "browsers", "impair", "nginx", "servers", "tests", "docs"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for name in ("lab.py", "compose.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, tree)
    folder = tree / "servers/toyd"
    shutil.copytree(ROOT / "servers" / PATTERN, folder, ignore=ignored)
    (folder / f"{PATTERN}.json").rename(folder / "toyd.json")
    for file in folder.iterdir():
        text = file.read_text().replace(PATTERN, "toyd").replace(PATTERN.upper(), "TOYD")
        file.write_text(text.replace("10.77.2.11", "10.77.2.14"))
    known = tree / "headwind/servers.py"
    line = r'\1    Server("toyd", frozenset({Offer.WORKERS}), ("newreno",), ""),\n'
    text, added = re.subn(r"(?m)^(SERVERS = .*\n(?:    .*\n)+)", line, known.read_text())
    assert added == 1, "the list of servers has another form: bring this test up to date"
    known.write_text(text)
    (tree / "matrix.yaml").write_text(MATRIX)
    return tree


def python(tree: Path, *arguments: str) -> str:
    """The output of Python in the tree."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_image_service_and_arm_follow(tree: Path) -> None:
    said = python(tree, "-c", f"{IMPORTS}\nfor text in {list(FOLLOWS)!r}: print(repr(eval(text)))")
    assert dict(zip(FOLLOWS, said.splitlines(), strict=True)) == {text: repr(value) for text, value in FOLLOWS.items()}


def test_commands_name_it(tree: Path) -> None:
    assert "toyd" in python(tree, "lab.py", "try-server", "--help")
    assert "h3-toyd" in python(tree, "lab.py", "plan", "matrix.yaml")


def test_the_tests_of_all_servers_are_about_it(tree: Path) -> None:
    said = python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--ring", "pure", "-k", "toyd",
                  "tests/servers/test_contract.py", "tests/testbed/test_images.py")  # fmt: skip
    found = re.search(r"(\d+) passed", said)
    assert found
    assert int(found[1]) > 10
