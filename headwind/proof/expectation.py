"""Expected effect of a requested link on traffic: pure functions of the request, after net/sched/sch_netem.c."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from headwind.settings import PROBE_BYTES
from impair.distribution import DISTRIBUTION_HEIGHT
from impair.profile import FRAME_BYTES, Delay, FourState, GilbertElliott, Link, Loss

DECISIONS = ("loss", "duplicate", "corrupt", "reorder")  # netem's decisions about a packet


def stationary_loss(model: Loss | GilbertElliott | FourState | None) -> tuple[float, float]:
    """Expected loss ratio of a loss model, and the variance inflation by bursts.

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
    """Expected loss and inflation of loss_4state (sch_netem.c): 1 good, 2 good in a burst, 3 burst loss, 4 single loss.

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
    """Average effect of a requested link on packets; `of` computes it once for each link."""

    link: Link
    loss: float  # share of packets
    inflation: float  # of the variance of the loss, by bursts
    overtaking: float  # share of packets that skip the delay
    vanishing: float  # share of datagrams that do not arrive: lost, or dropped because of a wrong checksum
    probe_s: float  # time of a probe at the link's rate
    waiting_s: float  # longest wait of a probe for a slot, and for a copy sent before it

    @classmethod
    @lru_cache(maxsize=1024)
    def of(cls, link: Link) -> Expectation:
        """The expectation of a link, requested or read back."""
        loss, inflation = stationary_loss(link.loss)
        probe_s = wire_bytes(link, PROBE_BYTES) * 8 / link.rate.rate_bps if link.rate else 0.0
        return cls(
            link, loss, inflation, _overtaking(link),
            vanishing=_vanishing(link, loss),
            probe_s=probe_s,
            waiting_s=(link.slot.max_delay_s if link.slot else 0.0) + (probe_s if link.duplicate else 0.0),
        )  # fmt: skip

    def ratio(self, decision: str) -> float:
        """Requested share of "loss", "duplicate", "corrupt" or "reorder" decisions; 0 if not requested."""
        if decision == "loss":
            return self.loss
        impairment = getattr(self.link, decision)
        return float(impairment.ratio) if impairment else 0.0

    @property
    def full_frame_rate_bps(self) -> float:
        """Bit/s of full frames through a link with a rate: less than the rate because of the overhead of each frame."""
        assert self.link.rate
        return self.link.rate.rate_bps * FRAME_BYTES / wire_bytes(self.link, FRAME_BYTES)

    def longest_s(self, frames: int = 0, frame_bytes: int = FRAME_BYTES) -> float:
        """Longest time in seconds that netem can hold a packet that has `frames` others ahead of it."""
        delay, rate = self.link.delay, self.link.rate
        delay_s = delay.delay_s + DISTRIBUTION_HEIGHT[delay.distribution] * delay.jitter_s if delay else 0.0
        queue_s = frames * wire_bytes(self.link, frame_bytes) * 8 / rate.rate_bps if rate else 0.0
        return delay_s + queue_s + (self.link.slot.max_delay_s if self.link.slot else 0.0)

    def chance_of_none(self, sent: int) -> float:
        """Probability that nothing arrives of a train of `sent` datagrams."""
        return float(self.vanishing ** (sent / self.inflation))

    def chance_of_no_pair(self, sent: int) -> float:
        """Probability that no two neighbours of a train arrive, as a rate needs. Losses come singly or at once."""
        after_gap, after_arrival = 1.0, 0.0  # chances of no pair, after a lost and an arrived datagram
        for _ in range(sent):
            after_gap, after_arrival = (after_gap + after_arrival) * self.vanishing, after_gap * (1 - self.vanishing)
        return max(after_gap + after_arrival, self.chance_of_none(sent))


def _vanishing(link: Link, loss: float) -> float:
    """Share of datagrams of which no good copy arrives.

    A loss takes one of a packet and its copy; a copy passes the loss once more, without being copied again; each may be
    corrupted (netem_enqueue in net/sched/sch_netem.c).
    """
    copied = link.duplicate.ratio if link.duplicate else 0.0
    corrupted = link.corrupt.ratio if link.corrupt else 0.0
    if not copied:
        return 1 - (1 - loss) * (1 - corrupted)
    none, two = loss * (1 - copied), (1 - loss) * copied
    return none + (1 - none - two) * corrupted + two * corrupted * (loss + (1 - loss) * corrupted)


def _overtaking(link: Link) -> float:
    """Share of packets that skip the delay: g - 1 packets are delayed, and then one of 1/r tries succeeds."""
    if link.reorder is None or link.reorder.ratio == 0:
        return 0.0
    return 1 / (link.reorder.gap - 1 + 1 / link.reorder.ratio)


def wire_bytes(link: Link, frame_bytes: int) -> int:
    """Bytes that netem counts for a frame: packet overhead, then whole cells (packet_time_ns, sch_netem.c)."""
    rate = link.rate
    if rate is None:
        return frame_bytes
    size = frame_bytes + rate.packet_overhead
    if not rate.cell_size:
        return size
    cells = math.ceil(size / rate.cell_size)
    return cells * (rate.cell_size + rate.cell_overhead)


@dataclass(frozen=True, slots=True)
class DelaySeen:
    """The middle of one-way delays, and its value as predicted from the request."""

    middle: str  # "median" or "mean"
    measured_s: float
    expected_s: float
    spread_s: float  # standard deviation of the middle
    slack_s: float  # possible error of the prediction on the side of the measured value, without the machine's share


def delay_seen(link: Link, delays: Sequence[float]) -> DelaySeen:
    """Compare the middle of one-way delays over a link with its prediction."""
    delay, expected, count = link.delay or Delay(0.0), Expectation.of(link), len(delays)
    held_s, skipping = delay.delay_s + expected.probe_s, expected.overtaking
    expected_s = held_s * (1 - skipping)
    robust = skipping == 0 and delay.distribution in ("uniform", "normal")
    measured_s = statistics.median(delays) if robust else statistics.fmean(delays)
    late = measured_s > expected_s
    # The median of n uniform values over +-j has a standard deviation of j/sqrt(n), that of n normal ones of
    # sqrt(pi/2)*j/sqrt(n); a mean spreads less than the first.
    spread_s = delay.jitter_s * (math.sqrt(math.pi / 2) if delay.distribution == "normal" else 1.0)
    spread_s += held_s * math.sqrt(skipping * (1 - skipping))
    slack_s = expected.waiting_s
    if skipping and not late:  # of few that skip the delay, two more are likelier than the normal law predicts
        slack_s += 2 * held_s / count
    if link.jitters_in_order and late:  # packets with little jitter wait for those with much
        slack_s += delay.jitter_s * DISTRIBUTION_HEIGHT[delay.distribution]
    return DelaySeen("median" if robust else "mean", measured_s, expected_s, spread_s / math.sqrt(count), slack_s)
