"""The images: when they are built, from what, and that what runs in them has no more rights than it needs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwind.testbed import images
from headwind.testbed.docker import DockerError
from headwind.testbed.images import Host

ROOT = Path(__file__).resolve().parent.parent.parent
ID = "sha256:" + "0123456789abcdef" * 4


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with one file in each part of the build context."""
    for name in ("client/agent.py", "client/distfiles/README.md", "impair/wire.py", "nginx/nginx.conf", "lab.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"this is {name}\n")
    (tmp_path / ".dockerignore").write_text("*\n!client\n")
    return tmp_path


def test_the_tag_is_twelve_hex_digits_and_stable(tree: Path) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", images.content_tag(tree))
    assert images.content_tag(tree) == images.content_tag(tree)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: (tree / "client/agent.py").write_text("changed"),
        lambda tree: (tree / "nginx/new.conf").write_text(""),
        lambda tree: (tree / "impair/wire.py").unlink(),
        lambda tree: (tree / "impair/wire.py").rename(tree / "impair/wires.py"),
        lambda tree: (tree / "nginx/nginx.conf").chmod(0o755),
        lambda tree: (tree / ".dockerignore").write_text("*\n"),
    ],
)
def test_the_tag_changes_with_everything_that_goes_into_an_image(tree: Path, change: Callable[[Path], Any]) -> None:
    before = images.content_tag(tree)
    change(tree)
    assert images.content_tag(tree) != before


@pytest.mark.parametrize("name", ["lab.py", "client/__pycache__/agent.pyc", "client/distfiles/nghttp2-1.70.0.tar.gz"])
def test_the_tag_stays_with_what_does_not(tree: Path, name: str) -> None:
    before = images.content_tag(tree)
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text("changed")
    assert images.content_tag(tree) == before


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Step 3/16 : RUN apt-get update     && apt-get install", " 3/16 RUN apt-get update && apt-get install"),
        ("#7 [2/8] RUN apt-get update", "  2/8 RUN apt-get update"),
        ("#9 [h2load 4/6] COPY client/distfiles ./", "  4/6 COPY client/distfiles ./"),
        ("#9 [stage-1  4/6] WORKDIR /opt", "  4/6 WORKDIR /opt"),
        ("#9 CACHED", None),
        ("#1 [internal] load build definition from Dockerfile", None),
        (" ---> Using cache", None),
        ("Unpacking libc6 (2.43-7) ...", None),
    ],
)
def test_a_step_of_either_builder_becomes_one_line(line: str, step: str | None) -> None:
    assert images.build_step(line) == step


def test_a_long_step_is_cut() -> None:
    step = images.build_step("Step 1/2 : RUN " + "x" * 500)
    assert step
    assert len(step) == 90
    assert step.endswith("...")


class FakeDocker:
    """Docker as far as images.py uses it: it knows what is `there`, and remembers every command."""

    def __init__(self, *there: str, failing: str = "", registry: bool = True) -> None:
        self.there, self.failing, self.registry = set(there), failing, registry
        self.commands: list[tuple[str, ...]] = []

    def __call__(self, *command: str, stream: Any = None, **_: Any) -> str:
        self.commands.append(command)
        match command:
            case ("image", "inspect", "--format", template, *names):
                labels = ' {"headwind.base":"mmdebstrap"}' if "Labels" in template else ""
                return "".join(f"{ID}{labels}\n" if name in self.there else "Error: No such image\n" for name in names)
            case ("build", "--tag", tag, *_):
                stream("Step 1/2 : FROM base")
                if self.failing and self.failing in tag:
                    raise DockerError(f"{tag} cannot be built")
                self.there.add(tag)
            case ("pull", name):
                if not self.registry:
                    raise DockerError("`docker pull` failed with status 1:\n  dial tcp: no such host")
                self.there.add(name)
            case ("image", "rm", *names):
                self.there -= set(names)
            case ("import", *_, name):
                self.there.add(name)
            case _:
                raise AssertionError(command)
        return ""

    def did(self, word: str) -> list[tuple[str, ...]]:
        return [command for command in self.commands if command[0] == word]


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADWIND_DISTFILES", "HEADWIND_REGISTRY"):
        monkeypatch.delenv(name, raising=False)


def names(tag: str) -> list[str]:
    return [f"headwind-{name}:{tag}" for name in ("server", "client", "impair")]


def test_images_that_are_there_are_taken_with_one_question() -> None:
    tag = images.content_tag(ROOT)
    docker, said = FakeDocker(*names(tag)), list[str]()
    found = images.ensure_images(said.append, Host(docker))
    assert (found.tag, found.built, found.base) == (tag, False, "mmdebstrap")
    assert found.ids == {"server": ID, "client": ID, "impair": ID}
    assert len(docker.commands) == 1
    assert said == []
    assert images.router_image(docker) == f"headwind-impair:{tag}"


