"""Finds the allowed word that a text most likely stands for: case, order, plural, one typing error, a synonym."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

LONGEST_WORD = 64  # longer words are not compared: a comparison costs the product of the lengths
MOST_COMPARED = 100  # words, letter by letter; single typing errors are found among any number
ALIKE = 0.6  # ratio of difflib (its default cutoff) above which one word is a misspelling of another
SHORTEST_START = 3  # letters that may stand for a word that begins with them
SYNONYMS = {  # other names of a key or a kind, by form; a round trip is twice a delay and therefore missing
    "latency": "delay ttfb ttfb_s", "bandwidth": "rate goodput_bps", "throughput": "rate transfer goodput_bps",
    "speed": "rate goodput_bps",
    "drop": "loss", "plr": "loss", "corruption": "corrupt", "duplication": "duplicate", "reordering": "reorder",
    "cc": "congestion", "think": "server_delay", "think time": "server_delay", "thinktime": "server_delay",
    "conn": "connections flows", "connection": "flows", "protocol": "over", "change": "at", "step": "at",
    "schedule": "at", "event": "at", "timeline": "at",
    "down": "downlink bad", "up": "uplink good", "network": "profiles preset",
    "repetition": "repeat", "duration": "bad budget total_s",
    "gilbert": "gemodel", "elliott gilbert": "gemodel", "elliot gilbert": "gemodel", "gilbertelliott": "gemodel",
    "object": "requests streams", "page": "objects", "webpage": "page objects", "website": "page objects content",
    "web": "page objects", "browser": "page objects", "download": "downlink transfer total_s", "bulk": "transfer",
    "file": "transfer", "xfer": "transfer", "downstream": "downlink", "upload": "uplink", "upstream": "uplink",
    "buffer": "queue", "buffer size": "queue", "byte": "size", "limit": "packets", "size": "packets",
    "length": "bad packets", "depth": "packets", "maxsize": "packets", "max size": "packets", "max packet": "packets",
    "max queue size": "queue", "every": "good", "period": "good", "for": "bad", "ratio": "random",
    "drop packet": "loss", "los packet": "loss", "los rate": "loss", "drop rate": "loss", "los packet rate": "loss",
    "base": "preset", "template": "preset",
    "extend": "preset", "library": "preset", "type": "kind", "count": "requests steps streams flows repeat",
    "number": "requests steps streams flows",
    "url": "path source", "uri": "path source", "link": "source", "author": "title", "result": "times",
    "arm": "protocol", "start": "from", "begin": "from", "min": "from",
    "minimum": "from min", "low": "from", "end": "to", "stop": "to", "max": "to", "maximum": "to max", "high": "to",
    "least": "from min", "most": "to max",
    "n": "requests steps streams", "c": "connections", "m": "streams", "concurrent max stream": "streams", "q": "r",
    "precision": "within", "resolution": "within", "javascript": "js", "script": "js", "stylesheet": "css",
    "on": "good", "off": "bad", "style": "css", "document": "html", "alt svc": "discovery", "altsvc": "discovery",
    "picture": "images requests", "img": "images requests", "image": "requests",
    "image size": "size", "environment": "env", "healthcheck": "ready",
    "health": "ready", "cmd": "command", "arg": "command", "entrypoint": "command", "gaussian": "normal",
    "gauss": "normal",
    "parallel": "connections lanes", "batch": "connections", "concurrency": "connections",
    "client": "connections", "num thread": "connections", "atonceuser": "connections",
    "block": "min repeat", "run": "repeat min", "trial": "repeat", "sample": "repeat",
    "iteration": "requests repeat max", "round": "repeat", "time": "budget total_s", "runtime": "budget",
    "run time": "budget",
    "limit time": "timeout budget",
    "max time": "timeout budget", "bad los": "loss bad", "good los": "good", "1 h": "bad", "1 k": "good",
    "overhead": "packet_overhead", "include": "conditions", "combination": "conditions", "heading": "title",
    "description": "title", "name": "title preset", "bw": "rate", "bw target": "rate", "bit rate": "rate",
    "limit rate": "rate", "bitrate": "rate",
    "ip": "address", "nginx": "server", "h2load": "client",
    "default": "as-shipped", "stock": "as-shipped", "limited": "as-shipped", "num": "requests steps",
    "point": "steps",
    "mobileslow4g": "lighthouse-slow-4g", "mobileregular3g": "lighthouse-3g", "desktopdense4g": "lighthouse-desktop",
    "aqm": "queue", "qdisc": "queue", "bufferbloat": "queue",
    "codel": "fq_codel", "droptail": "fifo", "drop tail": "fifo", "pfifo": "fifo", "bfifo": "fifo",
    "fast pfifo": "fifo", "when": "at", "perte": "loss", "verlust": "loss", "debit": "rate", "bandbreite": "rate",
    "verz\u00f6gerung": "delay", "verzoegerung": "delay", "gigue": "jitter", "d\u00e9bit": "rate",
    "site": "content", "folder": "content", "root": "content", "rp": "total_s", "per request second": "total_s",
    "connect": "handshake_s", "byte first": "ttfb_s", "load page": "load_s", "plt": "load_s",
    "load page time": "load_s",
    "median": "request_p50_s", "response time": "request_p50_s", "p90": "request_p95_s", "p99": "request_p95_s",
    "vu": "connections",
    "ceil": "rate", "curl": "transfer", "wget": "transfer", "connectivity": "preset", "throttling": "preset",
    "repeat view": "visit", "metric": "judge", "measure": "judge", "scenario": "workloads", "restart": "fresh",
    "request": "streams", "tbf": "fifo", "htb": "fifo", "profile": "preset", "share": "random",
    "wlan": "browser-wifi", "fi wi": "browser-wifi",
    "0 rtt": "early", "0rtt": "early", "zero rtt": "early", "data early": "early", "full": "new", "cold": "new",
    "first": "new", "warm": "resumed", "psk": "resumed", "ticket": "resumed", "resumption": "resumed",
} | {  # German and French
    word: english for english, words in {
        "profiles preset": "netzwerk netzwerke netz netze r\u00e9seau r\u00e9seaux reseau reseaux",
        "objects requests streams": "objekt objekte objet",  # codespell:ignore objekt,objet
        "requests streams": "anfrage anfragen requ\u00eate requete", "requests steps streams flows": "anzahl nombre",
        "size": "gr\u00f6sse groesse taille", "delay": "latenz latence", "loss": "paketverlust",
        "connections": "verbindung verbindungen connexion",  # codespell:ignore connexion
        "repeat": "wiederholung wiederholungen r\u00e9p\u00e9tition", "conditions": "bedingungen",
    }.items() for word in words.split()
} | {written.format(version): f"h{version}" for version in "123" for written in ("http{}", "{} http")}  # fmt: skip
_PERCENTILE = re.compile(r"(?<![^\W_])p(\d{2})(?!\d)")  # the 90 of `request_p90_s`
_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm,.")  # each half a key further right than the one above


def form(text: str) -> str:
    """Text without case, separators, plural and order of its words."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return " ".join(sorted(word.removesuffix("s") if len(word) > 2 else word for word in words))


