"""report.html: one file, generated from the run folder alone, without external resources; readable without script."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwind import format as units
from headwind.arm import Arm
from headwind.metric import Use
from headwind.model import Condition, Outcome
from headwind.report import row_text
from headwind.report.answer import answer_of
from headwind.report.attribution import whys
from headwind.report.certainty import Certainty
from headwind.report.condition import FEWEST_FOR_TAIL, TOTALS, ConditionView, condition_view, trial_text
from headwind.report.drift import drift_text, usual_times
from headwind.report.html import templating
from headwind.report.html.charts.marks import arm_style
from headwind.report.html.charts.waterfall import waterfall_key
from headwind.report.html.embedded import embedded
from headwind.report.html.films import films
from headwind.report.html.grids import DEEPER, grid_pictures
from headwind.report.html.panels import panels, published_pictures
from headwind.report.html.pictures import (
    arm_key,
    condition_pictures,
    heading,
    label_style,
    overviews,
    sweep_pictures,
    timeline_picture,
    why_pictures,
)
from headwind.report.html.waterfalls import waterfalls
from headwind.report.impairment_checks import Truth, truth_table
from headwind.report.method import method
from headwind.report.published import measured_text, published_rows
from headwind.report.ranking import MOST_COLUMNS, Standing, columns_of, is_reference, pair_label
from headwind.report.sweeps import sweeps_of
from headwind.report.tc_commands import bottleneck_commands, tc_change, tc_command, trace_commands
from headwind.report.times_table import Row, notices, summary_table
from headwind.report.trust import doubts
from headwind.report.verdicts import two
from headwind.run.captures import CapturedTrial
from headwind.run.codec import State, matrix_to_json
from headwind.run.data import RunData, is_data
from headwind.servers import NGINX, SERVERS
from headwind.settings import INSTALLED
from headwind.verdicts.findings import FALSE_SHARE, metrics_of
from headwind.verdicts.judgement import Line
from impair.profile import Direction

if TYPE_CHECKING:
    from headwind.run.journal import Run

REPORT = "report.html"
GROUPS = {  # headings of groups of networks, and a note with the margin
    Certainty.SURE: ("At least one comparison sure", ""),
    Certainty.LIKELY: (
        "At least one comparison likely",
        "chance or a lack of CPU time may explain the lead or tie, or the lead may be under {}",
    ),
    Certainty.UNCLEAR: ("No comparison sure or likely", ""),
}
MOST_COMMANDS = 6  # changes of a direction whose tc command is printed
PORTS = {Direction.UPLINK: "TO_SERVER", Direction.DOWNLINK: "TO_CLIENT"}  # of the router; names differ by testbed
MANY_CONDITIONS = 12  # from this number, the comparisons can be filtered
NAMED_TRIALS = 12  # trials listed in a notice; the others are counted


def write_report(run: Run, data: RunData | None = None) -> Path:
    """Write the report of the run so far into its folder, whole or not at all. Returns the file's path.

    `data` is the content of the folder, if it was read already.
    """
    return run.write(REPORT, render(data or RunData.of(run), time.time()))


@dataclass(frozen=True, slots=True)
class Cell:
    """A condition in the tables of the whole run."""

    condition: Condition
    network: Mapping[str, Sequence[str]]
    rows: Sequence[Row]
    truth: Sequence[Truth]


def render(data: RunData, generated_at_s: float) -> str:
    """The page as HTML5.

    The same run gives the same text except for the time of generation (seconds since the epoch).
    """
    script = templating.text_of("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    usual = usual_times(data)
    return templating.page(
        "report.html.j2",
        GLOBALS,
        **_answer(data),
        **_verdicts(data),
        data=data,
        generated_at_s=generated_at_s,
        script=script,
        script_hash=f"sha256-{digest}",
        running=data.status.state is State.RUNNING,
        notices=notices(data),
        network_checks=[check.passed for result in data.latest for check in result.proof.checks],
        counted_checks=sum(len(result.proof.checks) for result in data.latest if is_data(result)),
        shown_of=shown_of,
        facts=list(facts_of(without_packages(data.environment))),
        first_facts=list(first_facts(data.environment)),
        drift=drift_text(data, usual),
        timeline=timeline_picture(data, usual),
        resolved=json.dumps(matrix_to_json(data.matrix), indent=2, ensure_ascii=False),
        method=list(method(data)),
    )  # fmt: skip


def shown_of(names: Sequence[str]) -> int:
    """How many of these names a notice lists; of the others, never just one, it gives the number."""
    return len(names) if len(names) <= NAMED_TRIALS + 1 else NAMED_TRIALS


def _answer(data: RunData) -> dict[str, Any]:
    """Variables of the first screen."""
    answer = answer_of(data)
    pairs, rest = columns_of(data.matrix, data.judgement)
    margin = units.setting("margin_ratio", data.judgement.rule.margin_ratio)
    other = ", or the network was not as requested" if data.unchanged or data.network_doubts else ""
    return {
        "answer": answer,
        "overviews": overviews(data, answer.standings),
        "pairs": pairs,
        "rest": rest,
        "labels": {pair: pair_label(pair) for pair in (*pairs, *rest)},
        "is_stacked": len(pairs) > MOST_COLUMNS or bool(rest),
        "group_notes": {
            word: (heading, note and note.format(margin) + other) for word, (heading, note) in GROUPS.items()
        },
        "other_metrics": [metric for metric in data.judgement.other_metrics if metric.meaning],
        "has_unfinished": any(is_data(each) and each.outcome is not Outcome.OK for each in data.latest),
        "how_far": "" if data.status.state is State.FINISHED else row_text.how_far(data),
        "details": {each.condition.id: _detail(each) for each in answer.standings},
        "has_downlink_only": row_text.has_downlink_only(data.matrix),
        "is_synthetic": not any(
            link.rate for item in data.matrix.conditions for side in Direction for link in item.profile.links(side)
        ),
        "whys": (causes := why_pictures(whys(data, answer.standings), data.matrix.timeout_s)),
        "label_style": label_style(causes),
        "arm_key": arm_key(data.matrix.arms),
        "place": data.matrix.place,
        "names": {item.id: data.matrix.name_of(item) for item in data.matrix.conditions},
    }


def _detail(standing: Standing) -> str:
    """The text below a network's name: its impairments, its blocks, and the forecast."""
    profile, network = standing.condition.profile, standing.network
    settings = row_text.network_text(row_text.network(profile, both_ways=row_text.impairs(Direction.UPLINK, [profile])))
    blocks = units.counted(standing.blocks, "block") if standing.rows else "not run"
    more = f", {standing.more}" if standing.more else ""
    meaning = row_text.unbroken(settings if network.is_key else network.meaning)
    parts = (meaning, f"{blocks}{more}", standing.spells_text)
    return " \N{MIDDLE DOT} ".join(filter(None, parts))


