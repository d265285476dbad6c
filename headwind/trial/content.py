"""Checks the delivered bytes: every trial's are counted, and one object fetched over its protocol is hashed.

Objects are known from nginx/objects.py, and not from the server: what a server has made of them from the start on, for
all protocols alike, is found as well. Pure but for the fetch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headwind.model import Trial
from headwind.testbed.agent import Request
from headwind.testbed.operations import FETCH
from headwind.testbed.testbed import Testbed
from impair.messages import Fetched
from nginx.objects import content, size_of

STRETCH_BYTES = 1 << 20  # of a larger object the hash is of one stretch, the next one in each block
FETCH_TIMEOUT_S = 10.0  # on the bare path


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of an object: where it begins, and the bytes that must be there."""

    first_byte: int
    data: bytes


def stretch_of(trial: Trial) -> Stretch | None:
    """What a trial's arm has to deliver for comparison, the same for every arm of a block; None: no such object."""
    path = trial.workload.object_path()
    size_bytes = size_of(path)
    if size_bytes is None:
        return None
    return _stretch(path, trial.block.index * STRETCH_BYTES % size_bytes // STRETCH_BYTES * STRETCH_BYTES)


@lru_cache(maxsize=32)  # of up to STRETCH_BYTES: a long run has more objects than memory could hold
def _stretch(path: str, first: int) -> Stretch:
    return Stretch(first, (content(path) or b"")[first : first + STRETCH_BYTES])


def start_fetch(testbed: Testbed, trial: Trial, port: int) -> Request[Fetched] | None:
    """Take the impairments away, and have the client fetch the trial's stretch from the workers that served the trial.

    Call it once the trial's counters are read. Returns the request to wait for; None where there is no such object.
    """
    stretch = stretch_of(trial)
    if stretch is None:
        return None
    if testbed.engine != "plain":
        testbed.router.call("clear")
    return testbed.client.start(
        FETCH, protocol=trial.protocol.value, host=testbed.addresses.host("server", 10), port=port,
        path=trial.workload.object_path(), first_byte=stretch.first_byte,
        bytes_wanted=len(stretch.data),
        timeout_s=FETCH_TIMEOUT_S,
    )  # fmt: skip


def finish_fetch(testbed: Testbed, request: Request[Fetched] | None) -> Fetched | None:
    """What the client says of the fetch; None where none was started."""
    return testbed.client.wait(request, FETCH_TIMEOUT_S + 5.0, testbed.agents) if request else None


def wrong_content(trial: Trial, answer: Mapping[str, Any], fetched: Fetched | None) -> str:
    """How the delivered bytes differ from what the workload asks for; empty where they do not, or nobody can tell.

    `answer` is the client's of the trial.
    """
    workload = trial.workload
    stretch, size_bytes = stretch_of(trial), size_of(workload.object_path())
    if stretch is None or size_bytes is None or fetched is None:
        return ""
    if wrong := workload.wrong_size(answer, size_bytes):
        return wrong
    failed = bool(workload.shortfall(answer))
    if fetched.error or (failed and fetched.status >= 400):  # an error's page is a failure, not another content
        return ""
    if fetched.bytes != len(stretch.data) or fetched.sha256 != hashlib.sha256(stretch.data).hexdigest():
        return (
            f"an answer had other content than asked for: {fetched.bytes} bytes, status {fetched.status}, "
            f"where {len(stretch.data)} were to come"
        )
    return ""


def not_compared(trial: Trial, fetched: Fetched | None) -> str:
    """Why nobody can tell whether the content was right; empty where it was compared."""
    path = trial.workload.object_path()
    if size_of(path) is None or fetched is None:
        return f"nobody knows what {path} should hold: nginx/objects.py has no such object"
    if fetched.error:
        return f"{path} could not be fetched for comparison: {fetched.error}"
    if fetched.alpn != trial.protocol.alpn:
        return f"{path} was to be compared over {trial.protocol.alpn}, and came over {fetched.alpn}"
    return ""
