"""Checks of a network that changes during a trial: were the changes made, in time, and what did each span do? Pure.

The spans of a direction are judged one by one, by netem's counts between the changes (`Evidence.spans`). The sums over
all spans with the same losses, duplicates, corruption and reordering are listed, and each single span that fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from headwind.arm import Arm
from headwind.format import counted, listed, measured, setting
from headwind.metric import Losses, Workload
from headwind.model import DATA_OUTCOMES, Check, Outcome, Result
from headwind.proof.decisions import check_decisions
from headwind.proof.evidence import CHANGE, REBIND, Evidence, Span, Stretch
from headwind.proof.expectation import Expectation
from headwind.proof.netem_counts import Events, NetemCounts, passage_of
from impair.messages import Course, DecisionCounters, NetemState
from impair.profile import NEXT_PACKET, Direction, Link, Profile, Rebinding, Spells, Steps

LATEST_S = 0.002  # of a change behind its moment
LATEST_SHARE = 0.05  # likewise of a step of a rate trace, of the step: its bytes are verified besides
REBOUND_S = 0.25  # likewise of a rebinding, which a program carries out: no result depends on its exact moment
ON_TIME = 0.95  # share of a trial's changes that must be; of fewer than 20 changes all
NS_S = 1e-9
MOST_LISTED = 8  # Links whose read-back has its own line
UNCHANGED, UNMOVED = "the network did not change", "nothing was rebound"  # how warnings of such trials begin
TOO_EARLY = "ended before the network changed"  # of trials: how a sentence about them ends
LATE = {"change_late_s", "rebinding_late_s"}  # checks that a trial has once its network changed
MILDER_SHARE, MILDER_PROBABILITY = 0.1, 0.001  # of attempts that met a change and were excluded; and that by chance
BAD_SPELLS = "in bad spells"  # label of the network of bad spells
FIRST = ""  # label of the network with which a direction begins


def labels(profile: Profile, direction: Direction) -> list[str]:
    """The label of each Link of a direction, in turn; Links with the same effect on packets' fates share one."""
    changes, links = profile.changes(direction), profile.links(direction)
    fates = [_fate(link) for link in links]
    if changes is None or isinstance(changes, Steps):
        begins = (0.0, *(changes.moments_s if changes else ()))
        moments = {fate: [at_s for at_s, own in zip(begins, fates, strict=True) if own == fate] for fate in fates}
        names = {fate: f"from {listed([setting('at_s', at_s) for at_s in own], 3)}" for fate, own in moments.items()}
    else:
        names = {fates[1]: BAD_SPELLS}
    names[fates[0]] = FIRST
    return [names[fate] for fate in fates]


def _fate(link: Link) -> tuple[object, ...]:
    return link.loss, link.duplicate, link.corrupt, link.reorder, link.ecn


def networks(profile: Profile, direction: Direction) -> dict[str, Link]:
    """A Link of a direction for each label."""
    found: dict[str, Link] = {}
    for label, link in zip(labels(profile, direction), profile.links(direction), strict=True):
        found.setdefault(label, link)
    return found


def counts_by_network(profile: Profile, direction: Direction, evidence: Evidence) -> dict[str, NetemCounts]:
    """netem's decisions in one direction by label: of the whole trial, or summed up over its spans."""
    if profile.changes(direction) is None or profile.trace(direction):
        return {FIRST: passage_of(direction, profile.link(direction), evidence.whole)}
    found: dict[str, list[NetemCounts]] = {}
    for label, _, counts in _counted(direction, profile, evidence):
        found.setdefault(label, []).append(counts)
    return {label: _total(counts) for label, counts in found.items()}


def _counted(direction: Direction, profile: Profile, evidence: Evidence) -> Iterator[tuple[str, Span, NetemCounts]]:
    """Label, span and counts of each span of a direction."""
    names = labels(profile, direction)
    for span in evidence.spans(direction):
        counts = passage_of(direction, profile.after(direction, span.changes), span.stretch)
        yield names[span.changes % len(names)], span, counts


def _total(counts: Sequence[NetemCounts]) -> NetemCounts:
    events = {
        item.name: _sum([getattr(each, item.name) for each in counts])
        for item in fields(NetemCounts)
        if isinstance(getattr(counts[0], item.name), Events)
    }
    return NetemCounts(
        **events, queue_drops=sum(each.queue_drops for each in counts), corrupted=sum(each.corrupted for each in counts)
    )


