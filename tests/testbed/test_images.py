"""The images: when they are built, from what, and that what runs in them has no more rights than it needs."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from headwind.browsers import BROWSERS
from headwind.servers import FURTHER
from headwind.testbed import images
from headwind.testbed.docker import DockerError
from headwind.testbed.images import Host, Image, Sources

ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILES = [image.dockerfile for image in images.IMAGES.values()]
ID = "sha256:" + "0123456789abcdef" * 4


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with files in each folder of the images."""
    for name in (
        "client/agent.py", "client/distfiles/README.md", "client/distfiles/nghttp2-1.70.0.tar.gz", "impair/wire.py",
        "nginx/nginx.conf", "nginx/entrypoint.sh", "nginx/__pycache__/agent.pyc", "servers/objects.py",
        "servers/caddy/agent.py", "browsers/page.py", "browsers/chromium/agent.py", "browsers/firefox/agent.py",
        "lab.py",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"this is {name}\n")
    (tmp_path / "nginx/entrypoint.sh").chmod(0o755)
    return tmp_path


def tags(tree: Path = ROOT) -> dict[str, str]:
    return {name: Sources.read(image, tree).tag for name, image in images.IMAGES.items()}


def test_a_tag_is_twelve_hex_digits_and_stable(tree: Path) -> None:
    assert all(re.fullmatch(r"[0-9a-f]{12}", tag) for tag in tags(tree).values())
    assert len(set(tags(tree).values())) == len(images.IMAGES)
    assert tags(tree) == tags(tree)


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda tree: (tree / "client/agent.py").write_text("changed"), {"client"}),
        (lambda tree: (tree / "client/distfiles/README.md").write_text("changed"), {"client"}),
        (lambda tree: (tree / "nginx/new.conf").write_text(""), {"nginx"}),
        (lambda tree: (tree / "nginx/nginx.conf").chmod(0o755), {"nginx"}),
        (
            lambda tree: (tree / "servers/objects.py").write_text("changed"),
            {*images.IMAGES} - {"client", "impair", *BROWSERS},
        ),
        (lambda tree: (tree / "browsers/page.py").write_text("changed"), {*BROWSERS}),
        (lambda tree: (tree / "browsers/firefox/agent.py").write_text("changed"), {"firefox"}),
        (lambda tree: (tree / "servers/caddy/agent.py").write_text("changed"), {"caddy"}),
        (lambda tree: (tree / "impair/wire.py").unlink(), {*images.IMAGES}),
        (lambda tree: (tree / "impair/wire.py").rename(tree / "impair/wires.py"), {*images.IMAGES}),
        (lambda tree: (tree / "lab.py").write_text("changed"), set()),
        (lambda tree: (tree / "nginx/__pycache__/agent.pyc").write_text("changed"), set()),
        (lambda tree: (tree / "client/distfiles/nghttp2-1.70.0.tar.gz").write_text("changed"), set()),
    ],
)
def test_a_change_gives_a_new_tag_to_the_images_that_contain_it_and_to_no_other(
    tree: Path, change: Callable[[Path], Any], changed: set[str]
) -> None:
    before = tags(tree)
    change(tree)
    after = tags(tree)
    assert {name for name in before if before[name] != after[name]} == changed


@pytest.mark.parametrize("image", images.IMAGES.values(), ids=images.IMAGES)
def test_a_tag_changes_with_the_content_of_every_file_that_the_builder_gets(tree: Path, image: Image) -> None:
    sources = Sources.read(image, tree)
    for number, file in enumerate(sources.files):
        other = replace(file, content=file.content + b"x")
        assert replace(sources, files=(*sources.files[:number], other, *sources.files[number + 1 :])).tag != sources.tag


