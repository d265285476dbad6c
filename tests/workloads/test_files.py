"""The kind `objects` with `paths`: what it asks of libcurl, and what becomes of files that are not the user's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lab
from headwind.arm import H1, H2, H3, Arm
from headwind.matrix.reader import load_matrix
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.observed import Observed, observed
from headwind.plan.doubts import warnings_of
from headwind.run.journal import Run
from headwind.site import SiteFile
from headwind.trial.trial import run_trial
from headwind.workloads import workload_from_json, workload_to_json
from headwind.workloads.files import Files
from headwind.workloads.h2load import DONE, REQUEST, TOTAL, H2load
from impair.profile import Direction, Profile
from tests.fake_testbed import RULES, Sabotage, World, fake_dependencies, fake_path, fake_testbed

DATA = {"index.html": b"<i>" * 400, "a b.css": b"c" * 300, "js/app.js": b"j" * 5000}
FILES = tuple(SiteFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in DATA.items())
PAGE = Files("page", 3, 0, 0, path="/", paths=("/", "/a b.css", "/js/app.js"), files=FILES)
ALPN = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}
MATRIX = """\
protocols: [h1, h2, h3]
content: site
repeat: 2
profiles: {clean: {}, far: {both: {delay: 20ms}}}
workloads:
  page: {kind: objects, paths: [/, /a b.css, /js/app.js]}
  one: {requests: 20, connections: 2, path: /a b.css}
