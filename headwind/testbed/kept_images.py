"""Images that stay on the host after a run, on purpose: the next run starts at once. Lists them, and removes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwind.format import counted
from headwind.own_command import lab_command
from headwind.testbed.docker import Docker, DockerError, Say, docker
from headwind.testbed.images import BASE

NAMES = "headwind-*"  # of all images of this and earlier versions
STAGE = "/build/build-h2load.sh"  # the last step of the stage of client/Dockerfile that has no name


@dataclass(frozen=True, slots=True)
class KeptImage:
    """An image on this host: its name (its id, if it is a nameless layer of a build), and its size in bytes.

    Images share layers, so their sizes do not add up.
    """

    name: str
    size_bytes: int


def kept_images(docker: Docker = docker, names: str = NAMES) -> list[KeptImage]:
    """All images of the lab, sorted by name. Raises DockerError."""
    listed = docker("image", "ls", "--filter", f"reference={names}", "--format", "{{.Repository}}:{{.Tag}}").split()
    nameless = docker("image", "ls", "-q", "--no-trunc", "--filter", "dangling=true").split()
    listed += [identity for identity in nameless if STAGE in _last_step(identity, docker)]
    found = sorted({name for name in listed if "<none>" not in name})
    return [KeptImage(name, _size_bytes(name, docker)) for name in found]


def _last_step(image: str, docker: Docker) -> str:
    """The command that made the last layer of an image; empty if there is none any more."""
    return docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", image, check=False).partition("\n")[0]


def _size_bytes(name: str, docker: Docker) -> int:
    return int(docker("image", "inspect", "--format", "{{.Size}}", name, check=False).strip() or 0)


def remove_images(say: Say, docker: Docker = docker, names: str = NAMES) -> int:
    """Remove all images of the lab that no container uses; return how many were removed. Raises DockerError."""
    removed = 0
    for image in kept_images(docker, names):
        try:
            docker("image", "rm", image.name)
        except DockerError as error:
            say(f"{image.name} stays: {error.reason}")
        else:
            say(f"removed {image.name}")
            removed += 1
    return removed


def staying(images: list[KeptImage]) -> Iterator[str]:
    """Lines on the images that stay on this host, and the commands that remove them."""
    if not images:
        yield "no images of the lab are on this host"
        return
    stay = "stays" if len(images) == 1 else "stay"
    yield f"{counted(len(images), 'image')} of the lab {stay}, so that the next run starts at once:"
    for image in images:
        yield f"  {image.name} ({image.size_bytes / 1e6:.0f} MB, layers are shared)"
    yield f"`{lab_command('down', '--images')}` removes {'it' if len(images) == 1 else 'them'}"
    yield from shared()


def shared() -> Iterator[str]:
    """Lines on the Docker data that other programs may use as well, and the commands that remove it."""
    yield f"What other programs may use as well stays: `docker image rm {BASE}` removes the base image,"
    yield "`docker builder prune` the cache of builds"
