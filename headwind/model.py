"""Data classes of the experiment: what is measured, in which order, and with which result.

Frozen dataclasses, SI units, parsed once at the edge (matrix/). The data classes of networks are in impair/profile.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from headwind.arm import CUBIC, PLAIN, TWINS, Arm, Congestion, Protocol, Role
from headwind.metric import Metric, Use, Workload
from headwind.servers import Server
from headwind.settings import UNLIMITED, Settings, TrialRules
from headwind.site import Site
from impair.profile import Changes, Clock, Direction, Link, Loss, Profile, Spells, Steps
from impair.trace import Trace

CPU_BOUND = "CPU-bound"  # start of a trial's warning that CPUs limited it
AUTO = 0  # of Matrix.lanes
STEPS_WITHIN = 2  # width of a final search result, in steps: a middle too close to call may stay open
CONTROL_RATIO = 0.10  # increase of delays and of transmission times for the positive control


@dataclass(frozen=True, slots=True)
class Condition:
    """A cell of the matrix: protocols are compared inside it."""

    profile: Profile
    workload: Workload

    @property
    def id(self) -> str:
        """`profile/workload`, unique inside a matrix."""
        return f"{self.profile.name}/{self.workload.name}"

    def metrics(self, *uses: Use) -> tuple[Metric, ...]:
        """The metrics of its trials with one of these uses, in order."""
        return self.possible(self.workload.with_use(*uses))

    def possible(self, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
        """Leave out metrics that no trial can have: some need a change of the network that drops packets."""
        return tuple(metric for metric in metrics if not metric.is_after_loss or self.shows_blocking)

    @property
    def shows_blocking(self) -> bool:
        """Whether trials show which streams a loss blocked.

        Several streams wait for each other at a `rate`: the server sends them in turns, which may take seconds. Such
        pauses cannot be distinguished from those that a loss causes (measured: 50 stream-seconds for one lost packet
        that blocked one stream for 0.25 s). A schedule with the clock `trial` begins before the client's own clock.
        """
        takes_turns = self.workload.size() > 1 and any(link.rate for link in self.profile.links(Direction.DOWNLINK))
        return self.drops_by_a_change and not takes_turns and self.profile.clock is Clock.PACKET

    @property
    def drops_by_a_change(self) -> bool:
        """Whether a change of the network drops packets of the downlink (headwind/proof/spans.py, downlink_losses)."""
        changes = self.profile.downlink_changes
        if changes is None or isinstance(changes, Trace):
            return False
        is_cyclic = isinstance(changes, Spells) or changes.period_s is not None
        links = self.profile.links(Direction.DOWNLINK) if is_cyclic else changes.links
        return any(link.loss not in (None, Loss(0.0)) for link in links)


@dataclass(frozen=True, slots=True)
class Repetition:
    """The number of blocks per condition: at least `least`, then until its comparisons are decided, at most `most`.

    With least == most the number is fixed beforehand, and no measurement changes it.
    """

    least: int = 9  # three Latin squares of three protocols; an interval closes at 8 blocks, see stats.fewest_blocks
    most: int = 60
    margin_ratio: float = 0.05  # times closer than this factor (1.05) are a tie
    confidence: float = 0.95
    budget_s: float | None = 900.0  # wall time for all conditions together; None: as long as it takes

    @classmethod
    def fixed(cls, blocks: int) -> Repetition:
        """A fixed number of blocks for every condition, without a time limit."""
        return cls(least=blocks, most=blocks, budget_s=None)

    @property
    def is_adaptive(self) -> bool:
        """Whether the measurements decide when to stop."""
        return self.least < self.most or self.budget_s is not None


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """The profiles, by name, whose blocks get twins of `arm`."""

    arm: Arm
    again: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()

    def twins(self, condition: Condition) -> tuple[Arm, ...]:
        """The twins in every block of a condition."""
        profiles = {Role.AGAIN: self.again, Role.SLOWER: self.slower}
        return tuple(self.arm.twin(role) for role in TWINS if condition.profile.name in profiles[role])


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """Published values of one metric in one condition of an article."""

    condition_id: str  # as written, also if the matrix has no such condition
    values: Mapping[str, float | None]  # in the metric's unit, by arm; None: no result
    gap: str = ""  # why nothing in the matrix is comparable
    metric: str = ""  # its key; empty: the primary one
    statistic: str = ""  # `mean`, `median`, `p90` or `p99` of the article's runs; empty: a single figure
    is_relative: bool = False  # the article prints only their ratio, so the values have no unit

    @property
    def name(self) -> str:
        """The condition, with the metric where one was named: `far/page/ttfb_s`."""
        return f"{self.condition_id}/{self.metric}" if self.metric else self.condition_id


@dataclass(frozen=True, slots=True)
class Published:
    """An article that compared the same protocols over the same networks. It does not affect measurements."""

    name: str
    title: str
    rows: tuple[PublishedRow, ...]
    note: str = ""  # differences from the experiment here, and the finding
    source: str = ""  # where to read it

    @property
    def gaps(self) -> dict[str, list[str]]:
        """The names of rows without a counterpart in the matrix, by the reason."""
        found: dict[str, dict[str, None]] = {}
        for row in self.rows:
            if row.gap:
                found.setdefault(row.gap, {})[row.name] = None
        return {reason: list(names) for reason, names in found.items()}


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the value of one network setting at which candidate and baseline change places."""

    new: Arm
    base: Arm
    along: str  # as written: `downlink.loss`
    points: tuple[tuple[float, str], ...]  # values in SI units, rising and evenly spaced, each with its condition's id

    @property
    def step(self) -> float:
        """The distance between neighbouring values."""
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
    settings: Settings = UNLIMITED
    lanes: int = 1  # parallel testbeds, at most; AUTO: as many as the host has room for
    title: str = ""
    source: str = ""
    path: str = ""
    selfcheck: SelfCheck | None = None
    published: tuple[Published, ...] = ()
    judge: tuple[str, ...] | None = None  # keys of the metrics with a verdict; None: the default ones
    compare: tuple[tuple[Arm, Arm], ...] = ()  # candidate and baseline; empty: every arm with every other
    smoke: tuple[str, ...] = field(default=(), compare=False)  # ids of the conditions of a smoke test
    content: Site | None = None  # of the user
    find: Search | None = None  # if set, the conditions are its values, of which few are measured

    @property
    def rules(self) -> TrialRules:
        """The rules for every trial."""
        return TrialRules(self.timeout_s, self.settings)

    def in_short(self) -> Matrix:
        """The matrix for a smoke test: one block of each condition that it names for that, else of all."""
        ends = {self.conditions[0].id, self.conditions[-1].id} if self.find else set(self.smoke)
        conditions = tuple(each for each in self.conditions if not ends or each.id in ends)
        return replace(self, conditions=conditions, repeat=Repetition.fixed(1), find=None)

    @property
    def servers(self) -> tuple[Server, ...]:
        """The servers that the arms need, each once, in the order of the arms."""
        return tuple(dict.fromkeys(arm.server for arm in self.arms))

    @property
    def browsers(self) -> tuple[str, ...]:
        """The browsers that the workloads need over any arm, each once."""
        loads = (arm.workload(each.workload) for each in self.conditions for arm in self.arms)
        return tuple(dict.fromkeys(load.browser for load in loads if load.browser))

    def judged(self, condition: Condition) -> tuple[Metric, ...]:
        """The metrics that have a verdict in a condition, the primary one first."""
        judged = condition.workload.judged(self.judge)
        return condition.possible(judged) or judged

    @property
    def place(self) -> str:
        """The noun for conditions: with a single workload, the networks distinguish them."""
        return "condition" if len({condition.workload.name for condition in self.conditions}) > 1 else "network"

    def name_of(self, condition: Condition) -> str:
        """A condition's display name: without its workload if there is only one."""
        return condition.profile.name if self.place == "network" else condition.id

    @property
    def newest(self) -> Arm:
        """The arm of the newest protocol, the plain one if there is one: readers decide whether to enable it."""
        return max(self.arms, key=lambda arm: (list(Protocol).index(arm.protocol), arm in PLAIN))

    @property
    def arms_word(self) -> str:
        """The noun for arms: "protocol" if all of them are plain."""
        return "protocol" if set(self.arms) <= set(PLAIN) else "arm"

    def arms_in(self, condition: Condition) -> tuple[Arm, ...]:
        """The arms in each block of a condition: every arm, and the twins of the self-check."""
        return (*self.arms, *(self.selfcheck.twins(condition) if self.selfcheck else ()))


