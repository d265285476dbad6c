"""Warnings about a valid matrix: networks that are hardly meant as written, arms that cannot finish. Pure.

Each is a message with its place in the file and a suggestion, in the form of a matrix error; the matrix is not refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise, takewhile

from headwind.arm import UNKNOWN, Protocol, Role
from headwind.format import arm_name, as_written, counted, duration, enumerated, measured, setting
from headwind.matrix.profile import another_unit
from headwind.matrix.reader import KeyPath, left_out, located, networks_of_sweeps, swept_keys
from headwind.matrix.shortest import Shortest, blackouts, probing, shortest, unfinished
from headwind.matrix.units import quoted
from headwind.matrix.values import TCP_CONGESTION
from headwind.model import Condition, Matrix, Result, slowed
from headwind.plan.capacity import profiles_of
from headwind.plan.forecast import OVERHEAD_S, Forecast, block_seconds
from headwind.proof.expectation import Expectation
from headwind.proof.spans import earlier_moment, ended_early, has_unmeasured_connection
from headwind.settings import SHIPPED_STREAM_BYTES, Settings, Windows
from headwind.verdicts.congestion import confounded, control_of
from headwind.workloads.h2load import IDLE_S, H2load
from impair.profile import (
    FRAME_BYTES,
    NEXT_PACKET,
    SHORTEST_SPAN_S,
    Changes,
    Direction,
    GilbertElliott,
    Link,
    Profile,
    Spells,
    Steps,
)
from impair.queues import Fifo
from servers.objects import size_of

IN_ORDER = "With a rate of netem, jitter keeps packets in order: a late one delays those sent right after it"
REORDERING = (
    "jitter reorders packets, which can make large transfers by HTTP/3 several times slower (docs/findings.md). To "
    "keep packets in order, give the profile any `rate`, and no `queue: {kind: ...}`"
)
MOST_LOST = 0.9  # on average: above it hardly any packet arrives, and retransmissions are lost as well

# Packets: through a queue of 5 at 20 Mbit/s 4 of 8 trials did not show the rate, through one of 15 all did.
LEAST_ROOM = 10
SLOWED_BY_WINDOWS = 1.25  # least time with windows as shipped, against that without a limit
MET_ALWAYS = 0.9  # share of trials
FORECAST_ERROR = 1.3  # factor by which a trial may be shorter than its forecast

Located = tuple[KeyPath, tuple[str, str]]  # its place; message and hint


def warnings_of(matrix: Matrix) -> list[str]:
    """The printed warnings, in the order of the file."""
    profiles = {condition.profile.name: condition.profile for condition in matrix.conditions}
    found = [doubt for profile in profiles.values() for doubt in _of_profile(profile)]
    found += [doubt for profile in profiles.values() for doubt in _too_late(profile, matrix.timeout_s)]
    found += [*_of_arms(matrix), *_of_twins(matrix), *_of_names(matrix), *_of_clients(matrix), *_uncompared(matrix)]
    return list(dict.fromkeys(f"warning: {each}" for each in (located(matrix, dict(found)) if found else ())))


def notes_of(matrix: Matrix) -> list[str]:
    """Notes as they are printed: networks that reorder packets or are left out, and what else a comparison mixes in."""
    found = (
        *_reordering(matrix), *_lasting(matrix), *_returning(matrix), *_outages(matrix), *_overwritten(matrix),
        *_full_of_acks(matrix), *_left_out(matrix), *_unchecked(matrix), *confounded(matrix), *_unlike(matrix),
        *_pipelining(matrix), *_raised_windows(matrix), *_unmeasured(matrix), *_lacking(matrix),
    )  # fmt: skip
    return [f"note: {sentence}" for sentence in found]


def _unlike(matrix: Matrix) -> Iterator[str]:
    """A note on judged times per request of arms that have unequally many requests in flight (findings.judged_by)."""
    for workload in dict.fromkeys(condition.workload for condition in matrix.conditions):
        judged = workload.judged(matrix.judge)
        names = [f"`{metric.key}`" for metric in judged if metric.is_from_sending]
        in_flight = {arm: arm.in_flight(workload) for arm in matrix.arms}
        least, most = (pick(in_flight, key=lambda arm: in_flight[arm]) for pick in (min, max))
        if names and in_flight[least] < in_flight[most]:
            arms = f"{least} ({counted(in_flight[least], 'request')} in flight) and {most} ({in_flight[most]:,})"
            load, by = quoted(workload.name), " or ".join(names)
            effect = (
                f"{load} gets no verdict by {by} between arms such as {arms}"
                if len(names) < len(judged)
                else f"{load} is judged by {by} alone, which favours the first of {arms}"
            )
            yield f"{effect}: the wait before a request is sent is left out; `mean_done_s` includes it"


def _pipelining(matrix: Matrix) -> Iterator[str]:
    """A note on workloads that every arm of HTTP/1.1 pipelines."""
    names = []
    for workload in dict.fromkeys(condition.workload for condition in matrix.conditions):
        pipelining = {arm.protocol for arm in matrix.arms if arm.pipelines(workload)}
        if pipelining and all(arm.pipelines(workload) for arm in matrix.arms if arm.protocol in pipelining):
            names.append(workload.name)
    if names:
        workloads = f"workload{'s' * (len(names) > 1)} {enumerated(map(quoted, names))}"
        yield (
            f"HTTP/1.1 pipelines the requests of the {workloads}, because `streams` is above 1; browsers do not "
            "pipeline. To send one request at a time, add to the matrix `arms: {h1-one: {protocol: h1, streams: 1}}`"
        )


def _raised_windows(matrix: Matrix) -> Iterator[str]:
    """A note on conditions in which nginx's windows as shipped, which no arm has, would slow HTTP/3 down."""
    shipped = Settings(server=Windows.AS_SHIPPED)
    arms = [arm for arm in matrix.arms if arm.role is Role.PLAIN and arm.protocol.transport == "quic"]
    if any(arm.settings(matrix.settings).server is Windows.AS_SHIPPED for arm in arms):
        return
    found = dict[str, float]()
    for condition in matrix.conditions:
        for arm in arms:
            least, limited = shortest(condition, arm, matrix.settings), shortest(condition, arm, shipped)
            if limited.window and limited.seconds > SLOWED_BY_WINDOWS * least.seconds:
                found.setdefault(matrix.name_of(condition), limited.seconds / least.seconds)
    if found:
        name = max(found, key=lambda each: found[each])
        others = f" and {counted(len(found) - 1, f'other {matrix.place}')}" if len(found) > 1 else ""
        yield (
            f"nginx as installed sends at most {SHIPPED_STREAM_BYTES >> 10} KB per round trip on a stream of HTTP/3, "
            f"which would slow it down in {quoted(name)}{others}; the lab's has larger windows (docs/windows.md). "
            "To measure both, add an arm `h3-as-shipped: {protocol: h3, settings: {server: as-shipped}}`"
        )


