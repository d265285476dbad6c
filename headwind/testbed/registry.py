"""Images in a registry, by their content tag: built once, pulled by all other machines.

HEADWIND_REGISTRY names it with a path, such as `registry.example:5000/team`. Pulled images have the ids of those that
were pushed, so machines that pull from one registry measure alike.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from headwind.errors import UsageError
from headwind.testbed.docker import Docker, DockerError, Say

VARIABLE = "HEADWIND_REGISTRY"
SILENCE_S = 120.0  # of a pull
ANSWER_S = 10.0  # a registry without the image says so sooner; docker gives up on a silent host after about 15 s
_PLACE = re.compile(r"[\w.-]+(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")


def place_of(environment: str | None) -> str | None:
    """The registry and path in the value of HEADWIND_REGISTRY; None if it is not set. Raises UsageError."""
    if not environment:
        return None
    place = environment.rstrip("/")
    if not _PLACE.fullmatch(place):
        raise UsageError(f"{VARIABLE}={environment}: write a host and a path, such as registry.example:5000/team")
    return place


def pull(place: str, names: Iterable[str], docker: Docker, say: Say) -> None:
    """Pull images by their local names; `say` gets the reason if the registry lacks one of them.

    A registry that is out of reach is not asked again.
    """
    machine = docker("version", "--format", "{{.Server.Arch}}").strip()
    for name in names:
        say(f"pulling {place}/{name}")
        start = time.monotonic()
        try:
            _pull(f"{place}/{name}", name, machine, docker)
        except DockerError as error:
            say(f"could not get {name} from {place} ({error.reason}); building it")
            if time.monotonic() - start >= ANSWER_S:
                break


def _pull(there: str, here: str, machine: str, docker: Docker) -> None:
    docker("pull", there, silence_s=SILENCE_S)
    try:
        made_for = docker("image", "inspect", "--format", "{{.Architecture}}", there).strip()
        if made_for != machine:
            raise DockerError(f"its {here} is for {made_for}, and this is {machine}")
        docker("tag", there, here)
    finally:
        docker("image", "rm", there, check=False)  # only the name, if the image has another one


def push(place: str, names: Iterable[str], docker: Docker, say: Say) -> None:
    """Push images under their names here. Raises DockerError."""
    for name in names:
        say(f"pushing {place}/{name}")
        docker("tag", name, f"{place}/{name}")
        try:
            docker("push", f"{place}/{name}")
        finally:
            docker("image", "rm", f"{place}/{name}", check=False)
