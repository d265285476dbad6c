"""How far each distribution of a delay reaches from its mean, in units of jitter. Standard library only.

`uniform` is netem's own, mean +- jitter. The others are iproute2's tables (/usr/lib/tc/*.dist), scaled by 8192.
"""

from __future__ import annotations

DISTRIBUTION_REACH = {"uniform": 1.0, "normal": 4.0, "pareto": 5461 / 8192, "paretonormal": 12305 / 8192}  # below
# Above: the largest entry of each table. It is a number of 16 bits (struct disttable in net/sched/sch_netem.c), so
# that none reaches further than 4.
DISTRIBUTION_HEIGHT = {
    "uniform": 1.0, "normal": 28858 / 8192, "pareto": 32767 / 8192, "paretonormal": 31789 / 8192,
}  # fmt: skip
