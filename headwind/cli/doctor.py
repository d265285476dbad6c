"""`lab.py doctor`: checks what this host supports; every finding comes with the command that fixes it."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape

from headwind.engines import AUTO
from headwind.errors import HeadwindError
from headwind.format import counted
from headwind.own_command import lab_command
from headwind.plan.cpu_demand import most_lanes
from headwind.testbed.containers import projects
from headwind.testbed.docker import (
    COMPOSE_PACKAGES,
    ROOT,
    DockerError,
    check_compose,
    compose_command,
    docker,
    endpoint,
)
from headwind.testbed.engine_choice import MODPROBE, EngineError, chosen, expected
from impair.capabilities import EVERY_KIND, NetemCapabilities

SOCKET_BUFFER_BYTES = 4 << 20  # buffer that nginx's QUIC listener requests; see docs/windows.md
CODE = ("headwind", "impair", "client", "nginx", "servers")  # folders whose Python files run in a lab
DISK_BYTES = 3 << 30  # images, build layers and a few runs
MEMORY_BYTES = 2 << 30  # of client, router and server; as in README.md
INSTALL_DOCKER = (
    "on Debian, run as root: apt-get install docker.io docker-compose (on Ubuntu docker-compose-v2); elsewhere, "
    "install Docker and Compose as your distribution or Docker describes"
)
UML_PLACE = "/run/uml:exec,size=400m"  # as in compose.yaml
TRY_UML = """
from impair.router import uml
try:
    uml.check_host()
    print("yes")
except uml.BootError as error:
    print(error)
"""
KERNELS_PAGE = "docs/kernels.md"
AVAILABLE = "net.ipv4.tcp_available_congestion_control"
UNREADABLE, IN_THE_VM = "the kernel's list cannot be read here", "look inside the Docker VM"
Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `fix` is a command or a sentence; empty if nothing needs fixing."""

    name: str
    status: Status
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """Properties of a machine, without those of Docker."""

    cores: int
    processor: str
    free_bytes: int  # on the file system of this source tree
    sysctl: Callable[[str], str]  # reads a setting of the kernel; empty if it cannot be read
    available_bytes: int = 0  # memory that is free without swapping; 0 if that is unknown

    @classmethod
    def here(cls) -> Machine:
        """The machine that this program runs on."""
        free, available = shutil.disk_usage(ROOT).free, _memory_bytes("MemAvailable")
        return cls(os.cpu_count() or 1, platform.machine(), free, _sysctl, available)


def examine(machine: Machine) -> Iterator[Finding]:
    """Check everything that a run needs, cheapest first. Never raises.

    It changes nothing on the host, except that trying netem and BBR may load the kernel's modules for them.
    """
    yield _cores(machine)
    yield _memory(machine.available_bytes)
    yield _disk({"this clone": machine.free_bytes} | _free_for_images())
    yield from _docker()
    yield from _commit(ROOT)
    yield from _ipv6(machine)
    yield _socket_buffer(machine)
    yield _congestion(machine, "cubic")
    yield _bbr(machine)
    yield _bridge_firewall(machine)


def _cores(machine: Machine) -> Finding:
    if machine.cores < 2:
        return Finding("CPU", "warning", "1 core: client, router and server compete", "use two or more")
    return Finding("CPU", "ok", f"{machine.cores} cores, {machine.processor}")


def _memory(available: int) -> Finding:
    if not available:
        return Finding("memory", "warning", "the free memory cannot be read here", IN_THE_VM)
    if available < MEMORY_BYTES:
        fix = f"end other programs, or use a machine with {MEMORY_BYTES >> 30} GiB of free memory"
        return Finding("memory", "warning", f"{available >> 20} MiB free", fix)
    return Finding("memory", "ok", f"{available >> 30} GiB free")


def _free_for_images() -> dict[str, int]:
    """The free bytes where Docker keeps its images, by folder, if that is known and on this machine."""
    with suppress(DockerError, OSError):
        place = Path(docker("info", "--format", "{{.DockerRootDir}}").strip())
        if place.is_dir():
            return {f"{place} (Docker's images)": shutil.disk_usage(place).free}
    return {}


def _disk(free: Mapping[str, int]) -> Finding:
    """Finding about the fullest of these places; `free` has the free bytes of each."""
    place, least = min(free.items(), key=lambda each: each[1])
    if least < DISK_BYTES:
        fix = f"free {DISK_BYTES >> 30} GiB there; `docker system prune` removes what Docker does not use"
        return Finding("disk", "warning", f"{least >> 20} MiB free in {place}", fix)
    return Finding("disk", "ok", f"{least >> 30} GiB free")