def _unmeasured(matrix: Matrix) -> Iterator[str]:
    """A note on changes that may fall into the first of two connections, which is not measured."""
    found = [
        each for each in matrix.conditions if has_unmeasured_connection(each.workload) and _moments_s(each.profile)
    ]
    if found:
        names = enumerated(dict.fromkeys(quoted(each.profile.name) for each in found))
        loads = enumerated(dict.fromkeys(quoted(each.workload.name) for each in found))
        yield (
            f"a trial of {loads} has two connections, and only the second is measured: changes of {names} may fall "
            "into the first. Measure them with `kind: transfer` and `judge: [ttfb_s]`, and `kind: ttfb` over networks "
            "that do not change"
        )


def _lacking(matrix: Matrix) -> Iterator[str]:
    """A note on paths that only the user's own servers can have, and that arms on servers of the lab request too."""
    found = dict[str, dict[str, None]]()  # path -> names of arms
    for workload in dict.fromkeys(each.workload for each in matrix.conditions if not each.workload.files):
        for arm in (arm for arm in matrix.arms if not arm.server.program):
            for path in arm.workload(workload).object_paths():
                if size_of(path) is None:
                    found.setdefault(path, {})[arm_name(arm)] = None
    for path, names in found.items():
        yield (
            f"the lab's servers have no object at {quoted(path)}, so all requests of {enumerated(names)} for it will "
            "fail (status 404): use a path such as `/10k`, or compare your own servers only"
        )


