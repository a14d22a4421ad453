"""Keys: an observation's chain depends on the seed and on its id, whatever the batch, order, device
or settings of JAX.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import UInt32

from ._jax import in_parts, program

IMPLEMENTATION = "threefry2x32"  # whatever the user has chosen for other keys
HALF = np.uint64(2**32 - 1)
LEAST, MOST = 64, 2**16  # ids for which keys are made at a time


def key_of(seed: int, stream: int):
    # as jax.random.key makes it, without the user's jax_random_seed_offset
    halves = np.array([seed >> 32, seed & int(HALF)], dtype=np.uint32)
    return jax.random.fold_in(as_keys(halves), stream)


def tuning_key(seed: int):
    return key_of(seed, 1)


def noise_keys(seed: int, index) -> UInt32[np.ndarray, "n 2"]:
    """One key for each id, for noise that is added to the data."""
    return keys_for(key_of(seed, 2), index)


def simulation_key(seed: int):
    """The key of observations that are simulated to check a model."""
    return key_of(seed, 3)


def rerun_keys(seed: int, index, attempt: int) -> UInt32[np.ndarray, "n 2"]:
    """One key for each id, for the chains of an observation that are run again."""
    return keys_for(jax.random.fold_in(key_of(seed, 4), attempt), index)


def elsewhere_keys(seed: int, index, look: int) -> UInt32[np.ndarray, "n 2"]:
    """One key for each id, for the latents that its chains are compared with."""
    return keys_for(jax.random.fold_in(key_of(seed, 5), look), index)


def observation_keys(seed: int, index) -> UInt32[np.ndarray, "n 2"]:
    """One key for each id."""
    return keys_for(key_of(seed, 0), index)


def as_keys(data):
    """Keys from the numbers that they are made of, in which they are kept and sent."""
    return jax.random.wrap_key_data(jnp.asarray(data), impl=IMPLEMENTATION)


def keys_for(base, index) -> UInt32[np.ndarray, "n 2"]:
    """One key for each id; those of 2^32 and more have a second half, which is folded in too."""
    ids = np.asarray(index).astype(np.uint64)
    halves = (ids & HALF).astype(np.uint32), (ids >> np.uint64(32)).astype(np.uint32)
    return in_parts(lambda low, high: _folded(base, low, high), halves, LEAST, MOST)


@program
def _folded(base, low, high):
    def fold(low, high):
        key = jax.random.fold_in(base, low)
        return jax.random.key_data(jnp.where(high > 0, jax.random.fold_in(key, high), key))

    return jax.vmap(fold)(low, high)
