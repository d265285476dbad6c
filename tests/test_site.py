"""The user's site: which files of a folder are served, under which paths, and what is refused."""

from __future__ import annotations

import hashlib
import os
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest

from headwind import site_folder
from headwind.site import MOST_LISTED, Site, SiteFile, name_of, site_changes
from headwind.site_folder import HIDDEN, LINK, SPECIAL, SiteChanged, SiteError, read_site, snapshot_of

NAMES = (
    "index.html", "docs/index.html", "a b.css", "Über uns.html", "50% off.png", "what?.js", "#1.css", "a+b & 'c'.js",
    "日本.webp", "~print.css", "semi;colon.txt", "back\\slash.txt", "img/deep/down/x.svg", "a%20b.txt", "..a", "-rf",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a site of a few files."""
    for number, name in enumerate(each for each in NAMES if not each.startswith(".")):
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * number)
    return tmp_path / "site"


def test_every_file_has_its_size_its_hash_and_a_path_that_leads_back_to_it(folder: Path) -> None:
    site = read_site(folder).site
    assert [file.path for file in site.files] == sorted(each for each in NAMES if not each.startswith("."))
    for file in site.files:
        data = (folder / file.path).read_bytes()
        assert (file.bytes, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert file.url.isascii()
        assert not set(file.url) & set(" ?#\\;&'")
        assert urllib.parse.unquote(file.url) == f"/site/{file.path}"
        assert site.file(file.url.removeprefix("/site")) == file
    assert site.bytes == sum(range(len(NAMES) - 1))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "index.html"), ("/docs/", "docs/index.html"), ("/a b.css", "a b.css"), ("/a%20b.css", "a b.css"),
        ("/%C3%9Cber uns.html", "Über uns.html"), ("/50% off.png", "50% off.png"), ("/what%3f.js", "what?.js"),
        ("/a%2520b.txt", "a%20b.txt"), ("/docs", "docs"), ("/../etc/passwd", "../etc/passwd"), ("/%ff", "\ufffd"),
    ],
)  # fmt: skip
def test_a_path_names_a_file_with_or_without_escapes(path: str, name: str) -> None:
    assert name_of(path) == name


def test_a_path_that_leaves_the_folder_names_no_file(folder: Path) -> None:
    (folder.parent / "secret.txt").write_text("secret")
    site = read_site(folder).site
    for path in ("/../secret.txt", "/%2e%2e/secret.txt", "//secret.txt", "/docs/../index.html", "/docs"):
        assert site.file(path) is None


def test_links_hidden_files_and_special_files_are_left_out_with_the_reason(folder: Path) -> None:
    (folder.parent / "secret").mkdir()
    (folder.parent / "secret/key").write_text("secret")
    (folder / "file link").symlink_to("../secret/key")
    (folder / "folder link").symlink_to("../secret")
    (folder / "loop").symlink_to("loop")
    (folder / "docs/index link").symlink_to("index.html")  # also one that stays inside
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("secret")
    (folder / ".env").write_text("secret")
    os.mkfifo(folder / "pipe")
    found = read_site(folder)
    links = dict.fromkeys(("file link", "folder link", "loop", "docs/index link"), LINK)
    assert found.site.left_out == {**links, ".git": HIDDEN, ".env": HIDDEN, "pipe": SPECIAL}
    assert b"secret" not in b"".join(found.data.values())
    assert len(found.data) == len(NAMES) - 1


def test_a_file_that_becomes_a_link_while_it_is_read_is_not_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, left_out = folder.parent / "key", site_folder._left_out
    secret.write_text("secret")

    def swap(name: str, *arguments: int, is_folder: bool) -> str:
        reason = left_out(name, *arguments, is_folder=is_folder)
        if name == "what?.js":
            (folder / name).unlink()
            (folder / name).symlink_to(secret)
        return reason

    monkeypatch.setattr(site_folder, "_left_out", swap)
    with pytest.raises(SiteError, match="cannot be read"):
        read_site(folder)


def many(folder: Path) -> None:
    for number in range(site_folder.MOST_FILES + 1):
        (folder / f"{number}").touch()


def large(folder: Path) -> None:
    for name in ("one", "two"):
        with (folder / name).open("wb") as file:
            file.truncate(site_folder.MOST_BYTES // 2 + 1)


def deep(folder: Path) -> None:
    (folder / "/".join(["a"] * (site_folder.DEEPEST + 2))).mkdir(parents=True)


def empty(folder: Path) -> None:
    (folder / "index.html").unlink()
    (folder / ".hidden").touch()


def unprintable(folder: Path) -> None:
    (folder / "a\nb").touch()


def odd_bytes(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/a\xff")).touch()


def long(folder: Path) -> None:
    within = folder / "/".join(["n" * 200] * 5)
    within.mkdir(parents=True)
    (within / "x").touch()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (many, "more than 1000 files"), (large, "more than 64 MiB"), (deep, "nested more than 32 deep"),
        (empty, "no files that could be served"), (unprintable, r"a\\nb has an unprintable character"),
        (odd_bytes, r"a\\udcff is not UTF-8"), (long, "has 1006 characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused(tmp_path: Path, spoil: Callable[[Path], None], message: str) -> None:
    (tmp_path / "index.html").touch()
    read_site(tmp_path)
    spoil(tmp_path)
    with pytest.raises(SiteError, match=message) as refusal:
        read_site(tmp_path)
    assert refusal.value.hint


def test_names_that_are_left_out_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.html").touch()
    for number in range(20):
        (tmp_path / f".{number}").touch()
    monkeypatch.setattr(site_folder, "MOST_ENTRIES", 20)
    with pytest.raises(SiteError, match="more than 20 entries"):
        read_site(tmp_path)


def test_a_snapshot_is_what_the_matrix_recorded_or_nothing(folder: Path) -> None:
    site = read_site(folder).site
    (folder / ".new").touch()
    assert snapshot_of(site).site == site
    (folder / "a b.css").write_bytes(b"y" * 2)
    with pytest.raises(SiteChanged, match=r"content\.a b\.css: 2 bytes, sha256 \w{12} -> 2 bytes, sha256 \w{12}"):
        snapshot_of(site)
    (folder / "a b.css").write_bytes(b"x" * 2)
    (folder / "new.css").touch()
    with pytest.raises(SiteChanged, match=r"content\.new\.css: none -> 0 bytes"):
        snapshot_of(site)
    with pytest.raises(SiteChanged, match="cannot be read: No such file"):
        snapshot_of(Site(str(folder / "gone"), site.files))


def test_changes_are_listed_up_to_a_number_and_a_folder_that_moved_is_none() -> None:
    files = tuple(SiteFile(f"{number}.css", 1, "a" * 64) for number in range(MOST_LISTED + 2))
    before = Site("here", files)
    assert not list(site_changes(before, Site("there", files)))
    *named, rest = site_changes(before, None)
    assert (len(named), rest) == (MOST_LISTED, "content: 2 more files")
    assert before.sha256 != Site("here", files[1:]).sha256
