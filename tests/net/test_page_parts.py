"""Pages of HTML, CSS, scripts, fonts and images in a real browser: their bytes, order, priorities and paints."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from headwind.arm import H2, PLAIN, Arm
from headwind.browsers import CHROMIUM
from headwind.model import Outcome
from headwind.run.page_requests import requests_of
from headwind.servers import FURTHER, SERVERS
from headwind.testbed import testbed as testbeds
from headwind.testbed.docker import docker
from headwind.workloads.page import LARGEST, PAINT, PageLoad
from headwind.workloads.page_parts import PageParts
from servers.page_files import PageFiles, Several
from tests.net.page_trials import RTT_S, page_over

pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.pages]  # the first test may build images

PARTS = PageFiles(30_000, Several(4, 3_000), Several(6, 4_001), Several(3, 2_003), Several(9, 5_003))
# Loads a page in its own browser, with DevTools' network events. Prints the type and the priority of every request
# in the order of sending, and what the page made of its files.
WATCH = """
import json, sys
from browsers.browser import Place
from browsers.chromium.agent import Chromium
place, path = Place(sys.argv[1], sys.argv[2], 443), sys.argv[3]
browser = Chromium.start(place)
page = browser.open()
tools = browser.devtools
tools.call("Network.enable", page.session)
tools.start("Page.navigate", page.session, url=place.url(path))
sent, types, raised = {}, {}, {}
while (event := tools.event(20.0)) is None or event["method"] != "Page.loadEventFired":
    about = event["params"] if event else {}
    if event and event["method"] == "Network.requestWillBeSent":
        sent[about["requestId"]] = about["request"]["url"].rpartition("/")[2], about["request"]["initialPriority"]
    if event and event["method"] == "Network.responseReceived":
        types[about["requestId"]] = about["response"]["mimeType"]
    if event and event["method"] == "Network.resourceChangedPriority":
        raised[about["requestId"]] = about["newPriority"]
script = '''document.fonts.ready.then(() => {
  const style = getComputedStyle(document.documentElement);
  return {scripts: self.ran ?? [], fonts: [...document.fonts].filter(font => font.status === "loaded").length,
          styles: Array.from({length: 50}, (_, n) => n + 1).filter(n => style.getPropertyValue(`--style-${n}`)),
          images: [...document.images].filter(image => image.naturalWidth > 1).length};
})'''
made = tools.call("Runtime.evaluate", page.session, expression=script, awaitPromise=True, returnByValue=True)
browser.close()
print(json.dumps({"sent": [(*each, types[number], raised.get(number)) for number, each in sent.items()],
                  "made": made["result"]["value"]}))
"""


def watched(page_bed: testbeds.Testbed, page: PageLoad, arm: Arm, server_ip: str = "") -> dict[str, Any]:
    """The report of a browser with DevTools' events about a page that a trial has loaded."""
    address = server_ip or page_bed.path().server_ip
    command = ("python3", "-c", WATCH, arm.protocol.value, address, page.object_path())
    found: dict[str, Any] = json.loads(docker("exec", page_bed.containers[CHROMIUM], *command))
    return found


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_page_has_its_parts_and_a_browser_applies_all_of_them(page_bed: testbeds.Testbed, arm: Arm) -> None:
    page = PageParts("home", PARTS.folder)
    result = page_over(page_bed.path(), arm, page)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    columns = result.samples["samples"]
    names = [path.rpartition("/")[2] for path in columns["request_path"]]
    assert dict(zip(names, columns["request_bytes"], strict=True)) == PARTS.sizes()
    assert result.metrics["bytes_body"] == 4 * 3_000 + 6 * 4_001 + 3 * 2_003 + 9 * 5_003
    made = watched(page_bed, page, arm)["made"]
    assert (sorted(made["scripts"]), made["styles"]) == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4])
    assert (made["fonts"], made["images"]) == (3, 9)


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_browser_requests_the_parts_in_the_order_and_with_the_priorities_of_a_usual_page(
    page_bed: testbeds.Testbed, arm: Arm
) -> None:
    page = PageParts("home", PARTS.folder)
    assert page_over(page_bed.path(), arm, page).outcome is Outcome.OK
    sent = watched(page_bed, page, arm)["sent"]
    assert [name for name, *_ in sent] == [
        "page.html", *(f"style-{number}.css" for number in range(1, 5)),
        *(f"script-{number}.js" for number in range(1, 7)), *(f"image-{number}.png" for number in range(1, 10)),
        *(f"font-{number}.ttf" for number in range(1, 4)),
    ]  # fmt: skip
    priorities = [priority for _, priority, *_ in sent]
    assert priorities[:6] == [*["VeryHigh"] * 5, "High"], "the document, the stylesheets, and the script that blocks"
    assert priorities[6:11] == ["Low"] * 5, "the other scripts"
    assert priorities[11:20] == [*["Medium"] * 5, *["Low"] * 4], "Chromium favours the first five images"
    assert priorities[20:] == ["VeryHigh"] * 3, "fonts are needed for text that is laid out"
    types = {name.rpartition(".")[2]: mime for name, _, mime, _ in sent}
    assert types.pop("js") in {"application/javascript", "text/javascript"}
    assert types == {"html": "text/html", "css": "text/css", "ttf": "font/ttf", "png": "image/png"}


