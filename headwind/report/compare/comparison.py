"""Two runs and the changes from the first to the second: the source of terminal output and file. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headwind.errors import UsageError
from headwind.format import counted, enumerated, listed, short_digests
from headwind.model import Matrix, Result
from headwind.report.html.page import facts_of
from headwind.report.trust import OTHER_LABS, failed_checks
from headwind.run.codec import State
from headwind.run.data import LAST_BUDGET, RunData
from headwind.run.differences import different_settings
from headwind.run.journal import PAUSES
from headwind.run.shortfall import FAULTS
from headwind.settings import INSTALLED
from headwind.verdicts.changes import Change, Changes, changes, with_unmeasured
from headwind.verdicts.ended import complete
from headwind.verdicts.two_samples import fewest_in_each

if TYPE_CHECKING:
    from headwind.run.journal import Run

NOT_NOTED = "not noted"
# Differs between any two runs without effect: addresses and names that the lab chose, and measurements.
OWN_TO_A_RUN = (
    "ip", "mac", "network", "dst", "gateway", "prefsrc", "lladdr", "subnet", "neighbour", "neighbours", "route",
    "routes", "ceiling", "start", "testbeds", "master", "master_started_s", "workers", "boot_s", "started_s",
    OTHER_LABS, LAST_BUDGET, PAUSES, FAULTS, INSTALLED,  # the images' ids stand for their packages
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs and the changes from one to the other; `absolute`: arms' own values count as well."""

    before: RunData
    after: RunData
    found: Changes
    absolute: bool

    @property
    def is_regression(self) -> bool:
        """True if a counted change is a regression."""
        return self.found.is_regression(absolute=self.absolute)

    @property
    def counted(self) -> Sequence[Change]:
        """All changes that decide the comparison's result."""
        return (*self.found.ratios, *(self.found.arms if self.absolute else ()))

    @property
    def only(self) -> list[Only]:
        """Conditions and arms that are not compared: only one run has them, or they differ under the same name."""
        return list(_only(self.before, self.after))

    @property
    def is_same_setup(self) -> bool:
        """True if no setting of the matrix differs."""
        return not list(different_settings(self.before.matrix, self.after.matrix))

    @property
    def same_seed(self) -> str:
        """A sentence on what runs of one seed cannot show; empty if the seeds differ, or if netem took none."""
        are_seeded = self.before.was_seeded and self.after.was_seeded
        if not are_seeded or self.before.matrix.seed != self.after.matrix.seed:
            return ""
        return "both runs have the same seed: that shows changes sooner, but the second does not confirm the first"

    @property
    def unknown(self) -> Sequence[Change]:
        """Counted changes that are unknown."""
        return [change for change in self.counted if change.is_unknown]

    @property
    def is_inconclusive(self) -> bool:
        """True if a counted change is unknown, or a self-check of either run failed."""
        return bool(self.unknown or failed_checks(self.before) or failed_checks(self.after))


@dataclass(frozen=True, slots=True)
class Only:
    """Conditions or arms that cannot be compared, because one run lacks them or has others of the same name."""

    run: str  # the run that has them; empty: both runs have different ones of these names
    conditions: tuple[str, ...] = ()  # ids
    arms: tuple[str, ...] = ()


def _only(before: RunData, after: RunData) -> Iterator[Only]:
    conditions = [{item.id: item for item in data.matrix.conditions} for data in (before, after)]
    arms = [{arm.name: arm for arm in data.matrix.arms} for data in (before, after)]
    for place, data in enumerate((before, after)):
        own = [tuple(name for name in names[place] if name not in names[1 - place]) for names in (conditions, arms)]
        if any(own):
            yield Only(data.id, *own)
    other = [
        tuple(name for name, item in old.items() if new.get(name, item) != item) for old, new in (conditions, arms)
    ]
    if any(other):
        yield Only("", *other)


