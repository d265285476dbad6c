"""The keys of one direction of a profile in matrix.yaml, and their conversion to a Link."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, replace
from typing import Annotated, Any, Self

from pydantic import ConfigDict, model_validator

from headwind.matrix import values
from headwind.matrix.keys import Keys, key
from headwind.matrix.mistakes import Slip, Slips, raise_any
from headwind.matrix.trace import TraceFile
from headwind.matrix.units import Mistake, listed
from headwind.matrix.values import BitsPerSecond, Ratio, Seconds, Short, whole
from impair import profile as netem
from impair.bounds import LARGEST_COUNT, ImpossibleImpairment
from impair.profile import FRAME_BYTES, Link
from impair.queues import KINDS, Fifo, Queue
from impair.trace import Trace

TRACE_QUEUE_S = 0.2
LEAST_TRACE_QUEUE = 50  # packets


class GemodelKeys(Keys):
    """Bursty loss by the Gilbert-Elliott model; shares per packet."""

    p: Ratio = key("share of packets at which a good path turns bad")
    r: Ratio = key("share of packets at which a bad path turns good; 1/r packets is the mean length of a burst")
    bad: Ratio = key("loss while the path is bad (tc's 1-h)", 1.0, "100%")
    good: Ratio = key("loss while the path is good (tc's 1-k)", 0.0, "0%")

    def to_model(self) -> netem.GilbertElliott:
        """Convert to netem's model. Raises ImpossibleImpairment."""
        return netem.GilbertElliott(self.p, self.r, self.bad, self.good)


class StateKeys(Keys):
    """Loss by tc's model of four states; probabilities per packet."""

    p13: Ratio = key("from good to burst loss")
    p31: Ratio = key("from burst loss to good")
    p32: Ratio = key("from burst loss to a good packet within the burst", 0.0, "0%")
    p23: Ratio = key("from a good packet within the burst to burst loss", 1.0, "100%")
    p14: Ratio = key("from good to a single loss", 0.0, "0%")

    def to_model(self) -> netem.FourState:
        """Convert to netem's model. Raises ImpossibleImpairment."""
        return netem.FourState(self.p13, self.p31, self.p32, self.p23, self.p14)


class LossKeys(Keys):
    """Dropped packets: a share of all, or one of the two bursty models."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    random: Ratio | None = key("share of packets that are dropped independently", None)
    gemodel: GemodelKeys | None = key("bursts by the Gilbert-Elliott model", None)
    state: StateKeys | None = key("bursts by tc's model of four states", None)
    packets: Annotated[int, whole(1, 1)] | None = key("only the next packet is lost; for a change during a trial", None)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise Mistake(
                "a loss follows exactly one model",
                "allowed: `30%`, {gemodel: {p: 1%, r: 25%}} or {state: {p13: 1%, p31: 25%}}",
            )
        return self

    def to_model(self) -> netem.LossModel:
        """Convert to netem's model. Raises ImpossibleImpairment."""
        if self.packets:
            return netem.NEXT_PACKET
        model = self.gemodel or self.state
        return model.to_model() if model else netem.Loss(self.random or 0.0)


class ReorderKeys(Keys):
    """Reordering: packets that skip the delay."""

    ratio: Ratio = key("share of packets that skip the delay")
    gap: Annotated[int, whole(1, LARGEST_COUNT)] = key("only every gap-th packet may skip it", 1)

    def to_model(self) -> netem.Reorder:
        """Convert to netem's model. Raises ImpossibleImpairment."""
        return netem.Reorder(self.ratio, self.gap)


class RateKeys(Keys):
    """Rate limit, with the overheads of a link layer."""

    rate: BitsPerSecond = key("bits per second")
    packet_overhead: Annotated[int, whole(-LARGEST_COUNT, LARGEST_COUNT)] = key("bytes added to each packet", 0)
    cell_size: Annotated[int, whole(0, LARGEST_COUNT)] = key("bytes of a link-layer cell", 0)
    cell_overhead: Annotated[int, whole(-LARGEST_COUNT, LARGEST_COUNT)] = key("bytes added to each cell", 0)

    def to_model(self) -> netem.Rate:
        """Convert to netem's model. Raises ImpossibleImpairment."""
        return netem.Rate(self.rate, self.packet_overhead, self.cell_size, self.cell_overhead)


