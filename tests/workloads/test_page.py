"""The kind `page`: what it asks of a browser and the server, and what becomes of pages that did not load as asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from browsers.page import COLUMNS
from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.browsers import BROWSERS
from headwind.metric import Use
from headwind.model import Block, Condition, Outcome, Repetition, Result, Trial
from headwind.observed import Observed, observed
from headwind.plan.block_order import plan_blocks
from headwind.report.files import write_files
from headwind.report.html.page import REPORT
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.run.frames import open_run
from headwind.testbed import images
from headwind.trial.trial import run_trial
from headwind.workloads import workload_from_json, workload_to_json
from headwind.workloads.discovery import SHARE
from headwind.workloads.h2load import PROGRESS
from headwind.workloads.page import FIRST, LARGEST, LAST, LOAD, PAINT, Page
from headwind.workloads.transfer import HANDSHAKE
from impair.profile import Delay, Direction, Link, Profile
from servers import objects
from tests.fake import recorded
from tests.fake_testbed import RULES, Sabotage, World, fake_path
from tests.matrix_files import MINIMAL, load, refusal

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
PAGE = Page("page", 50, 10_000)
WORKLOAD = "{requests: 10, connections: 2}"


def column(name: str, first: int, count: int, value: object) -> Callable[[dict[str, Any]], None]:
    """A change of a page's report: a column of some of its requests has another value."""

    def change(collected: dict[str, Any]) -> None:
        for row in collected["rows"][first : first + count]:
            row[COLUMNS.index(name)] = value

    return change


def trial_over(arm: Arm, workload: Page = PAGE) -> Trial:
    return Trial(Block(Condition(FAR, workload), 0, (arm,), dict.fromkeys(Direction, 1)), 0, arm)


def outcome(world: World, arm: Arm = H3, workload: Page = PAGE) -> Result:
    with fake_path(world) as path:
        return run_trial(path, trial_over(arm, workload), RULES)


@pytest.mark.parametrize("arm", [H1, H2, H3], ids=str)
def test_a_trial_gives_the_times_of_a_page_that_was_opened_before_it(arm: Arm) -> None:
    world = World()
    result = outcome(world, arm)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    times = [result.metrics[metric.key] for metric in (FIRST, PAINT, LARGEST, LOAD)]
    assert times == sorted(set(times))
    assert result.metrics[LAST.key] <= result.metrics[LOAD.key]
    assert (result.metrics["requests_succeeded"], result.metrics["bytes_body"]) == (51, 500_000)
    (asked,) = world.asked
    assert (asked["program"], asked["path"], asked["port"]) == ("chromium", "/bytes/50-of-10000.html", 443)
    assert world.provided == ["/bytes/50-of-10000.html", "/bytes/10000.png"]
    opened = world.order.index("chromium prepare")
    assert opened < world.order.index("server fresh"), "the server forgets a browser's first page"
    assert "router clear" in world.order[:opened]


def test_every_request_of_every_trial_is_kept(tmp_path: Path) -> None:
    columns = outcome(World()).samples["samples"]
    assert {len(column) for column in columns.values()} == {51}
    ends = [start_s + took_s for start_s, took_s in zip(columns["request_start_s"], columns["request_took_s"],
                                                         strict=True)]  # fmt: skip
    assert ends == sorted(ends)


def test_the_progress_of_a_page_is_that_of_its_requests() -> None:
    result = outcome(World())
    ends = [result.metrics[metric.key] for metric in PROGRESS.values()]
    assert ends == sorted(ends)
    assert ends[-1] == pytest.approx(result.metrics[LAST.key], abs=1e-5)
    assert 0 < result.metrics[HANDSHAKE.key] <= result.metrics[FIRST.key]


