"""Human units, as matrix.yaml has them, to SI: `100ms`, `30%`, `10mbit`, `1000`. Exact decimals, nothing guessed.

The spellings are tc's (tc(8), "PARAMETERS") where they can mean only one thing. tc's `bps`, `kbps` and so on count
bytes, which few people expect, so they are refused with both readings; a number without its unit is refused, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from headwind.matrix import wording
from headwind.matrix.spelling import LONGEST_WORD, containing, nearest
from headwind.matrix.wording import NUMBER

LONGEST_NUMBER = 30  # characters; more than any value needs, and few enough to print
MOST_PROPOSED = 8  # words that a text may stand for
MOST_LISTED = 30  # words
_PARTS = re.compile(rf"({NUMBER})(.*)", re.DOTALL)
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")

_SECONDS = {"ns": "1e-9", "us": "1e-6", "ms": "1e-3", "s": "1"}
_TIME_SPELLINGS = {"nsec": "ns", "nsecs": "ns", "usec": "us", "usecs": "us", "msec": "ms", "msecs": "ms", "sec": "s",
                   "secs": "s"}  # fmt: skip
TIME_UNITS = {name: Decimal(value) for name, value in _SECONDS.items()} | {
    spelling: Decimal(_SECONDS[name]) for spelling, name in _TIME_SPELLINGS.items()
}
RATIO_UNITS = {"%": Decimal("0.01")}
RATE_UNITS = {"bit": Decimal(1)} | {
    prefix + step + "bit": Decimal(base) ** (power + 1)
    for step, base in (("", 1000), ("i", 1024))
    for power, letter in enumerate("kmgt")
    for prefix in (letter, letter.upper())
}
_OF_1024 = re.compile(r"[KMGTkmgt]i(?:bit|B)")
_TC_BYTES = re.compile(r"([kmgt]i?)?bps", re.IGNORECASE)


class Mistake(ValueError):
    """A written value that cannot be used: what is wrong with it, and in `hint` what to write instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def harmless(text: object) -> str:
    """The text with its unprintable characters escaped."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def quoted(text: object) -> str:
    """The text between backticks, harmless and not longer than a word may be."""
    shown = str(text)
    return f"`{harmless(shown[:LONGEST_WORD])}{'...' if len(shown) > LONGEST_WORD else ''}`"


def listed(allowed: list[str]) -> str:
    """The words that are allowed, as a hint."""
    if not allowed:
        return "there are none"
    more = f" and {len(allowed) - MOST_LISTED} more" if len(allowed) > MOST_LISTED else ""
    return f"allowed: {', '.join(harmless(word[:LONGEST_WORD]) for word in allowed[:MOST_LISTED])}{more}"


def meant(text: str, allowed: list[str]) -> str:
    """The hint for a word that is none of those that are allowed: the nearest of them, and what there is."""
    if words := _joined_words(text, allowed):
        return f"is a comma missing? {', '.join(words)}"
    near = nearest(text, allowed)
    several = [] if near else containing(text, allowed)
    if 1 < len(several) <= MOST_PROPOSED:
        return f"did you mean {', '.join(map(quoted, several[:-1]))} or {quoted(several[-1])}?"
    near = near or (several[0] if len(several) == 1 else "")
    if not near:
        return listed(allowed)
    shown = allowed if near in allowed[:MOST_LISTED] else [near, *(word for word in allowed if word != near)]
    return f"did you mean {quoted(near)}? {listed(shown)}"


def _joined_words(text: str, allowed: list[str]) -> list[str]:
    """`h2` and `h3` of `h2 h3`; empty if the parts are not words that are allowed."""
    words = [word for word in re.split(r"[\s;+&|]+", text[: 2 * LONGEST_WORD]) if word != "and"]
    return words if len(words) > 1 and set(words) <= set(allowed) else []


def choose(text: str, allowed: list[str], what: str) -> str:
    """The text, which must be one of `allowed`. Raises Mistake with the nearest of them."""
    if text in allowed:
        return text
    raise Mistake(f"{quoted(text)} is not {what}", meant(text, allowed))


class NotOneValue(Mistake):
    """A mapping or a list in the place of one value."""


def scalar(value: Any, example: str) -> str:
    """The text of a value that must be a scalar. Raises NotOneValue for a mapping or a list."""
    if isinstance(value, str):
        return value
    found = "a mapping" if isinstance(value, dict) else "a list"
    raise NotOneValue(f"there is {found} where one value is expected", f"such as {example}")


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of quantity: its name, an example, its units and what people write for them, each as factor to SI.

    `named` are the units that a hint lists, `likely` those that it offers for a bare number.
    """

    what: str
    example: str
    factors: Mapping[str, Decimal]
    words: Mapping[str, Decimal]
    named: str
    likely: tuple[str, ...]

    @property
    def pattern(self) -> str:
        """A regular expression (ECMA 262, for the JSON schema) of everything that `parse` can read."""
        return f"^{NUMBER}(?:{'|'.join(self.factors)})$"

    def parse(self, value: Any) -> Decimal:
        """The value in SI units. Raises Mistake, with what to write instead, for anything but number and unit."""
        text = scalar(value, f"`{self.example}`")
        if len(text) > LONGEST_NUMBER:
            raise Mistake(f"{quoted(text)} is not {self.what}", f"such as `{self.example}`")
        parts = _PARTS.fullmatch(text)
        if parts is None:
            raise self._not_a_number(text)
        number, unit = parts.groups()
        if unit not in self.factors:
            raise self._not_a_unit(number, unit)
        return Decimal(number) * self.factors[unit]

    def _reads(self, text: str) -> bool:
        parts = _PARTS.fullmatch(text)
        return parts is not None and parts[2] in self.factors

    def _meant(self, number: str, unit: str) -> str:
        """The value with the unit of this quantity that was most likely meant; empty if there is no telling."""
        usual = self._usual
        total = wording.understood(number + unit, self.words)
        if total is None:
            only = next(iter(self.factors)) if len(self.factors) == 1 and len(unit) == 1 else ""
            near = (nearest(unit, list(self.factors)) if unit.isalpha() else "") or only
            return number + usual[self.factors[near]] if near else ""
        same = usual.get(wording.understood(f"1{unit}", self.words) or total)
        return number + same if same else self._spelt(total)

    @property
    def _usual(self) -> dict[Decimal, str]:
        """Of several spellings of a unit the first."""
        return {self.factors[name]: name for name in reversed([*self.factors])}

    def _spelt(self, total: Decimal) -> str:
        """A quantity in SI units in the largest unit of which it is a whole number: `5400` is `90min`."""
        decimal = sorted((factor, name) for factor, name in self._usual.items() if not _OF_1024.match(name))
        factor, name = next((each for each in reversed(decimal) if not total % each[0]), decimal[0])
        return f"{(total / factor).normalize():f}{name}"

    def _not_a_number(self, text: str) -> Mistake:
        if re.fullmatch(rf"-{NUMBER}.*", text):
            return Mistake(f"{quoted(text)} is negative", f"{self.what} begins at zero, such as `{self.example}`")
        near = f"did you mean {quoted('0' + text)}? " if self._reads("0" + text) else ""
        return Mistake(f"{quoted(text)} is not {self.what}", f"{near}a number and its unit, such as `{self.example}`")

    def _not_a_unit(self, number: str, unit: str) -> Mistake:
        text = number + unit
        allowed = f"units: {self.named}"
        if not unit:
            return Mistake(f"{quoted(text)} has no unit", f"{self._offers(number)}?")
        if self.factors is RATE_UNITS and (bytes_unit := _TC_BYTES.fullmatch(unit.strip())):
            prefix = (bytes_unit[1] or "").lower()
            as_bytes = f"{Decimal(number) * 8:f}{prefix}bit"
            return Mistake(
                f"{quoted(text)} is ambiguous: {bytes_unit[0]} counts bytes per second in tc, "
                "and bits nearly everywhere else",
                f"`{number}{prefix}bit` for bits, `{as_bytes}` for bytes",
            )
        near = self._meant(number, unit.strip())
        if re.search(r"\s\S", unit.strip()) and not near and unit[0] != ",":
            return Mistake(
                f"{quoted(text)} is more than one value", "what tc takes as a second number has its own key here"
            )
        if unit[0] in "eE.,_0123456789":
            hint = f"{self._without_comma(text)}plain digits and a unit, such as `{self.example}`"
            return Mistake(f"{quoted(text)} is not {self.what}", hint)
        hint = f"did you mean `{near}`? {allowed}" if near else allowed
        return Mistake(f"{quoted(text)} is not {self.what}: {quoted(unit)} is not a unit of it", hint)

    def _without_comma(self, text: str) -> str:
        """What `0,5 %` was most likely meant as, with a point."""
        parts = _PARTS.fullmatch(text.replace(",", ".", 1))
        if parts is None or not parts[2]:
            return ""
        near = parts[0] if parts[2] in self.factors else self._meant(parts[1], parts[2].strip())
        return f"did you mean {quoted(near)}? " if near else ""

    def _offers(self, number: str) -> str:
        offers = [f"{number}{unit}" for unit in self.likely]
        if self.factors is RATIO_UNITS and 0 < Decimal(number) <= 1:
            offers.append(f"{(Decimal(number) * 100).normalize():f}%")
        return " or ".join(offers)


