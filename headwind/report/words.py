"""Texts of table rows, the same in the page and in the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from headwind.format import NOTHING, clean, counted, enumerated, link_settings, observed_text
from headwind.model import Condition, Outcome
from headwind.report.summary import Row
from headwind.run.codec import State
from headwind.run.data import STOPPED_WITH_RUN, RunData, was_stopped
from impair.profile import Direction, Profile

ARROWS = {Direction.DOWNLINK: "\N{DOWNWARDS ARROW}", Direction.UPLINK: "\N{UPWARDS ARROW}"}
MOST_NAMED = 4  # names in a list; of more their number
STOPPED = f"{STOPPED_WITH_RUN}, in no figure"
COLUMNS = ("delay", "loss", "duplicate", "corrupt", "other")  # of the article's table, and what it did not have


def headline(data: RunData) -> str:
    """How the run went, in one sentence or two: "All 72 trials ran: 70 ok, 2 timeout."."""
    counts = Counter(STOPPED if was_stopped(result) else result.outcome.value for result in data.latest)
    tally = ", ".join(f"{counts[word]} {word}" for word in (*Outcome, STOPPED) if counts[word])
    return how_far(data).removesuffix(".") + (f": {tally}." if tally else ".")


def how_far(data: RunData) -> str:
    """How much of the run there is, and why not more: "All 72 trials ran."."""
    done, missing, status, is_adaptive = len(data.latest), _missing(data), data.status, data.matrix.repeat.is_adaptive
    of = f"{done:,} of {'at least ' if is_adaptive else ''}{done + missing:,} trials"
    if status.state is State.RUNNING:
        return f"In progress, {of}."
    is_short, is_over = missing > 0 and not data.searched, status.state is State.FINISHED
    ran = f"{of} ran." if is_short else f"{'' if is_adaptive and not is_over else 'All '}{counted(done, 'trial')} ran."
    if is_over and is_adaptive and is_short:
        return f"{counted(done, 'trial')} ran; the budget ended before {missing:,} of the minimum of {data.planned:,}."
    if is_over:
        return ran
    why = f"{status.reason[:1].upper()}{status.reason[1:]}"
    return f"{why if status.state is State.INTERRUPTED else f'The run failed: {status.reason}'}. {ran}"


def _missing(data: RunData) -> int:
    """The trials that the matrix asks for at least and that did not run; those beyond its minimum make up for none."""
    if data.searched:
        return max(0, data.planned - len(data.latest))
    ran = Counter((result.trial.block.condition.id, result.trial.arm) for result in data.latest)
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
    """What tables and charts go by: "total time"."""
    return " or ".join(dict.fromkeys(condition.workload.primary().label for condition in conditions))


def trials_text(row: Row) -> list[str]:
    """How many trials stand behind a row and what became of the others: ["2 of 3 finished", "1 timeout"]."""
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
    """The impairments of a profile by column of the article's table: one text for each direction that has one.

    `both_ways` puts the direction's arrow before each text; without it there is only the downlink to speak of.
    """
    cells: dict[str, list[str]] = {column: [] for column in COLUMNS}
    for direction, arrow in ARROWS.items():
        for column, text in _link_cells(link_settings(profile.link(direction))).items():
            cells[column].append(f"{arrow} {text}" if both_ways else text)
    return cells


def network_text(cells: Mapping[str, Sequence[str]]) -> str:
    """What `network` gives, as one line: "delay 100 ms ± 10 ms, loss 30 %"."""
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
    """`clean, delay and loss`; of more than `most` how many there are."""
    return enumerated(names) if len(names) <= most else str(len(names))


def unbroken(text: str) -> str:
    """The text with numbers tied to their units, to the arrow or name before them, and to each other in an interval.

    A narrow column does not part them.
    """
    ratio = r"(?<=[0-9)]) (?=[0-9.]+x)|(?<=[0-9]x) (?=\[)|(?<=[0-9],) (?=[0-9.∞]+\])"
    return re.sub(rf"(?<=[0-9]) (?=[%µnmskMGb])|(?<=[>↓↑±]) |{ratio}", "\N{NO-BREAK SPACE}", text)


def uses_uplink(profiles: Iterable[Profile]) -> bool:
    """Whether any profile impairs what the client sends."""
    return any(link_settings(profile.uplink) for profile in profiles)


def plain(value: object) -> str:
    """A fact of the environment as one text: yes and no, lists with commas, nothing as a dash."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping) and value:
        return ", ".join(f"{key} {plain(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value) or NOTHING
    if value is None or value in ("", {}):
        return NOTHING
    return clean(str(value))
