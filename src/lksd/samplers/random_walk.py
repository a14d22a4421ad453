"""Random-walk Metropolis, from BlackJAX."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .base import Info, Sampler, log_posterior
from .gradient import optional_float64
from .tuning import tune


class RandomWalk(Sampler):
    """Gaussian steps of standard deviation ``step_size`` in every direction; no gradients needed."""

    step_size: Any = eqx.field(default=None, converter=optional_float64)

    def tuned(self, model, key, length) -> RandomWalk:
        return tune(self, model, key, length, target=0.3)

    def init(self, model, x, z):
        from blackjax.mcmc import random_walk

        return random_walk.init(z, log_posterior(model, x))

    def step(self, key, state, model, x):
        from blackjax.mcmc import random_walk

        def propose(key_step, position):
            flat, restore = ravel_pytree(position)
            return restore(self.step_size * jax.random.normal(key_step, flat.shape, flat.dtype))

        state, info = random_walk.build_additive_step()(key, state, log_posterior(model, x), propose)
        return state, Info(info.acceptance_rate, jnp.zeros((), bool))

    def position(self, state):
        return state.position
