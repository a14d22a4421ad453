"""Rows of tiles of the Gram matrices, for any operator and kernel: each a loop on the device over the tiles in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._device import device_memory
from .._float64 import float64
from ..kernels import Kernel, PerCoordinate, Radial, Sum, Weighted
from .base import SteinOperator
from .discrete import DiscreteOperator
from .langevin import UNROLLED_MODELS
from .tiling import TileRow, Tiling

TILE = 512  # rows of a tile of matrix products; its square in float64 stays near a processor's cache
ELEMENTWISE_TILE = 128
MANY_MODELS_TILE = 64  # with the tiles of all models at once
BUDGET = 2**26  # bytes for the tables of one tile on a processor
SHARE = 32  # of an accelerator's memory, as a divisor: the same there
ACCELERATOR_TILE = 4_096
ACCELERATOR_PAIRS = 2**14  # matched rows at a time


class Problem(NamedTuple):
    """What all rows of tiles share."""

    operator: SteinOperator
    kernel: Kernel
    contrasts: Float[np.ndarray, "C S"]
    x: np.ndarray
    scores: np.ndarray
    weights: Float[np.ndarray, "n B"]
    tiling: Tiling
    whole: bool


@float64
def ready(problem: Problem) -> Callable[[int], TileRow]:
    """The function that gives the row of tiles with a number, once everything they share is on the device."""
    n, rows, blocks = problem.tiling.n, problem.tiling.rows, problem.tiling.blocks

    def padded(array, axis: int):
        # The last row repeated, so that padding never lies far from the data.
        width = [(0, 0)] * array.ndim
        width[axis] = (0, blocks * rows - n)
        pad = np.pad if jax.default_backend() == "cpu" else jnp.pad
        return jnp.asarray(pad(array, width, mode="edge"))

    data = (padded(problem.x, 0), padded(problem.scores, 1), padded(problem.weights, 0))
    leaves = jax.tree.map(
        lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, (problem.operator, problem.kernel)
    )
    arrays, static = eqx.partition(leaves, eqx.is_array)
    fixed = (arrays, jnp.asarray(problem.contrasts), data, jnp.asarray(n))

    @float64
    def row(i: int) -> TileRow:
        found = _add_tiles(fixed, np.array([i, problem.tiling.width(i)]), static, rows, problem.whole)
        return jax.tree.map(np.asarray, found)

    return row


@partial(jax.jit, static_argnames=("static", "rows", "whole"))
def _add_tiles(fixed, position, static, rows: int, whole: bool) -> TileRow:
    arrays, contrasts, (x, scores, weights), n = fixed
    operator, kernel = eqx.combine(arrays, static)
    (i, width), (count, models), length = position, contrasts.shape, len(x)

    def at(array, index, axis=0):
        return jax.lax.dynamic_slice_in_dim(array, index * rows, rows, axis)

    def add(array, index, values, axis=1):
        return jax.lax.dynamic_update_slice_in_dim(array, at(array, index, axis) + values, index * rows, axis)

    x_i, scores_i, weights_i, row = at(x, i), at(scores, i, 1), at(weights, i), i * rows + jnp.arange(rows)

    def add_tile(k, sums: TileRow) -> TileRow:
        j = (i + k) % (length // rows)
        column = j * rows + jnp.arange(rows)
        counted = (row[:, None] != column) & (row < n)[:, None] & (column < n)
        blocks = operator.block(kernel, x_i, scores_i, at(x, j), at(scores, j, 1))
        if models <= UNROLLED_MODELS:  # one by one, so that each reduction reads the matrix products themselves
            blocks = [jnp.where(counted, block, 0.0) for block in blocks]
        else:
            blocks = jnp.where(counted, blocks, 0.0)
        h = weighted_sums(contrasts, blocks)
        matrices, mirrored = jnp.asarray(h), jnp.where(k == 0, 0.0, 1.0)
        rows_i, rows_j = (jnp.concatenate([summed(blocks, axis), summed(h, axis)]) for axis in (1, 0))
        products = add(sums.products, i, matrices @ at(weights, j))
        return TileRow(
            rows=add(add(sums.rows, i, rows_i), j, mirrored * rows_j),
            squares=sums.squares + (1 + mirrored) * inner_products(h),
            products=add(products, j, mirrored * (jnp.swapaxes(matrices, 1, 2) @ weights_i)),
            diagonal=sums.diagonal,
            matrix=add(sums.matrix, j, matrices, 2) if whole else sums.matrix,
            slopes={},
        )

    start = TileRow(
        rows=jnp.zeros((models + count, length)),
        squares=jnp.zeros((count, count)),
        products=jnp.zeros((count, length, weights.shape[1])),
        diagonal=_paired(operator, kernel, x_i, scores_i, x_i, scores_i),
        matrix=jnp.zeros((count, rows, length if whole else 0)),
        slopes={},
    )
    return jax.lax.fori_loop(0, width, add_tile, start)


def weighted_sums(contrasts, blocks):
    """sum_s c_s H_s for each row c of the contrasts: written out for a few models, a matrix product for many."""
    if len(blocks) > UNROLLED_MODELS:
        return jnp.tensordot(contrasts, blocks, 1)
    return [sum(c * block for c, block in zip(row, blocks, strict=True)) for row in contrasts]


def summed(blocks, axis: int):
    """The sums of each block along an axis."""
    return jnp.stack([block.sum(axis) for block in blocks]) if isinstance(blocks, list) else blocks.sum(1 + axis)


def inner_products(blocks):
    """<H_a, H_b> for all blocks; of one along its rows, in the same pass as their sums."""
    if len(blocks) == 1:
        return jnp.sum(jnp.sum(blocks[0] ** 2, 1)).reshape(1, 1)
    flat = jnp.asarray(blocks).reshape(len(blocks), -1)
    return flat @ flat.T


@float64
def paired(operator: SteinOperator, kernel: Kernel, x, scores_x, y, scores_y) -> np.ndarray:
    """h(x_i, y_i) along matched rows: (S, n)."""
    return np.asarray(_paired(operator, kernel, *(jnp.asarray(array) for array in (x, scores_x, y, scores_y))))


@eqx.filter_jit
def _paired(operator, kernel, x, scores_x, y, scores_y):
    def one(pair):
        a, s, b, t = pair
        return operator.block(kernel, a[None], s[:, None], b[None], t[:, None])[:, 0, 0]

    rows = (x, jnp.moveaxis(scores_x, 1, 0), y, jnp.moveaxis(scores_y, 1, 0))
    at_once = ELEMENTWISE_TILE if jax.default_backend() == "cpu" else ACCELERATOR_PAIRS
    return jax.lax.map(one, rows, batch_size=at_once).T


def largest_tile(operator: SteinOperator, kernel: Kernel, dim: int, models: int) -> int:
    """Rows of a tile within a budget of memory: on a processor its cache, on an accelerator a share of all it has."""
    memory = device_memory()
    numbers = (BUDGET if memory is None else memory // SHARE) // 8
    if isinstance(operator, DiscreteOperator):  # tables of all choices for each pair
        usual, fits = ELEMENTWISE_TILE, np.sqrt(numbers / (2 * dim * operator.choices + 2 * operator.choices**2))
    elif by_products(kernel):
        usual, fits = TILE if models <= UNROLLED_MODELS else MANY_MODELS_TILE, np.sqrt(numbers / (3 + 3 * models))
    else:  # second derivatives for a row of pairs
        usual, fits = ELEMENTWISE_TILE, numbers / dim**2
    return max(8, int(min(usual if memory is None else ACCELERATOR_TILE, fits)))


def by_products(kernel: Kernel) -> bool:
    """Whether the kernel's Langevin block is matrix products and element-wise work on n x m arrays."""
    if isinstance(kernel, Weighted):
        return by_products(kernel.base)
    if isinstance(kernel, Sum):
        return by_products(kernel.a) and by_products(kernel.b)
    return isinstance(kernel, (Radial, PerCoordinate))
