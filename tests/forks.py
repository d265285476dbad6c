"""Python processes that begin with everything imported: a parent imports the lab once, and forks for each of them.

`python -m tests.forks MODULE...` is that parent. Each line of its input is a request, each line of its output the
answer: `{"start": arguments of python, "log": file}` gives the number of a process, `{"wait": number}` its exit code,
and `{"poll": number}` the same, or null while it runs. Importing takes a process seconds; a test of a cluster has five.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent


class Forks:
    """The parent, as a test sees it."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions, self._answers = questions, answers

    def ask(self, **question: Any) -> Any:
        """One answer to one question."""
        self._questions.write(f"{json.dumps(question)}\n")
        self._questions.flush()
        return json.loads(self._answers.readline())

    def start(self, log: Path, *arguments: str) -> Fork:
        """As `python *arguments >>log 2>&1`, run at the project's root."""
        return Fork(self, self.ask(start=arguments, log=str(log)))


@dataclass
class Fork:
    """A process, with the part of subprocess.Popen that tests need."""

    forks: Forks
    pid: int
    code: int | None = None

    def poll(self) -> int | None:
        """The exit code, None while it runs; the negative number of the signal that killed it."""
        return self._ended("poll")

    def wait(self) -> int:
        """The same, once there is one."""
        code = self._ended("wait")
        assert code is not None
        return code

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _ended(self, how: str) -> int | None:
        if self.code is None:
            self.code = self.forks.ask(**{how: self.pid})
        return self.code


@contextmanager
def forks_of(*modules: str) -> Iterator[Forks]:
    """A parent that has imported these. What it forked is killed in the end."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a thread of the parent's would be missing in a fork
    with subprocess.Popen(
        [sys.executable, "-m", "tests.forks", *modules], cwd=ROOT, env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as parent:  # fmt: skip
        assert parent.stdin
        assert parent.stdout
        yield Forks(parent.stdin, parent.stdout)


def serve() -> tuple[Sequence[str], str] | None:
    """Answer until the input ends. In each fork: what it shall run, and its log."""
    running, answer = set[int](), None  # type: set[int], int | None
    for line in sys.stdin:
        question = json.loads(line)
        if "start" in question:
            answer = child = os.fork()
            if not child:
                return question["start"], question["log"]
            running.add(child)
        else:
            polled = "poll" in question
            process, status = os.waitpid(question["poll" if polled else "wait"], os.WNOHANG if polled else 0)
            answer = os.waitstatus_to_exitcode(status) if process else None
            running -= {process}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
    for process in running:
        os.kill(process, signal.SIGKILL)
    return None


def run(arguments: Sequence[str], log: str) -> None:
    """What `python *arguments` does, in this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(os.devnull) as nothing, Path(log).open("a") as file:  # noqa: PTH123 - not a path of a file
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    match arguments:
        case ["-m", module, *others]:
            sys.argv = [module, *others]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *others]:
            sys.argv = ["-c", *others]
            exec(code, {"__name__": "__main__"})  # noqa: S102 - as python does
        case [path, *others]:
            sys.argv = [path, *others]
            runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    for name in sys.argv[1:]:
        import_module(name)
    if asked := serve():
        run(*asked)
