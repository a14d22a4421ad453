"""Observations and latents that models simulate."""

from __future__ import annotations

from inspect import signature
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._jax import compiled, float64, in_parts
from .._keys import as_keys, observation_keys
from .base import Around, Simulates, Starts, float64_leaves

LEAST, MOST = 64, 2**16  # observations of a program that draws them


class OfLength(Around):
    """A model of observations of any length, of which one length is simulated."""

    length: int = eqx.field(static=True)

    def log_likelihood(self, x, z):
        return self.model.log_likelihood(x, z)

    def sample(self, key):
        return self.model.sample(key, self.length)


def of_length(model: Any, length: int) -> Any:
    """The model with ``sample(key)``, where its own takes a length too."""
    takes = isinstance(model, Simulates) and "length" in signature(model.sample).parameters
    return OfLength(model, length) if takes else model


def start_of(model: Any, key, x):
    """A latent at which a chain for x may begin: where the model says, or a draw from its prior."""
    return (
        model.initial(key, x)
        if isinstance(model, Starts)
        else of_length(model, x.shape[0]).sample(key)[0]
    )


@float64
def draw(
    model: Any, count: int, seed: int, length: int = 0, one_by_one: bool = False
) -> np.ndarray:
    """``count`` observations, of a ``length`` where the model takes one; fewer are a prefix of
    more.

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
