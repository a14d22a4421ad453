"""Joint resamples of the differences of all models, from their Gram matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

CELLS = 2**24  # numbers of the resamples that are held at once
# in medians: beyond it one observation that is drawn twice would outweigh all others
LARGEST_DIAGONAL = 100


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
