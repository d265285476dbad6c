"""A page over several runs says what differs between them and keeps apart what only shares a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from headwind.arm import H1, H2, H3, PLAIN, Arm, Protocol
from headwind.errors import UsageError
from headwind.format import clean
from headwind.metric import Use
from headwind.model import Repetition, SelfCheck
from headwind.report import RunData
from headwind.report.compare.agreement import Accord, accord, change_figures
from headwind.report.compare.differences import Apart, describe, differing_facts, kept_apart
from headwind.report.compare.page import render_several
from headwind.run.codec import State, Status
from headwind.run.data import measured_of
from headwind.servers import Program, own_server
from headwind.site import Site, SiteFile
from headwind.verdicts.changes import changes
from headwind.verdicts.verdict import Verdict
from headwind.workloads.h2load import TOTAL, H2load
from impair.profile import Link, Loss, Profile
from tests.fake import ENVIRONMENT, PROFILES, STARTED_AT, example_matrix, ok, timeout, trials_of
from tests.golden.runs import HOSTILE, RUNS
from tests.matrix_files import load
from tests.pages import parse, section, table, words

DRAWN_AT = STARTED_AT + 7200
KERNEL = {**ENVIRONMENT, "engine": "kernel"}
LOSS_20 = Profile("loss", downlink=Link(loss=Loss(0.2)))
SVG = "{http://www.w3.org/2000/svg}svg"
FEW = (H3, H1)
SEARCH = """
protocols: [h2, h3]
find: {crossover: [h3, h2], along: downlink.loss, from: 0%, to: 10%, within: 1%}
repeat: {max: 100}
profiles: {far: {both: {delay: 20ms}}}
workloads: {page: {requests: 30, connections: 1}}
"""


def run(
    name: str,
    h3_s: float = 1.0,
    *,
    profiles: Sequence[Profile] = PROFILES[:3],
    arms: tuple[Arm, ...] = PLAIN,
    stopped: int = 0,
    environment: Mapping[str, Any] = ENVIRONMENT,
    **more: Any,
) -> RunData:
    """Twenty blocks in which h1 and h2 take 1 s and h3 takes h3_s, give or take; h1's first trials are stopped."""
    matrix = example_matrix(*profiles, repeat=20, arms=arms, title=f"run {name}", **more)
    results = []
    for trial in trials_of(matrix):
        time_s = (h3_s if trial.protocol is Protocol.H3 else 1.0) * (1 + trial.block.index / 1000)
        is_stopped = trial.protocol is Protocol.H1 and trial.block.index < stopped
        results.append(timeout(trial) if is_stopped else ok(trial, time_s))
    status = Status(State.FINISHED, "", STARTED_AT, STARTED_AT + 100)
    return RunData(name, matrix, tuple(results), environment, status)


def page(*runs: RunData) -> Element:
    return parse(render_several(runs, DRAWN_AT))


def rows(root: Element, name: str) -> list[dict[str, str]]:
    """The rows of a section's table, by column."""
    head, *body = table(section(root, name))
    return [dict(zip(head, row, strict=True)) for row in body]


ALL = [golden().data(name) for name, golden in RUNS.items()]
PAGES: dict[str, list[RunData]] = {
    "one": [run("a")],
    "two": [run("a"), run("b", 0.5)],
    "six": [run(name, 0.5 + number / 5) for number, name in enumerate("abcdef")],
    "nothing in common": [run("a", profiles=PROFILES[:1]), run("b", profiles=PROFILES[1:2])],
    "other protocols": [run("a", arms=FEW), run("b", arms=(H2,)), run("c")],
    "without results": [RUNS["killed-at-once"]().data("x"), RUNS["killed-at-once"]().data("y")],
    "hostile": [RUNS["hostile"]().data(HOSTILE[0]), RUNS["hostile"]().data(HOSTILE[4]), ALL[0]],
    "twice the same": [ALL[1], ALL[1]],
    "every golden run": ALL,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed_and_refers_to_nothing_outside_itself(name: str) -> None:
    text = render_several(PAGES[name], DRAWN_AT)
    root = parse(text)
    assert {item.tag for item in root.iter()} & {"script", "link", "img", "iframe", "object", "base", "form"} == set()
    ids = [item.get("id") for item in root.iter() if item.get("id")]
    assert len(ids) == len(set(ids))
    for item in root.iter():
        assert not [key for key, _ in item.items() if key.startswith("on") or key == "style"]
        target = item.get("href") or item.get("src")
        assert target is None or (target.startswith("#") and target[1:] in ids)
        assert set((item.get("aria-labelledby") or "").split()) <= set(ids)
    assert not re.search(r"url\(|@import|https?:", words(next(root.iter("style"))))
    assert "default-src 'none'" in text


@pytest.mark.parametrize("name", PAGES)
def test_the_same_runs_give_the_same_bytes_but_for_the_stamp(name: str) -> None:
    stamp = re.compile('<span id="generated">[^<]*</span>')
    first, later = (render_several(PAGES[name], DRAWN_AT + after_s) for after_s in (0, 86400))
    assert first == render_several(PAGES[name], DRAWN_AT)
    assert first != later
    assert stamp.sub("", first) == stamp.sub("", later)


def test_names_are_text_and_nothing_else() -> None:
    text = render_several(PAGES["hostile"], DRAWN_AT)
    shown = words(parse(text))
    for name in HOSTILE:
        assert " ".join(clean(name).split()) in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff\ufffe]", text)


