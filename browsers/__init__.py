"""Browsers that load pages: each has a folder with its image and its agent, and runs on the client's host."""
