"""How batches of observations run on an engine: one compiled program, the same digits whatever the
batch or the place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing, nullcontext
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from .._jax import Program, compiled, float64, on_device
from .._keys import as_keys
from ..engines import Engine, track
from ..models.behaviour import seen
from .averages import Averages, average, control_part, median_error, refine
from .chains import Plan, Point, run_batch, run_watched
from .checkpoint import Checkpoint, identity
from .convergence import disagreement, worst_rhat_and_ess
from .tails import tail_shape
from .watch import NOTHING, Watch

# Observations of a batch. On a processor it never changes, since the last digits may change with
# it: the smallest stays in the processor's cache and is the fastest, but a Gibbs step on so few
# discrete observations is too little work for a program.
BATCH, DISCRETE_BATCH = 16, 64
# on accelerators, whose memory must hold so many bytes for each observation
LARGEST_BATCH, ROOM = 4_096, 2**21
# observations of several small batches that are sent, and kept in a checkpoint, together
LARGEST_PART = 256
PARTS = 16  # for each worker at least, so that all end at about the same time

Groups = list[tuple[Point, Any]]  # observations of one shape, with the numbers of their keys

alone = threading.Lock()  # for programs that must not run at the same time


class Setup(NamedTuple):
    """How batches run, and where: all that is the same for all of them."""

    batch_size: int | None
    engine: Engine
    checkpoint: Checkpoint | None


class Work(NamedTuple):
    """``function(*fixed, points, keys, plan)`` on each batch, of which ``keep`` takes what is kept,
    in the form of ``kept``.
    """

    function: Callable
    fixed: tuple
    plan: Any
    keep: Callable
    kept: Any
    label: str = "chains"  # in the progress line


class Run(NamedTuple):
    """What is kept of n observations."""

    plain: Averages
    controlled: Averages | None  # with linear control variates, where there are any
    rhat: Float[np.ndarray, " n"]
    ess: Float[np.ndarray, " n"]
    acceptance: Float[np.ndarray, " n"]
    divergences: Int[np.ndarray, "n C"]
    start: Float[np.ndarray, "n C 3"]
    finite: Bool[np.ndarray, " n"]
    # of halves of chains in the score; above 1 they do not agree
    disagreement: Float[np.ndarray, " n"]
    level: Float[np.ndarray, " n"]  # the mean of log p(x, z), in the chain where it is highest
    observed: Averages | None = None  # by criteria, where there are any
    observed_controlled: Averages | None = None
    observed_quadratic: Averages | None = None  # with control variates of degree two alone
    refined: Averages | None = None  # of scores, with control variates of higher degree too
    tails: Float[np.ndarray, "n D"] | None = None  # the shapes of those of sums of ratios


# its fields that hold averages
AVERAGES = (
    *("plain", "controlled", "refined"),
    *("observed", "observed_controlled", "observed_quadratic"),
)


def run(
    model, sampler, initial, groups: Groups, plan: Plan, setup: Setup, watch: Watch = NOTHING
) -> list[Run]:
    """All observations of every group, each reduced to what is kept as its batch ends."""
    return in_batches(
        chain_work((model, sampler, initial), watch, plan, keep, form_of_run(plan, watch)),
        groups,
        setup,
    )


def chain_work(fixed: tuple, watch: Watch, plan: Plan, keep: Callable, form: Any) -> Work:
    """Chains of a model, with what criteria look at."""
    if watch.criteria or watch.columns:
        kept = partial(keep, plan=plan, quadratic=watch.quadratic)
        return Work(run_watched, (*fixed, watch), plan, kept, form)
    return Work(run_batch, fixed, plan, partial(keep, plan=plan), form)


def form_of_run(plan: Plan, watch: Watch = NOTHING) -> Run:
    """The form of what is kept."""
    leaf: Any = 0
    averages = Averages(leaf, leaf, leaf)
    found = Run(averages, averages if plan.control else None, *[leaf] * 8)
    return found._replace(
        observed=averages if watch.criteria else None,
        observed_controlled=averages if watch.degree else None,
        refined=averages if plan.control and plan.degree > 1 else None,
        observed_quadratic=averages if watch.quadratic else None,
        tails=leaf if watch.columns else None,
    )


def in_batches(work: Work, groups: Groups, setup: Setup) -> list[Any]:
    """The work on all observations of every group; those that the checkpoint has are
    not run again.
    """
    engine, total = setup.engine, sum(len(points.x) for points, _ in groups)
    given = [(to_numpy(points), keys) for points, keys in groups]
    results = [Results(len(points.x)) for points, _ in groups]
    left, stages = [np.arange(len(points.x)) for points, _ in groups], {}
    with track(work.label, total) as advance:
        for number, (points, keys) in enumerate(groups):
            if setup.checkpoint is None:
                break
            stage = setup.checkpoint.stage(
                identity(
                    work.function, work.fixed, points, as_keys(keys), work.plan, engine.backend
                )
            )
            with closing(stage.finished_parts()) as done_before:
                for rows, found in done_before:
                    results[number].put(rows, found)
                    left[number] = np.setdiff1d(left[number], rows, assume_unique=True)
            stages[number] = stage
        advance(total - sum(map(len, left)))
        parts = [
            Part(number, rows, size)
            for number, (points, _) in enumerate(groups)
            for size in [batch_of(points, setup, len(groups) > 1)]
            for rows in split(left[number], size, setup)
        ]
        if parts:
            items = ((*take_rows(given[part.group], part.rows), part.size) for part in parts)
            done = engine.map(ready, work._replace(fixed=to_numpy(work.fixed)), items)
            for part, found in zip(parts, done, strict=True):
                if part.group in stages:
                    stages[part.group].write(part.rows, found)
                results[part.group].put(part.rows, found)
                advance(len(part.rows))
    return [jax.tree.unflatten(jax.tree.structure(work.kept), one.leaves) for one in results]


class Part(NamedTuple):
    """Rows of a group that are sent together, in batches of one size."""

    group: int
    rows: Int[np.ndarray, " k"]
    size: int


class Results:
    """The leaves of what is kept of n observations, as they come."""

    def __init__(self, n: int):
        self.n = n
        self.leaves: list[np.ndarray] = []

    def put(self, rows: np.ndarray, found: list[np.ndarray]) -> None:
        if not self.leaves:
            self.leaves = [np.empty((self.n, *leaf.shape[1:]), leaf.dtype) for leaf in found]
        for whole, leaf in zip(self.leaves, found, strict=True):
            whole[rows] = leaf


def take_rows(observations: Any, rows: np.ndarray) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], observations)


@float64
def ready(work: Work) -> Callable:
    """The function of one part; its program is compiled for batches of one size by the first part
    that needs it.
    """
    fixed = on_device(work.fixed)
    lock = threading.Lock()
    programs: dict[Any, Program] = {}

    def arguments(points: Point, key_data: np.ndarray):
        return (*fixed, on_device(points), as_keys(key_data), work.plan)

    def program_for(observations, size: int) -> Program:
        first = take_rows(observations, np.zeros(size, int))
        shape = (size, *(leaf.shape for leaf in jax.tree.leaves(first)))
        with lock:  # by one thread, while the others wait
            if shape not in programs:
                look = seen(fixed[0], first[0].x.shape[1], fixed[1:])
                programs[shape] = compiled(work.function, *arguments(*first), seen=look)
            return programs[shape]

    @float64
    def part(item) -> list[np.ndarray]:
        *observations, size = item
        n, program = len(observations[1]), program_for(tuple(observations), size)
        found = []
        for start in range(0, n, size):
            rows = np.minimum(start + np.arange(size), n - 1)
            given = arguments(*take_rows(tuple(observations), rows))
            with alone if program.runs_alone else nullcontext():
                reduced = jax.block_until_ready(program(*given))
            kept = work.keep(
                jax.tree.map(lambda leaf, start=start: np.asarray(leaf)[: n - start], reduced)
            )
            found.append(jax.tree.leaves(kept))
        return [np.concatenate(leaves) for leaves in zip(*found, strict=True)]

    return part


def batch_of(points: Point, setup: Setup, one_of_several: bool) -> int:
    """Observations of a batch; no more than a power of two that holds them all where they are one
    group of several.
    """
    if setup.engine.backend == "cpu":
        usual = BATCH if points.values is None else DISCRETE_BATCH
        return min(usual, 1 << (len(points.x) - 1).bit_length()) if one_of_several else usual
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
    return jax.tree.map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree
    )


def keep(reduced: Any, plan: Plan, quadratic: int = 0) -> Run:
    """What is kept of a ``Reduced`` batch, its leaves now NumPy arrays; ``quadratic`` is how many
    control variates of criteria are of degree two, where others are of a higher one.
    """
    (rhat, ess), own = worst_rhat_and_ess(reduced.traces), reduced.watched
    linear = plan.control or None
    return Run(
        plain=average(reduced.scores),
        controlled=linear and average(reduced.scores - control_part(reduced, plan, linear)),
        refined=average(reduced.scores - control_part(reduced, plan))
        if linear and plan.degree > 1
        else None,
        rhat=rhat,
        ess=ess,
        acceptance=reduced.acceptance.mean(1),
        divergences=reduced.divergences,
        start=reduced.start,
        finite=reduced.finite.all(1),
        disagreement=disagreement(reduced.scores),
        level=reduced.traces[..., 0].mean(2).max(1),
        observed=None if own is None else average(own.scores),
        observed_controlled=average(own.scores - control_part(own, plan))
        if own is not None and own.controls.shape[-1]
        else None,
        observed_quadratic=average(own.scores - control_part(own, plan, quadratic))
        if quadratic
        else None,
        tails=None if reduced.tops is None else tail_shape(reduced.tops),
    )


def better_averages(
    every: list[Run], plan: Plan, good: list[np.ndarray]
) -> tuple[list[Averages], str | None]:
    """The averages of every group, with control variates where they reduce the error at
    observations with ``good`` chains.
    """
    plain, controlled = (
        [found.plain for found in every],
        [found.controlled for found in every if found.controlled is not None],
    )
    if not plan.control or not controlled:
        return plain, None
    if median_error(controlled, good) > median_error(plain, good):
        return plain, "control variates did not reduce the error, so the plain means are used."
    return controlled, None


def refined_averages(
    averages: list[Averages], every: list[Run], good: list[np.ndarray]
) -> list[Averages]:
    """The same with control variates of higher degree, where there are some and they reduce the
    error further.
    """
    refined = [found.refined for found in every if found.refined is not None]
    if not refined or median_error(refined, good) > median_error(averages, good):
        return averages
    return [refine(*pair) for pair in zip(averages, refined, strict=True)]
