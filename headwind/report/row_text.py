"""Texts of table rows, the same in the page and in the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from headwind.format import NOTHING, clean, counted, duration, enumerated, network_settings, observed_text
from headwind.model import DATA_OUTCOMES, Condition, Matrix, Outcome, Result
from headwind.proof.attempts import runs_again
from headwind.report.times_table import Row
from headwind.run.codec import State
from headwind.run.data import RunData, was_stopped
from headwind.run.journal import STOPPED_WITH_RUN
from impair.profile import Direction, Profile

ARROWS = {Direction.DOWNLINK: "\N{DOWNWARDS ARROW}", Direction.UPLINK: "\N{UPWARDS ARROW}"}
MOST_NAMED = 4  # names in a list; for more, their number
MOST_CHANGES = 4  # of a network during a trial, likewise
STOPPED = f"{STOPPED_WITH_RUN}, in no figure"
COLUMNS = ("delay", "loss", "duplicate", "corrupt", "other")  # of the article's table, and the other impairments


def headline(data: RunData) -> str:
    """The state of the run in one or two sentences: "All 72 trials ran: 70 ok, 2 timed out."."""
    tally, stopped, is_over = _tally(_ran(data)), _stopped(data), data.status.state is State.FINISHED
    again = [each for each in data.latest if not is_over and runs_again(each) and not was_stopped(each)]
    cut = [f"{stopped} more {'was' if stopped == 1 else 'were'} {STOPPED}"] * bool(stopped)
    cut += [f"{_tally(again)}, to be repeated"] * bool(again)
    return "; ".join((how_far(data).removesuffix(".") + (f": {tally}" if tally else ""), *cut)) + "."


def _tally(results: Iterable[Result]) -> str:
    counts = Counter(result.outcome.value for result in results)
    return ", ".join(f"{counts[word]:,} {spoken(word)}" for word in Outcome if counts[word])


def resumed_text(data: RunData) -> str:
    """Sentence on the pauses of a resumed run; empty if it had none: "Resumed once: 2 min 5 s without the pause."."""
    status, pauses = data.status, data.pauses_s
    if not pauses:
        return ""
    times, each = ("once", "the pause") if len(pauses) == 1 else (f"{len(pauses)} times", "the pauses")
    took_s = (status.ended_at or 0.0) - status.started_at - sum(pauses)
    return f"Resumed {times}{f': {duration(round(took_s))} without {each}' if status.ended_at else ''}."


def spoken(outcome: str) -> str:
    """An outcome after a number of trials: `8 timed out`."""
    return "timed out" if outcome == Outcome.TIMEOUT else str(outcome)


def how_far(data: RunData) -> str:
    """How far the run is, and why it has no more: "All 72 trials ran."."""
    (done, missing), status, is_adaptive = ran_and_missing(data), data.status, data.matrix.repeat.is_adaptive
    of = f"{done:,} of {done + missing:,} trials"
    more = f" (the minimum takes {missing:,} more)" if missing and not data.searched else ""
    if status.state is State.RUNNING:
        return f"In progress, {counted(done, 'trial') + more if is_adaptive else of}."
    is_short, is_over = missing > 0 and not data.searched, status.state is State.FINISHED
    is_whole = not is_adaptive and not _stopped(data)
    all_of = f"{'All ' if is_whole else ''}{counted(done, 'trial')}"
    ran = f"{all_of} ran{more}." if is_adaptive else f"{of if is_short else all_of} ran."
    if is_over and is_adaptive and not data.searched and data.short:
        return f"{_below_minimum(data, missing)}. {counted(done, 'trial')} ran."
    if is_over:
        return ran
    why = f"{status.reason[:1].upper()}{status.reason[1:]}"
    return f"{why if status.state is State.INTERRUPTED else f'The run failed: {status.reason}'}. {ran}"


def _below_minimum(data: RunData, missing: int) -> str:
    """Clause on the conditions with too few complete blocks, and on the trials that these lack."""
    short = data.short
    no_data = [each for each in _ran(data) if each.trial.block.condition in short and each.outcome not in DATA_OUTCOMES]
    why = [f"the budget ended before {counted(missing, 'trial')}"] * bool(missing)
    why += [f"{counted(len(no_data), 'trial')} gave no data"] * bool(no_data)
    where = f"in {len(short)} of {counted(len(data.matrix.conditions), data.matrix.place)}"
    blocks = counted(data.matrix.repeat.least, "block")
    return f"Fewer than the minimum of {blocks} are complete {where}: {' and '.join(why)}"


def ran_and_missing(data: RunData) -> tuple[int, int]:
    """Number of trials that ran, and of those that did not and are part of the minimum."""
    return len(_ran(data)), _missing(data)


def _ran(data: RunData) -> list[Result]:
    """The trials that have ended, without those that were stopped or that a run in progress will repeat."""
    is_over = data.status.state is State.FINISHED
    return [each for each in data.latest if not (was_stopped(each) if is_over else runs_again(each))]


def _stopped(data: RunData) -> int:
    return sum(map(was_stopped, data.latest))


def _missing(data: RunData) -> int:
    """Number of minimum trials that did not run; trials beyond the minimum of another condition do not replace them."""
    if data.searched:
        return max(0, data.planned - len(_ran(data)))
    ran = Counter((result.trial.block.condition.id, result.trial.arm) for result in _ran(data))
    asked = ((condition.id, arm) for condition in data.matrix.conditions for arm in data.matrix.arms_in(condition))
    return sum(max(0, data.matrix.repeat.least - ran[each]) for each in asked)


def median_text(row: Row) -> str:
    """The median of the primary metric: "406 ms", "> 60 s", "not completed", or a dash."""
    return observed_text(row.condition.workload.primary().key, row.time.median if row.time else None)


def range_text(row: Row) -> str:
    """Best to worst of the primary metric, "[390 – 420 ms]", "[2.48 s to > 60 s]"; empty for fewer than two trials."""
    if row.time is None or row.analysed < 2:
        return ""
    quantity = row.condition.workload.primary().key
    best, worst = observed_text(quantity, row.time.best), observed_text(quantity, row.time.worst)
    if best == worst:
        return f"[{best}]"
    number, _, unit = best.rpartition(" ")
    shared = row.time.worst.is_finished and worst.endswith(f" {unit}")
    to = "\N{EN DASH}" if row.time.worst.is_finished else "to"
    return f"[{number if shared else best} {to} {worst}]"


def primaries(conditions: Iterable[Condition]) -> str:
    """Names of the primary metrics of tables and charts: "total time"."""
    return " or ".join(dict.fromkeys(condition.workload.primary().label for condition in conditions))


def trials_text(row: Row) -> list[str]:
    """The number of trials of a row and their outcomes: ["2 of 3 finished", "1 timed out"]."""
    ran = sum(row.outcomes.values())
    if not ran:
        return ["not run yet" if row.running else "not run"]
    words = [f"{row.finished} of {ran} finished"]
    for outcome, number in row.outcomes.items():
        count = number - row.stopped if outcome is Outcome.LAB_ERROR else number
        if outcome is not Outcome.OK and count:
            done = f" ({row.got_done})" if outcome is Outcome.FAILED and row.got_done else ""
            words.append(f"{count} {spoken(outcome)}{done}")
    if row.stopped:
        words.append(f"{row.stopped} {STOPPED_WITH_RUN}")
    if row.repeated:
        words.append(counted(row.repeated, "attempt") + " repeated")
    if ran < row.planned:
        words.append(f"{row.planned - ran} {'to come' if row.running else 'not run'}")
    return words


def network(profile: Profile, *, both_ways: bool) -> dict[str, list[str]]:
    """The impairments of a profile by column of the article's table: one text for each impaired direction.

    `both_ways` puts the direction's arrow before each text; otherwise all texts are about the downlink.
    """
    cells: dict[str, list[str]] = {column: [] for column in COLUMNS}
    settings = {arrow: _shortened(network_settings(profile, direction)) for direction, arrow in ARROWS.items()}
    down, up = ({key: text for key, text in each.items() if _is_of_changes(key)} for each in settings.values())
    if down and down == up:  # the same in both directions: once
        settings = {arrow: {key: each[key] for key in each if key not in down} for arrow, each in settings.items()}
        settings["".join(ARROWS.values())] = down
    for arrow, each in settings.items():
        for column, text in _link_cells(each).items():
            cells[column].append(f"{arrow} {text}" if both_ways else text)
    return cells


def _is_of_changes(key: str) -> bool:
    return key.startswith("at ") or key in ("changes", "every", "clock", "spells")


def _shortened(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with the number of changes in place of more than MOST_CHANGES."""
    changes = [key for key in settings if key.startswith("at ")]
    if len(changes) <= MOST_CHANGES:
        return dict(settings)
    first, last = (key.removeprefix("at ") for key in (changes[0], changes[-1]))
    kept = {key: value for key, value in settings.items() if key not in changes}
    return {**kept, "changes": f"{len(changes)}, from {first} to {last}"}


