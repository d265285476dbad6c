"""The browsers that the lab can start; image, service and agent of each are in the folder of its name in browsers/."""

from __future__ import annotations

CHROMIUM, FIREFOX = "chromium", "firefox"
BROWSERS = {CHROMIUM: "Chromium", FIREFOX: "Firefox"}  # each is a folder of browsers/, with its name in sentences
