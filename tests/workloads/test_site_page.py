"""The kind `page` with `path`: a page of the user's site, whose files are known from the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browsers.page import COLUMNS
from headwind.arm import H3
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.observed import Observed, observed
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import PROGRESS
from headwind.workloads.page import FIRST, LOAD
from headwind.workloads.site_page import SitePage
from impair.profile import Delay, Direction, Link, Profile
from tests.fake_testbed import RULES, Sabotage, World, fake_path
from tests.matrix_files import load, refusal

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
SITE = {"index.html": b"h" * 900, "app.css": b"c" * 300, "shop/cart.html": b"q" * 50, "a b.png": b"p" * 70}
REST = "protocols: [h1, h2]\nprofiles: {clean: {}}\nworkloads:\n"
HOME = "  home: {kind: page, path: /}\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a matrix, with a site in it."""
    for name, data in SITE.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return tmp_path


def page(home: Path, written: str = HOME) -> SitePage:
    matrix = load(f"content: site\n{REST}{written}", home)
    (found,) = (condition.workload for condition in matrix.conditions)
    assert isinstance(found, SitePage)
    assert matrix_from_json(matrix_to_json(matrix)).conditions == matrix.conditions
    assert matrix.browsers == ("chromium",)
    return found


def outcome(home: Path, change: Callable[[dict[str, Any]], None] = lambda _: None, **sabotage: Any) -> Result:
    workload = page(home)
    data = {file.url: SITE[file.path] for file in workload.files if file.path != "shop/cart.html"}
    world = World(page=change, files=data, sabotage=Sabotage(**sabotage))
    with fake_path(world) as path:
        block = Block(Condition(FAR, workload), 0, (H3,), dict.fromkeys(Direction, 1))
        result = run_trial(path, Trial(block, 0, H3), RULES)
    assert world.asked[0]["path"] == "/site/index.html"
    assert not world.provided
    return result


def cell(column: str, row: int, value: object) -> Callable[[dict[str, Any]], None]:
    """A change of a page's report: one request has another value."""
    return lambda page: page["rows"][row].__setitem__(COLUMNS.index(column), value)


def named(name: str, size_bytes: int) -> Callable[[dict[str, Any]], None]:
    """A change of a page's report: its last request was for another path, with so many bytes."""

    def change(collected: dict[str, Any]) -> None:
        cell("name", -1, f"https://server{name}")(collected)
        cell("encodedBodySize", -1, size_bytes)(collected)

    return change


def test_a_page_has_as_many_requests_as_it_makes_each_with_the_size_of_its_file(home: Path) -> None:
    result = outcome(home)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert (result.metrics["requests_succeeded"], result.metrics["bytes_body"]) == (3, 370)
    assert result.metrics[PROGRESS[1.0].key] == pytest.approx(result.metrics["last_resource_s"], abs=1e-5)


@pytest.mark.parametrize(("path", "size_bytes"), [
    ("/site/app.css?v=3", 300), ("/site/a%20b.png", 70), ("/site/shop/cart.html", 50), ("/1k", 1024),
])  # fmt: skip
def test_files_are_known_by_any_address_of_theirs(home: Path, path: str, size_bytes: int) -> None:
    assert outcome(home, named(path, size_bytes)).outcome is Outcome.OK
    result = outcome(home, named(path, size_bytes + 1))
    assert result.outcome is Outcome.WRONG_CONTENT
    assert f"{path} had {size_bytes + 1} bytes, instead of {size_bytes}" in result.reason


def test_an_answer_that_is_no_file_of_the_content_is_wrong_content(home: Path) -> None:
    result = outcome(home, named("/site/other.css", 5))
    assert result.outcome is Outcome.WRONG_CONTENT
    assert "/site/other.css had 5 bytes, and is no file of the content" in result.reason


def test_failed_requests_are_named(home: Path) -> None:
    def change(collected: dict[str, Any]) -> None:
        named("/app.css", 0)(collected)
        cell("responseStatus", -1, 404)(collected)

    result = outcome(home, change)
    assert result.outcome is Outcome.FAILED
    assert result.reason == (
        "1 of 3 requests failed: /app.css (404); addresses that begin with a slash miss the site, which is below /site"
    )


def test_a_failed_request_to_another_host_has_its_own_advice(home: Path) -> None:
    def change(collected: dict[str, Any]) -> None:
        cell("name", -1, "https://cdn.example/b.jpg")(collected)
        cell("responseStatus", -1, 0)(collected)

    assert outcome(home, change).reason == (
        "1 of 3 requests failed: https://cdn.example/b.jpg (no answer); other hosts do not exist here: remove what the "
        "page has from them"
    )


def test_a_page_that_never_loads_has_no_shares_of_requests(home: Path) -> None:
    result = outcome(home, hangs=True)
    assert result.outcome is Outcome.TIMEOUT
    assert {observed(result, metric) for metric in (LOAD, FIRST)} == {Observed.unfinished(RULES.timeout_s)}
    assert {observed(result, metric) for metric in PROGRESS.values()} == {Observed.unfinished()}


def test_a_page_may_be_in_a_folder_and_wait_for_the_server(home: Path) -> None:
    found = page(home, "  cart: {kind: page, path: /shop/cart.html, server_delay: 30ms}\n")
    assert found.asked()["path"] == "/after/30ms/site/shop/cart.html"
    assert [file.path for file in found.files] == ["shop/cart.html", "a b.png", "app.css", "index.html"]
    assert found.brief() == "the page /shop/cart.html of the content (50 bytes of HTML) in Chromium"


@pytest.mark.parametrize(
    ("content", "written", "message", "hint"),
    [
        ("", HOME, "the `path` of a page is a file of the `content`, which this matrix does not have", "`content: F"),
        ("content: site\n", "  home: {kind: page, path: /cart.html}\n", "no file `/cart.html`", "`/shop/cart.html`"),
        ("content: site\n", "  home: {kind: page, path: /1k}\n", "no file `/1k`", ""),
        ("content: site\n", "  home: {kind: page, path: /, requests: 3}\n", "unknown key `requests`", ""),
    ],
)  # fmt: skip
def test_bad_input_is_refused_where_it_stands(home: Path, content: str, written: str, message: str, hint: str) -> None:
    (complaint,) = refusal(f"{content}{REST}{written}", home).complaints
    assert message in str(complaint)
    assert hint in str(complaint)
    assert complaint.line == 4 + bool(content)