class SlotKeys(Keys):
    """Link that sends in bursts, such as radio or satellite."""

    min_delay: Seconds = key("shortest time between two slots")
    max_delay: Seconds | None = key("longest time between two slots; default: min_delay", None)
    max_packets: Annotated[int, whole(0, LARGEST_COUNT)] = key("packets of a slot; 0: no limit", 0)
    max_bytes: Annotated[int, whole(0, LARGEST_COUNT)] = key("bytes of a slot; 0: no limit", 0)

    def to_model(self) -> netem.Slot:
        """Convert to netem's model. Raises ImpossibleImpairment."""
        longest = self.min_delay if self.max_delay is None else self.max_delay
        return netem.Slot(self.min_delay, longest, self.max_packets, self.max_bytes)


class SpellsKeys(Keys):
    """Bursts of loss by time: good and bad spells in turn, of random length."""

    good: Seconds = key("mean length of the spells between bursts, which have the loss of the direction")
    bad: Seconds = key("mean length of a burst")
    loss: Ratio = key("share of packets that are dropped in a burst", 1.0, "100%")

    def changes(self, good: Link) -> netem.Spells:
        """Convert to the changes of a direction. Raises ImpossibleImpairment."""
        return netem.Spells(self.good, self.bad, replace(good, loss=netem.Loss(self.loss)))


