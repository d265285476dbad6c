"""Explains why a text is not YAML: the bracket, comma, colon, quote, dash or space at fault."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from headwind.matrix.brackets import CLOSER, Fault, closes_nothing, fault_in_brackets
from headwind.matrix.indentation import block_lines, joined_key, uneven_line
from headwind.matrix.shapes import in_words, with_name
from headwind.matrix.sweep import DIRECTIONS
from headwind.matrix.tc_lines import TOOLS, of_tc
from headwind.matrix.text import Place, lines_of
from headwind.matrix.units import TIME, harmless, quoted

FREE_TEXT = {"title", "note", "source"}  # keys of which the value is text, in which a colon is allowed
LISTS = {"protocols", "compare", "conditions", "smoke", "judge", "again", "slower"}  # keys of which the value is a list
LONGEST_SHOWN = 80  # characters of a line that a hint repeats
_KEY = re.compile(r"[^\s\[\]{},:#'\"&*!|>%@`-][^\[\]{},:#]*")
_SIGN = r"\s*(?:[-=]>|:?=|[;>\uff1a]|-(?=\s))?\s*"  # in place of a colon: of others, and of keys next to it
_DASHES = re.compile(r"( *)(?:-(?=[\[{\w])|[\u2010-\u2015\u2022*] *)(?=\S)(.*)")


@dataclass(frozen=True, slots=True)
class Broken:
    """Place where the YAML parser stopped, its context, and where that began; places are line and column from 0."""

    problem: str
    place: Place
    context: str
    begun: Place | None


def why_unreadable(broken: Broken, text: str) -> Fault:
    """Fault that the parser met, or the nearest one that may be its cause."""
    lines, place = lines_of(text), broken.place
    begun = broken.begun or place
    if _at(lines, place) == "\t" and "cannot start any token" in broken.problem:
        if lines[place[0]][: place[1]].strip():
            return Fault(place, "a tab separates nothing in YAML", "use a space")
        return Fault(place, "a tab cannot indent YAML", "use spaces")
    for number in dict.fromkeys([place[0], begun[0]]):
        if number < len(lines) and (joined := joined_key(lines[number])):
            return Fault((number, joined[0]), *joined[1:])
    is_flow = broken.context.startswith("while parsing a flow")
    if (
        found := _scanned(lines, broken, begun)
        or _wide(lines, [begun[0], place[0], max(0, place[0] - 1)])
        or _sign_in_front(lines, place)
        or _question_mark(lines, broken)
        or _free_text(lines, place)
        or fault_in_brackets(lines, begun if is_flow else place)
    ):
        return found
    if found := _comment(lines, place) or _dash(lines, place) or _dashes(lines, broken, begun):
        return found
    rules = (_moment_in_its_line, _missing_colon, _key_in_a_value, _behind_a_value, _dash_among_keys)
    if found := next((fault for rule in rules if (fault := rule(lines, place))), None):
        return found
    if uneven := uneven_line(lines, place[0]):
        line, column, hint = uneven
        return Fault((line, column), "this line is indented unlike those around it", hint)
    return Fault(place, *_words(broken, _at(lines, place)))


def _scanned(lines: Sequence[str], broken: Broken, begun: Place) -> Fault | None:
    """Fault of `*` for all, of an unclosed quote, or of `"wifi: {...}"`: quotes around a key and its value."""
    if broken.context == "while scanning an alias":
        return Fault(begun, "`*` begins an alias, and aliases are not accepted", "to mean all, leave the key out")
    if broken.context == "while scanning a quoted scalar" and "end of stream" in broken.problem:
        return Fault(begun, "this quote is not closed", f"add {quoted(_at(lines, begun))} at the end of the text")
    number = begun[0]
    found = re.fullmatch(rf"( *)(['\"])({_KEY.pattern}: .+)\2", lines[number]) if number < len(lines) else None
    return Fault((number, len(found[1])), "quotes around a key and its value", _meant(found[3])) if found else None


def _wide(lines: Sequence[str], numbers: Sequence[int]) -> Fault | None:
    """Fault of a sign of full width, as a Chinese or Japanese keyboard has it."""
    for number in numbers:
        if found := re.search("[\uff1a\uff0c\uff5b\uff5d\uff3b\uff3d]", lines[number] if number < len(lines) else ""):
            plain = unicodedata.normalize("NFKC", found[0])
            message = f"this is not a plain {quoted(plain)} but U+{ord(found[0]):04X}"
            return Fault((number, found.start()), message, "type a plain one in its place, and a space behind it")
    return None


def _sign_in_front(lines: Sequence[str], place: Place) -> Fault | None:
    """Fault of `%1` for `1%`."""
    line, (number, column) = lines[place[0]] if place[0] < len(lines) else "", place
    if not re.match(r"%[0-9]", line[column:]):
        return None
    return Fault((number, column), "a share ends with its sign", _meant(re.sub(r"%([0-9.]+)", r"\1%", line.strip())))


def _question_mark(lines: Sequence[str], broken: Broken) -> Fault | None:
    """Fault of `{path: /items?page=2}`: in brackets a value with a question mark needs quotes."""
    number, column = broken.place
    if not broken.problem.endswith("but got '?'"):
        return None
    line = lines[number]
    begun = re.search(r"(?:([\w-]+): +)?([^\s,\[\]{}]*)$", line[:column])
    rest = re.match(r"[^\s,\[\]{}]*", line[column:])
    key, start = (begun[1], begun[2]) if begun else ("", "")
    value = f'"{start}{rest[0] if rest else ""}"'
    message = "in brackets a value with a question mark needs quotes"
    tops = {each.partition(":")[0] for each in lines}
    if "content" in tops and "servers" not in tops and start.startswith("/"):
        value, message = start, "the path of a file in `content` has no query"
    return Fault((number, column - len(start)), message, _meant(f"{key}: {value}" if key else value))


def _free_text(lines: Sequence[str], place: Place) -> Fault | None:
    """Fault of `title: "Trains" and more` and `title: [draft] Trains`: a text that begins with a quote or a bracket."""
    line = lines[place[0]].partition(" #")[0].rstrip() if place[0] < len(lines) else ""
    found = re.fullmatch(rf" *(?:- +)*({'|'.join(sorted(FREE_TEXT))}): +(([\"'\[{{]).*)", line)
    if not found or found[2].endswith(CLOSER.get(found[3], found[3])):
        return None
    quote = "'" if {'"', "\\"} & {*found[2]} else '"'
    text = found[2] if quote == '"' else found[2].replace("'", "''")
    message = "a text that begins with a quote or a bracket needs quotes around all of it"
    return Fault((place[0], found.start(2)), message, _meant(f"{found[1]}: {quote}{text}{quote}"))


def _at(lines: Sequence[str], place: Place) -> str:
    """Character at a place; empty at the end of a line."""
    line, column = place
    return lines[line][column : column + 1] if line < len(lines) else ""


def _words(broken: Broken, character: str) -> tuple[str, str]:
    """The parser's message in words, and its possible cause."""
    if "mapping values are not allowed" in broken.problem:
        return "a colon is not expected here", "is a line break, a comma or a quote missing, or the indentation wrong?"
    since = f", which begins in line {broken.begun[0] + 1}" if broken.begun else ""
    words = f"{broken.context}{since}: {broken.problem}" if broken.context else broken.problem
    if character and character in "@`%":
        return f"this is not valid YAML: {words}", f"a value that begins with {character} needs quotes"
    return f"this is not valid YAML: {words}", "is a comma, a quote or a closing bracket missing?"


