"""`lab.py run --capture`: extra trials after the counted ones, whose packets, keys and logs are kept."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence

from headwind.errors import UsageError
from headwind.format import counted, observed_text
from headwind.matrix.reader import networks_of_sweeps
from headwind.model import Condition, Matrix, Outcome, Repetition, Result, Trial
from headwind.observed import figure
from headwind.plan.block_order import plan_block
from headwind.run.captures import contents, folder_of
from headwind.run.journal import Run
from headwind.testbed.docker import Say
from headwind.trial.block import LAB_TROUBLE
from headwind.trial.capture import Capture
from headwind.trial.lane import ATTEMPTS, Lane
from headwind.trial.trial import run_trial

ALL = "all"
FAILED = (Outcome.INVALID, Outcome.LAB_ERROR)


def chosen(matrix: Matrix, names: Sequence[str], cluster: str | None) -> tuple[Condition, ...]:
    """The conditions to capture; a name is `profile/workload`, a profile or ALL. Raises UsageError.

    A sweep's name stands for each of its networks.
    """
    if names and cluster:
        raise UsageError("--capture: captures need a testbed on this machine; leave out --cluster")
    found: dict[str, Condition] = {}
    sweeps = (
        {network: name for name, networks in networks_of_sweeps(matrix).items() for network in networks}
        if names
        else {}
    )
    known = {each.id: _names_of(each, sweeps) for each in matrix.conditions}
    for name in names:
        named = [each for each in matrix.conditions if name in known[each.id]]
        if not named:
            words = dict.fromkeys(word for names_ in known.values() for word in names_)
            near = difflib.get_close_matches(name, words, 1) or [matrix.conditions[0].id]
            raise UsageError(f"--capture {name}: {_lacking(matrix)}; did you mean `{near[0]}`, or `all`?")
        found |= {each.id: each for each in named}
    return tuple(found.values())


def _lacking(matrix: Matrix) -> str:
    """Sentence on an unknown condition; after `--smoke`, the matrix may have it."""
    is_short = matrix.repeat == Repetition.fixed(1) and {each.id for each in matrix.conditions} == {*matrix.smoke}
    return "the smoke test (key `smoke`) has no such condition" if is_short else "the matrix has no such condition"


def _names_of(condition: Condition, sweeps: Mapping[str, str]) -> list[str]:
    """Names that include a condition; `sweeps` are the names of sweeps by those of their networks."""
    profile, load = condition.profile.name, condition.workload.name
    profiles = [profile, sweeps[profile]] if profile in sweeps else [profile]
    return [ALL, *profiles, *(f"{each}/{load}" for each in profiles)]


def capture_all(
    lane: Lane, run: Run, conditions: Collection[Condition], measured: Collection[str], say: Say
) -> list[str]:
    """Capture a trial of each arm in each condition, if it was `measured`; the text of each that failed.

    Names each condition that was not. A trial repeats the condition's first block, with its seeds, and is not counted.
    Raises JournalError.
    """
    matrix = run.matrix
    failures = []
    for condition in conditions:
        if condition.id not in measured:
            say(f"not captured: {condition.id}, because the run ended before it was measured")
            continue
        for trial in extra_trials(matrix, condition):
            capture, result = _captured(lane, matrix, trial)
            folder = folder_of(matrix, trial)
            shutil.rmtree(run.folder / folder, ignore_errors=True)  # of an earlier capture
            for name, content in contents(result, capture.files, capture.packets, capture.missed, capture.left_out):
                run.write(f"{folder}/{name}", content)
            say(f"captured {trial.id}: {_text(result)}, {_sizes(capture)}: {run.folder / folder}")
            if result.outcome in FAILED:
                failures.append(f"the capture of {trial.id} failed {ATTEMPTS} times, last with: {result.reason}")
    return failures


def extra_trials(matrix: Matrix, condition: Condition) -> Iterator[Trial]:
    """The trials of the first block, without twins."""
    return (each for each in plan_block(matrix, condition, 0).trials() if each.arm in matrix.arms)


def _captured(lane: Lane, matrix: Matrix, trial: Trial) -> tuple[Capture, Result]:
    """The capture of a trial, after another attempt if the lab or the network failed; on a new testbed if needed."""
    attempt = 0
    while True:
        capture = Capture(trial)
        try:
            path = lane.open().path(trial.arm.server.name)
            result = run_trial(path, trial, matrix.rules, attempt, capture=capture)
        except LAB_TROUBLE as error:
            lane.drop(str(error))
            result = Result(trial, Outcome.LAB_ERROR, str(error), attempt=attempt)
        attempt += 1
        if result.outcome not in FAILED or attempt == ATTEMPTS:
            return capture, result


def _text(result: Result) -> str:
    metric = result.trial.workload.primary()
    has_time = result.outcome in (Outcome.OK, Outcome.TIMEOUT)
    return observed_text(metric.key, figure(result, metric)) if has_time else result.outcome.value


def _sizes(capture: Capture) -> str:
    parts = [f"{counted(count, 'packet')} at the {end}" for end, count in capture.packets.items()]
    missed = sum(capture.missed.values())
    return ", ".join([*parts, *([f"{missed} without room"] if missed else [])]) or "no packets"
