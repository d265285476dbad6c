"""The report as its readers have it: in a real browser, with and without its script, wide, narrow and on paper."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import util
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Dialog,
    FloatRect,
    Locator,
    Page,
    ViewportSize,
    sync_playwright,
)

from bench.pictures import NAMES
from headwind.arm import PLAIN
from headwind.format import measured
from headwind.report import render
from headwind.report.condition import inside_of
from headwind.report.files import write_files
from headwind.report.html.page import REPORT
from tests.drawn import Axis
from tests.fake import STARTED_AT, recorded
from tests.golden.runs import RUNS, large
from tests.report.page_runs import KINDS, kinds_run, page_run, single_protocol_run

PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here; on Debian: apt-get install chromium"),
    pytest.mark.timeout(300),
]
ALL = {**RUNS, "large": cache(partial(large, blocks=12))}  # as many conditions as the large one, fewer trials
FURTHER = {"kinds": cache(kinds_run), "single-protocol": cache(single_protocol_run)}
SERIOUS = ("serious", "critical")
TABLET = ViewportSize(width=800, height=1000)
NARROW, WIDE = ViewportSize(width=400, height=800), ViewportSize(width=1200, height=900)
TELEPHONE = ViewportSize(width=360, height=740)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@dataclass
class Reader:
    """A page in a browser, and everything that it said or asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, file: Path, fragment: str = "") -> Page:
        """Go there, and remember every message, error, dialog and request."""
        page = self.page
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(file.as_uri() + fragment)
        return page

    def _refuse(self, dialog: Dialog) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()


