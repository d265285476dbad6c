"""Copies the user's site into the containers of servers, as read-only files, and checks the copies."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO

from headwind.site import PREFIX, Site
from headwind.site_folder import Snapshot
from headwind.testbed.docker import Docker, docker
from headwind.testbed.own_server import WWW

SHIPPED = "/srv/headwind"  # servers/contract.py, SITE
COPY = f"{SHIPPED}{PREFIX}"  # in the containers of shipped servers


def copy_site(snapshot: Snapshot, container: str, *, is_own: bool, docker: Docker = docker) -> None:
    """Copy a site into the volume that a server's container has at PREFIX of what it serves. Raises DockerError."""
    with tempfile.TemporaryFile() as archive:
        write_site(snapshot, archive)
        archive.seek(0)
        docker("cp", "-", f"{container}:{WWW if is_own else SHIPPED}{PREFIX}", stdin=archive)


def write_site(snapshot: Snapshot, into: IO[bytes]) -> None:
    """Write a tar archive of a site; root owns everything, and everybody can read it."""
    parents = {str(parent) for path in snapshot.data for parent in PurePosixPath(path).parents} - {"."}
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for folder in sorted(parents):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for path, data in snapshot.data.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o444
            archive.addfile(entry, io.BytesIO(data))


def site_deviations(site: Site, container: str, docker: Docker = docker) -> Iterator[str]:
    """Differences of the copy in a shipped server's container from the site, as text. Raises DockerError."""
    listing = docker("exec", container, "find", COPY, "-type", "f", "-exec", "sha256sum", "-z", "{}", "+")
    entries = (entry.partition("  ") for entry in listing.split("\0") if entry)
    found = {path.removeprefix(f"{COPY}/"): digest for digest, _, path in entries}
    expected = {file.path: file.sha256 for file in site.files}
    for path in sorted({*found, *expected}):
        if found.get(path) != expected.get(path):
            yield f"{COPY}/{path} is not the content's"