@dataclass(frozen=True, slots=True)
class Block:
    """A condition, one seed for each direction, every arm once, in `order`."""

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
    """An execution of one arm in one block."""

    block: Block
    position: int  # 0 is the first of its block
    arm: Arm

    @property
    def id(self) -> str:
        """`profile/workload#block/arm`, unique inside a run."""
        return f"{self.block.id}/{self.arm.name}"

    @property
    def protocol(self) -> Protocol:
        """The protocol that the trial uses."""
        return self.arm.protocol

    @property
    def profile(self) -> Profile:
        """The network of this trial: the condition's, but a slower one for the positive control."""
        profile = self.block.condition.profile
        return slowed(profile) if self.arm.role is Role.SLOWER else profile

    @property
    def workload(self) -> Workload:
        """The workload: the condition's, with the arm's overrides."""
        return self.arm.workload(self.block.condition.workload)


def slowed(profile: Profile) -> Profile:
    """The profile with delays and rates slower by CONTROL_RATIO.

    Both are needed: with longer delays alone, a page over 5 Mbit/s is 1 % slower.
    """

    def longer(link: Link) -> Link:
        delay, rate = link.delay, link.rate
        return replace(
            link,
            delay=replace(delay, delay_s=delay.delay_s * (1 + CONTROL_RATIO)) if delay else None,
            rate=replace(rate, rate_bps=max(8, int(rate.rate_bps / (1 + CONTROL_RATIO)) // 8 * 8)) if rate else None,
        )

    def later(changes: Changes | None) -> Changes | None:
        if isinstance(changes, Steps):
            return replace(changes, links=tuple(map(longer, changes.links)))
        if isinstance(changes, Trace):
            return replace(changes, pace=changes.pace / (1 + CONTROL_RATIO))
        return replace(changes, bad=longer(changes.bad)) if changes else None

    return replace(
        profile, uplink=longer(profile.uplink), downlink=longer(profile.downlink),
        uplink_changes=later(profile.uplink_changes), downlink_changes=later(profile.downlink_changes),
    )  # fmt: skip


class Outcome(StrEnum):
    """The outcome of a trial. Only `invalid`, `lab-error` and `skipped` may leave the analysis; all are reported."""

    OK = "ok"  # every request succeeded
    FAILED = "failed"  # the client finished, but some requests failed
    TIMEOUT = "timeout"  # the client was stopped at timeout_s: its time is above it
    WRONG_PROTOCOL = "wrong-protocol"  # another protocol than the requested one was negotiated
    WRONG_CONTENT = "wrong-content"  # the delivered bytes were not those of the workload
    WRONG_SESSION = "wrong-session"  # a session was not resumed, or early data not accepted, as requested
    INVALID = "invalid"  # the impairment was not verified; tried again (proof/attempts.py)
    LAB_ERROR = "lab-error"  # the lab failed; retried and counted
    SKIPPED = "skipped"  # never started


DATA_OUTCOMES = frozenset(Outcome) - {Outcome.INVALID, Outcome.LAB_ERROR, Outcome.SKIPPED}


@dataclass(frozen=True, slots=True)
class Check:
    """A line of the proof: requested, configured (read back) and measured values of one impairment."""

    direction: Direction
    quantity: str  # "delay_s", "loss_ratio", "corrupt_ratio", "unexplained_loss_ratio", ...
    requested: float | None
    configured: float | None  # None if nothing can be read back
    measured: float | None  # None if there was too little traffic to measure
    tolerance: float | None  # largest accepted |measured - requested|
    passed: bool
    note: str = ""  # what was counted, or why there is no measurement
    span: str = ""  # the network of a profile that changes, by when it begins; empty: the first, or the only one


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
    """The host and testbed of a trial. The run's environment describes each testbed by name, under `testbeds`."""

    host: str = ""  # its name
    lane: int = 1
    testbed: str = ""
    engine: str = ""
    beside: tuple[str, ...] = ()  # blocks that ran on other lanes meanwhile, as `profile/workload#block`


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one attempt. `metrics` by key: the workload's, or timeout_s and Workload.bounds."""

    trial: Trial
    outcome: Outcome
    reason: str = ""  # for people; empty only when the outcome is ok
    metrics: Mapping[str, float] = field(default_factory=dict)
    proof: Proof = Proof()
    samples: Mapping[str, Any] = field(default_factory=dict)  # the client's raw JSON, kept whole
    command: str = ""  # what the client ran
    phases_s: Mapping[str, float] = field(default_factory=dict)  # time per phase: apply, probe, client, ...
    attempt: int = 0
    started_at: float = 0.0  # seconds since the epoch
    place: Place = NOWHERE
    ended_at: float = 0.0  # likewise, when it was recorded; 0 if it was cut short

    @property
    def is_cpu_bound(self) -> bool:
        """Whether CPUs were the limit of this trial (headwind/proof/processors.py)."""
        return any(warning.startswith(CPU_BOUND) for warning in self.proof.warnings)

    @property
    def lower_bound_s(self) -> float | None:
        """The minimum time of an unfinished trial; None if it finished."""
        return self.metrics.get("timeout_s") if self.outcome is Outcome.TIMEOUT else None
