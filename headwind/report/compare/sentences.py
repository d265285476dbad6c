"""Sentences on the comparison of two runs, the same in the terminal and in the file. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headwind.report.compare.agreement import headline, machine_sentences, only_sentences, outcome, rest
from headwind.report.compare.comparison import Comparison
from headwind.verdicts.changes import Change


def leading(comparison: Comparison) -> list[str]:
    """The result: a headline for each kind of change that is compared, and the arms that got worse and better."""
    runs = comparison.before.id, comparison.after.id
    lines = [headline(changes, *runs, noun) for noun, _, changes in _kinds(comparison)]
    return [*lines, *outcome(comparison.found)]


def following(comparison: Comparison) -> list[str]:
    """Changes that all arms share, everything that is not sure to have changed, and what is not compared."""
    found = comparison.found
    suffix = "" if comparison.absolute else "; not counted (--absolute counts it)"
    shared = machine_sentences(found, is_same_setup=comparison.is_same_setup)
    lines = [f"{prefix}{line}" for _, prefix, changes in _kinds(comparison) for line in rest(changes, found.fewest)]
    seed = [comparison.same_seed] if comparison.same_seed else []
    return [*(f"{line}{suffix}" for line in shared), *lines, *only_sentences(comparison.only), *seed]


def _kinds(comparison: Comparison) -> list[tuple[str, str, Sequence[Change]]]:
    """Noun, prefix of a sentence, and changes: of ratios if the runs have any, and with `absolute` of arms."""
    ratios, arms = comparison.found.ratios, comparison.found.arms if comparison.absolute else ()
    kinds = [("comparison", "", ratios), ("absolute value", "by absolute values: ", arms)]
    return [kind for kind in kinds if kind[-1]]
