"""The browsers that the lab can start; image, service and agent of each are in the folder of its name in browsers/."""

from __future__ import annotations

CHROMIUM = "chromium"
BROWSERS = (CHROMIUM,)  # each is a folder of browsers/
