"""The server contract: every server's agent fulfils it, and serves the same ports, protocols and files."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from headwind.servers import FURTHER, NGINX
from headwind.settings import PORTS, Settings
from impair.endpoint import agent as endpoint
from impair.wire import Operation
from servers.caddy import agent as caddy
from servers.contract import (
    ALT_SVC,
    DELAY,
    OFFER_IF,
    OPERATIONS,
    PUSH,
    SESSIONS,
    WINDOWS,
    WORKERS,
    Info,
    NotOfferedError,
    Server,
    tail,
)
from servers.haproxy.agent import congestion, congestion_windows, streams
from servers.nghttpd import agent as nghttpd
from servers.probes import old_hello

ROOT = Path(__file__).resolve().parent.parent.parent
SERVERS = {NGINX.name: "nginx", **{name: f"servers/{name}" for name in FURTHER}}
OTHERS = FURTHER
HAPROXY = (ROOT / "servers/haproxy/haproxy.cfg").read_text()
BUILD_INFO = (
    "go\tgo1.26.5\npath\tgithub.com/caddyserver/caddy/cmd/caddy\nmod\tgithub.com/caddyserver/caddy\t(devel)\t\n"
)


def operations(name: str) -> dict[str, Operation]:
    found: dict[str, Operation] = import_module(SERVERS[name].replace("/", ".") + ".agent").OPERATIONS
    return found


def text(name: str, file: str) -> str:
    return (ROOT / SERVERS[name] / file).read_text()


def test_the_contract_names_its_operations() -> None:
    assert set(OPERATIONS) == {name for name in vars(Server) if not name.startswith("_")}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", SERVERS)
def test_every_server_has_every_operation_of_the_contract(name: str, operation: str) -> None:
    promised = [each for each in inspect.signature(getattr(Server, operation)).parameters if each != "self"]
    there = inspect.signature(operations(name)[operation]).parameters
    assert [each for each in there if there[each].default is inspect.Parameter.empty or each in promised] == promised


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_is_an_endpoint(name: str) -> None:
    assert operations(name).keys() >= endpoint.OPERATIONS.keys()
    assert operations(name)["examine"] is not endpoint.OPERATIONS["examine"]


@pytest.mark.parametrize("name", OTHERS)
def test_a_server_without_a_log_refuses_to_report_its_answers(name: str) -> None:
    with pytest.raises(NotOfferedError, match=f"{name} keeps no log of its answers"):
        operations(name)["answers"]()


@pytest.mark.parametrize("name", SERVERS)
def test_images_share_their_first_layers_and_copy_the_code_last(name: str) -> None:
    def steps(server: str) -> list[str]:
        written = re.sub(r"\\\n", "", re.sub(r"(?m)^#.*\n", "", text(server, "Dockerfile")))
        return [" ".join(line.split()) for line in written.splitlines()]

    assert steps(name)[:5] == steps("nginx")[:5]
    assert steps(name)[-1] == steps("nginx")[-1] == "COPY . /opt/headwind/"
    assert len(steps(name)) == 6 + (name in OTHERS)


@pytest.mark.parametrize("name", OTHERS)
def test_the_command_of_the_entrypoint_is_what_the_agent_expects(name: str) -> None:
    expected: str = import_module(f"servers.{name}.agent").COMMAND
    started = text(name, "entrypoint.sh").splitlines()[-1].partition("supervise.sh ")[2]
    assert started == expected.replace(str(ROOT), "/opt/headwind")


@pytest.mark.parametrize("name", OTHERS)
def test_the_watched_programs_of_a_server_are_its_own_and_its_configuration_is_among_them(name: str) -> None:
    watched = text(name, "programs").split()
    folder = f"opt/headwind/servers/{name}"
    configuration = [path for path in watched if path.startswith(folder)]
    assert configuration
    assert all((ROOT / path.removeprefix("opt/headwind/")).is_file() for path in configuration)
    assert any(path.startswith("usr/") for path in watched), "the program"


def test_caddy_serves_all_protocols_on_the_port_of_each_setting() -> None:
    configuration = json.loads(text("caddy", "caddy.json"))["apps"]
    servers = configuration["http"]["servers"]
    assert servers.keys() == {*PORTS, "offering"}
    assert caddy.ports() == (*PORTS.values(), Settings().port(discovers=True))
    assert configuration["tls"]["session_tickets"] == {"disabled": True}
    for server in servers.values():
        assert server["protocols"] == ["h1", "h2", "h3"]
        (policy,) = server["tls_connection_policies"]
        assert policy["protocol_min"] == "tls1.3"
        assert policy["default_sni"] == policy["fallback_sni"] == "server", "the certificate for clients without a name"
        assert "logs" not in server, "a log of accesses costs time"
    assert "QUIC_GO_DISABLE_GSO=true" in text("caddy", "entrypoint.sh")


def test_haproxy_serves_all_protocols_on_the_port_of_each_setting() -> None:
    assert congestion_windows(HAPROXY) == {443: 16 << 20, 8443: 480 << 10, 445: 16 << 20, 8445: 480 << 10}
    for port in congestion_windows(HAPROXY):
        assert re.search(rf"^    bind 0\.0\.0\.0:{port} ssl .* alpn h2,http/1\.1$", HAPROXY, re.MULTILINE)
    offers = {
        front.split()[0]: re.findall(r"alt-svc 'h3=\":(\d+)\"", front) for front in HAPROXY.split("\nfrontend ")[1:]
    }
    assert offers == {
        "unlimited": [], "as-shipped": [], "unlimited-offering": ["445"], "as-shipped-offering": ["8445"],
    }  # fmt: skip
    assert "tune.quic.disable-udp-gso\n" in HAPROXY
    assert "ssl-min-ver TLSv1.3 no-tls-tickets" in HAPROXY
    assert not re.search(r"^\s*(log |option httplog|cache )", HAPROXY, re.MULTILINE)


def test_nghttpd_pushes_the_picture_of_each_page_of_one_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nghttpd, "SERVER", replace(nghttpd.SERVER, workers_file=tmp_path / "workers"))
    (tmp_path / "workers").write_text("2\n")
    (tmp_path / "bytes").mkdir()
    for name in ("1-of-290000.html", "1-of-100.html", "2-of-100.html", "100.png"):
        (tmp_path / "bytes" / name).touch()
    started = (
        text("nghttpd", "start.sh").replace("/srv/headwind", str(tmp_path)).replace("exec nghttpd", "echo nghttpd")
    )
    said = subprocess.run(
        ["bash", "-c", started], env={"HEADWIND_WORKERS": "2", "PATH": os.environ["PATH"]}, capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    assert said.strip() == nghttpd.command(tmp_path)
    assert "-p/bytes/1-of-100.html=/bytes/100.png?1 -p/bytes/1-of-290000.html=/bytes/290000.png?1" in said
    assert said.count("-p/") == 2


def test_what_haproxy_is_configured_for_is_read_from_its_configuration() -> None:
    assert streams(HAPROXY) == {"h2": 1024, "h3": 1024}
    assert congestion(HAPROXY) == "cubic"
    assert congestion(HAPROXY.replace("cubic(16m)", "bbr(16m)")) == "bbr"


def test_caddys_tls_library_is_that_of_its_go() -> None:
    assert caddy.go_version(BUILD_INFO) == "crypto/tls of go1.26.5"
    assert caddy.go_version("") == "unknown"


def test_the_probe_of_haproxy_is_a_hello_without_tls_1_3() -> None:
    hello = old_hello()
    assert hello[:1] == b"\x16", "a handshake record"
    assert b"\x00\x2b" not in hello[:5]
    assert hello[9:11] == b"\x03\x03"


@pytest.mark.parametrize("name", OTHERS)
def test_a_log_of_answers_is_refused_by_servers_that_offer_nothing_to_log(name: str) -> None:
    with pytest.raises(NotOfferedError, match=f"{name} keeps no log"):
        operations(name)["answers"]()


@pytest.mark.parametrize("name", OTHERS)
def test_windows_of_a_port_that_is_not_served_are_refused(name: str) -> None:
    with pytest.raises(KeyError):
        operations(name)["windows"](port=444)


def test_offers_are_words_of_the_contract() -> None:
    known = {ALT_SVC, DELAY, OFFER_IF, PUSH, SESSIONS, WINDOWS, WORKERS}
    for name in SERVERS:
        (written,) = re.findall(r"offers=\(([A-Z_, ]+)\)", text(name, "agent.py"))
        assert {word.strip() for word in written.split(",") if word.strip()} <= {
            each.upper().replace("-", "_") for each in known
        }
    assert get_type_hints(Info)["offers"] == tuple[str, ...]


def test_the_end_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "error.log"
    assert tail(log) == ""
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    assert tail(log, 2) == "line 98\nline 99"
