"""Faults within brackets that YAML cannot read: an unclosed bracket, a missing comma or colon."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headwind.matrix.text import Place
from headwind.matrix.units import harmless

CLOSER = {"{": "}", "[": "]"}
LONGEST_SHOWN = 40  # characters of an entry that a message repeats
_OPENER = re.compile(r"(?:^|:\s|(?:^|\s)-\s)\s*([\[{])")
_QUOTED = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^']|'')*' """, re.VERBOSE)
_TOKEN = re.compile(
    r"""\s*(?: (?P<comment>(?:(?<=\s)|^)\#.*) | (?P<mark>[\[\]{},]|:(?=[\s\[\]{},]|$))
    | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^']|'')*' | (?:[^\s,\[\]{}:]|:(?![\s\[\]{},]|$)|[ ](?!\#))+ ) )""",
    re.VERBOSE,
)
_NEXT = re.compile(r"( *)(?:- |(?:- +)*(?:[^\s\[\]{},:#'\"][^\[\]{},:#]*|\"[^\"]*\"|'[^']*'):(?:\s|$))")


@dataclass(frozen=True, slots=True)
class Fault:
    """Reason why a text is not YAML: its place (line and column from 0), the message, and a hint."""

    place: Place
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    place: Place

    @property
    def is_text(self) -> bool:
        return self.text not in "[]{},:"


@dataclass(slots=True)
class _Open:
    """Unclosed bracket, and the tokens after its last comma; a closed bracket in it is represented by its opener."""

    token: _Token
    entry: list[_Token] = field(default_factory=list)


def fault_in_brackets(lines: Sequence[str], broken: Place) -> Fault | None:
    """Fault of the brackets in which reading ended; None if they are in order, or it ended outside of any."""
    starts = [start for start in _starts(lines) if start <= broken]
    return _Region(lines, starts[-1]).fault() if starts else None


def _starts(lines: Sequence[str]) -> Iterator[Place]:
    """Outermost brackets that are open at the end of a line, or closed in it, in the order of the file."""
    line, text_in = 0, None
    while line < len(lines):
        content = lines[line].strip()
        indent = len(lines[line]) - len(lines[line].lstrip())
        if text_in is not None and (not content or indent > text_in):
            line += 1
            continue
        text_in = indent if re.search(r":\s+[|>][-+]?\s*$", lines[line]) else None
        blank = _QUOTED.sub(lambda found: "x" * len(found[0]), lines[line])
        opener = None if content.startswith("#") else _OPENER.search(blank.partition(" #")[0])
        if opener:
            yield line, opener.start(1)
            line = max(line, _Region(lines, (line, opener.start(1))).last_line)
        line += 1


