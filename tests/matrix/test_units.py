"""Units mean what tc means by them, exactly; anything that could mean two things is refused with both."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.matrix.units import (
    RATE,
    RATIO,
    TIME,
    Mistake,
    Unit,
    bits_per_second,
    duration_s,
    quoted,
    ratio,
    seconds,
    size_bytes,
    truth,
    whole,
)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (seconds, "100ms", 0.1),
        (seconds, "10ms", 0.01),
        (seconds, "0.5s", 0.5),
        (seconds, "250us", 0.00025),
        (seconds, "1ns", 1e-9),
        (seconds, "0s", 0.0),
        (seconds, "2.5msecs", 0.0025),
        (ratio, "30%", 0.3),
        (ratio, "0.1%", 0.001),
        (ratio, "100%", 1.0),
        (ratio, "0%", 0.0),
        (bits_per_second, "8bit", 8),
        (bits_per_second, "10mbit", 10_000_000),
        (bits_per_second, "10Mbit", 10_000_000),
        (bits_per_second, "1.1mbit", 1_100_000),
        (bits_per_second, "1gbit", 10**9),
        (bits_per_second, "2tbit", 2 * 10**12),
        (bits_per_second, "1kibit", 1024),
        (bits_per_second, "1Mibit", 1024**2),
    ],
)
def test_a_number_and_its_unit(read: Callable[[Any], float], text: str, value: float) -> None:
    assert read(text) == value


NUMBERS = st.decimals(0, 10**6, places=3, allow_nan=False, allow_infinity=False)


@given(NUMBERS, st.sampled_from([("ns", 10**9), ("us", 10**6), ("ms", 1000), ("s", 1)]))
def test_a_time_is_the_nearest_float_to_what_is_written(number: Any, unit: tuple[str, int]) -> None:
    name, per_second = unit
    assert seconds(f"{number}{name}") == float(Fraction(number) / per_second)


@given(st.decimals(0, 100, places=4, allow_nan=False, allow_infinity=False))
def test_a_share_is_the_nearest_float_to_what_is_written(number: Any) -> None:
    assert ratio(f"{number}%") == float(Fraction(number) / 100)


@pytest.mark.parametrize(
    ("read", "text", "hint"),
    [
        (seconds, "100", "100ms or 100s?"),
        (seconds, "0", "0ms or 0s?"),
        (ratio, "30", "30%?"),
        (ratio, "0.3", "0.3% or 30%?"),
        (ratio, "1", "1% or 100%?"),
        (bits_per_second, "10", "10mbit or 10kbit?"),
    ],
)
def test_a_number_without_its_unit_is_refused_with_what_it_may_mean(
    read: Callable[[Any], float], text: str, hint: str
) -> None:
    with pytest.raises(Mistake, match="has no unit") as caught:
        read(text)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("10kbps", "`10kbit` for bits, `80kbit` for bytes"),
        ("1.5Mbps", "`1.5mbit` for bits, `12.0mbit` for bytes"),
        ("9bps", "`9bit` for bits, `72bit` for bytes"),
        ("1mibps", "`1mibit` for bits, `8mibit` for bytes"),
    ],
)
def test_bps_is_refused_because_it_means_bytes_to_tc(text: str, hint: str) -> None:
    with pytest.raises(Mistake, match="bytes per second in tc") as caught:
        bits_per_second(text)
    assert caught.value.hint == hint
    for offer in re.findall("`([^`]+)`", hint):
        assert bits_per_second(offer)


@pytest.mark.parametrize(
    ("read", "text", "meant"),
    [
        (bits_per_second, "10mbits", "10mbit"),
        (bits_per_second, "10mbitt", "10mbit"),
        (seconds, "100 ms", "100ms"),
        (seconds, "100MS", "100ms"),
        (seconds, "2min", "120s"),
        (seconds, "1.5h", "5400s"),
        (seconds, "1.5 sec", "1.5s"),
        (seconds, "10 msec", "10ms"),
        (seconds, "1m30s", "90s"),
        (seconds, "7millisecond", "7ms"),
        (bits_per_second, "10 Mbit", "10mbit"),
        (bits_per_second, "10kilobits/s", "10kbit"),
        (bits_per_second, "10MB/s", "80mbit"),
        (bits_per_second, "10 mb/s", "10mbit"),
        (bits_per_second, "1 Mibit/s", "1mibit"),
        (duration_s, "5000ms", "5s"),
        (duration_s, "1h30min", "90min"),
        (duration_s, "2 days", "48h"),
        (size_bytes, "1GB", "1000MB"),
        (size_bytes, "15 kbytes", "15kB"),
        (ratio, "5\u2030", "0.5%"),
        (ratio, "0,5 %", "0.5%"),
        (ratio, "30 %", "30%"),
        (lambda text: whole(text, 1, 9999), "010", "10"),
        (lambda text: whole(text, 1, 9999), "1_000", "1000"),
        (lambda text: whole(text, 1, 9999), "1,000", "1000"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(read: Callable[[Any], float], text: str, meant: str) -> None:
    with pytest.raises(Mistake) as caught:
        read(text)
    assert f"`{meant}`" in caught.value.hint
    assert read(meant) >= 0


@pytest.mark.parametrize(
    "text",
    ["", " ", "ms", "%", "-1ms", "+1ms", "1e309s", "1e3ms", "nan", "nans", "inf", "infs", "1:30", "0x10ms", "010ms",
     ".5s", "1.s", "1..5s", "1_0ms", "1,5s", "１ms", "1" * 31 + "s", "100ms 10ms", "30%", "10mbit", "ms100",
     "1ms\n", "1m s"],
)  # fmt: skip
def test_nothing_else_is_a_time(text: str) -> None:
    with pytest.raises(Mistake):
        seconds(text)


@pytest.mark.parametrize("text", ["101%", "100.0001%", "-3%", "nan%", "1e1%", "0x1%", "30", "30%%", "thirty"])
def test_nothing_else_is_a_share(text: str) -> None:
    with pytest.raises(Mistake):
        ratio(text)


@pytest.mark.parametrize("text", ["0.5bit", "1mb", "1M", "-1mbit", "1mBit", "1 mbit", "1e3kbit", "10MBps"])
def test_nothing_else_is_a_rate(text: str) -> None:
    with pytest.raises(Mistake):
        bits_per_second(text)


@pytest.mark.parametrize(
    "text", ["", "010", "0x10", "0o10", "1_000", "1e3", "1.0", "+1", "--1", "１", "1 ", "ten", "9" * 31]
)
def test_a_whole_number_is_plain_digits(text: str) -> None:
    with pytest.raises(Mistake, match="is not a plain number"):
        whole(text, -(10**30), 10**30)


@given(st.integers(-100, 100), st.integers(-50, 50), st.integers(-50, 50))
def test_a_whole_number_keeps_to_its_bounds(number: int, low: int, high: int) -> None:
    if low <= number <= high:
        assert whole(str(number), low, high) == number
    else:
        with pytest.raises(Mistake, match="is out of range"):
            whole(str(number), low, high)


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "True", "FALSE", "1", "y", ""])
def test_truth_is_true_or_false_and_nothing_else(text: str) -> None:
    assert (truth("true"), truth("false")) == (True, False)
    with pytest.raises(Mistake, match="is not true or false"):
        truth(text)


@pytest.mark.parametrize("read", [seconds, ratio, bits_per_second, truth, lambda value: whole(value, 0, 1)])
@pytest.mark.parametrize("value", [{}, {"a": "1ms"}, [], ["1ms"]])
def test_a_mapping_or_a_list_is_not_a_value(read: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(Mistake, match="where one value is expected"):
        read(value)


@pytest.mark.parametrize("unit", [TIME, RATIO, RATE], ids=lambda unit: unit.what)
@given(data=st.data())
def test_the_schemas_pattern_is_what_can_be_read(unit: Unit, data: st.DataObject) -> None:
    number = data.draw(st.from_regex(r"\A[-+0-9._e]{0,5}\Z") | NUMBERS.map(str))
    name = data.draw(st.sampled_from([*unit.factors, "", " ", "x", "bps", "%", "MS", "\n"]))
    text = number + name
    matches = re.search(unit.pattern, text) is not None and not text.endswith("\n")  # ECMA's $ is the very end
    try:
        unit.parse(text)
    except Mistake:
        assert not matches
    else:
        assert matches


def test_a_quoted_text_is_short_and_printable() -> None:
    assert quoted("a\x1b[31m\n") == "`a\\x1b[31m\\n`"
    assert quoted("\ud800") == "`\\ud800`"
    assert len(quoted("x" * 10_000)) < 80
