"""Any link, trial and result that the model allows, for property tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from headwind.arm import PLAIN
from headwind.matrix.reader import schema
from headwind.metric import Competing
from headwind.model import Block, Check, Condition, Outcome, Proof, Result, Trial
from headwind.workloads.h2load import H2load
from impair.bounds import ImpossibleImpairment
from impair.profile import (
    Clock,
    Corrupt,
    Delay,
    Direction,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    Profile,
    Rate,
    Rebind,
    Rebinding,
    Reorder,
    Slot,
    Spells,
    Steps,
)
from impair.queues import Cake, Fifo, FqCodel, Pie, Queue, Red

# What may stand in a matrix: every key that the schema knows, values of every kind, and anything else.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def _keys_in(schema: Any) -> set[str]:
    """The names of all properties, at whatever depth."""
    if isinstance(schema, list):
        return {name for each in schema for name in _keys_in(each)}
    if not isinstance(schema, dict):
        return set()
    own = schema.get("properties")
    named = set(own) if isinstance(own, dict) else set()
    return named | {name for each in schema.values() for name in _keys_in(each)}


MATRIX_SCHEMA = schema()
MATRIX_KEYS = sorted(_keys_in(MATRIX_SCHEMA))
MATRIX_VALUES = ["h1", "h2", "h3", "h2-bbr", "cubic", "bbr", "normal", "100ms", "10ms", "1ns", "30%", "0%", "100%",
                 "10mbit", "8bit", "0", "1", "3", "-1", "100", "2147483647", "true", "clean", "lte", "/", "<<", "~",
                 "correlation", "downlink.loss", "both.delay", "uplink.rate", "15kB", "2h", "objects"]  # fmt: skip
MATRIX_WORDS = st.sampled_from(MATRIX_KEYS + MATRIX_VALUES)
TREES = st.recursive(
    MATRIX_WORDS | ANY_TEXT | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(MATRIX_WORDS | ANY_TEXT, inner, max_size=6),
    max_leaves=20,
)


@st.composite
def matrix_trees(draw: st.DrawFn) -> Any:
    """A matrix as its schema describes it, keys and all, with something else here and there."""
    return _mapping(draw, MATRIX_SCHEMA)


def _node(draw: st.DrawFn, node: dict[str, Any]) -> Any:
    if draw(st.integers(0, 30)) == 0:
        return draw(TREES)
    if "$ref" in node:
        return _node(draw, MATRIX_SCHEMA["$defs"][node["$ref"].rpartition("/")[2]])
    if node.keys() & {"properties", "additionalProperties", "patternProperties"}:
        return _mapping(draw, node)
    if kinds := node.get("anyOf") or node.get("oneOf"):
        return _node(draw, draw(st.sampled_from(kinds)))
    if node.get("type") == "array":
        return [_node(draw, node.get("items", {})) for _ in range(draw(st.integers(0, 3)))]
    return draw(st.sampled_from(_fitting(node)))


def _fitting(node: dict[str, Any]) -> list[Any]:
    """What the schema of a scalar allows."""
    if "enum" in node or "const" in node:
        return list(node.get("enum", [node.get("const")]))
    if node.get("type") == "integer":
        return [0, 1, 2, 3, 9, 12, 100]
    return [value for value in MATRIX_VALUES if re.search(node.get("pattern", ""), value)] or MATRIX_VALUES


def _mapping(draw: st.DrawFn, node: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: _node(draw, each)
        for name, each in node.get("properties", {}).items()
        if draw(st.integers(0, 20) if name in node.get("required", []) else st.sampled_from([0, 0, 1]))
    }
    others = [(".", node["additionalProperties"])] if isinstance(node.get("additionalProperties"), dict) else []
    for pattern, each in [*others, *node.get("patternProperties", {}).items()]:
        fitting = [name for name in ("clean", "h2-bbr", "lte", "100ms", "1s", "2s") if re.search(pattern, name)]
        names = draw(st.lists(st.sampled_from(fitting or ["clean"]), max_size=2))
        found |= {name: _node(draw, each) for name in names}
    return found


# What a person can write: whole thousandths of a percent and whole microseconds.
RATIOS = st.integers(0, 100_000).map(lambda thousandths: thousandths / 100_000)
TIMES = st.integers(0, 10_000_000).map(lambda us: us / 1_000_000)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=120)
FLOATS = st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)
FIGURES = st.dictionaries(st.text(), FLOATS, max_size=4)


def possible(make: Callable[..., Any], **parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What `make` accepts of these parts."""

    @st.composite
    def attempt(draw: st.DrawFn) -> Any:
        drawn = {name: draw(part) for name, part in parts.items()}
        try:
            return make(**drawn)
        except ImpossibleImpairment:
            assume(False)

    return attempt()


