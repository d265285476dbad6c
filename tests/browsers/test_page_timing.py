"""What a page reports about itself, as figures: the protocol of every request, and no time that has not come."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from browsers.browser import Browser, Loading, Page, collect
from browsers.page import COLUMNS, PAINT_WAIT_MS, collecting, figures, spoken

# Chromium 156 over HTTP/1.1: a document, and three pictures; the third answer was cut off.
COLLECTED: dict[str, Any] = json.loads("""
{"url": "https://server/bytes/3-of-10000.html", "load": 207.5, "paint": 192, "largest": 212,
 "rows": [[0, 54.1, 106.3, 106.9, 160.3, 161.2, 200, "http/1.1", 563, 263,
           "https://server/bytes/3-of-10000.html", "navigation"],
          [170.1, 170.1, 170.1, 171.4, 199.2, 205.9, 200, "http/1.1", 10300, 10000,
           "https://server/bytes/10000.png?1", "img"],
          [170.2, 172.0, 190.0, 190.9, 196.1, 198.4, 200, "http/1.1", 10300, 10000,
           "https://server/bytes/10000.png?2", "img"],
          [170.3, 0, 0, 0, 0, 206.5, 0, "", 0, 0, "https://server/bytes/10000.png?3", "img"]]}
""")


def test_a_page_gives_its_times_in_seconds_and_its_requests_in_the_order_of_their_ends() -> None:
    found = figures(COLLECTED)
    assert found["negotiated"] == {"alpn": "http/1.1"}
    assert found["metrics"] == {
        "load_s": 0.2075, "ttfb_s": 0.1603, "handshake_s": 0.0522, "first_paint_s": 0.192, "lcp_s": 0.212,
        "last_resource_s": 0.2059,
        "requests_succeeded": 3, "requests_failed": 1, "connections": 2, "bytes_body": 20_000, "bytes_document": 263,
        "from_cache": 0,
    }  # fmt: skip
    assert found["samples"]["request_start_s"] == [0.0, 0.1702, 0.1701, 0.1703]
    assert found["samples"]["request_took_s"] == pytest.approx([0.1612, 0.0282, 0.0358, 0.0362])
    assert found["samples"]["request_status"] == [200, 200, 200, 0]
    assert found["samples"]["request_sent_s"] == [0.1069, 0.1909, 0.1714, 0.0]
    assert found["samples"]["request_first_byte_s"] == [0.1603, 0.1961, 0.1992, 0.0]
    assert found["samples"]["request_connect_start_s"][:2] == [0.0541, 0.172]
    assert found["samples"]["request_connect_s"] == [0.0522, 0.018, 0.0, 0.0], "the third used an open connection"
    assert found["samples"]["request_bytes"] == [263, 10_000, 10_000, 0]
    assert found["samples"]["request_path"] == [
        "/bytes/3-of-10000.html", "/bytes/10000.png?2", "/bytes/10000.png?1", "/bytes/10000.png?3"
    ]  # fmt: skip
    assert found["samples"]["request_initiator"] == ["navigation", "img", "img", "img"]


def test_a_request_to_another_host_has_its_whole_address() -> None:
    """`/b.jpg (no answer)` of a CDN read as if the page's own server had not answered."""
    rows = [[*row[:10], row[10].replace("server/bytes/10000.png?3", "cdn.example/b.jpg"), row[11]]
            for row in COLLECTED["rows"]]  # fmt: skip
    paths = figures({**COLLECTED, "rows": rows})["samples"]["request_path"]
    assert paths == ["/bytes/3-of-10000.html", "/bytes/10000.png?2", "/bytes/10000.png?1", "https://cdn.example/b.jpg"]


def test_a_page_that_has_not_come_has_no_times() -> None:
    rows = [[0.0] * 6 + [0, "", 0, 0, "", "navigation"]]
    found = figures({"url": "", "load": 0, "paint": 0, "largest": 0, "rows": rows})
    assert found["negotiated"] == {"alpn": None}
    assert not [name for name in found["metrics"] if name.endswith("_s")]
    assert found["samples"]["request_took_s"] == []


def test_what_came_after_the_end_of_a_trial_does_not_count() -> None:
    found = figures(COLLECTED, until_s=0.2)
    assert found["metrics"].keys() >= {"ttfb_s", "first_paint_s", "last_resource_s"}
    assert not {"load_s", "lcp_s"} & found["metrics"].keys()
    assert len(found["samples"]["request_took_s"]) == found["metrics"]["requests_succeeded"] == 2
    assert "first_paint_s" not in figures(COLLECTED, until_s=0.19)["metrics"]


@pytest.mark.parametrize(
    ("protocols", "expected"),
    [
        ([], None),
        (["h3"] * 5, "h3"),
        ([""], None),
        (["h2", "h3", "h3"], "h3 (2 of 3 requests), h2 (1 of 3 requests)"),
        (["h2", ""], "h2 (1 of 2 requests), unknown (1 of 2 requests)"),
    ],
)
def test_several_protocols_are_no_protocol(protocols: list[str], expected: str | None) -> None:
    assert spoken(protocols) == expected


def test_the_script_asks_for_every_column() -> None:
    assert json.dumps(list(COLUMNS)) in collecting()
    assert str(PAINT_WAIT_MS) in collecting()
    assert "WAIT" not in collecting(at_once=True)


def test_a_report_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        figures({**COLLECTED, "rows": [[1, 2, 3]]})


@pytest.mark.parametrize(
    ("url", "origin_s", "is_in_time", "error"),
    [
        ("about:blank", 990.0, False, ""),
        ("https://server/page", 990.0, False, ""),
        ("https://server/other", 1000.1, False, "it went on to https://server/other"),
        ("about:blank", 990.0, True, "it went on to about:blank"),
    ],
)
def test_a_document_of_before_the_load_shows_that_none_came_in_time(
    url: str, origin_s: float, is_in_time: bool, error: str
) -> None:
    """The empty page, or on a repeat visit the first one, whose times were those of the second."""
    seen = Loading("https://server/page", 1000.0, is_loaded=is_in_time, timed_out=not is_in_time)
    browser = SimpleNamespace(
        logs=None, ask=lambda *_: 1, note=lambda *_: None, given=lambda _: {"url": url, "origin": origin_s * 1000},
        devtools=SimpleNamespace(event=lambda _: None),
    )  # fmt: skip
    assert collect(cast("Browser", browser), Page("", ""), seen) == {}
    assert seen.error == error
