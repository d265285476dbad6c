"""The changes between two runs as JSON, for other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from headwind.report.certainty import most_apart
from headwind.report.compare.agreement import blocks_needed, certainty
from headwind.report.compare.comparison import Comparison, warnings
from headwind.report.compare.sentences import following, leading
from headwind.verdicts.changes import ArmChange, Change, RatioChange, Shared
from headwind.verdicts.findings import FALSE_SHARE
from headwind.verdicts.verdict import Verdict

VERSION = 2  # raised on changes that readers of the file must follow
BOUNDED = "bounded"
RUN_A, RUN_B = "run_a", "run_b"  # as on the command line; which began first is up to the user


def changes_text(comparison: Comparison) -> str:
    """The file's content: pure ASCII, and only values that JSON has."""
    return json.dumps(changes_json(comparison), indent=2, allow_nan=False) + "\n"


def changes_json(comparison: Comparison) -> dict[str, Any]:
    """A JSON object; factors above 1: RUN_B, or its candidate, is ahead. Infinity and unknown are null."""
    repeat, found = comparison.after.matrix.repeat, comparison.found
    return {
        "version": VERSION,
        RUN_A: comparison.before.id,
        RUN_B: comparison.after.id,
        "absolute": comparison.absolute,
        "regression": comparison.is_regression,
        "inconclusive": {
            "count": len(comparison.unknown),
            "of": len(comparison.counted),
            "blocks_needed": blocks_needed(comparison.unknown, found.fewest),
        },
        "counts": {**_counts(found.ratios), "arms": _counts(found.arms)},
        "sentences": [*leading(comparison), *following(comparison)],
        "not_compared": [
            {"only_in": only.run or None, "conditions": only.conditions, "arms": only.arms} for only in comparison.only
        ],
        "warnings": list(warnings(comparison.before, comparison.after)),
        "rule": {
            "confidence": repeat.confidence,
            "margin_ratio": repeat.margin_ratio,
            "false_discovery_ratio": FALSE_SHARE,
        },
        "machine": [_machine(each) for each in found.shared],
        "ratios": [_ratio(change, found.fewest) for change in found.ratios],
        "arms": [_arm(change, found.fewest) for change in found.arms],
    }


def _counts(found: Sequence[Change]) -> dict[str, int]:
    """Number of changes of each kind; each change is of one kind."""
    return {
        "of": len(found),
        "worse": sum(each.is_regression for each in found),
        "better": sum(each.is_improvement for each in found),
        "likely": sum(each.is_likely for each in found),
        BOUNDED: sum(each.is_bounded for each in found),
        "cannot_tell": sum(each.is_unknown for each in found),
    }


def _machine(shared: Shared) -> dict[str, Any]:
    return {
        "condition": shared.condition.id,
        "metric": shared.metric.key,
        "direction": "better" if shared.favours > 0 else "worse",
        "factor": shared.ratio,
    }


def _ratio(change: RatioChange, fewest: int) -> dict[str, Any]:
    return {
        "candidate": change.pair.new.name,
        "baseline": change.pair.base.name,
        **_change(change, fewest),
        "regression": change.is_regression,
        "improvement": change.is_improvement,
        "changed_arm": change.culprit.name if change.culprit else None,
        "processor_bound_in_one_run": change.bound_once,
    }


def _arm(change: ArmChange, fewest: int) -> dict[str, Any]:
    return {"arm": change.arm.name, **_change(change, fewest), "shared_by_all": change.is_shared}


def _change(change: Change, fewest: int) -> dict[str, Any]:
    estimate, low, high = change.interval.ratios
    return {
        "condition": change.condition.id,
        "metric": change.metric.key,
        "verdict": _verdict(change),
        "certainty": certainty(change).value,
        "inconclusive": change.is_unknown,
        "blocks_needed": blocks_needed([change], fewest) if change.is_unknown else None,
        "largest_factor": _finite(most_apart(change.interval)),
        "survives_e_bh": change.survives,
        "factor": {"estimate": _finite(estimate), "low": _finite(low), "high": _finite(high)},
        "trials": dict(zip((RUN_A, RUN_B), change.trials, strict=True)),
        "finished": dict(zip((RUN_A, RUN_B), change.finished, strict=True)),
    }


def _verdict(change: Change) -> str:
    """Verdict as in the sentences: `bounded` if no change above `largest_factor` is possible in either direction."""
    if change.is_unknown:
        return Verdict.INCONCLUSIVE.value
    return BOUNDED if change.is_bounded and change.verdict is not Verdict.TIE else change.verdict.value


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
