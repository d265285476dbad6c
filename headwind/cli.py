"""The command line, and the commands that need no testbed. Imports are lazy: `--help` must answer at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ("auto", "kernel", "uml")
Command = Callable[[argparse.Namespace], int]


def matrix_path(options: argparse.Namespace) -> Path:
    """The matrix file that was named, or the default one."""
    return ROOT / "matrix.yaml" if options.matrix is None else Path(options.matrix)


def command_plan(options: argparse.Namespace) -> int:
    """Say what would run, in which order, and about how long."""
    from headwind.matrix import load_matrix
    from headwind.plan import print_plan
    from headwind.progress import console

    print_plan(load_matrix(matrix_path(options)), Path(options.reports), console())
    return 0


def command_validate(options: argparse.Namespace) -> int:
    """Check a matrix file; nothing is started."""
    from headwind.matrix import load_matrix

    path = matrix_path(options)
    matrix = load_matrix(path)
    trials = len(matrix.conditions) * len(matrix.protocols) * matrix.repeat
    print(f"{path}: valid, {len(matrix.conditions)} conditions, {len(matrix.protocols)} protocols, {trials} trials")
    return 0


def command_doctor(options: argparse.Namespace) -> int:
    """Say what this host can do, and what mends the rest."""
    from headwind.doctor import print_findings
    from headwind.progress import console

    del options
    return print_findings(console())


def command_down(options: argparse.Namespace) -> int:
    """Remove what earlier runs left: containers and networks."""
    from headwind.testbed import sweep

    print(f"{sweep(print, include_living=options.all)} testbeds removed")
    return 0


def parse(arguments: list[str], description: str, commands_: Mapping[str, Command]) -> argparse.Namespace:
    """The command line; a usage error exits with 2. A command's docstring is its help."""
    parser = argparse.ArgumentParser(prog="lab.py", description=description)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in commands_.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").rstrip("."), description=function.__doc__)
        if name in ("run", "plan", "validate"):
            command.add_argument("matrix", nargs="?", help="the matrix file (default: matrix.yaml)")
        if name in ("run", "plan"):
            command.add_argument("--reports", default=str(ROOT / "reports"), help="where run folders are kept")
    commands.choices["run"].add_argument("--engine", choices=ENGINES, default="auto", help="which netem impairs")
    commands.choices["run"].add_argument("--resume", metavar="RUN", help="go on with this run folder")
    commands.choices["report"].add_argument("run", help="a run folder, such as reports/<run-id>")
    commands.choices["down"].add_argument("--all", action="store_true", help="also of labs that are still running")
    return parser.parse_args(arguments)


COMMANDS: dict[str, Command] = {
    "plan": command_plan, "validate": command_validate, "doctor": command_doctor, "down": command_down,
}  # fmt: skip