def entries(archive: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {entry.name: entry for entry in opened}


def test_the_builder_gets_the_files_of_the_image_and_no_others(tree: Path) -> None:
    docker = FakeDocker(images.BASE)
    images.ensure_images(lambda _: None, images.IMAGES, Host(docker, root=tree))
    sent = {
        tag.partition(":")[0]: {name for name, entry in entries(context).items() if entry.isfile()}
        for tag, context in docker.contexts.items()
    }
    assert sent == {
        "headwind-nginx": {"impair/wire.py", "nginx/nginx.conf", "nginx/entrypoint.sh", "servers/objects.py"},
        "headwind-client": {
            "impair/wire.py", "client/agent.py", "client/distfiles/README.md", "client/distfiles/nghttp2-1.70.0.tar.gz",
        },
        "headwind-impair": {"impair/wire.py"},
        "headwind-caddy": {"impair/wire.py", "servers/caddy/agent.py", "servers/objects.py"},
        "headwind-haproxy": {"impair/wire.py", "servers/objects.py"},
        "headwind-own": {"impair/wire.py", "servers/objects.py"},
        "headwind-nghttpd": {"impair/wire.py", "servers/objects.py"},
        "headwind-chromium": {"impair/wire.py", "browsers/page.py", "browsers/chromium/agent.py"},
        "headwind-firefox": {"impair/wire.py", "browsers/page.py", "browsers/firefox/agent.py"},
    }  # fmt: skip


def test_what_the_builder_gets_depends_on_names_modes_and_contents_alone(tree: Path) -> None:
    def archive() -> bytes:
        into = io.BytesIO()
        images.write_archive(Sources.read(images.IMAGES["nginx"], tree).files, into)
        return into.getvalue()

    before = archive()
    os.utime(tree / "nginx/nginx.conf", (1, 1))
    (tree / "nginx/nginx.conf").chmod(0o600)
    assert archive() == before, "builders find the layers of an earlier build"
    modes = {name: entry.mode for name, entry in entries(before).items()}
    assert modes == {
        "impair": 0o755, "impair/wire.py": 0o644,
        "nginx": 0o755, "nginx/nginx.conf": 0o644, "nginx/entrypoint.sh": 0o755,
        "servers": 0o755, "servers/objects.py": 0o644,
    }  # fmt: skip


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
    """Docker as far as images.py uses it: the images that it has and gets, and every command."""

    def __init__(
        self, *there: str, failing: str = "", registry: bool = True, during: Callable[[], object] = lambda: None
    ) -> None:
        self.there, self.failing, self.registry, self.during = set(there), failing, registry, during
        self.commands: list[tuple[str, ...]] = []
        self.contexts: dict[str, bytes] = {}  # by the image that is built
        self.named: list[str] = []  # images that got their name after they were built

    def __call__(self, *command: str, stream: Any = None, stdin: Any = None, **_: Any) -> str:
        self.commands.append(command)
        match command:
            case ("image", "inspect", "--format", template, *names):
                wanted = [name for name in names if name in self.there]
                return "".join(f'{ID} ["{name}"]\n' if "RepoTags" in template else f"{ID}\n" for name in wanted)
            case ("build", "--tag", tag, *_):
                self.contexts[tag] = stdin.read()
                self.during()
                stream("Step 1/2 : FROM base")
                if self.failing and self.failing in tag:
                    raise DockerError(f"{tag} cannot be built")
                self.there.add(tag)
            case ("tag", draft, name):
                self.named += [name]
                self.there |= {name} if draft in self.there else set()
            case ("image", "rm", draft):
                self.there.discard(draft)
            case ("pull", name):
                if not self.registry:
                    raise DockerError("`docker pull` failed with status 1:\n  dial tcp: no such host")
                self.there.add(name)
            case ("import", *_, name):
                self.there.add(name)
            case ("version", *_):
                pass
            case _:
                raise AssertionError(command)
        return ""

    def did(self, word: str) -> list[tuple[str, ...]]:
        return [command for command in self.commands if command[0] == word]


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADWIND_DISTFILES", "HEADWIND_REGISTRY"):
        monkeypatch.delenv(name, raising=False)


def present(tree: Path = ROOT) -> list[str]:
    """The names in Docker of a source tree's images."""
    return [images.reference(name, tag) for name, tag in tags(tree).items()]


def test_images_that_are_there_are_used_after_one_question() -> None:
    docker, said = FakeDocker(*present()), list[str]()
    found = images.ensure_images(said.append, images.IMAGES, Host(docker))
    assert found.tags == tags()
    assert found.ids == dict.fromkeys(images.IMAGES, ID)
    assert found.recorded["nginx"] == f"{tags()['nginx']}@{ID}"
    assert len(docker.commands) == 1
    assert said == []
    assert images.router_image(docker) == found.reference("impair")


def test_only_the_images_that_are_missing_are_built() -> None:
    docker, said, names = FakeDocker(*present()[:2], images.BASE), list[str](), images.needed()
    found = images.ensure_images(said.append, names, Host(docker))
    (build,) = docker.did("build")
    assert build[3:5] == ("--file", "impair/Dockerfile")
    assert docker.named == [found.reference("impair")]
    assert docker.there == {*present()[:2], images.BASE, found.reference("impair")}, "no draft is left"
    assert sum("1/2 FROM base" in line for line in said) == 1, "every step is reported"
    assert not docker.did("pull")
    assert images.ensure_images(said.append, names, Host(docker)) == found


def test_an_image_that_another_copy_built_meanwhile_is_kept() -> None:
    """The later build took its name away, and the other copy's runs could not be resumed."""
    name = images.reference("impair", tags()["impair"])
    docker = FakeDocker(images.BASE, during=lambda: docker.there.add(name))
    found = images.ensure_images(lambda _: None, ["impair"], Host(docker))
    assert docker.did("build")
    assert docker.named == []
    assert docker.there == {images.BASE, name} == {images.BASE, found.reference("impair")}


def test_only_the_images_that_are_named_are_built() -> None:
    docker = FakeDocker(images.BASE)
    found = images.ensure_images(lambda _: None, ["nginx", "impair"], Host(docker))
    assert found.tags.keys() == found.ids.keys() == {"nginx", "impair"}
    assert docker.there == {images.BASE, found.reference("nginx"), found.reference("impair")}


def test_a_testbed_needs_the_images_of_client_router_and_its_kinds_of_server() -> None:
    assert set(images.needed()) == {"client", "impair", "nginx"}
    assert set(images.needed([])) == {"client", "impair"}
    assert set(images.needed(["caddy", "nginx"])) == {"client", "impair", "nginx", "caddy"}


def test_the_client_is_begun_first_and_in_parallel() -> None:
    """It compiles h2load, which takes longer than all other images together."""
    together = threading.Barrier(2, timeout=10)
    begun: list[str] = []

    def during() -> None:
        begun.append("")
        if len(begun) <= 2:
            together.wait()

    docker = FakeDocker(images.BASE, during=during)
    images.ensure_images(lambda _: None, images.IMAGES, Host(docker))
    first = {name.partition(":")[0] for name in list(docker.contexts)[:2]}
    assert first == {"headwind-client", "headwind-nginx"}


def test_a_change_during_the_build_affects_neither_tag_nor_image(tree: Path) -> None:
    before = tags(tree)
    docker = FakeDocker(images.BASE, during=lambda: (tree / "impair/wire.py").write_text("changed"))
    found = images.ensure_images(lambda _: None, images.IMAGES, Host(docker, root=tree))
    assert found.tags == before != tags(tree)
    assert all(b"this is impair/wire.py" in context for context in docker.contexts.values())


@pytest.mark.parametrize("failing", ["headwind-client", "headwind-impair"])
def test_a_build_that_fails_is_an_error_whatever_the_others_do(failing: str) -> None:
    with pytest.raises(DockerError, match=f"{failing}:[0-9a-f-]+ cannot be built"):
        images.ensure_images(lambda _: None, images.IMAGES, Host(FakeDocker(images.BASE, failing=failing)))


def test_images_that_docker_built_elsewhere_are_an_error_with_their_names() -> None:
    class Elsewhere(FakeDocker):
        def __call__(self, *command: str, **given: Any) -> str:
            told = super().__call__(*command, **given)
            self.there.discard(present()[1])
            return told

    with pytest.raises(images.ImageError, match=r"built headwind-client:[0-9a-f]{12} without an error"):
        images.ensure_images(lambda _: None, images.IMAGES, Host(Elsewhere(images.BASE)))


def test_without_images_there_is_no_router_image() -> None:
    assert images.router_image(FakeDocker()) is None


def test_a_docker_that_does_not_answer_is_not_a_docker_without_images() -> None:
    """Its base was `pulled`, then `mmdebstrap` installed, neither of which can help."""
    said, programs = list[str](), Programs()

    class Stopped(FakeDocker):
        def __call__(self, *command: str, **given: Any) -> str:
            if not given.get("check", True):
                return ""
            self.commands.append(command)
            raise DockerError("`docker version` failed with status 1:\n  Cannot connect", "start it")

    docker = Stopped()
    with pytest.raises(DockerError, match="Cannot connect\nstart it"):
        images.ensure_images(said.append, images.needed(), programs.host(docker))
    assert ([command[0] for command in docker.commands], said, programs.ran) == (["version"], [], [])


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


def test_a_command_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "BUILD_SILENCE_S", 0.1)
    with pytest.raises(images.ImageError, match=r"sleep did not end within 0\.1 s"):
        images._command("sleep", "60")


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


