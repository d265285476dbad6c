"""Mistakes that newcomers make in a matrix of their own: several networks, a page, arms with congestion control.

Each is one change of a file that is right. `hint` must be in the answer, `mended` is what the change becomes by it.
"""

from __future__ import annotations

from dataclasses import dataclass

OWN = """title: My networks
protocols: [h2, h3]
arms:
  h2-bbr: {protocol: h2, congestion: bbr}
repeat: {min: 9, budget: 3min}
profiles:
  clean: {}
  wifi: {both: {delay: 10ms, rate: 30mbit}}
  poor LTE:
    downlink: {delay: 60ms, loss: 2%, rate: 5mbit}
    uplink: {delay: 60ms, rate: 2mbit}
workloads:
  page: {kind: objects, requests: 40, size: 15kB}
  one: {kind: transfer, size: 1MB}
conditions:
  - {profiles: [clean, wifi], workloads: [page, one]}
  - {profiles: [poor LTE], workloads: [page]}
"""


@dataclass(frozen=True, slots=True)
class Change:
    """`old` in the file became `new`; the one complaint is where `marked` begins, and names the repair in `hint`."""

    old: str
    new: str
    marked: str
    hint: str
    mended: str = ""  # what stands in the place of `new` once the hint is followed; `old` without it

    @property
    def broken(self) -> str:
        """The file with the mistake."""
        return OWN.replace(self.old, self.new, 1)

    @property
    def whole(self) -> str:
        """The file after the repair."""
        return OWN.replace(self.old, self.mended or self.old, 1)


WIFI = "wifi: {both: {delay: 10ms, rate: 30mbit}}"
ARM = "h2-bbr: {protocol: h2, congestion: bbr}"
PAGE = "page: {kind: objects, requests: 40, size: 15kB}"
REPEAT = "repeat: {min: 9, budget: 3min}"
PAIRS = "- {profiles: [clean, wifi], workloads: [page, one]}"
CONDITIONS = OWN[OWN.index("conditions:") :]
POOR = OWN[OWN.index("poor LTE:") : OWN.index("\nworkloads:")]
UPLINK = "uplink: {delay: 60ms, rate: 2mbit}"
NAMES = "profiles:\n  clean: {}"
LTE = "{downlink: {rate: 5mbit, delay: 35ms}, uplink: {rate: 5mbit, delay: 35ms}}"
LTE_DOWN = "{downlink: {rate: 5mbit, delay: 35ms}, uplink: {rate: 12mbit, delay: 35ms}}"
HELSINKI = "{downlink: {delay: 8.3ms, loss: 1%}, uplink: {delay: 8.3ms}}"

