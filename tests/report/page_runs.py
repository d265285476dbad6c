"""Runs of pages on the fake testbed, for the tests of what the report makes of their requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headwind.arm import PLAIN
from headwind.model import Condition, Matrix, Repetition, Result
from headwind.plan.block_order import plan_blocks
from headwind.run.page_requests import PageRequest
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from headwind.workloads.page import Page
from impair.profile import Delay, Link, Profile
from tests.fake_testbed import RULES, World, fake_path
from tests.matrix_files import MINIMAL, load

FAR = Profile("far", Link(Delay(0.02)), Link(Delay(0.02)))
PAGE, OBJECTS = Condition(FAR, Page("page", 12, 10_000)), Condition(FAR, H2load("many", 20, 2, 2))
ANSWERED = PageRequest(0.0, 0.1, 0.3, 0.6)


def page_run(tmp_path: Path) -> tuple[Matrix, list[Result]]:
    """Five blocks of a page, and of another workload."""
    matrix = replace(load(MINIMAL, tmp_path), arms=PLAIN, conditions=(PAGE, OBJECTS), repeat=Repetition.fixed(5))
    with fake_path(World()) as path:
        return matrix, [run_trial(path, trial, RULES) for block in plan_blocks(matrix) for trial in block.trials()]
