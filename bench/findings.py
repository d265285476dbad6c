"""Writes the figures and the pictures of run folders into docs/findings.md.

    .venv/bin/python bench/findings.py [--into docs] reports/<run-id> reports/<run-id>

A run belongs to the matrix of experiments/ with the same title, such as finding_far.yaml. Its verdicts and counters,
and its regrets if a server decides about HTTP/3, replace the text of the document between `<!-- finding_far -->` and
`<!-- end -->`, and its picture becomes docs/findings/finding_far.svg. All other text, above all the reasons, is written
by hand. Needs no Docker.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from markupsafe import Markup

from headwind.arm import Arm
from headwind.format import arm_name, counted, duration, moment, observed_text
from headwind.matrix.reader import load_matrix
from headwind.report.advice import advised, decided_table, network_table
from headwind.report.formats.markdown import row
from headwind.report.html.charts import icon
from headwind.report.html.charts.marks import arm_style
from headwind.report.html.charts.svg import LINE, WIDTH, element, text, text_width
from headwind.report.html.pictures import Overview, heading, overviews, sweep_pictures
from headwind.report.html.templating import text_of
from headwind.report.ranking import standings
from headwind.report.request_progress import PER_PAYLOAD, columns, track_of
from headwind.report.search import search_text
from headwind.report.sweeps import sweeps_of
from headwind.report.verdicts import ahead_text, claim_text
from headwind.run.data import RunData
from headwind.run.journal import Run

ROOT = Path(__file__).resolve().parent.parent
# of the figures of a track
COUNTED = (
    "retransmits", "RTOs", "longest packet gap", "packets", PER_PAYLOAD, "client CPU", "server CPU",
)  # fmt: skip
LAYOUT = re.compile(
    r"^\.chart(\.\w+)? \{[^\n]*\n|^@media print \{\n.*?^\}\n", re.MULTILINE | re.DOTALL
)  # rules of a page

Placed = tuple[Markup, float]  # part of a picture, and its height


def figures(data: RunData) -> str:
    """A run in Markdown: the answer of its search or its verdicts, the counters, and the run's name."""
    answer = [search_text(data)] if data.searched else _table(("condition", "verdict", "blocks"), _verdicts(data))
    counts = _table(("condition", "arm", "median", *COUNTED), _counts(data))
    took_s = (data.status.ended_at or data.status.started_at) - data.status.started_at
    regrets = [line for arm in data.matrix.arms if _decides(arm) for line in _regrets(data, arm)]
    run = f"Run {data.id} of {moment(data.status.started_at)}, {len(data.latest):,} trials in {duration(took_s)}"
    run = f"{run}, engine {data.environment.get('engine', 'unknown')}."
    return "\n".join([*regrets, *answer, "", *counts, "", run])


def _decides(arm: Arm) -> bool:
    """Whether the server decides what the arm uses."""
    return "offer_if" in dict(arm.overrides.workload)


def _regrets(data: RunData, arm: Arm) -> list[str]:
    """The tables of `lab.py advise` with the regret of an arm that follows a deciding server."""
    found = advised([data])
    heading, *networks = (cells[:-2] for cells in network_table(found))  # without the rule that this run would give
    sizes = f"Regrets: {counted(len(networks), 'network')}, {counted(found.blocks, 'block')}; 95 % intervals."
    choices, *rows = decided_table(found, arm)
    return [sizes, "", *_table(choices, rows), "", *_table(heading, networks), ""]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [row(*cells) for cells in (head, ["---"] * len(head), *rows)]


def _verdicts(data: RunData) -> Iterator[Sequence[str]]:
    for line in data.judgement.compared:
        verdict = f"{claim_text(line.primary)} {ahead_text(line.primary)}"
        yield data.matrix.name_of(line.condition), verdict, str(line.blocks)


def _counts(data: RunData) -> Iterator[Sequence[str]]:
    """Medians of the trials of each arm."""
    for each in sorted(standings(data), key=lambda each: data.matrix.conditions.index(each.condition)):
        places = [columns(each.condition.workload).index(name) for name in COUNTED]
        for arm, median in each.medians.items():
            cells = track_of(each.condition, each.rows, arm).figures
            first = observed_text(each.condition.workload.primary().key, median)
            yield data.matrix.name_of(each.condition), arm.name, first, *(cells[place] for place in places)


