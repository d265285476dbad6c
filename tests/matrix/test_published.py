"""What articles published stands in matrix.yaml without binding whoever edits the experiment around it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from headwind.arm import Protocol
from headwind.cli.commands import command_validate
from headwind.matrix.reader import load_matrix
from headwind.model import Matrix, Published, PublishedRow
from tests.matrix_files import DEFAULT, MINIMAL, ROOT, load, refusal

H1, H2, H3 = Protocol
NETWORKS = tuple(yaml.safe_load(DEFAULT)["profiles"])
FAR = "both: {delay: 20ms}, uplink: {rate: 1mbit}"


def with_published(times: str) -> str:
    text = MINIMAL.replace("clean: {}", f"clean: {{}}, far: {{{FAR}}}")
    return f"{text}published: {{a: {{title: An article, times: {{{times}}}}}}}\n"


def gaps(matrix: Matrix) -> Mapping[str, list[str]]:
    (source,) = matrix.published
    return source.gaps


@pytest.mark.parametrize("file", ["matrix.yaml", "experiments/nginx_quic.yaml"])
def test_the_shipped_matrices_tell_what_the_article_found_in_its_eight_networks(file: str) -> None:
    (source,) = load_matrix(ROOT / file).published
    assert source.name == "nginx-quic"
    assert "ngx_http_autoquic_module" in source.title
    assert "10,000 requests" in source.note
    assert "single runs" in source.note
    assert {row.condition_id: tuple(row.values.values()) for row in source.rows} == {
        "clean/article": (0.40649, 0.6119), "delay/article": (1.9, 3.65), "loss/article": (33.64, 19.82),
        "duplicate/article": (0.44355, 0.41998), "corrupt/article": (14.46, 4.12), "delay-loss/article": (30.64, 17.16),
        "loss-duplicate/article": (2.03, 3.06), "loss-corrupt/article": (None, 15.09),
    }  # fmt: skip
    assert {tuple(row.values) for row in source.rows} == {(H1, H3)}
    assert source.gaps == {}


def test_times_are_seconds_and_unfinished_is_no_time(tmp_path: Path) -> None:
    text = with_published("clean: {h3: 1500us, h1: unfinished}")
    (source,) = load(text, tmp_path).published
    assert source == Published("a", "An article", (PublishedRow("clean/page", {H1: None, H3: 0.0015}),))


@pytest.mark.parametrize("network", [FAR, "uplink: {delay: 20ms, rate: 1000kbit}, downlink: {delay: 0.02s}"])
@pytest.mark.parametrize("name", ["far", "far/page"])
def test_a_row_may_write_its_network_in_other_words_than_the_profile(tmp_path: Path, name: str, network: str) -> None:
    (source,) = load(with_published(f"{name}: {{{network}, h1: 1s, h3: 2s}}"), tmp_path).published
    assert source.rows == (PublishedRow("far/page", {H1: 1.0, H3: 2.0}),)


# What has no counterpart is no mistake


@pytest.mark.parametrize(
    ("row", "condition_id", "gap"),
    [
        ("far: {both: {delay: 20ms}, h1: 1s, h3: 2s}", "far/page", "the profile is a different network now"),
        ("far/page: {uplink: {rate: 2mbit}, h1: 1s, h3: 2s}", "far/page", "the profile is a different network now"),
        ("clean: {downlink: {loss: 1%}, h1: 1s, h3: 2s}", "clean/page", "the profile is a different network now"),
        ("far: {h1: 1s, h3: 2s}", "far/page", "no network given, which means a clean one; the profile is not clean"),
        ("clan: {h1: 1s, h3: 2s}", "clan", "there is no such condition"),
        ("clean/pages: {h1: 1s, h3: 2s}", "clean/pages", "there is no such condition"),
        ("clean: {h1: 1s, h2: 2s}", "clean/page", "the matrix has no h2"),
    ],
)
def test_a_row_that_nothing_can_be_set_beside_is_kept_with_the_reason(
    tmp_path: Path, row: str, condition_id: str, gap: str
) -> None:
    matrix = load(with_published(row), tmp_path)
    assert gaps(matrix) == {gap: [condition_id]}
    assert len(matrix.published[0].rows[0].values) == 2


def test_of_three_times_two_are_compared_where_the_third_protocol_is_not_there(tmp_path: Path) -> None:
    matrix = load(with_published("clean: {h1: 1s, h2: 2s, h3: 3s}"), tmp_path)
    assert matrix.published[0].rows == (PublishedRow("clean/page", {H1: 1.0, H2: 2.0, H3: 3.0}),)
    alone = load(with_published("clean: {h1: 1s, h2: 2s, h3: 3s}").replace("[h1, h3]", "[h2]"), tmp_path)
    assert gaps(alone) == {"the matrix has no h1 and no h3": ["clean/page"]}


def test_a_profile_alone_names_its_only_condition_and_of_several_none(tmp_path: Path) -> None:
    names = ("clean", "clean/feed", "loss", "loss/page")
    rows = f"{{{', '.join(f'{name}: {{h1: 1s, h3: 2s}}' for name in names)}}}"
    text = (
        "protocols: [h1, h3]\nprofiles: {clean: {}, loss: {}}\n"
        "workloads: {page: {requests: 10, connections: 2}, feed: {requests: 20, connections: 2}}\n"
        "conditions: [{profiles: [clean], workloads: [page]}, {profiles: [loss]}]\n"
        f"published: {{a: {{title: A, times: {rows}}}}}\n"
    )
    matrix = load(text, tmp_path)
    assert [row.condition_id for row in matrix.published[0].rows if not row.gap] == ["clean/page", "loss/page"]
    assert gaps(matrix) == {
        "there is no such condition": ["clean/feed"],
        "several workloads; write profile/workload": ["loss"],
    }


def edited(profiles: list[str], delay: str, protocols: list[Protocol], *, second_workload: bool) -> dict[str, Any]:
    """The default matrix as a newcomer may change it, without a look at `published`."""
    tree: dict[str, Any] = yaml.safe_load(DEFAULT)
    del tree["selfcheck"]  # this one does depend on profiles
    tree["profiles"] = {name: tree["profiles"][name] for name in profiles}
    if "delay" in profiles:
        tree["profiles"]["delay"]["downlink"]["delay"] = delay
    tree["protocols"] = [protocol.value for protocol in protocols]
    if second_workload:
        tree["workloads"]["another"] = {"requests": 10, "connections": 1}
    return tree


@given(
    profiles=st.lists(st.sampled_from(NETWORKS), min_size=1, unique=True),
    delay=st.sampled_from(["100ms", "0.1s", "50ms"]),
    protocols=st.lists(st.sampled_from(Protocol), min_size=1, unique=True),
    second_workload=st.booleans(),
)
@example(profiles=[*NETWORKS], delay="50ms", protocols=[H1, H2, H3], second_workload=True)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whoever_edits_the_experiment_need_not_look_after_the_article(
    tmp_path: Path, profiles: list[str], delay: str, protocols: list[Protocol], second_workload: bool
) -> None:
    tree = edited(profiles, delay, protocols, second_workload=second_workload)
    matrix = load(yaml.safe_dump(tree, sort_keys=False), tmp_path)
    compared = {row.condition_id for row in matrix.published[0].rows if not row.gap}
    same = {f"{name}/article" for name in profiles if name != "delay" or delay != "50ms"}
    assert compared == (same if {H1, H3} <= set(protocols) else set())
    del tree["published"]
    alone = load(yaml.safe_dump(tree, sort_keys=False), tmp_path)
    assert replace(matrix, published=(), source="") == replace(alone, source="")


def test_validating_names_what_is_not_compared_in_a_line_for_each_article(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "matrix.yaml"
    rows = f"clan: {{h1: 1s, h3: 2s}}, far/pages: {{h1: 1s, h3: 2s}}, far: {{{FAR}, h1: 1s, h2: 2s}}"
    other = "  b: {title: B, times: {far: {h1: 1s, h3: 2s}}}\n  c: {title: C, times: {clean: {h1: 1s, h3: 2s}}}\n"
    head, article = with_published(rows).split("published: {a: ")
    file.write_text(f"{head}published:\n  a: {article.strip()[:-1]}\n{other}")
    assert command_validate(argparse.Namespace(matrix=str(file))) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{file}: valid")
    assert lines == [
        "published a, not compared: clan, far/pages (there is no such condition); far/page (the matrix has no h2)",
        "published b, not compared: far/page (no network given, which means a clean one; the profile is not clean)",
    ]


def rows(tmp_path: Path, times: str) -> tuple[PublishedRow, ...]:
    (source,) = load(with_published(times), tmp_path).published
    return source.rows


def test_a_row_may_be_about_any_metric_that_its_workload_compares(tmp_path: Path) -> None:
    assert rows(tmp_path, "clean/page/request_p95_s: {h1: 1s, h3: 2s}, clean/page: {h1: 3s, h3: 4s}") == (
        PublishedRow("clean/page", {"h1": 1.0, "h3": 2.0}, metric="request_p95_s"),
        PublishedRow("clean/page", {"h1": 3.0, "h3": 4.0}),
    )
    (other,) = rows(tmp_path, "clean/page/goodput_bps: {h1: 1mbit, h3: 2kbit}")
    assert (other.values, other.gap) == ({"h1": 1e6, "h3": 2e3}, "its workload has no goodput_bps")


def test_each_statistic_of_an_article_is_a_row(tmp_path: Path) -> None:
    written = "clean: {h1: {mean: 862ms, p90: 1.766s}, h3: {p90: unfinished, mean: 647ms}}"
    assert rows(tmp_path, written) == (
        PublishedRow("clean/page", {"h1": 0.862, "h3": 0.647}, statistic="mean"),
        PublishedRow("clean/page", {"h1": 1.766, "h3": None}, statistic="p90"),
    )


def test_an_article_may_print_figures_only_relative_to_each_other(tmp_path: Path) -> None:
    assert rows(tmp_path, "clean: {h1: {mean: 100%}, h3: {mean: 102.5%}}") == (
        PublishedRow("clean/page", {"h1": 1.0, "h3": 1.025}, statistic="mean", is_relative=True),
    )
    assert rows(tmp_path, "clean/page/goodput_bps: {h1: 100%, h3: unfinished}")[0].is_relative


def test_a_row_may_be_about_any_two_arms_that_are_compared(tmp_path: Path) -> None:
    text = with_published("clean: {h1-six: 1s, h3: 2s}").replace(
        "published", "arms: {h1-six: {protocol: h1, connections: 6}}\ncompare: [[h3, h1]]\npublished"
    )
    assert gaps(load(text, tmp_path)) == {"the matrix does not compare these arms": ["clean/page"]}
    compared = text.replace("[[h3, h1]]", "[[h3, h1], [h3, h1-six]]")
    assert load(compared, tmp_path).published[0].rows == (PublishedRow("clean/page", {"h1-six": 1.0, "h3": 2.0}),)


def test_a_row_that_the_experiment_does_not_measure_says_why_and_needs_no_figures(tmp_path: Path) -> None:
    text = with_published("a page: {unmeasured: needs a browser}, clean: {unmeasured: too dear, h1: 1s, h3: 2s}")
    text = text.replace("title: An article,", "title: An article, source: somewhere,")
    matrix = load(text, tmp_path)
    assert gaps(matrix) == {"needs a browser": ["a page"], "too dear": ["clean/page"]}
    assert [dict(row.values) for row in matrix.published[0].rows] == [{}, {"h1": 1.0, "h3": 2.0}]
    assert matrix.published[0].source == "somewhere"


# What is a mistake


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        ("clean: {h1: 1s, h3: 2s}, clean/page: {h1: 1s, h3: 2s}", "appears twice"),
        ("a/b/c: {h1: 1s, h3: 2s}", "`c` is not a metric"),
        ("a/b/c/d: {h1: 1s, h3: 2s}", "`c/d` contains `/`"),
        ("/page: {h1: 1s, h3: 2s}", "or is empty"),
        ('"\\x1b[31m": {h1: 1s, h3: 2s}', "unprintable"),
        ("clean: {h1: 1s, h4: 2s}", "unknown key `h4`"),
        ("clean: {h1: 1s}", "the figures of two arms"),
        ("clean: {h1: 1s, h3: 2}", "`2` has no unit"),
        ("clean: {h1: 1s, h3: 0s}", "out of range"),
        ("clean: {uplink: {delay: 1ms, jitter: 2ms}, h1: 1s, h3: 2s}", "netem would clip"),
        ("clean: 1s", "a mapping of keys"),
        ("clean/page: {h1: 1s, h3: 2s}, clean/page/total_s: {h1: 1s, h3: 2s}", "appears twice"),
        ("clean/page/ttbf_s: {h1: 1s, h3: 2s}", "`ttbf_s` is not a metric that can be judged"),
        ("clean/page: {h1: 1mbit, h3: 2mbit}", "the figures are in bps"),
        ("clean/page/goodput_bps: {h1: 1s, h3: 2s}", "the figures are in s"),
        ("clean: {h1: 1s, h3: 2mbit}", "times, rates or shares are mixed"),
        ("clean: {h1: 100%, h3: 2s}", "times, rates or shares are mixed"),
        ("clean: {h1: 100%, h3: 0%}", "from 1% to 10000%"),
        ("clean: {h1: {mean: 1s}, h3: 2s}", "different statistics"),
        ("clean: {h1: {mean: 1s}, h3: {meen: 2s}}", "`meen` is not a statistic"),
        ("clean: {h1: {mean: 1s}, h3: {}}", "no figure"),
        ("clean: {h1: {mean: 1}, h3: {mean: 2s}}", "`1` has no unit"),
        ("clean: {h1: [1s], h3: 2s}", "one value is expected"),
        ("clean: {unmeasured: '', h1: 1s, h3: 2s}", "or is empty"),
        ("clean: {h1--six: 1s, h1: 1s, h3: 2s}", "unknown key `h1--six`"),
        ("", "`times` is empty"),
    ],
)
def test_what_can_never_be_set_beside_a_measurement_is_refused(tmp_path: Path, times: str, complaint: str) -> None:
    (found,) = refusal(with_published(times), tmp_path).complaints
    assert complaint in str(found)
