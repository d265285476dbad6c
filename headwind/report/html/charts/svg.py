"""SVG as text: elements with everything escaped, numbers of one decimal, paths, and texts that fit their room.

Lengths are units of the viewBox, which CSS scales to the page. Colours are never here: they are classes of charts.css.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from markupsafe import Markup, escape

from headwind.format import clean

WIDTH = 520.0  # of a chart's viewBox; shown 360 px wide, its texts are about 10 px high
FONT = 14.0  # as in charts.css
LINE = 17.0  # from one line of text to the next
ASCENT = 5.0  # from the middle of a line of text down to its baseline
SHARED = "chart"  # class of what <use> repeats: browsers match the style of a copy without what is around the original
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

Point = tuple[float, float]

# Advance widths in em of DejaVu Sans, the widest of the common system fonts: what fits in it fits in all of them.
_ADVANCES = {" .,:;|!'()[]/ijltf": 0.39, "ABCDEFGHIJKLNOPQRSTUVXYZ~": 0.72, "mwMW%@><=": 0.96}
_EM = {character: width for characters, width in _ADVANCES.items() for character in characters}


def element(tag: str, /, *children: str, **attributes: float | str | None) -> Markup:
    """An element. Children that are not Markup and all values are escaped; an attribute that is None is left out.

    `class_` and `data_x` are written class and data-x.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if not children:
        return Markup(f"<{tag}{written}/>")  # noqa: S704  escaped above, and three times as fast as Markup.format
    return Markup(f"<{tag}{written}>{''.join(map(_child, children))}</{tag}>")  # noqa: S704


def _value(value: float | str) -> str:
    return clean(value) if isinstance(value, str) else number(value)


def _child(child: str) -> Markup:
    return child if isinstance(child, Markup) else escape(clean(child))


def chart(kind: str, id: str, height: float, *children: Markup, **attributes: str | float | None) -> Markup:  # noqa: A002
    """The svg element of a chart with its axes' attributes; `title` and `description` are for screen readers.

    Its first children are name and description of an svg: SVG Accessibility API Mappings 1.0, 8.1.
    """
    title, description = str(attributes.pop("title")), str(attributes.pop("description"))
    width = attributes.pop("width", WIDTH)
    assert isinstance(width, float)
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        id=id,
        class_=f"chart {kind}",
        role="img",
        viewBox=f"0 0 {number(width)} {number(height)}",
        **attributes,
    )


def number(value: float) -> str:
    """At most one decimal, as short as SVG allows: "12", "3.5", "-.5"."""
    text = f"{value:.1f}".removesuffix(".0")
    if text.lstrip("-") == "0":
        return "0"
    return text.replace("0.", ".") if abs(value) < 1 else text


def joined(values: Iterable[float]) -> str:
    """Numbers in a row, with a space only where no sign separates them: "3-2 5"."""
    return " ".join(map(number, values)).replace(" -", "-")


def path(class_: str, commands: str, **attributes: float | str | None) -> Markup:
    """A path; empty without commands."""
    return element("path", class_=class_ or None, d=commands, **attributes) if commands else Markup()


def line(points: Iterable[Point]) -> str:
    """Path commands of a line: the first point absolute, then steps between rounded points, which do not add up."""
    parts: list[str] = []
    last_x = last_y = 0
    for point_x, point_y in points:
        x, y = round(point_x * 10), round(point_y * 10)
        by_x, by_y = (x - last_x) / 10, (y - last_y) / 10
        step = f"h{number(by_x)}" if not by_y else f"v{number(by_y)}" if not by_x else "l" + joined((by_x, by_y))
        parts.append(step if parts else "M" + joined((by_x, by_y)))
        last_x, last_y = x, y
    return "".join(parts)


def steps(points: Iterable[Point]) -> str:
    """Path commands of a staircase from point to point: first along, then up or down; steps at one place are one."""
    (start_x, start_y), *others = [(round(x * 10), round(y * 10)) for x, y in points]
    parts, x, y, risen = ["M" + joined((start_x / 10, start_y / 10))], start_x, start_y, start_y
    for next_x, next_y in others:
        if next_x != x:
            parts += [f"v{number((y - risen) / 10)}"] * (y != risen)
            parts.append(f"h{number((next_x - x) / 10)}")
            risen = y
        x, y = next_x, next_y
    return "".join([*parts, *[f"v{number((y - risen) / 10)}"] * (y != risen)])


def stamps(points: Iterable[Point], draw: str, end: Point = (0.0, 0.0)) -> str:
    """Path commands that draw the same at each point; `end` is the end of the drawing relative to its point."""
    parts: list[str] = []
    pen_x = pen_y = 0
    for point_x, point_y in points:
        x, y = round(point_x * 10), round(point_y * 10)
        parts.append(("m" if parts else "M") + joined(((x - pen_x) / 10, (y - pen_y) / 10)) + draw)
        pen_x, pen_y = x + round(end[0] * 10), y + round(end[1] * 10)
    return "".join(parts)


def bars(pieces: Iterable[tuple[float, float, float]]) -> str:
    """Path commands of level lines (x, y, length)."""
    parts: list[str] = []
    pen_x = pen_y = 0
    for point_x, point_y, length in pieces:
        x, y = round(point_x * 10), round(point_y * 10)
        parts.append(("m" if parts else "M") + joined(((x - pen_x) / 10, (y - pen_y) / 10)) + "h" + number(length))
        pen_x, pen_y = x + round(length * 10), y
    return "".join(parts)


def text_width(text: str) -> float:
    """Approximate maximum width of a text, in units of the viewBox."""
    return FONT * sum(map(_em, text))


def _em(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    wide = unicodedata.east_asian_width(character) in "WF"
    return 1.25 if wide else _EM.get(character, 0.64)


def shortened(text: str, room: float) -> str:
    """The text with its line ends as spaces, cut and with an ellipsis if it needs more than `room`."""
    text = " ".join(clean(text).split())
    if text_width(text) <= room:
        return text
    kept, left = "", room - text_width(ELLIPSIS)
    for character in text:
        left -= FONT * _em(character)
        if left < 0:
            break
        kept += character
    return kept.rstrip(" \N{ZERO WIDTH JOINER}") + ELLIPSIS


def text(x: float, y: float, content: str, *, room: float = WIDTH, class_: str = "") -> Markup:
    """A line of text with its middle at height y. A text that exceeds `room` is cut; its title is the whole text."""
    shown = shortened(content, room)
    whole = element("title", content) if shown.endswith(ELLIPSIS) and shown != content else Markup()
    return element("text", whole, shown, x=x, y=y + ASCENT, class_=class_ or None)


def nothing(kind: str, id: str, sentence: str, *, title: str, description: str) -> Markup:  # noqa: A002
    """A chart without data: an svg with one sentence in place of the plot."""
    height = 56.0
    words = text(WIDTH / 2, height / 2, sentence, class_="quiet middle")
    return chart(kind, id, height, words, title=title, description=description)
