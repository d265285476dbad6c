"""A comparison is settled when its verdict counts in the whole matrix; until then blocks go where that costs least."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.arm import H1, H2, H3, Role
from headwind.model import Condition, Matrix, Outcome, Repetition, Result, Trial
from headwind.proof.attempts import MOST_ATTEMPTS
from headwind.report.ranking import forecast_of
from headwind.report.verdicts import open_text
from headwind.verdicts.outlook import Outlook
from headwind.verdicts.pairs import Pair
from headwind.verdicts.pending import Open, joining_bar
from headwind.verdicts.stats import e_bh
from impair.profile import Delay, Link, Profile
from tests.fake import checked_matrix, example_matrix, found, good_blocks, next_block, one_second, still_open, usual

MANY = [Profile(f"delay{number}", downlink=Link(delay=Delay(number / 1000))) for number in range(1, 9)]
WIDE: Matrix = example_matrix(*MANY, repeat=Repetition(least=3, most=60))  # 24 comparisons, 48 e-values
FIRST, *OTHERS = WIDE.conditions


def opened(results: list[Result], condition: Condition = FIRST) -> Open | None:
    return next((item for item in still_open(WIDE, results, one_second) if item.condition is condition), None)


def with_noise(blocks: int) -> list[Result]:
    """The first condition decides quickly, the others not at all."""
    return [
        *good_blocks(WIDE, FIRST, blocks),
        *(result for other in OTHERS for result in good_blocks(WIDE, other, 9, usual(0.5))),
    ]


def test_a_verdict_that_does_not_stand_among_all_comparisons_is_not_settled() -> None:
    item = opened(with_noise(9))
    assert item is not None
    assert item.undecided == ()
    assert set(item.unconfirmed) == {Pair(H1, H3), Pair(H2, H3), Pair(H1, H2)}, "a tie must stand as well"
    assert item.pairs == item.unconfirmed
    assert item.fewest is not None
    assert 1 <= item.fewest <= item.n
    assert item.rate == pytest.approx(3 / item.fewest)
    pairs = "HTTP/3 against HTTP/1.1, HTTP/3 against HTTP/2, and HTTP/2 against HTTP/1.1"
    assert open_text(item, item.condition.id).startswith(
        f"delay1/article: {pairs} are not sure by any metric; all probably sure by total time after about"
    )


def test_the_blocks_that_were_forecast_settle_it() -> None:
    item = opened(with_noise(9))
    assert item is not None
    assert item.outlook.blocks is not None
    results = with_noise(9 + item.outlook.blocks)
    assert opened(results) is None
    survivors = {
        finding.pair
        for finding in found(WIDE, results, complete=False, exhausted=False)
        if finding.condition is FIRST and finding.survives
    }
    assert {Pair(H2, H3), Pair(H1, H2)} <= survivors


def test_the_next_block_goes_where_the_first_of_several_comparisons_is_settled_soonest() -> None:
    """In the cheap condition one comparison is open for ever, but two want only confirmation."""
    results = with_noise(9)
    block = next_block(WIDE, results, lambda condition: 1.0 if condition is FIRST else 5.0, 1e6)
    assert block is not None
    assert (block.condition, block.index) == (FIRST, 9)


def test_when_all_is_settled_no_block_is_chosen() -> None:
    results = [result for condition in WIDE.conditions for result in good_blocks(WIDE, condition, 15)]
    assert still_open(WIDE, results, one_second) == ()
    assert next_block(WIDE, results, one_second, 1e6) is None


def test_one_decided_metric_is_enough() -> None:
    """Total times are noise, and the time per request is a tenth of a time that tells protocols apart."""
    results = []
    for condition in WIDE.conditions:
        for result, noisy in zip(
            good_blocks(WIDE, condition, 15), good_blocks(WIDE, condition, 15, usual(0.5)), strict=True
        ):
            metrics = {**result.metrics, "total_s": noisy.metrics["total_s"]}
            results.append(replace(result, metrics=metrics))
    assert still_open(WIDE, results, one_second) == ()


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 30))
def test_comparisons_that_come_to_the_bar_together_are_held_and_below_it_are_not(
    joining: int, held: int, silent: int
) -> None:
    kept, bar = [20.0] * held, joining_bar(joining + held + silent, held, joining)
    assert all(e_bh([bar + 1e-9] * joining, held=kept, silent=silent))
    if not held:  # what is held has evidence to spare
        assert not any(e_bh([bar - 1e-6] * joining, held=kept, silent=silent))


def test_more_blocks_than_the_matrix_allows_are_said_to_be_so() -> None:
    item = opened(with_noise(9))
    assert item is not None
    assert "the matrix file allows" not in open_text(item, item.condition.id)
    assert open_text(replace(item, most=9), item.condition.id).endswith(
        "; the matrix file allows 9 in all: raise `max` in a new run"
    )


def test_max_is_not_to_be_raised_while_blocks_below_it_are_left() -> None:
    """After 9 of 60 blocks a forecast of 60 became one of 24 with the next 6."""
    item = opened(with_noise(9))
    assert item is not None
    far = Outlook(60, 10, None)
    said = open_text(replace(item, soonest=far, outlook=far), item.condition.id)
    assert said.endswith(
        "; about 60 more blocks (likely 10 to hundreds), which take 1 min, but the matrix file allows only 51 more"
    )


def test_a_range_that_reaches_beyond_the_matrix_names_its_limit() -> None:
    """`about 24 more blocks (7 to 276)`, of which the matrix allowed 48."""
    item = opened(with_noise(9))
    assert item is not None
    wide = Outlook(24, 7, 276)
    said = open_text(replace(item, soonest=wide, outlook=wide), "far")
    assert said.endswith("about 24 more blocks (likely 7 to 276; the matrix file allows 51), which take 24 s")


@pytest.mark.parametrize(
    ("low", "said"), [(24, "needs at least 24 more blocks, perhaps far more"), (None, "probably hundreds more blocks")]
)
def test_a_forecast_beyond_its_horizon_has_a_range_and_no_never(low: int | None, said: str) -> None:
    item = opened(with_noise(9))
    assert item is not None
    far = Outlook(None, low, None)
    assert open_text(replace(item, soonest=far, outlook=far), "far").endswith(f"; {said}")


def test_what_is_open_is_not_sure_and_by_no_metric_more_than_that() -> None:
    """A comparison that the page calls likely by total time was listed as undecided by total time."""
    item = opened(with_noise(9), OTHERS[0])
    assert item is not None
    first, second, *_ = item.judged
    both, names = replace(item, judged=(first, second)), "HTTP/3 against HTTP/1.1, HTTP/3 against HTTP/2"
    assert open_text(both, "far").startswith(f"far: {names}, and HTTP/2 against HTTP/1.1 are not sure by any metric; ")
    assert open_text(replace(item, judged=(first,)), "far").startswith(
        f"far: {names}, and HTTP/2 against HTTP/1.1 are not "
    )
    one = replace(both, undecided=both.pairs[:1], unconfirmed=())
    assert open_text(one, "far").startswith("far: HTTP/3 against HTTP/1.1 is not sure by any metric; ")


def test_a_forecast_names_the_metric_of_the_verdict() -> None:
    """Beside a row by total time stood the forecast of the time to first byte."""
    item = opened(with_noise(9))
    assert item is not None
    assert item.outlook.metric in item.judged
    total, other, *_ = item.judged
    soon = Outlook(5, 3, 9, metric=other)
    said = open_text(replace(item, soonest=soon, outlook=soon), "far")
    assert said.endswith(
        f"; all probably sure by {other.label} after about 5 more blocks (likely 3 to 9), which take 5 s"
    )
    assert "until" not in open_text(replace(item, soonest=soon, outlook=soon, judged=(total,)), "far"), "the only one"


def test_what_can_be_settled_is_said_before_what_cannot() -> None:
    item = opened(with_noise(9))
    assert item is not None
    never, soon = Outlook(None, 200, None), Outlook(5, 3, 9)
    said = open_text(replace(item, soonest=soon, outlook=never), "far")
    assert said.endswith(
        "; the first probably sure after about 5 more blocks (likely 3 to 9), which take 5 s; all 3 comparisons: "
        "at least 200 more blocks, perhaps far more, but the matrix file allows only 51 more"
    )
    assert "first" not in open_text(replace(item, soonest=soon, outlook=soon), "far")
    assert "first" not in open_text(replace(item, soonest=never, outlook=never), "far")


def test_blocks_in_which_an_arm_gave_no_data_are_still_missing() -> None:
    """`0 blocks, 7 more needed` of a minimum of 8 stood next to a block whose trials were invalid."""
    matrix = example_matrix(*MANY, repeat=Repetition(least=8, most=60))
    invalid = [
        replace(each, outcome=Outcome.INVALID, attempt=MOST_ATTEMPTS - 1) if each.trial.arm is H1 else each
        for each in good_blocks(matrix, matrix.conditions[0], 2)
    ]
    item = next(each for each in still_open(matrix, invalid, one_second) if each.condition is matrix.conditions[0])
    assert (item.n, item.missing, forecast_of(item)) == (2, 8, "8 more for the minimum")


def test_a_row_says_in_few_words_how_many_blocks_are_left() -> None:
    item = opened(with_noise(9))
    assert item is not None
    soon, never = Outlook(1_200, 3, 1_900), Outlook(None, 200, None)
    assert (
        forecast_of(replace(item, soonest=soon, outlook=soon)) == "about 1,200 more until all are sure by some metric"
    )
    assert forecast_of(replace(item, outlook=never)) == "at least 200 more until all are sure by some metric"
    assert (
        forecast_of(replace(item, outlook=replace(never, low=None)))
        == "hundreds more until all are sure by some metric"
    )
    assert forecast_of(replace(item, n=1)) == "", "too few for a forecast"
    assert forecast_of(replace(item, missing=4)) == "4 more for the minimum"


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "has no complete block"),
        (1, "HTTP/2 against HTTP/1.1 are not sure by any metric; too few blocks for a forecast"),
    ],
)
def test_a_single_block_is_no_ground_for_a_forecast(n: int, said: str) -> None:
    item = opened(with_noise(9))
    assert item is not None
    assert open_text(replace(item, n=n), item.condition.id).endswith(said)


def test_a_self_check_that_is_open_forecasts_nothing_of_the_comparisons_beside_it() -> None:
    """HTTP/2 and HTTP/2 once more differ by noise alone, with much of it; the protocols are as clear as ever."""

    def noisy_check(trial: Trial) -> float:
        return usual(0.5 if trial.arm == H2.twin(Role.AGAIN) else 0.005)(trial)

    matrix = checked_matrix()
    results = [each for item in matrix.conditions for each in good_blocks(matrix, item, 15, noisy_check)]
    checks = still_open(matrix, results, one_second)
    assert [item.condition.profile.name for item in checks] == ["clean", "delay"]
    assert all(item.is_of_checks and item.outlook.blocks is None for item in checks)
    both = still_open(matrix, [result for result in results if result.trial.block.index < 7], one_second)
    assert [item.is_of_checks for item in both] == [False, False]
    assert all(item.outlook.blocks for item in both), "that of the protocols, which a few more blocks decide"
