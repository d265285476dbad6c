"""The server: what it serves, how it is set up, and that a restart of its workers is told truthfully."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from headwind.settings import LARGEST_BDP_BYTES, Settings, Windows
from nginx import agent
from nginx.master import Nginx
from servers import objects
from servers.probes import QUIC_TIMEOUT_S, Probes, ServerIsGone, unknown_initial
from servers.processes import children

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIGURATION = (ROOT / "nginx" / "nginx.conf").read_text()
SERVERS = CONFIGURATION.split("server {")[1:]
PORTS = [
    (resumes, discovers, Settings(windows).port(resumes=resumes, discovers=discovers))
    for windows in Windows for resumes in (False, True) for discovers in (False, True)
]  # fmt: skip
VERSION_NEGOTIATION = b"\x80" + bytes(4) + b"\x08" + bytes(8) + b"\x00" + bytes.fromhex("00000001")

# A stand-in for nginx's master: two workers that sleep, each started again when it ends (at most `lives` times in all).
# On SIGHUP it reads how many there are to be from the file, begins that many anew, and ends the others.
MASTER = """
import os, signal, sys, time
lives, file, wanted, children, old, asked = int(sys.argv[1]), sys.argv[2], 2, set(), set(), []
signal.signal(signal.SIGHUP, lambda *_: asked.append(1))  # no more, or a worker that was just begun would be missed
while True:
    if asked:
        asked.clear()
        wanted = int(open(file).read().removeprefix("worker_processes ").rstrip(";\\n"))
        old |= children
        children.clear()
    while len(children) < wanted and lives:
        pid, lives = os.fork(), lives - 1
        if pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.pause()
        children.add(pid)
    for each in old:
        os.kill(each, signal.SIGKILL)
    if not children:
        time.sleep(60)
    try:
        ended = os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        ended = 0
    children.discard(ended)
    old.discard(ended)
    if not ended:
        time.sleep(0.002)
