"""The Debian packages of an image, with versions and licences: read in a container without network and rights."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from headwind.testbed.docker import Docker, docker

LISTING = ("dpkg-query", "--show", "--showformat", "${Package} ${Version} ${Architecture}\\n")
UNPRIVILEGED = "65534"
ONCE = ("run", "--rm", "--network", "none", "--cap-drop", "ALL", "--read-only", "--entrypoint")
# Copyright files in the machine-readable form (DEP-5) have a line for each licence. Others are free text.
LICENCES = "grep -H -E '^License: *[^ ]' /usr/share/doc/*/copyright | sort -u || true"


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """A Debian package, and its licences as far as Debian's copyright file lists them."""

    name: str
    version: str
    architecture: str
    licences: tuple[str, ...] = ()


def installed(container: str, docker: Docker = docker) -> list[str]:
    """`name=version` of each package in a running container, sorted. Raises DockerError."""
    lines = docker("exec", "--user", UNPRIVILEGED, container, *LISTING).splitlines()
    return sorted("=".join(line.split()[:2]) for line in lines)


def installed_in(containers: Mapping[str, str], docker: Docker = docker) -> dict[str, list[str]]:
    """The packages of several containers (`installed`), by service. Raises DockerError."""
    with ThreadPoolExecutor(len(containers) or 1) as pool:
        return dict(zip(containers, pool.map(partial(installed, docker=docker), containers.values()), strict=True))


def packages_of(image: str, docker: Docker = docker) -> list[Package]:
    """The packages of an image, sorted. Raises DockerError."""
    listed = docker(*ONCE, LISTING[0], image, *LISTING[1:])
    licences = _licences(docker(*ONCE, "sh", image, "-c", LICENCES))
    return sorted(
        Package(name, version, architecture, licences.get(name, ()))
        for name, version, architecture in map(str.split, listed.splitlines())
    )


def _licences(lines: str) -> Mapping[str, tuple[str, ...]]:
    """Licences by package, from `/usr/share/doc/NAME/copyright:License: TEXT`."""
    found: dict[str, set[str]] = {}
    for line in lines.splitlines():
        file, _, text = line.partition(":License:")
        found.setdefault(file.split("/")[-2], set()).add(" ".join(text.split())[:80])
    return {name: tuple(sorted(texts)) for name, texts in found.items()}
