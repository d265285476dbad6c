"""The three images: found again in a moment when nothing in them has changed, built with visible progress when it has.

The tag is a hash of everything that goes into them, so a run can say exactly what it ran, and old code never runs by
accident; HEADWIND_REGISTRY is asked for it first (registry.py). The base is Debian's image from whatever registry
Docker uses; where none answers it is made from the Debian mirror that apt is configured with. The name of a registry or
mirror is the user's setting and appears nowhere here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headwind.errors import HeadwindError, UsageError
from headwind.testbed import registry
from headwind.testbed.docker import ROOT, Docker, DockerError, docker

DOCKERFILES = {"server": "nginx/Dockerfile", "client": "client/Dockerfile", "impair": "impair/Dockerfile"}
# Two queues in parallel: compiling h2load takes longer than all the rest. The images share their packages' layer, which
# the other queue has built by the time that the client needs it.
BUILD_QUEUES = (("client",), ("server", "impair"))
CONTEXT = (".dockerignore", "client", "impair", "nginx")
DISTFILES = "client/distfiles"
BASE = "debian:forky-slim"
BASE_LABEL = "headwind.base"  # set on a base that was made here, and inherited by the images
SUITE = "forky"
PULL_SILENCE_S = 20.0  # without a line from docker, the registry is out of reach

# What Debian's own slim images do, too: no caches, no manuals, no waiting for the disk.
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
    """There is no way to an image; the message says what was tried and what to do."""


@dataclass(frozen=True, slots=True)
class Images:
    """The images of this source tree: `headwind-<name>:<tag>`."""

    tag: str
    ids: Mapping[str, str]  # server, client, impair -> image id
    base: str  # "mmdebstrap" when the base was made here, else "docker": pulled, or already there
    built: bool  # False if all three were there, or were pulled
    seconds: float  # that it took to make sure


def content_tag(root: Path) -> str:
    """12 hex digits that change with the name, the mode or a byte of any file that goes into an image.

    The source of nghttp2 is left out: its hash is in the script that checks it.
    """
    digest = hashlib.sha256(BASE.encode())
    for file in _context_files(root):
        mode = "x" if os.access(file, os.X_OK) else "-"
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"\n{file.relative_to(root).as_posix()} {mode} {content}".encode())
    return digest.hexdigest()[:12]


def _context_files(root: Path) -> Iterator[Path]:
    for name in CONTEXT:
        for file in sorted((root / name).rglob("*")) if (root / name).is_dir() else [root / name]:
            ignored = "__pycache__" in file.parts or file.suffix == ".pyc" or root / DISTFILES in file.parents
            if file.is_file() and not ignored:
                yield file


def _command(*command: str) -> str:
    """The standard output of a command; raises ImageError with its last words when it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except FileNotFoundError as error:
        raise ImageError(f"{command[0]} is not installed") from error
    if done.returncode:
        tail = "\n".join(f"  {line}" for line in (done.stderr or done.stdout).splitlines()[-8:])
        raise ImageError(f"{command[0]} failed with status {done.returncode}:\n{tail}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Host:
    """What images are made with: this machine's programs, unless somebody brings others."""

    docker: Docker = docker
    command: Callable[..., str] = _command  # any other program
    which: Callable[[str], str | None] = shutil.which
    is_root: Callable[[], bool] = lambda: os.geteuid() == 0
    tag: Callable[[Path], str] = content_tag
    keyring: Path = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


HOST = Host()


def ensure_images(say: Say, host: Host = HOST) -> Images:
    """The images of this source tree, pulled from HEADWIND_REGISTRY or built if they are missing; `say` gets each step.

    Raises ImageError, UsageError, or DockerError with the last lines of a build that failed.
    """
    start, tag, place = time.monotonic(), host.tag(ROOT), registry.place_of(os.environ.get(registry.VARIABLE))
    found = _find(tag, host.docker)
    if not found and place and registry.pull(place, _names(tag), host.docker, say):
        found = _find(tag, host.docker)
    if found:
        return Images(tag, *found, built=False, seconds=time.monotonic() - start)
    say(f"building the images {tag} (first time: a minute or two)")
    ensure_base(BASE, say, host)
    copy_distfiles(os.environ.get("HEADWIND_DISTFILES"), ROOT / DISTFILES, say)
    _build_all(tag, say, host.docker)
    if host.tag(ROOT) != tag:
        say("files that go into the images changed meanwhile: once more")
        host.docker("image", "rm", *_names(tag), check=False)  # the tag would lie
        return ensure_images(say, host)
    found = _find(tag, host.docker)
    if not found:
        raise ImageError(
            f"docker built the images {tag} without complaint, but does not have them; "
            "where buildx uses a builder of its own, `docker buildx use default` goes back to Docker's"
        )
    say(f"the images are built ({time.monotonic() - start:.0f} s)")
    return Images(tag, *found, built=True, seconds=time.monotonic() - start)


def push_images(say: Say, host: Host = HOST) -> None:
    """Put the images of this source tree into HEADWIND_REGISTRY, built if they are missing.

    Raises UsageError if no registry is named, DockerError, ImageError.
    """
    place = registry.place_of(os.environ.get(registry.VARIABLE))
    if not place:
        raise UsageError(f"no registry is named: {registry.VARIABLE}=registry.example:5000/team lab.py images push")
    registry.push(place, _names(ensure_images(say, host).tag), host.docker, say)


def router_image(docker: Docker = docker) -> str | None:
    """The name of this source tree's router image, or None when it is not built."""
    tag = content_tag(ROOT)
    return f"headwind-impair:{tag}" if _find(tag, docker) else None


def _names(tag: str) -> list[str]:
    return [f"headwind-{name}:{tag}" for name in DOCKERFILES]


def _find(tag: str, docker: Docker) -> tuple[dict[str, str], str] | None:
    """({name: image id}, base) when all three exist, else None."""
    told = docker("image", "inspect", "--format", "{{.Id}} {{json .Config.Labels}}", *_names(tag), check=False)
    lines = re.findall(r"^(sha256:[0-9a-f]+) (.*)$", told, re.MULTILINE)
    if len(lines) != len(DOCKERFILES):
        return None
    base = (json.loads(lines[0][1]) or {}).get(BASE_LABEL)
    return {name: identity for name, (identity, _) in zip(DOCKERFILES, lines, strict=True)}, base or "docker"


def _build_all(tag: str, say: Say, docker: Docker) -> None:
    """Build the queues in parallel. When one fails, or on Ctrl-C, the other ends with its next line of output."""
    stop, lock = threading.Event(), threading.Lock()

    def build(queue: tuple[str, ...]) -> None:
        for name in queue:
            docker(
                "build", "--tag", f"headwind-{name}:{tag}", "--file", DOCKERFILES[name],
                "--build-arg", f"BASE={BASE}", "--force-rm", ".",
                stream=partial(show, name), environment={"BUILDKIT_PROGRESS": "plain"},
            )  # fmt: skip

    def show(name: str, line: str) -> None:
        if stop.is_set():
            raise ImageError("stopped, because the other build failed")
        step = build_step(line)
        if step:
            with lock:
                say(f"  {name:6} {step}")

    with ThreadPoolExecutor(len(BUILD_QUEUES)) as pool:
        builds = [pool.submit(build, queue) for queue in BUILD_QUEUES]
        try:
            for done in as_completed(builds):
                done.result()
        except BaseException:
            stop.set()
            raise


def build_step(line: str) -> str | None:
    """`3/16 RUN apt-get ...` for a line in which a builder announces a step, None for any other."""
    match = _STEP.match(line)
    if not match:
        return None
    text = f"{match[1] or match[2]:>5} {' '.join(match[3].split())}"
    return text if len(text) <= _STEP_WIDTH else text[: _STEP_WIDTH - 3] + "..."


def copy_distfiles(source: str | None, target: Path, say: Say) -> None:
    """Copy nghttp2's tarballs from the directory `source` into the build context, where there is a `source`."""
    if not source:
        return
    tarballs = sorted(Path(source).glob("nghttp2-*.tar.gz"))
    if not tarballs:
        say(f"HEADWIND_DISTFILES={source} holds no nghttp2-*.tar.gz: the build fetches it")
    for tarball in tarballs:
        shutil.copyfile(tarball, target / tarball.name)


def ensure_base(base: str, say: Say, host: Host = HOST) -> None:
    """Make sure that Docker has the image `base`: as it is, pulled, or made from the Debian mirror.

    Raises ImageError when none of it works.
    """
    if host.docker("image", "inspect", "--format", "{{.Id}}", base, check=False).startswith("sha256:"):
        return
    try:
        say(f"pulling {base}")
        host.docker("pull", base, silence_s=PULL_SILENCE_S)
    except DockerError as error:
        reason = str(error).splitlines()[-1].strip()
        say(f"no registry has {base} for us ({reason}); making it from the Debian mirror with mmdebstrap, about 15 s")
        make_base(base, say, host)


def make_base(base: str, say: Say, host: Host = HOST) -> None:
    """Make Debian's minimal system and import it as `base`. Raises ImageError, DockerError."""
    if not host.which("mmdebstrap") or not host.keyring.exists():
        _install_mmdebstrap(base, say, host)
    with tempfile.TemporaryDirectory(prefix="headwind-base-") as directory:
        tarball = Path(directory) / "base.tar"
        options = [f"--aptopt={option}" for option in APT_OPTIONS] + [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
        host.command(
            "mmdebstrap", "--quiet", "--variant=minbase", *options, f"--customize-hook={NO_CACHE_HOOK}",
            f"--keyring={host.keyring}", SUITE, str(tarball), *debian_mirror(host.command),
        )  # fmt: skip
        host.docker("import", "--change", f"LABEL {BASE_LABEL}=mmdebstrap", str(tarball), base)


def debian_mirror(command: Callable[..., str] = _command) -> list[str]:
    """The URI of the Debian mirror that apt is configured with; empty where there is none: mmdebstrap has a default."""
    told = command("apt-get", "indextargets", "--format", "$(LABEL) $(SITE)", "Created-By: Packages")
    return [line.partition(" ")[2] for line in told.splitlines() if line.startswith("Debian ")][:1]


def _install_mmdebstrap(base: str, say: Say, host: Host) -> None:
    wanted = ("mmdebstrap", "debian-archive-keyring")
    if not host.which("apt-get") or not host.is_root():
        raise ImageError(
            f"Docker cannot pull {base}, and what makes it from a Debian mirror is not installed.\n"
            f"Either let Docker reach a registry (`docker pull {base}` must work), or run as root:\n"
            f"  apt-get install {' '.join(wanted)}"
        )
    say(f"installing {' and '.join(wanted)}")
    host.command("apt-get", "update")
    host.command("apt-get", "install", "--yes", "--no-install-recommends", *wanted)


def main() -> int | str:
    """Make sure of the images while the lab's packages are still being installed: needs Python's own library only."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)  # a shell starts what runs beside it with SIGINT ignored
    try:
        ensure_images(partial(print, flush=True))
    except HeadwindError as error:
        return f"headwind: {error}"
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
