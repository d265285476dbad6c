"""Arms in a matrix: what a user may write, what becomes of it, and what is refused where."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headwind.arm import H1, H2, H3, PLAIN, Arm, Congestion, Overrides, Protocol, Role
from headwind.format import override_texts
from headwind.model import Matrix
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.run.differences import differences
from headwind.settings import UNLIMITED, Settings, Windows
from headwind.verdicts.pairs import pairs_of
from headwind.workloads.h2load import H2load
from tests.matrix_files import load, manual_examples, refusal

REST = "profiles: {far: {both: {delay: 20ms}}}\nworkloads: {large: {requests: 12, connections: 1}}\n"
SIX, BBR = "h1-six: {protocol: h1, connections: 6}", "h2-bbr: {protocol: h2, congestion: bbr}"


def with_arms(*arms: str, protocols: str = "[h1, h2, h3]", more: str = "") -> str:
    return f"protocols: {protocols}\narms:\n" + "".join(f"  {arm}\n" for arm in arms) + more + REST


def pairs(matrix: Matrix) -> list[str]:
    return [str(pair) for pair in pairs_of(matrix, matrix.conditions[0])]


def test_the_short_form_is_three_arms_that_set_nothing(tmp_path: Path) -> None:
    assert load("protocols: [h1, h2, h3]\n" + REST, tmp_path).arms == PLAIN == (H1, H2, H3)
    alone = with_arms("h2: {protocol: h2}", "h1: {protocol: h1}").replace("protocols: [h1, h2, h3]\n", "")
    assert load(alone, tmp_path).arms == (H2, H1)


def test_an_arm_overrides_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    shipped = "h3-as-shipped: {protocol: h3, settings: as-shipped}"
    matrix = load(
        with_arms(SIX, BBR, shipped, "h3-half: {protocol: h3, settings: {server: as-shipped}}", protocols="[h1]"),
        tmp_path,
    )
    six, bbr, both, half = matrix.arms[1:]
    (condition,) = matrix.conditions
    assert (six.name, six.protocol, six.role) == ("h1-six", Protocol.H1, Role.PLAIN)
    assert six.workload(condition.workload) == H2load("large", requests=12, connections=6, streams=1)
    assert bbr.workload(condition.workload) == condition.workload
    assert bbr.congestion(Congestion("reno", "cubic")) == Congestion("bbr", "cubic")
    assert six.congestion(Congestion("reno", "cubic")) == Congestion("reno", "cubic")
    assert both.settings(UNLIMITED) == Settings(Windows.AS_SHIPPED, Windows.AS_SHIPPED)
    assert half.settings(UNLIMITED) == Settings(server=Windows.AS_SHIPPED)


def test_forgotten_protocols_are_one_mistake(tmp_path: Path) -> None:
    text = with_arms(BBR, protocols="[h3]", more="compare: [[h3, h2], [h2-bbr, h2]]\nselfcheck: {protocol: h1}\n")
    (complaint,) = refusal(text.replace("protocols: [h3]\n", ""), tmp_path).complaints
    assert complaint.source.startswith("compare")
    assert complaint.message == "`compare` names h1, h2 and h3, and this file has no `protocols`"
    assert complaint.hint == "add `protocols: [h1, h2, h3]`"


def test_a_run_folder_keeps_arms_and_says_which_of_them_changed(tmp_path: Path) -> None:
    more = "compare: [[h2-bbr, h2]]\nselfcheck: {protocol: h2-bbr, slower: [far]}\n"
    matrix = load(with_arms(SIX, BBR, more=more), tmp_path)
    written = json.loads(json.dumps(matrix_to_json(matrix)))
    read = matrix_from_json(written, matrix.source, matrix.path)
    assert read == matrix
    assert [arm.name for arm in read.arms_in(read.conditions[0])][3:] == ["h1-six", "h2-bbr", "h2-bbr-slower"]
    assert pairs(read) == ["h2-bbr against h2", "h2-bbr-slower against h2-bbr"]
    other = load(with_arms(SIX.replace("6", "4"), BBR, more=more), tmp_path)
    assert list(differences(written, matrix_to_json(other))) == ["arms.h1-six: connections 6 -> connections 4"]


def test_all_are_compared_with_all_or_those_that_are_named(tmp_path: Path) -> None:
    assert len(pairs(load(with_arms(SIX, BBR), tmp_path))) == 10
    named = load(with_arms(SIX, BBR, more="compare: [[h2-bbr, h2], [h3, h1-six]]\n"), tmp_path)
    assert pairs(named) == ["h2-bbr against h2", "h3 against h1-six"]


def test_the_manuals_example_is_one(tmp_path: Path) -> None:
    matrix = load(manual_examples()[0], tmp_path)
    assert [arm.name for arm in matrix.arms] == ["h1", "h2", "h3", "h1-six", "h2-bbr", "h3-as-shipped"]
    assert len(matrix.compare) == 4


CADDY = "h3-caddy: {protocol: h3, server: caddy}"


def test_an_arm_names_its_server(tmp_path: Path) -> None:
    matrix = load(
        with_arms(
            CADDY, "h2-haproxy: {protocol: h2, server: haproxy}", more="selfcheck: {protocol: h3-caddy, again: [far]}\n"
        ),
        tmp_path,
    )
    plain, caddy, haproxy = matrix.arms[0], *matrix.arms[3:]
    assert [arm.server.name for arm in (plain, caddy, haproxy)] == ["nginx", "caddy", "haproxy"]
    assert caddy.twin(Role.AGAIN).server == caddy.server
    assert override_texts([plain, caddy]) == ["HTTP/3 (caddy): server caddy"]
    assert caddy.congestion(Congestion()) == Congestion("cubic", "newreno"), "quic-go has no other"
    assert haproxy.congestion(Congestion()) == Congestion()
    read = matrix_from_json(json.loads(json.dumps(matrix_to_json(matrix))), matrix.source, matrix.path)
    assert read.arms == matrix.arms
    assert [arm.server for arm in read.arms] == [arm.server for arm in matrix.arms]


@pytest.mark.parametrize(
    ("arm", "workload", "message"),
    [
        ("h3-caddy: {protocol: h3, server: cady}", "{requests: 1, connections: 1}", "did you mean `caddy`?"),
        ("h3: {protocol: h3, server: caddy}", "{requests: 1, connections: 1}", "such as `h3-caddy`"),
        (CADDY, "{requests: 1, connections: 1, server_delay: 5ms}",
         "cannot serve the workload `large`: it has no `server_delay`"),
        (CADDY, "{kind: ttfb, session: resumed}", "it has no log of TLS sessions (for `ttfb`"),
        (CADDY[:-1] + ", settings: as-shipped}", "{requests: 2, connections: 2}", "caddy has no windows `as-shipped`"),
        (CADDY[:-1] + ", congestion: cubic}", "{requests: 2, connections: 2}", "only newreno"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_serve_an_arm_is_refused(arm: str, workload: str, message: str, tmp_path: Path) -> None:
    text = f"arms:\n  {arm}\nprofiles: {{far: {{both: {{delay: 20ms}}}}}}\nworkloads: {{large: {workload}}}\n"
    with_other = text.replace("arms:", "protocols: [h2]\narms:")
    assert message in str(refusal(with_other, tmp_path))


@pytest.mark.parametrize(
    ("key", "workload"),
    [
        ("requests: 5", "{kind: page, requests: 10, size: 10kB}"),
        ("streams: 5", "{kind: streams, streams: 10, size: 10kB}"),
    ],
)
def test_a_key_that_is_the_same_for_all_arms_is_refused(key: str, workload: str, tmp_path: Path) -> None:
    """An arm's `requests` of a page ended `validate` with a traceback."""
    arms = f"protocols: [h2]\narms:\n  h2-few: {{protocol: h2, {key}}}\n"
    text = f"{arms}profiles: {{far: {{both: {{delay: 20ms}}}}}}\nworkloads: {{large: {workload}}}\n"
    (found,) = refusal(text, tmp_path).complaints
    assert found.message == f"`{key.partition(':')[0]}` of the workload `large` is the same for all arms"
    assert found.line == 3


