"""`find`: what is searched, and what is no search."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.arm import H2, H3
from headwind.model import Matrix
from headwind.run.codec import matrix_from_json, matrix_to_json
from tests.matrix_files import load, refusal

SEARCH = """protocols: [h2, h3]
find: {crossover: [h3, h2], along: downlink.loss, from: 0%, to: 10%, within: 1%}
profiles: {far: {both: {delay: 20ms}}}
workloads: {page: {requests: 10, connections: 2}}
"""


def searched(tmp_path: Path, old: str = "", new: str = "") -> Matrix:
    return load(SEARCH.replace(old, new), tmp_path)


def test_a_search_has_values_half_as_far_apart_as_the_answer_is_wide(tmp_path: Path) -> None:
    matrix = searched(tmp_path)
    assert matrix.find is not None
    assert (matrix.find.new, matrix.find.base, matrix.find.along) == (H3, H2, "downlink.loss")
    assert len(matrix.conditions) == len(matrix.find.points) == 21
    for condition, (value, name) in zip(matrix.conditions, matrix.find.points, strict=True):
        loss = condition.profile.downlink.loss
        assert (condition.id, getattr(loss, "ratio", 0.0)) == (name, pytest.approx(value))
        assert condition.profile.uplink == matrix.conditions[0].profile.uplink
    assert matrix.find.step == pytest.approx(0.005)
    assert matrix.conditions[3].id == "far 1.5%/page"


def test_without_a_width_it_is_a_tenth_and_any_unit_of_the_key_will_do(tmp_path: Path) -> None:
    assert searched(tmp_path, ", within: 1%", "").find == searched(tmp_path).find
    matrix = load(
        SEARCH.replace("downlink.loss, from: 0%, to: 10%, within: 1%", "both.delay, from: 10ms, to: 0.11s").replace(
            "both: {delay: 20ms}", "downlink: {loss: 1%}"
        ),
        tmp_path,
    )
    assert matrix.find is not None
    assert [round(value, 6) for value, _ in matrix.find.points] == [round(0.01 + 0.005 * step, 6) for step in range(21)]


def test_a_search_over_rates_has_values_that_netem_takes(tmp_path: Path) -> None:
    matrix = searched(
        tmp_path, "downlink.loss, from: 0%, to: 10%, within: 1%", "both.rate, from: 1mbit, to: 10mbit, within: 1.3mbit"
    )
    assert matrix.find is not None
    assert len(matrix.find.points) == 15
    for condition, (value, _) in zip(matrix.conditions, matrix.find.points, strict=True):
        assert condition.profile.downlink.rate is not None
        assert condition.profile.downlink.rate.rate_bps == value


def test_a_search_is_kept_with_the_run(tmp_path: Path) -> None:
    matrix = searched(tmp_path)
    assert matrix_from_json(json.loads(json.dumps(matrix_to_json(matrix)))) == replace(matrix, source="", path="")


def test_a_quick_look_at_a_search_is_a_block_at_each_end(tmp_path: Path) -> None:
    short = searched(tmp_path).in_short()
    assert [condition.profile.name for condition in short.conditions] == ["far 0%", "far 10%"]
    assert short.find is None


@pytest.mark.parametrize(
    ("old", "new", "place", "complaint"),
    [
        ("{crossover: [h3, h2], along: downlink.loss, from: 0%, to: 10%, within: 1%}", "3", "2:7", "a mapping of keys"),
        ("within", "withn", "2:70", "unknown key `withn`"),
        ("crossover: [h3, h2], ", "", "2:1", "`crossover` is missing"),
        ("along: downlink.loss, ", "", "2:1", "`along` is missing"),
        ("along: downlink.loss", "along: loss", "2:36", "`downlink.loss`, `uplink.loss` or `both.loss`?"),
        (", to: 10%", "", "2:1", "`to` is missing"),
        ("[h3, h2]", "[h3]", "2:19", "two different arms"),
        ("[h3, h2]", "[h3, h3]", "2:19", "two different arms"),
        ("[h3, h2]", "[h3, [h2]]", "2:19", "two different arms"),
        ("[h3, h2]", "h3", "2:19", "two different arms"),
        ("[h3, h2]", "[h3, h1]", "2:24", "`h1` is not one of the arms"),
        ("downlink.loss", "downlink.los", "2:36", "`downlink.los` is not a network parameter"),
        ("downlink.loss", "[downlink.loss]", "2:36", "one value is expected"),
        ("from: 0%", "from: 0", "2:57", "`0` has no unit"),
        ("from: 0%", "from: 0ms", "2:57", "0ms"),
        ("to: 10%", "to: [10%]", "2:65", "one value is expected"),
        ("from: 0%", "from: 10%", "2:66", "`10%` is not above `10%`"),
        ("within: 1%", "within: 0%", "2:78", "not between 0 and"),
        ("within: 1%", "within: 10%", "2:78", "not between 0 and"),
        ("within: 1%", "within: 0.1%", "2:78", "would take 201 values"),
        ("profiles: {", "profiles: {near: {}, ", "3:1", "a search has one profile"),
        ("workloads: {", "workloads: {feed: {requests: 1, connections: 1}, ", "4:1", "a search has one workload"),
        ("profiles:", "repeat: 9\nprofiles:", "3:9", "the number of blocks"),
        ("profiles:", "conditions: [{profiles: [far]}]\nprofiles:", "3:1", "no `conditions`"),
        ("profiles:", "smoke: [{profiles: [far]}]\nprofiles:", "3:1", "no `smoke`"),
        ("profiles:", "selfcheck: {again: [far]}\nprofiles:", "3:1", "no `selfcheck`"),
        ("delay: 20ms}", "delay: 20ms, loss: 1%}", "3:38", "the search sets `loss`"),
        (
            "{both: {delay: 20ms}}",
            "{preset: lte}",
            "3:18",
            "without it: {downlink: {rate: 12mbit, delay: 35ms}, uplink: {rate: 12mbit, delay: 35ms}}",
        ),
    ],
)
def test_what_is_no_search_is_refused_at_its_place(
    tmp_path: Path, old: str, new: str, place: str, complaint: str
) -> None:
    text = SEARCH.replace(old, new, 1)
    assert text != SEARCH
    found = refusal(text, tmp_path).complaints
    assert [each for each in found if complaint in str(each)], [str(each) for each in found]
    (told,) = [each for each in found if complaint in str(each)]
    assert f"{told.line}:{told.column}" == place


def test_a_pair_that_is_not_compared_is_refused(tmp_path: Path) -> None:
    text = SEARCH.replace("[h2, h3]\n", "[h1, h2, h3]\ncompare: [[h3, h1]]\n")
    (found,) = refusal(text, tmp_path).complaints
    assert "`compare` leaves this pair out" in str(found)


def test_a_value_that_netem_would_clip_is_refused_where_the_profile_is(tmp_path: Path) -> None:
    text = SEARCH.replace("downlink.loss, from: 0%, to: 10%, within: 1%", "both.jitter, from: 0ms, to: 40ms")
    complaints = refusal(text, tmp_path).complaints
    assert complaints
    assert {each.line for each in complaints} == {3}