BRACKETS = [
    Change(WIFI, WIFI[:-1], "{both", "bracket is not closed: `}` is missing, add it at the end of line 8"),
    Change("[h2, h3]", "[h2, h3", "[h2", "`]` is missing, add it at the end of line 2"),
    Change("workloads: [page]}", "workloads: [page]", "{profiles: [poor",
           "`}` is missing, add it at the end of line 17"),
    Change("workloads: [page]}", "workloads: [page}", "[page",
           "`]` is missing, add it before the `}` of line 17, column 44"),
    Change(WIFI, "wifi: {\n    both: {delay: 10ms, rate: 30mbit}", "{", "`}` is missing, add it at the end of line 9"),
    Change(PAGE, "page: {kind: objects, requests: 40, size: 15kB}}", "}", "this `}` closes nothing, remove it"),
    Change("budget: 3min", "budget: 3min]", "]", "this `]` closes nothing, remove it"),
    Change("clean: {}", "clean: {", "{", "`}` is missing, add it at the end of line 7"),
    Change(WIFI, f"{WIFI} # fast\n  cable: {{both: {{delay: 5ms}}", "{both", "add it at the end of line 9"),
    Change("[h2, h3]", "[h2, h3])", ")", "the value before this is complete, begin a new line here, or remove this"),
    Change("mbit}\nworkloads", "mbit} workloads", "workloads", "begin a new line here"),
    Change("[page, one]", "[page, one])", ")", "`)` is no part of a value or a list, remove it"),
    Change("[page, one]", "p[age, one]", "[age", "this `[` stands within a text, is a comma missing before it"),
    Change("10ms, rate", "10ms rate", "rate",
           "between `delay: 10ms` and `rate: 30mbit`, did you mean `delay: 10ms, rate: 30mbit`?"),
    Change("40, size", "40; size", "size", "`requests: 40, size: 15kB`"),
    Change("40, size", "40\n    size", "size", "`requests: 40, size: 15kB`"),
    Change(WIFI, "wifi: {downlink: {delay: 10ms} uplink: {delay: 9ms}}", "uplink",
           "a comma is missing between `downlink: {...}`",
           "wifi: {downlink: {delay: 10ms}, uplink: {delay: 9ms}}"),
    Change("[h2, h3]", "[h2 h3]", "h2 h3", "is a comma missing? h2, h3"),
    Change(WIFI, "wifi: {both: delay: 10ms}", "delay", "`both: {delay: 10ms}`", "wifi: {both: {delay: 10ms}}"),
    Change(WIFI, "wifi: {both {delay: 10ms}}", "{delay", "a colon is missing after `both`",
           "wifi: {both: {delay: 10ms}}"),
    Change(WIFI, "wifi: (both: {delay: 10ms, rate: 30mbit})", "(both", f"`{WIFI}`"),
]  # fmt: skip

LINES = [
    Change(WIFI, "wifi\n    both: {delay: 10ms}", "", "a colon is missing after `wifi`, did you mean `wifi:`?",
           "wifi:\n    both: {delay: 10ms}"),
    Change("poor LTE:", "poor LTE", "", "did you mean `poor LTE:`?"),
    Change("profiles:\n", "profiles\n", "", "did you mean `profiles:`?"),
    Change("clean: {}", "clean", "", "did you mean `clean: {}`?"),
    Change("wifi: {both", "wifi {both", " {both", f"`{WIFI}`"),
    Change("wifi: {both", "wifi = {both", " = {both", f"`{WIFI}`"),
    Change(REPEAT, f"timeout 30s\n{REPEAT}", " 30s", "did you mean `timeout: 30s`?", f"timeout: 30s\n{REPEAT}"),
    Change("requests: 40", "requests:40", "40", "a space is missing after the colon, did you mean `requests: 40`?"),
    Change("protocol: h2", "protocol:h2", "h2", "did you mean `protocol: h2`?"),
    Change("requests: 40", "requests=40", "40", "did you mean `requests: 40`?"),
    Change("repeat: {", "repeat :{", "{min", f"did you mean `{REPEAT}`?"),
    Change(PAGE, "page:\n    kind: objects\n    requests:40\n    size: 15kB", "40", "did you mean `requests: 40`?"),
    Change(REPEAT, "repeat: min: 9, budget: 3min", "min: 9", f"`{REPEAT}`"),
    Change(PAGE, "page: kind: objects, requests: 40, size: 15kB", "kind", f"`{PAGE}`"),
    Change("title: My networks", "title: Networks: home and away", "Networks",
           'did you mean `title: "Networks: home and away"`?'),
    Change("title: My networks", 'title: "My networks', '"My', 'not closed, add `"` at the end of the text'),
    Change("title: My networks", "title: 'Lisa's networks'", "'s networks", '`title: "Lisa\'s networks"`',
           'title: "Lisa\'s networks"'),
    Change("title: My", "// all of them\ntitle: My", "//", "a comment begins with `#`, did you mean `# all of them`?"),
    Change("  clean: {}", "  // at home\n  clean: {}", "//", "a comment begins with `#`"),
    Change("[h2, h3]", "[h2, h3],", ",", "a comma ends no line, remove it"),
    Change(WIFI, f"{WIFI},", ",", "a comma ends no line, remove it"),
    Change(PAIRS, "- profiles: [clean, wifi], workloads: [page, one]", ", workloads", f"`{PAIRS}`"),
    Change(PAIRS, PAIRS.replace("- ", "-"), "-{", f"a space is missing after the dash, did you mean `{PAIRS}`?"),
    Change(PAIRS, PAIRS.replace("-", "\N{EN DASH}"), "\N{EN DASH}", f"`{PAIRS}`"),
    Change(WIFI, f"- {WIFI}", "-", f"`{WIFI}`"),
    Change("  wifi", "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}wifi", "\N{NO-BREAK SPACE}", "no plain space but U+00A0"),
]  # fmt: skip

