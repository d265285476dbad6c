"""Networks by name: that of the matrix, or what they are where it only repeats that (`loss` is `30 % loss`). Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from headwind.format import enumerated, setting
from headwind.matrix.sweep import DIRECTIONS, SWEPT
from headwind.matrix.units import RATE, RATIO, TIME
from headwind.model import Matrix
from impair.profile import Delay, Link, Loss, Profile

MOST_PARTS = 2  # impairments in a description; a network with more has none
OWN_WORDS = frozenset({*SWEPT, *DIRECTIONS, "clean", "no", "and"})  # a key of these and of quantities is not a name


@dataclass(frozen=True, slots=True)
class Network:
    """How people call a network, or a condition where several workloads run over it."""

    text: str  # "LTE", "30 % loss"
    preposition: str  # "on LTE", "under 30 % loss", "with no impairment"
    is_key: bool  # whether it is the key of the matrix
    meaning: str = ""  # what is impaired: "35 ms delay + 12 Mbit/s both ways"; empty if it takes many words

    def __str__(self) -> str:
        return self.text


def networks_of(matrix: Matrix) -> dict[str, Network]:
    """By condition id: the profile's key, or if that only repeats the settings what is impaired.

    The key stands, too, if what is impaired takes many words or does not tell two apart.
    """
    described = {profile: _described(profile) for profile in {each.profile for each in matrix.conditions}}
    alike = Counter(described.values())
    names = {
        profile: network
        if network and alike[network] == 1 and repeats_settings(profile.name)
        else Network(profile.name, "on", is_key=True, meaning=network.meaning if network else "")
        for profile, network in described.items()
    }
    many = matrix.place != "network"
    return {
        each.id: replace(name, text=f"{name.text} / {each.workload.name}") if many else name
        for each in matrix.conditions
        for name in [names[each.profile]]
    }


def repeats_settings(key: str) -> bool:
    """Whether a profile's key says nothing but its settings: `clean`, `delay-loss`, `20mbit-10ms-1%`."""
    parts = filter(None, re.split(r"[^\w.%]+|_", key.lower()))
    return all(
        part in OWN_WORDS or any(re.fullmatch(unit.pattern, part) for unit in (TIME, RATIO, RATE)) for part in parts
    )


def _described(profile: Profile) -> Network | None:
    """In words; None if it takes too many, or both directions are impaired in different ways."""
    up, down = profile.uplink, profile.downlink
    if up == down == Link():
        return Network("no impairment", "with", is_key=False, meaning="no impairment")
    link = up if down == Link() else down
    where = " both ways" if up == down else " on the uplink" if link is up else ""
    parts = list(_parts(link))
    if (up not in (down, Link()) and down != Link()) or not 0 < len(parts) <= MOST_PARTS or "" in parts:
        return None
    text = " + ".join(parts) + where
    return Network(text, "under", is_key=False, meaning=text)


def _parts(link: Link) -> Iterator[str]:
    """`100 ms delay`, `30 % loss`; an empty text for what has no short name."""
    if link.delay:
        yield _delay(link.delay)
    if link.loss and link.loss != Loss(0.0):
        yield f"{setting('loss_ratio', link.loss.ratio)} loss" if isinstance(link.loss, Loss) else ""
    for part, word in ((link.duplicate, "duplication"), (link.corrupt, "corruption"), (link.reorder, "reordering")):
        if part and part.ratio:
            yield f"{setting('part_ratio', part.ratio)} {word}"
    if link.rate:
        yield setting("rate_bps", link.rate.rate_bps)
    if link.slot or link.ecn:
        yield ""


def _delay(delay: Delay) -> str:
    """`100 ms delay`, `100 ± 10 ms delay`; the shape of the jitter is left out."""
    middle, jitter = setting("delay_s", delay.delay_s), setting("jitter_s", delay.jitter_s)
    if not delay.jitter_s:
        return f"{middle} delay"
    number, _, unit = middle.rpartition(" ")
    return f"{number if jitter.endswith(f' {unit}') else middle} \N{PLUS-MINUS SIGN} {jitter} delay"


def placed(notes: Mapping[Network, str] | Iterable[Network]) -> str:
    """`under 30 % loss (2.1x), 70 % duplication (1.3x) and on lte`, with a note for each network that has one."""
    told, last = [], ""
    for network, note in notes.items() if isinstance(notes, Mapping) else ((each, "") for each in notes):
        preposition = "" if network.preposition == last else f"{network.preposition} "
        told.append(f"{preposition}{network}{f' ({note})' if note else ''}")
        last = network.preposition
    return enumerated(told)
