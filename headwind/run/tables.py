"""Attempts, checks, requests and verdicts as tables, for the report, its files and other programs.

Values are in SI units, given by the end of each column's name; they are not rounded, and no attempt is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import IO, TYPE_CHECKING, Any

from headwind.arm import Protocol
from headwind.metric import Metric
from headwind.model import DATA_OUTCOMES, Check, Matrix, Outcome, Result
from headwind.run.foreign import MOST_CELLS, MOST_COLUMNS
from headwind.verdicts.judgement import Judgement, Line
from headwind.verdicts.verdict import Verdict
from impair.profile import Direction

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa  # type: ignore[import-untyped]

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]
REQUESTS_VERSION = 1  # of requests.parquet
GROUP_ROWS = 2**17  # in memory at once, and in units that a reader can skip
CSV_ROWS = 500  # as texts in memory at once
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # beginnings of texts that spreadsheets compute
TIMES = ("request_start_s", "request_took_s")  # as client/h2load.py calls them
FURTHER_TIMES = ("request_sent_s", "request_first_byte_s", "request_connect_start_s", "request_connect_s")
OF_A_BROWSER = {  # further columns of each request that browsers/page.py gives, with pyarrow's types; null for others
    **dict.fromkeys(FURTHER_TIMES, "float64"), "request_protocol": "string", "request_bytes": "int64",
    "request_path": "string", "request_initiator": "string",
}  # fmt: skip
TEXTS = tuple(name for name, kind in OF_A_BROWSER.items() if kind == "string")
ATTEMPT = {  # columns for the attempt of a row, and its outcome
    "trial": "object", "profile": "category", "workload": "category", "protocol": "category", "arm": "category",
    "outcome": "category", "block": "int64", "attempt": "int64",
}  # fmt: skip
CELL = ("profile", "workload", "arm")  # by which trials are grouped
NAMES = tuple(name for name, dtype in ATTEMPT.items() if dtype != "int64")  # each text is kept once in a group
TRIALS = {
    "number": "int64", "trial": "object", "profile": "category", "workload": "category", "protocol": "category",
    "arm": "category", "block": "int64", "position": "int64", "attempt": "int64", "outcome": "category",
    "reason": "object", "seed_downlink": "Int64", "seed_uplink": "Int64", "started_at_s": "float64",
    "proof_passed": "bool", "warnings": "object", "command": "object",
}  # fmt: skip
CHECKS = {
    **ATTEMPT, "direction": "category", "quantity": "category", "requested": "float64", "configured": "float64",
    "measured": "float64", "tolerance": "float64", "passed": "bool", "note": "object",
    "span": "object",
}  # fmt: skip
OF_A_CHECK = tuple(field.name for field in fields(Check))
VERDICTS = {
    "profile": "category", "workload": "category", "candidate": "category", "baseline": "category",
    "self_check": "bool", "metric": "category", "judged": "bool", "verdict": "category", "decided": "bool",
    "survives_e_bh": "bool", "network_held": "bool", "ratio": "float64", "ratio_low": "float64",
    "ratio_high": "float64", "blocks": "int64", "candidate_unfinished": "int64", "baseline_unfinished": "int64",
    "ln_e_value": "float64",
}  # fmt: skip


def trials_table(matrix: Matrix, results: Sequence[Result]) -> pd.DataFrame:
    """A row for each attempt, in the order in which they began: `number` is its place in it.

    After the columns of TRIALS come the union of all metrics, of all checks (`uplink_loss_ratio`: the measured value)
    and of all phases (`phase_client_s`), each in the order in which they first appear; then `latest`, which is false
    if the trial was repeated, and `analysed`, which is true if the report's figures include it.
    """
    frame = _table(matrix, (row_of(number, result) for number, result in enumerate(results)), TRIALS)
    frame["latest"] = ~frame["trial"].duplicated(keep="last")
    frame["analysed"] = frame["latest"] & frame["outcome"].isin(DATA_OUTCOMES)
    return frame


def checks_table(matrix: Matrix, results: Iterable[Result]) -> pd.DataFrame:
    """A row for each check of each attempt.

    `requested`, `configured`, `measured` and `tolerance` are in the unit that ends the name of the `quantity`.
    """
    rows = (
        {**about_of(result), **{name: getattr(check, name) for name in OF_A_CHECK}}
        for result in results
        for check in result.proof.checks
    )
    return _table(matrix, rows, CHECKS)


def verdicts_table(matrix: Matrix, judgement: Judgement) -> pd.DataFrame:
    """A row for each comparison by each of its metrics, those that are judged first.

    Ratios are above 1 if the candidate is better. A metric that is not `judged` has an interval and no verdict.
    """
    rows = (_verdict(line, metric) for line in judgement.lines for metric in (*line.findings, *line.intervals))
    return _table(matrix, rows, VERDICTS)


def _table(matrix: Matrix, rows: Iterable[Row], dtypes: Mapping[str, str]) -> pd.DataFrame:
    """The columns of `dtypes`, then all others: float64, or Int64 if all are whole. Missing values stay missing."""
    import pandas as pd

    known = _categories(matrix)
    columns: dict[str, list[Cell]] = {name: [] for name in dtypes}
    for count, row in enumerate(rows):
        columns |= {name: [None] * count for name in row if name not in columns}
        if len(columns) > MOST_COLUMNS or len(columns) * count > MOST_CELLS:
            raise ValueError(f"{count:,} rows of {len(columns):,} columns are more than a run has")
        for name, cells in columns.items():
            cells.append(row.get(name))

    def column(name: str) -> pd.Series[Any]:
        cells = columns.pop(name)  # which frees it
        whole = set(map(type, cells)) - {type(None)} == {int}
        dtype = dtypes.get(name, "Int64" if whole else "float64")
        if dtype != "category":
            return pd.Series(cells, dtype=dtype)
        texts = [text for text in dict.fromkeys((*known.get(name, ()), *cells)) if text is not None]
        places: dict[Cell, int] = {None: -1, **{text: code for code, text in enumerate(texts)}}
        # Of objects: a profile's name may be a text that no encoding has.
        return pd.Series(pd.Categorical.from_codes([places[cell] for cell in cells], pd.Index(texts, dtype=object)))

    return pd.DataFrame({name: column(name) for name in list(columns)})


def _categories(matrix: Matrix) -> dict[str, list[str]]:
    """Possible values of columns of names, in the matrix's order, for charts and tables."""
    arms = [arm.name for arm in matrix.arms]
    arms += [arm.name for condition in matrix.conditions for arm in matrix.arms_in(condition)]
    return {
        "profile": [condition.profile.name for condition in matrix.conditions],
        "workload": [condition.workload.name for condition in matrix.conditions],
        **dict.fromkeys(("arm", "candidate", "baseline"), arms),
        **{
            name: [member.value for member in members]
            for name, members in {
                "protocol": Protocol, "outcome": Outcome, "direction": Direction, "verdict": Verdict,
            }.items()
        },
    }  # fmt: skip


