"""How batches of observations run in this process: one compiled program, all cores, the same digits whatever the batch."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .._compile import compiled
from .._cores import cores
from .._float64 import float64
from .._progress import track
from .chains import Plan, run_batch
from .conditional import Point
from .control import Averages, average, fitted
from .diagnostics import worst_rhat_and_ess

LANES = 16  # observations of a batch come in this multiple, so that its size does not change the digits
LARGEST_BATCH = 4_096  # on accelerators; on a processor the smallest batch stays in its cache and is the fastest
LARGEST_DISCRETE_BATCH = 256  # on a processor: a Gibbs step on one observation is too little work for a program


class Run(NamedTuple):
    """What is kept of n observations."""

    plain: Averages
    controlled: Averages | None  # with control variates, where there are any
    rhat: Float[np.ndarray, " n"]
    ess: Float[np.ndarray, " n"]
    acceptance: Float[np.ndarray, " n"]
    divergences: Int[np.ndarray, "n C"]
    start: Float[np.ndarray, "n C 3"]
    finite: Bool[np.ndarray, " n"]


def run(model, sampler, initial, points: Point, keys, plan: Plan, batch_size: int | None) -> Run:
    """All observations, each reduced to what is kept as its batch ends."""
    return in_batches(run_batch, (model, sampler, initial), points, keys, plan, batch_size, lambda reduced: keep(reduced, plan))


def in_batches(function, fixed: tuple, points: Point, keys, plan, batch_size: int | None, keep: Callable) -> Any:
    """``function(*fixed, points, keys, plan)`` in batches of one size, of which ``keep`` takes what is kept."""
    n, workers = len(points.x), len(cores())
    size = -(-(batch_size or usual_batch(points, workers)) // LANES) * LANES

    def batch(start):
        rows = jnp.minimum(start + jnp.arange(size), n - 1)
        return (*fixed, jax.tree.map(lambda leaf: leaf[rows], points), keys[rows])

    with track("chains", n) as advance:
        program = compiled(function, *batch(0), plan)

        @float64
        def one(start):
            reduced = jax.block_until_ready(program(*batch(start), plan))
            advance(size)
            return keep(jax.tree.map(lambda leaf: np.asarray(leaf)[: n - start], reduced))

        with ThreadPoolExecutor(1 if program.runs_alone else workers) as pool:
            parts = list(pool.map(one, range(0, n, size)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def usual_batch(points: Point, workers: int) -> int:
    n = len(points.x)
    if jax.default_backend() != "cpu":
        return min(n, LARGEST_BATCH)
    return LANES if points.values is None else min(-(-n // workers), LARGEST_DISCRETE_BATCH)


def keep(reduced: Any, plan: Plan) -> Run:
    """What is kept of a ``Reduced`` batch, its leaves now NumPy arrays."""
    rhat, ess = worst_rhat_and_ess(reduced.traces)
    return Run(
        plain=average(reduced.scores),
        controlled=average(reduced.scores - fitted(reduced, plan)) if plan.control else None,
        rhat=rhat,
        ess=ess,
        acceptance=reduced.acceptance.mean(1),
        divergences=reduced.divergences,
        start=reduced.start,
        finite=reduced.finite.all(1),
    )
