"""The engine of choice: the kernel's own netem where it can do and prove all; else uml; else what is possible, said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwind.engines import AUTO, KERNEL, UML
from headwind.matrix.reader import load_matrix
from headwind.testbed.engine_choice import (
    COUNTED,
    KERNELS,
    NO_COUNTERS,
    NO_SEEDS,
    PLAIN,
    EngineError,
    KernelRow,
    chosen,
    kernel_table,
    lacking,
    row_of,
    wants_uml,
)
from impair.capabilities import EVERY_KIND, NetemCapabilities
from impair.profile import Corrupt, Delay, Link, Profile, Reorder

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "kernels.md"
OLD, MIDDLE, NEW = (row.ability for row in KERNELS)
NONE = NetemCapabilities(netem=False, why="Specified qdisc kind is unknown", kernel="6.18.44")
REORDERED = Profile("reordered", uplink=Link(delay=Delay(0.1), reorder=Reorder(0.25)))
CORRUPTED = Profile("corrupted", uplink=Link(corrupt=Corrupt(0.01)))
NO_UML = "user-mode Linux exists for x86_64 only"


@pytest.mark.parametrize(
    ("ability", "profile", "lacks"),
    [
        (OLD, PLAIN, [NO_SEEDS]),
        (OLD, COUNTED, [NO_SEEDS, NO_COUNTERS]),
        (MIDDLE, PLAIN, []),
        (MIDDLE, COUNTED, [NO_COUNTERS]),
        (MIDDLE, REORDERED, []),
        (MIDDLE, Profile("short", uplink=Link(delay=Delay(0.002), reorder=Reorder(0.5))), [NO_COUNTERS]),
        (MIDDLE, CORRUPTED, []),
        (OLD, CORRUPTED, [NO_SEEDS]),
        (MIDDLE, Profile("zero", uplink=Link(delay=Delay(0.1), reorder=Reorder(0.0))), []),
        (NEW, COUNTED, []),
    ],
)
def test_what_a_kernel_lacks_depends_on_what_the_matrix_needs(
    ability: NetemCapabilities, profile: Profile, lacks: list[str]
) -> None:
    assert list(lacking(ability, [PLAIN, profile])) == lacks
    assert wants_uml(ability, [PLAIN, profile]) is bool(lacks)
    with_uml, without = (chosen("auto", ability, [profile], refusal) for refusal in (None, NO_UML))
    assert with_uml.engine is (UML if lacks else KERNEL)
    assert (without.engine, list(without.lacks)) == (KERNEL, lacks)
    assert without.is_plain is not bool(lacks)
    for words in lacks:
        assert words in with_uml.reason
        assert words in without.reason
        assert NO_UML in without.reason


def test_a_kernel_that_refuses_one_network_is_not_used_for_it() -> None:
    ability = replace(NEW, refused={"slotted": "asked for slot = 1, the kernel reads back None"})
    assert chosen("auto", ability, EVERY_KIND, None).engine is UML
    for asked, refusal in (("auto", NO_UML), ("kernel", None)):
        with pytest.raises(EngineError, match="no support for profile slotted") as refused:
            chosen(asked, ability, EVERY_KIND, refusal)
        assert "modprobe" not in str(refused.value), "a module does not help here"


def test_without_netem_there_is_uml_or_one_clear_sentence() -> None:
    assert wants_uml(NONE, [])
    assert chosen("auto", NONE, [PLAIN], None).engine is UML
    for asked, refusal, words in (("auto", NO_UML, NO_UML), ("kernel", None, "Use --engine uml")):
        with pytest.raises(EngineError, match="qdisc kind is unknown") as refused:
            chosen(asked, NONE, [PLAIN], refusal)
        assert words in str(refused.value)
        assert "modprobe sch_netem" in str(refused.value)
        assert "\n" not in str(refused.value)


def test_engine_kernel_is_taken_as_asked_and_its_lacks_are_said() -> None:
    choice = chosen("kernel", OLD, [COUNTED], None)
    assert (choice.engine, choice.lacks) == (KERNEL, (NO_SEEDS, NO_COUNTERS))
    assert NO_SEEDS in choice.reason
    assert "not requested" in choice.reason


def test_a_kernel_with_seeds_and_without_counters_proves_the_default_matrix() -> None:
    matrix = load_matrix(DOCUMENT.parent.parent / "matrix.yaml")
    profiles = [condition.profile for condition in matrix.conditions]
    assert chosen("auto", MIDDLE, profiles, None).is_plain


@pytest.mark.parametrize(
    ("release", "row"),
    [
        ("6.1.0-13-amd64", 0), ("5.15.0", 0), ("6.5.13", 0), ("6.6.0", 1), ("6.12.101", 1), ("6.18.44-fc-v669", 1),
        ("7.1.9", 1), ("7.2.7", 2), ("7.10.1", 2), ("10.0", 2), ("what", 0),
    ],
)  # fmt: skip
def test_a_release_has_one_row(release: str, row: int) -> None:
    assert row_of(release) is KERNELS[row]


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_a_row_is_about_the_release_that_was_tried(row: KernelRow) -> None:
    assert row_of(row.tried) is row


def test_the_document_shows_the_table_of_the_code() -> None:
    """On failure: put what `kernel_table` returns into the document."""
    assert kernel_table() in DOCUMENT.read_text()


def test_a_user_mode_kernel_for_want_of_netem_comes_with_the_packages_that_have_it() -> None:
    """Ubuntu's cloud kernels and those of Fedora have the module in another package; the other engine is faster."""
    hint = chosen(AUTO, NONE, (PLAIN,), None).hint
    for package in ("linux-modules-extra-$(uname -r)", "kernel-modules-extra"):
        assert package in hint
        assert package in DOCUMENT.read_text()
    old = chosen(AUTO, OLD, (PLAIN,), None)
    assert (old.engine, old.hint) == (UML, "")
