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

EVERY = [*BRACKETS, *LINES]
