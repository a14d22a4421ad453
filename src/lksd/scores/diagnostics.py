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

    R-hat is NaN too where all draws of both quantities are the same.
    """
    if traces.shape[2] < LEAST_DRAWS:
        unknown = np.full(len(traces), np.nan)
        return unknown, unknown
    finite = np.where(np.isfinite(traces), traces, 0.0)  # what is not finite is refused with a better message than R-hat
    rhat, ess = rhat_and_ess(np.moveaxis(finite, 0, 2))
    return np.fmax.reduce(rhat, axis=-1), ess.min(-1)


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
    """Effective sample size by Geyer's initial monotone sequence; all draws count where none differs.

    Correlations are summed by pairs of lags, each pair at most the one before, up to the first pair that is not positive; of that
    pair the correlation at its even lag counts once.
    """
    chains, length = draws.shape[:2]
    covariances = autocovariances(draws).mean(0)  # (M, ...)
    within = covariances[0] * length / (length - 1)
    total = covariances[0] + draws.mean(1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = 1 - (within - covariances) / total
        correlations[0] = 1
        count = (length - 3) // 2 + 1  # of pairs; the last lags rest on too few products
        even, odd = correlations[0 : 2 * count : 2], correlations[1 : 2 * count : 2]
        pairs = even + odd
        last = np.where((pairs <= 0).any(0), np.argmax(pairs <= 0, axis=0), count - 1)
        before = np.arange(count).reshape(-1, *(1,) * last.ndim) < last
        monotone = np.minimum.accumulate(np.where(before, pairs, np.inf), axis=0)
        final_even, final_pair = (np.take_along_axis(part, last[None], axis=0)[0] for part in (even, pairs))
        final = np.where((final_even > 0) | (final_pair >= 0), final_even, 0.0)
        time = np.maximum(-1 + 2 * np.where(before, monotone, 0.0).sum(0) + final, 1 / np.log10(chains * length))
    apart = draws.max(axis=(0, 1)) - draws.min(axis=(0, 1)) > np.finfo(np.float64).resolution
    return np.where(apart, chains * length / time, chains * length)


def autocovariances(draws: np.ndarray) -> np.ndarray:
    """Of each chain along axis 1, by the fast Fourier transform."""
    length = draws.shape[1]
    spectrum = np.fft.rfft(draws - draws.mean(1, keepdims=True), 2 * length, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :length] / length
