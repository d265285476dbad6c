"""Finds trials that were limited by processors, or lacked them. Pure: counters and the client's answer in, text out.

The rules are written here, before any run, and are the same for every protocol. A trial that one of them names is
still data; but which protocol was quicker in it is a matter of this machine (headwind/verdicts/findings.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwind.metric import BUSY, MACHINE, PRESSURE, PROCESSOR_TIMES, STOLEN
from headwind.model import PROCESSOR_BOUND, Result
from impair.messages import ClientRun, Processors

_COSTS = [(metric, metric.key.removesuffix("_cpu_s")) for metric in PROCESSOR_TIMES]
BUSY_SHARE = 0.9  # of the time: who had work for longer had it always, but for the beginning and the end
MOST_STOLEN = 0.05  # of a machine's processors may its own host keep from it before that is told
OWN_SHARE = 0.2  # of the machine: a testbed that used less did not wait for itself, whatever else ran there
MOST_PRESSURE = 0.5  # of a trial's time something of the machine may wait for a processor before that is short,
MOST_BUSY = 0.75  # unless a quarter of the processors was free, or busy with niced work, which waits for the others


def lacked_processors(result: Result) -> bool:
    """Whether processors were short during a trial, whoever used them: other lanes, other programs, the hypervisor.

    Such a trial counts like any other. The test is of a *share* of the trial's own time, which the same half second of
    contention exceeds in a trial of 0.4 s and not in one of 4 s: whoever drops what it finds drops the fast trials of
    an arm that has fast and slow ones, and makes that arm look slower. So contention drops nothing, in no arm, whatever
    its length: it cannot favour anyone. It is prevented beforehand, by the choice of whole blocks (plan/needs.py), and
    it is reported: how many trials of each arm, and both ratios if those blocks change one (verdicts/contention.py).
    Harm that is gross has a limit in seconds, the same for every trial (proof/stability.py, LARGEST_GAP_S).
    Figures that a host does not report are assumed to be the worst, except for the pressure.
    """
    busy, pressure = result.metrics.get(MACHINE.key, 1.0), result.metrics.get(PRESSURE.key, 0.0)
    return pressure > MOST_PRESSURE and busy > MOST_BUSY


def processor_limits(
    run: ClientRun, before: Mapping[str, Processors], after: Mapping[str, Processors], threads: int, workers: int
) -> Iterator[str]:
    """A warning for each host, and the machine, whose processors were busy for BUSY_SHARE of a trial or more.

    `before` and `after` are those of the hosts around the client's run; `threads` are the client's and `workers` the
    server's, each of which can use one processor. What the hosts do not tell limits nothing.
    """
    gains = {host: _gained(before[host], after[host]) for host in ("client", "server", "router")}
    shares = {
        "router": _share(gains["router"].working_s, gains["router"].clock_s),
        "server": _share(gains["server"].cpu_s, gains["server"].clock_s, workers),
        "client": _share(run.cpu_s, run.wall_s, threads),
    }
    for host, share in shares.items():
        if share >= BUSY_SHARE:
            yield f"{PROCESSOR_BOUND}: the {host} had work for {min(share, 1.0):.0%} of the time"
    cpus = run.machine.cpus
    busy = _share(run.machine.busy_s, run.wall_s, cpus)
    own = _share(sum(gain.cpu_s or 0.0 for gain in gains.values()), run.wall_s, cpus)
    if busy >= BUSY_SHARE and own >= OWN_SHARE:
        yield f"{PROCESSOR_BOUND}: the machine's {cpus} processors were busy for {min(busy, 1.0):.0%} of the time"


def costs(run: ClientRun, before: Mapping[str, Processors], after: Mapping[str, Processors]) -> dict[str, float]:
    """The metrics PROCESSOR_TIMES, BUSY, MACHINE, STOLEN and PRESSURE of a trial, as far as hosts tell them.

    The router's time is that of its whole container, also where a kernel of its own runs in it.
    """
    gains = {host: _gained(before[host], now) for host, now in after.items() if host in before}
    used_s: dict[str, float] = {}
    for host, gain in gains.items():
        name = host if host in ("client", "server") else "router"
        if gain.cpu_s is not None:
            used_s[name] = max(gain.cpu_s, used_s.get(name, 0.0))
    found = {metric.key: used_s[name] for metric, name in _COSTS if name in used_s}
    found[MACHINE.key] = _share(run.machine.busy_s, run.wall_s, run.machine.cpus)
    found[STOLEN.key] = _share(run.machine.stolen_s, run.wall_s, run.machine.cpus)
    client = gains["client"]
    if used_s:
        found[BUSY.key] = _share(sum(used_s.values()), client.clock_s)
    if client.host_pressure_s is not None:
        found[PRESSURE.key] = _share(client.host_pressure_s, client.clock_s)
    return found


def _gained(before: Processors, after: Processors) -> Processors:
    """How much each of a host's times grew; None for what it does not tell."""

    def grown(old: float | None, new: float | None) -> float | None:
        return None if old is None or new is None else new - old

    return Processors(
        clock_s=after.clock_s - before.clock_s,
        cpu_s=grown(before.cpu_s, after.cpu_s),
        host_pressure_s=grown(before.host_pressure_s, after.host_pressure_s),
        working_s=grown(before.working_s, after.working_s),
    )


def _share(used_s: float | None, passed_s: float, of: int = 1) -> float:
    """0 where one of them is not known."""
    return used_s / (passed_s * of) if used_s and passed_s else 0.0
