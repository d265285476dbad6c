"""Compares published figures with this run: the same direction, another one, or not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headwind.arm import Arm
from headwind.format import NOTHING
from headwind.model import Condition, Published, PublishedRow
from headwind.run.data import RunData
from headwind.verdicts.findings import Finding, Pair, pairs_of
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.verdict import Rule, Verdict

Word = Literal["reproduced", "contradicted", "no verdict"]
SLIGHT = (Verdict.SLIGHTLY_FASTER, Verdict.SLIGHTLY_SLOWER)
OPEN = (Verdict.INCONCLUSIVE, Verdict.UNDECIDED)


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison in one condition, as published and as measured by the primary metric."""

    condition_id: str
    base: Arm
    new: Arm
    published_base_s: float | None  # None: it gave no result
    published_new_s: float | None
    published_ratio: float | None  # base / new, above 1: new is faster; None where one gave no result
    published_verdict: Verdict  # FASTER, SLOWER, TIE, COMPLETES_MORE, COMPLETES_LESS; INCONCLUSIVE: both gave none
    finding: Finding | None  # None where nothing was compared
    word: Word

    @property
    def published_text(self) -> str:
        """What the article says, as a cell has it: `h3 1.69x`, `tie 1.02x`, `h3 alone gave a result`."""
        ahead = self.new if self.published_verdict.favours > 0 else self.base
        if self.published_ratio is None:
            return f"{ahead.name} alone gave a result" if self.published_verdict.favours else NOTHING
        ratio = max(self.published_ratio, 1 / self.published_ratio)
        return f"{ahead.name if self.published_verdict.favours else 'tie'} {ratio:.2f}x"

    @property
    def side(self) -> str:
        """Where there is no verdict: whether what was seen is on the side of what was published. It proves nothing."""
        estimate = self.finding.comparison.interval.estimate if self.finding else None
        if self.word != "no verdict" or not estimate or not self.published_verdict.favours:
            return ""
        return "same side" if estimate * self.published_verdict.favours > 0 else "other side"


@dataclass(frozen=True, slots=True)
class Source:
    """One article."""

    title: str
    note: str
    rows: tuple[Row, ...]
    gaps: Mapping[str, Sequence[str]]  # condition ids of what has no counterpart here, by the reason


def published_rows(data: RunData, verdicts: Judgement) -> list[Source]:
    """Every article of the matrix with its comparisons, in the article's order and within a row in the matrix's.

    An article of which nothing has a counterpart stays, with its gaps alone: the reader learns why nothing is compared.
    """
    conditions = {condition.id: condition for condition in data.matrix.conditions}
    findings = {
        (line.condition.id, line.pair): line.findings.get(line.condition.workload.primary())
        for line in verdicts.compared
    }

    def rows(source: Published) -> Iterator[Row]:
        for row in source.rows:
            condition = conditions.get(row.condition_id)
            for pair in _pairs(data, condition, row) if condition and not row.gap else ():
                yield _compared(row, pair, findings.get((row.condition_id, pair)), verdicts.rule)

    return [Source(source.title, source.note, tuple(rows(source)), source.gaps) for source in data.matrix.published]


def _pairs(data: RunData, condition: Condition, row: PublishedRow) -> Iterator[Pair]:
    """The comparisons for which the article has both sides; the candidate is the later one in the matrix."""
    for pair in pairs_of(data.matrix, condition):
        if {pair.base.name, pair.new.name} <= row.times_s.keys():
            yield pair


def _compared(row: PublishedRow, pair: Pair, finding: Finding | None, rule: Rule) -> Row:
    base_s, new_s = row.times_s[pair.base.protocol], row.times_s[pair.new.protocol]
    verdict = published_verdict(base_s, new_s, rule.margin_ratio)
    return Row(
        condition_id=row.condition_id,
        base=pair.base,
        new=pair.new,
        published_base_s=base_s,
        published_new_s=new_s,
        published_ratio=None if base_s is None or new_s is None else base_s / new_s,
        published_verdict=verdict,
        finding=finding,
        word=word_for(verdict, finding.counted if finding else Verdict.UNDECIDED),
    )


def published_verdict(base_s: float | None, new_s: float | None, margin_ratio: float) -> Verdict:
    """What two published times say of the candidate by the rule of this run; None is a side that gave no result.

    Articles rarely tell how sure a figure is, so the bare times are taken at their word: closer than the margin is a
    tie. A side that alone gave a result completes more often. If neither did, the article says nothing.
    """
    if base_s is None or new_s is None:
        if base_s is new_s:
            return Verdict.INCONCLUSIVE
        return Verdict.COMPLETES_MORE if base_s is None else Verdict.COMPLETES_LESS
    if base_s > new_s * (1 + margin_ratio):
        return Verdict.FASTER
    return Verdict.SLOWER if new_s > base_s * (1 + margin_ratio) else Verdict.TIE


def word_for(published: Verdict, measured: Verdict) -> Word:
    """Whether a measured verdict has the direction of the published one: candidate, baseline, or neither (a tie).

    Only directions are compared: faster here reproduces `completes more often` there. A slight difference is surely on
    its side of 1, but perhaps within the margin: it has its direction, against a published tie it proves nothing.
    """
    if published in OPEN or measured in OPEN or (published is Verdict.TIE and measured in SLIGHT):
        return "no verdict"
    return "reproduced" if published.favours == measured.favours else "contradicted"
