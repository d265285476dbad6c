"""The router's interfaces: found by their network, counted, and never left half set up."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from impair import ports
from impair.ports import PortError

GATEWAY, IP, MAC = "10.1.0.254/24", "10.1.0.10", "02:42:00:00:00:01"
Answers = Callable[[dict[str, Any]], list[list[str]]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Programs that answer what the test says, by the words that their command line must have; returns what was run."""

    def make(said: dict[str, Any]) -> list[list[str]]:
        ran: list[list[str]] = []

        def run(*command: str) -> str:
            ran.append(list(command))
            return next((json.dumps(answer) for words, answer in said.items() if words in " ".join(command)), "")

        monkeypatch.setattr(ports, "_run", run)
        monkeypatch.setattr(ports, "_set_sysctl", lambda key, wanted: ran.append([key, wanted]))
        monkeypatch.setattr(ports, "turn_offloads_off", lambda name: ran.append(["offloads", name]))
        return ran

    return make


def interface(name: str, *addresses: str, mtu: int = 1500) -> dict[str, Any]:
    parts = [address.split("/") for address in addresses]
    held = [{"local": ip, "prefixlen": int(length)} for ip, length in parts]
    return {"ifname": name, "mtu": mtu, "flags": ["UP"], "addr_info": held}


def test_a_port_is_found_by_its_network(answers: Answers) -> None:
    answers({"address show": [interface("lo", "127.0.0.1/8"), interface("eth7", "10.1.0.253/24"), interface("eth8")]})
    assert ports.interface_in("10.1.0.0/24") == "eth7"
    with pytest.raises(PortError, match=r"0 interfaces have an address in 10\.9\.0\.0/24.*'eth7 10\.1\.0\.253'"):
        ports.interface_in("10.9.0.0/24")


def good() -> dict[str, Any]:
    return {
        "neighbour show": [{"dst": IP, "lladdr": MAC, "state": ["PERMANENT"]}],
        "address show": [interface("eth0", "10.1.0.253/24", GATEWAY)],
    }


def test_a_port_is_set_up_and_read_back(answers: Answers) -> None:
    ran = answers(good())
    ports.set_up("eth0", GATEWAY, IP, MAC)
    assert ["ip", "address", "replace", GATEWAY, "dev", "eth0"] in ran
    assert ["ip", "link", "set", "dev", "eth0", "mtu", "1500", "up"] in ran
    assert ["net/ipv6/conf/eth0/disable_ipv6", "1"] in ran
    assert ["offloads", "eth0"] in ran


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("neighbour show", [{"dst": IP, "lladdr": MAC, "state": ["STALE"]}]),
        ("neighbour show", []),
        ("address show", [interface("eth0", "10.1.0.253/24")]),
        ("address show", [interface("eth0", GATEWAY, mtu=9000)]),
        ("address show", [{**interface("eth0", GATEWAY), "flags": []}]),
    ],
)
def test_a_port_that_is_not_as_asked_is_refused(answers: Answers, words: str, answer: Any) -> None:
    answers({**good(), words: answer})
    with pytest.raises(PortError, match="read back"):
        ports.set_up("eth0", GATEWAY, IP, MAC)


def test_an_offload_that_stays_on_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    features = {name: {"active": name == "generic-receive-offload"} for name in ports.OFFLOADS}
    monkeypatch.setattr(ports, "_run", lambda *_: json.dumps([{"ifname": "eth0", **features}]))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)  # `ethtool -K` without effect
    with pytest.raises(PortError, match="cannot turn off generic-receive-offload"):
        ports.turn_offloads_off("eth0")


def test_a_failing_program_is_quoted() -> None:
    with pytest.raises(PortError, match="`sh -c echo no such thing >&2; false` failed with status 1: no such thing"):
        ports._run("sh", "-c", "echo no such thing >&2; false")


def test_a_setting_that_cannot_be_written_says_where_to_set_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = tmp_path / "net/ipv4/ip_forward"
    setting.parent.mkdir(parents=True)
    setting.write_text("0\n")
    monkeypatch.setattr(ports, "SETTINGS", tmp_path)
    ports._set_sysctl("net/ipv4/ip_forward", "1")
    assert setting.read_text() == "1"

    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", read_only)
    ports.forward()  # it is already so: nothing to write
    with pytest.raises(PortError, match=r"net\.ipv4\.ip_forward must be 0.*`sysctls`"):
        ports._set_sysctl("net/ipv4/ip_forward", "0")


def test_frames_are_counted_for_every_interface() -> None:
    counted = ports.frame_counters()
    for name in ("rx", "tx"):
        for what, file in (("frames", "packets"), ("bytes", "bytes"), ("dropped", "dropped")):
            shown = int(Path(f"/sys/class/net/lo/statistics/{name}_{file}").read_text())
            assert 0 <= shown - getattr(counted["lo"], f"{name}_{what}") < 10**9
