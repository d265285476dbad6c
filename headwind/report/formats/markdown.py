"""summary.md: the run on one screen of GitHub flavoured Markdown, to be pasted into a pull request.

Names and messages are text and nothing else: what Markdown, HTML or GitHub would obey is written as a character
reference, which no parser takes for syntax (CommonMark 0.31, section 2.5) and no table splits at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from headwind.format import arm_name, clean, counted, moment, override_texts, setting
from headwind.model import Condition
from headwind.report import verdicts as describe
from headwind.report import words
from headwind.report.answer import headline, seen, workloads
from headwind.report.otherwise import otherwise
from headwind.report.search import searched
from headwind.report.standing import standings
from headwind.report.summary import notices
from headwind.report.trust import believed, trust
from headwind.run.data import RunData
from headwind.verdicts.findings import Pair
from headwind.verdicts.judgement import Judgement, Line
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
    run = f"Run {code(data.id)}, {moment(data.status.started_at)}."
    parts = (
        f"## {text(data.matrix.title) or 'Headwind'}",
        "\n>\n".join(
            f"> **⚠ {text(describe.check_text(check, data.matrix.name_of(check.finding.condition)))}**"
            for check in failed
        ),
        f"**{text(headline(data))}** {text(seen(data, standings(data)))}",
        text(" ".join([*searched(data), *otherwise(data), *workloads(data), words.headline(data)])),
        text(" · ".join([f"Can it be believed? {believed(trust(data)).capitalize()}.", *map(str, trust(data))])),
        _list(f"⚠ {counted(len(notice.trials), 'trial')}: {text(notice.text)}" for notice in notices(data)),
        "\n".join(_table(data)),
        _legend(verdicts.rule) if verdicts.compared else "",
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


def _table(data: RunData) -> Iterator[str]:
    """A row for each condition, a column for each pair, by the primary metric; nothing for a single protocol."""
    verdicts, rows = data.judgement, dict[Condition, dict[Pair, Line]]()
    for line in verdicts.compared:
        rows.setdefault(line.condition, {})[line.pair] = line
    pairs = verdicts.pairs
    if pairs:
        metric = describe.first_judged(verdicts.compared)
        yield row(metric, *(f"{arm_name(pair.new)} against {arm_name(pair.base)}" for pair in pairs))
        yield row(*["---"] * (len(pairs) + 1))
    for condition, lines in rows.items():
        yield row(code(data.matrix.name_of(condition)), *(_cell(lines[pair], verdicts.rule) for pair in pairs))


def row(*cells: str) -> str:
    """A row of a table, of cells that are Markdown already."""
    return f"| {' | '.join(cells)} |"


def _cell(line: Line, rule: Rule) -> str:
    unfinished = describe.unfinished_text(line)
    verdict = describe.finding_text(line.primary, rule)
    if describe.word_of(line.primary, rule) is not describe.Word.FEW:
        verdict += f", {counted(line.blocks, 'block')}"
    return f"{verdict}<br>unfinished: {unfinished}" if unfinished else verdict


def _legend(rule: Rule) -> str:
    margin, confidence = setting("margin_ratio", rule.margin_ratio), setting("confidence_ratio", rule.confidence)
    return (
        f"Beats and tie (within {margin}) are settled, among all comparisons; perhaps is not, or may be within the "
        "margin. The ratio is of the one that is named, the median over blocks of the two times' ratio within a block; "
        f"in brackets the {confidence} interval."
    )


def _open(data: RunData) -> Iterator[str]:
    found = data.judgement.open
    yield from (text(describe.open_text(item, data.matrix.name_of(item.condition))) for item in found[:MOST_NAMED])
    if (left := len(found) - MOST_NAMED) > 0:
        yield f"{counted(left, 'more condition')} not decided"


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
