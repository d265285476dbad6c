"""The copy of the user's site in a server's container: regular files that nobody may write to, and its check."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
from typing import Any

import pytest

from headwind.site import Site, SiteFile
from headwind.site_folder import Snapshot
from headwind.testbed.site_copy import COPY, copy_site, site_deviations, write_site
from headwind.trial import start

DATA = {"index.html": b"", "img/deep/Über uns.svg": b"x" * 20, f"{'n' * 200}/{'m' * 150}.txt": b"y"}
FILES = tuple(SiteFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in DATA.items())
SITE = Site("/somewhere", FILES)


def test_the_archive_has_every_file_and_only_for_reading() -> None:
    into = io.BytesIO()
    write_site(Snapshot(SITE, DATA), into)
    into.seek(0)
    with tarfile.open(fileobj=into) as archive:
        entries = {entry.name: entry for entry in archive.getmembers()}
        files = {name: archive.extractfile(entry).read() for name, entry in entries.items() if entry.isfile()}  # type: ignore[union-attr]
    assert files == DATA
    assert {"img", "img/deep"} <= entries.keys()
    for entry in entries.values():
        assert (entry.uid, entry.gid) == (0, 0)
        assert entry.isfile() or entry.isdir()
        assert entry.mode == (0o755 if entry.isdir() else 0o444)
        assert not entry.mode & (stat.S_IWGRP | stat.S_IWOTH)


@pytest.mark.parametrize(("is_own", "folder"), [(False, "/srv/headwind/site"), (True, "/www/site")])
def test_a_site_is_copied_to_where_the_server_finds_its_objects(is_own: bool, folder: str) -> None:
    asked: list[tuple[str, ...]] = []

    def docker(*arguments: str, stdin: Any) -> str:
        asked.append(arguments)
        assert len(tarfile.open(fileobj=stdin).getnames()) > len(DATA)  # noqa: SIM115
        return ""

    copy_site(Snapshot(SITE, DATA), "c1", is_own=is_own, docker=docker)
    assert asked == [("cp", "-", f"c1:{folder}")]


def listing(**changed: str) -> str:
    hashes = {file.path: file.sha256 for file in FILES} | changed
    return "".join(f"{digest}  {COPY}/{path}\0" for path, digest in hashes.items() if digest)


@pytest.mark.parametrize(
    ("changed", "odd"), [({}, []), ({"index.html": "0"}, ["index.html"]), ({"index.html": ""}, ["index.html"]),
                         ({"more.css": "0"}, ["more.css"])],
)  # fmt: skip
def test_a_copy_that_is_not_the_site_is_found(changed: dict[str, str], odd: list[str]) -> None:
    found = list(site_deviations(SITE, "c1", lambda *_: listing(**changed)))
    assert found == [f"{COPY}/{path} is not the content's" for path in odd]


def test_only_the_copy_is_spared_by_the_check_of_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = (f"{COPY}", f"{COPY}/index.html", "/srv/headwind/index.html", "/usr/bin/x")
    monkeypatch.setattr(start, "docker", lambda *_: "\n".join(changed))
    others = ["/srv/headwind/index.html is not the image's", "/usr/bin/x is not the image's"]
    assert start.changed_programs("c1", has_content=True) == others
    assert len(start.changed_programs("c1")) == len(others) + 1
