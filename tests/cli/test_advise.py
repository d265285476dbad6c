"""`lab.py advise`: a rule with its regret and lines for nginx, a plain no, or an error that says what to measure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lab
from headwind.arm import H1, H2, H3, Arm
from headwind.model import Trial
from impair.profile import Delay, Link, Profile
from servers.offer import OfferIf
from tests import fake

NEAR_S, FAR_S = (0.002, 0.005, 0.009, 0.014), (0.04, 0.06, 0.09, 0.14)  # one way


def delayed(delay_s: float, jitter_s: float = 0.0) -> Profile:
    link = Link(delay=Delay(delay_s, jitter_s))
    return Profile(f"{delay_s * 1000:g}ms", uplink=link, downlink=link)


def delay_of(trial: Trial) -> float:
    delay = trial.block.condition.profile.uplink.delay
    assert delay
    return delay.delay_s


def crossing(trial: Trial) -> float:
    """h3 is faster on far networks and slower on near ones; h1 is never best."""
    ratio = {H1: 1.5, H2: 1.0, H3: 0.7 if delay_of(trial) > 0.02 else 1.3}[trial.arm]
    return (0.1 + 4 * delay_of(trial)) * ratio * (1 + trial.block.index / 300)


def recorded(
    folder: Path, time_s: Callable[[Trial], float], *, blocks: int = 9, arms: tuple[Arm, ...] = (H1, H2, H3),
    delays_s: tuple[float, ...] = NEAR_S + FAR_S,
) -> str:  # fmt: skip
    matrix = fake.example_matrix(*map(delayed, delays_s), repeat=blocks, arms=arms)
    results = [fake.ok(trial, time_s(trial)) for trial in fake.trials_of(matrix)]
    with fake.recorded(folder, matrix, results) as run:
        return str(run.folder)


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_a_rule_is_advised_with_its_regret_and_written_for_nginx(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = recorded(tmp_path, crossing), tmp_path / "offer.conf"
    assert lab.main(["advise", run, "--write", str(file)]) == 0
    out = printed(capsys)
    assert "Advice: HTTP/3 if the round trip is at least 48 ms, else HTTP/2 (8 networks, 72 blocks)." in out
    assert "its mean regret is 1.00x" in out
    assert "that of always HTTP/3 is 1.14x" in out  # sqrt(1.3)
    assert "always h1 1.79x" in out  # sqrt(1.5 * 1.5 / 0.7)
    written = file.read_text()
    assert OfferIf("rtt", 48_000).nginx_map("headwind_offer", "'h3=\":$server_port\"; ma=86400'") in written
    assert written.endswith("add_header Alt-Svc $headwind_offer;\n")
    assert all(line.startswith("#") for line in written.partition("map ")[0].splitlines())
    assert f"written: {file}" in out


def test_a_run_without_such_a_rule_gets_a_plain_no_and_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = recorded(tmp_path, lambda trial: {H1: 1.5, H2: 1.2, H3: 1.0}[trial.arm]), tmp_path / "offer.conf"
    assert lab.main(["advise", run, "--write", str(file)]) == 0
    out = printed(capsys)
    assert (
        "No rule beats always HTTP/3 with what nginx can see (8 networks, 72 blocks): its mean regret is 1.00x" in out
    )
    assert "map $" not in out
    assert not file.exists()
    assert f"{file} was not written: there is no rule" in out


def test_what_the_server_cannot_see_makes_no_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """h3 is best on every other network: a threshold fits some of them, and fails on networks that it has not seen."""
    odd = (NEAR_S + FAR_S)[::2]
    run = recorded(tmp_path, lambda trial: {H1: 2, H2: 1, H3: 0.7 if delay_of(trial) in odd else 1.4}[trial.arm])
    assert lab.main(["advise", run]) == 0
    out = printed(capsys)
    assert "No rule beats always" in out
    assert "which is not below 1 beyond chance" in out or "No threshold" in out


def test_networks_of_several_runs_count_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    near, far = (recorded(tmp_path / f"{each[0]}", crossing, delays_s=each) for each in (NEAR_S, FAR_S))
    assert lab.main(["advise", near, far]) == 0
    assert "HTTP/3 if the round trip is at least 48 ms, else HTTP/2 (8 networks, 72 blocks)" in printed(capsys)


def test_a_protocol_that_fails_is_not_advised_and_counts_as_the_longest_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = fake.example_matrix(*map(delayed, NEAR_S + FAR_S), repeat=9)
    results = [
        fake.timeout(trial) if trial.arm is H3 and delay_of(trial) > 0.02 else fake.ok(trial, crossing(trial))
        for trial in fake.trials_of(matrix)
    ]
    with fake.recorded(tmp_path, matrix, results) as run:
        assert lab.main(["advise", str(run.folder)]) == 0
    out = printed(capsys)
    assert "9 trials of 27 did not finish, and count as the longest time: true regrets are larger" in out
    assert "No rule beats always HTTP/2" in out


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"arms": (H1, H2)}, "of `protocols` this run has h1, h2; give runs of matrices with"),
        ({"arms": (H3,)}, "of `protocols` this run has h3; give runs"),
        ({"delays_s": NEAR_S[:1]}, "1 network (2ms) with enough blocks, and a rule needs at least 4"),
        ({"blocks": 2}, "0 networks with enough blocks"),
    ],
)
def test_a_run_that_cannot_be_judged_is_refused_with_what_to_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, Any], reason: str
) -> None:
    run = recorded(tmp_path, crossing, **settings)
    assert lab.main(["advise", run]) == 2
    assert reason in capsys.readouterr().err


def test_the_same_run_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = recorded(tmp_path, crossing, blocks=3)
    assert lab.main(["advise", run, run]) == 2
    assert "both are the same run" in capsys.readouterr().err
