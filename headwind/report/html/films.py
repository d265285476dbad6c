"""Prepares the filmstrips of a condition's captured page loads: what each window showed at the same moments."""

from __future__ import annotations

import base64
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind.arm import Arm
from headwind.report.html import charts
from headwind.run.captures import CapturedTrial

MOST_MOMENTS = 8
STEPS = (1, 2, 5)  # times a power of ten
JPEG = b"\xff\xd8\xff"  # the first bytes of a JPEG file


@dataclass(frozen=True, slots=True)
class Filmstrip:
    """The pictures of one arm, as addresses of images; empty before the first one."""

    arm: Arm
    icon: Markup
    pictures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Films:
    """The filmstrips of a condition, and their moments in s since the start of the navigation."""

    moments_s: tuple[float, ...]
    strips: tuple[Filmstrip, ...]


def films(captured: Iterable[tuple[Arm, CapturedTrial]]) -> Films | None:
    """The filmstrips of captured trials, to the last change of any; None if none has pictures."""
    known = [(arm, trial.film) for arm, trial in captured if any(each.startswith(JPEG) for each in trial.film.values())]
    if not known:
        return None
    moments_s = moments(max(max(film) for _, film in known))
    strips = (Filmstrip(arm, charts.icon(arm.name), tuple(_pictures(film, moments_s))) for arm, film in known)
    return Films(moments_s, tuple(strips))


def moments(end_s: float) -> tuple[float, ...]:
    """At most MOST_MOMENTS moments in even steps, the last of which is not before `end_s`."""
    end_s = max(end_s, 0.001)
    least_s = end_s / MOST_MOMENTS
    power = 10.0 ** math.floor(math.log10(least_s))
    step_s = next(step * power for step in (*STEPS, 10) if step * power >= least_s * (1 - 1e-9))
    return tuple(round(number * step_s, 6) for number in range(1, math.ceil(end_s / step_s - 1e-9) + 1))


def _pictures(film: Mapping[float, bytes], moments_s: Sequence[float]) -> Iterable[str]:
    times_s = [at_s for at_s, picture in film.items() if picture.startswith(JPEG)]
    for moment_s in moments_s:
        shown = bisect_right(times_s, moment_s)
        picture = film[times_s[shown - 1]] if shown else b""
        yield f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}" if picture else ""
