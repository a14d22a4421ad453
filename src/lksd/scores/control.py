"""From the reduced chains to scores and their standard errors, with or without control variates.

In NumPy, batch by batch: beside the chains there is little to do, and LAPACK calls of two XLA programs that run at
the same time can wait for each other for ever.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .chains import Plan

RIDGE = 1e-13


class Averages(NamedTuple):
    """The estimates, and the batch means that they average."""

    score: Float[np.ndarray, "n ..."]
    batch_means: Float[np.ndarray, "n C B ..."]
    mcse: Float[np.ndarray, "n ..."]


def average(batch_means: Float[np.ndarray, "n C B D"]) -> Averages:
    """The mean over all draws, with its standard error from the spread of the batch means."""
    n, chains, batches, dim = batch_means.shape
    means = batch_means.reshape(n, chains * batches, dim)
    spread = means.var(axis=1, ddof=1) if chains * batches > 1 else np.full((n, dim), np.nan)
    return Averages(means.mean(1), batch_means, np.sqrt(spread / (chains * batches)))


def fitted(reduced: Any, plan: Plan) -> Float[np.ndarray, "n C B D"]:
    """The control variate's part of each batch mean: B' g with the coefficients B of the *other* chains.

    Coefficients fitted on the same draws would bias the estimate by O(1/m) with one sign; those of other
    chains are independent of the draws they are applied to.
    """
    draws = plan.batches * plan.batch_draws
    g_sums = reduced.controls.sum(2) * plan.batch_draws  # (n, C, q)
    s_sums = reduced.scores.sum(2) * plan.batch_draws - draws * reduced.origins  # of s - s_0
    centred = reduced.cross_moments - g_sums[..., :, None] * s_sums[..., None, :] / draws
    moments = reduced.control_moments - g_sums[..., :, None] * g_sums[..., None, :] / draws
    others_cross = centred.sum(1, keepdims=True) - centred
    others_moments = moments.sum(1, keepdims=True) - moments
    width = moments.shape[-1]
    size = np.trace(reduced.control_moments.sum(1, keepdims=True), axis1=-2, axis2=-1)[..., None, None] / width
    ridge = (RIDGE * size + np.finfo(np.float64).tiny) * np.eye(width)  # also for chains that never moved
    coefficients = np.linalg.solve(others_moments + ridge, others_cross)  # (n, C, q, D)
    return reduced.controls @ coefficients