def _dash(lines: Sequence[str], broken: Place) -> Fault | None:
    """Fault of `-{profiles: ...}` and `\N{EN DASH} {profiles: ...}`."""
    for number in (broken[0], broken[0] - 1):
        found = _DASHES.fullmatch(lines[number]) if 0 <= number < len(lines) else None
        if found:
            is_dash = lines[number].lstrip(" ").startswith("-")
            message = "a space is missing after the dash" if is_dash else "an entry of a list begins with a plain dash"
            return Fault((number, len(found[1])), message, _meant(f"- {found[2]}"))
    return None


def _comment(lines: Sequence[str], broken: Place) -> Fault | None:
    """Fault of `// text` on the line where reading ended or one of the two above it."""
    for number, indent, text in list(block_lines(lines[: broken[0] + 1]))[-3:]:
        if found := re.match(r"(?://|/\*|--(?!-))\s*(.*)", text):
            return Fault((number, indent), "a comment begins with `#`", _meant(f"# {found[1]}"))
    return None


def _missing_colon(lines: Sequence[str], broken: Place) -> Fault | None:
    """Fault of `wifi` above lines that belong to it, `wifi {both: ...}`, `wifi = {both: ...}` and `timeout 60s`."""
    block = list(block_lines(lines[: broken[0] + 3]))
    read = [index for index, each in enumerate(block) if each[0] <= broken[0]]
    for index in reversed(read[-2:]):
        number, indent, text = block[index]
        if index and block[index - 1][1] < indent and not block[index - 1][2].endswith((":", "-")):
            continue  # the text continues
        if found := re.match(rf"({_KEY.pattern}?){_SIGN}(?=[\[{{])", text):
            key, value = found[1], text[found.end() :]
        elif found := re.fullmatch(rf"({_KEY.pattern}?)\s*=\s*([^=]+)", text):
            key, value = found[1], found[2]
        elif _KEY.fullmatch(text):
            has_more = index + 1 < len(block) and block[index + 1][1] > indent
            key, _, value = (text, "", "") if has_more else text.partition(" ")
            key = key.rstrip(";>\uff1a")
            value = value if value or has_more else "{}"
        else:
            continue
        message = f"a colon is missing after {quoted(key)}"
        return Fault((number, indent + len(key)), message, _meant(f"{key}: {value}".rstrip()))
    return None