TIME = Unit("a time", "100ms", TIME_UNITS, wording.TIMES, "ns, us, ms, s", ("ms", "s"))
RATIO = Unit("a share in percent", "30%", RATIO_UNITS, wording.SHARES, "%", ("%",))
DURATION = Unit(
    "a duration", "15min", {name: Decimal(value) for name, value in (("s", 1), ("min", 60), ("h", 3600))},
    wording.TIMES, "s, min, h", ("s", "min", "h"),
)  # fmt: skip
SIZE_UNITS = {name: Decimal(factor) for name, factor in (("B", 1), ("kB", 1000), ("MB", 1000**2), ("KiB", 1024),
                                                         ("MiB", 1024**2))}  # fmt: skip
SIZE = Unit("a size", "15kB", SIZE_UNITS, wording.SIZES, "B, kB, MB (thousands), KiB, MiB (1024s)", ("B", "kB"))
TIMEOUT = replace(TIME, factors={**TIME.factors, **DURATION.factors}, example="60s", named="ms, s, min, h")
RATE = Unit("a rate", "10mbit", RATE_UNITS, wording.RATES, "bit, kbit, mbit, gbit, tbit", ("mbit", "kbit"))


def seconds(value: Any) -> float:
    """`100ms` -> 0.1."""
    return float(TIME.parse(value))


