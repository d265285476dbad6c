"""The plan is fair to every protocol and condition, and the same whenever it is made."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.model import Block, Condition, Matrix, Repetition, SelfCheck
from headwind.plan.block_order import netem_seed, plan_block, plan_blocks
from headwind.workloads.h2load import H2load
from impair.profile import Direction, Link, Loss, Profile

PAGE = H2load("page", requests=10, connections=2, streams=1)


def matrix(conditions: int = 5, repeat: int = 6, seed: int = 1, arms: tuple[Arm, ...] = PLAIN) -> Matrix:
    """Conditions p0/page, p1/page, ..."""
    profiles = [Profile(f"p{index}", downlink=Link(loss=Loss(index / 1000))) for index in range(conditions)]
    conditions_ = tuple(Condition(profile, PAGE) for profile in profiles)
    return Matrix(arms, conditions_, Repetition.fixed(repeat), 60.0, seed)


def by_condition(plan: list[Block]) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for block in plan:
        found.setdefault(block.condition.id, []).append(block)
    return found


MATRICES = st.builds(
    matrix,
    st.integers(1, 6),
    st.integers(1, 9),
    st.integers(0, 2**63 - 1),
    st.lists(st.sampled_from(PLAIN), min_size=1, max_size=3, unique=True).map(tuple),
)


@given(MATRICES)
def test_each_pass_visits_every_condition_once(experiment: Matrix) -> None:
    plan, size = plan_blocks(experiment), len(experiment.conditions)
    assert len(plan) == size * experiment.repeat.least
    for index in range(experiment.repeat.least):
        one_pass = plan[index * size : (index + 1) * size]
        assert {block.condition for block in one_pass} == set(experiment.conditions)
        assert {block.index for block in one_pass} == {index}


@given(MATRICES)
def test_every_block_runs_every_protocol_once_and_every_trial_has_its_own_name(experiment: Matrix) -> None:
    plan = plan_blocks(experiment)
    assert all(set(block.order) == set(experiment.arms) and len(block.order) == len(experiment.arms) for block in plan)
    ids = [trial.id for block in plan for trial in block.trials()]
    assert len(set(ids)) == len(ids) == len(plan) * len(experiment.arms)


@given(MATRICES)
def test_in_as_many_blocks_as_protocols_each_has_had_every_position_once(experiment: Matrix) -> None:
    count = len(experiment.arms)
    for blocks in by_condition(plan_blocks(experiment)).values():
        for start in range(0, len(blocks) - count + 1, count):
            square = [block.order for block in blocks[start : start + count]]
            for position in range(count):
                assert {order[position] for order in square} == set(experiment.arms)


@pytest.mark.parametrize("again", [(), ("p0",)])
@pytest.mark.parametrize("slower", [(), ("p0",)])
@pytest.mark.parametrize("chosen", [PLAIN, (H2, H3)])
def test_in_two_squares_each_arm_runs_equally_often_right_after_each_other_one(
    chosen: tuple[Arm, ...], again: tuple[str, ...], slower: tuple[str, ...]
) -> None:
    """So that what an arm leaves behind (a full cache, a hot processor) is not the merit of the next."""
    experiment = replace(matrix(conditions=1, repeat=40, arms=chosen), selfcheck=SelfCheck(H2, again, slower))
    (condition,) = experiment.conditions
    arms = experiment.arms_in(condition)
    plan = plan_blocks(experiment)
    for start in range(0, 40 - 2 * len(arms) + 1, 2 * len(arms)):
        orders = [block.order for block in plan[start : start + 2 * len(arms)]]
        follows = Counter(pair for order in orders for pair in pairwise(order))
        assert follows == dict.fromkeys(permutations(arms, 2), 2)


@given(MATRICES)
def test_the_same_matrix_gives_the_same_plan(experiment: Matrix) -> None:
    assert plan_blocks(experiment) == plan_blocks(replace(experiment))


PLAN = [
    "p1/page#0 h1 h3 h2",
    "p0/page#0 h1 h3 h2",
    "p2/page#0 h2 h3 h1",
    "p2/page#1 h3 h1 h2",
    "p1/page#1 h2 h1 h3",
    "p0/page#1 h3 h2 h1",
]
SEEDS = [8566649547179078233, 3451962402119944825]


def test_the_plan_is_the_same_on_every_machine_and_in_every_version() -> None:
    """A run is resumed by its plan: whoever changes these values breaks the resuming of older runs."""
    plan = plan_blocks(matrix(conditions=3, repeat=2, seed=7))
    assert [f"{block.condition.id}#{block.index} {' '.join(map(str, block.order))}" for block in plan] == PLAN
    assert [plan[0].seeds[direction] for direction in (Direction.UPLINK, Direction.DOWNLINK)] == SEEDS


def test_another_seed_gives_another_plan() -> None:
    plans = [plan_blocks(matrix(seed=seed)) for seed in range(20)]
    assert len({tuple(block.condition.id for block in plan) for plan in plans}) == 20
    assert len({tuple(block.order for block in plan) for plan in plans}) == 20
    assert len({seed for plan in plans for block in plan for seed in block.seeds.values()}) == 20 * 30 * 2


def test_a_new_condition_changes_nothing_for_the_others() -> None:
    before, after = plan_blocks(matrix(conditions=5)), plan_blocks(matrix(conditions=6))
    assert [block for block in after if block.condition.profile.name != "p5"] == before


def test_more_blocks_continue_the_plan() -> None:
    assert plan_blocks(matrix(repeat=9))[: 5 * 4] == plan_blocks(matrix(repeat=4))


def test_what_a_condition_does_to_the_network_does_not_change_the_plan() -> None:
    """So a later block can be compared with an earlier one of a profile that was corrected meanwhile."""
    first = matrix()
    second = replace(first, conditions=tuple(Condition(Profile(c.profile.name), PAGE) for c in first.conditions))
    assert [(b.condition.id, b.order, b.seeds) for b in plan_blocks(first)] == [
        (b.condition.id, b.order, b.seeds) for b in plan_blocks(second)
    ]


def test_no_protocol_order_is_favoured() -> None:
    """Of 600 squares each of the six possible orders begins about a sixth (chi-squared, 5 degrees, p = 0.001: 20.5)."""
    experiment = matrix(conditions=200, repeat=9)
    firsts = Counter(block.order for block in plan_blocks(experiment) if block.index % 3 == 0)
    assert sum(firsts.values()) == 600
    assert sum((firsts[order] - 100) ** 2 / 100 for order in permutations(PLAIN)) < 20.5


def test_no_condition_comes_early_or_late_more_often_than_chance_allows() -> None:
    """Of 400 passes over 4 conditions each is first about 100 times (chi-squared, 3 degrees, p = 0.001: 16.3)."""
    experiment = matrix(conditions=4, repeat=400)
    firsts = Counter(block.condition.id for block in plan_blocks(experiment)[::4])
    assert sum((firsts[condition.id] - 100) ** 2 / 100 for condition in experiment.conditions) < 16.3


@given(st.integers(0, 2**63 - 1), st.text(), st.integers(0, 10**6), st.sampled_from(Direction))
def test_a_seed_is_a_positive_number_of_63_bits(
    run_seed: int, condition: str, index: int, direction: Direction
) -> None:
    assert 1 <= netem_seed(run_seed, condition, index, direction) < 2**63


def test_every_block_and_direction_has_a_seed_of_its_own() -> None:
    seeds = [seed for block in plan_blocks(matrix(conditions=50, repeat=20)) for seed in block.seeds.values()]
    assert len(set(seeds)) == len(seeds) == 50 * 20 * 2


def test_seeds_use_all_their_bits() -> None:
    seeds = [netem_seed(1, "p/page", index, Direction.UPLINK) for index in range(2000)]
    for bit in range(63):
        assert 850 < sum(seed >> bit & 1 for seed in seeds) < 1150  # 6.7 sigma


def test_a_block_does_not_depend_on_the_others() -> None:
    experiment = matrix()
    for block in plan_blocks(experiment):
        assert plan_block(experiment, block.condition, block.index) == block


@pytest.mark.parametrize("arms", [(H3,), (H3, H1)])
def test_fewer_protocols_are_balanced_too(arms: tuple[Arm, ...]) -> None:
    for blocks in by_condition(plan_blocks(matrix(arms=arms))).values():
        firsts = Counter(block.order[0] for block in blocks)
        assert set(firsts.values()) == {6 // len(arms)}
