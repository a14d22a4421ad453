"""U-statistics of order two and their variances, from the row sums of the Gram matrix.

Notation as in the paper: r_i = sum_{j != i} H_ij, U = sum r_i / (n(n-1)), v the variance of sqrt(n) U.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

Vector = Float[np.ndarray, "n"]


class Components(NamedTuple):
    """Hoeffding's variance components (A.2): of the projection, and of the kernel itself."""

    zeta_1: float
    zeta_2: float


def u_statistic(rows: Vector) -> float:
    n = len(rows)
    return float(rows.sum() / (n * (n - 1)))


def jackknife_variance(rows: Vector) -> float:
    """(n-1) sum_i (U_{-i} - U)^2 (eq. 10), U_{-i} = (sum r - 2 r_i) / ((n-1)(n-2))."""
    n = len(rows)
    return float(4 * np.sum((rows - rows.mean()) ** 2) / ((n - 1) * (n - 2) ** 2))


def components(rows: Vector, squares: float) -> Components:
    """Unbiased estimates of zeta_1 and zeta_2: U-statistics of order three, four and two."""
    n = len(rows)
    row_squares = np.sum(rows**2)
    chained = (row_squares - squares) / (n * (n - 1) * (n - 2))  # E h(1,2) h(1,3)
    apart = (rows.sum() ** 2 - 4 * row_squares + 2 * squares) / (n * (n - 1) * (n - 2) * (n - 3))  # E h(1,2) h(3,4)
    return Components(float(chained - apart), float(squares / (n * (n - 1)) - apart))


def hoeffding_variance(n: int, zeta: Components) -> float:
    """Var(U_n), eq. (A.2)."""
    return (4 * (n - 2) * zeta.zeta_1 + 2 * zeta.zeta_2) / (n * (n - 1))


def ustat_variance(rows: Vector, squares: float) -> float:
    """n Var(U) with both components estimated by U-statistics; it may be negative (Appendix C.4)."""
    return len(rows) * hoeffding_variance(len(rows), components(rows, squares))


def vstat_variance(rows: Vector, diagonal: Vector) -> float:
    """4 zeta_1 by a V-statistic: the variance of the row means, the diagonal included (Appendix C.4)."""
    return float(4 * np.var((rows + diagonal) / len(rows)))


class Regularised(NamedTuple):
    """A statistic that stays normal when the U-statistic degenerates, and its variance."""

    numerator: float
    variance: float
    influence: Float[np.ndarray, " j"]  # of each pair of observations


def regularised(rows: Vector, order: Int[np.ndarray, " k"], pairs: Float[np.ndarray, " j"]) -> Regularised:
    """U plus eps times the mean over n/2 disjoint pairs, in the spirit of Schennach and Wilhelm (2017).

    ``order`` lists the members of the pairs, (2 j, 2 j + 1) together; ``pairs`` holds H at them.
    """
    n = len(rows)
    eps = n ** (-1 / 3)
    u, mean = u_statistic(rows), pairs.mean()
    projections = rows[order].reshape(-1, 2).sum(1) / (n - 1)
    g = 2 * (projections - 2 * u) + 2 * eps * (pairs - mean)
    return Regularised(float(u + eps * mean), float(np.var(g, ddof=1) / 2), g)


def required_n(difference: float, zeta: Components, quantiles: float) -> int | float:
    """The smallest n with difference >= quantiles * sqrt(Var(U_n)); infinite if the difference is not positive."""
    if difference <= 0:
        return math.inf

    def enough(n: int) -> bool:
        return difference >= quantiles * math.sqrt(max(hoeffding_variance(n, zeta), 0.0))

    high = 4
    while not enough(high):
        high *= 2
        if high > 2**60:
            return math.inf
    low = high // 2 if high > 4 else 3
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
