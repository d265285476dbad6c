"""A profile with several values for one key is a profile for each of them, wherever its name stands."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from headwind.matrix.reader import MatrixError, load_matrix, schema
from headwind.matrix.refused import profiles_refused
from headwind.model import Matrix
from headwind.report.sweeps import sweeps_of
from impair.netem_options import Options

MATRIX = """
protocols: [h2, h3]
profiles:
  clean: {}
  lossy: {downlink: {delay: 20ms, loss: [0%, 0.5%, 5%]}}
  far: {both: {delay: {from: 0ms, to: 200ms, steps: 5}}}
workloads:
  some: {requests: 10, connections: 2}
conditions:
  - {profiles: [clean, lossy], workloads: [some]}
  - {profiles: [far]}
selfcheck: {protocol: h2, again: [lossy], slower: [lossy]}
"""


def load(text: str, folder: Path) -> Matrix:
    path = folder / "matrix.yaml"
    path.write_text(text)
    return load_matrix(path)


def complaints(old: str, new: str, folder: Path) -> str:
    text = MATRIX.replace(old, new)
    assert text != MATRIX
    with pytest.raises(MatrixError) as raised:
        load(text, folder)
    return str(raised.value)


def test_each_value_is_a_network_and_the_name_of_the_sweep_stands_for_all(tmp_path: Path) -> None:
    matrix = load(MATRIX, tmp_path)
    assert [condition.profile.name for condition in matrix.conditions] == [
        "clean", "lossy 0%", "lossy 0.5%", "lossy 5%", "far 0ms", "far 50ms", "far 100ms", "far 150ms", "far 200ms",
    ]  # fmt: skip
    losses = [condition.profile.downlink.loss for condition in matrix.conditions[1:4]]
    assert [getattr(loss, "ratio", None) for loss in losses] == [0.0, 0.005, 0.05]
    assert [condition.profile.uplink.delay.delay_s for condition in matrix.conditions[5:]  # type: ignore[union-attr]
            ] == pytest.approx([0.05, 0.1, 0.15, 0.2])  # fmt: skip
    assert matrix.selfcheck
    assert [len(matrix.selfcheck.twins(condition)) for condition in matrix.conditions] == [0, 2, 2, 2, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("profiles: [clean, lossy]", "profiles: [clean, lossyy]"),
        ("again: [lossy]", "again: [lossyy]"),
        ("slower: [lossy]", "slower: [lossyy]"),
        ("selfcheck:", "smoke: [{profiles: [lossyy]}]\nselfcheck:"),
    ],
)
def test_the_name_of_the_sweep_is_proposed_for_a_misspelt_one(old: str, new: str, tmp_path: Path) -> None:
    assert "did you mean `lossy`?" in complaints(old, new, tmp_path)


def test_the_report_draws_it_as_one_line(tmp_path: Path) -> None:
    found = {sweep.parameter: [step.value for step in sweep.steps] for sweep in sweeps_of(load(MATRIX, tmp_path))}
    assert found["downlink loss"] == [0.0, 0.005, 0.05]
    assert found["delay in both directions"] == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])


def test_an_editor_accepts_it() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    assert validator.is_valid(yaml.safe_load(MATRIX))
    for wrong in ("loss: [0%]", "loss: [1%, 1%]", "loss: [1, 2]", "loss: {from: 0%, to: 1%}"):
        assert not validator.is_valid(yaml.safe_load(MATRIX.replace("loss: [0%, 0.5%, 5%]", wrong))), wrong


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[0%, 0.5%, 5%]", "[0%]", ["5:41: this list has 1 value\n", "a single one needs no list: 0%"]),
        ("[0%, 0.5%, 5%]", "[]", ["5:41: this list has 0 values"]),
        ("[0%, 0.5%, 5%]", "[0%, 5, 5%]", ["5:46: `5` has no unit", "5%"]),
        ("[0%, 0.5%, 5%]", "[0%, 5%, 5.0%]", ["5:50: `5.0%` appears twice"]),
        ("[0%, 0.5%, 5%]", "[0%, {a: b}]", ["5:46: "]),
        ("[0%, 0.5%, 5%]", "[0%, 101%]", ["5:46: "]),
        ("20ms, loss", "[20ms, 30ms], loss", ["several values in `downlink.delay` and in `downlink.loss`"]),
        ("from: 0ms, ", "", ["6:23: `from` is missing"]),
        ("steps: 5", "steps: 1", ["6:53: "]),
        ("steps: 5", "step: 50ms", ["6:46: unknown key `step`", "did you mean `steps: 5`?"]),
        ("from: 0ms, to", "min: 0ms, max", ["6:24: unknown key `min`", "did you mean `from`?", "did you mean `to`?"]),
        ("steps: 5", "step: 5", ["6:46: unknown key `step`", "did you mean `steps`?"]),
        ("to: 200ms", "to: 200", ["6:39: `200` has no unit"]),
        ("to: 200ms", "to: 0ms", ["6:39: `0ms` is not above `0ms`"]),
        ("slower: [lossy]", "slower: [lossy, far]", ["12:59: `far 0ms` has no delay and no rate that could be slower"]),
        ("[clean, lossy], workloads", "[clean, lossy, nowhere], workloads", ["10:31: `nowhere` is not one of"]),
        ("  clean: {}", "  clean: {}\n  lossy 5%: {}", ["6:3: the sweep makes a profile `lossy 5%`"]),
        ("delay: 20ms", "dellay: 20ms", ["5:22: unknown key `dellay`"]),
    ],
)
def test_a_mistake_is_shown_where_it_is(old: str, new: str, said: list[str], tmp_path: Path) -> None:
    found = complaints(old, new, tmp_path)
    for each in said:
        assert each in found


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("rate: {from: 1mbit, to: 10mbit, steps: 4}", ["1mbit", "4mbit", "7mbit", "10mbit"]),
        ("rate: {from: 1mbit, to: 2mbit, steps: 4}", ["1mbit", "1.333336mbit", "1.666664mbit", "2mbit"]),
        ("rate: {from: 8bit, to: 0.104kbit, steps: 3}", ["8bit", "0.056kbit", "0.104kbit"]),
        ("rate: {from: 1kibit, to: 1mibit, steps: 3}", ["1kibit", "524800bit", "1mibit"]),
        ("delay: {from: 0ns, to: 10ns, steps: 4}", ["0ns", "3ns", "7ns", "10ns"]),
        ("delay: {from: 10ms, to: 0.1s, steps: 3}", ["10ms", "0.055s", "0.1s"]),
        ("loss: {from: 0%, to: 1%, steps: 4}", ["0%", "0.333333%", "0.666667%", "1%"]),
    ],
)
def test_values_that_the_lab_chooses_are_rounded_to_what_netem_keeps(
    written: str, names: list[str], tmp_path: Path
) -> None:
    text = MATRIX.replace("delay: {from: 0ms, to: 200ms, steps: 5}", written)
    matrix = load(f"timeout: 24h\n{text.lstrip()}", tmp_path)
    assert [condition.profile.name for condition in matrix.conditions[4:]] == [f"far {name}" for name in names]


@pytest.mark.parametrize(("along", "low", "high"), [("rate", "1mbit", "10mbit"), ("delay", "0ns", "1us"),
                                                    ("loss", "0%", "1%"), ("duplicate", "0%", "0.01%")])  # fmt: skip
@pytest.mark.parametrize("steps", range(2, 51))
def test_any_number_of_steps_is_taken_as_it_is(along: str, low: str, high: str, steps: int, tmp_path: Path) -> None:
    text = MATRIX.replace(
        "delay: {from: 0ms, to: 200ms, steps: 5}", f"{along}: {{from: {low}, to: {high}, steps: {steps}}}"
    )
    links = [condition.profile.downlink for condition in load(text, tmp_path).conditions[4:]]
    assert len(set(links)) == steps
    for link in links:
        again = Options.of(link, seed=None).link()
        assert getattr(again.delay, "delay_s", 0) == getattr(link.delay, "delay_s", 0)
        assert again.rate == link.rate


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("rate: {from: 1000001bit, to: 2mbit, steps: 3}", "1000001 bit/s is not a whole number of bytes/s"),
        ("rate: {from: 1mbit, to: 2000001bit, steps: 3}", "2000001 bit/s is not a whole number of bytes/s"),
        ("rate: [1mbit, 1000001bit]", "1000001 bit/s is not a whole number of bytes/s"),
        ("loss: {from: 0%, to: 0.00000001%, steps: 2}", "below netem's resolution"),
        ("rate: {from: 8bit, to: 80bit, steps: 20}", "closer together than netem's resolution"),
        ("rate: {from: 1bit, to: 99999999999999999999999999tbit, steps: 3}", "is not a whole number of bytes/s"),
    ],
)
def test_what_the_user_wrote_is_never_rounded(written: str, said: str, tmp_path: Path) -> None:
    found = complaints("delay: {from: 0ms, to: 200ms, steps: 5}", written, tmp_path)
    assert said in found
    assert "matrix.yaml:6:" in found


def test_a_mistake_beside_the_sweep_is_said_once(tmp_path: Path) -> None:
    assert complaints("delay: 20ms", "delay: 20", tmp_path).count("has no unit") == 1


def test_a_network_of_a_sweep_that_a_host_cannot_show_is_found_in_the_file(tmp_path: Path) -> None:
    matrix = load(MATRIX, tmp_path)
    assert "matrix.yaml:5:3: `lossy 5%` is too much" in str(profiles_refused(matrix, {"lossy 5%": "is too much"}, ""))
