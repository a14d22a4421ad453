"""How batches of observations run on an engine: one compiled program, the same digits whatever the batch or the place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .._compile import compiled
from .._device import on_device
from .._float64 import float64
from .._progress import track
from ..engines import Engine
from .chains import Plan, run_batch
from .checkpoint import Checkpoint, identity
from .conditional import Point
from .control import Averages, average, fitted
from .convergence import disagreement
from .diagnostics import worst_rhat_and_ess

# Observations of a batch. On a processor it never changes, since the last digits may change with it: the smallest stays in the
# processor's cache and is the fastest, but a Gibbs step on so few discrete observations is too little work for a program.
BATCH, DISCRETE_BATCH = 16, 64
LARGEST_BATCH, ROOM = 4_096, 2**21  # on accelerators, whose memory must hold so many bytes for each observation
LARGEST_PART = 256  # observations of several small batches that are sent, and kept in a checkpoint, together
PARTS = 16  # for each worker at least, so that all end at about the same time

alone = threading.Lock()  # for programs that must not run at the same time


class Setup(NamedTuple):
    """How batches run, and where: all that is the same for all of them."""

    batch_size: int | None
    engine: Engine
    checkpoint: Checkpoint | None


class Work(NamedTuple):
    """``function(*fixed, points, keys, plan)`` on each batch, of which ``keep`` takes what is kept, in the form of ``kept``."""

    function: Callable
    fixed: tuple
    plan: Any
    keep: Callable
    kept: Any


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
    disagreement: Float[np.ndarray, " n"]  # of halves of chains in the score; above 1 they do not agree


def run(model, sampler, initial, points: Point, keys, plan: Plan, setup: Setup) -> Run:
    """All observations, each reduced to what is kept as its batch ends."""
    return in_batches(Work(run_batch, (model, sampler, initial), plan, partial(keep, plan=plan), kept(plan)), points, keys, setup)


def kept(plan: Plan) -> Run:
    """The form of what is kept."""
    leaf: Any = 0
    averages = Averages(leaf, leaf, leaf)
    return Run(averages, averages if plan.control else None, *[leaf] * 7)


def in_batches(work: Work, points: Point, keys, setup: Setup) -> Any:
    """The work on all observations; those that the checkpoint has are not run again."""
    n, engine = len(points.x), setup.engine
    observations = (to_numpy(points), np.asarray(jax.random.key_data(keys)))
    left, stage = np.arange(n), None
    leaves: list[np.ndarray] = []

    def put(rows: np.ndarray, found: list[np.ndarray]) -> None:
        if not leaves:
            leaves.extend(np.empty((n, *leaf.shape[1:]), leaf.dtype) for leaf in found)
        for whole, leaf in zip(leaves, found, strict=True):
            whole[rows] = leaf

    with track("chains", n) as advance:
        if setup.checkpoint is not None:
            stage = setup.checkpoint.stage(identity(work.function, work.fixed, points, keys, work.plan, engine.backend))
            for rows, found in stage.finished():
                put(rows, found)
                left = np.setdiff1d(left, rows, assume_unique=True)
            advance(n - len(left))
        if len(left):
            size = batch_of(points, setup)
            parts = split(left, size, setup)
            shared = work._replace(fixed=to_numpy(work.fixed)), chosen(observations, np.zeros(size, int))
            done = engine.map(ready, shared, (chosen(observations, rows) for rows in parts))
            for rows, found in zip(parts, done, strict=True):
                if stage is not None:
                    stage.write(rows, found)
                put(rows, found)
                advance(len(rows))
    return jax.tree.unflatten(jax.tree.structure(work.kept), leaves)


def chosen(observations: Any, rows: np.ndarray) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], observations)


@float64
def ready(shared: tuple[Work, Any]) -> Callable:
    """The function of one part, its program compiled for batches of one size."""
    work, (points, key_data) = shared
    size, fixed = len(key_data), on_device(work.fixed)

    def arguments(points: Point, key_data: np.ndarray):
        return (*fixed, on_device(points), jax.random.wrap_key_data(jnp.asarray(key_data)), work.plan)

    program = compiled(work.function, *arguments(points, key_data))

    @float64
    def part(observations) -> list[np.ndarray]:
        n = len(observations[1])
        found = []
        for start in range(0, n, size):
            rows = np.minimum(start + np.arange(size), n - 1)
            given = arguments(*chosen(observations, rows))
            with alone if program.runs_alone else nullcontext():
                reduced = jax.block_until_ready(program(*given))
            kept = work.keep(jax.tree.map(lambda leaf, start=start: np.asarray(leaf)[: n - start], reduced))
            found.append(jax.tree.leaves(kept))
        return [np.concatenate(leaves) for leaves in zip(*found, strict=True)]

    return part


def batch_of(points: Point, setup: Setup) -> int:
    """Observations of a batch."""
    if setup.engine.backend == "cpu":
        return BATCH if points.values is None else DISCRETE_BATCH
    share, memory = -(-len(points.x) // setup.engine.workers), setup.engine.memory
    fits = LARGEST_BATCH if memory is None else min(LARGEST_BATCH, memory // ROOM)
    return multiple(setup.batch_size or min(share, fits), BATCH)


def split(rows: np.ndarray, size: int, setup: Setup) -> list[np.ndarray]:
    """The rows in parts of one batch, or of several where batches are small and many."""
    usual = min(LARGEST_PART, len(rows) // (PARTS * setup.engine.workers))
    length = multiple(setup.batch_size, size) if setup.batch_size else max(usual // size, 1) * size
    return [rows[start : start + length] for start in range(0, len(rows), length)]


def multiple(number: int, of: int) -> int:
    """The next multiple."""
    return -(-number // of) * of


def to_numpy(tree: Any) -> Any:
    """JAX arrays as NumPy's, which keep their precision wherever they are sent."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree)


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
        disagreement=disagreement(reduced.scores),
    )
