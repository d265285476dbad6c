"""Options of the command line that several commands have, or one has many of, and how their values are read."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

ENGINES = ("auto", "kernel", "uml")
_Value = TypeVar("_Value")


def how_long(command: argparse.ArgumentParser) -> None:
    """Options that override the time and the lanes of a matrix: of what measures, and of `plan`."""
    command.add_argument(
        "--budget", metavar="TIME", type=budget, help="stop in time, such as 15min or 2h; with --resume from now on"
    )
    command.add_argument(
        "--lanes", metavar="N", type=lanes, help="testbeds side by side, or `auto` (default: as the matrix says)"
    )


def how_to_measure(command: argparse.ArgumentParser) -> None:
    """Options of what measures: `run` and `experiments`."""
    command.add_argument("--engine", choices=ENGINES, default="auto", help="which netem impairs")
    how_long(command)
    command.add_argument(
        "--cluster", metavar="ADDRESS", help="run on the workers of this dask scheduler, such as tcp://lab:8786"
    )
    command.add_argument("-v", "--verbose", action="store_true", help="a line for each trial, too")


def how_to_compare(command: argparse.ArgumentParser) -> None:
    """Arguments of `compare`."""
    command.add_argument("earlier", metavar="RUN_A", help="a run folder")
    command.add_argument("later", metavar="RUN_B", help="a later run of the same matrix")
    command.add_argument(
        "--absolute", action="store_true", help="count what all protocols share, too: a slower machine is a regression"
    )
    command.add_argument(
        "--strict", action="store_true", help="exit with 4 if there is no regression, but some comparison cannot tell"
    )
    command.add_argument("--json", metavar="FILE", help="write it for other programs, too")


def budget(text: str) -> float:
    """`2h` -> 7200.0, for argparse."""
    from headwind.matrix.values import budget_s

    return _read(budget_s, text)


def lanes(text: str) -> int:
    """`auto` or `4`, for argparse."""
    from headwind.matrix import values

    return _read(values.lanes, text)


def _read(read: Callable[[str], _Value], text: str) -> _Value:
    from headwind.matrix.units import Mistake

    try:
        return read(text)
    except Mistake as mistake:
        raise argparse.ArgumentTypeError(f"{mistake}; {mistake.hint}") from None
