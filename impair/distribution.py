"""How far each distribution of a delay reaches from its mean, in units of jitter. Standard library only.

`uniform` is netem's own, mean +- jitter. The others are iproute2's tables (/usr/lib/tc/*.dist), scaled by TABLE_SCALE.
"""

from __future__ import annotations

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
