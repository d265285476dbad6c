"""Netlink: requests to the kernel and its answers, independent of what they are about."""

from __future__ import annotations

import os
import socket
import struct
from typing import Self

NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_ACK_TLVS, NLMSGERR_ATTR_MSG = 0x200, 1
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 10, 11
HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
SEQUENCE_AT = 8  # in that header
ANSWER_BYTES = 65536
SO_RCVTIMEO = 20  # asm-generic/socket.h
ANSWER_TIMEOUT_S = 5


class Netlink:
    """A netlink socket of one family, in the network namespace in which it is made."""

    def __init__(self, family: int = socket.NETLINK_ROUTE) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        # A timeout of Python's own would take a further system call for each answer.
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVTIMEO, struct.pack("@ll", ANSWER_TIMEOUT_S, 0))
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def ask(self, kind: int, flags: int, payload: bytes) -> list[bytes]:
        """The payloads of the answers to one request; `flags` are NLM_F_ACK or NLM_F_DUMP. Raises as `send` does."""
        request = HEADER.pack(HEADER.size + len(payload), kind, NLM_F_REQUEST | flags, 0, 0) + payload
        return [answer[HEADER.size :] for answer in self.send(bytearray(request))]

    def send(self, request: bytearray) -> list[bytes]:
        """Send a whole request that wants an acknowledgement or a dump; the messages that come before its end.

        Raises OSError with the kernel's own words when it refuses, TimeoutError when it does not answer.
        """
        self._sequence += 1
        struct.pack_into("=I", request, SEQUENCE_AT, self._sequence)
        self._socket.send(request)
        answers: list[bytes] = []
        while True:
            packet = self._received()
            while packet:
                length, kind, flags, sequence, _ = HEADER.unpack_from(packet)
                answer, packet = packet[:length], packet[(length + 3) & ~3 :]
                if sequence != self._sequence:
                    continue  # left over from a request that timed out
                if kind == NLMSG_ERROR:
                    _raise_error(answer, flags)
                if kind in (NLMSG_ERROR, NLMSG_DONE):
                    return answers
                answers.append(answer)

    def _received(self) -> bytes:
        try:
            return self._socket.recv(ANSWER_BYTES)
        except BlockingIOError as error:
            raise TimeoutError(f"the kernel did not answer within {ANSWER_TIMEOUT_S} s") from error


def _raise_error(answer: bytes, flags: int) -> None:
    """Raise what a struct nlmsgerr complains of, in the kernel's own words where it has any; an ack raises nothing."""
    (status,) = struct.unpack_from("=i", answer, HEADER.size)
    if status == 0:
        return
    words = os.strerror(-status)
    offset = HEADER.size + 4 + HEADER.size  # status and, with NETLINK_CAP_ACK, the request's header
    while flags & NLM_F_ACK_TLVS and offset + 4 <= len(answer):
        length, kind = struct.unpack_from("=HH", answer, offset)
        if kind == NLMSGERR_ATTR_MSG:
            words = answer[offset + 4 : offset + length].rstrip(b"\0").decode()
        offset += (length + 3) & ~3 or 4
    raise OSError(-status, words)


def attributes(data: bytes) -> dict[int, bytes]:
    """The netlink attributes in `data`, by type, without the flags that a type may carry (NLA_TYPE_MASK)."""
    found: dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("@HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found
