"""Selects the machines that can take part in a run. Pure.

A block never spans machines, so they may be unequally fast. But all must measure the same: the same lab, images, kernel
and engine. The largest group of identical machines takes part; when resuming, those that match the run's environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headwind.cluster.messages import Host

ALIKE = ("kernel", "machine", "rmem_max_bytes")  # of a host's facts


def admitted(
    hosts: Sequence[Host], code: str, environment: Mapping[str, Any] | None
) -> tuple[list[Host], dict[str, str]]:
    """The machines that take part, and the reasons against the others, by name.

    `code` is the digest of the controller's code, `environment` that of a resumed run.
    """
    refused = {
        host.name: f"different Headwind version ({host.code}, not {code}): update it with `git pull`"
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
    """A text for each difference."""
    for name in sorted({*images, *host.images}):
        wanted, found = images.get(name, "none"), host.images.get(name, "none")
        if wanted != found:
            yield f"its image {name} is {found}, not {wanted} (`docker save` and `docker load` make them the same)"
    for key in ALIKE:
        if facts.get(key) != host.facts.get(key):
            yield f"its {key} is {host.facts.get(key)}, not {facts.get(key)}"
