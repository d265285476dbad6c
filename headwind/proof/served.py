"""Checks what the server was to be: with so many processes, and so late with its answers. Pure.

Its log says how late each answer began (impair/messages.py, Answers), by nginx's clock, which has whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwind.metric import Workload
from headwind.model import Check
from impair.messages import Answers
from impair.profile import Direction

CLOCK_S = 0.001  # of nginx: a wait may show one of its milliseconds less
LATE_S = 0.010  # what a busy machine may add, in the median


def check_served(
    workload: Workload, served: Answers | None, answered: int, workers: int, busy_s: float = 0.0
) -> Iterator[Check]:
    """What the workload asks of the server, against what it was: its log, its processes, and the answers that came.

    `busy_s` is the processor time that the server used in the trial: requests that come all at once wait for it, too.
    One worker is what nobody asks for: that it was so is no line of the proof, that it was not so is one. The checks
    stand with the downlink, as does all that concerns both directions.
    """
    if workload.workers != 1 or workers != 1:
        wanted, seen = float(workload.workers), float(workers)
        note = "processes of nginx when the client started"
        yield Check(Direction.DOWNLINK, "workers", wanted, None, seen, 0.0, wanted == seen, note)
    if workload.server_delay_s and served:
        yield _check_delay(workload.server_delay_s, served, answered, LATE_S + busy_s)


def _check_delay(wanted_s: float, served: Answers, answered: int, late_s: float) -> Check:
    """Every answer waited, none for a shorter time than asked, and half of them for at most `late_s` more.

    `answered` are those that the client counted: the log has at least as many. Where there was none, there is nothing
    to check.
    """
    shortest_s, median_s, longest_s = served.shortest_wait_s, served.median_wait_s, served.longest_wait_s
    if shortest_s is None or median_s is None or longest_s is None:
        all_waited, note = answered == served.count == 0, f"no answer waited; the client counted {answered}"
    else:
        all_waited = served.waited == served.count >= answered and shortest_s > wanted_s - CLOCK_S - 1e-6
        all_waited = all_waited and median_s <= wanted_s + late_s
        note = (
            f"{served.waited} of {served.count} answers waited, {shortest_s * 1000:.0f} to {longest_s * 1000:.0f} ms, "
            f"by the server's log; the client counted {answered}"
        )
    return Check(Direction.DOWNLINK, "server_delay_s", wanted_s, None, median_s, late_s, all_waited, note)
