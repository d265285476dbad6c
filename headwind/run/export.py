"""Every attempt and every request as rows, for spreadsheets and other programs. SI units; nothing is rounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from headwind.model import Result
from impair.profile import Direction

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

Cell = str | int | float | bool | None
REQUESTS_VERSION = 1  # of requests.parquet
GROUP_ROWS = 2**18  # what is in memory at once, and what a reader can skip
NAMES = ("trial", "profile", "workload", "protocol", "arm", "outcome")  # columns of text, each kept once in a group
TIMES = ("request_start_s", "request_took_s")  # as client/h2load.py calls them


def trials_csv(results: Sequence[Result]) -> str:
    """A CSV (RFC 4180, but with plain line feeds) with a header and one row for each result, in their order.

    After the columns of `row_of` come the union of all metrics, of all checks (`uplink_loss_ratio`: what was measured)
    and of all phases (`phase_client_s`), each in the order in which they first appear. A missing value is empty.
    """
    import pandas as pd

    frame = pd.DataFrame([row_of(number, result) for number, result in enumerate(results)], dtype=object)
    return str(frame.to_csv(index=False, lineterminator="\n"))


def row_of(number: int, result: Result) -> dict[str, Cell]:
    """The columns of one attempt; `number` counts attempts in the order in which they ran."""
    trial, block = result.trial, result.trial.block
    profile, workload = block.condition.profile, block.condition.workload
    return {
        "number": number,
        "trial": trial.id,
        "profile": profile.name,
        "workload": workload.name,
        "protocol": trial.protocol.value,
        "arm": trial.arm.name,
        "block": block.index,
        "position": trial.position,
        "attempt": result.attempt,
        "outcome": result.outcome.value,
        "reason": result.reason,
        **{f"seed_{direction.value}": _seed(result, direction) for direction in reversed(Direction)},
        "started_at_s": result.started_at,
        "proof_passed": result.proof.passed,
        "warnings": "; ".join(result.proof.warnings),
        "command": result.command,
        **result.metrics,
        **_measured(result),
        **_phases(result.phases_s),
    }


def _seed(result: Result, direction: Direction) -> int | None:
    """What netem read back; of a trial that did not come so far, what the block has for it."""
    read: Mapping[str, Any] | None = result.proof.counters.get("configured", {}).get(direction.value)
    seed: int | None = result.trial.block.seeds[direction] if read is None else read.get("seed")
    return seed


def _measured(result: Result) -> dict[str, Any]:
    return {f"{check.direction.value}_{check.quantity}": check.measured for check in result.proof.checks}


def _phases(phases_s: Mapping[str, float]) -> dict[str, Any]:
    return {f"phase_{name}_s": seconds for name, seconds in phases_s.items()}


def requests_parquet(results: Iterable[Result], about: Mapping[str, str]) -> bytes:
    """A Parquet file with one row for each finished request of each result, in the order in which they finished.

    `results` come with their samples and are read once; `about` becomes the file's metadata, each key with `headwind.`
    before it. Raises ImportError without pyarrow, ValueError, TypeError or OverflowError for
    samples that are not those of client/h2load.py.
    """
    import pyarrow as pa
    from pyarrow import parquet

    about = {"version": str(REQUESTS_VERSION), **about}
    schema = pa.schema(
        [
            *(pa.field(name, pa.dictionary(pa.int32(), pa.string())) for name in NAMES),
            *(pa.field(name, pa.int32()) for name in ("block", "attempt")),
            *(pa.field(name, pa.float64()) for name in TIMES),
            pa.field("request_status", pa.int16()),
        ],
        metadata={f"headwind.{key}": value for key, value in about.items()},
    )
    file = BytesIO()
    # A time of seven digits hardly ever comes twice: splitting its bytes saves more than a dictionary does.
    with parquet.ParquetWriter(file, schema, use_dictionary=list(NAMES), use_byte_stream_split=list(TIMES)) as writer:
        for group in _groups(results):
            writer.write_table(_request_rows(group, schema))
    return file.getvalue()


class _Requests:
    """The requests of one attempt, small: its names once, its samples as arrays."""

    def __init__(self, result: Result) -> None:
        import numpy as np

        row = row_of(0, result)
        self.about = {name: row[name] for name in (*NAMES, "block", "attempt")}
        kinds = {**dict.fromkeys(TIMES, "f8"), "request_status": "i2"}
        columns = result.samples.get("samples", {})  # of the client's answer, which is kept whole
        if not isinstance(columns, Mapping):
            raise TypeError(f"the samples of {result.trial.id} are no columns")
        self.columns = {name: np.asarray(columns.get(name, ()), dtype=kind) for name, kind in kinds.items()}
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"the samples of {result.trial.id} are columns of different lengths")
        self.count = lengths.pop()


def _groups(results: Iterable[Result]) -> Iterator[list[_Requests]]:
    """Attempts that had requests, as many together as make a row group."""
    group: list[_Requests] = []
    rows = 0
    for result in results:
        requests = _Requests(result)
        rows += requests.count
        if requests.count:
            group.append(requests)
        if rows >= GROUP_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _request_rows(group: Sequence[_Requests], schema: pa.Schema) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    attempts = pa.Table.from_pylist([item.about for item in group], schema=pa.schema(list(schema)[: len(NAMES) + 2]))
    rows = attempts.take(np.repeat(np.arange(len(group)), [item.count for item in group]))
    for field in list(schema)[len(NAMES) + 2 :]:
        rows = rows.append_column(field, pa.array(np.concatenate([item.columns[field.name] for item in group])))
    return rows.replace_schema_metadata(schema.metadata)
