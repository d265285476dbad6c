"""The packet filters of this network namespace, as texts: all of them, and the rules that a plain container lacks.

nftables over netlink (linux/netfilter/nf_tables.h), the older iptables through its socket options
(linux/netfilter_ipv4/ip_tables.h). Docker's own rules, for its name server at 127.0.0.11, are in every container.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from impair.netlink import NLM_F_ACK, NLM_F_DUMP, Netlink, attributes

NETLINK_XFRM, XFRM_MSG_GETPOLICY = 6, 21
NETLINK_NETFILTER = 12
SUBSYSTEM = 10 << 8  # NFNL_SUBSYS_NFTABLES
NFT_MSG_GETTABLE, NFT_MSG_GETCHAIN, NFT_MSG_GETRULE, NFT_MSG_GETGEN = (SUBSYSTEM | number for number in (1, 4, 7, 16))
NFTA_TABLE_NAME, NFTA_GEN_ID = 1, 1
NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, NFTA_CHAIN_POLICY = 1, 3, 5
NFTA_RULE_TABLE, NFTA_RULE_CHAIN, NFTA_RULE_EXPRESSIONS = 1, 2, 4
NF_ACCEPT = 1
NAME_SERVER = socket.inet_aton("127.0.0.11")
NOT_THERE = (errno.EOPNOTSUPP, errno.ENOENT, errno.EINVAL, errno.EPROTONOSUPPORT)  # a kernel without the subsystem
MODULES = Path("/proc/modules")
LEGACY_TABLES = Path("/proc/net/ip_tables_names")
IPT_SO_GET_INFO, IPT_SO_GET_ENTRIES = 64, 65
_INFO = struct.Struct("@32sI5I5III")  # ipt_getinfo: name, valid hooks, entry of each, underflow of each, number, size
_ENTRY_BYTES, _OFFSETS_AT, _COUNTERS = 112, 88, slice(96, 112)  # ipt_entry; target_offset and next_offset in it
_VERDICT_AT = 32  # in a target: after its size, name and revision
ACCEPTS, RETURNS = -NF_ACCEPT - 1, -5  # verdicts of a standard target


def firewall() -> list[str]:
    """Everything that can drop or change packets here, as texts: equal ones mean that nothing was touched."""
    there = _subsystems(_modules())
    legacy = (
        f"legacy {name} {blake2b(b''.join(_rules_in(name)), digest_size=8).hexdigest()}" for name in _legacy_tables()
    )
    return [*(_nftables() if there.nftables else ()), *legacy, *(_policies() if there.ipsec else ())]


def foreign_rules() -> list[str]:
    """Additions to a plain container: rules not about Docker's name server, closed chains, IPsec policies."""
    there = _subsystems(_modules())
    return [
        *(_foreign_nft() if there.nftables else ()), *_foreign_legacy(), *(_policies() if there.ipsec else ()),
    ]  # fmt: skip


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode()


def _nftables() -> list[str]:
    """The tables, and the number of the rule set's generation: it grows with every change, also one taken back."""
    with Netlink(NETLINK_NETFILTER) as sock:
        tables = [_text(attributes(message[4:])[NFTA_TABLE_NAME])
                  for message in sock.ask(NFT_MSG_GETTABLE, NLM_F_DUMP, bytes(4))]  # fmt: skip
        return [*(f"nft {name}" for name in tables), f"nft generation {_generation(sock)}"]


def _foreign_nft() -> Iterator[str]:
    with Netlink(NETLINK_NETFILTER) as sock:
        for message in sock.ask(NFT_MSG_GETCHAIN, NLM_F_DUMP, bytes(4)):
            found = attributes(message[4:])
            if int.from_bytes(found.get(NFTA_CHAIN_POLICY, bytes([NF_ACCEPT]))) != NF_ACCEPT:
                yield f"an nftables chain that drops by default: {_place(found, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME)}"
        for message in sock.ask(NFT_MSG_GETRULE, NLM_F_DUMP, bytes(4)):
            found = attributes(message[4:])
            if NAME_SERVER not in found.get(NFTA_RULE_EXPRESSIONS, b""):
                yield f"an nftables rule in {_place(found, NFTA_RULE_TABLE, NFTA_RULE_CHAIN)}"


def _place(found: dict[int, bytes], table: int, chain: int) -> str:
    return f"table {_text(found[table])}, chain {_text(found[chain])}"


