"""The one door to Jinja2: every text of a run is escaped, and cleaned of what a browser would obey instead of show."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from headwind import format as units
from headwind.report import verdicts as describe
from headwind.report import words

TEMPLATES = Path(__file__).parent / "templates"


def page(template: str, globals_: dict[str, Any], **context: Any) -> str:
    """A template as text; macros see the globals, the template itself the context too."""
    return _environment().get_template(template, globals=globals_).render(style=_style(), **context)


def text_of(name: str) -> str:
    """A file beside the templates, such as the page's script."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _style() -> str:
    return text_of("style.css") + text_of("charts.css")


def whole(text: str) -> Markup:
    """A sentence as HTML: what has a hyphen in it, such as the name of a network, is not parted there."""
    parts = re.split(r"(\S*-\S*)", units.clean(text))
    return Markup().join(Markup('<span class="whole">{}</span>').format(part) if index % 2 else part
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
    environment.globals |= {"units": units, "words": words, "describe": describe}
    environment.filters["whole"] = whole
    return environment