def _verdicts(data: RunData) -> dict[str, Any]:
    """The templates' variables on verdicts and conditions."""
    matrix, verdicts = data.matrix, data.judgement
    both_ways = row_text.impairs(Direction.UPLINK, (condition.profile for condition in matrix.conditions))
    by_condition: dict[str, list[Line]] = {}
    for line in verdicts.lines:
        by_condition.setdefault(line.condition.id, []).append(line)
    views = [
        condition_view(data, item, f"c{number}", [line.pair for line in by_condition.get(item.id, [])], verdicts.rule)
        for number, item in enumerate(matrix.conditions, 1)
    ]
    cells, sweeps = list(_cells(data, both_ways=both_ways)), sweeps_of(matrix)
    grids = grid_pictures(matrix, verdicts, sweeps)
    return {
        "verdicts": verdicts,
        "doubts": doubts(verdicts),
        "comparisons": verdicts.pairs,
        "by_condition": by_condition,
        "panels": panels(data),
        "many": MANY_CONDITIONS,
        "views": views,
        "anchors": {view.condition.id: view.anchor for view in views},
        "places": _places(views),
        "pictures": [condition_pictures(view, matrix.timeout_s, verdicts.rule) for view in views],
        "waterfalls": [waterfalls(data, view) for view in views],
        "captured": (captured := [list(_captured(data, view)) for view in views]),
        "films": [films((arm, trial) for arm, trial, _ in each) for each in captured],
        "grids": grids,
        "sweeps": sweep_pictures([each for each in sweeps if not any(it.grid.holds(each) for it in grids)], verdicts),
        "published": (published := published_rows(data, verdicts)),
        "published_pictures": published_pictures(published, verdicts.rule),
        "profiles": list(dict.fromkeys(item.profile.name for item in matrix.conditions)),
        "workloads": list(dict.fromkeys(item.workload.name for item in matrix.conditions)),
        "both_ways": both_ways,
        "cells": cells,
        "columns": [name for name in row_text.COLUMNS if any(cell.network[name] for cell in cells)],
        "network_of": {cell.condition.id: row_text.network_text(cell.network) for cell in cells},
        "trial_text": trial_text,
        "overrides": units.override_texts(matrix.arms),
        "arm_style": arm_style(matrix.arms),
        "metrics": metrics_of(matrix, Use.JUDGED, Use.COMPARED),
        "ratio_to_clean": ratio_to_clean([row for cell in cells for row in cell.rows]),
        "rates": list(dict.fromkeys(rate for item in matrix.conditions for rate in item.workload.rates)),
        "embedded": embedded(data, views),
    }


def _captured(data: RunData, view: ConditionView) -> Iterator[tuple[Arm, CapturedTrial, str]]:
    """The captured trials of a condition, each with its arm and its time or outcome as a text."""
    for arm in view.arms:
        if trial := data.captured.get((view.condition.id, arm.name)):
            metric = arm.workload(view.condition.workload).primary()
            known = metric.key in trial.metrics
            yield arm, trial, units.measured(metric.key, trial.metrics[metric.key]) if known else trial.outcome.value