def test_one_missing_image_has_all_of_them_built() -> None:
    tag = images.content_tag(ROOT)
    docker, said = FakeDocker(*names(tag)[:2], images.BASE), list[str]()
    found = images.ensure_images(said.append, Host(docker))
    assert found.built
    assert sorted((command[2], command[4]) for command in docker.did("build")) == [
        (f"headwind-client:{tag}", "client/Dockerfile"),
        (f"headwind-impair:{tag}", "impair/Dockerfile"),
        (f"headwind-server:{tag}", "nginx/Dockerfile"),
    ]
    assert sum("1/2 FROM base" in line for line in said) == 3, "every step is told"
    assert not docker.did("pull")


def test_files_that_change_during_a_build_are_built_again() -> None:
    tags = iter(["old", "new", "new", "new"])  # before and after each of two builds
    docker = FakeDocker(images.BASE)
    assert images.ensure_images(lambda _: None, Host(docker, tag=lambda _: next(tags))).tag == "new"
    assert docker.there == {images.BASE, *names("new")}, "no image keeps a tag that is not its own"


@pytest.mark.parametrize("failing", ["headwind-client", "headwind-impair"])
def test_a_build_that_fails_is_an_error_whatever_the_others_do(failing: str) -> None:
    with pytest.raises(DockerError, match=f"{failing}:[0-9a-f]+ cannot be built"):
        images.ensure_images(lambda _: None, Host(FakeDocker(images.BASE, failing=failing)))


def test_without_images_there_is_no_router_image() -> None:
    assert images.router_image(FakeDocker()) is None


def test_a_registry_that_answers_is_enough() -> None:
    docker = FakeDocker()
    host = Host(docker, command=lambda *_: pytest.fail("the registry had it"))
    images.ensure_base(images.BASE, lambda _: None, host)
    assert docker.there == {images.BASE}


class Programs:
    """The commands that are run besides docker, and what is not installed; apt knows two mirrors."""

    def __init__(self, *missing: str) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.missing = missing

    def __call__(self, *command: str) -> str:
        self.ran.append(command)
        listing = "Debian-Security http://mirror.example/security\nDebian http://mirror.example/debian\n"
        return listing if "indextargets" in command else ""

    def which(self, name: str) -> str | None:
        return None if name in self.missing else f"/usr/bin/{name}"

    def host(self, docker: FakeDocker, *, root: bool = True) -> Host:
        return Host(docker, self, self.which, lambda: root, keyring=Path(__file__))


def test_without_a_registry_the_base_comes_from_the_mirror_that_apt_uses() -> None:
    docker, programs, said = FakeDocker(registry=False), Programs(), list[str]()
    images.ensure_base("debian:other", said.append, programs.host(docker))
    made = [words for words in programs.ran if words[0] == "mmdebstrap"]
    assert [words[-1] for words in made] == ["http://mirror.example/debian"]
    assert docker.did("import")[0][1:3] == ("--change", "LABEL headwind.base=mmdebstrap")
    assert docker.there == {"debian:other"}
    assert "no such host" in said[-1], "the reason is told"


def test_a_host_without_a_debian_mirror_leaves_the_choice_to_mmdebstrap() -> None:
    assert images.debian_mirror(lambda *_: "Ubuntu http://mirror.example/ubuntu\n") == []


@pytest.mark.parametrize(("root", "missing"), [(False, ["mmdebstrap"]), (True, ["mmdebstrap", "apt-get"])])
def test_who_cannot_install_mmdebstrap_is_told_what_to_do(root: bool, missing: list[str]) -> None:
    programs = Programs(*missing)
    with pytest.raises(images.ImageError, match="apt-get install mmdebstrap debian-archive-keyring"):
        images.ensure_base(images.BASE, lambda _: None, programs.host(FakeDocker(registry=False), root=root))
    assert programs.ran == []


def test_root_has_it_installed() -> None:
    docker, programs = FakeDocker(registry=False), Programs("mmdebstrap")
    images.ensure_base(images.BASE, lambda _: None, programs.host(docker))
    assert [words[:2] for words in programs.ran[:2]] == [("apt-get", "update"), ("apt-get", "install")]
    assert docker.there == {images.BASE}


def test_a_command_that_fails_is_told_with_its_last_words() -> None:
    with pytest.raises(images.ImageError, match=r"status 3:\n  the reason"):
        images._command("sh", "-c", "echo the reason >&2; exit 3")
    with pytest.raises(images.ImageError, match="not installed"):
        images._command("no-such-command-at-all")


