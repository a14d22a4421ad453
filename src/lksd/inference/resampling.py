"""Joint resamples of the differences of all models, from their Gram matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..stein import GramSums

CELLS = 2**24  # numbers of the resamples that are held at once


def multinomial_weights(n: int, replicates: int, seed: int) -> Float[np.ndarray, "n B"]:
    """How often each observation is drawn in each resample of size n."""
    chosen = np.random.default_rng(seed).integers(0, n, size=(replicates, n))
    cells = chosen + n * np.arange(replicates)[:, None]
    return np.bincount(cells.ravel(), minlength=n * replicates).reshape(replicates, n).T.astype(np.float64)


class Pairs(NamedTuple):
    """Which models are compared: first - second. All quantities of models are known up to those of the last of them."""

    first: Int[np.ndarray, " A"]
    second: Int[np.ndarray, " A"]

    def of(self, values: np.ndarray) -> np.ndarray:
        """The differences, along the first axis, of what belongs to the models; the last model's, zero, is left out."""
        every = np.concatenate([values, np.zeros((1, *values.shape[1:]))])
        return every[self.first] - every[self.second]

    def squared(self, moments: np.ndarray) -> np.ndarray:
        """The second moments of the differences from those of the models, along the last two axes."""
        every = np.zeros((*moments.shape[:-2], moments.shape[-2] + 1, moments.shape[-1] + 1))
        every[..., :-1, :-1] = moments
        i, j = self
        return every[..., i, i] + every[..., j, j] - 2 * every[..., i, j]


def all_pairs(models: int) -> Pairs:
    """Every two models once; of two it is P - Q."""
    return Pairs(*np.triu_indices(models, 1))


def studentised_replicates(sums: GramSums, weights: Float[np.ndarray, "n B"], pairs: Pairs) -> Float[np.ndarray, "A B"]:
    """T* of each difference and resample: U* and its jackknife variance over the n slots, centred at the mean of H."""
    n, models = len(weights), len(sums.diagonal)
    centre = (sums.rows.sum(1) + sums.diagonal.sum(1)) / n**2
    size = max(1, CELLS // (n * models))
    return np.concatenate([
        replicates_of(slots_of(sums, weights, start, size), weights[:, start : start + size], centre, pairs)
        for start in range(0, weights.shape[1], size)
    ], 1)


def slots_of(sums: GramSums, weights: np.ndarray, start: int, size: int) -> np.ndarray:
    """The row sum of a slot that holds observation i, in some of the resamples: (C, n, b)."""
    if sums.matrix is None:
        return sums.products[:, :, start : start + size] - sums.diagonal[:, :, None]
    w = weights[:, start : start + size]
    return sums.matrix @ w + sums.diagonal[:, :, None] * (w - 1)


def replicates_of(slots: np.ndarray, weights: np.ndarray, centre: np.ndarray, pairs: Pairs) -> np.ndarray:
    n = len(weights)
    mean = np.einsum("cnb,nb->cb", slots, weights) / n
    spread = slots - mean[:, None]
    if len(slots) == 1:  # two models: no products between differences
        moments = np.einsum("nb,nb->b", spread[0] ** 2, weights)[:, None, None]
    else:
        spread = np.ascontiguousarray(np.moveaxis(spread, 2, 0))  # (b, C, n)
        moments = (spread * weights.T[:, None]) @ np.swapaxes(spread, 1, 2)
    variance = 4 * pairs.squared(moments).T / ((n - 1) * (n - 2) ** 2)
    deviation = pairs.of(mean / (n - 1) - centre[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        t = deviation / np.sqrt(variance / n)
    return np.where(variance > 0, t, np.nan)
