"""The client of parallel streams: what its output means, whole and cut short."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from client.streams import Fetch, arrivals_in, main, payload_gap_s

FETCH = Fetch("h2", "192.0.2.1", 443, "/bytes/1000", 2, 1)
ARRIVALS = {"arrivals": [[[100, 500], [130, 500]], [[101, 400], [731, 600]]]}


def row(index: int, done_s: float) -> dict[str, Any]:
    return {
        "index": index, "status": 200, "alpn": "h2", "bytes": 1000, "header_bytes": 50, "error": "", "start_s": 0.05,
        "first_byte_s": 0.1, "done_s": done_s, "handshake_s": 0.04 if index == 0 else None,
        "opened_s": 0.01 if index == 0 else None,
    }  # fmt: skip


def answer(folder: Path, *lines: dict[str, Any]) -> dict[str, Any]:
    text = "".join(f"{json.dumps(line)}\n" for line in ({"began_at": 1000.5}, *lines))
    (folder / "stdout").write_text(text)
    return FETCH.answer(folder, 1000.0)


def test_the_command_has_every_setting() -> None:
    assert FETCH.command() == [
        "python3", "-m", "client.streams", "h2", "1", "https://192.0.2.1:443", "/bytes/1000", "2"
    ]  # fmt: skip


class Libcurl:
    """Rounds of transfers of streams of 1000 bytes: how many bytes each brings, and how it ends.

    The streams share a connection, which the first one opens.
    """

    def __init__(self, *rounds: tuple[int, str]) -> None:
        self._rounds = iter(rounds)
        self.asked_from: list[int] = []

    def __call__(self, *asked: Any) -> None:
        _, urls, _, begin, take, receive, first_bytes = asked
        size, error = next(self._rounds)
        self.asked_from += first_bytes
        begin()
        for index, first in enumerate(first_bytes):
            receive[index](bytes(size))
            own = {"status": 206 if first else 200, "bytes": size, "error": error, "start_s": 0.03 + 0.1 * bool(first)}
            take(index, {**row(index, 0.2), **own, **({} if size else {"start_s": 0.0, "first_byte_s": 0.0})})
        assert len(urls) == len(first_bytes)


def printed(
    libcurl: Libcurl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *more: str, streams: int = 1
) -> Any:
    monkeypatch.setattr("client.streams.fetch_all", libcurl)
    main("h2", "1", "https://192.0.2.1:443", "/bytes/1000", str(streams), *more)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_what_is_missing_is_requested_over_a_new_connection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    libcurl = Libcurl((300, "reset"), (0, "reset"), (700, ""))
    began, whole, arrivals = printed(libcurl, monkeypatch, capsys, "reconnect")
    assert libcurl.asked_from == [0, 300, 300]
    assert began.keys() == {"began_at"}
    assert (whole["status"], whole["bytes"], whole["error"], whole["reconnects"]) == (200, 1000, "", 2)
    assert whole["start_s"] == pytest.approx(0.03, abs=1e-9), "of the first connection"
    assert whole["done_s"] >= 0.2
    assert sum(size for _, size in arrivals["arrivals"][0]) == 1000


def test_one_connection_that_broke_is_replaced_once_however_many_streams_it_had(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken connection of ten streams was ten reconnects."""
    _, *rows, _ = printed(Libcurl((300, "reset"), (700, "")), monkeypatch, capsys, "reconnect", streams=10)
    assert [each["reconnects"] for each in rows] == [1, *[0] * 9]


def test_a_connection_that_broke_before_its_first_byte_gives_no_time_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("client.streams.time.perf_counter", iter(range(99)).__next__)
    _, whole, _ = printed(Libcurl((0, "reset"), (1000, "")), monkeypatch, capsys, "reconnect")
    later_s = whole["done_s"] - 0.2
    assert later_s >= 1
    assert whole["opened_s"] == pytest.approx(later_s + 0.01)
    assert (whole["start_s"], whole["first_byte_s"]) == pytest.approx((later_s + 0.03, later_s + 0.1))


def test_without_reconnect_a_broken_transfer_has_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, broken, _ = printed(Libcurl((300, "reset")), monkeypatch, capsys)
    assert (broken["bytes"], broken["error"]) == (300, "reset")
    assert "reconnects" not in broken


def test_reconnects_are_a_metric(tmp_path: Path) -> None:
    found = answer(tmp_path, {**row(0, 0.13), "reconnects": 2}, row(1, 0.731), ARRIVALS)
    assert found["metrics"]["reconnects"] == 2
    assert replace(FETCH, reconnect=True).command()[-1] == "reconnect"


@pytest.mark.parametrize("wrong", [{"protocol": "h9"}, {"streams": 0}, {"connections": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"protocol": "h2", "host": "192.0.2.1", "port": 443, "path": "/", "streams": 1,
                             "connections": 1}  # fmt: skip
    with pytest.raises(ValueError, match=r"h9|at least one"):
        Fetch(**{**asked, **wrong})


def test_the_gap_is_the_longest_time_without_payload_of_any_stream(tmp_path: Path) -> None:
    found = answer(tmp_path, row(0, 0.13), row(1, 0.731), ARRIVALS)
    assert found["arrivals"] == ARRIVALS["arrivals"]
    assert found["metrics"]["payload_gap_max_s"] == 0.601
    assert found["metrics"]["total_s"] == 0.731
    assert found["totals"]["succeeded"] == 2


def test_a_killed_program_has_its_arrivals_and_no_metrics(tmp_path: Path) -> None:
    found = answer(tmp_path, row(0, 0.13), ARRIVALS)
    assert (found["metrics"], found["arrivals"]) == ({}, ARRIVALS["arrivals"])
    assert arrivals_in('{"arrivals": [[[1, 2]]') == []


def test_there_is_no_gap_without_two_pieces() -> None:
    assert payload_gap_s([[], [[5, 100]]]) is None
    assert payload_gap_s([]) is None
