"""Other labs on this machine: looked for at the start and while a run goes on, printed once, and kept with the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from headwind.clock import Clock
from headwind.format import counted
from headwind.report.trust import OTHER_LABS
from headwind.run.journal import Run
from headwind.testbed.docker import DockerError, Say

SHARED = "times are longer and vary more, so verdicts need more blocks, but stay fair: they compare within blocks"
LOOK_EVERY_S = 30.0  # `docker ps` and `docker inspect` take a tenth of a second


@dataclass(slots=True)
class Beside:
    """`look` now and then: each other lab is noted in the run's environment, with when it was first and last seen."""

    run: Run
    other_labs: Callable[[], Mapping[str, int]]  # how many testbeds they have, by owner
    say: Say
    clock: Clock
    _due_s: float = float("-inf")

    def look(self) -> None:
        """Nothing before it is due again; a Docker that does not answer is asked the next time."""
        if self.clock.monotonic() < self._due_s:
            return
        self._due_s = self.clock.monotonic() + LOOK_EVERY_S
        with suppress(DockerError):
            if found := self.other_labs():
                self._note(found)

    def _note(self, found: Mapping[str, int]) -> None:
        now = time.time()
        known = {lab["owner"]: lab for lab in self.run.environment.get(OTHER_LABS, ())}
        for owner, testbeds in found.items():
            if owner not in known:
                host, pid, *_ = [*owner.split(":"), "?"]
                has = f"another lab (process {pid} of {host}) has {counted(testbeds, 'testbed')} on this machine"
                self.say(f"{has}; {SHARED}")
            before = known.get(owner, {"from": now, "testbeds": 0})
            most = max(before["testbeds"], testbeds)
            known[owner] = {"owner": owner, "testbeds": most, "from": before["from"], "to": now}
        self.run.note_environment(**{OTHER_LABS: list(known.values())})
