"""What a hint proposes is not refused, in files with servers, searches and pages of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwind.matrix.reader import MatrixError
from headwind.plan.doubts import warnings_of
from tests.matrix_files import load, refusal

PAGE = """
arms:
  h2: {protocol: h2}
  h3: {protocol: h3}
  h3-fox: {protocol: h3, browser: firefox}
profiles: {near: {both: {delay: 5ms}}}
workloads: {home: {kind: page, parts: {html: 40kB, css: 3 x 20kB, js: 8 x 60kB, fonts: none}}}
selfcheck: {protocol: h2, again: [near]}
"""
SEARCH = """
protocols: [h2, h3]
find: {crossover: [h3, h2], along: downlink.loss, from: 0%, to: 6%, within: 1%}
repeat: {max: 80, budget: 20min}
profiles: {dsl: {both: {delay: 15ms}}}
workloads: {album: {kind: objects, requests: 20, size: 50kB}}
"""
OWN = """
protocols: [h2]
servers: {shop: {image: acme/shop, port: 8443, env: {A: b}, protocols: [h1, h2]}}
arms: {h2-shop: {protocol: h2, server: shop}}
profiles: {near: {both: {delay: 5ms}}}
workloads: {w: {requests: 10, connections: 2, path: /10k}}
"""
PARTS = "parts: {html: 40kB, css: 3 x 20kB, js: 8 x 60kB, fonts: none}"
SERVER = "{image: acme/shop, port: 8443, env: {A: b}, protocols: [h1, h2]}"


@pytest.mark.parametrize("text", [PAGE, SEARCH, OWN])
def test_the_files_without_mistakes_are_taken(text: str, tmp_path: Path) -> None:
    assert not warnings_of(load(text, tmp_path))


@pytest.mark.parametrize(
    ("text", "old", "new", "hints"),
    [
        (PAGE, "browser: firefox", "browser: chrome", ["did you mean `chromium`?"]),
        (PAGE, "kind: page", "kind: pages", ["did you mean `page`?"]),
        (
            PAGE,
            PARTS,
            "html: 40kB, css: 3 x 20kB",
            ["`html` and `css` belong in `parts`: parts: {html: 40kB, css: 3 x 20kB}"],
        ),
        (PAGE, "js: 8", "scripts: 8", ["did you mean `js`?"]),
        (PAGE, "8 x 60kB", "8*60kB", ["did you mean `8 x 60kB`?"]),
        (PAGE, "8 x 60kB", "8 \u00d7 60kB", ["did you mean `8 x 60kB`?"]),
        (PAGE, "8 x 60kB", "60kB x 8", ["did you mean `8 x 60kB`?"]),
        (PAGE, "8 x 60kB", "60kB", ["did you mean `1 x 60kB`?"]),
        (PAGE, "8 x 60kB", "8 x 60KB", ["did you mean `8 x 60kB`?"]),
        (PAGE, "8 x 60kB", "8 x 60GB", ["an object has 1B to 64MiB"]),
        (PAGE, "8 x 60kB", "0 x 60kB", ["did you mean `none`?"]),
        (PAGE, "8 x 60kB", "8", ["such as `8 x 10kB`, or `none`"]),
        (PAGE, "fonts: none", "fonts: no", ["did you mean `none`?"]),
        (PAGE, "{protocol: h2, again", "{arm: h2, again", ["did you mean `protocol`?"]),
        (PAGE, "arms:", "title:\narms:", ["its value follows it: `title: ...`; or remove the key"]),
        (SEARCH, "from: 0%, to: 6%", "start: 0%, end: 6%", ["did you mean `from`?", "did you mean `to`?"]),
        (SEARCH, "from: 0%, to: 6%", "min: 0%, max: 6%", ["did you mean `from`?", "did you mean `to`?"]),
        (SEARCH, "from: 0%, to: 6%", "from: 6%, to: 0%", ["swap them"]),
        (SEARCH, "within: 1%", "within: 7%", ["less than the whole range: a tenth of it without `within`"]),
        (SEARCH, "max: 80", "min: 9, max: 80", ["its values get blocks where they are needed: remove it"]),
        (OWN, "{A: b}", "[A=b]", ["each variable is a key: env: {A: b}"]),
        (OWN, "port: 8443", "environment: {C: d}", ["did you mean `env`?"]),
        (OWN, "port: 8443", "healthcheck: /", ["did you mean `ready`?"]),
        (OWN, "servers: {", f"servers: {{spare: {SERVER}, ", ["arms: {h1-spare: {protocol: h1, server: spare}}"]),
    ],
)
def test_each_mistake_gets_its_own_hint(text: str, old: str, new: str, hints: list[str], tmp_path: Path) -> None:
    complaints = refusal(text.replace(old, new, 1), tmp_path).complaints
    assert len(complaints) == len(hints)
    for complaint, hint in zip(complaints, hints, strict=True):
        assert hint in complaint.hint


def test_an_unused_server_is_no_further_mistake_of_a_misspelt_one(tmp_path: Path) -> None:
    (complaint,) = refusal(OWN.replace("server: shop", "server: shp"), tmp_path).complaints
    assert "did you mean `shop`?" in complaint.hint


def test_a_queue_that_is_too_short_to_show_its_rate_has_a_warning(tmp_path: Path) -> None:
    """Of 8 attempts over 5 packets at 20 Mbit/s 4 were not verified."""
    for packets, is_short in ((9, True), (10, False)):
        queue = f"{{downlink: {{rate: 20mbit, queue: {{kind: fifo, packets: {packets}}}}}}}"
        found = warnings_of(load(PAGE.replace("{both: {delay: 5ms}}", queue), tmp_path))
        assert any("too short to verify the rate" in each for each in found) == is_short


@pytest.mark.parametrize(
    ("text", "old", "new", "warning"),
    [
        (OWN, "protocols: [h2]", "protocols: [h1, h2]\ncompare: [[h2-shop, h2]]", "`h1` takes time in each block"),
        (SEARCH, "[h2, h3]\n", "[h1, h2, h3]\n", "`h1` takes time in each block, and is not compared"),
    ],
)
def test_an_arm_without_comparison_is_named(text: str, old: str, new: str, warning: str, tmp_path: Path) -> None:
    (found,) = warnings_of(load(text.replace(old, new, 1), tmp_path))
    assert warning in found


ARMS = """
protocols: [h2, h3]
arms: {h2-bbr: {protocol: h2, congestion: bbr}}
profiles: {near: {both: {delay: 5ms}}}
workloads: {album: {kind: objects, requests: 20, size: 50kB}}
"""


@pytest.mark.parametrize(
    ("arms", "warning"),
    [
        ("h2-bbr: {protocol: h2}", "the arm `h2-bbr` uses cubic"),
        ("h2-bbr: {protocol: h2, congestion: cubic}", "set its `congestion: bbr`, or rename it"),
        ("h2-twin: {protocol: h2}", "`h2` and `h2-twin` differ in their names only"),
        ("h2-cubic: {protocol: h2, congestion: cubic}", "`h2` and `h2-cubic` differ in their names only"),
        ("h3-caddy-bbr: {protocol: h3, server: caddy}", "uses newreno\n"),
        ("h2-bbr: {protocol: h2, congestion: bbr}", ""),
        ("h2-caddy: {protocol: h2, server: caddy}", ""),
        ("h2-as-shipped: {protocol: h2, settings: as-shipped}", ""),
    ],
)
def test_an_arm_is_what_its_name_says_and_unlike_all_others(arms: str, warning: str, tmp_path: Path) -> None:
    text = ARMS.replace("h2-bbr: {protocol: h2, congestion: bbr}", arms)
    found = warnings_of(load(text, tmp_path))
    assert [warning in each for each in found] == [True] * bool(warning)


def test_a_congestion_control_of_a_workload_counts_for_the_name_of_an_arm(tmp_path: Path) -> None:
    text = ARMS.replace(", congestion: bbr", "").replace("50kB", "50kB, congestion: {tcp: bbr}")
    (found,) = warnings_of(load(text, tmp_path))
    assert "`h2` and `h2-bbr` differ in their names only" in found


@pytest.mark.parametrize(
    ("path", "is_refused"), [("/5k", True), ("/10K", True), ("/index.html", False), ("/1m", False)]
)
def test_a_path_without_an_object_is_refused_unless_an_own_server_may_have_it(
    path: str, is_refused: bool, tmp_path: Path
) -> None:
    own = OWN.replace("/10k", path)
    lab_only = own.replace(f"servers: {{shop: {SERVER}}}\n", "").replace("server: shop", "server: caddy")
    lab_only = lab_only.replace("h2-shop", "h2-caddy")
    if is_refused:
        with pytest.raises(MatrixError, match=f"the lab's servers have no object at `{path}`"):
            load(lab_only, tmp_path)
    else:
        load(lab_only, tmp_path)
    assert not warnings_of(load(own, tmp_path))


def test_two_lists_under_conditions_are_one_entry(tmp_path: Path) -> None:
    text = f"{OWN}conditions:\n  - [near]\n  - [w]\n"
    proposed = "conditions: [{profiles: [near], workloads: [w]}]"
    complaints = refusal(text, tmp_path).complaints
    assert [each.hint for each in complaints] == [f"did you mean one entry: {proposed}?"] * 2
    assert load(f"{OWN}{proposed}\n", tmp_path).conditions
