"""Other machines than this one, as far as this one can be made to show them; it is left as it was found."""

from __future__ import annotations

import grp
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from headwind.model import Outcome
from headwind.run.journal import Run
from headwind.testbed import path as paths
from headwind.testbed.docker import docker
from headwind.testbed.images import IMAGES, Sources, debian_mirror, write_archive
from headwind.trial.start import UnexpectedState, examine_start
from tests.net.beside import exit_status, outcomes
from tests.net.builds import alone

pytestmark = [
    pytest.mark.timeout(400, func_only=True),  # the first test may have to build the images
    pytest.mark.usefixtures("images"),
]

ROOT = Path(__file__).resolve().parent.parent.parent
NOBODY = 54_321  # a user that no host has
MATRIX = """
protocols: [h2]
lanes: 1
repeat: 1
profiles:
  far: {both: {delay: 5ms}}
workloads:
  some: {requests: 50, connections: 2, streams: 1}
"""
PLUGINS = ("docker-compose", "docker-buildx")


def lab(folder: Path, *before: str, python: str = sys.executable, **more: str) -> Run:
    """A run of lab.py with one trial, after the words `before` and with `more` in its environment; it must succeed."""
    (folder / "matrix.yaml").write_text(MATRIX)
    command = [python, str(ROOT / "lab.py"), "run", str(folder / "matrix.yaml"), "--reports", str(folder / "runs")]
    done = subprocess.run([*before, *command], env={**os.environ, **more}, capture_output=True, text=True, check=False,
                          timeout=240)  # fmt: skip
    found = [path.parent for path in (folder / "runs").glob("*/matrix.json")]
    assert len(found) == 1, done.stdout + done.stderr
    run = Run.open(found[0])
    assert outcomes(run.results()) == [Outcome.OK], done.stdout + done.stderr
    assert done.returncode == exit_status(run)
    return run


@pytest.fixture(scope="module")
def plugins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration of Docker's client that has Compose 2 and buildx, out of Debian 13's packages.

    They are fetched once for all, into pytest's cache.
    """
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    folder = cache.mkdir("debian-13-docker") if cache else tmp_path_factory.mktemp("docker")
    with alone():
        if not all((folder / "cli-plugins" / name).exists() for name in PLUGINS):
            fetch_plugins(folder)
    return folder


def fetch_plugins(folder: Path) -> None:
    """Skips where they cannot be had."""
    mirror = debian_mirror() if shutil.which("apt-get") and os.geteuid() == 0 else []
    if not mirror:
        pytest.skip("packages are fetched by apt, as root")
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (folder / "sources.list").write_text(f"deb [signed-by={keyring}] {mirror[0]} trixie main\n")
    for name in ("lists/partial", "archives/partial", "cli-plugins"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in {
        "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists", "Dir::Cache": folder, "APT::Sandbox::User": "root",
    }.items())]  # fmt: skip
    for step in (["update"], ["download", *PLUGINS]):
        done = subprocess.run([*apt, *step], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            pytest.skip(f"Debian 13's {' and '.join(PLUGINS)} cannot be had: {done.stderr.splitlines()[-1]}")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "unpacked"], check=True)
    for name in PLUGINS:
        shutil.copy2(folder / "unpacked/usr/libexec/docker/cli-plugins" / name, folder / "cli-plugins")


@pytest.mark.labs
def test_compose_2_brings_the_testbed_up(plugins: Path, tmp_path: Path) -> None:
    with lab(tmp_path, DOCKER_CONFIG=str(plugins)) as run:
        assert run.environment["host"]["compose"] == "docker compose"


@pytest.mark.images
@pytest.mark.timeout(1200, func_only=True)  # a builder that has nothing yet, on a busy machine
@pytest.mark.parametrize("name", ["impair", "nginx"])
def test_buildx_builds_the_images(plugins: Path, name: str) -> None:
    tag = f"headwind-buildx-test:{os.getpid()}"
    image = IMAGES[name]
    command = ["docker", "buildx", "build", "--load", "--tag", tag, "--file", image.dockerfile, "-"]
    environment = {**os.environ, "DOCKER_CONFIG": str(plugins), "BUILDKIT_PROGRESS": "plain"}
    try:
        with tempfile.TemporaryFile() as context:
            write_archive(Sources.read(image).files, context)
            context.seek(0)
            done = subprocess.run(command, stdin=context, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        docker("run", "--rm", "--network", "none", tag, "python3", "-c", "import impair.wire")
    finally:
        docker("image", "rm", "--force", tag, check=False)


@pytest.mark.labs
def test_a_user_in_group_docker_needs_no_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("this user is not root, and all tests show it")
    groups = ("--groups", str(grp.getgrnam("docker").gr_gid))
    somebody = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), *groups, "--")
    packages = sysconfig.get_path("purelib")
    python = usable_python(*somebody, packages=packages)
    place = Path(f"/tmp/headwind-test-{os.getpid()}")  # noqa: S108 - pytest's own folders are root's alone
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    try:
        with lab(place, *somebody, python=python, HOME=str(place), PYTHONPATH=packages) as run:
            assert (run.folder / "report.html").stat().st_uid == NOBODY
    finally:
        shutil.rmtree(place)


def usable_python(*somebody: str, packages: str) -> str:
    """A Python of our version that another user can run, with our packages; else the test is skipped."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}"):
        command = [*somebody, python, "-c", "import rich, yaml"]
        environment = {**os.environ, "PYTHONPATH": packages}
        tried = subprocess.run(command, env=environment, capture_output=True, check=False, cwd="/")
        if tried.returncode == 0:
            return python
    pytest.skip(f"no {version} here that another user may run")


@contextmanager
def rule(*words: str) -> Iterator[None]:
    """An iptables rule of this host, for a while."""
    subprocess.run(["iptables", "-w", "-I", *words], check=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "-w", "-D", *words], check=True)


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("iptables"), reason="only root sets the firewall, by iptables"
)
def test_a_firewall_that_drops_forwarded_frames_is_said_before_the_first_trial(bed: paths.Path) -> None:
    if Path("/proc/sys/net/bridge/bridge-nf-call-iptables").read_text().strip() != "1":
        pytest.skip("bridged frames do not pass this host's firewall")
    subnet, plain = bed.addresses.server_subnet, replace(bed, containers={})  # whose programs others have changed
    with rule("FORWARD", "-d", subnet, "-j", "DROP"), pytest.raises(UnexpectedState, match="nothing passes") as refused:
        examine_start(plain)
    assert subnet in str(refused.value)
    assert "iptables -S FORWARD" in str(refused.value)
    examine_start(plain)  # and it was nothing else


@pytest.mark.labs
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root makes a network namespace")
def test_where_a_vpn_owns_all_private_networks_the_lab_takes_others(tmp_path: Path) -> None:
    ways = "; ".join(f"ip route add {net} dev lo" for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
    with lab(tmp_path, "unshare", "--net", "sh", "-ec", f'ip link set lo up; {ways}; exec "$@"', "-") as run:
        assert "198.18." in str(run.environment) or "198.19." in str(run.environment)