def _sum(events: Sequence[Events]) -> Events:
    first = events[0]
    return Events(sum(each.count for each in events), sum(each.decisions for each in events), first.share, first.doubt,
                  sum(each.slack for each in events))  # fmt: skip


def check_schedule(profile: Profile, evidence: Evidence) -> Iterator[Check]:
    """Check that every change that was due was made, and that ON_TIME of them were at most LATEST_S late.

    Of a rate trace LATEST_SHARE of a step is allowed.
    """
    for direction in Direction:
        if profile.changes(direction) is None:
            continue
        times, due = _times(direction, evidence), (evidence.due or {}).get(direction, [])
        made = {round(at_s, 6) for at_s, _ in times}
        missing = sum(round(at_s, 6) not in made for at_s in due)
        yield Check(
            direction, "missing_changes", 0.0, None, float(missing), 0.0, missing == 0, _missing(evidence, missing, due)
        )
        late_s = sorted(done_s - at_s for at_s, done_s in times)
        if late_s:
            latest_s = late_s[math.ceil(ON_TIME * len(late_s)) - 1]
            bounds = " to ".join(measured("late_s", each) for each in (late_s[0], late_s[-1]))
            note = f"{counted(len(late_s), 'change')}, {bounds} late"
            trace = profile.trace(direction)
            most_s = LATEST_SHARE * trace.step_s if trace else LATEST_S
            yield Check(direction, "change_late_s", 0.0, None, latest_s, most_s, 0 <= latest_s <= most_s, note)


def _times(direction: Direction, evidence: Evidence) -> list[tuple[float, float]]:
    """The moment of each change of a direction, and when it was made."""
    if traced := evidence.traced(direction):
        return [*zip(traced.at_s, traced.done_s, strict=False)]
    return [(each.at_s, each.done_s) for each in evidence.changes(direction)]


def check_rebinding(rebinding: Rebinding, evidence: Evidence) -> Iterator[Check]:
    """Check that a rebinding was made, in time, and that the server's host saw packets from the new address or port.

    One that was due after the client had ended is not made. A client that sent nothing after it was not seen to be
    rebound, so that its trial does not count.
    """
    course = evidence.course
    carried = [each for each in (course.carried if course else []) if each.kind == REBIND]
    errors = [each.error for each in carried if each.error]
    is_due = course is not None and course.stopped_s is not None and course.stopped_s > rebinding.at_s
    if is_due or carried:
        note = (
            errors[0]
            if errors
            else f"{counted(evidence.rebound or 0, 'packet')} from the client's new {rebinding.kind}"
        )
        router = evidence.after.router.rebound
        note += f" at the server; the router dropped {router.dropped} to the old one" if router and not errors else ""
        seen = float(evidence.rebound or 0)
        yield Check(Direction.UPLINK, "rebound_packets", 1.0, None, seen, None, seen >= 1 and not errors, note)
    for each in carried if not errors else ():
        late_s = each.done_s - each.at_s
        note = f"made {measured('late_s', late_s)} late"
        yield Check(Direction.UPLINK, "rebinding_late_s", 0.0, None, late_s, REBOUND_S, 0 <= late_s <= REBOUND_S, note)


def unchanged_warnings(profile: Profile, evidence: Evidence) -> Iterator[str]:
    """Warnings of a trial whose client ended before its network changed, or before it was rebound."""
    if not evidence.course or evidence.course.stopped_s is None:
        return
    made = {each.kind for each in evidence.course.carried}
    steps = [each for each in map(profile.changes, Direction) if isinstance(each, Steps)]
    if steps and CHANGE not in made:
        first_s = min(each.moments_s[0] for each in steps)
        yield f"{UNCHANGED}: the client had ended by {setting('at_s', first_s)}"
    if profile.rebinding and REBIND not in made:
        yield f"{UNMOVED}: the client had ended by {setting('at_s', profile.rebinding.at_s)}"


def earlier_moment(workload: Workload) -> str:
    """Advice for trials that end before their network changes."""
    if has_unmeasured_connection(workload):
        return "use `kind: transfer` and an earlier moment (that of `ttfb` may fall into its unmeasured connection)"
    return "write an earlier moment or a larger workload"


def has_unmeasured_connection(workload: Workload) -> bool:
    """True if changes may fall into an unmeasured connection: the first of `ttfb`. A page's first visit meets none."""
    return workload.resumes and not workload.browser


def has_spells(profile: Profile) -> bool:
    """True if bad spells begin at random moments, in either direction."""
    return any(isinstance(profile.changes(direction), Spells) for direction in Direction)


