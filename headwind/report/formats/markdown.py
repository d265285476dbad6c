"""summary.md: the run on one screen of GitHub flavoured Markdown, to be pasted into a pull request.

Names and messages are text and nothing else: what Markdown, HTML or GitHub would obey is written as a character
reference, which no parser takes for syntax (CommonMark 0.31, section 2.5) and no table splits at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from headwind.format import NOTHING, arm_name, clean, counted, moment, observed_text, override_texts, setting
from headwind.metric import Metric
from headwind.report import verdicts as describe
from headwind.report import words
from headwind.report.answer import answer_of
from headwind.report.headline import lines_of
from headwind.report.standing import Standing, ordered_pairs, pair_label
from headwind.report.summary import notices
from headwind.report.verdicts import finding_text
from headwind.run.data import RunData
from headwind.verdicts.judgement import Judgement
from headwind.verdicts.verdict import Rule

# Marks of Markdown and HTML, where they are not between letters or figures; what GitHub makes a link, a formula or a
# picture of by itself (a host, a user, an issue, $x$, :x:); what would begin a list.
_OBEYED = re.compile(
    r"[\\`*{}<>&|~#@$]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])|://|www\.|:(?=[\w+-]+:)|\A[-+]|\A\d+[.)]", re.IGNORECASE
)
_PLAIN = re.compile(r"[\w./+-]+(?: [\w./+-]+)*", re.ASCII)
_MARKS = re.compile(r"[^\w ]|_")
MOST_NAMED = 20  # open conditions; the others are counted


def summary_md(data: RunData, verdicts: Judgement, report: str) -> str:
    """The whole file; `report` is the address of the page, as seen from this file."""
    failed, others = ([check for check in verdicts.checks if (check.passed is False) is so] for so in (True, False))
    run, answer = f"Run {code(data.id)}, {moment(data.status.started_at)}.", answer_of(data)
    parts = (
        f"## {text(data.matrix.title) or 'Headwind'}",
        "\n>\n".join(
            f"> **⚠ {text(describe.check_text(check, data.matrix.name_of(check.finding.condition)))}**"
            for check in failed
        ),
        " ".join([f"**{text(answer.headline)}**", *map(text, answer.by_others)]),
        _list(map(text, lines_of(answer.cards))),
        text(" ".join([answer.measured, answer.trust, words.headline(data)])),
        _list(f"⚠ {counted(len(notice.trials), 'trial')}: {text(notice.text)}" for notice in notices(data)),
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
    """Any text on one line, so that it is shown and never obeyed."""
    line = " ".join(clean(value).split())
    return _OBEYED.sub(lambda match: "".join(map(_reference, match[0])), line)


def _reference(character: str) -> str:
    reference = f"&#{ord(character)};"
    # GitHub looks for @user and #1 in the finished page: a comment between parts the sign from what follows.
    return f"{reference}<!-- -->" if character in "@#" else reference


def code(name: str) -> str:
    """A name as code; GitHub looks for no users, issues and hosts in that."""
    line = " ".join(clean(name).split())
    if _PLAIN.fullmatch(line):
        return f"`{line}`"
    return f"<code>{_MARKS.sub(lambda match: _reference(match[0]), line)}</code>"


def _table(data: RunData, found: Sequence[Standing]) -> Iterator[str]:
    """A row for each condition: the median of each arm, and what is known of each comparison."""
    arms, pairs = data.matrix.arms, ordered_pairs(data.matrix, data.judgement)
    if not pairs:
        return
    yield row(
        data.matrix.place,
        *(f"{arm_name(arm)}, median" for arm in arms),
        *(pair_label(data.matrix, pair) for pair in pairs),
        "complete blocks",
    )
    yield row(*["---"] * (len(arms) + len(pairs) + 2))
    for each in found:
        metric = each.condition.workload.primary()
        medians = (observed_text(metric.key, each.medians.get(arm)).replace(">", "&gt;") for arm in arms)
        counts = ((arm, each.timeouts.get(arm, 0) + each.untimed.get(arm, 0)) for arm in arms)
        unfinished = ", ".join(f"{arm.name} {count}" for arm, count in counts if count)
        blocks = f"{each.blocks}<br>unfinished: {unfinished}" if unfinished else str(each.blocks)
        cells = (text(str(each.cells[pair])) if pair in each.cells else NOTHING for pair in pairs)
        yield row(_name(data, each), *medians, *cells, blocks)


def _others(verdicts: Judgement) -> list[Metric]:
    """Every judged metric that is the primary one of no comparison."""
    judged = dict.fromkeys(metric for line in verdicts.compared for metric in line.findings)
    primary = {line.primary.metric for line in verdicts.compared}
    return [metric for metric in judged if metric not in primary]


def _by_metric(data: RunData, found: Sequence[Standing], metric: Metric) -> Iterator[str]:
    """A row for each condition and a column for each comparison, by another judged metric."""
    pairs, rule = ordered_pairs(data.matrix, data.judgement), data.judgement.rule
    yield row(f"by {metric.label}", *(pair_label(data.matrix, pair) for pair in pairs))
    yield row(*["---"] * (len(pairs) + 1))
    for each in found:
        findings = {known.line.pair: known.line.findings.get(metric) for known in each.known}
        cells = (finding_text(finding, rule) if (finding := findings.get(pair)) else NOTHING for pair in pairs)
        yield row(_name(data, each), *map(text, cells))


def _name(data: RunData, standing: Standing) -> str:
    """The network's name in the matrix, with that of the workload if there are several, and what it is."""
    key, meaning = code(data.matrix.name_of(standing.condition)), text(standing.network.meaning)
    return f"{key}: {meaning}" if meaning else key


def row(*cells: str) -> str:
    """A row of a table, of cells that are Markdown already."""
    return f"| {' | '.join(cells)} |"


def _legend(rule: Rule) -> str:
    margin, confidence = setting("margin_ratio", rule.margin_ratio), setting("confidence_ratio", rule.confidence)
    return (
        f"\N{CHECK MARK} sure: beyond {margin}, or a tie within it, and significant among all comparisons. Likely: not "
        "significant among all, or perhaps within the margin. The ratio is of the protocol that is named, the median "
        f"over blocks of the ratio within a block, with its {confidence} interval."
    )


def _open(data: RunData) -> Iterator[str]:
    found = data.judgement.open
    yield from (text(describe.open_text(item, data.matrix.name_of(item.condition))) for item in found[:MOST_NAMED])
    if (left := len(found) - MOST_NAMED) > 0:
        yield f"{counted(left, 'more condition')} unclear or only likely"


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
