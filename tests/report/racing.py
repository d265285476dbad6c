"""Runs in which it is known who is faster, and where."""

from __future__ import annotations

from dataclasses import replace

from headwind.arm import Arm
from headwind.report import RunData
from impair.profile import Corrupt, Duplicate, Link, Loss, Profile
from tests.fake import PROFILES, example_matrix, trials_of
from tests.golden.runs import Golden, shaken, took

MORE = (
    Profile("duplicate", downlink=Link(duplicate=Duplicate(0.7))),
    Profile("corrupt", downlink=Link(corrupt=Corrupt(0.2))),
    Profile("loss-1", downlink=Link(loss=Loss(0.01))),
)


def raced(speeds: dict[Arm, float], *profiles: Profile, repeat: int = 12) -> RunData:
    """A run in which each protocol is so many times as fast, give or take 1 %."""
    matrix = example_matrix(*profiles, repeat=repeat)
    results = (took(trial, shaken(trial) ** 0.3 / speeds[trial.arm]) for trial in trials_of(matrix))
    return Golden(matrix, tuple(results)).data("x")


def over_eight(beats: dict[Arm, dict[int, float]]) -> RunData:
    """Eight networks; in some an arm is so many times as fast as the others, the rest are too noisy to tell."""
    profiles = [*PROFILES, *MORE]
    matrix, known = example_matrix(*profiles, repeat=12), {number for found in beats.values() for number in found}
    place = {profile.name: number for number, profile in enumerate(profiles)}
    results = []
    for trial in trials_of(matrix):
        number = place[trial.profile.name]
        speed = beats.get(trial.arm, {}).get(number, 1.0)
        results.append(replace(took(trial, shaken(trial) ** (0.3 if number in known else 30) / speed)))
    return Golden(matrix, tuple(results)).data("x")
