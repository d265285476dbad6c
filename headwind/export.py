"""Every attempt as one row of numbers and words, for spreadsheets and other programs. SI units; nothing is rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwind.model import Result
from impair.profile import Direction

Cell = str | int | float | bool | None


def trials_csv(results: Sequence[Result]) -> str:
    """A CSV (RFC 4180, but with plain line feeds) with a header and one row for each result, in their order.

    After the columns of `row_of` come the union of all metrics, of all checks (`uplink_loss_ratio`: what was measured)
    and of all phases (`phase_client_s`), each in the order in which they first appear. A missing value is empty.
    """
    import pandas as pd

    frame = pd.DataFrame([row_of(number, result) for number, result in enumerate(results)], dtype=object)
    return str(frame.to_csv(index=False, lineterminator="\n"))


def row_of(number: int, result: Result) -> dict[str, Cell]:
    """The columns of one attempt; `number` counts attempts in the order in which they ran."""
    trial, block = result.trial, result.trial.block
    profile, workload = block.condition.profile, block.condition.workload
    return {
        "number": number,
        "trial": trial.id,
        "profile": profile.name,
        "workload": workload.name,
        "protocol": trial.protocol.value,
        "arm": trial.arm.value,
        "block": block.index,
        "position": trial.position,
        "attempt": result.attempt,
        "outcome": result.outcome.value,
        "reason": result.reason,
        "seed_uplink": block.seeds[Direction.UPLINK],
        "seed_downlink": block.seeds[Direction.DOWNLINK],
        "started_at_s": result.started_at,
        "proof_passed": result.proof.passed,
        "warnings": "; ".join(result.proof.warnings),
        "command": result.command,
        **result.metrics,
        **_measured(result),
        **_phases(result.phases_s),
    }


def _measured(result: Result) -> dict[str, Any]:
    return {f"{check.direction.value}_{check.quantity}": check.measured for check in result.proof.checks}


def _phases(phases_s: Mapping[str, float]) -> dict[str, Any]:
    return {f"phase_{name}_s": seconds for name, seconds in phases_s.items()}
