"""U-statistics of order two, their variances and joint resamples, from the row sums of the Gram
matrix, or of each of several.

Notation as in the paper: r_i = sum_{j != i} H_ij, U = sum r_i / (n(n-1)), v the variance of sqrt(n)
U.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

Rows = Float[np.ndarray, "*A n"]
Partners = Int[np.ndarray, " n"] | None
CELLS = 2**24  # numbers of the resamples that are held at once
# in medians: beyond it one observation that is drawn twice would outweigh all others
LARGEST_DIAGONAL = 100


class Components(NamedTuple):
    """Hoeffding's variance components (A.2): of the projection, and of the kernel itself."""

    zeta_1: Any
    zeta_2: Any


def u_statistic(rows: Rows) -> Any:
    n = rows.shape[-1]
    return rows.sum(-1) / (n * (n - 1))


def centred(rows: Rows) -> Rows:
    return rows - rows.mean(-1, keepdims=True)


def jackknife_variance(rows: Rows) -> Any:
    """(n-1) sum_i (U_{-i} - U)^2 (eq. 10), U_{-i} = (sum r - 2 r_i) / ((n-1)(n-2))."""
    n = rows.shape[-1]
    return 4 * np.sum(centred(rows) ** 2, -1) / ((n - 1) * (n - 2) ** 2)


def components(rows: Rows, squares: Any, partners: Partners = None) -> Components:
    """Unbiased estimates of zeta_1 and zeta_2, from the pairs of pairs that share one, no and both
    observations.

    ``partners`` says with how many others each observation is paired, where that is not n - 1; rows
    and squares then stand for all pairs.
    """
    n = rows.shape[-1]
    ordered, met = moments(n, partners)
    share = ordered / (n * (n - 1))
    rows, squares = share * rows, share * squares
    row_squares = np.sum(rows**2, -1)
    chained = (row_squares - squares) / (met - ordered)  # E h(1,2) h(1,3)
    # E h(1,2) h(3,4)
    apart = (rows.sum(-1) ** 2 - 4 * row_squares + 2 * squares) / (
        ordered**2 - 4 * met + 2 * ordered
    )
    return Components(chained - apart, squares / ordered - apart)


def moments(n: int, partners: Partners) -> tuple[float, float]:
    """How many ordered pairs there are, and the sum over the observations of their numbers of
    partners squared.
    """
    if partners is None:
        return float(n) * (n - 1), float(n) * (n - 1) ** 2
    return float(np.sum(partners)), float(np.sum(np.square(partners, dtype=np.float64)))


def incomplete_variance(zeta: Components, partners: Int[np.ndarray, " n"]) -> Any:
    """n Var(U) of the mean over some pairs, all different: eq. (A.2) where they are all pairs. What
    is left out adds zeta_2.
    """
    n = len(partners)
    ordered, met = moments(n, partners)
    return (
        n
        * (4 * (met - ordered) * np.maximum(zeta.zeta_1, 0.0) + 2 * ordered * zeta.zeta_2)
        / ordered**2
    )


def hoeffding_variance(n: int, zeta: Components) -> Any:
    """Var(U_n), eq. (A.2)."""
    return (4 * (n - 2) * zeta.zeta_1 + 2 * zeta.zeta_2) / (n * (n - 1))


def ustat_variance(rows: Rows, squares: Any) -> Any:
    """n Var(U) with both components estimated by U-statistics; it may be negative
    (Appendix C.4).
    """
    n = rows.shape[-1]
    return n * hoeffding_variance(n, components(rows, squares))


def vstat_variance(rows: Rows, diagonal: Rows) -> Any:
    """The part of zeta_1 in n Var(U), eq. (A.2), with zeta_1 by a V-statistic (Appendix C.4): the
    variance of the row means, the diagonal included.
    """
    n = rows.shape[-1]
    return 4 * (n - 2) / (n - 1) * np.var((rows + diagonal) / n, axis=-1)


class Regularised(NamedTuple):
    """A statistic that stays normal when the U-statistic degenerates, and its variance."""

    estimate: Any
    variance: Any
    influence: Float[np.ndarray, "*A j"]  # of each pair of observations


def regularised(
    rows: Rows, order: Int[np.ndarray, " k"], pairs: Float[np.ndarray, "*A j"]
) -> Regularised:
    """The mean of U and the mean over n/2 disjoint pairs, in the spirit of Schennach and Wilhelm
    (2017).

    Their weights are 1 and eps, over 1 + eps, so that the mean estimates the same difference as U
    does. ``order`` lists the members of the pairs, (2 j, 2 j + 1) together; ``pairs`` holds H at
    them.
    """
    n = rows.shape[-1]
    eps = n ** (-1 / 3)
    u, mean = u_statistic(rows), pairs.mean(-1)
    projections = (rows[..., order[0::2]] + rows[..., order[1::2]]) / (n - 1)
    g = 2 * (projections - 2 * np.asarray(u)[..., None]) + 2 * eps * (
        pairs - pairs.mean(-1, keepdims=True)
    )
    g = g / (1 + eps)
    return Regularised((u + eps * mean) / (1 + eps), np.var(g, axis=-1, ddof=1) / 2, g)


def required_n(difference: float, zeta: Components, quantiles: float) -> int | float:
    """The smallest n with difference >= quantiles * sqrt(Var(U_n)); infinite if the difference is
    not positive.
    """
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


# Joint resamples of the differences of all models ---------------------------------------------


