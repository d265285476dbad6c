"""The user's server: its program runs in a container that joins the network of a host of ours.

The host (servers/own) has the agent and its capabilities; the program's container has no capability and nothing
of ours but two read-only volumes, /www and /certs. Either can be restarted without the other: routes and queues are the
host's, and stay. Both are labelled as all containers of their testbed, so whatever removes that removes them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwind.errors import HeadwindError
from headwind.servers import Contract, Fresh, Program, Server
from headwind.testbed.agent import Agent, AgentError
from headwind.testbed.containers import LABEL, OWNER_LABEL, TEARDOWN_S, most_memory
from headwind.testbed.docker import Docker, DockerError, Say, docker
from headwind.testbed.operations import HEALTH
from headwind.testbed.owner import this_lab
from impair.messages import Health

AGENT = "servers.own.agent"
ENTRYPOINT = "/opt/headwind/servers/own/entrypoint.sh"
WWW, CERTS = "/www", "/certs"
# As in compose.yaml. The last one lets a program without capabilities listen on port 443.
SYSCTLS = {
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 33554432",
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv4.ip_unprivileged_port_start": "0",
}
MOST_PROCESSES, MEMORY = 512, "2g"
NO_RIGHTS = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
LOG_OPTIONS = ("--log-driver", "local", "--log-opt", "max-size=1m", "--log-opt", "max-file=2")  # a log fills no disk
START_S = 60.0  # for a program until it answers the first time
AGAIN_S = 20.0  # and after a restart
SLICE_S = 0.5  # between two looks at a program that does not answer yet
PULL_SILENCE_S = 120.0
LAST_LINES = 8
NO_ANSWER = "(ServerIsGone)"  # the kind of the agent's error, at its end


class OwnServerError(HeadwindError):
    """The user's server failed; `server` is its name in the matrix, and the message has the end of its log."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(message)
        self.server = server


@dataclass(frozen=True, slots=True)
class OwnImage:
    """The user's image: its name in the matrix, its id, and its digest in a registry if it has one."""

    name: str
    id: str
    digest: str = ""

    @property
    def recorded(self) -> str:
        """The name and the id: what a run notes, and what its other testbeds must equal."""
        return f"{self.name}@{self.id}"


@dataclass(frozen=True, slots=True)
class State:
    """The state of a program's container."""

    is_running: bool
    started_at: str
    pid: int
    exit_code: int
    was_out_of_memory: bool
    error: str

    def __str__(self) -> str:
        if self.is_running:
            return "its program is running"
        if self.error:
            return f"its program did not start: {self.error}"
        memory = f", because it used more than {MEMORY} of memory" if self.was_out_of_memory else ""
        return f"its program ended with status {self.exit_code}{memory}"


def ensure_image(server: Server, say: Say, docker: Docker = docker) -> OwnImage:
    """The image of the user's server, which is pulled if it is not here. Raises OwnServerError."""
    name = _program(server).image
    if found := _present(name, docker):
        return found
    say(f"pulling {name}, for server {server.name}")
    try:
        docker("pull", name, silence_s=PULL_SILENCE_S)
    except DockerError as error:
        reason = _reason(error)
        message = (
            f"server {server.name}: there is no image {name} here, and it cannot be pulled ({reason}); "
            f"`docker build -t {name} FOLDER` makes it, `docker load` brings it"
        )
        raise OwnServerError(server.name, message) from error
    if found := _present(name, docker):
        return found
    raise OwnServerError(server.name, f"server {server.name}: docker pulled {name}, but does not list it")


def _present(name: str, docker: Docker) -> OwnImage | None:
    listing = docker("image", "inspect", "--format", "{{.Id}} {{json .RepoDigests}}", name, check=False)
    identity, _, digests = listing.strip().partition(" ")
    if not identity.startswith("sha256:"):
        return None
    return OwnImage(name, identity, next(iter(json.loads(digests) or ()), ""))


def _program(server: Server) -> Program:
    if server.program is None:
        raise ValueError(f"{server.name} is not the user's server")
    return server.program


