"""The engines: where the router forwards packets, and with which netem. A new engine is an entry here.

`auto` (headwind/testbed/engine_choice.py) chooses between KERNEL and UML.
"""

from __future__ import annotations

from dataclasses import dataclass

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Engine:
    """A router: its name, the module of its agent, and its netem as text for reports (empty: forwards only)."""

    name: str
    agent: str
    netem: str = ""
    is_guest: bool = False  # a separate kernel inside the container, watched from outside


KERNEL = Engine("kernel", "impair.router.agent", "netem of the host's kernel, in its container")
UML = Engine("uml", "impair.router.uml", "netem in a user-mode kernel inside its container", is_guest=True)
PLAIN = Engine("plain", "impair.router.agent")  # for benchmarks
ENGINES = {engine.name: engine for engine in (KERNEL, UML, PLAIN)}
CHOICES = (AUTO, *(name for name, engine in ENGINES.items() if engine.netem))  # of the option --engine
