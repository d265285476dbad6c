"""Errors about parts of a matrix that a host cannot provide, at their places in the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headwind.matrix.complaint import MatrixError
from headwind.matrix.reader import KeyPath, located
from headwind.matrix.units import harmless, quoted
from headwind.model import Matrix


def profiles_refused(matrix: Matrix, reasons: Mapping[str, str], hint: str) -> MatrixError:
    """Error about valid profiles, by name, that the host cannot provide; each is shown where it was written."""
    return _refused(matrix, "profile", {("profiles", name): reason for name, reason in reasons.items()}, hint)


def congestion_refused(matrix: Matrix, reasons: Mapping[tuple[str, str], str], hint: str) -> MatrixError:
    """Error about arms and workloads, by group and name, whose congestion control is missing, at their places."""
    places: dict[KeyPath, str] = {(*place, "congestion"): reason for place, reason in reasons.items()}
    return _refused(matrix, "congestion control", places, hint)


def _refused(matrix: Matrix, what: str, reasons: Mapping[KeyPath, str], hint: str) -> MatrixError:
    complaints = located(matrix, {path: (f"{quoted(path[1])} {reason}", hint) for path, reason in reasons.items()})
    count = f"1 {what}" if len(reasons) == 1 else f"{len(reasons)} {what}s"
    summary = f"{harmless(Path(matrix.path))}: this host cannot provide {count}; nothing was measured"
    return MatrixError(summary, complaints)