def labels(project: str) -> tuple[str, ...]:
    """The labels of all containers of a testbed, for `docker run`."""
    return "--label", f"{LABEL}={project}", "--label", f"{OWNER_LABEL}={this_lab()}"


def host_arguments(project: str, network: str, address: str, image: str) -> tuple[str, ...]:
    """The arguments of docker that start the host of a program, at an address of a network."""
    return (
        "run", "--detach", "--init", "--stop-timeout", "1", *labels(project), *NO_RIGHTS,
        "--cap-add", "NET_ADMIN", "--cap-add", "NET_RAW", "--read-only", "--tmpfs", "/run:mode=755,size=16m",
        "--pids-limit", str(MOST_PROCESSES), "--memory", most_memory(), "--dns", "127.0.0.1",
        "--env", "PYTHONDONTWRITEBYTECODE=1", *_sysctls(), "--volume", WWW, "--volume", CERTS,
        "--network", network, "--ip", address, image, ENTRYPOINT,
    )  # fmt: skip


def _sysctls() -> tuple[str, ...]:
    return tuple(word for name, value in SYSCTLS.items() for word in ("--sysctl", f"{name}={value}"))


def start_host(project: str, network: str, address: str, image: str, docker: Docker = docker) -> str:
    """Start the host of a program; its container's id. `image` is that of `servers/own`. Raises DockerError."""
    return docker(*host_arguments(project, network, address, image)).split()[-1]


def agent_arguments(server: Server, image: OwnImage) -> tuple[str, ...]:
    """The arguments of the host's agent, which is module AGENT."""
    program = _program(server)
    found = ("--name", server.name, "--image", image.digest or image.recorded, "--port", str(program.port),
             "--protocols", ",".join(program.protocols))  # fmt: skip
    return (*found, "--ready", program.ready) if program.ready else found


def program_arguments(project: str, host: str, server: Server, image: OwnImage) -> tuple[str, ...]:
    """The arguments of docker that create the container of a program, next to its host."""
    program = _program(server)
    logs = ("--tmpfs", "/logs:size=64m") if program.contract is Contract.QUIC_INTEROP else ()
    variables = (word for name, value in program.environment.items() for word in ("--env", f"{name}={value}"))
    return (
        "create", *labels(project), "--label", f"headwind.servers={server.name}", "--network", f"container:{host}",
        *NO_RIGHTS, "--pids-limit", str(MOST_PROCESSES),
        "--memory", MEMORY, "--memory-swap", MEMORY,
        *LOG_OPTIONS, "--volumes-from", f"{host}:ro", *logs, *variables, image.id, *program.command,
    )  # fmt: skip


