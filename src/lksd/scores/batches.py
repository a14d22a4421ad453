"""How batches of observations run in this process: one compiled program, all cores, the same digits whatever the batch."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp

from .._compile import compiled
from .._float64 import float64
from .._progress import track
from .chains import Plan, Reduced, run_batch

LANES = 16  # observations of a batch come in this multiple, so that its size does not change the digits
LARGEST_BATCH = 4_096  # on accelerators; on a processor the smallest batch stays in its cache and is the fastest


def run(model, sampler, initial, points, keys, plan: Plan, batch_size: int | None) -> Reduced:
    """All observations, in batches of one size."""
    n, workers = len(points), os.cpu_count() or 1
    if batch_size is None:
        batch_size = LANES if jax.default_backend() == "cpu" else min(n, LARGEST_BATCH)
    size = -(-batch_size // LANES) * LANES
    starts = range(0, n, size)

    def batch(start):
        rows = jnp.minimum(start + jnp.arange(size), n - 1)
        return (model, sampler, initial, points[rows], keys[rows])

    with track("chains", n) as advance, ThreadPoolExecutor(workers) as pool:
        program = compiled(run_batch, *batch(0), plan)

        @float64
        def one(start):
            part = jax.block_until_ready(program(*batch(start), plan))
            advance(size)
            return part

        parts = list(pool.map(one, starts))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:n], *parts)
