"""The client: what h2load's outputs mean, that nothing of it outlives the lab, and where its source comes from."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from client import agent
from client.h2load import Fetch, Output, interpret, metrics, negotiated, quic, reconcile, samples, totals
from client.h2load import _log_rows as log_rows
from headwind.workloads.h2load import H2load

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = Path(__file__).parent.parent / "golden" / "h2load"  # what h2load 1.70 wrote against our nginx
FINISHED = ("h1", "h2", "h3", "not-found", "refused", "crash")
FETCH = Fetch("h2", "192.0.2.1", 443, "/", requests=1000, connections=100, streams=100, threads=2)


def golden(case: str) -> tuple[Output, int, float]:
    """The outputs of a case, how many requests were asked for, and when it began."""
    kept = json.loads((GOLDEN / f"{case}.json").read_text())
    result = kept["result"] and kept["result"]["measurements"]
    output = Output("\n".join(kept["stdout"]), "\n".join(kept["log"]), result)
    return output, kept["requests"], kept["started_at"]


def result_of(case: str) -> dict[str, Any]:
    result = golden(case)[0].result
    assert result
    return dict(result)


@pytest.mark.parametrize(("protocol", "alpn"), [("h1", "http/1.1"), ("h2", "h2"), ("h3", "h3")])
def test_what_was_negotiated_is_what_h2load_reported(protocol: str, alpn: str) -> None:
    assert negotiated(golden(protocol)[0].stdout) == {
        "alpn": alpn, "tls": "TLSv1.3", "cipher": "TLS_AES_128_GCM_SHA256", "group": "x25519", "resumed": "no",
    }  # fmt: skip


def test_without_a_connection_nothing_was_negotiated() -> None:
    assert set(negotiated(golden("refused")[0].stdout).values()) == {None}


def test_a_killed_client_still_says_what_it_negotiated() -> None:
    assert negotiated(golden("timeout")[0].stdout)["alpn"] == "h2"


@pytest.mark.parametrize("case", ["h1", "h2", "h3"])
def test_the_metrics_are_those_that_h2load_printed(case: str) -> None:
    output, requests, _ = golden(case)
    found = metrics(result_of(case))
    printed = re.search(r"finished in ([\d.]+)ms, ([\d.]+) req/s", output.stdout)
    traffic = re.search(r"traffic: \S+ \((\d+)\) total.* \((\d+)\) data", output.stdout)
    assert printed
    assert traffic
    assert found["total_s"] * 1e3 == pytest.approx(float(printed[1]), abs=0.006)
    assert found["requests_per_s"] == pytest.approx(float(printed[2]), abs=0.006)
    assert (found["bytes_total"], found["bytes_body"]) == (int(traffic[1]), int(traffic[2]))
    assert found["bytes_body"] == 612 * requests
    assert found["goodput_bps"] == pytest.approx(612 * 8 * requests / found["total_s"])
    assert (found["requests_succeeded"], found["requests_failed"]) == (requests, 0)


@pytest.mark.parametrize("case", ["h1", "h2", "h3"])
def test_percentiles_agree_with_the_samples(case: str) -> None:
    found, columns = metrics(result_of(case)), samples(result_of(case), log_rows(golden(case)[0].log), 0.0)
    assert found["request_p50_s"] == pytest.approx(statistics.median(columns["request_took_s"]), abs=2e-6)
    assert found["request_p99_s"] == pytest.approx(max(columns["request_took_s"]), abs=2e-6)
    assert found["connect_p50_s"] == pytest.approx(statistics.median(columns["connect_s"]), abs=1e-6)
    assert found["ttfb_p50_s"] == pytest.approx(statistics.median(columns["ttfb_s"]), abs=1e-6)
    assert found["connect_p50_s"] < found["ttfb_p50_s"] < found["total_s"]


def test_what_was_not_measured_is_absent() -> None:
    assert not {"request_p50_s", "ttfb_p50_s", "connect_p50_s"} & metrics(result_of("refused")).keys()


def test_a_client_without_a_connection_has_no_times_and_no_rates() -> None:
    """A transfer without a connection had a total time of 0.001 s and a rate of 0."""
    assert metrics(result_of("refused")).keys() == {
        "requests_succeeded", "requests_failed", "bytes_total", "bytes_body"
    }  # fmt: skip


@pytest.mark.parametrize("status", [404, -1])
def test_requests_that_did_not_succeed_have_no_mean_completion(status: int) -> None:
    output, requests, started_at = golden("h2")
    failed = replace(output, log=output.log.replace("\t200\t", f"\t{status}\t", 1))
    assert "mean_done_s" in interpret(output, requests, started_at)["metrics"]
    assert "mean_done_s" not in interpret(failed, requests, started_at)["metrics"]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("h1", {"succeeded": 10, "failed": 0, "errored": 0, "abandoned": 0, "started": 10, "done": 10}),
        ("not-found", {"succeeded": 0, "failed": 10, "errored": 0, "abandoned": 0, "status_4xx": 10}),
        ("refused", {"succeeded": 0, "failed": 10, "errored": 10, "abandoned": 10, "started": 0, "done": 0}),
        ("crash", {"succeeded": 4, "failed": 16, "errored": 16, "abandoned": 16, "started": 14, "done": 4}),
    ],
)
def test_every_request_is_counted_as_what_became_of_it(case: str, expected: dict[str, int]) -> None:
    output, requests, _ = golden(case)
    found = totals(output.result, log_rows(output.log), requests)
    assert expected.items() <= found.items()
    assert found["requests"] == requests == found["succeeded"] + found["failed"]


@pytest.mark.parametrize("case", ["h1", "h2", "h3"])
def test_the_mean_completion_is_the_area_above_the_curve_of_completion(case: str) -> None:
    output, requests, started_at = golden(case)
    done = sorted((row.start_us + row.took_us) / 1e6 - started_at for row in log_rows(output.log))
    steps = zip(done, [0.0, *done[:-1]], range(requests, 0, -1), strict=True)
    area = sum((upper - lower) * left / requests for upper, lower, left in steps)
    found = interpret(output, requests, started_at)["metrics"]
    assert found["mean_done_s"] == pytest.approx(area, abs=2e-6)
    assert 0 < found["mean_done_s"] < found["total_s"] + 0.1, "the program starts before the clock of its total time"
    assert "mean_done_s" not in interpret(output, requests + 1, started_at)["metrics"], "not of a part of them"


@pytest.mark.parametrize("case", ["h1", "h2", "h3"])
def test_from_what_the_client_told_the_host_knows_when_all_was_done_and_the_slowest_handshake(case: str) -> None:
    output, requests, started_at = golden(case)
    answer = interpret(output, requests, started_at)
    found, performance = H2load("any", requests, 2, 5).further(answer), result_of(case)["performance"]
    assert found["connect_max_s"] == pytest.approx(performance["connect"]["max"], abs=2e-6)
    assert found["connect_max_s"] < found["done_all_s"] < answer["metrics"]["total_s"] + 0.1
    assert found["done_p50_s"] <= found["done_p90_s"] <= found["done_p99_s"] <= found["done_all_s"]
    assert ("quic_packets_lost" in found) == (case == "h3")


@pytest.mark.parametrize("case", ["h1", "h2", "h3"])
def test_the_median_of_h2load_is_the_usual_one(case: str) -> None:
    """The bounds of a trial that was stopped go by it (headwind/workloads/h2load.py)."""
    took = [row.took_us / 1e6 for row in log_rows(golden(case)[0].log)]
    assert metrics(result_of(case))["request_p50_s"] == pytest.approx(statistics.median(took), abs=2e-6)


def test_of_a_killed_client_the_log_tells_what_was_done() -> None:
    output, requests, started_at = golden("timeout")
    found = interpret(output, requests, started_at)
    done = len(output.log.splitlines())
    assert 0 < done < requests
    assert found["totals"]["done"] == found["totals"]["succeeded"] == found["totals"]["status_2xx"] == done
    assert found["totals"]["abandoned"] == requests - done
    assert len(found["samples"]["request_took_s"]) == done
    assert found["metrics"] == {}
    assert not found["reconciled"]


@pytest.mark.parametrize("case", FINISHED)
def test_the_three_outputs_of_a_finished_run_agree(case: str) -> None:
    output, requests, started_at = golden(case)
    found = interpret(output, requests, started_at)
    assert found["discrepancies"] == []
    assert found["reconciled"] is True


def change(result: dict[str, Any], *path: str, by: float) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(result))
    place = copy
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] += by
    return copy


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda output: replace(output, log=output.log[: output.log.rindex("\n")]), "lines of the log"),
        (lambda output: replace(output, log=output.log.replace("\t200\t", "\t500\t", 1)), "succeeded in the log"),
        (lambda output: replace(output, log=output.log.replace("\t200\t", "\t-1\t", 1)), "answered in the log"),
        (lambda output: replace(output, log=re.sub(r"\t(\d+)$", r"\t9\1", output.log)), "us apart"),
        (lambda output: replace(output, result=change(output.result, "requests", "total", by=1)), "requested"),
        (
            lambda output: replace(output, result=change(output.result, "requests", "failed", by=1)),
            "and requests differ",
        ),
        (lambda output: replace(output, result=None), "no result"),
    ],
)
def test_outputs_that_disagree_are_reported(spoil: Callable[[Output], Output], complaint: str) -> None:
    output, requests, _ = golden("h2")
    spoilt = spoil(output)
    found = reconcile(spoilt.result, log_rows(spoilt.log), requests)
    assert any(complaint in line for line in found), found


def test_a_lost_sample_is_reported() -> None:
    output, requests, _ = golden("h2")
    result = result_of("h2")
    result["performance"]["request"]["samples"].pop()
    assert reconcile(result, log_rows(output.log), requests) == ["samples and answered requests differ: 9 and 10"]


def test_samples_are_columns_of_every_request_and_connection() -> None:
    output, _, started_at = golden("h3")
    columns = samples(output.result, log_rows(output.log), started_at)
    assert {name: len(column) for name, column in columns.items()} == {
        "request_start_s": 10, "request_took_s": 10, "request_status": 10, "connect_s": 2, "ttfb_s": 2,
        "min_rtt_s": 2, "smoothed_rtt_s": 2, "packets_sent": 2, "packets_received": 2, "packets_lost": 2,
    }  # fmt: skip
    assert columns["request_status"] == [200] * 10
    ends = [start + took for start, took in zip(columns["request_start_s"], columns["request_took_s"], strict=True)]
    assert all(0 < start < 0.1 for start in columns["request_start_s"])
    assert max(ends) < 0.1


def test_ten_thousand_samples_fit_in_a_line_of_a_quarter_megabyte() -> None:
    line = f"{1795257053456288}\t200\t123456\n"
    columns = samples(None, log_rows(line * 10_000), 1795257053.0)
    assert len(json.dumps(columns)) < 270_000
    assert columns["request_start_s"][0] == 0.456288
    assert columns["request_took_s"][0] == 0.123456


def test_merged_datagrams_would_show() -> None:
    assert quic(result_of("h3"))["largest_gro_packets"] == 1
    assert quic(result_of("h2")) == {}


@pytest.mark.parametrize(("protocol", "alpn"), [("h1", "http/1.1"), ("h2", "h2"), ("h3", "h3")])
def test_only_the_wanted_protocol_is_offered(protocol: str, alpn: str) -> None:
    command = replace(FETCH, protocol=protocol).command()
    assert [word for word in command if word.startswith("--alpn-list=")] == [f"--alpn-list={alpn}"]
    assert "--no-udp-gso" in command
    assert not [word for word in command if word.startswith("--tls-session-file")]
    assert command[-1] == "https://192.0.2.1:443/"


PROGRAMS = [path.stem for path in sorted((ROOT / "client").glob("*.py")) if "\nclass Fetch" in path.read_text()]


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name != "agent"])
def test_every_program_has_all_that_the_agent_asks_of_one(program: str, tmp_path: Path) -> None:
    fetch = import_module(f"client.{program}").Fetch
    for name in ("command", "logs", "windows", "answer"):
        assert callable(getattr(fetch, name, None)), name
    options, variables = fetch.logs(SimpleNamespace(protocol="h3"), tmp_path)
    assert str(tmp_path) in "".join([*options, *variables.values()]) or program == "nghttp", "it has no QUIC"


@pytest.mark.parametrize(
    "wrong", [{"protocol": "h9"}, {"connections": 1001}, {"threads": 101}, {"threads": 0}], ids=str
)
def test_a_workload_that_h2load_cannot_do_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"h9|threads <= connections <= requests"):
        replace(FETCH, **wrong)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """What the lab closes when it hangs up, as long as the test does not."""
    reader, writer = os.pipe()
    monkeypatch.setattr(agent, "LAB", reader)
    yield writer
    os.close(reader)
    with suppress(OSError):
        os.close(writer)


def exists(pid: int) -> bool:
    """True while the process runs; a zombie has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def test_the_exit_code_and_both_outputs_are_kept(tmp_path: Path, lab: int) -> None:
    start_s = time.monotonic()
    done = agent.execute(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path, 10.0)
    assert (done.exit_code, done.timed_out) == (3, False)
    assert 0 < done.wall_s <= time.monotonic() - start_s
    assert 0 < done.cpu_s <= done.wall_s * done.machine.cpus
    assert done.machine.busy_s >= 0
    assert (tmp_path / "stdout").read_text() == "out\n"
    assert (tmp_path / "stderr").read_text() == "err\n"