def test_scripts_keep_their_line_ends_in_a_clone_by_git_for_windows() -> None:
    """Used in WSL2, it had scripts that do not run in containers."""
    asked = ["git", "check-attr", "text", "eol", "--", "nginx/entrypoint.sh"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["nginx/entrypoint.sh: text: auto", "nginx/entrypoint.sh: eol: lf"]
    listed = subprocess.run(["git", "ls-files", "--eol"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in listed.splitlines()} <= {"i/lf", "i/-text", "i/none"}, (
        "no file is changed by it"
    )


@pytest.mark.parametrize("file", DOCKERFILES)
def test_the_first_layer_of_every_image_is_the_same(file: str) -> None:
    final_stage = (ROOT / file).read_text().rpartition("\nFROM ")[2]
    first = re.search(r"^RUN (?:.*\\\n)*.*", final_stage, re.MULTILINE)
    shared = re.search(r"^RUN (?:.*\\\n)*.*", (ROOT / "impair/Dockerfile").read_text(), re.MULTILINE)
    assert first
    assert shared
    assert first.group() == shared.group()


@pytest.mark.parametrize("file", DOCKERFILES)
def test_no_step_of_a_build_only_sets_what_compose_can_set(file: str) -> None:
    """Each step takes seconds on storage drivers that compare trees."""
    lines = (ROOT / file).read_text().replace("\\\n", " ").splitlines()
    assert {line.split()[0] for line in lines if line and line[0] != "#"} == {"ARG", "FROM", "COPY", "RUN"}


@pytest.mark.parametrize("image", images.IMAGES.values(), ids=images.IMAGES)
def test_an_image_has_its_dockerfile_and_all_that_it_copies(image: Image) -> None:
    paths = {file.path for file in Sources.read(image).files}
    assert image.dockerfile in paths
    assert all(
        any(PurePosixPath(path).match(part) or path.startswith(f"{part}/") for path in paths) for part in image.context
    )
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (ROOT / image.dockerfile).read_text(), re.MULTILINE)
    for name in (name for line in copied for name in line.split()):
        assert name == "." or any(PurePosixPath(path).is_relative_to(name) for path in paths), name


@pytest.mark.parametrize("image", images.IMAGES.values(), ids=images.IMAGES)
def test_an_image_has_every_package_that_its_code_imports(image: Image) -> None:
    files = [file for file in Sources.read(image).files if file.path.endswith(".py")]
    ours = re.compile(r"^ *(?:from|import) (client|impair|nginx|servers)\b", re.MULTILINE)
    imported = {name for file in files for name in ours.findall(file.content.decode())}
    assert imported <= {part.partition("/")[0] for part in image.context}


def test_compose_builds_from_the_folders_of_the_images() -> None:
    allowed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert set(allowed) == {part.partition("/")[0] for image in images.IMAGES.values() for part in image.context}


@pytest.mark.parametrize("module", ["headwind.testbed.images", "tests.net.builds"])
def test_images_need_no_package_of_the_lab(module: str) -> None:
    """They are built while pip still installs those: `python3 -m headwind.testbed.images` with any Python."""
    ask = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", ask], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("raised", "status"),
    [(None, 0), (DockerError("cannot build"), "headwind: cannot build"), (KeyboardInterrupt(), 130)],
)
def test_images_made_beside_the_installation_end_with_a_status_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException | None, status: int | str
) -> None:
    def ensure(*_: object) -> None:
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


