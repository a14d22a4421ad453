"""Samples of models."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import compiled, float64, in_parts
from .._keys import as_keys, observation_keys
from .base import float64_leaves, of_length

LEAST, MOST = 64, 2**16  # observations of a program


@float64
def draw(model: Any, count: int, seed: int, length: int = 0, one_by_one: bool = False) -> np.ndarray:
    """``count`` observations, of a ``length`` where the model takes one; fewer are a prefix of more.

    ``one_by_one`` is for rejection samplers, which side by side would all wait for the slowest.
    """
    model = float64_leaves(of_length(model, length))

    def some(keys):
        given = (model, jnp.asarray(keys), one_by_one)
        return compiled(_draw, *given)(*given)

    return in_parts(some, (observation_keys(seed, np.arange(count)),), LEAST, MOST)


def _draw(model, key_data, one_by_one: bool):
    keys = as_keys(key_data)

    def one(key):
        return model.sample(key)[1]

    return jax.lax.map(one, keys) if one_by_one else jax.vmap(one)(keys)
