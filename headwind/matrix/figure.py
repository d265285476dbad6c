"""What an article printed about an arm: one figure, or several statistics of its runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from headwind.matrix import units
from headwind.matrix.mistakes import Slip, raise_any
from headwind.matrix.units import Mistake, choose
from headwind.matrix.values import Written, between

UNFINISHED = "unfinished"  # in the place of a figure
STATISTICS = ("mean", "median", "p90", "p99")
SECONDS, BPS = (1e-6, 7 * 86_400.0), (1.0, 1e12)


@dataclass(frozen=True, slots=True)
class Figure:
    """What an article printed: in `s` or in `bps`; None: no result, of whatever it would have been."""

    unit: str
    value: float | None


def _figure(value: Any) -> Figure:
    """A time, a rate, or `unfinished`. Raises Mistake."""
    if value == UNFINISHED:
        return Figure("", None)
    otherwise = f"(`{UNFINISHED}` where there was no result)"
    is_rate = isinstance(value, str) and re.fullmatch(units.RATE.pattern, value) is not None
    try:
        number = units.bits_per_second(value) if is_rate else units.seconds(value)
    except Mistake as mistake:
        raise Mistake(str(mistake), f"{mistake.hint} {otherwise}") from None
    bounds, hint = (BPS, "rate is from 1bit to 1tbit") if is_rate else (SECONDS, "time is from 1us to 604800s")
    return Figure("bps" if is_rate else "s", between(number, bounds, value, f"a published {hint} {otherwise}"))


def _figures(value: Any) -> dict[str, Figure]:
    """By statistic, or under "" where there is but one figure. Raises Mistake or Slips."""
    if not isinstance(value, dict):
        return {"": _figure(value)}
    found, slips = {}, []
    for name, written in value.items():
        try:
            found[choose(name, list(STATISTICS), "a statistic of an article's runs")] = _figure(written)
        except Mistake as mistake:
            slips.append(Slip((name,), mistake, at_key=name not in STATISTICS))
    if not value:
        slips.append(Slip((), Mistake("there is no figure here", "such as {mean: 862ms, p90: 1.766s}")))
    raise_any(slips)
    return found


_FIGURE = {
    "type": "string", "pattern": f"{units.TIME.pattern}|{units.RATE.pattern}|^{UNFINISHED}$",
    "examples": ["406ms", UNFINISHED],
}  # fmt: skip
PublishedFigures = Annotated[
    dict[str, Figure],
    Written(
        _figures,
        {"anyOf": [_FIGURE, {"type": "object", "properties": dict.fromkeys(STATISTICS, _FIGURE),
                             "additionalProperties": False, "minProperties": 1}]},
    ),
]  # fmt: skip
