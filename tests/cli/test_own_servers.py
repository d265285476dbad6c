"""Whole runs on a fake testbed with the user's server."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import lab
from headwind.errors import HeadwindError
from headwind.model import Outcome
from headwind.run.journal import Run
from headwind.testbed.bed_spec import BedSpec
from headwind.testbed.docker import Say
from headwind.testbed.images import Images
from headwind.testbed.own_server import OwnImage
from headwind.testbed.testbed import Testbed as Bed
from tests.fake_testbed import IMAGES, World, fake_dependencies, fake_testbed, own_path

pytestmark = pytest.mark.usefixtures("signals")

MATRIX = """
protocols: [h1, h2]
servers:
  mine: {image: "my/app:1", port: 8443, protocols: [h1, h2]}
arms:
  h2-mine: {protocol: h2, server: mine}
repeat: 1
seed: 7
profiles:
  far: {both: {delay: 20ms}}
workloads:
  small: {requests: 100, connections: 5, streams: 5}
"""
IMAGE = OwnImage("my/app:1", "sha256:4")


class Lab:
    """A folder with a matrix; the testbeds that were asked for, and the images."""

    def __init__(self, folder: Path) -> None:
        self.reports, self.matrix = folder / "reports", folder / "matrix.yaml"
        self.matrix.write_text(MATRIX)
        self.world, self.specs, self.needed = World(), list[BedSpec](), list[list[str]]()

    @contextmanager
    def _testbed(self) -> Iterator[Bed]:
        with fake_testbed(self.world) as testbed:
            mine, _ = own_path(testbed.path())
            testbed.paths["mine"] = mine
            yield testbed

    def _images(self, _: Say, names: Collection[str]) -> Images:
        self.needed.append(list(names))
        return IMAGES

    def run(self, *arguments: str, image: OwnImage = IMAGE) -> int:
        def up(spec: BedSpec, _: Say) -> AbstractContextManager[Bed]:
            self.specs.append(spec)
            return self._testbed()

        given = {
            "ensure_own_image": lambda *_: image,
            "ensure_images": self._images,
        }  # fmt: skip
        dependencies = replace(fake_dependencies(self._testbed, **given), up=up)
        return lab.main(["run", str(self.matrix), "--reports", str(self.reports), *arguments], dependencies)

    @property
    def folder(self) -> Path:
        return next(folder for folder in self.reports.glob("*/") if (folder / "matrix.json").exists())


@pytest.fixture
def here(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_a_run_starts_a_server_of_ones_own_and_records_its_image(here: Lab) -> None:
    assert here.run() == 0
    assert "own" in here.needed[0], "the image of its host"
    (spec,) = here.specs
    assert [server.name for server in spec.servers] == ["nginx", "mine"]
    assert spec.own_images == {"mine": IMAGE}
    with Run.open(here.folder) as run:
        assert run.environment["images"]["server mine"] == "my/app:1@sha256:4"
        results = {result.trial.arm.name: result for result in run.results()}
    assert {name: result.outcome for name, result in results.items()} == dict.fromkeys(
        ("h1", "h2", "h2-mine"), Outcome.OK
    )
    assert {asked["port"] for asked in here.world.asked} == {443, 8443}


def test_a_run_does_not_go_on_with_another_image(here: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.run() == 0
    assert here.run("--resume", str(here.folder)) == 0
    assert here.run("--resume", str(here.folder), image=OwnImage("my/app:1", "sha256:5")) != 0
    assert "image server mine: my/app:1@sha256:4 -> my/app:1@sha256:5" in capsys.readouterr().err


def test_a_server_of_a_matrix_can_be_tried_over_the_protocols_that_it_speaks(
    here: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    dependencies = fake_dependencies(here._testbed)
    assert lab.main(["try-server", "mine", "--matrix", str(here.matrix)], dependencies) == 0
    printed = capsys.readouterr().out
    assert [line[:3] for line in printed.splitlines() if line[2:3] == ":"] == ["h1:", "h2:"]
    assert lab.main(["try-server", "nginx", "--matrix", str(here.matrix)], dependencies) == 0
    assert lab.main(["try-server", "apache", "--matrix", str(here.matrix)], dependencies) == 2
    assert "`apache` is not a server; allowed: nginx, caddy, haproxy, nghttpd, mine;" in capsys.readouterr().err


def test_a_cluster_refuses_servers_of_ones_own_with_a_sentence(here: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.run("--cluster", "tcp://nowhere:1") == 2
    assert "mine: your own servers run on this machine only" in capsys.readouterr().err


def test_an_image_that_is_missing_ends_the_run_before_anything_is_built(
    here: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object) -> OwnImage:
        raise HeadwindError("there is no image my/app:1 here")

    dependencies = fake_dependencies(here._testbed, ensure_own_image=missing, ensure_images=pytest.fail)
    assert lab.main(["run", str(here.matrix), "--reports", str(here.reports)], dependencies) == 1
    assert "there is no image my/app:1 here" in capsys.readouterr().err
