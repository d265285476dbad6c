"""Converts human units of matrix.yaml to SI: `100ms`, `30%`, `10mbit`, `1000`. Exact decimals, without guesses.

The spellings are tc's (tc(8), "PARAMETERS") if they are unambiguous. tc's `bps`, `kbps` and so on count bytes, which
few people expect, so they are rejected with both readings; so is a number without its unit.
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

MEGA = 10**6
USUAL_UNITS = {"delay": "ms", "jitter": "ms", "rate": "kbit", "loss": "%"}  # of their numbers without a unit
LEAST_KBIT = 1000  # a rate without a unit is in kbit from here on, in mbit below, and in bit from MEGA on
LONGEST_NUMBER = 30  # characters; more than any value needs, and few enough to print
MOST_PROPOSED = 8  # proposals for a text
MOST_LISTED = 30  # words
_LIKE_DIGITS = re.compile(r"[0-9OolI.]*[OolI][0-9OolI.]*")
_DIGIT_LIKE = str.maketrans("OolI", "0011")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:[, '\u2019][0-9]{3})+(?![, ]?[0-9])")
_PARTS = re.compile(rf"({NUMBER})(.*)", re.DOTALL)
_TRUTHS = {"yes": "true", "on": "true", "1": "true", "true": "true", "no": "false", "off": "false", "0": "false",
           "false": "false"}  # fmt: skip
NOTHING = {"null", "~", "none", "nothing", "empty", "off", "no", "false"}
UNLIMITED = {"unlimited", "infinite", "infinity", "inf", "max", "maximum"}
_SIGNS = "\u00b1+~\u2248 "  # plus or minus, about
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
_BYTES = re.compile(r"([kmgtKMGT])i?B")


class Mistake(ValueError):
    """A written value that cannot be used: the message, and in `hint` its replacement."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def harmless(text: object) -> str:
    """Text with its unprintable characters escaped."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def quoted(text: object) -> str:
    """Text between backticks, escaped and not longer than a word may be."""
    shown = str(text)
    return f"`{harmless(shown[:LONGEST_WORD])}{'...' if len(shown) > LONGEST_WORD else ''}`"


def is_number(value: Any) -> bool:
    """True for a number without a unit."""
    return isinstance(value, str) and re.fullmatch(NUMBER, value) is not None


def with_unit(key: str, value: Any) -> Any:
    """Value of a direction's key, a number with its usual unit; a share below 1 stays, as its unit is unclear."""
    if key not in USUAL_UNITS or not is_number(value) or (key == "loss" and Decimal(value) < 1):
        return value
    if key == "rate" and Decimal(value) >= MEGA:
        return f"{(Decimal(value) / MEGA).normalize():f}mbit"
    unit = "mbit" if key == "rate" and Decimal(value) < LEAST_KBIT else USUAL_UNITS[key]
    return f"{value}{unit}"


def listed(allowed: list[str]) -> str:
    """Hint with the allowed words."""
    if not allowed:
        return "there are none"
    more = f" and {len(allowed) - MOST_LISTED} more" if len(allowed) > MOST_LISTED else ""
    return f"allowed: {', '.join(harmless(word[:LONGEST_WORD]) for word in allowed[:MOST_LISTED])}{more}"


def meant(text: str, allowed: list[str]) -> str:
    """Hint for a word that is not allowed: the nearest allowed ones, and all of them."""
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
    """Words `h2` and `h3` of `h2 h3`; empty if the parts are not allowed words."""
    words = [word for word in re.split(r"[\s;+&|/,.\uff0c\u3001]+", text[: 2 * LONGEST_WORD]) if word != "and"]
    return words if len(words) > 1 and set(words) <= set(allowed) else []


def choose(text: str, allowed: list[str], what: str) -> str:
    """Return the text, which must be one of `allowed`. Raises Mistake with the nearest of them."""
    if text in allowed:
        return text
    raise Mistake(f"{quoted(text)} is not {what}", meant(text, allowed))


class NotOneValue(Mistake):
    """A mapping or a list in place of one value."""


