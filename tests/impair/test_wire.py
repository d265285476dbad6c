"""The wire: one line in, one line out, and nothing that is asked can end the agent."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from impair.wire import Operation, answer, serve


def fail() -> None:
    raise OSError("no such qdisc")


OPERATIONS: dict[str, Operation] = {"add": lambda a, b: a + b, "fail": fail, "unspeakable": object}


def said(*lines: str) -> list[dict[str, Any]]:
    """What an agent with these operations prints for these lines."""
    sink = io.StringIO()
    serve(OPERATIONS, io.StringIO("".join(f"{line}\n" for line in lines)), sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def test_an_answer_carries_the_id_of_its_request() -> None:
    assert answer(OPERATIONS, '{"id": 7, "op": "add", "a": 1, "b": 2}') == {"id": 7, "ok": 3}


def test_requests_of_one_line_are_carried_out_in_order_and_answered_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    requests = [{"id": 3, "op": "add", "a": 1, "b": 2}, {"id": 1, "op": "fail"}, {"id": 2, "op": "unspeakable"}, 5,
                {"id": 4, "op": "add", "a": 3, "b": 4}]  # fmt: skip
    (answers,) = said(json.dumps(requests))[1:]
    assert isinstance(answers, list)
    assert [(each["id"], each.get("ok"), each.get("kind")) for each in answers] == [
        (3, 3, None), (1, None, "OSError"), (2, None, "TypeError"), (None, None, "AttributeError"), (4, 7, None),
    ]  # fmt: skip


def test_an_agent_says_first_that_it_is_ready_and_ends_with_its_input() -> None:
    assert said() == [{"ready": True}]


def test_requests_are_answered_in_their_order() -> None:
    lines = [json.dumps({"id": number, "op": "add", "a": number, "b": 1}) for number in (3, 1, 2)]
    assert said(*lines)[1:] == [{"id": 3, "ok": 4}, {"id": 1, "ok": 2}, {"id": 2, "ok": 3}]


def test_empty_lines_are_no_requests() -> None:
    assert said("", "   ") == [{"ready": True}]


@pytest.mark.parametrize(
    ("line", "identity", "kind", "word"),
    [
        ('{"id": 1, "op": "fail"}', 1, "OSError", "no such qdisc"),
        ('{"id": 2, "op": "nothing"}', 2, "LookupError", "add, fail, unspeakable"),
        ('{"id": 3, "op": "add", "a": 1}', 3, "TypeError", "'b'"),
        ('{"id": 4, "op": "add", "a": 1, "b": 2, "c": 3}', 4, "TypeError", "'c'"),
        ('{"id": 5}', 5, "KeyError", "op"),
        ('{"op": "add"}', None, "KeyError", "id"),
        ('{"id": 6, "op": ["add"]}', 6, "TypeError", "list"),
        ('{"id": 7, "op": "unspeakable"}', 7, "TypeError", "no JSON"),
        ("1", None, "AttributeError", ""),
        ("null", None, "AttributeError", ""),
        ("not JSON", None, "JSONDecodeError", "Expecting value"),
    ],
)
def test_a_bad_request_is_answered_with_what_went_wrong_and_the_next_one_is_done(
    line: str, identity: int | None, kind: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, failure, next_one = said(line, '{"id": 9, "op": "add", "a": 2, "b": 2}')
    assert (failure["id"], failure["kind"]) == (identity, kind)
    assert word in failure["error"]
    assert "ok" not in failure
    assert next_one == {"id": 9, "ok": 4}


def test_a_failure_leaves_its_traceback_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    said('{"id": 1, "op": "fail"}')
    log = capsys.readouterr()
    assert "in fail" in log.err
    assert log.out == ""


def test_text_of_any_alphabet_passes_as_plain_ascii() -> None:
    sink = io.StringIO()
    serve(OPERATIONS, ['{"id": 1, "op": "add", "a": "ö", "b": "\\ud800\\n"}'], sink)
    assert sink.getvalue().isascii()
    assert json.loads(sink.getvalue().splitlines()[1])["ok"] == "ö\ud800\n"
