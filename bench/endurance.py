"""Runs very short trials for a long time, and prints what grows: memory, descriptors, journal, time per trial, report.

    .venv/bin/python bench/endurance.py [--minutes 30] [--trials 10000] [--lanes 1] [--write docs/trust.md]

First on real containers, then on fake testbeds, whose clients answer at once, but report times of 10 to 24 s: so 10,000
trials simulate two days on one lane. That is quickest, because trials of several lanes start 0.2 s apart. Both
are whole runs of lab.py, watched from outside, and stopped when time is up.
Needs root, to look into the processes of containers.
"""

from __future__ import annotations

import argparse
import math
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.format import counted
from headwind.model import Outcome
from headwind.report.html.page import REPORT
from headwind.run.journal import JOURNAL, MATRIX_RESOLVED, Run
from tests.faults import labs
from tests.faults.document import write
from tests.faults.kinds import is_agent, is_kernel
from tests.simulated_lab import simulate

MATRIX = """
protocols: [h1, h2, h3]
lanes: {lanes}
timeout: 60s
repeat: {blocks}
profiles: {profiles}
workloads: {{one: {{requests: 1, connections: 1}}}}
"""
SHORT = "{clean: {}, near: {both: {delay: 5ms}}, far: {both: {delay: 20ms}}, lossy: {downlink: {loss: 5%}}}"
LONG = "{a: {both: {delay: 250ms}}, b: {both: {delay: 400ms}}, c: {both: {delay: 500ms}}, d: {both: {delay: 600ms}}}"
ARMS_AND_NETWORKS = 12
EVERY_S = 2.0
POINTS = (0.1, 0.5, 1.0)  # of a run, at which figures are printed
SHARE = 0.1  # of the trials that are the first ones and the last ones


@dataclass(frozen=True, slots=True)
class Sample:
    """A look at a run: resident memory in bytes, numbers of open descriptors, bytes of the journal."""

    at_s: float
    trials: int
    lab_bytes: int
    lab_descriptors: int
    lab_threads: int
    agents_bytes: int
    agents_descriptors: int
    kernels_bytes: int
    journal_bytes: int


@dataclass(frozen=True, slots=True)
class Endured:
    """A run: its samples, seconds per trial at its beginning and end, the sum of its clients' times, and its report."""

    name: str
    samples: Sequence[Sample]
    trials: int
    sound: int
    first_s: float
    last_s: float
    clients_s: float
    journal_bytes: int
    report_s: float
    report_bytes: int
    report_memory_bytes: int


