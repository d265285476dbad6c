"""`lab.py profiles`: lists the networks that a matrix can use by name, and their publishers."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headwind.format import link_settings
from headwind.matrix.presets import NETWORKS
from headwind.matrix.profile import network
from impair.profile import Link


def print_profiles(out: Console) -> None:
    """Print a line for each network with netem's settings in each direction, then the sources by number."""
    sources = list(dict.fromkeys(each.source for each in NETWORKS.values()))
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "description", "downlink", "uplink", "source"):
        table.add_column(heading, no_wrap=heading == "name")
    for name, each in NETWORKS.items():
        profile = network(name).to_model(name)
        cells = (_words(profile.downlink), _words(profile.uplink), str(sources.index(each.source) + 1))
        table.add_row(name, escape(each.label), *cells)
    out.print(table, highlight=False)
    out.print("\nIn a matrix: `profiles: {slow: {preset: wpt-3g-slow}}`. Sources:", highlight=False)
    for number, source in enumerate(sources, 1):
        out.print(f"  {number}  {escape(source)}", highlight=False)


def _words(link: Link) -> str:
    return escape(", ".join(f"{name} {value}" for name, value in link_settings(link).items()) or "nothing")
