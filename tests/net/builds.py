"""Builds images for tests: of the programs that run at the same time one builds an image, and the others wait for it.

`python3 -m tests.net.builds` builds what every testbed needs, with any Python and no package: `make test` starts it
before it installs packages and runs checks.
"""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from headwind.testbed.docker import ROOT
from headwind.testbed.images import IMAGES, Images, ensure_images, main, needed


@contextmanager
def alone(what: Path = Path(__file__)) -> Iterator[None]:
    """Let one process at a time inside with the same file."""
    with what.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def alone_with(names: Collection[str]) -> Iterator[None]:
    """Let one process at a time build these images."""
    with ExitStack() as stack:
        for name in sorted(names):  # so that no two wait for each other
            stack.enter_context(alone(ROOT / IMAGES[name].dockerfile))
        yield


def built(names: Collection[str]) -> Images:
    """Images of this tree, built if they are missing."""
    with alone_with(names):
        return ensure_images(print, names)


if __name__ == "__main__":
    with alone_with(needed()):
        sys.exit(main())