def is_unchanged(warnings: Sequence[str]) -> bool:
    """True if these warnings of a trial say that its client ended before the network changed, or it was rebound."""
    return any(each.startswith((UNCHANGED, UNMOVED)) for each in warnings)


def early_by_arm(results: Iterable[Result]) -> dict[str, dict[Arm, list[bool]]]:
    """By condition id and arm, whether each trial with data ended before its network changed."""
    early: dict[str, dict[Arm, list[bool]]] = {}
    for result in results:
        if result.outcome in DATA_OUTCOMES:
            of_arms = early.setdefault(result.trial.block.condition.id, {})
            of_arms.setdefault(result.trial.arm, []).append(is_unchanged(result.proof.warnings))
    return early


def ended_early(results: Iterable[Result]) -> dict[str, list[bool]]:
    """By condition id, whether each trial ended before its network changed; only if half of each arm's or more did."""
    return {
        name: [each for of_arm in of_arms.values() for each in of_arm]
        for name, of_arms in early_by_arm(results).items()
        if all(2 * sum(of_arm) >= len(of_arm) for of_arm in of_arms.values())
    }


def met_bad_spell(result: Result) -> bool:
    """True if the network of a trial with spells had a bad one before the client ended."""
    return any(check.span == BAD_SPELLS for check in result.proof.checks)


def milder(results: Iterable[Result]) -> dict[str, str]:
    """By condition id, a sentence if attempts that met a change of the network were excluded more often than others.

    The compared trials then met a milder network than the requested one. `results` has every attempt. Chance gives as
    many (hypergeometric) in fewer than MILDER_PROBABILITY of conditions.
    """
    attempts: dict[str, list[tuple[bool, bool]]] = {}
    for result in results:
        if result.outcome in (*DATA_OUTCOMES, Outcome.INVALID):
            met = met_bad_spell(result) or any(check.quantity in LATE for check in result.proof.checks)
            is_excluded = result.outcome is Outcome.INVALID
            attempts.setdefault(result.trial.block.condition.id, []).append((met, is_excluded))
    sentences = {name: _of_excluded(met_excluded) for name, met_excluded in attempts.items()}
    return {name: sentence for name, sentence in sentences.items() if sentence}


def _of_excluded(attempts: Sequence[tuple[bool, bool]]) -> str:
    met, excluded, both = (
        sum(met for met, _ in attempts),
        sum(lost for _, lost in attempts),
        attempts.count((True, True)),
    )
    others, lost = len(attempts) - met, excluded - both
    if not both or both < MILDER_SHARE * met:
        return ""
    ways = sum(
        math.comb(met, each) * math.comb(others, excluded - each) for each in range(both, min(met, excluded) + 1)
    )
    if ways >= MILDER_PROBABILITY * math.comb(len(attempts), excluded):
        return ""
    rest = f"{lost} of the other {others}" if lost else f"none of the other {others}"
    return (
        f"{both} of {met} attempts that met a change of the network were excluded, and {rest}: the compared trials had "
        "a milder network"
    )


def _missing(evidence: Evidence, missing: int, due: Sequence[float]) -> str:
    course = evidence.course or Course()
    errors = [each.error for each in course.carried] + [each.error for each in course.traced]
    if any(errors):
        return next(filter(None, errors))
    if evidence.course is None or evidence.course.stopped_s is None:
        return "the clock did not start: no packet of the client came"
    return f"{len(due) - missing} of {counted(len(due), 'change')} made"


def check_spans(direction: Direction, profile: Profile, evidence: Evidence) -> Iterator[Check]:
    """Check netem's decisions in the spans of a direction, and the read-back of delays and rates that follow."""
    configured: dict[str, Link] = {}
    failed: list[Check] = []
    for label, span, counts in _counted(direction, profile, evidence):
        link, read = profile.after(direction, span.changes), span.configured.link
        configured.setdefault(label, read)
        checks = check_decisions(direction, link, read, counts, label, _when(span))
        failed += [check for check in checks if not check.passed]
        failed += [check for check in _check_read(direction, link, read, label, _when(span)) if not check.passed]
    for label, counts in counts_by_network(profile, direction, evidence).items():
        link = networks(profile, direction)[label]
        yield from check_decisions(direction, link, configured[label], counts, label, "in all such spans")
    yield from _listed(direction, profile, evidence)
    yield from _check_next_packets(direction, profile, evidence)
    yield from failed