def test_the_links_of_a_chain_wait_for_each_other_and_delay_the_first_paint(page_bed: testbeds.Testbed) -> None:
    home, chained = PageParts("home", PARTS.folder), PageParts("chained", replace(PARTS, chain=4).folder)
    later_s = 0.0
    for _ in range(4):  # on a busy machine a browser paints late now and then, also the page without a chain
        apart, result = (page_over(page_bed.path(), H2, page) for page in (home, chained))
        assert (apart.outcome, result.outcome, result.reason) == (Outcome.OK, Outcome.OK, "")
        assert result.metrics["bytes_body"] == apart.metrics["bytes_body"]
        requests = {each.path.rpartition("/")[2]: each for each in requests_of(result.samples["samples"])}
        for kind, ending in (("style", "css"), ("script", "js")):
            for number in range(1, 4):
                before, after = requests[f"{kind}-{number}.{ending}"], requests[f"{kind}-{number + 1}.{ending}"]
                assert before.done_s <= after.start_s <= after.done_s - RTT_S
        assert requests["font-1.ttf"].start_s >= requests["style-4.css"].done_s
        assert result.metrics[PAINT.key] >= requests["script-4.js"].done_s
        later_s = result.metrics[PAINT.key] - apart.metrics[PAINT.key]
        if later_s >= 4 * RTT_S:
            break
    assert later_s >= 4 * RTT_S


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_the_largest_paint_is_that_of_the_largest_image(page_bed: testbeds.Testbed, arm: Arm) -> None:
    page, late_s = PageParts("hero", replace(PARTS, images=Several(1, 300_000)).folder), math.inf
    for _ in range(4):  # on a busy machine a browser paints late now and then
        result = page_over(page_bed.path(), arm, page)
        assert (result.outcome, result.reason) == (Outcome.OK, "")
        (image,) = (each for each in requests_of(result.samples["samples"]) if each.initiator == "img")
        assert result.metrics[LARGEST.key] > result.metrics[PAINT.key] + RTT_S
        late_s = result.metrics[LARGEST.key] - image.done_s
        assert late_s >= 0
        if late_s <= 0.3:
            break
    assert late_s <= 0.3


@pytest.mark.parametrize("name", [name for name in FURTHER if SERVERS[name].speaks("h3")])
def test_other_servers_have_the_same_page_and_browsers_apply_it(page_bed: testbeds.Testbed, name: str) -> None:
    server, page, path = SERVERS[name], PageParts("home", PARTS.folder), page_bed.path(name)
    for arm in PLAIN:
        result = page_over(path, Arm(f"{arm.name}-{name}", arm.protocol, server=server), page)
        assert (result.outcome, result.reason) == (Outcome.OK, "")
        found = watched(page_bed, page, arm, path.server_ip)
        assert {key: len(value) if isinstance(value, list) else value for key, value in found["made"].items()} == {
            "scripts": 6, "styles": 4, "fonts": 3, "images": 9
        }  # fmt: skip
