"""The locks: what a fresh clone installs is decided in the repository, to the byte."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock")


def locked(name: str) -> dict[str, str]:
    """Package with version and marker -> the rest of its entry, its hashes."""
    entries = re.split(r"\n(?=[a-z])", (ROOT / name).read_text())[1:]
    return {entry.partition(" \\\n")[0]: entry.partition(" \\\n")[2] for entry in entries}


def plain(requirement: str) -> str:
    """`pyyaml` for "PyYAML>=6.0": names compare without case, and with one kind of dash."""
    match = re.match(r"[\w.-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_has_hashes(name: str) -> None:
    assert locked(name)
    assert [package for package, rest in locked(name).items() if "--hash=sha256:" not in rest] == []


def test_tests_run_on_the_versions_that_users_run() -> None:
    assert locked(LOCKS[0]).keys() <= locked(LOCKS[1]).keys()


def test_the_locks_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = {plain(requirement) for requirement in project["project"]["dependencies"]}
    development = {plain(requirement) for requirement in project["dependency-groups"]["dev"]}
    assert runtime <= {plain(package) for package in locked(LOCKS[0])}
    assert runtime | development <= {plain(package) for package in locked(LOCKS[1])}