@pytest.mark.parametrize(("obedience", "code"), [("", -signal.SIGTERM), ("trap '' TERM;", -signal.SIGKILL)])
def test_at_the_timeout_the_whole_group_ends(tmp_path: Path, lab: int, obedience: str, code: int) -> None:
    script = f"{obedience} sleep 60 & echo $! > child; while :; do sleep 0.05; done"
    done = agent.execute(["sh", "-c", script], tmp_path, 0.3)
    assert (done.timed_out, done.exit_code) == (True, code)
    assert done.wall_s >= 0.3
    wait_for(lambda: not exists(int((tmp_path / "child").read_text())))


def test_when_the_lab_hangs_up_the_client_ends(tmp_path: Path, lab: int) -> None:
    begun = tmp_path / "pid"

    def hang_up() -> None:
        wait_for(lambda: begun.exists() and begun.read_text() != "")
        os.close(lab)

    other_end = threading.Thread(target=hang_up)
    other_end.start()
    with pytest.raises(agent.LabIsGone):
        agent.execute(["sh", "-c", "echo $$ > pid; exec sleep 60"], tmp_path, 60.0)
    other_end.join()
    assert not exists(int(begun.read_text()))


def test_when_the_agent_is_killed_the_client_dies(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from client.agent import execute; "
        f"execute(['sh', '-c', 'echo $$ > pid; exec sleep 60'], Path({str(tmp_path)!r}), 60.0)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE)
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    pid = int((tmp_path / "pid").read_text())
    assert exists(pid)
    process.kill()
    process.communicate()
    wait_for(lambda: not exists(pid))


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`commands(name, script)` puts a shell script in front of the real command."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return put


def test_one_run_gives_one_answer(tmp_path: Path, lab: int, commands: Callable[[str, str], None]) -> None:
    kept = json.loads((GOLDEN / "h3.json").read_text())
    for name, text in (("out", "\n".join(kept["stdout"])), ("log", "\n".join(kept["log"]))):
        (tmp_path / name).write_text(text)
    (tmp_path / "json").write_text(json.dumps(kept["result"]))
    commands("h2load", f"cat '{tmp_path}/out'; cp '{tmp_path}/log' log; cp '{tmp_path}/json' result.json")
    answer = agent.run(
        10, protocol="h3", host="192.0.2.1", port=443, path="/", requests=10, connections=2, streams=5, threads=1
    )
    assert answer["command"][0] == "h2load"
    assert (answer["exit_code"], answer["timed_out"], answer["stderr_tail"]) == (0, False, "")
    assert (answer["negotiated"]["alpn"], answer["reconciled"]) == ("h3", True)
    assert answer["metrics"]["total_s"] == kept["result"]["measurements"]["duration"]
    assert json.loads(json.dumps(answer)) == answer


def test_a_program_that_is_stopped_had_the_whole_timeout_by_its_own_clock(
    lab: int, commands: Callable[[str, str], None]
) -> None:
    """Its clock begins some ms after its start: of a timeout of 100 ms it had 85 ms, and `> 100 ms` was its bound."""
    commands("h2load", "exec sleep 60")
    answer = agent.run(
        0.1, protocol="h2", host="192.0.2.1", port=443, path="/", requests=10, connections=2, streams=5, threads=1
    )
    assert answer["timed_out"]
    assert answer["wall_s"] >= 0.1 + agent.START_S


SCRIPT = (ROOT / "client" / "fetch-nghttp2.sh").read_text()
SOURCE = b"the source, byte for byte"


@pytest.fixture
def fetch(tmp_path: Path, commands: Callable[[str, str], None]) -> Callable[[], subprocess.CompletedProcess[str]]:
    """The fetch script, expecting SOURCE; nothing can be downloaded unless a test says otherwise."""
    lines = re.findall(r"^sha256=[0-9a-f]{64}$", SCRIPT, re.MULTILINE)
    assert len(lines) == 1
    script = tmp_path / "fetch.sh"
    script.write_text(SCRIPT.replace(lines[0], f"sha256={hashlib.sha256(SOURCE).hexdigest()}"))
    (tmp_path / "distfiles").mkdir()
    commands("apt-helper", f"echo $* >> '{tmp_path}/asked'; exit 100")
    commands("apt-get", "echo \"'http://mirror.example/debian/dists/forky/InRelease' mirror_InRelease 0\"")
    return lambda: subprocess.run(
        ["sh", str(script), str(tmp_path / "distfiles"), str(tmp_path / "target")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_source_is_taken_from_the_local_directory(tmp_path: Path, fetch: Any) -> None:
    (tmp_path / "distfiles" / "nghttp2-1.70.0.tar.gz").write_bytes(SOURCE)
    assert fetch().returncode == 0
    assert (tmp_path / "target").read_bytes() == SOURCE
    assert not (tmp_path / "asked").exists(), "nothing was to be downloaded"


def test_upstream_is_asked_before_the_mirror(tmp_path: Path, fetch: Any) -> None:
    done = fetch()
    assert done.returncode == 1
    assert "HEADWIND_DISTFILES" in done.stderr
    upstream, mirror = (tmp_path / "asked").read_text().splitlines()
    assert "github.com/nghttp2/nghttp2/releases/download/v1.70.0/nghttp2-1.70.0.tar.gz" in upstream
    assert "http://mirror.example/debian/pool/main/n/nghttp2/nghttp2_1.70.0.orig.tar.gz" in mirror


def test_the_mirror_serves_where_upstream_does_not(
    tmp_path: Path, fetch: Any, commands: Callable[[str, str], None]
) -> None:
    (tmp_path / "source").write_bytes(SOURCE)
    download = f'for last; do :; done; cp "{tmp_path}/source" "$last"'
    commands("apt-helper", f'case "$*" in *mirror*) {download} ;; *) exit 1 ;; esac')
    done = fetch()
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "target").read_bytes() == SOURCE


def test_wrong_bytes_are_refused_wherever_they_come_from(
    tmp_path: Path, fetch: Any, commands: Callable[[str, str], None]
) -> None:
    (tmp_path / "distfiles" / "nghttp2-1.70.0.tar.gz").write_bytes(SOURCE + b".")
    commands("apt-helper", 'for last; do :; done; echo "something else" > "$last"')
    done = fetch()
    assert done.returncode == 1
    assert done.stdout.count("refused: sha256 is") == 3
    assert not (tmp_path / "target").exists()
