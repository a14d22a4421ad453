"""Tiles of the Gram matrices, for any operator and kernel, added up in a loop on the device; and
the slopes of their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._jax import (
    compiled,
    fixed,
    float64,
    longer,
    on_device,
    on_processor,
    once,
    program,
    room,
)
from .._steps import steps
from ..kernels import Kernel, named_errors
from ..kernels.base import Pointwise
from .base import ELEMENTWISE_TILE, SteinOperator
from .discrete import DiscreteOperator, Sensitivity, chain_rule
from .langevin import UNROLLED_MODELS

if TYPE_CHECKING:
    from .gram import Tiling

ACCELERATOR_PAIRS = 2**14  # matched rows at a time
LEAST, STEP = 64, 16  # rows of a program of slopes, and of a step of it
Tiles = list[tuple[int, int]]  # the row and the column of each
NOWHERE = -1  # the row and the column of a tile that adds nothing


class TileSums(NamedTuple):
    """What some tiles add: each of those off the diagonal stands for its transpose too."""

    rows: Any  # (S, n): row sums without the diagonal, of the models
    squares: Any  # (C, C), of the contrasts
    products: Any  # (C, n, B), of the contrasts, without the diagonal
    # (S, m), of the models, at the observations whose tile on the diagonal is among them
    diagonal: Any
    # (C, m, n), of the contrasts, for a whole row of tiles; or without columns where it is not
    # wanted
    matrix: Any
    slopes: Any  # by the number of the block, where asked for


def plus(total, more) -> tuple:
    """Both, part by part."""
    return tuple(a + b for a, b in zip(total, more, strict=True))


class Problem(NamedTuple):
    """What all tiles share."""

    operator: SteinOperator
    kernel: Kernel
    contrasts: Float[np.ndarray, "C S"]
    x: np.ndarray
    scores: list[np.ndarray]  # of each model
    weights: Float[np.ndarray, "n B"]
    tiling: Tiling
    whole: bool


@float64
def ready(problem: Problem) -> Callable[[Tiles], TileSums]:
    """The function that adds up some tiles, once everything they share is on the device."""
    n, rows, blocks = problem.tiling.n, problem.tiling.rows, problem.tiling.blocks
    blocks = room(blocks)  # of which the last may be empty
    given, length = (problem.x, problem.scores, problem.weights), blocks * rows
    # On a processor a copy costs less than its compilation for every n.
    data = on_device(pad(*given, length, np)) if on_processor() else _pad(*on_device(given), length)
    # else an accelerator would hold what was sent beside the first tiles
    jax.block_until_ready(data)
    operator, kernel = on_device((problem.operator, problem.kernel))
    shared = (operator, kernel, jnp.asarray(problem.contrasts), data, jnp.asarray(n, jnp.int32))
    most, form = (
        problem.tiling.together or blocks,
        Form(rows, problem.tiling.together is None, problem.whole),
    )
    nothing, zero = jnp.full((most, 2), NOWHERE, jnp.int32), jnp.asarray(0, jnp.int32)
    ours = fixed(operator)
    seen = partial(one_pair, operator, kernel, *data[:2]) if ours else None
    with named_errors(problem.kernel, problem.x.shape[1], None if ours else operator):
        add = compiled(_add_tiles, *shared, nothing, zero, form, seen=seen, optimised=True)
        diagonal_of = compiled(_diagonal, *shared, zero, rows, seen=seen, optimised=True)

    @float64
    def add_tiles(tiles: Tiles) -> TileSums:
        where = np.full((most, 2), NOWHERE, np.int32)
        where[: len(tiles)] = tiles
        found = add(*shared, jnp.asarray(where), jnp.asarray(len(tiles), jnp.int32), form)
        starts = [i for i, j in tiles if i == j]
        own = [diagonal_of(*shared, jnp.asarray(i, jnp.int32), rows) for i in starts]
        sums, squares, products, matrix, own = jax.device_get((*found, own))
        diagonal = np.concatenate([np.zeros((len(problem.scores), 0)), *own], 1)
        return TileSums(sums, squares, products, diagonal, matrix, slopes={})

    return add_tiles


def one_pair(operator: SteinOperator, kernel: Kernel, x, scores) -> Hashable:
    """What kernel and operator do at one pair of observations, which tells all that they do."""
    return once(
        "one pair", (operator, kernel, x, scores), lambda: look_at(operator, kernel, x, scores)
    )


def look_at(operator: SteinOperator, kernel: Kernel, x, scores) -> Hashable:
    if by_values(kernel):
        return steps(values_and_slopes, kernel, *2 * (jax.ShapeDtypeStruct(x.shape[1:], x.dtype),))
    point = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
    own = jax.ShapeDtypeStruct((len(scores), 1, *scores.shape[2:]), scores.dtype)
    return steps(operator.block, kernel, point, own, point, own)


def by_values(kernel: Kernel) -> bool:
    """Whether operators know a kernel by ``__call__`` alone: a function, or a user's class that is
    derived from no other form.
    """
    return type(kernel) is Pointwise or (
        type(kernel).__bases__ == (Kernel,) and not type(kernel).__module__.startswith("lksd.")
    )


def values_and_slopes(kernel: Kernel, a, b) -> Any:
    """Everything that an operator asks of a kernel that is known by its values alone."""
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return kernel(a, b)

    def total(a, b):
        return jnp.sum(kernel(a, b)).astype(a.dtype)

    def slopes(a):
        return jax.grad(total, argnums=(0, 1))(a, b)

    return kernel(a, b), jax.jvp(slopes, (a,), (b,))


def pad(x, scores, weights, length: int, library: Any = jnp):
    """All of one length, with the scores in one array. The last row is repeated, so that padding
    never lies far from the data.
    """

    def longer(array):
        return library.concatenate([array, library.repeat(array[-1:], length - len(array), 0)])

    return longer(x), library.stack([longer(score) for score in scores]), longer(weights)


_pad = jax.jit(pad, static_argnames="length")


class Form(NamedTuple):
    """What is part of the program that adds up tiles."""

    rows: int
    in_row: bool  # whether all tiles of a part stand in one row
    whole: bool


def _add_tiles(operator, kernel, contrasts, data, n, where, number, form: Form):
    (x, scores, weights), (rows, in_row, whole) = data, form
    (count, models), length, columns = contrasts.shape, len(x), weights.shape[1]
    numbers = jnp.arange(rows, dtype=jnp.int32)

    def at(array, index, axis=0):
        return jax.lax.dynamic_slice_in_dim(array, index * rows, rows, axis)

    def add(array, index, values, axis=1):
        return jax.lax.dynamic_update_slice_in_dim(
            array, at(array, index, axis) + values, index * rows, axis
        )

    def left(i):
        row = i * rows + numbers
        return at(x, i), at(scores, i, 1), row, (row >= 0) & (row < n)

    first = left(where[0, 0])  # for a whole row of tiles prepared once

    def add_tile(k, carried):
        sums, squares, products, matrix = carried
        i, j = where[0 if in_row else k, 0], where[k, 1]
        x_i, scores_i, row, inside = first if in_row else left(i)
        column = j * rows + numbers
        counted = (row[:, None] != column) & inside[:, None] & (column < n)
        blocks = operator.block(kernel, x_i, scores_i, at(x, j), at(scores, j, 1))
        if jnp.shape(blocks) != (models, rows, rows):
            raise ValueError(
                f"block(...) has shape {jnp.shape(blocks)}, not (models, n, m) = "
                f"{(models, rows, rows)}"
            )
        # one by one, so that each reduction reads the matrix products themselves
        if models <= UNROLLED_MODELS:
            blocks = [jnp.where(counted, block, 0.0) for block in blocks]
        else:
            blocks = jnp.where(counted, blocks, 0.0)
        h = weighted_sums(contrasts, blocks)
        mirrored = jnp.where(i == j, 0.0, 1.0)
        rows_i, rows_j, more = reductions(blocks, h)
        sums = add(add(sums, i, rows_i), j, mirrored * rows_j)
        if columns:
            products = add(products, i, jnp.asarray(h) @ at(weights, j))
            products = add(
                products, j, mirrored * (jnp.swapaxes(jnp.asarray(h), 1, 2) @ at(weights, i))
            )
        if whole:
            matrix = add(matrix, j, jnp.asarray(h), 2)
        return sums, squares + (1 + mirrored) * more, products, matrix

    start = (
        jnp.zeros((models, length)),
        jnp.zeros((count, count)),
        jnp.zeros((count, length, columns)),
        jnp.zeros((count, rows, length if whole else 0)),
    )
    # An accelerator need not ask its host for a fixed number of steps; the rows of a processor have
    # each their own.
    return jax.lax.fori_loop(0, number if in_row else len(where), add_tile, start)


def _diagonal(operator, kernel, contrasts, data, n, i, rows: int):
    """h(x, x) of the models at the observations of a block."""
    x, scores, _ = data
    x, scores = (
        jax.lax.dynamic_slice_in_dim(array, i * rows, rows, axis)
        for array, axis in ((x, 0), (scores, 1))
    )
    return _paired(operator, kernel, x, scores, x, scores)


def weighted_sums(contrasts, blocks):
    """sum_s c_s H_s for each row c of the contrasts: written out for a few models, a matrix product
    for many.
    """
    if len(blocks) > UNROLLED_MODELS:
        return jnp.tensordot(contrasts, blocks, 1)
    return [sum(c * block for c, block in zip(row, blocks, strict=True)) for row in contrasts]


def reductions(blocks, h):
    """The models' row sums and column sums, and the inner products of the contrasts' tiles."""
    if not isinstance(blocks, list):
        flat = h.reshape(len(h), -1)
        return blocks.sum(2), blocks.sum(1), flat @ flat.T
    products = [one * other for one in h for other in h]
    sums = add_up([*blocks, *products], 1)
    rows, squares = sums[: len(blocks)], [one.sum() for one in sums[len(blocks) :]]
    return (
        jnp.stack(rows),
        jnp.stack(add_up(blocks, 0)),
        jnp.stack(squares).reshape(len(h), len(h)),
    )


def add_up(blocks: list, axis: int) -> list:
    """The sums of several blocks along an axis; on an accelerator in one pass, which its compiler
    does not find by itself.
    """
    if on_processor():
        return [block.sum(axis) for block in blocks]

    def add(totals, more):
        return tuple(total + one for total, one in zip(totals, more, strict=True))

    return list(jax.lax.reduce(tuple(blocks), (jnp.zeros(()),) * len(blocks), add, (axis,)))


@float64
def paired(operator: SteinOperator, kernel: Kernel, x, scores_x, y, scores_y) -> np.ndarray:
    """h(x_i, y_i) along matched rows: (S, n)."""
    return np.asarray(
        _paired(operator, kernel, *(jnp.asarray(array) for array in (x, scores_x, y, scores_y)))
    )


@program
def _paired(operator, kernel, x, scores_x, y, scores_y):
    def one(pair):
        a, s, b, t = pair
        return operator.block(kernel, a[None], s[:, None], b[None], t[:, None])[:, 0, 0]

    rows = (x, jnp.moveaxis(scores_x, 1, 0), y, jnp.moveaxis(scores_y, 1, 0))
    at_once = ELEMENTWISE_TILE if on_processor() else ACCELERATOR_PAIRS
    return jax.lax.map(one, rows, batch_size=at_once).T


# How the row sums depend on the scores, by differentiation ------------------------------------


@float64
def score_slopes(operator: SteinOperator, kernel: Kernel, x, scores, count: int) -> np.ndarray:
    """The derivative of sum_{j != i} h(x_i, x_j) in the score of i, for the first ``count`` i: (S,
    count, ...).
    """
    n, count = len(x), min(count, len(x))
    found = _slopes(
        operator,
        kernel,
        *with_room(x, scores),
        jnp.asarray(n),
        min(room(count, STEP), room(n, LEAST)),
    )
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
    found = np.asarray(_move_slopes(operator, kernel, *with_room(x, scores), jnp.asarray(len(x))))[
        :, : len(x)
    ]
    return chain_rule(operator, x, scores, found[..., 0], found[..., 1:])


@program
def _move_slopes(operator, kernel, x, scores, n):
    numbers = jnp.arange(len(x))

    def row(arguments):
        point, own, index = arguments
        counted = ((numbers != index) & (numbers < n)).astype(jnp.float64)
        return operator.slopes(kernel, point[None], own[:, None], x, scores, counted[None])[:, 0]

    rows = (x, jnp.moveaxis(scores, 1, 0), jnp.arange(len(x)))
    return jnp.moveaxis(jax.lax.map(row, rows, batch_size=STEP), 0, 1)
