"""How the row sums of the Gram matrices depend on the scores, by differentiation: for any kernel and operator."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import float64, longer, program, room
from ..kernels import Kernel
from . import bags
from .bags import Sensitivity
from .base import SteinOperator
from .discrete import DiscreteOperator

LEAST, STEP = 64, 16  # rows of a program, and of a step of it


@float64
def score_slopes(operator: SteinOperator, kernel: Kernel, x, scores, count: int) -> np.ndarray:
    """The derivative of sum_{j != i} h(x_i, x_j) in the score of i, for the first ``count`` i: (S, count, ...)."""
    n, count = len(x), min(count, len(x))
    found = _slopes(operator, kernel, *with_room(x, scores), jnp.asarray(n), min(room(count, STEP), room(n, LEAST)))
    return np.asarray(found)[:, :count]


def with_room(x: np.ndarray, scores) -> tuple[np.ndarray, np.ndarray]:
    length = room(len(x), LEAST)
    return longer(x, length), np.stack([longer(score, length) for score in scores])


@program
def _slopes(operator, kernel, x, scores, n, count):
    numbers = jnp.arange(len(x))

    def row(arguments):
        point, own, index = arguments

        def projection(free):
            block = operator.block(kernel, point[None], free[:, None], x, scores)[:, 0]
            return jnp.sum(jnp.where((numbers == index) | (numbers >= n), 0.0, block))

        return jax.grad(projection)(own)

    rows = (x[:count], jnp.moveaxis(scores, 1, 0)[:count], jnp.arange(count))
    return jnp.moveaxis(jax.lax.map(row, rows, batch_size=STEP), 0, 1)


@float64
def sensitivity(operator: DiscreteOperator, kernel: Kernel, x, scores) -> Sensitivity:
    """For any kernel and witness, some rows at a time."""
    found = np.asarray(_move_slopes(operator, kernel, *with_room(x, scores), jnp.asarray(len(x))))[:, : len(x)]
    return bags.chained(operator, x, scores, found[..., 0], found[..., 1:])


@program
def _move_slopes(operator, kernel, x, scores, n):
    numbers = jnp.arange(len(x))

    def row(arguments):
        point, own, index = arguments
        counted = ((numbers != index) & (numbers < n)).astype(jnp.float64)
        return operator.slopes(kernel, point[None], own[:, None], x, scores, counted[None])[:, 0]

    rows = (x, jnp.moveaxis(scores, 1, 0), jnp.arange(len(x)))
    return jnp.moveaxis(jax.lax.map(row, rows, batch_size=STEP), 0, 1)
