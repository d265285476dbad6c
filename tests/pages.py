"""A page as a reader has it: its elements, its words, and the cells of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from xml.etree.ElementTree import Element

import html5lib


@lru_cache(64)
def parse(page: str) -> Element:
    """The page's root element, for reading only. Raises html5lib's ParseError for anything but well-formed HTML5."""
    root = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)
    assert isinstance(root, Element)
    return root


def words(element: Element | None) -> str:
    """All text in an element, with every run of white space as one space."""
    assert element is not None
    return " ".join("".join(element.itertext()).split())


def section(root: Element, name: str) -> Element:
    """The section with this id."""
    found = root.find(f".//section[@id='{name}']")
    assert found is not None
    return found


def table(element: Element) -> Iterator[list[str]]:
    """The rows of the first table in an element; a cell that spans rows is repeated in each of them."""
    spanning: dict[int, tuple[int, str]] = {}
    first = element.find(".//table")
    assert first is not None
    for row in first.iter("tr"):
        cells: list[str] = []
        waiting = [cell for cell in row if cell.tag in ("th", "td")]
        while waiting or len(cells) in spanning:
            left, text = spanning.pop(len(cells), (0, ""))
            if not left:
                cell = waiting.pop(0)
                left, text = int(cell.get("rowspan", "1")), words(cell)
            if left > 1:
                spanning[len(cells)] = (left - 1, text)
            cells.append(text)
        yield cells
