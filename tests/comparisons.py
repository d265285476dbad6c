"""Small cases of one comparison, for tests of what is said of them."""

from __future__ import annotations

import math

from headwind.arm import H2, H3, Arm
from headwind.metric import Metric
from headwind.verdicts.findings import Finding
from headwind.verdicts.judgement import Line
from headwind.verdicts.pairs import Pair
from headwind.verdicts.stats import Interval
from headwind.verdicts.verdict import Comparison, Completion, Rule, Verdict, judge
from headwind.workloads.h2load import H2load
from tests.fake import PROFILES, example_matrix

RULE = Rule()
CONDITION = example_matrix(PROFILES[0]).conditions[0]
TOTAL, *OTHERS = H2load.judged(None)
OPEN = (0.0, math.inf)


def finding(
    low: float, high: float, *, survives: bool = False, metric: Metric = TOTAL, blocks: int = 12,
    withheld: Verdict | None = None, new: Arm = H3, base: Arm = H2, verdict: Verdict | None = None,
) -> Finding:  # fmt: skip
    """As the blocks give it while more can come, with an interval of ratios."""
    ends = (math.log(low) if low else -math.inf, math.log(high))
    interval = Interval(*ends, sum(ends) / 2 if all(map(math.isfinite, ends)) else None, blocks)
    said = verdict or (Verdict.UNDECIDED if withheld else judge(interval, RULE.margin, exhausted=False))
    finishing = Completion(blocks, blocks, blocks, 0, 0, Verdict.UNDECIDED)
    comparison = Comparison(said, interval, finishing, 3.0, withheld)
    return Finding(CONDITION, Pair(base, new), metric, comparison, RULE, survives=survives)


def line(*findings: Finding) -> Line:
    return Line(CONDITION, findings[0].pair, {each.metric: each for each in findings}, {})
