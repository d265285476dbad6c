"""Whether the verdicts of several runs on one comparison agree. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwind.report.verdicts import interval_text
from headwind.verdicts.changes import Change
from headwind.verdicts.verdict import Verdict

_MARKS = {(1, True): "▲", (-1, True): "▼", (1, False): "△", (-1, False): "▽"}


@dataclass(frozen=True, slots=True)
class Accord:
    """Whether the runs that decided a comparison agree; empty where fewer than two did."""

    text: str = ""
    is_contradiction: bool = False


def accord(verdicts: Sequence[tuple[str, Verdict]]) -> Accord:
    """What the runs say together of one comparison, from (letter, verdict); those without a verdict have no say.

    A contradiction is one run in which the candidate is clearly ahead and one in which it is clearly behind.
    """
    decided = [(letter, verdict) for letter, verdict in verdicts if verdict.is_clear or verdict is Verdict.TIE]
    if len(decided) < 2:
        return Accord()
    kinds = dict.fromkeys(verdict for _, verdict in decided)
    if len(kinds) == 1:
        return Accord("same" if len(decided) == len(verdicts) else "same where decided")
    told_apart = [f"{_joined([item[0] for item in decided if item[1] is kind])} {kind.value}" for kind in kinds]
    is_contradiction = {kind.favours for kind in kinds} >= {1, -1}
    return Accord("; ".join(told_apart), is_contradiction)


def _joined(letters: Sequence[str]) -> str:
    return ", ".join(letters[:-1]) + " and " + letters[-1] if len(letters) > 1 else letters[0]


def change_figures(change: Change) -> str:
    """`▼ 0.84x [0.80, 0.88]`: up is better; hollow where it would not survive e-BH over the matrix, or is slight."""
    favours, settled = change.verdict.favours, change.survives and not change.verdict.is_slight
    mark = _MARKS[favours, settled] if favours else "=" if change.verdict is Verdict.TIE else "?"
    return f"{mark} {interval_text(change.interval)}"


def change_word(change: Change) -> str:
    """What became of a cell: worse, better, tie, or not decided."""
    if change.is_regression or change.is_improvement:
        return "worse" if change.is_regression else "better"
    return "tie" if change.verdict is Verdict.TIE else "not decided"