def _places(views: Iterable[ConditionView]) -> dict[str, tuple[str, str]]:
    """Trial id -> the anchor of its row, and the text of a link to it."""
    return {
        result.trial.id: (row.anchor, f"{view.name} #{row.block.index} {result.trial.arm}")
        for view in views
        for row in view.rows
        for result in row.results.values()
    }


def _cells(data: RunData, *, both_ways: bool) -> Iterator[Cell]:
    table = summary_table(data)
    for condition in data.matrix.conditions:
        rows = [row for row in table if row.condition is condition]
        network = row_text.network(condition.profile, both_ways=both_ways)
        yield Cell(condition, network, rows, truth_table(data, condition))


def ratio_to_clean(rows: Sequence[Row]) -> dict[tuple[str, Arm], str]:
    """By condition id and arm: its median over its median on the unimpaired network, `> 9.10x` for a bound."""
    medians = {(row.condition, row.arm): row.time.median for row in rows if row.time}
    clean = {(item.workload, arm): value for (item, arm), value in medians.items() if is_reference(item)}
    found = {}
    for (condition, arm), value in medians.items():
        reference = clean.get((condition.workload, arm))
        if (
            reference
            and reference.is_finished
            and reference.known > 0
            and value.low > 0
            and not is_reference(condition)
        ):
            ratio = value.low / reference.known
            found[condition.id, arm] = f"{'' if value.is_finished else '> '}{two(ratio)}x"
    return found


def tc_commands(view: ConditionView) -> list[str]:
    """The iproute2 commands for the first block, each direction at the router's port to its receiver.

    After them those of the changes, the first MOST_COMMANDS of each direction, with their moments.
    """
    block, seeded = view.rows[0].block, view.rows[0].seeded
    profile = block.condition.profile
    netems = [
        tc_command(link, block.seeds[side] if seeded and units.link_settings(link) else None, PORTS[side])
        for side, link in ((each, profile.link(each)) for each in Direction)
    ] + [
        f"{tc_change(profile.after(side, number), profile.links(side), PORTS[side])}  # {side} at {at_s:g} s"
        for side in Direction
        if not profile.trace(side)
        for number, at_s in enumerate(islice(profile.moments(side, block.seeds[side]), MOST_COMMANDS), 1)
    ]
    queues = (bottleneck_commands(profile.link(side), PORTS[side.other], f"queue-{side}") for side in Direction)
    steps = (
        islice(trace_commands(trace, queue, f"queue-{side}"), MOST_COMMANDS)
        for side in Direction
        if (trace := profile.trace(side)) and (queue := profile.link(side).queue)
    )
    return [*netems, *chain.from_iterable((*queues, *steps))]


def without_packages(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment without its lists of hundreds of packages, which environment.json has."""
    return {
        key: without_packages(value) if isinstance(value, Mapping) else value
        for key, value in environment.items()
        if key != INSTALLED
    }


def facts_of(environment: Mapping[str, Any], *above: str) -> Iterator[tuple[str, str]]:
    """Every fact of a nested JSON object as (path, text): ("server openssl", "3.6.0")."""
    for key, value in environment.items():
        if isinstance(value, Mapping) and value:
            yield from facts_of(value, *above, key)
        else:
            yield " \N{RIGHTWARDS ARROW} ".join((*above, key)), row_text.plain(value)


FIRST_FACTS = {
    "Engine": "engine",
    "Why this engine": "testbed choice reason",
    "Kernel with netem": "testbed router kernel",
    "Kernel of the host": "host kernel",
    "CPU": "host cpu",
    "Cores": "host cores",
    "Memory, bytes": "host memory_bytes",
    "Docker": "host docker",
    "nginx": "testbed nginx nginx",
    "TLS library": "testbed nginx tls_library",
    "Client": "testbed h2load h2load",
    "Headwind": "host commit",
}


def first_facts(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The dozen most important facts, and the versions of further servers, if they were recorded."""
    further = {name: f"testbed {name} version" for name in SERVERS if name != NGINX.name}
    for name, path in {**FIRST_FACTS, **further}.items():
        value: Any = environment
        for key in path.split():
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            yield name, row_text.plain(value)


GLOBALS = {
    "directions": row_text.ARROWS,
    "Direction": Direction,
    "totals": TOTALS,
    "enough": FEWEST_FOR_TAIL,
    "infinity": math.inf,
    "commands_of": tc_commands,
    "measured_text": measured_text,
    "heading": heading,
    "waterfall_key": waterfall_key,
    "false_share": FALSE_SHARE,
    "grid_steps": " and ".join(f"{factor:g}x" for factor in DEEPER),
}
