"""Changes of an input, as an attacker or a broken disk would make them. All of them follow from a random generator."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from random import Random
from typing import Any

TOKENS = (
    b"\0", b"\xff\xfe", b"\xf0\x9f\x98\x80", b"\xe2\x80\xae", b"\x1b[2J", b"\r\n", b"\t", b"- ", b": ", b"{", b"}",
    b"[", b"]", b'"', b"'", b"&a ", b"*a", b"!!python/object:os.system ", b"<<: *a", b"---\n", b"%",
    b"1e999", b"-0", b"NaN",
    b"9" * 400, b"../../etc/passwd", b"<script>alert(1)</script>", b"=cmd|'/c calc'!A0", b"$(touch owned)", b"null",
    b"true", b"\\u0000", b"0x1f", b"1_000", b"100%", b"10ms", b"h3",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.1, -0.0, 1e308, float("inf"), float("nan"),
    "", "x", "\0", "\u202egnirts", "\x1b[31m", "../../x", "<script>alert(1)</script>", "=1+1", "h1", "ok", "uplink",
    "9" * 5000, "a" * 10_000, [], {}, [[]], [None], {"": None}, {"id": 1}, [[[[[[]]]]]],
)  # fmt: skip
DEEPEST = 50_000  # brackets: more than any recursion bears


def mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """One of the inputs with up to eight changes."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 1, 2, 2, 4, 8))):
        _change(data, seeds, random)
    return bytes(data)


def _change(data: bytearray, seeds: Sequence[bytes], random: Random) -> None:
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((1, 1, 2, 4, 16, 64, 1024)))
    match random.randrange(100):
        case kind if kind < 20 and start < len(data):
            data[start] ^= 1 << random.randrange(8)
        case kind if kind < 30 and start < len(data):
            data[start] = random.randrange(256)
        case kind if kind < 45:
            del data[start:end]
        case kind if kind < 55:
            data[start:start] = data[start:end]
        case kind if kind < 65:
            other = random.choice(seeds)
            begin = random.randrange(len(other) + 1)
            data[start:end] = other[begin : begin + random.choice((4, 32, 256))]
        case kind if kind < 70:
            del data[start:]
        case 70:
            data[start:start] = random.choice((b"[", b"{", b'{"a":', b"- ")) * random.choice((100, 5000, DEEPEST))
        case _:
            data[start:start] = random.choice(TOKENS)


def mutated_json(seeds: Sequence[Any], random: Random) -> Any:
    """One of the JSON values with up to three others in it, or with keys that are gone or new."""
    tree = copy.deepcopy(random.choice(seeds))
    for _ in range(random.choice((1, 1, 2, 3))):
        containers = list(_containers(tree))
        if not containers:
            return random.choice(VALUES)
        container = random.choice(containers)
        keys: list[Any] = list(container) if isinstance(container, dict) else list(range(len(container)))
        match random.randrange(6):
            case 0 if keys:
                del container[random.choice(keys)]
            case 1:
                _add(container, random)
            case 2 if keys:
                container[random.choice(keys)] = copy.deepcopy(random.choice(seeds))
            case _ if keys:
                container[random.choice(keys)] = copy.deepcopy(random.choice(VALUES))
            case _:
                _add(container, random)
    return tree


def _add(container: Any, random: Random) -> None:
    value = copy.deepcopy(random.choice(VALUES))
    if isinstance(container, dict):
        container[str(random.choice(VALUES))[:200]] = value
    else:
        container.append(value)


def _containers(tree: Any) -> list[Any]:
    if not isinstance(tree, (dict, list)):
        return []
    inner = tree.values() if isinstance(tree, dict) else tree
    return [tree, *(each for value in inner for each in _containers(value))]


def as_bytes(tree: Any) -> bytes:
    """JSON text, with what Python writes beyond the standard (NaN, Infinity)."""
    return json.dumps(tree).encode()
