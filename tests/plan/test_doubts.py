"""Notes of a valid matrix: changes that are not measured, and paths that the lab's servers lack."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwind.plan.doubts import changes_missed, notes_of
from headwind.plan.forecast import Forecast
from tests.matrix_files import MINIMAL, load

TTFB = MINIMAL.replace("{requests: 10, connections: 2}", "{kind: ttfb}")
OWN = MINIMAL.replace("profiles", "servers: {mine: {image: my/app, protocols: [h1]}}\narms: ARMS\nprofiles")


@pytest.mark.parametrize(
    ("text", "network", "count"),
    [
        (TTFB, "{at: {20ms: {both: {loss: 100%}}, 900ms: {}}}", 1),
        (TTFB, "{at: {1s: {rebind: port}}}", 1),
        (TTFB, "{}", 0),
        (MINIMAL, "{at: {20ms: {both: {loss: 100%}}, 900ms: {}}}", 0),
    ],
)
def test_changes_may_fall_into_the_connection_that_is_not_measured(
    text: str, network: str, count: int, tmp_path: Path
) -> None:
    """An earlier moment, as advised, hit only the connection that gets a ticket: no time showed the blackout."""
    notes = notes_of(load(text.replace("clean: {}", f"clean: {network}"), tmp_path))
    assert sum("a trial of `page` has two connections" in each for each in notes) == count


def test_an_earlier_moment_is_not_advised_for_the_second_of_two_connections(tmp_path: Path) -> None:
    for text, advice in ((TTFB, "use `kind: transfer`"), (MINIMAL, "write an earlier moment")):
        matrix = load(text.replace("clean: {}", "clean: {at: {9s: {both: {loss: 1%}}}}"), tmp_path)
        (note,) = changes_missed(matrix, Forecast(matrix.rules))
        assert f"nothing can be sure there; {advice}" in note


@pytest.mark.parametrize(
    ("arms", "path", "names"),
    [
        ("{h1-mine: {protocol: h1, server: mine}}", "/poll", "HTTP/1.1 and HTTP/3"),
        ("{h1-mine: {protocol: h1, server: mine}}", "/10k", ""),
        ("{h1-mine: {protocol: h1, server: mine, path: /poll}}", "/10k", ""),
        ("{h1-mine: {protocol: h1, server: mine}, h1-b: {protocol: h1, path: /poll}}", "/10k", "HTTP/1.1 (b)"),
    ],
)
def test_a_path_that_the_lab_s_servers_lack_has_a_note(arms: str, path: str, names: str, tmp_path: Path) -> None:
    """Every request of these arms failed with 404, after a run."""
    text = OWN.replace("ARMS", arms).replace("connections: 2", f"connections: 2, path: {path}")
    notes = [each for each in notes_of(load(text, tmp_path)) if "no object at" in each]
    assert len(notes) == bool(names)
    assert all(f"no object at `/poll`, so all requests of {names} for it will fail" in each for each in notes)
