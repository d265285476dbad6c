"""bench/priorities.py: which files a server sent while a page's fonts were awaited."""

from __future__ import annotations

import pandas as pd
import pytest

from bench.priorities import table, waits

COLUMNS = ("request_path", "request_start_s", "request_sent_s", "request_took_s", "request_bytes")


def page(arm: str, *requests: tuple[str, float, float, float, int], outcome: str = "ok") -> pd.DataFrame:
    """A page of (path, wanted, sent, seconds since wanted, bytes)."""
    found = pd.DataFrame(requests, columns=list(COLUMNS))
    return found.assign(profile="slow", arm=arm, trial=arm + outcome, outcome=outcome)


HEEDED = page(
    "h2", ("/a/page.html", 0.0, 0.0, 0.1, 900), ("/a/image-1.png", 0.1, 0.1, 0.1, 7),
    ("/a/image-2.png", 0.1, 0.1, 3.9, 50), ("/a/script-2.js", 0.1, 0.2, 1.9, 40),
    ("/a/font-1.ttf", 0.5, 0.6, 0.5, 30), ("/a/font-2.ttf", 0.5, 0.7, 1.0, 30),
)  # fmt: skip
IGNORED = HEEDED.assign(arm="h2-caddy", trial="h2-caddy", request_took_s=[0.1, 0.1, 0.9, 1.0, 1.6, 2.0])


def test_files_that_arrive_before_the_fonts_are_counted() -> None:
    found = waits(pd.concat([HEEDED, IGNORED, HEEDED.assign(trial="late", outcome="timeout")])).set_index("arm")
    assert found["wait_s"].to_dict() == pytest.approx({"h2": 0.9, "h2-caddy": 1.9})
    assert found["open_bytes"].to_dict() == {"h2": 90, "h2-caddy": 90}
    assert found["complete_bytes"].to_dict() == {"h2": 0, "h2-caddy": 90}


def test_a_file_that_was_asked_for_later_and_came_first_is_counted() -> None:
    later = page("h3", ("/a/font-1.ttf", 0.0, 0.0, 2.0, 30), ("/a/image-1.png", 1.0, 1.0, 0.5, 50))
    assert waits(later)[["open_bytes", "complete_bytes"]].to_numpy().tolist() == [[0, 50]]


def test_a_page_without_fonts_has_no_row() -> None:
    assert waits(page("h3", ("/a/image-1.png", 1.0, 1.0, 0.5, 50))).empty


def test_the_table_has_a_row_for_each_arm() -> None:
    lines = table(waits(pd.concat([HEEDED, IGNORED])))
    assert lines[2:] == ["| slow | h2 | 1 | 0.90 s | 0 kB | 0 kB |", "| slow | h2-caddy | 1 | 1.90 s | 0 kB | 0 kB |"]