class Files(dict[str, Path]):
    """The pages of golden runs by name, each drawn when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        file = self[name] = self.folder / f"{name}.html"
        file.write_text(render({**ALL, **FURTHER}[name]().data(name), STARTED_AT + 7200), encoding="utf-8")
        return file


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return Files(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # The sandbox of a browser that root starts needs what many machines do not allow; the pages are our own.
        started = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


def context_of(browser: Browser, **settings: Any) -> BrowserContext:
    return browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **settings})


@pytest.fixture
def reader(browser: Browser) -> Iterator[Reader]:
    with context_of(browser) as context:
        yield Reader(context.new_page())


@dataclass(frozen=True)
class Look:
    """What is to be seen of one page, on a telephone and then in a wide window: it is loaded once for all of it."""

    picture: FloatRect | None  # of the answer, on a telephone
    scroll_width: int  # on a telephone
    tablet_scroll_width: int
    said: list[str]
    asked: list[str]
    owned: str  # the type of what a script in a name would have made
    faults: list[str]  # that axe finds


@pytest.fixture(scope="session")
def look(request: pytest.FixtureRequest, browser: Browser, files: dict[str, Path]) -> Look:
    name: str = request.param
    with context_of(browser, viewport=NARROW) as context:
        reader = Reader(context.new_page())
        page = reader.open(files[name])
        pictures = page.locator("table.answer tbody td.picture")
        picture = pictures.first.bounding_box() if pictures.count() else None
        page.evaluate("document.querySelectorAll('details.condition').forEach((item) => { item.open = true; })")
        scroll_width = page.evaluate("document.documentElement.scrollWidth")
        page.set_viewport_size(TABLET)
        tablet_scroll_width = page.evaluate("document.documentElement.scrollWidth")
        page.set_viewport_size(WIDE)
        page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
        page.mouse.wheel(0, 5000)
        owned = page.evaluate("typeof window.owned")
        said, asked = list(reader.said), list(reader.asked)
        found = [] if name == "large" else faults(page)
        return Look(picture, scroll_width, tablet_scroll_width, said, asked, owned, found)


def of_pages(names: Collection[str]) -> pytest.MarkDecorator:
    """A test for each page; those of a page run one after the other, and share its look."""
    return pytest.mark.parametrize("look", names, indirect=True)


@of_pages(ALL)
def test_a_page_says_nothing_in_the_console_and_asks_the_network_for_nothing(
    look: Look, files: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    assert look.said == []
    assert look.asked == [files[request.node.callspec.params["look"]].as_uri()]
    assert look.owned == "undefined"


def test_a_script_in_a_name_would_not_run_even_if_it_got_into_the_page(reader: Reader, files: dict[str, Path]) -> None:
    smuggled = files["small"].with_name("smuggled.html")
    page = files["small"].read_text(encoding="utf-8")
    smuggled.write_text(page.replace("<main>", "<main><script>window.owned = 1</script><img src=x onerror=owned=1>"))
    opened = reader.open(smuggled)
    assert opened.evaluate("typeof window.owned") == "undefined"
    assert any("Content Security Policy" in text for text in reader.said)


def axe() -> str:
    """The source of axe-core."""
    found = util.find_spec("axe_playwright_python")
    assert found
    assert found.submodule_search_locations
    return (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


# Elements with the same name, classes and ancestors have the same colours: one of each kind stays. A row or paragraph
# whose children are gone is such an element itself.
ONE_OF_EACH_KIND = """() => {
    const seen = new Set(), kinds = new Map([[null, '']]);
    const own = (item) => ['class', 'style', 'fill'].map((name) => item.getAttribute(name)).join(' ');
    for (const item of document.body.querySelectorAll('*')) {
        const parent = kinds.get(item.parentElement) || '';
        kinds.set(item, parent + '>' + item.tagName + ' ' + own(item));
    }
    for (const item of [...kinds.keys()].reverse()) {
        if (!item || item.children.length) continue;
        if (seen.has(kinds.get(item))) item.remove();
        seen.add(kinds.get(item));
    }
}"""
COLOURS = "color-contrast"
AXE = "{{resultTypes: ['violations'], selectors: false, {rules}}}"  # selectors of all that passed take most of its time
OTHER_RULES = AXE.format(rules=f"rules: {{'{COLOURS}': {{enabled: false}}}}")
COLOUR_RULE = AXE.format(rules=f"runOnly: ['{COLOURS}']")


def faults(page: Page) -> list[str]:
    """The serious ones that axe finds, in light and dark. Afterwards most of the page is gone.

    Everything but colours does not depend on the scheme.
    """
    page.evaluate(axe())
    found = [page.evaluate(f"axe.run({OTHER_RULES})")]
    page.evaluate(ONE_OF_EACH_KIND)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        found.append(page.evaluate(f"axe.run({COLOUR_RULE})"))
    assert all(run["passes"] for run in found), "axe looked at something"
    return [
        f"{item['impact']} {item['id']}: {item['help']}: {node['html'][:200]} {node['failureSummary']}"
        for run in found
        for item in run["violations"]
        for node in item["nodes"][:2]
        if item["impact"] in SERIOUS
    ]


@of_pages([name for name in ALL if name != "large"])
def test_axe_finds_nothing_serious(look: Look) -> None:
    assert look.faults == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_a_planted_fault(scheme: str, reader: Reader, files: dict[str, Path]) -> None:
    """A colour of one kind of cell in one scheme, and a picture without words."""
    page = reader.open(files["mixed"])
    page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
    rule = f"@media (prefers-color-scheme: {scheme}) {{ table.blocks td {{ color: #888; background: #777; }} }}"
    page.evaluate(f"document.styleSheets[0].insertRule('{rule}', document.styleSheets[0].cssRules.length)")
    page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    kinds = {fault.split(":")[0] for fault in faults(page)}
    assert kinds == {f"serious {COLOURS}", "critical image-alt"}


def test_without_its_script_the_page_still_has_every_number(browser: Browser, files: dict[str, Path]) -> None:
    golden = RUNS["mixed"]()
    with context_of(browser, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(files["mixed"].as_uri())
        for summary in page.locator("summary").all():  # a closed part is opened by hand, which takes no script
            if summary.is_visible():
                summary.click()
        rows = page.locator("table.blocks tbody tr")
        cells = [text for row in rows.all() for text in row.locator("td").all_inner_texts()[: len(PLAIN)]]
        assert len(cells) == len({result.trial.id for result in golden.results})
        assert all(text.strip() for text in cells)
        shown = page.locator("main").inner_text()
        assert page.locator("svg[role=img]").count() > len(golden.matrix.conditions)
        assert not page.locator("#filter").is_visible(), "what needs the script is not offered"
    for result in golden.results:
        if result.reason:
            assert result.reason in shown


GROUPS = "#comparisons h3 + .scroll tbody"  # by the first metric: a group of rows for each condition


def visible(rows: Locator) -> list[str]:
    return [row.inner_text().split()[0] for row in rows.all() if row.is_visible()]


def test_the_filter_is_in_the_address(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["large"], "#profile=delay10-loss5&comparison=h3:h1")
    groups = page.locator(GROUPS)
    assert visible(groups) == ["delay10-loss5"]
    assert page.locator(f"{GROUPS} tr:visible").count() == 1
    assert page.locator("#filter select[name=profile]").input_value() == "delay10-loss5"
    assert "1 of 40 conditions" in page.locator("#filter").inner_text()
    page.select_option("#filter select[name=profile]", "")
    assert len(visible(groups)) == 40
    assert page.url.endswith("#comparison=h3:h1")
    page.select_option("#filter select[name=comparison]", "")
    assert "#" not in page.url
    assert reader.said == []


def test_a_name_that_the_page_does_not_have_filters_nothing_and_is_said(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["large"], "#profile=%3Cb%3E&comparison=h1:h3&workload=article")
    assert len(visible(page.locator(GROUPS))) == 40
    assert page.locator("#filtered").inner_text() == "there is no profile <b>; there is no comparison h1:h3"
    assert reader.said == []


def test_an_address_without_a_filter_shows_everything_again(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["large"], "#profile=delay10-loss5")
    page.evaluate("location.hash = ''")
    page.wait_for_timeout(100)
    assert len(visible(page.locator(GROUPS))) == 40


def test_a_dozen_conditions_need_no_filter(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["small"], "#profile=loss")
    assert page.locator("#filter").count() == 0
    assert len(visible(page.locator(GROUPS))) == 5


LEFTS = "items => items.map((item) => Math.round(item.getBoundingClientRect().left))"


@pytest.mark.parametrize("comparison", ["h3:h1", "h3:h2", "h2:h1"])
def test_a_network_is_named_whichever_comparison_is_chosen(
    comparison: str, reader: Reader, files: dict[str, Path]
) -> None:
    """The name was hidden with the first row, and the cells of the others moved to its column."""
    page = reader.open(files["large"], f"#comparison={comparison}")
    names = [condition.profile.name for condition in ALL["large"]().matrix.conditions]
    table = page.locator("#comparisons table.forest").first
    assert visible(table.locator("tbody tr")) == names
    heads = table.locator("thead th")
    assert table.locator("tbody tr:visible").first.locator("th, td").evaluate_all(LEFTS) == heads.evaluate_all(LEFTS)
    page.select_option("#filter select[name=comparison]", "")
    assert visible(table.locator("tbody tr:nth-child(3n + 1)")) == names
    assert table.locator("tbody tr:visible").nth(2).locator("td").evaluate_all(LEFTS) == heads.evaluate_all(LEFTS)[1:]
    assert reader.said == []


def test_the_filter_counts_conditions_of_every_workload(reader: Reader, files: dict[str, Path]) -> None:
    """Those without the first table's metric were not counted: "0 of 7 conditions"."""
    page = reader.open(files["kinds"], "#workload=page")
    assert page.locator("#filtered").inner_text() == "4 of 16 conditions"
    assert page.locator("details.condition:visible").count() == 4