def scalar(value: Any, example: str) -> str:
    """Return the text of a value that must be a scalar. Raises NotOneValue for a mapping or a list."""
    if isinstance(value, str):
        return value
    found = "a mapping" if isinstance(value, dict) else "a list"
    raise NotOneValue(f"there is {found} where one value is expected", f"such as {example}")


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of quantity: its name, an example, its units and other common names for them, each as factor to SI.

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
        """Regular expression (ECMA 262, for the JSON schema) of everything that `parse` accepts."""
        return f"^{NUMBER}(?:{'|'.join(self.factors)})$"

    def parse(self, value: Any) -> Decimal:
        """Parse a number and its unit to SI units. Raises Mistake with a hint for anything else."""
        text = scalar(value, f"`{self.example}`")
        if len(text) > LONGEST_NUMBER:
            raise Mistake(f"{quoted(text)} is not {self.what}", f"{self._among(text)}such as `{self.example}`")
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

    def _in_digits(self, text: str) -> str:
        """Quantity with digits in place of letters that look like them, as in `1Oms`; empty if that is none."""
        start = _LIKE_DIGITS.match(text)
        meant = start[0].translate(_DIGIT_LIKE) + text[start.end() :].replace(" ", "") if start else ""
        return meant if meant != text and self._reads(meant) else ""

    def _among(self, text: str) -> str:
        """Question with the quantity that a text begins with, or the only one in it; empty without any."""
        found = [word for word in text[: 2 * LONGEST_WORD].split() if self._reads(word)]
        is_clear = len(found) == 1 or (found and text.startswith(found[0]))
        return f"did you mean `{found[0]}`? " if is_clear else ""

    def _meant(self, number: str, unit: str) -> str:
        """Value with the most likely unit of this quantity; empty if it is unclear."""
        usual = self._usual
        if unit == "m" and "ms" in self.factors and "min" not in self.factors:
            return f"{number}ms"
        total = wording.understood(number + unit, self.words)
        if total is None:
            only = next(iter(self.factors)) if len(self.factors) == 1 and len(unit) == 1 else ""
            near = (nearest(unit, list(self.factors)) if unit.isalpha() else "") or only
            return number + usual[self.factors[near]] if near else ""
        same = usual.get(wording.understood(f"1{unit}", self.words) or total)
        return number + same if same else self._spelt(total)

    @property
    def _usual(self) -> dict[Decimal, str]:
        """First spelling of each unit."""
        return {self.factors[name]: name for name in reversed([*self.factors])}

    def _spelt(self, total: Decimal) -> str:
        """Quantity in SI units, written in the largest unit that makes it a whole number: `5400` is `90min`."""
        decimal = sorted((factor, name) for factor, name in self._usual.items() if not _OF_1024.match(name))
        whole_in = (each for each in reversed(decimal) if (total / each[0]) == (total / each[0]).to_integral_value())
        factor, name = next(whole_in, decimal[0])
        return f"{(total / factor).normalize():f}{name}"

    def _not_a_number(self, text: str) -> Mistake:
        if re.fullmatch(rf"-{NUMBER}.*", text):
            return Mistake(f"{quoted(text)} is negative", f"{self.what} begins at zero, such as `{self.example}`")
        if self.factors is RATE_UNITS and text.casefold() in NOTHING | UNLIMITED:
            return Mistake(
                f"{quoted(text)} is not {self.what}",
                "for a link without a limit remove the key, for an outage write `loss: 100%`",
            )
        if text.startswith(".") and re.fullmatch(NUMBER, number := f"0{text}"):
            return Mistake(f"{quoted(text)} has no unit", f"{self._offers(number)}?")
        offers = (self._in_digits(text), "0" + text, text.lstrip(_SIGNS))
        whole = next((each for each in offers if self._reads(each)), "")
        near = f"did you mean {quoted(whole)}? " if whole else self._among(text)
        if not near and (total := wording.clock(text)) is not None and self.words is wording.TIMES:
            near = f"did you mean `{self._spelt(total)}`? "
        return Mistake(f"{quoted(text)} is not {self.what}", f"{near}a number and its unit, such as `{self.example}`")

    def _not_a_unit(self, number: str, unit: str) -> Mistake:
        text = number + unit
        allowed = f"units: {self.named}"
        if not unit:
            return Mistake(f"{quoted(text)} has no unit", f"{self._offers(number)}?")
        if self.factors is RATE_UNITS and (found := _of_bytes(number, unit.strip())):
            return found
        if _THOUSANDS.match(text):
            return Mistake(
                f"{quoted(text)} is not {self.what}", self._without_commas(re.sub("[, '\u2019](?=[0-9]{3})", "", text))
            )
        near = self._in_digits(text) or self._meant(number, unit.strip())
        if re.search(r"\s\S", unit.strip()) and not near and unit[0] != ",":
            return Mistake(f"{quoted(text)} is more than one value", self._among(text) + self._of_more(unit))
        if (total := wording.clock(text)) is not None and self.words is wording.TIMES:
            return Mistake(f"{quoted(text)} is not {self.what}", f"did you mean `{self._spelt(total)}`? {allowed}")
        if self.factors is RATIO_UNITS and (one := re.fullmatch(rf"({NUMBER}) ?/ ?({NUMBER})", text)) and float(one[2]):
            share = (Decimal(one[1]) / Decimal(one[2]) * 100).quantize(Decimal("0.0001")).normalize()
            return Mistake(f"{quoted(text)} is not {self.what}", f"did you mean `{share:f}%`? {allowed}")
        if unit[0] in "eE.,_0123456789":
            near = self._without_comma(text) or self._without_power(text)
            hint = f"{near}plain digits and a unit, such as `{self.example}`"
            return Mistake(f"{quoted(text)} is not {self.what}", hint)
        hint = f"did you mean `{near}`? {self._of_bits(number, unit)}{allowed}" if near else allowed
        return Mistake(f"{quoted(text)} is not {self.what}: {quoted(unit)} is not a unit of it", hint)

    def _of_bits(self, number: str, unit: str) -> str:
        """The size in bytes of a size that may be in bits, such as `8Mb`; empty for others."""
        if self.factors is not SIZE_UNITS or not re.fullmatch("[kKMG]b", unit.strip()):
            return ""
        size = self.parse(self._meant(number, unit.strip())) / 8
        return f"or in bits `{self._spelt(size)}`? " if size == size.to_integral_value() else ""

    def _of_more(self, rest: str) -> str:
        """Hint for what follows the first of several values."""
        if re.search("[-=]>|\u2192", rest):
            return "what changes during a trial is below `at`"
        has_second = self.factors in (TIME_UNITS, RATIO_UNITS) and re.search("[0-9]", rest)
        return "tc's second number has its own key here" if has_second else "one value stands here"

    def _without_commas(self, plain: str) -> str:
        """Hint for thousands that commas or spaces separated, of which `plain` is the rest."""
        try:
            self.parse(plain)
        except Mistake as mistake:
            return mistake.hint if "did you mean" in mistake.hint else f"without commas: {mistake.hint}"
        return f"did you mean {quoted(plain)}?"

    def _without_comma(self, text: str) -> str:
        """Question with the likely meaning of `0,5 %`, with a point."""
        parts = _PARTS.fullmatch(text.replace(",", ".", 1))
        if parts is None or not parts[2]:
            return ""
        near = parts[0] if parts[2] in self.factors else self._meant(parts[1], parts[2].strip())
        return f"did you mean {quoted(near)}? " if near else ""

    def _without_power(self, text: str) -> str:
        """Question with the plain number, and likely units, of `1e-3`; empty for others."""
        power = re.fullmatch(r"[0-9.]+[eE][+-]?[0-9]{1,2}", text)
        return f"did you mean {self._offers(f'{Decimal(text):f}')}? " if power else ""

    def _offers(self, number: str) -> str:
        if self.factors in (SIZE_UNITS, RATE_UNITS) and Decimal(number) >= MEGA:
            return self._spelt(Decimal(number))  # bytes or bits
        offers = [f"{number}{unit}" for unit in self.likely]
        if self.factors is RATIO_UNITS and 0 < Decimal(number) <= 1:
            offers.append(f"{(Decimal(number) * 100).normalize():f}%")
        return " or ".join(offers)


