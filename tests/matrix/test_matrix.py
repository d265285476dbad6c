"""matrix.yaml means what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headwind.arm import Congestion
from headwind.matrix.reader import load_matrix
from headwind.model import AUTO, Repetition
from headwind.run.codec import matrix_from_json, matrix_to_json
from headwind.run.differences import differences
from headwind.settings import Settings, Windows
from headwind.workloads.h2load import MOST_STREAMS, H2load
from impair.profile import (
    Corrupt,
    Delay,
    Direction,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    Rate,
    Reorder,
    Slot,
)
from tests.matrix_files import DEFAULT, MINIMAL, NAMED, ROOT, SHIPPED, load, refusal


def downlink(written: str, folder: Path) -> Link:
    """What `downlink: written` means."""
    return load(MINIMAL.replace("clean: {}", f"p: {{downlink: {written}}}"), folder).conditions[0].profile.downlink


# What the shipped files promise


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_every_shipped_matrix_is_valid(file: Path) -> None:
    matrix = load_matrix(file)
    assert len(matrix.arms) >= 2
    assert matrix.title
    assert matrix.source == file.read_text()
    assert matrix.path == str(file)
    assert matrix.lanes == AUTO


@pytest.mark.parametrize(("file", "requests"), [("matrix.yaml", 1000), ("experiments/nginx_quic.yaml", 10_000)])
def test_the_articles_matrices_are_the_articles_eight_networks_with_netem_on_the_responses(
    file: str, requests: int
) -> None:
    matrix = load_matrix(ROOT / file)
    delay, loss, duplicate, corrupt = Delay(0.1, 0.01), Loss(0.3), Duplicate(0.7), Corrupt(0.2)
    assert {condition.profile.name: condition.profile.downlink for condition in matrix.conditions} == {
        "clean": Link(),
        "delay": Link(delay=delay),
        "loss": Link(loss=loss),
        "duplicate": Link(duplicate=duplicate),
        "corrupt": Link(corrupt=corrupt),
        "delay-loss": Link(delay=delay, loss=loss),
        "loss-duplicate": Link(loss=loss, duplicate=duplicate),
        "loss-corrupt": Link(loss=loss, corrupt=corrupt),
    }
    assert {condition.profile.uplink for condition in matrix.conditions} == {Link()}
    assert {condition.workload for condition in matrix.conditions} == {H2load("article", requests, 100, 100)}
    assert matrix.congestion == Congestion("cubic", "cubic")


def test_the_smoke_matrix_is_small() -> None:
    matrix = load_matrix(ROOT / "experiments/smoke.yaml")
    assert len(matrix.conditions) * matrix.repeat.most * len(matrix.arms) <= 18
    for condition in matrix.conditions:
        assert condition.workload.size() <= 200
        assert all(
            isinstance(link.loss, Loss | None) for link in (condition.profile.uplink, condition.profile.downlink)
        )
        assert all(link.loss is None or link.loss.ratio <= 0.05 for link in (condition.profile.downlink,))  # type: ignore[union-attr]
    assert matrix.timeout_s <= 20


@pytest.mark.parametrize(("written", "seconds"), [("500ms", 0.5), ("90s", 90.0), ("1min", 60.0), ("1.5h", 5400.0)])
def test_a_timeout_is_in_seconds_or_minutes(written: str, seconds: float, tmp_path: Path) -> None:
    assert load(f"{MINIMAL}timeout: {written}\n", tmp_path).timeout_s == seconds


def test_more_streams_than_nginx_allows_cannot_be_asked_for() -> None:
    configured = re.findall(r"http[23]_max_concurrent_streams\s+(\d+);", (ROOT / "nginx/nginx.conf").read_text())
    assert [int(each) for each in configured] == [MOST_STREAMS, MOST_STREAMS]


# What the keys mean


def test_every_impairment_arrives_in_si_units(tmp_path: Path) -> None:
    written = """{delay: 100ms, jitter: 10ms, distribution: normal, loss: 30%, duplicate: 0.5%, corrupt: 20%,
        reorder: 25%, rate: 10mbit, slot: {min_delay: 1ms, max_delay: 2500us, max_packets: 5, max_bytes: 9000},
        ecn: true, queue: 50}"""
    assert downlink(written, tmp_path) == Link(
        delay=Delay(0.1, 0.01, "normal"),
        loss=Loss(0.3),
        duplicate=Duplicate(0.005),
        corrupt=Corrupt(0.2),
        reorder=Reorder(0.25),
        rate=Rate(10_000_000),
        slot=Slot(0.001, 0.0025, 5, 9000),
        ecn=True,
        queue_packets=50,
    )


@pytest.mark.parametrize(
    ("written", "link"),
    [
        ("{loss: {random: 1%}}", Link(loss=Loss(0.01))),
        ("{loss: 0%}", Link(loss=Loss(0.0))),
        ("{loss: {gemodel: {p: 1%, r: 20%}}}", Link(loss=GilbertElliott(0.01, 0.2, 1.0, 0.0))),
        ("{loss: {gemodel: {p: 1%, r: 20%, bad: 90%, good: 0.1%}}}", Link(loss=GilbertElliott(0.01, 0.2, 0.9, 0.001))),
        ("{loss: {state: {p13: 5%, p31: 30%}}}", Link(loss=FourState(0.05, 0.3, 0.0, 1.0, 0.0))),
        (
            "{loss: {state: {p13: 5%, p31: 30%, p32: 10%, p23: 40%, p14: 1%}}}",
            Link(loss=FourState(0.05, 0.3, 0.1, 0.4, 0.01)),
        ),
        ("{delay: 10ms, reorder: {ratio: 25%, gap: 5}}", Link(delay=Delay(0.01), reorder=Reorder(0.25, 5))),
        ("{rate: {rate: 1mbit, packet_overhead: -14}}", Link(rate=Rate(1_000_000, -14))),
        (
            "{rate: {rate: 1mbit, packet_overhead: 8, cell_size: 48, cell_overhead: 5}}",
            Link(rate=Rate(1_000_000, 8, 48, 5)),
        ),
        ("{slot: {min_delay: 10ms}}", Link(slot=Slot(0.01, 0.01))),
        ("{limit: 500, ecn: false}", Link(limit_packets=500)),
        ("{}", Link()),
    ],
)
def test_each_way_to_write_an_impairment(tmp_path: Path, written: str, link: Link) -> None:
    assert downlink(written, tmp_path) == link


def test_both_means_each_direction_and_adds_to_what_a_direction_says(tmp_path: Path) -> None:
    text = MINIMAL.replace("clean: {}", "p: {both: {delay: 20ms}, uplink: {rate: 1mbit}, downlink: {loss: 1%}}")
    profile = load(text, tmp_path).conditions[0].profile
    assert profile.uplink == Link(delay=Delay(0.02), rate=Rate(1_000_000))
    assert profile.downlink == Link(delay=Delay(0.02), loss=Loss(0.01))


def test_what_is_left_out_has_the_documented_value(tmp_path: Path) -> None:
    matrix = load(MINIMAL, tmp_path)
    assert (matrix.title, matrix.timeout_s, matrix.repeat, matrix.seed) == ("", 60.0, Repetition(), 1)
    assert matrix.congestion == Congestion("cubic", "cubic")
    assert matrix.conditions[0].workload == H2load("page", 10, 2, streams=1, threads=1, path="/")
    assert {matrix.conditions[0].profile.link(direction) for direction in Direction} == {Link()}


@pytest.mark.parametrize(
    ("written", "congestion"),
    [("cubic", Congestion("cubic", "cubic")), ("{tcp: bbr}", Congestion("bbr")), ("{quic: cubic}", Congestion())],
)
def test_one_congestion_control_is_for_both_transports(tmp_path: Path, written: str, congestion: Congestion) -> None:
    assert load(MINIMAL + f"congestion: {written}\n", tmp_path).congestion == congestion


@pytest.mark.parametrize(
    ("written", "repeat"),
    [
        ("4", Repetition.fixed(4)),
        ("{}", Repetition()),
        ("{min: 12}", Repetition(least=12)),
        ("{max: 30, budget: 2h}", Repetition(most=30, budget_s=7200.0)),
        ("{margin: 2%, confidence: 99%, budget: 90s}", Repetition(margin_ratio=0.02, confidence=0.99, budget_s=90.0)),
        ("{min: 5, max: 5}", Repetition(5, 5)),
    ],
)
def test_repeat_is_a_number_or_bounds(tmp_path: Path, written: str, repeat: Repetition) -> None:
    matrix = load(MINIMAL + f"repeat: {written}\n", tmp_path)
    assert matrix.repeat == repeat
    assert matrix.repeat.is_adaptive == (written != "4")
    assert matrix_from_json(json.loads(json.dumps(matrix_to_json(matrix)))).repeat == repeat


def test_metrics_to_judge_are_named_as_in_files(tmp_path: Path) -> None:
    assert load(MINIMAL, tmp_path).judge is None
    assert load(MINIMAL + "judge: [mean_done_s, total_s]\n", tmp_path).judge == ("mean_done_s", "total_s")


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("judge: [mean_done]", "did you mean `mean_done_s`?"),
        ("judge: [total_s, total_s]", "`total_s` appears twice"),
        ("judge: []", "`judge` is empty"),
        ("judge: [requests_per_s]", "is not a metric that can be judged"),
    ],
)
def test_a_metric_that_cannot_be_judged_is_refused(tmp_path: Path, written: str, complaint: str) -> None:
    assert complaint in str(refusal(MINIMAL + written + "\n", tmp_path))


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("repeat: {min: 9, max: 8}", "min 9 is above max 8"),
        ("repeat: {max: 0}", "out of range"),
        ("repeat: {budget: 10ms}", "not a duration"),
        ("repeat: {budget: 400h}", "out of range"),
        ("repeat: {margin: 0%}", "out of range"),
        ("repeat: {confidence: 100%}", "out of range"),
        ("repeat: {maximum: 8}", "unknown key"),
        ("repeat: some", "not a plain number"),
        ("selfcheck: {again: [clear]}", "did you mean `clean`"),
        ("selfcheck: {protocol: h2}", "`h2` is not one of the protocols"),
        ("selfcheck: {protocol: h3, slower: [clean]}", "no delay and no rate that could be slower"),
    ],
)
def test_what_cannot_be_repeated_or_checked_is_refused(tmp_path: Path, written: str, complaint: str) -> None:
    assert complaint in str(refusal(MINIMAL + written + "\n", tmp_path))


def test_a_self_check_is_for_some_profiles(tmp_path: Path) -> None:
    text = MINIMAL.replace("clean: {}", "clean: {}, far: {both: {delay: 20ms}}")
    matrix = load(text + "selfcheck: {protocol: h3, again: [clean, far], slower: [far]}\n", tmp_path)
    arms = {condition.profile.name: [arm.name for arm in matrix.arms_in(condition)] for condition in matrix.conditions}
    assert arms == {"clean": ["h1", "h3", "h3-again"], "far": ["h1", "h3", "h3-again", "h3-slower"]}
    assert matrix_from_json(json.loads(json.dumps(matrix_to_json(matrix)))).selfcheck == matrix.selfcheck


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        ("", ["a/x", "a/y", "b/x", "b/y"]),
        ("conditions: [{}]", ["a/x", "a/y", "b/x", "b/y"]),
        ("conditions: [{profiles: [b]}]", ["b/x", "b/y"]),
        ("conditions: [{workloads: [y]}]", ["a/y", "b/y"]),
        ("conditions: [{profiles: [b], workloads: [y]}, {profiles: [a], workloads: [y, x]}]", ["b/y", "a/y", "a/x"]),
    ],
)
def test_conditions_are_all_pairs_unless_the_file_names_some(tmp_path: Path, conditions: str, ids: list[str]) -> None:
    assert [condition.id for condition in load(NAMED + conditions, tmp_path).conditions] == ids


@pytest.mark.parametrize(
    "name", ["no", "yes", "null", "~", "1:30", "010", "0x1f", "1e3", "true", "=", "3.10", "2026-01-01"]
)
def test_a_name_stays_as_it_is_written(tmp_path: Path, name: str) -> None:
    text = NAMED.replace("a: {}", f"{name}: {{}}") + f"conditions: [{{profiles: [{name}]}}]"
    assert load(text, tmp_path).conditions[0].profile.name == name


def test_a_name_may_be_in_any_script(tmp_path: Path) -> None:
    text = MINIMAL.replace("clean: {}", "Größe 網 🙂: {}")
    assert load(text, tmp_path).conditions[0].id == "Größe 網 🙂/page"


@pytest.mark.parametrize("prefix", ["\ufeff", "%YAML 1.1\n---\n", "# comment\n\n"])
def test_what_editors_put_in_front_does_no_harm(tmp_path: Path, prefix: str) -> None:
    assert load(prefix + MINIMAL, tmp_path).conditions == load(MINIMAL, tmp_path).conditions


def test_line_ends_of_windows_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_bytes(DEFAULT.replace("\n", "\r\n").encode())
    assert load_matrix(file).conditions == load_matrix(ROOT / "matrix.yaml").conditions


def test_a_budget_bounds_a_run_better_than_a_number_of_trials(tmp_path: Path) -> None:
    text = "protocols: [h1, h2, h3]\nrepeat: {min: 3, max: 1000%s}\nprofiles: {a: {}, b: {}, c: {}, d: {}}\n"
    text += "workloads: {w: {requests: 10, connections: 2}}\n"
    assert load(text % ", budget: 1h", tmp_path).repeat.most == 1000
    assert "a run has at most 10000" in str(refusal(text.replace("{min: 3, max: 1000%s}", "1000"), tmp_path))


def test_settings_are_one_word_or_one_for_each_end(tmp_path: Path) -> None:
    assert load(MINIMAL, tmp_path).settings == Settings(Windows.UNLIMITED, Windows.UNLIMITED)
    shipped = load(MINIMAL + "settings: as-shipped\n", tmp_path)
    assert shipped.settings == Settings(Windows.AS_SHIPPED, Windows.AS_SHIPPED)
    one = load(MINIMAL + "settings: {client: as-shipped}\n", tmp_path)
    assert one.settings == Settings(Windows.UNLIMITED, Windows.AS_SHIPPED)
    for matrix in (shipped, one):
        assert matrix_from_json(matrix_to_json(matrix)).settings == matrix.settings
    assert list(differences(matrix_to_json(shipped), matrix_to_json(one))) == [
        "settings.server: as-shipped -> unlimited"
    ]


def test_a_size_that_differs_is_named_as_it_is_written(tmp_path: Path) -> None:
    written = "{requests: 10, connections: 2}"
    one, other = (
        matrix_to_json(load(MINIMAL.replace(written, f"{{kind: objects, requests: 10, size: {size}}}"), tmp_path))
        for size in ("15kB", "1.5MB")
    )
    assert list(differences(one, other)) == ["workloads.page.size: 15kB -> 1.5MB"]


def test_a_network_that_would_need_larger_windows_is_refused_where_it_is(tmp_path: Path) -> None:
    fits = MINIMAL.replace("clean: {}", "fat: {both: {delay: 300ms}, downlink: {rate: 106mbit}}")
    load(fits, tmp_path)
    large = fits.replace("106mbit", "107mbit")
    (complaint,) = refusal(large, tmp_path).complaints
    assert "8.03 MB" in complaint.message
    assert "8 MB" in complaint.hint
    assert (complaint.line, complaint.column) == (3, large.splitlines()[2].index("107mbit") + 1)
    load(large + "settings: as-shipped\n", tmp_path)  # where windows may bind no network is too large for them


def test_a_misspelt_setting_is_refused_with_what_is_near(tmp_path: Path) -> None:
    (complaint,) = refusal(MINIMAL + "settings: as-shiped\n", tmp_path).complaints
    assert "as-shipped" in complaint.hint


@pytest.mark.parametrize(
    ("written", "lanes"), [("", AUTO), ("lanes: 1\n", 1), ("lanes: 4\n", 4), ("lanes: auto\n", AUTO)]
)
def test_lanes_are_a_number_or_left_to_the_host(written: str, lanes: int, tmp_path: Path) -> None:
    assert load(written + MINIMAL, tmp_path).lanes == lanes


@pytest.mark.parametrize("written", ["0", "65", "many", "-1"])
def test_other_lanes_are_refused_with_what_would_be_right(written: str, tmp_path: Path) -> None:
    said = str(refusal(f"lanes: {written}\n{MINIMAL}", tmp_path))
    assert ":1:" in said
    assert "`auto`" in said


def test_a_quick_look_takes_the_conditions_under_smoke_or_all(tmp_path: Path) -> None:
    matrix = load(NAMED + "smoke: [{profiles: [b], workloads: [x]}]\n", tmp_path)
    short = matrix.in_short()
    assert [condition.id for condition in short.conditions] == ["b/x"]
    assert short.repeat == Repetition.fixed(1)
    assert [condition.id for condition in load(NAMED, tmp_path).in_short().conditions] == ["a/x", "a/y", "b/x", "b/y"]


def test_a_quick_look_at_a_sweep_takes_all_its_values(tmp_path: Path) -> None:
    text = NAMED.replace("a: {}", "a: {downlink: {loss: [1%, 2%]}}") + "smoke: [{profiles: [a], workloads: [x]}]\n"
    assert [condition.id for condition in load(text, tmp_path).in_short().conditions] == ["a 1%/x", "a 2%/x"]


@pytest.mark.parametrize(
    ("smoke", "complaint"),
    [
        ("[]", "`smoke` is empty"),
        ("[{profiles: [c]}]", "`c` is not one of the profiles"),
        ("[{profiles: []}]", "the list is empty"),
        ("[{profiles: [b], workloads: [y]}]", "there is no condition `b/y`"),
        ("{profiles: [a]}", "a list"),
        ("[{profile: [a]}]", "unknown key `profile`"),
    ],
)
def test_a_quick_look_at_what_is_not_there_is_refused(tmp_path: Path, smoke: str, complaint: str) -> None:
    text = f"{NAMED}conditions: [{{profiles: [a]}}, {{profiles: [b], workloads: [x]}}]\nsmoke: {smoke}\n"
    (found,) = refusal(text, tmp_path).complaints
    assert complaint in str(found)
