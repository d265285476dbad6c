"""Rate traces in a matrix: their files, what is refused in them with line and column, and what a changed one does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from headwind.format import network_settings
from headwind.matrix import trace as traces
from headwind.model import slowed
from headwind.report.networks import networks_of
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.run.differences import differences
from impair.profile import Direction, Profile, Rate
from impair.queues import Fifo, FqCodel
from impair.trace import Trace
from tests.matrix_files import MINIMAL, ROOT, load, refusal

DOWN, UP = Direction.DOWNLINK, Direction.UPLINK
STEADY = "".join(f"{at_ms}\n" for at_ms in range(0, 3000, 2)) + "3000\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a matrix, with a trace of one packet each 2 ms."""
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces/steady.trace").write_text(STEADY)
    return tmp_path


def test_the_recipe_of_the_docs_turns_a_recorded_throughput_into_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (recipe,) = re.findall(r"in `drive.txt`:\n\n```python\n(.*?)```", (ROOT / "docs/matrix.md").read_text(), re.DOTALL)
    (tmp_path / "drive.txt").write_text("12\n0\n6\n")
    monkeypatch.chdir(tmp_path)
    exec(compile(recipe, "docs/matrix.md", "exec"), {})  # noqa: S102
    trace = profile_of("{downlink: {trace: drive.trace}}", tmp_path).trace(DOWN)
    assert trace is not None
    assert trace.length_s == 3.0
    assert [sum(trace.frames[at : at + 10]) for at in (0, 10, 20)] == pytest.approx([1000, 0, 500], abs=1)


def with_profile(written: str) -> str:
    return MINIMAL.replace("clean: {}", f"p: {written}")


def profile_of(written: str, home: Path) -> Profile:
    return load(with_profile(written), home).conditions[0].profile


def test_a_trace_is_added_up_to_steps_and_its_mean_is_the_first_rate(home: Path) -> None:
    profile = profile_of("{downlink: {trace: traces/steady.trace}}", home)
    trace = profile.trace(DOWN)
    assert trace
    assert (trace.file, trace.length_s, len(trace.frames)) == ("steady.trace", 3.0, 30)
    assert trace.frames == (*[50] * 29, 51), "a packet at the very end belongs to the last step"
    assert profile.downlink.rate == Rate(trace.mean_bps)
    assert profile.downlink.queue == Fifo(101), "200 ms at the average rate"
    assert (profile.uplink.rate, profile.trace(UP)) == (None, None)


def test_a_trace_too_slow_for_a_transfer_is_refused_as_a_trace(home: Path) -> None:
    """The bound was that of its fastest step, and the hint named an average rate that is nowhere in the file."""
    (home / "traces/slow.trace").write_text("0\n1000\n2000\n3000\n4000\n")
    slow = MINIMAL.replace("clean: {}", "p: {downlink: {trace: traces/slow.trace}}")
    said = str(
        refusal(re.sub("workloads:.*", "workloads: {w: {kind: transfer, size: 2MB}}", slow, flags=re.DOTALL), home)
    )
    assert "`w` takes at least 14 min 40 s" in said, "220 replays of 4 s, with 6 frames each"
    assert "use a faster trace, fetch less or wait longer, such as `timeout: 1760s`" in said
    assert "did you mean" not in said


def test_a_trace_takes_any_queue_whose_rate_can_change(home: Path) -> None:
    assert profile_of("{downlink: {trace: traces/steady.trace, queue: 300}}", home).downlink.queue == Fifo(300)
    profile = profile_of("{both: {trace: traces/steady.trace, queue: {kind: fq_codel}}, clock: trial}", home)
    assert profile.uplink.queue == profile.downlink.queue == FqCodel()
    assert profile.trace(UP) == profile.trace(DOWN)


