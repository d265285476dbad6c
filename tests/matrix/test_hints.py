"""Hints name the repair: a corpus of typing mistakes, and mistakes that users made."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from headwind.matrix.reader import MatrixError, load_matrix
from tests.matrix_files import MINIMAL, load, refusal
from tests.matrix_typos import OF_EACH, Typo, typos

ENOUGH = 0.9


def test_a_self_check_is_proposed_for_a_list_of_networks_too(tmp_path: Path) -> None:
    text = "protocols: [h1, h2]\nprofiles: [lte]\nworkloads: {a: {requests: 1, connections: 1}}\nselfcheck: true\n"
    assert "did you mean {protocol: h2, again: [lte]}?" in str(refusal(text, tmp_path))


def test_nine_of_ten_typing_mistakes_are_repaired_by_their_hint(tmp_path: Path) -> None:
    corpus = typos()
    assert Counter(typo.kind for typo in corpus) == OF_EACH
    assert len({(typo.file, typo.text) for typo in corpus}) == sum(OF_EACH.values())
    missed = [(typo, answer) for typo in corpus if (answer := unhelpful(typo, tmp_path))]
    for typo, answer in missed:
        sys.stdout.write(f"{typo.kind}: {typo.file}:{typo.line}: {typo.written!r} for {typo.repair!r}\n{answer}\n\n")
    assert len(missed) <= (1 - ENOUGH) * len(corpus)


def unhelpful(typo: Typo, folder: Path) -> str:
    """The answer to a mistake, if it does not name the repair."""
    file = folder / "matrix.yaml"
    file.write_text(typo.text)
    try:
        load_matrix(file)
    except MatrixError as error:
        named = any(typo.is_named(complaint.line, complaint.hint) for complaint in error.complaints)
        return "" if named else str(error)
    return "it was taken without a word"


PROFILES = "profiles: {clean: {}}"
WORKLOADS = "workloads: {page: {requests: 10, connections: 2}}"


@pytest.mark.parametrize(
    ("old", "new", "line", "hint"),
    [
        ("{}", "{preset: LTE}", 3, "did you mean `lte`?"),
        ("{}", "{preset: poor-lte}", 3, "did you mean `lte-poor`?"),
        ("{}", "{preset: Wifi Browser}", 3, "did you mean `browser-wifi`?"),
        ("{}", "lte", 3, "did you mean {preset: lte}?"),
        ("{}", "Poor-LTE", 3, "did you mean {preset: lte-poor}?"),
        ("{}", "{downlink: 30%}", 3, "did you mean {loss: 30%}?"),
        ("{}", "{loss: 30%}", 3, "`loss` belongs in `uplink`, `downlink` or `both`: both: {loss: 30%}"),
        ("{}", "{downlink: {p: 1%}}", 3, "loss: {gemodel: {p: 1%, r: ...}}"),
        ("{}", "{downlink: {latency: 1ms}}", 3, "did you mean `delay`?"),
        ("{}", "{downlink: {bandwidth: 1mbit}}", 3, "did you mean `rate`?"),
        (PROFILES, f"{PROFILES}\ncongestion: BBR", 4, "to change only TCP's"),
        (PROFILES, f"{PROFILES}\ncongestion: {{tcp: BBR}}", 4, "did you mean `bbr`?"),
        (PROFILES, f"{PROFILES}\nbudget: 2min", 4, "`budget` belongs in `repeat`: repeat: {budget: 2min}"),
        (PROFILES, f"{PROFILES}\nrepeat: {{budget: 2m}}", 4, "did you mean `2min`?"),
        (PROFILES, f"{PROFILES}\nrequests: 10", 4, "workloads: {NAME: {requests: 10}}"),
        ("[h1, h3]", "h1, h3", 2, "did you mean [h1, h3]?"),
        ("[h1, h3]", "[h1, HTTP/3]", 2, "did you mean `h3`?"),
        ("connections: 2", "size: 15kB", 4, "`size` is a key of workloads of another kind: add `kind: objects`"),
        ("{}", "{downlink: 5MB/s}", 3, "did you mean {rate: 40mbit}?"),
        ("{}", "{downlink: 5mbps}", 3, "did you mean {rate: 5mbps}?"),
        (PROFILES, f"{PROFILES}\nrepeat: {{max: 5}}", 4, "write a `max` of at least 9, or a fixed number: `repeat: 5`"),
        (PROFILES, f"{PROFILES}\nrepeat: {{min: 100}}", 4, "write a higher `max`, too"),
        (PROFILES, f"{PROFILES}\nrepeat: 9, budget: 5min", 4, "did you mean `repeat: {min: 9, budget: 5min}`?"),
        (PROFILES, f"{PROFILES}\njudge: [total_s, total_s]", 4, "it is judged once"),
        (PROFILES, f"{PROFILES}\njudge: [load_s]", 4, "a metric that it has: write `total_s` or "),
        ("connections: 2", "connections: 2, profiles: [clean]", 4, "conditions: [{profiles: [clean], workloads: "),
        ("connections: 2", "connections: 2, networks: [clean]", 4, "conditions: [{profiles: [clean], workloads: "),
        ("[h1, h3]", "{h1: true, h2: false, h3: true}", 2, "did you mean [h1, h3]?"),
        ("requests: 10,", "path: /4kb, requests: 4 x 9kB,", 4, "did you mean {kind: objects, requests: 4, size: 9kB}?"),
        ("requests: 10, connections: 2", "kind: objects, requests: 10, size: 15 KB", 4, "did you mean `15kB`?"),
        ("connections: 2", "connections: 2, repeat: 3", 4, "at the top of the file, next to `workloads`"),
        (PROFILES, f"{PROFILES}\ntimeout: 1,5s", 4, "did you mean `1.5s`?"),
        (WORKLOADS, "arms: {h3-bbr: {protocol: h3, congestion: bbr}}\n" + WORKLOADS, 4, "remove the arm, or this key"),
        (PROFILES, "profiles:\n  clean: {}\n   far: {}", 5, "indented by 3 spaces, line 4 by 2 spaces"),
        (PROFILES, "profiles:\n   clean: {}\n  far: {}", 4, "indented by 3 spaces, line 5 by 2 spaces"),
        (PROFILES, "profiles:\n clean: {}\n timeout: 9s", 5, "belongs at the top of the file"),
        (PROFILES, "profiles:\nclean: {}", 4, "as one of the `profiles` it belongs below that key"),
        (PROFILES, "profiles:\n clean: {}\n repeat: {max: 9}", 5, "belongs at the top of the file"),
        (PROFILES, "profiles:\n clean: {}\n downlink: {loss: 1%}", 5, "is it indented too little?"),
        (PROFILES, "profiles:\n a:\n  both: {delay: 1ms}\n  b: {downlink: {}}", 6, "it belongs next to `a`"),
    ],
)  # fmt: skip
def test_a_mistake_of_a_user_gets_its_repair(old: str, new: str, line: int, hint: str, tmp_path: Path) -> None:
    text = MINIMAL.replace(old, new, 1)
    assert text != MINIMAL
    hints = [each.hint for each in refusal(text, tmp_path).complaints if each.line == line]
    assert any(hint in each for each in hints), hints


def test_a_key_within_braces_is_not_called_indented(tmp_path: Path) -> None:
    text = MINIMAL.replace("connections: 2", "connections: 2, timeout: 3s", 1)
    (complaint,) = refusal(text, tmp_path).complaints
    assert complaint.hint.endswith("at the top of the file, next to `workloads`")


@pytest.mark.parametrize(
    ("judged", "hint"),
    [
        ("frobs", "allowed: total_s, mean_done_s, request_p50_s, request_p95_s"),
        ("totals", "did you mean `total_s`? allowed: total_s, mean_done_s, request_p50_s, request_p95_s"),
        ("lcp", "did you mean `lcp_s`? each workload needs a metric that it has"),
    ],
)
def test_metrics_of_other_workloads_are_only_named_if_meant(judged: str, hint: str, tmp_path: Path) -> None:
    (complaint,) = refusal(f"{MINIMAL}judge: [{judged}]\n", tmp_path).complaints
    assert complaint.hint.startswith(hint)
    assert "handshake_s" not in complaint.hint


def test_a_list_is_never_cut_before_the_word_that_was_meant(tmp_path: Path) -> None:
    profiles = ", ".join(f"{letter}{number}: {{}}" for number in range(10) for letter in "abcdefghijkl")
    text = MINIMAL.replace("clean: {}", profiles) + "conditions: [{profiles: [L9]}]"
    (complaint,) = refusal(text, tmp_path).complaints
    assert complaint.hint.startswith("did you mean `l9`? allowed: l9, a0, ")
    assert complaint.hint.endswith("and 90 more")


def test_all_mistakes_come_at_once_whatever_else_is_wrong(tmp_path: Path) -> None:
    """A wrong kind hides nothing of its workload, and a wrong key nothing of what does not go together."""
    text = """protocols: [h1, h3]
