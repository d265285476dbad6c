"""The server's log of a trial's answers, as nginx writes it."""

from __future__ import annotations

from pathlib import Path

from impair.messages import Answers
from nginx import answers
from servers import objects

LINES = """\
["200","0.030",".",""]
["206","0.031","r","1"]
["200","0.035",".",""]
["200","","r",""]
["499","",".",""]
"""


def test_the_log_is_counted_by_what_became_of_each_answer(tmp_path: Path) -> None:
    log = tmp_path / "answers.log"
    log.write_text(LINES)
    assert answers.read(log) == Answers(4, 1, 2, 1, 3, 0.030, 0.031, 0.035)


def test_what_was_logged_is_forgotten_and_what_comes_next_is_not(tmp_path: Path) -> None:
    log = tmp_path / "answers.log"
    with log.open("a") as nginx:
        nginx.write(LINES)
        nginx.flush()
        answers.forget(log)
        nginx.write(LINES.splitlines()[0] + "\n")
    assert answers.read(log).count == 1
    answers.forget(tmp_path / "none")


def test_an_object_that_comes_later_is_the_same_object() -> None:
    later = objects.after(0.03, "/bytes/15000")
    assert later == "/after/30ms/bytes/15000"
    assert objects.after(0.0, "/bytes/15000") == "/bytes/15000"
    assert objects.size_of(later) == 15_000
    assert objects.is_on_demand(later)
    assert objects.content(objects.after(5.0, "/")) == objects.index_page()
    assert objects.size_of("/after/5/bytes/15000") is objects.size_of("/x/after/5ms/1k") is None
