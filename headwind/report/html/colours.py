"""Colours and line patterns of arms in charts: templates/charts.css has those of plain arms and of twins."""

from __future__ import annotations

from collections.abc import Iterable

from headwind.arm import PLAIN, Arm

COLOURS = 8  # --a1 to --a8 of charts.css
DASHES = ("none", "2 3.5", "9 3.5", "9 3 2 3", "4 2.5", "9 3 2 3 2 3", "14 4", "14 4 2 4")


def arm_style(arms: Iterable[Arm]) -> str:
    """CSS for the arms that charts.css does not know: a colour and a pattern for each, and those of twins for theirs.

    Names of arms are safe inside it: headwind.model.ARM_NAME.
    """
    rules = []
    for number, arm in enumerate(arm for arm in arms if arm not in PLAIN):
        place = number % COLOURS
        rules.append(f".chart .{arm}, .arm.{arm}, .cell.{arm} {{ --mark: var(--a{place + 1}); }}")
        rules.append(f".chart .{arm}.curve {{ stroke-dasharray: {DASHES[place]}; }}")
        rules += [f".chart .{arm}-{role} {{ --mark: var(--{role}); }}" for role in ("again", "slower")]
    return "\n".join(rules)
