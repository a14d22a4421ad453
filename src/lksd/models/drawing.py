"""Samples of models."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._compile import compiled
from .._float64 import float64
from .._keys import observation_keys
from .base import float64_leaves, of_length


@float64
def draw(model: Any, count: int, seed: int, length: int = 0, one_by_one: bool = False) -> np.ndarray:
    """``count`` observations, of a ``length`` where the model takes one; fewer are a prefix of more.

    ``one_by_one`` is for rejection samplers, which side by side would all wait for the slowest.
    """
    given = (float64_leaves(of_length(model, length)), observation_keys(seed, np.arange(count)), one_by_one)
    return np.asarray(compiled(_draw, *given)(*given))


def _draw(model, keys, one_by_one: bool):
    def one(key):
        return model.sample(key)[1]

    return jax.lax.map(one, keys) if one_by_one else jax.vmap(one)(keys)
