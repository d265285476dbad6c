"""Which machines may take part in one run. Pure.

A block never spans machines, so they may be unequally fast. But what is measured must be the same everywhere: the same
lab, images, kernel and engine. The largest group of machines that are alike takes part; a run that goes on takes those
that are as it began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headwind.cluster.messages import Host

ALIKE = ("kernel", "machine", "rmem_max_bytes")  # of a host's facts


def admitted(
    hosts: Sequence[Host], code: str, environment: Mapping[str, Any] | None
) -> tuple[list[Host], dict[str, str]]:
    """Those that take part, and by name why others do not.

    `code` is the digest of the lab that leads the run, `environment` that of a run that goes on.
    """
    refused = {
        host.name: f"its lab is another version ({host.code}, not {code}): `git pull` there"
        for host in hosts
        if host.code != code
    }
    left = [host for host in hosts if host.name not in refused]
    if environment:
        images, facts = environment.get("images", {}), environment.get("host", {})
    elif left:
        model = max(left, key=lambda host: sum(not list(_unlike(host.images, host.facts, other)) for other in left))
        images, facts = model.images, model.facts
    else:
        return [], refused
    refused |= {host.name: "; ".join(found) for host in left if (found := list(_unlike(images, facts, host)))}
    return [host for host in left if host.name not in refused], refused


def _unlike(images: Mapping[str, str], facts: Mapping[str, Any], host: Host) -> Iterator[str]:
    """One text for each difference."""
    for name in sorted({*images, *host.images}):
        wanted, found = images.get(name, "none"), host.images.get(name, "none")
        if wanted != found:
            yield f"its image {name} is {found}, not {wanted} (`docker save` and `docker load` make them the same)"
    for key in ALIKE:
        if facts.get(key) != host.facts.get(key):
            yield f"its {key} is {host.facts.get(key)}, not {facts.get(key)}"
