"""How to go on with a run that is not finished, or that left comparisons open: the command to type."""

from __future__ import annotations

import shlex

from headwind.format import counted
from headwind.run.codec import State
from headwind.run.data import RunData
from headwind.run.journal import Run


def how_to_go_on(run: Run, data: RunData, cluster: str | None = None) -> str:
    """The command that resumes a run that was stopped, or that ended with comparisons that more blocks may settle."""
    repeat, state = run.matrix.repeat, data.status.state
    left = [pair for item in data.judgement.open if item.n < item.most for pair in item.pairs if not pair.is_check]
    if state is State.RUNNING or (state is State.FINISHED and not left):
        return ""
    command = f".venv/bin/python lab.py run --resume {shlex.quote(str(run.folder))}"
    command += f" --budget {budget_text(repeat.budget_s)}" if repeat.is_adaptive and repeat.budget_s else ""
    command += f" --cluster {shlex.quote(cluster)}" if cluster else ""
    why = "not finished; this goes on where it was"
    if state is State.FINISHED:
        every = counted(len(data.judgement.compared), "comparison")
        why = f"{len(left)} of {every} not settled; this adds blocks"
    return f"{why}:\n  {command}"


def budget_text(seconds: float) -> str:
    """A budget as `--budget` takes it: 900.0 -> `15min`."""
    size, unit = next((each for each in ((3600, "h"), (60, "min")) if seconds % each[0] == 0), (1, "s"))
    return f"{seconds / size:g}{unit}"