GLUED = [
    Change(POOR, "poor LTE {library: lte}", " {library", "a colon is missing after `poor LTE`, "
           "did you mean `poor LTE: {library: lte}`?", "poor LTE: {library: lte}"),
    Change(POOR, "poor LTE{library: lte}", "{library", "`poor LTE: {library: lte}`", "poor LTE: {library: lte}"),
    Change(POOR, "poor LTE = {library: lte}", " = {", "`poor LTE: {library: lte}`", "poor LTE: {library: lte}"),
    Change(POOR, "poor LTE={library: lte}", "={", "`poor LTE: {library: lte}`", "poor LTE: {library: lte}"),
    Change(POOR, "poor LTE:{library: lte}", "{library", "a space is missing after the colon, "
           "did you mean `poor LTE: {library: lte}`?", "poor LTE: {library: lte}"),
    Change(POOR, "poor LTE:{both: {delay: 60ms, rate: 5mbit}}", "{both", "a space is missing after the colon, "
           "did you mean `poor LTE: {both: {delay: 60ms, rate: 5mbit}}`?",
           "poor LTE: {both: {delay: 60ms, rate: 5mbit}}"),
    Change(UPLINK, "uplink {rate: 3mbit}", " {rate", "did you mean `uplink: {rate: 3mbit}`?", "uplink: {rate: 3mbit}"),
    Change("requests: 40", "requests = 30", "30", "did you mean `requests: 30`?", "requests: 30"),
    Change(PAGE, "page:\n    requests = 40\n    kind: objects\n    size: 15kB",
           " = 40", "did you mean `requests: 40`?"),
    Change(PAGE, "page:\n    kind: objects\n    requests=40\n    size: 15kB", "=40", "did you mean `requests: 40`?"),
    Change("[h2, h3]", "{h1, h3}", "{h1", "this must be a list, such as [a, b], did you mean [h1, h3]?", "[h1, h3]"),
    Change("[clean, wifi]", "{clean, wifi}", "{clean", "did you mean [clean, wifi]?"),
    Change("[poor LTE]", "{poor LTE}", "{poor", "did you mean [poor LTE]?"),
    Change(NAMES, "profiles:\n  - clean: {}", "- clean", "a dash among keys that have none, did you mean `clean: {}`?"),
    Change(NAMES, "profiles:\n  - clean:\n      both: {delay: 9ms}", "- clean", "did you mean `clean:`?"),
    Change(NAMES, "profiles:\n  - clean:\n    both: {delay: 9ms}", "- clean", "did you mean `clean:`?"),
    Change("  - {profiles: [poor", "  {profiles: [poor", "{profiles", "a dash is missing, did you mean "
           "`- {profiles: [poor LTE], workloads: [page]}`?"),
    Change("  - {profiles: [poor LTE], workloads: [page]}", "  profiles: [poor LTE]", "profiles: [poor",
           "a dash is missing, did you mean `- profiles: [poor LTE]`?"),
]  # fmt: skip