def resident(pid: int, field: str = "VmRSS") -> int:
    """Resident memory of a process in bytes, or its peak (VmHWM); 0 if it is gone."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
    return 0


def descriptors(pid: int) -> int:
    """The number of open descriptors of a process; 0 if it is gone."""
    with suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return 0


def threads(pid: int) -> int:
    """The number of threads of a process; 0 if it is gone."""
    with suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    return 0


def done(lab: labs.Process) -> int:
    """The number of trials that are over."""
    found = re.findall(r"^\[ *([\d,]+)/", lab.output, re.MULTILINE)
    return int(found[-1].replace(",", "")) if found else 0


def look(lab: labs.Process, reports: Path, began_s: float) -> Sample:
    """Take a sample."""
    processes = [each for container in lab.containers() for each in container.processes().items()]
    agents, kernels = ([each[0] for each in processes if test(each)] for test in (is_agent, is_kernel))
    return Sample(
        time.monotonic() - began_s, done(lab), resident(lab.pid), descriptors(lab.pid), threads(lab.pid),
        sum(map(resident, agents)), sum(map(descriptors, agents)), sum(map(resident, kernels)), journal_bytes(reports),
    )  # fmt: skip


def journal_bytes(reports: Path) -> int:
    """The size of the journal with its log."""
    return sum(path.stat().st_size for path in reports.glob(f"*/{JOURNAL}*"))


def endure(name: str, lab: labs.Process, reports: Path, limit_s: float, work: Path) -> Endured:
    """Watch a lab until it ends, or stop it when time is up; then write its report again."""
    began_s, samples = time.monotonic(), list[Sample]()
    is_over = False
    while not is_over:
        with suppress(OSError):  # a file of the journal that is just removed
            samples.append(look(lab, reports, began_s))
        is_over = lab.ended(EVERY_S) or time.monotonic() - began_s >= limit_s
    lab.send(signal.SIGINT)
    if not lab.ended(60):
        raise SystemExit(f"{name}: the lab did not end: {lab.output[-2000:]}")
    folder = next((path.parent for path in reports.glob(f"*/{MATRIX_RESOLVED}")), None)
    if not folder:
        raise SystemExit(f"{name}: the lab made no run: {lab.output[-2000:]}")
    with Run.open(folder) as run:
        results = [result for result in run.results() if result.outcome is not Outcome.LAB_ERROR]
    times = [sum(result.phases_s.values()) for result in results]
    part = max(1, round(len(times) * SHARE))
    report_s, memory = report(folder, work)
    return Endured(
        name, [each for each in samples if each.trials] or samples[:1], len(results),
        sum(result.outcome is Outcome.OK for result in results), median(times[:part]), median(times[-part:]),
        sum(result.metrics.get("total_s", 0.0) for result in results),
        journal_bytes(reports), report_s, (folder / REPORT).stat().st_size, memory,
    )  # fmt: skip


def report(folder: Path, work: Path) -> tuple[float, int]:
    """Seconds and peak memory of `lab.py report`."""
    began_s, peak = time.monotonic(), 0
    process = labs.lab(work, "report", str(folder))
    while not process.ended(0.05):
        peak = max(peak, resident(process.pid, "VmHWM"))
    if process.code:
        raise SystemExit(process.output)
    return time.monotonic() - began_s, peak


def table(runs: Sequence[Endured]) -> Iterator[str]:
    """The figures of all runs, in Markdown."""
    heads = [f"{run.name}, {sample.trials:,} trials" for run in runs for sample in at_points(run)]
    yield f"| | {' | '.join(heads)} |"
    yield "|---|" + "---|" * len(heads)
    chosen = [(run, sample) for run in runs for sample in at_points(run)]
    rows = {
        "time since the start, minutes": [f"{each.at_s / 60:.1f}" for _, each in chosen],
        "lab: memory, MB": [mega(each.lab_bytes) for _, each in chosen],
        "lab: descriptors, threads": [f"{each.lab_descriptors}, {each.lab_threads}" for _, each in chosen],
        "agents: memory, MB": [mega(each.agents_bytes) if each.agents_bytes else "–" for _, each in chosen],
        "agents: descriptors": [str(each.agents_descriptors or "–") for _, each in chosen],
        "user-mode kernels: memory, MB": [
            mega(each.kernels_bytes) if each.kernels_bytes else "–" for _, each in chosen
        ],
        "journal, kB per trial": [f"{each.journal_bytes / max(1, each.trials) / 1e3:.1f}" for _, each in chosen],
    }
    yield from (f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items())


def at_points(run: Endured) -> list[Sample]:
    """The samples of a run that are printed."""
    return [min(run.samples, key=lambda each: abs(each.trials - point * run.samples[-1].trials)) for point in POINTS]


def mega(size: float) -> str:
    """Bytes as megabytes."""
    return f"{size / 1e6:.0f}"


def sentences(runs: Sequence[Endured]) -> Iterator[str]:
    """The rest of the figures: trials and their times, journal and report."""
    for run in runs:
        yield (
            f"- **{run.name}**: {run.trials:,} trials, {run.sound:,} of them `ok`. Their clients took "
            f"{run.clients_s / 3600:.1f} h in all. The median trial took "
            f"{run.first_s:.3f} s at the beginning (first {SHARE:.0%}) and {run.last_s:.3f} s at the end. Journal: "
            f"{run.journal_bytes / 1e6:.1f} MB. Report: {run.report_s:.1f} s, {run.report_bytes / 1e6:.1f} MB, "
            f"{run.report_memory_bytes / 1e6:.0f} MB of memory at most."
        )


def main() -> int:
    """Run, watch and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="of each of the two runs at most")
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--write", type=Path, help="put the figures into this document as well")
    parser.add_argument("--simulate", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.simulate:
        return simulate(*options.simulate)
    runs = []
    with tempfile.TemporaryDirectory(prefix="headwind-endurance-") as name:
        work = Path(name)
        matrix, blocks = work / "matrix.yaml", max(1, math.ceil(options.trials / ARMS_AND_NETWORKS))
        matrix.write_text(MATRIX.format(lanes=options.lanes, blocks=blocks, profiles=SHORT))
        lab = labs.lab(work, "run", str(matrix), "-v", "--reports", str(work / "real"))
        runs.append(endure("real containers", lab, work / "real", options.minutes * 60, work))
        matrix.write_text(MATRIX.format(lanes=options.lanes, blocks=blocks, profiles=LONG))
        fake = labs.Process([__file__, "--simulate", matrix, work / "fake"], work / "fake.log")
        runs.append(endure("fake testbeds", fake, work / "fake", options.minutes * 60, work))
    where = f"Both on {counted(options.lanes, 'lane')}, for at most {options.minutes:g} minutes."
    lines = [*table(runs), "", *sentences(runs), "", where]
    print(*lines, sep="\n")
    if options.write:
        write(options.write, "endurance", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
