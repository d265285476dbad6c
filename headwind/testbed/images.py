"""The images: each is reused if unchanged, else built with visible progress.

An image's tag is a hash of the files that go into it, and the builder gets these files and no others. So a run can
state exactly what it ran, old code never runs by accident, and a change rebuilds only the images that contain it.
HEADWIND_REGISTRY is queried first (registry.py). The base is Debian's image from whatever registry Docker uses; if none
answers it is made from the Debian mirror that apt is configured with. The name of a registry or mirror is the user's
setting and appears nowhere here.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from headwind.browsers import BROWSERS
from headwind.errors import HeadwindError, UsageError
from headwind.own_command import lab_command
from headwind.servers import FURTHER, OWN
from headwind.testbed import registry
from headwind.testbed.docker import ROOT, Docker, DockerError, check_compose, docker
from headwind.testbed.scratch import scratch

BASE = "debian:forky-slim"
SUITE = "forky"
DISTFILES = "client/distfiles"
PULL_SILENCE_S = 20.0  # without a line from docker, the registry is out of reach
BUILD_SILENCE_S = 900.0  # without a line from a build, or for all that a program does on this machine

# As in Debian's slim images: no caches, no manuals, no fsync.
APT_OPTIONS = ('Acquire::Check-Valid-Until "false"', 'Acquire::Languages "none"')  # a mirror of testing can lag behind
DPKG_OPTIONS = (
    "force-unsafe-io", "path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/man/*", "path-exclude=/usr/share/locale/*",
)  # fmt: skip
NO_CACHE_HOOK = (
    """printf '%s\\n' 'APT::Keep-Downloaded-Packages "false";' 'Dir::Cache::pkgcache "";' """
    """'Dir::Cache::srcpkgcache "";' > "$1/etc/apt/apt.conf.d/99clean"; rm -f "$1"/var/cache/apt/*.bin"""
)

_STEP = re.compile(r"(?:Step (\d+/\d+) : |#\d+ \[(?:\S+ +)?(\d+/\d+)\] )(.+)")  # the classic builder's; BuildKit's
_STEP_WIDTH = 90

Say = Callable[[str], None]


class ImageError(HeadwindError):
    """An image is not available; the message has what was tried and what to do."""


CLIENT, ROUTER, NGINX = "client", "router", "nginx"
SERVERS = ("servers/*.py", "servers/*.sh")  # shared by all servers; each folder in servers/ is of one server only


@dataclass(frozen=True, slots=True)
class Image:
    """An image of Headwind, and the files that go into it."""

    name: str
    dockerfile: str
    context: tuple[str, ...]  # folders and patterns; their files alone are hashed, and sent to the builder
    needed_by: str  # CLIENT, ROUTER, a kind of server, or a browser
    verified: str = ""  # pattern of files that the build checks with its own hash: sent, and not part of the tag


IMAGES: Mapping[str, Image] = {
    image.name: image
    for image in (
        Image("nginx", "nginx/Dockerfile", ("impair", "nginx", *SERVERS), NGINX),
        Image("client", "client/Dockerfile", ("client", "impair"), CLIENT, f"{DISTFILES}/nghttp2-*.tar.gz"),
        Image("impair", "impair/Dockerfile", ("impair",), ROUTER),
        *(
            Image(name, f"servers/{name}/Dockerfile", ("impair", *SERVERS, f"servers/{name}"), name)
            for name in (*FURTHER, OWN)
        ),
        *(
            Image(name, f"browsers/{name}/Dockerfile", ("impair", "browsers/*.py", f"browsers/{name}"), name)
            for name in BROWSERS
        ),
    )
}


def needed(servers: Collection[str] = (NGINX,), browsers: Collection[str] = ()) -> tuple[str, ...]:
    """The names of the images for testbeds with these kinds of server and these browsers."""
    return tuple(image.name for image in IMAGES.values() if image.needed_by in (CLIENT, ROUTER, *servers, *browsers))


@dataclass(frozen=True, slots=True)
class Images:
    """Images that are present, by name."""

    tags: Mapping[str, str]
    ids: Mapping[str, str]

    def reference(self, name: str) -> str:
        """The name of an image in Docker."""
        return reference(name, self.tags[name])

    @property
    def recorded(self) -> dict[str, str]:
        """The tag and the id of each image: what a run notes, and what its other testbeds must equal."""
        return {name: f"{tag}@{self.ids[name]}" for name, tag in self.tags.items()}


def reference(name: str, tag: str) -> str:
    """The name of an image in Docker."""
    return f"headwind-{name}:{tag}"


@dataclass(frozen=True, slots=True)
class File:
    """A file of a source tree."""

    path: str  # relative to the tree, with slashes
    is_program: bool
    content: bytes

    @classmethod
    def read(cls, file: Path, root: Path) -> File:
        """Read a file. Raises OSError."""
        return cls(file.relative_to(root).as_posix(), bool(file.stat().st_mode & 0o100), file.read_bytes())


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of an image, read once: a change during the build affects neither the tag nor the image."""

    image: Image
    files: tuple[File, ...]

    @classmethod
    def read(cls, image: Image, root: Path = ROOT) -> Sources:
        """Read the files of an image. Raises OSError."""
        unhashed = set(root.glob(image.verified)) if image.verified else set()
        found = sorted(file for part in image.context for file in root.glob(part if "*" in part else f"{part}/**/*"))
        return cls(image, tuple(File.read(file, root) for file in found if file not in unhashed and _is_source(file)))

    @property
    def tag(self) -> str:
        """12 hex digits that change with the name, the mode or a byte of any file."""
        digest = hashlib.sha256(f"{BASE} {self.image.dockerfile}".encode())
        for file in self.files:
            mode, content = "x" if file.is_program else "-", hashlib.sha256(file.content).hexdigest()
            digest.update(f"\n{file.path} {mode} {content}".encode())
        return digest.hexdigest()[:12]

    @property
    def reference(self) -> str:
        """The name of the image in Docker."""
        return reference(self.image.name, self.tag)


