"""What every test shares: markers by folder, the quick rings first, and reproducible property tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import configuration, settings

NET = Path(__file__).parent / "net"

configuration.set_hypothesis_home_dir(Path(__file__).parent.parent / ".pytest_cache" / "hypothesis")
# No deadline: a machine that also runs containers is no stopwatch.
settings.register_profile("headwind", deadline=None, print_blob=True)
settings.load_profile("headwind")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test` asks for one ring after the other, `make test-kernels` for the long form of what concerns kernels."""
    parser.addoption("--ring", choices=("pure", "net"), help="only what needs no Docker, or only tests/net")
    parser.addoption("--tally", type=Path, help="where to write how many tests passed, failed, ..., as JSON")
    parser.addoption("--kernels", action="store_true", help="tests/net with each of the kernels that people have")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Everything in tests/net is marked `net` and runs last: a slip in pure code shows after seconds."""
    rings: dict[str, list[pytest.Item]] = {"pure": [], "net": []}
    for item in items:
        rings["net" if item.path.is_relative_to(NET) else "pure"].append(item)
    for item in rings["net"]:
        item.add_marker("net")
    only = config.getoption("--ring")
    items[:] = rings[only] if only else rings["pure"] + rings["net"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What tests/rings.py adds up."""
    if tally := config.getoption("--tally"):
        tally.write_text(json.dumps({kind: len(reports) for kind, reports in terminalreporter.stats.items()}))