@pytest.mark.parametrize("refusing", ["docker", "check_compose"])
def test_a_docker_or_compose_that_does_not_work_is_found_before_the_installation(
    monkeypatch: pytest.MonkeyPatch, refusing: str
) -> None:
    def refuse(*_: str) -> str:
        raise DockerError("too old", "install another")

    for asking in ("docker", "check_compose"):
        monkeypatch.setattr(images, asking, refuse if asking == refusing else lambda *_: "")
    monkeypatch.setattr(images, "ensure_images", lambda *_: pytest.fail("not asked for"))
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert images.main(["check"]) == "headwind: too old\ninstall another"
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


@pytest.mark.parametrize(("target", "beside"), [("lab-smoke", True), ("lab-run", True), ("lab-plan", False)])
def test_a_fresh_clone_builds_the_images_while_pip_installs(target: str, beside: bool) -> None:
    lines = recipe_of(target)
    begun = [number for number, line in enumerate(lines) if "-m headwind.testbed.images &" in line]
    installed = [number for number, line in enumerate(lines) if "-m pip install" in line]
    awaited = [number for number, line in enumerate(lines) if line == "wait $images"]
    if beside:
        assert begun < installed < awaited
        assert [len(found) for found in (begun, installed, awaited)] == [1, 1, 1]
    else:
        assert [len(found) for found in (begun, installed, awaited)] == [0, 1, 0]


