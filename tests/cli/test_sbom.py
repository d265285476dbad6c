"""The bill of materials: every package of the images and of Python once, with its licence and where it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NoReturn

import pytest

import lab
from headwind.cli.sbom import nghttp2, python_packages, write_sbom
from headwind.run.journal import JOURNAL
from headwind.testbed.images import Images
from headwind.testbed.packages import installed, installed_in

pytestmark = pytest.mark.usefixtures("signals")
ROOT = Path(__file__).resolve().parent.parent.parent
LISTED = {
    "client": "libc6 2.42-1 amd64\nzlib1g 1:1.3.1+dfsg-1 amd64\n",
    "nginx": "libc6 2.42-1 amd64\nnginx 1.28-1 all\n",
}
LICENCES = (
    "/usr/share/doc/libc6/copyright:License: LGPL-2.1+ with exception\n"
    "/usr/share/doc/libc6/copyright:License: GPL-2+\n/usr/share/doc/nginx/copyright:License: BSD-2-clause\n"
)
IMAGES = Images({"client": "abc", "nginx": "def"}, {"client": "sha256:" + "1" * 64, "nginx": "sha256:" + "2" * 64})


def docker(*arguments: str, **_: object) -> str:
    words = " ".join(arguments)
    assert "--network none" in words
    assert "--cap-drop ALL" in words
    name = "client" if "headwind-client:abc" in arguments else "nginx"
    return LICENCES if "sh" in arguments else LISTED[name]


def test_every_package_is_listed_once_with_its_licences_and_its_images(tmp_path: Path) -> None:
    file = tmp_path / "sbom.json"
    number = write_sbom(IMAGES, file, ROOT, docker)
    document = json.loads(file.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    components = {each["bom-ref"]: each for each in document["components"]}
    assert number == len(components) == len(document["components"])
    libc = components["pkg:deb/debian/libc6@2.42-1?arch=amd64"]
    assert [each["license"]["name"] for each in libc["licenses"]] == ["GPL-2+", "LGPL-2.1+ with exception"]
    assert [each["value"] for each in libc["properties"]] == ["client", "nginx"]
    assert "pkg:deb/debian/zlib1g@1%3A1.3.1%2Bdfsg-1?arch=amd64" in components
    assert components["image:nginx"]["hashes"] == [{"alg": "SHA-256", "content": "2" * 64}]
    first = file.read_bytes()
    write_sbom(IMAGES, file, ROOT, docker)
    assert file.read_bytes() == first, "equal inputs give equal files"


@pytest.mark.parametrize(
    ("place", "words"),
    [("none/s.json", "none is not a folder"), ("", "not a writable file"), ("run/s.json", "a run folder has only")],
)
def test_a_place_for_no_file_is_refused_before_an_image_is_built(
    place: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was a traceback, after minutes of building."""

    def build(*_: object) -> NoReturn:
        raise AssertionError("the place was not looked at first")

    monkeypatch.setattr("headwind.testbed.images.ensure_images", build)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / JOURNAL).touch()
    assert lab.main(["sbom", str(tmp_path / place)]) == 2
    assert words in capsys.readouterr().err


def test_the_python_packages_are_those_of_the_lock_with_their_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    found = list(python_packages(lock))
    pinned = [line for line in lock.splitlines() if "==" in line and not line.lstrip().startswith(("#", "--"))]
    assert len(found) == len(pinned) > 10
    assert all(each["hashes"] for each in found)
    assert all(each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}" for each in found)
    assert sum(bool(each["licenses"]) for each in found) > len(found) / 2
    assert max(Counter(each["bom-ref"] for each in found).values()) == 1


def test_the_sources_of_nghttp2_are_those_that_the_build_checks() -> None:
    script = (ROOT / "client/fetch-nghttp2.sh").read_text()
    found = nghttp2(script)
    assert f"version={found['version']}\n" in script
    assert f"sha256={found['hashes'][0]['content']}\n" in script


def test_the_packages_of_a_running_container_are_noted_with_their_versions() -> None:
    def listing(*arguments: str) -> str:
        assert arguments[:1] == ("exec",)
        return "zlib1g 1:1.3 amd64\nlibc6 2.42 amd64\n"

    assert installed("77", listing) == ["libc6=2.42", "zlib1g=1:1.3"]
    assert installed_in({"client": "77", "server": "78"}, listing).keys() == {"client", "server"}
