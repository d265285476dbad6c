"""The user's site in a matrix: its folder, the paths of workloads, and what a changed file does to a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwind.matrix.reader import MatrixError
from headwind.model import Matrix
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.run.differences import differences, different_settings
from headwind.workloads.files import Files
from headwind.workloads.h2load import H2load
from tests.matrix_files import lay_out_site, load, manual_examples, refusal

SITE = {"index.html": 1200, "app.css": 300, "js/app.js": 5000, "js/index.html": 10, "Über uns.html": 0}
REST = "protocols: [h1, h2]\nprofiles: {clean: {}}\nworkloads:\n"
PAGE = "  page: {kind: objects, paths: [/, /app.css, /js/app.js, /js/, /Über uns.html]}\n"
ONE = "  one: {requests: 20, connections: 2, path: /js/app.js}\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a matrix, with a site in it."""
    for name, size in SITE.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"s" * size)
    return tmp_path


def matrix(home: Path, *workloads: str, more: str = "content: site\n") -> Matrix:
    return load(f"{more}{REST}{''.join(workloads)}", home)


def mistake(home: Path, *workloads: str, more: str = "content: site\n") -> MatrixError:
    return refusal(f"{more}{REST}{''.join(workloads)}", home)


def test_a_list_of_paths_is_fetched_with_the_sizes_of_its_files(home: Path) -> None:
    found = matrix(home, PAGE)
    (page,) = (condition.workload for condition in found.conditions)
    assert isinstance(page, Files)
    assert [file.bytes for file in page.files] == [1200, 300, 5000, 10, 0]
    assert page.paths[0] == "/"
    over_h1, over_h2 = page.over("h1"), page.over("h2")
    assert (over_h1.connections, over_h1.streams) == (5, 1)
    assert (over_h2.connections, over_h2.streams) == (1, 5)
    assert over_h2.asked() == {
        "connections": 1,
        "paths": ["/site/index.html", "/site/app.css", "/site/js/app.js", "/site/js/index.html",
                  "/site/%C3%9Cber%20uns.html"],
    }  # fmt: skip
    assert over_h1.least() == (1, 6510)
    assert page.brief() == (
        "5 files of the content (0 to 5,000 bytes each, 6,510 bytes in total) over 5 new connections (HTTP/1.1) or 1 "
        "(HTTP/2 and HTTP/3)"
    )
    assert found.content
    assert found.content.folder == str(home / "site")


def test_a_single_path_is_one_of_the_content_or_else_of_the_lab(home: Path) -> None:
    found = matrix(home, ONE, ONE.replace("one", "index").replace("/js/app.js", "/"),
                   ONE.replace("one", "lab").replace("/js/app.js", "/10k"))  # fmt: skip
    one, index, lab = (condition.workload for condition in found.conditions)
    assert isinstance(one, H2load)
    assert (one.object_path(), one.least()[1]) == ("/site/js/app.js", 20 * 5000)
    assert (index.object_path(), index.least()[1]) == ("/site/index.html", 20 * 1200)
    assert (lab.object_path(), lab.least()[1]) == ("/10k", 20 * 10240)


def test_a_delay_of_the_server_holds_for_every_file(home: Path) -> None:
    found = matrix(home, PAGE.replace("}", ", server_delay: 30ms}"), ONE.replace("}", ", server_delay: 30ms}"))
    page, one = (condition.workload for condition in found.conditions)
    assert page.asked()["paths"][1] == "/after/30ms/site/app.css"
    assert one.object_path() == "/after/30ms/site/js/app.js"


def test_without_content_the_page_is_the_labs(home: Path) -> None:
    (plain,) = (each.workload for each in matrix(home, ONE.replace("/js/app.js", "/"), more="").conditions)
    assert (plain.object_path(), plain.files) == ("/", ())


