"""The single values of matrix.yaml as pydantic types, each with its parser and its JSON schema."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from headwind.arm import Protocol as Version
from headwind.matrix import units
from headwind.matrix.mistakes import Misspelt
from headwind.matrix.spelling import respelt
from headwind.matrix.units import Mistake, choose, listed, quoted, scalar
from headwind.model import AUTO
from headwind.servers import NGINX, Server
from headwind.settings import Windows as Size
from impair.distribution import DISTRIBUTION_REACH
from impair.queues import KINDS
from servers.objects import LARGEST_BYTES
from servers.offer import PATTERN as OFFER_PATTERN
from servers.offer import OfferIf
from servers.page_files import MOST_FILES, Several

LONGEST_NAME = 64  # characters
LONGEST_TITLE = 200
LONGEST_PATH = 2000
TIMEOUT_S = (0.1, 86_400.0)
USUAL_TIMEOUT_S = 60.0
BUDGET_S = (1.0, 7 * 86_400.0)
LONGEST_NOTE = 2_000
MOST_LANES = 64
NO_FILES = "none"  # value of a part that a page does not have
SERVER_DELAY_S = (0.001, 5.0)
OWN_SERVER = (
    "the lab fetches from its own server: a path such as `/`, `/100k` or `/bytes/15000`, or of a site that you copied "
    "to a folder, which `content: FOLDER` names"
)
_SEVERAL = re.compile(r"([1-9][0-9]*) *x *([0-9].*)")
_TWO_SIZES = re.compile(r"[0-9.]+ *[kKmM]?i?B? *(?:-|to|\.\.+|\u2013) *[0-9.]+ *[kKmM]?i?B")
_METRIC = re.compile(r"[a-z0-9_]+_(s|bps)")
MARGIN = (0.001, 0.5)
CONFIDENCE = (0.5, 0.9999)
OTHER_QUIC = "over QUIC only your own server can have another one, by its `command` or `env` (docs/servers.md)"
QUIC_CONGESTION = list(NGINX.quic_congestion)
# Mainline's net/ipv4/tcp_*.c, and the later BBR versions that some kernels carry.
TCP_CONGESTION = [
    "cubic", "bbr", "reno", "bbr2", "bbr3", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv",
    "scalable", "vegas", "veno", "westwood", "yeah",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Written:
    """Annotates a type with its parser (which raises Mistake) and with its JSON schema."""

    read: Callable[[Any], Any]
    schema: dict[str, Any] = field(hash=False)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self.schema)


@dataclass(frozen=True, slots=True)
class Short:
    """Annotates a mapping that may also be one value: `loss: 30%` is `loss: {random: 30%}`."""

    keys: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        mapping = handler(schema)
        value = handler.resolve_ref_schema(mapping)["properties"][self.keys[-1]]
        return {"anyOf": [value, mapping]}

    def _expand(self, value: Any) -> Any:
        return value if isinstance(value, dict) else dict.fromkeys(self.keys, value)


def whole(low: int, high: int) -> Written:
    """Type of whole numbers in a range."""
    return Written(partial(units.whole, low=low, high=high), {"type": "integer", "minimum": low, "maximum": high})


def choice(allowed: list[str], what: str) -> Written:
    """Type of one word of a list."""
    return Written(lambda value: choose(scalar(value, f"`{allowed[0]}`"), allowed, what), {"enum": allowed})


def _quantity(read: Callable[[Any], Any], unit: units.Unit) -> Written:
    return Written(read, {"type": "string", "pattern": unit.pattern, "examples": [unit.example]})


def _visible(value: Any, what: str, longest: int) -> str:
    """Text that can be printed, compared and found again."""
    text = scalar(value, "`a b`")
    if not text or text != text.strip():
        raise Mistake(f"{quoted(text)} begins or ends with a space, or is empty", f"{what} is visible text")
    if len(text) > longest:
        raise Mistake(f"{quoted(text)} has {len(text)} characters", f"{what} has at most {longest}")
    hidden = next((letter for letter in text if not letter.isprintable()), None)
    if hidden is not None:
        raise Mistake(f"{quoted(text)} contains the unprintable character {hidden!a}", f"{what} is visible text")
    if text != unicodedata.normalize("NFC", text):
        raise Mistake(f"{quoted(text)} is not in Unicode's composed form (NFC)", "two such names could look the same")
    return text


def _offer_condition(value: Any) -> str:
    """Check and normalise a condition for offers of HTTP/3. Raises Mistake."""
    text = scalar(value, "`rtt >= 80ms`")
    try:
        return str(OfferIf.parse(text))
    except ValueError as error:
        hint = "`rtt` or `rttvar` of the connection over TCP, `>=` or `<`, and a time: `rtt >= 80ms`"
        raise Mistake(str(error), hint) from None


def _name(value: Any) -> str:
    text = _visible(value, "a name", LONGEST_NAME)
    for separator in "/#":
        if separator in text:
            raise Mistake(
                f"{quoted(text)} contains {quoted(separator)}",
                "a trial is called profile/workload#block/protocol: names contain neither / nor #",
            )
    return text


def _row_name(value: Any) -> str:
    text = scalar(value, "`clean/page`")
    parts = text.split("/", 2)
    for part in parts:
        _name(part)
    if parts[2:] and not _METRIC.fullmatch(parts[2]):
        raise Mistake(f"{quoted(parts[2])} is not a metric", "profile/workload/metric, such as `clean/page/ttfb_s`")
    return text


def note(value: Any) -> str:
    """Return the text if it can be printed, and is not too long. Raises Mistake."""
    return _visible(value, "a note", LONGEST_NOTE)


def _title(value: Any) -> str:
    return "" if value == "" else _visible(value, "a title", LONGEST_TITLE)


def url_path(value: Any) -> str:
    """Return the text if it is a path that can be requested as it is. Raises Mistake."""
    text = scalar(value, "`/`")
    if "://" in text:
        raise Mistake(f"{quoted(text)} is not a path on the server", OWN_SERVER)
    if not text.startswith("/"):
        raise Mistake(f"{quoted(text)} is not a path on the server", "it begins with a slash, such as `/`")
    if len(text) > LONGEST_PATH or not all("!" <= letter <= "~" and letter != "#" for letter in text):
        raise Mistake(
            f"{quoted(text)} cannot be requested as written", f"up to {LONGEST_PATH} ASCII characters, others as %XX"
        )
    return text


def _page_path(value: Any) -> str:
    """The path of a file as it is called, or percent-encoded; `url_path` has what can be requested as it is."""
    text = scalar(value, "`/`")
    if "://" in text or not text.startswith("/") or "#" in text:
        return url_path(text)
    return _visible(text, "a path", LONGEST_PATH)


def _timeout(value: Any) -> float:
    seconds = float(units.TIMEOUT.parse(value))
    low, high = TIMEOUT_S
    if not low <= seconds <= high:
        raise Mistake(f"{quoted(value)} is out of range", f"a timeout is from {low:g}s to {high:g}s")
    return seconds


def lanes(value: Any) -> int:
    """Number of lanes, or AUTO for `auto`."""
    if value == "auto":
        return AUTO
    try:
        return units.whole(value, 1, MOST_LANES)
    except Mistake as mistake:
        near = "did you mean `auto`? " if str(value).casefold() == "auto" else ""
        hint = f"{near}{mistake.hint}; or `auto`, for as many as the host has room for"
        raise type(mistake)(str(mistake), hint) from None


def budget_s(value: Any) -> float:
    """Convert `15min` to 900.0. Raises Mistake."""
    return between(units.duration_s(value), BUDGET_S, value, "a budget is from 1s to 168h")


def _object_bytes(value: Any) -> int:
    if isinstance(value, str) and _TWO_SIZES.fullmatch(value):
        hint = "all objects have one size; files of your site (`content`, `paths`) can differ"
        raise Mistake(f"{quoted(value)} is more than one size", hint)
    hint = f"an object has 1B to {LARGEST_BYTES >> 20}MiB"
    return int(between(units.size_bytes(value), (1, LARGEST_BYTES), value, hint))


def _several(value: Any) -> Several:
    if isinstance(value, dict) and (hint := _several_meant(" ".join(map(str, value.values())))).startswith("did you"):
        raise units.NotOneValue("there is a mapping where one value is expected", hint)
    text = scalar(value, "`8 x 10kB`")
    if text == NO_FILES:
        return Several(0, 0)
    if not (parts := _SEVERAL.fullmatch(text)):
        raise Mistake(f"{quoted(text)} is not a number of files with their size", _several_meant(text))
    number = units.whole(parts[1], 1, MOST_FILES)
    try:
        return Several(number, _object_bytes(parts[2]))
    except Mistake as mistake:
        whole = mistake.hint.replace("did you mean `", f"did you mean `{number} x ")
        raise Mistake(str(mistake), whole) from None


def _several_meant(text: str) -> str:
    """Hint with the number and the size that are in a text in any order, or with the word for no files."""
    usual = f"`8 x 10kB`, or `{NO_FILES}`"
    if text.casefold() in units.NOTHING or re.match(r"0\b(?![.,])", text):
        return f"did you mean `{NO_FILES}`?"
    found = re.findall(r"([0-9.,]+)\s*([A-Za-z]*[bB]\b|[kKmM]\b)?", text)
    sizes = ["".join(each) for each in found if each[1]]
    counts = [number for number, unit in found if not unit]
    if len(sizes) != 1 or len(counts) > 1 or len(found) != len(sizes) + len(counts):
        return f"such as {usual}"
    return f"did you mean `{counts[0] if counts else 1} x {sizes[0]}`? or `{NO_FILES}`"


def _server_delay(value: Any) -> float:
    seconds = between(units.seconds(value), SERVER_DELAY_S, value, "a server's delay is from 1ms to 5s")
    if units.TIME.parse(value) * 1000 % 1:
        raise Mistake(f"{quoted(value)} is not a whole number of milliseconds", "nginx's timers count milliseconds")
    return seconds


def between(number: float, bounds: tuple[float, float], value: Any, hint: str) -> float:
    """Return the number if it lies within the bounds. Raises Mistake about `value`, its text."""
    if not bounds[0] <= number <= bounds[1]:
        raise Mistake(f"{quoted(value)} is out of range", hint)
    return number


def _margin(value: Any) -> float:
    return between(units.ratio(value), MARGIN, value, "a margin is from 0.1% to 50%")


def _confidence(value: Any) -> float:
    return between(units.ratio(value), CONFIDENCE, value, "a confidence is from 50% to 99.99%")


def tcp_congestion(value: Any) -> str:
    """Return the word if some Linux has it. Raises Mistake."""
    return choose(_right_cubic(value), TCP_CONGESTION, "a congestion control that Linux has")


def quic_congestion(value: Any, server: Server = NGINX) -> str:
    """Return the word if the server's QUIC has it. Raises Mistake."""
    text = _right_cubic(value)
    if text not in server.quic_congestion:
        raise Mistake(
            f"{server.name}'s QUIC does not support {quoted(text)}, only {server.quic_congestion[0]}",
            f"to change only TCP's, write {{tcp: bbr, quic: cubic}}; {OTHER_QUIC}",
        )
    return text


