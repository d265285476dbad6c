"""How much property tests and simulations do: enough to find a fault that is put there, or all of it."""

from __future__ import annotations

import os

THOROUGH = "HEADWIND_THOROUGH" in os.environ  # `make test-thorough` sets it


def size(quick: int, thorough: int) -> int:
    """How many examples or runs: `quick` in `make test`, `thorough` in `make test-thorough`."""
    return thorough if THOROUGH else quick
