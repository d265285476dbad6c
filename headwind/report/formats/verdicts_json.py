"""verdicts.json: what was decided, for other programs. docs/verdicts.schema.json describes every key of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from headwind.arm import Arm
from headwind.format import override_settings
from headwind.model import STEPS_WITHIN, Outcome
from headwind.proof.pooled import Pooled
from headwind.report.answer import answer_of as answer_of_run
from headwind.report.certainty import certainty_of, known_of, most_apart
from headwind.report.row_text import headline, ran_and_missing
from headwind.report.search import answer_of
from headwind.report.times_table import notices
from headwind.report.verdicts import tops
from headwind.run.data import RunData, was_stopped
from headwind.verdicts.assumptions import ComparisonWarning
from headwind.verdicts.findings import FALSE_SHARE, Finding, SelfCheckFinding
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.outlook import Outlook
from headwind.verdicts.pending import Open
from headwind.verdicts.search import brackets
from headwind.verdicts.stats import Interval

VERSION = 3  # raised when a program that reads this would have to change


def verdicts_text(data: RunData, verdicts: Judgement) -> str:
    """The file's content: pure ASCII, and nothing that JSON does not know."""
    return json.dumps(verdicts_json(data, verdicts), indent=2, allow_nan=False) + "\n"


def verdicts_json(data: RunData, verdicts: Judgement) -> dict[str, Any]:
    """Everything of it as one JSON object; ratios are of times, above 1: the candidate is faster. Infinity is null."""
    rule = verdicts.rule
    return {
        "version": VERSION,
        "run": _run(data),
        "trials": _trials(data),
        "arms": [_arm(arm) for arm in data.matrix.arms],
        "sentence": answer_of_run(data).headline,
        "network": [_network(question) for question in data.pooled],
        "warnings": [{"message": notice.text, "trials": len(notice.trials)} for notice in notices(data)],
        "rule": {
            "confidence": rule.confidence,
            "margin_ratio": rule.margin_ratio,
            "anytime": rule.anytime,
            "stall_ratio": rule.stall_ratio,
            "false_discovery_ratio": FALSE_SHARE,
        },
        "best": {
            name: {"protocols": list(top.protocols), "standing": top.lead.value}
            for name, top in tops(verdicts, [arm.name for arm in data.matrix.arms]).items()
        },
        "comparisons": [_comparison(line) for line in verdicts.lines],
        "self_checks": [_self_check(check) for check in verdicts.checks],
        "undecided": [_open(item) for item in verdicts.open],
        "search": _search(data),
    }


def _network(question: Pooled) -> dict[str, Any]:
    return {
        "condition": question.condition.id,
        "direction": question.direction.value,
        "quantity": question.quantity,
        "arms": [arm.name for arm in question.arms],
        "between": question.between,
        "requested": question.requested,
        "measured": question.measured,
        "count": question.count,
        "of": question.of,
        "detection_limit": _finite(question.resolution),
        "p_value": question.p_value,
        "passed": question.passed,
        "message": question.text,
    }


def _run(data: RunData) -> dict[str, Any]:
    return {
        "id": data.id,
        "title": data.matrix.title,
        "engine": str(data.environment.get("engine", "")),
        "state": data.status.state.value,
        "reason": data.status.reason,
        "headline": headline(data),
        "started_at_s": data.status.started_at,
        "ended_at_s": data.status.ended_at,
    }


def _arm(arm: Arm) -> dict[str, Any]:
    return {"name": arm.name, "protocol": arm.protocol.value, "overrides": override_settings(arm)}


def _trials(data: RunData) -> dict[str, Any]:
    ran, missing = ran_and_missing(data)
    return {
        "planned": ran + missing,
        "ran": ran,
        "attempts": len(data.results),
        "outcomes": {outcome.value: data.count(outcome) for outcome in Outcome},
        "stopped": sum(map(was_stopped, data.latest)),
    }


