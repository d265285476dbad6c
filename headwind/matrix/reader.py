"""Reads matrix.yaml into a Matrix. The only file that reads YAML.

Every message has file:line:column, and a file with several mistakes gives all of them at once. Values are taken as
written: `no`, `1:30` and `010` are text, unlike in YAML. Anchors, aliases and tags are rejected: they hide what is
measured, and aliases can grow without bound. `python -m headwind.matrix.reader` prints the JSON schema for editors.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from headwind.format import enumerated
from headwind.matrix.arm_hints import of_empty_arm
from headwind.matrix.complaint import Complaint, MatrixError
from headwind.matrix.document import MatrixKeys, schema
from headwind.matrix.find import expand
from headwind.matrix.indentation import joined_key
from headwind.matrix.keys import every_key
from headwind.matrix.levels import levels
from headwind.matrix.mistakes import TOO_FAR, MissingKey, NoContainer, Slip, Slips, Unindented, Unserved, why_empty
from headwind.matrix.parse import parse
from headwind.matrix.servers import ServerKeys
from headwind.matrix.shapes import in_parentheses, shown
from headwind.matrix.spelling import nearest
from headwind.matrix.sweep import SWEPT, as_list, in_a_row
from headwind.matrix.syntax import FREE_TEXT, Broken, colon_missing_in, why_unreadable
from headwind.matrix.text import Hidden, Place, lines_of, place_behind, read_text
from headwind.matrix.units import NotOneValue, harmless, quoted
from headwind.model import Matrix

__all__ = ["Complaint", "MatrixError", "load_matrix", "schema"]

_OTHER = {"downlink": "uplink", "uplink": "downlink"}
_GLUED = re.compile(r"([A-Za-z_][\w.-]*)(:| *= *|[;>\uff1a] *)(?!//)(.+)")  # a key and its value, without `: `
_QUOTES = re.compile("[\u2018-\u201f\u00ab\u00bb]+(.+?)[\u2018-\u201f\u00ab\u00bb]+")
_TAIL = re.compile(r"([^\s,;]+)\s*([,;]|(?<=\s)//.*)")  # behind a value
FREE = FREE_TEXT | {"command", "env", "content", "trace"}  # keys of which the value is any text
_COMMA = re.compile(r"[0-9]+,[0-9]+ *[^\s0-9,]*")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?!,?[0-9]) *[A-Za-z]*")
_NAME = r"[\w.-]+(?: +[\w.-]+)*"
_WORDS = re.compile(rf"{_NAME}(?: *, *{_NAME}(?![\w.-]| *:| +[\w.-]))+")  # without the brackets of a list
_PATHS = re.compile(r"/[^\s,\[\]{}]*(?: *, */[^\s,\[\]{}]*)+")
NAMED = ("profiles", "workloads", "arms", "servers")  # keys with entries that have names
DEEPEST = 12  # levels; published > name > times > name > downlink > loss > gemodel > p is the eighth

KeyPath = tuple[str | int, ...]  # keys and indices from the top of the file to a value


def load_matrix(path: Path) -> Matrix:
    """Read the experiment in a file. Raises MatrixError, and nothing else, for any content."""
    file = harmless(path)
    text = read_text(path, file)
    return _Document(file, text).written(path.parent).to_model(text, str(path))


def located(matrix: Matrix, messages: Mapping[KeyPath, tuple[str, str]]) -> tuple[Complaint, ...]:
    """Complaints for messages and hints about keys of a valid matrix, with their places in the file."""
    return _Document(harmless(Path(matrix.path)), matrix.source).about(messages)


def networks_of_sweeps(matrix: Matrix) -> Mapping[str, Sequence[str]]:
    """The names of the networks of each sweep of a valid matrix, by the sweep's name."""
    return _Document(harmless(Path(matrix.path)), matrix.source).sweeps()


def swept_keys(matrix: Matrix) -> Mapping[str, KeyPath]:
    """The key of which a sweep of a valid matrix has several values, as its path in the file, by the sweep's name."""
    return _Document(harmless(Path(matrix.path)), matrix.source).swept()


def left_out(matrix: Matrix) -> Mapping[str, Sequence[str]]:
    """The profiles and workloads that no entry of a valid matrix's `conditions` has; none without that key."""
    return _Document(harmless(Path(matrix.path)), matrix.source).left_out()


