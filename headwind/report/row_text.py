"""Texts of table rows, the same in the page and in the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from headwind.format import NOTHING, clean, counted, enumerated, link_settings, observed_text
from headwind.model import Condition, Outcome, Result
from headwind.proof.attempts import runs_again
from headwind.report.times_table import Row
from headwind.run.codec import State
from headwind.run.data import RunData, was_stopped
from headwind.run.journal import STOPPED_WITH_RUN
from impair.profile import Direction, Profile

ARROWS = {Direction.DOWNLINK: "\N{DOWNWARDS ARROW}", Direction.UPLINK: "\N{UPWARDS ARROW}"}
MOST_NAMED = 4  # names in a list; for more, their number
STOPPED = f"{STOPPED_WITH_RUN}, in no figure"
COLUMNS = ("delay", "loss", "duplicate", "corrupt", "other")  # of the article's table, and the other impairments


def headline(data: RunData) -> str:
    """The state of the run in one or two sentences: "All 72 trials ran: 70 ok, 2 timeout."."""
    counts = Counter(STOPPED if was_stopped(result) else result.outcome.value for result in data.latest)
    tally = ", ".join(f"{counts[word]} {word}" for word in (*Outcome, STOPPED) if counts[word])
    return how_far(data).removesuffix(".") + (f": {tally}." if tally else ".")


def how_far(data: RunData) -> str:
    """How far the run is, and why it has no more: "All 72 trials ran."."""
    (done, missing), status, is_adaptive = ran_and_missing(data), data.status, data.matrix.repeat.is_adaptive
    of = f"{done:,} of {'at least ' if is_adaptive else ''}{done + missing:,} trials"
    if status.state is State.RUNNING:
        return f"In progress, {of}."
    is_short, is_over = missing > 0 and not data.searched, status.state is State.FINISHED
    ran = f"{of} ran." if is_short else f"{'' if is_adaptive and not is_over else 'All '}{counted(done, 'trial')} ran."
    if is_over and is_adaptive and is_short:
        short = f"{counted(missing, 'trial')} short of the minimum in every {data.matrix.place}"
        return f"The budget ended {short}. {counted(done, 'trial')} ran."
    if is_over:
        return ran
    why = f"{status.reason[:1].upper()}{status.reason[1:]}"
    return f"{why if status.state is State.INTERRUPTED else f'The run failed: {status.reason}'}. {ran}"


def ran_and_missing(data: RunData) -> tuple[int, int]:
    """Number of trials that ran, and of those that did not and are part of the minimum."""
    return len(_ran(data)), _missing(data)


def _ran(data: RunData) -> list[Result]:
    """The trials that have ended, without those that a run in progress will repeat, as its progress counts."""
    return [each for each in data.latest if data.status.state is State.FINISHED or not runs_again(each)]


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
    """Best to worst of the primary metric, "[390 – 420 ms]"; empty for fewer than two trials."""
    if row.time is None or row.analysed < 2:
        return ""
    quantity = row.condition.workload.primary().key
    best, worst = observed_text(quantity, row.time.best), observed_text(quantity, row.time.worst)
    if best == worst:
        return f"[{best}]"
    number, _, unit = best.rpartition(" ")
    shared = row.time.worst.is_finished and worst.endswith(f" {unit}")
    return f"[{number if shared else best} \N{EN DASH} {worst}]"


def primaries(conditions: Iterable[Condition]) -> str:
    """Names of the primary metrics of tables and charts: "total time"."""
    return " or ".join(dict.fromkeys(condition.workload.primary().label for condition in conditions))


def trials_text(row: Row) -> list[str]:
    """The number of trials of a row and their outcomes: ["2 of 3 finished", "1 timeout"]."""
    ran = sum(row.outcomes.values())
    if not ran:
        return ["not run yet" if row.running else "not run"]
    words = [f"{row.finished} of {ran} finished"]
    for outcome, number in row.outcomes.items():
        count = number - row.stopped if outcome is Outcome.LAB_ERROR else number
        if outcome is not Outcome.OK and count:
            done = f" ({row.got_done})" if outcome is Outcome.FAILED and row.got_done else ""
            words.append(f"{count} {outcome.value}{done}")
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
    for direction, arrow in ARROWS.items():
        for column, text in _link_cells(link_settings(profile.link(direction))).items():
            cells[column].append(f"{arrow} {text}" if both_ways else text)
    return cells


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
    ratio = r"(?<=[0-9)]) (?=[0-9.]+x)|(?<=[0-9]x) (?=\[)|(?<=[0-9],) (?=[0-9.∞]+\])"
    return re.sub(rf"(?<=[0-9]) (?=[%µnmskMGb])|(?<=[>↓↑±]) |{ratio}", "\N{NO-BREAK SPACE}", text)


def uses_uplink(profiles: Iterable[Profile]) -> bool:
    """True if any profile impairs what the client sends."""
    return any(link_settings(profile.uplink) for profile in profiles)


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
