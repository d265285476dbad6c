"""The parsers of the lab, each with inputs that are right, and the errors with which it may refuse others."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from io import StringIO
from pathlib import Path
from random import Random
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml

from browsers import page
from client import files, h2load, nghttp, streams
from headwind.cluster import messages
from headwind.errors import HeadwindError
from headwind.matrix.complaint import MatrixError
from headwind.matrix.reader import load_matrix
from headwind.matrix.trace import parsed
from headwind.matrix.units import Mistake
from headwind.report.files import write_files
from headwind.run.journal import JOURNAL, Run
from headwind.testbed import operations
from headwind.testbed.agent import Agent
from impair import wire
from impair.profile import Direction, Link
from nginx import answers
from tests.fuzz.mutations import as_bytes, mutated, mutated_json
from tests.matrix_files import manual_examples

ROOT = Path(__file__).resolve().parent.parent.parent
STORED = ROOT / "tests/run/stored"


@dataclass(frozen=True, slots=True)
class Target:
    """A parser: `make` draws an input, and `read` gives it to the parser, in its own folder.

    `read` returns whether the input was accepted. What it raises is a fault. `share` is its part of all inputs, and
    `code` the file or folder in which coverage is counted.
    """

    name: str
    make: Callable[[Random], bytes]
    read: Callable[[bytes, Path], bool]
    share: float
    code: str


def example(kind: Any) -> Any:
    """The JSON of a value that a type allows: of data classes every field."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return example(next(each for each in inner if each is not NoneType))
    if origin is list or (origin is tuple and inner[-1] is Ellipsis):
        return [example(inner[0])] * 2
    if origin is tuple:
        return [example(each) for each in inner]
    if kind in (dict, Any, object) or origin is dict or getattr(kind, "__origin__", None) is not None:
        return {_key(inner[0]): example(inner[1])} if len(inner) == 2 else {"key": 1}
    if kind is Link:
        return Link().to_json()
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind)).value
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {each.name: example(hints[each.name]) for each in fields(kind)}
    return {int: 1, float: 0.5, str: "text", bool: True, NoneType: None}.get(kind, {})


def _key(kind: Any) -> str:
    return Direction.UPLINK.value if kind is Direction else "client"


OPERATIONS = [each for each in vars(operations).values() if isinstance(each, operations.Operation) and each.answer]


def _type_of(operation: operations.Operation[Any]) -> Any:
    """The type that a TypeAdapter was made for."""
    return operation.answer._type if operation.answer else None


def matrix_bytes() -> list[bytes]:
    """Matrices that are right: the default one, those of the manual, and those with published figures."""
    files = [ROOT / "matrix.yaml", *sorted((ROOT / "experiments").glob("*.yaml"))]
    return [*(file.read_bytes() for file in files), *(text.encode() for text in manual_examples())]


def read_matrix(data: bytes, folder: Path) -> bool:
    """A matrix, or an error with its place: never anything else."""
    file = folder / "matrix.yaml"
    file.write_bytes(data)
    (folder / "traces").mkdir()
    for name in ("lte-drive", "wifi-roaming", "train"):
        (folder / f"traces/{name}.trace").write_bytes(b"0\n500\n1000\n")
    try:
        return bool(load_matrix(file).conditions)
    except MatrixError as error:
        if "matrix.yaml" not in str(error) and not error.complaints:
            raise AssertionError(f"no place: {error}") from error
        return False


def matrix_trees(random: Random) -> bytes:
    """A tree of the keys of right matrices, with other values, as YAML."""
    return yaml.dump(mutated_json(_trees(), random), Dumper=yaml.CSafeDumper, allow_unicode=True).encode()


def _trees() -> list[Any]:
    if not TREES:
        TREES.extend(yaml.load(text, yaml.CBaseLoader) for text in matrix_bytes())  # noqa: S506 - text only
    return TREES


TREES: list[Any] = []


