"""Generates the example report and the README's pictures from one run.

    .venv/bin/python bench/pictures.py [--into docs] reports/20261122-0311-f48f

Writes the run's page to docs/example-report.html, and screenshots of its first screen, from a headless Chromium, to
docs/report-light.png and docs/report-dark.png. The run's folder does not change. Needs the packages of the page's
tests: playwright from requirements-dev.lock, and a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, sync_playwright

from headwind.report import RunData, render
from headwind.run.journal import Run

DOCS = Path(__file__).resolve().parent.parent / "docs"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, BELOW = 1280, 2  # pixels: width of the window, and space below the last row
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def drawn(folder: str) -> str:
    """The page of a run folder, with links relative to docs/ instead of reports/."""
    with Run.open(Path(folder)) as run:
        return (
            render(RunData.of(run), time.time())
            .replace('href="../../docs/', 'href="')
            .replace('href="../../', 'href="../')
        )


def picture(browser: Browser, page_file: Path, scheme: Literal["light", "dark"], target: Path) -> None:
    """Take a screenshot of the page from its top to the last row of its first table."""
    with browser.new_context(viewport={"width": WIDTH, "height": 800}, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(page_file.as_uri())
        box = page.locator("#answer table").first.bounding_box()
        if box is None:
            raise SystemExit(f"{page_file} has no table in its answer")
        height = box["y"] + box["height"] + BELOW
        page.screenshot(path=target, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}, full_page=True)


def main() -> None:
    """Generate the page, then take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run folder")
    parser.add_argument("--into", type=Path, default=DOCS, help="folder of the page and the pictures")
    options = parser.parse_args()
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise SystemExit("no Chromium found; on Debian: apt-get install chromium")
    page_file = options.into / "example-report.html"
    page_file.write_text(drawn(options.run), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for scheme in SCHEMES:
            picture(browser, page_file, scheme, options.into / f"report-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
