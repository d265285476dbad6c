"""What a container can see of the processors that it has, whichever cgroup version the host keeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from impair import processors
from impair.messages import Machine, Processors

VERSION_1 = {
    "cpu/cpu.stat": "nr_periods 50\nnr_throttled 40\nthrottled_time 2500000000\n",
    "cpu/cpu.cfs_quota_us": "30000\n", "cpu/cpu.cfs_period_us": "100000\n", "cpu/cpu.shares": "1024\n",
    "cpuacct/cpuacct.usage": "900000\n", "memory/memory.limit_in_bytes": "9223372036854771712\n",
}  # fmt: skip
VERSION_2 = {
    "cpu.stat": "usage_usec 900\nnr_periods 50\nnr_throttled 40\nthrottled_usec 2500000\n",
    "cpu.max": "30000 100000\n", "cpu.weight": "100\n", "memory.max": "max\n",
    "cpu.pressure": "some avg10=1 avg60=1 avg300=1 total=7000000\nfull avg10=1 avg60=1 avg300=1 total=4000000\n",
}  # fmt: skip
NO_QUOTA = {"cpu/cpu.cfs_quota_us": "-1\n", "cpu.max": "max 100000\n"}


@pytest.fixture(params=[VERSION_1, VERSION_2], ids=["version 1", "version 2"])
def cgroup(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for name, text in request.param.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_both_versions_tell_how_long_the_container_was_throttled(cgroup: Path) -> None:
    assert processors.kept_waiting(str(cgroup)).throttled_s == pytest.approx(2.5)


def test_both_versions_tell_what_the_container_used(cgroup: Path) -> None:
    assert processors.kept_waiting(str(cgroup)).cpu_s == pytest.approx(0.0009)


def test_pressure_is_told_where_the_cgroup_has_it(cgroup: Path) -> None:
    has_it = (cgroup / "cpu.pressure").exists()
    assert processors.kept_waiting(str(cgroup)).pressure_s == (4.0 if has_it else None)


def test_a_quota_is_told(cgroup: Path) -> None:
    assert processors.limits(str(cgroup))["quota"] == "30000 of 100000 us"


def test_no_quota_is_told_as_none(cgroup: Path) -> None:
    for name, text in NO_QUOTA.items():
        if (cgroup / name).exists():
            (cgroup / name).write_text(text)
    assert processors.limits(str(cgroup))["quota"] == "none"


def test_where_nothing_can_be_seen_that_is_told(tmp_path: Path) -> None:
    told = processors.kept_waiting(str(tmp_path), str(tmp_path / "none"))
    assert told == Processors(told.clock_s)
    assert told.clock_s > 0
    assert {name: text for name, text in processors.limits(str(tmp_path)).items() if name != "processors"} == {
        "quota": "none", "weight": "none", "memory": "none",
    }  # fmt: skip


def test_niced_work_and_waiting_for_a_disk_leave_the_machine_free(tmp_path: Path) -> None:
    tick = os.sysconf("SC_CLK_TCK")
    columns = {"user": 1, "nice": 10, "system": 2, "idle": 20, "iowait": 40, "irq": 3, "softirq": 4, "steal": 5}
    line = " ".join(str(seconds * tick) for seconds in columns.values())
    (tmp_path / "stat").write_text(f"cpu  {line} 0 0\ncpu0 {line} 0 0\ncpu1 {line} 0 0\nintr 5\n")
    assert processors.machine(str(tmp_path / "stat")) == Machine(2, sum((1, 2, 3, 4, 5)), 5)
