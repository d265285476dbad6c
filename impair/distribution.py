"""The range of each delay distribution around its mean, in units of jitter. Standard library only.

`uniform` is netem's own, mean +- jitter. The others are iproute2's tables (/usr/lib/tc/*.dist), scaled by TABLE_SCALE.
"""

from __future__ import annotations

import math

TABLE_SCALE = 8192  # NETEM_DIST_SCALE in net/sched/sch_netem.c: a table entry of 8192 is one jitter
# Below the mean: the smallest entry of each table.
DISTRIBUTION_REACH = {
    "uniform": 1.0, "normal": 4.0, "pareto": 5461 / TABLE_SCALE, "paretonormal": 12305 / TABLE_SCALE,
}  # fmt: skip
# Above it: the largest. Entries are numbers of 16 bits (struct disttable in net/sched/sch_netem.c), so that none
# reaches further than 4.
DISTRIBUTION_HEIGHT = {
    "uniform": 1.0, "normal": 28858 / TABLE_SCALE, "pareto": 32767 / TABLE_SCALE, "paretonormal": 31789 / TABLE_SCALE,
}  # fmt: skip


def clipping(distribution: str, jitter_s: float, delay_s: float) -> tuple[str, str] | None:
    """The error for a jitter that makes some delays negative, and the largest that does not; else None."""
    reach = DISTRIBUTION_REACH[distribution]
    if reach * jitter_s <= delay_s * (1 + 1e-12):
        return None
    jitter, delay = _written(jitter_s), _written(delay_s)
    least = _written(math.ceil(round(reach * jitter_s * 1e6, 3)) / 1e6)
    what = f"a {distribution} jitter of {jitter} takes up to {least} off the delay {delay}"
    if reach == 1:
        what = f"jitter {jitter} is more than the delay {delay}"
    most_us = math.floor(round(delay_s / reach * 1e6, 3))
    enough = f"a delay of at least {least}"
    hint = f"write at most {_written(most_us / 1e6)}, or {enough}" if most_us else f"it needs {enough}"
    return f"{what}: netem would clip negative delays to zero", hint


def _written(seconds: float) -> str:
    """`50ms` for 0.05, as a matrix has it."""
    unit, factor = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 0.001 else ("us", 1e6)
    return f"{seconds * factor:.9g}{unit}" if seconds else "0s"