def _of_bytes(number: str, unit: str) -> Mistake | None:
    """The mistake of a rate in tc's `bps`, or in bytes without a time; None for other units."""
    if found := _TC_BYTES.fullmatch(unit):
        reason = f"{unit} counts bytes per second in tc, and bits nearly everywhere else"
    elif found := _BYTES.fullmatch(unit):
        reason = "a rate is in bits per second"
    else:
        return None
    prefix = (found[1] or "").lower()
    hint = f"`{number}{prefix}bit` for bits, `{Decimal(number) * 8:f}{prefix}bit` for bytes"
    return Mistake(f"{quoted(number + unit)} is ambiguous: {reason}", hint)


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
    """Convert `100ms` to 0.1. Raises Mistake."""
    return float(TIME.parse(value))


def duration_s(value: Any) -> float:
    """Convert `15min` to 900.0; for waiting times, so in longer units than `seconds`. Raises Mistake."""
    return float(DURATION.parse(value))


def ratio(value: Any) -> float:
    """Convert `30%` to 0.3. Raises Mistake above 100 %."""
    parsed = RATIO.parse(value)
    if parsed > 1:
        raise Mistake(f"{quoted(value)} is above 100%", "a share from 0% to 100%")
    return float(parsed)


def bits_per_second(value: Any) -> int:
    """Convert `10mbit` to 10000000. Raises Mistake for fractions of a bit."""
    parsed = RATE.parse(value)
    if parsed != parsed.to_integral_value():
        raise Mistake(f"{quoted(value)} is not a whole number of bits per second", "such as `10mbit` or `2500kbit`")
    return int(parsed)