def _docker() -> Iterator[Finding]:
    if not shutil.which("docker"):
        yield Finding("docker", "failed", "not installed", INSTALL_DOCKER)
        return
    try:
        version = docker("version", "--format", "{{.Server.Version}} {{.Server.Os}}/{{.Server.Arch}}").strip()
    except DockerError as error:
        yield Finding("docker", "failed", error.reason, error.advice or "look at `docker info`")
        return
    yield Finding("docker", "ok", f"engine {version}")
    try:
        check_compose()
        yield Finding("compose", "ok", " ".join(compose_command()))
    except DockerError as error:
        yield Finding("compose", "failed", error.reason, error.advice or f"install {COMPOSE_PACKAGES}")
    try:
        yield _earlier_runs()
        yield from _kernel_netem()
    except (HeadwindError, OSError) as error:  # other failures of docker
        yield Finding("docker", "failed", str(error), "look at `docker info`")


def _earlier_runs() -> Finding:
    found = projects()
    left = sorted(project for project, alive in found.items() if not alive)
    used = len(found) - len(left)
    living = f"{counted(used, 'testbed')} {'is' if used == 1 else 'are'} in use" if used else "no testbed is in use"
    if left:
        return Finding(
            "earlier runs", "warning", f"{living}; {len(left)} left over: {', '.join(left)}", "make lab-down"
        )
    return Finding("earlier runs", "ok", f"{living}, no leftovers")


def _kernel_netem() -> Iterator[Finding]:
    """Try netem in a temporary namespace: configurations and module lists show intentions, not what works."""
    from headwind.testbed.images import router_image

    release = docker("info", "--format", "{{.KernelVersion}}").strip()
    image = router_image()
    if image is None:
        yield _kernel(release, None)
        build = f"a run or `{lab_command('images')}` builds it"
        yield Finding("netem", "ok", f"tested once the router image is built: {build}")
        return
    inside = ("run", "--rm", "--network", "none", "--cap-add", "NET_ADMIN", "--tmpfs", UML_PLACE, image, "python3")
    refusal = _uml_refusal(docker(*inside, "-c", TRY_UML, check=False))
    output = docker(*inside, "-m", "impair.router.try_netem", check=False)
    ability = _ability(output)
    yield _kernel(release, ability)
    netem = _netem(ability, output, refusal)
    yield netem
    if refusal is None:
        yield Finding("engine uml", "ok", "the user-mode kernel can run here")
    elif netem.status == "ok":
        yield Finding("engine uml", "ok", f"not needed; the user-mode kernel cannot run here: {refusal}")
    else:
        fix = "use Linux 7.2 or later" if ability and ability.netem else f"use a kernel with sch_netem; {MODPROBE}"
        yield Finding("engine uml", "warning", f"the user-mode kernel cannot run here: {refusal}", fix)


def _uml_refusal(output: str) -> str | None:
    """Why the user-mode kernel does not run here; None if it does."""
    last = (output.splitlines() or ["no answer"])[-1]
    return None if last == "yes" else last


def _ability(output: str) -> NetemCapabilities | None:
    """Parse the output of the netem test; None if the test failed."""
    try:
        return NetemCapabilities(**json.loads(output))
    except ValueError:
        return None


def _kernel(release: str, ability: NetemCapabilities | None) -> Finding:
    """The row of docs/kernels.md for this kernel; `ability` is None if netem was not tested."""
    return Finding("kernel", "ok", f"{release}; {expected(release, ability.netem if ability else None)}")


def _netem(ability: NetemCapabilities | None, output: str, uml_refusal: str | None) -> Finding:
    """Finding about netem on this kernel: what it supports, and the `auto` choice for a matrix of every impairment."""
    if ability is None:
        return Finding("netem", "warning", f"not tested: {output.strip() or 'no answer'}", f"see {KERNELS_PAGE}")
    try:
        choice = chosen(AUTO, ability, EVERY_KIND, uml_refusal)
    except EngineError as error:
        return Finding("netem", "failed", str(error), f"see {KERNELS_PAGE}")
    if not choice.lacks:
        return Finding("netem", "ok", choice.text)
    return Finding("netem", "warning", f"{choice.reason} (for a matrix of every impairment)", f"see {KERNELS_PAGE}")


def _sysctl(name: str) -> str:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return ""


def _is_rootless() -> bool:
    """Whether Docker's daemon is not root: no container then exceeds the host's limits of socket buffers."""
    with suppress(DockerError, OSError):
        return "name=rootless" in docker("info", "--format", "{{.SecurityOptions}}")
    return False


