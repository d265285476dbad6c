"""The engine of a run, on this machine: what cannot be is said in one sentence, and nothing stays behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from markupsafe import escape

from headwind.model import Outcome
from headwind.run.journal import Run
from headwind.testbed.containers import OWNER_LABEL
from headwind.testbed.docker import docker
from headwind.testbed.engine_choice import row_of
from impair.capabilities import EVERY_KIND, NetemCapabilities
from tests.net.beside import exit_status, outcomes
from tests.net.impaired import ImpairedPath, Project, ask

pytestmark = [pytest.mark.timeout(300, func_only=True), pytest.mark.labs]  # the first test may build the images

ROOT = Path(__file__).resolve().parent.parent.parent
MATRIX = """
protocols: [h1]
lanes: 1
repeat: 1
profiles:
  bad: {both: {delay: 5ms}, downlink: {corrupt: 5%}}
workloads:
  some: {requests: 300, connections: 2, streams: 1}
"""


def lab(
    folder: Path, *options: str, program: tuple[str, ...] = ("lab.py",)
) -> tuple[subprocess.CompletedProcess[str], str]:
    """`lab.py run` over a small matrix with corruption; and the containers and networks that it left."""
    (folder / "matrix.yaml").write_text(MATRIX)
    command = [sys.executable, *program, "run", str(folder / "matrix.yaml"), "--reports", str(folder)]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        said, complained = process.communicate(timeout=240)
    listings = (("ps", "-a"), ("network", "ls"))
    owners = [docker(*listing, "--filter", f"label={OWNER_LABEL}", "--format", f'{{{{.Label "{OWNER_LABEL}"}}}}')
              for listing in listings]  # fmt: skip
    left = [owner for owner in "".join(owners).split() if owner.startswith(f"{os.uname().nodename}:{process.pid}:")]
    return subprocess.CompletedProcess(command, process.returncode, said, complained), " ".join(left)


# lab.py, whose agents are told that they run on another processor.
ON_ARM = """
import sys
import lab
from headwind.testbed import testbed
from headwind.testbed.docker import python_in

TELL = (
    "import platform, runpy, sys; platform.machine = lambda: 'aarch64'; "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)

def on_arm(container, module, *arguments):
    command = python_in(container, module, *arguments)
    return [*command[: command.index("-m")], "-c", TELL, module, *arguments]

testbed.python_in = on_arm
sys.exit(lab.main(sys.argv[1:]))
"""


def host_ability(project: Project) -> NetemCapabilities:
    """What the host's own kernel can do."""
    inside = ("run", "--rm", "--network", "none", "--cap-add", "NET_ADMIN", project.image)
    told = docker(*inside, "python3", "-m", "impair.router.try_netem")
    return NetemCapabilities(**json.loads(told))


def test_engine_kernel_without_netem_ends_in_one_sentence_and_leaves_nothing(project: Project, tmp_path: Path) -> None:
    if host_ability(project).netem:
        pytest.skip("this host's kernel has netem")
    done, left = lab(tmp_path, "--engine", "kernel")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    (said,) = done.stderr.splitlines()
    assert "has no netem" in said
    assert "--engine uml" in said
    assert left == ""
    assert not list(tmp_path.glob("*/matrix.json")), "no run was begun"


@pytest.mark.parametrize("engine", ["uml", "auto"])
def test_where_no_engine_runs_that_is_one_sentence_and_nothing_stays(
    project: Project, tmp_path: Path, engine: str
) -> None:
    if engine == "auto" and host_ability(project).netem:
        pytest.skip("this host's kernel has netem")
    done, left = lab(tmp_path, "--engine", engine, program=("-c", ON_ARM))
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    (said,) = done.stderr.splitlines()
    assert "exists for x86_64 only, and this is aarch64" in said
    assert ("has no netem" in said) is (engine == "auto")
    assert left == ""


def test_auto_says_what_it_chose_and_why_and_keeps_it(project: Project, tmp_path: Path) -> None:
    ability = host_ability(project)
    done, left = lab(tmp_path)
    assert left == ""
    (folder,) = (path.parent for path in tmp_path.glob("*/matrix.json"))
    with Run.open(folder) as run:
        assert outcomes(run.results()) == [Outcome.OK], done.stdout + done.stderr
        assert done.returncode == exit_status(run)
        environment = run.environment
    choice = environment["testbed"]["choice"]
    assert choice["engine"] == environment["engine"] == ("kernel" if ability.seed else "uml")
    assert f"({ability.kernel})" in choice["reason"]
    assert ability.seed or choice["reason"] in " ".join(done.stdout.split())
    assert escape(choice["reason"]) in (folder / "report.html").read_text()


@pytest.mark.parametrize("path", ["kernel-in-uml"], indirect=True)
def test_what_trying_finds_is_what_the_table_says(path: ImpairedPath) -> None:
    told = ask(path.router, "probe", 30.0, profiles=[profile.to_json() for profile in EVERY_KIND])
    found, row = NetemCapabilities(**told), row_of(told["kernel"])
    assert (found.netem, found.seed, found.counters) == (True, row.seed, row.counters)
    assert found.refused == {}
    assert asdict(found)["why"] == "tried in a throw-away namespace"
