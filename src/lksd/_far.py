"""Numbers far from all others, such as codes for missing values, and the spread of columns without them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

FAR = 50  # robust standard deviations
ROBUST = 1.4826  # from the median absolute deviation of normal numbers to their standard deviation
SAMPLE = 10_000  # rows from which a column's median and deviation are taken


def is_far(x: Float[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
    """Rows with a number that is of another order of magnitude than the others of its column."""
    part = x if len(x) <= SAMPLE else x[np.random.default_rng(0).choice(len(x), SAMPLE, replace=False)]
    centre = np.median(part, axis=0)
    spread = ROBUST * np.median(np.abs(part - centre), axis=0)
    spread[spread == 0] = np.inf  # a column that is mostly constant has no scale
    return (np.abs(x - centre) > FAR * spread).any(1)


def column_spreads(x: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " D"]:
    """The standard deviation of each column, without rows far from all others."""
    far = is_far(x)
    return x[~far].std(0) if far.any() else x.std(0)
