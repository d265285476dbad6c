"""Reasons for exit code 1 of a run that ended by itself: a condition lacks data, or too many unproven attempts.

Also the conditions without any result, which the terminal and summary.md name.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from headwind.arm import Arm
from headwind.format import counted, enumerated
from headwind.model import DATA_OUTCOMES, Condition, Matrix, Outcome, Result
from headwind.proof.attempts import faults_of, is_unproven
from headwind.run.data import latest_of, was_stopped
from headwind.verdicts.ended import complete
from headwind.verdicts.findings import rows_of

UNPROVEN, UNPROVEN_SHARE = 3, 0.01  # attempts that a run may have, or this share of all, whichever is more


def shortfall(matrix: Matrix, results: Sequence[Result]) -> str:
    """A sentence with the reason; empty if every condition has its data, and few attempts were left unverified."""
    return _without_data(matrix, results) or _not_run(matrix, results) or _unproven(results)


def not_run(matrix: Matrix, results: Sequence[Result]) -> list[Condition]:
    """The conditions without a trial; none for a search, which needs only some of them."""
    ran = {result.trial.block.condition.id for result in results}
    return [] if matrix.find else [each for each in matrix.conditions if each.id not in ran]


def unfinished(matrix: Matrix, results: Sequence[Result]) -> list[Condition]:
    """The conditions with a complete block in which no trial of any arm finished; none for a search.

    They have their data: bounds.
    """
    rows = rows_of(latest_of(results))
    finished = {result.trial.block.condition.id for result in results if result.outcome is Outcome.OK}
    open_ = [] if matrix.find else [each for each in matrix.conditions if each.id not in finished]
    return [each for each in open_ if complete(rows.get(each.id, {}))]


def _not_run(matrix: Matrix, results: Sequence[Result]) -> str:
    found = not_run(matrix, results)
    return f"the budget left no time for {enumerated(map(matrix.name_of, found))}" if found else ""


def _without_data(matrix: Matrix, results: Sequence[Result]) -> str:
    """The conditions with fewer complete blocks than they need, and the reason of their last trial without data.

    Without a budget a condition needs the minimum of its matrix. With a budget, or in a search, conditions that were
    begun need one complete block.
    """
    rows, is_partial = rows_of(latest_of(results)), matrix.repeat.budget_s is not None or bool(matrix.find)
    need = 1 if is_partial else matrix.repeat.least
    conditions = [each for each in matrix.conditions if each.id in rows] if is_partial else matrix.conditions
    if not conditions:
        return "nothing was measured"
    short = {each: have for each in conditions if (have := complete(rows.get(each.id, {}))) < need}
    if not short:
        return ""
    condition, have = next(iter(short.items()))
    more = f", and {counted(len(short) - 1, 'further condition')} too few" if len(short) > 1 else ""
    why = _last_without_data(rows.get(condition.id, {}).values())
    return f"{matrix.name_of(condition)} has {counted(have, 'complete block')} of the {need} that it needs{more}: {why}"


def _last_without_data(rows: Iterable[Mapping[Arm, Result]]) -> str:
    every = [result for row in rows for result in row.values() if result.outcome not in DATA_OUTCOMES]
    lost = [result for result in every if not was_stopped(result)]
    if not lost:
        return "the time ended before"
    last = lost[-1]
    return f"{last.trial.id} gave no data in {counted(last.attempt + 1, 'attempt')}, last: {last.reason}"


def _unproven(results: Sequence[Result]) -> str:
    unproven = [result for result in results if is_unproven(result)]
    most = max(UNPROVEN, UNPROVEN_SHARE * len(results))
    if len(unproven) <= most:
        return ""
    faults = Counter(fault for result in unproven for fault in faults_of(result))
    named = ", ".join(f"{fault} {count}" for fault, count in faults.most_common())
    latest = {id(result) for result in latest_of(results)}
    again = "" if any(id(result) in latest for result in unproven) else "ran again and "
    stood_still = any(fault.endswith(" standstill_s") for fault in faults)
    advice = (
        "another program used the CPUs: run again on a quieter machine" if stood_still
        else "the report lists what each of them measured"
    )  # fmt: skip
    return (
        f"the network was not verified in {len(unproven)} of {counted(len(results), 'attempt')}, above {most:.0f}, "
        f"by these checks: {named}; these attempts {again}are excluded from all figures, but so many "
        f"make the exit status 1; {advice}"
    )
