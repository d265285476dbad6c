"""Which line of a text that is not YAML is indented by a space too many or too few, or lacks one after a colon."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headwind.matrix.units import harmless

LONGEST_SHOWN = 80  # characters of a line that a hint repeats
_CONTENT = re.compile(r"( *)([^\s#].*)")
_JOINED = re.compile(
    r"""(\ *(?:-\ +)*(?: [\w.-]+\ *: | [^\s\[\]{},:#'"-][^\[\]{},:#'"]*:(?=[\[{]) ))([\[{].*|[^\s:/\[{][^:]*)""",
    re.VERBOSE,
)
_QUOTED = re.compile(r""" "[^"]*" | '[^']*' | (?:^|\s)\#.* """, re.VERBOSE)


def uneven_line(lines: Sequence[str], broken: int) -> tuple[int, int, str] | None:
    """Line and column from 0, and the hint: the line nearest to the one where reading ended; None if all are even."""
    found = list(_uneven(lines[: broken + 2]))
    return min(found, key=lambda each: abs(each[0] - broken), default=None)


def joined_key(line: str) -> tuple[int, str, str] | None:
    """Column from 0, mistake and hint for a line such as `far:{both: {}}`; None if its key has a space behind it."""
    found = _JOINED.fullmatch(line.partition(" #")[0].rstrip())
    if not found or not found[2]:
        return None
    key = found[1].strip(" :")
    shown = f"{key}: {found[2]}" if len(key + found[2]) <= LONGEST_SHOWN else f"{key}: ..."
    return len(found[1]), "a space is missing after the colon", f"did you mean `{harmless(shown)}`?"


def block_lines(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Number from 0, indentation and text, without its comment, of each line that begins outside of brackets."""
    closed_in = 0  # brackets that are open
    text_in: int | None = None  # indentation of the key whose block of text goes on
    for number, line in enumerate(lines):
        content = _CONTENT.fullmatch(line)
        if not content:
            continue
        indent, text = len(content[1]), _QUOTED.sub("", content[2])
        if closed_in > 0 or (text_in is not None and indent > text_in):
            closed_in += _brackets(text)
            continue
        yield number, indent, content[2].partition(" #")[0].rstrip()
        text_in = indent if re.search(r"[|>][-+]?$", text.rstrip()) else None
        closed_in = _brackets(text)


def _uneven(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    levels: list[tuple[int, int]] = []  # indentation, and the line that began it
    opens = True  # whether the line before may have further ones below it
    for number, indent, text in block_lines(lines):
        above = levels[-1] if levels else None
        while levels and levels[-1][0] > indent:
            levels.pop()
        if above and not levels:  # left of the first line: that one is too far right
            yield above[1], above[0], _hint(above[0], (indent, number))
        elif above and ((above[0] < indent and not opens) or (above[0] > indent > levels[-1][0])):
            yield number, indent, _hint(indent, above)
        if not levels or levels[-1][0] < indent:
            levels.append((indent, number))
        if inner := re.match(r"(?:- +)+(?=\S+:(?: |$))", text):
            levels.append((indent + len(inner[0]), number))
        opens = text.endswith((":", "-"))


def _brackets(text: str) -> int:
    return sum(text.count(each) for each in "[{") - sum(text.count(each) for each in "]}")


def _hint(indent: int, above: tuple[int, int]) -> str:
    return f"indented by {_spaces(indent)}, line {above[1] + 1} by {_spaces(above[0])}: lines of one level begin alike"


def _spaces(count: int) -> str:
    return "1 space" if count == 1 else f"{count} spaces"