def _lasting(matrix: Matrix) -> Iterator[str]:
    """A note on networks that stay changed until the end of the trial."""
    for profile in profiles_of(matrix):
        ends = [
            changes.moments_s[-1] for direction in Direction
            if isinstance(changes := profile.changes(direction), Steps)
            and changes.period_s is None and _lasts(changes.links[-1], profile.link(direction))
        ]  # fmt: skip
        if ends:
            last_s = max(ends)
            yield (
                f"{quoted(profile.name)} stays changed from {setting('at_s', last_s)} to the end of the trial; a later "
                f"moment restores it: {_later(last_s)}"
            )


def _full_of_acks(matrix: Matrix) -> Iterator[str]:
    """A note on uplinks whose default limit the acknowledgements of a download at full rate fill: it drops some.

    Netem counts packets, of whatever size, in delay line and queue together. TCP sends an acknowledgement for every
    second full frame or more (RFC 9293, section 3.8.6.3).
    """
    found: dict[str, int] = {}
    for profile in profiles_of(matrix):
        up, down = profile.uplink, profile.downlink
        if up.rate and down.rate and up.delay and not up.queue and not (up.queue_packets or up.limit_packets):
            held = math.ceil(down.rate.rate_bps / 8 / FRAME_BYTES * up.delay.delay_s)
            if held / 2 > up.limit:
                found[profile.name] = held
    if found:
        name, held = max(found.items(), key=lambda item: item[1])
        others = f" and {counted(len(found) - 1, 'other network')}" if len(found) > 1 else ""
        yield (
            f"the uplink of {quoted(name)}{others} holds few packets, and the acknowledgements of a download fill it: "
            f"it drops some, most of TCP's. To keep them, write a longer queue for the uplink, such as `queue: {held}`"
        )


def _unchecked(matrix: Matrix) -> Iterator[str]:
    """A note on self-checks without a network."""
    check = matrix.selfcheck
    if check and not (check.again or check.slower):
        yield f"`selfcheck` checks nothing: add profiles, such as `again: [{matrix.conditions[0].profile.name}]`"


def _returning(matrix: Matrix) -> Iterator[str]:
    """A note on keys that a moment restores because it does not repeat them, although it changes others."""
    for profile in profiles_of(matrix):
        found = [
            (profile.link(each), list(zip(steps.moments_s, steps.links, strict=True)))
            for each, steps in ((each, profile.changes(each)) for each in Direction) if isinstance(steps, Steps)
        ]  # fmt: skip
        changed_s = {at for first, steps in found for at, link in steps if link != first}
        back: dict[float, dict[str, None]] = {}
        for first, steps in found:
            for (_, before), (at, after) in pairwise(steps):
                if at in changed_s and before.loss != NEXT_PACKET:
                    back.setdefault(at, {}).update(dict.fromkeys(_returned(first, before, after)))
        for at, names in ((at, [*names]) for at, names in sorted(back.items()) if names):
            yield (
                f"in {quoted(profile.name)}, the {enumerated(map(quoted, names))} of the start "
                f"{'returns' if len(names) == 1 else 'return'} at {setting('at_s', at)}: each moment replaces the one "
                "before, so repeat there what should stay"
            )


