"""HTTP archives (HAR) of page loads: the requests of the median and of the worst trial of each arm and condition.

HAR 1.2 (Jan Odvarka, "HAR 1.2 Spec", which most browsers and viewers follow). Times are milliseconds. Headers, cookies
and bodies are not recorded, so their lists are empty and their sizes -1, as the format has it for what is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from headwind.format import counted
from headwind.model import Condition, Matrix, Result
from headwind.run.captures import file_stem
from headwind.run.data import RunData
from headwind.run.page_requests import PageRequest, PageTrial

FOLDER = "har"  # in the run folder
MEDIAN, WORST = "median", "worst"
ORIGIN = "https://server"  # as the browser addresses it
_NUMBER = re.compile(r" \([0-9]+\)$")  # which tells the streams of one path from each other
UNKNOWN = -1
PAGE = "page_1"


def har_name(matrix: Matrix, condition: Condition, arm: str, which: str) -> str:
    """Path of an archive in the run folder: `har/2-loss-page-h3-median.har`; the number is that of the condition."""
    return f"{FOLDER}/{file_stem(matrix, condition, arm, which)}.har"


def hars(data: RunData) -> Iterator[tuple[str, str]]:
    """Name and text of each archive of a run; none of trials without requests."""
    for condition in data.matrix.conditions:
        for arm in data.matrix.arms_in(condition):
            trials = data.page_trials.get((condition.id, arm.name))
            for which, trial in ((MEDIAN, trials.median), (WORST, trials.worst)) if trials else ():
                if trial.requests:
                    text = json.dumps(har(trial, which, data.environment), indent=1)
                    yield har_name(data.matrix, condition, arm.name, which), text


def har(trial: PageTrial, which: str, environment: Mapping[str, Any]) -> dict[str, Any]:
    """The archive of one trial as a JSON object."""
    result, began_s = trial.result, _began_s(trial.result)
    browser = result.trial.workload.browser
    version = environment.get("testbed", {}).get(browser, {}).get("version", "")
    page = {
        "startedDateTime": _moment(began_s), "id": PAGE, "title": f"{result.trial.id}: {which} trial",
        "pageTimings": {"onLoad": _ms(result.metrics.get("load_s")),
                        "_firstContentfulPaint": _ms(result.metrics.get("first_paint_s")),
                        "_largestContentfulPaint": _ms(result.metrics.get("lcp_s"))},
    }  # fmt: skip
    client = browser or "libcurl"
    log = {
        "version": "1.2",
        "creator": {"name": "Headwind", "version": str(environment.get("host", {}).get("commit", ""))},
        "browser": {"name": client, "version": version},
        "pages": [page],
        "entries": [_entry(request, began_s) for request in trial.requests],
        "comment": f"Trial {result.trial.id}, outcome {result.outcome.value}: "
        f"{counted(len(trial.requests), 'request')} that ended, timed by {client}. Headers are not recorded.",
    }
    return {"log": log}


def _began_s(result: Result) -> float:
    """Start of the client, in seconds since the epoch: about that of the navigation."""
    phases = list(result.phases_s)
    before = phases[: phases.index("client")] if "client" in phases else []
    return result.started_at + sum(result.phases_s[name] for name in before)


def _entry(request: PageRequest, began_s: float) -> dict[str, Any]:
    size = UNKNOWN if request.body_bytes is None else request.body_bytes
    path = _NUMBER.sub("", request.path) or "/"
    url = path if "://" in path else ORIGIN + path
    usual = {"httpVersion": request.protocol, "cookies": [], "headers": [], "headersSize": UNKNOWN}
    query = [{"name": name, "value": value} for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
    return {
        "pageref": PAGE,
        "startedDateTime": _moment(began_s + request.start_s),
        "time": _ms(request.done_s - request.start_s),
        "request": {**usual, "method": "GET", "url": url, "queryString": query, "bodySize": 0},
        "response": {
            **usual, "status": request.status, "statusText": _phrase(request.status), "redirectURL": "",
            "content": {"size": size, "mimeType": "x-unknown"}, "bodySize": size,
        },
        "cache": {},
        "timings": {
            "blocked": _ms(request.queued_s), "dns": UNKNOWN,
            "connect": _ms(request.connecting_s) if request.opened_connection else UNKNOWN,
            "send": 0, "wait": _ms(request.waiting_s), "receive": _ms(request.receiving_s), "ssl": UNKNOWN,
        },
        "_initiator": request.initiator,
        "_openedConnection": request.opened_connection,
    }  # fmt: skip


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in list(HTTPStatus) else ""


def _moment(since_epoch_s: float) -> str:
    return datetime.fromtimestamp(since_epoch_s, UTC).isoformat(timespec="milliseconds")


def _ms(seconds: float | None) -> float:
    return UNKNOWN if seconds is None else round(1000 * seconds, 3)
