"""Conditions on which nginx offers HTTP/3, by what the kernel knows of a connection over TCP at its answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

VARIABLES = {"rtt": "$tcpinfo_rtt", "rttvar": "$tcpinfo_rttvar"}  # in microseconds
LARGEST_US = 100_000_000
_UNITS_US = {"us": 1, "ms": 1000, "s": 1_000_000}
PATTERN = r"^(rtt|rttvar)\s*(>=|<)\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(us|ms|s)$"
_WRITTEN = re.compile(PATTERN)


@dataclass(frozen=True, slots=True)
class OfferIf:
    """A condition such as `rtt >= 80ms`: at least (`above`) or below a threshold. `quantity` is in VARIABLES."""

    quantity: str
    threshold_us: int
    above: bool = True

    def __post_init__(self) -> None:
        if self.quantity not in VARIABLES or not 0 < self.threshold_us <= LARGEST_US:
            raise ValueError(f"{self.quantity} can be compared with 1 us to {LARGEST_US // 1_000_000} s")

    @classmethod
    def parse(cls, text: str) -> OfferIf:
        """Read what str() writes. Raises ValueError."""
        found = _WRITTEN.fullmatch(text.strip())
        if not found:
            raise ValueError(f"{text!r} is not of the form `rtt >= 80ms`")
        return cls(found[1], round(float(found[3]) * _UNITS_US[found[4]]), found[2] == ">=")

    def __str__(self) -> str:
        unit = "us" if self.threshold_us % 1000 else "ms"
        return f"{self.quantity} {'>=' if self.above else '<'} {self.threshold_us // _UNITS_US[unit]}{unit}"

    def holds(self, value_us: int) -> bool:
        """Whether HTTP/3 is offered if the quantity has this value."""
        return (value_us >= self.threshold_us) == self.above

    def nginx_map(self, name: str, offer: str) -> str:
        """A `map` of nginx that sets `$name` to `offer` (in nginx's syntax) if the condition holds, else to nothing.

        Over QUIC the variables of TCP are empty: nothing as well.
        """
        reached = f'"~^({"|".join(at_least(self.threshold_us))})$"'
        entries = [(reached, offer), ("default", '""')] if self.above else [
            ('""', '""'), (reached, '""'), ("default", offer),
        ]  # fmt: skip
        body = "".join(f"    {key} {value};\n" for key, value in entries)
        return f"map {VARIABLES[self.quantity]} ${name} {{\n{body}}}\n"


def at_least(least: int) -> Iterator[str]:
    """Regular expressions that together match the decimal integers from `least` on, written without leading zeros."""
    digits = str(least)
    head = digits.rstrip("0")
    yield f"[1-9][0-9]{{{len(digits)},}}"  # longer ones
    for place, digit in enumerate(head):  # equal up to a place, and then larger
        if digit < "9":
            yield f"{head[:place]}[{int(digit) + 1}-9]{_any(len(digits) - place - 1)}"
    yield f"{head}{_any(len(digits) - len(head))}"


def _any(count: int) -> str:
    return f"[0-9]{{{count}}}" if count else ""