def duration_s(value: Any) -> float:
    """`15min` -> 900.0; for what people wait for, so in longer units than `seconds`."""
    return float(DURATION.parse(value))


def ratio(value: Any) -> float:
    """`30%` -> 0.3. Raises Mistake above 100 %."""
    parsed = RATIO.parse(value)
    if parsed > 1:
        raise Mistake(f"{quoted(value)} is above 100%", "a share from 0% to 100%")
    return float(parsed)


def bits_per_second(value: Any) -> int:
    """`10mbit` -> 10000000. Raises Mistake for fractions of a bit."""
    parsed = RATE.parse(value)
    if parsed != parsed.to_integral_value():
        raise Mistake(f"{quoted(value)} is not a whole number of bits per second", "such as `10mbit` or `2500kbit`")
    return int(parsed)


def size_bytes(value: Any) -> int:
    """`15kB` -> 15000. Raises Mistake for fractions of a byte."""
    parsed = SIZE.parse(value)
    if parsed != parsed.to_integral_value():
        raise Mistake(f"{quoted(value)} is not a whole number of bytes", "such as `15kB` or `1500B`")
    return int(parsed)


def whole(value: Any, low: int, high: int) -> int:
    """`1000` -> 1000. Decimal digits only: `010`, `0x10`, `1_000` and `1e3` mean something else to each reader."""
    text = scalar(value, f"`{low}`")
    bounds = f"a whole number from {low} to {high}"
    if len(text) > LONGEST_NUMBER or not _WHOLE.fullmatch(text):
        plain = re.sub(r"[_, ]", "", text)
        counted = re.fullmatch(r"([1-9][0-9]{0,19})\s*(?:x|times|[a-z]{3,}s)", text)
        near = counted[1] if counted else plain.lstrip("0") if re.fullmatch(r"[0-9]{1,20}", plain) else ""
        raise Mistake(f"{quoted(text)} is not a plain number", f"did you mean `{near}`? {bounds}" if near else bounds)
    if not low <= int(text) <= high:
        raise Mistake(f"{text} is out of range", bounds)
    return int(text)


def truth(value: Any) -> bool:
    """`true` or `false`; YAML's old `yes`, `on` and `no` are refused."""
    return choose(scalar(value, "`true`"), ["true", "false"], "true or false") == "true"