SIGNS = [
    Change("page: {", "page - {", " - {", f"did you mean `{PAGE}`?"),
    Change("page: {", "page => {", " => {", f"did you mean `{PAGE}`?"),
    Change("page: {", "page := {", " := {", f"did you mean `{PAGE}`?"),
    Change(POOR, "poor LTE -> {library: lte}", " -> {", "`poor LTE: {library: lte}`", "poor LTE: {library: lte}"),
    Change(WIFI, "wifi: both {delay: 10ms, rate: 30mbit}", "both", f"did you mean `{WIFI}`?"),
    Change(WIFI, "wifi: <both: {delay: 10ms, rate: 30mbit}>", "<both", f"did you mean `{WIFI}`?"),
    Change(WIFI, "wifi:\n    both:\n      delay = 10ms\n      rate = 30mbit", "delay = 10ms",
           "did you mean {delay: 10ms, rate: 30mbit}?"),
    Change(WIFI, "wifi:\n    both:\n      delay 10ms\n      rate 30mbit", "delay 10ms",
           "did you mean {delay: 10ms, rate: 30mbit}?"),
    Change(REPEAT, "repeat:\n  min = 9\n  budget = 3min", "min = 9", "did you mean {min: 9, budget: 3min}?"),
    Change("40, size", "40; connections: 6; size", "connections", "`requests: 40, connections: 6, size`"),
    Change("[h2, h3]", "\n  - h2\n  h3", "h3", "a dash is missing, did you mean `- h3`?", "\n  - h2\n  - h3"),
    Change("[h2, h3]", "{h2: true, h3: true}", "{h2", "did you mean [h2, h3]?"),
    Change(f"  {PAIRS}", f"    {PAIRS[2:]}", "{profiles: [clean", f"a dash is missing, did you mean `{PAIRS}`?",
           f"  {PAIRS}"),
    Change(f"  {PAIRS}", "  - profiles: [clean, wifi]\n  workloads: [page, one]", "workloads",
           "this line is indented unlike those around it, begin it below `profiles` of line 16, with 4 spaces",
           "  - profiles: [clean, wifi]\n    workloads: [page, one]"),
    Change(PAIRS, "- [profiles: [clean, wifi], workloads: [page, one]]", "[profiles",
           f"keys stand in braces, not in a list: {PAIRS}"),
    Change(PAIRS, "- (profiles: [clean, wifi], workloads: [page, one])", ", work", f"did you mean `{PAIRS}`?"),
    Change(WIFI, "- name: wifi\n    both: {delay: 10ms}", "- name", "did you mean `wifi:`?",
           "wifi:\n    both: {delay: 10ms}"),
    Change(REPEAT, f"{REPEAT}\ncompare: {{h2, h3}}", "{h2", "did you mean [[h2, h3]]?",
           f"{REPEAT}\ncompare: [[h2, h3]]"),
    Change(REPEAT, f"{REPEAT}\nselfcheck: h3", "h3", "did you mean {protocol: h3, again: [clean]}?",
           f"{REPEAT}\nselfcheck: {{protocol: h3, again: [clean]}}"),
]  # fmt: skip