def read_request(data: bytes, folder: Path) -> bool:
    """What an agent makes of a line: an answer that is JSON, whatever it was asked."""
    del folder
    known: dict[str, wire.Operation] = {
        "echo": lambda **given: given, "fetch": h2load.Fetch, "files": files.Fetch, "link": Link.from_json,
    }  # fmt: skip
    sink = StringIO()
    wire.serve(known, [data.decode(errors="replace").replace("\n", " ")], sink)
    said = sink.getvalue().splitlines()
    for line in said:
        json.loads(line)
    return '"error"' not in said[-1]


class Deaf(Agent):
    """The lab's end of an agent, without a process."""

    def __init__(self) -> None:
        self.name = "client"
        self._answers, self._ready, self._refusal = {}, False, ""


def read_answer(data: bytes, folder: Path) -> bool:
    """What the lab makes of an agent's line: an answer of the operation's type, or an error of the lab's."""
    del folder
    agent = Deaf()
    agent._heed(data)
    for answer in agent._answers.values():
        for operation in OPERATIONS:
            with suppress(HeadwindError):
                agent.understood(operation, answer.get("ok"))
                return True
    return False


def answers_seeds() -> list[Any]:
    """A right answer of each operation."""
    return [{"id": 1, "ok": example(_type_of(operation))} for operation in OPERATIONS]


LOG = "1764000000000000\t200\t1500\n1764000000001000\t-1\t900\n1764000000002000\t404\t5\n"
STDOUT = "Application protocol: h3\nTLS Protocol: TLSv1.3\nCipher: TLS_AES_128_GCM_SHA256\nfinished in 1.2s\n"
TRANSFER = {"index": 0, "status": 200, "bytes": 10, "header_bytes": 90, "error": "", "alpn": "h3", "start_s": 0.1,
            "first_byte_s": 0.2, "done_s": 0.3, "handshake_s": 0.05}  # fmt: skip
STREAMS = [{"began_at": 1764000000.5}, TRANSFER, {**TRANSFER, "index": 1, "reconnects": 1},
           {"arrivals": [[[12, 5], [14, 5]], [[13, 10]]]}]  # fmt: skip
CURL = [{"began_at": 1764000000.5}, TRANSFER, {**TRANSFER, "index": 1, "error": "reset"}, {"sha256": ["a", "b"]}]
PAGE = {"url": "https://server/", "load": 207.5, "paint": 192, "largest": 212, "rows": [
    [0, 54.1, 106.3, 106.9, 160.3, 161.2, 200, "h3", 563, 263, "https://server/bytes/3-of-10000.html", "navigation"],
    [170.1, 170.1, 170.1, 171.4, 199.2, 205.9, 200, "h3", 10300, 10000, "https://server/bytes/1.png?1", "img"],
]}  # fmt: skip
NGINX = b'["200","0.030","r","1"]\n["404","","","."]\n'


def in_an_agent(interpret: Callable[..., Any], data: bytes) -> bool:
    """Run a client's parser as its agent does: whatever it raises is an error answer, and a result must be JSON."""
    sink = StringIO()
    wire.serve({"run": interpret}, [json.dumps({"id": 1, "op": "run", "data": data.decode("latin-1")})], sink)
    return "ok" in json.loads(sink.getvalue().splitlines()[1])


def read_h2load(data: bytes, folder: Path) -> bool:
    """The three outputs of h2load, one after the other."""
    parts = [*data.split(b"\0\0", 2), b"", b""][:3]
    for name, part in zip(("result.json", "log", "stdout"), parts, strict=True):
        (folder / name).write_bytes(part)
    return in_an_agent(lambda **_: h2load.interpret(h2load.Output.read(folder), 3, 1764000000.0), data)


def h2load_seeds() -> list[bytes]:
    """Real results of each protocol, with a log and an output."""
    recorded = [json.loads(file.read_text()) for file in sorted((ROOT / "tests/golden/h2load").glob("*.json"))]
    parts = [(each.get("result"), each.get("log") or LOG, each.get("stdout") or STDOUT) for each in recorded]
    return [b"\0\0".join((as_bytes(result), _text(log), _text(stdout))) for result, log, stdout in parts]


