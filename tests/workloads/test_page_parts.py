"""The kind `page` with `parts`: its keys, its defaults, and what becomes of pages with other files than requested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browsers.page import COLUMNS
from headwind.arm import H2, H3, PLAIN
from headwind.metric import Use
from headwind.model import Block, Condition, Outcome, Repetition, Result, Trial
from headwind.plan.block_order import plan_blocks
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.trial.content import stretch_of
from headwind.trial.trial import run_trial
from headwind.workloads.page import LOAD
from headwind.workloads.page_parts import PageParts
from impair.profile import Delay, Direction, Link, Profile
from servers import objects
from servers.page_files import PageFiles, Several
from tests.fake_testbed import RULES, World, fake_path
from tests.matrix_files import MINIMAL, load, refusal

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
FILES = PageFiles(5_000, Several(3, 2_000), Several(4, 3_000), Several(2, 1_000), Several(5, 4_000))
PAGE = PageParts("home", FILES.folder)
WORKLOAD = "{requests: 10, connections: 2}"


def outcome(world: World, workload: PageParts = PAGE) -> Result:
    block = Block(Condition(FAR, workload), 0, (H3,), dict.fromkeys(Direction, 1))
    with fake_path(world) as path:
        return run_trial(path, Trial(block, 0, H3), RULES)


def test_a_trial_loads_the_document_and_counts_every_file() -> None:
    world = World()
    result = outcome(world)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert result.metrics["requests_succeeded"] == 15
    assert result.metrics["bytes_body"] == sum(FILES.sizes().values()) - 5_000
    assert world.provided == [f"/bytes/{FILES.folder}/page.html"] == [world.asked[0]["path"]]


def cell(column: str, row: int, value: object) -> Callable[[dict[str, Any]], None]:
    """A change of a page's report: one request has another value."""
    return lambda page: page["rows"][row].__setitem__(COLUMNS.index(column), value)


@pytest.mark.parametrize(
    ("change", "expected", "reason"),
    [
        (cell("encodedBodySize", 1, 1_999), Outcome.WRONG_CONTENT, "style-1.css had 1999 bytes instead of 2000"),
        (cell("encodedBodySize", 0, 4_999), Outcome.WRONG_CONTENT, "page.html had 4999 bytes instead of 5000"),
        (cell("name", 3, "https://server/1k"), Outcome.WRONG_CONTENT, "/1k had 2000 bytes instead of 1024"),
        (cell("name", 3, f"https://server/bytes/{FILES.folder}/style-1.css"), Outcome.WRONG_CONTENT,
         "did not request"),
        (cell("responseStatus", 3, 404), Outcome.FAILED, "1 of 15 requests failed"),
    ],
)  # fmt: skip
def test_a_page_with_other_files_is_no_time(
    change: Callable[[dict[str, Any]], None], expected: Outcome, reason: str
) -> None:
    result = outcome(World(page=change))
    assert result.outcome is expected
    assert reason in result.reason


def test_in_each_block_another_file_is_compared_and_all_of_them_in_turn() -> None:
    def compared(block: int, page: PageParts = PAGE) -> str:
        trial = Trial(Block(Condition(FAR, page), block, (H2,), dict.fromkeys(Direction, 1)), 0, H2)
        found, path = stretch_of(trial), page.compared_path(block)
        assert found
        assert found.bytes == len(objects.content(path) or b"")
        return path

    paths = [compared(block) for block in range(15)]
    assert sorted(paths) == sorted(f"/bytes/{FILES.folder}/{name}" for name in FILES.sizes())
    assert compared(15) == paths[0]
    assert compared(3, replace(PAGE, server_delay_s=0.03)) == f"/after/30ms{paths[3]}"


def test_a_file_that_the_server_altered_is_noticed() -> None:
    world = World()
    world.files[PAGE.compared_path(0)] = b"x" * 5_000
    result = outcome(world)
    assert result.outcome is Outcome.WRONG_CONTENT
    assert "other content" in result.reason


def page_of_keys(written: str, tmp_path: Path) -> PageFiles:
    matrix = load(MINIMAL.replace(WORKLOAD, written), tmp_path)
    (found,) = {condition.workload for condition in matrix.conditions}
    assert isinstance(found, PageParts)
    assert matrix_from_json(matrix_to_json(matrix)).conditions == matrix.conditions
    assert matrix.browsers == ("chromium",)
    return found.page


