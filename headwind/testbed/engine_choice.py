"""Chooses the engine, with the reason: netem of the host's kernel, or of the user-mode kernel in the router's image.

`auto` takes the host's kernel if it supports and verifies everything that the matrix needs; else the user-mode kernel,
if that runs; else the host's kernel with what is possible, and a warning. Capabilities are found by trying
(impair/router/try_netem.py). The table here lists what to expect of a version; docs/kernels.md shows it, `lab.py
doctor` the row of the host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count

from headwind.engines import AUTO, KERNEL, UML, Engine
from headwind.errors import HeadwindError
from headwind.format import enumerated
from headwind.proof.probed_decisions import shows_reordering
from impair.capabilities import NetemCapabilities
from impair.profile import Delay, Direction, Link, Loss, Profile, Reorder

NO_NETEM = "no netem"
NO_SEEDS = "no seeds (new in 6.6): a run cannot be repeated packet by packet"
NO_COUNTERS = "no counter of reordering (new in 7.2), and probes cannot verify one this rare or this short"
MODPROBE = (
    "`modprobe sch_netem` enables it if the kernel has it as a module, which some distributions package separately "
    "(Ubuntu: linux-modules-extra-$(uname -r); Fedora and RHEL: kernel-modules-extra)"
)

TURNS = count(os.getpid())  # spread the user-mode kernels of several lanes evenly over the CPUs


class EngineError(HeadwindError):
    """No engine on this host can provide the requested networks."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine of a run, the reason for it in one sentence, and the features that it lacks for the matrix."""

    engine: Engine
    reason: str
    lacks: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether no message is needed: the kernel's own netem, and nothing missing."""
        return self.engine is KERNEL and not self.lacks

    @property
    def hint(self) -> str:
        """The way to use the faster engine, if the user-mode kernel was taken for want of netem; empty otherwise."""
        return (
            f"The other engine, `kernel`, is faster; {MODPROBE}"
            if self.engine is UML and NO_NETEM in self.reason
            else ""
        )

    @property
    def text(self) -> str:
        """The reason, followed by the hint if there is one."""
        return ". ".join(filter(None, (self.reason, self.hint)))


def lacking(ability: NetemCapabilities, profiles: Collection[Profile]) -> Iterator[str]:
    """Missing features, in a kernel with netem, to apply, repeat and verify these networks; empty for a 7.2.

    Without counters corruption is verified by checksums and probes (headwind/proof/corruption.py and
    probe_checks.py), reordering by probes alone.
    """
    for name, words in ability.refused.items():
        yield f"no support for profile {name} ({words})"
    if not ability.seed:
        yield NO_SEEDS
    if not ability.counters and any(_needs_counters(profile) for profile in profiles):
        yield NO_COUNTERS


def _needs_counters(profile: Profile) -> bool:
    """Whether probes cannot show all of it: no probe passes the later networks of a profile that changes."""
    later = [link for direction in Direction for link in profile.links(direction)[1:]]
    unseen = any(link.corrupt or link.reorder for link in later)
    return unseen or not all(shows_reordering(profile.link(direction)) for direction in Direction)


def wants_uml(ability: NetemCapabilities, profiles: Collection[Profile]) -> bool:
    """Whether `auto` should try the user-mode kernel before it takes this one."""
    return not ability.netem or any(lacking(ability, profiles))


