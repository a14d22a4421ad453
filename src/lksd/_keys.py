"""Keys: an observation's chain depends on the seed and on its id, whatever the batch, order or device."""

from __future__ import annotations

import jax
import jax.numpy as jnp

IMPLEMENTATION = "threefry2x32"  # whatever the user has chosen for other keys


def tuning_key(seed: int):
    return jax.random.fold_in(jax.random.key(seed, impl=IMPLEMENTATION), 1)


def noise_keys(seed: int, index):
    """One key for each id, for noise that is added to the data."""
    base = jax.random.fold_in(jax.random.key(seed, impl=IMPLEMENTATION), 2)
    return jax.vmap(lambda identifier: jax.random.fold_in(base, identifier))(jnp.asarray(index, jnp.uint32))


def simulation_key(seed: int):
    """The key of observations that are simulated to check a model."""
    return jax.random.fold_in(jax.random.key(seed, impl=IMPLEMENTATION), 3)


def rerun_keys(seed: int, index, attempt: int):
    """One key for each id, for the chains of an observation that are run again."""
    base = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed, impl=IMPLEMENTATION), 4), attempt)
    return jax.vmap(lambda identifier: jax.random.fold_in(base, identifier))(jnp.asarray(index, jnp.uint32))


def observation_keys(seed: int, index):
    """One key for each id."""
    base = jax.random.fold_in(jax.random.key(seed, impl=IMPLEMENTATION), 0)
    return jax.vmap(lambda identifier: jax.random.fold_in(base, identifier))(jnp.asarray(index, jnp.uint32))
