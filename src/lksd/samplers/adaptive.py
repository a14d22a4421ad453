"""HMC that tunes itself, for models from which nothing can be simulated."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .base import Sampler, State, state_at
from .metropolis import HMC
from .tuning import filled

TARGET = 0.8  # acceptance
LARGEST = 1.0  # step size
OFFSET = 5  # steps that the first guess of a variance is worth


class AdaptiveState(NamedTuple):
    """A point, and what the chain has learnt so far."""

    point: State
    log_step: jax.Array
    mean: jax.Array
    variance: jax.Array
    taken: jax.Array  # steps


class AdaptiveHMC(Sampler):
    """HMC in which every chain tunes its own step size and diagonal metric during its first steps, and then no more.

    A chain sees its own observation alone, so chains of different observations stay independent. The default for models that have
    ``initial(key, x)`` and no ``sample(key)``.

    Parameters
    ----------
    adapting : int
        Steps during which it adapts. The warm-up should not be shorter.
    factor : (Dz, Dz) or (Dz,) array, optional
        L of a metric L L' to keep, so that the step size alone is tuned.
    """

    adapting: int = 200
    factor: Any = None

    def tuned(self, model, key, length) -> AdaptiveHMC:
        return self

    def init(self, model, x, z):
        flat = ravel_pytree(z)[0]
        return AdaptiveState(state_at(model, x, z), jnp.log(0.1), flat, jnp.ones_like(flat), jnp.zeros((), jnp.int32))

    def step(self, key, state: Any, model, x):
        factor = jnp.sqrt(state.variance) if self.factor is None else self.factor
        sampler = filled(filled(HMC(), "step_size", jnp.exp(state.log_step)), "factor", factor)
        point, info = sampler.step(key, state.point, model, x)
        count = state.taken + 1
        # Robbins and Monro: the logarithm of the step rises where too many proposals are accepted.
        log_step = jnp.minimum(state.log_step + count**-0.6 * (info.acceptance - TARGET), jnp.log(LARGEST))
        deviation = ravel_pytree(point.position)[0] - state.mean
        gain = (count + OFFSET) ** -0.8
        learnt = AdaptiveState(
            point, log_step, state.mean + gain * deviation, state.variance + gain * (deviation**2 - state.variance), count
        )
        done = state._replace(point=point, taken=count)
        return jax.tree.map(lambda new, old: jnp.where(count <= self.adapting, new, old), learnt, done), info

    def position(self, state):
        return state.point.position
