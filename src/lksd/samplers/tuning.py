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

from .._jax import compiled
from ..models import LatentVariableModel
from ..models.base import Simulates, float64_leaves, of_length
from ..models.behaviour import seen
from .base import Sampler, given_integers, log_posterior, root

PAIRS = 400
STEP_PAIRS = 200
GRID = np.geomspace(1.0, 1.0e-5, 61)  # step sizes as parts of the largest
RIDGE = 1e-6


def tune(sampler, model: LatentVariableModel, key, length: int, target: float, largest: float = 3.0):
    """``sampler`` with the fields that are None filled in, its step size at most ``largest``."""
    metric = getattr(sampler, "inverse_mass_matrix", 0.0)
    if sampler.step_size is not None and metric is not None:
        return factored(sampler)
    if not isinstance(model, Simulates):
        raise ValueError(
            f"sampler: expected a model with sample(key), on whose data a {type(sampler).__name__} can be tuned; {model} has none. "
            "Add it, or give step_size and inverse_mass_matrix."
        )
    arguments = (float64_leaves(sampler), of_length(model, length), key, target, largest)
    return compiled(fill, *arguments, seen=seen(model, length, sampler))(*arguments)


def fill(sampler, model, key, target, largest):
    key_pairs, key_steps = jax.random.split(key)
    z, x = jax.vmap(model.sample)(jax.random.split(key_pairs, PAIRS))
    z = jax.vmap(model.unconstrain)(z)
    if getattr(sampler, "inverse_mass_matrix", 0.0) is None:
        sampler = filled(sampler, "inverse_mass_matrix", inverse_mass(model, z, x))
    sampler = factored(sampler)
    if sampler.step_size is None:
        few_z, few_x = jax.tree.map(lambda leaf: leaf[:STEP_PAIRS], (z, x))
        keys = jax.random.split(key_steps, STEP_PAIRS)
        step_sizes = largest * jnp.asarray(GRID)

        def narrow(_, ends):
            low, high = ends  # the grid falls: the first good one lies in [low, high]
            middle = (low + high) // 2
            good = acceptance(filled(sampler, "step_size", step_sizes[middle]), model, few_z, few_x, keys) >= target
            return jnp.where(good, low, middle + 1), jnp.where(good, middle, high)

        rounds = int(np.ceil(np.log2(len(GRID))))
        _, found = jax.lax.fori_loop(0, rounds, narrow, (jnp.asarray(0), jnp.asarray(len(GRID) - 1)))
        sampler = filled(sampler, "step_size", step_sizes[found])
    return sampler


def factored(sampler):
    """With the factor of its metric, where it wants one: programs that call LAPACK cannot run side by side, so chains do not."""
    return filled(sampler, "factor", root(jnp.asarray(sampler.inverse_mass_matrix))) if hasattr(sampler, "factor") else sampler


def filled(sampler: Sampler, name: str, value) -> Any:
    return eqx.tree_at(lambda s: getattr(s, name), sampler, value, is_leaf=lambda leaf: leaf is None)


def inverse_mass(model, z, x):
    def gradient(z, x):
        conditional, reals = given_integers(model, z)
        return ravel_pytree(jax.grad(log_posterior(conditional, x))(reals))[0]

    gradients = jax.vmap(gradient)(z, x)
    mass = gradients.T @ gradients / len(gradients)
    return jnp.linalg.inv(mass + RIDGE * jnp.trace(mass) / len(mass) * jnp.eye(len(mass)))


def acceptance(sampler, model, z, x, keys):
    def one(key, z, x):
        conditional, reals = given_integers(model, z)
        return sampler.step(key, sampler.init(conditional, x, reals), conditional, x)[1].acceptance

    return jnp.mean(jax.vmap(one)(keys, z, x))
