"""Data classes of the experiment: what is measured, in which order, and with which result.

Frozen dataclasses, SI units, parsed once at the edge (matrix/). The network nouns are in impair/profile.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from headwind.arm import CUBIC, PLAIN, TWINS, Arm, Congestion, Protocol, Role
from headwind.metric import Metric, Workload
from headwind.settings import UNBOUND, Settings
from impair.profile import Direction, Link, Profile

PROCESSOR_BOUND = "processor-bound"  # how a trial's warning begins that names a processor as its limit
AUTO = 0  # of Matrix.lanes
STEPS_WITHIN = 2  # steps of a search in an answer that is narrow enough: a middle too close to call may stay open
CONTROL_RATIO = 0.10  # how much longer every delay is, and every packet on a link's rate, for the positive control


@dataclass(frozen=True, slots=True)
class Condition:
    """One cell of the matrix: protocols are compared inside it."""

    profile: Profile
    workload: Workload

    @property
    def id(self) -> str:
        """`profile/workload`, unique inside a matrix."""
        return f"{self.profile.name}/{self.workload.name}"


@dataclass(frozen=True, slots=True)
class Repetition:
    """How many blocks a condition gets: from `least` on until its comparisons are decided, never more than `most`.

    With least == most the number is fixed beforehand, and nothing that is seen changes it.
    """

    least: int = 9  # three Latin squares of three protocols; an interval closes at 8 blocks, see stats.fewest_blocks
    most: int = 60
    margin_ratio: float = 0.05  # times closer than this factor (1.05) are a tie
    confidence: float = 0.95
    budget_s: float | None = 900.0  # wall time for all conditions together; None: as long as it takes

    @classmethod
    def fixed(cls, blocks: int) -> Repetition:
        """So many blocks of every condition, as long as it takes."""
        return cls(least=blocks, most=blocks, budget_s=None)

    @property
    def is_adaptive(self) -> bool:
        """Whether what was measured decides how long to go on."""
        return self.least < self.most or self.budget_s is not None


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """Which profiles get twins of `arm` in their blocks, by name."""

    arm: Arm
    again: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()

    def twins(self, condition: Condition) -> tuple[Arm, ...]:
        """The twins in every block of a condition."""
        profiles = {Role.AGAIN: self.again, Role.SLOWER: self.slower}
        return tuple(self.arm.twin(role) for role in TWINS if condition.profile.name in profiles[role])


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """What an article published about one metric in one condition."""

    condition_id: str  # as written where that names no condition of the matrix
    values: Mapping[str, float | None]  # in the metric's unit, by arm; None: it gave no result
    gap: str = ""  # why nothing in the matrix can be set beside it
    metric: str = ""  # its key; empty: the primary one
    statistic: str = ""  # `mean`, `median`, `p90` or `p99` of the article's runs; empty: a single figure

    @property
    def name(self) -> str:
        """The condition, with the metric where one was named: `far/page/ttfb_s`."""
        return f"{self.condition_id}/{self.metric}" if self.metric else self.condition_id


@dataclass(frozen=True, slots=True)
class Published:
    """An article that compared the same protocols over the same networks. Nothing that is measured depends on it."""

    name: str
    title: str
    rows: tuple[PublishedRow, ...]
    note: str = ""  # what differs from the experiment here, and what was found
    source: str = ""  # where it can be read

    @property
    def gaps(self) -> dict[str, list[str]]:
        """The names of rows that nothing in the matrix can be set beside, by the reason."""
        found: dict[str, dict[str, None]] = {}
        for row in self.rows:
            if row.gap:
                found.setdefault(row.gap, {})[row.name] = None
        return {reason: list(names) for reason, names in found.items()}


@dataclass(frozen=True, slots=True)
class Search:
    """What a matrix searches: the value along a number of the network at which candidate and baseline change places."""

    new: Arm
    base: Arm
    along: str  # as written: `downlink.loss`
    points: tuple[tuple[float, str], ...]  # values in SI units, rising and evenly spaced, each with its condition's id

    @property
    def step(self) -> float:
        """From one value to the next."""
        return self.points[1][0] - self.points[0][0]


@dataclass(frozen=True, slots=True)
class Matrix:
    """The whole experiment. `source` is the text it was parsed from, `path` where that was."""

    arms: tuple[Arm, ...]  # without twins
    conditions: tuple[Condition, ...]
    repeat: Repetition
    timeout_s: float  # of one trial
    seed: int
    congestion: Congestion = CUBIC
    settings: Settings = UNBOUND
    lanes: int = 1  # testbeds side by side, at most; AUTO: as many as the host has room for
    title: str = ""
    source: str = ""
    path: str = ""
    selfcheck: SelfCheck | None = None
    published: tuple[Published, ...] = ()
    judge: tuple[str, ...] | None = None  # keys of the metrics that have a verdict; None: those that usually have
    compare: tuple[tuple[Arm, Arm], ...] = ()  # candidate and baseline; empty: every arm with every other
    smoke: tuple[str, ...] = field(default=(), compare=False)  # ids of the conditions that a quick look takes
    find: Search | None = None  # then its conditions are values, of which few are measured

    def in_short(self) -> Matrix:
        """A quick look at the same experiment: one block of each condition that it names for that, else of all."""
        ends = {self.conditions[0].id, self.conditions[-1].id} if self.find else set(self.smoke)
        conditions = tuple(each for each in self.conditions if not ends or each.id in ends)
        return replace(self, conditions=conditions, repeat=Repetition.fixed(1), find=None)

    def judged(self, condition: Condition) -> tuple[Metric, ...]:
        """The metrics that have a verdict in a condition, the primary one first."""
        return condition.workload.judged(self.judge)

    @property
    def place(self) -> str:
        """What people call a condition: with one workload, networks tell them apart."""
        return "condition" if len({condition.workload.name for condition in self.conditions}) > 1 else "network"

    def name_of(self, condition: Condition) -> str:
        """A condition's name for people: without its workload where there is only one."""
        return condition.profile.name if self.place == "network" else condition.id

    @property
    def newest(self) -> Arm:
        """The arm of the newest protocol, the plain one if there is one: whether to turn it on is what readers ask."""
        return max(self.arms, key=lambda arm: (list(Protocol).index(arm.protocol), arm in PLAIN))

    @property
    def arms_word(self) -> str:
        """What a sentence calls an arm: "protocol" where each of them is a plain one."""
        return "protocol" if set(self.arms) <= set(PLAIN) else "arm"

    def arms_in(self, condition: Condition) -> tuple[Arm, ...]:
        """What takes a turn in each block of a condition: every arm, and the twins of the self-check."""
        return (*self.arms, *(self.selfcheck.twins(condition) if self.selfcheck else ()))


