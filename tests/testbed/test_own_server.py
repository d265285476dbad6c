"""The user's server next to its host: the commands that are run, and what is said when it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwind.servers import NGINX, Contract, Fresh, Program, own_server
from headwind.testbed.agent import Agent, AgentError
from headwind.testbed.docker import DockerError
from headwind.testbed.own_server import (
    SYSCTLS,
    OwnImage,
    OwnServer,
    OwnServerError,
    agent_arguments,
    ensure_image,
    host_arguments,
    program_arguments,
)

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Program("my/app:1.2", ("h1", "h2"), ("app", "-v"), (("LOG", "no"),), 8443, "/health")
MINE = own_server("mine", PROGRAM)
IMAGE = OwnImage("my/app:1.2", "sha256:1", "my/app@sha256:2")
REFUSED = AgentError("the mine failed: mine does not answer h1 on port 8443: refused (ServerIsGone)")


@dataclass
class FakeDocker:
    """Records commands; `running` is what inspect finds, one after the other, the last one for good."""

    running: list[bool] = field(default_factory=lambda: [True])
    fails: tuple[str, ...] = ()
    log: str = "line one\nline two\n"
    images: dict[str, str] = field(default_factory=dict)
    commands: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, *arguments: str, **_: Any) -> str:
        self.commands.append(arguments)
        if arguments[0] in self.fails:
            lines = (
                f"`docker {arguments[0]}` failed:",
                f"  Error response from daemon: no {arguments[0]}",
                "  Error: x",
            )
            raise DockerError("\n".join(lines))
        match arguments[:2]:
            case ("create", _):
                return "program-id\n"
            case ("inspect", _):
                running = self.running.pop(0) if len(self.running) > 1 else self.running[0]
                state = {
                    "Running": running,
                    "StartedAt": "now",
                    "Pid": 7,
                    "ExitCode": 3,
                    "OOMKilled": False,
                    "Error": "",
                }
                return json.dumps(state)
            case ("logs", _):
                return self.log
            case ("image", "inspect"):
                return self.images.get(arguments[-1], "")
        return ""

    @property
    def verbs(self) -> list[str]:
        return [command[0] for command in self.commands]


@dataclass
class FakeAgent:
    """Answers `fresh` after it has raised what is listed."""

    errors: list[AgentError] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def call(self, operation: Any, *_: Any, **__: Any) -> Any:
        self.asked.append(getattr(operation, "name", operation))
        if self.errors:
            raise self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]
        return {}


def start(docker: FakeDocker, agent: FakeAgent, server: Any = MINE, limit_s: float = 0.0) -> OwnServer:
    stand_in: Any = agent
    own = OwnServer.start("p", "host-id", server, IMAGE, stand_in, docker, limit_s=limit_s)
    assert isinstance(own.agent, FakeAgent | Agent)
    return own


def test_a_program_has_no_capability_and_nothing_of_ours_but_two_volumes_to_read() -> None:
    arguments = program_arguments("p", "host-id", MINE, IMAGE)
    text = " ".join(arguments)
    for needed in ("--network container:host-id", "--cap-drop ALL", "--security-opt no-new-privileges",
                   "--pids-limit 512", "--memory 2g", "--memory-swap 2g", "--volumes-from host-id:ro",
                   "--label headwind.project=p", "--env LOG=no"):  # fmt: skip
        assert needed in text
    assert arguments[0] == "create"
    assert arguments[-3:] == ("sha256:1", "app", "-v"), "by its id, so that a tag that moves changes nothing"
    for never in ("--volume ", "--mount", "--privileged", "--cap-add", "--tmpfs"):
        assert never not in text


def test_the_interop_contract_adds_variables_and_a_place_for_logs() -> None:
    server = own_server("mine", replace(PROGRAM, contract=Contract.QUIC_INTEROP))
    text = " ".join(program_arguments("p", "host-id", server, IMAGE))
    for needed in ("--env ROLE=server", "--env TESTCASE=http3", "--env LOG=no", "--tmpfs /logs"):
        assert needed in text


def test_a_host_has_the_settings_of_the_other_servers_and_every_port_is_free() -> None:
    shared = yaml.safe_load((ROOT / "compose.yaml").read_text())["x-endpoint-sysctls"]
    assert {**shared, "net.ipv4.ip_unprivileged_port_start": "0"} == SYSCTLS
    arguments = host_arguments("p", "net", "10.0.0.13", "headwind-own:1")
    text = " ".join(arguments)
    for name, value in SYSCTLS.items():
        assert f"--sysctl {name}={value}" in text
    assert "--network net --ip 10.0.0.13" in text
    assert "--volume /www --volume /certs" in text
    assert (ROOT / arguments[-1].removeprefix("/opt/headwind/")).exists()


def test_the_agent_is_told_the_image_by_its_digest() -> None:
    assert agent_arguments(MINE, IMAGE) == (
        "--name", "mine", "--image", "my/app@sha256:2", "--port", "8443", "--protocols", "h1,h2", "--ready", "/health",
    )  # fmt: skip
    assert "my/app:1.2@sha256:1" in agent_arguments(MINE, OwnImage("my/app:1.2", "sha256:1"))


def test_a_shipped_server_is_none_of_the_users_own() -> None:
    with pytest.raises(ValueError, match="nginx"):
        agent_arguments(NGINX, IMAGE)


def test_an_image_that_is_here_is_not_pulled() -> None:
    docker = FakeDocker(images={"my/app:1.2": 'sha256:1 ["my/app@sha256:2"]\n'})
    assert ensure_image(MINE, pytest.fail, docker) == IMAGE
    local = FakeDocker(images={"my/app:1.2": "sha256:1 []\n"})
    assert ensure_image(MINE, pytest.fail, local) == OwnImage("my/app:1.2", "sha256:1")


def test_an_image_that_is_nowhere_is_an_error_with_a_way_out() -> None:
    lines: list[str] = []
    with pytest.raises(
        OwnServerError, match=r"no image my/app:1.2 here, .*no pull.*`docker build -t my/app:1.2"
    ) as error:
        ensure_image(MINE, lines.append, FakeDocker(fails=("pull",)))
    assert (error.value.server, lines) == ("mine", ["pulling my/app:1.2, for server mine"])


def test_a_restart_destroys_what_the_program_leaves_before_it_starts_again() -> None:
    docker, agent = FakeDocker(), FakeAgent()
    own = start(docker, agent)
    docker.commands.clear()
    agent.asked.clear()
    own.fresh()
    assert docker.verbs == ["kill", "start"]
    assert agent.asked == ["forget_all", "fresh"]


def test_a_program_that_is_kept_is_only_restarted_if_it_has_ended() -> None:
    kept = own_server("mine", replace(PROGRAM, fresh=Fresh.KEEP))
    docker = FakeDocker()
    own = start(docker, FakeAgent(), kept)
    docker.commands.clear()
    own.fresh()
    assert docker.verbs == ["inspect"]
    docker.running = [False]
    own.fresh()
    assert docker.verbs == ["inspect", "inspect", "kill", "start"]


@pytest.mark.parametrize(
    ("docker", "agent", "message"),
    [
        (FakeDocker(running=[False]), FakeAgent([REFUSED]), "its program ended with status 3. The end of its log:\n"),
        (FakeDocker(), FakeAgent([REFUSED]), "mine does not answer h1 on port 8443: refused. It has to listen"),
        (FakeDocker(fails=("start",), log=""), FakeAgent(), "did not start: Error response from daemon: no start. Its"),
        (FakeDocker(fails=("create",)), FakeAgent(), "was not created: Error response from daemon: no create"),
    ],
)  # fmt: skip
def test_a_program_that_does_not_come_up_is_an_error_and_nothing_of_it_is_left(
    docker: FakeDocker, agent: FakeAgent, message: str
) -> None:
    with pytest.raises(OwnServerError) as error:
        start(docker, agent)
    assert str(error.value).startswith("server mine (my/app:1.2)")
    assert message in str(error.value)
    assert docker.verbs[-1] == ("create" if "create" in docker.fails else "rm")


def test_a_fault_of_the_agent_is_not_blamed_on_the_program() -> None:
    fault = AgentError("the mine failed: no such file (FileNotFoundError)")
    with pytest.raises(AgentError, match="no such file"):
        start(FakeDocker(), FakeAgent([fault]))


def test_a_program_may_take_its_time() -> None:
    agent = FakeAgent([REFUSED, REFUSED])
    docker = FakeDocker()
    taken: Callable[..., Any] = agent.call

    def call(operation: Any, *rest: Any, **more: Any) -> Any:
        if len(agent.asked) == 2:
            agent.errors.clear()
        return taken(operation, *rest, **more)

    agent.call = call  # type: ignore[method-assign]
    assert start(docker, agent, limit_s=60.0).failure() == ""
    assert agent.asked == ["fresh"] * 3
    docker.running = [False]
    assert OwnServer(MINE, "id", start(docker, FakeAgent()).agent, docker).failure().endswith("line two")