def test_a_page_without_comparisons_has_a_filter(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["single-protocol"], "#profile=delay20&comparison=h3:h1")
    assert page.locator("#comparisons").count() == 0
    assert page.locator("#filtered").inner_text() == "1 of 15 conditions"
    assert page.locator("details.condition:visible").count() == 1
    assert page.locator("#filter select:visible").count() == 1
    page.select_option("#filter select[name=profile]", "delay30")
    assert page.url.endswith("#profile=delay30")
    assert page.locator("#results tbody:visible").count() == 1
    assert reader.said == []


def link_to(page: Page, name: str) -> Locator:
    """The link of the answer to the condition of this name."""
    return page.locator("#answer tbody").get_by_role("link", name=name, exact=True)


def test_a_link_keeps_the_filter_in_the_address(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["large"], "#profile=delay10-loss5&comparison=h3:h2")
    anchor = (link_to(page, "delay10-loss5").get_attribute("href") or "")[1:]
    link_to(page, "delay10-loss5").click()
    page.wait_for_url(f"**#profile=delay10-loss5&comparison=h3:h2&at={anchor}")
    said = "1 of 40 conditions; only h3:h2"
    assert page.locator("#filtered").inner_text() == said
    assert page.locator("details.condition:visible").count() == 1
    again = page.context.new_page()
    again.goto(page.url)
    assert again.locator("#filtered").inner_text() == said
    assert again.locator(f"#{anchor}").is_visible()
    assert again.evaluate("document.querySelector('details.condition[open]').getBoundingClientRect().top") < 200
    page.go_back()
    page.wait_for_url("**#profile=delay10-loss5&comparison=h3:h2")
    assert page.locator("#filtered").inner_text() == said


