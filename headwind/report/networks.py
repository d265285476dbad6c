"""Names of networks: the matrix's, or their settings if the name only repeats them (`loss` is `30 % loss`). Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from headwind.format import counted, enumerated, listed, measured, setting
from headwind.matrix.sweep import DIRECTIONS, SWEPT
from headwind.matrix.units import RATE, RATIO, TIME
from headwind.model import Matrix
from impair.profile import Changes, Delay, Direction, Link, Loss, Profile, Spells, Steps
from impair.queues import Fifo, kind_of
from impair.trace import Trace

MOST_PARTS = 2  # impairments in a name; a network with more is named by its key
UNIMPAIRED = "no impairment"
MOST_MOMENTS = 3  # of changes in a description
BURSTS, SLOTS, ECN = "bursty loss", "slots", "ECN"
LONG = frozenset({BURSTS, SLOTS, ECN})  # not sufficient as a name
OWN_WORDS = frozenset({*SWEPT, *DIRECTIONS, "clean", "no", "and"})  # a key of these words and quantities is not a name


@dataclass(frozen=True, slots=True)
class Network:
    """Name of a network, or of a condition if several workloads run over it."""

    text: str  # "LTE", "30 % loss"
    preposition: str  # "on LTE", "under 30 % loss", "with no impairment"
    is_key: bool  # True if it is the key of the matrix
    meaning: str = ""  # the impairments: "35 ms delay + 12 Mbit/s both ways"

    def __str__(self) -> str:
        return self.text


def networks_of(matrix: Matrix) -> dict[str, Network]:
    """Networks by condition id: the profile's key, or the impairments if the key only repeats them.

    The key is also used if the impairments take many words or are the same for two profiles.
    """
    described = {profile: _described(profile) for profile in {each.profile for each in matrix.conditions}}
    alike = Counter(described.values())
    names = {
        profile: network
        if network and alike[network] == 1 and repeats_settings(profile.name)
        else Network(profile.name, "on", is_key=True, meaning=_meaning(profile))
        for profile, network in described.items()
    }
    many = matrix.place != "network"
    return {
        each.id: replace(name, text=f"{name.text} / {each.workload.name}") if many else name
        for each in matrix.conditions
        for name in [names[each.profile]]
    }


def repeats_settings(key: str) -> bool:
    """True if a profile's key has nothing but its settings: `clean`, `delay-loss`, `20mbit-10ms-1%`."""
    parts = filter(None, re.split(r"[^\w.%]+|_", key.lower()))
    return all(
        part in OWN_WORDS or any(re.fullmatch(unit.pattern, part) for unit in (TIME, RATIO, RATE)) for part in parts
    )


def _described(profile: Profile) -> Network | None:
    """Name by the impairments; None if that takes many words, both directions differ, or it changes."""
    if not profile.is_steady:
        return None
    up, down, meaning = profile.uplink, profile.downlink, _meaning(profile)
    if up == down == Link():
        return Network(meaning, "with", is_key=False, meaning=meaning)
    parts = list(_parts(up if down == Link() else down))
    if (up not in (down, Link()) and down != Link()) or not 0 < len(parts) <= MOST_PARTS or LONG & {*parts}:
        return None
    return Network(meaning, "under", is_key=False, meaning=meaning)


def _meaning(profile: Profile) -> str:
    """The impairments: `35 ms delay both ways`, `downlink 25 ms delay + 4 Mbit/s, uplink 25 ms delay`."""
    first = _first_meaning(profile)
    if profile.is_steady:
        return first
    return ", ".join([*([] if first == UNIMPAIRED else filter(None, [first])), *_changes(profile)])


def _changes(profile: Profile) -> Iterator[str]:
    """The changes in words.

    Such as `changes at 1 s, 1.5 s both ways`, `spells of 2 s good and 200 ms bad (50 % loss) on the downlink`, `another
    port of the client`.
    """
    if rebinding := profile.rebinding:
        yield f"another {rebinding.kind} of the client at {setting('at_s', rebinding.at_s)}"
    changes = {direction: text for direction in Direction if (text := _change(profile.changes(direction)))}
    if len(changes) == len(Direction) and len({*changes.values()}) == 1:
        yield f"{changes[Direction.DOWNLINK]} both ways"
    else:
        yield from (f"{text} on the {direction.value}" for direction, text in changes.items())


