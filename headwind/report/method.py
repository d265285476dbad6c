"""The report's description of the method, generated from the run's settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headwind.arm import Protocol
from headwind.engines import ENGINES
from headwind.format import arm_name, counted, duration, enumerated, override_texts, served_text, setting
from headwind.model import CONTROL_RATIO
from headwind.plan.doubts import kept_in_order
from headwind.proof import bursts
from headwind.report.verdicts import dependence_text
from headwind.run.codec import State
from headwind.run.data import LAST_BUDGET, RunData
from headwind.settings import Windows
from headwind.verdicts.findings import rule_of
from headwind.verdicts.verdict import FEWEST_STALLS
from impair.profile import Direction, Profile
from servers.objects import size_of


def method(data: RunData) -> Iterator[tuple[str, str]]:
    """Describe how the figures of this run came about, to judge and to reproduce them: (name, text) pairs."""
    matrix = data.matrix
    yield from (("Blocks", sentence) for sentence in _blocks(data))
    yield from (("Self-checks", sentence) for sentence in _twins(data))
    yield from _workloads(data)
    yield "Network", _impairment(data)
    yield from (("Reordering", sentence) for sentence in _overtaking(data))
    yield from (("Bursts", sentence) for sentence in bursts.describe(item.profile for item in matrix.conditions))
    yield "Congestion control", f"{matrix.congestion.tcp} for TCP, {matrix.congestion.quic} for QUIC"
    sizes = (matrix.settings.server, matrix.settings.client)
    meaning = " (unlimited: too large to limit a transfer)" if Windows.UNLIMITED in sizes else ""
    yield "Windows and buffers", f"server {sizes[0]}, h2load {sizes[1]}{meaning}"
    if texts := override_texts(matrix.arms):
        yield "Arms that differ", f"{'; '.join(texts)}."
    timeout = (
        f"{setting('timeout_s', matrix.timeout_s)}. Trials that timed out or failed count as slower than all that "
        "finished. Trials whose network was not verified (invalid) and lab errors are excluded and run again."
    )
    yield "Timeout", timeout
    yield from _verdicts(data)


def _blocks(data: RunData) -> Iterator[str]:
    matrix, least, most = data.matrix, data.matrix.repeat.least, data.matrix.repeat.most
    repeat = f"{least} to {most} blocks" if least < most else counted(most, "block")
    word = "protocol" if matrix.arms_word == "protocol" else "arm, a protocol with its settings"
    seeded = " with the same seeds" if data.was_seeded else ""
    each = "each of " if len(matrix.conditions) > 1 else ""
    yield (
        f"{repeat} were planned for {each}{counted(len(matrix.conditions), 'condition')} (a network profile with a "
        f"workload). A block runs every {word} "
        f"({', '.join(map(arm_name, matrix.arms))}) once, over the same "
        f"network{seeded}, in an order that changes from block to block. Seed of the run: {matrix.seed}."
    )
    if len(data.lanes) > 1:
        parallel = [bool(result.place.beside) for result in data.latest]
        some = "Blocks" if 2 * sum(parallel) > len(parallel) else "Some blocks"
        ran = f"{some} ran in parallel" if any(parallel) else "Blocks ran one at a time"
        yield f"{ran} on {len(data.lanes)} separate testbeds, each block on one of them."


def _impairment(data: RunData) -> str:
    engine = ENGINES.get(str(data.environment.get("engine")))
    netem = engine.netem if engine else "netem"
    random = (
        "The seeds fix netem's decisions packet by packet; protocols send different packets, so equal seeds do not "
        "mean that they lose the same bytes."
        if data.was_seeded
        else "The router's kernel cannot seed netem (6.6 and later can): the shares are as requested, but the run "
        "cannot be repeated packet by packet."
    )
    return f"The router can impair each direction independently, on egress, with {netem}. {random}"


def _twins(data: RunData) -> Iterator[str]:
    check = data.matrix.selfcheck
    if check and (check.again or check.slower):
        places = [
            f"{what}in blocks of {enumerated(profiles)}"
            for what, profiles in (
                ("", check.again),
                (f"over a {100 * CONTROL_RATIO:.0f} % slower network ", check.slower),
            )
            if profiles
        ]
        yield f"{arm_name(check.arm)} runs again {', and '.join(places)}."


def _workloads(data: RunData) -> Iterator[tuple[str, str]]:
    """Each workload, the content, and the client that measures each kind of workload."""
    protocols = {arm.protocol.value for arm in data.matrix.arms if "streams" not in dict(arm.overrides.workload)}
    for workload in dict.fromkeys(condition.workload for condition in data.matrix.conditions):
        name, path = f"Workload `{workload.name}`", workload.object_path()
        yield name, f"{workload.sentence(protocols)}{served_text(workload)}"
        has_own = any(arm.server.program for arm in data.matrix.arms)
        if not workload.files and has_own and (size_of(path) is None or "?" in path):
            yield name, f"The bytes of {path} were counted, but not compared: only the server knows them."
    if site := data.matrix.content:
        files = f"{counted(len(site.files), 'file')}, {counted(site.bytes, 'byte')} in total"
        yield "Content", f"A folder with {files}; the hash of all names and files is {site.sha256[:12]}."
    for kind in dict.fromkeys(type(condition.workload) for condition in data.matrix.conditions):
        yield "Measured times", kind.method()
    yield from (("Client", sentence) for sentence in _padding(data))


def _padding(data: RunData) -> Iterator[str]:
    shipped = [
        arm_name(arm) for arm in data.matrix.arms
        if arm.protocol is Protocol.H3 and arm.settings(data.matrix.settings).client is Windows.AS_SHIPPED
    ]  # fmt: skip
    if shipped and any(condition.workload.program == "h2load" for condition in data.matrix.conditions):
        yield (
            f"The client of {enumerated(shipped)} is h2load as shipped, which pads QUIC packets that carry requests "
            "to full size. The uplink is therefore heavier than necessary, which affects the result if it is slow."
        )


def _overtaking(data: RunData) -> Iterator[str]:
    profiles: dict[str, Profile] = {item.profile.name: item.profile for item in data.matrix.conditions}
    ways = [
        f"{profile.name} ({direction.value})"
        for profile in profiles.values()
        for direction in Direction
        if profile.link(direction).reorders
    ]
    if ways:
        yield f"Packets can be reordered (by jitter, or by `reorder`) in: {', '.join(ways)}."
    if note := kept_in_order(data.matrix):
        yield f"{note}."


def _verdicts(data: RunData) -> Iterator[tuple[str, str]]:
    repeat, rule = data.matrix.repeat, rule_of(data.matrix, complete=data.status.state is State.FINISHED)
    verdicts = (
        f"The median of each block's ratio, with its distribution-free "
        f"{setting('confidence_ratio', rule.confidence)} interval (order statistics); margin "
        f"{setting('margin_ratio', rule.margin_ratio)}; sure if it survives e-BH over all metrics at 10 %. A protocol "
        f"is never called faster or tied if its unfinished trials exceed the other's by at least {FEWEST_STALLS} and "
        f"by over {setting('stall_ratio', rule.stall_ratio)} of the blocks. docs/report.md defines these terms."
    )
    yield "Verdicts", verdicts
    if text := dependence_text(data.judgement.dependence):
        yield "Independence", f"Intervals assume independent blocks. {text[0].upper()}{text[1:]}."
    if repeat.is_adaptive:
        limit = f", within the time budget{_budgets(data)}" if repeat.budget_s else ""
        order = (
            "The next blocks were given to the condition that was predicted to reach a verdict in the least "
            f"time{limit}. The intervals hold at any stopping time (they are anytime-valid), so this does not raise "
            "the share of false verdicts, but it pushes the medians of the ratios slightly away from 1."
        )
        few = f"No condition has more blocks than the minimum of {repeat.least}{limit}."
        yield "Order of blocks", order if data.searched or _is_beyond_minimum(data) else few


def _is_beyond_minimum(data: RunData) -> bool:
    """True if a condition has more blocks than the minimum, so that its results decided on their number."""
    blocks = {(result.trial.block.condition.id, result.trial.block.index) for result in data.latest}
    return max(Counter(name for name, _ in blocks).values(), default=0) > data.matrix.repeat.least


def _budgets(data: RunData) -> str:
    """The budget at the first start, and the last one if it is another."""
    first, last = data.matrix.repeat.budget_s, data.environment.get(LAST_BUDGET)
    later = f" at first, {duration(last)} when last resumed" if last and last != first else ""
    return f" ({duration(first)}{later})" if first else ""
