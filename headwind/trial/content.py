"""Checks the delivered bytes: every trial's are counted, and one object fetched over its protocol is hashed.

Objects are known from servers/objects.py, or from the user's folder, and not from the server. So an object that the
server altered from the start, for all protocols alike, is found too. Pure except for the fetch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headwind.model import Trial
from headwind.proof.evidence import Fingerprint
from headwind.testbed.agent import Request
from headwind.testbed.operations import FETCH, FINGERPRINT
from headwind.testbed.path import Path
from impair.messages import Fetched
from servers.objects import after, content, size_of

STRETCH_BYTES = 1 << 20  # of a larger object the hash is of one stretch, the next one in each block
FETCH_TIMEOUT_S = 10.0  # on the bare path


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A part of an object: where it begins, its size, and the hash that it must have."""

    first_byte: int
    bytes: int
    sha256: str


def stretch_of(trial: Trial) -> ByteRange | None:
    """The part of the object to compare, the same for every arm of a block; None: no such object.

    A file of the user's is compared as a whole: its hash was recorded, its bytes were not.
    """
    name, workload = _compared(trial), trial.workload
    for file in workload.files:
        if name == after(workload.server_delay_s, file.url):
            return ByteRange(0, file.bytes, file.sha256)
    size_bytes = _known_bytes(trial, name)
    if size_bytes is None:
        return None
    if not trial.arm.server.has_ranges:
        return _stretch(name, 0, size_bytes)
    first = trial.block.index * STRETCH_BYTES % size_bytes // STRETCH_BYTES * STRETCH_BYTES
    return _stretch(name, first, STRETCH_BYTES)


@lru_cache(maxsize=4096)
def _stretch(name: str, first: int, most_bytes: int) -> ByteRange:
    data = (content(name) or b"")[first : first + most_bytes]
    return ByteRange(first, len(data), hashlib.sha256(data).hexdigest())


def _compared(trial: Trial) -> str:
    """The path of the object that is compared, the same for every arm of a block."""
    return trial.workload.compared_path(trial.block.index)


def _object_bytes(trial: Trial) -> int | None:
    """The size of the object that the client fetched; None: no such object."""
    files = trial.workload.files
    return files[0].bytes if files else _known_bytes(trial, trial.workload.object_path())


def _known_bytes(trial: Trial, name: str) -> int | None:
    """The size of an object; None: no such object, or an answer of a user's own server to a query."""
    return None if trial.arm.server.program and "?" in name else size_of(name)


@dataclass(frozen=True, slots=True)
class LastLook:
    """The requests to wait for after a trial: the fetch (None: no such object), and each host's fingerprint."""

    fetch: Request[Fetched] | None
    fingerprints: dict[str, Request[Fingerprint]]


def start_last_look(path: Path, trial: Trial, port: int) -> LastLook:
    """Remove the impairments, and have the client fetch the trial's stretch from the workers that served the trial.

    Meanwhile all hosts read their fingerprints. Call it once the trial's counters are read.
    """
    stretch, router, client = stretch_of(trial), path.router, path.client
    fingerprints = path.start_on_hosts(FINGERPRINT, "router", "client")
    with router.together():
        clear = path.start_clear() if stretch else None
        fingerprints["router"] = router.start(FINGERPRINT)
    path.finish_clear(clear)
    with client.together():
        fetch = _start_fetch(path, trial, port, stretch) if stretch else None
        fingerprints["client"] = client.start(FINGERPRINT)
    return LastLook(fetch, fingerprints)


def _start_fetch(path: Path, trial: Trial, port: int, stretch: ByteRange) -> Request[Fetched]:
    return path.client.start(
        FETCH, protocol=trial.protocol.value, host=path.server_ip, port=port,
        path=_compared(trial), first_byte=stretch.first_byte,
        bytes_wanted=stretch.bytes,
        timeout_s=FETCH_TIMEOUT_S,
    )  # fmt: skip


def finish_fetch(path: Path, request: Request[Fetched] | None) -> Fetched | None:
    """The client's report of the fetch; None if none was started."""
    return path.client.wait(request, FETCH_TIMEOUT_S + 5.0, path.agents) if request else None


def wrong_content(trial: Trial, answer: Mapping[str, Any], fetched: Fetched | None) -> str:
    """The difference between the delivered bytes and those that the workload requests; empty if none, or unknown.

    `answer` is the client's report of the trial.
    """
    workload = trial.workload
    stretch, size_bytes = stretch_of(trial), _object_bytes(trial)
    if stretch is None or size_bytes is None or fetched is None:
        return ""
    if wrong := workload.wrong_size(answer, size_bytes):
        return wrong
    failed = bool(workload.shortfall(answer))
    if fetched.error or (failed and fetched.status >= 400):  # an error page is a failure, not other content
        return ""
    if (fetched.bytes, fetched.sha256) != (stretch.bytes, stretch.sha256):
        return (
            f"a response had other content than requested: {fetched.bytes} bytes, status {fetched.status}, "
            f"instead of {stretch.bytes} bytes"
        )
    return ""


def not_compared(trial: Trial, fetched: Fetched | None) -> str:
    """The reason why the content could not be compared; empty if it was, or if only a user's own server knows it."""
    name = _compared(trial)
    is_known = _object_bytes(trial) is not None
    if not is_known and trial.arm.server.program:
        return ""
    if not is_known or fetched is None:
        return f"the content of {name} is not known: servers/objects.py has no such object"
    if fetched.error:
        return f"{name} could not be fetched for comparison: {fetched.error}"
    if fetched.alpn != trial.protocol.alpn:
        return f"{name} was to be compared over {trial.protocol.alpn}, and came over {fetched.alpn}"
    return ""