def _check_next_packets(direction: Direction, profile: Profile, evidence: Evidence) -> Iterator[Check]:
    """Check that each change that was to take the next packet took one: counted from before it to the next change."""
    changes = evidence.changes(direction)
    ends = [*(each.before for each in changes), evidence.after.router][1:]  # none if there was no change
    for number, (change, end) in enumerate(zip(changes, ends, strict=True), 1):
        states = change.before.netem(direction), end.netem(direction)
        if profile.after(direction, number).loss != NEXT_PACKET or not all(states):
            continue
        grown = Stretch(change.before, end)
        lost = losses(states[1]) - losses(states[0])
        label = f"from {setting('at_s', change.at_s)}"
        passed = lost == 1 or (lost == 0 and grown.entered(direction) == 0)
        note = f"{lost} of {counted(grown.entered(direction), 'packet')}"
        yield Check(direction, "lost_packets", 1.0, None, float(lost), 0.0, passed, note, label)


def losses(state: NetemState | None) -> int:
    """Packets that a netem dropped so far: by its loss, if it counts these apart from a full queue's."""
    if state is None:
        return 0
    return state.counters.dropped if isinstance(state.counters, DecisionCounters) else state.counters.drops


def _listed(direction: Direction, profile: Profile, evidence: Evidence) -> Iterator[Check]:
    """A check of the read-back of each Link that begins later and has another delay or rate, once."""
    seen: set[int] = set()
    first, links, changes = profile.link(direction), profile.links(direction), evidence.changes(direction)
    for span in evidence.spans(direction):
        number = span.changes % len(links)
        link = links[number]
        if number in seen or (link.delay, link.rate) == (first.delay, first.rate) or len(seen) >= MOST_LISTED:
            continue
        seen.add(number)
        label = f"from {setting('at_s', changes[span.changes - 1].at_s)}"  # as requested: the same in every trial
        yield from _check_read(direction, link, span.configured.link, label, _when(span))


def _check_read(direction: Direction, link: Link, read: Link, label: str, when: str) -> Iterator[Check]:
    """Check the read-back of delay and rate: only the first network is probed."""
    figures: Mapping[str, tuple[float | None, float | None]] = {
        "delay_s": (_delay_s(link), _delay_s(read)),
        "rate_bps": (_rate_bps(link), _rate_bps(read)),
    }
    for quantity, (wanted, got) in figures.items():
        if wanted is not None or got is not None:
            is_same = abs((wanted or 0.0) - (got or 0.0)) <= NS_S
            yield Check(direction, quantity, wanted, got, None, None, is_same, f"read back {when}", label)


def _delay_s(link: Link) -> float | None:
    return link.delay.delay_s if link.delay else None


def _rate_bps(link: Link) -> float | None:
    return float(link.rate.rate_bps) if link.rate else None


def _when(span: Span) -> str:
    if math.isinf(span.until_s):
        return f"from {setting('at_s', round(span.from_s, 4))} on"
    return f"from {setting('at_s', round(span.from_s, 4))} to {setting('at_s', round(span.until_s, 4))}"


def downlink_losses(profile: Profile, evidence: Evidence) -> list[Losses]:
    """The packets of the downlink that its changes dropped. Changes with a loss that follow each other are one.

    Those that drop one packet each stay apart. Packets that the network dropped before its first change are left out.
    """
    down, changes = Direction.DOWNLINK, evidence.changes(Direction.DOWNLINK)
    links = [profile.after(down, number) for number in range(len(changes) + 1)]
    latency_s = max(map(_longest_s, links))
    found: list[Losses] = []
    for number, (change, link) in enumerate(zip(changes, links[1:], strict=True), 1):
        if not link.loss:
            continue
        following = changes[number] if number < len(changes) else None
        end = following.before if following and links[number + 1].loss else following.after if following else None
        lost = losses((end or evidence.after.router).netem(down)) - losses(change.before.netem(down))
        is_one = link.loss == NEXT_PACKET
        until_s = change.began_s if is_one else following.done_s if following else math.inf
        own = Losses(change.began_s, until_s, lost, latency_s)
        if not is_one and links[number - 1].loss not in (None, NEXT_PACKET) and found:
            own = Losses(found[-1].from_s, until_s, found.pop().packets + lost, latency_s)
        found.append(own)
    return found


def _longest_s(link: Link) -> float:
    """Longest time that netem can hold a packet of a link; a separate queue is before netem, and so before its loss."""
    return Expectation.of(link).longest_s(link.room if link.rate and not link.queue else 0)