def test_without_a_run_there_is_no_page() -> None:
    with pytest.raises(UsageError, match="no run given"):
        render_several([], DRAWN_AT)


def test_every_run_is_introduced_by_its_letter() -> None:
    root = page(run("first"), RUNS["in-progress"]().data("second"))
    first, second = rows(root, "runs")
    assert (first["Run"], second["Run"]) == ("A", "B")
    assert first["Title"] == "run first"
    assert first["Id and report"] == "firstfirst/report.html"
    assert (first["Started"], first["Engine"]) == ("2026-11-21 09:35:00 UTC", "uml")
    assert first["Blocks planned"] == "20 blocks of 3 conditions"
    assert first["Result"] == "All 180 trials ran: 180 ok."
    assert second["Result"] == "In progress, 20 of 45 trials: 20 ok."


def test_the_blocks_of_a_search_are_planned_at_each_of_its_values(tmp_path: Path) -> None:
    """It has no minimum, and the page counted the values that had been tried."""
    matrix = load(SEARCH, tmp_path)
    first = [trial for trial in trials_of(matrix) if not trial.block.index and trial.profile.name.endswith(" 0%")]
    results = [ok(trial, 1.0) for trial in first]
    measured, searched = measured_of(matrix, results)
    status = Status(State.FINISHED, "", STARTED_AT, STARTED_AT + 100)
    data = RunData("s", measured, tuple(results), ENVIRONMENT, status, searched=searched)
    assert len(measured.conditions) == 1
    assert rows(page(data, run("a")), "runs")[0]["Blocks planned"] == "up to 100 blocks at each of 21 values"


def test_after_z_come_letters_in_pairs() -> None:
    runs = [run("x", profiles=PROFILES[:1], arms=(H1,))] * 28
    assert [row["Run"] for row in rows(page(*runs), "runs")][24:] == ["Y", "Z", "AA", "AB"]


def test_only_what_differs_is_told_and_of_every_run() -> None:
    adaptive = Repetition(least=20, budget_s=60.0, margin_ratio=0.1)
    other = run("b", environment={**KERNEL, "new": {"fact": True}, "ip": "10.0.0.9"})
    other = replace(other, matrix=replace(other.matrix, repeat=adaptive, seed=8))
    facts = {fact.name: fact.values for fact in differing_facts([run("a"), other, run("c")])}
    assert facts == {
        "blocks": ("20 blocks", "20 to 60 blocks", "20 blocks"),
        "time budget": ("none", "1 min", "none"),
        "margin": ("5%", "10%", "5%"),
        "seed": ("7", "8", "7"),
        "environment → engine": ("uml", "kernel", "uml"),
        "environment → new → fact": ("not noted", "yes", "not noted"),
    }
    shown = rows(page(run("a"), other, run("c")), "differences")
    assert {row["Fact"]: (row["A"], row["B"], row["C"]) for row in shown} == facts


def test_a_long_value_is_written_once() -> None:
    one, other = ({**ENVIRONMENT, "engine": f"{letter}, {'and so on, ' * 9}"} for letter in "xy")
    runs = [run(name, environment=each) for name, each in zip("abcd", (one, other) * 2, strict=True)]
    (row,) = rows(page(*runs), "differences")
    assert [row[letter][:6] for letter in "ABCD"] == ["x, and", "y, and", "as A", "as B"]


