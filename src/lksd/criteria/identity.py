"""Whether a model has a Fisher score: E[tr(M grad^2 log p) + g'M g] = 0 at its own draws.

The identity fails where a density has a kink, whose second derivative automatic differentiation
does not see, or an edge at which it does not vanish.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import float64, program
from .._keys import as_keys, observation_keys
from ..models.base import HasMarginal, HasMarginalScore, Simulates, float64_leaves
from .fisher import Fisher

DRAWS = 1_000
BEYOND, ROUNDING = 6.0, 1e-8  # standard errors, and a share of the terms


@float64
def lacks_identity(criterion: Fisher, model: Any, seed: int) -> str | None:
    """In words, that the model has no Fisher score; None where it has one, or cannot be asked."""
    if not isinstance(model, Simulates):
        return None
    keys = jnp.asarray(observation_keys(seed, np.arange(DRAWS)))
    values = np.asarray(_terms(float64_leaves(criterion), float64_leaves(model), keys))
    values = values[np.isfinite(values).all(1)]  # what lies outside of the common domain has none
    if len(values) < DRAWS // 2:
        return None
    total, size = values.sum(1), np.abs(values).sum(1).mean()
    mean, error = total.mean(), total.std(ddof=1) / np.sqrt(len(total))
    if abs(mean) <= BEYOND * error + ROUNDING * size:
        return None
    return (
        "at its own draws the mean of tr(M grad^2 log p) + g'M g is "
        f"{mean:.3g} +- {error:.2g}, where it should be 0: the density has a kink, or an edge at "
        "which it does not vanish"
    )


@program
def _terms(criterion, model, key_data):
    return jax.lax.map(partial(_term, criterion, model), as_keys(key_data), batch_size=50)


def _term(criterion, model, key):
    z, x = model.sample(key)
    if isinstance(model, (HasMarginal, HasMarginalScore)):
        u, slope = criterion.marginal_slope(model, x)
    else:
        u, slope = criterion.likelihood_slope(model, x, z)
    g = criterion.tangent(u, slope(u))
    return jnp.stack([criterion.trace(slope, u), jnp.sum(criterion.metric * g**2)])