def _modules() -> frozenset[str]:
    return frozenset(line.split()[0] for line in MODULES.read_text().splitlines()) if MODULES.exists() else frozenset()


class Subsystems(NamedTuple):
    """The packet filters that this kernel has, besides the older iptables."""

    nftables: bool
    ipsec: bool


@lru_cache(maxsize=1)
def _subsystems(modules: frozenset[str]) -> Subsystems:  # noqa: ARG001 - the key of the cache
    """The kernel's subsystems, queried once for the same loaded modules.

    A kernel that lacks one starts modprobe for each query: 10 ms, in a user-mode kernel 26.
    """
    return Subsystems(_answers(_nftables), _answers(_read_policies))


def _answers(ask_kernel: Callable[[], object]) -> bool:
    """Whether this kernel has the subsystem. Raises OSError for any other refusal."""
    try:
        ask_kernel()
    except OSError as error:
        if error.errno in NOT_THERE:
            return False
        raise
    return True


def _generation(sock: Netlink) -> int:
    answer = sock.ask(NFT_MSG_GETGEN, NLM_F_ACK, bytes(4))[0]
    return int.from_bytes(attributes(answer[4:])[NFTA_GEN_ID])


def _legacy_tables() -> list[str]:
    return LEGACY_TABLES.read_text().split() if LEGACY_TABLES.exists() else []


def _rules_in(table: str) -> list[bytes]:
    """The entries of an iptables table, without their counters."""
    return [entry[: _COUNTERS.start] + bytes(16) + entry[_COUNTERS.stop :] for _, entry in _entries(table)[1]]


def _foreign_legacy() -> Iterator[str]:
    for table in _legacy_tables():
        policies, entries = _entries(table)
        for offset, entry in entries:
            if not (NAME_SERVER in entry[:16] or _is_harmless(entry)):
                yield f"an iptables {'policy' if offset in policies else 'rule'} in table {table}"


def _is_harmless(entry: bytes) -> bool:
    """Accepts, returns, or is no rule at all: the name of a chain, or the end of the table, both called ERROR."""
    (target_at,) = struct.unpack_from("@H", entry, _OFFSETS_AT)
    name = _text(entry[target_at + 2 : target_at + 31].split(b"\0")[0])
    if name == "ERROR":
        return True
    return name == "" and struct.unpack_from("@i", entry, target_at + _VERDICT_AT)[0] in (ACCEPTS, RETURNS)


def _entries(table: str) -> tuple[set[int], list[tuple[int, bytes]]]:
    """(offsets of the chains' policies, [(offset, ipt_entry)]) of a table. Raises OSError."""
    _, hooks, *numbers = _INFO.unpack(_asked(IPT_SO_GET_INFO, table, b"", _INFO.size))
    underflows, size = numbers[5:10], numbers[11]
    policies = {offset for hook, offset in enumerate(underflows) if hooks >> hook & 1}
    blob = _asked(IPT_SO_GET_ENTRIES, table, struct.pack("@II", size, 0), 40 + size)[40:]
    entries, offset = [], 0
    while offset + _ENTRY_BYTES <= len(blob):
        _, step = struct.unpack_from("@HH", blob, offset + _OFFSETS_AT)
        entries.append((offset, blob[offset : offset + step]))
        offset += max(step, _ENTRY_BYTES)
    return policies, entries


def _asked(option: int, table: str, more: bytes, size: int) -> bytes:
    """Call getsockopt() with a request in its buffer, which Python's own cannot do."""
    buffer = ctypes.create_string_buffer(table.encode().ljust(32, b"\0") + more, size)
    length = ctypes.c_uint(size)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.getsockopt(sock.fileno(), socket.IPPROTO_IP, option, buffer, ctypes.byref(length)):
            raise OSError(ctypes.get_errno(), f"iptables table {table} cannot be read")
    return buffer.raw


def _policies() -> list[str]:
    """IPsec policies, which can drop packets as well (linux/xfrm.h)."""
    texts = (blake2b(policy, digest_size=4).hexdigest() for policy in _read_policies())
    return [f"an IPsec policy, {text} (`ip xfrm policy`)" for text in texts]


def _read_policies() -> list[bytes]:
    with Netlink(NETLINK_XFRM) as sock:
        return sock.ask(XFRM_MSG_GETPOLICY, NLM_F_DUMP, b"")


def listed(words: Iterable[str]) -> str:
    """Texts joined in a fixed order; "none" if there are none."""
    return ", ".join(sorted(words)) or "none"
