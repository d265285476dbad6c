"""The tree of a matrix's text -> MatrixKeys, or everything that is wrong with it, at its place in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from headwind.arm import Protocol
from headwind.matrix.document import JUDGEABLE, MatrixKeys
from headwind.matrix.find import expand
from headwind.matrix.hints import advised
from headwind.matrix.mistakes import MissingKey, Slip, Slips, from_pydantic, raise_any
from headwind.matrix.repair import Repair


def parse(tree: dict[str, Any]) -> MatrixKeys:
    """Mappings, lists and texts of a file -> the experiment. Raises Slips with everything that is wrong.

    That is: keys that have another name here, and what is wrong with the file once they have it.
    """
    try:
        return _advised(tree)
    except Slips as error:
        repair = Repair.of(error.slips, MatrixKeys, tree)
        if not repair.places:
            raise
        slips = repair.repaired
        try:
            parse(repair.tree)
        except Slips as further:
            slips = slips + repair.found(further.slips)
        raise Slips(slips) from None


def _advised(tree: dict[str, Any]) -> MatrixKeys:
    """Raises Slips with their places in the file and the best hints."""
    expanded = expand(tree)
    try:
        found = _parse(expanded.tree)
    except Slips as error:
        slips = [Slip(expanded.home(slip.path), slip.mistake, slip.at_key) for slip in error.slips]
        raise Slips(advised(expanded.slips + slips, MatrixKeys, tree)) from None
    raise_any(advised(expanded.slips, MatrixKeys, tree))
    return found


def _parse(tree: dict[str, Any]) -> MatrixKeys:
    names = {
        field: list(tree[field]) if isinstance(tree.get(field), dict) else [] for field in ("profiles", "workloads")
    }
    names["metrics"] = JUDGEABLE
    hint = "protocols: which are compared; or `arms`, each with settings of its own"
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


def _beside(slips: Sequence[Slip], tree: Mapping[str, Any], names: Mapping[str, list[str]]) -> list[Slip]:
    """What does not go together among the keys in which nothing is wrong, beside those in which something is."""
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