def test_a_link_to_a_condition_that_is_filtered_out_drops_that_part_of_the_filter(
    reader: Reader, files: dict[str, Path]
) -> None:
    page = reader.open(files["large"], "#profile=delay10-loss5&comparison=h3:h2")
    anchor = (link_to(page, "delay50-loss1").get_attribute("href") or "")[1:]
    link_to(page, "delay50-loss1").click()
    page.wait_for_url(f"**#comparison=h3:h2&at={anchor}")
    assert page.locator(f"#{anchor}").is_visible()
    assert page.locator("#filtered").inner_text() == "only h3:h2"
    assert page.locator("#filter select[name=profile]").input_value() == ""
    assert len(visible(page.locator(GROUPS))) == 40
    page.select_option("#filter select[name=comparison]", "")
    page.select_option("#filter select[name=profile]", "delay10-loss5")
    page.locator("nav a[href='#trust']").click()
    page.wait_for_url("**#profile=delay10-loss5&at=trust")
    link_to(page, "delay50-loss1").click()
    page.wait_for_function("document.getElementById('filtered').textContent === ''")
    assert page.url.endswith(f".html#{anchor}")
    assert page.locator(f"#{anchor}").is_visible()
    assert reader.said == []


def test_a_shared_place_in_a_filtered_page_is_opened_and_marked(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["large"], "#comparison=h3:h2&at=c7b3")
    row = page.locator("#c7b3")
    assert row.is_visible()
    assert page.evaluate(IN_SIGHT, "c7b3")
    colours = "item => getComputedStyle(item).backgroundColor"
    assert row.evaluate(colours) != page.locator("#c7b2").evaluate(colours)
    assert page.url.endswith("#comparison=h3:h2&at=c7b3")


IN_SIGHT = """id => {
  const box = document.getElementById(id).getBoundingClientRect();
  return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
}"""


def test_a_second_click_on_a_mark_leads_to_its_block_again(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["small"], "#c1")
    chart = page.locator("#c1-dots")
    for _ in range(2):
        chart.scroll_into_view_if_needed()
        assert not page.evaluate(IN_SIGHT, "c1b0")
        click_mark(page, chart, places_of_blocks(chart, 3)[0])
        page.wait_for_function(IN_SIGHT, arg="c1b0")
        assert page.url.endswith("#c1b0")
        page.locator("#c1 > details").evaluate_all("items => items.forEach((item) => { item.open = false; })")
    link = page.locator("table.answer tbody th a").first
    for _ in range(2):
        link.click()
        page.locator("#c1-dots").wait_for(state="visible")
        page.locator("details.condition").first.evaluate("item => { item.open = false; }")
    assert reader.said == []


def click_mark(page: Page, chart: Locator, x: float) -> None:
    """Click on the first mark from the top so far right of the chart's edge."""
    box, facts = chart.bounding_box(), page.locator("#facts")
    assert box
    for y in range(0, int(box["height"]), 4):
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.wait_for_timeout(30)
        if facts.is_visible():
            break
    assert facts.is_visible()
    page.mouse.down()
    page.mouse.up()


def test_the_button_for_all_conditions_says_what_it_will_do(reader: Reader, files: dict[str, Path]) -> None:
    """With a single condition, which is open, it said "Open all", and closed it."""
    page = reader.open(files["one-trial"])
    button, opened = page.locator("#unfold"), page.locator("details.condition[open]")
    for label, count in (("Close all", 1), ("Open all", 0), ("Close all", 1)):
        assert (button.inner_text(), opened.count()) == (label, count)
        button.click()
    page = reader.open(files["small"])
    for summary in page.locator("details.condition > summary").all():
        assert button.inner_text() == "Open all"
        summary.click()
    page.wait_for_function("document.getElementById('unfold').textContent === 'Close all'")
    button.click()
    assert (button.inner_text(), opened.count()) == ("Open all", 0)
    page = reader.open(files["large"], "#profile=delay10-loss5")
    button.click()
    assert (button.inner_text(), opened.count()) == ("Close all", 1), "those that are shown"
    page.select_option("#filter select[name=profile]", "")
    assert button.inner_text() == "Open all"