def size_bytes(value: Any) -> int:
    """Convert `15kB` to 15000. Raises Mistake for fractions of a byte."""
    parsed = SIZE.parse(value)
    if grouped := re.fullmatch(r"([0-9]{1,3})\.000([A-Za-z]+)", value):
        larger = {"B": "kB", "kB": "MB"}.get(grouped[2], grouped[2])
        hint = f"write `{grouped[1]}{grouped[2]}`, or `{grouped[1]}{larger}` if the point separates thousands"
        raise Mistake(f"{quoted(value)} has two meanings", hint)
    if parsed != parsed.to_integral_value():
        raise Mistake(f"{quoted(value)} is not a whole number of bytes", "such as `15kB` or `1500B`")
    return int(parsed)


def whole(value: Any, low: int, high: int) -> int:
    """Convert `1000` to 1000. Decimal digits only: `010`, `0x10`, `1_000` and `1e3` are ambiguous."""
    text = scalar(value, f"`{low}`")
    bounds = f"a whole number from {low} to {high}"
    if len(text) > LONGEST_NUMBER or not _WHOLE.fullmatch(text):
        plain = re.sub(r"[_ ]|,(?=[0-9]{3}(?:,|$))", "", text)
        counted = re.fullmatch(r"([1-9][0-9]{0,19})\s*(?:x|p|pkts?|times|[a-z]{3,}s)", text)
        counted = counted or re.fullmatch(r"([1-9][0-9]{0,19})\.0+", text)
        near = counted[1] if counted else plain.lstrip("0") if re.fullmatch(r"[0-9]{1,20}", plain) else ""
        if grouped := re.fullmatch(r"([1-9][0-9]{0,2})\.000", text):
            raise Mistake(f"{quoted(text)} is not a plain number", f"did you mean `{grouped[1]}000` or `{grouped[1]}`?")
        near = near or (str(int(text)) if text.isdecimal() and len(text) < LONGEST_NUMBER else "")
        raise Mistake(f"{quoted(text)} is not a plain number", f"did you mean `{near}`? {bounds}" if near else bounds)
    if not low <= int(text) <= high:
        raise Mistake(f"{text} is out of range", bounds)
    return int(text)


def truth(value: Any) -> bool:
    """Convert `true` or `false` to a bool; YAML's old `yes`, `on` and `no` are rejected."""
    text = scalar(value, "`true`")
    if (meant_ := _TRUTHS.get(text.casefold())) and text != meant_:
        raise Mistake(f"{quoted(text)} is not true or false", f"did you mean `{meant_}`?")
    return choose(text, ["true", "false"], "true or false") == "true"
