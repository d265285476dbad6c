"""The lab's end of the wire, with real processes at the other end: every way in which an agent can fail is said."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwind.testbed.agent import Agent, AgentDied, AgentError

ROOT = Path(__file__).resolve().parent.parent.parent
ANSWERS = """
import os, pathlib, sys, time
from impair.wire import serve

def fail(words):
    raise ValueError(words)

def die(words):
    sys.stderr.write(words + "\\n")
    sys.stderr.flush()
    os._exit(3)

def echo(**arguments):
    return arguments

def meet(mine, other):
    pathlib.Path(mine).touch()
    while not pathlib.Path(other).exists():
        time.sleep(0.005)
    return "met"

serve({"echo": echo, "fail": fail, "die": die, "meet": meet, "pid": os.getpid})
"""
NOISY = """
import sys
print("Booting Linux", '{"half": ', "17", "[1, 2]", '{"id": "7", "ok": 1}', '{"other": 1}', "", sep="\\n", flush=True)
sys.stdout.buffer.write(b"\\xff\\xfe \\x1b[0m\\n")
sys.stdout.flush()
"""
STARTS_S = 30.0  # how long a Python may take to start on a busy machine
Start = Callable[..., Agent]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    agents: list[Agent] = []

    def start_one(code: str = ANSWERS, name: str = "router", ready: bool = True) -> Agent:
        agents.append(Agent(name, [sys.executable, "-c", code], tmp_path / f"{name}.log"))
        if ready:
            agents[-1].wait_ready(STARTS_S)
        return agents[-1]

    yield start_one
    for agent in agents:
        agent.close()


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def until(condition: Callable[[], Any]) -> None:
    """Wait for what must come; a test's own time limit ends a vain wait."""
    while not condition():
        time.sleep(0.005)


def test_an_agent_answers(start: Start) -> None:
    assert start().call("echo", loss=0.3, name="ö\n") == {"loss": 0.3, "name": "ö\n"}


def test_an_operation_may_have_any_argument(start: Start) -> None:
    arguments = {"timeout_s": 1, "limit_s": 2, "peers": 3, "self": 4}
    assert start().call("echo", **arguments) == arguments


def test_answers_find_their_requests_in_any_order(start: Start) -> None:
    agent = start()
    first, second = agent.start("echo", number=1), agent.start("echo", number=2)
    assert agent.wait(second, 10.0) == {"number": 2}
    assert agent.wait(first, 10.0) == {"number": 1}


def test_requests_that_are_started_together_are_sent_together_and_fail_alone(start: Start) -> None:
    agent = start()
    with agent.together():
        first, bad, last = agent.start("echo", number=1), agent.start("fail", words="no"), agent.start("pid")
        with pytest.raises(AgentDied, match="did not answer"):
            agent.wait(first, 0.3)
    assert isinstance(agent.wait(last, STARTS_S), int)
    with pytest.raises(AgentError, match="no"):
        agent.wait(bad, STARTS_S)
    assert agent.wait(first, STARTS_S) == {"number": 1}
    assert agent.call("echo", number=4) == {"number": 4}


def test_requests_that_were_to_be_sent_together_are_not_sent_after_an_error(start: Start) -> None:
    agent = start()

    def fail_inside() -> None:
        with agent.together():
            agent.start("die", words="never asked for")
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    with agent.together():
        pass
    assert agent.call("echo", number=4) == {"number": 4}


def test_agents_work_at_the_same_time(start: Start, tmp_path: Path) -> None:
    client, server = start(name="client"), start(name="server")
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    first, second = client.start("meet", mine=here, other=there), server.start("meet", mine=there, other=here)
    assert client.wait(first, 30.0, (client, server)) == "met"
    assert server.wait(second, 30.0, (client, server)) == "met"


def test_a_message_of_megabytes_passes_both_ways(start: Start) -> None:
    text = "0123456789abcdef" * (1 << 17)
    assert start().call("echo", 30.0, text=text)["text"] == text


def test_a_failed_operation_is_an_error_and_the_agent_lives_on(start: Start) -> None:
    agent = start()
    with pytest.raises(AgentError, match=r"^the router failed: no such qdisc \(ValueError\)$"):
        agent.call("fail", words="no such qdisc")
    assert agent.call("echo") == {}


def test_a_dying_agent_ends_the_wait_with_its_last_words(start: Start) -> None:
    agent = start()
    with pytest.raises(AgentDied, match=r"the router died\n(.*\n)*  router: out of memory$"):
        agent.call("die", 30.0, words="out of memory")
    assert not agent.alive


def test_only_the_last_lines_of_a_long_log_are_told(start: Start) -> None:
    agent = start()
    with pytest.raises(AgentDied) as caught:
        agent.call("die", 30.0, words="\n".join(f"line {number}" for number in range(100)))
    assert "line 99" in str(caught.value)
    assert "line 91\n" not in str(caught.value)


def test_a_dead_agent_cannot_be_asked(start: Start) -> None:
    agent = start()
    os.kill(agent.call("pid"), signal.SIGKILL)
    until(lambda: not agent.alive)
    with pytest.raises(AgentDied, match=r"the router (has ended|died)"):
        agent.call("echo")


def test_what_was_answered_before_the_end_is_not_lost(start: Start) -> None:
    agent = start()
    answered, deadly = agent.start("echo", number=1), agent.start("die", words="")
    until(lambda: not agent.alive)
    assert agent.wait(answered, 0.0) == {"number": 1}
    with pytest.raises(AgentDied, match="the router died"):
        agent.wait(deadly, 10.0)