def colon_missing_in(key: str, line: str, place: Place) -> Fault | None:
    """Fault of `wifi {rate: 3mbit}`, which YAML reads as the key `wifi {rate` at a place, with the value `3mbit}`."""
    written = line[place[1] :].partition(" #")[0].rstrip()
    found = re.match(rf"(\w[^\[\]{{}}=]*?){_SIGN}(?=[\[{{])", key)
    if not found or not written.startswith(key) or not written.endswith(tuple(CLOSER.values())):
        return None
    if all(key.count(opener) <= key.count(closer) for opener, closer in CLOSER.items()):
        return None  # a name with brackets
    message = f"a colon is missing after {quoted(found[1])}"
    return Fault((place[0], place[1] + len(found[1])), message, _meant(f"{found[1]}: {written[found.end() :]}"))


def _moment_in_its_line(lines: Sequence[str], broken: Place) -> Fault | None:
    """Fault of `at: 300ms` above the lines of what changes then."""
    *_, above = [("", 0, 0), *((text, indent, number) for number, indent, text in block_lines(lines[: broken[0]]))]
    found = re.fullmatch(rf"(at: +)({TIME.pattern.strip('^$')})", above[0])
    if not found:
        return None
    place = above[2], above[1] + len(found[1])
    return Fault(
        place, f"{quoted(found[2])} is a key of `at`", f"begin a line for it below `at:`: {quoted(f'{found[2]}:')}"
    )


def _key_in_a_value(lines: Sequence[str], broken: Place) -> Fault | None:
    """Fault of `repeat: min: 9, budget: 3min`, `wifi: (both: {...})` and `title: Networks: home and away`."""
    line = lines[broken[0]] if broken[0] < len(lines) else ""
    found = re.fullmatch(rf"( *(?:- +)*)({_KEY.pattern}):\s+([^\s\[{{].*:.*)", line.partition(" #")[0].rstrip())
    if not found:
        return None
    key, value = found[2], found[3]
    place = broken[0], found.start(3)
    if value.startswith(("(", "<")):
        return Fault(place, "only braces hold keys", _meant(f"{key}: {{{value.strip('()<>')}}}"))
    way = ("profiles", "NAME", key) if key in (*DIRECTIONS, *TOOLS) else ("profiles", key)
    if command := of_tc(way, value):
        return Fault(place, "this is not a mapping of keys", command)
    value = re.sub(r"^(\w+) +(?=\{)", r"\1: ", value)
    if key == "repeat":
        value = re.sub(r"^(?=\d+ *,)", "min: ", value)
    if key in FREE_TEXT:
        return Fault(place, "a text with a colon needs quotes", _meant(f'{key}: "{value}"'))
    closed = "" if sum(map(value.count, CLOSER.values())) > sum(map(value.count, CLOSER)) else "}"
    return Fault(place, "several keys in a line need braces", _meant(f"{key}: {{{value}{closed}"))