class QueueKeys(Keys):
    """Queue before the rate: packets of netem's own, or a discipline in a bottleneck before netem."""

    kind: values.QueueKind | None = key("its discipline; default: netem's own", None)
    packets: Annotated[int, whole(1, LARGEST_COUNT)] | None = key("packets that may wait", None)
    target: Seconds | None = key("wait above which fq_codel, and to which pie, drops; default: 5ms, of pie 15ms", None)
    interval: Seconds | None = key("how long the wait may be above fq_codel's target; default: 100ms", None)
    rtt: Seconds | None = key("round trip that cake expects; default: 100ms", None)
    min: Annotated[int, whole(1, LARGEST_COUNT)] | None = key("mean of packets above which red begins to drop", None)
    max: Annotated[int, whole(1, LARGEST_COUNT)] | None = key("mean of packets above which red drops all", None)
    probability: Ratio | None = key("share that red drops at max; default: 10%", None)
    ecn: values.Truth | None = key("mark packets that allow it; default: true for fq_codel, else false", None)

    def to_model(self) -> Queue | int:
        """Convert to the model: a number of packets is netem's own queue. Raises ImpossibleImpairment."""
        written = {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
        kind = KINDS.get(written.pop("kind", ""))
        allowed = queue_keys(kind) if kind else {"packets": None}
        about = self.kind or "netem's own queue"
        for name in written:
            if name not in allowed:
                hint = "add `kind`" if kind is None else listed([*allowed])
                raise ImpossibleImpairment(f"queue.{name}", f"{about} has no `{name}`", hint)
        if kind is None:
            if self.packets is None:
                raise ImpossibleImpairment("queue", "a queue needs its packets or its kind", "such as `queue: 100`")
            return self.packets
        for name, item in allowed.items():
            if item and item.default is MISSING and name not in written:
                raise ImpossibleImpairment("queue.kind", f"{about} needs `{name}`", f"such as {QUEUE_EXAMPLES[about]}")
        return kind(**{item.name: written[name] for name, item in allowed.items() if item and name in written})


def queue_keys(kind: type[Queue]) -> dict[str, Field[Any]]:
    """The keys that a kind of queue has next to `kind`, and the fields of the model that they set."""
    return {_QUEUE_KEYS.get(item.name, item.name): item for item in fields(kind)}


_QUEUE_KEYS = {
    "target_s": "target", "interval_s": "interval", "rtt_s": "rtt", "min_packets": "min", "max_packets": "max",
}  # fmt: skip
QUEUE_EXAMPLES = {
    "fifo": "{kind: fifo, packets: 100}", "red": "{kind: red, packets: 200, min: 20, max: 60}",
}  # fmt: skip


class DirectionKeys(Keys):
    """Impairments of one direction by netem; {} is an unimpaired one."""

    delay: Seconds | None = key("one-way delay of every packet", None)
    jitter: Seconds | None = key("variation of the delay; it reorders packets, unless netem itself has the rate", None)
    distribution: values.Distribution | None = key("distribution of the jitter; default: uniform", None)
    loss: Annotated[LossKeys, Short(("random",))] | None = key("dropped packets", None)
    duplicate: Ratio | None = key("share of packets that arrive twice", None)
    corrupt: Ratio | None = key("share of packets of which one bit is flipped", None)
    reorder: Annotated[ReorderKeys, Short(("ratio",))] | None = key("reordered packets; needs a delay", None)
    rate: Annotated[RateKeys, Short(("rate",))] | None = key("bandwidth", None)
    slot: SlotKeys | None = key("packets are collected and leave in bursts", None)
    ecn: values.Truth = key("mark packets that the loss would drop, if they allow it", False, False)
    limit: Annotated[int, whole(1, LARGEST_COUNT)] | None = key("packets in delay line and queue together", None)
    queue: Annotated[QueueKeys, Short(("packets",))] | None = key("packets that may wait for the rate", None)
    spells: SpellsKeys | None = key("bursts of loss that last for a time, also on an idle link", None)
    trace: Annotated[Trace, TraceFile()] | None = key(
        "file of a rate trace, relative to this one: a line for each packet of 1500 bytes that can pass, with its time "
        "in ms (mahimahi's format); it takes the place of a rate, and starts over at its end",
        None,
    )  # fmt: skip

    def link(self) -> Link:
        """Convert to the model. Raises Slips if netem does not support it."""
        slips: list[Slip] = []
        parts: dict[str, Any] = {}
        for name, part in _PARTS.items():
            try:
                parts[name] = part(self)
            except ImpossibleImpairment as error:
                slips.append(_slip(error))
        raise_any(slips)
        try:
            queue = self.queue and self.queue.to_model()
            if self.trace:
                queue = queue if isinstance(queue, Queue) else Fifo(queue or _room(self.trace))
            own = {"queue_packets": queue} if isinstance(queue, int) else {"queue": queue}
            return Link(**parts, ecn=self.ecn, limit_packets=self.limit, **own)
        except ImpossibleImpairment as error:
            raise Slips([_slip(error)]) from error


def _room(trace: Trace) -> int:
    """Packets that may wait for a trace unless a matrix says it: those of TRACE_QUEUE_S at its mean rate."""
    return max(LEAST_TRACE_QUEUE, math.ceil(trace.mean_bps / 8 / FRAME_BYTES * TRACE_QUEUE_S))


def _rate(written: DirectionKeys) -> netem.Rate | None:
    """The rate; with a trace, its mean, which the direction has before the trace starts."""
    if not written.trace:
        return written.rate.to_model() if written.rate else None
    if written.rate:
        raise ImpossibleImpairment("rate", "a trace is in the place of a rate", "keep one of them")
    return netem.Rate(written.trace.mean_bps)


def _delay(written: DirectionKeys) -> netem.Delay | None:
    if written.delay is None:
        for name in ("jitter", "distribution"):
            if getattr(written, name) is not None:
                raise ImpossibleImpairment(name, f"a {name} needs a delay that it varies", "add `delay`, or remove it")
        return None
    return netem.Delay(written.delay, written.jitter or 0.0, written.distribution or "uniform")


_PARTS: dict[str, Callable[[DirectionKeys], Any]] = {
    "delay": _delay,
    "loss": lambda written: written.loss and written.loss.to_model(),
    "duplicate": lambda written: None if written.duplicate is None else netem.Duplicate(written.duplicate),
    "corrupt": lambda written: None if written.corrupt is None else netem.Corrupt(written.corrupt),
    "reorder": lambda written: written.reorder and written.reorder.to_model(),
    "rate": _rate,
    "slot": lambda written: written.slot and written.slot.to_model(),
}


_WAYS_OUT = {
    "distribution": "add `jitter`, or remove it",
    "reorder": "add `delay`, or remove it",
    "ecn": "add `loss`, or remove it",
}


def _slip(error: ImpossibleImpairment) -> Slip:
    written_as = {"bad_loss": "bad", "good_loss": "good"}
    return Slip(
        tuple(written_as.get(part, part) for part in error.where.split(".")),
        Mistake(str(error), error.hint or _WAYS_OUT.get(error.where, "")),
    )
