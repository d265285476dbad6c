"""Typing mistakes, made from the shipped matrices, each with the repair that its hint must name.

The same ones each time. A repair is what stood in the file before; nothing here asks the code that is tested.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from tests.matrix_files import SHIPPED

SEED = 22
OF_EACH = {"case": 34, "plural": 33, "unit": 33, "level": 33, "indentation": 33, "neighbour": 34,
           "comma": 20, "colon": 20}  # fmt: skip
NAMED_BY_USERS = {"profiles", "workloads", "arms", "published", "times"}
FREE_TEXT = {"title", "note", "source"}
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|%|kbit|mbit|kB|MB)")
OTHER_UNITS = {
    "ms": [" ms", "MS", "msecond", "millis", ""], "s": [" s", "S", "seconds", ""], "min": ["m", " min", "minutes", ""],
    "%": [" %", "percent", "pct", ""], "kbit": ["kb", "Kbit/s", " kbit", ""], "mbit": ["Mb", "mbits", " mbit", "m"],
    "kB": [" KB", "kb", "KB", "k"], "MB": [" MB", "mb", "Mb"],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Typo:
    """A file with one mistake in a line (from 1), and what the hint there must say."""

    kind: str
    file: str
    text: str
    line: int
    written: str  # what stands there now
    repair: str
    slack: int = 0  # lines by which the complaint may be off

    def is_named(self, line: int, hint: str) -> bool:
        """Whether a complaint of this line with this hint names the repair, and not only in a list of what there is."""
        proposed = hint.partition("allowed:")[0].partition("units:")[0]
        return (
            abs(line - self.line) <= self.slack
            and re.search(rf"(?<!\w){re.escape(self.repair)}(?!\w)", proposed) is not None
        )


@dataclass(frozen=True, slots=True)
class Word:
    """A scalar of a file: the keys that lead to it, itself included if it is one, and its place."""

    path: tuple[str, ...]
    text: str
    start: int
    end: int
    line: int
    is_key: bool


def typos() -> list[Typo]:
    """All of them."""
    chance, found = random.Random(SEED), list[Typo]()
    for kind, count in OF_EACH.items():
        every = list({(each.written, each.repair): each for each in _all(kind, chance)}.values())
        found += chance.sample(every, count)
    return found


def _all(kind: str, chance: random.Random) -> Iterator[Typo]:
    for path in SHIPPED:
        text = path.read_text()
        make = {"unit": _units, "level": _levels, "indentation": _indentations, "comma": _commas,
                "colon": _colons}.get(kind)  # fmt: skip
        for line, changed, written, repair in make(text) if make else _spellings(kind, text, chance):
            yield Typo(kind, path.name, changed, line, written, repair, slack=int(kind == "indentation"))


@cache
def _words(text: str) -> tuple[Word, ...]:
    def walk(node: Any, path: tuple[str, ...], is_key: bool = False) -> Iterator[Word]:
        if isinstance(node, yaml.ScalarNode):
            mark = node.start_mark
            yield Word(path, node.value, mark.index, node.end_mark.index, mark.line + 1, is_key)
        elif isinstance(node, yaml.SequenceNode):
            for each in node.value:
                yield from walk(each, path)
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from walk(key, (*path, key.value), is_key=True)
                yield from walk(value, (*path, key.value))

    return tuple(word for word in walk(yaml.compose(text, yaml.SafeLoader), ()) if not FREE_TEXT & set(word.path))


def _spellings(kind: str, text: str, chance: random.Random) -> Iterator[tuple[int, str, str, str]]:
    """Keys that are not names, and words in their place: references, protocols, kinds."""
    for word in _words(text):
        is_name = word.is_key and len(word.path) > 1 and word.path[-2] in NAMED_BY_USERS
        is_name |= "published" in word.path and "-" in word.text  # an arm that the file need not have
        is_word = re.fullmatch(r"[a-z][a-z0-9_-]+", word.text) and (word.is_key or word.path[-1:] != ("path",))
        if (
            is_name
            or not is_word
            or len(word.text) < (2 if kind == "case" else 4)
            or word.text in {"auto", "unfinished"}
        ):
            continue
        for written in _misspelt(kind, word, chance):
            yield word.line, text[: word.start] + written + text[word.end :], written, word.text


def _misspelt(kind: str, word: Word, chance: random.Random) -> list[str]:
    text, place = word.text, chance.randrange(1, len(word.text))
    if kind == "case":
        return [text.upper(), text.capitalize()]
    if kind == "plural":
        return [text.removesuffix("s") if text.endswith("s") else text + "s"]
    row = next((row for row in ROWS if text[place] in row), None)
    if row is None:
        return []
    at = row.index(text[place])
    beside = row[at - 1] if at else row[at + 1]
    swapped = text[: place - 1] + text[place] + text[place - 1] + text[place + 1 :]
    return [text[:place] + beside + text[place + 1 :], *([swapped] if swapped != text else [])]


def _units(text: str) -> Iterator[tuple[int, str, str, str]]:
    for word in _words(text):
        if not word.is_key and (found := QUANTITY.fullmatch(word.text)):
            for unit in OTHER_UNITS[found[2]]:
                written = found[1] + unit
                yield (
                    word.line,
                    text[: word.start] + written + text[word.end :],
                    f"{word.path[-1]}: {written}",
                    word.text,
                )


def _commas(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Decimal commas, in braces and outside, where a value has one digit or a decimal point."""
    for word in _words(text):
        if not word.is_key and (found := QUANTITY.fullmatch(word.text)) and (len(found[1]) == 1 or "." in found[1]):
            written = f"{found[1].replace('.', ',') if '.' in found[1] else found[1] + ',5'}{found[2]}"
            changed = text[: word.start] + written + text[word.end :]
            yield word.line, changed, f"{word.path[-1]}: {written}", written.replace(",", ".")


