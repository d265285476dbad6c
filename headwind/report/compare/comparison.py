"""Two runs and what changed from the earlier to the later: what terminal and file are drawn from. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwind.errors import UsageError
from headwind.format import short_digests
from headwind.model import Result
from headwind.report.html.page import facts_of
from headwind.report.trust import OTHER_LABS
from headwind.run.codec import matrix_to_json
from headwind.run.data import RunData
from headwind.run.differences import differences
from headwind.verdicts.changes import Change, Changes, changes

if TYPE_CHECKING:
    from headwind.run.journal import Run

NOT_NOTED = "not noted"
# What differs between any two runs and cannot matter: addresses and names that the lab drew, and what it measured.
OWN_TO_A_RUN = (
    "ip", "mac", "network", "dst", "gateway", "prefsrc", "lladdr", "subnet", "neighbour", "neighbours", "route",
    "routes", "ceiling", "start", "testbeds", "master", "master_started_s", "workers", "boot_s", "started_s",
    OTHER_LABS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs and what changed from one to the other; `absolute`: arms' own values count as well."""

    before: RunData
    after: RunData
    found: Changes
    absolute: bool

    @property
    def is_regression(self) -> bool:
        """Whether anything got worse that counts."""
        return self.found.is_regression(absolute=self.absolute)

    @property
    def counted(self) -> Sequence[Change]:
        """All that decides how the comparison ends."""
        return (*self.found.ratios, *(self.found.arms if self.absolute else ()))

    @property
    def unknown(self) -> Sequence[Change]:
        """Those of which nothing can be told."""
        return [change for change in self.counted if change.is_unknown]


def compared(earlier: Run, later: Run, *, absolute: bool) -> Comparison:
    """Everything that changed between two runs.

    Raises UsageError when nothing can be compared: without a condition in common, or, unless `absolute` is asked for,
    without two arms in one.
    """
    before, after = RunData.of(earlier), RunData.of(later)
    found = changes(after.matrix, same_networks(before, after), after.latest)
    if not found.arms:
        raise UsageError(f"{before.id} and {after.id} have no condition in common: nothing can be compared")
    if not (found.ratios or absolute):
        raise UsageError(
            f"{before.id} and {after.id} have no two arms in common, and a single one cannot be told from the machine; "
            "--absolute compares its values all the same"
        )
    return Comparison(before, after, found, absolute)


def same_networks(before: RunData, after: RunData) -> list[Result]:
    """Results of the earlier run for conditions that are what they are in the later one, not only called the same."""
    shared = set(after.matrix.conditions)
    return [result for result in before.latest if result.trial.block.condition in shared]


def warnings(before: RunData, after: RunData) -> Iterator[str]:
    """Everything besides chance that may be behind a change: settings and environment that are not the same."""
    for line in differences(matrix_to_json(before.matrix), matrix_to_json(after.matrix)):
        yield f"matrix: {line}"
    old, new = (named_facts(data.environment) for data in (before, after))
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield f"environment: {name}: {old.get(name, NOT_NOTED)} -> {new.get(name, NOT_NOTED)}"


def named_facts(environment: Mapping[str, Any]) -> dict[str, str]:
    """What lasts of an environment, by names in words, with short digests; of other labs only their number."""
    facts = {_in_words(name): short_digests(value) for name, value in facts_of(lasting(environment))}
    return {**facts, "other labs on the machine": str(len(environment.get(OTHER_LABS, ())) or "none")}


def _in_words(name: str) -> str:
    """`testbed -> h2load -> patch_sha256` is "testbed -> h2load -> patch digest"."""
    return name.replace("sha256", "digest").replace("_", " ")


def lasting(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment without what is drawn or measured anew for every run."""
    kept = {}
    for key, value in environment.items():
        if key not in OWN_TO_A_RUN:
            kept[key] = lasting(value) if isinstance(value, Mapping) else json.loads(json.dumps(value))
    return kept
