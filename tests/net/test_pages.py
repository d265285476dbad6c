"""Pages in real browsers on real containers: proven, and fresh in each trial."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from browsers.chromium.agent import PROGRAM
from headwind.arm import H1, H2, H3, PLAIN, Arm
from headwind.browsers import BROWSERS, CHROMIUM, FIREFOX
from headwind.model import Outcome
from headwind.report.page_waits import connection_waits
from headwind.run.page_requests import requests_of
from headwind.testbed import testbed as testbeds
from headwind.testbed.docker import DockerError, docker
from headwind.trial.start import UnexpectedState, changed_programs, examine_start
from headwind.workloads.page import FIRST, LARGEST, LAST, LOAD, PAINT
from tests.net.page_trials import PAGE, RTT_S, page_over

BROWSER = pytest.mark.parametrize("browser", BROWSERS)
pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.pages]  # the first test may build images

SLOW = replace(PAGE, name="slow", server_delay_s=1.0)  # two seconds, in which things happen
CONNECTIONS = {"h1": 6, "h2": 1, "h3": 1}
CLOCK_S = 0.001  # Firefox may note an event of a socket that much later; more only if its thread waits for a CPU
HANDSHAKE_AND_ANSWER = {"h1": 3, "h2": 3, "h3": 2}  # round trips until the first byte

# Prints who got packets of this host while it slept, also over its loopback: [interface, protocol, address, port].
WATCH = """
import json, select, socket, struct, sys, time
sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))  # ETH_P_ALL
print("ready", flush=True)
seen, end = set(), time.monotonic() + float(sys.argv[1])
while (left := end - time.monotonic()) > 0:
    if not select.select([sniffer], [], [], left)[0]:
        break
    packet, (name, ethertype, kind, *_) = sniffer.recvfrom(2048)
    if kind != socket.PACKET_OUTGOING:
        continue
    if ethertype != 0x0800:
        seen.add((name, hex(ethertype), "", 0))
        continue
    header = (packet[0] & 15) * 4
    port = struct.unpack_from("!H", packet, header + 2)[0] if packet[9] in (6, 17) else 0
    seen.add((name, packet[9], socket.inet_ntoa(packet[16:20]), port))
print(json.dumps(sorted(seen, key=str)))
"""
KILL_BROWSERS = """
import contextlib, os, pathlib
for process in pathlib.Path('/proc').glob('[0-9]*'):
    with contextlib.suppress(OSError):
        if b'--remote-debugging-p' in (process / 'cmdline').read_bytes() and int(process.name) != os.getpid():
            os.kill(int(process.name), 9)
