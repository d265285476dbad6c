"""Hints for a command of `tc`, or the options of its netem, written where a profile has keys."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from headwind.matrix.concepts import correlated
from headwind.matrix.link_keys import DirectionKeys, GemodelKeys, StateKeys
from headwind.matrix.mistakes import Slips, from_pydantic
from headwind.matrix.shapes import shown
from headwind.matrix.sweep import DIRECTIONS
from headwind.matrix.units import RATE, TIME, Mistake
from impair.profile import FRAME_BYTES

TOOLS = ("tc", "netem", "tbf", "htb")  # also keys under which a command is written
IN_PROFILE = 2  # steps: `profiles`, the name
_COMMAND = re.compile(r"(?:sudo +)?(?:tc|qdisc|netem)\b.*")
_OPTIONS_ALONE = re.compile(r"(?:delay|loss|duplicate|corrupt|rate|reorder) +[0-9].*")
_UP_TO_OPTIONS = re.compile(r".*\b(netem|tbf|htb)\b *")
_VALUE = re.compile(r"[0-9][0-9.]*[A-Za-z%]*")
_MODELS = {"gemodel": tuple(GemodelKeys.model_fields), "state": tuple(StateKeys.model_fields)}
_EXAMPLE = {"delay": "100ms", "loss": "1%"}
_ONE_WAY = "a command of tc impairs one direction: for only one write `downlink` or `uplink`"
_OPTIONS: dict[str, tuple[str, ...]] = {  # names of the values of an option, in their order
    "delay": ("delay", "jitter", "correlation"), "loss": ("loss", "correlation"), "limit": ("limit",), "ecn": (),
    "duplicate": ("duplicate", "correlation"), "corrupt": ("corrupt", "correlation"), "rate": ("rate",),
    "reorder": ("reorder", "correlation"), "gap": ("gap",), "seed": ("seed",),
}  # fmt: skip
_OPTIONS_OF_TBF: dict[str, tuple[str, ...]] = {name: (name,) for name in ("rate", "burst", "latency", "limit", "ceil")}


def of_tc(path: Sequence[str | int], written: Any) -> str:
    """Hint for what is written in a profile: a command of tc, or a key that has one; empty for anything else."""
    if path[0] != "profiles" or len(path) < IN_PROFILE:
        return ""
    is_key = path[-1] in TOOLS and len(path) > IN_PROFILE
    text = " ".join(map(str, written)) if isinstance(written, list) else written
    pattern = _OPTIONS_ALONE if path[-1] in DIRECTIONS else _COMMAND
    if isinstance(text, str) and (is_key or _COMMAND.fullmatch(text) or pattern.fullmatch(text)):
        keys, correlation = _translated(text)
    elif isinstance(text, dict) and is_key:
        keys, correlation = text, ""
    else:
        return ""
    reason = _refusal(keys) if keys else ""
    is_whole = bool(keys) and not reason
    own, note = shown(keys if is_whole else _EXAMPLE), correlation if is_whole else ""
    if not {*path[IN_PROFILE:]} & {*DIRECTIONS}:
        own = f"both: {own}" if is_key else f"{{both: {own}}}"
        note = "; ".join(filter(None, (_ONE_WAY, note)))
    elif is_key:
        own = f"{path[IN_PROFILE]}: {own}"
    if is_whole:
        return f"did you mean {own}? {note}".strip()
    return f"options of tc are keys here, such as {own}{f'; {reason}' if reason else ''}"


def _translated(command: str) -> tuple[dict[str, Any], str]:
    """Keys of a direction for `tc qdisc ... netem delay 100ms 10ms`, and what they leave out; none if unclear."""
    before = _UP_TO_OPTIONS.match(command)
    is_netem = before is None or before[1] == "netem"
    found = _read(command[before.end() :] if before else command, _OPTIONS if is_netem else _OPTIONS_OF_TBF)
    correlation = ""
    if found.pop("correlation", ""):
        is_loss = isinstance(found.get("loss"), str)
        correlation = correlated(found["loss"]) if is_loss else "netem's correlation has no key"
    if "gap" in found:
        found["reorder"] = {"ratio": found.get("reorder", "100%"), "gap": found.pop("gap")}
    if not is_netem:
        found = _of_bucket(found)
    found.pop("seed", "")
    return found, correlation


def _read(options: str, names: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Values of the options by their names; empty if a word is unknown."""
    words, found = options.split(), dict[str, Any]()
    while words:
        option = words.pop(0)
        if option == "distribution" and words:
            found[option] = words.pop(0)
        elif option == "ecn":
            found[option] = "true"
        elif option in names:
            model = words.pop(0) if option == "loss" and words[:1] and words[0] in (*_MODELS, "random") else ""
            values = [words.pop(0) for _ in range(_leading(words))]
            if model in _MODELS:
                found[option] = {model: dict(zip(_MODELS[model], values, strict=False))}
            else:
                found |= dict(zip(names[option], values, strict=False))
        else:
            return {}
    return found


def _leading(words: Sequence[str]) -> int:
    """Number of values before the next option."""
    return next((index for index, word in enumerate(words) if not _VALUE.fullmatch(word)), len(words))


def _of_bucket(found: dict[str, Any]) -> dict[str, Any]:
    """Keys for the options of tc's token bucket: its rate, and its latency as a queue."""
    try:
        packets = TIME.parse(found["latency"]) * RATE.parse(found["rate"]) / 8 / FRAME_BYTES
    except (KeyError, Mistake):
        return {"rate": found["rate"]} if "rate" in found else {}
    return {"rate": found["rate"], "queue": str(math.ceil(packets))}


def _refusal(keys: dict[str, Any]) -> str:
    """The first option that a direction refuses, with the reason; empty without any."""
    try:
        DirectionKeys.model_validate(keys).link()
    except ValidationError as error:
        first = from_pydantic(error, DirectionKeys)[0]
    except Slips as error:
        first = error.slips[0]
    else:
        return ""
    option, hint = first.path[0], f", {first.mistake.hint}" if first.mistake.hint else ""
    return f"`{option} {shown(keys.get(str(option), ''))}` is refused: {first.mistake}{hint}"
