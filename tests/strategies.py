"""Any link, trial and result that the model allows, for property tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from headwind.arm import PLAIN
from headwind.model import Block, Check, Condition, Outcome, Proof, Result, Trial
from headwind.workloads.h2load import H2load
from impair.profile import (
    Corrupt,
    Delay,
    Direction,
    Duplicate,
    FourState,
    GilbertElliott,
    ImpossibleImpairment,
    Link,
    Loss,
    Profile,
    Rate,
    Reorder,
    Slot,
)

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
LINKS: st.SearchStrategy[Link] = possible(
    Link, delay=perhaps(DELAYS), loss=perhaps(LOSSES), duplicate=perhaps(st.builds(Duplicate, RATIOS)),
    corrupt=perhaps(st.builds(Corrupt, RATIOS)), reorder=perhaps(st.builds(Reorder, RATIOS, st.integers(1, 5))),
    rate=perhaps(RATES), slot=perhaps(SLOTS), ecn=st.booleans(), limit_packets=perhaps(st.integers(1, 100_000)),
    queue_packets=perhaps(st.integers(1, 1000)),
)  # fmt: skip
PROFILES = st.builds(Profile, NAMES, LINKS, LINKS)
COUNTS = st.integers(1, 10**6)
WORKLOADS = st.builds(H2load, NAMES, COUNTS, COUNTS, COUNTS, COUNTS, st.text())
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