def _right_cubic(value: Any) -> str:
    """Return the word. Raises Misspelt, the same for TCP and QUIC, for a misspelling of a word that both have."""
    text = scalar(value, "`cubic`")
    if text not in TCP_CONGESTION and (near := respelt(text, TCP_CONGESTION)) in QUIC_CONGESTION:
        raise Misspelt(f"{quoted(text)} is not a congestion control", f"did you mean {quoted(near)}?")
    return text


def _size(value: Any) -> Size:
    return Size(choose(scalar(value, "`unlimited`"), [size.value for size in Size], "`unlimited` or `as-shipped`"))


def _version(value: Any) -> Version:
    text, allowed = scalar(value, "`h1`"), [version.value for version in Version]
    if (spelt_out := re.fullmatch(r"http\W?([123])(\.[01])?", text, re.IGNORECASE)) and text not in allowed:
        raise Mistake(f"{quoted(text)} is not a protocol", f"did you mean `h{spelt_out[1]}`? {listed(allowed)}")
    if text not in allowed and (more := re.match(r"(h[123])\W+(?!\W*h[123])", text, re.IGNORECASE)):
        raise Mistake(f"{quoted(text)} is not a protocol", f"did you mean `{more[1].casefold()}`? {listed(allowed)}")
    return Version(choose(text, allowed, "a protocol"))