def in_words(text: str) -> str:
    """Text with a space between the words of `camelCase`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)


def has_word(text: str, word: str) -> bool:
    """True if a text, such as `cpuSlowdownMultiplier`, has the word as one of its words."""
    return word in form(in_words(text)).split()


def nearest(text: str, allowed: Sequence[str]) -> str:
    """Allowed word that the text is most likely a misspelling of; empty if none is close."""
    if not text or len(text) > LONGEST_WORD:
        return ""
    if same := _by_percentile(text, allowed) or respelt(text, allowed):
        return same
    if same := synonym(text, allowed):
        return same
    folded = {word.casefold(): word for word in allowed[:MOST_COMPARED]}
    if close := get_close_matches(text.casefold(), folded, n=1):
        return _with_other_words(text, folded[close[0]], allowed) or folded[close[0]]
    beginning = [word for start, word in folded.items() if start.startswith(text.casefold())]
    return beginning[0] if len(beginning) == 1 and len(text) >= SHORTEST_START else ""


def part_of(text: str, allowed: Sequence[str]) -> str:
    """The only allowed word whose words are all in a text: `max` for `max_blocks`; empty without one."""
    written = set(form(in_words(text)).split())
    parts = [word for word in allowed if (own := set(form(word).split())) and own < written]
    return parts[0] if len(parts) == 1 else ""


def _with_other_words(text: str, close: str, allowed: Sequence[str]) -> str:
    """The allowed word of which all words are in a text, if a `close` one has another word instead of a further one.

    So `lte` for `LTE-good`, not `lte-poor`; but `wpt-3g-fast` for `wpt-3g-faster`. Empty without one.
    """
    written, other = (set(form(word).split()) for word in (text, close))
    left, instead = (" ".join(sorted(words)) for words in (written - other, other - written))
    parts = [word for word in allowed if (own := set(form(word).split())) and own < written and own < other]
    is_alike = SequenceMatcher(None, left, instead).ratio() > ALIKE
    return "" if is_alike or len(parts) != 1 else parts[0]


def _by_percentile(text: str, allowed: Sequence[str]) -> str:
    """Allowed word with the nearest percentile that differs from the text in nothing else; empty without one."""
    if not (written := _PERCENTILE.search(text)):
        return ""
    alike = _PERCENTILE.sub("p", text)
    apart = {
        word: abs(int(found[1]) - int(written[1]))
        for word in allowed
        if (found := _PERCENTILE.search(word)) and _PERCENTILE.sub("p", word) == alike
    }
    return min(apart, key=lambda word: apart[word], default="")


def synonym(text: str, allowed: Sequence[str]) -> str:
    """Allowed word for a synonym; empty without one."""
    return next((word for word in synonyms(text) if word in allowed), "")


def synonyms(text: str) -> list[str]:
    """Words that a text is a synonym for, the likeliest first."""
    return (SYNONYMS.get(form(text)) or SYNONYMS.get(form(in_words(text)), "")).split()


def containing(text: str, allowed: Sequence[str]) -> list[str]:
    """Allowed words that contain the text as a part, such as `wpt-3g` for `3g`."""
    parts = set(form(text).split())
    return [word for word in allowed if parts and parts <= set(form(word).split())]


def respelt(text: str, allowed: Sequence[str]) -> str:
    """Allowed word that differs from the text only in form or by one typing error; empty without one."""
    words = _Words.of(tuple(allowed))
    return words.by_form.get(form(text)) or words.joined.get(_joined(text)) or words.one_slip_away(text.casefold())


def _joined(text: str) -> str:
    """Text without case and separators."""
    return "".join(re.findall(r"[^\W_]+", text.casefold()))


class _Words:
    """Words by their form, and by the word with one letter left out."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self.by_form = {form(word): word for word in reversed(allowed) if form(word)}
        self.joined = {_joined(word): word for word in reversed(allowed) if _joined(word)}
        self._short = defaultdict[str, list[str]](list)
        for word in allowed:
            for left in _without_a_letter(word.casefold()[:LONGEST_WORD]):
                self._short[left].append(word)

    @staticmethod
    @lru_cache(maxsize=64)
    def of(allowed: tuple[str, ...]) -> _Words:
        """Return a cached object: a file with many mistakes asks for each of them."""
        return _Words(allowed)

    def one_slip_away(self, text: str) -> str:
        """Word that differs by one additional, missing or different letter, or by two that are swapped."""
        found = dict.fromkeys(word for left in _without_a_letter(text) for word in self._short.get(left, ()))
        near = [word for word in list(found)[:MOST_COMPARED] if _is_one_slip(text, word.casefold())]
        return min(near, key=lambda word: _unlikeness(text, word.casefold()), default="")


