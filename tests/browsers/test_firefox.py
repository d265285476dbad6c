"""Firefox: texts over a WebSocket in any pieces, and a profile that forces one protocol and trusts one certificate."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from browsers import devtools
from browsers.browser import DOWNLOAD, Loading, Page, Place
from browsers.devtools import BrowserGone, CallFailed, TooLate
from browsers.firefox.agent import Firefox, preferences, trusting
from browsers.firefox.bidi import BiDi

PAGE = Page("context", "target")
H3 = Place("h3", "10.77.2.10", 8443)


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BiDi, socket.socket]]:
    ours, other = socket.socketpair()
    lab = os.pipe()
    monkeypatch.setattr(devtools, "LAB", lab[0])
    descriptor = ours.detach()
    yield BiDi(descriptor, descriptor), other
    other.close()
    for each in (descriptor, *lab):
        os.close(each)


def frame(content: bytes, first: int = 0x81) -> bytes:
    """As a server sends it: not masked."""
    if len(content) < 126:
        return struct.pack(">BB", first, len(content)) + content
    if len(content) < 1 << 16:
        return struct.pack(">BBH", first, 126, len(content)) + content
    return struct.pack(">BBQ", first, 127, len(content)) + content


@pytest.mark.parametrize("length", [1, 200, 70_000])
def test_texts_of_every_length_go_both_ways(pair: tuple[BiDi, socket.socket], length: int) -> None:
    tools, other = pair
    other.sendall(frame(json.dumps({"type": "success", "id": 1, "result": {"x": "a" * length}}).encode()))
    assert tools.call("do.it", y="b" * length) == {"x": "a" * length}
    data = b""
    while len(data) < length:
        data += other.recv(1 << 20)
    assert data[0] == 0x81
    assert data[1] & 0x80, "a client masks what it sends"
    start = {True: 2, False: 4 if length < 1 << 16 else 10}[length < 100]
    mask, body = data[start : start + 4], data[start + 4 :]
    told = json.loads(bytes(byte ^ mask[number % 4] for number, byte in enumerate(body)))
    assert told == {"id": 1, "method": "do.it", "params": {"y": "b" * length}}


def test_a_text_may_come_in_pieces_and_several_frames_with_others_between(pair: tuple[BiDi, socket.socket]) -> None:
    tools, other = pair
    number = tools.start("do.it")
    stream = frame(b'{"id": 1, "res', 0x01) + frame(b"?", 0x89) + frame(b'ult": {"x": 2}}', 0x80)
    for byte in stream[:-1]:
        other.sendall(bytes([byte]))
        assert tools.event(0.01) is None
        assert tools.answered(number, "do.it") is None
    other.sendall(stream[-1:])
    assert tools.event(0.01) is None
    assert tools.answered(number, "do.it") == {"x": 2}


def test_a_refusal_has_the_browser_s_words(pair: tuple[BiDi, socket.socket]) -> None:
    tools, other = pair
    other.sendall(frame(b'{"type": "error", "id": 1, "error": "unknown error", "message": "Error: NS_ERROR_ABORT"}'))
    with pytest.raises(CallFailed, match=r"do.it: Error: NS_ERROR_ABORT"):
        tools.call("do.it")


@pytest.mark.parametrize("end", [frame(b"", 0x88), b""])
def test_the_end_of_the_browser_is_noticed_at_once(pair: tuple[BiDi, socket.socket], end: bytes) -> None:
    tools, other = pair
    other.sendall(end)
    if not end:
        other.close()
    with pytest.raises(BrowserGone):
        tools.call("do.it")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"type": "success", "result": {"url": "https://server/page"}}, (True, "", "")),
        ({"type": "success", "result": {"url": "about:blank"}}, (False, "", "the page's renderer crashed")),
        ({"type": "error", "error": "unknown error", "message": "Error: NS_ERROR_CONNECTION_REFUSED"},
         (False, "NS_ERROR_CONNECTION_REFUSED", "")),
    ],
)  # fmt: skip
def test_an_answer_to_a_navigation_ends_it(
    pair: tuple[BiDi, socket.socket], answer: dict[str, object], expected: tuple[bool, str, str]
) -> None:
    tools, other = pair
    browser, seen = Firefox.__new__(Firefox), Loading("https://server/page")
    browser.devtools = tools
    number = tools.start("browsingContext.navigate")
    browser.arrived(seen, PAGE, number)
    assert not seen.has_ended
    other.sendall(frame(json.dumps({"id": number, **answer}).encode()))
    tools.event(1.0)
    browser.arrived(seen, PAGE, number)
    assert (seen.is_loaded, seen.error, seen.crash) == expected


def test_a_download_is_no_crash(pair: tuple[BiDi, socket.socket]) -> None:
    tools, other = pair
    browser, seen = Firefox.__new__(Firefox), Loading("https://server/file")
    browser.devtools = tools
    number = tools.start("browsingContext.navigate")
    begun = {"type": "event", "method": "browsingContext.downloadWillBegin", "params": {"context": "target"}}
    other.sendall(frame(json.dumps(begun).encode()))
    other.sendall(frame(json.dumps({"id": number, "result": {"url": "about:blank"}}).encode()))
    with pytest.raises(TooLate):
        tools.call("do.nothing", limit_s=0.05)
    browser.arrived(seen, PAGE, number)
    assert (seen.error, seen.crash) == (DOWNLOAD, "")


def test_each_protocol_is_forced_and_no_other_name_is_reached() -> None:
    chosen = {name: preferences(Place(name, "10.77.2.10", 443)) for name in ("h1", "h2", "h3")}
    forced = {name: (each["network.http.http2.enabled"], each["network.http.http3.enable"])
              for name, each in chosen.items()}  # fmt: skip
    assert forced == {"h1": (False, False), "h2": (True, False), "h3": (True, True)}
    mapping = "network.http.http3.alt-svc-mapping-for-testing"
    assert preferences(H3)[mapping] == "server;h3=:8443"
    assert not [name for name in ("h1", "h2") if mapping in chosen[name]]
    discovered = preferences(replace(H3, discovers=True))
    assert discovered["network.http.http3.enable"]
    assert not [name for name in discovered if "testing" in name or "backup_timer" in name]
    for each in chosen.values():
        assert each["network.dns.forceResolve"] == "10.77.2.10"
        assert each["network.proxy.no_proxies_on"] == "server"
    with pytest.raises(ValueError, match=r"'h4' is none of Firefox's protocols: h1, h2, h3"):
        preferences(Place("h4", "10.77.2.10", 443))


def test_one_certificate_of_one_server_is_trusted() -> None:
    server, oid, fingerprint, rest = trusting(H3, b"certificate").split("\t")
    assert (server, oid, rest) == ("server:8443:", "OID.2.16.840.1.101.3.4.2.1", "\n")
    assert fingerprint.replace(":", "").lower() == hashlib.sha256(b"certificate").hexdigest()