def _returned(first: Link, before: Link, after: Link) -> Iterator[str]:
    """The keys that had changed and are those of the start again."""
    for each in fields(Link):
        start, then, now = (getattr(link, each.name) for link in (first, before, after))
        if then != start and now == start:
            yield each.name


def _lasts(last: Link, first: Link) -> bool:
    """True if a network stays changed: the drop of the next packet is over after that."""
    return (replace(last, loss=first.loss) if last.loss == NEXT_PACKET else last) != first


def _outages(matrix: Matrix) -> Iterator[str]:
    """A note on outages that end HTTP/3 trials alone: h2load closes a QUIC connection that long without a packet."""
    if all(arm.protocol.transport == "tcp" for arm in matrix.arms):
        return
    loaded = [each.profile for each in matrix.conditions if each.workload.program == H2load.program]
    for profile in {each.name: each for each in loaded}.values():
        longest_s = max(
            _outage_s(profile.link(direction), profile.changes(direction), matrix.timeout_s) for direction in Direction
        )
        if longest_s >= IDLE_S:
            yield (
                f"{quoted(profile.name)} has an outage of {duration(round(longest_s, 1))}: h2load closes a QUIC "
                f"connection that has received nothing for {duration(IDLE_S)}, so HTTP/3 trials end there and others "
                "do not (docs/trust.md, Limitations)"
            )


def _outage_s(first: Link, changes: Changes | None, timeout_s: float) -> float:
    """The longest time in s in which a direction lets no packet pass, by its changes; 0 without one."""
    if not isinstance(changes, Steps):
        return 0.0
    until_s = timeout_s if changes.period_s is None else min(timeout_s, 2 * changes.period_s)  # then all recurs
    longest_s = began_s = ended_s = 0.0
    for start_s, end_s in takewhile(lambda blackout: blackout[0] < until_s, blackouts(first, changes)):
        began_s = began_s if start_s == ended_s else start_s
        ended_s = min(end_s, timeout_s)
        longest_s = max(longest_s, ended_s - began_s)
    return longest_s


def _overwritten(matrix: Matrix) -> Iterator[str]:
    """A note on sweeps whose networks are all the same from a moment to the end of the trial."""
    profiles = {condition.profile.name: condition.profile for condition in matrix.conditions}
    if not any(isinstance(each.changes(direction), Steps) for each in profiles.values() for direction in Direction):
        return
    keys = swept_keys(matrix)
    for sweep, names in networks_of_sweeps(matrix).items():
        from_s = _alike_from_s([profiles[name] for name in names if name in profiles])
        if from_s is None:
            continue
        moment, key = ("profiles", sweep, "at", as_written("at_s", from_s)), keys[sweep]
        at, swept = (
            f"{each.file}:{each.line}:{each.column}"
            for path in (moment, key) for each in located(matrix, {path: ("", "")})
        )  # fmt: skip
        yield (
            f"{at}: from {setting('at_s', from_s)} to the end of the trial, all networks of the sweep {quoted(sweep)} "
            f"are the same: `at` sets {quoted(str(key[-1]))}, of which {swept} has several values"
        )


def _alike_from_s(networks: Sequence[Profile]) -> float | None:
    """The moment from which different networks are the same until the end of the trial; None without one."""
    moments_s = []
    for direction in Direction:
        if _are_alike([network.link(direction) for network in networks]):
            continue
        changes = [each for network in networks if isinstance(each := network.changes(direction), Steps)]
        moments = {each.moments_s for each in changes}
        if len(changes) < len(networks) or len(moments) > 1 or changes[0].period_s is not None:
            return None
        alike = [_are_alike(links) for links in zip(*(each.links for each in changes), strict=True)]
        if not alike[-1]:
            return None
        last_apart = max((place for place, is_alike in enumerate(alike) if not is_alike), default=-1)
        moments_s.append(changes[0].moments_s[last_apart + 1])
    return max(moments_s, default=None)


def _are_alike(links: Sequence[Link]) -> bool:
    return all(link == links[0] for link in links)


