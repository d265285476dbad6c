"""Marks of trials: a shape for every arm, an arrow if it was stopped, a cross if it failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headwind import format as units
from headwind.arm import PLAIN, TWINS, Arm, Role
from headwind.metric import Better
from headwind.observed import Kind, Observed, from_best
from headwind.report.html.charts.svg import Point, element, joined, number, path, stamps


@dataclass(frozen=True, slots=True)
class DotSeries:
    """The trials of one arm in block order; None for a block in which it gave no data."""

    arm: str
    label: str
    marks: Sequence[Observed | None]
    better: Better = Better.LESS

    def values(self, kind: Kind = Kind.FINISHED) -> list[float]:
        """Values of the marks of this kind, in block order."""
        return [mark.known for mark in self.marks if mark and mark.kind is kind]

    @property
    def ordered(self) -> list[Observed]:
        """All marks, from the best to the worst."""
        return from_best((mark for mark in self.marks if mark), self.better)

    @property
    def trials(self) -> int:
        """Number of marks."""
        return sum(mark is not None for mark in self.marks)

    @property
    def unfinished(self) -> int:
        """Number of marks without a time."""
        return self.trials - len(self.values())


UNFINISHED = (Kind.NOTHING, Kind.BOUND)  # from the top


def name_of(kind: Kind, series: Iterable[DotSeries], quantity: str) -> str:
    """Name of a row of unfinished trials: "failed", or the bound that holds for all of them."""
    if kind is Kind.NOTHING:
        return "failed"
    bounds = [mark for item in series for mark in item.ordered if mark.kind is kind]
    widest = Observed(min(mark.low for mark in bounds), max(mark.high for mark in bounds))
    return units.observed_text(quantity, widest)


_SHAPES = {"h1": "circle", "h2": "square", "h3": "triangle", "c1": "circle", "c2": "square", "c3": "triangle"}


def stamp(name: str, points: Iterable[Point], radius: float, *, hollow: bool | None = None) -> Markup:
    """The shape of an arm or a curve at every point, as one path; by default filled for plain arms only.

    Circle, square, triangle for h1, h2, h3 and for the curves c1, c2, c3; a diamond for every other curve and for the
    slower twin.
    """
    family, dash, _ = name.partition("-")
    is_slower = name.endswith(f"-{Role.SLOWER}")  # no other arm has such a name: headwind/matrix/arms.py
    shape = "diamond" if is_slower else _SHAPES.get(family, "diamond")
    hollow = bool(dash) if hollow is None else hollow
    if shape == "circle" and not hollow:  # a line of no length with round ends: the shortest
        return path(f"{name} round", stamps(points, "h0"), stroke_width=2 * radius)
    if shape == "square" and not hollow:  # of no length it would have no ends on paper (ISO 32000-1, 8.5.3.2)
        return path(f"{name} square", stamps(points, "h.1", (0.1, 0.0)), stroke_width=1.8 * radius)
    (start_x, start_y), draw = _outline(shape, radius)
    moved = ((x + start_x, y + start_y) for x, y in points)
    return path(f"{name} {'hollow' if hollow else 'solid'}", stamps(moved, draw))


def _outline(shape: str, radius: float) -> tuple[Point, str]:
    """The start of a shape relative to its middle, and the path commands around it."""
    if shape == "circle":
        half = f"a{number(radius)} {number(radius)} 0 1 1 "
        return (-radius, 0.0), f"{half}{number(2 * radius)} 0{half}{number(-2 * radius)} 0z"
    if shape == "square":
        side = 1.8 * radius
        return (-side / 2, -side / 2), f"h{number(side)}v{number(side)}h{number(-side)}z"
    if shape == "triangle":
        return (0.0, -1.05 * radius), f"l{joined((1.2 * radius, 2.1 * radius))}h{number(-2.4 * radius)}z"
    out = 1.25 * radius
    return (0.0, -out), f"l{joined((out, out))} {joined((-out, out))} {joined((-out, -out))}z"


def arrows(arm: str, points: Iterable[Point], size: float) -> Markup:
    """An arrow up at every point: the trial was stopped, its time lies further up."""
    wing = round(0.7 * size, 1)
    draw = f"v{number(-2 * size)}l{joined((-wing, wing))} {joined((wing, -wing))} {joined((wing, wing))}"
    moved = ((x, y + size) for x, y in points)
    return path(f"{arm} stroke above", stamps(moved, draw, (wing, wing - 2 * size)))


def onward(arm: str, points: Iterable[Point], size: float) -> Markup:
    """An arrow to the right at every point: the mark is a bound, the value lies further right."""
    wing = round(0.8 * size, 1)
    draw = f"h{number(2 * size)}l{joined((-wing, -wing))} {joined((wing, wing))} {joined((-wing, wing))}"
    moved = ((x - size, y) for x, y in points)
    return path(f"{arm} stroke onward", stamps(moved, draw, (2 * size - wing, wing)))


def crosses(arm: str, points: Iterable[Point], size: float) -> Markup:
    """A cross at every point: the trial failed."""
    out, across = joined((-size, -size)), joined((2 * size, 2 * size))
    draw = f"l{out}l{across}l{out}l{joined((size, -size))}l{joined((-2 * size, 2 * size))}"
    return path(f"{arm} stroke failed", stamps(points, draw, (-size, size)))


def icon(arm: str) -> Markup:
    """The shape of an arm in a line of text, next to its name."""
    return element("svg", stamp(arm, [(7, 7)], 5), class_="chart icon", viewBox="0 0 14 14", aria_hidden="true")


COLOURS = 8  # --a1 to --a8 of charts.css
DASHES = ("none", "2 3.5", "9 3.5", "9 3 2 3", "4 2.5", "9 3 2 3 2 3", "14 4", "14 4 2 4")
TWIN_DASHES = {Role.AGAIN: "9 3 2 3", Role.SLOWER: "4 2.5"}  # as those of charts.css


def arm_style(arms: Iterable[Arm]) -> str:
    """CSS for the arms that are not in templates/charts.css: a colour and a line pattern for each and for its twins.

    Names of arms are safe inside it: headwind.model.ARM_NAME.
    """
    rules = []
    for index, arm in enumerate(arm for arm in arms if arm not in PLAIN):
        place = index % COLOURS
        rules.append(f".chart .{arm}, .arm.{arm}, .cell.{arm} {{ --mark: var(--a{place + 1}); }}")
        rules.append(f".chart .{arm}.curve {{ stroke-dasharray: {DASHES[place]}; }}")
        rules += [f".chart .{arm}-{role} {{ --mark: var(--{role}); }}" for role in TWINS]
        rules += [f".chart .{arm}-{role}.curve {{ stroke-dasharray: {dash}; }}" for role, dash in TWIN_DASHES.items()]
    return "\n".join(rules)
