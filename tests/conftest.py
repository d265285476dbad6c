"""What every test shares: markers by folder, the quick rings first, and reproducible property tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import configuration, settings

NET = Path(__file__).parent / "net"

configuration.set_hypothesis_home_dir(Path(__file__).parent.parent / ".pytest_cache" / "hypothesis")
# No deadline: a machine that also runs containers is no stopwatch.
settings.register_profile("headwind", deadline=None, print_blob=True)
settings.load_profile("headwind")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test-kernels` asks for the long form of what concerns the router's kernel."""
    parser.addoption("--kernels", action="store_true", help="tests/net with each of the kernels that people have")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in tests/net is marked `net` and runs last: a slip in pure code shows after seconds."""
    for item in items:
        if item.path.is_relative_to(NET):
            item.add_marker("net")
    items.sort(key=lambda item: item.path.is_relative_to(NET))