def _behind_a_value(lines: Sequence[str], broken: Place) -> Fault | None:
    """Fault of text after a complete value: a comma, a closing bracket, or the rest of a text in quotes."""
    number, column = broken
    line = lines[number] if number < len(lines) else ""
    begun, letter, rest = line[:column], line[column : column + 1], line[column + 1 :].partition(" #")[0].strip()
    if letter == "," and begun.rstrip().endswith(","):
        return Fault(broken, "there are two commas", "remove one")
    if letter == "," and rest:
        is_entry = begun.lstrip().startswith("- ")
        hint = _meant(f"- {{{line.strip(' -()')}}}") if is_entry else "begin a new line after it"
        return Fault(broken, "outside of brackets, commas do not separate keys", hint)
    if letter == ",":
        return Fault(broken, "a line does not end with a comma", "remove it: outside of brackets each line is an entry")
    if letter in CLOSER.values():
        return closes_nothing(broken, letter)
    if begun.rstrip().endswith(tuple(CLOSER.values())):
        return Fault(broken, "the value before this is complete", "begin a new line here, or remove this")
    found = re.fullmatch(r"(.*?:\s+)(['\"])(.*)\2[^'\"]*(?: #.*)?", line)
    if found and begun.rstrip().endswith(found[2]):
        other = "'" if found[2] == '"' else '"'
        hint = _meant(f"{found[1].strip(' -')} {other}{found[3]}{other}")
        return Fault((number, len(begun.rstrip()) - 1), "the text ends at this quote", hint)
    return None


def _dashes(lines: Sequence[str], broken: Broken, begun: Place) -> Fault | None:
    match broken.context:
        case "while parsing a block collection":
            return _one_dash(lines, broken.place, begun)
        case "while scanning a simple key":
            return _no_dash(lines, begun)
    return None


def _one_dash(lines: Sequence[str], broken: Place, begun: Place) -> Fault | None:
    """Fault of a dash that only some entries have: one too many before a name, one missing in a list."""
    if broken[0] >= len(lines):
        return None
    text, first = lines[broken[0]][broken[1] :], lines[begun[0]][begun[1] :]
    above = [line for _, indent, line in block_lines(lines[: begun[0]]) if indent <= begun[1]]
    if not above or text.startswith("-") or lines[broken[0]][: broken[1]].strip():
        return None
    if above[-1].strip(" -").removesuffix(":") in LISTS:
        number, indent, entry = list(block_lines(lines[: broken[0]]))[-1]
        if indent == broken[1] and (key := re.match(r"(- +)([a-z]+):", entry)) and key[2] != text.partition(":")[0]:
            hint = f"begin it below `{key[2]}` of line {number + 1}, with {indent + len(key[1])} spaces"
            return Fault(broken, "this line is indented unlike those around it", hint)
        return Fault(broken, "a dash is missing", _meant(f"- {text.strip()}"))
    return _dash_too_many(begun, first)


def _no_dash(lines: Sequence[str], begun: Place) -> Fault | None:
    """Fault of a line without a dash among entries of a list."""
    line = lines[begun[0]]
    above = [text for _, indent, text in block_lines(lines[: begun[0]]) if indent == begun[1]]
    if not above or not above[-1].startswith("- ") or line[: begun[1]].strip():
        return None
    return Fault(begun, "a dash is missing", _meant(f"- {line.strip()}"))


def _dash_among_keys(lines: Sequence[str], broken: Place) -> Fault | None:
    line = lines[broken[0]] if broken[0] < len(lines) else ""
    if not re.match(rf" {{{broken[1]}}}- +\S", line):
        return None
    *above, before = [("", 0, 0), *((text, indent, number) for number, indent, text in block_lines(lines[: broken[0]]))]
    if before[0][:1] in CLOSER and before[0] and above[-1][0].removesuffix(":") in LISTS:
        return Fault((before[2], before[1]), "a dash is missing", _meant(f"- {before[0]}"))
    return _dash_too_many(broken, line)


def _dash_too_many(place: Place, line: str) -> Fault:
    """Fault of `- wifi: {...}`, `- name: wifi` and `- {preset: lte}` among keys."""
    if (entry := re.fullmatch(r"- +\{(.*)\}", line.partition(" #")[0].strip())) and entry[1]:
        name = with_name(in_words(entry[1])).partition(":")[0]
        hint = _meant(f"{name}: {{{re.sub(r'^name: *[^,]*, *', '', entry[1])}}}")
        return Fault(place, "a dash among entries that have names", f"each needs a name: {hint}")
    if entry := re.fullmatch(r"- +(preset|protocol|kind): *([\w-]+)", line.partition(" #")[0].strip()):
        hint = _meant(with_name({entry[1]: entry[2]}))
        return Fault(place, "a dash among entries that have names", f"each needs a name: {hint}")
    text = re.sub(r"^name: *(.+)", r"\1:", line.strip(" -"))
    return Fault(place, "a dash among keys that have none", _meant(text))


def _meant(text: str) -> str:
    shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
    return f"did you mean `{harmless(shown)}`?"
