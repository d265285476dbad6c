"""Lower bound of a trial's duration over a network, for any protocol and by any chance. Pure.

Every term is a lower bound, so that no condition is rejected in which a trial could finish: handshakes and requests
that wait for each other, each for a round trip of the smallest delays, and bytes that pass a link one after another.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice

from headwind.arm import Arm
from headwind.format import as_written, budget_text, duration, enumerated
from headwind.matrix.mistakes import Slip
from headwind.matrix.profile import ProfileKeys, another_unit
from headwind.matrix.units import Mistake, quoted
from headwind.matrix.values import TIMEOUT_S, USUAL_TIMEOUT_S
from headwind.metric import Workload
from headwind.model import Condition
from headwind.servers import NGINX
from headwind.settings import (
    LEAST_BULK_PACKETS,
    PROBE_BYTES,
    PROBE_COUNT,
    SHIPPED_STREAM_BYTES,
    UNLIMITED,
    Settings,
    Windows,
)
from impair.distribution import DISTRIBUTION_REACH
from impair.profile import FRAME_BYTES, HEADER_BYTES, Clock, Delay, Direction, Link, Loss, Profile, Steps
from impair.trace import Trace
from servers.objects import size_of

# Round trips before a request can leave: TCP's handshake (RFC 9293, 3.5) and TLS 1.3's (RFC 8446, 2), QUIC's with TLS
# in it (RFC 9001, 4.1); of resumed sessions the request may be early data (RFC 8446, 2.3; RFC 9001, 4.6).
HANDSHAKES = {"tcp": 2, "quic": 1}
# Bytes on the link by which a client opens a connection: SYN and one more segment, each of Ethernet, IPv4 and TCP
# headers; a datagram of QUIC with its padding (RFC 9000, 14.1).
OPENING_BYTES = {"tcp": 2 * (14 + 20 + 20), "quic": 1200 + HEADER_BYTES}
# Bytes of a request over any protocol: header, QPACK's prefix and four indexed fields in a STREAM frame (RFC 9114,
# 7.1; RFC 9204, 4.5; RFC 9000, 19.8). HTTP/2's frame header alone has 9, HTTP/1.1's first line 16.
REQUEST_BYTES = 2 + 2 + 4 + 2
KILO = 1000  # factor between units of size
WINDOW = f", because nginx's window as shipped allows {SHIPPED_STREAM_BYTES >> 10} KB per round trip and stream"
MOST_BLACKOUTS = 10_000  # that are counted; those of an hour at the shortest period
PROBING_S = 10.0  # before a trial: longer is refused if it is also longer than the timeout


@dataclass(frozen=True, slots=True)
class Shortest:
    """Lower bound in seconds of a trial's duration, and its main cause: a key of a direction, or `at`."""

    seconds: float
    direction: Direction
    key: str
    window: str = ""  # ", because ...", if a window is the reason


def shortest(condition: Condition, arm: Arm, settings: Settings = UNLIMITED) -> Shortest:
    """Lower bound of the duration of an arm's trial; `settings` are the matrix's."""
    workload, transport = arm.workload(condition.workload), arm.protocol.transport
    if lost := [direction for direction in Direction if all(map(_loses_all, condition.profile.links(direction)))]:
        return Shortest(math.inf, lost[0], "loss")
    links = {direction: _best(condition.profile.links(direction)) for direction in Direction}
    delays = {direction: _least_delay_s(link) for direction, link in links.items()}
    round_trip_s, delay_s = sum(delays.values()), workload.server_delay_s
    rounds, body_bytes = workload.least()
    handshakes = HANDSHAKES[transport] - workload.resumes
    opening_bytes = OPENING_BYTES["tcp" if workload.discovers else transport] * workload.at_once()[0]
    asking_bytes = int(workload.size()) * REQUEST_BYTES
    sent_bytes = max(opening_bytes, asking_bytes) if workload.resumes else opening_bytes + asking_bytes
    slowest = max(delays, key=lambda direction: delays[direction])
    sent_s, bodies_s = (
        max(_link_s(links[direction], size_bytes), _replays_s(condition.profile.trace(direction), size_bytes))
        for direction, size_bytes in ((Direction.UPLINK, sent_bytes), (Direction.DOWNLINK, body_bytes))
    )
    answered_s = (handshakes + 1) * round_trip_s + delay_s
    windows = _shipped_windows(arm, workload, settings, body_bytes)
    least = max(
        Shortest(handshakes * round_trip_s + rounds * (round_trip_s + delay_s), slowest, "delay"),
        Shortest(answered_s + bodies_s, Direction.DOWNLINK, "rate") if bodies_s > answered_s
        else Shortest(answered_s + bodies_s, slowest, "delay"),
        Shortest(sent_s, Direction.UPLINK, "rate"),
        Shortest(answered_s + (windows - 1) * round_trip_s, slowest, "delay", WINDOW),  # last: the first of equals wins
        key=lambda each: each.seconds,
    )  # fmt: skip
    return _with_blackouts(least, condition.profile, round_trip_s + delay_s, links)


