"""A rate trace: how many full frames a link carries in each step of time. Standard library only.

The router replays it by changes of tbf in place (impair/router/replay.py). Such a change fills the bucket of tokens
(tbf_change in net/sched/sch_tbf.c), and what is left in the bucket at the next change is gone. So a step's rate is
lower than its frames per second: bucket and rate together let half a frame more than the step's frames pass. That is
enough for all of them and for no other one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import Any

from impair.bounds import FRAME_BYTES

STEP_S = 0.1  # the shortest step, and the usual one
CATCH_UP_S = 0.005  # of the rate: what tbf may send at once beyond one frame, because its timer was late
SPARE_FRAMES = 0.5  # of a step
# tbf needs a rate above zero. At this one a frame takes longer than the longest blackout that is likely, and its time
# still fits into the 32 bits in which tbf reports the size of its bucket.
BLACKOUT_BPS = 120


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step of a trace in s since its start: the full frames that pass in it, and what tbf needs for that."""

    at_s: float
    until_s: float
    frames: float  # 0: a blackout

    @property
    def rate_bps(self) -> int:
        """The rate of tbf, together with a bucket of tokens_bytes."""
        if not self.frames:
            return BLACKOUT_BPS
        carried_bytes = (self.frames + SPARE_FRAMES - 1) * FRAME_BYTES
        return max(BLACKOUT_BPS, int(carried_bytes / (self.until_s - self.at_s + CATCH_UP_S)) * 8)

    @property
    def tokens_bytes(self) -> int:
        """The size of tbf's bucket: a frame, and what the rate carries in CATCH_UP_S."""
        return FRAME_BYTES + math.ceil(self.rate_bps / 8 * CATCH_UP_S)

    @property
    def bytes(self) -> float:
        """The bytes that pass if the queue is never empty; in a blackout the frame that passes at its beginning."""
        return (self.frames or 1.0) * FRAME_BYTES


@dataclass(frozen=True, slots=True)
class Trace:
    """The rate of a direction as it changes: `frames` of each step, all equally long; after length_s it begins again.

    `file` and `sha256` are the name of the trace's file and the hash of its content. `pace`: factor of all rates.
    """

    file: str
    sha256: str
    length_s: float
    frames: tuple[int, ...] = field(compare=False, repr=False)  # as the hash has it
    pace: float = 1.0

    @property
    def step_s(self) -> float:
        """The length of a step."""
        return self.length_s / len(self.frames)

    @property
    def mean_bps(self) -> int:
        """The average rate of full frames, in whole bytes/s."""
        return max(1, int(sum(self.frames) * self.pace * FRAME_BYTES / self.length_s)) * 8

    @property
    def peak_bps(self) -> int:
        """The rate of full frames in the fastest step."""
        return max(1, int(max(self.frames) * self.pace * FRAME_BYTES / self.step_s)) * 8

    @property
    def blackout_s(self) -> float:
        """The time in which nothing passes."""
        return self.frames.count(0) * self.step_s

    def steps(self) -> Iterator[TraceStep]:
        """The steps, without end. Steps in which no frame passes are one, a blackout.

        A blackout begins with a full bucket, as each step does: one frame passes. The next frames pay for it.
        """
        for cycle in count():
            begin_s, credit = cycle * self.length_s, 0.0
            blackout_at_s: float | None = None
            for number, frames in enumerate(self.frames):
                at_s = begin_s + number * self.step_s
                credit += frames * self.pace
                if credit < 1:
                    credit -= blackout_at_s is None
                    blackout_at_s = at_s if blackout_at_s is None else blackout_at_s
                    continue
                if blackout_at_s is not None:
                    yield TraceStep(blackout_at_s, at_s, 0.0)
                yield TraceStep(at_s, at_s + self.step_s, credit)
                credit, blackout_at_s = 0.0, None
            if blackout_at_s is not None:
                yield TraceStep(blackout_at_s, begin_s + self.length_s, 0.0)

    def moments(self, seed: int) -> Iterator[float]:
        """The moments in s at which steps begin, without end; they are the same for every seed."""
        del seed
        return (step.at_s for step in self.steps())

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal Trace."""
        return {**asdict(self), "frames": [*self.frames]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trace:
        """Raises TypeError or KeyError for other fields."""
        return cls(**{**data, "frames": tuple(data["frames"])})