@pytest.mark.parametrize(
    ("change", "expected", "reason"),
    [
        (column("nextHopProtocol", 0, 51, "h2"), Outcome.WRONG_PROTOCOL, "h2 was negotiated instead of h3"),
        (column("nextHopProtocol", 0, 11, "h2"), Outcome.WRONG_PROTOCOL,
         "h3 (40 of 51 requests), h2 (11 of 51 requests) was negotiated instead of h3"),
        (column("nextHopProtocol", 50, 1, ""), Outcome.WRONG_PROTOCOL, "unknown (1 of 51 requests)"),
        (column("responseStatus", 3, 2, 503), Outcome.FAILED, "2 of 51 requests failed"),
        (column("encodedBodySize", 7, 1, 9_999), Outcome.WRONG_CONTENT, "had 499999 bytes instead of 500000"),
        (column("encodedBodySize", 0, 1, 5), Outcome.WRONG_CONTENT, "the document had 5 bytes instead of"),
        (column("transferSize", 1, 2, 0), Outcome.LAB_ERROR, "2 answers came from a cache"),
        (lambda page: page.update(load=0), Outcome.LAB_ERROR, "reports no load event"),
        (lambda page: page.update(load=10 * page["load"]), Outcome.LAB_ERROR, "in a run of"),
    ],
)  # fmt: skip
def test_a_page_that_came_otherwise_is_called_by_its_name(
    change: Callable[[dict[str, Any]], None], expected: Outcome, reason: str
) -> None:
    result = outcome(World(page=change))
    assert result.outcome is expected
    assert reason in result.reason


@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_a_repeat_visit_follows_a_first_one_over_the_network_of_the_trial(arm: Arm) -> None:
    """In the same page, before the server forgets its connections, on a port where sessions are resumed."""
    world = World()
    result = outcome(world, arm, replace(PAGE, visit="repeat"))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert [network for _, network in world.visited] == ["far"]
    assert world.asked[-1]["port"] == 444
    steps = [
        step for step in world.order if step in {"chromium prepare", "chromium visit", "server fresh", "client forget"}
    ]
    assert steps[:4] == ["chromium prepare", "chromium visit", "server fresh", "client forget"]
    refused = outcome(World(sabotage=Sabotage(session="new")), arm, replace(PAGE, visit="repeat"))
    assert (refused.outcome, refused.reason) == (
        Outcome.WRONG_SESSION, "the server resumed no session on a repeat visit"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("others", "protocol", "expected"),
    [(11, "h2", Outcome.OK), (51, "h2", Outcome.OK), (0, "", Outcome.OK), (1, "http/1.1", Outcome.WRONG_PROTOCOL)],
)
def test_a_browser_that_discovers_http3_may_use_http2_and_the_share_is_kept(
    others: int, protocol: str, expected: Outcome
) -> None:
    world = World(page=column("nextHopProtocol", 0, others, protocol))
    result = outcome(world, H3, replace(PAGE, discovery="alt-svc"))
    assert result.outcome is expected
    assert result.metrics[SHARE.key] == pytest.approx((51 - others) / 51)
    assert world.asked[-1]["port"] == 445
    assert world.asked[-1]["discovers"]
    if expected is Outcome.WRONG_PROTOCOL:
        assert "http/1.1 (1 of 51 requests)" in result.reason
    assert SHARE.key not in outcome(World()).metrics


def test_only_http3_is_discovered() -> None:
    both = replace(PAGE, discovery="alt-svc")
    assert [arm.workload(both).discovers for arm in PLAIN] == [False, False, True]


def test_the_server_is_given_the_condition_before_the_first_visit_and_only_for_clients_that_discover() -> None:
    world = World()
    outcome(world, H3, replace(PAGE, discovery="alt-svc", offer_if="rtt >= 80ms", visit="repeat"))
    steps = [step for step in world.order if step in {"server offer", "chromium visit", "server fresh"}]
    assert steps[:3] == ["server offer", "chromium visit", "server fresh"]
    outcome(world, H3, replace(PAGE, discovery="alt-svc"))
    assert world.offers == ["rtt >= 80ms", ""]
    outcome(world, H3)
    outcome(world, H2, replace(PAGE, discovery="alt-svc", offer_if="rtt >= 80ms"))
    assert world.offers == ["rtt >= 80ms", ""]


