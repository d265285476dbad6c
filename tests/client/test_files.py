"""The client of several files: what its output means, whole and cut short."""

from __future__ import annotations

import json
import statistics
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from client.curl import _transfer
from client.files import Fetch, interpret

FETCH = Fetch("h1", "192.0.2.1", 443, ["/site/index.html", "/site/a%20b.css", "/site/c.js"], 2)
BEGAN_AT, STARTED_AT = 1000.25, 1000.0


def row(index: int, done_s: float, handshake_s: float | None = None, **more: Any) -> dict[str, Any]:
    plain = {
        "index": index, "status": 200, "alpn": "http/1.1", "bytes": 100 * (index + 1), "header_bytes": 50, "error": "",
        "start_s": 0.1, "first_byte_s": done_s - 0.01, "done_s": done_s, "handshake_s": handshake_s,
        "opened_s": 0.0 if handshake_s else None,
    }  # fmt: skip
    return {**plain, **more}


ROWS = [row(1, 0.25, 0.09), row(0, 0.2, 0.08), row(2, 0.5)]
HASHES = {"sha256": ["a", "b", "c"]}


def output(*lines: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in ({"began_at": BEGAN_AT}, *lines))


def test_the_command_names_every_path_in_the_order_of_the_list() -> None:
    assert FETCH.command() == [
        "python3", "-m", "client.files", "h1", "2", "https://192.0.2.1:443", "/site/index.html", "/site/a%20b.css",
        "/site/c.js",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", [{"protocol": "h9"}, {"paths": []}, {"connections": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"protocol": "h2", "host": "192.0.2.1", "port": 443, "paths": ["/"], "connections": 1}
    with pytest.raises(ValueError, match=r"h9|at least one"):
        Fetch(**{**asked, **wrong})


def test_a_whole_output_gives_metrics_objects_and_samples() -> None:
    answer = interpret(output(*ROWS, HASHES), 3, STARTED_AT)
    assert answer["negotiated"] == {"alpn": "http/1.1"}
    assert answer["began_s"] == 0.25
    assert [each["sha256"] for each in answer["objects"]] == ["a", "b", "c"]
    assert [each["bytes"] for each in answer["objects"]] == [100, 200, 300]
    found = answer["metrics"]
    assert (found["total_s"], found["bytes_body"], found["bytes_total"]) == (0.5, 600, 750)
    assert found["goodput_bps"] == 600 * 8 / 0.5
    assert found["mean_done_s"] == pytest.approx(statistics.mean((0.25, 0.2, 0.5)), abs=1e-6)
    assert found["request_p50_s"] == pytest.approx(0.15)
    assert (found["requests_succeeded"], found["requests_failed"]) == (3, 0)
    assert answer["samples"]["request_took_s"] == [0.15, 0.1, 0.4]
    assert answer["samples"]["connect_s"] == [0.08, 0.09]
    assert answer["totals"] == {"requests": 3, "done": 3, "succeeded": 3, "abandoned": 0}


def test_a_killed_program_leaves_what_was_done_and_no_metrics() -> None:
    text = output(*ROWS[:2])
    for cut in (text, text + '{"index": 2, "sta', output(*ROWS[:2], HASHES)):
        answer = interpret(cut, 3, STARTED_AT)
        assert (answer["metrics"], answer["objects"][2]) == ({}, None)
        assert answer["totals"] == {"requests": 3, "done": 2, "succeeded": 2, "abandoned": 1}
        assert answer["samples"]["request_status"] == [200, 200]


def test_a_program_that_was_killed_at_once_leaves_nothing() -> None:
    answer = interpret("", 3, STARTED_AT)
    assert (answer["negotiated"]["alpn"], answer["objects"], answer["metrics"]) == (None, [None] * 3, {})
    assert "began_s" not in answer


def test_failed_transfers_are_counted_and_have_no_times() -> None:
    rows = [ROWS[0], row(0, 0.2, error="Recv failure", status=0), row(2, 0.5, status=404)]
    answer = interpret(output(*rows, HASHES), 3, STARTED_AT)
    assert (answer["metrics"]["requests_succeeded"], answer["metrics"]["requests_failed"]) == (1, 2)
    assert answer["samples"]["request_status"] == [200, -1, 404]
    assert "mean_done_s" not in answer["metrics"]


def test_without_an_answer_there_are_no_times_and_no_rates() -> None:
    """The time of 20 refused connections was 2 ms, and their rate 10,000 requests per second."""
    refused = [row(index, 0.002, error="refused", status=0, alpn=None, bytes=0) for index in range(3)]
    found = interpret(output(*refused), 3, STARTED_AT)["metrics"]
    assert found == {"requests_succeeded": 0, "requests_failed": 3, "bytes_body": 0, "bytes_total": 150}


def test_a_rate_is_that_of_answers() -> None:
    failed = row(2, 0.5, error="Recv failure", status=0)
    assert interpret(output(*ROWS[:2], failed), 3, STARTED_AT)["metrics"]["requests_per_s"] == 2 / 0.5


def test_the_time_to_first_byte_is_that_of_a_connection_from_its_opening() -> None:
    """Later files of a connection, and the wait for a free one, made it the time of half the run."""
    later = row(1, 0.9, 0.05, opened_s=0.7, first_byte_s=0.85)
    found = interpret(output(row(0, 0.2, 0.08), later, row(2, 1.5)), 3, STARTED_AT)
    assert found["samples"]["ttfb_s"] == [0.15, 0.19]
    assert found["metrics"]["ttfb_p50_s"] == pytest.approx(0.17)


class Handle:
    """A transfer of libcurl that waited for half a second, and then opened as many connections."""

    def __init__(self, connects: int) -> None:
        self._known = {"NUM_CONNECTS": connects, "NAMELOOKUP_TIME": 0.5 * connects, "APPCONNECT_TIME": 0.52 * connects}

    def getinfo(self, name: str) -> float:
        return self._known.get(name, 0)


def test_a_handshake_does_not_include_the_wait_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that closes connections: the handshake of the last file took as long as all files before it."""
    names = ("RESPONSE_CODE", "INFO_HTTP_VERSION", "SIZE_DOWNLOAD", "HEADER_SIZE", "PRETRANSFER_TIME", "TOTAL_TIME",
             "STARTTRANSFER_TIME", "NUM_CONNECTS", "NAMELOOKUP_TIME", "APPCONNECT_TIME")  # fmt: skip
    monkeypatch.setitem(sys.modules, "pycurl", SimpleNamespace(**{name: name for name in names}))
    opener, other = _transfer(Handle(1), ""), _transfer(Handle(0), "")
    assert (opener["opened_s"], opener["handshake_s"]) == (0.5, pytest.approx(0.02))
    assert (other["opened_s"], other["handshake_s"]) == (None, None)


def test_a_transfer_without_an_answer_has_no_protocol_that_could_be_wrong() -> None:
    """Its reason was `None, http/1.1 was negotiated instead of http/1.1`, and the outcome wrong-protocol."""
    rows = [ROWS[0], row(0, 0.2, error="Recv failure", status=0, alpn=None), ROWS[2]]
    assert interpret(output(*rows), 3, STARTED_AT)["negotiated"]["alpn"] == "http/1.1"


def test_several_protocols_are_none_that_was_asked_for() -> None:
    answer = interpret(output(ROWS[0], row(0, 0.2, alpn="h2"), ROWS[2]), 3, STARTED_AT)
    assert answer["negotiated"]["alpn"] == "h2, http/1.1"