def _text(lines: str | list[str]) -> bytes:
    return (lines if isinstance(lines, str) else "\n".join(lines)).encode()


def read_curl(data: bytes, folder: Path) -> bool:
    """The output of client/files.py."""
    del folder
    return in_an_agent(lambda data: files.interpret(data, 2, 1764000000.0), data)


def read_streams(data: bytes, folder: Path) -> bool:
    """The output of client/streams.py."""
    (folder / "stdout").write_bytes(data)
    fetch = streams.Fetch("h3", "server", 443, "/", streams=2, connections=1)
    return in_an_agent(lambda **_: fetch.answer(folder, 1764000000.0), data)


HAR = {"log": {"entries": [
    {"request": {"url": f"https://server{path}"}, "response": {"status": 200, "content": {"size": size}},
     "comment": comment, "timings": {"dns": 0, "connect": 12}}
    for path, size, comment in (("/page", 90, ""), ("/picture", 10_000, nghttp.PUSHED))
]}}  # fmt: skip
STATISTICS = """id  responseEnd requestStart  process code size request path
 13     +30.33ms       +186us  30.15ms  200   90 /page
  2     +41.02ms *   +30.20ms  10.82ms  200  10K /picture
"""


def read_nghttp(data: bytes, folder: Path) -> bool:
    """nghttp's HAR file and its statistics."""
    har, _, statistics = data.partition(b"\0\0")
    (folder / nghttp.HAR).write_bytes(har)
    (folder / "stdout").write_bytes(statistics)
    fetch = nghttp.Fetch("h2", "server", 443, "/page", pushed=True)
    return in_an_agent(lambda **_: fetch.answer(folder, 1764000000.0), data)


def read_page(data: bytes, folder: Path) -> bool:
    """What a browser says of a page."""
    del folder
    return in_an_agent(lambda data: page.figures(json.loads(data), 1.0), data)


def read_nginx(data: bytes, folder: Path) -> bool:
    """nginx's log of answers."""
    log = folder / "answers.log"
    log.write_bytes(data)
    return in_an_agent(lambda **_: answers.read(log), data)


def read_message(data: bytes, folder: Path) -> bool:
    """A message of a cluster: one of the three types, or one of the errors that its documentation has."""
    del folder
    for kind in (messages.Question, messages.Answer, messages.Host):
        with suppress(KeyError, TypeError, ValueError):
            found: Any = messages.from_text(kind, data.decode(errors="replace"))
            messages.to_text(found)
            return True
    return False


def trace_bytes() -> list[bytes]:
    """Rate traces that are right."""
    return [b"0\n1\n1\n250\n", b"12\n", (ROOT / "experiments/traces/train.trace").read_bytes()[:2000]]


def read_trace(data: bytes, folder: Path) -> bool:
    """A rate trace, or a mistake with its line."""
    del folder
    try:
        return bool(parsed(data, "x.trace").frames)
    except Mistake as mistake:
        if not str(mistake).startswith(("x.trace:", "`x.trace`")):
            raise AssertionError(f"no place: {mistake}") from mistake
        return False


def message_seeds() -> list[Any]:
    """Right messages."""
    host = messages.Host("one", "digest", {"nginx": "tag@id"}, {"host": {}}, 4)
    opened = messages.Opened("uml", "bed", {}, [], {"bbr": "not loaded"})
    said = (messages.Answer(messages.Kind.ERROR, text="no"), messages.Answer(messages.Kind.DONE, opened))
    known = (messages.Question(lanes=3), *said, host)
    return [json.loads(messages.to_text(each)) for each in known]


def folder_bytes(random: Random) -> bytes:
    """A damaged run folder: the name of one of its files, and its new content; of the journal also single rows."""
    name = random.choice(("matrix.json", "environment.json", JOURNAL, "row", "row", "row", "matrix.yaml"))
    if name == "row":
        return b"row\0" + as_bytes(mutated_json(_rows(), random))
    seeds = [(STORED / name).read_bytes()]
    if name.endswith(".json") and random.random() < 0.7:
        return name.encode() + b"\0" + as_bytes(mutated_json([json.loads(seeds[0])], random))
    return name.encode() + b"\0" + mutated(seeds, random)


