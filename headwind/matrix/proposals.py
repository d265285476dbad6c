"""Withdraws proposals that would be refused as well, such as `15000MB` for `15GB`, and says what they replace."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwind.format import enumerated
from headwind.matrix.levels import Path
from headwind.matrix.mistakes import Slip, value_at
from headwind.matrix.units import Mistake, quoted

MOST_TRIED = 20  # mistakes with a proposal: each takes a validation; a file with more keeps all of them
PROPOSAL = re.compile(r"did you mean `([^`]+)`\?")  # of one value
_QUESTION = re.compile(r"did you mean (`[^`]+`|\[[^][{}?]*\])\?(?:$| )")
_KEY = re.compile(r"(?:^`|, )(\w+): ")
_OFFERS = re.compile(r"[^\s?]+(?: or [^\s?]+)*\?")

Check = Callable[[Any], Sequence[Slip]]


def acceptable(slips: Sequence[Slip], tree: Any, check: Check) -> list[Slip]:
    """The slips without proposals for values that `check`, which lists the mistakes of a tree, refuses."""
    slips = [_with_replaced(slip, tree) for slip in slips]
    asking = [slip for slip in slips if any(True for _ in _proposed(slip, tree))]
    if not 0 < len(asking) <= MOST_TRIED:
        return slips
    known = {_identity(slip) for slip in check(tree)}
    return [_without_refused(slip, tree, check, known) if slip in asking else slip for slip in slips]


def _with_replaced(slip: Slip, tree: Any) -> Slip:
    """The slip, whose hint names the written keys that a proposed `key: value, key: value` replaces."""
    place = _place(slip.path, tree)
    level = value_at(tree, place[:-1])
    question = _QUESTION.search(slip.mistake.hint)
    if slip.at_key or not place or not question or not isinstance(level, dict):
        return slip
    keys = dict.fromkeys(_KEY.findall(question[1]))
    replaced = [quoted(key) for key in keys if key in level and key != place[-1]]
    if place[-1] not in keys or not replaced:
        return slip
    hint = f"{slip.mistake.hint} in place of {enumerated([quoted(place[-1]), *replaced])}"
    return replace(slip, mistake=type(slip.mistake)(str(slip.mistake), hint))


def _without_refused(slip: Slip, tree: Any, check: Check, known: set[tuple[Path, str]]) -> Slip:
    refused, lacking = dict[str, Mistake](), ""
    place = _place(slip.path, tree)
    for shown, value in _proposed(slip, tree):
        for each in check(_with(tree, place, value)):
            if _identity(each) in known:
                continue
            if _is_inside(each, place, value):
                refused.setdefault(shown, each.mistake)
            elif (
                each.path and each.path == place[: len(each.path)] and isinstance(value_at(tree, each.path), list | str)
            ):
                lacking = lacking or each.mistake.hint
    hint = _without(slip.mistake.hint, refused) if refused else slip.mistake.hint
    if lacking and not refused and (question := _QUESTION.search(hint)):
        hint = f"{question[0].strip()} {lacking}"
    return replace(slip, mistake=type(slip.mistake)(str(slip.mistake), hint))


def _without(hint: str, refused: Mapping[str, Mistake]) -> str:
    """Hint without the refused proposals; the reason of the first one if no proposal is left."""
    proposal, mistake = next(iter(refused.items()))
    better = PROPOSAL.match(mistake.hint)
    if better and re.fullmatch(r"\[[^,]+\]", proposal):
        return _QUESTION.sub(lambda _: f"{mistake}, did you mean `[{better[1]}]`?", hint, count=1)
    if proposal.startswith("["):
        return _QUESTION.sub(lambda _: f"{mistake}, {mistake.hint}", hint, count=1)  # it may have a backslash
    if _OFFERS.fullmatch(hint) and (left := [each for each in hint[:-1].split(" or ") if each not in refused]):
        return f"{' or '.join(left)}?"
    if not mistake.hint or "did you mean" in mistake.hint or str(mistake).endswith(" appears twice"):
        return _QUESTION.sub("", hint, count=1)
    return f"{'' if quoted(proposal) in str(mistake) else f'with {quoted(proposal)}: '}{mistake}; {mistake.hint}"


def _proposed(slip: Slip, tree: Any) -> Iterator[tuple[str, Any]]:
    """Values that a hint proposes in place of the written one, each also as it is shown."""
    if slip.at_key or not _place(slip.path, tree):
        return
    hint = slip.mistake.hint
    if _OFFERS.fullmatch(hint):
        yield from ((each, each) for each in hint[:-1].split(" or "))
    elif (question := _QUESTION.search(hint)) and "..." not in question[1]:
        shown = question[1].strip("`")
        if (value := _read(question[1])) is not None:
            yield shown, value


def _place(path: Path, tree: Any) -> Path:
    """Path of the written value: `loss: 2` is short for `loss: {random: 2}`, and its mistake is about `random`."""
    if path and isinstance(value_at(tree, path[:-1]), str):
        return path[:-1]
    return path if value_at(tree, path) is not None else ()


def _read(shown: str) -> Any:
    """Value of a proposal, a text or a list of texts; None for keys, which stand next to the written one."""
    if shown.startswith("["):
        return [word.strip() for word in shown.strip("[]").split(",")]
    return None if ": " in shown or shown.startswith("`- ") else shown.strip("`")


def _with(tree: Any, path: Path, value: Any) -> Any:
    """Copy of a tree with another value at a path."""
    copied = copy.deepcopy(tree)
    *above, last = path
    home = value_at(copied, above)
    home[last] = value
    return copied


def _is_inside(refusal: Slip, place: Path, value: Any) -> bool:
    """True if a proposed value, or an entry of a proposed list, is refused."""
    return refusal.path[: len(place)] == place and not (isinstance(value, list) and refusal.path == place)


def _identity(slip: Slip) -> tuple[Path, str]:
    return slip.path, str(slip.mistake)
