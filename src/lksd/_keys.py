"""Keys: an observation's chain depends on the seed and on its id, whatever the batch, order or device."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

HALF = 2**32 - 1


def keys_of(base, index):
    """One key for each id; those of 2^32 and more have a second half, which is folded in too."""
    ids = np.asarray(index).astype(np.uint64)
    low, high = (jnp.asarray(half, jnp.uint32) for half in (ids & np.uint64(HALF), ids >> np.uint64(32)))
    keys = jax.vmap(lambda half: jax.random.fold_in(base, half))(low)
    return keys if not (ids > HALF).any() else jnp.where(high > 0, jax.vmap(jax.random.fold_in)(keys, high), keys)


def tuning_key(seed: int):
    return jax.random.fold_in(jax.random.key(seed), 1)


def noise_keys(seed: int, index):
    """One key for each id, for noise that is added to the data."""
    base = jax.random.fold_in(jax.random.key(seed), 2)
    return keys_of(base, index)


def simulation_key(seed: int):
    """The key of observations that are simulated to check a model."""
    return jax.random.fold_in(jax.random.key(seed), 3)


def rerun_keys(seed: int, index, attempt: int):
    """One key for each id, for the chains of an observation that are run again."""
    base = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 4), attempt)
    return keys_of(base, index)


def observation_keys(seed: int, index):
    """One key for each id."""
    base = jax.random.fold_in(jax.random.key(seed), 0)
    return keys_of(base, index)