"""
LOOK_UP = "import contextlib, socket\nwith contextlib.suppress(OSError): socket.getaddrinfo('example.com', 443)"
LOOK = """
import os
capabilities = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff'))
print(os.getuid(), os.readlink('/proc/self/ns/net'), capabilities)
"""


def connections_of(browser: str, arm: Arm) -> tuple[int, ...]:
    """The possible numbers; Firefox may open one more for the document than the six that it allows itself."""
    usual = CONNECTIONS[arm.name]
    return (usual, usual + 1) if (browser, arm) == (FIREFOX, H1) else (usual,)


@BROWSER
@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_each_trial_loads_a_fresh_page_over_its_protocol(page_bed: testbeds.Testbed, arm: Arm, browser: str) -> None:
    """In the same browser: connections, handshakes and all bytes come again."""
    for _ in range(3):
        result = page_over(page_bed.path(), arm, replace(PAGE, browser=browser))
        assert (result.outcome, result.reason) == (Outcome.OK, "")
        metrics, columns = result.metrics, result.samples["samples"]
        assert set(columns["request_protocol"]) == {arm.protocol.alpn}
        assert len(columns["request_took_s"]) == 31
        assert metrics["bytes_body"] == 30 * 5_000
        assert metrics["connections"] in connections_of(browser, arm)
        assert metrics["from_cache"] == 0
        assert metrics[FIRST.key] >= HANDSHAKE_AND_ANSWER[arm.name] * RTT_S
        assert metrics[LOAD.key] >= metrics[LAST.key] >= metrics[FIRST.key] + RTT_S
        assert metrics[LARGEST.key] >= metrics[PAINT.key] >= metrics[FIRST.key]
        assert metrics["client_cpu_s"] > 0.02, "a browser's CPU time is the client's"


@BROWSER
@pytest.mark.parametrize("arm", PLAIN, ids=str)
def test_the_times_of_every_request_are_those_of_its_path(page_bed: testbeds.Testbed, arm: Arm, browser: str) -> None:
    """A waterfall shows them: handshake and answer take a round trip or more, and HTTP/1.1 waits for connections."""
    result = page_over(page_bed.path(), arm, replace(PAGE, browser=browser))
    requests = requests_of(result.samples["samples"])
    assert len({request.path for request in requests}) == 31
    assert [request.initiator for request in requests] == ["navigation", *["img"] * 30]
    assert [request.body_bytes for request in requests[1:]] == [5_000] * 30
    for request in requests:
        assert request.start_s <= request.sent_s <= request.first_byte_s
        assert request.first_byte_s <= request.done_s + CLOCK_S
        assert not request.opened_connection or request.connecting_s >= RTT_S - CLOCK_S
    answered = [request.sent_s <= request.first_byte_s - RTT_S + CLOCK_S for request in requests]
    assert sum(answered) >= 0.8 * len(requests), "a browser short of CPU notes the sending of some requests late"
    assert sum(request.opened_connection for request in requests) == result.metrics["connections"]
    connections, waited = connection_waits(requests)
    assert connections in (connections_of(browser, arm) if arm == H1 else (0,))
    assert len(waited) >= (15 if arm == H1 else 0)


@BROWSER
def test_a_page_may_have_more_requests_than_a_browser_keeps_by_default(
    page_bed: testbeds.Testbed, browser: str
) -> None:
    result = page_over(page_bed.path(), H2, replace(PAGE, resources=600, size_bytes=100, browser=browser))
    assert (result.outcome, result.reason) == (Outcome.OK, "")
    assert len(result.samples["samples"]["request_took_s"]) == 601


@BROWSER
def test_the_client_and_its_browser_have_one_address_and_no_capabilities(
    page_bed: testbeds.Testbed, browser: str
) -> None:
    read = ("python3", "-c", LOOK)
    user, space, capabilities = docker("exec", page_bed.containers[browser], *read).split()
    assert (user != "0", int(capabilities, 16)) == (True, 0)
    assert space == docker("exec", page_bed.containers["client"], *read).split()[1]


@contextmanager
def watched(client: str, seconds: float) -> Iterator[set[tuple[str, str]]]:
    """Gets (interface, address) of all that is sent from the client's host meanwhile, at the end of `seconds`."""
    seen: set[tuple[str, str]] = set()
    command = ["docker", "exec", client, "python3", "-c", WATCH, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout
        assert watch.stdout.readline() == "ready\n"
        yield seen
        seen |= {(interface, address) for interface, _, address, _ in json.loads(watch.stdout.read())}


@BROWSER
def test_a_browser_sends_packets_to_the_server_only_and_asks_no_name_server(
    page_bed: testbeds.Testbed, browser: str
) -> None:
    """From its start on, and also if there is a way to anywhere, which the client of a testbed has not."""
    path, client, agent = page_bed.path(), page_bed.containers["client"], page_bed.path().browsers[browser]
    there = {"host": path.server_ip, "port": 443, "path": PAGE.object_paths()[0]}
    for name in PAGE.object_paths():
        path.server.call("provide", 30.0, path=name)
    docker("exec", page_bed.containers[browser], "python3", "-c", KILL_BROWSERS)
    docker("exec", client, "ip", "route", "add", "default", "via", path.addresses.host("client", 254))
    try:
        with watched(client, 15.0) as sent:
            for arm in PLAIN:
                assert agent.call("prepare", 60.0, protocol=arm.protocol.value, **there)["started_s"] is not None
                agent.call("run", 20.0, timeout_s=10.0, protocol=arm.protocol.value, **there)
        with watched(client, 3.0) as control:
            docker("exec", page_bed.containers[browser], "python3", "-c", LOOK_UP)
    finally:
        docker("exec", client, "ip", "route", "del", "default")
    driven = ("lo", "127.0.0.1")  # a Firefox, also one that another test has started
    assert sent - {driven} == {("eth0", path.server_ip)}
    assert ("lo", "127.0.0.11") in control, "Docker's name server: the watch sees it"


def test_the_browser_has_no_sandbox_of_its_own_and_the_rights_of_nobody(page_bed: testbeds.Testbed) -> None:
    """Docker's seccomp profile keeps user namespaces from it, which the sandbox needs; docs/browsers.md says more."""
    container = page_bed.containers[CHROMIUM]
    status = dict(line.split(":\t") for line in docker("exec", container, "cat", "/proc/self/status").splitlines())
    assert (int(status["CapBnd"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, "1", "2")
    with pytest.raises(DockerError, match="Operation not permitted"):
        docker("exec", container, "unshare", "--user", "true")
    with pytest.raises(DockerError, match="No usable sandbox"):
        docker("exec", container, PROGRAM, "--headless", "--dump-dom", "--user-data-dir=/tmp/own", "about:blank")


@BROWSER
def test_a_page_that_does_not_load_in_time_is_a_bound(page_bed: testbeds.Testbed, browser: str) -> None:
    slower = replace(SLOW, server_delay_s=2.0, browser=browser)  # on a busy machine, too, the document comes in time
    result = page_over(page_bed.path(), H2, slower, timeout_s=3.2)
    assert result.outcome is Outcome.TIMEOUT
    assert result.metrics["timeout_s"] == result.metrics["last_resource_low_s"] == 3.2
    assert result.metrics["ttfb_low_s"] == result.metrics["ttfb_high_s"] >= 2.0
    assert page_over(page_bed.path(), H2, replace(PAGE, browser=browser)).outcome is Outcome.OK


@BROWSER
def test_a_document_that_does_not_come_in_time_is_a_bound(page_bed: testbeds.Testbed, browser: str) -> None:
    result = page_over(page_bed.path(), H3, replace(SLOW, browser=browser), timeout_s=0.7)
    assert result.outcome is Outcome.TIMEOUT
    assert result.metrics["ttfb_low_s"] == 0.7
    assert "ttfb_high_s" not in result.metrics
    assert page_over(page_bed.path(), H3, replace(PAGE, browser=browser)).outcome is Outcome.OK


def test_a_changed_program_of_the_browser_stops_the_next_start(page_bed: testbeds.Testbed) -> None:
    """The last test: a change cannot be taken back, because it shows in times that nobody can set."""
    path, container = page_bed.path(), page_bed.containers[CHROMIUM]
    assert not changed_programs(container)
    docker("exec", "--user", "root", container, "touch", f"/usr/bin/{PROGRAM}")
    with pytest.raises(UnexpectedState, match=f"{CHROMIUM}: /usr/bin/{PROGRAM} is not the image's"):
        examine_start(path)