def _rows() -> list[Any]:
    if not ROWS:
        with sqlite3.connect(STORED / JOURNAL) as connection:
            ROWS.extend(json.loads(record) for (record,) in connection.execute("SELECT record FROM attempts"))
        connection.close()
    return ROWS


ROWS: list[Any] = []


def read_folder(data: bytes, folder: Path) -> bool:
    """All that `lab.py report` does with a run folder: its files, or an error of the lab's."""
    name, _, content = data.partition(b"\0")
    run = folder / "20261122-0039-b698"
    shutil.copytree(STORED, run)
    if name == b"row":
        with sqlite3.connect(run / JOURNAL) as connection:
            connection.execute("UPDATE attempts SET record = ? WHERE sequence = 2", (content.decode(),))
        connection.close()
    else:
        (run / name.decode()).write_bytes(content)
    try:
        with Run.open(run) as opened:
            write_files(opened)
    except HeadwindError:
        return False
    return True


def of_bytes(seeds: Callable[[], list[bytes]]) -> Callable[[Random], bytes]:
    """Draw mutations of texts."""
    kept: list[bytes] = []

    def make(random: Random) -> bytes:
        kept.extend(() if kept else seeds())
        return mutated(kept, random)

    return make


def of_json(seeds: Callable[[], list[Any]]) -> Callable[[Random], bytes]:
    """Draw mutations of JSON values, and of their text."""
    kept: list[Any] = []
    texts: list[bytes] = []

    def make(random: Random) -> bytes:
        if not kept:
            kept.extend(seeds())
            texts.extend(map(as_bytes, kept))
        return as_bytes(mutated_json(kept, random)) if random.random() < 0.6 else mutated(texts, random)

    return make


REQUESTS = [
    {"id": 1, "op": "echo", "profile": Link().to_json()}, {"id": 2, "op": "link", "data": Link().to_json()},
    {"id": 3, "op": "fetch", "protocol": "h3", "host": "a", "port": 443, "path": "/", "requests": 9, "connections": 3,
     "streams": 2, "threads": 1},
    [{"id": 4, "op": "files", "protocol": "h2", "host": "a", "port": 443, "paths": ["/"], "connections": 6}],
]  # fmt: skip
TARGETS = (
    Target("matrix.yaml, bytes", of_bytes(matrix_bytes), read_matrix, 0.004, "headwind/matrix"),
    Target("matrix.yaml, keys and values", matrix_trees, read_matrix, 0.004, "headwind/matrix"),
    Target("requests to agents", of_json(lambda: REQUESTS), read_request, 0.292, "impair/wire.py"),
    Target("answers of agents", of_json(answers_seeds), read_answer, 0.1, "headwind/testbed/operations.py"),
    Target("output of h2load", of_bytes(h2load_seeds), read_h2load, 0.1, "client/h2load.py"),
    Target("output of libcurl", of_bytes(lambda: [b"".join(as_bytes(each) + b"\n" for each in CURL)]), read_curl, 0.1,
           "client/files.py"),
    Target("output of streams", of_bytes(lambda: [b"".join(as_bytes(each) + b"\n" for each in STREAMS)]), read_streams,
           0.05, "client/streams.py"),
    Target("output of nghttp", of_bytes(lambda: [as_bytes(HAR) + b"\0\0" + STATISTICS.encode()]), read_nghttp, 0.05,
           "client/nghttp.py"),
    Target("output of browsers", of_json(lambda: [PAGE]), read_page, 0.1, "browsers/page.py"),
    Target("log of nginx", of_bytes(lambda: [NGINX]), read_nginx, 0.05, "nginx/answers.py"),
    Target("messages of a cluster", of_json(message_seeds), read_message, 0.1295, "headwind/cluster/messages.py"),
    Target("rate traces", of_bytes(trace_bytes), read_trace, 0.02, "headwind/matrix/trace.py"),
    Target("run folders", folder_bytes, read_folder, 0.0005, "headwind/run"),
)  # fmt: skip
