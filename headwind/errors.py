"""Errors for people: the root of all of them, and the user's own mistakes."""

from __future__ import annotations


class HeadwindError(Exception):
    """The root of every error that the lab explains to a person: what was tried, where, and what to do next."""

    exit_code = 1


class UsageError(HeadwindError):
    """A mistake in matrix.yaml or on the command line; nothing was started."""

    exit_code = 2
