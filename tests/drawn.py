"""An SVG chart as a reader sees it: where its marks, lines and texts are, and which values these places stand for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from headwind.report.html.charts.svg import FONT, text_width

Point = tuple[float, float]

_TOKENS = re.compile(r"[a-zA-Z]|-?(?:\d+\.\d+|\.\d+|\d+)")
_NUMBERS = {"m": 2, "l": 2, "h": 1, "v": 1, "a": 7, "z": 0}


def subpaths(commands: str) -> list[list[Point]]:
    """The corners of every subpath of a path; an arc counts as a line to its end."""
    tokens, found, pen, command = _TOKENS.findall(commands), list[list[Point]](), (0.0, 0.0), ""
    while tokens:
        if tokens[0].isalpha():
            command = tokens.pop(0)
        count = _NUMBERS[command.lower()]
        numbers = [float(tokens.pop(0)) for _ in range(count)]
        x, y = pen if command.islower() else (0.0, 0.0)
        match command.lower():
            case "z":
                pen = found[-1][0]
            case "h":
                pen = (x + numbers[0], pen[1])
            case "v":
                pen = (pen[0], y + numbers[0])
            case _:
                pen = (x + numbers[-2], y + numbers[-1])
        if command.lower() == "m":
            found.append([])
            command = "l" if command == "m" else "L"
        found[-1].append(pen)
    return found


@dataclass(frozen=True)
class Axis:
    """A data-x or data-y attribute, read without the code that wrote it."""

    kind: str
    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Where a value is."""
        of = math.log if self.kind == "log" else float
        share = (of(value) - of(self.low)) / (of(self.high) - of(self.low))
        return self.start + share * (self.end - self.start)


class Drawn:
    """A chart, parsed as XML."""

    def __init__(self, chart: str) -> None:
        self.root = ET.fromstring(chart)

    def axis(self, name: str) -> Axis:
        """The axis `x` or `y`."""
        kind, *numbers = self.root.attrib[f"data-{name}"].split()
        return Axis(kind, *map(float, numbers))

    def all(self, *classes: str) -> list[ET.Element]:
        """Elements that have all these classes, in the order of drawing."""
        return [item for item in self.root.iter() if set(classes) <= set(item.get("class", "").split())]

    def paths(self, *classes: str) -> list[list[Point]]:
        """The subpaths of all paths that have all these classes."""
        return [path for item in self.all(*classes) if item.tag == "path" for path in subpaths(item.attrib["d"])]

    def marks(self, arm: str, inside_x: float) -> list[Point]:
        """The middles of an arm's shapes left of a place, the start of what stands for its label."""
        found = []
        for look in ("round", "square", "solid", "hollow"):
            for corners in self.paths(arm, look):
                xs, ys = zip(*corners, strict=True)
                found.append(((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2))
        return [point for point in found if point[0] < inside_x]

    @property
    def texts(self) -> list[str]:
        """Everything that is written, as it is shown."""
        return [_shown(item) for item in self.root.iter("text")]

    def boxes(self) -> Iterator[tuple[str, float, float, float, float]]:
        """Each text with its left, top, right, and bottom edge, about."""
        parents = {child: parent for parent in self.root.iter() for child in parent}
        for item in self.root.iter("text"):
            classes = f"{item.get('class', '')} {parents[item].get('class', '')}".split()
            width, x, y = text_width(_shown(item)), float(item.attrib["x"]), float(item.attrib["y"])
            left = x - width * (1 if "end" in classes else 0.5 if "middle" in classes else 0)
            yield _shown(item), left, y - 0.75 * FONT, left + width, y + 0.2 * FONT


def _shown(item: ET.Element) -> str:
    """A text element's text without its title."""
    return (item.text or "") + "".join(child.tail or "" for child in item)