def test_runs_that_differ_in_nothing_are_said_to() -> None:
    assert "settings and environment are the same." in words(section(page(run("a"), run("b")), "differences"))


def test_conditions_that_share_only_a_name_are_kept_apart() -> None:
    """30 % and 20 % of loss: the rows of one run never stand beside those of the other."""
    runs = [run("a"), run("b", 0.5, profiles=(PROFILES[0], LOSS_20)), run("c", 0.5)]
    (apart,) = kept_apart(runs)
    assert apart == Apart(
        "condition",
        "loss/article",
        (
            ("↓ loss 30%; 1,000 requests for /, 100 connections, 100 streams, 1 client thread", (0, 2)),
            ("↓ loss 20%; 1,000 requests for /, 100 connections, 100 streams, 1 client thread", (1,)),
        ),
    )
    root = page(*runs)
    notice = words(section(root, "differences").find(".//ul[@class='notices']"))
    assert "loss/article is not the same condition in all runs" in notice
    assert "A, C: ↓ loss 30%" in notice
    assert "B: ↓ loss 20%" in notice
    for name in ("verdicts", "times"):
        lossy = [row for row in rows(root, name) if row["Condition"].startswith("loss article loss")]
        missing = {
            (row["Condition"].split("only in")[1], *(row[run] == "not in this run" for run in "ABC")) for row in lossy
        }
        assert missing == {(" A, C", False, True, False), (" B", True, False, True)}


def test_a_workload_makes_a_condition_another_as_well() -> None:
    small = H2load("article", 1000, 10, 100)
    (apart, *_) = kept_apart([run("a"), run("b", workload=small)])
    assert [text.split("for /, ")[1] for text, _ in apart.kinds] == [
        "100 connections, 100 streams, 1 client thread", "10 connections, 100 streams, 1 client thread",
    ]  # fmt: skip


def test_a_difference_too_small_for_a_table_still_keeps_kept_apart() -> None:
    near = Profile("loss", downlink=Link(loss=Loss(0.3000000001)))
    (apart,) = kept_apart([run("a", profiles=PROFILES[2:3]), run("b", profiles=[near])])
    assert [text.split(";")[0] for text, _ in apart.kinds] == ["↓ loss 30%", "↓ loss 30.00000001%"]


def own_arm(*command: str) -> Arm:
    server = own_server("mine", Program("img:1", ("h1", "h2", "h3"), command=command))
    return Arm("h3-mine", Protocol.H3, server=server)


def test_arms_that_share_only_a_name_are_kept_apart() -> None:
    runs = [run(name, arms=(*PLAIN, own_arm("serve", flag))) for name, flag in (("a", "--a"), ("b", "--b"))]
    root = page(*runs)
    notice = words(section(root, "differences").find(".//ul[@class='notices']"))
    assert "HTTP/3 (mine) is not the same protocol in all runs" in notice
    assert "A: server mine, image img:1, command serve --a, port 443" in notice
    assert "B: server mine, image img:1, command serve --b, port 443" in notice
    name = "server mine \N{RIGHTWARDS ARROW} command"
    (fact,) = rows(root, "differences")
    assert tuple(fact.values()) == (name, "serve --a", "serve --b")
    without = {fact.name: fact.values for fact in differing_facts([runs[0], run("b")])}
    assert without[name] == ("serve --a", "none")


def test_runs_that_differ_only_in_pairs_or_content_are_not_said_to_be_the_same() -> None:
    site = Site("site", (SiteFile("index.html", 5, "ab" * 32),))
    runs = [run("a"), run("b", compare=((H3, H1),)), run("c", content=site)]
    assert {fact.name: fact.values for fact in differing_facts(runs)} == {
        "comparisons": ("every pair", "HTTP/3 against HTTP/1.1", "every pair"),
        "content": ("none", "none", f"1 file, sha256 {site.sha256[:12]}"),
    }


