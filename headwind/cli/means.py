"""What a run and a worker take from outside: Docker's images and testbeds, time, and how long they wait for others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwind.arm import Congestion
from headwind.cli.redrawing import Redrawing
from headwind.clock import CLOCK, Clock
from headwind.cluster.link import PATIENCE_S
from headwind.cluster.station import BUSY_S
from headwind.testbed.docker import Say
from headwind.testbed.images import Images, ensure_images
from headwind.testbed.testbed import Testbed, other_labs, sweep
from impair.profile import Profile

if TYPE_CHECKING:
    from headwind.run.journal import Run

Up = Callable[[str, Congestion, str, Say, Collection[Profile]], AbstractContextManager[Testbed]]


@dataclass(frozen=True, slots=True)
class Means:
    """Those of this machine. Whoever has others than Docker's testbeds gives them to `lab.main`."""

    sweep: Callable[[Say, bool], int] = sweep
    ensure_images: Callable[[Say], Images] = ensure_images
    up: Up = Testbed.up
    other_labs: Callable[[], Mapping[str, int]] = other_labs  # testbeds of labs that run beside this one, by owner
    clock: Clock = CLOCK
    patience_s: float = PATIENCE_S  # of a run, for a station that does not answer
    busy_s: float = BUSY_S  # of a station, for a run that is silent
    redrawing: Callable[[Run, Say], Redrawing] = Redrawing
