"""Options that several commands share or one command has many of, and the parsing of their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from headwind.engines import AUTO, CHOICES

_Value = TypeVar("_Value")


def how_long(command: argparse.ArgumentParser, limit: str, default: str = "the budget in the matrix") -> None:
    """Add the options that override the time and the lanes of a matrix; the help of `--budget` begins with `limit`."""
    command.add_argument(
        "--budget",
        metavar="TIME",
        type=budget,
        help=f"{limit}, such as 15min or 2h (default: {default})",
    )
    command.add_argument(
        "--lanes",
        metavar="N",
        type=lanes,
        help="number of parallel testbeds, or `auto`: as many as CPUs and memory allow (default: the matrix decides)",
    )


def where_and_how_much(command: argparse.ArgumentParser, reports: str, *, is_plan: bool = False) -> None:
    """Add the folder of the runs, by default `reports`, and the choice of a smoke test, or of its plan."""
    command.add_argument(
        "--reports",
        metavar="DIR",
        default=reports,
        help="folder where runs are stored (default: reports); time forecasts are based on earlier runs in it",
    )
    what = (
        "plan for `run --smoke`"
        if is_plan
        else "shorten this matrix to a quick check (`make lab-smoke` runs a small matrix instead)"
    )
    command.add_argument(
        "--smoke",
        action="store_true",
        help=f"{what}: one trial of each protocol in each condition listed under the matrix's `smoke:` key, or in "
        "every condition if the matrix has no such key",
    )


def how_to_measure(command: argparse.ArgumentParser, limit: str, default: str) -> None:
    """Add the options of the measuring commands; the help of `--budget` has `limit` and its `default`."""
    command.add_argument(
        "--engine",
        choices=CHOICES,
        default=AUTO,
        help="where netem runs: in the host's kernel (`kernel`) or in a user-mode kernel (`uml`); `auto`, the default, "
        "chooses `kernel` if the host's netem can do all that the matrix needs, else `uml`",
    )
    how_long(command, limit, default)
    command.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on other machines, through a dask scheduler that you started at ADDRESS, such as tcp://lab:8786",
    )
    command.add_argument("-v", "--verbose", action="store_true", help="also print a line for each trial")


def how_to_capture(command: argparse.ArgumentParser) -> None:
    """Add the option of `run` that captures packets."""
    command.add_argument(
        "--capture",
        metavar="CONDITION",
        action="append",
        default=[],
        help="at the end, run extra trials in CONDITION, one per protocol, and keep their packets, TLS keys and logs; "
        "they do not count in the results. CONDITION is PROFILE/WORKLOAD, PROFILE (all its workloads) or `all`; may be "
        "repeated",
    )


def how_to_try(command: argparse.ArgumentParser) -> None:
    """Add the options of `try-server`."""
    from headwind.servers import SERVERS

    names = ", ".join(SERVERS)
    command.add_argument("server", metavar="NAME", help=f"{names}; or, with --matrix, a name under its `servers`")
    command.add_argument(
        "--matrix",
        metavar="FILE",
        help="matrix file that defines your server; the files of the matrix's `content` are fetched, too",
    )


def how_to_report(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `report` that `run` does not have."""
    command.add_argument(
        "run",
        nargs="+",
        metavar="RUN",
        help="a run's folder, or its id (the folder's name); several runs are combined on one page",
    )
    command.add_argument(
        "--output",
        metavar="FILE",
        help="write the page to FILE; for one run, its report.html is updated as well (default for several runs: a "
        "file next to the first run's folder)",
    )


def how_to_advise(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `advise`."""
    command.add_argument(
        "run", nargs="+", metavar="RUN", help="a run's folder or id; each run must have measured h3, and h1 or h2"
    )
    command.add_argument("--write", metavar="FILE", help="write the configuration to this file as well")


def how_to_publish(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `published`."""
    command.add_argument(
        "run",
        nargs="+",
        metavar="RUN",
        help="folder or id of a run whose matrix has the key `published`, such as a run of `lab.py experiments`; if "
        "several runs cover the same published number, the last of them is used",
    )
    command.add_argument("--write", metavar="FILE", help="write to this .md or .html file instead of the terminal")


def how_to_compare(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `compare`."""
    command.add_argument(
        "earlier", metavar="RUN_A", help="the earlier run: its folder, or its id (the name of the folder)"
    )
    command.add_argument("later", metavar="RUN_B", help="a later run of the same matrix: its folder or id")
    command.add_argument(
        "--absolute",
        action="store_true",
        help="also compare absolute times, and exit with 3 if any protocol takes longer than before, even if a slower "
        "machine may be the cause",
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="exit with 4 if no protocol became slower, but some comparisons have too little data for an answer, or a "
        "self-check failed",
    )
    command.add_argument("--json", metavar="FILE", help="also write the result as JSON")


def budget(text: str) -> float:
    """Convert `2h` to 7200.0 (seconds), for argparse."""
    from headwind.matrix.values import budget_s

    return _read(budget_s, text)


def lanes(text: str) -> int:
    """Convert `auto` or `4` to a number of lanes, for argparse."""
    from headwind.matrix import values

    return _read(values.lanes, text)


def _read(read: Callable[[str], _Value], text: str) -> _Value:
    from headwind.matrix.units import Mistake

    try:
        return read(text)
    except Mistake as mistake:
        raise argparse.ArgumentTypeError(f"{mistake}; {mistake.hint}") from None
