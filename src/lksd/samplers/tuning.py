"""Step size and metric from data simulated from the model, never from the test data.

A pair (z, x) from the model's joint law has z distributed as the posterior given x, so tuning needs no
chain. The mass matrix is E[g g'] over such pairs with g = grad_z log p(x, z): the posterior precision
where the posterior is Gaussian. The step size is the largest whose mean acceptance over one
transition, started at such pairs, meets the target.
"""

from __future__ import annotations

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..models import LatentVariableModel
from .base import Sampler, log_posterior

PAIRS = 1_000
STEP_SIZES = np.geomspace(2.5, 2.5e-5, 61)
RIDGE = 1e-6

AnySampler = TypeVar("AnySampler", bound=Sampler)


def tune(sampler: AnySampler, model: LatentVariableModel, key, target: float) -> AnySampler:
    """``sampler`` with the fields that are None filled in."""
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
        rates = np.asarray(_acceptance(sampler, model, z, x, jax.random.split(key_steps, PAIRS), jnp.asarray(STEP_SIZES)))
        good = np.flatnonzero(rates >= target)
        sampler = filled(sampler, "step_size", jnp.asarray(STEP_SIZES[good[0] if len(good) else -1]))
    return sampler


def filled(sampler: AnySampler, name: str, value) -> AnySampler:
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
def _acceptance(sampler, model, z, x, keys, step_sizes):
    def rate(step_size):
        candidate = filled(sampler, "step_size", step_size)

        def one(key, z, x):
            return candidate.step(key, candidate.init(model, x, z), model, x)[1].acceptance

        return jnp.mean(jax.vmap(one)(keys, z, x))

    return jax.lax.map(rate, step_sizes)
