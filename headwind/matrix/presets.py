"""Published networks by name, for `{preset: NAME}` in a matrix; `lab.py profiles` lists them.

Sources with a round-trip time have half of it in each direction: they do not state more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Tree = Mapping[str, Mapping[str, object]]  # a profile in the format of a matrix


@dataclass(frozen=True, slots=True)
class Network:
    """A preset: its meaning, its impairments, and its publisher."""

    label: str
    written: Tree
    source: str


def _access(down: str, up: str, delay: str) -> Tree:
    """Access network: rates, and the delay of one direction."""
    return {"downlink": {"rate": down, "delay": delay}, "uplink": {"rate": up, "delay": delay}}


_BROWSER = "a browser's throttling presets of 2016, as an article on HTTP/2 used them"
_WEBPAGETEST = "WebPageTest, www/settings/connectivity.ini.sample; sitespeed.io's profiles of these names are the same"
_LIGHTHOUSE = "Lighthouse, core/config/constants.js: the network's values, without its allowance for DevTools"
_DISTANCE = (
    "the data centres of the German benchmark of 2023, which prints no round trips: the distance on the map to "
    "northern Germany, times 1.5 for cable routes, at 200 km/ms"
)

NETWORKS: Mapping[str, Network] = {
    "browser-regular-2g": Network("regular 2G of 2016", _access("250kbit", "50kbit", "150ms"), _BROWSER),
    "browser-good-2g": Network("good 2G of 2016", _access("450kbit", "150kbit", "75ms"), _BROWSER),
    "browser-regular-3g": Network("regular 3G of 2016", _access("750kbit", "250kbit", "50ms"), _BROWSER),
    "browser-good-3g": Network("good 3G of 2016", _access("1500kbit", "750kbit", "20ms"), _BROWSER),
    "browser-regular-4g": Network("regular 4G of 2016", _access("4mbit", "3mbit", "10ms"), _BROWSER),
    "browser-wifi": Network("Wi-Fi of 2016", _access("30mbit", "15mbit", "1ms"), _BROWSER),
    "wpt-2g": Network("mobile 2G", _access("35kbit", "32kbit", "650ms"), _WEBPAGETEST),
    "wpt-edge": Network("mobile EDGE", _access("240kbit", "200kbit", "420ms"), _WEBPAGETEST),
    "wpt-3g-slow": Network("slow mobile 3G", _access("780kbit", "330kbit", "100ms"), _WEBPAGETEST),
    "wpt-3g": Network("mobile 3G", _access("1600kbit", "768kbit", "150ms"), _WEBPAGETEST),
    "wpt-3g-fast": Network("fast mobile 3G", _access("1600kbit", "768kbit", "75ms"), _WEBPAGETEST),
    "wpt-dial": Network("a modem of 56 kbit/s", _access("49kbit", "30kbit", "60ms"), _WEBPAGETEST),
    "wpt-dsl": Network("DSL", _access("1500kbit", "384kbit", "25ms"), _WEBPAGETEST),
    "wpt-cable": Network("a cable modem", _access("5mbit", "1mbit", "14ms"), _WEBPAGETEST),
    "wpt-fios": Network("fibre to the home", _access("20mbit", "5mbit", "2ms"), _WEBPAGETEST),
    "lighthouse-slow-4g": Network(
        "slow 4G, the default for mobile", _access("1638.4kbit", "750kbit", "75ms"), _LIGHTHOUSE
    ),
    "lighthouse-3g": Network("regular 3G", _access("700kbit", "700kbit", "150ms"), _LIGHTHOUSE),
    "lighthouse-desktop": Network(
        "dense 4G, the default for desktop", _access("10240kbit", "10240kbit", "20ms"), _LIGHTHOUSE
    ),
    "distance-nuremberg": Network("a data centre 450 km away", {"both": {"delay": "3.4ms"}}, _DISTANCE),
    "distance-helsinki": Network("a data centre 1,100 km away", {"both": {"delay": "8.3ms"}}, _DISTANCE),
    "distance-virginia": Network("a data centre 6,500 km away", {"both": {"delay": "49ms"}}, _DISTANCE),
    "lte": Network(
        "LTE", _access("12mbit", "12mbit", "35ms"),
        "WebPageTest's connectivity.ini.sample after 2018: 12 Mbit/s, 70 ms round trip",
    ),
    "lte-poor": Network(
        "LTE with 100 ms more RTT and 15 % loss",
        {
            "downlink": {"rate": "12mbit", "delay": "85ms", "loss": "15%"},
            "uplink": {"rate": "12mbit", "delay": "85ms"},
        },
        "the `wroclaw-poor` row of the German benchmark of 2023 (100 ms, about 15 % by tc), on the LTE above; it is "
        "assumed that only the downlink has loss",
    ),
    "satellite-geo": Network(
        "a geostationary satellite", _access("25mbit", "3mbit", "279ms"),
        "RFC 2488, section 2: up to 279.0 ms for one hop; the rates are the FCC's benchmark of broadband of 2015",
    ),
    "bursts": Network(
        "bursty loss: 6.45 % on average, in bad spells of ten packets",
        {"downlink": {"delay": "20ms", "loss": {"gemodel": {"p": "1%", "r": "10%", "bad": "70%", "good": "0.1%"}}},
         "uplink": {"delay": "20ms"}},
        "the example of netem's Gilbert-Elliott model, p 1 %, r 10 %, 1-h 70 %, 1-k 0.1 % (Salsano et al., NetemCLG, "
        "2012); counted in packets: an idle link does not recover",
    ),
}  # fmt: skip


def with_keys(name: str, keys: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Keys of the network with other values: those of a direction, or of each direction that has such a key."""
    found: dict[str, dict[str, object]] = {direction: dict(own) for direction, own in NETWORKS[name].written.items()}
    if "both" in found and keys.keys() & {"uplink", "downlink"}:
        both = found.pop("both")
        found = {direction: dict(both) for direction in ("downlink", "uplink")}
    for key, value in keys.items():
        if isinstance(value, Mapping):
            for home in list(found) if key == "both" else [key]:
                found.setdefault(home, {}).update(value)
        else:
            for own in [own for own in found.values() if key in own] or list(found.values())[:1]:
                own[key] = value
    return found