def row_of(number: int, result: Result) -> dict[str, Cell]:
    """The columns of one attempt; `number` counts attempts in the order in which they began."""
    trial = result.trial
    return {
        **about_of(result),
        "number": number,
        "position": trial.position,
        "reason": result.reason,
        **{f"seed_{direction.value}": _seed(result, direction) for direction in Direction},
        "started_at_s": result.started_at,
        "proof_passed": result.proof.passed,
        "warnings": "; ".join(result.proof.warnings),
        "command": result.command,
        **result.metrics,
        **{f"{check.direction}_{check.quantity}": check.measured for check in result.proof.checks if not check.span},
        **{f"phase_{name}_s": seconds for name, seconds in result.phases_s.items()},
    }


def about_of(result: Result) -> dict[str, Cell]:
    """The columns of ATTEMPT for a result."""
    trial, block = result.trial, result.trial.block
    return {
        "trial": trial.id,
        "profile": block.condition.profile.name,
        "workload": block.condition.workload.name,
        "protocol": trial.protocol.value,
        "arm": trial.arm.name,
        "outcome": result.outcome.value,
        "block": block.index,
        "attempt": result.attempt,
    }


def _seed(result: Result, direction: Direction) -> int | None:
    """The seed that netem read back; the block's seed if the trial did not get that far."""
    read: Mapping[str, Any] | None = result.proof.counters.get("configured", {}).get(direction.value)
    seed: int | None = result.trial.block.seeds[direction] if read is None else read.get("seed")
    return seed


def _verdict(line: Line, metric: Metric) -> dict[str, Cell]:
    finding = line.findings.get(metric)
    interval = finding.comparison.interval if finding else line.intervals[metric]
    ratio, low, high = interval.ratios
    new, base = line.unfinished
    return {
        "profile": line.condition.profile.name,
        "workload": line.condition.workload.name,
        "candidate": line.pair.new.name,
        "baseline": line.pair.base.name,
        "self_check": line.pair.is_check,
        "metric": metric.key,
        "judged": finding is not None,
        "verdict": finding.verdict.value if finding else None,
        "decided": finding is not None and finding.is_decided,
        "survives_e_bh": finding is not None and finding.survives,
        "network_held": line.network_held,
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "blocks": interval.n,
        "candidate_unfinished": new,
        "baseline_unfinished": base,
        "ln_e_value": finding.comparison.log_e_value if finding else None,
    }


def write_trials(file: IO[bytes], trials: pd.DataFrame) -> None:
    """Write a trials_table as CSV (RFC 4180, but with plain line feeds), as measured. A missing value is empty.

    A text that a spreadsheet would compute as a formula gets an apostrophe before it. A carriage return becomes a line
    feed: alone it would not be quoted, and readers would end the row there.
    """
    import pandas as pd

    trials = trials.drop(columns=["latest", "analysed"])
    # Few rows at a time: pandas makes texts of them all.
    for start in range(0, max(1, len(trials)), CSV_ROWS):
        rows = trials[start : start + CSV_ROWS].copy()
        for name in rows.columns[[str(dtype) in ("object", "category") for dtype in rows.dtypes]]:
            rows[name] = pd.Series(list(map(_inert, rows[name])), rows.index, dtype="object")
        # Half of a surrogate pair, as in disk.write_whole.
        rows.rename(columns=_inert).to_csv(
            file, header=not start, index=False, lineterminator="\n", errors="backslashreplace"
        )