def test_a_browser_may_be_started_for_each_trial() -> None:
    world = World()
    outcome(world, H2, replace(PAGE, isolation="browser"))
    assert world.asked[-1]["isolation"] == "browser"
    assert "a new process for each trial" in replace(PAGE, isolation="browser").brief()


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        ("h2-found: {protocol: h2, discovery: alt-svc}", "`discovery: alt-svc` has no effect on h2"),
        ("h2-caddy: {protocol: h2, server: caddy, visit: repeat}", "caddy cannot serve the workload `page`"),
        ("h2-again2: {protocol: h2, visit: second}", "a kind of visit"),
        ("h3-auto: {protocol: h3, offer_if: rtt >= 80ms}", "`offer_if` without `discovery: alt-svc`"),
        ("h3-auto: {protocol: h3, discovery: alt-svc, offer_if: rtt > 80ms}", "not of the form `rtt >= 80ms`"),
        ("h3-auto: {protocol: h3, discovery: alt-svc, offer_if: cwnd < 5ms}", "not of the form `rtt >= 80ms`"),
        (
            "h3-auto: {protocol: h3, discovery: alt-svc, offer_if: rtt < 9ms, server: caddy}",
            "it has no condition for its Alt-Svc (`offer_if`)",
        ),
    ],
)
def test_a_visit_that_cannot_be_is_refused(arm: str, expected: str, tmp_path: Path) -> None:
    text = f"""
protocols: [h3]
arms:
  {arm}
profiles: {{clean: {{}}}}
workloads: {{page: {{kind: page, requests: 5, size: 1kB}}}}
"""
    (complaint,) = refusal(text, tmp_path).complaints
    assert expected in str(complaint)
    assert complaint.line == 4


def test_a_request_that_has_no_row_failed() -> None:
    result = outcome(World(page=lambda page: page["rows"].pop()))
    assert (result.outcome, result.reason) == (Outcome.FAILED, "1 of 51 requests failed")


def test_a_browser_that_crashes_is_an_error_of_the_lab_and_not_of_the_protocol() -> None:
    result = outcome(World(sabotage=Sabotage(crashes=True)))
    assert result.outcome is Outcome.LAB_ERROR
    assert "the page's renderer crashed" in result.reason


def test_an_agent_of_a_browser_that_dies_is_an_error_of_the_lab() -> None:
    world = World()
    with fake_path(world) as path:
        world.dead.add("chromium")
        with pytest.raises(Exception, match="chromium"):
            run_trial(path, trial_over(H3), RULES)


def test_a_page_that_never_loads_bounds_its_times_by_the_timeout() -> None:
    result = outcome(World(sabotage=Sabotage(hangs=True)))
    assert result.outcome is Outcome.TIMEOUT
    times = {observed(result, metric) for metric in (LOAD, FIRST, PAINT, LARGEST, LAST)}
    assert times == {Observed.unfinished(RULES.timeout_s)}
    samples = {"request_start_s": [0.0] * 30, "request_took_s": [0.25] * 30, "request_status": [200] * 30}
    metrics = {FIRST.key: 0.2, PAINT.key: 0.3, LARGEST.key: 0.4}
    begun = PAGE.bounds({"metrics": metrics, "samples": samples}, 10.0)
    assert begun == {"ttfb_low_s": 0.2, "ttfb_high_s": 0.2, "first_paint_low_s": 0.3, "first_paint_high_s": 0.3,
                     "lcp_low_s": 0.4, "last_resource_low_s": 10.0, "done_p50_low_s": 0.25, "done_p50_high_s": 0.25,
                     "done_p90_low_s": 10.0, "done_p99_low_s": 10.0, "done_all_low_s": 10.0}  # fmt: skip
    assert PAGE.bounds({"error": "one of its scripts does not end", "metrics": {"tcp_connections": 1}}, 10.0) == {}