@dataclass(slots=True)
class OwnServer:
    """The program of a user's own server, next to its host. Made by `OwnServer.start`."""

    server: Server
    container: str
    agent: Agent  # of the host
    docker: Docker = docker

    @classmethod
    def start(
        cls, project: str, host: str, server: Server, image: OwnImage, agent: Agent, docker: Docker = docker,
        limit_s: float = START_S,
    ) -> OwnServer:  # fmt: skip
        """Start the program next to its host, whose agent is ready; return when it answers over all its protocols.

        Raises OwnServerError; nothing of it is left then.
        """
        try:
            container = docker(*program_arguments(project, host, server, image)).split()[-1]
        except DockerError as error:
            reason = _reason(error)
            raise OwnServerError(
                server.name, f"server {server.name} ({image.name}) was not created: {reason}"
            ) from error
        own = cls(server, container, agent, docker)
        try:
            own._start()
            own.await_answer(limit_s)
        except BaseException:
            own.stop()
            raise
        return own

    @property
    def program(self) -> Program:
        """The program as the matrix has it."""
        return _program(self.server)

    def fresh(self) -> float:
        """Make the program as the matrix wants it before a trial; the seconds that it took.

        It ends all connections over TCP in any case, and by a restart everything else. A program that has ended is
        started again. Raises OwnServerError.
        """
        begin = time.monotonic()
        if self.program.fresh is Fresh.RESTART or not self.state().is_running:
            self.restart()
        else:
            self.await_answer(AGAIN_S)
        return time.monotonic() - begin

    def restart(self) -> None:
        """Kill the program, destroy what it leaves in the kernel, start it, and wait for it. Raises OwnServerError.

        The container's file system stays as the program left it.
        """
        self.docker("kill", self.container, check=False)
        self.agent.call("forget_all")
        self._start()
        self.await_answer(AGAIN_S)

    def _start(self) -> None:
        try:
            self.docker("start", self.container)
        except DockerError as error:
            raise self._failure(f"did not start: {_reason(error)}") from error

    def await_answer(self, limit_s: float) -> None:
        """Destroy the program's TCP connections, and wait until it answers over all its protocols.

        Raises OwnServerError as soon as it has ended.
        """
        deadline = time.monotonic() + limit_s
        while True:
            try:
                self.agent.call("fresh", SLICE_S + 10.0, timeout_s=SLICE_S)
                return
            except AgentError as error:
                if not str(error).endswith(NO_ANSWER):
                    raise
                state, silence = self.state(), _of_agent(error)
                if not state.is_running:
                    raise self._failure(str(state)) from error
                if time.monotonic() >= deadline:
                    advice = f"It has to listen on port {self.program.port} of all addresses, and to speak TLS 1.3"
                    raise self._failure(f"did not become ready within {limit_s:g} s: {silence}. {advice}") from error

    def health(self) -> Health:
        """A value that changes when the program's listening sockets do. Raises OwnServerError if it has none."""
        try:
            return self.agent.call(HEALTH)
        except AgentError as error:
            state = self.state()
            raise self._failure(_of_agent(error) if state.is_running else str(state)) from error

    def state(self) -> State:
        """The state of its container. Raises OwnServerError if it was removed."""
        found = self.docker("inspect", "--format", "{{json .State}}", self.container, check=False).strip()
        if not found:
            raise OwnServerError(self.server.name, f"server {self.server.name}: its container was removed")
        return _state(json.loads(found))

    @property
    def is_alive(self) -> bool:
        """Whether its program runs."""
        return self.state().is_running

    def last_log_lines(self, lines: int = LAST_LINES) -> list[str]:
        """The last lines of its output, errors included."""
        return _lines(self.docker, self.container, lines)

    def failure(self) -> str:
        """The reason why it does not serve, with the end of its log; empty if its program runs."""
        state = self.state()
        return "" if state.is_running else str(self._failure(str(state)))

    def stop(self) -> None:
        """Remove its container. The host is removed with the testbed."""
        self.docker("rm", "-f", "-v", self.container, check=False, silence_s=TEARDOWN_S)

    def _failure(self, what: str) -> OwnServerError:
        """The error, with the name, the image and the end of the log."""
        log = self.last_log_lines()
        end = "\n".join(["The end of its log:", *(f"  {line}" for line in log)]) if log else "Its log is empty."
        return OwnServerError(self.server.name, f"server {self.server.name} ({self.program.image}): {what}. {end}")


def _reason(error: DockerError) -> str:
    """The line of docker's output that has the reason."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line.startswith("Error response from daemon")), lines[-1])


def _of_agent(error: AgentError) -> str:
    """The agent's own words, without its name and the kind of error."""
    return str(error).partition(" failed: ")[2].rpartition(" (")[0] or str(error)


def _state(found: Mapping[str, Any]) -> State:
    return State(
        bool(found["Running"]), found["StartedAt"], found["Pid"], found["ExitCode"], bool(found["OOMKilled"]),
        found["Error"],
    )  # fmt: skip


def _lines(docker: Docker, container: str, lines: int) -> list[str]:
    heard: Sequence[str] = docker(
        "logs", "--tail", str(lines), container, check=False, stream=lambda _: None, silence_s=TEARDOWN_S
    ).splitlines()
    return [line[:500] for line in heard]