def _socket_buffer(machine: Machine) -> Finding:
    text = machine.sysctl("net.core.rmem_max")
    if text and _is_rootless():
        limits = {name: int(machine.sysctl(name) or 0) for name in ("net.core.rmem_max", "net.core.wmem_max")}
        if small := {name: size for name, size in limits.items() if size < SOCKET_BUFFER_BYTES}:
            sizes = " and ".join(f"{name} is {size >> 10} KiB" for name, size in small.items())
            least = f"with rootless Docker the lab needs {SOCKET_BUFFER_BYTES >> 10} (wmem_max for engine uml)"
            fix = " ".join(["sysctl -w", *(f"{name}={SOCKET_BUFFER_BYTES}" for name in small)])
            return Finding("UDP buffers", "failed" if "net.core.rmem_max" in small else "warning",
                           f"{sizes}; {least}", fix)  # fmt: skip
    if not text:
        return Finding("UDP buffers", "warning", "net.core.rmem_max cannot be read here", IN_THE_VM)
    if int(text) < SOCKET_BUFFER_BYTES:
        return Finding(
            "UDP buffers", "warning",
            f"net.core.rmem_max is {int(text) >> 10} KiB: many QUIC handshakes at once overflow nginx's socket",
            f"sysctl -w net.core.rmem_max={SOCKET_BUFFER_BYTES}",
        )  # fmt: skip
    return Finding("UDP buffers", "ok", f"net.core.rmem_max is {int(text) >> 10} KiB")


def _congestion(machine: Machine, wanted: str) -> Finding:
    available = machine.sysctl(AVAILABLE).split()
    default = machine.sysctl("net.ipv4.tcp_congestion_control")
    if not available:
        return Finding("congestion control", "warning", UNREADABLE, IN_THE_VM)
    if wanted not in available:
        return Finding("congestion control", "warning", f"{wanted} is not loaded (available: {', '.join(available)})",
                       f"modprobe tcp_{wanted}")  # fmt: skip
    return Finding("congestion control", "ok", f"{wanted} is available; the host's default, {default}, does not matter")


def _bbr(machine: Machine) -> Finding:
    """Finding about BBR, which only arms that request it need. It is tried on a route, as they set it."""
    key, load = "`congestion: bbr`", "modprobe tcp_bbr, or a kernel that has it (CONFIG_TCP_CONG_BBR)"
    answer = _tried_route("bbr")
    if answer == "yes":
        return Finding("BBR", "ok", f"available: {key} can be used")
    if answer:
        return Finding("BBR", "warning", f"{key} cannot be used: {answer}", load)
    available = machine.sysctl(AVAILABLE).split()
    if "bbr" in available:
        return Finding("BBR", "ok", f"loaded, so {key} can be used")
    if not available:
        return Finding("BBR", "warning", UNREADABLE, IN_THE_VM)
    return Finding("BBR", "warning", f"not loaded (available: {', '.join(available)}), so {key} may not work", load)


def _tried_route(congestion: str) -> str:
    """`yes` if a route of a temporary container takes it, else the kernel's message; empty if it cannot be tried.

    Trying loads the module, if it exists and Docker runs as root.
    """
    from headwind.testbed.images import router_image

    script = f"ip route add 192.0.2.0/24 dev lo congctl {congestion} 2>&1 && echo yes"
    try:
        image = router_image()
        inside = ("run", "--rm", "--network", "none", "--cap-add", "NET_ADMIN", image or "", "sh", "-c", script)
        output = docker(*inside, check=False) if image else ""
    except (HeadwindError, OSError):
        return ""
    return next(iter(output.splitlines()), "").removeprefix("Error: ").rstrip(".")


def lacking(
    names: Iterable[str], sysctl: Callable[[str], str] | None = None, is_module: Callable[[str], bool] | None = None
) -> list[str]:
    """TCP congestion controls that this kernel neither has nor has a module for; empty if that cannot be known here."""
    available = (sysctl or _sysctl)(AVAILABLE).split()
    if not available or not (is_module or _has_modules()):
        return []
    found = [name for name in names if name not in available and not (is_module or _is_module)(f"tcp_{name}")]
    return found if found and _is_docker_here() else []


def _is_docker_here() -> bool:
    """Whether Docker's containers run on this kernel, as far as known; Docker Desktop's run in a virtual machine."""
    try:
        place = endpoint()
    except (DockerError, OSError):
        return True
    return not place or (place.startswith("unix:") and "/desktop/" not in place)


def _has_modules() -> bool:
    return Path("/lib/modules", os.uname().release).is_dir() and shutil.which("modinfo") is not None


def _is_module(name: str) -> bool:
    return subprocess.run(["modinfo", name], capture_output=True, check=False).returncode == 0


