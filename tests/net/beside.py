"""What tests need that run while other rings do: turns at what is made once, and labs on a machine that is busy."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headwind.model import Outcome, Result
from headwind.run.journal import Run
from headwind.run.shortfall import shortfall


@contextmanager
def alone() -> Iterator[None]:
    """No other ring is inside at the same time."""
    with Path(__file__).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def outcomes(results: Iterable[Result]) -> list[Outcome]:
    """Of every attempt. What was measured to its end is OK here, also where a busy machine left it unproven."""
    return [Outcome.OK if each.outcome is Outcome.INVALID else each.outcome for each in results]


def exit_status(run: Run) -> int:
    """With which a lab ends whose trials all were measured: 1 if the network of too many was not proven."""
    return int(bool(shortfall(run.matrix, run.results())))
