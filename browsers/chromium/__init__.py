"""Chromium: its image, its command line for each protocol, and its agent."""