class _Unreadable(Exception):
    """YAML after which reading cannot continue."""

    def __init__(self, place: Place, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place = place
        self.hint = hint


class _Document:
    """The text of a matrix, the place of every key and value in it, and the complaints."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._hidden = Hidden.of(text)
        self._text = self._hidden.text
        self._lines, self._shown = lines_of(self._text), lines_of(text)
        self._complaints: list[Complaint] = []
        self._keys: dict[KeyPath, Place] = {}
        self._values: dict[KeyPath, Place] = {}
        self._empty: set[KeyPath] = set()  # keys without a value, which is already reported
        self._too_far = dict[KeyPath, tuple[str, int]]()  # by entry: the name of another entry in it, and its line
        self._outside = set[KeyPath]()  # keys that belong below one without a value
        self._unbracketed = dict[KeyPath, str]()  # the key in a mapping that has a list without brackets
        self._thousands = set[Place]()  # places of values that were read without their commas
        self._words: dict[KeyPath, tuple[Place, list[str]]] = {}  # braces around words only; the first word's place

    def written(self, folder: Path) -> MatrixKeys:
        """Parse the text of a file in a folder. Raises MatrixError with every complaint."""
        unread = ""
        for place, letter in self._hidden.odd.items():
            self._complain_of_hidden(place, letter)
        try:
            tree = self._tree()
            self._explain_empty_arms(tree)
            found = parse(tree, folder)
            if not self._complaints:
                return found
        except _Unreadable as error:
            odd = {line for line, _ in self._hidden.odd}
            self._complaints = [
                each for each in self._complaints if each.line - 1 != error.place[0] or each.line - 1 in odd
            ]
            if error.place[0] not in odd:
                self._complain(error.place, str(error), error.hint)
            unread = f" up to line {error.place[0] + 1}, where reading ends"
        except Slips as error:
            self._complain_of(error.slips)
        complaints = tuple(sorted(set(self._complaints), key=lambda each: (each.is_last, each)))
        count = "1 mistake" if len(complaints) == 1 else f"{len(complaints)} mistakes"
        summary = f"{self._file}: {count}{unread}, nothing was started; docs/matrix.md explains every key"
        raise MatrixError(summary, complaints)

    def _explain_empty_arms(self, tree: Mapping[str, Any]) -> None:
        """Give the complaints about arms without a value the hint that the protocols of the whole file allow."""
        kept = () if any(path[0] == "arms" for path in self._outside) else self._empty
        arms = {self._keys[path]: path[1] for path in kept if path[0] == "arms" and len(path) == 2}
        for place, name in arms.items():
            if hint := of_empty_arm(str(name), tree):
                self._explain(place, hint)

    def _explain(self, place: Place, hint: str) -> None:
        """Give the complaint at a place another hint."""
        line, column = self._hidden.place(place)
        self._complaints = [replace(each, hint=harmless(hint)) if (each.line, each.column) == (line + 1, column + 1)
                            else each for each in self._complaints]  # fmt: skip

    def _complain_of(self, slips: Sequence[Slip]) -> None:
        """Report slips, except those caused by a key without a value; and not that key if a slip explains it."""
        slips = [slip for slip in slips if not self._is_outside(slip)]
        homes = {(*slip.path[:-1], slip.mistake.group) for slip in slips if isinstance(slip.mistake, Unindented)}
        groups = {self._keys[path] for path in homes & self._empty}
        self._complaints = [each for each in self._complaints if (each.line - 1, each.column - 1) not in groups]
        slips = [self._as_meant(slip) for slip in slips]
        empty = {path[-1:] for path in self._empty if len(path) <= 2} | self._empty
        for slip in slips:
            known = empty if isinstance(slip.mistake, MissingKey) else self._empty
            if slip.path not in known and not self._follows(slip) and not self._is_of_empty(slip):
                place = self._at(slip.path, at_key=slip.at_key)
                if place in self._thousands and slip.mistake.hint and not slip.at_key:
                    reason = "" if slip.mistake.hint.endswith("?") else f"{slip.mistake}; "
                    self._explain(place, f"without commas: {reason}{slip.mistake.hint}")
                    continue
                is_last = isinstance(slip.mistake, Unserved)
                self._complain(place, str(slip.mistake), slip.mistake.hint, is_last=is_last)

    def _is_outside(self, slip: Slip) -> bool:
        """True if a slip is about a key that belongs below one without a value, which is reported there."""
        return any(slip.path[: len(path)] == path for path in self._outside)

    def _is_of_empty(self, slip: Slip) -> bool:
        """True if a slip follows from keys without a value, since the mapping that it rejects has no other ones."""
        inside = {path for path in self._keys if path[:-1] == slip.path} if not slip.at_key else set()
        return bool(inside) and inside <= self._empty and not isinstance(slip.mistake, NoContainer | NotOneValue)

    def _follows(self, slip: Slip) -> bool:
        """True if a slip follows from an entry without a value or indented too far: about its lines, or at its name."""
        name, line = self._too_far.get(slip.path[:2], ("", 0))
        if name:
            return self._at(slip.path, at_key=slip.at_key)[0] > line
        empty = [str(path[1]) for path in self._empty if len(path) == 2 and path[0] in NAMED]
        names = (*empty, *(name for name, _ in self._too_far.values()))
        said = self._from(slip.path) if slip.path in self._values else ""
        return any(re.match(rf"{re.escape(name)}(?![\w-])", said) for name in names)

    def _as_meant(self, slip: Slip) -> Slip:
        """Slip with the hint `[h1, h3]` for `{h1, h3}` and `(h1, h3)` in place of a list, and `4` for `{4}`.

        Words that were read as keys without a value are then not reported.
        """
        is_list = isinstance(slip.mistake, NoContainer) and "a list" in str(slip.mistake)
        entries = [path for path in self._words if path == slip.path or (is_list and path[:-1] == slip.path)]
        if not isinstance(slip.mistake, NoContainer | NotOneValue) or slip.path not in self._values:
            return slip
        if is_list and not entries and (words := in_parentheses(self._from(slip.path))):
            entries, self._words[slip.path] = [slip.path], (self._values[slip.path], words)
        if not entries or (not is_list and len(self._words[entries[0]][1]) > 1):
            return slip
        listed = [f"[{', '.join(map(harmless, self._words[path][1]))}]" for path in entries]
        for place, words in (self._words[path] for path in entries):
            span = range(place[1], place[1] + len(", ".join(words)) + len(words))
            self._complaints = [each for each in self._complaints if (each.line - 1 != place[0]) or
                                each.column - 1 not in span]  # fmt: skip
        meant = (
            f"[{', '.join(listed)}]" if slip.path == ("compare",) else listed[0] if is_list else f"`{listed[0][1:-1]}`"
        )
        return replace(slip, mistake=type(slip.mistake)(str(slip.mistake), f"did you mean {meant}?"))

    def _from(self, path: KeyPath) -> str:
        line, column = self._values[path]
        return self._lines[line][column:]

    def about(self, messages: Mapping[KeyPath, tuple[str, str]]) -> tuple[Complaint, ...]:
        """Complaints about keys of a valid matrix; a key that a direction lacks is in `both`."""
        expanded = expand(self._tree())
        for path, (message, hint) in messages.items():
            home = expanded.home(path)
            both = (*home[:2], "both", *home[3:]) if len(home) > 3 else home
            self._complain(self._at(both if both in self._keys else home, at_key=True), message, hint)
        return tuple(sorted(self._complaints))

    def sweeps(self) -> Mapping[str, Sequence[str]]:
        """Names of the networks of each sweep of a valid matrix."""
        return expand(self._tree()).names

    def swept(self) -> Mapping[str, KeyPath]:
        """Path of the key with several values in each sweep of a valid matrix."""
        places = expand(self._tree()).places.values()
        return {sweep: ("profiles", sweep, *key) for sweep, key, _ in places}

    def left_out(self) -> Mapping[str, Sequence[str]]:
        """Names of profiles and workloads that no entry of `conditions` has."""
        tree = self._tree()
        sweeps = expand(tree).names
        entries: list[dict[str, Any]] = tree.get("conditions", [])
        found = dict[str, list[str]]()
        for group in ("profiles", "workloads"):
            if entries and all(group in entry for entry in entries):
                named = {name for entry in entries for name in entry[group]}
                found[group] = [name for name in tree[group] if named.isdisjoint((name, *sweeps.get(name, ())))]
        return {group: names for group, names in found.items() if names}

    def _complain_of_hidden(self, place: Place, letter: str) -> None:
        code = f"U+{ord(letter):04X}"
        message, hint = (
            (f"this is not a plain space but {code}", "type a plain one in its place") if letter.isspace() else
            (f"this character cannot be seen: {code}", "remove it")
        )  # fmt: skip
        self._complaints.append(Complaint(place[0] + 1, place[1] + 1, message, hint, self._file, self._shown[place[0]]))

    def _complain(self, place: Place, message: str, hint: str = "", *, is_last: bool = False) -> None:
        line, column = self._hidden.place(place)
        source = self._shown[line] if line < len(self._shown) else ""
        if source[:column].strip(" -"):  # not the first on its line
            hint = hint.removesuffix(f": {TOO_FAR}")
        texts = harmless(message), harmless(hint), self._file, source
        self._complaints.append(Complaint(line + 1, column + 1, *texts, is_last))

    def _at(self, path: KeyPath, *, at_key: bool) -> Place:
        """Place of a value (or its key); for a path that is not in the file, that of the nearest parent."""
        places = self._keys if at_key else self._values
        while path and path not in places:
            path = path[:-1]
        return places.get(path) or self._values[path]

    def _tree(self) -> dict[str, Any]:
        """Mappings, lists and text as written."""
        events = _events(self._text)
        top = next(events, None)
        if top is None or _is_empty(top):
            raise _Unreadable((0, 0), "the file is empty", "the matrix.yaml of this repository is a complete example")
        if not isinstance(top, yaml.MappingStartEvent):
            if isinstance(top, yaml.ScalarEvent):
                for _ in events:  # a text that continues with a colon: its fault is more specific
                    pass
            raise _Unreadable(_start(top), "a matrix is a mapping of keys such as `protocols:` and `profiles:`")
        tree: dict[str, Any] = self._value(top, events, ())
        for _ in events:
            pass  # to the end of the text: nothing may follow
        return tree

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], path: KeyPath) -> Any:
        self._values[path] = _start(event)
        if len(path) > DEEPEST:
            raise _Unreadable(_start(event), "this is nested too deeply", f"a matrix has at most {DEEPEST} levels")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, events, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(events, path)
        assert isinstance(event, yaml.ScalarEvent)
        return None if _is_empty(event) else self._scalar(event, path)

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath) -> str:
        """Text of a value; without what follows it as in other languages, which is a mistake: `3;` and `3 // three`."""
        if not event.style and not {*path} & FREE and (inner := _QUOTES.fullmatch(event.value)):
            self._complain(_start(event), "these quotes are part of the text", f"did you mean {quoted(inner[1])}?")
            return inner[1]
        found = None if event.style or {*path} & FREE else _TAIL.fullmatch(event.value)
        if not found:
            return str(event.value)
        line, column = _start(event)
        message, hint = (
            (f"{quoted(found[2])} does not end a value", "remove it") if len(found[2]) == 1 else
            ("a comment begins with `#`", f"did you mean {quoted(f'{found[1]} #{found[2][2:]}')}?")
        )  # fmt: skip
        self._complain((line, column + found.start(2)), message, hint)
        return found[1]

    def _mapping(self, start: yaml.MappingStartEvent, events: Iterator[yaml.Event], path: KeyPath) -> Any:
        """The mapping as written; the list of values that a sweep has in braces."""
        found: dict[str, Any] = {}
        empty: list[yaml.ScalarEvent] = []
        pairs: list[tuple[str, Place, str]] = []  # see _twice
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _Unreadable(_start(event), "a key is one word, not a mapping or a list", "quote it if it is text")
            self._refuse_joined(event)
            inner = (*path, event.value)
            if start.flow_style and self._is_of_thousands(event, path, found):
                next(events)
                continue
            if inner in self._keys:
                pairs += self._twice(event, events, path, found)
                continue
            self._keys[inner] = _start(event)
            value = self._value(next(events), events, inner)
            if value is not None:
                found[event.value] = value
            elif not (start.flow_style and self._is_read(event, path, found)):
                self._empty.add(inner)
                empty.append(event)
        for _, place, hint in (each for each in pairs if each[0] in found):
            self._explain(place, hint)
        names = [key.value for key in empty]
        if not found and path[:1] == ("profiles",) and (row := in_a_row(str(path[-1]), ", ".join(names), 2)):
            self._complain(_start(start), "several values are a list, in square brackets", as_list(str(path[-1]), row))
            return row
        self._complain_of_empty(start, empty, path, len(found))
        return found

    def _twice(
        self, key: yaml.ScalarEvent, events: Iterator[yaml.Event], path: KeyPath, found: Mapping[str, Any]
    ) -> Iterator[tuple[str, Place, str]]:
        """Report a key that appears twice. For a direction: the other one, its place, and the hint if that exists."""
        first, other = self._keys[(*path, key.value)][0] + 1, _OTHER.get(key.value)
        keep = f"{'rename one, or ' if len(path) == 1 and path[0] in NAMED else ''}keep one of the two"
        where = f"the first is in line {first}"
        self._complain(
            _start(key),
            f"{quoted(key.value)} appears twice",
            f"{where}: {f'is this one `{other}`?' if other else keep}",
        )
        again = self._value(
            next(events), events, (*path, -len(self._complaints))
        )  # under an unused name: for its complaints
        joined = _joined(key.value, found.get(key.value), again)
        hint = f"{where}: {f'join the two: {joined}' if joined else keep}"
        if other:
            yield other, _start(key), hint
        else:
            self._explain(_start(key), hint)

    def _refuse_joined(self, key: yaml.ScalarEvent) -> None:
        """Reject `far:{both: ...}`, which YAML reads as the key `far:{both` with one value; and `far {both: ...}`."""
        place = _start(key)
        if not key.style and (joined := joined_key(self._lines[place[0]])) and ":" in key.value:
            raise _Unreadable((place[0], joined[0]), *joined[1:])
        if not key.style and (fault := colon_missing_in(key.value, self._lines[place[0]], place)):
            raise _Unreadable(fault.place, fault.message, fault.hint)

    def _is_read(self, key: yaml.ScalarEvent, path: KeyPath, found: dict[str, Any]) -> bool:
        """True if a key without a value in braces is a value, or has one, which only a sign or a space hides."""
        tests = (self._is_fraction, self._is_in_a_row, self._is_of_list, self._is_glued)
        return any(is_read(key, path, found) for is_read in tests)

    def _is_of_thousands(self, key: yaml.ScalarEvent, path: KeyPath, found: dict[str, Any]) -> bool:
        """True if a key is a part of `{size: 1,000,000}` after a comma; the value is then read without commas."""
        name = list(found)[-1] if found else ""
        line, column = self._values.get((*path, name), (0, 0))
        written = _THOUSANDS.match(self._lines[line], column) if isinstance(found.get(name), str) else None
        (number, begun) = _start(key)
        if not written or key.style or number != line or not column < begun < written.end():
            return False
        plain = written[0].rstrip().replace(",", "")
        if found[name] != plain:
            found[name] = plain
            self._thousands.add((line, column))
            message = f"{quoted(written[0].rstrip())} is several entries: in braces a comma ends the first"
            self._complain((line, column), message, f"did you mean {quoted(plain)}?")
        return True

    def _is_fraction(self, key: yaml.ScalarEvent, path: KeyPath, found: dict[str, Any]) -> bool:
        """True if a key is the part after the comma of `{loss: 0,5%}`; the value is then read with a point."""
        if not found:
            return False
        name, whole = list(found.items())[-1]
        line, column = self._values[*path, name]
        written = f"{whole},{key.value}"
        if not isinstance(whole, str) or not _COMMA.fullmatch(written):
            return False
        if not self._lines[line].startswith(written, column) or _start(key) != (line, column + len(whole) + 1):
            return False
        found[name] = f"{whole}.{key.value.replace(' ', '')}"
        self._complain((line, column), f"{quoted(written)} is two entries: in braces a comma ends the first",
                       f"did you mean {quoted(found[name])}?")  # fmt: skip
        return True

    def _is_in_a_row(self, key: yaml.ScalarEvent, path: KeyPath, found: dict[str, Any]) -> bool:
        """True if a key is a further value of a sweep without brackets: the `1%` of `{loss: 0%, 1%, 3%}`."""
        name = next(reversed(found), "")
        if name not in SWEPT or path[:1] != ("profiles",):
            return False
        line, column = self._values[*path, name]
        if isinstance(found[name], list):
            return _start(key)[0] == line and key.value.strip("() ") in found[name]
        written, stop = re.split(r"([:{}\[\]#]|$)", self._lines[line][column:], maxsplit=1)[:2]
        written = written.rpartition(",")[0] if stop == ":" else written.rstrip(" ,")
        if not (row := in_a_row(name, written, 2)) or _start(key)[0] != line:
            return False
        found[name] = row
        message = f"{quoted(written)} is several entries: in braces a comma ends the first"
        self._complain((line, column), message, as_list(name, row))
        return True

    def _is_of_list(self, key: yaml.ScalarEvent, path: KeyPath, found: dict[str, Any]) -> bool:
        """True if a key is a further word of a list without brackets: the `far` of `{profiles: near, far}`."""
        name = next(reversed(found), "")
        line, column = self._values.get((*path, name), (0, 0))
        if isinstance(found.get(name), list):
            return self._unbracketed.get(path) == name and key.value in found[name]
        words = _PATHS if name == "paths" else _WORDS
        written = words.match(self._lines[line], column) if isinstance(found.get(name), str) else None
        whole, level = levels(MatrixKeys, {}, path)[-1], levels(MatrixKeys, {}, (*path, name))[-1]
        if not written or not (level.is_of_list or name == "paths") or whole.knows(key.value) or _start(key)[0] != line:
            return False
        row = [word.strip() for word in written[0].split(",")]
        if key.value not in row[1:]:
            return False
        self._unbracketed[path], found[name] = name, row
        message, meant = "in braces a comma ends the entry", f"{name}: [{', '.join(row)}]"
        self._complain((line, column), f"{quoted(written[0])} is a list: {message}", f"did you mean {quoted(meant)}?")
        return True

    def _is_glued(self, key: yaml.ScalarEvent, path: KeyPath, found: dict[str, Any]) -> bool:
        """True if a key is all of `{requests:40}`; it is then read as with a space."""
        written = None if key.style else _GLUED.fullmatch(key.value)
        if not written or (name := written[1]) in found:
            return False
        line, column = _start(key)
        place = line, column + written.start(3)
        message = (
            "a space is missing after the colon" if written[2] == ":" else
            "this is not a plain `:` but U+FF1A" if written[2].startswith("\uff1a") else
            "a key and its value need a colon"
        )  # fmt: skip
        self._complain(place, message, f"did you mean {quoted(f'{name}: {written[3]}')}?")
        self._keys[*path, name], self._values[*path, name] = (line, column), place
        found[name] = written[3]
        return True

    def _complain_of_empty(
        self, start: yaml.MappingStartEvent, keys: list[yaml.ScalarEvent], path: KeyPath, others: int
    ) -> None:
        names = [key.value for key in keys]
        if keys and not others and (start.flow_style or len(keys) == 1):
            self._words[path] = _start(keys[0]), names
        if start.flow_style and len(keys) > 1 and not others:
            listed = f"{', '.join(map(quoted, names[:-1]))} and {quoted(names[-1])}"
            hint = f"a value follows each key: {{{', '.join(map(_with_value, names))}}}"
            self._complain(_start(keys[0]), f"{listed} have no values", hint)
            return
        for key in keys:
            is_one_value = levels(MatrixKeys, {}, (*path, key.value))[-1].is_of_one_value
            hint = why_empty(path, key.value, is_inline=bool(start.flow_style) or is_one_value)
            names = levels(MatrixKeys, {}, path)[-1].keys_of(key.value)
            meant = f"{names[0]}: {key.value}" if names else _with_value(key.value)
            if not meant.endswith("..."):
                hint = f"did you mean {quoted(meant)}?"
            if len(path) == 1 and key.value in MatrixKeys.model_fields:
                hint = f"it belongs at the top of the file, next to {quoted(path[0])}: {TOO_FAR}"
                self._outside.update(inner for inner, place in self._keys.items()
                                     if inner[:-1] == path and place > _start(key))  # fmt: skip
            is_in_entry = len(path) == 2 and path[0] in NAMED and isinstance(path[1], str)
            own = frozenset() if path[:1] == ("servers",) else every_key(ServerKeys)  # too common: `port`, `image`
            if is_in_entry and not start.flow_style and not nearest(key.value, list(every_key() - own)):
                group, entry = map(quoted, path)
                hint = f"as one more of the {group} it belongs next to {entry}: is it indented too far?"
                self._too_far[path] = key.value, _start(key)[0]
            if not start.flow_style and (beside := self._unindented(key, path)):
                self._outside.update((*path, name) for name in beside)
                is_one = len(beside) == 1
                hint = f"{enumerated(map(quoted, beside))} {'belongs' if is_one else 'belong'} to it: indent " + (
                    "it further" if is_one else "them further")  # fmt: skip
            if path[-1:] == ("at",) and key.value.isdecimal() and (rest := self._after(key, path))[:1].isdecimal():
                hint = f"a comma ends the entry: did you mean {quoted(f'{key.value}.{rest}')}?"
            self._complain(_start(key), f"{quoted(key.value)} has no value", hint)

    def _after(self, key: yaml.ScalarEvent, path: KeyPath) -> str:
        """The key that follows one of the same mapping; empty for the last one."""
        return next(
            (str(each[-1]) for each, place in self._keys.items() if each[:-1] == path and place > _start(key)), ""
        )

    def _unindented(self, key: yaml.ScalarEvent, path: KeyPath) -> list[str]:
        """Keys in the lines after one without a value that belong to it, but are not indented further."""
        own, below = (levels(MatrixKeys, {}, each)[-1].keys for each in (path, (*path, key.value)))
        after = [inner[-1] for inner, place in self._keys.items() if inner[:-1] == path and place > _start(key)]
        inside = [str(name) for name in takewhile(lambda name: name in below, after)]
        return [] if {*inside[:1]} & {*own} else inside

    def _list(self, events: Iterator[yaml.Event], path: KeyPath) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            value = self._value(event, events, (*path, len(found)))
            if value is None:
                self._complain(_start(event), "this entry of the list is empty", "give it a value or remove it")
            else:
                found.append(value)
        return found


def _joined(key: str, first: Any, second: Any) -> str:
    """YAML for a key that is written twice with other keys below it; empty if the two have a key in common."""
    if not isinstance(first, dict) or not isinstance(second, dict) or not first or first.keys() & second.keys():
        return ""
    return f"{key}: {shown({**first, **second})}"


def _with_value(text: str) -> str:
    """`rate: 5mbit` for `rate 5mbit`, which lacks a colon; `wifi: ...` for any other text."""
    key, _, value = text.partition(" ")
    return harmless(f"{key}: {value.strip()}") if value and key in every_key() else f"{harmless(text)}: ..."


def _events(text: str) -> Iterator[yaml.Event]:
    """YAML events of the text.

    Raises _Unreadable for text that is not YAML, and for YAML features that are rejected.
    """
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        character = ascii(chr(error.character))
        raise _Unreadable(place_behind(text[: error.position]), f"the character {character} is not text") from None
    documents = 0
    while (event := _next_event(loader, text)) is not None:
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            raise _Unreadable(_start(event), "a second document begins here", "a file holds one matrix")
        if isinstance(event, yaml.NodeEvent):
            _refuse_indirection(event)
            yield event
        elif isinstance(event, yaml.CollectionEndEvent):
            yield event


def _next_event(loader: yaml.SafeLoader, text: str) -> yaml.Event | None:
    try:
        event: yaml.Event | None = loader.get_event()  # type: ignore[no-untyped-call]
    except yaml.MarkedYAMLError as error:
        place = _place(error.problem_mark) or _place(error.context_mark) or _place(loader.get_mark()) or (0, 0)
        broken = Broken(error.problem or "", place, error.context or "", _place(error.context_mark))
        fault = why_unreadable(broken, text)
        raise _Unreadable(fault.place, fault.message, fault.hint) from None
    except (ValueError, OverflowError):  # PyYAML's own, for escapes such as "\UFFFFFFFF"
        mark = loader.get_mark()
        raise _Unreadable((mark.line, mark.column), "this escape sequence names no character") from None
    return event


def _refuse_indirection(event: yaml.NodeEvent) -> None:
    if isinstance(event, yaml.AliasEvent):
        raise _Unreadable(_start(event), "aliases are not accepted", "write the value out, so that the report shows it")
    if event.anchor is not None:
        raise _Unreadable(_start(event), "anchors are not accepted", "write the value out where it is needed")
    if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
        raise _Unreadable(_start(event), f"the tag {quoted(event.tag)} is not accepted", "values need no tags")


def _is_empty(event: yaml.Event) -> bool:
    """True if nothing was written; '' with quotes is a value."""
    return isinstance(event, yaml.ScalarEvent) and event.value == "" and bool(event.implicit[0])


def _place(mark: yaml.Mark | None) -> Place | None:
    return (mark.line, mark.column) if mark else None


def _start(event: yaml.Event) -> Place:
    assert event.start_mark is not None
    return event.start_mark.line, event.start_mark.column


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
