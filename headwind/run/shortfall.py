"""Reasons for exit code 1 of a run that ended by itself: a condition lacks data, too many unproven attempts, faults.

Also the conditions without any result, which the page and summary.md name.

Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from headwind.arm import Arm
from headwind.format import counted, enumerated
from headwind.model import DATA_OUTCOMES, Condition, Outcome, Result
from headwind.proof.attempts import faults_of, is_unproven
from headwind.run.data import RunData, was_stopped
from headwind.verdicts.ended import complete

UNPROVEN, UNPROVEN_SHARE = 3, 0.01  # attempts that a run may have, or this share of all, whichever is more
LATE_SHARE = 0.1  # likewise of attempts that only made a change some ms too late, if all of them ran again
LATE = " change_late_s"  # how the name of the check of a network's changes ends
FAULTS = "faults"  # key in a run's environment: what went wrong in its last session besides trials, as sentences


def shortfalls(data: RunData) -> list[str]:
    """A sentence for each reason; none if every condition has its data, and few attempts were left unverified."""
    return [*_lacking(data), *_unproven(data), *data.environment.get(FAULTS, [])]


def not_run(data: RunData) -> list[Condition]:
    """The conditions without a trial that ended by itself; none for a search, which needs only some of them."""
    ran = {each.trial.block.condition.id for each in data.latest if not was_stopped(each)}
    return [] if data.searched else [each for each in data.matrix.conditions if each.id not in ran]


def unfinished(data: RunData) -> list[Condition]:
    """The conditions with a complete block in which no trial of any arm finished; none for a search.

    They have their data: bounds.
    """
    finished = {result.trial.block.condition.id for result in data.latest if result.outcome is Outcome.OK}
    open_ = [] if data.searched else [each for each in data.matrix.conditions if each.id not in finished]
    return [each for each in open_ if complete(data.rows.get(each.id, {}))]


def _lacking(data: RunData) -> Iterator[str]:
    """The conditions with too few complete blocks, and those that the budget left no time for.

    Without a budget a condition needs the minimum of its matrix. With a budget, or in a search, conditions that were
    begun need one complete block.
    """
    matrix = data.matrix
    if not data.rows:
        yield "nothing was measured"
    elif data.budget_s is None and not data.searched:
        yield from _too_few(data, matrix.conditions, matrix.repeat.least)
    else:
        yield from _too_few(data, [each for each in matrix.conditions if each.id in data.rows], 1)
        if found := not_run(data):
            yield f"the budget left no time for {enumerated(map(matrix.name_of, found))}"


def _too_few(data: RunData, conditions: Iterable[Condition], need: int) -> Iterator[str]:
    """The first condition with fewer complete blocks than it needs, and the reason of its last trial without data."""
    short = {each: have for each in conditions if (have := complete(data.rows.get(each.id, {}))) < need}
    for condition, have in list(short.items())[:1]:
        more = f", and {counted(len(short) - 1, 'further condition')} too few" if len(short) > 1 else ""
        why = _last_without_data(data.rows.get(condition.id, {}).values())
        blocks = f"{counted(have, 'complete block')} of the {need} that it needs"
        yield f"{data.matrix.name_of(condition)} has {blocks}{more}: {why}"


def _last_without_data(rows: Iterable[Mapping[Arm, Result]]) -> str:
    every = [result for row in rows for result in row.values() if result.outcome not in DATA_OUTCOMES]
    lost = [result for result in every if not was_stopped(result)]
    if not lost:
        return "the time ended before"
    last = lost[-1]
    which = f"the last of {last.attempt + 1} attempts" if last.attempt else "the only attempt"
    return f"{which} at {last.trial.id} gave no data: {last.reason}"


def _unproven(data: RunData) -> Iterator[str]:
    """The attempts whose network was not verified, if there are too many."""
    unproven = [result for result in data.results if is_unproven(result)]
    most = max(UNPROVEN, UNPROVEN_SHARE * len(data.results))
    ran_again = not any(map(is_unproven, data.latest))
    if ran_again and all(fault.endswith(LATE) for result in unproven for fault in faults_of(result)):
        most = max(most, LATE_SHARE * len(data.results))
    if len(unproven) <= most:
        return
    faults = Counter(fault for result in unproven for fault in faults_of(result))
    named = ", ".join(f"{fault} in {count}" for fault, count in faults.most_common())
    again = "ran again and " if ran_again else ""
    has_lanes = len({result.place.lane for result in data.results}) > 1
    waited = any(fault.endswith((" standstill_s", LATE)) for fault in faults)
    others = sum(count for fault, count in faults.items() if not fault.endswith(LATE))
    may_share = has_lanes and 2 * others > len(unproven)  # a network that changes runs alone
    advice = (
        f"CPUs were probably short: run again on a quieter machine{', or with `--lanes 1`' * may_share}" if waited
        else "the report lists what each of them measured"
    )  # fmt: skip
    of = counted(len(data.results), "attempt")
    yield (
        f"the network was not verified in {len(unproven)} of {of}, above the limit of {math.floor(most)}; failed "
        f"checks: {named}. These attempts {again}are excluded from all figures, but so many make the exit status 1; "
        f"{advice}"
    )
