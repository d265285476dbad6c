"""External dependencies of a run and a worker: Docker's images and testbeds, the clock, and timeouts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwind.cli.redrawing import Redrawing
from headwind.clock import CLOCK, Clock
from headwind.cluster.connection import PATIENCE_S
from headwind.cluster.worker import BUSY_S
from headwind.servers import Server
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.containers import other_labs, sweep
from headwind.testbed.docker import Say
from headwind.testbed.images import Images, ensure_images
from headwind.testbed.kept_images import KeptImage, kept_images, remove_images
from headwind.testbed.own_server import OwnImage, ensure_image
from headwind.testbed.testbed import Testbed

if TYPE_CHECKING:
    from headwind.run.journal import Run

Up = Callable[[BedSpec, Say], AbstractContextManager[Testbed]]


@dataclass(frozen=True, slots=True)
class Dependencies:
    """External dependencies; the defaults are those of this machine. Tests inject others through `lab.main`."""

    sweep: Callable[[Say, bool], int] = sweep
    ensure_images: Callable[[Say, Collection[str]], Images] = ensure_images
    kept_images: Callable[[], list[KeptImage]] = kept_images
    remove_images: Callable[[Say], int] = remove_images
    ensure_own_image: Callable[[Server, Say], OwnImage] = ensure_image
    up: Up = Testbed.up
    other_labs: Callable[[], Mapping[str, int]] = other_labs  # owner -> testbeds, of other labs that are running
    clock: Clock = CLOCK
    patience_s: float = PATIENCE_S  # how long a run waits for a worker that does not answer
    busy_s: float = BUSY_S  # how long a worker waits for a run that sends nothing
    redrawing: Callable[[Run, Say], Redrawing] = Redrawing
