"""From what chains or closed forms give, batch by batch, to scores of each operator and their
standard errors.

In NumPy: beside the chains there is little to do, and LAPACK calls of two XLA programs that run at
the same time can wait for each other for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._keys import as_keys
from .chains import Plan, Point
from .lengths import Group, batch_means, pad_groups

RIDGE = 1e-13
FAR = 10.0  # standard errors, which few batches may underestimate
POSITIONS = 20  # of an observation, over which correlations are averaged


class Averages(NamedTuple):
    """The estimates, and the batch means that they average."""

    score: Float[np.ndarray, "n ..."]
    batch_means: Float[np.ndarray, "n C B ..."]
    mcse: Float[np.ndarray, "n ..."]


def average(batch_means: Float[np.ndarray, "n C B ..."]) -> Averages:
    """The mean over all draws, with its standard error from the spread of the batch means."""
    n, chains, batches, *shape = batch_means.shape
    means = batch_means.reshape(n, chains * batches, *shape)
    spread = means.var(axis=1, ddof=1) if chains * batches > 1 else np.full((n, *shape), np.nan)
    return Averages(means.mean(1), batch_means, np.sqrt(spread / (chains * batches)))


def median_error(averages: list[Averages], rows: list[np.ndarray] | None = None) -> float:
    """Of all observations of every group, or of some ``rows`` of each."""
    everything: list[Any] = [slice(None)] * len(averages)
    chosen = everything if rows is None else rows
    errors = [one.mcse[own].ravel() for one, own in zip(averages, chosen, strict=True)]
    return float(np.median(np.concatenate(errors)))


def refine(linear: Averages, refined: Averages) -> Averages:
    """The chains' means with control variates of higher degree, and the spread that linear ones
    leave between batches.

    What higher degrees leave is nearly nothing in most batches and rests on rare draws in a tail,
    which a few batches miss: their own spread would be too small an error. An observation where
    both means differ by more than ``FAR`` errors keeps the linear one.
    """
    own, other = linear.batch_means, refined.batch_means
    found = average(own + (other.mean(2, keepdims=True) - own.mean(2, keepdims=True)))
    near = np.all(np.abs(refined.score - linear.score) <= FAR * linear.mcse, axis=1)
    return jax.tree.map(
        lambda new, old: np.where(near.reshape(-1, *(1,) * (old.ndim - 1)), new, old), found, linear
    )


def control_part(reduced: Any, plan: Plan, first: int | None = None) -> np.ndarray:
    """The part (n, C, B, D) that the control variates, or the ``first`` of them, have in each batch
    mean: B' g with the coefficients B of the *other* chains.

    Coefficients fitted on the same draws would bias the estimate by O(1/m) with one sign; those of
    other chains are independent of the draws they are applied to.
    """
    draws, controls = plan.batches * plan.batch_draws, reduced.controls[..., :first]
    g_sums = controls.sum(2) * plan.batch_draws  # (n, C, q)
    s_sums = reduced.scores.sum(2) * plan.batch_draws - draws * reduced.origins  # of s - s_0
    second = reduced.control_moments[..., :first, :first]
    centred = (
        reduced.cross_moments[..., :first, :] - g_sums[..., :, None] * s_sums[..., None, :] / draws
    )
    moments = second - g_sums[..., :, None] * g_sums[..., None, :] / draws
    others_cross = centred.sum(1, keepdims=True) - centred
    others_moments = moments.sum(1, keepdims=True) - moments
    width = moments.shape[-1]
    size = np.trace(second.sum(1, keepdims=True), axis1=-2, axis2=-1)[..., None, None] / width
    # also for chains that never moved
    ridge = (RIDGE * size + np.finfo(np.float64).tiny) * np.eye(width)
    coefficients = np.linalg.solve(others_moments + ridge, others_cross)  # (n, C, q, D)
    return controls @ coefficients


# -------------------------------------------------- ratios p(x with x_d -> v) / p(x) of discrete
# models


class Targets(NamedTuple):
    """The replacements that several operators ask for, each once, and which of them belong to which
    operator.
    """

    values: Int[np.ndarray, "n D M"]
    columns: tuple[list[int], ...]

    def of(self, group: Group) -> Targets:
        """Those of a group of observations, cut to its length."""
        return Targets(self.values[group.rows, : group.length], self.columns)

    def first(self, count: int) -> Targets:
        """Those of the first operators alone, in their places among all."""
        return self._replace(columns=self.columns[:count])


def targets(operators: tuple[Any, ...], x: Int[np.ndarray, "n D"]) -> Targets:
    found: list[np.ndarray] = []

    def number(column: np.ndarray) -> int:
        for index, known in enumerate(found):
            if np.array_equal(known, column):
                return index
        found.append(column)
        return len(found) - 1

    columns = tuple(
        [number(column) for column in np.moveaxis(operator.targets(x), -1, 0)]
        for operator in operators
    )
    return Targets(np.stack(found, -1), columns)


def operator_averages(
    averages: Averages,
    operators: tuple[Any, ...],
    wanted: Targets,
    independent: bool = True,
    barker: Callable[[list[int]], Averages] | None = None,
) -> list[Averages]:
    """The scores of each operator from averages of flat ratios, whose batch means are
    ``independent`` or not.

    ``barker`` gives the paper's estimates of Barker's weights instead, from the columns that they
    belong to.
    """
    (score, means, error), shape, there = (
        averages,
        wanted.values.shape[1:],
        wanted.values[..., 0] >= 0,
    )
    ratios = Averages(
        score.reshape(-1, *shape),
        means.reshape(*means.shape[:3], *shape),
        error.reshape(-1, *shape),
    )
    factor = np.ones(len(there)) if independent else inflation(ratios.batch_means)
    return [
        barker(columns)
        if barker is not None and one.modified_posterior
        else score_averages(one, ratios, columns, factor, there)
        for one, columns in zip(operators, wanted.columns, strict=True)
    ]


def score_averages(
    operator: Any,
    ratios: Averages,
    columns: list[int],
    factor: Float[np.ndarray, " n"],
    there: np.ndarray,
) -> Averages:
    """The operator's scores from averages of all ratios (n, D, M), its batch means linearised about
    the estimate.

    ``factor`` is the ``inflation`` of the ratios' variances.
    """
    mean = ratios.score[..., columns]
    # The variance is unknown from one batch mean, and nil for exact ratios.
    variance = np.nan_to_num(factor[:, None, None] * ratios.mcse[..., columns] ** 2)
    centre = mean[:, None, None]
    # Deviations of the size that as many independent batches would have.
    deviations = (ratios.batch_means[..., columns] - centre) * np.sqrt(factor).reshape(
        -1, 1, 1, 1, 1
    )
    means = np.asarray(operator.score_of(mean, variance))[:, None, None] + operator.slope_of(
        centre, deviations
    )
    return average(zero_elsewhere(means, there))


def inflation(means: Float[np.ndarray, "n C B D M"]) -> Float[np.ndarray, " n"]:
    """How much larger the variance of an observation's means is than that of as many independent
    batches.

    Short runs have batches of one draw, which are correlated. With c_k the sum of products at lag k
    about a chain's own mean, the variance of the mean is about (c_0 + 2 sum_{k <= W} c_k) / (B - 1
    - 2 W) if correlations end at lag W: each c_k is too small by that variance. Rather too large
    than too small (1.2 for independent draws, B = 20). The correlations are averaged over an
    observation's positions.
    """
    batches = means.shape[2]
    window = batches // 4
    if window == 0:
        return np.ones(len(means))
    few = means[:, :, :, :POSITIONS]
    centred = few - few.mean(2, keepdims=True)
    own = np.sum(centred**2, (1, 2))
    lagged = sum(
        np.sum(centred[:, :, k:] * centred[:, :, :-k], (1, 2)) for k in range(1, window + 1)
    )
    moving = own > 1e-24 * np.max(few**2, (1, 2))
    share = np.divide(lagged, own, out=np.zeros_like(own), where=moving).sum((1, 2)) / np.maximum(
        moving.sum((1, 2)), 1
    )
    return np.maximum((1 + 2 * share) * (batches - 1) / (batches - 1 - 2 * window), 1.0)


def zero_elsewhere(means: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Batch means (n, C, B, D, ...) with zeros at the positions that do not exist."""
    inside = there.reshape(len(there), 1, 1, -1, *(1,) * (means.ndim - 4))
    return np.ascontiguousarray(means if there.all() else np.where(inside, means, 0.0))