def multinomial_weights(n: int, replicates: int, seed: int) -> Float[np.ndarray, "n B"]:
    """How often each observation is drawn in each resample of size n."""
    chosen = np.random.default_rng(seed).integers(0, n, size=(replicates, n))
    cells = chosen + n * np.arange(replicates)[:, None]
    return (
        np.bincount(cells.ravel(), minlength=n * replicates)
        .reshape(replicates, n)
        .T.astype(np.float64)
    )


class Pairs(NamedTuple):
    """Which models are compared: first - second. All quantities of models are known up to those of
    the last of them.
    """

    first: Int[np.ndarray, " A"]
    second: Int[np.ndarray, " A"]

    def of(self, values: np.ndarray) -> np.ndarray:
        """The differences, along the first axis, of what belongs to the models; the last model's,
        zero, is left out.
        """
        every = np.concatenate([values, np.zeros((1, *values.shape[1:]))])
        return every[self.first] - every[self.second]

    def squared(self, moments: np.ndarray) -> np.ndarray:
        """The second moments of the differences from those of the models, along the
        last two axes.
        """
        every = np.zeros((*moments.shape[:-2], moments.shape[-2] + 1, moments.shape[-1] + 1))
        every[..., :-1, :-1] = moments
        i, j = self
        return every[..., i, i] + every[..., j, j] - 2 * every[..., i, j]


def against_last(models: int) -> np.ndarray:
    """Every model but the last minus the last: (1, -1) for two."""
    return np.eye(models)[:-1] - np.eye(models)[-1]


def all_pairs(models: int) -> Pairs:
    """Every two models once; of two it is P - Q."""
    return Pairs(*np.triu_indices(models, 1))


def studentised_replicates(
    rows: Float[np.ndarray, "C n"],
    own: Float[np.ndarray, "S n"],
    weights: Float[np.ndarray, "n B"],
    pairs: Pairs,
    matrix: Float[np.ndarray, "C n n"] | None = None,
    products: Float[np.ndarray, "C n _"] | None = None,
) -> Float[np.ndarray, "A B"]:
    """T* of each difference and resample: U* and its jackknife variance over the n slots, centred
    at the mean of H.

    ``rows`` are the row sums of the models' Gram matrices against that of the last model, and
    ``own`` the diagonals of the models' own; neither the ``matrix`` of the differences nor its
    ``products`` with the weights, one of which is needed, has its diagonal.
    """
    n, models = len(weights), len(rows)
    diagonal = bounded_diagonal(own)
    centre = (rows.sum(1) + diagonal.sum(1)) / n**2
    # all models' H, side by side
    beside = None if matrix is None else np.moveaxis(matrix, 0, 1).reshape(n, -1)
    size = max(1, CELLS // (n * models))
    found = []
    for start in range(0, weights.shape[1], size):
        w = weights[:, start : start + size].T  # (b, n)
        if beside is not None:
            slots = (w @ beside).reshape(len(w), models, n)
        else:
            assert products is not None
            slots = np.moveaxis(products[:, :, start : start + size], 2, 0)
        found.append(replicates_of(slots + diagonal * (w[:, None] - 1), w, centre, pairs))
    return np.concatenate(found).T


def mean_replicates(
    values: Float[np.ndarray, "C n"], weights: Float[np.ndarray, "n B"], pairs: Pairs
) -> Float[np.ndarray, "A B"]:
    """T* of the mean of each difference and resample, centred at the mean of the sample."""
    n, d = len(weights), pairs.of(values)
    d = d - d.mean(1, keepdims=True)
    mean = d @ weights / n
    variance = (d**2 @ weights - n * mean**2) / (n - 1)
    floor = np.finfo(float).eps * np.max(d**2, 1, initial=0.0)[:, None]  # all draws are equal
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > floor, mean / np.sqrt(variance / n), np.nan)


def bounded_diagonal(own: Float[np.ndarray, "S n"]) -> Float[np.ndarray, "C n"]:
    """H_ii of each model against the last, as observations that are drawn more than once meet
    themselves.

    The diagonal is no part of U, and grows with the square of the score: of an observation far from
    all others, such as a code for a missing value, it would decide every resample.
    """
    bounds = [
        LARGEST_DIAGONAL * np.median(row[row > 0]) if (row > 0).any() else np.inf for row in own
    ]
    bounded = np.minimum(own, np.array(bounds)[:, None])
    return bounded[:-1] - bounded[-1]


def replicates_of(
    slots: Float[np.ndarray, "b C n"], w: Float[np.ndarray, "b n"], centre, pairs: Pairs
) -> np.ndarray:
    """T* (b, A) from the row sums of the slots that hold each observation."""
    n = w.shape[1]
    mean = np.einsum("bcn,bn->bc", slots, w)[:, :, None] / n
    spread = slots - mean
    # sum_i w_i s_i s_i' for each resample: many small products, for which BLAS threads would mostly
    # wait for each other
    moments = (
        np.einsum("bcn,bn->bc", spread**2, w)[:, :, None]
        if spread.shape[1] == 1
        else np.einsum("bcn,bn,bdn->bcd", spread, w, spread)
    )
    variance = 4 * pairs.squared(moments) / ((n - 1) * (n - 2) ** 2)
    deviation = pairs.of((mean[:, :, 0] / (n - 1) - centre).T).T
    with np.errstate(divide="ignore", invalid="ignore"):
        t = deviation / np.sqrt(variance / n)
    return np.where(variance > 0, t, np.nan)