NETWORKS = [
    Change(WIFI, "wifi: {both: {delay: 35ms, jitter: 50ms}}", "50ms",
           "jitter 50ms is more than the delay 35ms: netem would clip negative delays to zero, write at most 35ms",
           "wifi: {both: {delay: 35ms, jitter: 35ms}}"),
    Change(WIFI, "wifi: {both: {delay: 1.5s, jitter: 400ms, distribution: normal}}", "400ms",
           "a normal jitter of 400ms takes up to 1.6s off the delay 1.5s: netem would clip negative delays to zero, "
           "write at most 375ms", "wifi: {both: {delay: 1.5s, jitter: 375ms, distribution: normal}}"),
    Change(WIFI, "wifi: {both: {delay: 10ms, jitter: 100ms, distribution: pareto}}", "100ms",
           "takes up to 66.663ms off the delay 10ms: netem would clip negative delays to zero, write at most 15ms",
           "wifi: {both: {delay: 10ms, jitter: 15ms, distribution: pareto}}"),
    Change(WIFI, "wifi: {both: {delay: 0ms, jitter: 5ms}}", "5ms", "it needs a delay of at least 5ms",
           "wifi: {both: {delay: 5ms, jitter: 5ms}}"),
    Change(WIFI, "wifi: {library: lte, rate: 5mbit}", "rate",
           f"a profile has `library` or keys of its own; lte with other values is {LTE}",
           f"wifi: {LTE}"),
    Change(WIFI, "wifi: {library: lte, downlink: {rate: 5mbit}}", "downlink", LTE_DOWN, f"wifi: {LTE_DOWN}"),
    Change(WIFI, "wifi: {library: distance-helsinki, downlink: {loss: 1%}}", "downlink", HELSINKI,
           f"wifi: {HELSINKI}"),
    Change("uplink", "upload", "upload", "did you mean `uplink`?"),
    Change("uplink", "upstream", "upstream", "did you mean `uplink`?"),
    Change("downlink", "download", "download", "did you mean `downlink`?"),
    Change("uplink", "client", "client", "did you mean `uplink` (from client to server)?"),
    Change("loss: 2%", "packet_loss: 2%", "packet_loss", "did you mean `loss`?"),
    Change("rate: 5mbit", "rate: 5mbit, buffer: 100", "buffer", "did you mean `queue`?", "rate: 5mbit, queue: 100"),
    Change("rate: 5mbit", "rate: 5mbit, queue: 100ms", "100ms",
           "queue: packets that may wait for the rate; a whole number",
           "rate: 5mbit, queue: 100"),
    Change("delay: 60ms, loss", "delay: 60ms 10ms, loss", "60ms 10ms", "`delay: 60ms, jitter: 10ms`",
           "delay: 60ms, jitter: 10ms, loss"),
    Change("delay: 60ms, loss", "delay: 60ms\N{PLUS-MINUS SIGN}10ms, loss", "60ms\N{PLUS-MINUS SIGN}",
           "`delay: 60ms, jitter: 10ms`",
           "delay: 60ms, jitter: 10ms, loss"),
    Change(WIFI, "wifi: {rate: {down: 30mbit, up: 9mbit}}", "rate",
           "the direction comes first: {downlink: {rate: 30mbit}, uplink: {rate: 9mbit}}",
           "wifi: {downlink: {rate: 30mbit}, uplink: {rate: 9mbit}}"),
    Change(WIFI, "wifi: {bandwidth: {down: 30mbit}}", "bandwidth", "{downlink: {rate: 30mbit}}",
           "wifi: {downlink: {rate: 30mbit}}"),
    Change(WIFI, "wifi: {bandwidth: 30mbit}", "bandwidth", "downlink: {rate: 30mbit}",
           "wifi: {downlink: {rate: 30mbit}}"),
    Change("loss: 2%", "loss: {p: 2%}", "p:", "gemodel: {p: 2%, r: ...}", "loss: {gemodel: {p: 2%, r: 25%}}"),
    Change(WIFI, "wifi: {base: lte}", "base", "did you mean `library`?", "wifi: {library: lte}"),
    Change(WIFI, "wifi: {library: [lte, lte-poor]}", "[lte", "for several write `profiles` with a profile for each"),
    Change(WIFI, "wifi: delay 10ms, rate 30mbit", "delay", "did you mean {both: {delay: 10ms, rate: 30mbit}}?"),
    Change(WIFI, "wifi:\n    - delay: 10ms\n    - rate: 30mbit", "- delay",
           f"keys stand in braces, not in a list: {WIFI}"),
]  # fmt: skip