def test_after_printing_the_page_is_as_it_was(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["small"], "#c2")
    is_open = "items => items.map((item) => item.open)"
    before = page.locator("details").evaluate_all(is_open)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(page.locator("details").evaluate_all(is_open))
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function("document.getElementById('unfold').textContent === 'Open all'")
    assert page.locator("details").evaluate_all(is_open) == before


def test_in_a_narrow_window_each_figure_of_a_cause_has_the_name_of_its_column(
    reader: Reader, files: dict[str, Path]
) -> None:
    """Labels by number were those of a workload with two columns of handshakes; the others have one."""
    page = reader.open(files["kinds"])
    labels = "items => items.map((item) => getComputedStyle(item, '::before').content)"
    tables = page.locator("#why table")
    heads = [table.locator("thead th:not(.picture)").all_text_contents()[1:] for table in tables.all()]
    assert [len(names) for names in heads] == [11, 10, 10, 10]
    figures = [table.locator("tbody tr").nth(1).locator("td:not(.picture)") for table in tables.all()]
    assert all(each.evaluate_all(labels) == ["none"] * each.count() for each in figures), "its head is shown"
    page.set_viewport_size(TELEPHONE)
    for names, own in zip(heads, figures, strict=True):
        assert own.evaluate_all(labels) == [f'"{name} "' for name in names]
    assert page.evaluate("document.documentElement.scrollWidth") <= TELEPHONE["width"]


def test_a_row_of_the_answer_leads_to_its_condition(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["small"])
    blocks = page.locator("details.condition").nth(2).locator("svg").first
    assert not blocks.is_visible()
    page.locator("table.answer tbody tr:not(.group)").nth(2).locator("th a").click()
    blocks.wait_for(state="visible")
    assert page.evaluate("document.querySelector('details.condition:nth-of-type(3)').getBoundingClientRect().top") < 200


def test_a_warning_leads_to_the_row_of_its_trial(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["mixed"])
    page.locator(".notices a", has_text="loss #1 h2").click()
    row = page.locator("tr:target")
    row.wait_for(state="visible")
    assert row.locator("th").inner_text() == "1"
    assert "failed" in row.inner_text()


def places_of_blocks(chart: Locator, blocks: int) -> list[float]:
    """How far right of the chart's edge each block's trials are, in pixels."""
    kind, *numbers = (chart.get_attribute("data-x") or "").split()
    width = float((chart.get_attribute("viewBox") or "").split()[2])
    axis, box = Axis(kind, *map(float, numbers)), chart.bounding_box()
    assert box
    return [axis.place(block) * box["width"] / width for block in range(blocks)]


def test_under_the_pointer_are_the_facts_of_the_trial_and_its_command(reader: Reader, files: dict[str, Path]) -> None:
    golden = RUNS["mixed"]()
    page = reader.open(files["mixed"], "#c1")
    chart = page.locator("#c1-dots")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    facts = page.locator("#facts")
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.wait_for_timeout(500)  # the trials are unpacked when they are first asked for
    texts = set()
    for x in places_of_blocks(chart, golden.matrix.repeat.least):
        for y in range(0, int(box["height"]), 6):
            page.mouse.move(box["x"] + x, box["y"] + y)
            if facts.is_visible():
                texts.add(facts.inner_text())
    clean = [result for result in golden.results if result.trial.block.condition.id == "clean/article"]
    assert len(texts) == len(clean), "each trial is found by moving over the chart"
    for result in clean:
        place = f"{result.trial.arm.name}, block {result.trial.block.index}, place {result.trial.position + 1}: "
        (text,) = [text for text in texts if text.startswith(place)]
        assert result.outcome.value in text
        assert result.command in text
    page.mouse.move(0, 0)
    assert not facts.is_visible()
    assert reader.said == []


