"""Conditions on which nginx offers HTTP/3: read and written, and the same in nginx's regular expressions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.offer import LARGEST_US, OfferIf, at_least

WHOLE = st.integers(1, LARGEST_US)


@given(WHOLE, WHOLE)
def test_the_expressions_match_the_numbers_from_the_threshold_on_and_no_others(least: int, value: int) -> None:
    pattern = re.compile(f"^({'|'.join(at_least(least))})$")
    for number in (value, least - 1, least, least + 1, 10 * least):
        assert bool(pattern.search(str(number))) is (number >= least)


@given(WHOLE, st.booleans(), st.sampled_from(["rtt", "rttvar"]), WHOLE)
def test_what_is_written_is_read_again_and_means_the_same(least: int, above: bool, quantity: str, value: int) -> None:
    condition = OfferIf(quantity, least, above)
    assert OfferIf.parse(str(condition)) == condition
    assert condition.holds(value) is ((value >= least) is above)
    assert condition.holds(least) is above


def test_units_are_read() -> None:
    assert OfferIf.parse("rtt >= 0.08s") == OfferIf.parse("rtt>=80ms") == OfferIf("rtt", 80_000)
    assert str(OfferIf.parse("rttvar < 1.5ms")) == "rttvar < 1500us"


@pytest.mark.parametrize("text", ["", "rtt", "rtt > 80ms", "rtt >= 80", "cwnd >= 10ms", "rtt >= 0ms", "rtt >= 200s"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        OfferIf.parse(text)


def test_over_quic_where_tcp_has_no_variables_nothing_is_offered() -> None:
    offered = OfferIf("rtt", 80_000).nginx_map("offer", "'h3'")
    assert 'default "";' in offered
    withheld = OfferIf("rtt", 80_000, above=False).nginx_map("offer", "'h3'")
    assert withheld.splitlines()[1].split() == ['""', '"";']
    assert "default 'h3';" in withheld
