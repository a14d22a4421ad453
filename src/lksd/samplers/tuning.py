"""Step size and metric from data simulated from the model, never from the test data.

A pair (z, x) from the model's joint law has z distributed as the posterior given x, so tuning needs no
chain. The mass matrix is E[g g'] over such pairs with g = grad_z log p(x, z): the posterior precision
where the posterior is Gaussian. The step size is the largest on a grid whose mean acceptance over one
transition, started at such pairs, meets the target; the rate falls with the step, so bisection finds it.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..models import LatentVariableModel
from .base import Sampler, log_posterior

PAIRS = 1_000
STEP_PAIRS = 200
GRID = np.geomspace(1.0, 1.0e-5, 61)  # step sizes as parts of the largest
RIDGE = 1e-6


def tune(sampler, model: LatentVariableModel, key, target: float, largest: float = 3.0):
    """``sampler`` with the fields that are None filled in, its step size at most ``largest``."""
    metric = getattr(sampler, "inverse_mass_matrix", 0.0)
    if sampler.step_size is not None and metric is not None:
        return sampler
    if not hasattr(model, "sample"):
        raise ValueError(
            f"sampler: expected a model with sample(key), on whose data a {type(sampler).__name__} can be tuned; {model} has none. "
            "Add it, or give step_size and inverse_mass_matrix."
        )
    key_pairs, key_steps = jax.random.split(key)
    z, x = _simulate(model, jax.random.split(key_pairs, PAIRS))
    if metric is None:
        sampler = filled(sampler, "inverse_mass_matrix", _inverse_mass(model, z, x))
    if sampler.step_size is None:
        few = jax.tree.map(lambda leaf: leaf[:STEP_PAIRS], (z, x))
        keys = jax.random.split(key_steps, STEP_PAIRS)
        step_sizes = largest * GRID
        low, high = 0, len(GRID) - 1  # the grid falls: the first good one lies in [low, high]
        while low < high:
            middle = (low + high) // 2
            candidate = filled(sampler, "step_size", jnp.asarray(step_sizes[middle]))
            good = _acceptance(candidate, model, few[0], few[1], keys) >= target
            low, high = (low, middle) if good else (middle + 1, high)
        sampler = filled(sampler, "step_size", jnp.asarray(step_sizes[high]))
    return sampler


def filled(sampler: Sampler, name: str, value) -> Any:
    return eqx.tree_at(lambda s: getattr(s, name), sampler, value, is_leaf=lambda leaf: leaf is None)


@eqx.filter_jit
def _simulate(model, keys):
    return jax.vmap(model.sample)(keys)


@eqx.filter_jit
def _inverse_mass(model, z, x):
    gradients = jax.vmap(lambda z, x: ravel_pytree(jax.grad(log_posterior(model, x))(z))[0])(z, x)
    mass = gradients.T @ gradients / len(gradients)
    return jnp.linalg.inv(mass + RIDGE * jnp.trace(mass) / len(mass) * jnp.eye(len(mass)))


@eqx.filter_jit
def _acceptance(sampler, model, z, x, keys) -> Any:
    def one(key, z, x):
        return sampler.step(key, sampler.init(model, x, z), model, x)[1].acceptance

    return jnp.mean(jax.vmap(one)(keys, z, x))
