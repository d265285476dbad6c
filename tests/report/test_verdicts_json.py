"""verdicts.json: its schema describes it fully and refuses anything else, and its figures are those of the blocks."""

from __future__ import annotations

import copy
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from headwind.arm import ARM_NAME, Protocol
from headwind.model import Outcome, Repetition
from headwind.report.certainty import Certainty
from headwind.report.formats.verdicts_json import VERSION, verdicts_text
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.verdicts.assumptions import WarningKind
from headwind.verdicts.verdict import Lead, Verdict
from tests.fake import PROFILES, checked_matrix, example_matrix, ok, ok_results, trials_of
from tests.golden.runs import RUNS, Golden, everything

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = json.loads((ROOT / "docs/verdicts.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def document(data: RunData) -> dict[str, Any]:
    found = json.loads(verdicts_text(data, data.judgement))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_the_verdicts_of_every_run_are_as_described(name: str) -> None:
    VALIDATOR.validate(document(RUNS[name]().data(name)))


def test_a_run_with_something_of_everything_is_as_described() -> None:
    found = document(everything())
    VALIDATOR.validate(found)
    assert all(found[part] for part in ("warnings", "comparisons", "self_checks", "undecided", "best"))
    assert any(item["warnings"] for item in found["comparisons"])


def objects(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the objects of a document are, itself first; of a list, its first entry stands for all."""
    if isinstance(value, dict):
        yield path
        for key, part in value.items():
            yield from objects(part, (*path, key))
    elif isinstance(value, list) and value:
        yield from objects(value[0], (*path, 0))


def at(value: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
    for step in path:
        value = value[step]
    assert isinstance(value, dict)
    return value


def test_whatever_is_missing_or_too_much_is_refused() -> None:
    whole = document(everything())
    for path in objects(whole):
        for name in at(whole, path):
            wrong = copy.deepcopy(whole)
            del at(wrong, path)[name]
            is_open = path == ("best",) or path[-1:] == ("metrics",)  # which there are depends on the matrix
            assert VALIDATOR.is_valid(wrong) == is_open, f"without {name} in {path}"
        wrong = copy.deepcopy(whole)
        at(wrong, path)["surprise"] = 1
        assert not VALIDATOR.is_valid(wrong), f"more than described in {path}"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), VERSION + 1),
        (("run", "state"), "gone"),
        (("run", "ended_at_s"), "noon"),
        (("trials", "ran"), -1),
        (("rule", "confidence"), 95),
        (("comparisons", 0, "candidate"), "h4"),
        (("comparisons", 0, "baseline"), "h2-/"),
        (("comparisons", 0, "metrics", "total_s", "verdict"), "better"),
        (("comparisons", 0, "metrics", "total_s", "ratio", "low"), None),
        (("comparisons", 0, "metrics", "total_s", "ratio", "estimate"), 0),
        (("self_checks", 0, "passed"), "yes"),
        (("undecided", 0, "undecided"), [1]),
    ],
)
def test_a_wrong_value_is_refused(path: tuple[str | int, ...], value: Any) -> None:
    wrong = document(everything())
    assert value != at(wrong, path[:-1])[str(path[-1])]
    at(wrong, path[:-1])[str(path[-1])] = value
    assert not VALIDATOR.is_valid(wrong)


def schemas(part: Any) -> Iterator[dict[str, Any]]:
    """Every schema in the schema."""
    if isinstance(part, dict):
        if "type" in part or "$ref" in part or "enum" in part or "const" in part or "anyOf" in part:
            yield part
        for inner in part.values():
            yield from schemas(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from schemas(inner)


def test_every_key_is_described_and_every_object_is_closed() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for part in schemas(SCHEMA):
        for name, inner in part.get("properties", {}).items():
            assert inner.get("description"), name
        if part.get("type") == "object":
            further = part["additionalProperties"]
            assert further is False or {"type", "$ref"} & further.keys()
            assert not further or further.get("type") != "object" or further["additionalProperties"] is False
            assert set(part.get("required", ())) == set(part.get("properties", ()))


def test_the_words_are_those_of_the_code() -> None:
    parts, properties = SCHEMA["$defs"], SCHEMA["properties"]
    assert set(parts["verdict"]["enum"]) == set(Verdict)
    assert set(parts["certainty"]["enum"]) == set(Certainty)
    assert set(parts["protocol"]["enum"]) == set(Protocol)
    assert parts["arm"]["pattern"] == f"^{ARM_NAME.pattern}$"
    assert set(properties["trials"]["properties"]["outcomes"]["properties"]) == set(Outcome)
    assert set(properties["run"]["properties"]["state"]["enum"]) == set(State)
    kind = parts["comparison"]["properties"]["warnings"]["items"]["properties"]["kind"]
    assert set(kind["enum"]) == set(WarningKind)
    standing = properties["best"]["additionalProperties"]["properties"]["standing"]
    assert set(standing["enum"]) == set(Lead)


def test_the_figures_are_those_of_the_blocks() -> None:
    matrix = example_matrix(PROFILES[0], repeat=Repetition(least=12, most=12))
    time_s = {Protocol.H1: 1.2, Protocol.H2: 1.0, Protocol.H3: 2.0}
    results = [ok(trial, time_s[trial.protocol] * (1 + trial.block.index / 1000)) for trial in trials_of(matrix)]
    found = document(Golden(matrix, tuple(results)).data("x"))
    shown = {(item["candidate"], item["baseline"]): item for item in found["comparisons"]}
    for (new, base), item in shown.items():
        total = item["metrics"]["total_s"]
        ratio = statistics.median([time_s[Protocol(base)] / time_s[Protocol(new)]] * 12)
        assert total["ratio"]["estimate"] == pytest.approx(ratio)
        assert total["ratio"]["low"] <= total["ratio"]["estimate"] <= total["ratio"]["high"]
        assert (total["verdict"], total["certainty"]) == ("faster" if ratio > 1 else "slower", "sure")
        assert (item["blocks"], total["ratio"]["blocks"], total["survives_e_bh"]) == (12, 12, True)
    assert found["best"] == {"clean/article": {"protocols": ["h2"], "standing": "winner"}}
    assert found["trials"]["outcomes"] == {**dict.fromkeys(map(str, Outcome), 0), "ok": 36}
    assert (found["trials"]["planned"], found["trials"]["ran"], found["trials"]["attempts"]) == (36, 36, 36)
    assert (found["run"]["id"], found["run"]["engine"], found["run"]["state"]) == ("x", "uml", "finished")


def test_the_noise_floor_is_that_of_the_same_against_itself() -> None:
    found = document(everything())
    floors = {(item["condition"], item["candidate"]): item["noise_floor_ratio"] for item in found["self_checks"]}
    ratios = {
        item["condition"]: item["metrics"]["total_s"]["ratio"]
        for item in found["comparisons"]
        if item["candidate"] == "h2-again"
    }
    assert ratios["clean/article"]["low"] == 0, "one of the trials timed out"
    assert floors["clean/article", "h2-again"] is None
    ratio = ratios["delay/article"]
    assert floors["delay/article", "h2-again"] == pytest.approx(max(ratio["high"], 1 / ratio["low"]) - 1)
    matrix = checked_matrix()
    whole = document(Golden(matrix, tuple(ok_results(matrix))).data("x"))
    has_floor = {item["candidate"]: item["noise_floor_ratio"] is not None for item in whole["self_checks"]}
    assert has_floor == {"h2-again": True, "h2-slower": False}