def _shipped_windows(arm: Arm, workload: Workload, settings: Settings, body_bytes: int) -> int:
    """How many of nginx's default windows the bodies fill; each but the first takes a round trip. 0 without a limit.

    nginx keeps what a stream has in flight in a buffer of that size (docs/windows.md).
    """
    is_shipped = arm.settings(settings).server is Windows.AS_SHIPPED and arm.server == NGINX
    if not is_shipped or arm.protocol.transport != "quic" or workload.discovers:
        return 0
    connections, streams = workload.at_once()
    return math.ceil(body_bytes / (SHIPPED_STREAM_BYTES * connections * streams))


def _with_blackouts(least: Shortest, profile: Profile, answered_s: float, links: Mapping[Direction, Link]) -> Shortest:
    """The bound with the blackouts under `at` that a trial must outlast.

    While a direction drops every packet, only packets that already passed make progress: those in the air with one
    answer (`answered_s`), and those that wait for the rate. The trial's clock is not the client's: left out.
    """
    found = least
    for direction in Direction:
        changes, seconds = profile.changes(direction), least.seconds
        if not isinstance(changes, Steps) or profile.clock is not Clock.PACKET:
            continue
        room = max(link.room for link in profile.links(direction))
        passed_s = answered_s + _link_s(links[direction], room * FRAME_BYTES)
        for start_s, end_s in islice(blackouts(profile.link(direction), changes), MOST_BLACKOUTS):
            if seconds <= start_s + passed_s:
                break
            seconds += max(0.0, min(end_s - start_s, TIMEOUT_S[1]) - passed_s)
        if seconds > found.seconds:
            found = Shortest(seconds, direction, "at")
    return found


def blackouts(first: Link, changes: Steps) -> Iterator[tuple[float, float]]:
    """Begin and end in seconds of every time in which a direction drops all packets."""
    if any(map(_loses_all, (first, *changes.links))):
        yield from ((start_s, end_s) for start_s, end_s, link in spans(first, changes) if _loses_all(link))


def spans(first: Link, changes: Steps) -> Iterator[tuple[float, float, Link]]:
    """Begin and end in seconds of each network of a direction in turn; without end if they repeat."""
    links = (first, *changes.links)
    for cycle in count() if changes.period_s else range(1):
        begun_s = cycle * (changes.period_s or 0.0)
        starts_s = (begun_s, *(begun_s + moment_s for moment_s in changes.moments_s))
        yield from zip(starts_s, (*starts_s[1:], begun_s + (changes.period_s or math.inf)), links, strict=True)


def _best(links: Sequence[Link]) -> Link:
    """A Link that is as quick as the quickest moments of several in turn; of a single one itself."""
    if len(links) == 1:
        return links[0]
    least_s = min(map(_least_delay_s, links))
    rates = [link.rate for link in links]
    rate = max((each for each in rates if each), key=lambda each: each.rate_bps) if all(rates) else None
    overtakes = any(link.reorder for link in links)
    return Link(delay=Delay(least_s), rate=None if overtakes else rate)


def _least_delay_s(link: Link) -> float:
    """Smallest delay of a packet in seconds; reordered ones have none (sch_netem.c puts them first in the queue)."""
    if link.delay is None or (link.reorder and link.reorder.ratio):
        return 0.0
    return max(0.0, link.delay.delay_s - DISTRIBUTION_REACH[link.delay.distribution] * link.delay.jitter_s)


