"""Answers for what other tools have and a matrix has nowhere: live sites, settings of TLS, uploads, a load to keep up.

A row is about a key if each word of the key is one of its words: `tls`, `tls_version` and `minTlsVersion` alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwind.matrix.keys import respelt_key
from headwind.matrix.spelling import form, has_word, in_words

if TYPE_CHECKING:
    from headwind.matrix.levels import Level, Path

LIVE = (
    "the lab measures only servers inside its testbed: copy the site to a folder (`content: FOLDER` at the top of a "
    "matrix, and `{kind: page, path: /}` for a page of it), or run its server from an image (docs/servers.md)"
)
CPU_NOT_SLOWED = "the client's CPU is not slowed"
_URL = re.compile(r"(?:https?|wss?|ftp):/+\S+|www\.\S+", re.IGNORECASE)
_BESIDE = (
    "min max no enable disable version request response custom number per of size user"  # further words of such a key
)
_ENTRIES = ("workloads", "arms")
_ANYWHERE = ("", "profiles", *_ENTRIES)
_ADDRESSED = ("path", "image")  # keys that have better hints for an address
_ON_COMMAND_LINE = ("engine", "reports", "cluster", "resume", "verbose", "junit", "full")


@dataclass(frozen=True, slots=True)
class Row:
    """Words that people look for, the answer, and the keys at the top of the file below which it holds ("": there)."""

    words: str
    answer: str
    groups: tuple[str, ...] = ("", "workloads", "arms", "servers")
    further: str = _BESIDE  # words that such a key may have as well


ROWS = (
    Row("url uri target host hostname domain endpoint origin website", LIVE),
    Row("tls ssl cipher suite certificate cert verify insecure sni alpn",
        "every protocol runs over TLS 1.3, and no key sets its version, ciphers or certificate; "
        "{kind: ttfb, session: resumed} measures the handshake of a resumed session"),
    Row("method verb post put body payload data upload header agent cookie auth authorization query",
        "every request is a GET with the client's own headers and without a body; `path` or `size` is what it fetches"),
    Row("websocket ws sse sent eventsource grpc webrtc webtransport socket",
        "not measured: every request is a GET without a body and gets one answer; {kind: streams, streams: 20, "
        "size: 100kB} is the nearest to many messages over one connection", _ENTRIES, "server event streaming"),
    Row("poll longpoll polling longpolling comet",
        "not measured; {kind: objects, requests: 1, size: 1kB, server_delay: 5s} is the nearest to one poll: "
        "`server_delay` is the wait before an answer, at most 5s", _ENTRIES, "long http"),
    Row("video streaming player dash hls bitrate",
        "the lab fetches objects and pages; {kind: transfer, size: 2MB} is the nearest to a segment of a video",
        _ENTRIES),
    Row("stage ramp up rampup", "there are no ramps: `connections` is the same for the whole trial; a network that "
        "changes during it has `at`", ("", *_ENTRIES)),
    Row("stage ramp", "each change is a moment of `at`, counted from the start: at: {1s: {downlink: {rate: 1mbit}}, "
        "3s: {}}", ("profiles",)),
    Row("compression gzip brotli br zstd deflate encoding accept", "servers compress nothing: write the size that the "
        "compressed file has", _ENTRIES),
    Row("window rmem wmem rcvbuf sndbuf buffer", "no key sets one window or buffer: `settings: as-shipped` takes "
        "the defaults of client and server in place of large ones", ("", "arms")),
    Row("initcwnd iw initial cwnd congestion window", "no key sets the first congestion window: docs/servers.md has "
        "that of each server", ("", *_ENTRIES)),
    Row("handover handoff roaming migration switch", "a handover is a change of the network under `at`: at: {2s: "
        "{both: {delay: 90ms}}, 2.2s: {}}; {2s: {rebind: address}} gives the client another address", ("profiles",)),
    Row("netdelay netspeed", "write `delay` and `rate`, or a network of `lab.py profiles`: preset: wpt-3g",
        ("profiles",)),
    Row("reliability", "the rest is lost: 99 % is `loss: 1%`", ("profiles",)),
    Row("exclude except skip omit ignore", "list the conditions to keep: conditions: [{profiles: [...], workloads: "
        "[...]}]", ("",)),
    Row("alpha significance pvalue", "the confidence of each interval is the key: repeat: {confidence: 95%}",
        ("", "repeat")),
    Row("ipv6 ipv4 ip inet family", "the test links have IPv4 only, and no key changes that", _ANYWHERE),
    Row("mtu mss pmtu", "no key sets the MTU: each link takes packets of up to 1500 bytes", _ANYWHERE),
    Row("rps qps vus users arrival executor sleep pause pacing interval",
        "each connection sends its next request as soon as one is answered; `connections` and `streams` are how many "
        "requests are sent at once", _ENTRIES),
    Row("warmup warm cooldown", "there is no warm-up: each trial opens new connections, and every block counts",
        ("", *_ENTRIES)),
    Row("duration time length seconds",
        "a trial ends when everything is fetched, so `requests` or `size` decides its length; "
        "`timeout` at the top of the file limits it, and `repeat: {budget: 15min}` the whole run", _ENTRIES),
    Row("duration", "a network lasts for the whole trial; its changes are under `at`, bursts of loss are `spells`",
        ("profiles",)),
    Row("threshold sla assert assertion criteria", "verdicts compare protocols with each other, not with a limit; "
        "`repeat: {margin: 5%}` is the difference that counts as a tie", ("", *_ENTRIES)),
    Row("volume mount", "put the files into the image; servers of the lab serve those of `content: FOLDER`",
        ("servers",)),
    Row("build dockerfile context", "build the image first, such as `docker build -t my-app .`, and name it: "
        "`image: my-app`", ("servers",)),
    Row("depends on link network container name", "each server is one container, which the lab starts and names",
        ("servers",)),
    Row("cpu", f"{CPU_NOT_SLOWED}: remove it", _ANYWHERE),
    Row("browser", "it is a key of a workload of `kind: page`, `chromium` by default; to compare browsers: arms: "
        "{h3-firefox: {protocol: h3, browser: firefox}}", ("",)),
    Row("keepalive keep alive reuse pool", "each trial opens new connections and keeps them to its end", _ENTRIES),
    Row("cache caching", "{kind: page, visit: repeat} loads a page again, with its cache", _ENTRIES),
    Row("output", "`lab.py report RUN --output FILE` copies the page of a run"),
    Row("log logging debug quiet", "`lab.py run --verbose` prints a line for each trial, and `lab.py run --capture "
        "CONDITION` keeps logs", ("",)),
    Row("description comment note remark", "for a note write a comment, which begins with `#`", _ANYWHERE),
    Row("sweep grid", "a sweep is a list of values of one key of a profile, such as profiles: {far: {downlink: {loss: "
        "[0%, 1%, 2%]}}}", ("",)),
    Row("import include extends", "a matrix is one file: copy into it what it shares with another one", ("",)),
    Row("version", "a matrix has no version: remove it", ("",)),
    Row("capture pcap", "captures are an option of the command line: lab.py run --capture CONDITION",
        ("", "profiles", *_ENTRIES)),
    *(Row(option, f"it is an option of the command line: lab.py run --{option}") for option in _ON_COMMAND_LINE),
)  # fmt: skip


def is_live(value: Any) -> bool:
    """True for an address on the internet such as `https://example.org`, and for a list of them."""
    if isinstance(value, list):
        return bool(value) and all(map(is_live, value))
    return isinstance(value, str) and _URL.fullmatch(value) is not None


def is_site(path: Path, value: Any) -> bool:
    """True if an address on the internet is written where something to measure is expected."""
    return is_live(value) and path[0] != "published" and path[-1] not in _ADDRESSED


def answer(key: str, group: str) -> str:
    """The answer for a word below a `group` (empty: at the top of the file); empty if no row has it."""
    words = {*form(in_words(key)).split()}
    for row in ROWS:
        own = {*form(row.words).split()}
        if group in row.groups and words & own and words <= own | {*form(row.further).split()}:
            return row.answer
    return ""


def of_unknown(path: Path, level: Level) -> str:
    """The answer for an unknown key, unless it stands for a key of its level; `level` is that of the mapping."""
    key, written = str(path[-1]), level.written if isinstance(level.written, dict) else {}
    if is_site(path, written.get(key)):
        return LIVE
    is_path = str(written.get(key)).startswith("/")
    if is_path or respelt_key(key, level.keys) or level.meant_by(key) or level.has(key):
        return ""
    is_load = str(path[0]) == "workloads" and re.fullmatch(r"[0-9.]+ *(?:/ *s|rps|req.*)", str(written.get(key)))
    return answer("rps" if is_load else "cpu" if has_word(key, "cpu") else key, str(path[0]) if path[1:] else "")
