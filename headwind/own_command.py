"""Commands of this program as text that can be typed in the working directory."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def from_here(path: Path) -> str:
    """The path as typed in the working directory: relative if it is inside."""
    try:
        return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    except FileNotFoundError:  # the working directory was removed
        return str(path)


def lab_command(*words: str) -> str:
    """The command line that runs lab.py with these words, with the Python that runs now."""
    return shlex.join([from_here(Path(sys.executable)), from_here(ROOT / "lab.py"), *words])
