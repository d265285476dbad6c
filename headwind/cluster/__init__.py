"""Lanes on other machines: workers that a scheduler of dask knows, each with its own Docker."""
