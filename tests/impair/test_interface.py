"""Interfaces: found by their network, counted, and never left half set up. Real ones are in net/test_endpoint.py."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from impair import interface
from impair.interface import AT_AN_ENDPOINT, GLUEING, InterfaceError, turn_offloads_off

GATEWAY, IP, MAC = "10.1.0.254/24", "10.1.0.10", "02:42:00:00:00:01"
Answers = Callable[[dict[str, Any]], Callable[[], list[str]]]


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Programs that answer what the test says, by the words that their command line must have; tells what was run."""
    plain = [{"ifname": "eth0", **{name: {"active": False, "fixed": False} for name in AT_AN_ENDPOINT}}]

    def make(said: dict[str, Any]) -> Callable[[], list[str]]:
        cases = [f"*'{words}'*) echo '{json.dumps(answer)}' ;;" for words, answer in {**said, "-k": plain}.items()]
        for name in ("ip", "ethtool"):
            script = f'#!/bin/sh\necho {name} $* >> {tmp_path}/ran\ncase "$*" in\n{chr(10).join(cases)}\nesac\n'
            (tmp_path / name).write_text(script)
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return lambda: (tmp_path / "ran").read_text().splitlines()

    return make


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """What is elsewhere in /proc/sys; eth0 has IPv6."""
    for name in ("ipv6/conf/eth0/disable_ipv6", "ipv4/ip_forward"):
        (tmp_path / "net" / name).parent.mkdir(parents=True)
        (tmp_path / "net" / name).write_text("0\n")
    return tmp_path


def link(name: str, *addresses: str, mtu: int = 1500) -> dict[str, Any]:
    parts = [address.split("/") for address in addresses]
    held = [{"local": ip, "prefixlen": int(length)} for ip, length in parts]
    return {"ifname": name, "mtu": mtu, "flags": ["UP"], "addr_info": held}


def test_a_port_is_found_by_its_network(answers: Answers) -> None:
    answers({"address show": [link("lo", "127.0.0.1/8"), link("eth7", "10.1.0.253/24"), link("eth8")]})
    assert interface.interface_in("10.1.0.0/24") == "eth7"
    with pytest.raises(InterfaceError, match=r"0 interfaces have an address in 10\.9\.0\.0/24.*'eth7 10\.1\.0\.253'"):
        interface.interface_in("10.9.0.0/24")


def good() -> dict[str, Any]:
    return {
        "neighbour show": [{"dst": IP, "lladdr": MAC, "state": ["PERMANENT"]}],
        "address show": [link("eth0", "10.1.0.253/24", GATEWAY)],
    }


def test_a_port_is_set_up_and_read_back(answers: Answers, settings: Path) -> None:
    ran = answers(good())
    interface.set_up("eth0", GATEWAY, {IP: MAC}, settings)
    assert f"ip address replace {GATEWAY} dev eth0" in ran()
    assert "ip link set dev eth0 mtu 1500 up" in ran()
    assert (settings / "net/ipv6/conf/eth0/disable_ipv6").read_text() == "1"
    assert "ethtool --json -k eth0" in ran(), "offloads are looked at"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("neighbour show", [{"dst": IP, "lladdr": MAC, "state": ["STALE"]}]),
        ("neighbour show", []),
        ("address show", [link("eth0", "10.1.0.253/24")]),
        ("address show", [link("eth0", GATEWAY, mtu=9000)]),
        ("address show", [{**link("eth0", GATEWAY), "flags": []}]),
    ],
)
def test_a_port_that_is_not_as_asked_is_refused(answers: Answers, settings: Path, words: str, answer: Any) -> None:
    answers({**good(), words: answer})
    with pytest.raises(InterfaceError, match="read back"):
        interface.set_up("eth0", GATEWAY, {IP: MAC}, settings)