def score_fields(groups: list[Group], parts: list[list[Averages]], several: bool) -> dict[str, Any]:
    """``score``, ``mcse`` and ``batch_means`` of all observations, from the averages of every group
    for each operator.
    """
    join = {"score": pad_groups, "mcse": pad_groups, "batch_means": batch_means}
    fields = {
        name: tuple(
            put(groups, [getattr(part, name) for part in own]) for own in zip(*parts, strict=True)
        )
        for name, put in join.items()
    }
    return fields if several else {name: each[0] for name, each in fields.items()}


def neighbours(points: Point, keys, columns: list[int]) -> tuple[Point, Any]:
    """A chain for every neighbour of every observation, n D M instead of n: where it is, and its
    key (Appendix B.2).
    """
    n, dim = points.x.shape
    values: Any = points.values
    count = dim * len(columns)
    sites = np.stack(np.meshgrid(np.arange(dim), columns, indexing="ij"), -1).reshape(count, 2)
    every = Point(
        jnp.repeat(points.x, count, 0),
        jnp.repeat(values, count, 0),
        jnp.tile(jnp.asarray(sites, jnp.int32), (n, 1)),
    )
    own = jax.vmap(
        lambda key: jax.vmap(lambda number: jax.random.fold_in(key, number))(jnp.arange(count))
    )(as_keys(keys)).reshape(-1)
    return every, np.asarray(jax.random.key_data(own))


def by_modified_posterior(found: Averages, x, columns: list[int]) -> Averages:
    """Barker weights from the chains of all ``neighbours`` of observations x."""
    (n, dim), means = x.shape, found.batch_means  # (n D M, C, B, 1)
    means = np.moveaxis(means.reshape(n, dim, len(columns), *means.shape[1:3]), (1, 2), (3, 4))
    return average(zero_elsewhere(means, np.asarray(x) >= 0))