"""


def test_the_site_has_every_object_in_its_size(tmp_path: Path) -> None:
    objects.write_site(tmp_path / "site")
    sizes = {file.name: file.stat().st_size for file in (tmp_path / "site").iterdir()}
    assert sizes == {
        "index.html": 612,
        "1k": 1024,
        "10k": 10240,
        "100k": 102400,
        "1m": 1 << 20,
        "10m": 10 << 20,
        "100m": 100 << 20,
    }


def test_objects_are_the_same_at_every_build_and_do_not_compress() -> None:
    import zlib

    assert objects.object_bytes(10_000) == objects.object_bytes(10_000)
    assert len(zlib.compress(objects.object_bytes(10_000))) > 9_900


def test_the_index_is_a_whole_page() -> None:
    page = objects.index_page().decode()
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")


def directive(name: str) -> list[str]:
    return re.findall(rf"^\s*{name} +([^;]+);", CONFIGURATION, re.MULTILINE)


def test_all_protocols_are_served_on_the_port_of_each_setting() -> None:
    listeners = [words.split()[:2] for words in directive("listen")]
    expected = [[str(port), kind] for _, _, port in PORTS for kind in ("ssl", "quic")]
    assert sorted(listeners) == sorted(expected)
    assert directive("http2") == directive("http3") == ["on"]
    assert len(directive("ssl_certificate")) == len(directive("root")) == 1


def test_nothing_that_differs_between_protocols_is_left_to_a_default() -> None:
    assert directive("ssl_protocols") == ["TLSv1.3"]
    assert directive("ssl_session_tickets") == directive("ssl_session_cache") == directive("quic_gso") == ["off"]
    assert directive("http2_max_concurrent_streams") == directive("http3_max_concurrent_streams")
    assert int(directive("http3_max_concurrent_streams")[0]) >= 128
    assert int(directive("keepalive_requests")[0]) >= 10**9
    assert int(directive("worker_connections")[0]) > 100 * 128, "a QUIC stream takes a connection as well"


@pytest.mark.parametrize(("text", "size"), [("4m", 4 << 20), ("208k", 208 << 10), ("65536", 65536)])
def test_the_wanted_buffer_is_read_from_the_configuration(text: str, size: int) -> None:
    assert agent._wanted_rcvbuf_bytes(f"listen 443 ssl;\nlisten 443 quic reuseport rcvbuf={text};") == size


def test_no_window_of_the_server_binds_below_the_largest_product_and_a_fresh_one_is_as_shipped() -> None:
    buffers = agent._stream_buffers(CONFIGURATION)
    for _, _, port in PORTS:
        is_fresh = port >= Settings(Windows.AS_SHIPPED).port()
        assert buffers[port] == 64 << 10 if is_fresh else buffers[port] >= 2 * LARGEST_BDP_BYTES
        (server,) = [server for server in SERVERS if f"listen {port} quic" in server]
        assert is_fresh != ("buf" in server), "a fresh nginx sets no buffer"


def test_only_what_is_asked_to_wait_to_resume_a_session_or_to_offer_http3_does_so() -> None:
    assert directive("access_log") == ["off"]
    assert directive("js_content") == []
    assert len({port for _, _, port in PORTS}) == len(SERVERS)
    for resumes, discovers, port in PORTS:
        (server,) = [server for server in SERVERS if f"listen {port} ssl" in server]
        included = {line.strip() for line in server.splitlines() if "include" in line}
        sessions, offer = ["include sessions.conf;"] * resumes, ["include offer.conf;"] * discovers
        assert included == {"include delayed.conf;", *sessions, *offer}
    delayed = (ROOT / "nginx" / "delayed.conf").read_text()
    assert re.findall(r"^location (.*) {", delayed, re.MULTILINE) == [
        '~ "^/after/(?<after_ms>[0-9]{1,5})ms(?<object>/.*)$"', "/delayed/",
    ]  # fmt: skip


@contextmanager
def master(pid_file: Path, lives: int) -> Iterator[int]:
    command = [sys.executable, "-c", MASTER, str(lives), str(pid_file.with_name("workers.conf"))]
    process = subprocess.Popen(command, start_new_session=True)
    pid_file.write_text(f"{process.pid}\n")
    try:
        deadline = time.monotonic() + 10
        while len(children(process.pid)) < min(lives, 2):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclass(frozen=True)
class Sent(Probes):
    """Probes that ask nobody: which would have been sent, in order."""

    all: list[object] = field(default_factory=list)

    def tcp(self) -> None:
        self.all.append("tcp")

    def quic(self, count: int) -> None:
        self.all.append(count)

    def sockets(self, workers: int) -> None:
        self.all.append(f"{workers} sockets")


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def nginx(tmp_path: Path, sent: Sent) -> Nginx:
    return Nginx(tmp_path / "nginx.pid", tmp_path / "workers.conf", tmp_path / "offer.conf", probes=sent)


def test_a_fresh_server_has_new_workers_under_the_same_master(nginx: Nginx, sent: Sent) -> None:
    with master(nginx.pid_file, lives=4) as pid:
        before = nginx.health()
        restarted = nginx.fresh()
        after = nginx.health()
    assert before.master == after.master == pid
    assert before.master_started_s == after.master_started_s
    assert len(before.workers) == len(after.workers) == 2
    assert not set(before.workers) & set(after.workers)
    assert restarted["workers"] == after.workers
    assert sent.all == ["tcp", 16]


@pytest.mark.parametrize("wanted", [1, 3])
def test_a_fresh_server_has_as_many_workers_as_are_wanted(nginx: Nginx, sent: Sent, wanted: int) -> None:
    with master(nginx.pid_file, lives=20) as pid:
        before = nginx.health().workers
        restarted = nginx.fresh(wanted)
        after = nginx.health()
        again = nginx.fresh(wanted)
    assert after.master == pid
    assert len(restarted["workers"]) == len(again["workers"]) == wanted
    assert after.workers == restarted["workers"]
    assert not set(before) & set(after.workers)
    assert sent.all == [f"{wanted} sockets", "tcp", 1 if wanted == 1 else 24, "tcp", 1 if wanted == 1 else 24]


def test_another_condition_for_offers_is_read_by_new_workers_and_the_same_one_changes_nothing(
    nginx: Nginx, sent: Sent
) -> None:
    nginx.offer_file.write_text("always")
    with master(nginx.pid_file, lives=20):
        before = nginx.health().workers
        assert not nginx.offer("always")
        assert nginx.health().workers == before
        assert nginx.offer("sometimes")
        assert not set(nginx.health().workers) & set(before)
    assert nginx.offer_file.read_text() == "sometimes"
    assert sent.all == ["2 sockets", "tcp", 16]


def test_the_condition_is_a_map_of_the_variable_that_the_answers_have(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def keep(_: Nginx, text: str) -> bool:
        given.append(text)
        return True

    monkeypatch.setattr(Nginx, "offer", keep)
    agent.offer()
    agent.offer("rtt >= 80ms")
    variable = re.findall(r"Alt-Svc (\$\w+);", (ROOT / "nginx" / "offer.conf").read_text())
    assert re.findall(r"^map \S+ (\$\w+) {", "".join(given), re.MULTILINE) == 2 * variable
    assert given[0] == (ROOT / "nginx" / "offer-always.conf").read_text()
    always, conditional = (re.findall(r"'h3=.*?'", text) for text in given)
    assert always == conditional, "the same offer"
    with pytest.raises(ValueError, match="not of the form"):
        agent.offer("rtt > 1")


def test_workers_that_do_not_come_back_are_an_error(nginx: Nginx, sent: Sent) -> None:
    hasty = replace(nginx, timeout_s=0.3)
    with master(nginx.pid_file, lives=3), pytest.raises(ServerIsGone, match="no new workers"):
        hasty.fresh()
    assert sent.all == []


def test_a_crash_of_a_worker_shows_in_the_health(nginx: Nginx) -> None:
    with master(nginx.pid_file, lives=3):
        before = nginx.health().workers
        os.kill(before[0], signal.SIGKILL)
        deadline = time.monotonic() + 10
        while nginx.health().workers in (before, before[1:]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert before[1] in nginx.health().workers


@pytest.mark.parametrize("content", [None, "", "4194305"])
def test_without_a_master_there_is_no_health(nginx: Nginx, content: str | None) -> None:
    if content is not None:
        nginx.pid_file.write_text(content)
    with pytest.raises(ServerIsGone, match="nginx is not running"):
        nginx.health()


def test_the_first_datagram_asks_for_an_unknown_version() -> None:
    datagram = unknown_initial()
    assert len(datagram) == 1200
    assert datagram[0] & 0xC0 == 0xC0, "a long header with the fixed bit"
    assert all(byte & 0x0F == 0x0A for byte in datagram[1:5]), "a version that is reserved for this"
    assert (datagram[5], datagram[14]) == (8, 8), "lengths of the connection ids"
    assert unknown_initial()[6:14] != datagram[6:14]


@contextmanager
def listening(kind: socket.SocketKind, serve: Callable[[socket.socket], None]) -> Iterator[Probes]:
    """A server on the loopback, and probes of it."""
    with closing(socket.socket(socket.AF_INET, kind)) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)
        if kind == socket.SOCK_STREAM:
            server.listen()
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        yield Probes(server.getsockname()[1], quic_timeout_s=0.2)
        thread.join()


def udp(answer: bytes | None, count: int) -> Callable[[socket.socket], None]:
    def serve(server: socket.socket) -> None:
        for _ in range(count):
            _, sender = server.recvfrom(2048)
            if answer is not None:
                server.sendto(answer, sender)

    return serve


def tcp(answer: bytes) -> Callable[[socket.socket], None]:
    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(answer)

    return serve


def test_a_version_negotiation_proves_a_quic_server() -> None:
    with listening(socket.SOCK_DGRAM, udp(VERSION_NEGOTIATION, 8)) as probes:
        replace(probes, quic_timeout_s=QUIC_TIMEOUT_S).quic(8)


@pytest.mark.parametrize(("answer", "complaint"), [(None, "does not answer"), (b"hello, hello", "not a Version Neg")])
def test_anything_else_does_not(answer: bytes | None, complaint: str) -> None:
    patience_s = QUIC_TIMEOUT_S if answer else 0.2
    with listening(socket.SOCK_DGRAM, udp(answer, 1)) as probes, pytest.raises(ServerIsGone, match=complaint):
        replace(probes, quic_timeout_s=patience_s).quic(1)


def test_a_refusal_of_plain_http_proves_a_tls_server() -> None:
    with listening(socket.SOCK_STREAM, tcp(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as probes:
        probes.tcp()


def test_a_server_that_takes_plain_http_is_the_wrong_one() -> None:
    with (
        listening(socket.SOCK_STREAM, tcp(b"HTTP/1.1 200 OK\r\n\r\n")) as probes,
        pytest.raises(ServerIsGone, match="200 OK"),
    ):
        probes.tcp()


def test_a_closed_port_is_an_error() -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ServerIsGone, match="TCP port"):
            Probes(unused.getsockname()[1]).tcp()


def test_an_nginx_with_another_configuration_is_odd() -> None:
    title = "nginx: master process nginx -c {} -g daemon off; worker_processes 1; "
    assert agent.odd_command(title.format(agent.CONFIGURATION)) == []
    (odd,) = agent.odd_command(title.format("/srv/slow.conf"))
    assert "another configuration" in odd
    assert "/srv/slow.conf" in odd