@pytest.mark.parametrize("server", ["caddy", "mine"])
def test_typing_errors_come_before_what_a_server_cannot_do(server: str, tmp_path: Path) -> None:
    own = "servers: {mine: {image: x, protocols: [h3]}}\n" if server == "mine" else ""
    text = f"{own}{with_arms(f'h3-{server}: {{protocol: h3, server: {server}}}')}"
    text = re.sub("workloads: .*", "workloads: {first: {kind: ttfb, session: resumd}}", text)
    typo, unserved = refusal(text, tmp_path).complaints
    assert typo.hint.startswith("did you mean `resumed`?")
    assert unserved.line < typo.line
    assert unserved.message.startswith(f"{server} cannot serve the workload `first`: it has no log of TLS sessions")
    assert unserved.hint == (
        "name a server that can: nginx; or remove the arm; or, for new connections, use `kind: transfer`, which has "
        "`ttfb_s` as well; or put `first` into a separate matrix file"
    )


def test_an_unknown_arm_that_spells_out_the_usual_server_is_that_of_its_protocol(tmp_path: Path) -> None:
    """The hint proposed a second arm, equal to `h2`."""
    text = "protocols: [h1, h2]\ncompare: [[h2-nginx, h1]]\nprofiles: {far: {}}\n"
    text += "workloads: {one: {kind: transfer, size: 2kB}}\n"
    (unknown,) = refusal(text, tmp_path).complaints
    assert unknown.hint == "did you mean `h2`? its server is nginx"


