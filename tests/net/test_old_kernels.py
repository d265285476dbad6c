"""What is wrong behind the lab's back is found on the kernels that people have, whose netem does not count it.

The router is given one network and says that it has another, as a kernel would that does something else than it reads
back: only what the packets met can tell. The lab's own trains, counters and rules then judge the real thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import pytest

from headwind.engines import KERNEL
from headwind.model import Outcome, Proof
from headwind.proof.evidence import Evidence, Moment
from headwind.proof.trial_checks import prove
from headwind.testbed import path as paths
from headwind.testbed.agent import Agent
from headwind.testbed.operations import APPLY
from headwind.trial.probes import send_trains
from headwind.trial.trial import decide, read_moment
from impair.messages import ClientRun, Machine
from impair.profile import Corrupt, Delay, Direction, Link, Loss, Profile, Reorder
from tests.fake import example_matrix, trials_of
from tests.net.conftest import open_path
from tests.net.impaired import ImpairedPath, Project, ask
from tests.net.kernels import KERNELS

pytestmark = pytest.mark.timeout(300)  # the first test may have to build images

UP, DOWN = Direction.UPLINK, Direction.DOWNLINK
DATAGRAMS, DATAGRAM_BYTES, TCP_BYTES = 3000, 1000, 60_000  # 20 % +- 3.6 % of so many: half of it is far outside
CORRUPT, HALF_CORRUPT = Link(corrupt=Corrupt(0.2)), Link(corrupt=Corrupt(0.1))
CORRUPT_AND_LOST = Link(loss=Loss(0.3), corrupt=Corrupt(0.2))
REORDERED = Link(Delay(0.02), reorder=Reorder(0.25))
LESS_REORDERED = Link(Delay(0.02), reorder=Reorder(0.125))


@dataclass(frozen=True, slots=True)
class OldPath:
    """A path through an older kernel, and the lab's view of it."""

    path: ImpairedPath
    lab: paths.Path

    def proof_of(self, asked: Link, real: Profile) -> Proof:
        """What the lab says of the network `real`, when it asked for `asked` on the downlink and was told it had it."""
        profile, router = Profile("asked", downlink=asked), self.path.router
        configured = APPLY.read(self.path.apply(profile.uplink, profile.downlink))
        self.path.apply(real.uplink, real.downlink)
        trains = send_trains(self.lab, profile)
        before = read_moment(self.lab)
        for direction in Direction:
            self.path.train(direction, DATAGRAMS, size_bytes=DATAGRAM_BYTES, patience_s=0.1)
        self.path.transfer(DOWN, TCP_BYTES, timeout_s=10.0)
        assert ask(router, "show")[DOWN]["counters"]["packets"] > DATAGRAMS / 2
        after = read_moment(self.lab)

        def as_asked(moment: Moment) -> Moment:
            up, down = moment.router.uplink, moment.router.downlink
            assert up
            assert down
            uplink, downlink = (
                replace(configured[way], counters=own.counters) for way, own in ((UP, up), (DOWN, down))
            )
            return replace(moment, router=replace(moment.router, uplink=uplink, downlink=downlink))

        return prove(profile, Evidence(configured, as_asked(before), as_asked(after), trains))


@pytest.fixture(scope="module", params=KERNELS)
def old(
    request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OldPath]:
    """6.12 always; 6.1 too with --kernels."""
    if request.param != "trixie" and not request.config.getoption("--kernels"):
        pytest.skip("long: make test-kernels")
    with open_path(f"kernel-in-{request.param}", project, tmp_path_factory.mktemp(request.param)) as path:
        assert ask(path.router, "hello")["kernel"].startswith(f"{KERNELS[request.param]}.")
        client, server, router = (cast("Agent", asked) for asked in (path.client, path.server, path.router))
        assert ask(path.router, "hello")["netem_counters"] is False
        server_ip = path.addresses.host("server", 10)
        lab = paths.Path(client, server, router, path.addresses, server_ip, KERNEL, has_counters=False)
        yield OldPath(path, lab)


@pytest.mark.parametrize("link", [Link(), CORRUPT, CORRUPT_AND_LOST, REORDERED], ids=str)
def test_the_network_that_was_asked_for_is_proven(old: OldPath, link: Link) -> None:
    """Times apart: this machine may be busy with other things, which is for the tests of whole runs."""
    proof = old.proof_of(link, Profile("real", downlink=link))
    assert [check for check in proof.checks if not check.passed and not check.quantity.endswith("_s")] == []


@pytest.mark.parametrize(
    ("asked", "real", "reasons"),
    [
        (CORRUPT, Profile("half", downlink=HALF_CORRUPT), ("downlink corrupt: ", "downlink probe missing: ")),
        (CORRUPT, Profile("none"), ("downlink corrupt: ", "downlink probe missing: ")),
        (CORRUPT, Profile("wrong side", uplink=CORRUPT), ("uplink corrupt: ", "downlink corrupt: ",
                                                          "uplink probe loss: ", "downlink probe missing: ")),
        (CORRUPT_AND_LOST, Profile("none", downlink=Link(loss=Loss(0.3))), ("downlink corrupt: ",)),
        (Link(), Profile("unasked", downlink=CORRUPT), ("downlink corrupt: ", "downlink probe loss: ")),
        (REORDERED, Profile("half", downlink=LESS_REORDERED), ("downlink probe reorder: ",)),
        (REORDERED, Profile("none", downlink=Link(Delay(0.02))), ("downlink probe reorder: ",)),
        (REORDERED, Profile("wrong side", uplink=REORDERED), ("downlink probe reorder: ", "uplink delay: ")),
    ],
    ids=lambda value: value.name if isinstance(value, Profile) else "",
)  # fmt: skip
def test_another_network_is_invalid_with_the_reason(
    old: OldPath, asked: Link, real: Profile, reasons: tuple[str, ...]
) -> None:
    proof = old.proof_of(asked, real)
    trial = next(trials_of(example_matrix(Profile("asked", downlink=asked))))
    run = ClientRun([], 0, False, 1.0, 0.0, Machine(2, 0.0), 0.0, "", {}, {}, {})
    outcome, reason = decide(trial, run, {}, None, proof)
    assert outcome is Outcome.INVALID
    for words in reasons:
        assert words in reason
