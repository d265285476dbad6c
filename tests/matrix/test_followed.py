"""A hint that is followed leads to a file that is accepted, with the meaning that was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.matrix_files import lay_out_site, load, refusal

TRAINS = """title: Trains
protocols: [h2, h3]
repeat: {min: 9, max: 60, budget: 30min}
seed: 3
selfcheck: {again: [clean], slower: [near]}
profiles:
  clean: {}
  near: {both: {delay: 5ms}}
  far:
    downlink: {delay: 40ms, loss: 1%, rate: 10mbit, queue: 200}
    uplink: {delay: 40ms, rate: 2mbit}
workloads:
  page: {kind: objects, requests: 30, size: 20kB}
  file: {kind: transfer, size: 2MB}
conditions:
  - {profiles: [clean, near], workloads: [page]}
  - {profiles: [far]}
"""
BLACKOUT = """protocols: [h2, h3]
profiles:
  blackout:
    both: {delay: 20ms}
    at:
      1s: {both: {loss: 100%}}
      1.5s: {}
workloads:
  big: {kind: transfer, size: 5MB}
"""
SERVERS = """protocols: [h2]
servers:
  mine: {image: my/app:1.2, env: {LOG: none}, protocols: [h1, h2]}
arms:
  h2-mine: {protocol: h2, server: mine}
profiles: {far: {both: {delay: 20ms}}}
workloads: {large: {requests: 12, connections: 1, path: /1m}}
"""
INTEROP = """protocols: [h3]
servers:
  other: {image: other/http3, contract: quic-interop}
arms:
  h3-other: {protocol: h3, server: other}
profiles: {far: {both: {delay: 20ms}}}
workloads: {large: {requests: 12, connections: 1, path: /1m}}
"""
PUBLISHED = """protocols: [h2, h3]
profiles:
  near: {both: {delay: 5ms}}
  far: {both: {delay: 60ms}}
workloads:
  page: {kind: transfer, size: 2MB}
published:
  blog:
    title: A blog post about HTTP/3
    source: https://blog.example/h3
    times:
      near/page: {h2: 120ms, h3: 110ms, both: {delay: 5ms}}
      far/page: {both: {delay: 60ms}, h2: {mean: 862ms, p90: 1.766s}, h3: {mean: 647ms, p90: 755ms}}
"""
SEARCH = """protocols: [h2, h3]
find: {crossover: [h3, h2], along: downlink.loss, from: 0%, to: 10%, within: 1%}
repeat: {max: 100, budget: 30min}
profiles:
  far: {both: {delay: 20ms}}
workloads:
  page: {kind: objects, requests: 30, size: 20kB}
"""
SITE = """content: site
protocols: [h1, h2, h3]
profiles:
  far: {both: {delay: 20ms}}
workloads:
  page: {kind: objects, paths: [/, /app.css, /js/app.js]}
"""
STREAMS = """protocols: [h2, h3]
profiles:
  slow: {both: {delay: 30ms}, downlink: {loss: 1%}}
workloads:
  many: {kind: streams, streams: 20, size: 100kB}
"""
ARMS = """protocols: [h1, h2, h3]
arms:
  h1-six: {protocol: h1, connections: 6}
profiles:
  lossy: {downlink: {delay: 20ms, loss: 2%}}
workloads:
  api: {requests: 1000, connections: 10, streams: 10, path: /1k}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """`old` in a text became `new`; the only complaint has the hint, and `mended` in its place is accepted."""

    text: str
    old: str
    new: str
    hint: str
    mended: str = ""  # what the hint says; `old` without it

    @property
    def name(self) -> str:
        """The mistake, as the name of a test."""
        return self.new.strip()[-60:]


def cases(text: str, old: str, *mistakes: tuple[str, ...]) -> list[Case]:
    """The cases of one place in a text."""
    return [Case(text, old, *mistake) for mistake in mistakes]