def _change(changes: Changes | None) -> str:
    """The changes of one direction; empty without any, and for a trace."""
    if isinstance(changes, Spells):
        loss = changes.bad.loss.ratio if isinstance(changes.bad.loss, Loss) else 0.0
        good, bad = (setting("spell_s", mean_s) for mean_s in (changes.good_s, changes.bad_s))
        return f"spells of {good} good and {bad} bad ({setting('loss_ratio', loss)} loss)"
    if isinstance(changes, Steps):
        return f"changes at {listed([setting('at_s', at_s) for at_s in changes.moments_s], MOST_MOMENTS)}"
    return ""


def _first_meaning(profile: Profile) -> str:
    """The impairments at the beginning."""
    up, down = (
        " + ".join(_parts(profile.link(way), profile.trace(way))) for way in (Direction.UPLINK, Direction.DOWNLINK)
    )
    if not (up or down):
        return UNIMPAIRED  # also with a loss of 0 %
    if up == down:
        return f"{up} both ways"
    return f"downlink {down}, uplink {up}" if up and down else down or f"{up} on the uplink"


def _parts(link: Link, trace: Trace | None = None) -> Iterator[str]:
    """The impairments of a direction: `100 ms delay`, `30 % loss`; those of LONG only by kind."""
    if link.delay:
        yield _delay(link.delay)
    if link.loss and link.loss != Loss(0.0):
        yield f"{setting('loss_ratio', link.loss.ratio)} loss" if isinstance(link.loss, Loss) else BURSTS
    for part, word in ((link.duplicate, "duplication"), (link.corrupt, "corruption"), (link.reorder, "reordering")):
        if part and part.ratio:
            yield f"{setting('part_ratio', part.ratio)} {word}"
    if trace:
        yield f"rate trace of {measured('mean_bps', trace.mean_bps)} on average"
    elif link.rate:
        yield f"{setting('rate_bps', link.rate.rate_bps)}{_queue(link)}"
    if link.limit_packets is not None:
        yield f"limit of {counted(link.limit_packets, 'packet')}"
    if link.slot:
        yield SLOTS
    if link.ecn:
        yield ECN


def _queue(link: Link) -> str:
    """The queue, if the matrix sets it: ` with a queue of 50 packets`, ` with fq_codel`, ` with fifo of 800 packets`.

    Of a fifo with its length, which is all that it has.
    """
    if link.queue_packets is not None:
        return f" with a queue of {counted(link.queue_packets, 'packet')}"
    length = f" of {counted(link.queue.packets, 'packet')}" if isinstance(link.queue, Fifo) else ""
    return f" with {kind_of(link.queue)}{length}" if link.queue else ""


def _delay(delay: Delay) -> str:
    """The delay: `100 ms delay`, `100 ± 10 ms delay`; without the shape of the jitter."""
    middle, jitter = setting("delay_s", delay.delay_s), setting("jitter_s", delay.jitter_s)
    if not delay.jitter_s:
        return f"{middle} delay"
    number, _, unit = middle.rpartition(" ")
    return f"{number if jitter.endswith(f' {unit}') else middle} \N{PLUS-MINUS SIGN} {jitter} delay"


def placed(notes: Mapping[Network, str] | Iterable[Network]) -> str:
    """The networks as a phrase, with notes: `under 30 % loss (2.1x), 70 % duplication (1.3x) and on lte`."""
    parts, last = [], ""
    for network, note in notes.items() if isinstance(notes, Mapping) else ((each, "") for each in notes):
        preposition = "" if network.preposition == last else f"{network.preposition} "
        parts.append(f"{preposition}{network}{f' ({note})' if note else ''}")
        last = network.preposition
    return enumerated(parts)