def _left_out(matrix: Matrix) -> Iterator[str]:
    for group, names in left_out(matrix).items() if matrix.source else ():
        which = group if names[1:] else group.removesuffix("s")
        yield f"no entry of `conditions` has the {which} {enumerated(map(quoted, names))}: not measured"


def _of_profile(profile: Profile) -> Iterator[Located]:
    for direction in Direction:
        link, place = profile.link(direction), ("profiles", profile.name, direction.value)
        if link.delay and (meant := another_unit("delay", link.delay.delay_s)):
            message = f"{quoted(profile.name)} delays each packet by {setting('delay_s', link.delay.delay_s)} one way"
            yield (*place, "delay"), (message, meant.strip())
        if (lost := Expectation.of(link).loss) >= MOST_LOST:
            message = f"{quoted(profile.name)} loses {measured('loss_ratio', lost)} of all packets on average"
            yield (*place, "loss"), (message, _swapped(link))
        if isinstance(link.queue, Fifo) and link.room < LEAST_ROOM:
            message = f"a queue of {counted(link.room, 'packet')} is too short to verify the rate exactly"
            hint = f"many trials will be `invalid`; write {LEAST_ROOM} packets or more"
            yield (*place, "queue"), (message, hint)
        changes = profile.changes(direction)
        if isinstance(changes, Steps) and changes.period_s is None and changes.links[-1] != link:
            last, from_s = changes.links[-1], changes.moments_s[-1]
            if (lost := Expectation.of(last).loss) >= MOST_LOST and last.loss != NEXT_PACKET:
                message = (
                    f"{quoted(profile.name)} loses {measured('loss_ratio', lost)} of all packets from "
                    f"{setting('at_s', from_s)} to the end of the trial"
                )
                yield ("profiles", profile.name, "at"), (message, f"to end it add a later moment: {_later(from_s)}")


def _moments_s(profile: Profile) -> list[float]:
    """The first moment of each direction's changes, and that of the rebinding."""
    changes = [each for direction in Direction if isinstance(each := profile.changes(direction), Steps)]
    return [each.moments_s[0] for each in changes] + ([profile.rebinding.at_s] if profile.rebinding else [])


def _too_late(profile: Profile, timeout_s: float) -> Iterator[Located]:
    """Changes that begin only after each trial has ended."""
    moments_s = _moments_s(profile)
    if moments_s and (first_s := min(moments_s)) >= timeout_s:
        message = (
            f"nothing changes in {quoted(profile.name)}: its first moment is {as_written('at_s', first_s)}, and a "
            f"trial is stopped after `timeout: {as_written('timeout_s', timeout_s)}`"
        )
        yield ("profiles", profile.name, "at"), (message, "write an earlier moment, or a longer `timeout`")


def _later(from_s: float) -> str:
    """A moment at which the first network returns, half a second later."""
    return f"`{as_written('at_s', from_s + 0.5)}: {{}}`"


def _swapped(link: Link) -> str:
    """Suggestion to swap p and r, if the model then loses less."""
    model = link.loss
    if not isinstance(model, GilbertElliott) or model.p <= model.r:
        return "few trials will finish"
    other = Expectation.of(Link(loss=GilbertElliott(model.r, model.p, model.bad_loss, model.good_loss))).loss
    p, r = as_written("p_ratio", model.r), as_written("r_ratio", model.p)
    return f"are `p` and `r` swapped? {{p: {p}, r: {r}}} loses {measured('loss_ratio', other)}"


def _of_arms(matrix: Matrix) -> Iterator[Located]:
    """Arms that cannot finish in a condition while others can."""
    for condition, found in unfinished(matrix.conditions, matrix.arms, matrix.timeout_s, matrix.settings):
        least = min(found.values(), key=lambda each: each.seconds)
        if len(found) < len(matrix.arms):
            message = _too_short(matrix, condition, enumerated(map(arm_name, found)), least)
            home = () if least.key == "at" else (least.direction.value,)
            yield ("profiles", condition.profile.name, *home, least.key), (message, "")


