"""A broken matrix says everything that is wrong with it, where, and what to write; whatever is in the file."""

from __future__ import annotations

import copy
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from headwind.errors import UsageError
from headwind.matrix.complaint import excerpt
from headwind.matrix.reader import MatrixError, load_matrix
from headwind.matrix.text import LARGEST_BYTES
from tests.matrix_files import DEFAULT, MINIMAL, NAMED, ROOT, manual_example, manual_examples, refusal
from tests.sizes import size
from tests.strategies import ANY_TEXT, MATRIX_KEYS, MATRIX_WORDS, TREES, matrix_trees

GOLDEN = ROOT / "tests" / "golden" / "matrix"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# What a broken file says


@pytest.mark.parametrize("case", sorted(GOLDEN.glob("*.txt")), ids=lambda case: case.stem)
def test_a_broken_matrix_is_explained(case: Path, here: Path) -> None:
    """Each file of tests/golden/matrix is a matrix, `=====` and the answer; UPDATE_GOLDEN=1 writes the answers anew."""
    text, _, expected = case.read_text().partition("=====\n")
    (here / "matrix.yaml").write_text(text)
    with pytest.raises(MatrixError) as caught:
        load_matrix(Path("matrix.yaml"))
    answer = f"{caught.value}\n"
    if os.environ.get("UPDATE_GOLDEN"):
        case.write_text(f"{text}=====\n{answer}")
        expected = answer
    assert answer == expected


def test_the_error_is_one_of_usage_and_ends_with_2(here: Path) -> None:
    error = refusal("", here)
    assert isinstance(error, UsageError)
    assert error.exit_code == 2


def test_all_mistakes_come_at_once_in_the_order_of_the_file(here: Path) -> None:
    text = DEFAULT.replace("60s", "60").replace("100ms", "100mz").replace("20%", "200%").replace("h3]", "h4]")
    found = [(complaint.line, complaint.column) for complaint in refusal(text, here).complaints]
    assert len(found) == 10
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("jitter: 10ms}}\n  loss", "jitter: 10mz}}\n  loss", "10mz"),
        ("[h1, h2, h3]", "[h1, h2, h4]", "h4"),
        ("  article:", "  art/cle:", "art/cle"),
        ("duplicate: 70%", "dupl: 70%", "dupl"),
        ("max: 300", "max: [300]", "[300]"),
        ("slower: [delay]", "slower: [delay, loss]", "loss"),
        ("connections: 100", "connections: 5000", "5000"),
        ("path: /", "path: {}", "{}"),
        ("clean:          {}", "clean: [clean]", "[clean]"),
        ("      loss/article: ", "      clean: ", "clean: "),
        ("{h1: 14.46s, h3: 4.12s,", "{h3: 4.12s,", "{h3"),
        ("33.64s", "33.64", "33.64,"),
        ("unfinished", "never", "never"),
    ],
)
def test_the_caret_is_under_the_mistake(here: Path, old: str, new: str, marked: str) -> None:
    assert old in DEFAULT
    (complaint,) = refusal(DEFAULT.replace(old, new, 1), here).complaints
    assert complaint.source == DEFAULT.replace(old, new, 1).splitlines()[complaint.line - 1]
    assert complaint.source[complaint.column - 1 :].startswith(marked)
    text, caret = str(complaint).splitlines()[1:3]
    assert text[caret.index("^") :].startswith(marked)


def test_a_key_without_its_value_is_not_called_missing_too(here: Path) -> None:
    (complaint,) = refusal(MINIMAL.replace("[h1, h3]", ""), here).complaints
    assert complaint.message == "`protocols` has no value"


def test_the_same_mistake_in_both_directions_is_said_once(here: Path) -> None:
    error = refusal(MINIMAL.replace("clean: {}", "p: {both: {delay: 1ms, jitter: 2ms}}"), here)
    assert len(error.complaints) == 1