def test_the_defaults_are_the_medians_of_the_web_almanac(tmp_path: Path) -> None:
    """KB of 1024 bytes, and requests: its chapter Page Weight of 2025, desktop home pages, and home pages."""
    page = page_of_keys("{kind: page, parts: {}}", tmp_path)
    weights = {"html": page.html_bytes} | {
        name: part.count * part.bytes
        for name, part in {"css": page.styles, "js": page.scripts, "fonts": page.fonts, "images": page.images}.items()
    }
    assert {name: round(size_bytes / 1024) for name, size_bytes in weights.items()} == {
        "html": 22, "css": 82, "js": 697, "fonts": 139, "images": 1058
    }  # fmt: skip
    counts = [part.count for part in (page.styles, page.scripts, page.fonts, page.images)]
    assert (counts, page.chain) == ([8, 22, 4, 19], 0)


def test_keys_become_parts(tmp_path: Path) -> None:
    written = "{kind: page, parts: {html: 5kB, css: 3 x 2kB, js: 4x3kB, fonts: none, images: 5 x 4KiB, chain: 3}}"
    expected = PageFiles(5_000, Several(3, 2_000), Several(4, 3_000), Several(0, 0), Several(5, 4_096), 3)
    assert page_of_keys(written, tmp_path) == expected


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("{kind: page, parts: {css: 8}}", "`8` is not a number of files with their size", "`8 x 10kB`, or `none`"),
        ("{kind: page, parts: {css: 0 x 1kB}}", "`0 x 1kB` is not a number of files", "did you mean `none`?"),
        ("{kind: page, parts: {css: 2000 x 1kB}}", "2000 is out of range", ""),
        ("{kind: page, parts: {css: 2 x 1}}", "`1` has no unit", ""),
        ("{kind: page, parts: {html: 1kB}}", "`html` is too small", "at least 2150B"),
        ("{kind: page, parts: {fonts: 1 x 100B}}", "`fonts` is too small", "at least 704B"),
        ("{kind: page, parts: {js: 2 x 10B}}", "`js` is too small", "at least 25B"),
        ("{kind: page, parts: {images: 900 x 1MB, html: 1MB}}", "a page has at most 64 MiB", "fewer or smaller files"),
        ("{kind: page, parts: {css: 3 x 10kB, chain: 4}}", "a chain of 4 needs as many files, and `css` has 3",
         "at most 3, or `css: none`"),
        ("{kind: page, parts: {css: none, js: none, chain: 2}}", "neither a stylesheet nor a script", "remove it"),
        ("{kind: page, parts: {chain: 1}}", "1 is out of range", ""),
        ("{kind: page, parts: {}, size: 1kB}", "`size` does not go with `parts`", "remove it"),
        ("{kind: page, parts: {style: 1 x 1kB}}", "unknown key `style`", ""),
    ],
)  # fmt: skip
def test_bad_input_is_refused_where_it_stands(tmp_path: Path, written: str, message: str, hint: str) -> None:
    text = MINIMAL.replace(WORKLOAD, written)
    (complaint,) = refusal(text, tmp_path).complaints
    assert message in str(complaint)
    assert hint in str(complaint)
    assert text.splitlines()[complaint.line - 1] == next(line for line in text.splitlines() if written in line)


def test_its_texts_name_what_it_has() -> None:
    assert PAGE.brief() == (
        "a page of 5,000 bytes of HTML, 3 stylesheets of 2,000 bytes, 4 scripts of 3,000 bytes, 2 fonts of 1,000 bytes "
        "and 5 images of 4,000 bytes in Chromium"
    )
    chained = PageParts("chained", replace(FILES, chain=3).folder)
    assert "with a render-blocking chain of 3" in chained.sentence(["h2"])
    assert PAGE.least()[0] < chained.least()[0]


def test_a_whole_run_is_judged_by_the_load_event(tmp_path: Path) -> None:
    matrix = replace(
        load(MINIMAL, tmp_path), arms=PLAIN, conditions=(Condition(FAR, PAGE),), repeat=Repetition.fixed(3)
    )
    with fake_path(World()) as path:
        results = [run_trial(path, trial, RULES) for block in plan_blocks(matrix) for trial in block.trials()]
    assert {result.outcome for result in results} == {Outcome.OK}
    assert PageParts.with_use(Use.JUDGED) == (LOAD,)
