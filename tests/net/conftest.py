"""The path under test, once for each engine that this machine can run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.browsers import BROWSERS
from headwind.servers import SERVERS
from headwind.testbed import path as paths
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.docker import DockerError, docker
from headwind.testbed.images import Images, needed
from headwind.testbed.testbed import Testbed
from headwind.trial.start import examine_start
from tests.net.builds import built
from tests.net.impaired import ImpairedPath, Project, ask, containers, namespaces
from tests.net.kernels import KERNELS, with_kernel
from tests.net.page_site import write_site
from tests.net.planting import writable

ENGINES = ("uml", "kernel-in-uml", "kernel")
OLD_KERNELS = tuple(f"kernel-in-{suite}" for suite in KERNELS)  # with --kernels: `make test-kernels`
READ_TABLES = """
import json, struct
from impair.netem_options import distribution_table
from impair.distribution import DISTRIBUTION_REACH
read = {name: distribution_table(name) for name in DISTRIBUTION_REACH}
print(json.dumps({name: struct.unpack(f"{len(table) // 2}h", table) for name, table in read.items()}))
"""
Tables = Mapping[str, Sequence[int]]


@pytest.fixture(scope="session")
def images() -> Images:
    """What every testbed needs."""
    return built(needed())


@pytest.fixture(scope="session")
def project(images: Images) -> Iterator[Project]:
    """Somewhere to put containers; takes them away at the end, whatever happened."""
    place = Project(f"headwind-test-{os.getpid()}", images.reference("impair"))
    try:
        yield place
    finally:
        place.remove()


@pytest.fixture(scope="session")
def bed(images: Images) -> Iterator[paths.Path]:
    """The path of a testbed as the lab makes it, for all tests that run trials; a test that changes it restores it."""
    with writable(), Testbed.up(BedSpec(images.tags)) as up:
        examine_start(up.path())
        yield up.path()


@pytest.fixture(scope="session")
def page_bed(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    """A testbed with all browsers, a site, and each server of all protocols; a test that changes it restores it."""
    content = write_site(tmp_path_factory.mktemp("site"))
    servers = {name: server for name, server in SERVERS.items() if server.speaks("h3")}
    tags = {**images.tags, **built((*servers, *BROWSERS)).tags}
    spec = BedSpec(tags, servers=tuple(servers.values()), browsers=tuple(BROWSERS), content=content)
    with writable(), Testbed.up(spec) as up:
        for path in up.paths.values():
            examine_start(path)
        yield up


@pytest.fixture(scope="session")
def tables(project: Project) -> Tables:
    """The delay distributions that the router's image has."""
    said = docker("run", "--rm", "--network", "none", project.image, "python3", "-c", READ_TABLES)
    found: Tables = json.loads(said)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The suite for every engine; with --kernels only engine kernel's code, in each of the kernels that people have."""
    own = {name for mark in metafunc.definition.iter_markers("parametrize") for name in names_of(mark)}
    if "path" in metafunc.fixturenames and "path" not in own:
        wanted = ("kernel-in-uml", *OLD_KERNELS) if metafunc.config.getoption("--kernels") else ENGINES
        metafunc.parametrize("path", wanted, indirect=True, scope="session")


def names_of(parametrize: pytest.Mark) -> list[str]:
    """What a test is parametrised by: `"a, b"` or `["a", "b"]`."""
    names = parametrize.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def project_in(project: Project, engine: str) -> Project:
    """Where containers of the engine are put: with an older kernel in their image for `kernel-in-SUITE`."""
    if engine not in OLD_KERNELS:
        return project
    try:
        images = with_kernel(built(needed()), engine.removeprefix("kernel-in-"))
    except DockerError as error:
        pytest.skip(f"no older kernel to be had: {error}")
    return Project(project.name, images.reference("impair"), project.numbers)


@pytest.fixture(scope="session")
def path(
    request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ImpairedPath]:
    """Client, router and server, joined. The same suite for every engine."""
    with open_path(request.param, project, tmp_path_factory.mktemp(request.param)) as path:
        yield path


@contextmanager
def open_path(engine: str, project: Project, logs: Path) -> Iterator[ImpairedPath]:
    """The path with one engine; skips where this host cannot have it."""
    inside = engine.startswith("kernel-in-")
    place = project_in(project, engine)
    opened = namespaces(place, logs) if inside else containers(place, engine, logs)
    with opened as made:
        found = ask(made.router, "probe")
        if engine == "kernel" and not found["netem"]:
            pytest.skip(f"this host's kernel cannot impair: {found['why']}")
        assert found["netem"], found["why"]
        path = replace(made, seeded=found["seed"])
        path.join()
        yield path
