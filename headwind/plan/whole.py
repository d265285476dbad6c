"""Holds results back until every arm of their block has one: half a block settles nothing, and to judge costs time."""

from __future__ import annotations

from collections.abc import Iterable

from headwind.model import Result


class WholeBlocks:
    """Is told results as they come, and gives those of whole blocks on. `results` are there from the beginning."""

    def __init__(self, results: Iterable[Result] = ()) -> None:
        self._halves: dict[str, list[Result]] = {}  # by the block's id
        self._whole: set[str] = set()  # ids
        self.completed(results)

    def completed(self, results: Iterable[Result]) -> list[Result]:
        """Take in results; those that belong to whole blocks now, and were not given before, in their order.

        Of a block that was whole before, because it is tried again, each result is given at once.
        """
        given: list[Result] = []
        for result in results:
            block = result.trial.block
            half = self._halves.setdefault(block.id, [])
            half.append(result)
            if block.id in self._whole or {each.trial.arm for each in half} >= set(block.order):
                self._whole.add(block.id)
                given += self._halves.pop(block.id)
        return given