def test_a_page_has_the_connections_of_its_protocol() -> None:
    """A page over HTTP/1.1 was "limited by a window of 2048 KB", as if it had one connection instead of six."""
    assert {arm.name: arm.workload(PAGE).at_once() for arm in PLAIN} == {"h1": (6, 1), "h2": (1, 50), "h3": (1, 50)}
    assert H1.workload(replace(PAGE, resources=4)).at_once() == (4, 1), "no more than there are pictures"
    assert workload_from_json(workload_to_json(PAGE)) == PAGE


def test_the_browser_s_error_is_the_reason_of_a_failure() -> None:
    reason = PAGE.shortfall({"error": "net::ERR_QUIC_PROTOCOL_ERROR", "metrics": {}})
    assert reason == "the browser could not load the page: net::ERR_QUIC_PROTOCOL_ERROR"


def test_the_server_is_asked_to_wait_before_the_page_and_each_of_its_pictures() -> None:
    world = World()
    result = outcome(world, workload=replace(PAGE, server_delay_s=0.03))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert world.asked[0]["path"] == "/after/30ms/bytes/50-of-10000.html"
    assert result.samples["served"]["count"] == result.samples["served"]["waited"] == 51
    assert [check.measured for check in result.proof.checks if check.quantity == "server_delay_s"] == [0.03]


