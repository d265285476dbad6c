"""Waits of the requests of a page, as far as their recorded times show them. Pure.

Two rules, for the median trial of each arm. HTTP/1.1 carries one request at a time on a connection: a request waited
for one as long as it was wanted and not sent while all connections were in use. A page stood still as long as requests
waited for their first bytes and no answer was on its way. The reason is not in the times, so the packets that the
network dropped in the trial are given with it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise

from headwind.arm import Arm
from headwind.format import arm_name, counted, measured
from headwind.model import Condition
from headwind.run.page_requests import H1, PageRequest, PageTrial
from impair.profile import Direction

LEAST_S = 0.001  # shortest wait that counts; Chromium's times have steps of 0.1 ms
LEAST_SHARE = 0.1  # of the page's time: shortest standstill that is reported
LEAST_STILL_S = 0.05  # the same: below it, the browser may have been busy
ROUND_TRIPS = 3.0  # a standstill of this length is no ordinary wait for an answer
TOGETHER_S = 0.002  # answers that begin so soon after a standstill came together
FEWEST_TOGETHER = 3

Times = tuple[float, float]


def waits(condition: Condition, arm: Arm, trial: PageTrial) -> Iterator[str]:
    """Sentences on what the requests of the arm's median trial waited for."""
    requests = trial.requests
    connections, waited = connection_waits(requests)
    if waited:
        used = {1: "the connection was", 2: "both connections were"}.get(
            connections, f"all {connections} connections were"
        )
        yield (f"In the median trial of {arm_name(arm)}, {len(waited)} of {counted(len(requests), 'request')} waited "
               f"while {used} in use (median {measured('wait_s', statistics.median(waited))}).")  # fmt: skip
    begun, ended = standstill(requests)
    length_s, whole_s = ended - begun, max((request.done_s for request in requests), default=0.0)
    if length_s >= max(LEAST_STILL_S, LEAST_SHARE * whole_s, _usual_s(condition)):
        waiting = sum(0 < request.sent_s <= begun < request.first_byte_s for request in requests)
        together = sum(ended <= request.first_byte_s <= ended + TOGETHER_S for request in requests)
        then = f"; then the answers to {together} of them began within 2 ms" if together >= FEWEST_TOGETHER else ""
        long = measured("still_s", length_s)
        yield (f"In the median trial of {arm_name(arm)}, nothing of any answer came for {long} while "
               f"{counted(waiting, 'request')} waited{then}{_dropped(trial)}.")  # fmt: skip


def connection_waits(requests: Sequence[PageRequest]) -> tuple[int, list[float]]:
    """The most connections in use at once, and for how long each request waited that had to wait for one.

    Only HTTP/1.1: the others send several requests at once on a connection. No more are in use than were opened: the
    end of an answer may be recorded after the next request was sent on its connection.
    """
    own = [request for request in requests if request.protocol == H1 and request.sent_s]
    uses = sorted(_use(request) for request in own)
    moments = sorted({moment for use in uses for moment in use})
    busy = [(first, last, sum(start <= first < end for start, end in uses)) for first, last in pairwise(moments)]
    most = min(max((count for _, _, count in busy), default=0), sum(request.opened_connection for request in own))
    full = [(first, last) for first, last, count in busy if count >= most]
    waited = [_overlap((request.start_s, _use(request)[0]), full) for request in own]
    return most, [wait_s for wait_s in waited if wait_s >= LEAST_S]


def _use(request: PageRequest) -> Times:
    """When a request has a connection for itself: from the handshake for it, or from when it was sent."""
    _, begun, _, sent, _, done = request.moments
    return begun if request.opened_connection else sent, done


def _overlap(time: Times, others: Sequence[Times]) -> float:
    return sum(max(0.0, min(time[1], end) - max(time[0], start)) for start, end in others)


def standstill(requests: Sequence[PageRequest]) -> Times:
    """Begin and end of the longest time in which requests waited for their first bytes, and none was being received.

    It ends when another request is sent, too.
    """
    answered = [request.moments[3:] for request in requests if request.sent_s and request.first_byte_s]
    moments = sorted({moment for times in answered for moment in times})
    still = (
        (begun, ended) for begun, ended in pairwise(moments)
        if any(sent <= begun < first for sent, first, _ in answered)
        and not any(first <= begun < done for _, first, done in answered)
    )  # fmt: skip
    return max(still, key=lambda time: time[1] - time[0], default=(0.0, 0.0))


def _usual_s(condition: Condition) -> float:
    """An ordinary wait for an answer, tripled: round trip with its jitter, and the delay of the server."""
    delays = [condition.profile.link(direction).delay for direction in Direction]
    trip_s = sum(delay.delay_s + delay.jitter_s for delay in delays if delay)
    return ROUND_TRIPS * (trip_s + condition.workload.server_delay_s)


def _dropped(trial: PageTrial) -> str:
    """`; the network dropped 5 of 376 packets to the client`, if it dropped any, and if it did not change meanwhile."""
    checks = [
        check for check in trial.result.proof.checks
        if check.direction is Direction.DOWNLINK and check.quantity == "loss_ratio"
    ]  # fmt: skip
    if len(checks) != 1 or not checks[0].measured or checks[0].span:
        return ""
    return f"; in the whole trial the network dropped {checks[0].note} to the client"
