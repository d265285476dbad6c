"""Finds trials that were limited by processors, not by the network. Pure: counters and client's answer in, text out.

The rules are written here, before any run, and are the same for every protocol. A trial that one of them names is
still data; but which protocol was quicker in it is a matter of this machine (headwind/verdicts/findings.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwind.metric import BUSY, PRESSURE, PROCESSOR_TIMES
from headwind.model import PROCESSOR_BOUND

_COSTS = [(metric, metric.key.removesuffix("_cpu_s")) for metric in PROCESSOR_TIMES]
BUSY_SHARE = 0.9  # of the time: who had work for longer had it always, but for the beginning and the end
OWN_SHARE = 0.2  # of the machine: a testbed that used less did not wait for itself, whatever else ran there


def processor_limits(
    answer: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], threads: int, workers: int
) -> Iterator[str]:
    """A warning for each host, and the machine, whose processors were busy for BUSY_SHARE of a trial or more.

    `answer` is the client's, `before` and `after` are counters around its run; `threads` are the client's and
    `workers` the server's, each of which can use one processor. What the hosts do not tell limits nothing.
    """
    gains = {host: _gain(before, after, host) for host in ("client", "server", "router")}
    wall_s = float(answer.get("wall_s") or 0.0)
    shares = {
        "router": _share(gains["router"].get("working_s"), gains["router"].get("clock_s")),
        "server": _share(gains["server"].get("cpu_s"), gains["server"].get("clock_s"), workers),
        "client": _share(answer.get("cpu_s"), wall_s, threads),
    }
    for host, share in shares.items():
        if share >= BUSY_SHARE:
            yield f"{PROCESSOR_BOUND}: the {host} had work for {share:.0%} of the time"
    machine = answer.get("machine") or {}
    cpus = int(machine.get("cpus") or 1)
    busy = _share(machine.get("busy_s"), wall_s, cpus)
    own = _share(sum(gain.get("cpu_s", 0.0) for gain in gains.values()), wall_s, cpus)
    if busy >= BUSY_SHARE and own >= OWN_SHARE:
        yield f"{PROCESSOR_BOUND}: the machine's {cpus} processors were busy for {busy:.0%} of the time"


def costs(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, float]:
    """The metrics PROCESSOR_TIMES, BUSY and PRESSURE between two readings of the counters, as far as hosts tell them.

    The router's time is that of its whole container, also where a kernel of its own runs in it.
    """
    used_s: dict[str, float] = {}
    for host in after:
        name = host if host in ("client", "server") else "router"
        if (cpu_s := _gain(before, after, host).get("cpu_s")) is not None:
            used_s[name] = max(cpu_s, used_s.get(name, 0.0))
    found = {metric.key: used_s[name] for metric, name in _COSTS if name in used_s}
    client = _gain(before, after, "client")
    if found and "clock_s" in client:
        found[BUSY.key] = _share(sum(used_s.values()), client["clock_s"])
    if "host_pressure_s" in client:
        found[PRESSURE.key] = _share(client["host_pressure_s"], client["clock_s"])
    return found


def _gain(before: Mapping[str, Any], after: Mapping[str, Any], host: str) -> dict[str, float]:
    """How much each of a host's times grew; those that it does not tell are left out."""
    old, new = (moment.get(host, {}).get("processors") or {} for moment in (before, after))
    return {name: new[name] - old[name] for name in new if new[name] is not None and old.get(name) is not None}


def _share(used_s: float | None, passed_s: float | None, of: int = 1) -> float:
    """0 where one of them is not known."""
    return used_s / (passed_s * of) if used_s and passed_s else 0.0
