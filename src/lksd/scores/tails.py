"""How heavy the tails are of the ratios whose means are conditional probabilities.

Where coordinates are independent given the latent, 1 / p(x_d | x_-d) is the posterior mean of
1 / p(x_d | z): importance sampling, whose variance may be infinite. The largest ratios tell
(Vehtari et al. 2024): their excesses have a generalised Pareto distribution, whose shape k is above
1/2 for an infinite variance, and from 0.7 on a mean of thousands of draws is not to be trusted.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

KEPT = 4  # of each batch of draws
FEWEST = 60  # kept in all, below which nothing is said
PRIOR, CENTRE = 10, 0.5  # exceedances that a prior for k weighs, and its mean
PART = 4_096  # cells at a time


def largest(ratios: Float[Array, "b D M"], columns: tuple[int, ...]) -> Float[Array, "D k"]:
    """The largest sums of ratios over some columns, at each coordinate."""
    sums = ratios[..., jnp.array(columns)].sum(-1).T
    return jax.lax.top_k(sums, min(KEPT, sums.shape[-1]))[0]


def tail_shape(tops: Float[np.ndarray, "n C B D k"]) -> Float[np.ndarray, "n D"]:
    """k of every coordinate, from the larger half of what all batches kept; NaN for too few."""
    n, chains, batches, dim, kept = tops.shape
    if chains * batches * kept < FEWEST:
        return np.full((n, dim), np.nan)
    values = np.sort(np.moveaxis(tops, 3, 1).reshape(n * dim, -1), axis=1)
    half = values.shape[1] // 2
    found = [
        pareto_shape(part[:, half:] - part[:, half - 1 : half])
        for part in np.array_split(values, -(-len(values) // PART))
    ]
    return np.concatenate(found).reshape(n, dim)


def pareto_shape(excesses: Float[np.ndarray, "cells m"]) -> Float[np.ndarray, " cells"]:
    """The shape of the generalised Pareto distribution of sorted excesses, by the posterior mean of
    Zhang and Stephens (2009), drawn a little towards 1/2; zero where many exceed nothing.
    """
    m = excesses.shape[1]
    quarter, last = excesses[:, m // 4], excesses[:, -1]
    found, spread = np.zeros(len(excesses)), quarter > 1e-12 * last
    excesses, quarter, last = excesses[spread], quarter[spread, None], last[spread, None]
    places = np.arange(1, 21 + int(np.sqrt(m))) - 0.5
    theta = 1 / last + (1 - np.sqrt(len(places) / places)) / (3 * quarter)
    shapes = np.log1p(-theta[:, :, None] * excesses[:, None]).mean(-1)
    profile = m * (np.log(-theta / shapes) - shapes)
    weights = np.exp(profile - profile.max(1, keepdims=True))
    best = np.sum(theta * weights, 1, keepdims=True) / weights.sum(1, keepdims=True)
    k = np.log1p(-best * excesses).mean(1)
    found[spread] = (m * k + PRIOR * CENTRE) / (m + PRIOR)
    return found
