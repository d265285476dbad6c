"""The workload kind `page` with `path`: a page of the user's site in a browser.

A browser carries it out as any page. Which files the page has is known once it has loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from headwind.format import counted, enumerated, listed
from headwind.matrix import values
from headwind.matrix.keys import key
from headwind.metric import Workload
from headwind.site import PREFIX, name_of
from headwind.workloads.h2load import PROGRESS
from headwind.workloads.page import SUCCEEDED, PageLoad, PageLoadKeys
from servers.objects import after, size_of

MOST_NAMED = 3  # failed requests, by their addresses
FAILED = "requests_failed"


@dataclass(frozen=True, slots=True)
class SitePage(PageLoad):
    """Workload of a page of the site; `files` has all files of the site, the document first."""

    kind: ClassVar[str] = "site_page"
    written: ClassVar[str] = "`kind: page` with `path`"

    path: str  # as the matrix has it

    @property
    def requests(self) -> int:
        """The number of requests if the page used every file of the site: its real number is not known before."""
        return max(1, len(self.files))

    def wanted(self, answer: Mapping[str, Any]) -> int:
        """The number of requests that ended, whether they succeeded or not."""
        metrics = answer.get("metrics") or {}
        return max(1, int(metrics.get(SUCCEEDED, 0) + metrics.get(FAILED, 0)))

    def object_paths(self) -> tuple[str, ...]:
        """The path of the document."""
        return (after(self.server_delay_s, self.files[0].url if self.files else self.path),)

    def shortfall(self, answer: Mapping[str, Any]) -> str:
        """As of every page, with the addresses of requests that failed."""
        reason = super(SitePage, self).shortfall(answer)
        columns = answer.get("samples") or {}
        if answer.get("error") or not reason or not columns:
            return reason
        failed = [f"{path} ({status or 'no answer'})" for path, status
                  in zip(columns["request_path"], columns["request_status"], strict=True)
                  if not 200 <= status < 400]  # fmt: skip
        here = [path for path in failed if "://" not in path]
        is_outside = any(not path.startswith(f"{after(self.server_delay_s, PREFIX)}/") for path in here)
        hint = f"; addresses that begin with a slash miss the site, which is below {PREFIX}" if is_outside else ""
        hint += "; other hosts do not exist here: remove what the page has from them" if here != failed else ""
        return f"{reason}: {listed(failed, MOST_NAMED)}{hint}" if failed else reason

    def wrong_size(self, answer: Mapping[str, Any], object_bytes: int) -> str:
        """The first file with other bytes than in the folder; empty if there is none."""
        del object_bytes
        below = after(self.server_delay_s, PREFIX)
        sizes = {file.path: file.bytes for file in self.files}
        columns = answer.get("samples") or {}
        for path, status, got in zip(*(columns.get(name, ()) for name in (
            "request_path", "request_status", "request_bytes")), strict=True):  # fmt: skip
            name = name_of(path.partition("?")[0].removeprefix(below)) if path.startswith(f"{below}/") else None
            expected = size_of(path) if name is None else sizes.get(name)
            if 200 <= status < 300 and got != expected:
                return f"{path} had {got} bytes, " + (
                    "and is no file of the content" if expected is None else f"instead of {expected}"
                )
        return ""

    def bounds(self, answer: Mapping[str, Any], timeout_s: float) -> dict[str, float]:
        """As of every page, without shares of requests: their number is not known."""
        unknown = {end for metric in PROGRESS.values() for end in (metric.low_key, metric.high_key)}
        ends = super(SitePage, self).bounds(answer, timeout_s)
        return {name: value for name, value in ends.items() if name not in unknown}

    def least(self) -> tuple[int, int]:
        """Rounds and bytes of the document: nothing else is sure."""
        return 1, self.files[0].bytes if self.files else 0

    def brief(self) -> str:
        """The page and the browser as a text."""
        size = f" ({counted(self.files[0].bytes, 'byte')} of HTML)" if self.files else ""
        return f"the page {self.path} of the content{size} in {self.where}"

    def got_done(self, metrics: Sequence[Mapping[str, float]]) -> str:
        """Requests that succeeded: `13 or 14 requests succeeded`."""
        counts = sorted({int(each[SUCCEEDED]) for each in metrics if SUCCEEDED in each})
        if not counts:
            return ""
        shown = enumerated([str(count) for count in counts]) if len(counts) < 3 else f"{counts[0]} to {counts[-1]}"
        return f"{shown} requests succeeded"


class SitePageKeys(PageLoadKeys):
    """A page of your site, in a browser."""

    model: ClassVar[type[Workload]] = SitePage
    mark: ClassVar[str] = "path"
    same_for_all: ClassVar[frozenset[str]] = PageLoadKeys.same_for_all | {"path"}
    needs_content: ClassVar[bool] = True
    has_whole_site: ClassVar[bool] = True

    kind: Literal["page"] = key("the kind of the workload")
    path: values.PagePath = key("a page of the `content`, such as `/` or `/shop/cart.html`")

    def paths_used(self) -> dict[tuple[str | int, ...], str]:
        """The path of the document."""
        return {("path",): self.path}

    def to_model(self, name: str) -> SitePage:
        """Convert the keys to the workload of this name, still without its files."""
        return SitePage(name, self.path)