@pytest.mark.parametrize("number", range(1, len(KINDS) + 1), ids=[workload.name for workload in KINDS])
def test_figures_under_the_pointer_are_written_as_in_the_tables(
    number: int, reader: Reader, files: dict[str, Path]
) -> None:
    """`goodput 8.63e+6 bit/s`, `1.00e+3 ms`, `0.500 ratio`."""
    golden = FURTHER["kinds"]()
    condition = golden.matrix.conditions[number - 1]
    shown = (condition.workload.primary(), *inside_of(condition))
    page = reader.open(files["kinds"], f"#c{number}")
    lines = lines_under_the_pointer(page, number, golden.matrix.repeat.least)
    results = [result for result in golden.results if result.trial.block.condition == condition]
    assert len(lines) == len(results)
    for result in results:
        place = f"{result.trial.arm.name}, block {result.trial.block.index}, place {result.trial.position + 1}: ok"
        figures = [f"{metric.heading} {measured(metric.key, result.metrics[metric.key])}" for metric in shown]
        assert lines[place][:2] == [figures[0], ", ".join(figures[1:])]
    assert reader.said == []


def lines_under_the_pointer(page: Page, number: int, blocks: int) -> dict[str, list[str]]:
    """The lines on each trial of a condition by the first one, from moving over its chart."""
    chart, facts = page.locator(f"#c{number}-dots"), page.locator("#facts")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.wait_for_timeout(500)  # the trials are unpacked when they are first asked for
    found = {}
    for x in places_of_blocks(chart, blocks):
        for y in range(0, int(box["height"]), 4):
            page.mouse.move(box["x"] + x, box["y"] + y)
            if facts.is_visible():
                first, *others = facts.inner_text().splitlines()
                found[first] = others
    return found


@pytest.mark.parametrize(("name", "said"), [("all-failed", "no completion time"), ("timeouts-half", "stopped after")])
def test_trials_without_a_time_are_told_from_each_other_too(
    name: str, said: str, reader: Reader, files: dict[str, Path]
) -> None:
    """They stand in rows of their own above the times, one row for each protocol."""
    page = reader.open(files[name], "#c1")
    chart = page.locator("#c1-dots")
    chart.scroll_into_view_if_needed()
    rows = [row.split(":") for row in (chart.get_attribute("data-rows") or "").split()]
    assert [arm for _, arm, _ in rows] == ["h1", "h2", "h3"]
    box, width = chart.bounding_box(), 520
    assert box
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.wait_for_timeout(500)
    found = set()
    for _, arm, y in rows:
        for x in places_of_blocks(chart, RUNS[name]().matrix.repeat.least):
            page.mouse.move(box["x"] + x, box["y"] + float(y) * box["width"] / width)
            text = page.locator("#facts").inner_text()
            if page.locator("#facts").is_visible() and text.startswith(f"{arm}, ") and said in text:
                found.add(arm)
    assert found == {"h1", "h2", "h3"}
    assert reader.said == []


def saved(page: Page, kind: str) -> str:
    with page.expect_download() as download:
        page.locator(f"button.download[data-format={kind}]").click()
    return Path(download.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["mixed", "hostile", "large"])
def test_the_trials_can_be_saved_from_the_page(name: str, reader: Reader, files: dict[str, Path]) -> None:
    results = ALL[name]().results
    page = reader.open(files[name])
    rows = list(csv.DictReader(StringIO(saved(page, "csv"))))
    whole = json.loads(saved(page, "json"))
    assert len(rows) == len(whole["trials"]["block"]) == len(results)
    for row, result in zip(rows, results, strict=True):
        assert (row["outcome"], int(row["block"]), row["arm"]) == (
            result.outcome.value, result.trial.block.index, result.trial.arm.name,
        )  # fmt: skip
        assert float(row["total_s"] or -1) == pytest.approx(result.metrics.get("total_s", -1), rel=5e-5)  # 5 digits
    assert reader.said == []


@of_pages(ALL)
def test_a_narrow_window_never_scrolls_sideways(look: Look) -> None:
    assert look.scroll_width <= NARROW["width"]
    assert look.tablet_scroll_width <= TABLET["width"]


