"""Requests as files and a bell: every line arrives once, in order, and the end arrives too."""

from __future__ import annotations

import io
import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from impair.router import mailbox

LINES = ["short\n", "x" * 100_000 + "\n", "é\n", "\n"]


@contextmanager
def console() -> Iterator[tuple[int, IO[bytes]]]:
    """Where one listens, and where the other rings."""
    listening, ringing = os.pipe()
    with io.FileIO(ringing, "w") as file:
        yield listening, file
    os.close(listening)


def test_lines_arrive_in_order_and_end(tmp_path: Path) -> None:
    with console() as (listening, ringing):
        mailbox.post(LINES, tmp_path, mailbox.Bell(ringing))
        ringing.close()
        assert list(mailbox.collect(tmp_path, listening)) == LINES


def test_lines_arrive_while_others_are_posted(tmp_path: Path) -> None:
    lines = [f"{number}\n" for number in range(500)]
    collected: list[str] = []
    with console() as (listening, ringing):
        reader = threading.Thread(target=lambda: collected.extend(mailbox.collect(tmp_path, listening)))
        reader.start()
        mailbox.post(lines, tmp_path, mailbox.Bell(ringing))
        ringing.close()
        reader.join()
    assert collected == lines


def test_old_files_are_cleared_away(tmp_path: Path) -> None:
    with console() as (_, ringing):
        mailbox.post((f"{number}\n" for number in range(mailbox.KEPT + 10)), tmp_path, mailbox.Bell(ringing))
    assert len(list(tmp_path.iterdir())) == mailbox.KEPT


def test_posting_ends_when_nobody_listens(tmp_path: Path) -> None:
    listening, ringing = os.pipe()
    os.close(listening)
    with io.FileIO(ringing, "w") as file:
        bell = mailbox.Bell(file)
        mailbox.post(iter(LINES), tmp_path, bell)
        bell.again()
    bell.again()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_note_is_heeded_before_its_line_and_none_is_where_there_is_none(tmp_path: Path) -> None:
    seen: list[str] = []
    with console() as (listening, ringing):
        bell = mailbox.Bell(ringing)
        mailbox.post(
            LINES, tmp_path, bell, lambda line: f"note {len(list(tmp_path.iterdir()))}" if line != LINES[1] else ""
        )
        ringing.close()
        together = [(seen[-1], line) for line in mailbox.collect(tmp_path, listening, seen.append)]
    assert together == [("note 0" if number == 1 else f"note {number}", line) for number, line in enumerate(LINES)]


def test_a_line_of_which_the_first_ring_was_lost_arrives_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox, "LOOK_S", 60.0)
    with console() as (listening, ringing):
        bell = mailbox.Bell(ringing)
        mailbox.post(LINES[:1], tmp_path, bell)
        assert os.read(listening, 10) == mailbox.BELL  # which the guest has not heard
        for _ in range(10):
            bell.again()
        assert next(mailbox.collect(tmp_path, listening)) == LINES[0]
        bell.again()
        assert not select.select([listening], [], [], 0.0)[0], "rung more often than need be"


def test_a_line_arrives_although_all_its_rings_were_lost(tmp_path: Path) -> None:
    with Path(os.devnull).open("wb") as lost:
        mailbox.post(LINES, tmp_path, mailbox.Bell(lost))
    with console() as (listening, ringing):
        arriving = mailbox.collect(tmp_path, listening)
        assert [next(arriving) for _ in LINES] == LINES
        ringing.close()
        assert list(arriving) == []
