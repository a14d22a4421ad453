"""Rank-normalised split R-hat and bulk ESS (Vehtari et al. 2021), for many observations at once.

In NumPy: a sort of many short columns takes a compiled JAX program twenty times as long.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

LEAST_DRAWS = 8


def worst_rhat_and_ess(traces: Float[np.ndarray, "n C M 2"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The larger R-hat and the smaller ESS of the two quantities traced; NaN for chains too short to say.

    Chains that never moved have no R-hat (NaN) and an ESS of 0.
    """
    if traces.shape[2] < LEAST_DRAWS:
        unknown = np.full(len(traces), np.nan)
        return unknown, unknown
    finite = np.where(np.isfinite(traces), traces, 0.0)  # what is not finite is refused with a better message than R-hat
    rhat, ess = rhat_and_ess(np.moveaxis(finite, 0, 2))
    still = ess == 0  # a quantity that no draw changes says nothing, unless the other does not move either
    return np.fmax.reduce(rhat, -1), np.where(still.all(-1), 0.0, np.where(still, np.inf, ess).min(-1))


def rhat_and_ess(traces: Float[np.ndarray, "C M *rest"]) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """R-hat: the larger of that of the rank-normalised draws and of their distance from the median; and the bulk ESS."""
    halves = split(traces)
    normal = rank_normalise(halves)
    folded = rank_normalise(np.abs(halves - np.median(halves, axis=(0, 1))))
    return np.maximum(plain_rhat(normal), plain_rhat(folded)), plain_ess(normal)


def split(traces: np.ndarray) -> np.ndarray:
    """Every chain as two of half its length."""
    half = traces.shape[1] // 2
    return np.concatenate([traces[:, :half], traces[:, -half:]])


def rank_normalise(draws: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks over all chains, ties averaged."""
    from scipy.stats import rankdata

    count = draws.shape[0] * draws.shape[1]
    ranks = rankdata(draws.reshape(count, -1), axis=0)
    return ndtri((ranks - 3 / 8) / (count + 1 / 4)).reshape(draws.shape)


def plain_rhat(draws: np.ndarray) -> np.ndarray:
    length = draws.shape[1]
    within, between = draws.var(axis=1, ddof=1).mean(0), draws.mean(1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((length - 1) / length + between / within)


def plain_ess(draws: np.ndarray) -> np.ndarray:
    """Effective sample size by Geyer's initial monotone sequence."""
    chains, length = draws.shape[:2]
    covariances = autocovariances(draws).mean(0)  # (M, ...)
    within = covariances[0] * length / (length - 1)
    total = covariances[0] + draws.mean(1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = 1 - (within - covariances) / total
        correlations[0] = 1
        even = length // 2 * 2
        pairs = correlations[0:even:2] + correlations[1:even:2]
        kept = np.cumprod(pairs > 0, axis=0)
        monotone = np.minimum.accumulate(np.where(kept, pairs, 0.0), axis=0)
        time = np.maximum(-1 + 2 * monotone.sum(0), 1 / np.log10(chains * length))
        return np.where(total > 0, chains * length / time, 0.0)


def autocovariances(draws: np.ndarray) -> np.ndarray:
    """Of each chain along axis 1, by the fast Fourier transform."""
    length = draws.shape[1]
    spectrum = np.fft.rfft(draws - draws.mean(1, keepdims=True), 2 * length, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :length] / length
