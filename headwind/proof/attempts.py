"""Decides which trials are repeated. Pure: a trial's times do not affect it."""

from __future__ import annotations

from headwind.model import Outcome, Result

MOST_ATTEMPTS = 3  # at a trial whose network was not verified


def runs_again(result: Result) -> bool:
    """True if its trial needs another attempt: none began, the lab failed, or it is invalid with attempts left."""
    is_last = result.attempt + 1 >= MOST_ATTEMPTS
    return result.outcome in (Outcome.LAB_ERROR, Outcome.SKIPPED) or (result.outcome is Outcome.INVALID and not is_last)


def is_unproven(result: Result) -> bool:
    """True if its network was not shown to be the requested one."""
    return result.outcome is Outcome.INVALID


def faults_of(result: Result) -> frozenset[str]:
    """Checks that made a trial invalid, without the figures; empty for any other outcome."""
    if result.outcome is not Outcome.INVALID:
        return frozenset()
    return frozenset(f"{check.direction} {check.quantity}" for check in result.proof.checks if not check.passed)
