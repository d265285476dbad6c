"""The Makefile on a fresh machine that lacks Docker, Compose or a Python. Programs are shell scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REAL = ("bash", "sh", "make", "sed", "awk", "cmp", "cp", "touch", "mkdir", "cat", "chmod", "ls", "tail", "env", "grep")
PYTHON = """
case "$*" in
--version) echo "Python {version}" ;;
*ensurepip*) exit {lacks_venv} ;;
*version_info*) exit {is_old} ;;
"-m venv"*) mkdir -p .venv/bin; printf '#!/bin/sh\\necho pip ran\\n' > .venv/bin/python; chmod +x .venv/bin/python ;;
*) echo "python $*" ;;
esac
"""
WORKING = PYTHON.format(version="3.12.1", lacks_venv=0, is_old=0)
WITHOUT_VENV = PYTHON.format(version="3.12.1", lacks_venv=1, is_old=0)
OLD = PYTHON.format(version="3.10.12", lacks_venv=1, is_old=1)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone; `bin` is the PATH of its user, who is not root and has neither Docker nor a Python."""
    for name in ("Makefile", "requirements.lock", "requirements-dev.lock"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "bin").mkdir()
    for name in REAL:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    program(tmp_path, "id", "echo 1000")
    return tmp_path


def program(clone: Path, name: str, script: str) -> None:
    (clone / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
    (clone / "bin" / name).chmod(0o755)


def made(clone: Path, *goals: str) -> tuple[int, str]:
    """The status of make, and all that it printed."""
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    done = subprocess.run(
        ["make", *goals], cwd=clone, env={**kept, "PATH": str(clone / "bin")}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_without_docker_nothing_is_installed_after_the_reason(clone: Path) -> None:
    """All packages were installed, and the reason scrolled away."""
    program(clone, "python3", WORKING)
    status, printed = made(clone, "lab-smoke")
    assert status == 2
    assert "apt-get install docker.io docker-compose\n" in printed
    assert "installing the packages" not in printed


def test_with_a_docker_that_does_not_answer_nothing_is_installed_after_the_reason(clone: Path) -> None:
    program(clone, "docker", "exit 0")
    program(clone, "python3", f'case "$*" in *images\\ check) echo "Cannot connect"; exit 1 ;; esac\n{WORKING}')
    status, printed = made(clone, "lab-smoke")
    assert status == 2
    assert printed.startswith("Cannot connect\nmake: ***")
    assert "installing the packages" not in printed


def test_a_docker_that_was_just_installed_is_awaited(clone: Path) -> None:
    """Without systemd its start script returns before the daemon answers."""
    program(clone, "id", "echo 0")
    program(clone, "python3", WORKING)
    program(clone, "apt-cache", "exit 0")
    program(clone, "apt-get", f"cp {clone}/docker {clone}/bin/docker")
    (clone / "docker").write_text(f'#!/bin/sh\necho "docker $*" >> {clone}/asked; [ -e {clone}/ready ]\n')
    (clone / "docker").chmod(0o755)
    program(clone, "service", 'echo "service $*"')
    program(clone, "sleep", f"if [ -e {clone}/slept ]; then touch {clone}/ready; fi; touch {clone}/slept")
    status, printed = made(clone, "docker")
    assert (status, "service docker start" in printed) == (0, True)
    assert (clone / "asked").read_text() == "docker info\n" * 4


def test_tests_run_although_a_check_failed() -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}

    def keeps_going(goal: str) -> bool:
        command = ["make", "-n", "--print-data-base", goal]
        done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, check=False)
        (flags,) = [line for line in done.stdout.splitlines() if line.startswith("MAKEFLAGS = ")]
        return "k" in flags.split()[2]

    assert [keeps_going(goal) for goal in ("test", "check", "lab-smoke", "lab-run")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("known", "package"),
    [("docker-compose-v2", "docker-compose-v2"), ("docker-compose-plugin", "docker-compose-plugin"),
     ("docker-compose", "docker-compose"), ("none", "docker-compose")],
)  # fmt: skip
def test_the_compose_that_newer_dockers_accept_is_preferred(clone: Path, known: str, package: str) -> None:
    """Ubuntu's docker-compose is version 1, which Docker 29 refuses."""
    program(clone, "python3", WORKING)
    program(clone, "docker", "exit 1")
    program(clone, "apt-cache", f'[ "$*" = "show {known}" ]')
    program(clone, "apt-get", "exit 0")
    status, printed = made(clone, "lab-smoke")
    assert status == 2
    assert f"run as root:  apt-get install {package}\n" in printed.replace("install  ", "install ")


def test_a_python_without_venv_gets_its_package(clone: Path) -> None:
    program(clone, "python3", WITHOUT_VENV)
    status, printed = made(clone, "lab-plan")
    assert status == 2
    assert printed.startswith(
        "headwind: no Python 3.11 or newer with the venv module. "
        "On Debian or Ubuntu, run as root:  apt-get install python3-venv\n"
    )


@pytest.mark.parametrize(("further", "package"), [("", "python3.11-venv"), ("python3.13", "python3.13-venv")])
def test_a_python_that_is_too_old_gets_no_venv_of_its_own(clone: Path, further: str, package: str) -> None:
    """The advice to install python3-venv was followed in vain: that one belongs to the old Python."""
    program(clone, "python3", OLD)
    if further:
        program(clone, further, WITHOUT_VENV)
    status, printed = made(clone, "lab-plan")
    assert status == 2
    assert f"run as root:  apt-get install {package}\n" in printed
    assert "(python3 is Python 3.10.12); name one:  make PYTHON=/path/to/python3" in printed


def test_root_is_told_of_the_python_that_is_there_and_not_of_the_last_candidate(clone: Path) -> None:
    program(clone, "id", "echo 0")
    program(clone, "python3", OLD)
    program(clone, "apt-get", 'echo "apt-get $*"')
    status, printed = made(clone, "lab-plan")
    assert status == 2
    assert "-o Dpkg::Use-Pty=0 python3.11-venv\n" in printed
    assert "headwind: python3 is no Python 3.11 or newer with the venv module; name one:" in printed


def test_a_python_that_was_named_is_named_if_it_does_not_do(clone: Path) -> None:
    program(clone, "python3", WORKING)
    program(clone, "mine", OLD)
    status, printed = made(clone, "lab-plan", "PYTHON=mine")
    assert status == 2
    assert printed.startswith("headwind: mine is no Python 3.11 or newer with the venv module; name one:")


def test_a_machine_without_python_gets_that_of_its_distribution(clone: Path) -> None:
    status, printed = made(clone, "lab-plan")
    assert status == 2
    assert "apt-get install python3-venv\n" in printed
