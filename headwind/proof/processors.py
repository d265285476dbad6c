"""Finds trials that were CPU-bound, or lacked CPUs. Pure: counters and the client's answer in, text out.

The rules are written here, before any run, and are the same for every protocol. A CPU-bound trial is still data; but
this machine determines which protocol was quicker in it (headwind/verdicts/findings.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwind.metric import BUSY, CPU_TIMES, MACHINE, PRESSURE, STEAL
from headwind.model import CPU_BOUND, Result
from impair.messages import ClientRun, Processors

_COSTS = [(metric, metric.key.removesuffix("_cpu_s")) for metric in CPU_TIMES]
BUSY_SHARE = 0.9  # of the time: a host that worked for longer always had work, except at the beginning and the end
ALONE_SHARE = 0.4  # of the CPUs: a block that keeps more of them busy would soon be CPU-bound, and runs alone
MOST_STEAL = 0.05  # CPU steal (share of a machine's CPUs) above which it is reported
OWN_SHARE = 0.2  # of the machine: a testbed that used less did not wait for itself, whatever else ran there
MOST_PRESSURE = 0.5  # CPUs are short if tasks waited for one during more than this share of a trial,
MOST_BUSY = 0.75  # unless a quarter of the CPUs was free, or busy with niced work, which waits for the others
WAITED = "had to wait for CPU time (contention)"  # of a trial that lacked CPUs


def lacked_cpus(result: Result) -> bool:
    """True if CPUs were short during a trial, for any reason: other lanes, other programs, the hypervisor.

    Such a trial counts like any other. The test is of a *share* of the trial's own time, which the same half second of
    contention exceeds in a trial of 0.4 s and not in one of 4 s: dropping these trials would drop the fast trials of an
    arm that has fast and slow ones, and make that arm look slower. So contention drops no trial, in any arm, of any
    length: it cannot favour an arm. It is prevented beforehand, by the choice of whole blocks (plan/cpu_demand.py), and
    it is reported: how many trials of each arm, and both ratios if those blocks change one (verdicts/contention.py).
    Gross harm has a limit in seconds, the same for every trial (proof/stability.py, LARGEST_GAP_S). Figures that a host
    does not report are assumed to be the worst, except for the pressure.
    """
    busy, pressure = result.metrics.get(MACHINE.key, 1.0), result.metrics.get(PRESSURE.key, 0.0)
    return pressure > MOST_PRESSURE and busy > MOST_BUSY


def processor_limits(
    run: ClientRun, before: Mapping[str, Processors], after: Mapping[str, Processors], threads: int, workers: int
) -> Iterator[str]:
    """A warning for each host, and the machine, whose CPUs were busy for BUSY_SHARE of a trial or more.

    `before` and `after` are those of the hosts around the client's run; `threads` are the client's and `workers` the
    server's, each of which can use one CPU. Unreported figures give no warning.
    """
    gains = {host: _gained(before[host], after[host]) for host in ("client", "server", "router")}
    shares = {
        "router": _share(gains["router"].working_s, gains["router"].clock_s),
        "server": _share(gains["server"].cpu_s, gains["server"].clock_s, workers),
        "client": _share(run.cpu_s, run.wall_s, threads),
    }
    for host, share in shares.items():
        if share >= BUSY_SHARE:
            yield f"{CPU_BOUND}: the {host} was busy for {100 * min(share, 1.0):.0f} % of the time"
    cpus = run.machine.cpus
    busy = _share(run.machine.busy_s, run.wall_s, cpus)
    own = _share(sum(gain.cpu_s or 0.0 for gain in gains.values()), run.wall_s, cpus)
    if busy >= BUSY_SHARE and own >= OWN_SHARE:
        yield f"{CPU_BOUND}: the machine's {cpus} CPUs were busy for {100 * min(busy, 1.0):.0f} % of the time"


def costs(
    run: ClientRun, before: Mapping[str, Processors], after: Mapping[str, Processors], *, has_browser: bool = False
) -> dict[str, float]:
    """The metrics CPU_TIMES, BUSY, MACHINE, STEAL and PRESSURE of a trial, as far as hosts report them.

    The router's time is that of its whole container, also if it runs its own kernel. BUSY is unknown if the server's
    time is: it would be too small. A browser has its own container, and its time counts as the client's.
    """
    gains = {host: _gained(before[host], now) for host, now in after.items() if host in before}
    used_s: dict[str, float] = {}
    for host, gain in gains.items():
        name = host if host in ("client", "server") else "router"
        if gain.cpu_s is not None:
            used_s[name] = max(gain.cpu_s, used_s.get(name, 0.0))
    if has_browser and "client" in used_s:
        used_s["client"] += run.cpu_s
    found = {metric.key: used_s[name] for metric, name in _COSTS if name in used_s}
    found[MACHINE.key] = min(1.0, _share(run.machine.busy_s, run.wall_s, run.machine.cpus))  # clocks differ
    found[STEAL.key] = _share(run.machine.steal_s, run.wall_s, run.machine.cpus)
    client = gains["client"]
    if "server" in used_s:
        found[BUSY.key] = _share(sum(used_s.values()), client.clock_s)
    if client.host_pressure_s is not None:
        found[PRESSURE.key] = _share(client.host_pressure_s, client.clock_s)
    return found


def _gained(before: Processors, after: Processors) -> Processors:
    """Growth of each of a host's times; None if it does not report one."""

    def grown(old: float | None, new: float | None) -> float | None:
        return None if old is None or new is None else new - old

    return Processors(
        clock_s=after.clock_s - before.clock_s,
        cpu_s=grown(before.cpu_s, after.cpu_s),
        host_pressure_s=grown(before.host_pressure_s, after.host_pressure_s),
        working_s=grown(before.working_s, after.working_s),
    )


def _share(used_s: float | None, passed_s: float, of: int = 1) -> float:
    """Share of the time used; 0 if one of them is unknown."""
    return used_s / (passed_s * of) if used_s and passed_s else 0.0