def test_a_port_whose_packets_would_be_merged_is_refused(answers: Answers, settings: Path) -> None:
    on = [{"ifname": "eth0", "generic-segmentation-offload": {"active": True, "fixed": True}}]
    answers({**good(), "--json -k": on})
    with pytest.raises(InterfaceError, match="left on: generic-segmentation-offload"):
        interface.set_up("eth0", GATEWAY, {IP: MAC}, settings)


Features = dict[str, dict[str, bool]]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Features]:
    """An interface whose features are off but for those that are named; `-K` has an effect where they are not fixed."""

    def make(**on: bool) -> Features:
        names = (*AT_AN_ENDPOINT, "highdma")
        features = {name: {"active": name in on, "fixed": on.get(name, False)} for name in names}

        def ethtool(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            for name in command[3::2] if command[1] == "-K" else ():
                features[name]["active"] &= features[name]["fixed"]
            return subprocess.CompletedProcess(command, 0, json.dumps([{"ifname": "eth0", **features}]), "")

        monkeypatch.setattr(subprocess, "run", ethtool)
        return features

    return make


@pytest.mark.parametrize("name", [name for name in AT_AN_ENDPOINT if name != "rx-checksumming"])
def test_an_offload_that_stays_on_is_refused(driver: Callable[..., Features], name: str) -> None:
    driver(**{name: True})
    assert interface.odd_offloads(["eth0"], AT_AN_ENDPOINT) == [f"eth0 with {name} on (`ethtool -k eth0`)"]
    with pytest.raises(InterfaceError, match=f"left on: {name};"):
        turn_offloads_off("eth0", AT_AN_ENDPOINT)


def test_what_is_on_is_turned_off_and_nothing_else(driver: Callable[..., Features]) -> None:
    features = driver(**{"tx-gso-list": False, "rx-checksumming": False, "highdma": False})
    assert set(turn_offloads_off("eth0", GLUEING).values()) == {"off"}
    assert [name for name, state in features.items() if state["active"]] == ["rx-checksumming", "highdma"]
    assert interface.odd_offloads(["eth0"], GLUEING) == []
    assert turn_offloads_off("eth0", AT_AN_ENDPOINT)["rx-checksumming"] == "off"
    assert [name for name, state in features.items() if state["active"]] == ["highdma"]


def test_a_receiver_that_always_checks_is_fine_and_said(driver: Callable[..., Features]) -> None:
    driver(**{"rx-checksumming": True})
    found = turn_offloads_off("eth0", AT_AN_ENDPOINT)
    assert found.pop("rx-checksumming") == "on [fixed]"
    assert set(found.values()) == {"off"}


def test_an_answer_without_segmentation_proves_nothing(driver: Callable[..., Features]) -> None:
    del driver()["generic-segmentation-offload"]
    with pytest.raises(InterfaceError, match="does not report segmentation"):
        turn_offloads_off("eth0", GLUEING)


def test_a_tool_that_is_missing_or_fails_is_named() -> None:
    with pytest.raises(InterfaceError, match="no-such-tool is not installed"):
        interface.run("no-such-tool", "-x")
    with pytest.raises(
        InterfaceError, match="`sh -c echo no such thing >&2; false` failed with status 1: no such thing"
    ):
        interface.run("sh", "-c", "echo no such thing >&2; false")


def test_a_setting_that_cannot_be_written_says_where_to_set_it(settings: Path) -> None:
    interface.forward(settings)
    assert (settings / "net/ipv4/ip_forward").read_text() == "1"
    interface.forward(settings)  # it is already so: nothing to write
    with pytest.raises(InterfaceError, match=r"version must be 0.*`sysctls`"):  # /proc/version can only be read
        interface._set_sysctl("version", "0", Path("/proc"))


def test_frames_are_counted_for_every_interface() -> None:
    counted = interface.frame_counters()
    for name in ("rx", "tx"):
        for what, file in (("frames", "packets"), ("bytes", "bytes"), ("dropped", "dropped")):
            shown = int(Path(f"/sys/class/net/lo/statistics/{name}_{file}").read_text())
            assert 0 <= shown - getattr(counted["lo"], f"{name}_{what}") < 10**9
