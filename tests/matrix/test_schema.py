"""What editors and readers are told about matrix.yaml is what holds, and telling it costs little."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from headwind.matrix.document import MatrixKeys
from headwind.matrix.keys import Keys
from headwind.matrix.reader import schema
from headwind.workloads.h2load import MOST_STREAMS
from impair.profile import Reorder, Slot
from tests.matrix_files import MINIMAL, ROOT, SHIPPED, load, manual_example, models, refusal


def test_the_stored_schema_is_current() -> None:
    """`python -m headwind.matrix.reader > docs/matrix.schema.json` writes it anew."""
    command = [sys.executable, "-m", "headwind.matrix.reader"]
    written = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs/matrix.schema.json").read_text() == written
    assert json.loads(written) == schema()


@cache
def validator() -> jsonschema.Draft202012Validator:
    """That of an editor."""
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def valid(text: str) -> bool:
    """Whether an editor accepts the text."""
    return validator().is_valid(yaml.safe_load(text))


@pytest.mark.parametrize("text", [*(file.read_text() for file in SHIPPED), manual_example(), MINIMAL])
def test_an_editor_accepts_what_the_lab_accepts(text: str) -> None:
    assert valid(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("clean: {}", "clean: {downlink: {dellay: 10ms}}"),
        ("clean: {}", "clean: {downlink: {delay: 10}}"),
        ("clean: {}", "clean: {downlink: {delay: 10mbit}}"),
        ("clean: {}", "clean: {downlink: {loss: 0.3}}"),
        ("clean: {}", "clean: {downlink: {loss: {random: 1%, gemodel: {p: 1%, r: 1%}}}}"),
        ("clean: {}", "clean: {downlink: {rate: 10kbps}}"),
        ("clean: {}", "clean: {downlink: {ecn: 1}}"),
        ("clean: {}", "clean: {downlink: {distribution: gauss}}"),
        ("clean: {}", "a/b: {}"),
        ("clean: {}", ""),
        ("h3", "h4"),
        ("h3", "h1"),
        ("[h1, h3]", "[]"),
        ("requests: 10", "requests: -1"),
        ("requests: 10,", ""),
        ("connections: 2", "connections: 2, path: index.html"),
        ("connections: 2", f"connections: 2, streams: {MOST_STREAMS + 1}"),
        ("\nprotocols", "\ncongestion: {quic: bbr}\nprotocols"),
        ("\nprotocols", "\nconditions: []\nprotocols"),
        ("\nprotocols", "\nspeed: 1\nprotocols"),
        ("\nprotocols", "\njudge: []\nprotocols"),
        ("\nprotocols", "\njudge: [total]\nprotocols"),
        ("\nprotocols", "\npublished: {}\nprotocols"),
        ("\nprotocols", "\npublished: {a: {title: A, times: {}}}\nprotocols"),
        ("\nprotocols", "\npublished: {a: {title: A, times: {clean: {h1: 1s}}}}\nprotocols"),
        ("\nprotocols", "\npublished: {a: {title: A, times: {clean: {h1: 1s, h3: never}}}}\nprotocols"),
        ("\nprotocols", "\npublished: {a: {title: A, times: {clean/page/b: {h1: 1s, h3: 2s}}}}\nprotocols"),
        ("\nprotocols", "\npublished: {a: {times: {clean: {h1: 1s, h3: 2s}}}}\nprotocols"),
    ],
)
def test_an_editor_refuses_what_the_lab_refuses(tmp_path: Path, old: str, new: str) -> None:
    text = MINIMAL.replace(old, new)
    assert text != MINIMAL
    assert not valid(text)
    assert refusal(text, tmp_path).complaints


def test_a_default_that_an_editor_shows_is_the_one_that_holds(tmp_path: Path) -> None:
    """Writing every default of the schema into a matrix changes nothing."""
    definitions = schema()["$defs"]

    def defaults(properties: dict[str, Any]) -> dict[str, Any]:
        return {name: each["default"] for name, each in properties.items() if "default" in each}

    def filled(name: str, **given: Any) -> dict[str, Any]:
        return defaults(definitions[name]["properties"]) | given

    bare: dict[str, Any] = {
        "protocols": ["h1"],
        "profiles": {"p": {"uplink": {"loss": {"gemodel": {"p": "1%", "r": "2%"}}, "rate": {"rate": "1mbit"}}}},
        "workloads": {"w": {"requests": 1, "connections": 1}},
    }
    full = defaults(schema()["properties"]) | copy.deepcopy(bare)
    uplink = filled("DirectionKeys", rate=filled("RateKeys", rate="1mbit"))
    full["profiles"]["p"]["uplink"] = uplink | {"loss": {"gemodel": filled("GemodelKeys", p="1%", r="2%")}}
    full["workloads"]["w"] = filled("H2loadKeys", requests=1, connections=1)
    assert len(full) > len(bare)
    first, second = load(yaml.safe_dump(bare), tmp_path), load(yaml.safe_dump(full), tmp_path)
    assert (first.conditions, first.congestion, first.repeat, first.seed, first.timeout_s, first.lanes) == (
        second.conditions, second.congestion, second.repeat, second.seed, second.timeout_s, second.lanes,
    )  # fmt: skip


def test_every_key_is_described_for_editors_and_in_the_manual() -> None:
    manual = (ROOT / "docs/matrix.md").read_text()
    assert models(Keys) >= {MatrixKeys}
    for model in models(Keys):
        if not model.__module__.startswith("headwind."):  # a test's own
            continue
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
            assert re.search(rf"\b{name}\b", manual), f"docs/matrix.md does not mention {model.__name__}.{name}"


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_every_shipped_matrix_tells_editors_its_schema(file: Path) -> None:
    first = file.read_text().splitlines()[0]
    reference = first.removeprefix("# yaml-language-server: $schema=")
    assert (file.parent / reference).resolve() == ROOT / "docs/matrix.schema.json"


def test_the_example_of_the_manual_uses_every_key_of_a_profile(tmp_path: Path) -> None:
    matrix = load(manual_example(), tmp_path)
    assert [condition.id for condition in matrix.conditions] == [
        "wifi/page", "lte/page", "lte/feed", "every key/page", "every key/feed",
    ]  # fmt: skip
    poor = matrix.conditions[-1].profile
    assert poor.downlink.reorder == Reorder(0.25, 5)
    assert poor.uplink.slot == Slot(0.01, 0.03, 16)


def test_reading_a_matrix_loads_nothing_heavy() -> None:
    """`lab.py validate` has to answer in half a second."""
    code = "import sys, headwind.matrix.reader; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "pydantic" in loaded
    assert not loaded & {"numpy", "scipy", "pandas", "rich", "jinja2", "sqlite3", "subprocess", "asyncio", "pyroute2"}