def test_the_users_tarball_goes_into_the_build_context(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "nghttp2-1.70.0.tar.gz").write_bytes(b"source")
    (tmp_path / "context").mkdir()
    said: list[str] = []
    images.copy_distfiles(str(tmp_path / "mine"), tmp_path / "context", said.append)
    images.copy_distfiles(None, tmp_path / "context", said.append)
    assert [file.name for file in (tmp_path / "context").iterdir()] == ["nghttp2-1.70.0.tar.gz"]
    assert said == []
    images.copy_distfiles(str(tmp_path / "context" / "nowhere"), tmp_path / "context", said.append)
    assert "holds no nghttp2" in said[0]


def test_a_tarball_in_the_build_context_is_not_committed() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", "client/distfiles/nghttp2-1.70.0.tar.gz"], cwd=ROOT, capture_output=True, check=False
    )
    assert ignored.returncode == 0


@pytest.mark.parametrize("file", sorted(images.DOCKERFILES.values()))
def test_the_first_layer_of_every_image_is_the_same(file: str) -> None:
    final_stage = (ROOT / file).read_text().rpartition("\nFROM ")[2]
    first = re.search(r"^RUN (?:.*\\\n)*.*", final_stage, re.MULTILINE)
    shared = re.search(r"^RUN (?:.*\\\n)*.*", (ROOT / "impair/Dockerfile").read_text(), re.MULTILINE)
    assert first
    assert shared
    assert first.group() == shared.group()


@pytest.mark.parametrize("file", sorted(images.DOCKERFILES.values()))
def test_no_step_of_a_build_only_sets_what_compose_can_set(file: str) -> None:
    """Each step takes seconds on storage drivers that compare trees."""
    lines = (ROOT / file).read_text().replace("\\\n", " ").splitlines()
    assert {line.split()[0] for line in lines if line and line[0] != "#"} == {"ARG", "FROM", "COPY", "RUN"}


def test_the_build_context_is_what_the_tag_covers() -> None:
    allowed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert sorted([".dockerignore", *allowed]) == sorted(images.CONTEXT)


def test_images_need_no_package_of_the_lab() -> None:
    """They are built while pip still installs those: `python3 -m headwind.testbed.images` with any Python."""
    ask = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import headwind.testbed.images"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", ask], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("raised", "status"),
    [(None, 0), (DockerError("cannot build"), "headwind: cannot build"), (KeyboardInterrupt(), 130)],
)
def test_images_made_beside_the_installation_end_with_a_status_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException | None, status: int | str
) -> None:
    def ensure(_: Callable[[str], None]) -> None:
        if raised:
            raise raised

    monkeypatch.setattr(images, "ensure_images", ensure)
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert images.main() == status
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler, "Ctrl-C in make ends it"
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


@pytest.mark.parametrize(("target", "beside"), [("lab-smoke", True), ("lab-run", True), ("lab-plan", False)])
def test_a_fresh_clone_builds_the_images_while_pip_installs(target: str, beside: bool) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    told = subprocess.run(
        ["make", "-n", "-B", target], cwd=ROOT, env=environment,
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    lines = told.splitlines()
    begun = [number for number, line in enumerate(lines) if "-m headwind.testbed.images &" in line]
    installed = [number for number, line in enumerate(lines) if "-m pip install" in line]
    awaited = [number for number, line in enumerate(lines) if line == "wait $images"]
    if beside:
        assert begun < installed < awaited
        assert [len(found) for found in (begun, installed, awaited)] == [1, 1, 1]
    else:
        assert [len(found) for found in (begun, installed, awaited)] == [0, 1, 0]


COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


@pytest.mark.parametrize("service", ["client", "impair", "server"])
def test_a_container_may_change_its_own_network_and_nothing_else(service: str) -> None:
    container = COMPOSE["services"][service]
    assert container["cap_add"] == ["NET_ADMIN"]
    assert not {"privileged", "volumes", "network_mode", "pid", "devices", "security_opt", "ports"} & container.keys()
    assert container["command"], "the image names none"
    assert container["image"] == f"headwind-{service}:${{HEADWIND_TAG:-latest}}"
    assert container["build"] == {"context": ".", "dockerfile": images.DOCKERFILES[service]}


def test_the_router_is_the_only_container_on_both_networks() -> None:
    attached = {name: sorted(container["networks"]) for name, container in COMPOSE["services"].items()}
    assert attached == {"client": ["client-net"], "impair": ["client-net", "server-net"], "server": ["server-net"]}


@pytest.mark.parametrize("network", ["client-net", "server-net"])
def test_a_network_passes_routed_frames_unchanged(network: str) -> None:
    settings = COMPOSE["networks"][network]
    assert "internal" not in settings, "Docker drops routed frames there"
    assert settings["driver_opts"] == {
        "com.docker.network.bridge.enable_ip_masquerade": "false", "com.docker.network.driver.mtu": "1500",
    }  # fmt: skip
    assert set(settings["labels"]) == {"headwind.project", "headwind.owner"}