def network_text(cells: Mapping[str, Sequence[str]]) -> str:
    """The result of `network` as one line: "delay 100 ms ± 10 ms, loss 30 %"."""
    return ", ".join(
        text if column == "other" else f"{column} {text}" for column, texts in cells.items() for text in texts
    )


def _link_cells(settings: Mapping[str, str]) -> dict[str, str]:
    left = dict(settings)
    cells: dict[str, str] = {}
    if delay := left.pop("delay", None):
        jitter, shape = left.pop("jitter", None), left.pop("distribution", None)
        cells["delay"] = delay + (f" ± {jitter}" if jitter else "") + (f" ({shape})" if shape else "")
    model = {key: left.pop(key) for key in list(left) if key.startswith("loss.")}
    if model:
        name = next(iter(model)).split(".")[1]
        cells["loss"] = f"{name}: " + ", ".join(f"{key.split('.')[2]} {value}" for key, value in model.items())
    cells |= {key: left.pop(key) for key in ("loss", "duplicate", "corrupt") if key in left}
    if left:
        cells["other"] = ", ".join(f"{key} {value}" for key, value in left.items())
    return cells


def named(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """The names as a list, `clean, delay and loss`; for more than `most`, their number."""
    return enumerated(names) if len(names) <= most else str(len(names))


def unbroken(text: str) -> str:
    """The text with no-break spaces between numbers and their units, between parts of intervals, and after arrows.

    A narrow column then does not separate them.
    """
    ratio = r"(?<=[0-9)]) (?=[0-9.]+x)|(?<=[0-9]x) (?=\[|slower|faster)|(?<=[0-9],) (?=[0-9.∞]+\])"
    return re.sub(rf"(?<=[0-9]) (?=[%µnmskMGb])|(?<=[>↓↑±]) |{ratio}", "\N{NO-BREAK SPACE}", text)


def impairs(direction: Direction, profiles: Iterable[Profile]) -> bool:
    """True if any profile impairs this direction."""
    return any(network_settings(profile, direction) for profile in profiles)


def has_downlink_only(matrix: Matrix) -> bool:
    """True if a network has impairments on the downlink and none on the uplink: the former are named without arrow."""
    return any(
        impairs(Direction.DOWNLINK, [each.profile]) and not impairs(Direction.UPLINK, [each.profile])
        for each in matrix.conditions
    )


def plain(value: object) -> str:
    """A fact of the environment as one text: booleans as yes and no, lists with commas, empty values as a dash."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping) and value:
        return ", ".join(f"{key} {plain(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value) or NOTHING
    if value is None or value in ("", {}):
        return NOTHING
    return clean(str(value))
