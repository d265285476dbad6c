"""Warnings about a valid matrix: networks that are hardly meant as written, arms that cannot finish. Pure.

Each is a message with its place in the file and a suggestion, in the form of a matrix error; the matrix is not refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from headwind.format import arm_name, as_written, duration, enumerated, measured, setting
from headwind.matrix.profile import another_unit
from headwind.matrix.reader import KeyPath, located
from headwind.matrix.shortest import unfinished
from headwind.matrix.units import quoted
from headwind.model import Matrix
from headwind.proof.expectation import Expectation
from headwind.settings import Windows
from headwind.verdicts.congestion import confounded
from impair.profile import Direction, GilbertElliott, Link, Profile

IN_ORDER = "With a rate, jitter keeps packets in order, so most packets of a train take longer than the delay"
REORDERING = (
    "jitter without a rate reorders packets, which can make HTTP/3 several times slower "
    "(docs/findings.md); a `rate`, however high, keeps them in order"
)
MOST_LOST = 0.9  # on average: above it hardly any packet arrives, and retransmissions are lost as well

Located = tuple[KeyPath, tuple[str, str]]  # its place; message and hint


def warnings_of(matrix: Matrix) -> list[str]:
    """The printed warnings, in the order of the file."""
    profiles = {condition.profile.name: condition.profile for condition in matrix.conditions}
    found = [doubt for profile in profiles.values() for doubt in _of_profile(profile)]
    found += [*_of_arms(matrix), *_of_clients(matrix)]
    return list(
        dict.fromkeys(
            f"warning: {each}" for each in (*(located(matrix, dict(found)) if found else ()), *_reordering(matrix))
        )
    )


def notes_of(matrix: Matrix) -> list[str]:
    """Notes as they are printed: what a comparison of two protocols mixes with them."""
    return [f"note: {sentence}" for sentence in confounded(matrix)]


def _of_profile(profile: Profile) -> Iterator[Located]:
    for direction in Direction:
        link, place = profile.link(direction), ("profiles", profile.name, direction.value)
        if link.delay and (meant := another_unit("delay", link.delay.delay_s)):
            message = f"{quoted(profile.name)} delays each packet by {setting('delay_s', link.delay.delay_s)} one way"
            yield (*place, "delay"), (message, meant.strip())
        if (lost := Expectation.of(link).loss) >= MOST_LOST:
            message = f"{quoted(profile.name)} loses {measured('loss_ratio', lost)} of all packets on average"
            yield (*place, "loss"), (message, _swapped(link))


def _swapped(link: Link) -> str:
    """Suggestion to swap p and r, if the model then loses less."""
    model = link.loss
    if not isinstance(model, GilbertElliott) or model.p <= model.r:
        return "few trials will finish"
    other = Expectation.of(Link(loss=GilbertElliott(model.r, model.p, model.bad_loss, model.good_loss))).loss
    p, r = as_written("p_ratio", model.r), as_written("r_ratio", model.p)
    return f"are `p` and `r` swapped? {{p: {p}, r: {r}}} loses {measured('loss_ratio', other)}"


def _of_arms(matrix: Matrix) -> Iterator[Located]:
    """Arms that cannot finish in a condition while others can."""
    for condition, found in unfinished(matrix.conditions, matrix.arms, matrix.timeout_s):
        least = min(found.values(), key=lambda each: each.seconds)
        if len(found) < len(matrix.arms):
            message = (
                f"no trial of {enumerated(map(arm_name, found))} can finish in {quoted(condition.id)} within "
                f"`timeout: {as_written('timeout_s', matrix.timeout_s)}`: it takes at least "
                f"{duration(math.floor(least.seconds))}"
            )
            yield ("profiles", condition.profile.name, least.direction.value, least.key), (message, "")


def _of_clients(matrix: Matrix) -> Iterator[Located]:
    """Arms with other windows than usual whose client has no windows to set."""
    without = {each.workload.name: each.workload for each in matrix.conditions if not each.workload.has_client_windows}
    for arm in matrix.arms:
        if without and arm.settings(matrix.settings).client is not Windows.UNLIMITED:
            message = (
                f"the client's `settings` of {quoted(arm.name)} have no effect in {enumerated(map(quoted, without))}"
            )
            kinds = enumerated(dict.fromkeys(each.written or f"`kind: {each.kind}`" for each in without.values()))
            place = ("arms", arm.name, "settings") if arm.overrides.client_windows else ("settings",)
            yield place, (message, f"the client of {kinds} has no windows to set; the server's settings apply")


def _reordering(matrix: Matrix) -> Iterator[str]:
    """A warning for all networks in which a jitter reorders packets that the server sends to HTTP/3."""
    profiles = {each.profile.name: each.profile.downlink for each in matrix.conditions}
    names = [name for name, link in profiles.items() if link.delay and link.delay.jitter_s and not link.rate]
    if names and any(arm.protocol.transport == "quic" for arm in matrix.arms):
        yield f"{', '.join(map(quoted, names))}: {REORDERING}"


def keeps_order(link: Link) -> bool:
    """True if the link has both a jitter and a rate.

    With a rate, netem sends no packet before its predecessor (`time_to_send` of the last packet in the queue,
    netem_enqueue in net/sched/sch_netem.c): delays of packets that come close together are a running maximum.
    """
    return bool(link.rate and link.delay and link.delay.jitter_s)


def kept_in_order(matrix: Matrix) -> str:
    """A note about the networks that have both a jitter and a rate; empty if there are none."""
    places = [
        f"{profile.name} ({direction.value})"
        for profile in {each.profile.name: each.profile for each in matrix.conditions}.values()
        for direction in Direction
        if keeps_order(profile.link(direction))
    ]
    return f"{IN_ORDER}: {', '.join(places)}" if places else ""