ARMS = [
    Change(ARM, "h2-bbr: {protocol: h2-bbr}", "h2-bbr}", "did you mean {protocol: h2, congestion: bbr}?", ARM),
    Change("protocol: h2,", "protocol: h2-bbr,", "h2-bbr", "did you mean `h2`?"),
    Change("[h2, h3]", "[h2 (TCP), h3]", "h2 (", "did you mean `h2`?"),
    Change("congestion: bbr", "congestion: {tcp: bbr, quic: cubic}", "{tcp",
           "has one congestion control, TCP's: `congestion: bbr`"),
    Change("congestion: bbr", "congestion: {congestion: bbr, quic: cubic}", "{cong", "TCP's: `congestion: bbr`"),
    Change("congestion: bbr", "tcp: bbr", "tcp", "did you mean `congestion: bbr`?"),
    Change("congestion: bbr", "congestion: bbr, quic: cubic", "quic", "an arm of h2 runs over TCP alone: remove it"),
    Change("congestion: bbr", "congestion: [bbr, cubic]", "[bbr", "for several write `arms` with an arm for each"),
    Change("congestion: bbr", "cc: bbr", "cc", "did you mean `congestion`?"),
    Change("h2-bbr:", "h2_bbr:", "h2_bbr", "did you mean `h2-bbr`?"),
    Change("h2-bbr:", "bbr-h2:", "bbr-h2", "did you mean `h2-bbr`?"),
    Change("h2-bbr:", "bbr:", "bbr:", "did you mean `h2-bbr`?"),
    Change("h2-bbr:", "H2 BBR:", "H2 BBR", "did you mean `h2-BBR`?"),
    Change(ARM, "h2-bbr: {congestion: bbr}", "h2-bbr", "add `protocol: h2`"),
    Change(ARM, "h2-bbr: bbr", "bbr", "did you mean {protocol: h2, congestion: bbr}?"),
    Change(ARM, "h2-bbr: {protocol: h3, congestion: bbr}", "bbr}", "its name says h2: did you mean `protocol: h2`?"),
    Change(ARM, "h2: {protocol: h2, congestion: bbr}", "h2:", "needs a name that says so, such as `h2-bbr`"),
    Change(f"arms:\n  {ARM}", "arms: [h2-bbr]", "[h2-bbr", "arms: {h2-bbr: {protocol: h2, congestion: bbr}}"),
    Change("[h2, h3]", "[h2, h3, h2-bbr]", "h2-bbr",
           "`h2-bbr` is one of the `arms` already, and takes part: remove it here"),
    Change("[h2, h3]", "[h2, h3, h2-reno]", "h2-reno", "arms: {h2-reno: {protocol: h2, congestion: reno}}"),
    Change("[h2, h3]", "[h2, quic]", "quic", "did you mean `h3`?"),
    Change("[h2, h3]", "h2 h3", "h2 h3", "did you mean [h2, h3]?"),
    Change("[h2, h3]", "all", "all", "did you mean [h1, h2, h3]?"),
    Change(REPEAT, f"{REPEAT}\ncongestion: {{h2: bbr}}", "h2: bbr", "did you mean `tcp`?",
           f"{REPEAT}\ncongestion: {{tcp: bbr}}"),
    Change(REPEAT, f"{REPEAT}\ncompare: [h2-bbr vs h2]", "[h2-bbr", "compare: [[h2-bbr, h2]]",
           f"{REPEAT}\ncompare: [[h2-bbr, h2]]"),
    Change(REPEAT, f"{REPEAT}\ncompare: {{h2-bbr: h2, h3: h2}}", "{h2-bbr", "compare: [[h2-bbr, h2], [h3, h2]]",
           f"{REPEAT}\ncompare: [[h2-bbr, h2], [h3, h2]]"),
    Change(REPEAT, f"{REPEAT}\ncompare: [[h2-bbr, h1]]", "h1",
           "`h1` takes no part in this file: add it to `protocols`"),
]  # fmt: skip

WORKLOADS = [
    Change("requests: 40", "count: 40", "count", "did you mean `requests`?"),
    Change("kind: objects", "type: objects", "type", "did you mean `kind`?"),
    Change(PAGE, "page: {requests: 40, parallel: 6}", "parallel", "did you mean `connections`?",
           "page: {requests: 40, connections: 6}"),
    Change(PAGE, "page: {requests: 4, connections: 6}", "6", "at most one for each of them: `connections: 4`",
           "page: {requests: 4, connections: 4}"),
    Change(PAGE, "page: {objects: 40x15kB}", "objects", "{kind: objects, requests: 40, size: 15kB}"),
    Change(PAGE, "page: 40 objects of 15kB", "40", "{kind: objects, requests: 40, size: 15kB}"),
    Change(PAGE, "page: {kind: objects, requests: 40}", "page",
           "size: of each of them, made on demand, such as `15kB`"),
    Change(f"  {PAGE}\n", "  kind: objects\n  requests: 40\n  size: 15kB\n", "kind",
           "are read as names, write a name around them: `NAME: {kind: objects, requests: 40, size: 15kB}`"),
    Change("size: 15kB", "size: [5kB, 15kB]", "[5kB", "for several write `workloads` with a workload for each"),
    Change("workloads:\n", "workload:\n", "workload", "did you mean `workloads`?"),
    Change("profiles:\n", "networks:\n", "networks", "did you mean `profiles`?"),
]  # fmt: skip

