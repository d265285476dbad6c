"""What tests need that run while other rings do: labs on a machine that is busy."""

from __future__ import annotations

from collections.abc import Iterable

from headwind.model import Outcome, Result
from headwind.run.data import RunData
from headwind.run.journal import Run
from headwind.run.shortfall import shortfalls


def attempts(results: Iterable[Result]) -> list[tuple[Result, Outcome]]:
    """Those that a test expects. What was measured to its end is OK here, also where a busy machine left it unproven.

    Unproven attempts that were repeated are left out: how many there are is up to the machine.
    """
    every = list(results)
    last = {each.trial.id: each for each in every}
    return [
        (each, Outcome.OK if each.outcome is Outcome.INVALID else each.outcome)
        for each in every
        if each.outcome is not Outcome.INVALID or each is last[each.trial.id]
    ]


def outcomes(results: Iterable[Result]) -> list[Outcome]:
    """Of the attempts that a test expects."""
    return [outcome for _, outcome in attempts(results)]


def exit_status(run: Run) -> int:
    """With which a lab ends whose trials all were measured: 1 if the network of too many was not proven."""
    return int(bool(shortfalls(RunData.of(run))))
