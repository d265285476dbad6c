"""What the documents tell people to type works, what they point to exists, and nothing of the lab goes undocumented."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from headwind.arm import Protocol
from headwind.matrix.reader import load_matrix
from headwind.model import Outcome
from impair.profile import Direction, Link
from tests.matrix_files import lay_out_site

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md", "reports/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`([^`\n]+)`")
QUICK = ("make help", "lab.py --help", "lab.py validate", "lab.py plan")  # nothing is started, nothing is changed

SPELLED_OUT = {"headwind/matrix/published.py", "headwind/report/method.py"}  # in words about the protocols there are


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
    for name in ("MAKEFLAGS", "MAKELEVEL"):  # this test may itself run under make
        environment.pop(name, None)
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def shell_lines() -> list[str]:
    """Commands in fenced `sh` and `console` blocks of all documents, comments and prompts taken off."""
    blocks = [block for document in DOCUMENTS for block in FENCE.findall(document.read_text())]
    lines = [
        line.strip().removeprefix("$ ")
        for language, body in blocks
        for line in body.splitlines()
        if language == "sh" or (language == "console" and line.lstrip().startswith("$ "))
    ]
    return [line for line in lines if line and not line.startswith("#")]


def commands() -> list[str]:
    """Everything shown as a command: whole lines in shell blocks, and code spans that begin like one."""
    prose = [FENCE.sub("", document.read_text()) for document in DOCUMENTS]
    spans = [span for text in prose for span in CODE_SPAN.findall(text)]
    return [*shell_lines(), *(span for span in spans if re.match(r"make\b|(\./|\S*python )?lab\.py\b", span))]


def make_targets() -> set[str]:
    """First words after `make` in all commands."""
    found = {match[1] for command in commands() for match in re.finditer(r"\bmake ([a-z][a-z-]*)", command)}
    assert "lab-run" in found
    return found


def subcommands(text: str) -> set[str]:
    return set(re.findall(r"\blab\.py ([a-z][a-z-]*)", text))


@cache
def offered() -> set[str]:
    """The subcommands that the program itself lists."""
    listed = set(re.findall(r"^    ([a-z-]+)(?=\s)", run([sys.executable, "lab.py", "--help"]).stdout, re.MULTILINE))
    assert "run" in listed, "lab.py --help lists no subcommands"
    return listed


@pytest.mark.parametrize("target", sorted(make_targets()))
def test_documented_make_targets_exist(target: str) -> None:
    result = run(["make", "-n", target])
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("target", ["help", "lab-plan", "lab-run", "test"])
def test_a_misspelt_variable_is_refused_by_every_target_with_the_right_name(target: str) -> None:
    refused = run(["make", "-n", target, "MATIRX=experiments/smoke.yaml"])
    assert refused.returncode == 2
    assert "no variable is called MATIRX (did you mean MATRIX?); there are: MATRIX RUN BASE" in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("target", "variable"),
    [("lab-resume", "MATRIX"), ("lab-plan", "RUN"), ("lab-report", "MATRIX"), ("lab-compare", "BUDGET")],
)
def test_a_variable_that_a_target_does_not_use_is_refused(target: str, variable: str) -> None:
    refused = run(["make", "-n", target, f"{variable}=reports"])
    assert refused.returncode == 2
    assert f"headwind: {target} does not use {variable}" in refused.stderr
    assert refused.stdout == ""


def test_a_misspelt_target_is_refused_with_the_right_name() -> None:
    refused = run(["make", "lab-rnu"])
    assert refused.returncode == 2
    assert "headwind: there is no target lab-rnu (did you mean lab-run?); make alone lists them" in refused.stderr


@pytest.mark.parametrize(
    ("goals", "advice"),
    [
        (["lab-plan", "experiments/smoke.yaml"], "name the matrix as MATRIX=experiments/smoke.yaml"),
        (["lab-run", "missing.yml"], "name the matrix as MATRIX=missing.yml"),
        (["README.md", "lab-plan"], "name the matrix as MATRIX=README.md"),
        (["lab-report", "experiments"], "name the run as RUN=experiments"),
    ],
)
def test_a_file_as_a_goal_is_refused_before_anything_starts(goals: list[str], advice: str) -> None:
    refused = run(["make", "-n", *goals])
    assert refused.returncode == 2
    assert f"headwind: {advice}" in refused.stderr
    assert refused.stdout == ""


def test_a_target_is_no_file_even_if_one_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    (tmp_path / "help").mkdir()
    assert run(["make", "-C", str(tmp_path), "help"]).returncode == 0


def test_the_newest_run_is_the_one_that_began_last(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("20261125-223307-884f", "20261125-223344-14e3", "20261124-101010-ffff", "renamed", "20261126-broken"):
        (tmp_path / "reports" / name).mkdir(parents=True)
        if name != "20261126-broken":
            (tmp_path / "reports" / name / "matrix.json").touch()
    shown = run(["make", "--no-print-directory", "-C", str(tmp_path), "--eval", "show:;@echo [$(RUN)]", "show"])
    assert shown.stdout == "[reports/20261125-223344-14e3]\n", shown.stderr


@pytest.mark.parametrize("target", ["lab-run", "lab-resume", "lab-experiments", "lab-plan"])
def test_a_variable_with_a_space_stays_one_argument(target: str) -> None:
    run_of = ["RUN=a"] if target == "lab-resume" else []
    command = run(["make", "-n", target, *run_of, "BUDGET=3 min", "LANES=4 5"]).stdout
    assert '--budget "3 min"' in command
    assert '--lanes "4 5"' in command


def test_every_variable_of_the_makefile_is_taken() -> None:
    used = set(re.findall(r"^([A-Z]+) \?=", (ROOT / "Makefile").read_text(), re.MULTILINE)) | {"PYTHON"}
    assert run(["make", "-n", "help", *(f"{name}=a b=c" for name in used)]).returncode == 0
    assert "did you mean" not in run(["make", "-n", "help", "XYZZY=1"]).stderr


def test_commands_keep_the_bytecode_of_what_they_import() -> None:
    show = ["make", "--eval", "show:;@echo [$${PYTHONDONTWRITEBYTECODE-}]", "show"]
    asked = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run(show, cwd=ROOT, env=asked, capture_output=True, text=True, check=False)
    assert said.stdout == "[]\n", said.stderr


def test_every_make_target_is_documented() -> None:
    listed = set(re.findall(r"^  make ([a-z-]+)", run(["make", "help"]).stdout, re.MULTILINE))
    assert {"lab-run", "test", "help"} <= listed
    assert listed - {"help"} <= make_targets()


@pytest.mark.parametrize("name", sorted({name for command in commands() for name in subcommands(command)}))
def test_documented_subcommands_exist(name: str) -> None:
    result = run([sys.executable, "lab.py", name, "--help"])
    assert result.returncode == 0, result.stderr
    assert f"lab.py {name}" in result.stdout


def test_every_subcommand_is_in_the_readme() -> None:
    assert offered() == subcommands((ROOT / "README.md").read_text())


def test_every_option_of_a_command_is_explained() -> None:
    helps = "".join(run([sys.executable, "lab.py", name, "--help"]).stdout for name in sorted(offered()))
    options = re.findall(r"^  (-.*)$\n?( {20,}\S)?", helps, re.MULTILINE)
    assert any(option.startswith("--budget") for option, _ in options)
    assert [option for option, next_line in options if not next_line and not re.search(r"\S {2,}\S", option)] == []


def test_the_exit_statuses_of_the_help_are_in_the_documents() -> None:
    listed = re.findall(r"^  (\d+) ", run([sys.executable, "lab.py", "--help"]).stdout, re.MULTILINE)
    assert {"0", "1", "2"} <= set(listed)
    section = (ROOT / "docs/files.md").read_text().partition("## Exit status")[2]
    assert re.findall(r"^\| (\d+) \|", section, re.MULTILINE) == listed


@pytest.mark.parametrize("line", [line for line in shell_lines() if any(quick in line for quick in QUICK)])
def test_quick_commands_of_the_documents_work(line: str) -> None:
    words = shlex.split(line)
    result = run([sys.executable if word.endswith("bin/python") else word for word in words])
    assert result.returncode == 0, result.stderr or result.stdout
    assert result.stdout.strip() or "validate" in words


def test_the_documents_have_quick_commands() -> None:
    for quick in ("lab.py --help", "lab.py validate", "lab.py plan"):
        assert any(quick in line for line in shell_lines())


def examples() -> Iterator[tuple[str, str]]:
    """Name and text of each complete matrix in a document."""
    for document in DOCUMENTS:
        for number, (language, body) in enumerate(FENCE.findall(document.read_text())):
            if language == "yaml" and "protocols:" in body and "workloads:" in body:
                yield f"{name_of(document)}#{number}", body


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in examples()])
def test_a_matrix_in_a_document_is_accepted(text: str, tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text(text)
    lay_out_site(text, tmp_path)
    assert load_matrix(file).conditions


def test_the_readme_shows_a_whole_matrix() -> None:
    assert any(name.startswith("README.md") for name, _ in examples())


def slug(heading: str) -> str:
    """The anchor that a heading gets where the documents are read: lower case, no punctuation, dashes for spaces."""
    plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower())
    return plain.replace(" ", "-")


def anchors(document: Path) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", document.read_text()), re.MULTILINE)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    text = FENCE.sub("", document.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = document.parent / path if path else document
        assert file.exists(), f"{name_of(document)} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{name_of(document)} links to {target}"


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.name != "CHANGELOG.md"], ids=name_of)
def test_files_that_a_document_names_exist(document: Path) -> None:
    tops = r"(?:headwind|impair|client|nginx|tests|bench|docs|experiments)"
    spans = CODE_SPAN.findall(FENCE.sub("", document.read_text()))
    named = [span for span in spans if re.fullmatch(rf"{tops}/[\w./*-]*|[\w-]+\.(?:py|yaml|toml|lock)", span)]
    for name in named:
        assert list(ROOT.glob(name.rstrip("/"))), f"{name_of(document)} names {name}"


def test_the_gate_in_ci_begins_with_what_makes_the_virtual_environment() -> None:
    """It is for a fresh checkout, which has no `.venv/bin/python`."""
    gate = (ROOT / "docs/files.md").read_text().partition("## A gate in CI")[2].partition("```text\n")[2]
    assert gate.startswith("make lab-plan MATRIX=ci.yaml\n.venv/bin/python lab.py run ci.yaml")


def test_every_script_in_bench_is_described() -> None:
    text = (ROOT / "bench/README.md").read_text()
    assert [file.name for file in (ROOT / "bench").glob("*.py") if f"bench/{file.name}" not in text] == []


def test_a_finding_has_a_matrix_a_command_its_figures_and_a_picture() -> None:
    text = (ROOT / "docs/findings.md").read_text()
    found = dict(re.findall(r"<!-- (\w+) -->\n(.*?)<!-- end -->", text, re.DOTALL))
    assert found.keys() >= {file.stem for file in (ROOT / "experiments").glob("finding_*.yaml")}
    for name, figures in found.items():
        assert f"make lab-run MATRIX=experiments/{name}.yaml" in commands()
        assert f"](findings/{name}.svg)" in figures
        assert re.search(r"^Run \S+ of .*\d trials in ", figures, re.MULTILINE), f"{name} has not been run"


def test_the_glossary_defines_every_outcome_protocol_direction_and_impairment() -> None:
    text = (ROOT / "docs/glossary.md").read_text()
    defined = {word for row in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE) for word in re.findall(r"[\w-]+", row)}
    impairments = {field.name.removesuffix("_packets") for field in dataclasses.fields(Link)}
    assert impairments | {outcome.value for outcome in Outcome} <= defined
    assert all(f"`{word.value}`" in text for word in (*Protocol, *Direction))


def places_of(change: str) -> list[str]:
    """What docs/design.md says that a change touches."""
    table = (ROOT / "docs" / "design.md").read_text().partition("## What a change touches")[2]
    row = next(line for line in table.splitlines() if line.startswith(f"| {change} |"))
    return CODE_SPAN.findall(row)


@pytest.mark.parametrize(
    ("change", "word"), [("a kind of impairment", r"\bSlot\b|\"slot\""), ("a protocol", r"\bProtocol\.H\d|\"h3\"")]
)
def test_a_change_touches_what_the_design_says(change: str, word: str) -> None:
    """Every file that knows an impairment, or a protocol, by its name is one that a further one would touch."""
    places = places_of(change)
    files = [
        file for room in ("headwind", "impair", "client", "nginx", "servers") for file in (ROOT / room).rglob("*.py")
    ]
    knowing = {name_of(file) for file in files if re.search(word, file.read_text())} - SPELLED_OUT
    assert knowing
    assert sorted(name for name in knowing if not any(name.startswith(place) for place in places)) == []


def test_the_changelog_has_room_for_what_comes_next() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:])


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.svg")), ids=name_of)
def test_pictures_stand_alone_and_say_what_they_show(picture: Path) -> None:
    root = ET.parse(picture).getroot()
    name_space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img"
    assert all(root.findtext(f"{name_space}{part}") for part in ("title", "desc"))
    ours = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith(("href", "src"))]
    assert all(value.startswith("#") for value in ours), "a picture loads nothing"
    assert "prefers-color-scheme: dark" in picture.read_text()
