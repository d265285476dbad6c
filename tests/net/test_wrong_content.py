"""A real server that gives other bytes than asked for, to one protocol or to all: found, and never taken for a time."""

from __future__ import annotations

import pytest

from headwind.arm import H3, PLAIN, Arm, Protocol
from headwind.model import Block, Condition, Outcome, Result, Trial
from headwind.settings import TrialRules
from headwind.testbed import path as paths
from headwind.testbed.docker import docker
from headwind.trial.trial import run_trial
from headwind.workloads.h2load import H2load
from impair.profile import Direction, Link, Loss, Profile

LOSSY = Profile("lossy", downlink=Link(loss=Loss(0.05)))
VERSIONS = {Protocol.H1: "HTTP/1.1", Protocol.H2: "HTTP/2.0", Protocol.H3: "HTTP/3.0"}  # nginx's $server_protocol
# argv: a protocol, and what it gets instead of the page: so many bytes of the page, or of zeros. Nothing: mend it.
ALTER = """
import os, pathlib, signal, subprocess, sys, time
from nginx.agent import NGINX
workers = lambda: NGINX.health().workers
configuration = pathlib.Path("/opt/headwind/nginx/nginx.conf")
kept = configuration.with_name("kept.conf")
kept.exists() or kept.write_bytes(configuration.read_bytes())
text, site = kept.read_text(), pathlib.Path("/srv/headwind")
if sys.argv[1:]:
    version, length, zeros = sys.argv[1:]
    page = bytes(612) if zeros == "zeros" else (site / "index.html").read_bytes()
    (site / "other").write_bytes(page[:int(length)])
    rule = 'if ($server_protocol = "%s") { rewrite ^ /other break; }' % version
    text = text.replace("listen 443 ssl", rule + " listen 443 ssl")
configuration.write_text(text)
subprocess.run(["nginx", "-t", "-q", "-c", configuration], check=True)
old = workers()
subprocess.run(["nginx", "-c", configuration, "-s", "reload"], check=True)
while not set(workers()) - set(old):
    time.sleep(0.01)
for worker in old:
    os.kill(worker, signal.SIGKILL)  # it would wait for its last connection
while set(workers()) & set(old):
    time.sleep(0.01)
"""


def alter(bed: paths.Path, *arguments: str) -> None:
    """As if it had been so from the start: what changes later is found by the fingerprints, for every arm."""
    docker("exec", bed.containers["server"], "python3", "-c", ALTER, *arguments)
    bed.fingerprints = bed.read_fingerprints()


def tried(bed: paths.Path, arm: Arm, path: str = "/", profile: Profile = LOSSY) -> Result:
    """One trial; again where the machine was so busy that the network could not be proven."""
    condition = Condition(profile, H2load("some", 4 if path == "/10m" else 40, 4, 2, path=path))
    block = Block(condition, 7, PLAIN, dict.fromkeys(Direction, 5))
    results = (run_trial(bed, Trial(block, 0, arm), TrialRules(20.0)) for _ in range(8))
    reasons = []
    for result in results:
        if result.outcome is not Outcome.INVALID:
            return result
        reasons.append(result.reason)
    pytest.fail("\n".join(reasons))


@pytest.mark.parametrize("url", ["/", "/10k"])
@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_an_honest_server_gives_the_asked_bytes(bed: paths.Path, arm: Arm, url: str) -> None:
    result = tried(bed, arm, url)
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert result.samples["content"]["alpn"] == arm.protocol.alpn


def test_of_a_large_object_a_stretch_is_compared(bed: paths.Path) -> None:
    result = tried(bed, H3, "/10m", Profile("clean"))
    assert (result.outcome, result.samples["content"]["status"]) == (Outcome.OK, 206), result.reason
    assert result.samples["content"]["bytes"] == 1 << 20


@pytest.mark.parametrize("altered", PLAIN, ids=str)
@pytest.mark.parametrize(
    ("length", "what", "word"), [("61", "page", "40 answers had 2440 bytes instead of 24480"),
                                 ("612", "zeros", "other content than requested: 612 bytes")]
)  # fmt: skip
def test_other_bytes_for_one_protocol_are_no_time_and_the_others_stay_as_they_are(
    bed: paths.Path, altered: Arm, length: str, what: str, word: str
) -> None:
    alter(bed, VERSIONS[altered.protocol], length, what)
    try:
        results = {arm: tried(bed, arm) for arm in PLAIN}
    finally:
        alter(bed)
    assert {arm: result.outcome for arm, result in results.items()} == {
        arm: Outcome.WRONG_CONTENT if arm is altered else Outcome.OK for arm in PLAIN
    }, [result.reason for result in results.values()]
    assert word in results[altered].reason
