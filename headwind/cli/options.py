"""Options that several commands share or one command has many of, and the parsing of their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from headwind.engines import AUTO, CHOICES

_Value = TypeVar("_Value")


def how_long(command: argparse.ArgumentParser) -> None:
    """Add the options that override the time and the lanes of a matrix: for measuring commands and `plan`."""
    command.add_argument("--budget", metavar="TIME", type=budget, help="time budget from now on, such as 15min or 2h")
    command.add_argument(
        "--lanes", metavar="N", type=lanes, help="number of parallel testbeds, or `auto` (default: from the matrix)"
    )


def how_to_measure(command: argparse.ArgumentParser) -> None:
    """Add the options of the measuring commands, `run` and `experiments`."""
    command.add_argument(
        "--engine",
        choices=CHOICES,
        default=AUTO,
        help="where netem runs: `kernel` (host), `uml` (user-mode kernel) or `auto`",
    )
    how_long(command)
    command.add_argument(
        "--cluster", metavar="ADDRESS", help="run on the workers of this dask scheduler, such as tcp://lab:8786"
    )
    command.add_argument("-v", "--verbose", action="store_true", help="also print a line for each trial")


def how_to_try(command: argparse.ArgumentParser) -> None:
    """Add the options of `try-server`."""
    from headwind.servers import SERVERS

    names = ", ".join(SERVERS)
    command.add_argument("server", metavar="NAME", help=f"{names}; with --matrix, any server that its arms use")
    command.add_argument("--matrix", metavar="FILE", help="matrix file with the server, and the content to fetch")


def how_to_compare(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `compare`."""
    command.add_argument("earlier", metavar="RUN_A", help="a run folder")
    command.add_argument("later", metavar="RUN_B", help="a later run of the same matrix")
    command.add_argument(
        "--absolute",
        action="store_true",
        help="also count changes that all protocols share (a slower machine is then a regression)",
    )
    command.add_argument(
        "--strict", action="store_true", help="exit with 4 if there is no regression, but some comparison is unknown"
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