def test_tests_begin_with_the_images_unless_few_tests_are_asked_for() -> None:
    lines = recipe_of("test")
    begun, installed = (
        min(number for number, line in enumerate(lines) if words in line)
        for words in ("m tests.net.builds", "-m pip install")
    )
    assert begun < installed
    assert lines[begun].endswith("&")
    assert not [line for line in recipe_of("test", "ARGS=-k journal") if "tests.net.builds" in line]


def recipe_of(*goals: str) -> list[str]:
    """The lines that make would run on a fresh clone."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKEOVERRIDES")}
    command = ["make", "-n", "-B", *goals]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
for further in FURTHER:
    (added,) = yaml.safe_load((ROOT / f"servers/{further}/compose.yaml").read_text())["services"].values()
    assert added.pop("extends") == {"file": "compose.yaml", "service": "server"}
    COMPOSE["services"][further] = COMPOSE["services"]["server"] | added
for browser in BROWSERS:
    COMPOSE["services"] |= yaml.safe_load((ROOT / f"browsers/{browser}/compose.yaml").read_text())["services"]


@pytest.mark.parametrize(("service", "name"), [
    ("client", "client"), ("impair", "impair"), ("server", "nginx"), *((name, name) for name in FURTHER),
])  # fmt: skip
def test_a_container_may_change_its_own_network_and_nothing_else(service: str, name: str) -> None:
    container = COMPOSE["services"][service]
    assert set(container["cap_add"]) >= {"NET_ADMIN", "NET_RAW"}
    assert container["cap_drop"] == ["ALL"]
    assert container["security_opt"] == ["no-new-privileges:true"]
    assert container["read_only"] == "${HEADWIND_READ_ONLY:-true}"
    assert not {"privileged", "network_mode", "pid", "devices", "ports"} & container.keys()
    assert not [volume for volume in container.get("volumes", ()) if ":" in volume], "no folder of the host"
    assert container["command"], "the image names none"
    assert container["image"] == f"headwind-{name}:${{HEADWIND_{name.upper()}_TAG:-latest}}"
    assert container["build"] == {"context": ".", "dockerfile": images.IMAGES[name].dockerfile}


def test_the_router_is_the_only_container_on_both_networks() -> None:
    services = COMPOSE["services"]
    attached = {name: sorted(each["networks"]) for name, each in services.items() if "networks" in each}
    assert attached == {
        "client": ["client-net"],
        "impair": ["client-net", "server-net"],
        **{key: ["server-net"] for key in ("server", *FURTHER)},
    }
    assert set(services) - set(attached) == set(BROWSERS)


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_browser_is_on_the_client_s_host_and_has_no_rights(browser: str) -> None:
    service = COMPOSE["services"][browser]
    assert (service["network_mode"], service["user"], service["cap_drop"]) == ("service:client", "nobody", ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "cap_add" not in service
    assert set(service["labels"]) == {"headwind.project", "headwind.owner"}, "whatever removes a testbed removes it"


@pytest.mark.parametrize("network", ["client-net", "server-net"])
def test_a_network_passes_routed_frames_unchanged(network: str) -> None:
    settings = COMPOSE["networks"][network]
    assert "internal" not in settings, "Docker drops routed frames there"
    assert settings["driver_opts"] == {
        "com.docker.network.bridge.enable_ip_masquerade": "false", "com.docker.network.driver.mtu": "1500",
        "com.docker.network.bridge.inhibit_ipv4": "true",
    }  # fmt: skip
    assert set(settings["labels"]) == {"headwind.project", "headwind.owner"}
