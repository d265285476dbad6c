"""Converts the tree of a matrix's text to MatrixKeys, or reports all mistakes with their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headwind.arm import Protocol
from headwind.matrix.content import FOLDER
from headwind.matrix.document import JUDGEABLE, MatrixKeys
from headwind.matrix.find import expand
from headwind.matrix.hints import advised
from headwind.matrix.mistakes import MissingKey, Slip, Slips, from_pydantic, raise_any
from headwind.matrix.repair import Repair


def parse(tree: dict[str, Any], folder: Path) -> MatrixKeys:
    """Parse the mappings, lists and texts of a file in a folder. Raises Slips with all mistakes.

    These include keys under another name, and the mistakes that appear once such keys are renamed.
    """
    try:
        return _advised(tree, folder)
    except Slips as error:
        repair = Repair.of(error.slips, MatrixKeys, tree)
        if not repair.places:
            raise
        slips = repair.repaired
        try:
            parse(repair.tree, folder)
        except Slips as further:
            slips = slips + repair.found(further.slips)
        raise Slips(slips) from None


def _advised(tree: dict[str, Any], folder: Path) -> MatrixKeys:
    """Parse, with sweeps expanded. Raises Slips with their places in the file and the best hints."""
    expanded = expand(tree)
    try:
        found = _parse(expanded.tree, folder)
    except Slips as error:
        slips = [Slip(expanded.home(slip.path), slip.mistake, slip.at_key) for slip in error.slips]
        raise Slips(advised(expanded.slips + slips, MatrixKeys, tree)) from None
    raise_any(advised(expanded.slips, MatrixKeys, tree))
    return found


def _parse(tree: dict[str, Any], folder: Path) -> MatrixKeys:
    names: dict[str, Any] = {
        field: list(tree[field]) if isinstance(tree.get(field), dict) else None if field in tree else []
        for field in ("profiles", "workloads")
    }
    names |= {"metrics": JUDGEABLE, FOLDER: folder}
    hint = "protocols: the protocols to compare; or `arms`, protocols with overrides"
    missing = (
        []
        if tree.keys() & {"protocols", "arms"}
        else [Slip(("protocols",), MissingKey("`protocols` is missing", hint), at_key=True)]
    )
    try:
        found = MatrixKeys.model_validate(tree, context=names)
    except ValidationError as error:
        slips = missing + from_pydantic(error, MatrixKeys)
        raise Slips(slips + _beside(slips, tree, names)) from None
    raise_any(missing)
    return found


def _beside(slips: Sequence[Slip], tree: Mapping[str, Any], names: Mapping[str, Any]) -> list[Slip]:
    """Mistakes in how the valid keys fit together, in addition to those of the wrong keys."""
    wrong = {str(slip.path[0]) for slip in slips if slip.path}
    usual = {
        "protocols": [protocol.value for protocol in Protocol],
        "profiles": {name: {} for name in names["profiles"] or ["p"]},
        "workloads": {name: {"requests": "1", "connections": "1"} for name in names["workloads"] or ["w"]},
    }
    rest = {key: value for key, value in tree.items() if key not in wrong}
    try:
        MatrixKeys.model_validate(usual | rest, context={**names, "wrong": wrong})
    except ValidationError as error:
        return from_pydantic(error, MatrixKeys)
    return []