def test_a_peer_that_dies_meanwhile_ends_the_wait(start: Start) -> None:
    client, router = start(name="client"), start(name="router")
    os.kill(client.call("pid"), signal.SIGSTOP)
    request = client.start("echo")
    router.start("die", words="kernel panic")
    with pytest.raises(AgentDied, match=r"the router died\n  router: kernel panic$"):
        client.wait(request, 60.0, (client, router))


def test_who_has_answered_is_heard_even_if_a_peer_is_dead(start: Start) -> None:
    client, router = start(name="client"), start(name="router")
    router.start("die", words="")
    until(lambda: not router.alive)
    first, last = client.start("echo", number=1), client.start("echo")
    assert client.wait(last, 10.0) == {}
    assert client.wait(first, 10.0, (client, router)) == {"number": 1}


def test_silence_is_death_after_the_limit(start: Start) -> None:
    agent = start()
    os.kill(agent.call("pid"), signal.SIGSTOP)
    with pytest.raises(AgentDied, match=r"the router did not answer within 0\.05 s"):
        agent.call("echo", 0.05)


def test_what_a_console_says_besides_is_passed_over(start: Start) -> None:
    assert start(NOISY + ANSWERS).call("echo", number=1) == {"number": 1}


def test_an_agent_that_cannot_start_says_why(start: Start) -> None:
    agent = start("""print('{"error": "no interface in 10.1.0.0/24"}', flush=True)""", ready=False)
    with pytest.raises(AgentError, match=r"^the router cannot start: no interface in 10\.1\.0\.0/24$"):
        agent.wait_ready(STARTS_S)


def test_an_agent_that_ends_at_once_is_not_waited_for(start: Start) -> None:
    agent = start("import sys; sys.exit('no module named impair')", ready=False)
    with pytest.raises(AgentDied, match=r"the router ended before it was ready\n  router: no module named impair$"):
        agent.wait_ready(STARTS_S)


def test_an_agent_that_never_gets_ready_is_given_up(start: Start) -> None:
    agent = start("import sys; sys.stdin.read()", ready=False)
    with pytest.raises(AgentDied, match=r"did not start within 0\.05 s"):
        agent.wait_ready(0.05)


def test_a_program_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Agent("router", [str(tmp_path / "nothing")], tmp_path / "log")


def test_a_closed_agent_has_ended_and_can_be_closed_again(start: Start) -> None:
    agent = start()
    pid = agent.call("pid")
    agent.close()
    agent.close()
    assert ended(pid)
    assert not agent.alive
    with pytest.raises(AgentDied, match="has ended"):
        agent.start("echo")


def test_closing_kills_what_does_not_listen(start: Start) -> None:
    agent = start()
    pid = agent.call("pid")
    os.kill(pid, signal.SIGSTOP)
    agent.close()
    assert ended(pid)


def test_an_agent_has_a_session_of_its_own_so_that_ctrl_c_is_the_labs(start: Start) -> None:
    pid = start().call("pid")
    assert os.getsid(pid) == pid != os.getsid(0)


def test_the_log_of_an_earlier_agent_is_kept(start: Start, tmp_path: Path) -> None:
    for words in ("the first", "the second"):
        agent = start()
        with pytest.raises(AgentDied):
            agent.call("die", 30.0, words=words)
    log = (tmp_path / "router.log").read_text()
    assert "the first" in log
    assert "the second" in log


def test_an_agent_ends_when_the_lab_is_killed(tmp_path: Path) -> None:
    lab = f"""
from pathlib import Path
from headwind.testbed.agent import Agent
import sys, time
agent = Agent("router", [sys.executable, "-c", {ANSWERS!r}], Path({str(tmp_path / "log")!r}))
agent.wait_ready({STARTS_S})
print(agent.call("pid"), flush=True)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", lab], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        process.kill()
    until(lambda: ended(pid) or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_call_that_waits_for_an_answer_sleeps_until_something_happens_and_starts_no_thread(start: Start) -> None:
    """A lab of six lanes waits for its clients nearly all the time."""
    agent, peer = start(name="client"), start(name="server")
    request = agent.start("meet", mine=os.devnull, other="/nowhere")
    switches, used_s = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw, time.thread_time()
    threads = threading.active_count()
    with pytest.raises(AgentDied, match="did not answer within"):
        agent.wait(request, 1.0, (agent, peer))
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - switches < 5
    assert time.thread_time() - used_s < 0.1
    assert threading.active_count() == threads


def test_a_call_hears_what_a_peer_answers_meanwhile(start: Start, tmp_path: Path) -> None:
    client, server = start(name="client"), start(name="server")
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    slow = client.start("meet", mine=here, other=there)
    until(Path(here).exists)
    quick = server.start("meet", mine=there, other=here)
    assert client.wait(slow, 30.0, (client, server)) == "met"
    assert server.wait(quick, 30.0) == "met"


def test_a_call_that_waits_is_over_when_another_thread_closes_the_agent(start: Start) -> None:
    agent = start()
    request = agent.start("meet", mine=os.devnull, other="/nowhere")
    threading.Timer(0.3, agent.close).start()
    with pytest.raises(AgentDied, match=r"the router (died|was closed)"):
        agent.wait(request, 60.0, (agent,))
