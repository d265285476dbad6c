"""The host of a user's own server: its agent fulfils the contract from outside the program."""

from __future__ import annotations

import inspect
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from impair.endpoint import agent as endpoint
from servers.contract import OPERATIONS, NotOfferedError, Server
from servers.own.agent import Own, parsed
from servers.own.listeners import listeners
from servers.probes import ServerIsGone

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = Own("mine", "my/app@sha256:1", 8443, ("h1", "h2"), "/health", lambda: "127.0.0.1")


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204 if self.path == "/health" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    if not shutil.which("openssl"):
        pytest.skip("no openssl, which makes a certificate")
    folder = tmp_path_factory.mktemp("certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-batch", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
         "-days", "1", "-subj", "/CN=server", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@contextmanager
def program(tls: ssl.SSLContext, *alpn: str) -> Iterator[int]:
    """A server of HTTP/1.1 on a port of this machine, which negotiates these identifiers."""
    tls.set_alpn_protocols(list(alpn))
    with HTTPServer(("127.0.0.1", 0), Healthy) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_it_has_every_operation_of_the_contract(operation: str) -> None:
    promised = [each for each in inspect.signature(getattr(Server, operation)).parameters if each != "self"]
    there = inspect.signature(OWN.operations[operation]).parameters
    assert [each for each in there if there[each].default is inspect.Parameter.empty or each in promised] == promised


def test_it_is_an_endpoint() -> None:
    assert OWN.operations.keys() >= endpoint.OPERATIONS.keys()


def test_its_image_shares_the_layers_of_the_others_and_has_the_objects() -> None:
    def steps(file: str) -> list[str]:
        written = re.sub(r"\\\n", "", re.sub(r"(?m)^#.*\n", "", (ROOT / file).read_text()))
        return [" ".join(line.split()) for line in written.splitlines()]

    own, nginx = steps("servers/own/Dockerfile"), steps("nginx/Dockerfile")
    assert own[:4] == nginx[:4]
    assert own[4] == "RUN PYTHONPATH=/tmp python3 -Bm servers.objects /www && mkdir /certs /www/site"
    assert own[-1] == nginx[-1]


def test_the_command_line_says_what_is_known_of_the_program() -> None:
    found = parsed(["--name", "mine", "--image", "my/app@sha256:1", "--port", "8443", "--protocols", "h1,h2",
                    "--ready", "/health"])  # fmt: skip
    assert replace(found, address=OWN.address) == OWN


def test_a_program_is_ready_when_it_answers_each_protocol(tls: ssl.SSLContext) -> None:
    with program(tls, "http/1.1") as port:
        own = replace(OWN, port=port, protocols=("h1",))
        own.await_answer(1.0)
        with pytest.raises(ServerIsGone, match=r"mine answers /other with status 503"):
            replace(own, ready="/other").await_answer(0.0)
        with pytest.raises(ServerIsGone, match=rf"mine does not answer h2 on port {port}|does not negotiate h2"):
            replace(own, protocols=("h1", "h2")).await_answer(0.0)
        with pytest.raises(ServerIsGone, match=rf"mine does not answer QUIC on UDP port {port}"):
            replace(own, protocols=("h3",)).await_answer(0.0)
    with pytest.raises(ServerIsGone, match=rf"mine does not answer h1 on port {port}: .*refused"):
        own.await_answer(0.0)


def test_a_restarted_program_has_another_health(tls: ssl.SSLContext) -> None:
    with program(tls, "http/1.1") as port:
        own = replace(OWN, port=port, protocols=("h1",))
        if listeners(port) is None:
            pytest.skip("this kernel lists no sockets")
        first = own.health()
        assert own.health() == first
        with pytest.raises(ServerIsGone, match=rf"mine does not listen on UDP port {port}"):
            replace(own, protocols=("h1", "h3")).health()
    with pytest.raises(ServerIsGone, match=rf"mine does not listen on TCP port {port}"):
        own.health()
    with socket.create_server(("127.0.0.1", port)):
        assert own.health() != first


def test_what_is_not_known_is_not_invented() -> None:
    with socket.create_server(("", 0), family=socket.AF_INET) as server:
        port = server.getsockname()[1]
        own = replace(OWN, port=port)
        info, windows = own.info(), own.windows(port)
    assert (info.quic_congestion, info.offers, info.streams, info.tls_library) == (None, (), {}, "unknown")
    assert info.version == "my/app@sha256:1"
    assert windows["tcp_rmem_max_bytes"]
    assert windows["udp_rcvbuf_bytes"] is windows["http3_stream_buffer_bytes"] is None
    with pytest.raises(KeyError):
        own.windows(port + 1)
    with pytest.raises(NotOfferedError):
        own.answers()
    with pytest.raises(NotOfferedError, match="on how many CPUs"):
        own.fresh(workers=2)


def test_a_port_that_only_root_may_have_is_a_deviation() -> None:
    low = replace(OWN, port=443)
    assert list(low.closed_port("1024")) == [
        "net.ipv4.ip_unprivileged_port_start = 1024: mine cannot listen on port 443"
    ]
    assert not [*low.closed_port("0"), *low.closed_port("none"), *OWN.closed_port("1024")]
