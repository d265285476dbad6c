"""Hints for mistakes in `arms`, and in keys that name arms and protocols."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headwind.arm import ARM_NAME, Protocol
from headwind.matrix.mistakes import MissingKey, Slip
from headwind.matrix.shapes import PROTOCOLS, shown
from headwind.matrix.units import harmless, quoted
from headwind.matrix.values import TCP_CONGESTION
from headwind.settings import Windows

KNOWN = {*Windows, *TCP_CONGESTION}
NAMING = ("compare", "selfcheck", "find")


def of_arm(slip: Slip, tree: Mapping[str, Any]) -> str:
    """Hint for a mistake in `arms` or in the name of an arm or a protocol; empty without a better one."""
    path = slip.path
    written = _at(tree, path)
    if path[0] == "protocols" and len(path) == 2 and isinstance(written, str):
        return _of_protocol(written, tree.get("arms"))
    if path[0] in NAMING and len(path) > 1 and written in PROTOCOLS:
        return f"{quoted(written)} is not compared in this file: add it to `protocols`, or name another"
    if path[0] == "workloads" and len(path) == 3 and isinstance(written, dict) and written.keys() <= set(PROTOCOLS):
        arms = {f"{name}-{value}": {"protocol": name, path[2]: value} for name, value in written.items()}
        return f"settings that differ between protocols belong to arms: arms: {shown(arms)}"
    if path[-2:-1] == ("congestion",) and path[-1] in PROTOCOLS:
        return f"did you mean `{Protocol(path[-1]).transport}`? {path[-1]} runs over it"
    if path == ("server",) and isinstance(written, str):
        if written in list(Windows):
            return f"it belongs in `settings`: settings: {{server: {written}}}"
        return f"a server is an arm's: arms: {{h2-{written}: {{protocol: h2, server: {harmless(written)}}}}}"
    if path == ("arms",) and isinstance(written, list):
        return _of_names(written)
    if path[0] != "arms" or len(path) < 2:
        return ""
    name, arm = str(path[1]), _at(tree, path[:2])
    return _of_entry(slip, name, arm) if len(path) == 2 else _of_key(slip, name, arm, written)


def _of_entry(slip: Slip, name: str, arm: Any) -> str:
    """Hint for the name of an arm, or for a value in place of its keys."""
    spoken = _protocol(name, arm)
    if slip.at_key and (better := _name(name, arm)):
        return f"did you mean {quoted(better)}? its protocol comes first, and dashes join letters and digits"
    if arm in PROTOCOLS:
        keys = _keys(name) if name.startswith(f"{arm}-") and name.removeprefix(f"{arm}-") in KNOWN else ""
        return f"did you mean {keys or f'{{protocol: {arm}}}'}?"
    return f"did you mean {_pair(spoken, arm)}?" if spoken and isinstance(arm, str) else ""


def _of_key(slip: Slip, name: str, arm: Any, written: Any) -> str:
    key, spoken, named = str(slip.path[2]), _protocol(name, arm), name.partition("-")[0]
    if isinstance(slip.mistake, MissingKey) and key == "protocol" and named in PROTOCOLS:
        return f"add `protocol: {spoken}`, which the name {quoted(name)} begins with"
    if key == "protocol" and isinstance(written, str) and "congestion" not in arm and (meant := _keys(written)):
        return f"did you mean {meant}?"
    if slip.path[3:] or key not in ("congestion", "tcp", "quic") or not spoken:
        return ""
    if named != spoken and named in PROTOCOLS:
        return f"its name begins with {named}: did you mean `protocol: {named}`?"
    return _congestion(key, written, spoken)


def _of_names(written: list[Any]) -> str:
    """Hint for arms that are listed by name without keys."""
    arms = [_arm(name) for name in written if isinstance(name, str)]
    return f"each arm needs a name and keys: arms: {{{arms[0]}}}" if arms and all(arms) else ""


def _arm(name: str) -> str:
    """Arm that a name such as `h2-bbr` stands for, as YAML; empty for other names."""
    keys = _keys(name)
    return f"{name}: {keys}" if keys else ""


def _keys(name: str) -> str:
    found = ARM_NAME.fullmatch(name)
    return _pair(found[1], found[2][1:]) if found and found[2] else ""


def _pair(protocol: str, value: str) -> str:
    key = "settings" if value in list(Windows) else "congestion"
    return f"{{protocol: {protocol}, {key}: {harmless(value)}}}"


def _congestion(key: str, written: Any, spoken: str) -> str:
    """Hint for the congestion control of an arm, which runs over one transport only."""
    transport = Protocol(spoken).transport
    if isinstance(written, dict):
        value = written.get(transport) or written.get("congestion") or "cubic"
        return f"an arm of {spoken} has one congestion control, {transport.upper()}'s: `congestion: {shown(value)}`"
    if key == transport:
        return f"did you mean `congestion: {shown(written)}`?"
    if key in ("tcp", "quic"):
        return f"an arm of {spoken} runs over {transport.upper()} only: remove it"
    return ""


def _of_protocol(written: str, arms: Any) -> str:
    if over := [protocol for protocol in PROTOCOLS if Protocol(protocol).transport == written.casefold()]:
        return f"did you mean `{over[-1]}`? it runs over {written.upper()}"
    if isinstance(arms, dict) and written in arms:
        return f"{quoted(written)} is already one of the `arms`: remove it here"
    arm = _arm(written)
    return f"a protocol with overrides is an arm: arms: {{{arm}}}" if arm else ""


def _name(name: str, arm: Any) -> str:
    """Name with its protocol in front; empty if there is no protocol, or no other word."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    spoken = _protocol(name, arm)
    rest = [word for word in words if word.casefold() != spoken]
    better = "-".join([spoken, *rest])
    return better if spoken and rest and ARM_NAME.fullmatch(better) and better != name else ""


def _protocol(name: str, arm: Any) -> str:
    """Protocol of an arm's keys, or of its name; empty without any."""
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
