"""Is a model worse than the one that the same data chose? RelPSI (Lim et al. 2019), a selective test."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr


def selective_pvalues(
    estimates: Float[np.ndarray, " M"], covariance: Float[np.ndarray, "M M"], chosen: int, margin: float = 0.0
) -> Float[np.ndarray, " M"]:
    """P-values of H0: model i is worse than the chosen one by at most ``margin``, given that the chosen one came out best.

    With z ~ N(mu, covariance) and y = z_i - z_chosen, the others' leads w_k = z_k - z_chosen are rho_k y + r_k with r_k
    independent of y. The choice, all w_k >= 0, cuts y to an interval, and y is a truncated normal.
    """
    leads = estimates - estimates[chosen]
    pvalues = np.ones(len(estimates))
    for i in range(len(estimates)):
        # Cov(w_k, y) for all k
        shared = covariance[:, i] - covariance[:, chosen] - covariance[chosen, i] + covariance[chosen, chosen]
        if i == chosen or not shared[i] > 0:
            continue
        slopes = shared / shared[i]
        slopes[chosen] = 0.0
        rest = leads - slopes * leads[i]
        ends = -rest / np.where(slopes == 0, 1.0, slopes)
        low = float(ends[slopes > 0].max())  # the model's own condition among them: y >= 0
        high = float(ends[slopes < 0].min(initial=math.inf))
        sd = math.sqrt(shared[i])
        pvalues[i] = upper_truncated((leads[i] - margin) / sd, (low - margin) / sd, (high - margin) / sd)
    return pvalues


def upper_truncated(t: float, low: float, high: float) -> float:
    """P(Z >= t | low <= Z <= high) for a standard normal Z, in logarithms, so that no tail is too far."""
    t = min(max(t, low), high)
    whole = log_mass(low, high)
    return 1.0 if whole == -math.inf else min(1.0, math.exp(log_mass(t, high) - whole))


def log_mass(low: float, high: float) -> float:
    """log P(low <= Z <= high), on the side of zero where both tails are small."""
    if low + high < 0:
        low, high = -high, -low
    larger, smaller = float(log_ndtr(-low)), float(log_ndtr(-high))
    return -math.inf if larger == smaller else larger + math.log1p(-math.exp(smaller - larger))
