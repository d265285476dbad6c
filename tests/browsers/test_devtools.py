"""The DevTools protocol over pipes: answers and events in any order and any pieces, and an end that is noticed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from browsers import devtools
from browsers.devtools import BrowserGone, CallFailed, DevTools, LabIsGone, TooLate


@dataclass(slots=True)
class Other:
    """The other end of both pipes."""

    tools: DevTools
    reading: int
    writing: int

    def say(self, *messages: object, end: bytes = b"\0") -> None:
        os.write(self.writing, b"\0".join(json.dumps(each).encode() for each in messages) + end)

    def heard(self) -> list[dict[str, object]]:
        return [json.loads(text) for text in os.read(self.reading, 1 << 16).split(b"\0") if text]


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Iterator[Other]:
    (reading, sending), (receiving, writing), lab = os.pipe(), os.pipe(), os.pipe()
    monkeypatch.setattr(devtools, "LAB", lab[0])
    pair = Other(DevTools(receiving, sending), reading, writing)
    yield pair
    for descriptor in (reading, sending, receiving, writing, *lab):
        try:
            os.close(descriptor)
        except OSError:
            continue


def test_an_answer_is_found_among_events_which_are_kept(other: Other) -> None:
    other.say({"method": "A"}, {"id": 1, "result": {"x": 2}}, {"method": "B"})
    assert other.tools.call("Do.it", "session", y=3) == {"x": 2}
    assert other.heard() == [{"id": 1, "method": "Do.it", "params": {"y": 3}, "sessionId": "session"}]
    assert [other.tools.event(0.0), other.tools.event(0.0), other.tools.event(0.0)] == [
        {"method": "A"}, {"method": "B"}, None,
    ]  # fmt: skip


def test_an_event_with_an_answer_gets_it_at_once_and_is_kept(other: Other) -> None:
    """So nothing waits for a person, also while a call waits for its own answer."""
    other.tools.answers = {"Dialog.opens": ("Dialog.close", {"accept": False})}
    other.say({"method": "Dialog.opens", "sessionId": "page"}, {"id": 1, "result": {}})
    other.tools.call("Do.it")
    assert other.heard()[1:] == [{"id": 2, "method": "Dialog.close", "params": {"accept": False}, "sessionId": "page"}]
    assert other.tools.event(0.0) == {"method": "Dialog.opens", "sessionId": "page"}


def test_a_message_may_come_in_pieces(other: Other) -> None:
    os.write(other.writing, b'{"id": 1, "res')
    number = other.tools.start("Do.it")
    assert other.tools.event(0.01) is None
    assert other.tools.answered(number, "Do.it") is None
    os.write(other.writing, b'ult": {"x": "\xc3\xa9"}}\0')
    assert other.tools.event(0.01) is None
    assert other.tools.answered(number, "Do.it") == {"x": "é"}


def test_a_refusal_and_a_silence_are_errors(other: Other) -> None:
    other.say({"id": 1, "error": {"message": "no such thing"}})
    with pytest.raises(CallFailed, match=r"Do.it: no such thing"):
        other.tools.call("Do.it")
    with pytest.raises(TooLate, match=r"did not answer Do.it within 0.01 s"):
        other.tools.call("Do.it", limit_s=0.01)


def test_the_end_of_the_browser_is_noticed_at_once(other: Other) -> None:
    os.close(other.writing)
    with pytest.raises(BrowserGone):
        other.tools.call("Do.it")
    os.close(other.reading)
    with pytest.raises(BrowserGone, match=r"call: Do.more"):
        other.tools.start("Do.more")


def test_the_end_of_the_lab_is_noticed_at_once(other: Other, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, end = os.pipe()
    os.close(end)
    monkeypatch.setattr(devtools, "LAB", gone)
    with pytest.raises(LabIsGone):
        other.tools.call("Do.it")
    os.close(gone)