def _is_source(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts and file.suffix != ".pyc"


def write_archive(files: Sequence[File], into: IO[bytes]) -> None:
    """Write a tar archive that only depends on names, modes and contents: builders then find their cached layers."""
    with tarfile.open(fileobj=into, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for folder in sorted({str(parent) for file in files for parent in PurePosixPath(file.path).parents} - {"."}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for file in files:
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mode = len(file.content), 0o755 if file.is_program else 0o644
            archive.addfile(entry, io.BytesIO(file.content))


def _command(*command: str) -> str:
    """The standard output of a command; raises ImageError with its last words when it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, timeout=BUILD_SILENCE_S
        )
    except FileNotFoundError as error:
        raise ImageError(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ImageError(
            f"{command[0]} did not end within {BUILD_SILENCE_S:g} s; does the Debian mirror answer?"
        ) from error
    if done.returncode:
        tail = "\n".join(f"  {line}" for line in (done.stderr or done.stdout).splitlines()[-8:])
        raise ImageError(f"{command[0]} failed with status {done.returncode}:\n{tail}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Host:
    """The programs that make images; tests replace them."""

    docker: Docker = docker
    command: Callable[..., str] = _command  # any other program
    which: Callable[[str], str | None] = shutil.which
    is_root: Callable[[], bool] = lambda: os.geteuid() == 0
    root: Path = ROOT  # the source tree
    keyring: Path = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


HOST = Host()


def ensure_images(say: Say, names: Collection[str], host: Host = HOST) -> Images:
    """The named images of this source tree: those that are missing are pulled from HEADWIND_REGISTRY, or built.

    `say` gets each step. Raises ImageError, UsageError, or DockerError with the last lines of a build that failed.
    """
    start, place = time.monotonic(), registry.place_of(os.environ.get(registry.VARIABLE))
    wanted = [Sources.read(IMAGES[name], host.root) for name in names]
    ids = _ids(wanted, host.docker)
    if _missing(wanted, ids):
        host.docker("version", "--format", "{{.Server.Version}}")  # a Docker that does not answer seems to have none
    if place and (missing := _missing(wanted, ids)):
        registry.pull(place, [sources.reference for sources in missing], host.docker, say)
        ids = _ids(wanted, host.docker)
    if missing := _missing(wanted, ids):
        say(f"building {_listed(missing)} (first time: a few minutes)")
        ensure_base(BASE, say, host)
        copy_distfiles(os.environ.get("HEADWIND_DISTFILES"), host.root / DISTFILES, say)
        _build_all(missing, say, host)
        say(f"images built ({time.monotonic() - start:.0f} s)")
        ids = _ids(wanted, host.docker)
    if missing := _missing(wanted, ids):
        raise ImageError(
            f"docker built {_listed(missing)} without an error, but does not list them; "
            "if buildx uses another builder, `docker buildx use default` switches back to Docker's"
        )
    return Images({sources.image.name: sources.tag for sources in wanted}, ids)


def push_images(say: Say, names: Collection[str], host: Host = HOST) -> None:
    """Put the named images of this source tree into HEADWIND_REGISTRY, built if they are missing.

    Raises UsageError if no registry is named, DockerError, ImageError.
    """
    place = registry.place_of(os.environ.get(registry.VARIABLE))
    if not place:
        command = lab_command("images", "push")
        raise UsageError(f"no registry is set: {registry.VARIABLE}=registry.example:5000/team {command}")
    images = ensure_images(say, names, host)
    registry.push(place, [images.reference(name) for name in images.tags], host.docker, say)


def router_image(docker: Docker = docker) -> str | None:
    """The name of this source tree's router image, or None when it is not built."""
    sources = Sources.read(IMAGES["impair"])
    return sources.reference if _ids([sources], docker) else None


def _missing(wanted: Sequence[Sources], ids: Mapping[str, str]) -> list[Sources]:
    return [sources for sources in wanted if sources.image.name not in ids]


def _listed(wanted: Sequence[Sources]) -> str:
    return ", ".join(sources.reference for sources in wanted)


def _ids(wanted: Sequence[Sources], docker: Docker) -> dict[str, str]:
    """{name: id} of the images that are present."""
    names = {sources.reference: sources.image.name for sources in wanted}
    listing = docker("image", "inspect", "--format", "{{.Id}} {{json .RepoTags}}", *names, check=False)
    lines = re.findall(r"^(sha256:[0-9a-f]+) (.*)$", listing, re.MULTILINE)
    found = {tag: identity for identity, tags in lines for tag in json.loads(tags) or ()}
    return {name: found[tag] for tag, name in names.items() if tag in found}


def _build_all(missing: Sequence[Sources], say: Say, host: Host) -> None:
    """Build in two parallel queues. If one fails, or on Ctrl-C, the other ends with its next line of output.

    Compiling h2load takes longer than everything else, so the client has its own queue. All images share a package
    layer, which the other queue has built before the client needs it.
    """
    stop, lock = threading.Event(), threading.Lock()
    queues: tuple[list[Sources], list[Sources]] = ([], [])
    for sources in missing:
        queues[sources.image.needed_by != CLIENT].append(sources)

    def build(queue: Sequence[Sources]) -> None:
        for sources in queue:
            _build(sources, host, partial(show, sources.image.name))

    def show(name: str, line: str) -> None:
        if stop.is_set():
            raise ImageError("stopped, because the other build failed")
        step = build_step(line)
        if step:
            with lock:
                say(f"  {name:6} {step}")

    with ThreadPoolExecutor(len(queues)) as pool:
        builds = [pool.submit(build, queue) for queue in queues]
        try:
            for done in as_completed(builds):
                done.result()
        except BaseException:
            stop.set()
            raise


def _build(sources: Sources, host: Host, show: Say) -> None:
    """Build an image under the name of a draft, and give it its own name unless another image has that by then.

    Another copy of the project may have built it meanwhile, and its runs can only be resumed with that image.
    """
    image, draft = sources.image, f"{sources.reference}-{secrets.token_hex(4)}"
    verified = sorted(host.root.glob(image.verified)) if image.verified else []
    base = base_name(host.docker)
    with tempfile.TemporaryFile() as context:
        write_archive([*sources.files, *(File.read(file, host.root) for file in verified)], context)
        context.seek(0)
        host.docker(
            "build", "--tag", draft, "--file", image.dockerfile, "--build-arg", f"BASE={base}", "--force-rm", "-",
            stream=show, environment={"BUILDKIT_PROGRESS": "plain"}, silence_s=BUILD_SILENCE_S, stdin=context,
        )  # fmt: skip
    if not _ids([sources], host.docker):
        host.docker("tag", draft, sources.reference, check=False)  # it is not there if another builder has it
    host.docker("image", "rm", draft, check=False)


def base_name(docker: Docker) -> str:
    """The base image by its digest, if it was pulled; otherwise by its tag."""
    listing = docker("image", "inspect", "--format", "{{json .RepoDigests}}", BASE, check=False).strip()
    digests = json.loads(listing) if listing.startswith("[") else []
    return str(digests[0]) if digests else BASE


def build_step(line: str) -> str | None:
    """`3/16 RUN apt-get ...` for a line in which a builder announces a step, None for any other."""
    match = _STEP.match(line)
    if not match:
        return None
    text = f"{match[1] or match[2]:>5} {' '.join(match[3].split())}"
    return text if len(text) <= _STEP_WIDTH else text[: _STEP_WIDTH - 3] + "..."


def copy_distfiles(source: str | None, target: Path, say: Say) -> None:
    """Copy nghttp2's tarballs from the directory `source`, if given, into the build context."""
    if not source:
        return
    tarballs = sorted(Path(source).glob("nghttp2-*.tar.gz"))
    if not tarballs:
        say(f"HEADWIND_DISTFILES={source} holds no nghttp2-*.tar.gz: the build fetches it")
    for tarball in tarballs:
        shutil.copyfile(tarball, target / tarball.name)


def ensure_base(base: str, say: Say, host: Host = HOST) -> None:
    """Make the image `base` available: present, pulled, or made from the Debian mirror.

    Raises ImageError if none of it works.
    """
    if host.docker("image", "inspect", "--format", "{{.Id}}", base, check=False).startswith("sha256:"):
        return
    try:
        say(f"pulling {base}")
        host.docker("pull", base, silence_s=PULL_SILENCE_S)
    except DockerError as error:
        say(f"could not pull {base} ({error.reason}); making it from the Debian mirror with mmdebstrap, about 15 s")
        make_base(base, say, host)


def make_base(base: str, say: Say, host: Host = HOST) -> None:
    """Make Debian's minimal system and import it as `base`. Raises ImageError, DockerError."""
    if not host.which("mmdebstrap") or not host.keyring.exists():
        _install_mmdebstrap(base, say, host)
    with scratch() as directory:
        tarball = directory / "base.tar"
        options = [f"--aptopt={option}" for option in APT_OPTIONS] + [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
        host.command(
            "mmdebstrap", "--quiet", "--variant=minbase", *options, f"--customize-hook={NO_CACHE_HOOK}",
            f"--keyring={host.keyring}", SUITE, str(tarball), *debian_mirror(host.command),
        )  # fmt: skip
        host.docker("import", str(tarball), base)


def debian_mirror(command: Callable[..., str] = _command) -> list[str]:
    """The URI of the Debian mirror that apt is configured with; empty if there is none: mmdebstrap has a default."""
    targets = command("apt-get", "indextargets", "--format", "$(LABEL) $(SITE)", "Created-By: Packages")
    return [line.partition(" ")[2] for line in targets.splitlines() if line.startswith("Debian ")][:1]


def _install_mmdebstrap(base: str, say: Say, host: Host) -> None:
    wanted = ("mmdebstrap", "debian-archive-keyring")
    if not host.which("apt-get") or not host.is_root():
        raise ImageError(
            f"Docker cannot pull {base}, and the tool to make it from a Debian mirror is not installed.\n"
            f"Either let Docker reach a registry (`docker pull {base}` must work),\n"
            "or on Debian or Ubuntu run as root:\n"
            f"  apt-get install {' '.join(wanted)}"
        )
    say(f"installing {' and '.join(wanted)} on this machine")
    host.command("apt-get", "update")
    host.command("apt-get", "install", "--yes", "--no-install-recommends", *wanted)


def main(words: Sequence[str] = ()) -> int | str:
    """Prepare the images while the lab's packages are still being installed: only needs the standard library.

    With the word `check`, only ask whether Docker and Compose work.
    """
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored
    try:
        if "check" in words:
            docker("version", "--format", "{{.Server.Version}}")
            check_compose()
        else:
            ensure_images(partial(print, flush=True), needed())
    except HeadwindError as error:
        return f"headwind: {error}"
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
