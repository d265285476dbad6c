"""Running docker and its Compose: the only file that does."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from headwind.errors import HeadwindError

DOWNLOAD_S = 900.0  # without a line from docker, of a layer that is being downloaded
ROOT = Path(__file__).resolve().parent.parent.parent
# Of Ubuntu, of Docker's own packages, and of Debian.
COMPOSE_PACKAGES = "docker-compose-v2, docker-compose-plugin or docker-compose, whichever your distribution has"
_CANNOT_CONNECT = re.compile(
    r"cannot connect to the docker daemon|failed to connect to the docker api|error while fetching server api version",
    re.IGNORECASE,
)
_NO_COMPOSE = re.compile(r"not a docker command|unknown command")
Say = Callable[[str], None]
Docker = Callable[..., str]  # `docker` or `compose`, or what a test has instead


class DockerError(HeadwindError):
    """A docker command failed; the message holds the command, its last lines and what to try.

    `reason` is the last line that docker printed, `advice` what to try; it is empty if that is not known.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message}\n{advice}" if advice else message)
        self.reason = (message.splitlines() or [""])[-1].strip()
        self.advice = advice


def advice_on(complaint: str) -> str:
    """The command that repairs what docker or Compose complains about; empty if that is not known."""
    if re.search(r"permission ?denied", complaint, re.IGNORECASE) and re.search(
        r"docker\.sock|docker (daemon|api)|server api version", complaint, re.IGNORECASE
    ):
        return "to be allowed to use Docker: `sudo usermod -aG docker $USER`, then log in again"
    if "is too old. Minimum supported API version" in complaint:
        return f"this Docker needs a newer Compose: install {COMPOSE_PACKAGES}"
    if not _CANNOT_CONNECT.search(complaint) or "tcp://" in complaint or "ssh://" in complaint:
        return ""
    if "/run/user/" in complaint:
        return "to start Docker: `systemctl --user start docker`"
    if "desktop" in complaint:
        return "to start Docker: `systemctl --user start docker-desktop`"
    return "to start Docker: `sudo systemctl start docker`, or without systemd `sudo service docker start`"


def docker(
    *arguments: str,
    check: bool = True,
    stream: Say | None = None,
    environment: Mapping[str, str] | None = None,
    silence_s: float | None = None,
    stdin: IO[bytes] | None = None,
) -> str:
    """Run `docker ARGUMENTS` and return its standard output.

    `stream` gets every line as it comes, standard error too. A command that prints no line for `silence_s` is killed.
    `stdin` is a file that docker reads.
    Raises DockerError when docker is missing, when it was killed and, with `check`, when it fails.
    """
    return _run(["docker", *arguments], check, stream, environment, silence_s, stdin)


def compose(*arguments: str, environment: Mapping[str, str]) -> str:
    """Run Compose, whichever this host has, and return its standard output. Raises DockerError."""
    return _run([*compose_command(), *arguments], environment=environment)


def check_compose() -> None:
    """Let Compose ask the daemon: one may be too old for the other. Raises DockerError."""
    compose("ps", environment={"COMPOSE_PROJECT_NAME": "headwind-none", "COMPOSE_FILE": "compose.yaml"})


def endpoint() -> str:
    """The address of the daemon, such as `unix:///var/run/docker.sock`, by DOCKER_HOST or Docker's context.

    Raises DockerError.
    """
    if given := os.environ.get("DOCKER_HOST"):
        return given
    return docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").strip()


def python_in(container: str, module: str, *arguments: str) -> list[str]:
    """The command that runs a Python module in a container, on our standard input and output."""
    return ["docker", "exec", "-i", container, "python3", "-m", module, *arguments]


def _run(
    command: list[str],
    check: bool = True,
    stream: Say | None = None,
    environment: Mapping[str, str] | None = None,
    silence_s: float | None = None,
    stdin: IO[bytes] | None = None,
) -> str:
    with _complaints() as complaints:
        try:
            process = subprocess.Popen(
                command, cwd=ROOT, text=True, errors="replace", start_new_session=True,
                stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if stream else complaints,
                env={**os.environ, **(environment or {})},
            )  # fmt: skip
        except FileNotFoundError as error:
            raise DockerError(f"{command[0]} is not installed; `make lab-doctor` shows how to install it") from error
        later_s = DOWNLOAD_S if silence_s and command[1:2] == ["pull"] else silence_s
        lines = _lines_of(process, stream, silence_s, later_s)
        if silence_s and process.returncode == -signal.SIGKILL:
            quiet_s = later_s if lines else silence_s
            raise DockerError(
                f"`{shlex.join(command)}` printed nothing for {quiet_s:g} s and was killed; does `docker info` answer?"
            )
        complaints.seek(0)
        tail = [line for line in (*lines, *complaints) if line.strip()][-12:]
    if check and process.returncode:
        said = "".join(f"  {line}" for line in tail).rstrip()
        raise DockerError(f"`{shlex.join(command)}` failed with status {process.returncode}:\n{said}", advice_on(said))
    return "".join(lines)


def _complaints() -> IO[str]:
    """A temporary file for standard error. Raises DockerError."""
    try:
        return tempfile.TemporaryFile("w+", errors="replace")
    except OSError as error:
        raise DockerError(f"docker cannot be called without a temporary file; is the disk full? ({error})") from error


def _lines_of(
    process: subprocess.Popen[str], stream: Say | None, silence_s: float | None, later_s: float | None
) -> list[str]:
    """All output lines of the process, which is killed if it stays silent, or if we are stopped."""
    lines: list[str] = []
    with process, _killed_when_silent(process, silence_s, later_s) as heard:
        try:
            for line in process.stdout or ():
                heard()
                lines.append(line)
                if stream:
                    stream(line.rstrip())
        except BaseException:
            _kill(process)
            raise
    return lines


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill it with its children: Compose is a separate process, and would keep the output open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _killed_when_silent(
    process: subprocess.Popen[str], silence_s: float | None, later_s: float | None
) -> Iterator[Callable[[], None]]:
    """Watch the process with a single thread: `docker inspect` prints thousands of lines.

    Before its first line it may be silent for `silence_s`, then for `later_s`: a pull prints nothing during a layer.
    """
    last_s, is_over, limit_s = time.monotonic(), threading.Event(), silence_s or 0.0

    def heard() -> None:
        nonlocal last_s, limit_s
        last_s, limit_s = time.monotonic(), later_s or 0.0

    def watch() -> None:
        while (left_s := last_s + limit_s - time.monotonic()) > 0:
            if is_over.wait(left_s):
                return
        _kill(process)

    if silence_s:
        threading.Thread(target=watch, daemon=True).start()
    try:
        yield heard
    finally:
        is_over.set()


@cache
def compose_command() -> tuple[str, ...]:
    """`docker compose` (v2) or `docker-compose` (v1), whichever this host has. Raises DockerError if neither works."""
    failure, install = "", f"install {COMPOSE_PACKAGES}"
    for command in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(command[0]):
            try:
                _run([*command, "version"])
            except DockerError as error:
                failure = failure if _NO_COMPOSE.search(str(error)) else str(error)
            else:
                return command
    if failure:
        raise DockerError(f"Docker Compose does not work: {failure}", f"repair it, or {install}")
    raise DockerError("Docker Compose is missing", install)
