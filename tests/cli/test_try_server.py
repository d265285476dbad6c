"""`lab.py try-server` on a fake testbed: what it prints, and that other bytes are an exit status of 1."""

from __future__ import annotations

from pathlib import Path

import pytest

import lab
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
    ("sabotage", "word"), [(Sabotage(altered=True), "expected sha256 "), (Sabotage(unfetched=True), "timed out")]
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
    assert "/site/a%20b.css is wrong over h1, h2, h3: expected sha256" in said
    assert "index.html" not in said


def test_an_unknown_server_is_a_usage_error_that_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert tried("apache", World()) == 2
    assert "`apache` is not a server; allowed: nginx, caddy, haproxy, nghttpd;" in capsys.readouterr().err