def compared(earlier: Run, later: Run, *, absolute: bool) -> Comparison:
    """All changes between two runs.

    Raises UsageError if nothing can be compared: without a common condition, or, unless `absolute` is set, without two
    arms in one.
    """
    before, after = RunData.of(earlier), RunData.of(later)
    found = changes_between(before, after)
    if not found.arms:
        asked, _ = _asked_of_both(before, after)
        lacking = "arm" if asked.conditions else "condition"
        settings = "; an arm's settings and its server's image are part of it" if asked.conditions else ""
        raise UsageError(f"{before.id} and {after.id} have no {lacking} in common{settings}: nothing can be compared")
    if not (found.ratios or absolute):
        raise UsageError(
            f"{before.id} and {after.id} have no comparison of two arms in common, and single arms cannot be "
            "distinguished from the machine; --absolute compares their values anyway"
        )
    return Comparison(before, after, found, absolute)


def changes_between(before: RunData, after: RunData) -> Changes:
    """All changes between two runs, with everything that both should have measured and one did not as unknown."""
    results = same_networks(before, after), after.latest
    asked, _ = _asked_of_both(before, after)
    return with_unmeasured(changes(after.matrix, *results), asked, *results)


def _asked_of_both(before: RunData, after: RunData) -> tuple[Matrix, dict[str, tuple[int, int]]]:
    """The common part of both matrices, and the number of complete blocks of each run by condition."""
    conditions = tuple(item for item in after.matrix.conditions if item in set(before.matrix.conditions))
    arms = tuple(arm for arm in after.matrix.arms if arm in before.matrix.arms)
    blocks = {
        item.id: (complete(before.rows.get(item.id, {})), complete(after.rows.get(item.id, {}))) for item in conditions
    }
    return replace(after.matrix, conditions=conditions, arms=arms), blocks


def same_networks(before: RunData, after: RunData) -> list[Result]:
    """Results of the earlier run for conditions that are equal in the later one, not only in name."""
    shared = set(after.matrix.conditions)
    return [result for result in before.latest if result.trial.block.condition in shared]


def warnings(before: RunData, after: RunData) -> Iterator[str]:
    """Possible causes of a change besides chance: order, networks, settings and environment."""
    if before.status.started_at > after.status.started_at:
        yield f"{before.id} began after {after.id}: better and worse describe the earlier run, {after.id}"
    for data in (before, after):
        if data.status.state is State.RUNNING:
            yield f"{data.id} is still in progress: its results so far are compared"
        if failed := failed_checks(data):
            yield f"{data.id}: self-checks FAILED in {enumerated(failed)}: do not rely on this comparison"
        for name, deviations in data.network_doubts.items():
            yield f"{data.id}: the network of {name} was not as requested: {'; '.join(deviations)}"
    yield from _reached_by_one(before, after)
    for line in different_settings(before.matrix, after.matrix):
        yield f"matrix: {line}"
    old, new = (named_facts(data.environment) for data in (before, after))
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield f"environment: {name}: {old.get(name, NOT_NOTED)} -> {new.get(name, NOT_NOTED)}"


def _reached_by_one(before: RunData, after: RunData) -> Iterator[str]:
    """The conditions of which only one run has enough blocks, if the other one chose its blocks within a budget."""
    need = fewest_in_each(after.matrix.repeat.confidence)
    asked, blocks = _asked_of_both(before, after)
    for place, data in enumerate((before, after)):
        few = [name for name, have in blocks.items() if have[place] < need <= have[1 - place]]
        if few and data.budget_s is not None and data.status.state is State.FINISHED and not data.searched:
            yield (
                f"{data.id}: too few blocks in {len(few)} of {counted(len(asked.conditions), 'condition')} although "
                f"the other run has enough ({listed(few)}): if the budget was short, fewer conditions (key "
                "`conditions`) or a number as `repeat` give both runs the same ones"
            )


def named_facts(environment: Mapping[str, Any]) -> dict[str, str]:
    """The lasting facts of an environment by name, with short digests; of other labs only their number."""
    facts = {_in_words(name): short_digests(value) for name, value in facts_of(lasting(environment))}
    return {**facts, "other labs on the machine": str(len(environment.get(OTHER_LABS, ())) or "none")}


def _in_words(name: str) -> str:
    """A fact's name in words: `testbed -> h2load -> patch_sha256` is "testbed -> h2load -> patch digest"."""
    return name.replace("sha256", "digest").replace("_", " ")


def lasting(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment without facts that are chosen or measured again for every run."""
    kept = {}
    for key, value in environment.items():
        if key not in OWN_TO_A_RUN:
            kept[key] = lasting(value) if isinstance(value, Mapping) else json.loads(json.dumps(value))
    return kept
