"""What every test shares: rings by folder, the quick ones first, and reproducible property tests."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import configuration, settings

from headwind.stops import STOPS
from tests.rings import RINGS

NET = Path(__file__).parent / "net"

configuration.set_hypothesis_home_dir(Path(__file__).parent.parent / ".pytest_cache" / "hypothesis")
# No deadline: a machine that also runs containers is no stopwatch.
settings.register_profile("headwind", deadline=None, print_blob=True)
settings.load_profile("headwind")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test` asks for one ring after the other, `make test-kernels` for the long form of what concerns kernels."""
    parser.addoption("--ring", choices=RINGS, help="only tests of this ring (tests/rings.py)")
    parser.addoption("--tally", type=Path, help="where to write how many tests passed, failed, ..., as JSON")
    parser.addoption("--kernels", action="store_true", help="tests/net with each of the kernels that people have")


@pytest.fixture
def signals() -> Iterator[None]:
    """The lab takes over signals; the tests' own come back."""
    before = {number: signal.getsignal(number) for number in STOPS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A ring does not even read what can have nothing for it."""
    ring = config.getoption("--ring")
    wanted = not ring or collection_path.is_dir() or collection_path.is_relative_to(NET) == (ring != "pure")
    return None if wanted else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Everything in tests/net is marked `net` and runs last: a slip in pure code shows after seconds."""
    rings: dict[str, list[pytest.Item]] = {ring: [] for ring in RINGS}
    for item in items:
        rings[ring_of(item)].append(item)
    for item in (item for ring in RINGS if ring != "pure" for item in rings[ring]):
        item.add_marker("net")
        item.add_marker(pytest.mark.flaky(reruns=1))  # a pause of the whole machine fails a test in real time
    # What shares a testbed comes last: it comes up when everything that brings up its own is through.
    rings["net"].sort(key=lambda item: needs(item, "bed"))
    for ring in ("beside", "labs", "killed"):  # while another ring builds the images, what needs none
        rings[ring].sort(key=lambda item: needs(item, "images"))
    only = config.getoption("--ring")
    items[:] = rings[only] if only else [item for ring in rings.values() for item in ring]


def needs(item: pytest.Item, fixture: str) -> bool:
    """Whether a test uses a fixture, itself or by way of others."""
    return fixture in getattr(item, "fixturenames", ())


def ring_of(item: pytest.Item) -> str:
    """Of tests/net, what is marked with a ring's name is of that ring, or `timed` of `net`; the closest mark counts."""
    if not item.path.is_relative_to(NET):
        return "pure"
    rings = {**{ring: ring for ring in RINGS if ring != "net"}, "timed": "net"}  # all of tests/net is marked `net`
    return next((rings[mark.name] for mark in item.iter_markers() if mark.name in rings), "net")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What tests/rings.py adds up."""
    if tally := config.getoption("--tally"):
        tally.write_text(json.dumps({kind: len(reports) for kind, reports in terminalreporter.stats.items()}))
