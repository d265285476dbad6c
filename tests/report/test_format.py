"""Numbers read as people expect them, and say no more than was measured."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headwind.format import (
    about,
    above,
    as_written,
    clean,
    counted,
    duration,
    link_settings,
    listed,
    measured,
    moment,
    quantity_name,
    setting,
    significant,
)
from headwind.matrix import units
from impair.bounds import ImpossibleImpairment
from impair.profile import Delay, GilbertElliott, Link, Loss, Rate, Reorder, Slot
from tests.strategies import LINKS


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        ("total_s", 0.40649, "406 ms"),
        ("total_s", 1.9, "1.90 s"),
        ("total_s", 33.64, "33.6 s"),
        ("total_s", 0.99951, "1.00 s"),
        ("total_s", 0.0009996, "1.00 ms"),
        ("total_s", 0.000250, "250 µs"),
        ("total_s", 125.4, "125 s"),
        ("total_s", 3661.0, "3,660 s"),
        ("total_s", 0.0, "0 s"),
        ("total_s", None, "\N{EM DASH}"),
        ("loss_ratio", 0.30123, "30.1 %"),
        ("loss_ratio", 0.3, "30.0 %"),
        ("loss_ratio", 0.00051, "0.0510 %"),
        ("loss_ratio", 1.0, "100 %"),
        ("loss_ratio", 0.0, "0 %"),
        ("goodput_bps", 21.3e6, "21.3 Mbit/s"),
        ("goodput_bps", 999_600, "1.00 Mbit/s"),
        ("goodput_bps", 1.5e9, "1.50 Gbit/s"),
        ("goodput_bps", 12.0, "12.0 bit/s"),
        ("goodput_bps", 0.0, "0 bit/s"),
        ("requests_per_s", 24601.15, "24,600 /s"),
        ("packets", 24601.15, "24,600"),
        ("packets", 67.451, "67.5"),
    ],
)
def test_a_measured_value_has_three_digits_and_the_unit_that_fits(quantity: str, value: float, text: str) -> None:
    assert measured(quantity, value) == text


@given(st.floats(1e-12, 1e12), st.integers(1, 6))
def test_rounding_to_digits_is_that_of_decimal_arithmetic(value: float, digits: int) -> None:
    text = significant(value, digits)
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    assert abs(Decimal(text.replace(",", "")) - exact) <= step / 2
    assert "e" not in text


@pytest.mark.parametrize(
    ("quantity", "value", "report", "matrix"),
    [
        ("delay_s", 0.1, "100 ms", "100ms"),
        ("delay_s", 0.0125, "12.5 ms", "12.5ms"),
        ("timeout_s", 60.0, "60 s", "60s"),
        ("timeout_s", 90, "90 s", "90s"),
        ("delay_s", 0.0, "0 s", "0s"),
        ("delay_s", 1e-9, "1 ns", "1ns"),
        ("loss_ratio", 0.3, "30 %", "30%"),
        ("loss_ratio", 0.07, "7 %", "7%"),
        ("loss_ratio", 0.0, "0 %", "0%"),
        ("rate_bps", 10_000_000, "10 Mbit/s", "10mbit"),
        ("rate_bps", 1_544_000, "1.544 Mbit/s", "1.544mbit"),
        ("limit", 100_000, "100,000", "100000"),
    ],
)
def test_a_setting_is_exact_and_short(quantity: str, value: float, report: str, matrix: str) -> None:
    assert setting(quantity, value) == report
    assert as_written(quantity, value) == matrix


@given(st.integers(0, 10**10))
def test_what_is_written_for_a_matrix_means_the_same_value_when_it_is_read(number: int) -> None:
    assert units.seconds(as_written("delay_s", number / 1e9)) == pytest.approx(number / 1e9, rel=1e-12, abs=0)
    assert units.bits_per_second(as_written("rate_bps", number)) == number
    share = number / 10**10
    assert units.ratio(as_written("loss_ratio", share)) == pytest.approx(share, rel=1e-12, abs=0)


@given(LINKS, LINKS, st.sampled_from([item.name for item in fields(Link)]))
def test_two_networks_that_differ_in_one_thing_are_told_apart(first: Link, other: Link, name: str) -> None:
    try:
        second = replace(first, **{name: getattr(other, name)})
    except ImpossibleImpairment:
        assume(False)
    assert (link_settings(first, as_written) == link_settings(second, as_written)) == (first == second)


def test_the_settings_of_a_network_have_the_keys_and_units_of_matrix_yaml() -> None:
    link = Link(
        delay=Delay(0.1, 0.01, "normal"), loss=GilbertElliott(0.01, 0.3), reorder=Reorder(0.25, 5),
        rate=Rate(10_000_000), slot=Slot(0.01, 0.02), ecn=True, queue_packets=50,
    )  # fmt: skip
    assert link_settings(link, as_written) == {
        "delay": "100ms", "jitter": "10ms", "distribution": "normal", "loss.gemodel.p": "1%", "loss.gemodel.r": "30%",
        "loss.gemodel.bad": "100%", "loss.gemodel.good": "0%", "reorder": "25%", "reorder.gap": "5",
        "rate": "10mbit", "slot.min_delay": "10ms", "slot.max_delay": "20ms", "ecn": "on", "queue": "50",
    }  # fmt: skip
    assert link_settings(Link(loss=Loss(0.3))) == {"loss": "30 %"}
    assert link_settings(Link()) == {}


@given(st.floats(1e-6, 1e6))
def test_a_bound_that_is_shown_never_claims_more_than_the_bound(seconds: float) -> None:
    shown = units.seconds(above(seconds).removeprefix("> ").replace("µ", "u").replace(" ", "").replace(",", ""))
    assert shown <= seconds * (1 + 1e-9)
    assert shown > seconds * 0.99


@pytest.mark.parametrize(("seconds", "text"), [(60.0, "> 60 s"), (30.66, "> 30.6 s"), (0.29, "> 290 ms")])
def test_a_round_bound_stays_round(seconds: float, text: str) -> None:
    assert above(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.24, "240 ms"), (59.6, "1 min"), (75, "1 min 15 s"), (3600, "1 h"), (7325, "2 h 2 min 5 s"), (12, "12 s"),
     (9.5, "9.50 s"), (5, "5 s")],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (7.2, "7 s"), (40.4, "40 s"), (59.6, "1 min"), (90.0, "1 min 30 s"),
     (299.4, "4 min 59 s"), (329.0, "5 min"), (720.0, "12 min"), (5400.0, "1 h 30 min"), (11_125.0, "3 h 5 min")],
)  # fmt: skip
def test_a_forecast_is_as_exact_as_it_is_useful(seconds: float, text: str) -> None:
    assert about(seconds) == text


def test_a_moment_is_told_in_utc() -> None:
    assert moment(0.0) == "1970-01-01 00:00:00 UTC"
    assert moment(None) == "\N{EM DASH}"


def test_counts_agree_with_their_noun() -> None:
    assert [counted(count, "trial") for count in (0, 1, 2, 1000)] == ["0 trials", "1 trial", "2 trials", "1,000 trials"]


def test_a_list_counts_the_rest_but_never_hides_a_single_name() -> None:
    assert listed(list("abcdefg")) == "a, b, c, d, e, f, g"
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"


def test_names_of_quantities_lose_their_unit() -> None:
    assert quantity_name("unexplained_loss_ratio") == "unexplained loss"
    assert quantity_name("rate_bps") == "rate"


@pytest.mark.parametrize("letter", ["\x00", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\ud800", "\ufffe", "\ufdd0"])
def test_what_a_page_or_terminal_would_obey_is_replaced(letter: str) -> None:
    assert clean(f"a{letter}b") == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("text", ["a\tb\nc", "\u05e9\u05dc\u05d5\u05dd", "\N{MAN}\u200d\N{PERSONAL COMPUTER}", "é"])
def test_what_people_write_stays(text: str) -> None:
    assert clean(text) == text


def test_no_value_is_shown_as_a_dash_and_infinity_does_not_break_a_page() -> None:
    assert setting("loss_ratio", None) == "\N{EM DASH}"
    assert "inf" in measured("total_s", math.inf)