def _ipv6(machine: Machine) -> Iterator[Finding]:
    """A finding if the kernel has no IPv6: then Docker cannot turn it off in the containers, as compose.yaml asks.

    A system that has no settings at all, such as macOS, is not the one that runs the containers.
    """
    has_settings = any(machine.sysctl(name) for name in (AVAILABLE, "net.core.rmem_max"))
    if has_settings and not machine.sysctl("net.ipv6.conf.all.disable_ipv6"):
        hint = "boot with ipv6.disable_ipv6=1 in place of ipv6.disable=1"
        yield Finding("IPv6", "failed", "the kernel has no IPv6, and containers cannot be started without it", hint)


def _bridge_firewall(machine: Machine) -> Finding:
    if machine.sysctl("net.bridge.bridge-nf-call-iptables") == "1":
        return Finding(
            "bridge firewall", "ok", "bridged frames go through the host's firewall; trials detect any that it drops"
        )
    return Finding("bridge firewall", "ok", "bridged frames do not go through the host's firewall")


def host_facts(machine: Machine | None = None) -> dict[str, Any]:
    """Facts about the host that a reader needs to judge a run, as plain strings and numbers."""
    machine = machine or Machine.here()
    models = (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name"))
    return {
        "kernel": platform.release(),
        "machine": machine.processor,
        "cpu": next(models, ""),
        "cores": machine.cores,
        "memory_bytes": _memory_bytes("MemTotal"),
        "python": platform.python_version(),
        "docker": docker("version", "--format", "{{.Server.Version}}", check=False).strip(),
        "compose": " ".join(compose_command()),
        "rmem_max_bytes": int(machine.sysctl("net.core.rmem_max") or 0),
        "tcp_congestion_default": machine.sysctl("net.ipv4.tcp_congestion_control"),
        "commit": commit_of(ROOT),
    }


def lanes_here(asked: int) -> int:
    """Number of lanes for this host, of `asked` (`Matrix.lanes`). Only memory that is free without swapping counts."""
    return most_lanes(asked, os.cpu_count() or 1, _memory_bytes("MemAvailable"))


def _memory_bytes(name: str) -> int:
    return next((int(line.split()[1]) << 10 for line in _lines("/proc/meminfo") if line.startswith(f"{name}:")), 0)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def commit_of(root: Path) -> str:
    """The commit of a checkout, with `+changes` if its code differs; empty if it is not one.

    A new file counts only if it is a Python file of the lab: reports and matrices next to it change nothing.
    """
    return checkout(root)[0]


def checkout(root: Path) -> tuple[str, str]:
    """The commit of a checkout (`commit_of`), and git's reason if it does not name the commit."""
    if not (root / ".git").exists():  # not one: perhaps a tarball that was unpacked in another repository
        return "", ""
    if not shutil.which("git"):
        return "", "git is not installed"
    asked = _git(root, "rev-parse", "--show-toplevel", "--short=12", "HEAD")
    if asked.returncode:
        return "", (asked.stderr.splitlines() or ["git gave no reason"])[0].strip()
    top, _, commit = asked.stdout.strip().rpartition("\n")
    if Path(top).resolve() != root.resolve():
        return "", f"git takes it for a part of {top}"
    new = [f"{folder}/*.py" for folder in CODE]
    differs = (
        _git(root, "status", "--porcelain", "--untracked-files=no").stdout.strip()
        or _git(root, "ls-files", "--others", "--exclude-standard", "--", *new).stdout.strip()
    )
    return f"{commit}+changes" if differs else commit, ""


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)


def _commit(root: Path) -> Iterator[Finding]:
    """A finding if this is a checkout and git does not name its commit."""
    if trouble := checkout(root)[1]:
        fix = "install git"
        if "dubious ownership" in trouble:
            fix = shlex.join(["git", "config", "--global", "--add", "safe.directory", str(root)])
        elif "not installed" not in trouble:
            fix = f"look at `{shlex.join(['git', '-C', str(root), 'status'])}`"
        yield Finding("commit", "warning", f"runs cannot record the commit of this clone: {trouble}", fix)


def print_findings(findings: Iterable[Finding], out: Console) -> int:
    """Print each finding as soon as it is made. Returns the exit code: 0 if a run can start, else 1."""
    marks = {"ok": "[green]ok     [/]", "warning": "[yellow]warning[/]", "failed": "[red]failed [/]"}
    failed = False
    for finding in findings:
        out.print(f"{marks[finding.status]} {finding.name:<19} {escape(finding.detail)}", highlight=False)
        if finding.fix:
            out.print(f"        {'':<19} fix: {escape(finding.fix)}", highlight=False)
        failed |= finding.status == "failed"
    return 1 if failed else 0
