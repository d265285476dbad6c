"""Packet captures in the format pcapng (IETF draft-ietf-opsawg-pcapng). Standard library only.

A file is `header(...)` and then any number of `packet(...)`. The header can hold the keys of the captured connections
(a decryption secrets block), so that a reader such as Wireshark needs nothing else to decrypt them.
"""

from __future__ import annotations

import struct

SECTION, INTERFACE, SECRETS, PACKET = 0x0A0D0D0A, 1, 0x0A, 6  # block types
BYTE_ORDER_MAGIC = 0x1A2B3C4D
UNKNOWN_LENGTH = -1  # of a section
ETHERNET = 1  # LINKTYPE_ETHERNET
TLS_KEY_LOG = 0x544C534B  # the type of secrets that SSLKEYLOGFILE defines (RFC 9850)
COMMENT, IF_NAME, IF_TSRESOL, SHB_USERAPPL = 1, 2, 9, 4  # options
NANOSECONDS = 9  # time stamps count units of 10^-9 s


def header(interface: str, comment: str, keys: bytes = b"") -> bytes:
    """The blocks before the packets of one interface. `keys` is the content of a key log file."""
    section = struct.pack("<IHHq", BYTE_ORDER_MAGIC, 1, 0, UNKNOWN_LENGTH)
    about = _option(COMMENT, comment.encode()) + _option(SHB_USERAPPL, b"Headwind") + _option(0, b"")
    of_interface = struct.pack("<HHI", ETHERNET, 0, 0)
    named = _option(IF_NAME, interface.encode()) + _option(IF_TSRESOL, bytes([NANOSECONDS])) + _option(0, b"")
    secrets = _block(SECRETS, struct.pack("<II", TLS_KEY_LOG, len(keys)) + _padded(keys)) if keys else b""
    return _block(SECTION, section + about) + _block(INTERFACE, of_interface + named) + secrets


def packet(at_ns: int, content: bytes, length: int) -> bytes:
    """A block with one packet, captured at `at_ns` since 1970; `length` is that on the wire."""
    head = struct.pack("<5I", 0, at_ns >> 32, at_ns & 0xFFFFFFFF, len(content), length)
    return _block(PACKET, head + _padded(content))


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)
