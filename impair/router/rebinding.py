"""Gives the client another address or port from a moment on, as a NAT on the way does that has lost its mapping.

tc's filters rewrite packets as they enter the router, without any state. Both of its ports get a `clsact` for them:
until the moment only packets to the new address are rewritten, and there are none. From the moment on

- packets of the client leave with the new source,
- packets to the new one reach the client, and
- packets to the old one are dropped and counted, as by a NAT without a mapping.

So what is in the router's delay lines at the moment keeps its address, and packets that the server had sent are lost.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from impair.messages import Rebound
from impair.profile import PORT_BIT, Rebind

MODULES = ("sch_ingress", "cls_u32", "act_gact", "act_nat", "act_pedit", "act_csum")  # of a user-mode kernel
TC_S = 5.0
PROTOCOLS = {"tcp": 6, "udp": 17}


@dataclass(slots=True)
class Translation:
    """The translation of addresses between `client` (its address) and the server behind the router's `ports`.

    It gives the client the address `other`, or other ports, from `carry_out` on.
    """

    ports: Mapping[str, str]
    kind: Rebind
    client: str
    other: str
    _tc: subprocess.Popen[str] | None = None

    def install(self) -> None:
        """Prepare everything for the moment. Raises OSError with tc's words if the kernel cannot do it."""
        _load_modules()
        for port in self.ports.values():
            _tc("qdisc", "add", "dev", port, "clsact")
        for line in self._back():
            _tc(*line.split())
        self._tc = subprocess.Popen(
            ["tc", "-batch", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )  # started before the moment: that takes time

    def carry_out(self) -> None:
        """Rewrite from now on. Raises OSError with tc's words."""
        process, self._tc = self._tc, None
        assert process
        try:
            _, words = process.communicate("".join(f"{line}\n" for line in self._switch()), TC_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise OSError(f"tc did not rebind within {TC_S:g} s") from error
        if process.returncode:
            raise OSError(f"tc could not rebind: {words.strip()}")

    def seen(self) -> Rebound:
        """The packets that were rewritten in each direction, and those to the old address or port that were dropped."""
        up, down = (_packets(self.ports[side]) for side in ("client", "server"))
        return Rebound(up.get("rewrite", 0), down.get("rewrite", 0), down.get("drop", 0))

    def remove(self) -> None:
        """Take it back, whatever is there of it."""
        if self._tc:
            self._tc.kill()
            self._tc.communicate()
            self._tc = None
        for port in self.ports.values():  # without the hook its filters are gone, too; the fingerprint shows it
            subprocess.run(["tc", "qdisc", "del", "dev", port, "clsact"], capture_output=True, check=False)

    def _back(self) -> Iterator[str]:
        """Filters that bring packets to the new address or port back to the client, for packets from the server."""
        head = f"filter add dev {self.ports['server']} ingress protocol ip"
        if self.kind is Rebind.ADDRESS:
            yield f"{head} prio 2 u32 match ip dst {self.other}/32 action nat ingress {self.other}/32 {self.client}"
            return
        for name, number in PROTOCOLS.items():
            yield (
                f"{head} prio 2 u32 match ip dst {self.client}/32 match ip protocol {number} 0xff "
                f"match u16 0 {PORT_BIT:#x} at 22 {_edit(name, 'dport', PORT_BIT)}"
            )

    def _switch(self) -> Iterator[str]:
        """Filters of the moment: first the client's packets, then the end of the old mapping."""
        up, down = (f"filter add dev {self.ports[side]} ingress protocol ip" for side in ("client", "server"))
        if self.kind is Rebind.ADDRESS:
            yield f"{up} prio 1 u32 match ip src {self.client}/32 action nat egress {self.client}/32 {self.other}"
            yield f"{down} prio 1 u32 match ip dst {self.client}/32 action drop"
            return
        for name, number in PROTOCOLS.items():
            yield (
                f"{up} prio 1 u32 match ip src {self.client}/32 match ip protocol {number} 0xff "
                f"{_edit(name, 'sport', 0)}"
            )
            yield (
                f"{down} prio 1 u32 match ip dst {self.client}/32 match ip protocol {number} 0xff "
                f"match u16 {PORT_BIT:#x} {PORT_BIT:#x} at 22 action drop"
            )


def _edit(protocol: str, field: str, bit: int) -> str:
    """Set PORT_BIT of a port to `bit`, and keep the checksum right."""
    edit = f"munge {protocol} {field} set {bit:#x} retain {PORT_BIT:#x}"
    return f"action pedit ex {edit} pipe action csum {protocol}"


def _load_modules() -> None:
    """Load what the filters need into a user-mode kernel; any other kernel does so by itself."""
    folder = Path(f"/usr/lib/uml/modules/{os.uname().release}/kernel/net/sched")
    loaded = {line.split()[0] for line in Path("/proc/modules").read_text().splitlines()} if folder.exists() else set()
    for name in MODULES if folder.exists() else ():
        if name not in loaded:
            subprocess.run(["insmod", str(folder / f"{name}.ko")], check=True, capture_output=True)


def _tc(*words: str) -> None:
    done = subprocess.run(["tc", *words], capture_output=True, text=True, check=False, timeout=TC_S)
    if done.returncode:
        raise OSError(f"the router's kernel cannot rebind: `tc {' '.join(words)}`: {done.stderr.strip()}")


def _packets(port: str) -> dict[str, int]:
    """The packets that met the filters of a port, by what happens to them: `rewrite` or `drop`."""
    found: dict[str, int] = {}
    for each in json.loads(_listing(port) or "[]"):
        actions: Sequence[dict[str, Any]] = each.get("options", {}).get("actions", ())
        for action in actions[:1]:  # of two that rewrite the same packets
            what = "drop" if action.get("control_action", {}).get("type") == "drop" else "rewrite"
            found[what] = found.get(what, 0) + action["stats"]["packets"]
    return found


def _listing(port: str) -> str:
    command = ["tc", "-s", "-j", "filter", "show", "dev", port, "ingress"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