MANY = [f"h2-a{number}: {{protocol: h2, connections: {number}}}" for number in range(1, 7)]


@pytest.mark.parametrize(
    ("text", "place", "complaint"),
    [
        (with_arms("bbr: {protocol: h2}"), "3:3", "`bbr` cannot be the name of an arm"),
        (with_arms("h2-b/r: {protocol: h2}"), "3:3", "cannot be the name of an arm"),
        (with_arms("h2-again: {protocol: h2}"), "3:3", "is what a self-check's twin of `h2` is called"),
        (with_arms("h1-six: {protocol: h2}"), "3:22", "`h1-six` speaks h2"),
        (with_arms("h2: {protocol: h2, congestion: bbr}", protocols="[h1]"), "3:3", "needs a name that says so"),
        (with_arms("h2: {protocol: h2}"), "3:3", "`h2` appears twice"),
        (with_arms("h1-six: {connections: 6}"), "3:3", "`protocol` is missing"),
        (with_arms("h1-six: {protocol: h1, connection: 6}"), "3:26", "did you mean `connections`?"),
        (with_arms("h1-six: {protocol: h1, connections: six}"), "3:39", "`six` is not a plain number"),
        (with_arms("h1-ten: {protocol: h1, connections: 20}"), "3:39", "with the workload `large` 20 connections"),
        (with_arms("h2-bbr: {protocol: h2, congestion: brb}"), "3:38", "did you mean `bbr`?"),
        (with_arms("h3-bbr: {protocol: h3, congestion: bbr}"), "3:38", "nginx's QUIC does not support `bbr`"),
        (with_arms("h2-bbr: {protocol: h2, congestion: {tcp: bbr}}"), "3:38", "a mapping where one value is expected"),
        (with_arms("h3-x: {protocol: h3, settings: shipped}"), "3:34", "did you mean `as-shipped`?"),
        (with_arms(SIX, more="compare: [[h1-six, h4]]\n"), "4:20", "`h4`"),
        (with_arms(SIX, more="compare: [[h1-six, h1-six]]\n"), "4:11", "two different arms"),
        (with_arms(SIX, more="compare: [[h1-six]]\n"), "4:11", "two different arms"),
        (with_arms(SIX, more="compare: [[h1-six, h1, h1]]\n"), "4:11", "two different arms"),
        (with_arms(SIX, more="compare: [[h1-six, h1], [h1, h1-six]]\n"), "4:25", "appears twice"),
        (with_arms(SIX, more="selfcheck: {protocol: h2-bbr}\n"), "4:23", "is not one of the arms of this file"),
        (with_arms(*MANY[:4]), "3:3", "7 arms make 21 comparisons in each condition, and 15 are the most"),
        (with_arms(*MANY, more="compare: [[h2, h1]]\n"), "3:3", "9 arms are too many"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, text: str, place: str, complaint: str) -> None:
    (found, *others) = refusal(text, tmp_path).complaints
    assert complaint in str(found)
    assert f"matrix.yaml:{place}:" in str(found)
    assert not others


def test_a_name_that_could_be_more_than_a_name_is_no_arm() -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        Arm("h2-</style>", Protocol.H2, overrides=Overrides(congestion="bbr"))
