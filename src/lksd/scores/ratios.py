"""Scores of discrete models from the ratios p(x with x_d -> v) / p(x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..stein import DiscreteOperator
from .conditional import Point, density_ratios
from .control import Averages, average

BATCH = 16


class Targets(NamedTuple):
    """The replacements that several operators ask for, each once, and which of them belong to which operator."""

    values: Int[np.ndarray, "n D M"]
    columns: tuple[list[int], ...]


def targets(operators: tuple[DiscreteOperator, ...], x: Int[np.ndarray, "n D"]) -> Targets:
    found: list[np.ndarray] = []

    def number(column: np.ndarray) -> int:
        for index, known in enumerate(found):
            if np.array_equal(known, column):
                return index
        found.append(column)
        return len(found) - 1

    columns = tuple([number(column) for column in np.moveaxis(operator.targets(x), -1, 0)] for operator in operators)
    return Targets(np.stack(found, -1), columns)


def score_averages(
    operator: DiscreteOperator, ratios: Float[np.ndarray, "n C B D M"], there: np.ndarray
) -> Averages:
    """The operator's scores from batch means of the ratios, its own batch means linearised about the estimate."""
    n, chains, batches, dim, count = ratios.shape
    flat = average(ratios.reshape(n, chains, batches, dim * count))
    mean, error = (part.reshape(n, dim, count) for part in (flat.score, flat.mcse))
    variance = np.nan_to_num(error**2)  # unknown from one batch mean, and nil for exact ratios
    centre = mean[:, None, None]
    means = operator.score_of(mean, variance)[:, None, None] + operator.slope_of(centre, ratios - centre)
    # What stands at a position that does not exist is zero.
    means = np.where(there.reshape(n, 1, 1, dim, *(1,) * (means.ndim - 4)), means, 0.0)
    return averages_of(means)


def averages_of(means: np.ndarray) -> Averages:
    """The average of batch means of scores of any shape."""
    shape = means.shape[3:]
    flat = average(means.reshape(*means.shape[:3], -1))
    return Averages(flat.score.reshape(-1, *shape), means, flat.mcse.reshape(-1, *shape))


def by_modified_posterior(sampled: Callable, points: Point, columns: list[int], keys) -> Averages:
    """Barker weights by a chain for every neighbour (Appendix B.2): n D M chains instead of n."""
    n, dim = points.x.shape
    count = dim * len(columns)
    sites = np.stack(np.meshgrid(np.arange(dim), columns, indexing="ij"), -1).reshape(count, 2)
    every = Point(
        jnp.repeat(points.x, count, 0), jnp.repeat(points.values, count, 0), jnp.tile(jnp.asarray(sites, jnp.int32), (n, 1))
    )
    own = jax.vmap(lambda key: jax.vmap(lambda number: jax.random.fold_in(key, number))(jnp.arange(count)))(keys).reshape(-1)
    means = sampled(every, own).plain.batch_means  # (n D M, C, B, 1)
    means = np.moveaxis(means.reshape(n, dim, len(columns), *means.shape[1:3]), (1, 2), (3, 4))
    return averages_of(np.where(np.asarray(points.x)[:, None, None, :, None] >= 0, means, 0.0))


def has_exact_ratios(model: Any, length: int, wanted: bool | None) -> bool:
    """Whether the model offers exact ratios, cheaply unless they are demanded."""
    if hasattr(model, "marginal_ratios"):
        return bool(wanted) or not hasattr(model, "exact_is_cheap") or model.exact_is_cheap(length)
    return getattr(model, "log_marginal", None) is not None


@eqx.filter_jit
def exact_ratios(model: Any, x: Int[jax.Array, "n D"], values: Int[jax.Array, "n D M"]) -> Float[jax.Array, "n D M"]:
    def one(pair):
        point, replacements = pair
        if hasattr(model, "marginal_ratios"):
            return model.marginal_ratios(point, replacements)
        return density_ratios(model.log_marginal, point, replacements)

    return jax.lax.map(one, (x, values), batch_size=BATCH)
