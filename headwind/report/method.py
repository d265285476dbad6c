"""The report's description of the method, generated from the run's settings."""

from __future__ import annotations

from collections.abc import Iterator

from headwind.arm import Protocol
from headwind.engines import ENGINES
from headwind.format import arm_name, counted, duration, enumerated, override_texts, served_text, setting
from headwind.model import CONTROL_RATIO, NOWHERE
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


def method(data: RunData) -> Iterator[str]:
    """Paragraphs with everything that a reader needs to judge the figures or to reproduce them."""
    matrix, least, most = data.matrix, data.matrix.repeat.least, data.matrix.repeat.most
    repeat = f"at least {least} and at most {most} blocks" if least < most else counted(most, "block")
    names = ", ".join(map(arm_name, matrix.arms))
    word = "protocol" if matrix.arms_word == "protocol" else "arm, a protocol with its settings"
    seeded = " with the same seeds" if data.was_seeded else ""
    yield (
        f"Each of {counted(len(matrix.conditions), 'condition')} (a network profile with a workload) was planned for "
        f"{repeat}. A block runs every {word} ({names}) once, over the same network{seeded}, in an order "
        f"that changes from block to block. The run's seed is {matrix.seed}."
    )
    yield from _lanes(data)
    yield from _twins(data)
    yield from _workloads(data)
    engine = ENGINES.get(str(data.environment.get("engine")))
    yield (
        "Client and server reach each other only through the router, which impairs each direction independently, on "
        f"egress, with {engine.netem if engine else 'netem'}. {_randomness(data)}"
    )
    yield from _overtaking(data)
    yield from bursts.describe(item.profile for item in data.matrix.conditions)
    yield from _client(data)
    yield f"Congestion control: {matrix.congestion.tcp} for TCP, {matrix.congestion.quic} for QUIC."
    sizes = (matrix.settings.server, matrix.settings.client)
    meaning = " (unlimited: too large to limit a transfer)" if Windows.UNLIMITED in sizes else ""
    yield f"Windows and buffers: server {sizes[0]}, h2load {sizes[1]}{meaning}."
    yield from _overrides(data)
    yield f"A trial is stopped after {setting('timeout_s', matrix.timeout_s)}."
    yield from _analysis()
    yield from _verdicts(data)


def _lanes(data: RunData) -> Iterator[str]:
    lanes = {(result.place.host, result.place.lane) for result in data.results if result.place != NOWHERE}
    if len(lanes) > 1:
        yield (
            f"Blocks ran in parallel on {len(lanes)} testbeds with separate addresses; all trials of a block ran on "
            "the same one, one after another."
        )


def _randomness(data: RunData) -> str:
    if data.was_seeded:
        return (
            "The seeds fix netem's decisions packet by packet; protocols send different packets, so equal seeds do not "
            "mean that they lose the same bytes."
        )
    return (
        "The router's kernel cannot seed netem (6.6 and later can), so its decisions came from the kernel's own "
        "random numbers: the shares are as requested, but the run cannot be repeated packet by packet."
    )


def _twins(data: RunData) -> Iterator[str]:
    check = data.matrix.selfcheck
    if check and (check.again or check.slower):
        name = arm_name(check.arm)
        places = [
            f"{what}in blocks of {enumerated(profiles)}"
            for what, profiles in (
                ("", check.again),
                (f"over a {100 * CONTROL_RATIO:.0f} % slower network ", check.slower),
            )
            if profiles
        ]
        yield f"As self-checks, {name} runs again {', and '.join(places)}."


def _overrides(data: RunData) -> Iterator[str]:
    texts = override_texts(data.matrix.arms)
    if texts:
        yield (
            f"Some arms differ from this in workload, congestion control, or windows and buffers: {'; '.join(texts)}."
        )


def _workloads(data: RunData) -> Iterator[str]:
    """Description of each workload, a sentence for each."""
    protocols = {arm.protocol.value for arm in data.matrix.arms if "streams" not in dict(arm.overrides.workload)}
    for workload in dict.fromkeys(condition.workload for condition in data.matrix.conditions):
        yield f"The workload `{workload.name}`: {workload.sentence(protocols)}{served_text(workload)}"
        path = workload.object_path()
        has_own = any(arm.server.program for arm in data.matrix.arms)
        if not workload.files and has_own and (size_of(path) is None or "?" in path):
            yield f"The bytes of {path} were counted, but not compared: only the server knows them."
    if site := data.matrix.content:
        files = f"{counted(len(site.files), 'file')}, {counted(site.bytes, 'byte')} in total"
        yield f"The content is a folder with {files}; the hash of all names and files is {site.sha256[:12]}."


def _client(data: RunData) -> Iterator[str]:
    for kind in dict.fromkeys(type(condition.workload) for condition in data.matrix.conditions):
        yield kind.method()
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


def _verdicts(data: RunData) -> Iterator[str]:
    repeat, rule = data.matrix.repeat, rule_of(data.matrix, complete=data.status.state is State.FINISHED)
    slight = setting("margin_ratio", rule.margin_ratio)
    yield (
        "A comparison of A against B takes ln(time of B / time of A) in each block, and then the median of these, with "
        f"its distribution-free {setting('confidence_ratio', rule.confidence)} interval (order statistics). If the "
        f"whole interval of the ratio is above {1 + rule.margin_ratio:g}, A is faster; below 1/"
        f"{1 + rule.margin_ratio:g}, slower; between them, tied. If the interval excludes 1 but includes ratios within "
        f"{slight} of 1, the lead may be under {slight}. A protocol that finishes in significantly more blocks is "
        "ahead, however slow it is. A protocol whose unfinished trials exceed the other's by at least "
        f"{FEWEST_STALLS}, and by over {setting('stall_ratio', rule.stall_ratio)} of the blocks, is never called "
        "faster or tied. A result is sure if it survives e-BH, a correction for multiple comparisons: at most 10 % of "
        "all sure results, over all metrics together, are expected to be wrong."
    )
    if text := dependence_text(data.judgement.dependence):
        yield f"Intervals assume independent blocks. {text[0].upper()}{text[1:]}."
    if repeat.is_adaptive:
        limit = f", within the time budget{_budgets(data)}" if repeat.budget_s else ""
        yield (
            "The number of blocks of each condition depended on the measurements: the next blocks were given to the "
            f"condition that was predicted to reach a verdict in the least time{limit}. The intervals hold at any "
            "stopping time (they are anytime-valid), so this choice does not raise the share of false verdicts, "
            "but it pushes the medians of the ratios slightly away from 1."
        )


def _budgets(data: RunData) -> str:
    """The budget at the first start, and the last one if it is another."""
    first, last = data.matrix.repeat.budget_s, data.environment.get(LAST_BUDGET)
    later = f" at first, {duration(last)} when last resumed" if last and last != first else ""
    return f" ({duration(first)}{later})" if first else ""


def _analysis() -> Iterator[str]:
    yield (
        "Medians are over trials. Trials that timed out or failed count as slower than all that finished, so a median "
        "that falls on a timed-out trial is shown as “> 60 s”, and on a failed one as “not completed”."
    )
    yield (
        "Trials whose network was not verified (invalid) and trials that failed because of the "
        "lab (lab error) are reported, but in no comparison and in no median. They run again, and all attempts stay on "
        "record."
    )
