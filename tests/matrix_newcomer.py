"""Mistakes that newcomers make in their own matrix: several networks, a page, arms with congestion control.

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

TBF_BURST = "remove it: the burst of tc's token bucket has no key"
TC = [  # what other tools have in one value, or call by another name
    Change("loss: 2%", "loss: 2% 25%", "2% 25%", "for bursts write loss: {gemodel: {p: 0.51%, r: 25%}}",
           "loss: {gemodel: {p: 0.51%, r: 25%}}"),
    Change("loss: 2%", "loss: {random: 2%, correlation: 25%}", "correlation",
           "for bursts write loss: {gemodel: {p: 0.51%, r: 25%}}", "loss: {gemodel: {p: 0.51%, r: 25%}}"),
    Change("rate: 30mbit", "rate: 30mbit, burst: 32kbit", "burst", TBF_BURST),
    Change("rate: 30mbit", "rate: 30mbit, burst: 50ms", "burst",
           "write {spells: {good: 1s, bad: 50ms, loss: 100%}}",
           "rate: 30mbit, spells: {good: 1s, bad: 50ms, loss: 100%}"),
    Change("both: {delay: 10ms", "both: {delay: 10ms rtt", "10ms rtt", "a round trip is two delays: both: {delay: 5ms}",
           "both: {delay: 5ms"),
    Change("rate: 30mbit", "rate: 30mbit, queue: fq_codel", "fq_codel", "did you mean `queue: {kind: fq_codel}`?",
           "rate: 30mbit, queue: {kind: fq_codel}"),
    Change("rate: 30mbit", "rate: 30mbit, queue: 64kB", "64kB", "did you mean `43` packets, which have 64kB?",
           "rate: 30mbit, queue: 43"),
    Change("loss: 2%, rate: 5mbit", "loss: 2%, rate: 5mbit/2mbit", "5mbit/2mbit",
           "the direction comes first: {downlink: {rate: 5mbit}, uplink: {rate: 2mbit}}"),
    Change("rate: 30mbit", "rate: lte.trace", "lte.trace", "did you mean `trace: lte.trace`?"),
    Change("wifi: {both: {", "wifi: {server: caddy, both: {", "server",
           "arms name their server: arms: {h3-caddy: {protocol: h3, server: caddy}}"),
    Change("one: {kind: transfer, size: 1MB}", "one: {kind: page, url: 'https://a.example/'}", "url",
           "the lab measures only servers inside its testbed"),
    Change("title: My networks", "title: My networks\ncapture: true", "capture", "lab.py run --capture CONDITION"),
    Change(WIFI, WIFI[:-1] + ", at: {1s: {both: {loss: 100%}, for: 1s}}}", "for", "end it at a later moment of `at`"),
]  # fmt: skip

BRACKETS = [
    Change(WIFI, WIFI[:-1], "{both", "bracket is not closed: `}` is missing, add it at the end of line 8"),
    Change("[h2, h3]", "[h2, h3", "[h2", "`]` is missing, add it at the end of line 2"),
    Change("workloads: [page]}", "workloads: [page]", "{profiles: [poor",
           "`}` is missing, add it at the end of line 17"),
    Change("workloads: [page]}", "workloads: [page}", "[page",
           "`]` is missing, add it before the `}` of line 17, column 44"),
    Change(WIFI, "wifi: {\n    both: {delay: 10ms, rate: 30mbit}", "{", "`}` is missing, add it at the end of line 9"),
    Change(PAGE, "page: {kind: objects, requests: 40, size: 15kB}}", "}", "this `}` closes nothing, remove it"),
    Change("[h2, h3]", "[h2, h3}", "}", "this `}` does not close the `[` before it, did you mean `]`?"),
    Change("budget: 3min", "budget: 3min]", "]", "this `]` closes nothing, remove it"),
    Change("clean: {}", "clean: {", "{", "`}` is missing, add it at the end of line 7"),
    Change(WIFI, f"{WIFI} # fast\n  cable: {{both: {{delay: 5ms}}", "{both", "add it at the end of line 9"),
    Change("[h2, h3]", "[h2, h3])", ")", "the value before this is complete, begin a new line here, or remove this"),
    Change("mbit}\nworkloads", "mbit} workloads", "workloads", "begin a new line here"),
    Change("[page, one]", "[page, one])", ")", "`)` is not part of a value or a list, remove it"),
    Change("[page, one]", "p[age, one]", "[age", "this `[` is inside a text, is a comma missing before it"),
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
    Change("[h2, h3]", "[h2, h3],", ",", "a line does not end with a comma, remove it"),
    Change(WIFI, f"{WIFI},", ",", "a line does not end with a comma, remove it"),
    Change(PAIRS, "- profiles: [clean, wifi], workloads: [page, one]", ", workloads", f"`{PAIRS}`"),
    Change(PAIRS, PAIRS.replace("- ", "-"), "-{", f"a space is missing after the dash, did you mean `{PAIRS}`?"),
    Change(PAIRS, PAIRS.replace("-", "\N{EN DASH}"), "\N{EN DASH}", f"`{PAIRS}`"),
    Change(WIFI, f"- {WIFI}", "-", f"`{WIFI}`"),
    Change("  wifi", "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}wifi", "\N{NO-BREAK SPACE}", "not a plain space but U+00A0"),
]  # fmt: skip

GLUED = [
    Change(POOR, "poor LTE: {profile: lte}", "profile", "did you mean `preset`?", "poor LTE: {preset: lte}"),
    Change(POOR, "poor LTE: {name: lte}", "name", "did you mean `preset`?", "poor LTE: {preset: lte}"),
    Change(POOR, "poor LTE: {preset: wi-fi}", "wi-fi", "did you mean `browser-wifi`?",
           "poor LTE: {preset: browser-wifi}"),
    Change(POOR, "poor LTE: {preset: wlan}", "wlan", "did you mean `browser-wifi`?",
           "poor LTE: {preset: browser-wifi}"),
    Change("loss: 2%", "loss: {share: 2%}", "share", "did you mean `random`?", "loss: {random: 2%}"),
    Change(POOR, "poor LTE {preset: lte}", " {preset", "a colon is missing after `poor LTE`, "
           "did you mean `poor LTE: {preset: lte}`?", "poor LTE: {preset: lte}"),
    Change(POOR, "poor LTE{preset: lte}", "{preset", "`poor LTE: {preset: lte}`", "poor LTE: {preset: lte}"),
    Change(POOR, "poor LTE = {preset: lte}", " = {", "`poor LTE: {preset: lte}`", "poor LTE: {preset: lte}"),
    Change(POOR, "poor LTE={preset: lte}", "={", "`poor LTE: {preset: lte}`", "poor LTE: {preset: lte}"),
    Change(POOR, "poor LTE:{preset: lte}", "{preset", "a space is missing after the colon, "
           "did you mean `poor LTE: {preset: lte}`?", "poor LTE: {preset: lte}"),
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
    Change(POOR, "poor LTE -> {preset: lte}", " -> {", "`poor LTE: {preset: lte}`", "poor LTE: {preset: lte}"),
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
           f"write keys in braces, not in a list: {PAIRS}"),
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
    Change(WIFI, "wifi: {preset: lte, rate: 5mbit}", "rate",
           f"a profile has `preset` or its own keys; lte with other values is {LTE}",
           f"wifi: {LTE}"),
    Change(WIFI, "wifi: {preset: lte, downlink: {rate: 5mbit}}", "downlink", LTE_DOWN, f"wifi: {LTE_DOWN}"),
    Change(WIFI, "wifi: {preset: distance-helsinki, downlink: {loss: 1%}}", "downlink", HELSINKI,
           f"wifi: {HELSINKI}"),
    Change("uplink", "upload", "upload", "did you mean `uplink`?"),
    Change("uplink", "upstream", "upstream", "did you mean `uplink`?"),
    Change("downlink", "download", "download", "did you mean `downlink`?"),
    Change("uplink", "client", "client", "did you mean `uplink` (from client to server)?"),
    Change("loss: 2%", "packet_loss: 2%", "packet_loss", "did you mean `loss`?"),
    Change("rate: 5mbit", "rate: 5mbit, buffer: 100", "buffer", "did you mean `queue`?", "rate: 5mbit, queue: 100"),
    Change("rate: 5mbit", "rate: 5mbit, queue: 100ms", "100ms",
           "did you mean `42` packets, which take 100ms at 5mbit?", "rate: 5mbit, queue: 42"),
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
    Change(WIFI, "wifi: {bandwidth: 30mbit}", "bandwidth", "both: {rate: 30mbit}",
           "wifi: {both: {rate: 30mbit}}"),
    Change("loss: 2%", "loss: {p: 2%}", "p:", "gemodel: {p: 2%, r: ...}", "loss: {gemodel: {p: 2%, r: 25%}}"),
    Change(WIFI, "wifi: {base: lte}", "base", "did you mean `preset`?", "wifi: {preset: lte}"),
    Change(WIFI, "wifi: {preset: [lte, lte-poor]}", "[lte", "for several write `profiles` with a profile for each"),
    Change(WIFI, "wifi: delay 10ms, rate 30mbit", "delay", "did you mean {both: {delay: 10ms, rate: 30mbit}}?"),
    Change(WIFI, "wifi:\n    - delay: 10ms\n    - rate: 30mbit", "- delay",
           f"write keys in braces, not in a list: {WIFI}"),
]  # fmt: skip

IMPOSSIBLE = [
    Change(WIFI, "wifi: {both: {delay: 100s}}", "delay", "no trial over `wifi` can finish within `timeout: 60s`: "
           "`page` takes at least 6 min 40 s, did you mean `100ms`?", "wifi: {both: {delay: 100ms}}"),
    Change(WIFI, "wifi: {both: {rate: 8kbit}}", "rate", "`one` takes at least 16 min 40 s, did you mean `8mbit`?",
           "wifi: {both: {rate: 8mbit}}"),
    Change("delay: 60ms, rate: 2mbit", "delay: 60s, rate: 2mbit", "delay", "did you mean `60ms`?"),
    Change(WIFI, "wifi: {both: {delay: 15ms, jitter: 5s}}", "5s", "did you mean `5ms`?",
           "wifi: {both: {delay: 15ms, jitter: 5ms}}"),
    Change(WIFI, "wifi: {both: {delay: 15ms, jitter: 2s}}", "2s", "did you mean `2ms`? write at most 15ms",
           "wifi: {both: {delay: 15ms, jitter: 2ms}}"),
]  # fmt: skip

ARMS = [
    Change(ARM, "h2-bbr: {protocol: h2-bbr}", "h2-bbr}", "did you mean {protocol: h2, congestion: bbr}?", ARM),
    Change("protocol: h2,", "protocol: h2-bbr,", "h2-bbr", "did you mean `h2`?"),
    Change("[h2, h3]", "[h2 (TCP), h3]", "h2 (", "did you mean `h2`?"),
    Change("congestion: bbr", "congestion: {tcp: bbr, quic: cubic}", "{tcp",
           "has one congestion control, TCP's: `congestion: bbr`"),
    Change("congestion: bbr", "congestion: {congestion: bbr, quic: cubic}", "{cong", "TCP's: `congestion: bbr`"),
    Change("congestion: bbr", "tcp: bbr", "tcp", "did you mean `congestion: bbr`?"),
    Change("congestion: bbr", "congestion: bbr, quic: cubic", "quic", "an arm of h2 runs over TCP only: remove it"),
    Change("congestion: bbr", "congestion: [bbr, cubic]", "[bbr", "for several write `arms` with an arm for each"),
    Change("congestion: bbr", "cc: bbr", "cc", "did you mean `congestion`?"),
    Change("h2-bbr:", "h2_bbr:", "h2_bbr", "did you mean `h2-bbr`?"),
    Change("h2-bbr:", "bbr-h2:", "bbr-h2", "did you mean `h2-bbr`?"),
    Change("h2-bbr:", "bbr:", "bbr:", "did you mean `h2-bbr`?"),
    Change("h2-bbr:", "H2 BBR:", "H2 BBR", "did you mean `h2-BBR`?"),
    Change(ARM, "h2-bbr: {congestion: bbr}", "h2-bbr", "add `protocol: h2`"),
    Change(ARM, "h2-bbr: bbr", "bbr", "did you mean {protocol: h2, congestion: bbr}?"),
    Change(
        ARM, "h2-bbr: {protocol: h3, congestion: bbr}", "bbr}", "its name begins with h2: did you mean `protocol: h2`?"
    ),
    Change(ARM, "h2: {protocol: h2, congestion: bbr}", "h2:", "needs a name that says so, such as `h2-bbr`"),
    Change(f"arms:\n  {ARM}", "arms: [h2-bbr]", "[h2-bbr", "arms: {h2-bbr: {protocol: h2, congestion: bbr}}"),
    Change("[h2, h3]", "[h2, h3, h2-bbr]", "h2-bbr",
           "`h2-bbr` is already one of the `arms`: remove it here"),
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
           "`h1` is not compared in this file: add it to `protocols`"),
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
           "size: of each object, generated on demand, such as `15kB`"),
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
    Change(REPEAT, f"{REPEAT}\nselfcheck: no", "no", "leave `selfcheck` out for no self-check",
           REPEAT),
    Change(REPEAT, "repeat: [min: 9, budget: 3min]", "[min", REPEAT),
    Change(REPEAT, "repeat:\n  - min: 9\n  - budget: 3min", "- min", REPEAT),
    Change(REPEAT, "repeat: 3min", "3min", "did you mean {budget: 3min}?", "repeat: {budget: 3min}"),
    Change(REPEAT, "repeat: 9 blocks", "9 blocks", "did you mean `9`?", "repeat: 9"),
    Change(REPEAT, "repeat: 9-60", "9-60", "did you mean {min: 9, max: 60}?", "repeat: {min: 9, max: 60}"),
    Change(REPEAT, "repeat: {blocks: 9}", "blocks", "did you mean `min`?", "repeat: {min: 9}"),
    Change(REPEAT, "time: 3min", "time", "did you mean `budget`? repeat: {budget: 3min}", "repeat: {budget: 3min}"),
    Change(REPEAT, f"{REPEAT}\nserver: caddy", "server",
           "a server is an arm's: arms: {h2-caddy: {protocol: h2, server: caddy}}",
           REPEAT),
    Change(REPEAT, f"{REPEAT}\nserver: as-shipped", "server",
           "it belongs in `settings`: settings: {server: as-shipped}",
           f"{REPEAT}\nsettings: {{server: as-shipped}}"),
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
    Change(PAIRS, "- {profiles: all, workloads: [page]}", "all", "leave `profiles` out to mean all of them"),
    Change(PAIRS, "- profiles: [clean, wifi]\n  - workloads: [page, one]", "workloads",
           "is the dash before `workloads` one too many?"),
]  # fmt: skip

ONE = "one: {kind: transfer, size: 1MB}"
DOWN = "downlink: {delay: 60ms, loss: 2%, rate: 5mbit}"
CLEAN = "clean: {}"
PAIR = f"{REPEAT}\ncompare: [[h2, h3]]"
SPACE = "this line is indented unlike those around it, indented by 3 spaces, line"
BLOCKS = f"""profiles:
  clean:
    both: {{delay: 5ms}}
  wifi:
    both: {{delay: 10ms}}
  poor LTE:
    both: {{delay: 60ms}}
{OWN[OWN.index("workloads:") :]}"""
PROFILES = OWN[OWN.index("profiles:") :]

FAR = BLOCKS.replace("  poor LTE:\n    both", "    poor LTE:\n    uplink")

INDENTED = [
    Change(f"  {CLEAN}", f"   {CLEAN}", "clean", f"{SPACE} 8 by 2 spaces"),
    Change("  wifi", "   wifi", "wifi", f"{SPACE} 7 by 2 spaces"),
    Change("  poor LTE:", "   poor LTE:", "poor", f"{SPACE} 8 by 2 spaces"),
    Change("  page: {", "   page: {", "page", f"{SPACE} 14 by 2 spaces"),
    Change("    downlink", "     downlink", "downlink", "indented by 5 spaces, line 11 by 4 spaces"),
    Change("    uplink", "     uplink", "uplink", "indented by 5 spaces, line 10 by 4 spaces"),
    Change(PROFILES, BLOCKS.replace("  clean", "   clean"), "clean", f"{SPACE} 9 by 2 spaces", BLOCKS),
    Change(PROFILES, FAR, "poor", "it belongs next to `wifi`: is it indented too far?", BLOCKS),
    Change(PROFILES, BLOCKS.replace("  wifi", "   wifi"), "wifi", f"{SPACE} 7 by 2 spaces", BLOCKS),
    Change(PROFILES, BLOCKS.replace("  poor", "   poor"), "poor", f"{SPACE} 9 by 2 spaces", BLOCKS),
]

SHAPES = [
    Change("[clean, wifi]", "(clean, wifi)", "(clean", "did you mean [clean, wifi]?"),
    Change("[h2, h3]", "(h2, h3)", "(h2", "did you mean [h2, h3]?"),
    Change(REPEAT, f"{REPEAT}\nlanes: {{4}}", "{4}", "did you mean `4`?", f"{REPEAT}\nlanes: 4"),
    Change(REPEAT, f"{REPEAT}\nlanes: [4]", "[4]", "did you mean `4`?", f"{REPEAT}\nlanes: 4"),
    Change(REPEAT, f"{REPEAT}\ntimeout: {{30s}}", "{30s", "did you mean `30s`?", f"{REPEAT}\ntimeout: 30s"),
    Change("title: My networks", "title: {My networks}", "{My", "did you mean `My networks`?"),
    Change("[h2, h3]", "\n- h2\n- h3:", "h3:", "did you mean `h3`?", "\n- h2\n- h3"),
    Change(REPEAT, f"{REPEAT}\ncompare: [{{h2, h3}}]", "[{h2", "did you mean [[h2, h3]]?", PAIR),
    Change(REPEAT, f"{REPEAT}\ncompare: (h2, h3)", "(h2", "did you mean [[h2, h3]]?", PAIR),
    Change(REPEAT, f"{REPEAT}\ncompare: [(h2, h3)]", "[(h2", "compare: [[h2, h3]]", PAIR),
    Change(REPEAT, f"{REPEAT}\ncompare: [h2: h3]", "[h2", "compare: [[h2, h3]]", PAIR),
    Change(REPEAT, f"{REPEAT}\ncompare: [h2 -> h3]", "[h2", "compare: [[h2, h3]]", PAIR),
    Change(REPEAT, f"{REPEAT}\ncompare: [h2 and h3]", "[h2", "compare: [[h2, h3]]", PAIR),
    Change(REPEAT, f"{REPEAT}\ncompare:\n  - {{candidate: h2, baseline: h3}}", "- {", "compare: [[h2, h3]]", PAIR),
    Change(REPEAT, f"{REPEAT}\ncompare: all", "all", "leave `compare` out: by default every pair is compared", REPEAT),
    Change(REPEAT, f"{REPEAT}\ncompare: [[h2, h3, h2-bbr]]", "[h2",
           "each pair is a list: [h2, h3], [h2, h2-bbr], [h3, h2-bbr]",
           f"{REPEAT}\ncompare: [[h2, h3], [h2, h2-bbr], [h3, h2-bbr]]"),
    Change(REPEAT, f"{REPEAT}\ncompare: [[h3, http2]]", "http2", "did you mean `h2`?", PAIR),
    Change("[h2, h3]", "h2 and h3", "h2 and", "did you mean [h2, h3]?"),
    Change("[h2, h3]", "[h2 | h3]", "h2 |", "is a comma missing? h2, h3"),
    Change("[h2, h3]", '["h2, h3"]', '"h2', "is a comma missing? h2, h3"),
    Change("[h2, h3]", "[h2. h3]", "h2.", "is a comma missing? h2, h3"),
    Change(WIFI, f'"{WIFI}"', '"wifi', f"quotes around a key and its value, did you mean `{WIFI}`?"),
    Change(WIFI, "wifi: '{preset: lte}'", "'{", "remove the quotes: {preset: lte}", "wifi: {preset: lte}"),
    Change(WIFI, "wifi: none", "none", "did you mean {}?", "wifi: {}"),
    Change(WIFI, "wifi: ~", "~", "did you mean {}?", "wifi: {}"),
    Change(WIFI, "wifi: netem delay 10ms rate 30mbit", "netem", "did you mean {both: {delay: 10ms, rate: 30mbit}}?"),
    Change(WIFI, "wifi: {both: [10ms, 30mbit]}", "[10ms", "did you mean {delay: 10ms, rate: 30mbit}?"),
    Change(PAGE, "page: [objects, 40, 15kB]", "[objects", "did you mean {kind: objects, requests: 40, size: 15kB}?"),
    Change(PAGE, "page: objects", "objects", "did you mean {kind: objects, requests: ..., size: ...}?"),
    Change("[page, one]}", "[*]}", "*", "to mean all, leave the key out"),
]  # fmt: skip

VALUES = [
    Change("rate: 30mbit", "rate: unlimited", "unlimited", "for a link without a limit remove the key", "limit: 1000"),
    Change("delay: 60ms, loss", "delay: 60ms, jitter: \u00b14ms, loss", "\u00b14ms", "did you mean `4ms`?",
           "delay: 60ms, jitter: 4ms, loss"),
    Change("budget: 3min", "budget: 2 weeks", "2 weeks", "a budget is from 1s to 168h", "budget: 168h"),
    Change(REPEAT, f"{REPEAT}\ntimeout: 0.1 weeks", "0.1 weeks", "did you mean `1008min`?",
           f"{REPEAT}\ntimeout: 1008min"),
    Change("size: 15kB", "size: 1kB-4kB", "1kB-4kB", "all objects have one size; files of your site"),
    Change("kind: transfer", "kind: xfer", "xfer", "did you mean `transfer`?"),
    Change(WIFI, "wifi: {downlink.queue: 50, downlink: {delay: 10ms, rate: 30mbit}}", "downlink.queue",
           "a dot joins no keys: write downlink: {queue: 50, ...}",
           "wifi: {downlink: {queue: 50, delay: 10ms, rate: 30mbit}}"),
    Change("budget: 3min}", "budget: 3min}\ncompare: [clean/wifi]", "[clean",
           "`clean` is a profile: `compare` pairs protocols or arms, in each network, such as [[h3, h2]]",
           "budget: 3min}\ncompare: [[h3, h2], [h2-bbr, h2]]"),
    Change("budget: 3min}", "budget: 3min}\ncompare: [[clean, h2]]", "clean, h2",
           "`clean` is a profile: `compare` pairs protocols or arms, in each network",
           "budget: 3min}\ncompare: [[h3, h2], [h2-bbr, h2]]"),
    Change("loss: 2%", "loss: random 2%", "random", "did you mean `2%`?"),
    Change("rate: 5mbit}", "rate: 5mbit burst 32kbit latency 400ms}", "5mbit burst", "did you mean `5mbit`?"),
    Change("loss: 2%", "loss: gemodel 1% 25%", "gemodel", "did you mean {gemodel: {p: 1%, r: 25%}}?",
           "loss: {gemodel: {p: 1%, r: 25%}}"),
    Change("loss: 2%", "loss: bursty", "bursty", "did you mean {gemodel: {p: 1%, r: 25%}}?",
           "loss: {gemodel: {p: 1%, r: 25%}}"),
    Change("loss: 2%", "loss: {gemodel: [1%, 25%]}", "[1%", "did you mean {p: 1%, r: 25%}?",
           "loss: {gemodel: {p: 1%, r: 25%}}"),
    Change("loss: 2%", "loss: {gemodel: {p: 1%, r: 25%, bad_loss: 80%}}", "bad_loss", "did you mean `bad`?",
           "loss: {gemodel: {p: 1%, r: 25%, bad: 80%}}"),
    Change("loss: 2%", "loss: {gemodel: {p: 1%, r: 25%, good_loss: 1%}}", "good_loss", "did you mean `good`?",
           "loss: {gemodel: {p: 1%, r: 25%, good: 1%}}"),
    Change("loss: 2%", "loss: {gemodel: {p: 1%, r: 25%, 1-h: 80%}}", "1-h", "did you mean `bad`?",
           "loss: {gemodel: {p: 1%, r: 25%, bad: 80%}}"),
    Change("loss: 2%", "reorder: 25% 50%", "25% 50%", "netem's correlation does not keep", "reorder: 25%"),
    Change("loss: 2%", "reorder: 25%, gap: 5", "gap", "reorder: {ratio: 25%, gap: 5}",
           "reorder: {ratio: 25%, gap: 5}"),
    Change(WIFI, "wifi: {both: {delay: {mean: 10ms, jitter: 2ms}}}", "{mean",
           "did you mean `delay: 10ms, jitter: 2ms`?", "wifi: {both: {delay: 10ms, jitter: 2ms}}"),
    Change("delay: 60ms, loss", "delay: 50ms..70ms, loss", "50ms..", "did you mean `delay: 60ms, jitter: 10ms`?",
           "delay: 60ms, jitter: 10ms, loss"),
    Change("delay: 60ms, loss", "delay: 50-70ms, loss", "50-70", "did you mean `delay: 60ms, jitter: 10ms`?",
           "delay: 60ms, jitter: 10ms, loss"),
    Change("loss: 2%", "distribution: normal", "normal", "add `jitter`, or remove it", "jitter: 5ms"),
    Change(WIFI, "wifi: {both: {reorder: 25%}}", "25%", "add `delay`, or remove it",
           "wifi: {both: {delay: 5ms, reorder: 25%}}"),
    Change("loss: 2%", "loss: 2%, ecn: yes", "yes", "did you mean `true`?", "loss: 2%, ecn: true"),
    Change("loss: 2%", "loss: 2%, ecn: 0", "0, rate", "did you mean `false`?", "loss: 2%, ecn: false"),
    Change("budget: 3min", "budget: 00:03:00", "00:03", "did you mean `3min`?"),
    Change(REPEAT, f"{REPEAT}\ntimeout: 1:30", "1:30", "did you mean `90s`?", f"{REPEAT}\ntimeout: 90s"),
    Change("rate: 5mbit}", "rate: 500bit}", "500bit", "did you mean `500kbit`?"),
    Change("rate: 5mbit}", "rate: 3-5mbit}", "3-5mbit", "for a network of each value write `rate: [3mbit, 5mbit]`"),
    Change("loss: 2%", "loss: 1..3%", "1..3%", "for a network of each value write `loss: [1%, 3%]`"),
    Change("delay: 60ms, loss", "delay: 60ms, jitter: 25%, loss", "25%", "did you mean `15ms`, 25% of the delay?"),
    Change("delay: 60ms, loss", "delay: 60ms 10ms distribution normal, loss", "60ms 10ms",
           "did you mean `delay: 60ms, jitter: 10ms, distribution: normal`?",
           "delay: 60ms, jitter: 10ms, distribution: normal, loss"),
    Change("loss: 2%", "reorder: 25% gap 5", "25% gap", "did you mean `reorder: {ratio: 25%, gap: 5}`?",
           "reorder: {ratio: 25%, gap: 5}"),
    Change("loss: 2%", "loss: state 1% 10%", "state", "did you mean {state: {p13: 1%, p31: 10%}}?",
           "loss: {state: {p13: 1%, p31: 10%}}"),
    Change("loss: 2%", "slot: 800us 10ms", "800us", "did you mean {min_delay: 800us, max_delay: 10ms}?",
           "slot: {min_delay: 800us, max_delay: 10ms}"),
    Change("loss: 2%", "loss: [%0, %2]", "%0", "loss: [0%, 2%]", "loss: [0%, 2%]"),
    Change(WIFI, "wifi: {both: {delay: [10ms, 20ms], loss: [1%, 2%]}}", "[1%", "only one key of a profile may"),
    Change("size: 15kB", "size: 15MB", "15MB",
           "over `wifi` and `poor LTE` can finish within the `timeout`, did you mean `15kB`?"),
    Change("delay: 60ms, loss", "delay: 60m, loss", "60m", "did you mean `60ms`?"),
    Change("loss: 2%", "reorder: 2% 50%", "2% 50%", "did you mean `reorder: 2%`? netem's correlation", "reorder: 2%"),
    Change("loss: 2%", "corrupt: 0.1% 25%", "0.1% 25%", "did you mean `corrupt: 0.1%`?", "corrupt: 0.1%"),
    Change("loss: 2%", "reorder: 2%, correlation: 25%", "correlation", "remove it: netem's", "reorder: 2%"),
    Change("rate: 5mbit}", "rate: {rate: 5mbit, overhead: 14}}", "overhead", "did you mean `packet_overhead`?",
           "rate: {rate: 5mbit, packet_overhead: 14}}"),
    Change(WIFI, "wifi: {both: {rate 30mbit}}", "rate", "did you mean `rate: 30mbit`?", "wifi: {both: {rate: 30mbit}}"),
    Change("loss: 2%", "reorder: 2%, duplicate 1%", "duplicate", "did you mean `duplicate: 1%`?",
           "reorder: 2%, duplicate: 1%"),
    Change(WIFI, "wifi: {both: {delay 10ms, rate 30mbit}}", "delay", "{delay: 10ms, rate: 30mbit}"),
    Change(ARM, "h3-as-shipped: h3", "h3", "did you mean {protocol: h3, settings: as-shipped}?",
           "h3-as-shipped: {protocol: h3, settings: as-shipped}"),
    Change(ARM, "h2-as-shipped: as-shipped", "as-shipped", "did you mean {protocol: h2, settings: as-shipped}?",
           "h2-as-shipped: {protocol: h2, settings: as-shipped}"),
    Change(ARM, "h2-reno: h2", "h2", "did you mean {protocol: h2, congestion: reno}?",
           "h2-reno: {protocol: h2, congestion: reno}"),
    Change("min: 9", "min: 9.0", "9.0", "did you mean `9`?"),
]  # fmt: skip

KEYS = [
    Change(ONE, "one: {kind: transfer, size: 1MB, requests: 1}", "requests",
           "`requests` is a key of `kind: objects` and `kind: page`; `kind: transfer` has none: remove it"),
    Change(ONE, "one: {kind: transfer, size: 1MB, url: https://a.example/b}", "url",
           "the lab measures only servers inside its testbed"),
    Change(PAGE, "page: {kind: objects, requests: 40, size: 15kB, url: /}", "url",
           "`kind: objects` has none: remove it"),
    Change(PAGE, "page: {requests: 40, connections: 6, path: https://a.example/b}", "https",
           "the lab fetches from its own server: a path such as `/`", "page: {requests: 40, connections: 6, path: /}"),
    Change(ARM, f"{ARM}\n  h1-six: {{protocol: h1, connections: 6}}", "6}",
           "`connections: 6` in the workload `page` is for all arms; or leave `one` to a separate matrix file"),
    Change("size: 15kB", "size: 15kB, connections: {h1: 6, h2: 1}", "{h1",
           "arms: {h1-6: {protocol: h1, connections: 6}, h2-1: {protocol: h2, connections: 1}}"),
    Change(PROFILES[: PROFILES.index("workloads:")], "profiles:\n  - {name: wifi, both: {delay: 10ms}}\n", "- {",
           "profiles: {wifi: {both: {delay: 10ms}}}"),
    Change("size: 15kB", "size: 15kB, protocol: h2", "protocol", "did you mean `protocols`? it belongs at the top"),
    Change("title: My networks", "title: My networks\ndate: 2026-11-23", "date", "unknown key `date`, allowed: title"),
    Change("title: My networks", "description: My networks", "description", "did you mean `title`?"),
    Change(WIFI, "wifi: {preset: clean}", "clean", "`clean` is a profile of this file: write its keys out here"),
    Change("rate: 5mbit", "rate: 5OOkbit", "5OO", "did you mean `500kbit`?", "rate: 500kbit"),
    Change("delay: 10ms", "delay: lOms", "lO", "did you mean `10ms`?"),
    Change("loss: 2%", "loss: o.2%", "o.2", "did you mean `0.2%`?", "loss: 0.2%"),
    Change(WIFI, "wifi: {library: lte}", "library", "did you mean `preset`?", "wifi: {preset: lte}"),
    Change("kind: objects", "kind: browser", "browser", "did you mean `page`?", "kind: page"),
    Change(ARM, "h2-bbr: {protocol: h2, kind: objects}", "kind", "belongs in an entry: workloads: {NAME: {kind: "),
    Change("rate: 30mbit", "speed: 16mbit", "speed", "did you mean `rate`?", "rate: 16mbit"),
    Change("delay: 10ms", "delay: 15sm", "15sm", "did you mean `15ms`?", "delay: 15ms"),
    Change("rate: 30mbit", "rate: 0kbit", "0kbit", "for a link without a limit remove the key", "limit: 1000"),
    Change("delay: 10ms, ", "delay: 10ms,, ", ", ", "there are two commas, remove one"),
    Change(REPEAT, "repeat: until decided", "until", "a whole number from 1 to 1000"),
]  # fmt: skip

REFUSED = [
    Change("size: 15kB", "size: 15GB", "15GB", "is out of range; an object has 1B to 64MiB"),
    Change("size: 15kB", "size: 1GiB", "1GiB", "is out of range; an object has 1B to 64MiB"),
    Change(REPEAT, f"{REPEAT}\ntimeout: 2d", "2d", "is out of range; a timeout is from 0.1s to 86400s"),
    Change("min: 9", "min: 9, margin: 0.05", "0.05", "has no unit, 5%?", "min: 9, margin: 5%"),
    Change("min: 9", "min: 9, confidence: 0.95", "0.95", "has no unit, 95%?", "min: 9, confidence: 95%"),
    Change(REPEAT, f"{REPEAT}\nsmoke: true", "true", "[a, b], leave `smoke` out to mean all of them"),
    Change(REPEAT, f"{REPEAT}\nselfcheck: {{again: true}}", "true", "allowed: clean, wifi, poor LTE",
           f"{REPEAT}\nselfcheck: {{again: [clean]}}"),
    Change(REPEAT, f"{REPEAT}\njudge: [goodput]", "goodput",
           "did you mean `goodput_bps`? each workload needs a metric that it has: ",
           f"{REPEAT}\njudge: [goodput_bps, total_s]"),
    Change(REPEAT, f"{REPEAT}\njudge: [total_s, lcp_s]", "lcp_s", "no workload of this file has `lcp_s`, remove it",
           f"{REPEAT}\njudge: [total_s]"),
    Change(REPEAT, f"{REPEAT}\njudge: [goodput_bps]", "[goodput",
           "each workload needs a metric that it has: add `total_s` or `mean_done_s`",
           f"{REPEAT}\njudge: [goodput_bps, mean_done_s]"),
]  # fmt: skip

LOOK_ALIKE = [
    Change("wifi: {both", "\u3000wifi: {both", "\u3000", "not a plain space but U+3000"),
    Change("[clean, wifi]", "[clean\uff0cwifi]", "clean", "is a comma missing? clean, wifi"),
    Change("min: 9", "min: \uff19", "\uff19", "did you mean `9`?"),
    Change("budget: 3min}", "budget: 3min}\nseed: 5;", ";", "`;` does not end a value, remove it",
           "budget: 3min}\nseed: 5"),
    Change("budget: 3min}", "budget: 3min}\nseed: 5,", ",", "`,` does not end a value, remove it",
           "budget: 3min}\nseed: 5"),
    Change("budget: 3min}", "budget: 3min}\nlanes: 3 // three", "// three", "did you mean `3 # three`?",
           "budget: 3min}\nlanes: 3 # three"),
    Change("budget: 3min}", "budget: 3min}\nlanes:\t3", "\t", "a tab separates nothing in YAML, use a space",
           "budget: 3min}\nlanes: 3"),
    Change("budget: 3min}", "budget: 3min}\nlanes: Auto", "Auto", "did you mean `auto`?",
           "budget: 3min}\nlanes: auto"),
    Change("budget: 3min}", "budget: 3min}\ntime_limit: 2min", "time_limit", "did you mean `timeout`?",
           "budget: 3min}\ntimeout: 2min"),
    Change("rate: 30mbit", "rate: 0", "0", "for a link without a limit remove the key", "limit: 1000"),
    Change(CLEAN, "clean: clean", "clean", "did you mean {}?"),
    Change(CLEAN, "clean: []", "[]", "did you mean {}?"),
    Change("[clean, wifi]", "[clean, page]", "page", "`page` is one of the workloads"),
    Change("size: 15kB", "bytes: 15kB", "bytes", "did you mean `size`?"),
    Change("rate: 30mbit", "rate: 30mbit, buffer_size: 50", "buffer_size", "did you mean `queue`?"),
    Change("{protocol: h2, c", "{protocol: TCP, c", "TCP", "did you mean `h2`? it runs over TCP"),
    Change("  wifi: {", "\u00a0 wifi: {", "\u00a0", "not a plain space but U+00A0, type a plain one"),
    Change("budget: 3min", "budget:\u00a03min", "\u00a0", "not a plain space but U+00A0"),
    Change("{delay: 10ms, ", "{delay: 10ms,\u2009", "\u2009", "not a plain space but U+2009"),
    Change("budget: 3min}", "budget: 3min}\u00a0", "\u00a0", "not a plain space but U+00A0"),
    Change("title: My networks", "title: My\u202fnetworks", "\u202f", "not a plain space but U+202F"),
    Change("repeat:", "re\u200bpeat:", "\u200b", "cannot be seen: U+200B, remove it"),
    Change("delay: 10ms", "delay: 10\u00adms", "\u00ad", "cannot be seen: U+00AD, remove it"),
    Change("profiles:\n", "\ufeffprofiles:\n", "\ufeff", "cannot be seen: U+FEFF, remove it"),
    Change("title: My", "title\uff1aMy", "\uff1a", "not a plain `:` but U+FF1A"),
    Change("protocols: [h2, h3]", "protocols:\n  \u2013 h2\n  \u2013 h3", "\u2013", "did you mean [h2, h3]?"),
    Change("min: 9", "min: 9x", "9x", "did you mean `9`?"),
]  # fmt: skip

COMMAND = "tc qdisc add dev eth0 root netem delay 100ms"
BOTH = "did you mean {both: {delay: 100ms, loss: 1%}}? a command of tc impairs one direction"
BOTH_WIFI = "wifi: {both: {delay: 100ms, loss: 1%}}"

COMMANDS = [
    Change(WIFI, f"wifi: {COMMAND} loss 1%", "tc qdisc", BOTH, BOTH_WIFI),
    Change(WIFI, f"wifi: sudo {COMMAND} loss 1%", "sudo", BOTH, BOTH_WIFI),
    Change(WIFI, f"wifi:\n    - {COMMAND} loss 1%", "- tc", BOTH, BOTH_WIFI),
    Change(WIFI, f"wifi: {{tc: {COMMAND[3:]} loss 1%}}", "tc", BOTH, BOTH_WIFI),
    Change(WIFI, "wifi: {netem: {delay: 100ms, loss: 1%}}", "netem", BOTH, BOTH_WIFI),
    Change(WIFI, f"wifi: {{downlink: {COMMAND} loss 1%}}", "tc", "did you mean {delay: 100ms, loss: 1%}?",
           "wifi: {downlink: {delay: 100ms, loss: 1%}}"),
    Change(WIFI, "wifi: {downlink: {netem: delay 100ms}}", "netem", "did you mean downlink: {delay: 100ms}?",
           "wifi: {downlink: {delay: 100ms}}"),
    Change(WIFI, f"wifi: {COMMAND} 10ms 25% distribution normal", "tc",
           "{delay: 100ms, jitter: 10ms, distribution: normal}}? a command of tc impairs one direction: for only one "
           "write `downlink` or `uplink`; netem's correlation has no key",
           "wifi: {both: {delay: 100ms, jitter: 10ms, distribution: normal}}"),
    Change(WIFI, f"wifi: {COMMAND} loss 2% 25%", "tc", "for bursts write loss: {gemodel: {p: 0.51%, r: 25%}}",
           "wifi: {both: {delay: 100ms, loss: {gemodel: {p: 0.51%, r: 25%}}}}"),
    Change(WIFI, f"wifi: {COMMAND} loss gemodel 1% 25% 80% 1%", "tc",
           "loss: {gemodel: {p: 1%, r: 25%, bad: 80%, good: 1%}}",
           "wifi: {both: {loss: {gemodel: {p: 1%, r: 25%, bad: 80%, good: 1%}}}}"),
    Change(WIFI, f"wifi: {COMMAND} reorder 25% gap 5", "tc", "reorder: {ratio: 25%, gap: 5}",
           "wifi: {both: {delay: 100ms, reorder: {ratio: 25%, gap: 5}}}"),
    Change(WIFI, "wifi: tc qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms", "tc",
           "did you mean {both: {rate: 1mbit, queue: 34}}?", "wifi: {both: {rate: 1mbit, queue: 34}}"),
    Change(WIFI, "wifi: tc qdisc add dev eth0 root handle 1: netem delay 100ms loss 1%", "tc", BOTH, BOTH_WIFI),
    Change(WIFI, f"wifi: {{command: {COMMAND} loss 1%}}", "command", BOTH, BOTH_WIFI),
    Change(WIFI, "wifi: tc qdisc add dev eth0 root sfq perturb 10", "tc",
           "options of tc are keys here, such as {both: {delay: 100ms, loss: 1%}}", BOTH_WIFI),
]  # fmt: skip

TTFB = "one: {kind: ttfb, session: early}"
WORDS = [
    Change("rate: 30mbit", "bw: 30mbit", "bw", "did you mean `rate`?"),
    Change("rate: 30mbit", "bandwidth: 30mbit", "bandwidth", "did you mean `rate`?"),
    Change("rate: 30mbit", "rate: 30mbit, queue: codel", "codel", "did you mean `queue: {kind: fq_codel}`?",
           "rate: 30mbit, queue: {kind: fq_codel}"),
    Change("rate: 30mbit", "rate: 30mbit, qdisc: {kind: fq_codel}", "qdisc", "did you mean `queue`?",
           "rate: 30mbit, queue: {kind: fq_codel}"),
    Change("rate: 30mbit", "rate: 30mbit, queue: red", "red",
           "did you mean `queue: {kind: red, packets: 200, min: 20, max: 60}`?",
           "rate: 30mbit, queue: {kind: red, packets: 200, min: 20, max: 60}"),
    Change("rate: 30mbit", "rate: 30mbit, queue: 2bdp", "2bdp",
           "did you mean `100` packets, which are 2bdp at 30mbit and a round trip of 20ms?",
           "rate: 30mbit, queue: 100"),
    Change("rate: 5mbit", "rate: 5mbit, queue: 1 BDP", "1 BDP", "did you mean `50` packets", "rate: 5mbit, queue: 50"),
    Change(WIFI, "wifi: {both: {rate: 30mbit, queue: bdp}}", "bdp",
           "a queue is a number of packets, such as `queue: 100`", "wifi: {both: {rate: 30mbit, queue: 100}}"),
    Change("rate: 30mbit", "rate: 30mbit, queue: large", "large",
           "such as `queue: 100`, or a discipline, such as `queue: {kind: fq_codel}`",
           "rate: 30mbit, queue: {kind: fq_codel}"),
    Change(ONE, "one: {transfer: {size: 1MB}}", "transfer", "did you mean {kind: transfer, size: 1MB}?"),
    Change(ONE, "one: {transfer: {path: /1mb.bin}}", "transfer",
           "did you mean {kind: transfer, size: ...}? it has no `path`"),
    Change(ONE, "one: {ttfb: {session: early}}", "ttfb", "did you mean {kind: ttfb, session: early}?", TTFB),
    Change(ONE, "one: {objects: {requests: 4, size: 1kB}}", "objects",
           "did you mean {kind: objects, requests: 4, size: 1kB}?", "one: {kind: objects, requests: 4, size: 1kB}"),
    Change(ONE, "one: {kind: ttfb, session: 0-rtt}", "0-rtt", "did you mean `early`?", TTFB),
    Change(ONE, "one: {kind: ttfb, session: full}", "full", "did you mean `new`?", "one: {kind: ttfb, session: new}"),
    Change(ONE, "one: {kind: ttfb, session: 1-rtt}", "1-rtt", "did you mean `new` or `resumed`?",
           "one: {kind: ttfb, session: resumed}"),
    Change(ONE, "one: {kind: ttfb, 0-rtt: true}", "0-rtt", "did you mean `session: early`?", TTFB),
    Change(ONE, f"{ONE[:-1]}, early_data: true}}", "early_data",
           "sessions are measured by kind ttfb: {kind: ttfb, session: early}", TTFB),
    Change(REPEAT, f"{REPEAT}\nsessions: 0-rtt", "sessions", "workloads: {NAME: {kind: ttfb, session: early}}", REPEAT),
    Change("[h2, h3]", "[h2c, h3]", "h2c", "did you mean `h2`? every protocol of the lab runs over TLS"),
    Change("[h2, h3]", "[h2, h2c, h3]", "h2c", "remove it: every protocol of the lab runs over TLS"),
    Change("protocol: h2,", "protocol: h2c,", "h2c", "did you mean `h2`?"),
]  # fmt: skip

PLAIN = f"protocols: [h2, h3]\narms:\n  {ARM}\n"
OF_H2 = "arms:\n  h2-cubic: {protocol: h2, congestion: cubic}\n  h2-bbr: {protocol: h2, congestion: bbr}\n"
OF_ARMS = f"{OF_H2}  h3: {{protocol: h3}}\n"
NAMED = [
    Change(f"{NAMES}\n  {WIFI}\n  {POOR}", "profiles: [clean, lte]", "[clean",
           "each name has its keys: profiles: {clean: {...}, lte: {preset: lte}}"),
    Change(PLAIN, "arms: [h2-cubic, h2-bbr, h3]\n", "[h2-cubic", "arms: {h2-cubic: {protocol: h2, congestion: cubic}, "
           "h2-bbr: {protocol: h2, congestion: bbr}, h3: {protocol: h3}}", OF_ARMS),
    Change(PLAIN, "arms: [h2, h3]\n", "[h2", "are `protocols: [h2, h3]`", "protocols: [h2, h3]\n"),
    Change(PLAIN, f"{OF_ARMS}compare: [[h3, h2]]\n", "compare",
           "name `h2-cubic` or `h2-bbr` instead, or add `protocols: [h2]`", f"{OF_ARMS}compare: [[h3, h2-bbr]]\n"),
    Change(PLAIN, f"{OF_ARMS}selfcheck: {{protocol: h2, again: [clean]}}\n", "selfcheck",
           "name `h2-cubic` or `h2-bbr` instead, or add `protocols: [h2]`",
           f"{OF_ARMS}selfcheck: {{protocol: h2-bbr, again: [clean]}}\n"),
    Change(PLAIN, f"{OF_H2}  http3: {{protocol: h3}}\n", "http3",
           "an arm that sets nothing is one of the `protocols`: protocols: [h3]",
           f"protocols: [h3]\n{OF_H2}"),
    Change(ARM, "http2: {protocol: h2, congestion: bbr}", "http2", "did you mean `h2-bbr`?"),
]  # fmt: skip

QUEUE = "rate: 30mbit, queue: "
SPELLS = "spells: {good: 2s, bad: 200ms, loss: 50%}"
BURSTS = [
    Change(WIFI, "wifi: {both: 12000}", "12000", "`12000` has no unit: for a rate write {rate: 12000kbit}",
           "wifi: {both: {rate: 12000kbit}}"),
    Change(WIFI, "wifi: {downlink: 12.5}", "12.5", "`12.5` has no unit: for a rate write {rate: 12.5mbit}",
           "wifi: {downlink: {rate: 12.5mbit}}"),
    Change("rate: 30mbit", f"{QUEUE}{{kind: fifo, limit: 100}}", "limit", "did you mean `packets`?",
           f"{QUEUE}{{kind: fifo, packets: 100}}"),
    Change("rate: 30mbit", f"{QUEUE}{{limit: 100}}", "limit", "did you mean `packets`?", f"{QUEUE}{{packets: 100}}"),
    Change("rate: 30mbit", f"{QUEUE}{{size: 100}}", "size", "did you mean `packets`?", f"{QUEUE}{{packets: 100}}"),
    Change("rate: 30mbit", f"{QUEUE}{{fifo: 100}}", "fifo", "did you mean {kind: fifo, packets: 100}?",
           f"{QUEUE}{{kind: fifo, packets: 100}}"),
    Change("rate: 30mbit", f"{QUEUE}{{pie: {{target: 20ms}}}}", "pie", "did you mean {kind: pie, target: 20ms}?",
           f"{QUEUE}{{kind: pie, target: 20ms}}"),
    Change("loss: 2%", "spells: {every: 2s, bad: 200ms, loss: 50%}", "every", "did you mean `good`?", SPELLS),
    Change("loss: 2%", "spells: {good: 2s, duration: 200ms, loss: 50%}", "duration", "did you mean `bad`?", SPELLS),
    Change("loss: 2%", "spells: {good: 2s, bad: 200ms, bad_loss: 50%}", "bad_loss", "did you mean `loss`?", SPELLS),
    Change("loss: 2%", "bursts: {every: 2s, for: 200ms, loss: 50%}", "bursts", f"write {{{SPELLS}}}", SPELLS),
    Change(WIFI, "wifi: {bursts: {every: 2s, for: 200ms, loss: 50%}}", "bursts", f"write {{downlink: {{{SPELLS}}}}}",
           f"wifi: {{downlink: {{{SPELLS}}}}}"),
    Change("loss: 2%", "loss: {random: 50%, burst: 200ms}", "burst",
           "for a mean loss of 50% in bursts of 200ms in place of `loss` write spells: {good: 200ms, bad: 200ms, ",
           "spells: {good: 200ms, bad: 200ms, loss: 100%}"),
    Change("loss: 2%", "loss: 2%, burst: 300ms", "burst", "for a mean loss of 2% in bursts of 300ms in place of `loss` "
           "write spells: {good: 14.7s, bad: 300ms, loss: 100%}", "spells: {good: 14.7s, bad: 300ms, loss: 100%}"),
    Change("loss: 2%", "loss: {gemodel: {p13: 1%, p31: 25%}}", "p13",
           "`p13` and `p31` belong in `state`: state: {p13: 1%, p31: 25%}", "loss: {state: {p13: 1%, p31: 25%}}"),
    Change("loss: 2%", "loss: {state: {p: 1%, r: 25%}}", "p:",
           "`p` and `r` belong in `gemodel`: gemodel: {p: 1%, r: 25%}", "loss: {gemodel: {p: 1%, r: 25%}}"),
    Change("loss: 2%", "loss: 2%, mtu: 1280", "mtu", "no key sets the MTU: each link takes packets of up to 1500 byt"),
    Change(REPEAT, f"{REPEAT}\nmtu: 1280", "mtu", "no key sets the MTU"),
    Change(REPEAT, f"{REPEAT}\nipv6: true", "ipv6", "the test links have IPv4 only, and no key changes that"),
    Change(REPEAT, f"{REPEAT}\nparallel: 2", "parallel",
           "did you mean `lanes`? maximum number of parallel testbeds; or workloads: {NAME: {connections: 2}}",
           f"{REPEAT}\nlanes: 2"),
    Change(PAGE, "page: {kind: h2load, requests: 30, connections: 3, size: 12kB}", "size", "`size` is a key of `kind: "
           "objects`; `kind: h2load` has none: write `path: /bytes/12000` instead",
           "page: {kind: h2load, requests: 30, connections: 3, path: /bytes/12000}"),
    Change(PAGE, "page: {kind: objects, requests: 40, size: 15kB, stages: [{duration: 30s, target: 10}]}", "stages",
           "there are no ramps: `connections` is the same for the whole trial; a network that changes during it has "),
    Change(REPEAT, f"{REPEAT}\nstages: [{{duration: 30s, target: 10}}]", "stages", "there are no ramps"),
    Change(REPEAT, f"{REPEAT}\nserver: apache", "server",
           "the lab has nginx, caddy, haproxy and nghttpd; another one is your own image: servers: {apache: "
           "{image: IMAGE, protocols: [h2]}} and arms: {h2-apache: {protocol: h2, server: apache}}"),
    Change(ARM, "h2-own: {protocol: h2, server: apache}", "apache", "another one is your own image: servers: "
           "{apache: {image: IMAGE, protocols: [h2]}}"),
    Change("loss: 2%", "spells: 200ms", "200ms", "bursts have a mean length, a mean time between them and a loss: "
           "spells: {good: 1s, bad: 200ms, loss: 100%}", "spells: {good: 1s, bad: 200ms, loss: 100%}"),
    Change(WIFI, "wifi: {spells: 200ms}", "spells", "{downlink: {spells: {good: 1s, bad: 200ms, loss: 100%}}}",
           "wifi: {downlink: {spells: {good: 1s, bad: 200ms, loss: 100%}}}"),
    Change("loss: 2%", "loss: {gemodel: {p: 1%, r: 25%, h: 20%}}", "h:", "the share that arrives: write `bad: 80%`",
           "loss: {gemodel: {p: 1%, r: 25%, bad: 80%}}"),
    Change("loss: 2%", "loss: {gemodel: {p: 1%, r: 25%, k: 99%}}", "k:", "the share that arrives: write `good: 1%`",
           "loss: {gemodel: {p: 1%, r: 25%, good: 1%}}"),
    Change("loss: 2%", "loss: .15", ".15", "`.15` has no unit, 0.15% or 15%?", "loss: 15%"),
    Change(PAGE, "page: {kind: page, images: 40, size: 15kB}", "images", "did you mean `requests`?",
           "page: {kind: page, requests: 40, size: 15kB}"),
    Change(PAGE, "page: {kind: page, images: 40 x 15kB}", "images", "`images` belongs in `parts`: parts: {images: 40 x",
           "page: {kind: page, parts: {images: 40 x 15kB}}"),
    Change(PAGE, "page: {kind: objects, requests: 40 x 15kB}", "40 x", "did you mean `requests: 40, size: 15kB`?"),
    Change("size: 15kB", "size: [15kB, 30kB]", "[15kB", "with a workload for each; or fetch files of your site"),
]  # fmt: skip

LIVE = "the lab measures only servers inside its testbed: copy the site to a folder (`content: FOLDER`"
SITE = "https://site.example"
GET = "every request is a GET"
TITLE = "title: My networks\n"
ELSEWHERE = [  # what other tools have, and a matrix has nowhere
    *(Change(TITLE, f"{TITLE}{key}: {SITE}\n", key, LIVE) for key in ("url", "site", "target", "website", "server")),
    Change(TITLE, f"{TITLE}urls: [{SITE}, {SITE}/b]\n", "urls", LIVE),
    Change(TITLE, f"{TITLE}host: site.example\n", "host", LIVE),
    Change(TITLE, f"{TITLE}content: {SITE}\n", "https", LIVE),
    Change(ONE, f"one: {{kind: page, page: {SITE}}}", "page", LIVE),
    Change(ONE, f"one: {{kind: page, path: {SITE}}}", "https", "a folder, which `content: FOLDER` names"),
    Change(ONE, f"one: {{kind: page, site: {SITE}}}", "site", LIVE),
    Change(ONE, f"one: {{url: {SITE}}}", "url", LIVE),
    Change(ONE, f"one: {SITE}", "https", LIVE),
    Change(ARM, f"h2-bbr: {{protocol: h2, server: {SITE}}}", "https", LIVE),
    Change(TITLE, f"{TITLE}servers: [{SITE}]\n", "[https", LIVE),
    Change(TITLE, f"{TITLE}servers: {{mine: {{url: {SITE}, protocols: [h2]}}}}\n", "url", LIVE),
    Change(ONE, f"{ONE[:-1]}, duration: 30s}}", "duration", "`requests` or `size` decides its length"),
    Change(WIFI, "wifi: {both: {delay: 10ms}, duration: 30s}", "duration", "a network lasts for the whole trial"),
    Change(TITLE, f"{TITLE}tls: 1.2\n", "tls", "every protocol runs over TLS 1.3"),
    Change(ARM, "h2-bbr: {protocol: h2, min_tls_version: 1.2}", "min_tls", "every protocol runs over TLS 1.3"),
    *(Change(ONE, f"{ONE[:-1]}, {each}}}", each, GET)
      for each in ("method: POST", "upload: 1MB", "body: 1kB", "headers: {a: b}", "cookies: true", "userAgent: x")),
    Change(ONE, "one: {kind: upload, size: 1MB}", "upload", GET),
    *(Change(ONE, f"one: {{kind: {each}, size: 1MB}}", each, "{kind: transfer, size: 2MB} is the nearest", ONE)
      for each in ("video", "streaming", "websocket")),
    Change(ONE, f"{ONE[:-1]}, rps: 100}}", "rps", "`connections` and `streams` are how many requests"),
    Change(ONE, f"{ONE[:-1]}, keepalive: false}}", "keepalive", "each trial opens new connections"),
    Change(ONE, f"{ONE[:-1]}, cache: true}}", "cache", "{kind: page, visit: repeat} loads a page again"),
    Change(TITLE, f"{TITLE}warmup: 5\n", "warmup", "there is no warm-up"),
    Change(TITLE, f"{TITLE}version: 3\n", "version", "a matrix has no version: remove it"),
    *(Change(TITLE, f"{TITLE}{each}: x\n", each, f"lab.py run --{each}")
      for each in ("engine", "reports", "resume", "junit")),
    Change(TITLE, f"{TITLE}output: x.html\n", "output", "`lab.py report RUN --output FILE`"),
    *(Change(REPEAT, f"{REPEAT}\njudge: [total_s, {each}]", each, f"did you mean `{meant}`?")
      for each, meant in {"speed": "goodput_bps", "bandwidth": "goodput_bps", "latency": "ttfb_s",
                          "first byte": "ttfb_s", "connect": "handshake_s"}.items()),
    *(Change(REPEAT, f"{REPEAT}\njudge: [{each}]", each, f"did you mean `{meant}`?",
             f"{REPEAT}\njudge: [total_s]" if meant == "total_s" else "")
      for each, meant in {"rps": "total_s", "requests_per_second": "total_s", "duration": "total_s",
                          "median": "request_p50_s"}.items()),
    Change(ARM, "h2-bbr: {protocol: h2, browser: firefox}", "firefox",
           "the workloads `page` and `one`, of kind objects and transfer, have no `browser`"),
]  # fmt: skip

DARK = "rate: 1mbit, delay: 20ms, queue: 50}, at: {1s: {both: {loss: 100%}}"
UNSAID = "wifi: {both: {rate: 5mbit}"
OF_OTHERS = [  # what is in the name of a key elsewhere, or next to it
    Change(ONE, "one: {kind: streams, requests: 8, size: 1MB}", "requests", "did you mean `streams`?",
           "one: {kind: streams, streams: 8, size: 1MB}"),
    Change(ONE, f"{ONE[:-1]}, session: early}}", "session", "by kind ttfb: {kind: ttfb, session: early}", TTFB),
    Change(WIFI, f"{UNSAID}, at: {{1s: {{both: {{rate: 0mbit}}}}}}}}", "0mbit", "for an outage write `loss: 100%`",
           f"{UNSAID}, at: {{1s: {{both: {{loss: 100%}}}}, 2s: {{}}}}}}"),
    Change(WIFI, f"{UNSAID}, at: {{1s: {{both: {{rate: 0}}}}, 2s: {{}}}}}}", "0}", "for an outage write `loss: 100%`"),
    Change(WIFI, f"{UNSAID}, at: 400ms}}", "400ms", "at: {400ms: {both: {loss: 100%}}}",
           f"{UNSAID}, at: {{400ms: {{both: {{loss: 100%}}}}, 1s: {{}}}}}}"),
    Change("rate: 30mbit", f"{QUEUE}{{kind: tbf, packets: 100}}", "tbf", "did you mean `fifo`?",
           f"{QUEUE}{{kind: fifo, packets: 100}}"),
    Change("rate: 30mbit", f"{QUEUE}{{latency: 400ms}}", "latency", "`packets: 991`, which take 400ms at 30mbit?",
           f"{QUEUE}{{packets: 991}}"),
    Change("rate: 30mbit", f"{QUEUE}{{bytes: 64000}}", "bytes", "did you mean `packets: 43`, which have 64000B?",
           f"{QUEUE}{{packets: 43}}"),
    Change("rate: 30mbit", f"{QUEUE}800p", "800p", "did you mean `800`?", f"{QUEUE}800"),
    Change(WIFI, "wifi: {downloadThroughput: 180000}", "download",
           "did you mean downlink: {rate: 1440kbit}? a throughput of Chrome's is in bytes per second",
           "wifi: {downlink: {rate: 1440kbit}}"),
    Change(WIFI, "wifi: {latency: 562}", "latency", "both: {delay: 562ms}? a number without a unit is taken for ms",
           "wifi: {both: {delay: 562ms}}"),
    Change(WIFI, "wifi: {bwDown: 1600}", "bwDown", "downlink: {rate: 1600kbit}?", "wifi: {downlink: {rate: 1600kbit}}"),
    Change("delay: 10ms", "delay_s: 0.1", "delay_s", "did you mean delay: 0.1s?", "delay: 0.1s"),
    Change(WIFI, "wifi: {rttMs: 150}", "rttMs", "did you mean both: {delay: 75ms}?", "wifi: {both: {delay: 75ms}}"),
    Change(WIFI, "wifi: {uplink_rate: 5mbit}", "uplink_rate", "did you mean uplink: {rate: 5mbit}?",
           "wifi: {uplink: {rate: 5mbit}}"),
    Change("rate: 30mbit", "rate: 30mbit, loss_percent: 2", "loss_", "did you mean loss: 2%?",
           "rate: 30mbit, loss: 2%"),
    Change(WIFI, "wifi: {bandwidth: 10mbit, delay: 10ms}", "bandwidth", "`bandwidth` and `delay` belong in `uplink`, "
           "`downlink` or `both`: both: {rate: 10mbit, delay: 10ms}", "wifi: {both: {rate: 10mbit, delay: 10ms}}"),
    Change("delay: 10ms", "delay: 10ms 2ms 25%", "10ms 2ms", "did you mean `delay: 10ms, jitter: 2ms`? netem's",
           "delay: 10ms, jitter: 2ms"),
    Change("rate: 30mbit", "ceil: 30mbit", "ceil", "did you mean `rate`?"),
    Change(WIFI, "wifi: {toxics: [{type: latency}]}", "toxics", "a direction has delay, jitter, "),
    Change(WIFI, "wifi: 3G", "3G", "did you mean {preset: wpt-3g}?", "wifi: {preset: wpt-3g}"),
    Change(ONE, "one: {iterations: 10, connections: 1}", "iterations", "did you mean `requests`?",
           "one: {requests: 10, connections: 1}"),
    Change(ONE, f"{ONE[:-1]}, http2: true}}", "http2", "such as protocols: [h1, h2]"),
    Change(ONE, f"{ONE[:-1]}, thresholds: {{p95: 1s}}}}", "thresholds", "verdicts compare protocols with each other"),
    Change(ONE, "one: {kind: curl, size: 1MB}", "curl", "did you mean `transfer`?"),
    Change(TITLE, f"{TITLE}metrics: [total_s]\n", "metrics", "did you mean `judge`?", f"{TITLE}judge: [total_s]\n"),
    *(Change(ARM, f"h2-bbr: {{protocol: h2, server: my}}\nservers: {{my: {{image: a/b, protocols: [h2], {key}}}}}", key,
             hint, "h2-bbr: {protocol: h2, server: my}\nservers: {my: {image: a/b, protocols: [h2]}}")
      for key, hint in {"volumes: ['a:/a']": "put the files into the image", "build: app": "build the image first",
                        "depends_on: [db]": "each server is one container"}.items()),
    Change(WIFI, f"wifi: {COMMAND} loss 150%", "tc", "`loss 150%` is refused: `150%` is above 100%"),
    Change(WIFI, f"wifi: {COMMAND} 200ms", "tc", "`jitter 200ms` is refused: jitter 200ms is more than the delay"),
    Change(WIFI, f"wifi: {{downlink: {COMMAND} rate 100mbps}}", "tc", "`rate 100mbps` is refused: `100mbps` is amb"),
    Change(WIFI, f"wifi: {{both: {{{DARK}, 80s: {{}}}}}}", "at", "`one` takes at least 1 min 26 s, "
           "shorten the blackout", f"wifi: {{both: {{{DARK}, 2s: {{}}}}}}"),
    Change(WIFI, f"wifi: {{both: {{{DARK}}}}}", "at", "`one` takes at least 24 h"),
]  # fmt: skip

UNDER = "downlink:\n      delay: 60ms\n      spells:\n      good: 2s\n      bad: 300ms\n      loss: 80%"
OUTAGES = "spells: {good: 2s, bad: 300ms, loss: 80%}"
MODEL = "{gemodel: {p: 1%, r: 10%, bad: 70%, good: 0.1%}}"
WALK = [  # of a person who copied from tc, Chrome, curl and k6
    Change(DOWN, UNDER, "spells", "`spells` has no value, `good`, `bad` and `loss` belong to it: indent them further",
           f"downlink: {{delay: 60ms, {OUTAGES}}}"),
    Change("loss: 2%", "good: 2s, bad: 300ms, loss: 80%", "good", f"`bad` and `loss` belong in `spells`: {OUTAGES}",
           OUTAGES),
    Change("rate: 5mbit}", "good: 2s, bad: 300ms}", "good", "`good` and `bad` belong in `spells`",
           "spells: {good: 2s, bad: 300ms}}"),
    Change("loss: 2%", "loss: gemodel 1% 10% 70% 0.1%", "gemodel", f"did you mean {MODEL}?", f"loss: {MODEL}"),
    Change("loss: 2%", "loss: gilbert 1%", "gilbert", "did you mean {gemodel: {p: 0.25%, r: 25%}}?",
           "loss: {gemodel: {p: 0.25%, r: 25%}}"),
    Change("loss: 2%", "loss: 1% burst 5", "1% burst", "did you mean {gemodel: {p: 0.2%, r: 20%}}?",
           "loss: {gemodel: {p: 0.2%, r: 20%}}"),
    Change("loss: 2%", "loss: 1% in bursts of 300ms", "1% in", "spells: {good: 29.7s, bad: 300ms, loss: 100%}",
           "spells: {good: 29.7s, bad: 300ms, loss: 100%}"),
    Change(WIFI, "wifi: {latencyMs: 100}", "latencyMs", "both: {delay: 100ms}? a delay is one way, half of a round",
           "wifi: {both: {delay: 100ms}}"),
    Change(WIFI, "wifi: {latency: 40ms}", "latency", "both: {delay: 40ms}; a delay is one way",
           "wifi: {both: {delay: 40ms}}"),
    Change(WIFI, "wifi: {latency: 40ms, bandwidth: 5mbit}", "latency", "{delay: 40ms, rate: 5mbit}; a delay is one way",
           "wifi: {both: {delay: 40ms, rate: 5mbit}}"),
    Change(WIFI, "wifi: {packetLoss: 0.02}", "packetLoss", "downlink: {loss: 0.02}? its unit is missing: 0.02% or 2%",
           "wifi: {downlink: {loss: 2%}}"),
    Change(WIFI, "wifi: {rtt: 150}", "rtt", "both: {delay: 75ms}", "wifi: {both: {delay: 75ms}}"),
    Change(ONE, "one: {kind: page, requests: 60, size: 12kB, url: /}", "url", "`kind: page` has `requests` and `size`, "
           "or `path`, but not both: remove `requests` and `size`, or `url`",
           "one: {kind: page, requests: 60, size: 12kB}"),
    Change(ONE, "one: {kind: page, size: 12kB, url: /}", "url", "has `size`, or `path`, but not both: remove `size`"),
    Change(ONE, "one: {kind: transfer, path: /10m}", "path", "has none: write `size: 10MiB` instead",
           "one: {kind: transfer, size: 10MiB}"),
    Change(ONE, "one: {kind: transfer, url: /10m}", "url", "has none: write `size: 10MiB` instead",
           "one: {kind: transfer, size: 10MiB}"),
    Change(WIFI, "wifi: {server: {latency: 20ms}}", "server", "did you mean `downlink` (from server to client: the"),
    Change(WIFI, "wifi: {server: {delay: 20ms}}", "server", "did you mean `downlink` (from server to client: the",
           "wifi: {downlink: {delay: 20ms}}"),
    Change(ONE, "one: {requests: 60, batch: 6}", "batch", "did you mean `connections`?",
           "one: {requests: 60, connections: 6}"),
    Change(ONE, "one: {requests: 60, concurrency: 6, connections: 6}", "concurrency",
           "did you mean `connections`? it is written as well: keep one of the two",
           "one: {requests: 60, connections: 6}"),
    Change(REPEAT, f"{REPEAT}\nmax-time: 30s", "max-time",
           "did you mean `timeout`? time limit of a trial; or repeat: {budget: 30s}", f"{REPEAT}\ntimeout: 30s"),
    Change(ONE, f"{ONE[:-1]}, max-time: 30}}", "max-time", "`timeout` at the top of the file limits it"),
    Change(WIFI, "wifi: {packetLoss: 2}", "packetLoss", "did you mean downlink: {loss: 2%}?",
           "wifi: {downlink: {loss: 2%}}"),
    Change("loss: 2%", "packetLoss: 2", "packetLoss", "did you mean loss: 2%?"),
    Change("rate: 30mbit", "target-bw: 1000", "target-bw", "did you mean rate: 1000kbit?", "rate: 1000kbit"),
    Change("rate: 30mbit", "bandwidth: 30", "bandwidth", "did you mean rate: 30mbit?"),
    Change(WIFI, "wifi: {loss: 2}", "loss", "belongs in `uplink`, `downlink` or `both`: both: {loss: 2%}",
           "wifi: {both: {loss: 2%}}"),
    Change(WIFI, "wifi: {download: 1.6Mbps}", "download", "did you mean downlink: {rate: 1.6mbit}?",
           "wifi: {downlink: {rate: 1.6mbit}}"),
    Change(WIFI, "wifi: {download: 1600}", "download", "{rate: 1600kbit}? a number without a unit is taken for kbit",
           "wifi: {downlink: {rate: 1600kbit}}"),
    Change(WIFI, "wifi: {downlink: 1.6Mbps}", "1.6", "did you mean {rate: 1.6mbit}?",
           "wifi: {downlink: {rate: 1.6mbit}}"),
    Change("size: 15kB", "size: 15kB, protocol: h3", "protocol", "such as protocols: [h3]: every workload runs over"),
    Change(PAGE, f"{PAGE[:-1]}, profile: wifi}}", "profile", "conditions: [{profiles: [wifi], workloads: [page]}]"),
    Change(ARM, f"{ARM[:-1]}, profile: wifi}}", "profile",
           "every arm runs in each condition: conditions: [{profiles: [wifi]}]"),
    Change(ARM, "h2-bbr: {protocol: h2, bbr: true}", "bbr: true", "did you mean `congestion: bbr`?"),
    Change(REPEAT, "repeat: {runs: 9}", "runs", "did you mean `min`?", "repeat: {min: 9}"),
    Change(ONE, f"{ONE[:-1]}, limit-rate: 1mbit}}", "limit-rate", "profiles: {NAME: {both: {rate: 1mbit}}}"),
    Change(REPEAT, f"{REPEAT}\nhttp3-only: true", "http3-only", "such as protocols: [h3]", REPEAT),
    Change(REPEAT, f"{REPEAT}\nselfcheck: {{again: tran}}", "tran", "`tran` is not one of the profiles of this file"),
    Change(REPEAT, f"{REPEAT}\nselfcheck: {{again: \\x}}", "\\x", "`\\x` is not one of the profiles of this file"),
    Change(REPEAT, f"{REPEAT}\nselfcheck: {{again: wify}}", "wify", "did you mean `wifi`?",
           f"{REPEAT}\nselfcheck: {{again: [wifi]}}"),
    Change(REPEAT, f"{REPEAT}\ncompare: [[h3, h2-reno]]", "h2-reno",
           "define it under `arms`: arms: {h2-reno: {protocol: h2, congestion: reno}}"),
    Change(REPEAT, f"{REPEAT}\ncompare: h2-reno", "h2-reno", "each pair is a list: compare: [[CANDIDATE, BASELINE]]"),
    Change(REPEAT, f"{REPEAT}\ncompare: [[h3, h2-brb]]", "h2-brb", "did you mean `h2-bbr`?",
           f"{REPEAT}\ncompare: [[h3, h2-bbr]]"),
]  # fmt: skip

ROW = "for a network of each value write `loss: [0%, 1%, 3%]`"
ROW_OF_LOSS = "loss: [0%, 1%, 3%]"
NOT_SO_FAR = [  # a sweep without its brackets, lines that are not indented, bursts by share and length
    Change("loss: 2%", "loss: 0%, 1%, 3%", "0%", ROW, ROW_OF_LOSS),
    Change("loss: 2%", "loss: 0, 1, 3%", "0, 1", ROW, ROW_OF_LOSS),
    Change("loss: 2%", "loss: (0%, 1%, 3%)", "(0%", ROW, ROW_OF_LOSS),
    Change("loss: 2%", "loss: {0%, 1%, 3%}", "{0%", ROW, ROW_OF_LOSS),
    Change("loss: 2%", "loss: 0% 1% 3%", "0% 1%", ROW, ROW_OF_LOSS),
    Change("loss: 2%", "loss: 0/1/3%", "0/1", ROW, ROW_OF_LOSS),
    Change("loss: 2%", "loss: '0%, 1%, 3%'", "'0%", ROW, ROW_OF_LOSS),
    Change("loss: 2%", "loss: [0 1% 3%]", "[0", f"a comma is missing between two values, {ROW}", ROW_OF_LOSS),
    Change("loss: 2%", "loss: [0%, 1% 3%]", "[0%", ROW, ROW_OF_LOSS),
    Change("loss: 2%", "loss: [0%, 0,5%, 3%]", "0,5%", "did you mean `0.5%`?", "loss: [0%, 0.5%, 3%]"),
    Change(DOWN, "downlink:\n      loss: 0%, 1%, 3%", "0%", ROW, "downlink: {loss: [0%, 1%, 3%]}"),
    Change("both: {delay: 10ms", "both: {delay: 10, 20, 50ms", "10, 20",
           "for a network of each value write `delay: [10ms, 20ms, 50ms]`", "both: {delay: [10ms, 20ms, 50ms]"),
    Change(DOWN, "downlink:\n    delay: 60ms\n    loss: 2%", "downlink",
           "`delay` and `loss` belong to it: indent them further"),
    Change(DOWN, "downlink:\n    delay: 60ms", "downlink", "`delay` belongs to it: indent it further"),
    Change(ARM, "h2-bbr:\n  protocol: h2\n  congestion: bbr", "h2-bbr",
           "`protocol` and `congestion` belong to it: indent them further"),
    Change("loss: 2%", "loss: {burst: 2%, length: 5}", "burst",
           "for a mean loss of 2% in bursts of 5 packets write gemodel: {p: 0.41%, r: 20%}",
           "loss: {gemodel: {p: 0.41%, r: 20%}}"),
    Change("loss: 2%", "burst: {loss: 2%, length: 5}", "burst", "write loss: {gemodel: {p: 0.41%, r: 20%}}",
           "loss: {gemodel: {p: 0.41%, r: 20%}}"),
    Change("loss: 2%", "loss: {rate: 2%}", "rate", "did you mean `random: 2%`?", "loss: {random: 2%}"),
    Change("loss: 2%", "loss: {preset: bursts}", "preset", "a preset is a whole network: NAME: {preset: lte}"),
    Change(WIFI, "wifi: {preset: lte, description: at home}", "description", "write a comment, which begins with `#`",
           "wifi: {preset: lte}"),
]  # fmt: skip

EVERY = [
    *NOT_SO_FAR,
    *WALK,
    *ELSEWHERE,
    *OF_OTHERS,
    *BURSTS,
    *NAMED,
    *COMMANDS,
    *WORDS,
    *BRACKETS,
    *TC,
    *LINES,
    *GLUED,
    *SIGNS,
    *NETWORKS,
    *IMPOSSIBLE,
    *ARMS,
    *WORKLOADS,
    *RUNS,
    *INDENTED,
    *SHAPES,
    *VALUES,
    *KEYS,
    *REFUSED,
    *LOOK_ALIKE,
]
