"""The path under test, once for each engine that this machine can run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence

import pytest

from headwind.docker import docker
from headwind.images import ensure_images
from tests.net.impaired import ImpairedPath, Project, ask, containers, namespaces

ENGINES = ("uml", "kernel-in-uml", "kernel")
READ_TABLES = """
import json, struct
from impair.options import distribution_table
from impair.profile import DISTRIBUTION_REACH
read = {name: distribution_table(name) for name in DISTRIBUTION_REACH}
print(json.dumps({name: struct.unpack(f"{len(table) // 2}h", table) for name, table in read.items()}))
"""
Tables = Mapping[str, Sequence[int]]


@pytest.fixture(scope="session")
def project() -> Iterator[Project]:
    """Somewhere to put containers; takes them away at the end, whatever happened."""
    images = ensure_images(print)
    place = Project(f"headwind-test-{os.getpid()}", f"headwind-impair:{images.tag}")
    try:
        yield place
    finally:
        place.remove()


@pytest.fixture(scope="session")
def tables(project: Project) -> Tables:
    """The delay distributions that the router's image has."""
    said = docker("run", "--rm", "--network", "none", project.image, "python3", "-c", READ_TABLES)
    found: Tables = json.loads(said)
    return found


@pytest.fixture(scope="session", params=ENGINES)
def path(
    request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ImpairedPath]:
    """Client, router and server, joined. The same suite for every engine."""
    logs = tmp_path_factory.mktemp(request.param)
    opened = namespaces(project, logs) if request.param == "kernel-in-uml" else containers(project, request.param, logs)
    with opened as path:
        found = ask(path.router, "probe")
        if request.param == "kernel" and not found["netem"]:
            pytest.skip(f"this host's kernel cannot impair: {found['why']}")
        assert found["netem"], found["why"]
        path.join()
        yield path
