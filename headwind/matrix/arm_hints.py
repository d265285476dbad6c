"""What to write instead for mistakes in `arms`, and where arms and protocols are named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headwind.arm import ARM_NAME, Protocol
from headwind.matrix.mistakes import MissingKey, Slip
from headwind.matrix.shapes import PROTOCOLS, shown
from headwind.matrix.units import harmless, quoted

NAMING = ("compare", "selfcheck", "find")


def of_arm(slip: Slip, tree: Mapping[str, Any]) -> str:
    """The hint for a mistake in `arms`, or where an arm or a protocol is named; empty without a better one."""
    path = slip.path
    written = _at(tree, path)
    if path[0] == "protocols" and len(path) == 2 and isinstance(written, str):
        return _of_protocol(written, tree.get("arms"))
    if path[0] in NAMING and len(path) > 1 and written in PROTOCOLS:
        return f"{quoted(written)} takes no part in this file: add it to `protocols`, or name another"
    if path[-2:-1] == ("congestion",) and path[-1] in PROTOCOLS:
        return f"did you mean `{Protocol(path[-1]).transport}`? {path[-1]} runs over it"
    if path == ("arms",) and isinstance(written, list):
        return _of_names(written)
    if path[0] != "arms" or len(path) < 2:
        return ""
    name, arm = str(path[1]), _at(tree, path[:2])
    return _of_entry(slip, name, arm) if len(path) == 2 else _of_key(slip, name, arm, written)


def _of_entry(slip: Slip, name: str, arm: Any) -> str:
    """The hint for the name of an arm, or for what is written in place of its keys."""
    spoken = _protocol(name, arm)
    if slip.at_key and (better := _name(name, arm)):
        return f"did you mean {quoted(better)}? its protocol comes first, and dashes join letters and digits"
    return (
        f"did you mean {{protocol: {spoken}, congestion: {harmless(arm)}}}?" if spoken and isinstance(arm, str) else ""
    )


def _of_key(slip: Slip, name: str, arm: Any, written: Any) -> str:
    key, spoken, named = str(slip.path[2]), _protocol(name, arm), name.partition("-")[0]
    if isinstance(slip.mistake, MissingKey) and key == "protocol" and named in PROTOCOLS:
        return f"add `protocol: {spoken}`, which the name {quoted(name)} begins with"
    if key == "protocol" and isinstance(written, str) and "congestion" not in arm and (meant := _keys(written)):
        return f"did you mean {meant}?"
    if slip.path[3:] or key not in ("congestion", "tcp", "quic") or not spoken:
        return ""
    if named != spoken and named in PROTOCOLS:
        return f"its name says {named}: did you mean `protocol: {named}`?"
    return _congestion(key, written, spoken)


def _of_names(written: list[Any]) -> str:
    """Arms that are named in a list, where each needs its keys."""
    arms = [_arm(name) for name in written if isinstance(name, str)]
    return f"each has a name with keys of its own: arms: {{{arms[0]}}}" if arms and all(arms) else ""


def _arm(name: str) -> str:
    """The arm that a name such as `h2-bbr` stands for."""
    keys = _keys(name)
    return f"{name}: {keys}" if keys else ""


def _keys(name: str) -> str:
    found = ARM_NAME.fullmatch(name)
    return f"{{protocol: {found[1]}, congestion: {found[2][1:]}}}" if found and found[2] else ""


def _congestion(key: str, written: Any, spoken: str) -> str:
    """An arm runs over one transport: it has one congestion control."""
    transport = Protocol(spoken).transport
    if isinstance(written, dict):
        value = written.get(transport) or written.get("congestion") or "cubic"
        return f"an arm of {spoken} has one congestion control, {transport.upper()}'s: `congestion: {shown(value)}`"
    if key == transport:
        return f"did you mean `congestion: {shown(written)}`?"
    if key in ("tcp", "quic"):
        return f"an arm of {spoken} runs over {transport.upper()} alone: remove it"
    return ""


def _of_protocol(written: str, arms: Any) -> str:
    if over := [protocol for protocol in PROTOCOLS if Protocol(protocol).transport == written.casefold()]:
        return f"did you mean `{over[-1]}`? it runs over {written.upper()}"
    if isinstance(arms, dict) and written in arms:
        return f"{quoted(written)} is one of the `arms` already, and takes part: remove it here"
    arm = _arm(written)
    return f"a protocol with settings of its own is an arm: arms: {{{arm}}}" if arm else ""


def _name(name: str, arm: Any) -> str:
    """The name with its protocol in front; empty if it has none, or nothing to be called by."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    spoken = _protocol(name, arm)
    rest = [word for word in words if word.casefold() != spoken]
    better = "-".join([spoken, *rest])
    return better if spoken and rest and ARM_NAME.fullmatch(better) and better != name else ""


def _protocol(name: str, arm: Any) -> str:
    """The protocol that an arm speaks, or that its name has."""
    written = arm.get("protocol") if isinstance(arm, dict) else None
    words = [word.casefold() for word in re.findall(r"[A-Za-z0-9]+", name)]
    return written if written in PROTOCOLS else next((word for word in words if word in PROTOCOLS), "")


def _at(tree: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return None
    return tree
