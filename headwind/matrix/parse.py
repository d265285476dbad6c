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
from headwind.matrix.levels import Path as Place
from headwind.matrix.mistakes import MissingKey, Slip, Slips, from_pydantic, raise_any
from headwind.matrix.proposals import acceptable
from headwind.matrix.repair import Repair
from headwind.matrix.sound import Sound
from headwind.matrix.sweep import Expanded

MOST_ROUNDS = 4  # a mistake may hide another one that hides a third; deeper ones wait for the next validation


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
        found = _parse(expanded, folder)
    except Slips as error:
        slips = [Slip(expanded.home(slip.path), slip.mistake, slip.at_key) for slip in error.slips]
        raise Slips(_with_hints(expanded.slips + slips, tree, folder)) from None
    raise_any(_with_hints(expanded.slips, tree, folder))
    return found


def _with_hints(slips: Sequence[Slip], tree: dict[str, Any], folder: Path) -> list[Slip]:
    return acceptable(advised(slips, MatrixKeys, tree), tree, lambda other: _plain_slips(other, folder))


def _plain_slips(tree: dict[str, Any], folder: Path) -> list[Slip]:
    """Mistakes without hints from the whole file, and without those that others hide."""
    expanded = expand(tree)
    try:
        MatrixKeys.model_validate(expanded.tree, context=_context(expanded, folder))
    except ValidationError as error:
        found = from_pydantic(error, MatrixKeys)
        return expanded.slips + [Slip(expanded.home(slip.path), slip.mistake, slip.at_key) for slip in found]
    return expanded.slips


def _parse(expanded: Expanded, folder: Path) -> MatrixKeys:
    tree, names = expanded.tree, _context(expanded, folder)
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


def _context(expanded: Expanded, folder: Path) -> dict[str, Any]:
    """Names that other keys of the file use, and the folder of its files."""
    tree = expanded.tree
    names: dict[str, Any] = {
        field: list(tree[field]) if isinstance(tree.get(field), dict) else None if field in tree else []
        for field in ("profiles", "workloads")
    }
    return names | {"sweeps": list(expanded.names), "metrics": JUDGEABLE, FOLDER: folder}


def _beside(slips: Sequence[Slip], tree: Mapping[str, Any], names: Mapping[str, Any]) -> list[Slip]:
    """Mistakes that do not depend on the wrong values: of the others, and in how they fit together."""
    found: list[Slip] = []
    for _ in range(MOST_ROUNDS):
        if not (further := _further([*slips, *found], tree, names)):
            break
        found += further
    return found


def _further(slips: Sequence[Slip], tree: Mapping[str, Any], names: Mapping[str, Any]) -> list[Slip]:
    """Mistakes that appear once those of `slips` are replaced, whatever the values should have been."""
    usual: dict[str, Any] = {} if "arms" in tree else {"protocols": [protocol.value for protocol in Protocol]}
    usual |= {
        "profiles": {name: {} for name in names["profiles"] or ["p"]},
        "workloads": {name: {"requests": "1", "connections": "1"} for name in names["workloads"] or ["w"]},
    }
    known, found = {_identity(slip) for slip in slips}, dict[tuple[Place, str], Slip]()
    for whole_profiles in (False, True):
        sound = Sound.of(slips, tree, whole_profiles=whole_profiles)
        one, other = (_mistakes(usual | each, {**names, "wrong": sound.wrong}) for each in sound.copies)
        found |= {
            each: slip for each, slip in one.items()
            if each in other and each not in known and sound.has(slip.path) and not isinstance(slip.mistake, MissingKey)
        }  # fmt: skip
        if not any(slip.path[:1] == ("profiles",) for slip in (*one.values(), *other.values())):
            break  # the whole matrix was checked
    return list(found.values())


def _mistakes(tree: dict[str, Any], context: Mapping[str, Any]) -> dict[tuple[Place, str], Slip]:
    try:
        MatrixKeys.model_validate(tree, context=dict(context))
    except ValidationError as error:
        return {_identity(slip): slip for slip in from_pydantic(error, MatrixKeys)}
    return {}


def _identity(slip: Slip) -> tuple[Place, str]:
    return slip.path, str(slip.mistake)
