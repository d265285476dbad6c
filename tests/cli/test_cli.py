"""The command line: every command says how it went by its exit code, and a mistake is 2 before anything starts."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import lab
from headwind import engines
from headwind.cli import commands, doctor
from headwind.cli.console import console
from headwind.cli.dependencies import Dependencies
from headwind.errors import HeadwindError, UsageError
from headwind.matrix import nowhere
from headwind.matrix.document import MatrixKeys
from headwind.matrix.reader import load_matrix
from headwind.model import Published, PublishedRow
from headwind.testbed.kept_images import KeptImage
from impair.profile import Profile
from tests import fake
from tests.matrix_files import MINIMAL

ROOT = Path(__file__).resolve().parent.parent.parent
MATRIX = """
protocols: [h1, h3]
repeat: 2
profiles: {clean: {}, loss: {downlink: {loss: 20%}}}
workloads: {page: {requests: 10, connections: 2}}
lanes: 1
"""


pytestmark = pytest.mark.usefixtures("signals")


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    return tmp_path / "matrix.yaml"


def exit_code(*arguments: str, deps: Dependencies | None = None) -> int:
    """As the shell sees it, however the program ends."""
    try:
        return lab.main(list(arguments), deps)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["run", "--engine", "tc"], "tc"),
        (["run", "a.yaml", "b.yaml"], "b.yaml"),
        (["run", "--resume"], "--resume"),
        (["report"], "RUN"),
        (["report", "x", "--output"], "--output"),
        (["doctor", "--verbose"], "--verbose"),
        (["down", "everything"], "everything"),
        (["compare", "one"], "RUN_B"),
        (["run", "--budget", "soon"], "soon"),
        (["validate", "--reports", "x"], "--reports"),
    ],
)
def test_a_wrong_command_line_is_2_and_is_told(
    capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    assert exit_code(*arguments) == 2
    said = capsys.readouterr()
    assert "usage: lab.py" in said.err
    assert word in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["validat"], "validate"),
        (["run", "--bugdet", "5min"], "--budget"),
        (["run", "--engine", "krnel"], "kernel"),
        (["run", "--engine", "UML"], "uml"),
        (["run", "--LANES", "2"], "--lanes"),
        (["run", "-budget", "5min"], "--budget"),
        (["down", "all"], "--all"),
        (["resume"], "run --resume RUN"),
        (["status"], "report RUN"),
        (["list"], "plan"),
        (["clean"], "down"),
        (["stop"], "down"),
        (["start"], "run"),
        (["test"], "run --smoke"),
        (["check"], "validate"),
        (["my.yaml"], "run my.yaml"),
    ],
)
def test_a_misspelt_command_option_or_choice_comes_with_the_one_that_it_resembles(
    capsys: pytest.CaptureFixture[str], arguments: list[str], meant: str
) -> None:
    assert exit_code(*arguments) == 2
    assert capsys.readouterr().err.endswith(f"; did you mean `{meant}`?\n")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["run", "--lane", "2"], "--lanes"), (["run", "--smok"], "--smoke"), (["run", "--ful"], "--full"),
     (["down", "--al"], "--all"), (["plan", "--budge=5min"], "--budget"),
     (["run", "--duration", "2min"], "--budget"), (["report", "x", "--out", "y"], "--output")],
)  # fmt: skip
def test_an_abbreviated_option_starts_nothing_and_comes_with_the_whole_one(
    capsys: pytest.CaptureFixture[str], arguments: list[str], meant: str
) -> None:
    assert exit_code(*arguments) == 2
    assert capsys.readouterr().err.endswith(f"; did you mean `{meant}`?\n")


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        (["run", "--timeout", "5s"], "--timeout; `timeout` is a key of the matrix"),
        (["run", "--protocols", "h2"], "--protocols; `protocols` is a key of the matrix"),
        (["plan", "--repeats=3"], "--repeats=3; `repeat` is a key of the matrix"),
        (
            ["run", "--only", "far"],
            "lists what is measured, and `smoke` there what --smoke runs",
        ),
        (["run", "--matrix", "a.yaml"], "the matrix is named without an option: lab.py COMMAND FILE"),
        (["run", "LANES=2"], "LANES=2: variables are for `make`: here it is --lanes 2"),
        (["run", "\u2014budget", "5min"], "an option begins with plain hyphens: --budget"),
        (["run", "\u2013-lanes", "2"], "an option begins with plain hyphens: --lanes"),
        (["--reports", "x", "plan"], "the command comes before its options: lab.py COMMAND --reports"),
        (["run", "--quiet"], "unrecognized arguments: --quiet"),
        (["run", "--lanes=2,3"], "a whole number from 1 to 64; or `auto`, for as many as the host has room for"),
    ],
)
def test_an_argument_of_another_kind_is_told_where_it_belongs(
    capsys: pytest.CaptureFixture[str], arguments: list[str], end: str
) -> None:
    assert exit_code(*arguments) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"{end}\n")
    assert "did you mean" not in said


def test_words_for_a_command_are_no_commands_and_name_one() -> None:
    for line, words in commands.COMMANDS_MEANT.items():
        assert not {*words.split()} & {*lab.COMMANDS}
        assert line.startswith("--") or line.split()[0] in lab.COMMANDS


def test_a_site_in_the_place_of_a_matrix_is_answered_by_what_the_lab_measures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in ("run", "validate", "plan", "experiments"):
        assert exit_code(command, "https://site.example/") == 2
        assert "the lab measures only servers inside its testbed" in capsys.readouterr().err


def test_an_option_of_run_in_a_matrix_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", "--help") == 0
    options = {*re.findall(r"--([a-z]+)", capsys.readouterr().out)} - {"help", *MatrixKeys.model_fields, "budget"}
    assert {"engine", "reports", "cluster", "resume", "capture"} <= options
    for option in options:
        assert f"lab.py run --{option}" in nowhere.answer(option, "")


def test_help_names_every_command_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, command in lab.COMMANDS.items():
        assert command.__doc__
        assert f"{name} {command.__doc__.rstrip('.')}" in shown


@pytest.mark.parametrize("name", lab.COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert exit_code(name, "--help") == 0
    assert f"usage: lab.py {name}" in capsys.readouterr().out


def test_a_valid_matrix_is_counted(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("validate", str(matrix)) == 0
    assert capsys.readouterr().out == f"{matrix}: valid, 2 conditions, 2 protocols, 2 blocks each\n"


def test_the_blocks_of_a_search_have_no_minimum(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    find = "find: {crossover: [h3, h1], along: downlink.loss, from: 0%, to: 10%, within: 1%}\nrepeat: {max: 100}\n"
    matrix.write_text(MINIMAL + find)
    assert exit_code("validate", str(matrix)) == 0
    words = f"{matrix}: valid, 2 protocols, up to 100 blocks at each of 21 values\n"
    assert capsys.readouterr().out.startswith(words)


def test_the_help_names_every_command_that_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "doctor: a problem prevents runs; try-server: a protocol failed or gave wrong bytes" in shown


def test_one_of_each_is_counted_in_the_singular(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix.write_text(MINIMAL.replace("[h1, h3]", "[h1]") + "repeat: 1\n")
    assert exit_code("validate", str(matrix)) == 0
    assert "valid, 1 condition, 1 protocol, 1 block each\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_a_bad_matrix_is_2_with_its_place(matrix: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    matrix.write_text(MATRIX.replace("20%", "120%"))
    assert exit_code(command, str(matrix)) == 2
    assert f"{matrix}:4:" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_a_matrix_that_is_not_there_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert exit_code(command, str(tmp_path / "none.yaml")) == 2
    assert "there is no such file" in capsys.readouterr().err


def test_without_a_name_it_is_the_repositorys_matrix(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code("validate") == 0
    assert capsys.readouterr().out.startswith(f"{ROOT / 'matrix.yaml'}: valid")


def test_a_plan_starts_nothing(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("plan", str(matrix), "--reports", str(matrix.parent / "reports")) == 0
    assert "8 trials, about" in capsys.readouterr().out
    assert [path.name for path in matrix.parent.iterdir()] == ["matrix.yaml"]


@pytest.mark.parametrize(("arguments", "include_living"), [([], False), (["--all"], True)])
def test_down_spares_living_labs_unless_told(
    capsys: pytest.CaptureFixture[str], arguments: list[str], include_living: bool
) -> None:
    asked: list[bool] = []

    def sweep(say: object, include_living: bool) -> int:
        assert callable(say)
        asked.append(include_living)
        return 3

    deps = Dependencies(sweep=sweep, kept_images=lambda: [KeptImage("headwind-client:abc", 141_000_000)])
    assert exit_code("down", *arguments, deps=deps) == 0
    assert asked == [include_living]
    said = capsys.readouterr().out
    assert "3 testbeds removed" in said
    assert ("headwind-client:abc (141 MB" in said) is ("lab.py down --images" in said) is include_living


def test_down_removes_images_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    deps = Dependencies(sweep=lambda *_: 0, remove_images=lambda _: 4)
    assert exit_code("down", "--images", deps=deps) == 0
    assert "0 testbeds removed\n4 images removed\n" in capsys.readouterr().out
    deps = Dependencies(sweep=lambda *_: 1, remove_images=lambda _: 1)
    assert exit_code("down", "--images", deps=deps) == 0
    assert "1 testbed removed\n1 image removed\n" in capsys.readouterr().out


def test_a_report_is_drawn_again_from_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = fake.example_matrix(Profile("clean"), repeat=2)
    with fake.recorded(tmp_path, matrix, fake.ok_results(matrix)) as run:
        folder = run.folder
    assert exit_code("report", str(folder)) == 0
    assert f"report: {folder / 'report.html'}" in capsys.readouterr().out
    assert (folder / "report.html").stat().st_size > 1000


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """The folders of two small runs."""
    matrix = fake.example_matrix(Profile("clean"), repeat=1)
    folders = []
    for _ in range(2):
        with fake.recorded(tmp_path / "reports", matrix, fake.ok_results(matrix)) as run:
            folders.append(run.folder)
    return folders


def contents(*folders: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for folder in folders for file in sorted(folder.iterdir()) if file.is_file()}


def test_a_report_can_be_put_elsewhere_as_well(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert exit_code("report", str(runs[0]), "--output", str(page)) == 0
    assert page.read_bytes() == (runs[0] / "report.html").read_bytes()
    assert str(page) in capsys.readouterr().out


def test_junit_is_written_on_request(runs: list[Path]) -> None:
    assert exit_code("report", str(runs[0]), "--junit") == 0
    assert (runs[0] / "junit.xml").read_text().startswith("<?xml")


def test_several_runs_are_one_page_beside_them_and_stay_as_they_are(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(*runs)
    assert exit_code("report", *map(str, runs)) == 0
    page = runs[0].parent / f"{runs[0].name}+{runs[1].name}.html"
    assert f"report: {page}" in capsys.readouterr().out
    assert all(folder.name in page.read_text() for folder in runs)
    assert contents(*runs) == before
    page.unlink()
    assert exit_code("report", *map(str, runs), "--output", str(page.with_name("both.html"))) == 0
    assert page.with_name("both.html").exists()
    assert not page.exists()


def test_the_same_run_is_given_once(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    again, copied = runs[0].parent / "again", runs[0].parent / "copied"
    again.symlink_to(runs[0])
    shutil.copytree(runs[0], copied)
    for same in (runs[0], again, copied, Path(f"{runs[0]}/../{runs[0].name}")):
        assert exit_code("report", str(runs[0]), str(runs[1]), str(same)) == 2
        assert "give each run once" in capsys.readouterr().err
    for option in ("--junit", "--full"):
        assert exit_code("report", *map(str, runs), option) == 2
        assert f"lab.py: {option}: " in capsys.readouterr().err


@pytest.mark.parametrize("place", ["{run}", "{run}/matrix.yaml", "{run}/page.html", "{file}/page.html", "{run}/../x/y"])
@pytest.mark.parametrize("several", [False, True])
def test_an_output_that_cannot_be_is_an_error_for_people(
    runs: list[Path], capsys: pytest.CaptureFixture[str], place: str, several: bool
) -> None:
    before = (runs[0] / "matrix.yaml").read_bytes()
    output = place.format(run=runs[0], file=runs[0] / "matrix.yaml")
    given = runs if several else runs[:1]
    assert exit_code("report", *map(str, given), "--output", output) in (1, 2)
    assert f"lab.py: {output}: " in capsys.readouterr().err
    assert (runs[0] / "matrix.yaml").read_bytes() == before


def test_a_folder_that_may_not_be_written_is_an_error_for_people(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Root may write anywhere: so there is a folder where the draft of each file would be."""
    page = f"{runs[0].name}+{runs[1].name}.html"
    for place in (runs[0] / "trials.csv", runs[0].parent / page):
        place.with_name(f".{place.name}.{os.getpid()}").mkdir()
    assert exit_code("report", str(runs[0])) == 1
    assert f"lab.py: {runs[0]}: cannot write trials.csv: IsADirectoryError" in capsys.readouterr().err
    assert exit_code("report", *map(str, runs)) == 1
    assert f"{page}: cannot write the file here: Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["{file}", "{empty}", "{empty}/none", "{long}"])
