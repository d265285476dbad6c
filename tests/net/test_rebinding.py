"""A client that is rebound in the middle of a train or a transfer, on every engine."""

from __future__ import annotations

import time

import pytest
from pydantic import TypeAdapter

from impair.messages import Course
from impair.profile import Direction
from tests.net.impaired import CLEAN, ImpairedPath, ask

pytestmark = pytest.mark.timeout(300)  # the first test may have to build the images

UP, DOWN = Direction.UPLINK, Direction.DOWNLINK
COURSE = TypeAdapter(Course)


def rebind(path: ImpairedPath, to: str, at_s: float) -> str:
    """Start a rebinding after a time over a clean path, and have the server's end count; the new address."""
    ask(path.router, "clear")
    path.apply(CLEAN, CLEAN)
    client = str(path.addresses.host("client", 10))
    other = str(path.addresses.host("client", 200))
    ask(path.end("server"), "await_rebound", kind=to, address=other if to == "address" else client)
    action = {"at_s": at_s, "kind": "rebind", "to": to, "client": client, "other": other}
    ask(path.router, "start_schedule", 30.0, actions=[action], clock="packet")
    return other


@pytest.mark.parametrize("to", ["address", "port"])
def test_packets_before_the_moment_have_the_old_source_and_later_ones_the_new(path: ImpairedPath, to: str) -> None:
    other = rebind(path, to, 0.3)
    train = path.train(UP, 600, interval_s=0.001, expect=600)
    (carried,) = COURSE.validate_python(ask(path.router, "stop_schedule")).carried
    seen, shown = ask(path.end("server"), "rebound"), ask(path.router, "show")["rebound"]
    assert carried.error == ""
    assert len(train["sequences"]) == 600, "no packet of the client is lost"
    assert 0 < seen < 600
    assert shown == {"uplink": seen, "downlink": 0, "dropped": 0}
    assert (other in train["sources"]) == (to == "address")


@pytest.mark.parametrize("to", ["address", "port"])
def test_nothing_is_left_of_a_rebinding(path: ImpairedPath, to: str) -> None:
    ask(path.router, "clear")
    plain = ask(path.router, "fingerprint")
    rebind(path, to, 0.01)
    path.train(UP, 50, interval_s=0.001)
    time.sleep(0.2)
    assert ask(path.router, "fingerprint")["qdiscs"] != plain["qdiscs"]
    ask(path.router, "clear")
    assert ask(path.router, "fingerprint") == plain
    path.apply(CLEAN, CLEAN)
    assert path.train(UP, 20)["sources"] == [str(path.addresses.host("client", 10))]
