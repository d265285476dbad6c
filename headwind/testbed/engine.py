"""Chooses the engine, and says why: netem of the host's kernel, or of the user-mode kernel in the router's image.

`auto` takes the kernel's where it can do, and prove, all that the matrix needs; else the user-mode kernel's, where that
runs; else the kernel's with what is possible, and says so. What a kernel can do is found by trying
(impair/router/tryout.py). The table here says what to expect of a version; docs/kernels.md shows it, `lab.py doctor`
the row of the host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count

from headwind.errors import HeadwindError
from headwind.proof.uncounted import shows_reordering
from impair.ability import Ability
from impair.profile import Delay, Direction, Link, Loss, Profile, Reorder

NO_SEEDS = "no seeds (they came with 6.6): a run cannot be repeated packet by packet"
NO_COUNTERS = "no counter of reordering (it came with 7.2), and probes cannot show one this rare or this short"
MODPROBE = "`modprobe sch_netem` helps where the kernel has it as a module"

UML = "impair.router.uml"  # the router's program for the user-mode kernel
TURNS = count(os.getpid())  # of the processors, so that the user-mode kernels of several lanes lie evenly on all


class EngineError(HeadwindError):
    """No engine here can make the networks that were asked for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine of a run, `kernel` or `uml`; why, in one sentence; and what it lacks of what the matrix needs."""

    engine: str
    reason: str
    lacks: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing that a person must know: the kernel's own netem, and nothing missing."""
        return self.engine == "kernel" and not self.lacks


def lacking(ability: Ability, profiles: Collection[Profile]) -> Iterator[str]:
    """What a kernel that has netem lacks to do, repeat and prove these networks; nothing for a 7.2.

    Without counters corruption is proven by checksums and probes (headwind/proof/corruption.py and uncounted.py),
    reordering by probes alone.
    """
    for name, words in ability.refused.items():
        yield f"no way to make profile {name} ({words})"
    if not ability.seed:
        yield NO_SEEDS
    if not ability.counters and any(_needs_counters(profile) for profile in profiles):
        yield NO_COUNTERS


def _needs_counters(profile: Profile) -> bool:
    return not all(shows_reordering(profile.link(direction)) for direction in Direction)


def wants_uml(ability: Ability, profiles: Collection[Profile]) -> bool:
    """Whether `auto` should try the user-mode kernel before it takes this one."""
    return not ability.netem or any(lacking(ability, profiles))


def chosen(asked: str, ability: Ability, profiles: Collection[Profile], uml_refusal: str | None) -> Choice:
    """The engine to use on a host whose own kernel has `ability`.

    `asked` is auto or kernel; `uml_refusal` says why the user-mode kernel does not run here, None where it does. Raises
    EngineError where none can make all of `profiles`.
    """
    kernel = f"this kernel ({ability.kernel})"
    lacks = tuple(lacking(ability, profiles)) if ability.netem else (f"no netem: {ability.why}",)
    if not lacks:
        return Choice("kernel", f"engine kernel: {kernel} can do, repeat and prove all that the matrix needs")
    if asked == "auto" and uml_refusal is None:
        return Choice("uml", f"engine uml, because {kernel} has {'; '.join(lacks)}")
    instead = f"engine uml does not run here: {uml_refusal}" if asked == "auto" else "engine uml was not asked for"
    if not ability.netem or ability.refused:
        fix = "use --engine uml, or another host" if asked == "kernel" else "use another host"
        mend = f"{fix}; {MODPROBE}" if not ability.netem else fix
        raise EngineError(f"engine kernel cannot make these networks: {kernel} has {lacks[0]}; {instead}. So {mend}")
    return Choice("kernel", f"engine kernel, although {kernel} has {'; '.join(lacks)}; {instead}", lacks)


@dataclass(frozen=True, slots=True)
class KernelRow:
    """What netem of a range of kernel versions can do; `bugs` are the known ones that matter, and what the lab does."""

    name: str
    since: tuple[int, int]
    tried: str  # the release in which the lab's own code ran
    seed: bool
    counters: bool
    bugs: str

    @property
    def ability(self) -> Ability:
        """What impair/router/tryout.py should find."""
        return Ability(netem=True, why="by its version", kernel=self.name, seed=self.seed, counters=self.counters)

    @property
    def can(self) -> str:
        """What netem can do, in words."""
        seeds = "seeds" if self.seed else "no seeds"
        return f"every impairment; {seeds}; {'a counter for each' if self.counters else 'no counter for each'}"

    @property
    def auto(self) -> str:
        """What `auto` chooses, in words that follow from `chosen`."""
        plain, counted = (chosen("auto", self.ability, (profile,), None).engine for profile in (PLAIN, COUNTED))
        if plain == counted == "kernel":
            return "`kernel`"
        if plain == counted:
            return f"`{plain}`; where that does not run, `kernel`"
        unless = f"for a matrix with a reorder that probes cannot show `{counted}`"
        return f"`{plain}`; {unless}, and where that does not run `kernel`"


PLAIN = Profile("plain", downlink=Link(loss=Loss(0.01)))
COUNTED = Profile("counted", downlink=Link(delay=Delay(0.1), reorder=Reorder(0.01)))
ONE_PIECE = "`corrupt` hits only what lies in one piece: the endpoints send frames in one piece (scatter-gather off)"
NOT_TWICE = "refuse two netems in one tree where either duplicates: the lab has one on each interface"
KERNELS = (
    KernelRow("before 6.6", (0, 0), "6.1.176", seed=False, counters=False,
              bugs=f"{ONE_PIECE}; 6.1.148 and later {NOT_TWICE}"),
    KernelRow("6.6 to 7.1", (6, 6), "6.12.101", seed=True, counters=False,
              bugs=f"{ONE_PIECE}; 6.12.42 to 6.12.92 {NOT_TWICE}"),
    KernelRow("7.2 and later", (7, 2), "7.2.7", seed=True, counters=True, bugs="none"),
)  # fmt: skip


def row_of(release: str) -> KernelRow:
    """The row of a kernel release such as `6.1.0-13-amd64`; the first one for what is no version."""
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    return [row for row in KERNELS if row.since <= version][-1]


def kernel_table() -> str:
    """The table of docs/kernels.md."""
    head = ("kernel", "tried with", "its netem", "known bugs that matter, and what the lab does", "`auto` chooses")
    rows = [(row.name, row.tried, row.can, row.bugs, row.auto) for row in KERNELS]
    rows.append(("any, without netem", "6.18.44", "nothing", "none", "`uml`; where that does not run, nothing is run"))
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