NEAR = "near: {both: {delay: 5ms}}"
DELAY = "downlink: {delay: 40ms"
AT = BLACKOUT[BLACKOUT.index("    at:") : BLACKOUT.index("workloads:")]
LAST = "      1.5s: {}\n"
ROW = "near/page: {h2: 120ms, h3: 110ms, both: {delay: 5ms}}"
OWN = "protocols: [h1, h2]}"
BLOCKS = "repeat: {min: 9, max: 60, budget: 30min}"
CONDITIONS = TRAINS[TRAINS.index("conditions:") :]
API = "api: {requests: 1000, connections: 10, streams: 10, path: /1k}"
FILES = "paths: [/, /app.css, /js/app.js]"
CHECK = "selfcheck: {again: [clean], slower: [near]}"
TRIP = "a round trip is two delays, one in each direction: delay: 40ms"
NETWORKS = [
    *cases(TRAINS, NEAR,
           ("near: {direction: downlink, delay: 5ms}", "the direction is a key: downlink: {delay: 5ms}",
            "near: {downlink: {delay: 5ms}}"),
           ("near: {direction: both, delay: 5ms, loss: 1%}", "the direction is a key: both: {delay: 5ms, loss: 1%}",
            "near: {both: {delay: 5ms, loss: 1%}}"),
           ("near: {uplink+downlink: {delay: 5ms}}", "did you mean both: {delay: 5ms}?"),
           ("near: {network: {delay: 5ms}}", "or `both` (each of the two directions)?"),
           ("near: {both: {delay: 10ms RTT}}", "a round trip is two delays: both: {delay: 5ms}"),
           ("near: {both: {delay: {rtt: 10ms}}}", "a round trip is two delays: both: {delay: 5ms}"),
           ("near: {both: {delay: 5ms, spells: none}}", "remove it: without `spells` there is none")),
    *(Case(TRAINS, DELAY, f"downlink: {{delay: {each}", TRIP)
      for each in ("80ms RTT", "80ms (RTT)", "80ms round-trip", "rtt 80ms", "{rtt: 80ms}", "RTT=80ms", "80 ms rtt")),
    *cases(TRAINS, "loss: 1%",
           ("loss: {uplink: 1%, downlink: 2%}", "comes first: uplink: {loss: 1%}, downlink: {loss: 2%}", "loss: 2%"),
           ("loss: {up: 1%, down: 2%}", "comes first: uplink: {loss: 1%}, downlink: {loss: 2%}", "loss: 2%"),
           ("loss: none", "remove it: without `loss` there is none", "duplicate: 1%")),
    Case(TRAINS, NEAR, "near: {downlink: {delay: 5ms, spells: {good: 2s, down: 1s}}}", "did you mean `bad`?",
         "near: {downlink: {delay: 5ms, spells: {good: 2s, bad: 1s}}}"),
    Case(TRAINS, DELAY, "downlink: {delay: {up: 10ms, down: 20ms}",
         "the direction comes first: uplink: {delay: 10ms}, downlink: {delay: 20ms}", "downlink: {delay: 20ms"),
    Case(TRAINS, "rate: 10mbit", "rate: {uplink: 1mbit, downlink: 2mbit}",
         "the direction comes first: uplink: {rate: 1mbit}, downlink: {rate: 2mbit}", "rate: 2mbit"),
    *cases(TRAINS, "queue: 200",
           ("packets: 200", "`packets` belongs in `loss` or `queue`: queue: {packets: 200}", "queue: {packets: 200}"),
           ("queue: fifo 300", "did you mean `queue: {kind: fifo, packets: 300}`?",
            "queue: {kind: fifo, packets: 300}"),
           ("queue: red 300", "did you mean `queue: {kind: red, packets: 200, min: 20, max: 60}`?"),
           ("queue: [50, 200]", "write `profiles` with a profile for each"),
           ("queue: [fq_codel, cake]", "write `profiles` with a profile for each"),
           ("target: 5ms", "queue: {target: 5ms, kind: fq_codel}", "queue: {target: 5ms, kind: fq_codel}"),
           ("queue: {kind: fq_codel, ecn: off}", "did you mean `false`?", "queue: {kind: fq_codel, ecn: false}"),
           ("slot: {min: 10ms}", "did you mean `min_delay`?", "slot: {min_delay: 10ms}"),
           ("slot: {min_delay: 10ms, max: 20ms}", "did you mean `max_delay`?",
            "slot: {min_delay: 10ms, max_delay: 20ms}"),
           ("slot: {min_delay: 10ms, packets: 16}", "did you mean `max_packets`?",
            "slot: {min_delay: 10ms, max_packets: 16}")),
    *(Case(BLACKOUT, LAST, f"{LAST}    {key}: 5s\n", "did you mean `every: 5s`?", f"{LAST}    every: 5s\n")
      for key in ("period", "interval", "repeat")),
    *(Case(BLACKOUT, LAST, f"    {key}: {value}\n", f"end it at a later moment of `at`: `{end}: {{}}`")
      for key, value, end in (("for", "500ms", "1.5s"), ("duration", "0.5s", "1.5s"), ("end", "1.5s", "1.5s"))),
    *cases(BLACKOUT, LAST, (f"{LAST}    start: 1s\n", "`at` has this moment: remove `start`"),
           (f"{LAST}    start: 3s\n", "a change belongs below `at`: 3s: {both: {loss: 100%}}",
            f"{LAST}      3s: {{both: {{loss: 100%}}}}\n      3.1s: {{}}\n")),
]  # fmt: skip
FIGURES = [
    *cases(PUBLISHED, ROW,
           ("near/page: 862ms", "a row has a figure of each arm: {h2: 862ms, h3: ...}"),
           ("near/page: [120ms, 110ms]", "a row has a figure of each arm: {h2: 120ms, h3: 110ms}"),
           ("near/page: h3 110ms, h2 120ms", "a row has a figure of each arm: {h3: 110ms, h2: 120ms}"),
           ("near/page: {h2: 120ms, h3: 110ms, rtt: 10ms}", "`rtt` is two delays: both: {delay: 5ms}"),
           ("near/page: {h2: 120ms, h3: 110ms, profile: near}", "write the network out here: both: {delay: 5ms}"),
           ("near/page/goodput_bps: {h2: 120Mbps, h3: 110mbit}", "`120mbit` for bits, `960mbit` for bytes",
            "near/page/goodput_bps: {h2: 120mbit, h3: 110mbit}"),
           ("near/page/goodput_bps: {h2: 120, h3: 110mbit}", "120mbit or 120kbit?",
            "near/page/goodput_bps: {h2: 120mbit, h3: 110mbit}"),
           ("near/page: {unmeasured: true}", "why it is not measured, in a few words; or remove the key",
            "near/page: {unmeasured: needs a phone}")),
    *(Case(PUBLISHED, ROW, f"near/page: {{h2: {{{key}: 120ms}}, h3: {{{name}: 110ms}}, both: {{delay: 5ms}}}}",
           f"did you mean `{name}`?")
      for key, name in (("p50", "median"), ("p(50)", "median"), ("50%", "median"), ("avg", "mean"), ("99th", "p99"))),
    *(Case(PUBLISHED, ROW, f"near/page: {{h2: {{{key}: 120ms}}, h3: {{p90: 110ms}}, both: {{delay: 5ms}}}}",
           "allowed: mean, median, p90, p99; there is no key for other percentiles: write it into `note`")
      for key in ("p75", "p95")),
    Case(PUBLISHED, ROW, "near/page: {h2: {min: 120ms}, h3: {p90: 110ms}}", "allowed: mean, median, p90, p99"),
    Case(PUBLISHED, ROW, "near/page: {h2: p90 130ms, h3: {p90: 140ms}}", "did you mean {p90: 130ms}?",
         "near/page: {h2: {p90: 130ms}, h3: {p90: 140ms}}"),
    Case(PUBLISHED, "h2: {mean: 862ms, p90: 1.766s}", '"h2": "mean 862ms, p90 1.766s"',
         "did you mean {mean: 862ms, p90: 1.766s}?"),
    *(Case(PUBLISHED, "    source:", f"    {key}:", "did you mean `source`?") for key in ("url", "link")),
    Case(PUBLISHED, "    title:", "    author:", "did you mean `title`?"),
    Case(PUBLISHED, "    times:", "    results:", "did you mean `times`?"),
    Case(PUBLISHED, "    times:", "    date: 2024\n    times:", "allowed: title, source, note, times"),
    Case(PUBLISHED, "    source: https:", '    source: "My blog" at https:', "did you mean `source: '\"My blog\" at"),
]  # fmt: skip
OF_SERVERS = [
    *cases(INTEROP, "contract: quic-interop",
           *((each, "did you mean `quic-interop`?") for each in ("contract: quic_interop", "contract: interop")),
           *((f"{each}: quic-interop", "did you mean `contract: quic-interop`?") for each in ("kind", "type"))),
    *(Case(SERVERS, OWN, f"{OWN[:-1]}, {each}}}", "your own server has no such setting: its `command` or `env`")
      for each in ("workers: 4", "server_delay: 5ms", "settings: as-shipped", "delay: 5ms")),
    Case(SERVERS, OWN, f"{OWN[:-1]}, congestion: bbr}}",
         "arms: {h2-mine: {protocol: h2, server: mine, congestion: bbr}}"),
    *cases(SERVERS, OWN,
           (f"{OWN[:-1]}, args: [-v]}}", "did you mean `command`?", f"{OWN[:-1]}, command: [-v]}}"),
           (f"{OWN[:-1]}, user: root}}", "allowed: image, command, env, port"),
           (f"{OWN[:-1]}, path: /}}", "`path` belongs in an entry: workloads: {NAME: {path: /}}")),
    Case(SERVERS, "env: {LOG: none}", "env: [{name: LOG, value: none}]", "each variable is a key: env: {LOG: none}"),
    *cases(SERVERS, "server: mine", ("server: my/app:1.2", "did you mean `mine`? `my/app:1.2` is its image"),
           ("server: other/app:1", "servers: {my-app: {image: other/app:1, protocols: [h2]}}, and here `server: ")),
    *cases(SERVERS, "path: /1m", ("path: index.html", "did you mean `/index.html`?", "path: /index.html"),
           ("path: /items?page=2", 'did you mean `path: "/items?page=2"`?', 'path: "/items?page=2"')),
    *cases(ARMS, "h1-six: {protocol: h1, connections: 6}",
           ("h3-ngtcp2: {protocol: h3, server: ngtcp2}",
            "allowed: nginx, caddy, haproxy; another one is your own image: servers: {ngtcp2: {image: IMAGE"),
           ("h3-caddy: {protocol: h3, server: Caddy}", "did you mean `caddy`?",
            "h3-caddy: {protocol: h3, server: caddy}"),
           ("h1-six: {protocol: h1, connections: 6, size: 1kB}", "an entry: workloads: {NAME: {size: 1kB}}")),
    Case(ARMS, "protocols: [h1, h2, h3]\narms:\n", "protocols: {h1: nginx, h3: caddy}\narms:\n",
         "a server is an arm's: protocols: [h1] and arms: {h3-caddy: {protocol: h3, server: caddy}}",
         "protocols: [h1]\narms:\n  h3-caddy: {protocol: h3, server: caddy}\n"),
]  # fmt: skip
SEARCHES = [
    *cases(SEARCH, "crossover: [h3, h2]",
           ("crossover: h3, h2", "did you mean `crossover: [h3, h2]`?"),
           ("crossover: h3", "[candidate, baseline], such as [h3, h2]"),
           ("crossover: h3 vs h2", "did you mean [h3, h2]?")),
    *cases(SEARCH, "within: 1%", ("steps: 10", "`within` is how exact the answer is")),
    *cases(SEARCH, "from: 0%, to: 10%", ("range: [0%, 10%]", "did you mean `from: 0%, to: 10%`?"),
           ("range: 0% - 10%", "did you mean `from: 0%, to: 10%`?")),
    *(Case(SEARCH, "downlink.loss", each, "did you mean `downlink.delay`?")
      for each in ("downlink.latency", "down.delay", "downlink delay")),
    Case(SEARCH, "downlink.loss, from: 0%, to: 10%, within: 1%", "download.bandwidth, from: 1mbit, to: 5mbit",
         "did you mean `downlink.rate`?", "downlink.rate, from: 1mbit, to: 5mbit"),
    Case(SEARCH, "30min}", "30min, margin: 20%}", "remove it"),
]  # fmt: skip
OF_WORKLOADS = [
    *cases(ARMS, API,
           ("api: {requests: 1000, connections: 10, streams: 10, size: 1kB}", "write `path: /bytes/1000` instead",
            "api: {requests: 1000, connections: 10, streams: 10, path: /bytes/1000}"),
           ("api: {requests: 5000, connections: 10, size: 1kB}", "write `path: /bytes/1000` instead",
            "api: {requests: 5000, connections: 10, path: /bytes/1000}"),
           ("api: {requests: 10, connections: 2, path: [/1k, /10k]}",
            "a workload for each: api1: {requests: 10, connections: 2, path: /1k}, api2: {requests: 10, connections: 2",
            "api1: {requests: 10, connections: 2, path: /1k}")),
    *cases(SITE, FILES, ("paths: all", "list the paths of your files: paths: [/, /app.css]"),
           ("paths: /, /app.css", "did you mean `paths: [/, /app.css]`?", "paths: [/, /app.css]"),
           ("paths: [app.css]", "did you mean `/app.css`?", "paths: [/app.css]"),
           ("paths: [/, /app.css?v=2]", "did you mean `/app.css`?", "paths: [/, /app.css]"),
           ("paths: [site/app.css]", "did you mean `/app.css`?", "paths: [/app.css]")),
    Case(SITE, f"kind: objects, {FILES}", f"kind: page, {FILES}", "write `path: /` instead", "kind: page, path: /"),
    Case(STREAMS, "kind: streams, streams: 20, size: 100kB", "streams: 20, size: 100kB", "add `kind: streams`"),
    Case(ARMS, API, "api: {requests: 10, connections: 2, t: 1}", "allowed: workers, congestion, server_delay"),
    *(Case(STREAMS, "streams: 20", f"{key}: 20", "did you mean `streams`?")
      for key in ("count", "objects", "requests", "number")),
    *cases(TRAINS, "size: 20kB}",
           ("size: 20kB, competing: {over: h2, connections: 2}}", "did you mean `flows`?",
            "size: 20kB, competing: {over: h2, flows: 2}}"),
           ("size: 20kB, competing: {protocol: h2}}", "did you mean `over`?", "size: 20kB, competing: {over: h2}}"),
           ("size: 20kB, users: 5}", "`connections` and `streams` are how many requests are sent at once")),
]  # fmt: skip
RUNS = [
    *(Case(TRAINS, BLOCKS, f"repeat: {{{key}: 20, budget: 30min}}", "did you mean `min: 20`?",
           "repeat: {min: 20, budget: 30min}") for key in ("count", "n", "number", "times", "trials")),
    *(Case(TRAINS, BLOCKS, f"{key}: 20", "did you mean `repeat`?", "repeat: 20")
      for key in ("trials", "samples", "count")),
    *cases(TRAINS, CONDITIONS,
           (f"{CONDITIONS}smoke: [near]\n", "did you mean {profiles: [near], workloads: [page]}?",
            f"{CONDITIONS}smoke: [{{profiles: [near], workloads: [page]}}]\n"),
           ("conditions: near/page\n", "did you mean [{profiles: [near], workloads: [page]}]?",
            "conditions: [{profiles: [near], workloads: [page]}]\n"),
           (CONDITIONS.replace("[far]}", "[far], protocols: [h3]}"), "every arm runs in each condition: remove it")),
    *cases(TRAINS, CHECK,
           ("selfcheck: again", "did you mean {protocol: h2, again: [clean]}?"),
           ("selfcheck: near", "did you mean {protocol: h2, again: [near]}?",
            "selfcheck: {protocol: h2, again: [near]}"),
           ("selfcheck: {protocol: [h2, h3], again: [clean]}", "one arm has twins: protocol: h2",
            "selfcheck: {protocol: h2, again: [clean]}")),
    *cases(TRAINS, "seed: 3", ("seed: 3\njudge: all", "leave `judge` out: the usual metrics"),
           ("seed: 3\nsettings: limited", "did you mean `as-shipped`?", "seed: 3\nsettings: as-shipped"),
           ("seed: 3\nsettings: [as-shipped]", "did you mean `as-shipped`?", "seed: 3\nsettings: as-shipped"),
           ("seed: 3\nkind: page", "`kind` belongs in an entry: workloads"),
           ("seed: 3\nsweep: {loss: [0%, 1%]}", "a sweep is a list of values of one key of a profile"),
           ("seed: 3\ninclude: other.yaml", "a matrix is one file"),
           ("seed: 3\nsize: 1kB", "belongs in an entry: workloads: {NAME: {size: 1kB}}")),
    *cases(TRAINS, "title: Trains",
           ('title: "Trains" and more', "did you mean `title: '\"Trains\" and more'`?", "title: '\"Trains\" and more'"),
           ("title: [draft] Trains", 'did you mean `title: "[draft] Trains"`?', 'title: "[draft] Trains"')),
    Case(TRAINS, "loss: 1%,", "loss: 1% # light,", "a comment lasts to the end of its line: move it behind"),
    Case(TRAINS, "queue: 200}", "queue: 200 # light", "add it before the comment of line 10", "queue: 200} # light"),
]  # fmt: skip
EVERY = [*NETWORKS, *FIGURES, *OF_SERVERS, *SEARCHES, *OF_WORKLOADS, *RUNS]


@pytest.mark.parametrize("text", [TRAINS, BLACKOUT, SERVERS, INTEROP, PUBLISHED, SEARCH, SITE, STREAMS, ARMS])
def test_the_files_without_mistakes_are_taken(text: str, tmp_path: Path) -> None:
    lay_out_site(text, tmp_path)
    assert load(text, tmp_path).conditions


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_the_only_complaint_has_a_hint_that_can_be_followed(case: Case, tmp_path: Path) -> None:
    assert case.old in case.text
    lay_out_site(case.text, tmp_path)
    (complaint,) = refusal(case.text.replace(case.old, case.new, 1), tmp_path).complaints
    assert case.hint in f"{complaint.message}, {complaint.hint}"
    if case.mended:
        assert load(case.text.replace(case.old, case.mended, 1), tmp_path).conditions