@pytest.mark.parametrize("command", [["report"], ["report", "{run}"], ["run", "--resume"], ["compare", "{run}"]])
def test_what_is_no_run_is_an_error_for_people(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, command: list[str]
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"file": runs[0] / "matrix.yaml", "empty": tmp_path / "empty", "long": "x" * 300, "run": runs[0]}
    arguments = [word.format(**places) for word in (*command, path)]
    assert exit_code(*arguments) in (1, 2)
    assert f"lab.py: {arguments[-1]}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "nonsense", ["state = 'gone'", "state = NULL", "started = 'noon'", "ended = x'00ff'", "reason = x'ff'"]
)
def test_nonsense_in_a_journal_is_never_a_traceback(
    runs: list[Path], capsys: pytest.CaptureFixture[str], nonsense: str
) -> None:
    connection = sqlite3.connect(runs[0] / "journal.sqlite")
    connection.execute("PRAGMA ignore_check_constraints = 1")
    with suppress(sqlite3.IntegrityError), connection:  # NULL is refused by the journal itself
        connection.execute(f"UPDATE run SET {nonsense}")  # noqa: S608
    connection.close()
    code = exit_code("report", str(runs[0]))
    said = capsys.readouterr().err
    assert (code, said) == (0, "") or (code == 1 and f"lab.py: {runs[0]}: the run folder is damaged" in said)
    assert (code == 1) == (nonsense.split(maxsplit=1)[0] in ("started", "ended") or "gone" in nonsense)


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/none", "x" * 300])
def test_reports_that_cannot_be_kept_are_2_before_anything_starts(
    matrix: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (matrix.parent / "file").write_text("")
    deps = Dependencies(sweep=lambda *_: pytest.fail("it began"))
    reports = matrix.parent / place
    assert exit_code("run", str(matrix), "--reports", str(reports), deps=deps) == 2
    assert f"lab.py: --reports {reports}: cannot create run folders: " in capsys.readouterr().err
    assert exit_code("plan", str(matrix), "--reports", str(reports)) == 0, "a plan keeps nothing"


def test_reports_that_may_not_be_written_are_2(
    matrix: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert exit_code("run", str(matrix), "--reports", str(matrix.parent)) == 2
    assert "not writable" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["report", "none"], ["run", "--resume", "none"]])