def test_very_many_mistakes_do_not_scroll_away(here: Path) -> None:
    error = refusal(MINIMAL + "".join(f"key{index}: 1\n" for index in range(1000)), here)
    assert len(error.complaints) == 1000
    assert len(str(error).splitlines()) < 300
    assert "... and 950 more" in str(error)


def test_of_very_many_names_some_are_listed(here: Path) -> None:
    profiles = ", ".join(f"p{index}: {{}}" for index in range(100))
    text = MINIMAL.replace("clean: {}", profiles) + "conditions: [{profiles: [q]}]"
    assert str(refusal(text, here)).splitlines()[3].strip().endswith("p28, p29 and 70 more")


def test_what_follows_unreadable_yaml_is_not_said_to_be_right(tmp_path: Path) -> None:
    text = str(refusal(MINIMAL.replace("clean: {}", "clean: {both: [}}"), tmp_path))
    assert text.endswith(f"1 mistake up to line {1 + MINIMAL[: MINIMAL.index('clean')].count(chr(10))}, where reading "
                         "ends, nothing was started; docs/matrix.md explains every key")  # fmt: skip
    assert "reading ends" not in str(refusal(MINIMAL.replace("clean: {}", "clean: {bth: {}}"), tmp_path))


def test_a_long_line_is_shown_around_the_mistake() -> None:
    text, caret = excerpt("x" * 500 + "HERE" + "y" * 500, 500)
    assert len(text) <= 110
    assert text[caret.index("^") :].startswith("HERE")


def test_wide_letters_and_tabs_do_not_move_the_caret() -> None:
    assert excerpt("網: \t5", 4)[1] == "    \t^"
    assert excerpt("e\u0301: 5", 4)[1] == "   ^"


# What cannot be a matrix at all


def test_a_missing_file_names_its_neighbour(here: Path) -> None:
    (here / "matrix.yaml").write_text(MINIMAL)
    (here / "compose.yaml").write_text("services: {}")
    (here / "loops.yaml").symlink_to("loops.yaml")
    with pytest.raises(MatrixError, match=r"matrx\.yaml: there is no such file; did you mean matrix\.yaml\?"):
        load_matrix(Path("matrx.yaml"))
    for name in ("nofile.yaml", "compos.yaml"):
        with pytest.raises(MatrixError, match=r"there is no such file$"):
            load_matrix(Path(name))
    with pytest.raises(MatrixError, match=r"no/such/place\.yaml: there is no such file$"):
        load_matrix(Path("no/such/place.yaml"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "matrix.yaml:1:1: the file is empty"),
        (b"   \n\n", "the file is empty"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "is a binary file"),
        (DEFAULT.encode("utf-16"), "is UTF-16; save it as UTF-8"),
        ("protocols: [h1]\ntitle: Größe".encode("latin-1"), "matrix.yaml:2:10: byte 0xf6 is not UTF-8"),
        (b"\xef\xbb\xbf\xff", "matrix.yaml:1:1: byte 0xff is not UTF-8"),
        (b"title: \x1b[31mred", r"matrix.yaml:1:8: the character '\x1b' is not text"),
        (b"#" * (LARGEST_BYTES + 1), f"has {LARGEST_BYTES + 1} bytes; a matrix has at most {LARGEST_BYTES}"),
        (b"just words", "a matrix is a mapping"),
    ],
)
def test_a_file_that_is_no_matrix_says_why(here: Path, data: bytes, words: str) -> None:
    (here / "matrix.yaml").write_bytes(data)
    with pytest.raises(MatrixError, match=re.escape(words)):
        load_matrix(Path("matrix.yaml"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "profiles:\n",
            "profiles:\n" + "".join(f"  p{number}: {{}}\n" for number in range(100_000)),
            "a matrix has at most",
        ),
        (
            "profiles:\n",
            "profiles:\n" + "".join(f"  p{number}: {{}}\n" for number in range(6_000)),
            "a run has at most",
        ),
        ("requests: 1000", f"requests: {'9' * 60_000}", "a whole number from 1"),
        ("profiles:\n", f"profiles:\n  huge: {{both: {{delay: {'9' * 60_000}s}}}}\n", "delay"),
    ],
)
def test_sizes_and_numbers_without_bounds_are_refused_at_once(here: Path, old: str, new: str, words: str) -> None:
    assert old in DEFAULT
    (here / "matrix.yaml").write_text(DEFAULT.replace(old, new, 1))
    start = time.process_time()
    with pytest.raises(MatrixError, match=words):
        load_matrix(Path("matrix.yaml"))
    assert time.process_time() - start < 10


