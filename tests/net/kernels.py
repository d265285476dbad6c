"""Kernels that people have, in the router: Debian's user-mode-linux of earlier releases over this tree's router image.

    .venv/bin/python -m tests.net.kernels trixie experiments/smoke.yaml --reports /tmp/reports

runs a matrix with Debian 13's kernel in the router. The lab's code is then that of any engine on such a kernel: the
same agent, the same netem messages, another netem. What boots it is the launcher of engine uml.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

import lab
from headwind.cli.dependencies import Dependencies
from headwind.matrix.reader import load_matrix
from headwind.testbed import images
from headwind.testbed.docker import DockerError, docker
from headwind.testbed.images import Images

KERNELS = {"bookworm": "6.1", "trixie": "6.12"}  # Debian's suite -> its kernel; the router image has forky's
DOCKERFILE = "tests/net/old-kernel/Dockerfile"


def with_kernel(present: Images, suite: str) -> Images:
    """The images, of which the router's has the kernel of `suite`, and its own tag; layers are cached.

    Raises DockerError when apt cannot get the package.
    """
    tags = {**present.tags, "impair": f"{present.tags['impair']}-{suite}"}
    router = images.reference("impair", tags["impair"])
    given = {"BASE": images.BASE, "ROUTER": present.reference("impair"), "SUITE": suite}
    arguments = [word for name, value in given.items() for word in ("--build-arg", f"{name}={value}")]
    docker("build", "--tag", router, "--file", DOCKERFILE, *arguments, str(Path(DOCKERFILE).parent))
    identity = docker("image", "inspect", "--format", "{{.Id}}", router).strip()
    return replace(present, tags=tags, ids={**present.ids, "impair": identity})


def with_kernel_of(suite: str, present: Images) -> Images:
    """With the kernel of a Debian suite in the router ("forky": the image's own); skips where it cannot be had."""
    try:
        return with_kernel(present, suite) if suite in KERNELS else present
    except DockerError as error:
        pytest.skip(f"no kernel of {suite} to be had: {error}")


def run_lab(suite: str, matrix: Path, reports: Path) -> int:
    """`lab.py run` with the kernel of `suite` in the router; the exit code."""
    prepared = with_kernel(images.ensure_images(print, images.needed()), suite)
    deps = Dependencies(ensure_images=lambda *_: prepared)
    loaded = load_matrix(matrix)
    return lab.run_matrix(loaded, reports, "uml", None, deps=deps, ending=[], verbose=True, junit=False)[1]


def main() -> int:
    """Run a matrix with an older kernel in the router."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("suite", choices=KERNELS)
    parser.add_argument("matrix", type=Path)
    parser.add_argument("--reports", type=Path, required=True)
    given = parser.parse_args()
    return run_lab(given.suite, given.matrix, given.reports)


if __name__ == "__main__":
    raise SystemExit(main())