def test_verdicts_stand_side_by_side_and_a_contradiction_is_marked() -> None:
    root = page(run("a", 0.5), run("b", 2.0), run("c", 0.5))
    table_rows = rows(root, "verdicts")
    assert len(table_rows) == 9
    for row in table_rows:
        if row["Comparison"].startswith("HTTP/3"):
            assert row["A"].startswith("sure: h3 2.00x [2.00, 2.00] n=20")
            assert row["B"].startswith(
                f"sure: {row['Comparison'][-3:].replace('1.1', 'h1').replace('P/2', 'h2')} 2.00x [2.00, 2.00] n=20"
            )
            assert row["Together"] == "⚠ contradiction: A and C faster; B slower"
        else:
            assert row["Together"] == "same"
    assert "9 comparisons got a verdict in two runs or more: the same in 3, a contradiction in 6" in words(root)
    assert len(list(section(root, "verdicts").iter(SVG))) == 27


def test_a_comparison_is_found_whatever_the_order_of_protocols_in_a_matrix() -> None:
    first, second = run("a", 0.5, arms=FEW[::-1]), run("b", 0.5, arms=FEW)
    shown = rows(page(first, second), "verdicts")
    assert {row["Comparison"] for row in shown} == {"HTTP/3 against HTTP/1.1"}
    assert {row["Together"] for row in shown} == {"same"}


def test_a_run_that_has_no_data_yet_has_no_say() -> None:
    root = page(run("a", 0.5), run("b", 0.5), replace(run("c"), results=()))
    shown = rows(root, "verdicts")
    assert {(row["C"], row["Together"]) for row in shown} == {
        (
            "unclear: no data n=0 mean completion unclear: no data median request unclear: no data",
            "same",
        )
    }
    assert len(list(section(root, "verdicts").iter(SVG))) == 2 * len(shown)


F, S, T, Q = Verdict.FASTER, Verdict.SLOWER, Verdict.TIE, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], Accord()),
        ([F], Accord()),
        ([F, Q], Accord()),
        ([F, F], Accord("same")),
        ([T, T, Q], Accord("same where sure")),
        ([F, T], Accord("A faster; B tie")),
        ([F, S], Accord("A faster; B slower", is_contradiction=True)),
        ([S, T, F, F], Accord("A slower; B tie; C and D faster", is_contradiction=True)),
        ([F, Verdict.COMPLETES_LESS], Accord("A faster; B completes less often", is_contradiction=True)),
        ([F, Verdict.COMPLETES_MORE], Accord("A faster; B completes more often")),
        ([F, Verdict.SLIGHTLY_SLOWER], Accord()),
    ],
)
def test_only_clear_verdicts_can_contradict(verdicts: list[Verdict], expected: Accord) -> None:
    assert accord(list(zip("ABCD", verdicts, strict=False))) == expected


def test_the_other_metrics_are_enumerated() -> None:
    shown = words(section(page(run("a"), run("b")), "verdicts"))
    assert "Below it the same for the mean completion time and median time per request." in shown


def test_times_are_medians_with_ranges_and_failures() -> None:
    shown = rows(page(run("a", stopped=5), run("b", arms=FEW)), "times")
    first, second, third = shown[:3]
    assert [row["Protocol"] for row in shown[:3]] == ["HTTP/1.1", "HTTP/2", "HTTP/3"]
    assert first["A"] == "1.01 s [1.00 s to > 60 s] 15 of 20 finished, 5 timed out"
    assert (second["A"][:6], second["B"]) == ("1.01 s", "not in this run")
    assert third["B"] == "1.01 s [1.00 – 1.02 s] 20 of 20 finished"


def test_of_two_runs_the_changes_are_those_of_the_comparison_in_the_terminal() -> None:
    before, after = run("a"), run("b", 2.0)
    told = changes(after.matrix, before.latest, after.latest)
    found = {(change.condition.profile.name, change.arm.name, change.metric): change for change in told.arms}
    root = page(before, after)
    shown = rows(root, "times")
    names = {"HTTP/1.1": "h1", "HTTP/2": "h2", "HTTP/3": "h3"}
    assert len(shown) == 9
    for row in shown:
        change = found[row["Condition"].split()[0], names[row["Protocol"]], TOTAL]
        cell = row["B against A, total time"]
        assert cell.startswith(change_figures(change))
        assert cell.endswith("worse" if row["Protocol"] == "HTTP/3" else "the same")
    for row in rows(root, "verdicts"):
        cell = row["Ratio of B against that of A"]
        expected = (
            "▼ 0.50x [0.50, 0.50] h3 worse"
            if row["Comparison"].startswith("HTTP/3")
            else "= 1.00x [1.00, 1.00] the same"
        )
        assert cell.startswith(expected)
    metrics = ", ".join(metric.label for metric in H2load.with_use(Use.JUDGED))
    assert f"From run A to run B: HTTP/3 worse (0.50x): clean/article against h1 and h2 ({metrics}); delay" in words(
        root
    )


