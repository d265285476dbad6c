"""Lanes on other machines: workers known to a scheduler of dask, each with its own Docker."""
