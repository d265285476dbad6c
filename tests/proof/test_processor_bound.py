"""Which trials the processors limited: whoever had work all the time is named, and nobody else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwind.proof.processors import costs, processor_limits
from impair.messages import ClientRun, Machine, Processors

IDLE = {"client": 0.2, "server": 0.3, "router": 0.3}


def limits(
    shares: dict[str, float] | None = None, busy: float = 0.6, *, threads: int = 1, workers: int = 1
) -> list[str]:
    """Of a trial of 2 s on two processors, where hosts were busy for such shares of the time."""
    used = {host: 2.0 * share for host, share in (IDLE | (shares or {})).items()}
    before = {host: Processors(clock_s=50.0, cpu_s=7.0) for host in used}
    after = {host: Processors(clock_s=52.0, cpu_s=7.0 + seconds) for host, seconds in used.items()}
    before["router"] = replace(before["router"], working_s=9.0)
    after["router"] = replace(after["router"], cpu_s=7.1, working_s=9.0 + used["router"])
    return list(processor_limits(client_run(used["client"], 2 * 2.0 * busy), before, after, threads, workers))


def client_run(cpu_s: float, busy_s: float, wall_s: float = 2.0) -> ClientRun:
    return ClientRun(["h2load"], 0, False, wall_s, cpu_s, Machine(2, busy_s), 0.0, "", {}, {}, {})


def test_a_trial_with_time_to_spare_is_limited_by_no_processor() -> None:
    assert limits() == []


@pytest.mark.parametrize("host", ["client", "server", "router"])
def test_who_has_work_all_the_time_is_named(host: str) -> None:
    assert limits({host: 0.97}) == [f"CPU-bound: the {host} was busy for 97 % of the time"]
    assert limits({host: 0.89}) == []


def test_a_router_that_is_held_to_a_tenth_had_work_all_the_time_though_it_used_little() -> None:
    (said,) = limits({"router": 1.0}, busy=0.2)  # its processor time grew by 0.1 s
    assert said == "CPU-bound: the router was busy for 100 % of the time"


def test_a_client_of_two_threads_and_a_server_of_two_workers_have_two_processors_to_use() -> None:
    assert limits({"client": 1.2, "server": 1.2}, threads=2, workers=2) == []
    assert len(limits({"client": 1.9, "server": 1.9}, threads=2, workers=2)) == 2


def test_a_machine_whose_every_processor_is_busy_is_named() -> None:
    assert limits(busy=0.95) == ["CPU-bound: the machine's 2 CPUs were busy for 95 % of the time"]
    assert limits(busy=1.22) == ["CPU-bound: the machine's 2 CPUs were busy for 100 % of the time"]


def test_a_busy_machine_does_not_limit_a_testbed_that_waits_for_its_network() -> None:
    assert limits({"client": 0.01, "server": 0.01}, busy=1.0) == []


def test_hosts_that_tell_nothing_limit_nothing() -> None:
    nothing = {host: Processors(clock_s=1.0) for host in IDLE}
    assert list(processor_limits(client_run(0.0, 0.0, 1.0), nothing, nothing, 1, 1)) == []
    kernel = {**nothing, "router": Processors(clock_s=1.0, cpu_s=1.0)}  # its own time is nobody's
    later = {**nothing, "router": Processors(clock_s=2.0, cpu_s=2.0)}
    assert list(processor_limits(client_run(0.0, 0.0, 1.0), kernel, later, 1, 1)) == []


def test_what_each_container_used_is_told_with_the_share_of_time_in_which_something_waited() -> None:
    gains = {"client": 0.5, "server": 0.25, "router": 0.75, "router's container": 1.25}
    before = {host: Processors(10.0, cpu_s=1.0, host_pressure_s=5.0) for host in gains}
    after = {host: Processors(14.0, cpu_s=1.0 + gain, host_pressure_s=6.0) for host, gain in gains.items()}
    assert costs(client_run(0.5, 6.0, 4.0), before, after) == {
        "machine_busy_ratio": 0.75, "machine_steal_ratio": 0.0,
        "client_cpu_s": 0.5, "server_cpu_s": 0.25, "router_cpu_s": 1.25, "cpus_busy": 0.5,
        "pressure_ratio": 0.25,
    }  # fmt: skip


def test_hosts_that_tell_nothing_cost_nothing_that_is_known() -> None:
    silent = {host: Processors(1.0) for host in IDLE}
    assert costs(client_run(0.0, 0.0, 1.0), silent, silent) == {"machine_busy_ratio": 0.0, "machine_steal_ratio": 0.0}