def perhaps(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Nothing, or one of these."""
    return st.none() | strategy


DELAYS = possible(
    Delay, delay_s=TIMES.map(lambda time_s: time_s + 10), jitter_s=st.integers(1, 2_000_000).map(lambda us: us / 1e6),
    distribution=st.sampled_from(["uniform", "normal", "pareto"]),
)  # fmt: skip
LOSSES = (
    st.builds(Loss, RATIOS)
    | possible(GilbertElliott, p=RATIOS, r=RATIOS, bad_loss=RATIOS, good_loss=RATIOS)
    | possible(FourState, p13=RATIOS.map(lambda ratio: ratio / 2), p31=RATIOS, p14=RATIOS.map(lambda ratio: ratio / 2))
)
RATES = possible(
    Rate, rate_bps=st.integers(1, 10**9).map(lambda bytes_per_s: 8 * bytes_per_s), packet_overhead=st.integers(-20, 60),
    cell_size=st.sampled_from([0, 53]), cell_overhead=st.sampled_from([0, 5]),
)  # fmt: skip
SLOTS = possible(Slot, min_delay_s=TIMES, max_delay_s=TIMES, max_packets=st.integers(0, 9))
PACKETS = st.integers(1, 10_000)
QUEUES: st.SearchStrategy[Queue] = (
    st.builds(Fifo, PACKETS)
    | st.builds(FqCodel, PACKETS, st.integers(10, 10_000).map(lambda us: us / 1e6), st.just(0.1), st.booleans())
    | st.builds(Cake, st.integers(10, 10_000_000).map(lambda us: us / 1e6))
    | possible(Red, packets=PACKETS, min_packets=PACKETS, max_packets=PACKETS, probability=RATIOS, ecn=st.booleans())
    | st.builds(Pie, PACKETS, st.integers(10, 1_000_000).map(lambda us: us / 1e6), st.booleans())
)
LINKS: st.SearchStrategy[Link] = possible(
    Link, delay=perhaps(DELAYS), loss=perhaps(LOSSES), duplicate=perhaps(st.builds(Duplicate, RATIOS)),
    corrupt=perhaps(st.builds(Corrupt, RATIOS)), reorder=perhaps(st.builds(Reorder, RATIOS, st.integers(1, 5))),
    rate=perhaps(RATES), slot=perhaps(SLOTS), ecn=st.booleans(), limit_packets=perhaps(st.integers(1, 100_000)),
    queue_packets=perhaps(st.integers(1, 1000)),
) | possible(
    Link, delay=perhaps(DELAYS), loss=perhaps(LOSSES), queue=QUEUES,
    rate=st.integers(125_000, 10**9).map(lambda bytes_per_s: Rate(8 * bytes_per_s)),
)  # fmt: skip
ALIKE = st.builds(  # one distribution: netem cannot take a table back
    Link, delay=perhaps(st.builds(Delay, TIMES.map(lambda time_s: time_s + 10), st.sampled_from([0.0, 0.5]))),
    loss=perhaps(st.builds(Loss, RATIOS)), duplicate=perhaps(st.builds(Duplicate, RATIOS)), rate=perhaps(RATES),
)  # fmt: skip
MOMENTS = st.lists(st.integers(1, 10**6), min_size=1, max_size=4, unique=True).map(
    lambda steps: tuple(sorted(step / 50 for step in steps))
)
STEPS = MOMENTS.flatmap(
    lambda moments: possible(
        Steps, moments_s=st.just(moments), links=st.tuples(*(ALIKE for _ in moments)),
        period_s=perhaps(st.integers(1, 1000).map(lambda seconds: moments[-1] + seconds)),
    )
)  # fmt: skip
SPELLS = possible(Spells, good_s=TIMES.map(lambda time_s: time_s + 0.04), bad_s=TIMES.map(lambda time_s: time_s + 0.04),
                  bad=ALIKE)  # fmt: skip
CHANGES: st.SearchStrategy[Steps | Spells | None] = st.none() | STEPS | SPELLS
PROFILES = (
    st.builds(Profile, NAMES, LINKS, LINKS)
    | st.builds(
        Profile, NAMES, ALIKE, ALIKE, uplink_changes=CHANGES, downlink_changes=CHANGES, clock=st.sampled_from(Clock)
    )
    | possible(
        Profile,
        name=NAMES,
        uplink=LINKS,
        downlink=LINKS,
        rebinding=st.builds(Rebinding, TIMES, st.sampled_from(Rebind)),
    )
)
COUNTS = st.integers(1, 10**6)
COMPETING = perhaps(st.builds(Competing, st.sampled_from(["h1", "h2"]), st.integers(1, 16)))
WORKLOADS = st.builds(H2load, NAMES, COUNTS, COUNTS, COUNTS, COUNTS, st.text(), competing=COMPETING)
SEEDS = st.fixed_dictionaries({direction: st.integers(0, 2**64 - 1) for direction in Direction})
ORDERS = st.permutations(PLAIN).map(tuple)
BLOCKS = st.builds(Block, st.builds(Condition, PROFILES, WORKLOADS), st.integers(0, 99), ORDERS, SEEDS)
TRIALS = st.builds(Trial, BLOCKS, st.integers(0, 2), st.sampled_from(PLAIN))
CHECKS = st.builds(
    Check, st.sampled_from(Direction), st.text(), perhaps(FLOATS), perhaps(FLOATS), perhaps(FLOATS), perhaps(FLOATS),
    st.booleans(), st.text(),
)  # fmt: skip
PROOFS = st.builds(Proof, st.lists(CHECKS, max_size=3).map(tuple), OBJECTS, st.lists(st.text(), max_size=2).map(tuple))
RESULTS: st.SearchStrategy[Result] = st.builds(
    Result, TRIALS, st.sampled_from(Outcome), st.text(st.characters()), FIGURES, PROOFS, OBJECTS, st.text(), FIGURES,
    st.integers(0, 99), st.floats(0, 1e10),
)  # fmt: skip
