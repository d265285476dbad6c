"""Runs of pages and of other workloads, for the tests of what the report makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headwind.arm import H3, PLAIN
from headwind.metric import Metric
from headwind.model import Condition, Matrix, Repetition, Result, Trial
from headwind.plan.block_order import plan_blocks
from headwind.run.page_requests import PageRequest
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from headwind.workloads.page import Page
from headwind.workloads.transfer import Transfer
from headwind.workloads.ttfb import Ttfb
from impair.profile import Delay, Link, Profile
from tests.fake import ARTICLE, example_matrix, trials_of
from tests.fake_testbed import RULES, World, fake_path
from tests.golden.runs import Golden, shaken, took
from tests.matrix_files import MINIMAL, load

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
PAGE, OBJECTS = Condition(FAR, Page("page", 12, 10_000)), Condition(FAR, H2load("many", 20, 2, 2))
ANSWERED = PageRequest(0.0, 0.1, 0.3, 0.6)
KINDS = (ARTICLE, PAGE.workload, Transfer("download", 1, 1, 1), Ttfb("first", path="/612"))
# Figures of all sizes by their unit, with no more digits than the page has of them.
FIGURES = {
    "s": (0.0, 12.345e-6, 0.00071234, 0.0009996, 0.25, 0.9996, 1.0, 9.9949, 59.96, 1234.5),
    "bps": (0.0, 999.6, 86_300.0, 8_634_500.0, 999_600.0, 2.5e9),
    "per_s": (0.0, 0.012345, 999.6, 12_345.0),
    "ratio": (0.0, 0.0012345, 0.5, 0.9996, 1.0),
    "": (0.0, 1.0, 2.5, 1234.0, 123_450.0),
}


def page_run(tmp_path: Path) -> tuple[Matrix, list[Result]]:
    """Five blocks of a page, and of another workload."""
    matrix = replace(load(MINIMAL, tmp_path), arms=PLAIN, conditions=(PAGE, OBJECTS), repeat=Repetition.fixed(5))
    with fake_path(World()) as path:
        return matrix, [run_trial(path, trial, RULES) for block in plan_blocks(matrix) for trial in block.trials()]


def kinds_run() -> Golden:
    """Four networks with four kinds of workload, of which each has metrics of its own."""
    networks = [Profile("clean"), *(Profile(f"delay{ms}", Link(Delay(ms / 1000))) for ms in (10, 20, 50))]
    conditions = tuple(Condition(network, workload) for network in networks for workload in KINDS)
    matrix = replace(example_matrix(repeat=12, title="Four kinds"), conditions=conditions)
    return Golden(matrix, tuple(_of_its_kind(trial) for trial in trials_of(matrix)))


def _of_its_kind(trial: Trial) -> Result:
    time_s = shaken(trial) / (1.5 if trial.protocol is H3.protocol else 1)
    workload = trial.block.condition.workload
    metrics = {metric.key: _figure(trial, place, metric) for place, metric in enumerate(workload.metrics)}
    return replace(took_of_article(trial, time_s), metrics=metrics | {workload.primary().key: float(f"{time_s:.5g}")})


def _figure(trial: Trial, place: int, metric: Metric) -> float:
    figures = FIGURES[metric.unit]
    return figures[(trial.block.index + place + trial.position) % len(figures)]


def took_of_article(trial: Trial, time_s: float) -> Result:
    """As `took`, which knows the metrics of one kind, for a trial of any kind."""
    block = trial.block
    article = replace(trial, block=replace(block, condition=Condition(block.condition.profile, ARTICLE)))
    return replace(took(article, time_s), trial=trial)


def single_protocol_run() -> Golden:
    """HTTP/3 alone over 15 networks: nothing is compared."""
    networks = [Profile(f"delay{ms}", Link(Delay(ms / 1000))) for ms in range(10, 160, 10)]
    matrix = example_matrix(*networks, repeat=2, title="HTTP/3 alone", arms=(H3,))
    return Golden(matrix, tuple(took(trial, shaken(trial)) for trial in trials_of(matrix)))
