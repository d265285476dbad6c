"""The table of impairment checks: requested, configured and measured values for each condition and direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwind.arm import Role
from headwind.format import counted, plus_minus
from headwind.model import Check, Condition
from headwind.plan.doubts import IN_ORDER
from headwind.proof.pooled import Pooled
from headwind.proof.tally import Seen
from headwind.run.data import RunData, latest_of
from impair.profile import Direction

# quantities that no matrix requests
ONLY_WHEN_BROKEN = frozenset(
    {"settings_changed", "hosts_changed", "oversize_frames", "probe_bad_payloads", "other_congestion"}
)
OF_SCHEDULES = frozenset({"change_late_s"})  # requested as 0, and of interest whenever it is measured


@dataclass(frozen=True, slots=True)
class Truth:
    """A quantity in one direction of one condition, over all trials of all protocols, including invalid ones.

    `measured` is the mean of the trials, weighted by the packets that netem handled if the quantity is a ratio of
    packets; None if it could not be measured.
    """

    direction: Direction
    quantity: str
    requested: float | None
    configured: tuple[float | None, ...]  # every value that was read back; more than one is a fault
    measured: float | None
    lowest: float | None
    highest: float | None
    passed: int  # trials
    trials: int
    unmeasured: int  # trials among them without a measurement
    too_few: int  # trials among them with too few packets for a ratio, so that any value is within the tolerance
    tolerance: float | None  # the widest tolerance of a single trial around the request
    notes: tuple[str, ...]  # why trials failed or were not measured, without duplicates
    together: tuple[Pooled, ...] = ()  # tests of all trials together, if there are any
    span: str = ""  # the network of a profile that changes, as in Check

    @property
    def whole(self) -> Pooled | None:
        """The test of the trials of the most arms against the request."""
        asked = [question for question in self.together if not question.between]
        return max(asked, key=lambda question: len(question.arms), default=None)

    @property
    def is_informative(self) -> bool:
        """True if a deviation by half of the request would have been detected; otherwise the test is uninformative."""
        return self.whole is not None and self.whole.resolution <= abs(self.whole.requested) / 2

    @property
    def single_trials(self) -> str:
        """The trials that passed: `20 of 21 (2 with too few packets, 1 not measured)`."""
        limits = [f"{self.too_few} with too few packets"] * bool(self.too_few)
        limits += [f"{self.unmeasured} not measured"] * bool(self.unmeasured)
        passed = f"{self.passed} of {self.trials}"
        return f"{passed} ({', '.join(limits)})" if limits else passed

    @property
    def detection_limit(self) -> str:
        """Detection limit of all trials together: `40,000 packets: detection limit ± 0.2 percentage points`.

        Empty without such a test.
        """
        if self.whole is None:
            return ""
        counted_ = counted(self.whole.count, self.whole.of.removesuffix("s"))
        if not self.is_informative:
            where = "" if self.whole.of == "trials" else f" in {counted(self.trials, 'trial')}"
            return f"{counted_}{where}: too few{' trials' if where else ''}"
        return f"{counted_}: detection limit {plus_minus(self.quantity, self.whole.resolution)}"

    @property
    def is_of_interest(self) -> bool:
        """True if it was requested, or is not as it should be. The other rows show that nothing else happened."""
        is_shown = bool(self.requested) or bool(self.span) or self.quantity in OF_SCHEDULES
        return is_shown or self.passed < self.trials or bool(self.findings)

    @property
    def is_asked(self) -> bool:
        """True if it was requested directly (the loss of probes follows from others), or is not as it should be."""
        is_wrong = self.passed < self.trials or bool(self.findings)
        return is_wrong or bool(self.requested and not self.quantity.startswith("probe_"))

    @property
    def findings(self) -> list[str]:
        """Deviations that all trials together show."""
        return [question.text for question in self.together if not question.passed]


def truth_table(data: RunData, condition: Condition) -> list[Truth]:
    """Every quantity that was checked in a condition, uplink first, in the order of the checks.

    It covers all arms except the slower twin, which has another network.
    """
    arms = (arm for arm in data.matrix.arms_in(condition) if arm.role is not Role.SLOWER)
    results = [result for arm in arms for result in latest_of(data.attempts(condition, arm))]
    found: dict[tuple[Direction, str, str], list[tuple[Seen, Check]]] = {}
    for result in results:
        for check in result.proof.checks:
            place = check.direction, check.quantity, check.span
            found.setdefault(place, []).append((data.seen[result.trial.id], check))
    ordered = sorted(found, key=lambda key: list(Direction).index(key[0]))
    asked: dict[tuple[Direction, str, str], list[Pooled]] = {}
    for question in data.pooled:
        if question.condition == condition:
            asked.setdefault((question.direction, question.quantity, question.span), []).append(question)
    table = [replace(_truth(found[key]), together=tuple(asked.get(key, ()))) for key in ordered]
    ordered_in = [direction for direction in Direction if condition.profile.link(direction).jitters_in_order]
    table = [replace(truth, notes=(*truth.notes, IN_ORDER)) if truth.quantity == "delay_s" and
             truth.direction in ordered_in else truth for truth in table]  # fmt: skip
    return [truth for truth in table if truth.quantity not in ONLY_WHEN_BROKEN or truth.passed < truth.trials]


def _truth(checked: Sequence[tuple[Seen, Check]]) -> Truth:
    checks = [check for _, check in checked]
    measured = [(check.measured, packets_of(seen, check)) for seen, check in checked if check.measured is not None]
    values = [value for value, _ in measured]
    return Truth(
        direction=checks[0].direction,
        quantity=checks[0].quantity,
        requested=checks[0].requested,
        configured=tuple(dict.fromkeys(check.configured for check in checks)),
        measured=pooled(measured),
        lowest=min(values, default=None),
        highest=max(values, default=None),
        passed=sum(check.passed for check in checks),
        trials=len(checks),
        unmeasured=len(checks) - len(measured),
        too_few=sum(_accepts_any(check) for check in checks if check.measured is not None),
        tolerance=max((check.tolerance for check in checks if check.tolerance is not None), default=None),
        notes=tuple(dict.fromkeys(check.note for check in checks if not check.passed or check.measured is None)),
        span=checks[0].span,
    )


def _accepts_any(check: Check) -> bool:
    """True for a ratio of so few packets that any value is within the tolerance."""
    if not check.quantity.endswith("_ratio") or check.requested is None or check.tolerance is None:
        return False
    return check.tolerance >= max(check.requested, 1 - check.requested)


def pooled(measured: Sequence[tuple[float, float]]) -> float | None:
    """The weighted mean of (value, weight); with equal weights if any weight is unknown (0)."""
    if not measured:
        return None
    if any(weight <= 0 for _, weight in measured):
        return math.fsum(value for value, _ in measured) / len(measured)
    return math.fsum(value * weight for value, weight in measured) / sum(weight for _, weight in measured)


def packets_of(seen: Seen, check: Check) -> float:
    """Number of netem's decisions behind a measured ratio; 0 if not counted, or for anything but a ratio.

    A probe train is the same for every trial of a condition, so its measurements (times, rates, shares of probes) have
    equal weights.
    """
    passage = seen.passages.get(check.direction, {}).get(check.span)
    if not check.quantity.endswith("_ratio") or check.quantity.startswith("probe_") or not passage:
        return 0
    events = {
        "duplicate_ratio": passage.duplicate, "corrupt_ratio": passage.corrupt, "reorder_ratio": passage.reorder,
    }.get(check.quantity, passage.loss)  # fmt: skip
    return events.decisions * events.share