def _loses_all(link: Link) -> bool:
    """Whether no packet passes: a duplicate or a mark can save one (sch_netem.c, netem_enqueue)."""
    return link.loss == Loss(1.0) and not link.duplicate and not link.ecn


def _link_s(link: Link, size_bytes: int) -> float:
    """Seconds that a link needs for bytes, without headers; 0 if some packets skip the rate or count for less."""
    rate = link.rate
    if rate is None or min(rate.packet_overhead, rate.cell_overhead) < 0 or (link.reorder and link.reorder.ratio):
        return 0.0
    return size_bytes * 8 / rate.rate_bps


def _replays_s(trace: Trace | None, size_bytes: int) -> float:
    """Seconds of the whole replays of a trace that bytes need; 0 without a trace.

    A replay carries its frames, and one more in a blackout at its end (impair/trace.py).
    """
    return size_bytes // ((sum(trace.frames) * trace.pace + 1) * FRAME_BYTES) * trace.length_s if trace else 0.0


def probing(profile: Profile) -> Shortest:
    """Lower bound of the probing time before a trial: small probes both ways at once, then a train per rate.

    Small probes are as far apart as two of them take at the rate (headwind/proof/probed_decisions.py).
    """
    links = {direction: profile.link(direction) for direction in Direction}
    probes_s = max(_link_s(link, 2 * (PROBE_COUNT - 1) * PROBE_BYTES) for link in links.values())
    trains_s = {
        direction: _link_s(link, min(LEAST_BULK_PACKETS, max(2, link.room // 2)) * FRAME_BYTES)
        for direction, link in links.items()
    }
    slowest = max(trains_s, key=lambda direction: trains_s[direction])
    return Shortest(probes_s + sum(trains_s.values()), slowest, "rate")


def unprobed_slips(profiles: Mapping[str, ProfileKeys], timeout_s: float) -> Iterator[Slip]:
    """Mistakes of networks on which the probes of a trial take longer than its client may."""
    for name, profile in profiles.items():
        least, longest_s = probing(profile.to_model(name)), max(timeout_s, PROBING_S)
        rate = profile.link(least.direction).rate
        if rate is None or least.seconds <= longest_s:
            continue
        enough_bps = math.ceil(rate.rate_bps * least.seconds / longest_s / 1000) * 1000
        is_trace = profile.to_model(name).trace(least.direction) is not None
        found = "" if is_trace else another_unit("rate", rate.rate_bps)
        enough = f"`{as_written('rate_bps', enough_bps)}`{' on average' if is_trace else ''}"
        change = "use a faster trace" if is_trace else "raise the rate"
        hint = f"{found}{'else ' if found else ''}{change}, such as {enough}"
        takes_s = math.floor(least.seconds)
        limit = f"`timeout: {as_written('timeout_s', timeout_s)}`" if timeout_s >= PROBING_S else duration(PROBING_S)
        message = f"the probes before each trial over {quoted(name)} take {duration(takes_s)} or more, above {limit}"
        key = "trace" if is_trace else "rate"
        place = ("profiles", name, profile.home(least.direction, key), key)
        yield Slip(place, Mistake(message, hint), at_key=True)


def unfinished(
    conditions: Iterable[Condition], arms: Collection[Arm], timeout_s: float, settings: Settings
) -> Iterator[tuple[Condition, dict[Arm, Shortest]]]:
    """Conditions in which some arms cannot finish in time, with the lower bound of each."""
    for condition in conditions:
        bounds = {arm: shortest(condition, arm, settings) for arm in arms}
        if found := {arm: least for arm, least in bounds.items() if least.seconds > timeout_s}:
            yield condition, found


def endless_slips(
    profiles: Mapping[str, ProfileKeys],
    conditions: Iterable[Condition],
    arms: Collection[Arm],
    timeout_s: float,
    settings: Settings,
) -> Iterator[Slip]:
    """Mistakes of networks over which no arm can finish in time; each once, with the workload that takes longest.

    For all that would finish within the usual timeout, it is one mistake of the timeout.
    """
    worst: dict[str, tuple[Condition, Shortest]] = {}
    for condition, found in unfinished(conditions, arms, timeout_s, settings):
        name, least = condition.profile.name, min(found.values(), key=lambda each: each.seconds)
        if len(found) == len(arms) and (name not in worst or least.seconds > worst[name][1].seconds):
            worst[name] = condition, least
    in_usual_time = {name for name, each in worst.items() if each[1].seconds <= USUAL_TIMEOUT_S and not _meant(*each)}
    if in_usual_time:
        condition, least = max((worst.pop(name) for name in in_usual_time), key=lambda each: each[1].seconds)
        yield Slip(("timeout",), Mistake(_endless(condition, least, timeout_s), _way_out(condition, least)))
    for name, (condition, least) in worst.items():
        size_bytes = size_of(condition.workload.object_path()) or 0
        meant = f"did you mean `{size_bytes / KILO**2:g}kB`? else " if size_bytes >= KILO**2 else ""
        alike = [each for each, other in worst.values() if other.key == "rate" and each.workload == condition.workload]
        if meant and least.key == "rate" and len(alike) > 1:
            if alike[0] == condition:
                names = enumerated(quoted(each.profile.name) for each in alike)
                message = f"no trial of {quoted(condition.workload.name)} over {names} can finish within the `timeout`"
                hint = f"{meant}fetch less, raise the rates or wait longer"
                yield Slip(("workloads", condition.workload.name, "size"), Mistake(message, hint))
            continue
        if least.key == "loss":
            message, hint = f"no trial over {quoted(name)} can finish: every packet is lost", "lower the loss"
            place = ("profiles", name, profiles[name].home(least.direction, "loss"), "loss")
            yield Slip(place, Mistake(message, hint), at_key=True)
            continue
        message = _endless(condition, least, timeout_s)
        key = "trace" if _is_of_trace(condition, least) else least.key
        home = () if key == "at" else (profiles[name].home(least.direction, key),)
        yield Slip(("profiles", name, *home, key), Mistake(message, _way_out(condition, least)), at_key=True)


def _endless(condition: Condition, least: Shortest, timeout_s: float) -> str:
    """The message that no trial of a condition, which takes `least`, can finish in time."""
    within = f"`timeout: {as_written('timeout_s', timeout_s)}`"
    takes = f"{quoted(condition.workload.name)} takes at least {_floored(least.seconds)}{least.window}"
    return f"no trial over {quoted(condition.profile.name)} can finish within {within}: {takes}"


def _floored(seconds: float) -> str:
    """A lower bound of a time, rounded down: to milliseconds below ten seconds."""
    return duration(math.floor(seconds) if seconds >= 10 else math.floor(seconds * 1000) / 1000)


def _is_of_trace(condition: Condition, least: Shortest) -> bool:
    """True if the rate that a trial waits for is that of a trace."""
    return least.key == "rate" and condition.profile.trace(least.direction) is not None


def _meant(condition: Condition, least: Shortest) -> str:
    """Hint with another unit for the main cause of a trial's duration; empty if its value is plausible."""
    if _is_of_trace(condition, least):
        return ""
    link = condition.profile.link(least.direction)
    value = link.delay.delay_s if least.key == "delay" and link.delay else link.rate.rate_bps if link.rate else math.inf
    return another_unit(least.key, value)


def _way_out(condition: Condition, least: Shortest) -> str:
    lower = {
        "delay": "lower the delay",
        "at": "shorten the blackout, which a later moment ends (`700ms: {}`), fetch less",
        "trace": "use a faster trace, fetch less",
    }.get("trace" if _is_of_trace(condition, least) else least.key, "raise the rate, fetch less")
    lower = f"write `settings: {{server: unlimited}}`, {lower}" if least.window else lower
    enough_s = math.ceil(least.seconds * 2)
    wait = f" or wait longer, such as `timeout: {budget_text(enough_s)}`" if enough_s <= TIMEOUT_S[1] else ""
    found = _meant(condition, least)
    return f"{found}{'else ' if found else ''}{lower}{wait}"
