"""Pages of the user's own site in a real browser: every file of them, with its type, or the reason why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwind.arm import H2, H3, PLAIN, Arm
from headwind.model import Outcome
from headwind.site import Site
from headwind.testbed import testbed as testbeds
from headwind.workloads.page import PAINT
from headwind.workloads.site_page import SitePage
from tests.net.page_site import FILES
from tests.net.page_trials import RTT_S, page_over

pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.pages]  # the first test may build images


@pytest.fixture
def site(page_bed: testbeds.Testbed) -> Site:
    assert page_bed.content
    return page_bed.content


def page_of(site: Site, path: str) -> SitePage:
    document = site.file(path)
    assert document
    return SitePage("home", path, files=(document, *(file for file in site.files if file != document)))


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_page_of_the_site_is_loaded_with_every_file_that_it_uses(
    page_bed: testbeds.Testbed, site: Site, arm: Arm
) -> None:
    result = page_over(page_bed.path(), arm, page_of(site, "/"))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    columns = result.samples["samples"]
    got = dict(zip(columns["request_path"], columns["request_bytes"], strict=True))
    used = {"/site/index.html": "index.html", "/site/css/app.css?v=3": "css/app.css", "/site/app.js": "app.js",
            "/site/own.ttf": "own.ttf", "/site/a%20picture%21.png": "a picture!.png",
            "/site/applied.png": "applied.png"}  # fmt: skip
    assert got == {path: len(FILES[name]) for path, name in used.items()}
    assert set(columns["request_protocol"]) == {arm.protocol.alpn}
    assert result.metrics[PAINT.key] >= 2 * RTT_S


def test_the_server_s_delay_is_that_of_every_file(page_bed: testbeds.Testbed, site: Site) -> None:
    result = page_over(page_bed.path(), H3, replace(page_of(site, "/"), server_delay_s=0.1))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert result.samples["served"]["count"] == result.samples["served"]["waited"] == 6


def test_addresses_that_the_site_does_not_have_are_named(page_bed: testbeds.Testbed, site: Site) -> None:
    result = page_over(page_bed.path(), H2, page_of(site, "/broken.html"))
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith("2 of 3 requests failed: ")
    for told in ("/a.png (404)", "/site/missing.png (404)", "addresses that begin with a slash miss the site"):
        assert told in result.reason