def test_a_run_that_is_not_there_is_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code(*arguments) == 2
    assert "none: there is no such run; " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("trouble", "code", "words"),
    [
        (HeadwindError("the lab broke"), 1, "lab.py: the lab broke\n"),
        (UsageError("say it differently"), 2, "lab.py: say it differently\n"),
        (KeyboardInterrupt(), 130, "lab.py: stopped by Ctrl-C; nothing is left running\n"),
    ],
)
def test_every_end_has_its_exit_code_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], trouble: BaseException, code: int, words: str
) -> None:
    def fail(_: object) -> int:
        raise trouble

    monkeypatch.setitem(lab.COMMANDS, "validate", fail)
    assert exit_code("validate") == code
    assert capsys.readouterr().err == words


def test_the_version_is_that_of_the_project_and_its_commit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        lab.main(["--version"])
    assert re.fullmatch(r"Headwind \d+\.\d+\.\d+(, commit [0-9a-f]{12}(\+changes)?)?\n", capsys.readouterr().out)


def test_figures_of_no_run_are_no_document(capsys: pytest.CaptureFixture[str]) -> None:
    """`published` printed every table with nothing measured."""
    with pytest.raises(SystemExit, match=r"^2$"):
        lab.main(["published"])
    assert "required: RUN" in capsys.readouterr().err