def _of_twins(matrix: Matrix) -> Iterator[Located]:
    """Self-checks over a slower network, of which no trial can finish, although those of the same arm can."""
    for condition in matrix.conditions:
        for twin in [arm for arm in matrix.arms_in(condition) if arm.role is Role.SLOWER]:
            least = shortest(replace(condition, profile=slowed(condition.profile)), twin, matrix.settings)
            if least.seconds > matrix.timeout_s >= shortest(condition, twin, matrix.settings).seconds:
                message = _too_short(matrix, condition, arm_name(twin), least, "over this slower network ")
                yield ("selfcheck", "slower"), (message, "")


def _too_short(matrix: Matrix, condition: Condition, arms: str, least: Shortest, where: str = "") -> str:
    """The message that no trial of these arms can finish in a condition, since it takes at least `least`."""
    timeout = f"`timeout: {as_written('timeout_s', matrix.timeout_s)}`"
    return (
        f"no trial of {arms} can finish in {quoted(condition.id)} within {timeout}: {where}it takes at least "
        f"{duration(math.floor(least.seconds))}{least.window}"
    )


def _of_names(matrix: Matrix) -> Iterator[Located]:
    """Arms whose name ends in a congestion control that they do not use, and arms that differ in their names only."""
    seen = dict[object, str]()
    for arm in (arm for arm in matrix.arms if not arm.is_twin):
        controls = tuple(control_of(arm, matrix, condition) for condition in matrix.conditions)
        like = seen.setdefault((arm.protocol, arm.server, replace(arm.overrides, congestion=None), controls), arm.name)
        named, place = arm.name.rpartition("-")[2], ("arms", arm.name)
        if named in TCP_CONGESTION and not {named, UNKNOWN} & {*controls}:
            either = "" if arm.protocol.transport == "quic" else f"set its `congestion: {named}`, or "
            used = enumerated(dict.fromkeys(controls))
            yield place, (f"the arm {quoted(arm.name)} uses {used}", f"{either}rename it")
        elif like != arm.name:
            message = f"{quoted(like)} and {quoted(arm.name)} differ in their names only"
            yield place, (message, "remove one; `selfcheck` compares an arm with itself")


def _of_clients(matrix: Matrix) -> Iterator[Located]:
    """Arms with other windows than usual whose client has no windows to set."""
    without = {each.workload.name: each.workload for each in matrix.conditions if not each.workload.has_client_windows}
    for arm in matrix.arms:
        if without and arm.settings(matrix.settings).client is not Windows.UNLIMITED:
            message = (
                f"the client's `settings` of {quoted(arm.name)} have no effect in {enumerated(map(quoted, without))}"
            )
            kinds = enumerated(dict.fromkeys(each.written or f"`kind: {each.kind}`" for each in without.values()))
            place = ("arms", arm.name, "settings") if arm.overrides.client_windows else ("settings",)
            yield place, (message, f"the client of {kinds} has no windows to set; the server's settings apply")


def _uncompared(matrix: Matrix) -> Iterator[Located]:
    """Arms that run in each block, and that no comparison names."""
    pairs = [(matrix.find.new, matrix.find.base)] if matrix.find else matrix.compare
    compared = {arm for pair in pairs for arm in pair} | ({matrix.selfcheck.arm} if matrix.selfcheck else set())
    for arm in matrix.arms if pairs else ():
        if arm not in compared:
            is_plain = arm.name in [protocol.value for protocol in Protocol]
            message = f"{quoted(arm.name)} takes time in each block, and is not compared"
            hint = "remove it" if matrix.find else "add it to `compare`, or remove it"
            yield ("protocols",) if is_plain else ("arms", arm.name), (message, hint)