def _comparison(line: Line) -> dict[str, Any]:
    new, base = line.unfinished
    known = known_of(line)
    return {
        "condition": line.condition.id,
        "profile": line.condition.profile.name,
        "workload": line.condition.workload.name,
        "candidate": line.pair.new.name,
        "baseline": line.pair.base.name,
        "self_check": line.pair.is_check,
        "certainty": known.certainty.value,
        "by": known.finding.metric.key,
        "differing": [finding.metric.key for finding in known.differing],
        "decided": line.is_decided,
        "network_held": line.network_held,
        "blocks": line.blocks,
        "unfinished": {"candidate": new, "baseline": base},
        "metrics": {metric.key: _finding(finding) for metric, finding in line.findings.items()}
        | {metric.key: {"ratio": _ratio(interval)} for metric, interval in line.intervals.items()},
        "warnings": _warnings(line.warnings),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    comparison = finding.comparison
    return {
        "verdict": finding.verdict.value,
        "certainty": certainty_of(finding).value,
        "decided": finding.is_decided,
        "ratio": _ratio(comparison.interval),
        "most_apart_ratio": _finite(most_apart(comparison.interval)),
        "survives_e_bh": finding.survives,
        "ln_e_value": _finite(comparison.log_e_value),
        "withheld": comparison.withheld.value if comparison.withheld else None,
    }


def _ratio(interval: Interval) -> dict[str, float | int | None]:
    estimate, low, high = interval.ratios
    shown = None if estimate is None else _finite(estimate)
    return {"estimate": shown, "low": _finite(low), "high": _finite(high), "blocks": interval.n}


def _self_check(check: SelfCheckFinding) -> dict[str, Any]:
    finding, floor = check.finding, check.noise_floor_ratio
    return {
        "condition": finding.condition.id,
        "candidate": finding.pair.new.name,
        "baseline": finding.pair.base.name,
        "passed": check.passed,
        "message": check.message,
        "noise_floor_ratio": None if floor is None else _finite(floor),
    }


def _search(data: RunData) -> dict[str, Any] | None:
    """Where the winner changes, and what was claimed at each value that was tried; None where nothing was searched."""
    answer = answer_of(data)
    if answer is None:
        return None
    search, grid = answer.search, answer.grid()
    ahead: dict[int, str | None] = {1: search.new.name, -1: search.base.name, 0: None}
    return {
        "sentence": answer.text(),
        "candidate": search.new.name,
        "baseline": search.base.name,
        "metric": answer.matrix.judged(answer.matrix.conditions[0])[0].key,
        "along": search.along,
        "step": search.step,
        "crossovers": [
            {
                "from": search.points[each.low][0],
                "to": search.points[each.high][0],
                "ahead_before": ahead[-each.above],
                "ahead_after": ahead[each.above],
                "is_narrow": each.steps <= STEPS_WITHIN,
            }
            for each in brackets(answer.sides)
        ],
        "values": [
            {"value": value, "condition": name, "blocks": tally.blocks, "ahead": ahead[side]}
            for (value, name), tally, side in zip(search.points, answer.tallies, answer.sides, strict=True)
            if tally.blocks
        ],
        "trials": answer.trials,
        "grid_trials": grid[1] if grid else None,
    }


def _warnings(warnings: Sequence[ComparisonWarning]) -> list[dict[str, str]]:
    return [{"kind": warning.kind.value, "message": warning.message} for warning in warnings]


def _open(item: Open) -> dict[str, Any]:
    return {
        "condition": item.condition.id,
        "undecided": [str(pair) for pair in item.undecided],
        "unconfirmed": [str(pair) for pair in item.unconfirmed],
        "blocks": item.n,
        "more_blocks": _outlook(item.outlook),
        "block_s": item.block_s,
    }


def _outlook(outlook: Outlook) -> dict[str, int | None]:
    return {"median": outlook.blocks, "low": outlook.low, "high": outlook.high}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
