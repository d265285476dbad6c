"""The kinds of workload: one file for each, with everything that the host knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from headwind.matrix.workload import WorkloadKeys
from headwind.metric import Competing, Workload
from headwind.site import SiteFile
from headwind.workloads.files import FilesKeys
from headwind.workloads.h2load import H2loadKeys
from headwind.workloads.objects import ObjectsKeys
from headwind.workloads.page import PageKeys
from headwind.workloads.page_parts import PagePartsKeys
from headwind.workloads.push import PushKeys
from headwind.workloads.site_page import SitePageKeys
from headwind.workloads.streams import StreamsKeys
from headwind.workloads.transfer import TransferKeys
from headwind.workloads.ttfb import TtfbKeys

# every kind; the first is the default
KEYS: tuple[type[WorkloadKeys], ...] = (
    H2loadKeys, ObjectsKeys, FilesKeys, TransferKeys, TtfbKeys, StreamsKeys, PageKeys, PagePartsKeys, SitePageKeys,
    PushKeys,
)  # fmt: skip

KINDS: dict[str, type[Workload]] = {keys.model.kind: keys.model for keys in KEYS}
PLAIN = KEYS[0].model.kind

_USUAL = {each.name: each.default for each in fields(Workload) if each.kw_only}


def workload_to_json(workload: Workload) -> dict[str, Any]:
    """The settings without defaults as a JSON object, with the kind unless it is the default one."""
    settings = {name: value for name, value in asdict(workload).items() if _USUAL.get(name, ...) != value}
    return settings | ({} if workload.kind == PLAIN else {"kind": workload.kind})


def workload_from_json(data: Mapping[str, Any]) -> Workload:
    """The workload from the output of `workload_to_json`. Raises KeyError or TypeError for anything else."""
    settings = dict(data)
    settings |= {name: tuple(settings[name]) for name in ("paths",) if name in settings}
    settings |= {"competing": Competing(**settings["competing"])} if "competing" in settings else {}
    settings |= {"files": tuple(SiteFile(**each) for each in settings["files"])} if "files" in settings else {}
    return KINDS[settings.pop("kind", PLAIN)](**settings)
