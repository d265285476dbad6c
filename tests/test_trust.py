"""docs/trust.md lists what was tried, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from tests.net.sabotages import SABOTAGES

ROOT = Path(__file__).resolve().parent.parent
# Sabotages with their own test: what the page calls them, and what the test is called.
OTHERS = {
    "a server without CPU time": "test_a_server_without_its_processors_is_found_by_the_time_it_waited",
    "a paused router": "test_a_paused_router_is_found",
    "a replaced nginx": "test_an_nginx_that_obeys_another_file_is_found",
    "a hidden shaper": "test_a_shaper_that_nobody_can_see_is_found_by_the_long_train",
}


def rows() -> dict[str, list[str]]:
    """Sabotage -> how it is detected at the start, and in a trial."""
    page = (ROOT / "docs/trust.md").read_text().partition("## Fault-injection tests")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    return {name.strip(): [cell.strip() for cell in cells] for _, name, *cells in lines[2:]}


def test_every_sabotage_stands_with_its_detector_and_was_tried() -> None:
    assert sorted(rows()) == sorted([*(sabotage.name for sabotage in SABOTAGES), *OTHERS])
    assert all(len(cells) == 2 and all(cells) for cells in rows().values())


def test_the_detector_that_is_named_is_the_one_that_the_test_expects() -> None:
    for sabotage in SABOTAGES:
        start, in_trial = rows()[sabotage.name]
        topics = re.findall(r"(\w+)(?:,|$)", sabotage.changed)
        assert all(topic in in_trial for topic in topics), sabotage.name
        assert bool(sabotage.start) or start == "reset", sabotage.name


def test_what_has_a_test_of_its_own_still_has_it() -> None:
    text = (ROOT / "tests/net/test_sabotage.py").read_text()
    assert [name for name in OTHERS.values() if f"def {name}(" not in text] == []