def _without_a_letter(word: str) -> Iterator[str]:
    yield word
    for index in range(len(word)):
        yield word[:index] + word[index + 1 :]


def _is_one_slip(text: str, word: str) -> bool:
    if len(text) != len(word):
        return len(min(text, word, key=len)) > 0
    differing = [index for index in range(len(text)) if text[index] != word[index]]
    if len(differing) == 2:
        one, other = differing
        return (text[one], text[other]) == (word[other], word[one])
    return len(differing) <= 1 and len(text) > 1


def _unlikeness(text: str, word: str) -> float:
    """Distance of words that are one typing error apart: less for a key next to the right one."""
    other = [(one, two) for one, two in zip(text, word, strict=False) if one != two]
    is_other_key = len(text) == len(word) and len(other) == 1
    is_swapped = len(text) == len(word) and len(other) == 2
    far = (0.0 if _beside(*other[0]) else 2.0) if is_other_key else 0.5 if is_swapped else 1.0
    return far - SequenceMatcher(None, text, word).ratio()


def _beside(one: str, other: str) -> bool:
    """True if two keys of a QWERTY keyboard touch."""
    places = [
        (index + row / 2, row) for letter in (one, other) for row, keys in enumerate(_ROWS)
        if (index := keys.find(letter)) >= 0
    ]  # fmt: skip
    return len(places) == 2 and abs(places[0][0] - places[1][0]) <= 1 and abs(places[0][1] - places[1][1]) <= 1
