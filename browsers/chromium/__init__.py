"""Chromium: its image, how it is started for each protocol, and its agent."""
