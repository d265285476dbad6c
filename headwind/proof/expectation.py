"""Expected effect of a requested link on traffic: pure functions of the request, after net/sched/sch_netem.c."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from impair.distribution import DISTRIBUTION_HEIGHT
from impair.profile import FRAME_BYTES, HEADER_BYTES, FourState, GilbertElliott, Link, Loss

DECISIONS = ("loss", "duplicate", "corrupt", "reorder")  # that netem takes about a packet
PROBE_BYTES = 64 + HEADER_BYTES  # a payload of 64


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


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a requested link does to packets, on average; `of` computes it once for each link."""

    link: Link
    loss: float  # share of packets
    inflation: float  # of the variance of the loss, by bursts
    overtaking: float  # share of packets that skip the delay
    vanishing: float  # share of datagrams that do not arrive: lost, or corrupted and so dropped by their checksum
    probe_s: float  # how long a probe takes at the link's rate
    waiting_s: float  # the longest that a probe waits for a slot, and for a copy before it to be sent

    @classmethod
    @lru_cache(maxsize=1024)
    def of(cls, link: Link) -> Expectation:
        """The expectation of a link, requested or read back."""
        loss, inflation = stationary_loss(link.loss)
        probe_s = wire_bytes(link, PROBE_BYTES) * 8 / link.rate.rate_bps if link.rate else 0.0
        return cls(
            link, loss, inflation, _overtaking(link),
            vanishing=1 - (1 - loss) * (1 - (link.corrupt.ratio if link.corrupt else 0.0)),
            probe_s=probe_s,
            waiting_s=(link.slot.max_delay_s if link.slot else 0.0) + (probe_s if link.duplicate else 0.0),
        )  # fmt: skip

    def ratio(self, decision: str) -> float:
        """How often netem decides for "loss", "duplicate", "corrupt" or "reorder" as asked; 0 where nothing was."""
        if decision == "loss":
            return self.loss
        impairment = getattr(self.link, decision)
        return float(impairment.ratio) if impairment else 0.0

    @property
    def full_frame_rate_bps(self) -> float:
        """The bit/s of full frames that a link with a rate lets through: less than the rate by what it adds to each."""
        assert self.link.rate
        return self.link.rate.rate_bps * FRAME_BYTES / wire_bytes(self.link, FRAME_BYTES)

    def longest_s(self, frames: int = 0, frame_bytes: int = FRAME_BYTES) -> float:
        """The longest that a packet can be under way in netem, behind so many frames of others."""
        delay, rate = self.link.delay, self.link.rate
        delay_s = delay.delay_s + DISTRIBUTION_HEIGHT[delay.distribution] * delay.jitter_s if delay else 0.0
        queue_s = frames * wire_bytes(self.link, frame_bytes) * 8 / rate.rate_bps if rate else 0.0
        return delay_s + queue_s + (self.link.slot.max_delay_s if self.link.slot else 0.0)

    def chance_of_none(self, sent: int) -> float:
        """How often nothing arrives of a train of `sent` datagrams."""
        return float(self.vanishing ** (sent / self.inflation))

    def chance_of_no_pair(self, sent: int) -> float:
        """How often no two neighbours of a train arrive, which show a rate. Losses come singly or at once."""
        after_gap, after_arrival = 1.0, 0.0  # the chances of no pair so far, by what became of the last datagram
        for _ in range(sent):
            after_gap, after_arrival = (after_gap + after_arrival) * self.vanishing, after_gap * (1 - self.vanishing)
        return max(after_gap + after_arrival, self.chance_of_none(sent))


def _overtaking(link: Link) -> float:
    """After each g - 1 packets are delayed, and then of 1/r tries one succeeds."""
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
