"""Images in a registry: whoever names one pulls what is there, and builds only if it is not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

import lab
from headwind.errors import UsageError
from headwind.own_command import lab_command
from headwind.testbed import images, registry
from headwind.testbed.docker import DockerError
from headwind.testbed.images import Host, Sources

PLACE = "registry.example:5000/team"
NAMES = [Sources.read(image).reference for image in images.IMAGES.values()]


class Docker:
    """A daemon of architecture amd64 that has some images, by name and id, and reaches one registry."""

    def __init__(self, remote: Mapping[str, str] | None, *, made_for: str = "amd64") -> None:
        self.here: dict[str, str] = {images.BASE: _identity("base")}
        self.remote = None if remote is None else dict(remote)
        self.made_for = made_for
        self.built: list[str] = []
        self.asked: list[str] = []

    def __call__(self, *command: str, **_: Any) -> str:
        if command[0] == "version":
            return "amd64\n"
        if command[:2] == ("image", "inspect"):
            return self._inspected(*command[3:])
        match command:
            case ("image", "rm", name):
                self.here.pop(name, None)
            case ("tag", name, other):
                self.here[other] = self.here[name]
            case ("push", name):
                self._reached()[name] = self.here[name]
            case ("pull", name):
                self.asked.append(name)
                if name not in self._reached():
                    raise DockerError(f"`docker pull {name}` failed with status 1:\n  manifest unknown")
                self.here[name] = self._reached()[name]
            case ("build", "--tag", name, *_):
                self.built.append(name.rpartition("-")[0])  # without the end of the draft's name
                self.here[name] = _identity(f"built here: {self.built[-1]}")
            case _:
                raise AssertionError(command)
        return ""

    def _inspected(self, template: str, *names: str) -> str:
        known = [name for name in names if name in self.here]
        if template == "{{.Architecture}}":
            return "".join(f"{self.made_for}\n" for _ in known)
        return "".join(f'{self.here[name]} ["{name}"]\n' if "RepoTags" in template else "sha256:\n" for name in known)

    def _reached(self) -> dict[str, str]:
        if self.remote is None:
            raise DockerError("`docker pull` failed with status 1:\n  dial tcp: connection refused")
        return self.remote


def _identity(text: str) -> str:
    return f"sha256:{text.encode().hex():0<64.64}"


def ensured(docker: Docker, said: list[str]) -> images.Images:
    return images.ensure_images(said.append, images.IMAGES, Host(docker))


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWIND_REGISTRY", f"{PLACE}/")


def everything() -> dict[str, str]:
    return {f"{PLACE}/{name}": _identity(name) for name in NAMES}


@pytest.mark.usefixtures("named")
def test_images_that_the_registry_has_are_pulled_and_not_built() -> None:
    docker, said = Docker(everything()), list[str]()
    found = ensured(docker, said)
    assert docker.built == []
    assert list(found.ids.values()) == [_identity(name) for name in NAMES], "with the ids that were pushed"
    assert sorted(docker.here) == sorted([images.BASE, *NAMES]), "under their own names and no other"
    assert said == [f"pulling {PLACE}/{name}" for name in NAMES]


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("remote", "made_for", "reason", "lacking"),
    [
        (None, "amd64", "dial tcp: connection refused", NAMES),
        ({}, "amd64", "manifest unknown", NAMES),
        (dict(list(everything().items())[1:]), "amd64", "manifest unknown", NAMES[:1]),
        (everything(), "arm64", "its {name} is for arm64, and this is amd64", NAMES),
    ],
    ids=["unreachable", "without the tags", "with two of three", "of another architecture"],
)
def test_each_image_that_the_registry_lacks_is_a_line_and_a_build(
    remote: Mapping[str, str] | None, made_for: str, reason: str, lacking: list[str]
) -> None:
    docker, said = Docker(remote, made_for=made_for), list[str]()
    ensured(docker, said)
    assert sorted(docker.built) == sorted(lacking)
    assert [line for line in said if "building it" in line] == [
        f"could not get {name} from {PLACE} ({reason.format(name=name)}); building it" for name in lacking
    ]


@pytest.mark.usefixtures("named")
def test_a_registry_that_is_out_of_reach_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ANSWER_S", 0.0)
    docker = Docker(None)
    ensured(docker, [])
    assert docker.asked == [f"{PLACE}/{NAMES[0]}"]
    assert sorted(docker.built) == sorted(NAMES)


def test_without_a_registry_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWIND_REGISTRY", raising=False)
    docker, said = Docker(everything()), list[str]()
    ensured(docker, said)
    assert sorted(docker.built) == sorted(NAMES)
    assert not [line for line in said if PLACE in line]


@pytest.mark.usefixtures("named")
def test_images_that_are_here_are_not_asked_for() -> None:
    docker = Docker(None)
    docker.here |= {name: _identity(name) for name in NAMES}
    said: list[str] = []
    ensured(docker, said)
    assert docker.built == []
    assert said == []


@pytest.mark.usefixtures("named")
def test_only_the_image_that_is_missing_here_is_pulled() -> None:
    docker = Docker(everything())
    docker.here |= {name: _identity(name) for name in NAMES[1:]}
    ensured(docker, [])
    assert docker.asked == [f"{PLACE}/{NAMES[0]}"]
    assert docker.built == []


@pytest.mark.usefixtures("named")
def test_pushed_images_are_what_another_machine_pulls() -> None:
    mine, said = Docker({}), list[str]()
    images.push_images(said.append, images.IMAGES, Host(mine))
    assert mine.remote is not None
    assert sorted(mine.remote) == sorted(everything())
    assert sorted(mine.here) == sorted([images.BASE, *NAMES]), "no second names stay"
    theirs = Docker(mine.remote)
    assert ensured(theirs, []).ids == ensured(mine, []).ids
    assert theirs.built == []


@pytest.mark.parametrize("value", ["http://registry.example/team", "registry.example/Team", "a b", "registry/team:tag"])
def test_what_is_no_place_in_a_registry_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"HEADWIND_REGISTRY={value}: write a host and a path")):
        registry.place_of(value)


@pytest.mark.parametrize("value", ["localhost:5000", "127.0.0.1:5000/lab", "registry.example/a/b-c"])
def test_a_place_is_a_host_and_perhaps_a_path(value: str) -> None:
    assert registry.place_of(value) == value


def test_pushing_nowhere_is_a_mistake_with_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HEADWIND_REGISTRY", raising=False)
    assert lab.main(["images", "push"]) == 2
    command = f"HEADWIND_REGISTRY=registry.example:5000/team {lab_command('images', 'push')}"
    assert command in capsys.readouterr().err
