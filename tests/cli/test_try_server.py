"""`lab.py try-server` on a fake testbed: what it prints, and that other bytes are an exit status of 1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import lab
from headwind.arm import Protocol
from headwind.cli.try_server import Wanted, fault_of
from headwind.servers import Server
from impair.messages import Fetched
from tests.fake_testbed import Sabotage, World, fake_dependencies, fake_testbed
from tests.matrix_files import MINIMAL

pytestmark = pytest.mark.usefixtures("signals")


def tried(name: str, world: World) -> int:
    return lab.main(["try-server", name], fake_dependencies(lambda: fake_testbed(world)))


def test_a_server_is_described_and_every_protocol_gets_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert tried("nginx", World()) == 0
    said = capsys.readouterr().out
    for line in (
        "server: nginx 1.30.6", "TLS library: OpenSSL 3.6.0", "QUIC congestion control: cubic", "features: windows",
        "streams per connection: h2 1024",
        "windows of port 443: http3_stream_buffer_bytes 16777216, udp_rcvbuf_bytes unknown",
        "every protocol gives the bytes of /1m",
    ):  # fmt: skip
        assert f"{line}\n" in said
    hashes = {line.rpartition(" ")[2] for line in said.splitlines() if line.startswith(("h1: ", "h2: ", "h3: "))}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (Fetched(200, "h2", 3, "ab", ""), ""),
        (Fetched(200, "http/1.1", 3, "ab", ""), "the server negotiated http/1.1 instead of h2"),
        (Fetched(200, None, 3, "ab", ""), "the server negotiated no protocol instead of h2"),
        (Fetched(0, None, 0, "", "timed out"), "timed out"),
        (Fetched(200, "h2", 1, "cd", ""), "expected 3 bytes with sha256 ab, received 1 byte with sha256 cd"),
    ],
)
def test_a_fault_is_the_error_the_protocol_or_the_bytes(found: Fetched, fault: str) -> None:
    """Of another protocol, the hash was printed as wrong that had been received; of a file's error, nothing."""
    assert fault_of(found, Protocol.H2, Wanted("/a", 3, "ab")) == fault


@pytest.mark.parametrize(
    ("sabotage", "word"),
    [(Sabotage(altered=True), ", received 1,048,576 bytes with sha256 "), (Sabotage(unfetched=True), "timed out")],
)
def test_a_server_with_other_bytes_is_refused(
    sabotage: Sabotage, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tried("nginx", World(comparing=sabotage)) == 1
    said = capsys.readouterr().out
    assert "/1m is wrong over h1, h2, h3" in said
    assert word in said


def test_every_file_of_the_content_is_fetched_over_every_protocol(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/a b.css").write_text("one")
    (tmp_path / "site/index.html").write_text("two")
    (tmp_path / "matrix.yaml").write_text(f"content: site\n{MINIMAL}")
    told = ["try-server", "nginx", "--matrix", str(tmp_path / "matrix.yaml")]
    world = World(files={"/site/a%20b.css": b"one", "/site/index.html": b"two"})
    assert lab.main(told, fake_dependencies(lambda: fake_testbed(world))) == 0
    assert "every protocol gives the bytes of /1m and of 2 files of the content\n" in capsys.readouterr().out
    world.files["/site/a%20b.css"] = b"eno"
    assert lab.main(told, fake_dependencies(lambda: fake_testbed(world))) == 1
    said = capsys.readouterr().out
    assert "/site/a%20b.css is wrong over h1, h2, h3: expected 3 bytes with sha256 " in said
    assert "index.html" not in said


def test_an_unknown_server_is_a_usage_error_that_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert tried("apache", World()) == 2
    assert "`apache` is not a server; allowed: nginx, caddy, haproxy, nghttpd;" in capsys.readouterr().err


def test_a_matrix_adds_its_servers_to_the_shipped_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own replaced them: with a matrix, `caddy` was no server."""
    (tmp_path / "matrix.yaml").write_text(MINIMAL)

    def tried(name: str, servers: Mapping[str, Server], *_: object) -> int:
        return 0 if name in servers else 2

    monkeypatch.setattr("headwind.cli.try_server.try_server", tried)
    assert lab.main(["try-server", "caddy", "--matrix", str(tmp_path / "matrix.yaml")]) == 0
