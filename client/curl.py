"""libcurl: one object over one protocol, counted and hashed; for what was delivered, never for how fast."""

from __future__ import annotations

import hashlib

from impair.messages import Fetched

HTTP_VERSION = {"h1": 2, "h2": 4, "h3": 31}  # CURL_HTTP_VERSION_1_1, _2TLS and _3ONLY of curl.h: what is offered
SPOKEN = {2: "http/1.1", 3: "h2", 30: "h3"}  # CURL_HTTP_VERSION_1_1, _2_0 and _3: what CURLINFO_HTTP_VERSION answers


def fetch(
    protocol: str, host: str, port: int, path: str, first_byte: int, bytes_wanted: int, timeout_s: float
) -> Fetched:
    """Fetch `bytes_wanted` of the object from `first_byte` on, over a connection of its own.

    A server that ignores the range sends all, which shows in bytes and hash.
    """
    import pycurl  # in the image; the tests of the host do without it

    digest, count = hashlib.sha256(), 0

    def take(data: bytes) -> None:
        nonlocal count
        digest.update(data)
        count += len(data)

    handle, error = pycurl.Curl(), ""
    options = {
        pycurl.URL: f"https://{host}:{port}{path}", pycurl.HTTP_VERSION: HTTP_VERSION[protocol],
        pycurl.RANGE: f"{first_byte}-{first_byte + bytes_wanted - 1}", pycurl.WRITEFUNCTION: take,
        pycurl.SSL_VERIFYPEER: 0, pycurl.SSL_VERIFYHOST: 0, pycurl.TIMEOUT_MS: int(timeout_s * 1000),
        pycurl.NOPROXY: "*", pycurl.NOSIGNAL: 1,
    }  # fmt: skip
    try:
        for option, value in options.items():
            handle.setopt(option, value)
        handle.perform()
    except pycurl.error as failure:
        error = str(failure.args[-1])
    try:
        status, version = handle.getinfo(pycurl.RESPONSE_CODE), handle.getinfo(pycurl.INFO_HTTP_VERSION)
    finally:
        handle.close()
    return Fetched(status, SPOKEN.get(version), count, digest.hexdigest(), error)