timeout: 10
profiles: {clean: {}, far: {dwnlink: {}}}
workloads:
  page: {kind: object, requests: 1k, sizes: 15kB}
  feed: {kind: news, path: 3, streams: 0, strange: 1}
compare: [[h1, h9]]
selfcheck: {protocol: h2}
judge: [total_s, total_s]
conditions: [{}, {profiles: [far]}]
"""
    found = {(each.line, each.message.partition(":")[0]) for each in refusal(text, tmp_path).complaints}
    assert found == {
        (2, "`10` has no unit"),
        (3, "unknown key `dwnlink`"),
        (5, "`object` is not a kind of workload"),
        (5, "`1k` is not a plain number"),
        (5, "unknown key `sizes`"),
        (6, "`news` is not a kind of workload"),
        (6, "`3` is not a path on the server"),
        (6, "0 is out of range"),
        (6, "unknown key `strange`"),
        (7, "`h9` is not one of the arms of this file"),
        (8, "`h2` is not one of the protocols of this file"),
        (10, "the condition `far/page` appears twice"),
        (10, "the condition `far/feed` appears twice"),
        (9, "`total_s` appears twice"),
    }


def test_what_is_wrong_below_a_wrong_key_is_said_too(tmp_path: Path) -> None:
    text = """protocols: [h1, h3]
