"""Quantities as people write them and matrix.yaml does not: `1.5 sec`, `1h30min`, `10 Mbit/s`. For hints only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise

LEAST_IN_PIECES = 60  # SI units of the first of several pieces: `1h 30min` is one time, `100ms 10ms` are two
NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
_PIECE = re.compile(rf"({NUMBER})\s*([^\s0-9.]+)\s*")
_PIECES = re.compile(rf"(?:{_PIECE.pattern})+")
_PER_SECOND = re.compile(r"/(?:s|sec|second)$")
_THOUSANDS = (("k", "kilo"), ("m", "mega"), ("g", "giga"), ("t", "tera"))
_STEPS = {"": Decimal(1)} | {
    step: factor for power, steps in enumerate(_THOUSANDS, start=1)
    for step, factor in (*((step, Decimal(1000) ** power) for step in steps), (f"{steps[0]}i", Decimal(1024) ** power))
}  # fmt: skip


def _with_steps(*stems: str, factor: int | Decimal = 1) -> dict[str, Decimal]:
    return {step + stem: times * factor for step, times in _STEPS.items() for stem in stems if step + stem}


# Words in small letters, without a plural's s and `/s`, and the factor of each to SI. `m` is a minute: no time is in
# metres. Of rates, `mb/s` counts bits and `MB/s` bytes, as most programs have it.
TIMES = {
    word: Decimal(factor) for factor, words in {
        "1e-9": "ns nsec nanosec nanosecond", "1e-6": "us usec usecond \u00b5s \u03bcs micro microsec microsecond",
        "1e-3": "ms msec msecond milli millisec millisecond", "1": "s sec second", "60": "m min minute",
        "3600": "h hr hour", "86400": "d day", "604800": "w week",
    }.items() for word in words.split()
}  # fmt: skip
SHARES = {"%": Decimal("0.01"), "percent": Decimal("0.01"), "pct": Decimal("0.01"), "p": Decimal("0.01"),
          "\u2030": Decimal("0.001")}  # fmt: skip
_BYTE_RATES = _with_steps("B/s", "B/sec", "o/s", factor=8)
RATES = _with_steps("", "bit", "b") | _with_steps("byte", factor=8) | _BYTE_RATES
RATES |= {word[0].upper() + word[1:]: factor for word, factor in _BYTE_RATES.items()}
SIZES = _with_steps("", "byte", "b", "o", "octet") | _with_steps("bit", factor=Decimal("0.125"))


def understood(text: str, words: Mapping[str, Decimal]) -> Decimal | None:
    """Quantity in SI units, in one piece or as `1h30min`; None for anything else."""
    if not _PIECES.fullmatch(text):
        return None
    pieces = [(Decimal(number), _factor(word, words)) for number, word in _PIECE.findall(text)]
    factors = [factor for _, factor in pieces if factor is not None]
    falling = all(one > other for one, other in pairwise(factors))
    if len(factors) < len(pieces) or not falling or (len(pieces) > 1 and factors[0] < LEAST_IN_PIECES):
        return None
    return sum((number * factor for number, factor in pieces if factor is not None), Decimal(0))


def clock(text: str) -> Decimal | None:
    """Seconds of `1:30`, `0:03:00` and `1h30`; None for other texts."""
    if hours := re.fullmatch(r"([0-9]{1,3}) ?h([0-5][0-9])", text):
        return Decimal(3600 * int(hours[1]) + 60 * int(hours[2]))
    if not re.fullmatch(r"[0-9]{1,2}(?::[0-5][0-9]){1,2}", text):
        return None
    total = 0
    for part in text.split(":"):
        total = 60 * total + int(part)
    return Decimal(total)


def _factor(word: str, words: Mapping[str, Decimal]) -> Decimal | None:
    plain = _PER_SECOND.sub("", word.casefold())
    known = (word, plain, plain.removesuffix("s") if len(plain) > 2 else "")
    return next((words[each] for each in known if each in words), None)
