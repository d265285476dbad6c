"""Servers of the user's own in a matrix: what may be written, what becomes of it, and what is refused where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwind.arm import UNKNOWN, Congestion, Role
from headwind.matrix.reader import MatrixError
from headwind.model import Matrix
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.run.differences import differences
from headwind.servers import NGINX, Contract, Fresh, Offer, Program, own_server
from tests.matrix_files import load, manual_examples, refusal

IMAGE = "image: my/app:1.2"
MINE = (
    f'mine: {{{IMAGE}, command: [app, --port, "8443"], env: {{LOG: yes, B: 1}}, port: 8443, ready: /health, '
    "protocols: [h1, h2, h3], fresh: keep}"
)
PROGRAM = Program(
    "my/app:1.2", ("h1", "h2", "h3"), ("app", "--port", "8443"), (("LOG", "yes"), ("B", "1")), 8443, "/health",
    Contract.PLAIN, Fresh.KEEP,
)  # fmt: skip
ARM = "h2-mine: {protocol: h2, server: mine}"
REST = "profiles: {far: {both: {delay: 20ms}}}\nworkloads: {large: {requests: 12, connections: 1}}\n"


def with_servers(*servers: str, arms: tuple[str, ...] = (ARM,), more: str = REST) -> str:
    listed = {"servers": servers, "arms": arms}
    return "protocols: [h2]\n" + "".join(
        f"{group}:\n" + "".join(f"  {entry}\n" for entry in entries) for group, entries in listed.items()
    ) + more  # fmt: skip


def test_an_arm_finds_a_server_of_its_file_with_everything_that_was_written(tmp_path: Path) -> None:
    plain, mine = load(with_servers(MINE), tmp_path).arms
    assert plain.server == NGINX
    assert mine.server == own_server("mine", PROGRAM)
    assert mine.server.offers == {Offer.ALT_SVC}, "a browser finds out"
    assert mine.congestion(Congestion("bbr", "cubic")) == Congestion("bbr", UNKNOWN)
    assert mine.twin(Role.AGAIN).server == mine.server


def test_what_is_left_out_is_plain(tmp_path: Path) -> None:
    mine = load(with_servers(f"mine: {{{IMAGE}, protocols: [h2]}}"), tmp_path).arms[1]
    assert mine.server.program == Program("my/app:1.2", ("h2",))
    assert Program("my/app:1.2", ("h2",)).environment == {}
    assert (PROGRAM.port, Program("a", ("h2",)).port, Program("a", ()).fresh) == (8443, 443, Fresh.RESTART)


def test_the_interop_contract_is_a_server_of_h3_with_its_variables(tmp_path: Path) -> None:
    written = "mine: {image: a/b, contract: quic-interop, env: {TESTCASE: transfer}}"
    program = (
        load(with_servers(written, arms=("h3-mine: {protocol: h3, server: mine}",)), tmp_path).arms[1].server.program
    )
    assert program
    assert (program.protocols, program.port) == (("h3",), 443)
    assert program.environment == {"ROLE": "server", "TESTCASE": "transfer"}


def reread(matrix: Matrix) -> Matrix:
    return matrix_from_json(json.loads(json.dumps(matrix_to_json(matrix))), matrix.source, matrix.path)


def test_a_run_folder_keeps_a_server_with_its_arm_and_says_that_it_changed(tmp_path: Path) -> None:
    matrix = load(with_servers(MINE), tmp_path)
    assert reread(matrix).arms == matrix.arms
    assert [arm.server for arm in reread(matrix).arms] == [NGINX, own_server("mine", PROGRAM)]
    other = load(with_servers(MINE.replace("1.2", "1.3")), tmp_path)
    changed = list(differences(matrix_to_json(matrix), matrix_to_json(other)))
    assert changed == ["servers.mine.image: my/app:1.2 -> my/app:1.3"]


def test_the_manuals_example_is_one(tmp_path: Path) -> None:
    (example,) = (text for text in manual_examples() if "quic-interop" in text)
    assert [arm.server.name for arm in load(example, tmp_path).arms] == ["nginx", "mine", "other"]


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (f"nginx: {{{IMAGE}, protocols: [h2]}}", "`nginx` is a server of the lab"),
        (f"caddy: {{{IMAGE}, protocols: [h2]}}", "`caddy` is a server of the lab"),
        (f"haproxy: {{{IMAGE}, protocols: [h2]}}", "`haproxy` is a server of the lab"),
        (f"client: {{{IMAGE}, protocols: [h2]}}", "`client` is a name that every testbed has"),
        (f"My_App: {{{IMAGE}, protocols: [h2]}}", "did you mean `my-app`?"),
        ("mine: {protocols: [h2]}", "`image` is missing"),
        (f"mine: {{{IMAGE}}}", "`protocols` is missing"),
        ("mine: {image: a//b, protocols: [h2]}", "as `docker run` takes it"),
        ("mine: {image: My/App:RC1, protocols: [h2]}", "did you mean `my/app:RC1`?"),
        (
            "mine: {image: app --port 1, protocols: [h2]}",
            "did you mean `app`? what it runs is its `command`: [--port, 1]",
        ),
        ('mine: {image: "https://x.example/y", protocols: [h2]}', "without the scheme: `x.example/y`"),
        (f"mine: {{{IMAGE}, protocols: []}}", "`protocols` is empty"),
        (f"mine: {{{IMAGE}, protocols: [h2, h2]}}", "`h2` appears twice"),
        (f"mine: {{{IMAGE}, protocols: [http/2]}}", "did you mean `h2`?"),
        (f"mine: {{{IMAGE}, protocols: [h2], port: 0}}", "a whole number from 1 to 65535"),
        (f"mine: {{{IMAGE}, protocols: [h2], port: 65536}}", "a whole number from 1 to 65535"),
        (f"mine: {{{IMAGE}, protocols: [h1], ready: health}}", "it begins with a slash"),
        (f"mine: {{{IMAGE}, protocols: [h2], ready: /health}}", "`ready` is requested over h1"),
        (f"mine: {{{IMAGE}, protocols: [h2], command: run it}}", "a list of words: [run, it]"),
        (f"mine: {{{IMAGE}, protocols: [h2], env: {{A=1: 2}}}}", "did you mean {A: 1}?"),
        (f"mine: {{{IMAGE}, protocols: [h2], env: {{1A: 2}}}}", "cannot be the name of a variable"),
        (f"mine: {{{IMAGE}, protocols: [h2], fresh: reload}}", "allowed: restart, keep"),
        (f"mine: {{{IMAGE}, contract: interop}}", "did you mean `quic-interop`?"),
        (f"mine: {{{IMAGE}, contract: quic-interop, port: 8443}}", "remove `port`"),
        (f"mine: {{{IMAGE}, contract: quic-interop, protocols: [h2]}}", "is a server of h3 only"),
        (f"mine: {{{IMAGE}, protocols: [h2], volumes: [x]}}", "unknown key `volumes`"),
    ],
)
def test_a_mistake_in_a_server_is_refused_at_its_place(server: str, message: str, tmp_path: Path) -> None:
    error = refusal(with_servers(server), tmp_path)
    assert isinstance(error, MatrixError)
    (complaint,) = [each for each in error.complaints if message in f"{each.message} {each.hint}"]
    assert complaint.line == 3


@pytest.mark.parametrize(
    ("arm", "more", "message"),
    [
        ("h2-mien: {protocol: h2, server: mien}", REST, "did you mean `mine`?"),
        ("h3-mine: {protocol: h3, server: mine}", REST, "mine does not speak h3: its `protocols` are h1, h2"),
        ("h2: {protocol: h2, server: mine}", REST, "such as `h2-mine`"),
        (
            "h3-mine: {protocol: h3, server: mine, congestion: bbr}",
            REST,
            "cannot set the congestion control of mine's QUIC",
        ),
        ("h2-mine: {protocol: h2, server: mine, settings: as-shipped}", REST, "mine has no windows `as-shipped`"),
        (ARM, REST.replace("12,", "12, server_delay: 5ms,"), "mine cannot serve the workload `large`"),
        (ARM, "servers: {}\n" + REST, ""),
    ],
)
def test_an_arm_that_its_server_cannot_serve_is_refused(arm: str, more: str, message: str, tmp_path: Path) -> None:
    text = with_servers(f"mine: {{{IMAGE}, protocols: [h1, h2]}}", arms=(arm,), more=more)
    assert message in str(refusal(text, tmp_path))


def test_an_arm_over_tcp_sets_its_congestion_control_with_any_server(tmp_path: Path) -> None:
    arm = "h2-mine: {protocol: h2, server: mine, congestion: bbr}"
    mine = load(with_servers(MINE, arms=(arm,)), tmp_path).arms[1]
    assert mine.congestion(Congestion()) == Congestion("bbr", UNKNOWN)
