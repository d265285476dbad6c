"""Forecast of the duration of trials: learnt from trials that ran, guessed from the profile until then."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice

from headwind.arm import Arm
from headwind.matrix.shortest import probing, shortest, spans
from headwind.metric import Unfinished, Workload
from headwind.model import Block, Condition, Matrix, Outcome, Result, Trial
from headwind.observed import observed
from headwind.proof.expectation import Expectation
from headwind.settings import TrialRules
from impair.profile import Direction, Link, Steps
from servers.objects import INDEX_BYTES

OVERHEAD_S = 0.3  # of a trial beyond its client (bench/overhead.py measures it)
SEGMENT_BYTES = 1448
PATH_BPS = 300e6  # of a clean path through the user-mode kernel
PAYS = 1.1  # minimum advantage (factor) of further lanes: forecasts err, and no trial runs while testbeds start
MOST_SPANS = 1_000  # of a network that changes, in which a guess looks for the end of a transfer
START_S = 8.0  # from no testbed to the first trial, with images built
LANE_S = 5.0  # until a further testbed is up: six take six times as long, and no trial runs meanwhile


class Forecast:
    """Expected seconds of a trial; the forecast improves with every trial learnt.

    `earlier` are results of earlier runs, which count for an arm in a condition until one of its trials is learnt.
    """

    def __init__(self, rules: TrialRules, results: Iterable[Result] = (), earlier: Iterable[Result] = ()) -> None:
        self._rules = rules
        self._earlier: dict[tuple[str, Arm], tuple[int, float]] = {}  # number of trials, and their total time
        self._seen: dict[tuple[str, Arm], tuple[int, float]] = {}  # the same, of this run
        self._guesses: dict[tuple[str, Arm], float] = {}  # of a trial, before any is known
        for known, each in ((self._earlier, earlier), (self._seen, results)):
            for result in each:
                _learn(known, result)

    def learn(self, result: Result) -> None:
        """Record the duration of a trial with any outcome except a lab error."""
        _learn(self._seen, result)

    def trial_s(self, trial: Trial) -> float:
        """Expected wall time of one trial in seconds, overhead included.

        A guess is not below the lower bound of any trial (matrix/shortest.py).
        """
        key = trial.block.condition.id, trial.arm
        if known := self._seen.get(key) or self._earlier.get(key):
            trials, took_s = known
            return took_s / trials
        if key not in self._guesses:
            condition = replace(trial.block.condition, profile=trial.profile)
            least_s = shortest(condition, trial.arm, self._rules.settings).seconds
            guessed_s = max(least_s, guess_s(replace(trial.block.condition, workload=trial.workload)))
            self._guesses[key] = around_s(trial) + min(self._rules.timeout_s, guessed_s)
        return self._guesses[key]

    def trials_s(self, trials: Iterable[Trial]) -> float:
        """Expected wall time of several trials in seconds, one after another."""
        return sum(self.trial_s(trial) for trial in trials)

    def block_s(self, block: Block) -> float:
        """Expected wall time of a whole block in seconds."""
        return self.trials_s(block.trials())

    @property
    def learnt(self) -> Mapping[tuple[str, Arm], int]:
        """Number of known trials of each condition and arm."""
        return {key: trials for key, (trials, _) in (self._earlier | self._seen).items()}


def around_s(trial: Trial) -> float:
    """Expected seconds of a trial before and after its client."""
    return OVERHEAD_S + probing(trial.profile).seconds


def block_seconds(matrix: Matrix, forecast: Forecast) -> Callable[[Condition], float]:
    """Seconds that a block of a condition costs, according to the forecast."""
    return lambda condition: forecast.block_s(Block(condition, 0, tuple(matrix.arms_in(condition)), {}))


def lanes_that_pay(work_s: Callable[[int], float], up: int, most: int, up_s: float, left_s: float) -> int:
    """The smallest number of lanes that gets most done, if `up` are up and each further one takes `up_s` to start.

    `work_s` returns the seconds that all work takes on a number of lanes. If it does not fit into `left_s`, the share
    that does decides, else the end of the work. Further lanes must be better by a factor of PAYS.
    """

    def gain(lanes: int) -> tuple[float, float]:
        start_s, took_s = up_s * (lanes - up), work_s(lanes)
        done = min(1.0, (left_s - start_s) / took_s) if took_s else 1.0
        return done, -(start_s + took_s) if done == 1 else 0.0

    best = max(range(up, most + 1), key=lambda lanes: (gain(lanes), -lanes))
    (done, when), (now_done, now_when) = gain(best), gain(up)
    is_better = done >= PAYS * now_done if now_done < 1 else now_when <= PAYS * when
    return best if is_better else up


def _learn(known: dict[tuple[str, Arm], tuple[int, float]], result: Result) -> None:
    """Add the duration of a trial to those that are known; a lab error has none."""
    if result.outcome is Outcome.LAB_ERROR:
        return
    if wall_s := sum(result.phases_s.values()) or _client_s(result):
        key = result.trial.block.condition.id, result.trial.arm
        trials, took_s = known.get(key, (0, 0.0))
        known[key] = trials + 1, took_s + wall_s


def _client_s(result: Result) -> float:
    """Wall time of a trial without recorded phases, from a metric that runs from its start to its end; or 0."""
    metric = result.trial.block.condition.workload.primary()
    value = observed(result, metric) if metric.unfinished is Unfinished.ABOVE_TIMEOUT else None
    return value.low + OVERHEAD_S if value and value.low else 0.0


def guess_s(condition: Condition) -> float:
    """A rough first guess in seconds, until there are measurements: round trips, retransmission timeouts, the transfer.

    Fitted by eye to the eight default profiles on a two-core machine; only the displayed time depends on it.
    """
    links = [condition.profile.link(direction) for direction in Direction]
    delay_s = sum(link.delay.delay_s for link in links if link.delay)
    bad = sum(Expectation.of(link).loss + (link.corrupt.ratio if link.corrupt else 0.0) for link in links)
    requests = condition.workload.size()
    waiting_s = 4 * delay_s + math.sqrt(requests / 1000) * 40 * math.pow(min(bad, 1.0), 1.5)
    return 0.2 + requests / 5000 + waiting_s + _transfer_s(condition, delay_s)


def _transfer_s(condition: Condition, delay_s: float) -> float:
    """Seconds for all bodies at the slowest of the path, its rate as it changes, and TCP's throughput with loss.

    The last: 1.22 segments a round trip and connection, over the root of the loss (Mathis et al., "The macroscopic
    behavior of the TCP congestion avoidance algorithm", 1997).
    """
    workload, link = condition.workload, condition.profile.downlink
    changes = condition.profile.changes(Direction.DOWNLINK)
    networks = spans(link, changes) if isinstance(changes, Steps) else [(0.0, math.inf, link)]
    _, body_bytes = workload.least()
    left_bits = (body_bytes or workload.size() * INDEX_BYTES) * 8
    for begun_s, ended_s, each in islice(networks, MOST_SPANS):
        speed_bps = _speed_bps(each, workload, delay_s)
        carried_bits = speed_bps * (ended_s - begun_s) if speed_bps else 0.0
        if left_bits <= carried_bits:
            return begun_s + left_bits / speed_bps
        left_bits -= carried_bits
    return math.inf


def _speed_bps(link: Link, workload: Workload, delay_s: float) -> float:
    """Bits per second that a direction carries; 0 if it drops every packet."""
    loss = Expectation.of(link).vanishing
    if loss >= 1:
        return 0.0
    rates_bps = [PATH_BPS, link.rate.rate_bps if link.rate else math.inf]
    if loss and delay_s:
        rates_bps.append(1.22 * SEGMENT_BYTES * 8 * workload.at_once()[0] / (delay_s * math.sqrt(loss)))
    return min(rates_bps)