@pytest.mark.parametrize(
    ("more", "workload", "place", "message"),
    [
        ("content: sit\n", PAGE, "1:10", "`sit` is not a folder"),
        ("content: sit\n", PAGE, "1:10", "did you mean `site`?"),
        ("content: site/index.html\n", PAGE, "1:10", "`site/index.html` is not a folder"),
        ("content: site\n", PAGE.replace("/app.css", "/ap.css"), "5:36", "did you mean `/app.css`?"),
        ("content: site\n", PAGE.replace("/js/,", "/js,"), "5:58", "did you mean `/js/`?"),
        ("content: site\n", PAGE.replace("/app.css", "'/app.css?v=3'"), "5:36", "write `/app.css`; a ? that is part"),
        ("content: site\n", PAGE.replace("/app.css", "/app.css#top"), "5:36", "cannot be requested as written"),
        ("content: site\n", PAGE.replace("/app.css", "app.css"), "5:36", "it begins with a slash"),
        ("content: site\n", PAGE.replace("/app.css", "/"), "5:36", "`/` appears twice"),
        ("content: site\n", PAGE.replace("/app.css", "/.git/config"), "5:36", "`.git` is hidden"),
        ("content: site\n", PAGE.replace("/app.css", "/link"), "5:36", "`link` is a symbolic link"),
        ("content: site\n", PAGE.replace("/app.css", "/1k"), "5:36", "the content has no file `/1k`"),
        ("content: site\n", PAGE.replace("objects,", "objects, requests: 5,"), "5:25", "does not go with `paths`"),
        ("content: site\n", PAGE.replace("objects,", "objects, connections: 5,"), "5:25", "those of browsers are used"),
        ("content: site\n", "  page: {kind: objects, paths: []}\n", "5:32", "`paths` has 0 entries"),
        ("content: site\n", ONE.replace("/js/app.js", "/nope"), "5:45", "the content has no file `/nope`"),
        ("content: site\n", ONE.replace("/js/app.js", "[/, /app.css]"), "5:45",
         "for a list: {kind: objects, paths: [/, /app.css]}"),
        ("content: site\n", ONE.replace("path: /js/app.js", "paths: [/]"), "5:46", "h2load fetches one object only"),
        ("content: site\n", "  page: {kind: transfer, paths: [/]}\n", "5:26", "unknown key `paths`"),
        ("", PAGE, "4:25", "`paths` are files of the `content`, which this matrix does not have"),
        ("", ONE.replace("/js/app.js", "/Über uns.html"), "4:45", "cannot be requested as written"),
        ("content: site\narms: {h2-css: {protocol: h2, path: /app.css}}\n", ONE, "2:37",
         "with `content`, an arm cannot have its own `path`"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place_and_a_repair(home: Path, more: str, workload: str, place: str, message: str) -> None:
    (home / "site/.git").mkdir()
    (home / "site/link").symlink_to("/etc/passwd")
    text = str(mistake(home, workload, more=more))
    assert f"matrix.yaml:{place}: " in text
    assert message in text


@pytest.mark.parametrize("key", ["path", "files", "urls", "pages"])
def test_a_list_of_files_under_another_key_is_one_mistake_with_its_repair(home: Path, key: str) -> None:
    """`write requests: ..., size: ...` instead led to generated objects in place of the user's files."""
    error = mistake(home, f"  files: {{kind: objects, {key}: [/, /app.css]}}\n")
    (complaint,) = error.complaints
    assert complaint.hint == "did you mean `paths`?"


def test_missing_files_are_found_next_to_an_unknown_key(home: Path) -> None:
    found = mistake(
        home,
        "  all: {kind: objects, paths: [/, /none.css], conectionz: 6}\n",
        "  one: {request: 20, connections: 2, path: /js/none.js}\n",
    )
    for named in ("/none.css", "conectionz", "request", "/js/none.js"):
        assert f"`{named}`" in str(found)
    assert ": 4 mistakes, nothing was started" in str(found)


def test_the_manuals_example_is_one(home: Path) -> None:
    (example,) = (text for text in manual_examples() if text.startswith("content:"))
    lay_out_site(example, home)
    assert [len(each.workload.files) for each in load(example, home).conditions] == [4, 1]


def test_a_folder_that_cannot_be_served_is_a_mistake_of_the_matrix(home: Path) -> None:
    (home / "site/a\nb").touch()
    text = str(mistake(home, PAGE))
    assert "matrix.yaml:1:10: `site` cannot be served: the name a\\nb has an unprintable character" in text


def test_a_run_folder_has_every_file_with_its_hash(home: Path) -> None:
    written = matrix(home, PAGE, ONE)
    stored = json.loads(json.dumps(matrix_to_json(written)))
    assert {file["path"]: file["bytes"] for file in stored["content"]["files"]} == SITE
    again = matrix_from_json(stored, written.source, written.path)
    assert again.content == written.content
    assert again.conditions == written.conditions


def test_a_changed_file_is_a_difference_by_name_and_nothing_else_is(home: Path) -> None:
    before = matrix(home, PAGE, ONE)
    (home / "site").rename(home / "moved")
    moved = matrix(home, PAGE, ONE, more="content: moved\n")
    assert not list(differences(matrix_to_json(before), matrix_to_json(moved)))
    (home / "moved/app.css").write_bytes(b"t" * 300)
    (home / "moved/js/new.js").touch()
    changed = list(
        differences(matrix_to_json(before), matrix_to_json(matrix(home, PAGE, ONE, more="content: moved\n")))
    )
    assert [line.partition(":")[0] for line in changed] == ["content.app.css", "content.js/new.js"]
    assert "none -> 0 bytes" in changed[1]
    other = matrix(home, ONE, ONE.replace("one", "page"), more="content: moved\n")
    assert any(line.startswith("content.app.css") for line in different_settings(before, other))