@pytest.mark.parametrize(
    ("text", "length_s", "frames"),
    [
        ("1\n", 1.0, (100,) * 10),  # 12 Mbit/s in mahimahi's shortest form
        ("1000", 1.0, (0,) * 9 + (1,)),  # without an end of the last line
        ("0\r\n0\r\n99\r\n100\r\n1050\r\n", 1.05, (3, 1) + (0,) * 7 + (1,)),
        ("700\n", 1.4, (0,) * 6 + (1,) + (0,) * 6 + (1,)),
    ],
)
def test_lines_are_times_in_milliseconds(text: str, length_s: float, frames: tuple[int, ...]) -> None:
    trace = traces.parsed(text.encode(), "x.trace")
    assert trace.length_s == length_s
    assert sum(trace.frames) == sum(frames)
    assert len(trace.frames) == len(frames)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "an empty line is not a time in ms"),
        ("1\n\n2\n", "2:1", "an empty line is not a time in ms"),
        ("1\n2.5\n", "2:2", "`2.5` is not a time in ms"),
        ("1\n12ms\n", "2:3", "`12ms` is not a time in ms"),
        ("1\n-3\n", "2:1", "`-3` is not a time in ms"),
        ("1\n٣\n", "2:1", "is not a time in ms"),
        ("1\n9999999999\n", "2:10", "is not a time in ms"),
        ("1\n5\n4\n", "3:1", "4 ms is before 5 ms of the line above"),
        ("0\n0\n", "2:1", "the trace ends at 0 ms"),
        ("5\n1800001\n", "2:1", "after 30 minutes the trace is too long"),
    ],
)
def test_a_mistake_in_a_trace_is_reported_with_its_place(text: str, place: str, message: str, home: Path) -> None:
    (home / "traces/wrong.trace").write_text(text, encoding="utf-8")
    said = str(refusal(with_profile("{downlink: {trace: traces/wrong.trace}}"), home))
    assert "matrix.yaml:3:" in said
    assert f"traces/wrong.trace:{place}: " in said
    assert message in said


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("{downlink: {trace: traces/stedy.trace}}", "no file `traces/stedy.trace`", "mean `traces/steady.trace`?"),
        ("{downlink: {trace: nothing}}", "no file `nothing`", "relative to this file"),
        ("{downlink: {trace: traces}}", "no file `traces`", "relative to this file"),
        ("{downlink: {trace: traces/steady.trace, rate: 5mbit}}", "a trace is in the place of a rate", "keep one"),
        ("{downlink: {trace: traces/steady.trace, queue: {kind: cake}}}", "cake depends on the rate", "use fifo"),
        ("{downlink: {trace: traces/steady.trace}, at: {1s: {}}}", "`at` and `trace` both change", "keep one"),
        ("{both: {trace: traces/steady.trace, spells: {good: 1s, bad: 1s}}}", "`spells` and `trace` both", "keep one"),
        ("{downlink: {trace: traces/steady.trace}, every: 1s}", "`every` needs changes", "add `at`"),
        ("{at: {1s: {downlink: {trace: traces/steady.trace}}}}", "a `trace` begins with the trial", "without `at`"),
        ("{downlink: {trace: {file: x}}}", "one value", ""),
    ],
)
def test_what_a_trace_cannot_be_is_refused(written: str, message: str, hint: str, home: Path) -> None:
    said = str(refusal(with_profile(written), home))
    assert message in said
    assert hint in said


def test_a_queue_before_a_trace_without_a_file_is_no_second_mistake(home: Path) -> None:
    said = str(refusal(with_profile("{downlink: {trace: nothing, delay: 40ms, queue: 200}}"), home))
    assert ("no file `nothing`" in said, "1 mistake" in said) == (True, True)


def test_a_trace_that_is_too_large_is_not_read_to_its_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST_BYTES", 1 << 20)
    (home / "traces/steady.trace").write_bytes(b"1\n" * (1 << 20))
    said = str(refusal(with_profile("{downlink: {trace: traces/steady.trace}}"), home))
    assert "has more than 1 MB" in said


def test_a_run_keeps_the_trace_and_another_one_is_a_difference(home: Path) -> None:
    """Resumed by its own matrix a run needs no file; with another trace it is refused."""
    text = with_profile("{downlink: {trace: traces/steady.trace}}")
    before = matrix_to_json(load(text, home))
    stored = matrix_from_json(before).conditions[0].profile.trace(DOWN)
    assert stored
    assert stored.frames == (*[50] * 29, 51)
    (home / "traces/steady.trace").write_text(STEADY.replace("\n2\n", "\n3\n"))
    (line,) = differences(before, matrix_to_json(load(text, home)))
    assert re.fullmatch(r"profiles.p.downlink.trace: steady.trace \(sha256 \w{12}\).* -> steady.trace \(sha256.*", line)


def test_a_trace_is_described_by_its_file_hash_length_and_rates(home: Path) -> None:
    matrix = load(with_profile("{downlink: {trace: traces/steady.trace, delay: 20ms}}"), home)
    profile = matrix.conditions[0].profile
    trace = profile.trace(DOWN)
    assert trace
    assert network_settings(profile, DOWN) == {
        "delay": "20 ms", "queue": "fifo", "queue.packets": "101",
        "trace": f"steady.trace (sha256 {trace.sha256[:12]}): 3 s, 6.06 Mbit/s on average, up to 6.18 Mbit/s",
    }  # fmt: skip
    (network,) = networks_of(matrix).values()
    assert network.meaning == "20 ms delay + rate trace of 6.06 Mbit/s on average"


def test_a_slower_twin_replays_the_trace_at_a_lower_pace(home: Path) -> None:
    slow = slowed(profile_of("{downlink: {trace: traces/steady.trace}}", home)).trace(DOWN)
    assert slow
    assert slow.pace == pytest.approx(1 / 1.1)


def test_the_shipped_traces_are_those_of_the_generator(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "bench/traces.py", str(tmp_path)], cwd=ROOT, check=True)
    shipped = sorted((ROOT / "experiments/traces").glob("*.trace"))
    assert [file.stem for file in shipped] == ["lte-drive", "train", "wifi-roaming"]
    for file in shipped:
        assert file.read_bytes() == (tmp_path / file.name).read_bytes(), file.name
        trace: Trace = traces.parsed(file.read_bytes(), file.name)
        assert trace.length_s == 40