repeat: {budjet: 2m}
profiles: {far: {dwnlink: {dellay: 5, loss: {gmodel: {p: 1, r: 2%}}}}}
workloads: {page: {requests: 40, size: 15 KB}}
conditions: [{profile: [fra]}]
"""
    found = {each.line: set[str]() for each in refusal(text, tmp_path).complaints}
    for each in refusal(text, tmp_path).complaints:
        found[each.line].add(each.message.partition(":")[0])
    assert found == {
        2: {"unknown key `budjet`", "`2m` is not a duration"},
        3: {
            "unknown key `dwnlink`",
            "unknown key `dellay`",
            "unknown key `gmodel`",
            "`5` has no unit",
            "`1` has no unit",
        },
        4: {"unknown key `size`", "`15 KB` is not a size"},
        5: {"unknown key `profile`", "`fra` is not one of the profiles of this file"},
    }


@pytest.mark.parametrize(
    "network",
    [
        "both: {delay: 6 ms, jitter: 2ms}",
        "both: {delay: 20ms, jitter: 12ms, distribution: normal}",
        "both: {rtt: 12ms, jitter: 2ms}",
        "both: {jitter: 2ms}",
        "both: {loss: 1%, gemodel: {p: 1%, r: 25%}}",
        "both: {loss: {random: 1%, spells: {good: 1s, bad: 1s}}}",
        "both: {at: {1s: {loss: 100%}}}",
    ],
)
def test_a_broken_network_hides_no_mistake_of_the_rest(network: str, tmp_path: Path) -> None:
    """What was left of the network without its wrong key was a mistake too, and so nothing else was looked at."""
    text = MINIMAL.replace("clean: {}", f"clean: {{{network}}}").replace("requests: 10, connections: 2", "kind: ttfb")
    more = "arms: {h3-c: {protocol: h3, server: caddy}}\ncompare: [[h3, h1], [h3, h9]]\n"
    _, *rest = (each.source[each.column - 1 :] for each in refusal(text + more, tmp_path).complaints)
    assert rest == ["h9]]", "caddy}}"]


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("", "arms: {h3-x: {protocol: h3, congestion: bbr}, h3-caddy: {protocol: h3}}\ncompare: [[h3-cdy, h1]]",
         ["bbr}", "h3-cdy"]),
        ("", "arms: {h3-x: {protocol: h3, congestion: bbr}, h3-y: {protocol: h3, server: cady}}", ["bbr}", "cady}"]),
        ("", "arms: {h3-x: {protocol: h3, congestion: bbr}}\nselfcheck: {protocol: h4}", ["bbr}", "h4"]),
        ("", "arms: {h3-x: {protocol: h3, congestion: bbr, foo: 1}, h1-y: {protocol: h3}}", ["bbr", "foo", "h3}"]),
        ("", "arms: {h3-x: bbr}\ncompare: [[h3-x, h3], [h3, h9]]", ["bbr}", "h9"]),
        ("", "servers: {my: {imag: x}}\narms: {h1-a: {protocol: h1, server: mi}}", ["my", "imag", "mi}"]),
        ("", "compare: [[h3, h1], h3, [h3, h9]]", ["h3, [", "h9"]),
        ("", "repeat: {budget: 2m, min: 9, max: 3}", ["2m", "9"]),
        (PROFILES, "profiles: {a: {downlink: {rate: 10, delay: 5ms, jitter: 9ms}}}\ncompare: [[h3, h9]]",
         ["10,", "9ms", "h9"]),
        ("{}", "{downlink: {rate: 10, jitter: 9ms}}", ["10,", "9ms"]),
        ("connections: 2", "connections: 20, threads: x", ["20,", "x}"]),
        (WORKLOADS, f"{WORKLOADS.replace('10', '1k')}\nselfcheck: {{protocol: h4}}", ["1k", "h4"]),
    ],
)  # fmt: skip
def test_a_mistake_hides_no_other_that_can_be_judged_without_it(
    old: str, new: str, marked: list[str], tmp_path: Path
) -> None:
    text = MINIMAL.replace(old, new, 1) if old else MINIMAL + new
    found = [each.source[each.column - 1 :] for each in refusal(text, tmp_path).complaints]
    assert len(found) == len(marked)
    assert all(each.startswith(start) for each, start in zip(found, marked, strict=True)), found


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("{}", "{downlink: {delay: 10, jitter: 9ms}}", "10,"),
        ("{}", "{downlink: {lag: 10ms, jitter: 9ms, distribution: normal}}", "lag"),
        ("{}", "{downlink: {loss: 10, ecn: true}}", "10,"),
        (PROFILES, "profiles: {clean: {both: {delay: 40}}}\nselfcheck: {protocol: h1, slower: [clean]}", "40}"),
        (PROFILES, "profiles: {clean: {delay: 40}}\nselfcheck: {protocol: h1, slower: [clean]}", "delay"),
        ("[h1, h3]", "[h1, h3]\narms: {h2-bbr: {protocol: h3, congestion: bbr}}", "bbr}"),
        ("requests: 10, connections: 2", "requests: ten, connections: 2000", "ten"),
        ("connections: 2", "connections: two, threads: 2", "two"),
        ("[h1, h3]", "[h1, h3]\narms: {h3-x: h3}\ncompare: [[h3-x, h3]]", "h3}"),
        ("h3]", "h3]\nservers: {my: {image: x, protocols: [h4]}}\narms: {h1-x: {protocol: h1, server: my}}", "h4"),
        ("[h1, h3]", "[h1, h3]\ncompare: [h3, [h3, h1]]", "h3, ["),
    ],
)  # fmt: skip
def test_a_mistake_brings_no_other_that_its_repair_might_settle(
    old: str, new: str, marked: str, tmp_path: Path
) -> None:
    (complaint,) = refusal(MINIMAL.replace(old, new, 1), tmp_path).complaints
    assert complaint.source[complaint.column - 1 :].startswith(marked)


def test_the_hint_for_an_arm_proposes_nothing_that_an_arm_refuses(tmp_path: Path) -> None:
    text = MINIMAL + "arms: {h3-bbr: {protocol: h3, congestion: bbr}}"
    (complaint,) = refusal(text, tmp_path).complaints
    assert "{" not in complaint.hint


OF_MY_APP = "arms: {h2-my-app: {protocol: h2, server: my-app}}\n"


@pytest.mark.parametrize(
    ("old", "new", "proposed"),
    [
        ("h3]", "h3, h3-caddy]", "arms: {h3-caddy: {protocol: h3, server: caddy}}"),
        ("h3]", "h3, h2-haproxy]", "arms: {h2-haproxy: {protocol: h2, server: haproxy}}"),
        ("h3]", "h3, h2-bbr]", "arms: {h2-bbr: {protocol: h2, congestion: bbr}}"),
        ("h3]", "h3, h2-as-shipped]", "arms: {h2-as-shipped: {protocol: h2, settings: as-shipped}}"),
        ("h3]\n", "h3]\narms: [h3-caddy]\n", "arms: {h3-caddy: {protocol: h3, server: caddy}}"),
        ("h3]\n", "h3]\nservers: [nginx, caddy]\n", "arms: {h3-caddy: {protocol: h3, server: caddy}}"),
        ("h3]\n", "h3]\nservers: [caddy]\n", "arms: {h3-caddy: {protocol: h3, server: caddy}}"),
        ("h3]\n", "h3]\nservers: haproxy\n", "arms: {h3-haproxy: {protocol: h3, server: haproxy}}"),
        ("h3]\n", "h3]\nservers: {caddy: {}}\n", "arms: {h3-caddy: {protocol: h3, server: caddy}}"),
        ("h3]\n", "h3]\nservers: [nginx]\n", "arms: {h3-nginx: {protocol: h3, server: nginx}}"),
        ("h3]\n", "h3]\nservers: [my/app]\n", "servers: {my-app: {image: my/app, protocols: [h1, h2]}}"),
        ("{}", "{jitter: 5ms}", "both: {delay: 20ms, jitter: 5ms}"),
        ("{}", "{jitter: 30ms}", "both: {delay: 60ms, jitter: 30ms}"),
        ("{}", "{distribution: normal}", "both: {jitter: 5ms, delay: 20ms, distribution: normal}"),
        ("{}", "{reordering: 5%}", "both: {delay: 20ms, reorder: 5%}"),
        ("{}", "{ecn: true}", "both: {loss: 1%, ecn: true}"),
    ],
)  # fmt: skip
def test_what_a_hint_proposes_is_accepted_in_its_place(old: str, new: str, proposed: str, tmp_path: Path) -> None:
    text = MINIMAL.replace(old, new, 1)
    (complaint,) = refusal(text, tmp_path).complaints
    assert f" {proposed}" in complaint.hint
    assert ("my-app" in proposed) == (OF_MY_APP.strip() in complaint.hint)
    repaired = MINIMAL.replace("{}", f"{{{proposed}}}") if proposed.startswith("both") else f"{MINIMAL}{proposed}\n"
    load(repaired + OF_MY_APP if "my-app" in proposed else repaired, tmp_path)


def test_a_jitter_is_proposed_for_the_direction_that_has_a_delay(tmp_path: Path) -> None:
    text = MINIMAL.replace("{}", "{jitter: 5ms, uplink: {loss: 1%}, downlink: {delay: 20ms}}", 1)
    (complaint,) = refusal(text, tmp_path).complaints
    assert complaint.hint.endswith(": downlink: {jitter: 5ms, ...}")


@pytest.mark.parametrize(
    ("old", "new", "marked", "hint"),
    [
        ("{}", "{downlink: {loss: 0,5%}}", "0,5%", "did you mean `0.5%`?"),
        ("{}", "{downlink: {loss: 0,5 %, delay: 5ms}}", "0,5 %", "did you mean `0.5%`?"),
        ("{}", "{downlink: {loss: '0,5 %'}}", "'0,5 %'", "did you mean `0.5%`?"),
        ("{}", "{downlink: {rate: 1,5mbit}}", "1,5mbit", "did you mean `1.5mbit`?"),
        ("requests: 10", "requests: 1,000", "1,000", "did you mean `1000`?"),
        ("{clean: {}}", "\n  LTE:{preset: lte}", "{preset", "did you mean `LTE: {preset: lte}`?"),
        ("{clean: {}}", "\n  far:{both: {delay: 1ms}}", "{both", "did you mean `far: {both: {delay: 1ms}}`?"),
        ("{clean: {}}", "\n  clean: {}\n  far:{both: {delay: 1ms}}", "{both", "`far: {both: {delay: 1ms}}`?"),
        ("{clean: {}}", "\n  clean:{}", "clean", "did you mean `clean: {}`?"),
        ("[h1, h3]", "[h1, h3]\ntimeout:5s", "5s", "did you mean `timeout: 5s`?"),
        ("[h1, h3]", "[h1, h3]\ntitle:Far and wide", "Far", "did you mean `title: Far and wide`?"),
        ("[h1, h3]", "[h1, h3]\ntimeout: 1.5 sec", "1.5 sec", "did you mean `1.5s`?"),
        ("[h1, h3]", "[h1, h3]\ntimeout: 1 minute", "1 minute", "did you mean `1min`?"),
        ("{}", "{downlink: {loss: {gemodel: {p, r}}}}", "p,", "a value follows each key: {p: ..., r: ...}"),
        ("{}", "{downlink: {delay}}", "delay}", "its value follows it: `delay: ...`"),
        ("[h1, h3]", "[h1, h2, h3]\ncompare: [h3, h2]", "[h3", "compare: [[h3, h2]]"),
        ("[h1, h3]", "[h1, h2, h3]\ncompare: h3, h2", "h3,", "compare: [[h3, h2]]"),
        ("[h1, h3]", "[h1, h3]\ncongestion: Cubic", "Cubic", "did you mean `cubic`?"),
        ("[h1, h3]", "[h1, {protocol: h3}]", "{protocol", "did you mean `h3`?"),
        ("[h1, h3]", "[h1]\narms: [{protocol: h2, congestion: bbr}]", "[{",
         "arms: {h2-bbr: {protocol: h2, congestion: bbr}}"),
        ("[h1, h3]", "[h1, {protocol: h2, congestion: bbr}]", "{protocol", "is an arm: arms: {h2-bbr: {protocol: h2, "),
        ("{clean: {}}", "[{name: far, both: {delay: 1ms}}]", "[{", "profiles: {far: {both: {delay: 1ms}}}"),
        ("{clean: {}}", "[{far: {both: {delay: 1ms}}}]", "[{", "profiles: {far: {both: {delay: 1ms}}}"),
        (WORKLOADS, "workloads: [{requests: 10, connections: 2}]", "[{", "workloads: {NAME: {requests: 10, connect"),
        ("{}", "{rtt: 100ms}", "rtt", "both: {delay: 50ms}"),
        ("{}", "{both: {rtt: 25ms}}", "rtt", "is two delays: delay: 12.5ms"),
        ("{}", "{downlink: {round-trip: 1s}}", "round-trip", "both: {delay: 0.5s}"),
        ("{}", "{downlink: {loss: 1%, burst: 5}}", "burst", "loss: {gemodel: {p: 0.2%, r: 20%}}"),
        ("clean: {}", "loss: {burst: 4}", "burst", "downlink: {loss: {gemodel: {p: 1%, r: 25%}}}"),
        ("clean: {}", "loss: {both: {loss: {burst: 4}}}", "burst", "the loss: gemodel: {p: 1%, r: 25%}"),
        ("clean: {}", "both: {rtt: 20ms}", "rtt", "is two delays: both: {delay: 10ms}"),
        ("{}", "{downlink: {burst: 4}}", "burst", "loss: {gemodel: {p: 1%, r: 25%}}"),
        ("{}", "{downlink: {loss: {gilbert: {p: 1%, r: 5%}}}}", "gilbert", "did you mean `gemodel`?"),
        ("{}", "{downlink: {gilbert: {p: 1%, r: 5%}}}", "gilbert", "loss: {gemodel: {p: 1%, r: 5%}}"),
        ("{}", "{preset: 3g}", "3g", "did you mean `browser-regular-3g`, `browser-good-3g`, `wpt-3g-slow`, "),
        ("{}", "{preset: wifi}", "wifi", "did you mean `browser-wifi`?"),
        ("{}", "{delay: 1ms, uplink: {loss: 1%}, downlink: {loss: 2%}}", "delay", "both: {delay: 1ms}"),
        ("{}", "{delay: 1ms, uplink: {delay: 2ms}}", "delay", "`both`: downlink: {delay: 1ms}"),
        ("{}", "{delay: 1ms, uplink: {delay: 2ms}, downlink: {delay: 3ms}}", "delay", "have one: remove it"),
        ("requests: 10, connections: 2", "kind: objects, requests: 9, size: 9kB, streams: 3", "streams",
         "`streams` is a key of `kind: streams` and `kind: h2load`; `kind: objects` has none: remove it"),
        ("requests: 10, connections: 2", "kind: objects, requests: 9, size: 9kB, path: /", "path", "remove it"),
        ("requests: 10, connections: 2", "kind: objects, objects: 30, size: 9kB", "objects: 30", "mean `requests`?"),
        ("requests: 10, connections: 2", "objects: 30", "objects", "{kind: objects, requests: 30, size: 15kB}"),
        ("requests: 10", "kind: site, requests: 10", "site", "did you mean `h2load`?"),
        ("requests: 10", "kind: site, size: 9kB, requests: 10", "site", "did you mean `objects`?"),
        ("connections: 2", "connections: 2, think: 9ms", "think", "did you mean `server_delay`?"),
        (WORKLOADS, f"{WORKLOADS}\nthink: 9ms", "think", "workloads: {NAME: {server_delay: 9ms}}"),
        (WORKLOADS, f"{WORKLOADS}\nmore: {{requests: 10, connections: 2}}", "more", "as one of the `workloads`"),
        (f"{PROFILES}\n{WORKLOADS}", "profiles:\n  clean: {}\n  workloads:\n    page: {requests: 1, connections: 1}",
         "workloads", "it belongs at the top of the file, next to `profiles`: is this indented too far?"),
        (WORKLOADS, "workloads:\npage: {requests: 10, connections: 2}", "page", "as one of the `workloads`"),
        ("{}", "{delay, uplink, downlink}", "delay,", "a value follows each key: {delay: ..., uplink: ..., "),
        ("[h1, h3]", "[h1, h1-six]", "h1-six", "arms: {h1-six: {protocol: h1, ...}} with what differs from h1"),
        ("[h1, h3]", "[h1, h3-bbr]", "h3-bbr", "arms: {h3-bbr: {protocol: h3, ...}} with what differs from h3"),
        ("[h1, h3]", "[h1, h2, h3]\narms: {h3-own: {protocol: h3, settings: as-shipped}}\ncompare: [[h3-default, h2]]",
         "h3-default", "name `h3-own`, or define it under `arms`: arms: {h3-default: {protocol: h3, ...}}"),
        ("[h1, h3]", "[h1, h2, h3]\ncompare: [[h3, h2], h3]", "h3]", "each pair is a list: [h3, BASELINE]"),
        ("[h1, h3]", "[h1, h2, h3]\ncompare: [[h3, h2], h3 vs h1]", "h3 vs", "each pair is a list: [h3, h1]"),
        ("[h1, h3]", "[h1, h3]\nname: Far", "name", "did you mean `title`?"),
        ("connections: 2", "connections: 2, streams: 10, size: 10kB", "size",
         "write `path: /bytes/10000` instead: h2load fetches one object, of any size"),
        ("connections: 2", "kind: objects, size: 2kB, connections: {h1: 6, h2: 1, h3: 1}", "{h1: 6",
         "remove it: `objects` opens 6 connections over h1"),
        ("connections: 2", "kind: objects, size: 2kB, connections: {h1: 2, h2: 1}", "{h1: 2",
         "arms: {h1-2: {protocol: h1, connections: 2}, "),
        ("{}", "{downlink: {rate: 8mbit}, downlink: {loss: 1%}}", "downlink: {loss", "is this one `uplink`?"),
        ("{}", "{downlink: {rate: 8mbit}, downlink: {loss: 1%}, uplink: {rate: 1mbit}}", "downlink: {loss",
         "join the two: downlink: {rate: 8mbit, loss: 1%}"),
        ("{}", "{uplink: {rate: 1mbit}, downlink: {rate: 8mbit}, downlink: {rate: 1mbit}}", "downlink: {rate: 1",
         "keep one of the two"),
        ("{}", "{both: {rate: 5mbit}, downlink: {rate: 8mbit}}", "rate: 8mbit", "move the one in `both` to `uplink`"),
    ],
)  # fmt: skip
def test_one_mistake_is_reported_once_at_its_place(old: str, new: str, marked: str, hint: str, tmp_path: Path) -> None:
    text = MINIMAL.replace(old, new, 1)
    assert text != MINIMAL
    (complaint,) = refusal(text, tmp_path).complaints
    assert complaint.source[complaint.column - 1 :].startswith(marked)
    assert hint in complaint.hint


def test_a_key_that_both_directions_have_is_removed_from_both(tmp_path: Path) -> None:
    text = MINIMAL.replace("{}", "{both: {rate: 5mbit}, downlink: {rate: 8mbit}, uplink: {rate: 1mbit}}", 1)
    hints = [each.hint for each in refusal(text, tmp_path).complaints]
    assert hints == ["remove it from `both`: each direction has its own `rate`"] * 2


def test_a_metric_is_not_missed_in_a_workload_with_a_mistake(tmp_path: Path) -> None:
    """`no metric of the workload is judged` came before `unknown key`, which was the cause."""
    text = MINIMAL.replace("requests: 10, connections: 2", "kind: page, objects: 35") + "judge: [request_p95_s]\n"
    assert not any("judge" in each.message for each in refusal(text, tmp_path).complaints)


def test_a_product_of_rate_and_round_trip_that_is_too_large_names_the_largest_rate(tmp_path: Path) -> None:
    text = MINIMAL.replace("{}", "{both: {delay: 300ms}, downlink: {rate: 200mbit}}", 1)
    (complaint,) = refusal(text, tmp_path).complaints
    assert "a rate of at most 106mbit; or `settings: as-shipped`" in complaint.hint


def test_no_place_in_a_list_is_named_like_a_key(tmp_path: Path) -> None:
    text = MINIMAL.replace(PROFILES, "profiles:\n  - clean: {}\n  - far: {}\n  - LTE:")
    assert not any("`2`" in each.hint for each in refusal(text, tmp_path).complaints)


def test_a_rate_without_unit_is_named_under_a_misspelt_direction_as_well(tmp_path: Path) -> None:
    text = MINIMAL.replace("{}", "{down: 12000}", 1)
    assert [each.hint for each in refusal(text, tmp_path).complaints] == [
        "did you mean downlink: {rate: 12000kbit}? its unit is missing: kbit is a guess"
    ]
