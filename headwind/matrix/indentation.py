"""Finds a wrongly indented line in a text that is not YAML, or a missing space after a colon."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from headwind.matrix.units import harmless

LONGEST_SHOWN = 80  # characters of a line that a hint repeats
NEAR = 20  # lines around the one where reading ended that are searched
FAR_OFF = 3  # spaces
_CONTENT = re.compile(r"( *)([^\s#].*)")
_JOINED = re.compile(
    r"""(\ *(?:-\ +)*(?: [\w.-]+\ *: | [^\s\[\]{},:#'"-][^\[\]{},:#'"]*:(?=[\[{]) ))([\[{].*|[^\s:/\[{][^:]*)""",
    re.VERBOSE,
)
_QUOTED = re.compile(r""" "[^"]*" | '[^']*' | (?:^|\s)\#.* """, re.VERBOSE)


def uneven_line(lines: Sequence[str], broken: int) -> tuple[int, int, str] | None:
    """Line and column from 0, and hint, of the wrongly indented line nearest to the end of reading; None if none is."""
    found = list(_uneven(lines[: broken + 2]))
    odd = _odd_one(lines[: broken + NEAR], broken) if found else None
    return odd or min(found, key=lambda each: abs(each[0] - broken), default=None)


def _odd_one(lines: Sequence[str], broken: int) -> tuple[int, int, str] | None:
    """Single line whose correction makes all lines even: preferably to the most common indentation, not the top's."""
    block = list(block_lines(lines))
    common = Counter(indent for _, indent, _ in block)
    found = []
    for number, indent, text in block:
        for other in common if abs(number - broken) < NEAR else ():
            moved = [*lines[:number], f"{' ' * other}{text}", *lines[number + 1 :]]
            if 0 < abs(other - indent) <= FAR_OFF and _is_even(moved):
                far = abs(number - broken)
                found.append(((other == 0, abs(other - indent), -common[other], other % 2, far), number, indent, other))
    if not found:
        return None
    _, number, indent, other = min(found)
    alike = min(
        (line for line, begun, _ in block if begun == other),
        key=lambda line: (_is_between(block, line, number, other), abs(line - number), line),
    )
    return number, indent, _hint(indent, (other, alike))


def _is_between(block: Sequence[tuple[int, int, str]], one: int, other: int, indent: int) -> bool:
    """True if a line between two lines is indented less: they belong to different keys."""
    return any(begun < indent for line, begun, _ in block if min(one, other) < line < max(one, other))


def _is_even(lines: Sequence[str]) -> bool:
    """True if all lines are even, and each key without a value has lines below it."""
    block = list(block_lines(lines))
    belongs = all(one[1] < other[1] or other[2].startswith("-") for one, other in pairwise(block) if one[2][-1] == ":")
    return belongs and not any(_uneven(lines))


def joined_key(line: str) -> tuple[int, str, str] | None:
    """Column from 0, mistake and hint for a line such as `far:{both: {}}`; None if a space follows its key."""
    found = _JOINED.fullmatch(line.partition(" #")[0].rstrip())
    if not found or not found[2]:
        return None
    key = found[1].strip(" :")
    shown = f"{key}: {found[2]}" if len(key + found[2]) <= LONGEST_SHOWN else f"{key}: ..."
    return len(found[1]), "a space is missing after the colon", f"did you mean `{harmless(shown)}`?"


def block_lines(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Number from 0, indentation and text, without comment, of each line that begins outside of brackets."""
    closed_in = 0  # open brackets
    text_in: int | None = None  # indentation of the key whose block of text continues
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
    opens = True  # true if the line before may have further ones below it
    for number, indent, text in block_lines(lines):
        above = levels[-1] if levels else None
        while levels and levels[-1][0] > indent:
            levels.pop()
        if above and not levels:  # left of the first line, which is therefore too far right
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