@dataclass(frozen=True, slots=True)
class Block:
    """One condition, one seed for each direction, every arm once, in `order`."""

    condition: Condition
    index: int  # 0, 1, ... within the condition
    order: tuple[Arm, ...]
    seeds: Mapping[Direction, int]

    @property
    def id(self) -> str:
        """`profile/workload#block`, unique inside a run."""
        return f"{self.condition.id}#{self.index}"

    def trials(self) -> tuple[Trial, ...]:
        """The block's trials, in the order in which they run."""
        return tuple(Trial(self, position, arm) for position, arm in enumerate(self.order))


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution of one arm in one block."""

    block: Block
    position: int  # 0 is the first of its block
    arm: Arm

    @property
    def id(self) -> str:
        """`profile/workload#block/arm`, unique inside a run."""
        return f"{self.block.id}/{self.arm.name}"

    @property
    def protocol(self) -> Protocol:
        """What is spoken."""
        return self.arm.protocol

    @property
    def profile(self) -> Profile:
        """The network of this trial: the condition's, but a slower one for the positive control."""
        profile = self.block.condition.profile
        return slowed(profile) if self.arm.role is Role.SLOWER else profile

    @property
    def workload(self) -> Workload:
        """What is fetched, and how: the condition's, with what the arm overrides."""
        return self.arm.workload(self.block.condition.workload)