def picture(data: RunData) -> str:
    """The run as a separate SVG: the sweep of a search, else every trial of every condition."""
    sweeps = sweep_pictures(sweeps_of(data.matrix), data.judgement) if data.searched else []
    parts = [(each.chart, _height(each.chart)) for each in sweeps]
    if not parts:
        parts = [_key(data.matrix.arms), *(part for each in overviews(data, standings(data)) for part in _rows(each))]
    placed, top = [], 0.0
    for part, height in parts:
        placed.append(_at(part, top, height))
        top += height
    style = (
        text_of("style.css").partition("* {")[0] + LAYOUT.sub("", text_of("charts.css")) + arm_style(data.matrix.arms)
    )
    description = search_text(data) or "Every trial of every condition on a logarithmic axis, the median large."
    drawn = element(
        "svg", element("title", data.matrix.title), element("desc", description),
        element("style", Markup(style)),  # noqa: S704  the page's own
        element("rect", width="100%", height="100%", style="fill: var(--ground)"), *placed,
        xmlns="http://www.w3.org/2000/svg", role="img", viewBox=f"0 0 {WIDTH:g} {top:g}",
    )  # fmt: skip
    return f"{drawn}\n"


def _key(arms: Iterable[Arm]) -> Placed:
    """The arms with their shapes."""
    parts, x = [], 0.0
    for arm in arms:
        parts += [_at(icon(arm.name), 1.0, 14.0, x, 14.0), text(x + 18, 8, arm_name(arm))]
        x += 18 + text_width(arm_name(arm)) + 16
    return element("svg", *parts, class_="chart"), LINE


def _rows(overview: Overview) -> Iterator[Placed]:
    """The axis, then for each condition its name and leader, with its trials below."""
    metric = overview.workload.primary()
    yield _line(f"{heading(metric)}, {overview.workload.name}", "")
    for standing, strip in overview.rows:
        yield _line(standing.condition.profile.name, next(map(str, standing.cells.values()), ""))
        yield strip, _height(strip)
    yield overview.axis, _height(overview.axis) + LINE / 2


def _line(name: str, claim: str) -> Placed:
    room = WIDTH - text_width(claim) - 12
    texts = text(0, LINE / 2, name, room=room, class_="strong"), text(WIDTH, LINE / 2, claim, class_="end")
    return element("svg", *texts, class_="chart"), LINE + 2


def _height(drawn: Markup) -> float:
    return float(re.findall(r'viewBox="0 0 \S+ (\S+)"', drawn)[0])


def _at(drawn: Markup, y: float, height: float, x: float = 0.0, width: float = WIDTH) -> Markup:
    """The svg element at this position of another one."""
    place = f'<svg x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
    return Markup(str(drawn).replace("<svg ", place, 1))  # noqa: S704


def names() -> dict[str, str]:
    """The names of all experiments, by their titles."""
    return {load_matrix(file).title: file.stem for file in sorted((ROOT / "experiments").glob("*.yaml"))}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write each run into the document, and its picture next to it; `arguments` are the command line's by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="run", help="run folder")
    parser.add_argument("--into", type=Path, default=ROOT / "docs", help="folder with findings.md")
    options = parser.parse_args(arguments)
    document, known = options.into / "findings.md", names()
    written = document.read_text(encoding="utf-8")
    for folder in options.runs:
        with Run.open(folder) as run:
            data = RunData.of(run)
        name = known.get(data.matrix.title, "")
        place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        if not name or not place.search(written):
            raise SystemExit(f"{document} has no place for {folder}: {data.matrix.title}")
        link = f"![{data.matrix.title}](findings/{name}.svg)"
        written = place.sub(lambda _: f"{link}\n\n{figures(data)}\n", written, count=1)  # noqa: B023  called at once
        (options.into / "findings").mkdir(exist_ok=True)
        (options.into / "findings" / f"{name}.svg").write_text(picture(data), encoding="utf-8")
    document.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
