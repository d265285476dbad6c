"""Running docker: what a person is told when it is missing, fails or falls silent. Here docker is a shell script."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwind.testbed.docker import ROOT, DockerError, check_compose, compose, compose_command, docker, python_in


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A PATH on which `install` puts programs, before those of the system but for its docker."""
    for name in ("sh", "sleep", "cat", "pwd", "env"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    compose_command.cache_clear()
    yield tmp_path
    compose_command.cache_clear()


def install(path: Path, script: str, name: str = "docker") -> None:
    (path / name).write_text(f"#!/bin/sh\n{script}\n")
    (path / name).chmod(0o755)


def test_what_docker_prints_comes_back_and_complaints_do_not(path: Path) -> None:
    install(path, 'echo "asked: $*"; echo "be careful" >&2')
    assert docker("ps", "-aq") == "asked: ps -aq\n"


def test_without_a_temporary_file_a_full_disk_is_suspected(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(path, "echo never")

    def none(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory")

    monkeypatch.setattr(tempfile, "TemporaryFile", none)
    with pytest.raises(DockerError, match=r"is the disk full\? .*No usable temporary directory"):
        docker("ps")


def test_a_missing_docker_is_said_with_where_to_look(path: Path) -> None:
    with pytest.raises(DockerError, match="docker is not installed; `make lab-doctor`"):
        docker("ps")


def test_a_failure_carries_the_command_the_status_and_the_last_lines(path: Path) -> None:
    install(path, "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do echo line $n; done; echo no space left >&2; exit 17")
    with pytest.raises(DockerError) as caught:
        docker("build", "--tag", "x")
    lines = str(caught.value).splitlines()
    assert lines[0] == "`docker build --tag x` failed with status 17:"
    assert lines[-1] == "  no space left"
    assert len(lines) == 13
    assert "  line 3" not in lines


def test_a_failure_has_no_empty_lines(path: Path) -> None:
    install(path, "echo; echo; echo no answer >&2; exit 1")
    with pytest.raises(DockerError) as caught:
        docker("version")
    assert str(caught.value).splitlines() == ["`docker version` failed with status 1:", "  no answer"]


def test_a_failure_that_is_expected_is_no_error(path: Path) -> None:
    install(path, "echo half; exit 1")
    assert docker("inspect", "gone", check=False) == "half\n"


def test_a_stream_gets_every_line_as_it_comes_complaints_too(path: Path) -> None:
    install(path, "echo one; echo two >&2; sleep 0.3; echo three")
    arrived: list[tuple[str, float]] = []
    docker("build", stream=lambda line: arrived.append((line, time.monotonic())))
    assert sorted(line for line, _ in arrived) == ["one", "three", "two"]
    assert arrived[2][1] - arrived[1][1] > 0.1


def test_silence_ends_a_command_and_a_word_now_and_then_does_not(path: Path) -> None:
    install(path, "exec sleep 60")
    with pytest.raises(DockerError, match=r"`docker pull x` printed nothing for 0\.1 s and was killed"):
        docker("pull", "x", silence_s=0.1, check=False)
    install(path, "sleep 60; echo never")  # what it has started ends with it
    with pytest.raises(DockerError, match="printed nothing"):
        docker("pull", "x", silence_s=0.1)
    install(path, "for n in 1 2 3 4; do sleep 0.3; echo $n; done")
    assert docker("pull", "x", silence_s=5.0) == "1\n2\n3\n4\n"


def test_one_thread_watches_for_silence_however_many_lines_come(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, start = [], threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    install(path, "n=0; while [ $n -lt 1000 ]; do echo line; n=$((n+1)); done")
    assert len(docker("inspect", silence_s=5.0).splitlines()) == 1000
    assert len(started) == 1


def test_a_stream_that_breaks_off_ends_the_command(path: Path) -> None:
    install(path, 'echo $$ > "$0.pid"; echo line; exec sleep 60')

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        docker("build", stream=stop)
    with pytest.raises(ProcessLookupError):
        os.kill(int((path / "docker.pid").read_text()), 0)


def test_bytes_that_are_no_text_are_read_all_the_same(path: Path) -> None:
    install(path, r"printf 'a\377b\n'")
    assert docker("logs") == "a\ufffdb\n"


def test_commands_run_at_the_root(path: Path) -> None:
    install(path, "pwd")
    assert docker("info") == f"{ROOT}\n"


def test_commands_do_not_read_what_is_typed(path: Path) -> None:
    install(path, "cat")
    reading, writing = os.pipe()
    os.write(writing, b"typed for the lab")
    os.close(writing)
    ours = os.dup(0)
    os.dup2(reading, 0)
    try:
        assert docker("exec") == ""
    finally:
        os.dup2(ours, 0)
        os.close(ours)
        os.close(reading)


def test_docker_reads_a_file_on_its_standard_input(path: Path) -> None:
    install(path, "exec cat")
    with (path / "context").open("w+b") as file:
        file.write(b"sent\n" * 100_000)
        file.seek(0)
        assert docker("build", "-", stdin=file) == "sent\n" * 100_000


def test_compose_gets_its_variables(path: Path) -> None:
    install(path, 'case "$*" in "compose version") ;; *) echo "$* $HEADWIND_NGINX_TAG";; esac')
    assert compose("up", "-d", environment={"HEADWIND_NGINX_TAG": "abc"}) == "compose up -d abc\n"


def test_the_older_compose_is_found_where_docker_has_none(path: Path) -> None:
    install(path, "exit 125")
    install(path, "exit 0", "docker-compose")
    assert compose_command() == ("docker-compose",)


def test_the_newer_compose_is_preferred(path: Path) -> None:
    for name in ("docker", "docker-compose"):
        install(path, "exit 0", name)
    assert compose_command() == ("docker", "compose")


def test_no_compose_at_all_is_said_with_what_to_install(path: Path) -> None:
    install(path, "exit 125")
    with pytest.raises(DockerError, match="Docker Compose does not work") as caught:
        compose_command()
    assert "install docker-compose-v2, docker-compose-plugin or docker-compose" in str(caught.value)


@pytest.mark.parametrize(
    "words", ["docker: 'compose' is not a docker command.", "docker: unknown command: docker compose"]
)
def test_a_compose_that_is_not_installed_is_missing(path: Path, words: str) -> None:
    install(path, f'echo "{words}" >&2; exit 1')
    with pytest.raises(DockerError) as caught:
        compose_command()
    assert caught.value.reason == "Docker Compose is missing"


def test_a_compose_that_is_installed_and_broken_is_quoted(path: Path) -> None:
    """`Docker Compose is missing` led to installing what was there."""
    install(path, "echo \"docker: 'compose' is not a docker command.\" >&2; exit 1")
    install(path, "echo \"ModuleNotFoundError: No module named 'distutils'\" >&2; exit 1", "docker-compose")
    with pytest.raises(DockerError, match="`docker-compose version` failed with status 1:") as caught:
        compose_command()
    assert caught.value.reason == "ModuleNotFoundError: No module named 'distutils'"
    assert caught.value.advice.startswith("repair it, or install docker-compose-v2")


def test_a_compose_too_old_for_this_docker_is_found_by_asking_the_daemon(path: Path) -> None:
    """Docker 29 refuses Compose 1.29, whose `version` asks no daemon."""
    refusal = "client version 1.38 is too old. Minimum supported API version is 1.44, please upgrade your client"
    install(path, f'case "$*" in *version) ;; *) echo "{refusal}" >&2; exit 1 ;; esac')
    with pytest.raises(DockerError) as caught:
        check_compose()
    assert caught.value.reason == refusal
    assert caught.value.advice.startswith("this Docker needs a newer Compose: install docker-compose-v2")
    install(path, '[ "$*$COMPOSE_FILE" != ps ]')
    check_compose()


DIAL = "while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
START, JOIN = "to start Docker: ", "to be allowed to use Docker: `sudo usermod -aG docker $USER`, then log in again"


@pytest.mark.parametrize(
    ("complaint", "advice"),
    [
        (f"permission denied {DIAL}", JOIN),
        ("Error while fetching server API version: ('Connection aborted.', PermissionError(13, 'Permission denied'))",
         JOIN),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
         f"{START}`sudo systemctl start docker`, or without systemd `sudo service docker start`"),
        ("failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct",
         f"{START}`sudo systemctl start docker`, or without systemd `sudo service docker start`"),
        ("Cannot connect to the Docker daemon at unix:///run/user/1000/docker.sock. Is the docker daemon running?",
         f"{START}`systemctl --user start docker`"),
        ("Cannot connect to the Docker daemon at unix:///home/a/.docker/desktop/docker.sock. Is it running?",
         f"{START}`systemctl --user start docker-desktop`"),
        ("Cannot connect to the Docker daemon at tcp://far:2375. Is the docker daemon running?", ""),
        ("exec: permission denied", ""),
    ],
)  # fmt: skip
def test_a_docker_that_is_stopped_or_not_allowed_comes_with_the_command_that_helps(
    path: Path, complaint: str, advice: str
) -> None:
    install(path, f'echo "{complaint}" >&2; exit 1')
    with pytest.raises(DockerError) as caught:
        docker("ps", "--format", '{{.Label "a b"}}')
    assert (caught.value.reason, caught.value.advice) == (complaint, advice)
    lines = str(caught.value).splitlines()
    assert lines[0] == """`docker ps --format '{{.Label "a b"}}'` failed with status 1:""", "as a shell takes it"
    assert lines[1:] == [f"  {complaint}", *([advice] if advice else [])]


def test_an_agent_is_a_module_in_a_container_with_our_pipes() -> None:
    assert python_in("c0ffee", "impair.router.agent", "--engine", "uml") == [
        "docker", "exec", "-i", "c0ffee", "python3", "-m", "impair.router.agent", "--engine", "uml",
    ]  # fmt: skip
