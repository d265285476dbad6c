"""nginx's log of its answers in one trial, as nginx/delayed.conf and nginx/sessions.conf write it."""

from __future__ import annotations

import json
import os
import statistics
from pathlib import Path

from impair.messages import Answers

LOG = Path("/dev/shm/answers.log")  # noqa: S108 - memory of the container, which nginx appends to after each answer


def forget(log: Path = LOG) -> None:
    """Empty the log. Workers append, so they continue at the beginning."""
    if log.exists():
        os.truncate(log, 0)


def read(log: Path = LOG) -> Answers:
    """Summarise the log. Raises ValueError for a line that nginx cannot have written."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    given = [(waited, reused, early) for status, waited, reused, early in rows if 200 <= int(status) < 400]
    waits_s = [float(waited) for waited, _, _ in given if waited]
    return Answers(
        count=len(given),
        others=len(rows) - len(given),
        resumed=sum(reused == "r" for _, reused, _ in given),
        early=sum(early == "1" for _, _, early in given),
        waited=len(waits_s),
        shortest_wait_s=min(waits_s, default=None),
        median_wait_s=statistics.median(waits_s) if waits_s else None,
        longest_wait_s=max(waits_s, default=None),
    )
