"""Expected effect of a requested link on traffic: pure functions of the request, after net/sched/sch_netem.c."""

from __future__ import annotations

import math

from impair.profile import FRAME_BYTES, FourState, GilbertElliott, Link, Loss


def stationary_loss(model: Loss | GilbertElliott | FourState | None) -> tuple[float, float]:
    """(expected loss ratio, variance inflation by bursts) of a loss model.

    Gilbert-Elliott: stationary weights p/(p+r) and r/(p+r); successive states correlate with 1-p-r, so the variance of
    a mean over many packets grows by at most (1+rho)/(1-rho) (Hohlfeld et al., "Characterising and modelling VoIP
    loss", 2008). 4-state: see `_four_state`.
    """
    if model is None:
        return 0.0, 1.0
    if isinstance(model, Loss):
        return model.ratio, 1.0
    if isinstance(model, GilbertElliott):
        bad = model.p / (model.p + model.r)
        rho = 1 - model.p - model.r
        return bad * model.bad_loss + (1 - bad) * model.good_loss, max(1.0, (1 + rho) / (1 - rho))
    return _four_state(model)


def _four_state(model: FourState) -> tuple[float, float]:
    """The chain of loss_4state in sch_netem.c: 1 good, 2 good within a burst, 3 burst loss, 4 isolated loss.

    The flows between its states balance, which gives their weights. The variance is that of the central limit theorem
    for Markov chains: 2*E[f*g] - E[f^2], where f is loss minus its mean and g solves g - Pg = f, with g = 0 in state 1.
    """
    in_burst = model.p13 / model.p31 if model.p13 else 0.0
    between = in_burst * model.p32 / model.p23 if in_burst and model.p32 else 0.0
    weights = [weight / (1 + between + in_burst + model.p14) for weight in (1.0, between, in_burst, model.p14)]
    loss = weights[2] + weights[3]
    burst = (loss - model.p14 * (1 - loss)) / model.p13 if model.p13 else 0.0
    potentials = (0.0, burst - loss / model.p23 if between else 0.0, burst, 1 - loss)
    deviations = (-loss, -loss, 1 - loss, 1 - loss)
    variance = sum(w * (2 * f * g - f * f) for w, f, g in zip(weights, deviations, potentials, strict=True))
    return loss, max(1.0, variance / (loss * (1 - loss)))


def vanishing_ratio(link: Link) -> float:
    """The share of datagrams that do not arrive: lost, or corrupted and so dropped by their checksum."""
    return 1 - (1 - stationary_loss(link.loss)[0]) * (1 - (link.corrupt.ratio if link.corrupt else 0.0))


def chance_of_none(link: Link, sent: int) -> float:
    """How often nothing arrives of a train of `sent` datagrams."""
    _, inflation = stationary_loss(link.loss)
    return float(vanishing_ratio(link) ** (sent / inflation))


def chance_of_no_pair(link: Link, sent: int) -> float:
    """How often no two neighbours of a train arrive, which a rate could be seen from. Losses come singly or at once."""
    vanishing = vanishing_ratio(link)
    after_gap, after_arrival = 1.0, 0.0  # the chances of no pair so far, by what became of the last datagram
    for _ in range(sent):
        after_gap, after_arrival = (after_gap + after_arrival) * vanishing, after_gap * (1 - vanishing)
    return max(after_gap + after_arrival, chance_of_none(link, sent))


def overtaking_ratio(link: Link) -> float:
    """The share of packets that skip the delay: after each g - 1 are delayed, and then of 1/r tries one succeeds."""
    if link.reorder is None or link.reorder.ratio == 0:
        return 0.0
    return 1 / (link.reorder.gap - 1 + 1 / link.reorder.ratio)


def wire_bytes(link: Link, frame_bytes: int) -> int:
    """What netem's link model counts for a frame: packet overhead, then whole cells (packet_time_ns, sch_netem.c)."""
    rate = link.rate
    if rate is None:
        return frame_bytes
    size = frame_bytes + rate.packet_overhead
    if not rate.cell_size:
        return size
    cells = math.ceil(size / rate.cell_size)
    return cells * (rate.cell_size + rate.cell_overhead)


def full_frame_rate_bps(link: Link) -> float:
    """The bit/s of full frames that a link with a rate lets through: less than the rate by what it adds to a frame."""
    assert link.rate
    return link.rate.rate_bps * FRAME_BYTES / wire_bytes(link, FRAME_BYTES)
