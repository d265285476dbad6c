"""The adapter of Jinja2: every text of a run is escaped, and cleaned of characters that a browser would interpret."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from headwind import format as units
from headwind.report import row_text
from headwind.report import verdicts as describe

TEMPLATES = Path(__file__).parent / "templates"


def page(template: str, globals_: dict[str, Any], **context: Any) -> str:
    """Render a template; macros see the globals, the template itself the context too."""
    return _environment().get_template(template, globals=globals_).render(style=_style(), **context)


def text_of(name: str) -> str:
    """The text of a file next to the templates, such as the page's script."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _style() -> str:
    return text_of("style.css") + text_of("charts.css")


def whole(text: str) -> Markup:
    """A sentence as HTML; words with a hyphen, such as names of networks, are not broken across lines."""
    parts = re.split(r"(\S*-\S*)", units.clean(text))
    return Markup().join(Markup('<span class="whole">{}</span>').format(part) if index % 2 else part
                         for index, part in enumerate(parts))  # fmt: skip


def coded(text: str, words: Callable[[str], str] = str) -> Markup:
    """A sentence as HTML; text between single backticks becomes code, and `words` renders the rest."""
    parts = re.split(r"(?<!`)`([^\s`](?:[^`]*[^\s`])?)`(?!`)", units.clean(text))
    return Markup().join(Markup("<code>{}</code>").format(part) if index % 2 else words(part)
                         for index, part in enumerate(parts))  # fmt: skip


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: units.clean(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"units": units, "words": row_text, "describe": describe}
    environment.filters |= {"whole": whole, "coded": coded, "whole_coded": partial(coded, words=whole)}
    return environment