def _inert(value: Cell) -> Cell:
    if not isinstance(value, str):
        return value
    return ("'" * value.startswith(FORMULAS) + value).replace("\r\n", "\n").replace("\r", "\n")


def requests_table(matrix: Matrix, results: Iterable[Result]) -> pd.DataFrame:
    """A row for each finished request of each result, as in requests.parquet. Raises the errors of `write_requests`."""
    import pyarrow as pa

    groups = [_schema().empty_table(), *map(_request_rows, _groups(results, GROUP_ROWS))]
    frame: pd.DataFrame = pa.concat_tables(groups).unify_dictionaries().to_pandas()
    for name, names in _categories(matrix).items():
        if name in frame:
            frame[name] = frame[name].cat.set_categories(list(dict.fromkeys(names)))
    return frame.astype({"request_bytes": "Int64"})


def write_requests(
    file: IO[bytes], results: Iterable[Result], about: Mapping[str, str], group_rows: int = GROUP_ROWS
) -> None:
    """Write a Parquet file with a row for each finished request of each result, in the order in which they finished.

    `results` come with their samples and are read once; `about` becomes the file's metadata, each key with `headwind.`
    before it. Raises ValueError, TypeError or OverflowError for samples that are not those of client/h2load.py or
    browsers/page.py.
    """
    import pyarrow as pa
    from pyarrow import parquet

    about = {"version": str(REQUESTS_VERSION), **about}
    schema = _schema().with_metadata({f"headwind.{key}": value for key, value in about.items()})
    # A time of seven digits rarely occurs twice: splitting its bytes saves more than a dictionary does.
    split, texts = [*TIMES, *FURTHER_TIMES], [*NAMES, *TEXTS]
    with parquet.ParquetWriter(file, schema, use_dictionary=texts, use_byte_stream_split=split) as writer:
        for group in _groups(results, group_rows):
            writer.write_table(_request_rows(group).replace_schema_metadata(schema.metadata))
            pa.default_memory_pool().release_unused()


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            *(pa.field(name, pa.dictionary(pa.int32(), pa.string())) for name in NAMES),
            *(pa.field(name, pa.int32()) for name in ("block", "attempt")),
            *(pa.field(name, pa.float64()) for name in TIMES),
            pa.field("request_status", pa.int16()),
            *(pa.field(name, _arrow_type(kind)) for name, kind in OF_A_BROWSER.items()),
        ]
    )


def _arrow_type(kind: str) -> Any:
    """The type of a column of OF_A_BROWSER; each text is kept once."""
    import pyarrow as pa

    return pa.dictionary(pa.int32(), pa.string()) if kind == "string" else pa.type_for_alias(kind)


class _Requests:
    """The requests of one attempt, small: its names once, its samples as arrays."""

    def __init__(self, result: Result) -> None:
        import numpy as np
        import pyarrow as pa

        self.about = about_of(result)
        kinds = {**dict.fromkeys(TIMES, "f8"), "request_status": "i2"}
        columns = result.samples.get("samples", {})  # of the client's answer, which is stored whole
        if not isinstance(columns, Mapping):
            raise TypeError(f"the samples of {result.trial.id} are not columns")
        self.columns = {name: np.asarray(columns.get(name, ()), dtype=kind) for name, kind in kinds.items()}
        self.further = {name: pa.array(columns[name], type=pa.type_for_alias(kind))
                        for name, kind in OF_A_BROWSER.items() if name in columns}  # fmt: skip
        lengths = {len(column) for column in (*self.columns.values(), *self.further.values())}
        if len(lengths) > 1:
            raise ValueError(f"the samples of {result.trial.id} are columns of different lengths")
        self.count = lengths.pop()

    def column(self, name: str) -> Any:
        """A column of OF_A_BROWSER; nulls if the client does not give it."""
        import pyarrow as pa

        found = self.further.get(name)
        return pa.nulls(self.count, pa.type_for_alias(OF_A_BROWSER[name])) if found is None else found


def _groups(results: Iterable[Result], group_rows: int) -> Iterator[list[_Requests]]:
    """Attempts with requests, grouped to row groups."""
    group: list[_Requests] = []
    rows = 0
    for result in results:
        requests = _Requests(result)
        rows += requests.count
        if requests.count:
            group.append(requests)
        if rows >= group_rows:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _request_rows(group: Sequence[_Requests]) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    columns = list(_schema())
    attempts = pa.Table.from_pylist([item.about for item in group], schema=pa.schema(columns[: len(ATTEMPT)]))
    rows = attempts.take(np.repeat(np.arange(len(group)), [item.count for item in group]))
    for field in columns[len(ATTEMPT) :]:
        if field.name in OF_A_BROWSER:
            values = pa.concat_arrays([item.column(field.name) for item in group])
            values = values.dictionary_encode() if field.name in TEXTS else values
        else:
            values = pa.array(np.concatenate([item.columns[field.name] for item in group]))
        rows = rows.append_column(field, values)
    return rows
