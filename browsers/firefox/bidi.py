"""WebDriver BiDi: the JSON messages of devtools.py, as texts of a WebSocket (RFC 6455) on the loopback.

Firefox takes the connection itself, so there is no driver either.
"""

from __future__ import annotations

import base64
import os
import socket
import struct
from dataclasses import dataclass
from typing import Any

from browsers.devtools import CALL_S, BrowserGone, DevTools

LOOPBACK = "127.0.0.1"
END, CONTINUATION, TEXT, CLOSE = 0x80, 0x0, 0x1, 0x8  # RFC 6455, section 5.2: flag and opcodes of a frame's first byte
MASKED, TWO_BYTES, EIGHT_BYTES = 0x80, 126, 127  # of its second byte: flag, and longer lengths that follow it
UPGRADE = (
    "GET /session HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
)


@dataclass(slots=True)
class BiDi(DevTools):
    """A connection to a browser by WebDriver BiDi; it has no sessions to address."""

    _message: bytes = b""  # the frames of an unfinished one

    @classmethod
    def connect(cls, port: int) -> BiDi:
        """Connect to a browser on this host. Raises BrowserGone if it refuses, and OSError."""
        with socket.create_connection((LOOPBACK, port), timeout=CALL_S) as stream:
            key = base64.b64encode(os.urandom(16)).decode()
            stream.sendall(UPGRADE.format(host=f"{LOOPBACK}:{port}", key=key).encode())
            head = b""
            while b"\r\n\r\n" not in head and (piece := stream.recv(1)):
                head += piece
            if b" 101 " not in head.split(b"\r\n")[0]:
                raise BrowserGone(f"the browser refused a WebSocket: {head.decode(errors='replace')}")
            stream.settimeout(None)
            descriptor = stream.detach()
        return cls(descriptor, descriptor)

    def _packed(self, text: bytes) -> bytes:
        """A frame with a text, masked as those of all clients are."""
        mask, count = os.urandom(4), len(text)
        if count < TWO_BYTES:
            length = struct.pack(">B", MASKED | count)
        elif count < 1 << 16:
            length = struct.pack(">BH", MASKED | TWO_BYTES, count)
        else:
            length = struct.pack(">BQ", MASKED | EIGHT_BYTES, count)
        body = bytes(byte ^ mask[number % 4] for number, byte in enumerate(text))
        return bytes([END | TEXT]) + length + mask + body

    def _unpacked(self) -> list[bytes]:
        """The texts whose last frames have come. Raises BrowserGone for the end of the connection."""
        texts = []
        while frame := self._frame():
            first, content = frame
            if first & 0xF == CLOSE:
                raise BrowserGone("the browser closed the connection")
            if first & 0xF not in (CONTINUATION, TEXT):
                continue  # a sign of life, which is for networks that forget connections
            self._message += content
            if first & END:
                texts.append(self._message)
                self._message = b""
        return texts

    def _frame(self) -> tuple[int, bytes] | None:
        """The first byte and the content of the next frame; None if it is not there as a whole."""
        data = self._unfinished
        if len(data) < 2:
            return None
        length, start = data[1], 2
        if length in (TWO_BYTES, EIGHT_BYTES):
            start = 4 if length == TWO_BYTES else 10
            length = int.from_bytes(data[2:start], "big")
        if len(data) < start + length:
            return None
        self._unfinished = data[start + length :]
        return data[0], data[start : start + length]

    @staticmethod
    def _refusal(answer: dict[str, Any]) -> str:
        return str(answer.get("message") or answer["error"])