RUNS = [
    Change(REPEAT, "repeat: 9\nbudget: 3min", "budget", REPEAT),
    Change(REPEAT, "budget: 3min\nrepeat: 9", "budget", REPEAT),
    Change(REPEAT, f"{REPEAT}\nselfcheck: true", "true", "did you mean {protocol: h2, again: [clean]}?",
           f"{REPEAT}\nselfcheck: {{protocol: h2, again: [clean]}}"),
    Change(REPEAT, f"{REPEAT}\nselfcheck: no", "no", "leave `selfcheck` out: without it there is no self-check",
           REPEAT),
    Change(REPEAT, "repeat: [min: 9, budget: 3min]", "[min", REPEAT),
    Change(REPEAT, "repeat:\n  - min: 9\n  - budget: 3min", "- min", REPEAT),
    Change(REPEAT, "repeat: 3min", "3min", "did you mean {budget: 3min}?", "repeat: {budget: 3min}"),
    Change(REPEAT, "repeat: 9 blocks", "9 blocks", "did you mean `9`?", "repeat: 9"),
    Change(REPEAT, "repeat: 9-60", "9-60", "did you mean {min: 9, max: 60}?", "repeat: {min: 9, max: 60}"),
    Change(REPEAT, "repeat: {blocks: 9}", "blocks", "did you mean `min`?", "repeat: {min: 9}"),
    Change(REPEAT, "time: 3min", "time", "did you mean `budget`? repeat: {budget: 3min}", "repeat: {budget: 3min}"),
    Change(REPEAT, f"{REPEAT}\nserver: nginx", "server", "`server` belongs in `settings`: settings: {server: unbound}",
           f"{REPEAT}\nsettings: {{server: unbound}}"),
    Change(REPEAT, "runs: 9", "runs", "did you mean `repeat`?", "repeat: 9"),
    Change(REPEAT, f"{REPEAT}\njudge: ttfb", "ttfb", "did you mean [ttfb_s]?", f"{REPEAT}\njudge: [total_s, ttfb_s]"),
    Change(REPEAT, f"{REPEAT}\nselfcheck: [clean]", "[clean", "did you mean {again: [clean]}?",
           f"{REPEAT}\nselfcheck: {{again: [clean]}}"),
    Change(CONDITIONS, "conditions: {profiles: [wifi], workloads: [page]}\n", "{profiles",
           "begins with a dash: `- {profiles: [wifi], workloads: [page]}`",
           "conditions:\n  - {profiles: [wifi], workloads: [page]}\n"),
    Change(CONDITIONS, "conditions: [poor LTE/page]\n", "poor LTE", "{profiles: [poor LTE], workloads: [page]}"),
    Change(CONDITIONS, "conditions: [[wifi, page]]\n", "[wifi", "did you mean {profiles: [wifi], workloads: [page]}?"),
    Change(CONDITIONS, "conditions:\n  wifi: [page, one]\n", "wifi", "`- {profiles: [wifi], workloads: [page, one]}`"),
    Change(PAIRS, "- {profiles: all, workloads: [page]}", "all", "leave `profiles` out, which means all of them"),
    Change(PAIRS, "- profiles: [clean, wifi]\n  - workloads: [page, one]", "workloads",
           "is the dash before `workloads` one too many?"),
]  # fmt: skip

EVERY = [*BRACKETS, *LINES, *GLUED, *SIGNS, *NETWORKS, *ARMS, *WORKLOADS, *RUNS]
