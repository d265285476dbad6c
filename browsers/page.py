"""The timing of a loaded page, as a browser reports it: Navigation, Resource and Paint Timing of the W3C.

The largest contentful paint is the last one that the browser reported when FRAMES frames followed the load event: with
Chromium 156 it reports what a frame painted up to three frames later.

All times are in milliseconds since the navigation began, on the browser's clock.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

PAINT_WAIT_MS = 1000  # longest wait for the paints after the load event
FRAMES = 5
MOST_ENTRIES = 4096  # more than the requests of any page
# For a document before its 250th request ends: a browser keeps 250 entries by default.
BEFORE = f"performance.setResourceTimingBufferSize({MOST_ENTRIES})"
# The columns that are read of each entry; the document's is the navigation entry.
COLUMNS = (
    "startTime", "connectStart", "connectEnd", "requestStart", "responseStart", "responseEnd", "responseStatus",
    "nextHopProtocol", "transferSize", "encodedBodySize", "name", "initiatorType",
)  # fmt: skip
# A promise: the load event has to end first, and paints may come after it. A report of paints is a separate task.
COLLECT = (
    """new Promise(done => {
  const columns = COLUMNS;
  const row = entry => columns.map(name => entry[name]);
  const paint = () => performance.getEntriesByName("first-contentful-paint")[0];
  let largest = 0;
  const note = entries => { for (const entry of entries) largest = entry.startTime; };
  const paints = new PerformanceObserver(list => note(list.getEntries()));
  paints.observe({type: "largest-contentful-paint", buffered: true});
  const give = () => {
    note(paints.takeRecords());
    const [page] = performance.getEntriesByType("navigation");
    if (WAIT && !page.loadEventStart) { setTimeout(give, 20); return; }  // it is about to go elsewhere
    done({url: location.href, origin: performance.timeOrigin, load: page.loadEventStart,
          paint: paint()?.startTime ?? 0, largest,
          rows: [page, ...performance.getEntriesByType("resource")].map(row)});
  };
  if (WAIT === 0) { give(); return; }
  const after = left => left ? requestAnimationFrame(() => after(left - 1)) : setTimeout(give, 0);
  new PerformanceObserver(() => after(FRAMES)).observe({type: "paint", buffered: true});
  setTimeout(give, WAIT);
})""".replace("COLUMNS", repr(list(COLUMNS)).replace("'", '"')).replace("FRAMES", str(FRAMES))
)  # fmt: skip


def collecting(*, at_once: bool = False) -> str:
    """The script that collects a page's timing; `at_once` without waiting for its paints."""
    return COLLECT.replace("WAIT", "0" if at_once else str(PAINT_WAIT_MS))


def figures(collected: Mapping[str, Any], until_s: float = math.inf) -> dict[str, Any]:
    """The answer of a page: "negotiated", "metrics" and "samples", the rows of its requests in the order of their ends.

    `collected` is what the script gave. Metrics of times that have not come, or only after `until_s`, are absent, and
    so are such requests. Raises KeyError, TypeError or ValueError for anything else.
    """
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in collected["rows"]]
    ended = sorted(
        (row for row in rows if 0 < row["responseEnd"] <= until_s * 1000), key=lambda row: row["responseEnd"]
    )
    good = [row for row in ended if 200 <= row["responseStatus"] < 400]
    document, resources = rows[0], [row for row in good if row is not rows[0]]
    times = {
        "load_s": collected["load"],
        "ttfb_s": document["responseStart"],
        "handshake_s": document["connectEnd"] - document["connectStart"],
        "first_paint_s": collected["paint"],
        "lcp_s": collected["largest"],
        "last_resource_s": max((row["responseEnd"] for row in resources), default=0.0),
    }
    return {
        "negotiated": {"alpn": spoken([row["nextHopProtocol"] for row in good])},
        "metrics": {
            **{name: _seconds(ms) for name, ms in times.items() if 0 < ms <= until_s * 1000},
            "requests_succeeded": len(good),
            "requests_failed": len(ended) - len(good),
            "connections": sum(row["connectEnd"] > row["connectStart"] for row in ended),
            "bytes_body": sum(int(row["encodedBodySize"]) for row in resources),
            "bytes_document": int(document["encodedBodySize"]),
            "from_cache": sum(row["encodedBodySize"] > 0 and row["transferSize"] == 0 for row in ended),
        },
        "samples": samples(ended),
    }


def _path(url: str) -> str:
    """Path and query of an address."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def spoken(protocols: Sequence[str]) -> str | None:
    """The protocol of all requests; if they had several, each with its share; None without requests."""
    counts = Counter(protocols)
    if len(counts) < 2:
        return next(iter(counts), None) or None
    return ", ".join(f"{name or 'unknown'} ({count} of {len(protocols)} requests)"
                     for name, count in counts.most_common())  # fmt: skip


def samples(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The columns of finished requests, in seconds since the navigation began.

    "request_start_s" is when the browser wanted it and "request_took_s" how long it took from then on;
    "request_sent_s" is when it was sent, "request_first_byte_s" when its answer began. "request_connect_start_s" and
    "request_connect_s" are start and duration of its handshake, the latter 0 on an open connection. "request_path" is
    the address on the server, with its query, of another host the whole address, and "request_initiator" the element
    that wanted it, `navigation` for the document.
    """
    own = {urlsplit(row["name"]).netloc for row in rows if row["initiatorType"] == "navigation"}
    return {
        "request_start_s": [_seconds(row["startTime"]) for row in rows],
        "request_took_s": [_seconds(row["responseEnd"] - row["startTime"]) for row in rows],
        "request_status": [int(row["responseStatus"]) for row in rows],
        "request_sent_s": [_seconds(row["requestStart"]) for row in rows],
        "request_first_byte_s": [_seconds(row["responseStart"]) for row in rows],
        "request_connect_start_s": [_seconds(row["connectStart"]) for row in rows],
        "request_connect_s": [_seconds(row["connectEnd"] - row["connectStart"]) for row in rows],
        "request_protocol": [str(row["nextHopProtocol"]) for row in rows],
        "request_bytes": [int(row["encodedBodySize"]) for row in rows],
        "request_path": [_path(row["name"]) if urlsplit(row["name"]).netloc in own else row["name"] for row in rows],
        "request_initiator": [str(row["initiatorType"]) for row in rows],
    }


def _seconds(ms: float) -> float:
    return round(ms / 1000, 6)