class Pictures(HTMLParser):
    """The addresses of all pictures of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "img" and name == "src" and value]


@pytest.mark.parametrize("page", [PAGE, replace(PAGE, server_delay_s=0.03)], ids=["at once", "later"])
def test_a_page_asks_for_each_of_its_pictures_once(page: Page) -> None:
    document, picture = page.object_paths()
    pictures = Pictures()
    pictures.feed((objects.content(document) or b"").decode())
    addresses = [urljoin(document, each) for each in pictures.found]
    assert len(set(addresses)) == page.resources
    assert {each.partition("?")[0] for each in addresses} == {picture}


@pytest.mark.parametrize("path", ["/bytes/10000.png", f"/bytes/{objects.LEAST_PICTURE_BYTES}.png",
                                  "/bytes/50-of-10000.html"])  # fmt: skip
def test_documents_and_pictures_are_made_as_the_host_expects_them(tmp_path: Path, path: str) -> None:
    assert objects.is_on_demand(path)
    assert objects.make(tmp_path, path)
    assert not objects.make(tmp_path, path)
    assert (tmp_path / path[1:]).read_bytes() == objects.content(path)
    assert (tmp_path / path[1:]).stat().st_size == objects.size_of(path)


@pytest.mark.parametrize("path", ["/bytes/66.png", "/bytes/0-of-10.html", "/bytes/5-of-0.html", "/1k.png"])
def test_no_other_picture_and_document_is_made(path: str) -> None:
    assert not objects.is_on_demand(path)
    assert objects.size_of(path) is None


def test_keys_become_workloads(tmp_path: Path) -> None:
    for written, workload in (
        ("{kind: page, requests: 50, size: 10kB}", PAGE),
        ("{kind: page, requests: 1, size: 67B, server_delay: 5ms}", Page("page", 1, 67, server_delay_s=0.005)),
    ):
        matrix = load(MINIMAL.replace(WORKLOAD, written), tmp_path)
        (found,) = {condition.workload for condition in matrix.conditions}
        assert found == replace(workload, name=found.name)
        assert matrix.browsers == ("chromium",)
        assert matrix_from_json(matrix_to_json(matrix)).conditions == matrix.conditions


def test_an_arm_may_have_a_browser_of_its_own(tmp_path: Path) -> None:
    """Both browsers are needed then, and each trial asks its own."""
    arms = "arms: {h3-firefox: {protocol: h3, browser: firefox}}\n"
    matrix = load(MINIMAL.replace(WORKLOAD, "{kind: page, requests: 50, size: 10kB}") + arms, tmp_path)
    assert matrix.browsers == ("chromium", "firefox")
    own = next(arm for arm in matrix.arms if arm.name == "h3-firefox")
    assert [own.workload(each.workload).browser for each in matrix.conditions] == ["firefox"] * len(matrix.conditions)
    assert matrix_from_json(matrix_to_json(matrix)).arms == matrix.arms
    world = World()
    assert outcome(world, own).outcome is Outcome.OK
    assert world.asked[0]["program"] == "firefox"
    assert "firefox prepare" in world.order
    assert "chromium prepare" not in world.order


def test_a_page_may_be_for_another_browser_only(tmp_path: Path) -> None:
    text = MINIMAL.replace(WORKLOAD, "{kind: page, requests: 5, size: 1kB, browser: firefox}")
    matrix = load(text, tmp_path)
    assert matrix.browsers == ("firefox",)
    assert matrix.conditions[0].workload.brief() == "a page with 5 pictures of 1,000 bytes in Firefox"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{kind: page, requests: 5, size: 1kB, browser: firefax}", "did you mean `firefox`?"),
        ("{kind: page, requests: 5, size: 66B}", "66 bytes are too few for a picture"),
        ("{kind: page, requests: 0, size: 1kB}", "0 is out of range"),
        ("{kind: page, requests: 2000, size: 1kB}", "2000 is out of range"),
        ("{kind: page, size: 1kB}", "`requests` is missing"),
        ("{kind: page, requests: 5, size: 1kB, connections: 6}", "unknown key `connections`"),
        ("{kind: pages, requests: 5, size: 1kB}", "did you mean `page`"),
    ],
)
def test_bad_input_is_refused_where_it_stands(tmp_path: Path, written: str, message: str) -> None:
    text = MINIMAL.replace(WORKLOAD, written)
    (complaint,) = refusal(text, tmp_path).complaints
    assert message in str(complaint)
    assert text.splitlines()[complaint.line - 1] == next(line for line in text.splitlines() if written in line)


def test_a_run_without_pages_needs_no_browser(tmp_path: Path) -> None:
    assert load(MINIMAL, tmp_path).browsers == ()
    assert not set(images.needed()) & set(BROWSERS)
    assert set(images.needed(browsers=["chromium"])) == {*images.needed(), "chromium"}


def test_every_browser_of_a_kind_has_an_image() -> None:
    assert set(BROWSERS) <= images.IMAGES.keys()


def test_a_whole_run_is_judged_by_the_load_event_and_drawn(tmp_path: Path) -> None:
    matrix = replace(
        load(MINIMAL, tmp_path), arms=PLAIN, conditions=(Condition(FAR, PAGE),), repeat=Repetition.fixed(9)
    )
    world = World(noise_ratio=0.01)
    with fake_path(world) as path:
        results = [run_trial(path, trial, RULES) for block in plan_blocks(matrix) for trial in block.trials()]
    assert {result.outcome for result in results} == {Outcome.OK}
    assert Page.with_use(Use.JUDGED) == (LOAD,)
    with recorded(tmp_path, matrix, results) as run:
        write_files(run)
        page, frames = (run.folder / REPORT).read_text(), open_run(run.folder)
    for told in ("a page with 50 pictures of 10,000 bytes in Chromium", "time until the load event",
                 "Pages are loaded by Chromium"):  # fmt: skip
        assert told in page
    assert len(frames.requests) == len(results) * 51
    one = frames.requests[frames.requests["trial"] == results[0].trial.id]
    for name, values in results[0].samples["samples"].items():
        assert list(one[name]) == values, "each column of the browser's is a column of the file"
    assert set(frames.verdicts[frames.verdicts["judged"]]["metric"]) == {LOAD.key}