def chosen(asked: str, ability: NetemCapabilities, profiles: Collection[Profile], uml_refusal: str | None) -> Choice:
    """The engine to use on a host whose own kernel has `ability`.

    `asked` is `auto` or `kernel`; `uml_refusal` is the reason why the user-mode kernel does not run here, None if it
    does. Raises EngineError if no engine can provide all of `profiles`.
    """
    kernel = f"this kernel ({ability.kernel})"
    lacks = tuple(lacking(ability, profiles)) if ability.netem else (f"{NO_NETEM}: {ability.why}",)
    if not lacks:
        return Choice(KERNEL, f"engine kernel: {kernel} supports, seeds and verifies everything this matrix needs")
    if asked == AUTO and uml_refusal is None:
        return Choice(UML, f"engine uml (netem in a user-mode kernel), because {kernel} has {'; '.join(lacks)}")
    instead = f"engine uml does not run here: {uml_refusal}" if asked == AUTO else "engine uml was not requested"
    if not ability.netem or ability.refused:
        fix = "Use another host" if asked == AUTO else "Use --engine uml, or another host"
        advice = f"{fix}; {MODPROBE}" if not ability.netem else fix
        raise EngineError(f"engine kernel cannot provide these networks: {kernel} has {lacks[0]}; {instead}. {advice}")
    return Choice(KERNEL, f"engine kernel, although {kernel} has {'; '.join(lacks)}; {instead}", lacks)


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Capabilities of netem in a range of kernel versions; `bugs`: known relevant bugs, and how the lab avoids them."""

    name: str
    since: tuple[int, int]
    tried: str  # the release in which the lab's own code ran
    seed: bool
    counters: bool
    bugs: str

    @property
    def ability(self) -> NetemCapabilities:
        """The expected result of impair/router/try_netem.py."""
        return NetemCapabilities(
            netem=True, why="by its version", kernel=self.name, seed=self.seed, counters=self.counters
        )

    @property
    def can(self) -> str:
        """The capabilities of netem, as text."""
        has = [name for name, one in (("seeds", self.seed), ("a counter per impairment", self.counters)) if one]
        lacks = [name for name, one in (("seeds", self.seed), ("counter per impairment", self.counters)) if not one]
        without = f", but no {' and no '.join(lacks)}" if lacks else ""
        return f"{enumerated(['every impairment', *has])}{without}"

    @property
    def auto(self) -> str:
        """The choice of `auto`, as text that follows from `chosen`."""
        plain, counted = (chosen(AUTO, self.ability, (profile,), None).engine for profile in (PLAIN, COUNTED))
        if plain is counted is KERNEL:
            return "`kernel`"
        if plain is counted:
            return f"`{plain.name}`, or `kernel` if that does not run"
        unless = f"for a matrix with a reorder that probes cannot show, `{counted.name}`"
        return f"`{plain.name}`; {unless}, or `kernel` if that does not run"


PLAIN = Profile("plain", downlink=Link(loss=Loss(0.01)))
COUNTED = Profile("counted", downlink=Link(delay=Delay(0.1), reorder=Reorder(0.01)))
ONE_PIECE = "`corrupt` only hits contiguous data, so the endpoints send contiguous frames (scatter-gather off)"
NOT_TWICE = "refuse two netems in one tree if either duplicates, so the lab puts one on each interface"
KERNELS = (
    KernelRow("before 6.6", (0, 0), "6.1.176", seed=False, counters=False,
              bugs=f"{ONE_PIECE}; 6.1.148 and later {NOT_TWICE}"),
    KernelRow("6.6 to 7.1", (6, 6), "6.12.101", seed=True, counters=False,
              bugs=f"{ONE_PIECE}; 6.12.42 to 6.12.92 {NOT_TWICE}"),
    KernelRow("7.2 and later", (7, 2), "7.2.7", seed=True, counters=True, bugs="none"),
)  # fmt: skip
WITHOUT_NETEM = ("any, without netem", "6.18.44", "nothing", "none", "`uml`; if that does not run, no run starts")


def row_of(release: str) -> KernelRow:
    """The row of a kernel release such as `6.1.0-13-amd64`; the first row if it is not a version."""
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    return [row for row in KERNELS if row.since <= version][-1]


def expected(release: str, has_netem: bool | None) -> str:
    """The expected capabilities of a kernel release, as text; `has_netem` is None if that is unknown."""
    if has_netem is False:
        return "no netem"
    row = row_of(release)
    return f"{'netem' if has_netem else 'its netem, if any,'} supports {row.can} (kernels {row.name})"


def kernel_table() -> str:
    """The table of docs/kernels.md."""
    head = ("kernel", "tried with", "its netem", "known bugs that matter, and what the lab does", "`auto` chooses")
    rows = [(row.name, row.tried, row.can, row.bugs, row.auto) for row in KERNELS]
    lines = [head, ("---",) * len(head), *rows, WITHOUT_NETEM]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
