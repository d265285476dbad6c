"""The lab on fake testbeds that forget what was asked of them: for runs of any length."""

from __future__ import annotations

from pathlib import Path

import lab
from tests.fake_testbed import World, fake_dependencies, fake_testbed


class Forgetful(list):  # type: ignore[type-arg]
    """A list with the last item only: what a model of a testbed remembers is no memory of the lab."""

    def append(self, item: object) -> None:
        """Replace the last item."""
        self[:] = [item]


def simulate(matrix: Path, reports: Path) -> int:
    """Run a matrix on fake testbeds, as lab.py would, and return its exit status."""

    def world() -> World:
        made = World()
        made.order, made.applied, made.asked, made.provided = Forgetful(), Forgetful(), Forgetful(), Forgetful()
        return made

    return lab.main(
        ["run", str(matrix), "-v", "--reports", str(reports)], fake_dependencies(lambda: fake_testbed(world()))
    )