class _Region:
    """Text from an outermost bracket to its end, or to the first line that cannot belong to it."""

    def __init__(self, lines: Sequence[str], start: Place) -> None:
        self._lines, self._start = lines, start
        self._comments = dict[int, _Token]()  # by line
        self._tokens = list(self._read())
        self.last_line = self._tokens[-1].place[0]

    def _read(self) -> Iterator[_Token]:
        line, column = self._start
        first = self._lines[line]
        indent = -1 if not first[:column].strip() else len(first) - len(first.lstrip())
        depth = 0
        while line < len(self._lines):
            while found := _TOKEN.match(self._lines[line], column):
                column = found.end()
                text = found["mark"] or (found["text"] or "").strip()
                if found["comment"]:
                    self._comments[line] = _Token(found["comment"], (line, found.start("comment")))
                if not text:
                    continue
                yield _Token(text, (line, found.start("mark" if found["mark"] else "text")))
                depth += (text in CLOSER) - (text in CLOSER.values())
                if not depth:
                    return
            line, column = line + 1, 0
            if line < len(self._lines) and (other := _NEXT.match(self._lines[line])) and len(other[1]) <= indent:
                return

    def fault(self) -> Fault | None:
        """First fault; None if there is none."""
        stack: list[_Open] = []
        for index, token in enumerate(self._tokens):
            if token.text in CLOSER.values():
                if token.text != CLOSER[stack[-1].token.text]:
                    line, column = token.place
                    return _crossed([each.token for each in stack], token, self._lines[line][column + 1 :])
                closed = stack.pop()
                if stack:
                    stack[-1].entry.append(closed.token)
                continue
            if stack and (found := self._missing_before(index, stack[-1])):
                return found
            if token.text in CLOSER:
                stack.append(_Open(token))
            elif token.text == ",":
                stack[-1].entry.clear()
            else:
                stack[-1].entry.append(token)
        return self._unclosed([each.token for each in stack]) if stack else None

    def _unclosed(self, openers: Sequence[_Token]) -> Fault:
        missing = "".join(CLOSER[each.text] for each in reversed(openers))
        what = "this bracket is" if len(openers) == 1 else f"{len(openers)} brackets are"
        comment = self._comments.get(self.last_line)
        if comment and {*comment.text} & {*missing}:
            hint = "a comment lasts to the end of its line: move it behind the brackets, or remove it"
            return Fault(comment.place, f"this comment has the `{missing}` that the line lacks", hint)
        hint = f"add it {'before the comment' if comment else 'at the end'} of line {self.last_line + 1}"
        return Fault(openers[-1].place, f"{what} not closed: `{missing}` is missing", hint)

    def _missing_before(self, index: int, around: _Open) -> Fault | None:
        """Comma or colon that is missing between the current entry and a token."""
        token, entry = self._tokens[index], around.entry
        if not entry or token.text == ",":
            return None
        last = entry[-1]
        if token.text == ":":
            return self._second_colon(index, entry)
        if token.is_text and not re.search(r"\w", token.text):
            return Fault(token.place, f"`{harmless(token.text)}` is not part of a value or a list", "remove it")
        if last.text in CLOSER or last.text[0] in "'\"":
            return _comma(_shown(entry), self._entry(index), token.place)
        if token.text in CLOSER and len(entry) == 1 and around.token.text == "{" and last.is_text:
            key = harmless(last.text.rstrip("= "))
            return Fault(token.place, f"a colon is missing after `{key}`", f"did you mean `{key}: {token.text}...`?")
        if token.text in CLOSER and last.is_text:
            hint = "is a comma missing before it, or is it one too many? a text with brackets needs quotes"
            return Fault(token.place, f"this `{token.text}` is inside a text", hint)
        return None

    def _second_colon(self, index: int, entry: Sequence[_Token]) -> Fault | None:
        """Fault of a second colon: `delay: 10ms rate: 30mbit`, with the entry `10ms rate`; and `both: delay: 10ms`."""
        colons = [place for place, each in enumerate(entry) if each.text == ":"]
        last = entry[-1]
        if not colons or not last.is_text:
            return None
        before, space, key = last.text.rpartition(" ")
        other = key + self._value(index)
        if space:
            place = (last.place[0], last.place[1] + len(last.text) - len(key))
            return _comma(_shown(entry[:-1]) + before.rstrip(";. "), other, place)
        if len(entry) - colons[0] > 2:  # the words of two lines
            return _comma(_shown(entry[:-1]), other, last.place)
        hint = harmless(f"did you mean `{_shown(entry[:-1])}{{{other}}}`?")
        return Fault(last.place, "a second key follows without its own brackets", hint)

    def _entry(self, index: int) -> str:
        """Text of the entry that begins with a token: its key and its value, if they are short."""
        token = self._tokens[index]
        return f"{token.text}..." if token.text in CLOSER else token.text + self._value(index + 1)

    def _value(self, index: int) -> str:
        """Colon at this place and the value after it; empty without a colon."""
        colon, value = [*self._tokens[index : index + 2], None, None][:2]
        if colon is None or colon.text != ":":
            return ""
        return f": {value.text}" if value and value.is_text and len(value.text) <= LONGEST_SHOWN else ": ..."


def _crossed(openers: Sequence[_Token], closer: _Token, rest: str) -> Fault:
    """Fault of a closing bracket of another kind than the last opener; `rest` is the line after it."""
    if closer.text not in [CLOSER[each.text] for each in openers]:
        opened = openers[-1].text
        if CLOSER[opened] in rest:
            return closes_nothing(closer.place, closer.text)
        message = f"this `{closer.text}` does not close the `{opened}` before it"
        return Fault(closer.place, message, f"did you mean `{CLOSER[opened]}`?")
    opener, (line, column) = openers[-1], closer.place
    missing = CLOSER[opener.text]
    hint = f"add it before the `{closer.text}` of line {line + 1}, column {column + 1}"
    return Fault(opener.place, f"this bracket is not closed: `{missing}` is missing", hint)


def closes_nothing(place: Place, bracket: str) -> Fault:
    """Fault of a closing bracket without an opening one."""
    return Fault(place, f"this `{bracket}` closes nothing", "remove it, or add the bracket that it closes")


def _comma(one: str, other: str, place: Place) -> Fault:
    one, other = harmless(one), harmless(other.lstrip(";. ").replace("; ", ", "))
    return Fault(place, f"a comma is missing between `{one}` and `{other}`", f"did you mean `{one}, {other}`?")


def _shown(entry: Sequence[_Token]) -> str:
    words = {"{": "{...}", "[": "[...]", ":": ": "}
    text = "".join(words.get(each.text, each.text) for each in entry)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
