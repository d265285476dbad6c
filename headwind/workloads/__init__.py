"""The kinds of workload: one file for each, which is all that the host knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from headwind.metric import Workload
from headwind.workloads.h2load import REQUEST, TOTAL, H2load, H2loadKeys

KINDS: dict[str, type[Workload]] = {kind.kind: kind for kind in (H2load,)}
PLAIN = H2load.kind  # what a workload is that does not name its kind
WorkloadKeys = H2loadKeys  # what a user may write; with more kinds, the union of theirs

JUDGED_BEFORE = (TOTAL.key, REQUEST.key)  # in runs from before a matrix said what is judged


def workload_to_json(workload: Workload) -> dict[str, Any]:
    """Its settings as a JSON object, and its kind where that is not the plain one."""
    return asdict(workload) | ({} if workload.kind == PLAIN else {"kind": workload.kind})


def workload_from_json(data: Mapping[str, Any]) -> Workload:
    """What `workload_to_json` was given. Raises KeyError or TypeError for anything else."""
    settings = dict(data)
    return KINDS[settings.pop("kind", PLAIN)](**settings)
