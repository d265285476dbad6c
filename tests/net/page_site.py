"""The user's site for the tests of browsers: pages as they should be, and such as no browser likes."""

from __future__ import annotations

from pathlib import Path

from headwind.site_folder import Snapshot, read_site
from servers.page_files import font, image

# The script loads the last image only if the stylesheet is applied.
HOME = """\
<!doctype html><link rel="stylesheet" href="css/app.css?v=3"><script src="app.js" defer></script>
<p class="own">A site of one's own</p><img src="a%20picture%21.png" alt="">
"""
STYLES = "@font-face{font-family:own;src:url(../own.ttf)}.own{font-family:own;color:rgb(1,2,3)}"
SCRIPT = """\
if (getComputedStyle(document.querySelector(".own")).color === "rgb(1, 2, 3)")
  document.body.append(Object.assign(new Image(), {src: "applied.png"}));
"""
FILES = {
    "index.html": HOME.encode(), "css/app.css": STYLES.encode(), "app.js": SCRIPT.encode(), "own.ttf": font(),
    "a picture!.png": image(9_000, "a"), "applied.png": image(8_000, "b"), "unused.png": image(7_000, "c"),
    "broken.html": b'<!doctype html><p>Root<img src="/a.png"><img src="missing.png">',
}  # fmt: skip
HEAD = '<!doctype html><link rel="icon" href="data:,"><p>A page</p>'
PAGES = {
    "dialogs": '<script>alert("a"); confirm("b"); onload = () => prompt("c")</script>',
    "windows": '<script>open("file.bin"); open("/")</script>',
    "downloads": '<iframe src="file.bin"></iframe>',
    "elsewhere": '<script>location.replace("/")</script>',
    "forever": "<script>for (;;);</script>",
    "forever-after": "<script>onload = () => setTimeout(() => { for (;;); })</script>",
}


def write_site(folder: Path) -> Snapshot:
    """Write the site into a folder; its content."""
    pages = {f"{name}.html": f"{HEAD}{text}".encode() for name, text in PAGES.items()}
    for name, data in {**FILES, **pages, "file.bin": bytes(range(256))}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    return read_site(folder)