"""


def served(**changed: Any) -> World:
    """A world whose client gets the files; `changed` is what it reports of the second one, or `count` of how many."""
    world = World(files={file.url: DATA[file.path] for file in FILES})
    count, delivered = changed.pop("count", len(FILES)), changed.pop("body", b"")

    def program(command: list[str], took_s: float, directory: Path) -> None:
        _, _, _, protocol, _, _, *paths = command
        bodies = [world.files[path] for path in paths]
        rows = [
            {"index": index, "status": 200, "alpn": ALPN[protocol], "bytes": len(body), "header_bytes": 50, "error": "",
             "start_s": 0.1 * took_s, "first_byte_s": 0.5 * took_s, "done_s": took_s * (index + 1) / len(paths),
             "handshake_s": None if index else 0.1 * took_s, "opened_s": None if index else 0.0}
            | (changed if index == 1 else {})
            for index, body in enumerate(bodies[:count])
        ]  # fmt: skip
        bodies[1] = delivered or bodies[1]
        lines = [{"began_at": 2.5}, *rows, {"sha256": [hashlib.sha256(body).hexdigest() for body in bodies]}]
        (directory / "stdout").write_text("".join(json.dumps(line) + "\n" for line in lines))

    world.programs["files"] = program
    return world


def result_of(world: World, arm: Arm = H2, workload: H2load = PAGE) -> Result:
    block = Block(Condition(Profile("clean"), workload), 0, (arm,), dict.fromkeys(Direction, 1))
    with fake_path(world) as path:
        return run_trial(path, Trial(block, 0, arm), RULES)


@pytest.mark.parametrize("arm", [H1, H2, H3], ids=str)
def test_a_trial_fetches_every_file_once_over_a_browsers_connections(arm: Arm) -> None:
    world = served()
    result = result_of(world, arm)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    (asked,) = world.asked
    assert (asked["program"], asked["connections"]) == ("files", 3 if arm == H1 else 1)
    assert asked["paths"] == ["/site/index.html", "/site/a%20b.css", "/site/js/app.js"]
    assert result.metrics["bytes_body"] == 6500
    assert result.metrics["done_all_s"] == pytest.approx(result.metrics["total_s"], abs=1e-5)


@pytest.mark.parametrize(
    ("changed", "expected", "reason"),
    [
        ({"body": b"d" * 300}, Outcome.WRONG_CONTENT, "a b.css had other content: 300 bytes"),
        ({"bytes": 299}, Outcome.WRONG_CONTENT, "a b.css had other content: 299 bytes instead of 300"),
        ({"status": 404, "bytes": 153}, Outcome.FAILED, "1 of 3 requests failed"),
        ({"status": 206}, Outcome.FAILED, "1 of 3 requests failed"),
        ({"error": "Recv failure", "status": 0, "bytes": 10}, Outcome.FAILED, "1 of 3 requests failed"),
        ({"alpn": "http/1.1"}, Outcome.WRONG_PROTOCOL, "h2, http/1.1 was negotiated instead of h2"),
    ],
)
def test_what_is_not_the_users_file_is_no_time(changed: dict[str, Any], expected: Outcome, reason: str) -> None:
    result = result_of(served(**changed))
    assert result.outcome is expected
    assert reason in result.reason


@pytest.mark.parametrize("workload", [PAGE, replace(H2load("one", 20, 2, 1, path="/"), files=FILES[:1])])
def test_an_altered_file_is_found_when_it_is_fetched_again(workload: H2load) -> None:
    world = served()
    world.sabotage = Sabotage(altered=True)
    result = result_of(world, workload=workload)
    assert result.outcome is Outcome.WRONG_CONTENT
    assert "other content than requested: 1200 bytes" in result.reason


def test_a_stopped_trial_is_bounded_from_when_its_client_began() -> None:
    world = served(count=2)
    world.sabotage = Sabotage(hangs=True)
    result = result_of(world)
    assert result.outcome is Outcome.TIMEOUT
    had_s = RULES.timeout_s - 2.5
    assert result.metrics["timeout_s"] == RULES.timeout_s
    assert observed(result, TOTAL) == Observed.unfinished(had_s)
    done = [row["request_start_s"] + row["request_took_s"] for row in _rows(result)]
    assert result.metrics[DONE.low_key] == pytest.approx((sum(done) + had_s) / 3)
    assert result.metrics[REQUEST.low_key] <= result.metrics[REQUEST.high_key]


def _rows(result: Result) -> Iterator[dict[str, float]]:
    columns = {name: values for name, values in result.samples["samples"].items() if name.startswith("request")}
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def test_a_workload_survives_its_json() -> None:
    assert workload_from_json(json.loads(json.dumps(workload_to_json(PAGE)))) == PAGE


def test_the_texts_have_the_sizes_and_the_connections() -> None:
    text = PAGE.sentence(["h1", "h3"])
    assert text.startswith(
        "3 files of the content (300 to 5,000 bytes each, 6,500 bytes in total) over 3 new connections"
    )
    assert "Over HTTP/1.1 each connection has one request at a time" in text
    alone = replace(PAGE, requests=1, files=FILES[:1])
    assert alone.in_short([], ["h2"]) == "1 file of the content (1,200 bytes) over 1 new connection; not a page load"


@pytest.fixture
def home(tmp_path: Path, signals: None) -> Path:
    for path, data in DATA.items():
        file = tmp_path / "site" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    return tmp_path


def run(home: Path, world: World, *arguments: str) -> int:
    deps = fake_dependencies(lambda: fake_testbed(world))
    return lab.main(["run", *arguments, "--reports", str(home / "reports")], deps)


def test_a_whole_run_records_its_content_and_goes_on_with_no_other(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = str(home / "matrix.yaml")
    assert run(home, served(), matrix) == 0
    (folder,) = (home / "reports").glob("*/")
    with Run.open(folder) as kept:
        assert {result.outcome for result in kept.results()} == {Outcome.OK}
        assert kept.matrix.content == load_matrix(home / "matrix.yaml").content
    page = (folder / "report.html").read_text()
    assert "3 files of the content (300 to 5,000 bytes each" in page
    assert "A folder with 3 files, 6,500 bytes in total" in page
    capsys.readouterr()
    assert run(home, served(), "--resume", str(folder)) == 0, "nothing changed"
    (home / "site/a b.css").write_bytes(b"d" * 300)
    for again in (("--resume", str(folder)), (matrix, "--resume", str(folder))):
        capsys.readouterr()
        assert run(home, served(), *again) == 2
        refusal = " ".join(capsys.readouterr().err.split())
        assert re.search(r"content\.a b\.css: 300 bytes, sha256 \w{12} -> 300 bytes, sha256 \w{12}", refusal)
        assert "start a new run" in refusal


def test_windows_that_libcurl_does_not_have_are_a_warning_in_the_words_of_the_matrix(home: Path) -> None:
    (home / "matrix.yaml").write_text(f"settings: as-shipped\n{MATRIX}")
    (warning,) = warnings_of(load_matrix(home / "matrix.yaml"))
    assert "have no effect in `page`" in str(warning)
    assert "the client of `kind: objects` with `paths` has no windows to set" in str(warning)


def test_content_is_not_for_other_machines(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, served(), str(home / "matrix.yaml"), "--cluster", "tcp://192.0.2.1:8786") == 2
    assert "`content` is served on this machine only" in capsys.readouterr().err