def test_a_run_that_fills_no_row_is_named(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`published` printed every table with nothing measured, and not a word on the run."""
    assert exit_code("published", str(runs[0])) == 2
    assert f"lab.py: {runs[0].name}: its matrix has no key `published`" in capsys.readouterr().err
    article = Published("own", "An article", (PublishedRow("clean/article", {"h1": 1.0, "h3": 2.0}),))
    matrix = replace(fake.example_matrix(Profile("clean"), repeat=1), published=(article,))
    folders = []
    for results in ([], fake.ok_results(matrix)):
        with fake.recorded(tmp_path / "published", matrix, results) as run:
            folders.append(run.folder)
    assert exit_code("published", *map(str, folders)) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(f"{folders[0].name} fills no row: ")
    assert folders[1].name not in printed.err
    assert f"From run `{folders[1].name}`." in printed.out


def test_a_document_of_another_kind_is_refused_before_the_runs_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("published", "none", "--write", "found.txt") == 2
    assert "end its name in .md or .html" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["validate", "profiles"])  # lines, and a table
def test_a_reader_that_leaves_ends_the_command_without_a_traceback(name: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "lab.py", name]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, cwd=ROOT, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 10, 13)])
def test_an_older_python_is_refused_with_the_one_to_use(version: tuple[int, int, int]) -> None:
    """It ended with `cannot import name 'UTC' from 'datetime'`."""
    ast.parse((ROOT / "lab.py").read_text(), feature_version=version[1])
    older = f"import runpy, sys; sys.version_info = {version}; runpy.run_path('lab.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", older], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"lab.py: this is Python 3.{version[1]}, and 3.11 or newer is needed; run it as ")
    assert ".venv/bin/python lab.py, which `make lab-plan` creates\n" in done.stderr


def test_a_run_that_cannot_record_its_commit_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], matrix: Path
) -> None:
    monkeypatch.setattr(doctor, "checkout", lambda _: ("", "fatal: detected dubious ownership"))
    lab.print_warnings(load_matrix(matrix), console())
    said = "the run cannot record the commit: fatal: detected dubious ownership; `make lab-doctor` prints a fix\n"
    assert capsys.readouterr().out.startswith(said)


def test_the_address_of_a_scheduler_is_checked_before_docker(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("worker", "localhost") == 2
    assert capsys.readouterr().err == (
        "lab.py: worker localhost: the address of a scheduler has a port, such as tcp://lab:8786\n"
    )


def test_a_budget_for_a_fixed_number_of_blocks_is_2(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", str(matrix), "--budget", "15min") == 2
    assert "--budget" in capsys.readouterr().err


def test_the_engines_offered_are_those_that_impair() -> None:
    assert engines.CHOICES == ("auto", "kernel", "uml")


def test_a_python_without_the_packages_is_told_the_one_that_has_them(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "lab.py", "plan", "a matrix.yaml"], cwd=commands.ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    first, command = done.stderr.splitlines()
    assert re.search(
        r" lacks the package \w+; run it in the virtual environment, which `make lab-plan` creates:$", first
    )
    assert command.endswith("/.venv/bin/python " + f"{commands.ROOT}/lab.py plan 'a matrix.yaml'")


def test_a_module_of_the_lab_that_is_missing_is_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        commands.lacking(ModuleNotFoundError("headwind.nothing", name="headwind.nothing"), [])