Seconds = Annotated[float, _quantity(units.seconds, units.TIME)]
Timeout = Annotated[float, _quantity(_timeout, units.TIMEOUT)]
Budget = Annotated[float, _quantity(budget_s, units.DURATION)]
Lanes = Annotated[
    int,
    Written(lanes, {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MOST_LANES}]}),
]
Margin = Annotated[float, _quantity(_margin, units.RATIO)]
Confidence = Annotated[float, _quantity(_confidence, units.RATIO)]
Ratio = Annotated[float, _quantity(units.ratio, units.RATIO)]
BitsPerSecond = Annotated[int, _quantity(units.bits_per_second, units.RATE)]
ServerDelay = Annotated[float, _quantity(_server_delay, units.TIME)]
ObjectBytes = Annotated[int, _quantity(_object_bytes, units.SIZE)]
SeveralFiles = Annotated[
    Several, Written(_several, {"type": "string", "pattern": r"^(none|[1-9][0-9]* *x *.+)$", "examples": ["8 x 10kB"]})
]
Truth = Annotated[bool, Written(units.truth, {"type": "boolean"})]
Name = Annotated[
    str, Written(_name, {"type": "string", "pattern": r"^[^/#]+$", "minLength": 1, "maxLength": LONGEST_NAME})
]
NameUsed = Annotated[str, Written(lambda value: scalar(value, "`clean`"), {"type": "string"})]
RowName = Annotated[
    str,
    Written(
        _row_name,
        {"type": "string", "pattern": rf"^[^/#]+(/[^/#]+(/{_METRIC.pattern})?)?$", "minLength": 1,
         "maxLength": 3 * LONGEST_NAME + 2},
    ),
]  # fmt: skip
Heading = Annotated[
    str,
    Written(
        partial(_visible, what="a title", longest=LONGEST_TITLE),
        {"type": "string", "minLength": 1, "maxLength": LONGEST_TITLE},
    ),
]
Note = Annotated[
    str,
    Written(note, {"type": "string", "minLength": 1, "maxLength": LONGEST_NOTE}),
]
Title = Annotated[str, Written(_title, {"type": "string", "maxLength": LONGEST_TITLE})]
UrlPath = Annotated[str, Written(url_path, {"type": "string", "pattern": r"^/[!-~]*$", "maxLength": LONGEST_PATH})]
PagePath = Annotated[str, Written(_page_path, {"type": "string", "pattern": "^/[^#]*$", "maxLength": LONGEST_PATH})]
Protocol = Annotated[Version, Written(_version, {"enum": [version.value for version in Version]})]
Distribution = Annotated[str, choice(list(DISTRIBUTION_REACH), "a distribution")]
OfferCondition = Annotated[
    str, Written(_offer_condition, {"type": "string", "pattern": OFFER_PATTERN, "examples": ["rtt >= 80ms"]})
]
OverTcp = Annotated[
    str, choice([version.value for version in Version if version is not Version.H3], "a protocol over TCP")
]
QueueKind = Annotated[str, choice(list(KINDS), "a queue")]
Windows = Annotated[Size, Written(_size, {"enum": [size.value for size in Size]})]
TcpCongestion = Annotated[str, Written(tcp_congestion, {"enum": TCP_CONGESTION})]
QuicCongestion = Annotated[str, Written(quic_congestion, {"enum": QUIC_CONGESTION})]
