"""Competing downloads: they must have run all the time, and the path is divided as counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.metric import Competing
from headwind.proof.competition import check_competition, division, jain
from impair.messages import Competed

TWO = Competing("h2", 2)
SEEN = Competed("h2", 1.0, 4.0, [1000, 3000], [2000, 6000], [10, 10])


def test_jains_index_is_1_for_equals_and_1_in_n_for_one_that_has_all() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([1.0, 2.0]) == pytest.approx(0.9)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=9).filter(any), st.integers(1, 1000))
def test_jains_index_is_bounded_and_does_not_depend_on_the_unit(amounts: list[int], unit: int) -> None:
    assert 1 / len(amounts) - 1e-9 <= jain(amounts) <= 1 + 1e-9
    assert jain([unit * amount for amount in amounts]) == pytest.approx(jain(amounts))


def test_the_division_is_between_the_client_and_each_competing_flow() -> None:
    found = division(SEEN, 8000)
    assert found == pytest.approx({
        "competing_bps": 8000 * 8 / 4, "download_share_ratio": 0.5, "jain_ratio": jain([8000, 2000, 6000]),
        "competing_kept_ratio": 0.5,  # 4000 bytes/s alone, 2000 beside the client
    })  # fmt: skip
    assert division(None, 8000) == division(SEEN, None) == {}


@pytest.mark.parametrize(
    "seen",
    [
        None,
        replace(SEEN, alone_bytes=[0, 3000], during_bytes=[0, 2000]),
        replace(SEEN, after_bytes=[0, 10]),
        replace(SEEN, error="flow 0: Connection refused"),
        Competed("h2", 1.0, 4.0, [1000], [2000], [10]),
    ],
    ids=["gone", "not before", "not after", "failed", "too few"],
)
def test_a_flow_that_did_not_run_all_the_time_fails_the_check(seen: Competed | None) -> None:
    (check,) = check_competition(TWO, seen)
    assert not check.passed
    assert (check.quantity, check.requested) == ("competing_flows", 2.0)
    assert "flow 0: Connection refused" in check.note or not (seen and seen.error)


def test_flows_that_ran_all_the_time_pass_and_without_any_there_is_no_check() -> None:
    (check,) = check_competition(TWO, SEEN)
    assert check.passed
    assert check.measured == 2
    assert list(check_competition(None, None)) == []
