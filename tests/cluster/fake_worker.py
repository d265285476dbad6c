"""`lab.py worker` with fake testbeds under it, as a process of its own: fake_worker.py ADDRESS NAME [KEY=VALUE...]."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import lab
from headwind.cluster import station
from headwind.testbed import images, testbed
from headwind.testbed.images import Images
from tests.fake_testbed import World, fake_testbed

OPTIONS = dict(text.split("=") for text in sys.argv[3:])
TRIAL_S = float(OPTIONS.get("trial_s", "0.05"))
IMAGES = {"server": OPTIONS.get("server", "sha256:1"), "client": "sha256:2", "impair": "sha256:3"}


@contextmanager
def up(*_: object) -> Iterator[testbed.Testbed]:
    """A fake testbed whose trials take a while, and which writes down what it ran."""
    with fake_testbed(World(load=0.05)) as bed:
        bed.name = f"{sys.argv[2]}-{os.getpid()}-{bed.name}"
        run = bed.client.do_run  # type: ignore[attr-defined]

        def slowly(**asked: object) -> object:
            time.sleep(TRIAL_S)
            if "log" in OPTIONS:
                with Path(OPTIONS["log"]).open("a") as file:
                    file.write(f"{sys.argv[2]} {asked['protocol']}\n")
            return run(**asked)

        bed.client.do_run = slowly  # type: ignore[attr-defined]
        try:
            yield bed
        finally:
            sys.stdout.write(f"down: {bed.name}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    built = Images("tag", IMAGES, "docker", False, 0.0)
    with (
        patch.object(images, "ensure_images", lambda _: built),
        patch.object(testbed.Testbed, "up", up),
        patch.object(testbed, "sweep", lambda *_, **__: 0),
        patch.object(station, "BUSY_S", 2.0),
    ):
        sys.exit(lab.main(["worker", sys.argv[1], "--name", sys.argv[2]]))