def slowed(profile: Profile) -> Profile:
    """The profile with delays and rates slower by CONTROL_RATIO: by delay alone a page over 5 Mbit/s is 1 % slower."""

    def longer(link: Link) -> Link:
        delay, rate = link.delay, link.rate
        return replace(
            link,
            delay=replace(delay, delay_s=delay.delay_s * (1 + CONTROL_RATIO)) if delay else None,
            rate=replace(rate, rate_bps=max(8, int(rate.rate_bps / (1 + CONTROL_RATIO)) // 8 * 8)) if rate else None,
        )

    return replace(profile, uplink=longer(profile.uplink), downlink=longer(profile.downlink))


class Outcome(StrEnum):
    """What came of a trial. Only `invalid`, `lab-error` and `skipped` may leave the analysis; all are counted."""

    OK = "ok"  # every request succeeded
    FAILED = "failed"  # the client finished, but some requests failed
    TIMEOUT = "timeout"  # the client was stopped at timeout_s: its time is above it
    WRONG_PROTOCOL = "wrong-protocol"  # another protocol than the asked one was negotiated
    WRONG_CONTENT = "wrong-content"  # other bytes than the workload asks for were delivered
    WRONG_SESSION = "wrong-session"  # a session was not resumed, or early data not accepted, as the workload asks
    INVALID = "invalid"  # the impairment was not proven; tried again (proof/attempts.py)
    LAB_ERROR = "lab-error"  # the lab failed; retried and counted
    SKIPPED = "skipped"  # never started


DATA_OUTCOMES = frozenset(Outcome) - {Outcome.INVALID, Outcome.LAB_ERROR, Outcome.SKIPPED}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the proof: requested, configured (read back) and measured values of one impairment."""

    direction: Direction
    quantity: str  # "delay_s", "loss_ratio", "corrupt_ratio", "unexplained_loss_ratio", ...
    requested: float | None
    configured: float | None  # None where nothing can be read back
    measured: float | None  # None where there was too little traffic to measure
    tolerance: float | None  # largest accepted |measured - requested|
    passed: bool
    note: str = ""  # what was counted, or why there is no measurement


@dataclass(frozen=True, slots=True)
class Proof:
    """Evidence that the network of a trial was the requested one."""

    checks: tuple[Check, ...] = ()
    counters: Mapping[str, Any] = field(default_factory=dict)  # raw: before, after, trains, configured
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True when there are checks and every one of them passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)


@dataclass(frozen=True, slots=True)
class Place:
    """On what a trial was measured. The run's environment describes each testbed, under `testbeds`, by its name."""

    host: str = ""  # its name
    lane: int = 1
    testbed: str = ""
    engine: str = ""
    beside: tuple[str, ...] = ()  # blocks that ran on other lanes meanwhile, as `profile/workload#block`


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Result:
    """What one attempt at a trial gave. `metrics` are by key: the workload's, or timeout_s and Workload.bounds."""

    trial: Trial
    outcome: Outcome
    reason: str = ""  # for people; empty only when the outcome is ok
    metrics: Mapping[str, float] = field(default_factory=dict)
    proof: Proof = Proof()
    samples: Mapping[str, Any] = field(default_factory=dict)  # the client's raw JSON, kept whole
    command: str = ""  # what the client ran
    phases_s: Mapping[str, float] = field(default_factory=dict)  # where the time went: apply, probe, client, ...
    attempt: int = 0
    started_at: float = 0.0  # seconds since the epoch
    place: Place = NOWHERE

    @property
    def is_processor_bound(self) -> bool:
        """Whether processors were the limit of this trial (headwind/proof/processors.py)."""
        return any(warning.startswith(PROCESSOR_BOUND) for warning in self.proof.warnings)

    @property
    def lower_bound_s(self) -> float | None:
        """The time that an unfinished trial took at least; None when it finished."""
        return self.metrics.get("timeout_s") if self.outcome is Outcome.TIMEOUT else None
