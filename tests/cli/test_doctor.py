"""The check-up: what is fine, what is worth a warning and what stops a run, each with the command that fixes it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import lab
from headwind.cli import doctor
from headwind.cli.doctor import (
    Finding,
    Machine,
    Status,
    checkout,
    commit_of,
    examine,
    host_facts,
    lacking,
    print_findings,
)
from headwind.own_command import lab_command
from headwind.testbed.docker import compose_command
from headwind.testbed.owner import this_lab

SYSCTLS = {
    "net.core.rmem_max": "4194304",
    "net.core.wmem_max": "212992",
    "net.ipv4.tcp_available_congestion_control": "reno cubic bbr",
    "net.ipv4.tcp_congestion_control": "bbr",
    "net.bridge.bridge-nf-call-iptables": "1",
    "net.ipv6.conf.all.disable_ipv6": "0",
}
DOCKER = """#!/bin/sh
case "$1" in
version) echo "28.1 linux/amd64" ;;
info) echo 7.2.7 ;;
image) for name; do :; done; echo "sha256:1 [\\"$name\\"]" ;;
run) case "$*" in *congctl*) echo yes ;;
    *try_netem*) echo '{"netem": true, "why": "tried", "kernel": "7.2.7", "seed": true, "counters": true}' ;;
    *) echo yes ;; esac ;;
esac
"""


LIVING, DEAD = this_lab(), f"{os.uname().nodename}:{os.getpid()}:1"
FINE = Machine(4, "x86_64", 50 << 30, SYSCTLS.__getitem__, 8 << 30)


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A host on which everything is fine; tests break one thing. The folder is its PATH."""
    compose_command.cache_clear()
    program(tmp_path, DOCKER)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    yield tmp_path
    compose_command.cache_clear()


def program(folder: Path, script: str) -> None:
    (folder / "docker").write_text(script)
    (folder / "docker").chmod(0o755)


def with_sysctl(name: str, value: str) -> Machine:
    """A machine on which all is fine, but perhaps for this."""
    return replace(FINE, sysctl={**SYSCTLS, name: value}.__getitem__)


def finding(name: str, machine: Machine = FINE) -> Finding:
    (found,) = [each for each in examine(machine) if each.name == name]
    return found


def test_a_good_host_needs_no_fix() -> None:
    findings = list(examine(FINE))
    assert {each.status for each in findings} == {"ok"}
    assert [each.fix for each in findings] == [""] * len(findings)
    assert len({each.name for each in findings}) == len(findings)


@pytest.mark.usefixtures("signals")
def test_the_verdict_is_the_exit_code(host: Path) -> None:
    assert lab.main(["doctor"]) == 0
    program(host, "#!/bin/sh\nexit 1")
    assert lab.main(["doctor"]) == 1


def test_one_core_is_too_few() -> None:
    assert finding("CPU", replace(FINE, cores=1)) == Finding(
        "CPU", "warning", "1 core: client, router and server compete", "use two or more"
    )


@pytest.mark.parametrize(("free_mib", "status"), [(3 << 10, "ok"), ((3 << 10) - 1, "warning")])
def test_images_need_three_gibibytes(free_mib: int, status: str) -> None:
    found = finding("disk", replace(FINE, free_bytes=free_mib << 20))
    assert found.status == status
    assert ("in this clone" in found.detail) == (status == "warning")