def test_what_all_share_is_said_to_be_the_machines() -> None:
    before, after = run("a"), run("b")
    slower = tuple(
        replace(
            each, metrics={key: 2.2 * value if key.endswith("_s") else value for key, value in each.metrics.items()}
        )
        for each in after.results
    )
    root = page(before, replace(after, results=slower))
    assert "All protocols alike, so not counted: the machine was 2.2 times slower" in words(root)
    assert {row["B against A, total time"].rpartition("] ")[2] for row in rows(root, "times")} == {"worse like all"}
    assert {row["Ratio of B against that of A"][:27] for row in rows(root, "verdicts")} == {
        "= 1.00x [1.00, 1.00] the same"[:27]
    }


def test_of_more_than_two_runs_there_are_no_changes() -> None:
    assert set(rows(page(run("a"), run("b"), run("c")), "times")[0]) == {"Condition", "Protocol", "A", "B", "C"}


def test_a_change_is_told_only_of_what_both_runs_have() -> None:
    shown = rows(page(run("a", arms=FEW), run("b", 2.0, profiles=(PROFILES[0], LOSS_20))), "times")
    told = {(row["Condition"].split()[0], row["Protocol"]) for row in shown if row["B against A, total time"] != "–"}
    assert told == {("clean", "HTTP/1.1"), ("clean", "HTTP/3")}


def test_runs_without_a_common_condition_are_shown_and_said_to_have_none() -> None:
    root = page(*PAGES["nothing in common"])
    assert "no condition in common: nothing in them can be compared" in words(section(root, "runs"))
    assert {row["Together"] for row in rows(root, "verdicts")} == {"–"}
    assert root.find(".//section[@id='distributions']") is None


def test_one_run_is_compared_with_nothing() -> None:
    root = page(run("a"))
    assert "nothing to compare" in words(section(root, "runs"))
    assert root.find(".//section[@id='differences']") is None
    assert set(rows(root, "verdicts")[0]) == {"Condition", "Comparison", "A"}


def test_distributions_have_a_curve_for_every_run_that_tried_the_protocol() -> None:
    root = page(run("a"), run("b", arms=FEW), run("c", 2.0))
    charts = list(section(root, "distributions").iter(SVG))
    assert len(charts) == 9
    first, second, third = (words(chart.find("{*}desc")) for chart in charts[:3])
    assert first.endswith("Medians: A 1.01 s, B 1.01 s, C 1.01 s.")
    assert second.endswith("Medians: A 1.01 s, C 1.01 s.")
    assert third.endswith("Medians: A 1.01 s, B 1.01 s, C 2.02 s.")


def test_what_one_run_alone_tried_has_no_distribution() -> None:
    root = page(run("a", arms=FEW), run("b", arms=(H1, H2)))
    names = [words(item) for item in section(root, "distributions").iter("figcaption")]
    assert names == ["HTTP/1.1"] * 3


def test_too_many_trials_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwind.report.compare.page.MOST_PICTURED", 359)
    assert page(run("a"), run("b")).find(".//section[@id='distributions']") is None


def test_a_self_check_that_failed_is_said_of_its_run() -> None:
    """The twin that the network made slower was not slower."""
    checked = run("b", profiles=PROFILES[1:2], selfcheck=SelfCheck(H2, slower=("delay",)))
    (alert,) = page(run("a"), checked).iterfind(".//p[@role='alert']")
    assert words(alert).startswith("⚠ Run B: self-check FAILED: delay/article, h2-slower against h2")


def test_what_the_comparison_cannot_tell_is_said() -> None:
    method = words(section(page(run("a"), run("b")), "method"))
    assert "the runs share no blocks" in method
    assert "the drift of the machine" in method


def test_a_description_names_every_impairment() -> None:
    condition = RUNS["every-impairment"]().matrix.conditions[0]
    assert "↓ loss.gemodel.p 1%" in describe(condition)
    assert "↑ slot.min_delay 10ms" in describe(condition)
    assert describe(RUNS["small"]().matrix.conditions[0]).startswith("unimpaired; 1,000 requests")
