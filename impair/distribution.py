"""How far each distribution of a delay reaches from its mean, in units of jitter. Standard library only.

`uniform` is netem's own, mean +- jitter. The others are iproute2's tables (/usr/lib/tc/*.dist), scaled by 8192.
"""

from __future__ import annotations

DISTRIBUTION_REACH = {"uniform": 1.0, "normal": 4.0, "pareto": 5461 / 8192, "paretonormal": 12305 / 8192}  # below
# Above: an entry is a number of 16 bits, and each table has the largest one, 32767 (struct disttable and tabledist() in
# net/sched/sch_netem.c).
DISTRIBUTION_HEIGHT = {"uniform": 1.0, "normal": 4.0, "pareto": 4.0, "paretonormal": 4.0}