def _reordering(matrix: Matrix) -> Iterator[str]:
    """A note on all networks in which a jitter reorders packets that the server sends to HTTP/3."""
    profiles = {each.profile.name: each.profile.downlink for each in matrix.conditions}
    names = [name for name, link in profiles.items() if link.jitters and not link.jitters_in_order]
    if names and any(arm.protocol.transport == "quic" for arm in matrix.arms):
        yield f"network{'s' if names[1:] else ''} {enumerated(map(quoted, names))}: {REORDERING}"


def _trial_seconds(matrix: Matrix, forecast: Forecast) -> Iterator[tuple[Condition, float]]:
    """Each condition with the seconds that are forecast for a trial, without what surrounds it."""
    block_s = block_seconds(matrix, forecast)
    for condition in matrix.conditions:
        around_s = OVERHEAD_S + probing(condition.profile).seconds
        yield condition, max(0.0, block_s(condition) / len(matrix.arms_in(condition)) - around_s)


def spells_of(matrix: Matrix, forecast: Forecast) -> Iterator[str]:
    """A note for each direction with spells: its mean loss, and the share of trials that meet a bad spell.

    The latter if it is below MET_ALWAYS: a trial begins in a good spell, so it is the chance that this one ends during
    a trial of the duration that is forecast (impair/profile.py, Spells).
    """
    for condition, trial_s in _trial_seconds(matrix, forecast):
        profile = condition.profile
        took = duration(round(trial_s, 1))
        for direction in Direction:
            if not isinstance(spells := profile.changes(direction), Spells):
                continue
            good, bad = (setting("spell_s", mean_s) for mean_s in (spells.good_s, spells.bad_s))
            losses = [Expectation.of(link).loss for link in profile.links(direction)]
            lost = (spells.good_s * losses[0] + spells.bad_s * losses[1]) / (spells.good_s + spells.bad_s)
            mean = f"{good} good and {bad} bad: {measured('loss_ratio', lost)} of packets lost on average"
            met = -math.expm1(-max(0.0, trial_s - SHORTEST_SPAN_S) / (spells.good_s - SHORTEST_SPAN_S))
            few = (
                f"; only about {100 * met:.0f} % of trials will see a bad spell begin, if they take {took} as forecast"
            )
            where = f"{quoted(matrix.name_of(condition))} ({direction.value})"
            yield f"note: spells of {where}, {mean}{few if met < MET_ALWAYS else ''}"


def changes_missed(matrix: Matrix, forecast: Forecast, earlier: Iterable[Result] = ()) -> Iterator[str]:
    """A note for each condition whose trials may end before its network changes.

    They do if most of the `earlier` ones did, or, without earlier ones, if the forecast is hardly longer: it errs by a
    third.
    """
    earlier = list(earlier)
    early, ran = ended_early(earlier), {result.trial.block.condition.id for result in earlier}
    for condition, trial_s in _trial_seconds(matrix, forecast):
        moments_s = _moments_s(condition.profile)
        known = early.get(condition.id)
        may_end = condition.id not in ran and bool(moments_s) and min(moments_s) >= trial_s / FORECAST_ERROR
        if not moments_s or not (known or may_end):
            continue
        ended = (
            f"{sum(known)} of {counted(len(known), 'earlier trial')} ended before that"
            if known
            else f"its trials take about {duration(round(trial_s, 1))} as forecast, so most may end before that"
        )
        yield (
            f"note: {quoted(matrix.name_of(condition))} does not change before {setting('at_s', min(moments_s))}, and "
            f"{ended}: then nothing can be sure there; {earlier_moment(condition.workload)}"
        )


def kept_in_order(matrix: Matrix) -> str:
    """A note about the networks whose jitter keeps packets in order; empty if there are none."""
    places = [
        f"{profile.name} ({direction.value})"
        for profile in profiles_of(matrix)
        for direction in Direction
        if profile.link(direction).jitters_in_order
    ]
    return f"{IN_ORDER}: {', '.join(places)}" if places else ""