def test_the_fuller_of_two_places_is_named(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = host / "images"
    place.mkdir()
    program(host, DOCKER.replace("info)", f'info) case "$*" in *RootDir*) echo {place}; exit ;; esac;'))
    usage = shutil._ntuple_diskusage(100 << 30, 99 << 30, 1 << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    found = finding("disk")
    assert found.detail == f"1024 MiB free in {place} (Docker's images)"
    assert found.fix == "free 3 GiB there; `docker system prune` removes what Docker does not use"


@pytest.mark.parametrize(
    ("available_mib", "status", "words"),
    [(2 << 10, "ok", "2 GiB free"), ((2 << 10) - 1, "warning", "2047 MiB free"), (0, "warning", "cannot be read here")],
)
def test_a_run_needs_two_gibibytes_of_free_memory(available_mib: int, status: str, words: str) -> None:
    found = finding("memory", replace(FINE, available_bytes=available_mib << 20))
    assert (found.status, words in found.detail) == (status, True)
    assert Machine.here().available_bytes >= 0


def test_a_missing_docker_stops_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    found = finding("docker")
    assert (found.status, found.detail) == ("failed", "not installed")
    assert "on Debian, run as root: apt-get install docker.io docker-compose" in found.fix


def test_an_engine_that_does_not_answer_stops_a_run_and_is_quoted(host: Path) -> None:
    program(host, "#!/bin/sh\necho 'permission denied: /var/run/docker.sock' >&2; exit 1")
    found = finding("docker")
    assert (found.status, found.detail) == ("failed", "permission denied: /var/run/docker.sock")
    assert "sudo usermod -aG docker $USER" in found.fix
    program(host, "#!/bin/sh\necho 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1")
    assert "sudo systemctl start docker" in finding("docker").fix


def test_a_missing_compose_stops_a_run(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(host))
    program(host, DOCKER.replace("run)", "compose) exit 1 ;;\nrun)"))
    assert finding("compose").status == "failed"
    assert finding("netem").status == "ok"


def test_a_compose_that_is_too_old_for_this_docker_stops_a_run(host: Path) -> None:
    """`docker-compose version` works without the daemon."""
    refusal = "client version 1.38 is too old. Minimum supported API version is 1.44"
    script = f"compose) case $2 in version) ;; *) echo '{refusal}' >&2; exit 1 ;; esac ;;\nrun)"
    program(host, DOCKER.replace("run)", script))
    found = finding("compose")
    assert (found.status, found.detail) == ("failed", refusal)
    assert "this Docker needs a newer Compose: install docker-compose-v2" in found.fix


def test_a_docker_that_breaks_in_the_middle_is_a_finding(host: Path) -> None:
    program(host, DOCKER.replace("run)", "ps) echo 'database is locked' >&2; exit 1 ;;\nrun)"))
    failed = [each for each in examine(FINE) if each.status == "failed"]
    assert [each.name for each in failed] == ["docker"]
    assert "database is locked" in failed[0].detail


@pytest.mark.parametrize(
    ("projects", "status", "words"),
    [
        ({}, "ok", "no leftovers"),
        ({"headwind-1": LIVING}, "ok", "1 testbed is in use"),
        ({"headwind-1": LIVING, "headwind-2": DEAD}, "warning", "headwind-2"),
        ({"headwind-1": LIVING, "headwind-2": LIVING}, "ok", "2 testbeds are in use"),
    ],
)
def test_only_what_nobody_uses_is_left_over(host: Path, projects: dict[str, str], status: str, words: str) -> None:
    rows = "".join(f"{name}\t{name}\t{owner}\n" for name, owner in projects.items())
    listed = f"ps) printf '%s' '{rows}' ;;\nrun)"
    program(host, DOCKER.replace("run)", listed))
    found = finding("earlier runs")
    assert found.status == status
    assert words in found.detail
    assert (found.fix == "make lab-down") == (status == "warning")


NO_NETEM = 'echo \'{"netem": false, "why": "no such qdisc", "kernel": "6.18"}\''
OLD = 'echo \'{"netem": true, "why": "tried", "kernel": "6.1"}\''


@pytest.mark.parametrize(
    ("found", "uml", "status", "words"),
    [
        (None, "echo yes", "ok", "supports, seeds and verifies everything"),
        (
            NO_NETEM,
            "echo yes",
            "ok",
            "engine uml (netem in a user-mode kernel), because this kernel (6.18) has no netem: no such qdisc",
        ),
        (NO_NETEM, "echo no tmpfs", "failed", "engine uml does not run here: no tmpfs"),
        (OLD, "echo yes", "ok", "engine uml (netem in a user-mode kernel), because this kernel (6.1) has no seeds"),
        (OLD, "echo only x86_64", "warning", "engine kernel, although this kernel (6.1) has no seeds"),
        ("exit 125", "echo yes", "warning", "not tested: no answer"),
    ],
)
def test_netem_is_tried_and_not_read_about(host: Path, found: str | None, uml: str, status: str, words: str) -> None:
    script = DOCKER.replace("*) echo yes", f"*) {uml}")
    if found:
        script = re.sub(r"(?<=try_netem\*\) ).*(?= ;;)", lambda _: found, script)
    program(host, script)
    netem = finding("netem")
    assert netem.status == status
    assert words in netem.detail
    engine = finding("engine uml")
    assert engine.status == ("ok" if uml == "echo yes" or status == "ok" else "warning")
    lacks_all = found is None or '"netem": false' in found
    kernel = "a kernel with sch_netem" if lacks_all else "Linux 7.2 or later"
    assert engine.fix.startswith(f"use {kernel}" if engine.status == "warning" else "")
    assert bool(engine.fix) == (engine.status == "warning")
    assert ("linux-modules-extra-$(uname -r)" in engine.fix + netem.detail) == (found == NO_NETEM)
    assert "auto chooses" not in finding("kernel").detail, "what was tried says what is chosen"


CAN = "supports every impairment, but no seeds and no counter per impairment (kernels before 6.6)"


@pytest.mark.parametrize(
    ("broken", "instead", "words"),
    [
        ("", "", f"netem {CAN}"),
        ("image)", "image) exit 1 ;;\nother)", f"its netem, if any, {CAN}"),  # not built yet
        ("*try_netem*)", "*try_netem*) exit 125 ;; *again*)", f"its netem, if any, {CAN}"),
        ("*try_netem*)", f"*try_netem*) {NO_NETEM} ;; *again*)", "no netem"),
    ],
)
def test_the_row_of_the_hosts_kernel_is_shown(host: Path, broken: str, instead: str, words: str) -> None:
    """A kernel without netem had the row of its version, as if it could do all of that."""
    script = DOCKER.replace("7.2.7 ;;", "6.1.0-13-amd64 ;;")
    program(host, script.replace(broken, instead) if broken else script)
    assert finding("kernel").detail == f"6.1.0-13-amd64; {words}"


def test_netem_is_not_tried_without_its_image(host: Path) -> None:
    program(host, DOCKER.replace("image)", "image) exit 1 ;;\nother)"))
    assert finding("netem").status == "ok"
    assert "tested once the router image is built" in finding("netem").detail
    assert finding("netem").fix == "", "a status of ok needs none"
    assert finding("netem").detail.endswith(f"`{lab_command('images')}` builds it")


@pytest.mark.parametrize(
    ("value", "status", "words"),
    [("4194304", "ok", "4096 KiB"), ("212992", "warning", "208 KiB"), ("", "warning", "cannot be read")],
)
def test_small_udp_buffers_are_named_with_their_cure(value: str, status: str, words: str) -> None:
    found = finding("UDP buffers", with_sysctl("net.core.rmem_max", value))
    assert found.status == status
    assert words in found.detail
    assert (found.fix == "sysctl -w net.core.rmem_max=4194304") == (value == "212992")


@pytest.mark.parametrize(
    ("received", "sent", "status", "fix"),
    [
        ("4194304", "4194304", "ok", ""),
        ("4194304", "212992", "warning", "sysctl -w net.core.wmem_max=4194304"),
        ("212992", "4194304", "failed", "sysctl -w net.core.rmem_max=4194304"),
        ("212992", "212992", "failed", "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304"),
    ],
)
def test_rootless_docker_needs_both_limits(host: Path, received: str, sent: str, status: str, fix: str) -> None:
    program(host, DOCKER.replace("echo 7.2.7", "echo '[name=seccomp,profile=default name=rootless]'"))
    limits = {"net.core.rmem_max": received, "net.core.wmem_max": sent}
    found = finding("UDP buffers", replace(FINE, sysctl=(SYSCTLS | limits).__getitem__))
    assert (found.status, found.fix) == (status, fix)


@pytest.mark.parametrize(
    ("available", "status", "fix"),
    [
        ("reno cubic", "ok", ""),
        ("reno bbr", "warning", "modprobe tcp_cubic"),
        ("", "warning", "look inside the Docker VM"),
    ],
)
def test_the_wanted_congestion_control_must_be_there(available: str, status: str, fix: str) -> None:
    found = finding("congestion control", with_sysctl("net.ipv4.tcp_available_congestion_control", available))
    assert (found.status, found.fix) == (status, fix)


NO_BBR = DOCKER.replace("*congctl*) echo yes", "*congctl*) echo 'Error: Unknown tcp congestion algorithm.'")
NO_IMAGE = DOCKER.replace("image)", "image) exit 1 ;;\nother)")


@pytest.mark.parametrize(
    ("script", "available", "status", "detail", "fix"),
    [
        (DOCKER, "reno cubic", "ok", "available: `congestion: bbr` can be used", ""),
        (NO_BBR, "reno cubic bbr", "warning",
         "`congestion: bbr` cannot be used: Unknown tcp congestion algorithm", "modprobe tcp_bbr"),
        (NO_IMAGE, "reno cubic bbr", "ok", "loaded, so `congestion: bbr` can be used", ""),
        (NO_IMAGE, "reno cubic", "warning",
         "not loaded (available: reno, cubic), so `congestion: bbr` may not work", "modprobe tcp_bbr"),
        (NO_IMAGE, "", "warning", "the kernel's list cannot be read here", "look inside the Docker VM"),
    ],
)  # fmt: skip
def test_bbr_is_tried_as_an_arm_would_use_it(
    host: Path, script: str, available: str, status: str, detail: str, fix: str
) -> None:
    program(host, script)
    found = finding("BBR", with_sysctl("net.ipv4.tcp_available_congestion_control", available))
    assert (found.status, found.detail) == (status, detail)
    assert found.fix.startswith(fix)
    assert bool(found.fix) == bool(fix)


@pytest.mark.parametrize(
    ("value", "words"),
    [("1", "go through the host's firewall; trials detect"), ("0", "do not go"), ("", "do not go")],
)
def test_the_bridge_firewall_is_told(value: str, words: str) -> None:
    assert words in finding("bridge firewall", with_sysctl("net.bridge.bridge-nf-call-iptables", value)).detail


def test_a_host_without_anything_is_examined_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    bare = Machine(1, "", 0, lambda _: "")
    findings = {each.name: each.status for each in examine(bare)}
    assert findings["docker"] == "failed"
    assert findings["bridge firewall"] == "ok"
    assert all(each.fix for each in examine(bare) if each.status != "ok")


@pytest.mark.parametrize(("statuses", "code"), [(["ok", "warning"], 0), (["ok", "failed", "ok"], 1), ([], 0)])
def test_only_a_failure_stops_a_run(capsys: pytest.CaptureFixture[str], statuses: list[Status], code: int) -> None:
    found = [Finding(f"thing {n}", status, "[b]so[/b]", "mend [it]") for n, status in enumerate(statuses)]
    assert print_findings(found, Console(width=140)) == code
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2 * len(statuses)
    for line, status in zip(shown[::2], statuses, strict=True):
        assert line.startswith(status)
        assert line.endswith("[b]so[/b]")


def test_what_is_fine_needs_no_line_about_a_fix(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_findings(examine(FINE), Console(width=140)) == 0
    assert "fix:" not in capsys.readouterr().out


def test_a_reader_learns_of_the_host() -> None:
    facts = host_facts(FINE)
    assert facts["cores"] == 4
    assert facts["docker"] == "28.1 linux/amd64"
    assert facts["rmem_max_bytes"] == 4194304
    assert facts["tcp_congestion_default"] == "bbr"
    assert facts["compose"] == "docker compose"
    assert facts["memory_bytes"] > 1 << 20


def test_a_setting_that_is_not_there_reads_as_nothing() -> None:
    here = Machine.here()
    assert here.sysctl("net.core.no_such_thing") == ""
    assert here.sysctl("kernel.ostype") in ("Linux", "")
    assert here.cores > 0
    assert here.free_bytes > 0


@pytest.mark.parametrize(
    ("available", "module", "docker", "found"),
    [
        ("reno cubic", "tcp_bbr", "", ["vegas"]),
        ("reno cubic bbr", "", "", ["vegas"]),
        ("", "", "", []),  # not readable
        ("reno cubic", "", "tcp://far:2375", []),  # another kernel
    ],
)
def test_congestion_controls_that_the_kernel_neither_has_nor_could_load_are_known_before_a_run(
    monkeypatch: pytest.MonkeyPatch, available: str, module: str, docker: str, found: list[str]
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    if docker:
        monkeypatch.setenv("DOCKER_HOST", docker)
    asked = ("cubic", "bbr", "vegas")
    assert lacking(asked, lambda _: available, lambda name: name == module) == found


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("unix:///var/run/docker.sock", ["bbr"]),
        ("unix:///run/user/1000/docker.sock", ["bbr"]),
        ("unix:///home/a/.docker/desktop/docker.sock", []),
        ("ssh://far", []),
    ],
)
def test_a_docker_elsewhere_by_its_context_is_not_judged_by_this_kernel(
    host: Path, monkeypatch: pytest.MonkeyPatch, place: str, found: list[str]
) -> None:
    """Only DOCKER_HOST counted, so `docker context use desktop-linux` was judged by this kernel."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    program(host, f'#!/bin/sh\n[ "$1" = context ] && echo {place}')
    assert lacking(["bbr"], lambda _: "cubic", lambda _: False) == found


def test_a_commit_has_changes_only_if_the_code_differs(tmp_path: Path) -> None:
    """A clone with notes and reports beside the code was recorded as changed."""
    (tmp_path / "headwind" / "cli").mkdir(parents=True)
    (tmp_path / "lab.py").touch()
    for words in (["init"], ["add", "lab.py"], ["commit", "-m", "first"]):
        git("-C", str(tmp_path), *words)
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "mine.py").touch()
    (tmp_path / "headwind" / "notes.txt").touch()
    clean = commit_of(tmp_path)
    assert len(clean) == 12
    (tmp_path / "headwind" / "cli" / "new.py").touch()
    assert commit_of(tmp_path) == f"{clean}+changes"
    (tmp_path / "headwind" / "cli" / "new.py").unlink()
    (tmp_path / "lab.py").write_text("changed")
    assert commit_of(tmp_path) == f"{clean}+changes"


def test_a_kernel_without_ipv6_stops_a_run() -> None:
    assert "IPv6" not in {each.name for each in examine(FINE)}
    found = finding("IPv6", with_sysctl("net.ipv6.conf.all.disable_ipv6", ""))
    assert (found.status, found.fix) == ("failed", "boot with ipv6.disable_ipv6=1 in place of ipv6.disable=1")
    elsewhere = replace(FINE, sysctl=lambda _: "")
    assert "IPv6" not in {each.name for each in examine(elsewhere)}, "macOS has none of these settings"


def git(*words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


def test_a_tarball_inside_another_repository_has_no_commit(tmp_path: Path) -> None:
    git("-C", str(tmp_path), "init")
    git("-C", str(tmp_path), "commit", "--allow-empty", "-m", "of another program")
    (tmp_path / "headwind").mkdir()
    assert checkout(tmp_path / "headwind") == ("", "")
    (tmp_path / "headwind" / ".git").mkdir()  # broken: git looks further up
    assert checkout(tmp_path / "headwind") == ("", f"git takes it for a part of {tmp_path}")


def test_a_commit_that_git_refuses_to_name_is_a_finding_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clone of another user was recorded without a commit, and nothing said so."""
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    monkeypatch.setattr(doctor, "ROOT", clone)
    reason = f"fatal: detected dubious ownership in repository at '{clone}'"
    (tmp_path / "git").write_text(f'#!/bin/sh\necho "{reason}" >&2; echo more >&2; exit 128\n')
    (tmp_path / "git").chmod(0o755)
    found = finding("commit")
    assert (found.status, found.fix) == ("warning", f"git config --global --add safe.directory {clone}")
    assert found.detail == f"runs cannot record the commit of this clone: {reason}"
    (tmp_path / "git").write_text("#!/bin/sh\necho broken >&2; exit 128\n")
    assert finding("commit").fix == f"look at `git -C {clone} status`"
    monkeypatch.setenv("PATH", "")
    assert finding("commit").fix == "install git"
