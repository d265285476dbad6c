"""The numbers of a violin: a smooth density, and dots that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

POINTS = 40  # of a density


def bandwidth(values: Floats) -> float:
    """Of a Gaussian kernel; 0 for values that are all equal.

    0.9 min(standard deviation, interquartile range / 1.34) n^(-1/5): Silverman, "Density Estimation for Statistics and
    Data Analysis", 1986, equation 3.31. Where half of the values are equal, the standard deviation alone.
    """
    deviation = float(np.std(values, ddof=1))
    low, high = np.quantile(values, [0.25, 0.75])
    narrow = min(deviation, float(high - low) / 1.34) or deviation
    return 0.9 * narrow * len(values) ** -0.2 if deviation > 1e-9 * max(1.0, float(np.abs(values).max())) else 0.0


def reach(values: Sequence[float]) -> tuple[float, float]:
    """From where to where the density of the values goes: two bandwidths beyond them."""
    data = np.asarray(values, dtype=float)
    beyond = 2 * bandwidth(data)
    return float(data.min()) - beyond, float(data.max()) + beyond


def density(values: Sequence[float]) -> tuple[Floats, Floats]:
    """POINTS places and how densely the values lie there; its integral is about 1. Two empty arrays if all are equal.

    It goes as far as `reach` says, where what is left is an eighth of one kernel. The heights are those of
    scipy.stats.gaussian_kde (a test compares them); to import that takes longer than to draw a page.
    """
    data = np.asarray(values, dtype=float)
    width = bandwidth(data)
    if not width:
        return np.empty(0), np.empty(0)
    places = np.linspace(*reach(values), POINTS)
    kernels = np.exp(-0.5 * ((places[:, None] - data[None, :]) / width) ** 2)
    return places, kernels.sum(axis=1) / (len(data) * width * math.sqrt(2 * math.pi))


def swarm(heights: Sequence[float], size: float, most: int) -> list[int]:
    """How many steps of `size` each dot moves aside so that no two touch; beyond `most` they may."""
    steps: list[int] = []
    for index, height in enumerate(heights):
        near = [steps[other] for other in range(index) if abs(heights[other] - height) < size]
        steps.append(next((step for step in range(most) if step not in near), len(near) % most))
    return steps
