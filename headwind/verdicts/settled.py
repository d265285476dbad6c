"""Which comparisons are settled: e-BH over the matrix after each block of a run; a survivor stays settled. Pure.

Every comparison of protocols enters with the evidence for its claim after a block (verdict.follow). Those that survive
are held from then on, with that verdict and that evidence. The block at which a comparison is held depends on nothing
later, so its evidence has an expectation of at most 1 if its claim is false (a stopped test martingale), and e-BH keeps
the false share of all that are held below FALSE_SHARE, at any stopping time. Since stats.e_bh ignores open comparisons,
their later claims remove none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from headwind.verdicts.findings import FALSE_SHARE, Finding, Key
from headwind.verdicts.stats import e_bh
from headwind.verdicts.verdict import NO_CLAIM, Claim


class Settlement:
    """The comparisons that are settled after the blocks seen so far."""

    def __init__(self, comparisons: int) -> None:
        self.held: dict[Key, Claim] = {}
        self.looks = 0  # blocks seen
        self._comparisons = comparisons  # number of protocol comparisons in the whole matrix, by every judged metric
        self._open: dict[Key, Claim] = {}

    def look(self, findings: Iterable[Finding], row: int) -> None:
        """Take in the claims of one condition's comparisons after the block in this row (from 0)."""
        self.looks += 1
        self.see({finding.key: claim_at(finding, row) for finding in findings if finding.claims})

    def see(self, claims: Mapping[Key, Claim]) -> None:
        """Take in current claims of some comparisons, and hold those that survive among all."""
        stronger = False
        for key, claim in claims.items():
            if key not in self.held:
                stronger |= claim.log_e_value > self._open.pop(key, NO_CLAIM).log_e_value
                if claim is not NO_CLAIM:
                    self._open[key] = claim
        if stronger:  # otherwise no more can survive than before
            self._hold()

    def _hold(self) -> None:
        keys = list(self._open)
        evidence = [claim.log_e_value for claim in self._open.values()]
        silent = self._comparisons - len(keys) - len(self.held)
        kept = [claim.log_e_value for claim in self.held.values()]
        for key, survives in zip(keys, e_bh(evidence, FALSE_SHARE, kept, silent), strict=True):
            if survives:
                self.held[key] = self._open.pop(key)


def claim_at(finding: Finding, row: int) -> Claim:
    """The claim of a comparison after the block in this row of its condition."""
    blocks = bisect_right(finding.rows, row)
    return finding.claims[blocks - 1] if finding.claims and blocks else NO_CLAIM


def held_at_once(findings: Sequence[Finding]) -> dict[Key, Claim]:
    """The claims that survive a single look, after a number of blocks that was fixed before the first."""
    protocols = [finding for finding in findings if not finding.pair.is_check]
    settlement = Settlement(len(protocols))
    settlement.see({finding.key: finding.claims[-1] if finding.claims else NO_CLAIM for finding in protocols})
    return settlement.held
