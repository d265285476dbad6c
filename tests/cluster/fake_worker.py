"""`lab.py worker` with fake testbeds under it, as a separate process: fake_worker.py ADDRESS NAME [KEY=VALUE...]."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import lab
from headwind.testbed.testbed import Testbed
from tests.fake_testbed import IMAGES, World, fake_dependencies, fake_testbed

OPTIONS = dict(text.split("=") for text in sys.argv[3:])
TRIAL_S = float(OPTIONS.get("trial_s", "0.05"))


@contextmanager
def up() -> Iterator[Testbed]:
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
    built = replace(IMAGES, ids={**IMAGES.ids, "nginx": OPTIONS.get("nginx", "sha256:1")})
    deps = fake_dependencies(up, ensure_images=lambda *_: built, busy_s=2.0)
    sys.exit(lab.main(["worker", sys.argv[1], "--name", sys.argv[2]], deps))
