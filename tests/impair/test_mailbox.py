"""Requests as files and a bell: every line arrives once, in order, and the end arrives too."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from impair.router import mailbox

LINES = ["short\n", "x" * 100_000 + "\n", "é\n", "\n"]


def test_lines_arrive_in_order_and_end(tmp_path: Path) -> None:
    listening, ringing = os.pipe()
    mailbox.post(LINES, tmp_path, ringing)
    os.close(ringing)
    assert list(mailbox.collect(tmp_path, listening)) == LINES
    os.close(listening)


def test_lines_arrive_while_others_are_posted(tmp_path: Path) -> None:
    listening, ringing = os.pipe()
    lines = [f"{number}\n" for number in range(500)]
    collected: list[str] = []
    reader = threading.Thread(target=lambda: collected.extend(mailbox.collect(tmp_path, listening)))
    reader.start()
    mailbox.post(lines, tmp_path, ringing)
    os.close(ringing)
    reader.join()
    os.close(listening)
    assert collected == lines


def test_old_files_are_cleared_away(tmp_path: Path) -> None:
    listening, ringing = os.pipe()
    mailbox.post((f"{number}\n" for number in range(mailbox.KEPT + 10)), tmp_path, ringing)
    os.close(ringing)
    os.close(listening)
    assert len(list(tmp_path.iterdir())) == mailbox.KEPT


def test_posting_ends_when_nobody_listens(tmp_path: Path) -> None:
    listening, ringing = os.pipe()
    os.close(listening)
    mailbox.post(iter(LINES), tmp_path, ringing)
    os.close(ringing)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_note_is_heeded_before_its_line(tmp_path: Path) -> None:
    listening, ringing = os.pipe()
    seen: list[str] = []
    mailbox.post(LINES, tmp_path, ringing, lambda: f"note {len(list(tmp_path.iterdir()))}")
    os.close(ringing)
    together = [(seen[-1], line) for line in mailbox.collect(tmp_path, listening, seen.append)]
    os.close(listening)
    assert together == [(f"note {number}", line) for number, line in enumerate(LINES)]


def test_a_line_arrives_although_its_ring_was_lost(tmp_path: Path) -> None:
    listening, ringing = os.pipe()
    with Path(os.devnull).open("wb") as lost:
        mailbox.post(LINES, tmp_path, lost.fileno())
    arriving = mailbox.collect(tmp_path, listening)
    assert [next(arriving) for _ in LINES] == LINES
    os.close(ringing)
    assert list(arriving) == []
    os.close(listening)