def _colons(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Lines whose key has no space after its colon."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = re.fullmatch(r"( *)([\w-]+): +([\[{a-z0-9].*)", line.partition(" #")[0].rstrip())
        if found and len(line) < 70 and not FREE_TEXT & {found[2]} and found[3] not in "|>":
            changed = "\n".join([*lines[:number], f"{found[1]}{found[2]}:{found[3]}", *lines[number + 1 :]]) + "\n"
            yield number + 1, changed, f"{found[2]}:{found[3]}", f"{found[2]}: {found[3]}"


def _levels(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Keys that lost the mapping around them, that went into one, or that lost their kind."""
    lines = text.splitlines()
    for number, line in enumerate(lines):

        def changed(written: str, number: int = number) -> str:
            return "\n".join([*lines[:number], written, *lines[number + 1 :]]) + "\n"

        for found in re.finditer(r"\{(downlink|uplink|both): \{([^{}]+)\}\}", line):  # its direction is forgotten
            written = line[: found.start()] + "{" + found[2] + "}" + line[found.end() :]
            if "published" not in text.partition(line)[0]:
                yield number + 1, changed(written), f"{found[1]}: {written.strip()}", found[1]
        if found_ := re.match(r"repeat: \{(.*), (budget|max): (\w+)\}", line):
            written = f"repeat: {{{found_[1]}}}\n{found_[2]}: {found_[3]}"
            yield number + 2, changed(written), f"{found_[2]} of {found_[1]}", "repeat"
        if found_ := re.search(r"kind: (objects|transfer|ttfb), ", line):
            written = line.replace(found_[0], "")
            yield number + 1, changed(written), written.strip(), f"kind: {found_[1]}"
        if re.match(r"(timeout|seed|judge|repeat):", line):  # among the workloads, where the file ends
            for place, entry in enumerate(lines):
                if re.match(r"  [\w ]+: +\{(kind|requests)", entry) and entry.endswith("}"):
                    inner = [*lines]
                    inner[place] = f"{entry[:-1]}, {line.partition(' #')[0].rstrip()}}}"
                    del inner[number]
                    moved = place + 1 - (number < place)
                    yield moved, "\n".join(inner) + "\n", inner[moved - 1].strip(), "top of the file"


def _indentations(text: str) -> Iterator[tuple[int, str, str, str]]:
    lines, meant = text.splitlines(), yaml.load(text, yaml.BaseLoader)  # noqa: S506 - text only
    for number, line in enumerate(lines):
        if not re.match(r" *(- )?[\w-]+( \w+)*:", line) or (number and lines[number - 1].endswith(">-")):
            continue
        for written in [f" {line}", *([line[1:]] if line.startswith(" ") else [])]:
            changed = "\n".join([*lines[:number], written, *lines[number + 1 :]]) + "\n"
            try:
                if yaml.load(changed, yaml.BaseLoader) == meant:  # noqa: S506 - text only
                    continue  # it is the only one of its level
            except yaml.YAMLError:
                pass
            yield number + 1, changed, written, "indented"