@pytest.mark.parametrize("viewport", [NARROW, WIDE])
def test_the_answer_stands_before_menu_and_dates(viewport: Any, browser: Browser, files: dict[str, Path]) -> None:
    with context_of(browser, viewport=viewport) as context:
        page = Reader(context.new_page()).open(files["small"])
        tops = [
            page.locator(place).first.bounding_box() for place in ("h1", "table.answer tbody", "#generated", "nav a")
        ]
    places = [box["y"] for box in tops if box]
    assert len(places) == 4
    assert places == sorted(places)
    assert places[0] < 100


@of_pages(["sweep", "small", "mixed", "checked", "arms", "large"])
def test_the_picture_begins_on_the_first_screen_of_a_telephone(look: Look) -> None:
    assert look.picture
    assert look.picture["y"] + look.picture["height"] <= NARROW["height"]


def test_wide_tables_show_every_column_and_their_heads_do_not_meet(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["arms"])
    edges = "items => items.map((item) => [item.getBoundingClientRect().left, item.getBoundingClientRect().right])"
    heads = page.locator("table.results thead th").evaluate_all(edges)
    assert len(heads) > 5
    assert all(one[1] <= other[0] for one, other in pairwise(heads))
    assert heads[-1][1] <= WIDE["width"]
    page = reader.open(files["published"])
    tables = page.locator("#published .scroll")
    assert tables.evaluate_all("items => items.map((item) => item.scrollWidth <= item.clientWidth)") == [True]


@pytest.mark.parametrize("name", ["mixed", "sweep"])
def test_a_head_of_the_answer_does_not_run_into_the_next(name: str, reader: Reader, files: dict[str, Path]) -> None:
    """`Total time; one mark per trial, hollow mark: their median` lay over the head of the next column."""
    heads = reader.open(files[name]).locator("#answer th")
    wide = heads.evaluate_all(
        "items => items.filter((item) => item.scrollWidth > item.clientWidth).map((item) => item.textContent)"
    )
    assert heads.count() > 0
    assert wide == []


def test_waterfalls_stand_side_by_side_or_below_each_other_and_link_to_their_archives(
    reader: Reader, tmp_path: Path
) -> None:
    matrix, results = page_run(tmp_path)
    with recorded(tmp_path, matrix, results) as run:
        write_files(run)
    page = reader.open(run.folder / REPORT)
    page.evaluate("document.querySelectorAll('details.condition').forEach((item) => { item.open = true; })")
    places = "items => items.map((item) => item.getBoundingClientRect()).map((box) => [box.left, box.top])"
    charts = page.locator(".waterfalls svg.waterfall")
    wide = charts.evaluate_all(places)
    assert (len({left for left, _ in wide}), len({top for _, top in wide})) == (3, 1)
    page.set_viewport_size(NARROW)
    narrow = charts.evaluate_all(places)
    assert (len({left for left, _ in narrow}), len({top for _, top in narrow})) == (1, 3)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    links = page.locator(".waterfalls a[href$='.har']").evaluate_all("items => items.map((item) => item.href)")
    assert len(links) == 6
    assert all((run.folder / "har" / link.rpartition("/")[2]).is_file() for link in links)
    assert reader.said == []
    assert faults(page) == []


def test_on_paper_everything_is_open_and_controls_are_gone(reader: Reader, files: dict[str, Path]) -> None:
    page = reader.open(files["small"])
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(details.get_attribute("open") is not None for details in page.locator("details").all())
    assert not page.locator("button").first.is_visible()
    assert len(page.pdf()) > 50_000


def test_the_example_report_and_its_pictures_are_made_of_a_run_folder(tmp_path: Path) -> None:
    golden = RUNS["small"]()
    with recorded(tmp_path / "reports", golden.matrix, golden.results) as run:
        folder = run.folder
    script = Path(__file__).resolve().parent.parent.parent / "bench/pictures.py"
    subprocess.run([sys.executable, script, "--into", tmp_path, folder], check=True)
    page = (tmp_path / "example-report.html").read_text(encoding="utf-8")
    assert 'href="report.md"' in page
    assert "../../docs" not in page
    light, dark = ((tmp_path / f"report-{scheme}.png").read_bytes() for scheme in ("light", "dark"))
    assert light[:8] == dark[:8] == b"\x89PNG\r\n\x1a\n"
    assert light != dark
    assert not list(folder.glob("*.html")), "the run's own folder is left as it is"
