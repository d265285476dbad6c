"""Shows whether servers send a page's fonts before files of lower priority, for runs of experiments/page_servers.yaml.

    .venv/bin/python bench/priorities.py reports/<run-id>

A browser requests fonts with the highest priority, after it has requested scripts and images with a lower one. The more
of these arrive while the fonts are awaited, the less the server heeded the priorities. A fair share of the link would
be as many bytes for each open request. Needs no Docker.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pandas as pd

from headwind.report.formats.markdown import row
from headwind.run.frames import open_run

LOWER = ("image", "script")
HEADS = ("network", "arm", "pages", "fonts: wait", "lower priority: open before", "complete before the last font")


def waits(requests: pd.DataFrame) -> pd.DataFrame:
    """How long each finished page waited for its fonts, and what came meanwhile; pages without fonts are left out.

    `wait_s`: seconds from the first request for a font to the last byte of the last font. `open_bytes`: images and
    scripts that had been requested before, and were not complete. `complete_bytes`: those that were complete before the
    last font.
    """
    kinds = requests["request_path"].str.extract(r"/(\w+)-\d+\.\w+$")[0]
    done = requests.assign(kind=kinds, end_s=requests["request_start_s"] + requests["request_took_s"])
    done = done[done["outcome"] == "ok"]
    rows = []
    for names, page in done.groupby(["profile", "arm", "trial"], observed=True):
        fonts, lower = page[page["kind"] == "font"], page[page["kind"].isin(LOWER)]
        if fonts.empty:
            continue
        asked_s, ended_s = fonts["request_sent_s"].min(), fonts["end_s"].max()
        lower = lower[lower["end_s"] > asked_s]
        opened, complete = lower[lower["request_sent_s"] < asked_s], lower[lower["end_s"] <= ended_s]
        rows.append((*names[:2], ended_s - asked_s, opened["request_bytes"].sum(), complete["request_bytes"].sum()))
    return pd.DataFrame(rows, columns=["profile", "arm", "wait_s", "open_bytes", "complete_bytes"])


def table(found: pd.DataFrame) -> list[str]:
    """Medians of the pages of each arm, in Markdown."""
    lines = [row(*HEADS), row(*["---"] * len(HEADS))]
    for (profile, arm), pages in found.groupby(["profile", "arm"], observed=True):
        wait_s, opened, complete = pages[["wait_s", "open_bytes", "complete_bytes"]].median()
        cells = [
            f"{profile}",
            f"{arm}",
            f"{len(pages)}",
            f"{wait_s:.2f} s",
            f"{opened / 1e3:.0f} kB",
            f"{complete / 1e3:.0f} kB",
        ]
        lines.append(row(*cells))
    return lines


def main() -> None:
    """Print the table of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run folder")
    print(*table(waits(open_run(parser.parse_args().run).requests)), sep="\n")


if __name__ == "__main__":
    main()