def test_what_is_not_a_file_is_not_read(here: Path) -> None:
    os.mkfifo(here / "pipe")  # reading it would wait for ever
    for path, words in (
        (here, "is a directory"),
        (here / "pipe", "not a regular file"),
        ("/dev/zero", "not a regular"),
    ):
        with pytest.raises(MatrixError, match=words):
            load_matrix(Path(path))


@pytest.mark.parametrize("name", ["\0", "x" * 5000, "a\nb.yaml", "\udcff.yaml"])
def test_a_name_that_cannot_be_a_file_is_refused_in_one_printable_line(here: Path, name: str) -> None:
    with pytest.raises(MatrixError) as caught:
        load_matrix(Path(name))
    assert_printable(str(caught.value))
    assert len(str(caught.value).splitlines()) == 1


def test_aliases_cannot_grow_without_bound(here: Path) -> None:
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 9)}]" for level in range(1, 30)]
    assert "anchors are not accepted" in str(refusal("\n".join(["l0: &l0 lol", *levels]), here))


@pytest.mark.parametrize("bracket", ["[", "{a: ", "- ", "? ", "[{a: "])
def test_a_deep_nest_ends_at_once(here: Path, bracket: str) -> None:
    error = refusal("title: x\nprofiles:\n " + bracket * (LARGEST_BYTES // len(bracket) - 40), here)
    assert len(error.complaints) == 1


def test_long_lists_of_names_are_counted_before_they_are_multiplied(here: Path) -> None:
    twice = f"conditions: [{{profiles: [{'a, ' * 20_000}], workloads: [{'x, ' * 20_000}]}}]"
    assert "400000000 conditions" in str(refusal(NAMED + twice, here))


def test_a_confusion_that_is_four_times_as_large_takes_no_sixteen_times_as_long(here: Path) -> None:
    def seconds(count: int) -> float:
        names = [f"p{index}" for index in range(count)]
        profiles = ", ".join(f"{name}: {{}}" for name in names)
        conditions = ", ".join(f"x{name}" for name in names)
        text = MINIMAL.replace("clean: {}", profiles) + f"conditions: [{{profiles: [{conditions}]}}]"
        start_s = time.process_time()
        assert len(refusal(text, here).complaints) == count
        return time.process_time() - start_s

    # the least of three is what it takes when nothing else has the processor
    assert min(map(seconds, [1500] * 3)) < 10 * min(map(seconds, [375] * 3))


# Whatever is in the file, it is a matrix or it is explained


def assert_printable(text: str) -> None:
    text.encode()
    assert all(letter.isprintable() or letter in "\n\t" for letter in text), ascii(text)


def matrix_or_complaint(data: bytes, folder: Path) -> None:
    file = folder / "matrix.yaml"
    file.write_bytes(data)
    try:
        matrix = load_matrix(file)
    except MatrixError as error:
        explanation = str(error)
    else:
        assert matrix.conditions
        explanation = "".join(condition.id for condition in matrix.conditions)
    assert explanation
    assert_printable(explanation)


SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
many = settings(max_examples=200, suppress_health_check=SLOW)  # some faults take that many to be found
fewer = settings(max_examples=size(60, 200), suppress_health_check=SLOW)


COMPLETE = [
    manual_example(),
    next(text for text in manual_examples() if "\nfind:" in text),
    next(text for text in manual_examples() if "\narms:" in text),
]


@fewer
@given(st.binary() | ANY_TEXT.map(str.encode))
def test_any_bytes(here: Path, data: bytes) -> None:
    matrix_or_complaint(data, here)


@fewer
@given(st.dictionaries(MATRIX_WORDS | ANY_TEXT, TREES, max_size=9))
@example({"profiles": {"downlink": {"downlink": {"dellay": 1}}}})
@example({"profiles": {"profiles": 1}, "conditions": [[[]], {"profiles": [{}]}]})
def test_any_tree(here: Path, tree: Any) -> None:
    matrix_or_complaint(yaml.safe_dump(tree, allow_unicode=True).encode(), here)


@many
@given(matrix_trees())
def test_any_mixture_of_all_keys(here: Path, tree: Any) -> None:
    matrix_or_complaint(yaml.safe_dump(tree, allow_unicode=True).encode(), here)


def test_an_arm_with_a_key_that_a_page_lacks_is_explained(here: Path) -> None:
    text = "arms: {h2-one: {protocol: h2, requests: 1}}\nworkloads: {page: {kind: page, requests: 2, size: 15kB}}\n"
    matrix_or_complaint(text.encode(), here)


def test_the_fuzz_has_the_keys_of_every_level() -> None:
    wanted = {"protocols", "find", "along", "crossover", "within", "from", "to", "steps", "gemodel", "p13", "size",
              "session", "unmeasured", "budget", "preset", "again"}  # fmt: skip
    assert wanted <= set(MATRIX_KEYS)


@pytest.mark.parametrize("profiles", ["", "{}", "3", "[far]", "{far: 3}", "{far: [1]}", "{far: {downlink: 3}}",
                                      "{far: {downlink: [loss]}}", "{far: {both: lte, downlink: {}}}"])  # fmt: skip
@pytest.mark.parametrize("along", ["downlink.loss", "both.delay"])
def test_a_search_over_no_network_is_explained(here: Path, profiles: str, along: str) -> None:
    network = f"profiles: {profiles}\n" if profiles else ""
    error = refusal(
        f"protocols: [h2, h3]\nfind: {{crossover: [h3, h2], along: {along}, from: 0{'%' if 'loss' in along else 'ms'}, "
        f"to: 10{'%' if 'loss' in along else 'ms'}}}\n{network}workloads: {{page: {{requests: 10, connections: 2}}}}\n",
        here,
    )
    assert [complaint for complaint in error.complaints if "profiles" in complaint.source + complaint.message]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container of a tree with each of its keys or indices."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree))) if isinstance(tree, list) else []
    return [(tree, key) for key in keys] + [place for key in keys for place in places(tree[key])]


@many
@given(st.data())
def test_any_value_in_any_place_of_a_large_matrix(here: Path, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(COMPLETE))
    tree = copy.deepcopy(yaml.load(text, yaml.BaseLoader))  # noqa: S506 - text only
    container, key = data.draw(st.sampled_from(places(tree)))
    if data.draw(st.booleans()):
        container[key] = data.draw(TREES)
    else:
        del container[key]
    matrix_or_complaint(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False).encode(), here)


@fewer
@given(
    st.sampled_from([DEFAULT, manual_example()]), st.floats(0, 1), st.integers(0, 5),
    ANY_TEXT
    | st.sampled_from(["\t", "\0", "&a ", "*a", "!!int ", "{", "}", "[", ": ", "- ", "'", '"', "\n---\n", "\n  "]),
)  # fmt: skip
def test_any_slip_of_the_pen(here: Path, text: str, position: float, removed: int, inserted: str) -> None:
    start = int(position * len(text))
    matrix_or_complaint((text[:start] + inserted + text[start + removed :]).encode(), here)
