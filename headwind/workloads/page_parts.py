"""The workload kind `page` with `parts`: a generated page of HTML, CSS, JavaScript, fonts and images.

A browser carries it out as any page. servers/page_files.py makes its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from headwind.format import counted, enumerated
from headwind.matrix import values
from headwind.matrix.keys import Keys, key
from headwind.matrix.mistakes import Slip, Slips
from headwind.matrix.units import Mistake
from headwind.matrix.values import whole
from headwind.metric import Workload
from headwind.workloads.page import SUCCEEDED, PageLoad, PageLoadKeys
from servers.objects import after, page_path, size_of
from servers.page_files import DOCUMENT, MOST_FILES, PageFiles, Several, TooSmall, page_of

# The median desktop home page of July 2025: Web Almanac 2025, chapter Page Weight
# (https://almanac.httparchive.org/en/2025/page-weight), medians of the bytes and of the requests of each type. Its KB
# are 1024 bytes, and each size is the type's bytes by its requests.
HTML_BYTES = 22 << 10
STYLES = Several(8, (82 << 10) // 8)
SCRIPTS = Several(22, (697 << 10) // 22)
FONTS = Several(4, (139 << 10) // 4)
IMAGES = Several(19, (1058 << 10) // 19)
KEYS = {"html": "html", "style": "css", "script": "js", "font": "fonts", "image": "images"}  # by the kind of a file
_NAMES = {"css": "stylesheet", "js": "script", "fonts": "font", "images": "image"}


@dataclass(frozen=True, slots=True)
class PageParts(PageLoad):
    """Workload of a generated page; `folder` is the name that describes it (servers/page_files.py)."""

    kind: ClassVar[str] = "page_parts"
    written: ClassVar[str] = "`kind: page` with `parts`"

    folder: str

    @property
    def page(self) -> PageFiles:
        """The files of the page."""
        page = page_of(self.folder)
        if page is None:
            raise ValueError(f"{self.folder} is not a page")
        return page

    @property
    def requests(self) -> int:
        """The number of requests, that for the document included."""
        return len(self.page.sizes())

    def object_paths(self) -> tuple[str, ...]:
        """The path of the document, with which the server makes all files."""
        return (self._path(DOCUMENT),)

    def compared_path(self, block: int) -> str:
        """The path of the file whose content is compared: the next one in each block."""
        names = list(self.page.sizes())
        return self._path(names[block % len(names)])

    def _path(self, name: str) -> str:
        return after(self.server_delay_s, page_path(self.folder, name))

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """The first file with other bytes than it should have, or not of the page; empty if none, or if one failed."""
        del object_bytes
        if (answer.get("metrics") or {}).get(SUCCEEDED) != self.requests:
            return ""
        columns = answer["samples"]
        got = dict(zip(columns["request_path"], columns["request_bytes"], strict=True))
        for path in sorted({self._path(name) for name in self.page.sizes()} | got.keys()):
            if path not in got:
                return f"the browser did not request {path}"
            if got[path] != size_of(path):
                return f"{path} had {got[path]} bytes instead of {size_of(path) or 0}"
        return ""

    def least(self) -> tuple[int, int]:
        """Rounds: the document, then its files, those of a chain one after the other. Bytes: those of all files."""
        return 1 + max(1, self.page.chain), sum(self.page.sizes().values())

    def brief(self) -> str:
        """The parts, the chain and the browser as a text."""
        page = self.page
        parts = {"css": page.styles, "js": page.scripts, "fonts": page.fonts, "images": page.images}
        named = [f"{counted(part.count, _NAMES[name])} of {counted(part.bytes, 'byte')}"
                 for name, part in parts.items() if part.count]  # fmt: skip
        chain = f", with a render-blocking chain of {page.chain}," if page.chain else ""
        html = f"{counted(page.html_bytes, 'byte')} of HTML"
        return f"a page of {enumerated([html, *named])}{chain} in {self.where}"


class PartsKeys(Keys):
    """The parts of a generated page. Defaults: the medians of the Web Almanac 2025, desktop home pages."""

    html: values.ObjectBytes = key("size of the document", HTML_BYTES, shown="22KiB")
    css: values.SeveralFiles = key("stylesheets, in the head", STYLES, shown=f"8 x {STYLES.bytes}B")
    js: values.SeveralFiles = key(
        "scripts: the first blocks the parser in the head, the others are `async` and `defer` in turn",
        SCRIPTS, shown=f"22 x {SCRIPTS.bytes}B",
    )  # fmt: skip
    fonts: values.SeveralFiles = key("fonts, which the stylesheets name", FONTS, shown=f"4 x {FONTS.bytes}B")
    images: values.SeveralFiles = key(
        "images: the first at the top, the others after the text", IMAGES, shown=f"19 x {IMAGES.bytes}B"
    )
    chain: Annotated[int, whole(2, MOST_FILES)] | None = key(
        "length of a chain: each stylesheet imports the next, each script writes the next; default: none",
        None,
    )

    @model_validator(mode="after")
    def _accepted(self) -> Self:
        if slips := list(self._slips()):
            raise Slips(slips)
        return self

    def _slips(self) -> Iterator[Slip]:
        if self.chain and not (self.css.count or self.js.count):
            message = "there is neither a stylesheet nor a script to chain"
            yield Slip(("chain",), Mistake(message, "remove it"), at_key=True)
            return
        for name, part in {"css": self.css, "js": self.js}.items():
            if self.chain and 0 < part.count < self.chain:
                message = f"a chain of {self.chain} needs as many files, and `{name}` has {part.count}"
                yield Slip(("chain",), Mistake(message, f"at most {part.count}, or `{name}: {values.NO_FILES}`"))
                return
        try:
            self.page()
        except TooSmall as small:
            name = KEYS[small.kind]
            message = f"`{name}` is too small for what its content must have"
            yield Slip((name,), Mistake(message, f"at least {small.least}B"))
        except ValueError as error:
            yield Slip((), Mistake(str(error), "fewer or smaller files"))

    def page(self) -> PageFiles:
        """The files. Raises TooSmall or ValueError."""
        return PageFiles(self.html, self.css, self.js, self.fonts, self.images, self.chain or 0)


class PagePartsKeys(PageLoadKeys):
    """A page of HTML, CSS, JavaScript, fonts and images, in a browser."""

    model: ClassVar[type[Workload]] = PageParts
    mark: ClassVar[str] = "parts"
    same_for_all: ClassVar[frozenset[str]] = PageLoadKeys.same_for_all | {"parts"}

    kind: Literal["page"] = key("the kind of the workload")
    parts: PartsKeys = key("its files; `{}` has the medians of the Web Almanac 2025")

    @model_validator(mode="before")
    @classmethod
    def _alone(cls, written: Any) -> Any:
        """Check that nothing is written next to the parts that contradicts them. Raises Slips."""
        names = [name for name in ("requests", "size") if isinstance(written, dict) and name in written]
        if names:
            mistake, hint = "{} does not go with `parts`", "remove it: each part has its own number and size"
            if len(names) > 1 and isinstance(parts := written.get("parts"), dict) and "images" not in parts:
                hint = f"the pictures are a part: write `images: {written['requests']} x {written['size']}` in `parts`"
            raise Slips([Slip((name,), Mistake(mistake.format(f"`{name}`"), hint), at_key=True) for name in names])
        return written

    def to_model(self, name: str) -> PageParts:
        """Convert the keys to the workload of this name."""
        return PageParts(name, self.parts.page().folder)
