"""summary.md: the run on one screen of GitHub flavoured Markdown, to be pasted into a pull request.

Names and messages are plain text: characters that Markdown, HTML or GitHub would interpret are written as character
references, which no parser takes for syntax (CommonMark 0.31, section 2.5) and which do not split table cells.
Addresses and text between backticks are code: they can be copied, and do not become links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from headwind.format import NOTHING, arm_name, clean, counted, moment, observed_text, override_texts, setting
from headwind.metric import Metric
from headwind.report import row_text
from headwind.report import verdicts as describe
from headwind.report.answer import answer_of
from headwind.report.cells import cell_by
from headwind.report.ranking import Standing, ordered_pairs, pair_label
from headwind.report.times_table import notices
from headwind.run.data import RunData
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.verdict import Rule

# Marks of Markdown and HTML, unless between letters or figures; text that GitHub turns into a link, a formula or a
# picture (a host, a user, an issue, $x$, :x:); beginnings of tags, references and lists.
_OBEYED = re.compile(
    r"[\\`*|~#@$]|<(?=[a-z/!?])|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])|://|www\.|:(?=[\w+-]+:)|"
    r"\A[-+>]|\A\d+[.)]",
    re.IGNORECASE,
)
_AS_CODE = re.compile(  # between single backticks, or an address up to the end of its word
    r"(?<!`)`([^\s`](?:[^`]*[^\s`])?)`(?!`)|\b((?:(?:https?|ftp)://|www\.)[^\s`]*[\w/])", re.IGNORECASE
)
_MARKS = re.compile(r"[^\w ]|_")
MOST_NAMED = 20  # open conditions; the others are counted


def summary_md(data: RunData, verdicts: Judgement, report: str) -> str:
    """The whole file; `report` is the address of the page, relative to this file."""
    failed, others = ([check for check in verdicts.checks if (check.passed is False) is so] for so in (True, False))
    started, answer = f"Run {code(data.id)}, {moment(data.status.started_at)}.", answer_of(data)
    run = " ".join(filter(None, (started, row_text.resumed_text(data))))
    parts = (
        f"## {text(data.matrix.title) or 'Headwind'}",
        "\n>\n".join(
            f"> **⚠ {text(describe.check_text(check, data.matrix.name_of(check.finding.condition)))}**"
            for check in failed
        ),
        " ".join([f"**{text(answer.headline)}**", *map(text, answer.by_others)]),
        text(" ".join([answer.measured, answer.trust, row_text.headline(data)])),
        *map(text, answer.gaps),
        _list(text(f"Exit status 1: {reason}") for reason in answer.shortfalls),
        _list(f"⚠ {text(notice.line)}" for notice in notices(data)),
        "\n".join(_table(data, answer.standings)),
        _legend(verdicts.rule) if verdicts.compared else "",
        *("\n".join(_by_metric(data, answer.standings, metric)) for metric in _others(verdicts)),
        _list(map(text, override_texts(data.matrix.arms))),
        _list(text(describe.check_text(check, data.matrix.name_of(check.finding.condition))) for check in others),
        _list(_open(data)),
        f"{run} All figures with their evidence: [{report}]({report})",
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def text(value: str) -> str:
    """Any text on one line, escaped so that it is shown as it is."""
    line = " ".join(clean(value).split())
    parts, end = list[str](), 0
    for found in _AS_CODE.finditer(line):
        is_next_to_code = parts and found.start() == end  # two runs of backticks would be one
        name = found[1] or found[2]
        parts += [_shown(line[end : found.start()]), _marked(name) if is_next_to_code else code(name)]
        end = found.end()
    return "".join((*parts, _shown(line[end:])))


def _shown(part: str) -> str:
    return _OBEYED.sub(lambda match: "".join(map(_reference, match[0])), part)


def _reference(character: str) -> str:
    reference = f"&#{ord(character)};"
    # GitHub looks for @user and #1 in the rendered page: a comment separates the sign from the following text.
    return f"{reference}<!-- -->" if character in "@#" else reference


def code(name: str) -> str:
    """A name as code, with backticks and a table's bars escaped."""
    line = " ".join(clean(name).split())
    if line and not {"`", "|"} & {*line}:
        return f"`{line}`"
    return _marked(line)


def _marked(line: str) -> str:
    """Code without backticks."""
    return f"<code>{_MARKS.sub(lambda match: _reference(match[0]), line)}</code>"


def _table(data: RunData, found: Sequence[Standing]) -> Iterator[str]:
    """A row for each condition: the median of each arm, and the result of each comparison."""
    arms, pairs = data.matrix.arms, ordered_pairs(data.matrix, data.judgement)
    if not pairs:
        return
    yield row(
        data.matrix.place,
        *(f"{arm_name(arm)}, median" for arm in arms),
        *(pair_label(pair) for pair in pairs),
        "complete blocks",
    )
    yield row(*["---"] * (len(arms) + len(pairs) + 2))
    for each in found:
        metric = each.condition.workload.primary()
        medians = (observed_text(metric.key, each.medians.get(arm)) for arm in arms)
        blocks = "<br>".join(filter(None, (str(each.blocks), each.unfinished_text, each.spells_text)))
        cells = (text(str(each.cells[pair])) if pair in each.cells else NOTHING for pair in pairs)
        yield row(_name(data, each), *medians, *cells, blocks)


def _others(verdicts: Judgement) -> list[Metric]:
    """Every judged metric that is not the primary one of any comparison."""
    judged = dict.fromkeys(metric for line in verdicts.compared for metric in line.findings)
    primary = {line.primary.metric for line in verdicts.compared}
    return [metric for metric in judged if metric not in primary]


def _by_metric(data: RunData, found: Sequence[Standing], metric: Metric) -> Iterator[str]:
    """A row for each condition that the metric judges, and a column for each comparison."""
    pairs = ordered_pairs(data.matrix, data.judgement)
    judged = [line.condition for line in data.judgement.compared if metric in line.findings]
    yield row(f"by {describe.metric_title(metric, judged, data.matrix)}", *(pair_label(pair) for pair in pairs))
    yield row(*["---"] * (len(pairs) + 1))
    for standing in found:
        findings = {known.line.pair: known.line.findings.get(metric) for known in standing.known}
        cells = (str(cell_by(each)) if (each := findings.get(pair)) else NOTHING for pair in pairs)
        if any(findings.values()):
            yield row(_name(data, standing), *map(text, cells))


def _name(data: RunData, standing: Standing) -> str:
    """The network's name in the matrix, with that of the workload if there are several, and its impairments."""
    key, meaning = code(data.matrix.name_of(standing.condition)), text(standing.network.meaning)
    return f"{key}: {meaning}" if meaning else key


def row(*cells: str) -> str:
    """A row of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def _legend(rule: Rule) -> str:
    confidence = setting("confidence_ratio", rule.confidence)
    return (
        f"\N{CHECK MARK} sure: {describe.sure_text(rule)} (at most {describe.wrong_share()} of sure results are "
        "expected to be wrong). Likely: a lead or a tie with a doubt, which the table names. A ratio is that of the "
        f"named protocol (of a tie, of the first one): the median over blocks of the ratio within a block, with its "
        f"{confidence} interval."
    )


def _open(data: RunData) -> Iterator[str]:
    found = data.still_open
    yield from (text(describe.open_text(item, data.matrix.name_of(item.condition))) for item in found[:MOST_NAMED])
    if (left := len(found) - MOST_NAMED) > 0:
        yield f"{counted(left, 'more condition')} unclear or only likely"
    yield from map(text, describe.without_forecast(data))


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
