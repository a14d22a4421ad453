"""The Stein Gram matrix, reduced in tiles: no n x n array is ever held."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._cores import cores
from .._float64 import float64
from .._progress import track
from ..kernels import Kernel, PerCoordinate, Radial, Sum, Weighted, named_errors
from . import bags
from .bags import Sensitivity
from .base import SteinOperator
from .discrete import DiscreteOperator
from .langevin import UNROLLED_MODELS

TILE = 512  # rows of a tile of matrix products; its square in float64 stays near a processor's cache
ELEMENTWISE_TILE = 128
MANY_MODELS_TILE = 64  # with the tiles of all models at once
BUDGET = 2**26  # bytes for the tables of one tile
MULTIPLE = 16


class GramSums(NamedTuple):
    """What the tests need of the S Gram matrices H_s and of their contrast H = sum_s c_s H_s, or of C contrasts."""

    model_rows: Float[np.ndarray, "S n"]  # row sums of each H_s without the diagonal
    model_diagonal: Float[np.ndarray, "S n"]
    rows: Float[np.ndarray, "*C n"]  # row sums of H without the diagonal
    squares: Any  # the sum of H_ij^2 over i != j; of C contrasts, all their inner products (C, C)
    diagonal: Float[np.ndarray, "*C n"]  # H_ii
    products: Float[np.ndarray, "*C n B"]  # H W with the diagonal, for weights W (n, B)
    sensitivity: Sensitivity | None = None  # of the row sums, where asked for and data are discrete
    matrix: Float[np.ndarray, "*C n n"] | None = None  # H with a diagonal of zeros, where asked for


class _Sums(eqx.Module):
    """The accumulators on the device."""

    rows: jax.Array  # (S + C, n): the models', then the contrasts'
    squares: jax.Array  # (C, C)
    products: jax.Array  # (C, n, B)


@float64
def gram_sums(
    operator: SteinOperator,
    kernel: Kernel,
    x,
    scores,
    contrast,
    weights=None,
    tile: int | None = None,
    sensitive: bool = False,
    whole: bool = False,
) -> GramSums:
    """Reduce the Gram matrices of S models, each unordered pair of tiles computed once.

    Parameters
    ----------
    x : (n, D) array
        Checked observations (``operator.observations``).
    scores : (S, n, ...) array
    contrast : (S,) or (C, S) array
        The coefficients c of H, for example (1, -1) for a comparison; or a row for each of several.
    weights : (n, B) array, optional
    tile : int, optional
        Rows of a tile. Changes time and memory, not the answer.
    sensitive : bool
        Whether to add the ``sensitivity`` of the row sums, for discrete data.
    whole : bool
        Whether to add the ``matrix`` itself, for small n.
    """
    n, contrasts = len(x), np.atleast_2d(np.asarray(contrast, dtype=np.float64))
    weights = np.zeros((n, 0)) if weights is None else np.asarray(weights, dtype=np.float64)
    if bags.fits(operator, kernel):
        sums = _sums_of_bags(operator, kernel, x, np.asarray(scores), contrasts, weights, tile, sensitive, whole)
    else:
        sums = _sums_of_tiles(operator, kernel, x, np.asarray(scores), contrasts, weights, tile, whole)
        if sensitive and isinstance(operator, DiscreteOperator):
            sums = sums._replace(sensitivity=sensitivity(operator, kernel, x, scores))
    return sums if np.ndim(contrast) == 2 else alone(sums)


def alone(sums: GramSums) -> GramSums:
    """The sums of one contrast, without the axis of contrasts."""
    return sums._replace(
        rows=sums.rows[0],
        squares=float(sums.squares[0, 0]),
        diagonal=sums.diagonal[0],
        products=sums.products[0],
        matrix=None if sums.matrix is None else sums.matrix[0],
    )


def _sums_of_tiles(operator, kernel, x, scores, contrasts, weights, tile: int | None, whole: bool) -> GramSums:
    n, (count, models) = len(x), contrasts.shape
    rows = tile_rows(operator, kernel, n, x.shape[1], models) if tile is None else min(tile, n)
    blocks = -(-n // rows)
    length = blocks * rows

    def padded(array, axis: int):
        # The last row repeated, so that padding never lies far from the data.
        width = [(0, 0)] * array.ndim
        width[axis] = (0, length - n)
        return jnp.asarray(np.pad(array, width, mode="edge"))

    data = (padded(x, 0), padded(scores, 1), padded(weights, 0))
    arrays, static = eqx.partition(on_device((operator, kernel)), eqx.is_array)
    fixed = (arrays, jnp.asarray(contrasts), data, jnp.asarray(n))
    sums = _Sums(jnp.zeros((models + count, length)), jnp.zeros((count, count)), jnp.zeros((count, length, weights.shape[1])))
    matrix = np.empty((count, length, length)) if whole else None
    with named_errors(kernel, x.shape[1]), track("kernel", blocks * (blocks + 1) // 2) as advance:
        for i in range(blocks):
            for j in range(i, blocks):
                sums, h = _add_tile(sums, fixed, np.array([i, j]), static, rows)
                if matrix is not None:
                    row, column = slice(i * rows, (i + 1) * rows), slice(j * rows, (j + 1) * rows)
                    matrix[:, row, column], matrix[:, column, row] = h, np.swapaxes(h, 1, 2)
            jax.block_until_ready(sums)
            advance(blocks - i)
    row_sums = np.asarray(sums.rows)[:, :n]
    model_diagonal = paired(operator, kernel, data[0], data[1], data[0], data[1])[:, :n]
    check_finite_sums(kernel, np.concatenate([row_sums, model_diagonal]))
    diagonal = contrasts @ model_diagonal
    return GramSums(
        model_rows=row_sums[:models],
        model_diagonal=model_diagonal,
        rows=row_sums[models:],
        squares=np.asarray(sums.squares),
        diagonal=diagonal,
        products=np.asarray(sums.products)[:, :n] + diagonal[:, :, None] * weights,
        matrix=None if matrix is None else matrix[:, :n, :n],
    )


def _sums_of_bags(
    operator: Any, kernel: Any, x, scores, contrasts, weights, tile: int | None, sensitive: bool, whole: bool
) -> GramSums:
    """The same where documents are compared by their words alone."""
    every, tokens = bags.prepare(operator, x, scores)
    n, table = len(x), bags.kernel_table(kernel, every)
    rows = min(tile or bags.tile_size(every), n)
    edges = [(first, min(first + rows, n)) for first in range(0, n, rows)]
    parts = [every.part(*edge) for edge in edges]
    pairs = [(i, j) for i in range(len(edges)) for j in range(i, len(edges))]
    count, models = contrasts.shape
    sums, diagonal = np.zeros((models + count, n)), np.zeros((models, n))
    products, squares = np.zeros((count, *weights.shape)), np.zeros((count, count))
    matrix = np.empty((count, n, n)) if whole else None
    slopes = [bags.Slopes(np.zeros(part.stay.shape), np.zeros(part.weights.shape)) for part in parts]

    def one(pair):
        i, j = pair
        meeting = bags.meet(table, parts[i], parts[j])
        values = bags.witness_values(meeting)
        found = []
        if sensitive:
            found.append((i, bags.slopes(meeting, values, i == j)))
        if sensitive and i != j:
            found.append((j, bags.slopes(other := meeting.swapped(), bags.witness_values(other), False)))
        return bags.block(meeting, values), found

    with track("kernel", len(pairs)) as advance, ThreadPoolExecutor(len(cores())) as pool:
        for (i, j), (blocks, found) in zip(pairs, pool.map(one, pairs), strict=True):
            row, column = slice(*edges[i]), slice(*edges[j])
            if i == j:
                diagonal[:, row] = np.einsum("sii->si", blocks)
                blocks[:, np.arange(blocks.shape[1]), np.arange(blocks.shape[1])] = 0.0
            h = np.tensordot(contrasts, blocks, 1)
            if matrix is not None:
                matrix[:, row, column], matrix[:, column, row] = h, np.swapaxes(h, 1, 2)
            with_contrasts = np.concatenate([blocks, h])
            sums[:, row] += with_contrasts.sum(2)
            flat = h.reshape(count, -1)
            squares += (1 + (i != j)) * (flat @ flat.T)
            if matrix is None:
                products[:, row] += h @ weights[column]
            if i != j:  # a tile off the diagonal stands for its transpose too
                sums[:, column] += with_contrasts.sum(1)
                if matrix is None:
                    products[:, column] += np.swapaxes(h, 1, 2) @ weights[row]
            for k, part in found:
                slopes[k] = bags.Slopes(slopes[k].stay + part.stay, slopes[k].moves + part.moves)
            advance(1)
    if matrix is not None:
        products = matrix @ weights
    own = contrasts @ diagonal
    total = bags.Slopes(*(np.concatenate(part, 1) for part in zip(*slopes, strict=True)))
    found = bags.sensitivity(operator, x, scores, total, tokens) if sensitive else None
    return GramSums(sums[:models], diagonal, sums[models:], squares, own, products + own[:, :, None] * weights, found, matrix)


@partial(jax.jit, static_argnames=("static", "rows"), donate_argnames="sums")
def _add_tile(sums: _Sums, fixed, position, static, rows: int) -> tuple[_Sums, jax.Array]:
    """The sums with the tile at a position added, and the contrasts' tiles themselves."""
    arrays, contrasts, (x, scores, weights), n = fixed
    operator, kernel = eqx.combine(arrays, static)
    i, j = position

    def at(array, index, axis=0):
        return jax.lax.dynamic_slice_in_dim(array, index * rows, rows, axis)

    def add(array, index, values, axis=0):
        return jax.lax.dynamic_update_slice_in_dim(array, at(array, index, axis) + values, index * rows, axis)

    row, column = i * rows + jnp.arange(rows), j * rows + jnp.arange(rows)
    counted = (row[:, None] != column) & (row < n)[:, None] & (column < n)
    blocks = operator.block(kernel, at(x, i), at(scores, i, 1), at(x, j), at(scores, j, 1))
    blocks = jnp.where(counted, blocks, 0.0)
    h = weighted_sums(contrasts, blocks)
    mirrored = (i != j).astype(h.dtype)  # a tile off the diagonal stands for its transpose too
    rows_i, rows_j = (jnp.concatenate([blocks.sum(axis), h.sum(axis)]) for axis in (2, 1))
    products = add(sums.products, i, h @ at(weights, j), 1)
    products = jax.lax.cond(i == j, lambda: products, lambda: add(products, j, jnp.swapaxes(h, 1, 2) @ at(weights, i), 1))
    flat = h.reshape(len(h), -1)
    added = _Sums(
        rows=add(add(sums.rows, i, rows_i, 1), j, mirrored * rows_j, 1),
        squares=sums.squares + (1 + mirrored) * (flat @ flat.T),
        products=products,
    )
    return added, h


def weighted_sums(contrasts, blocks):
    """sum_s c_s H_s for each row c of the contrasts: written out for a few models, a matrix product for many."""
    if len(blocks) > UNROLLED_MODELS:
        return jnp.tensordot(contrasts, blocks, 1)
    return jnp.stack([sum(c * block for c, block in zip(row, blocks, strict=True)) for row in contrasts])


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
    return jax.lax.map(one, rows, batch_size=ELEMENTWISE_TILE).T


@float64
def score_slopes(operator: SteinOperator, kernel: Kernel, x, scores, count: int) -> np.ndarray:
    """The derivative of sum_{j != i} h(x_i, x_j) in the score of i, for the first ``count`` i: (S, count, ...)."""
    return np.asarray(_slopes(operator, kernel, jnp.asarray(x), jnp.asarray(scores), min(count, len(x))))


@eqx.filter_jit
def _slopes(operator, kernel, x, scores, count):
    def row(arguments):
        point, own, index = arguments

        def projection(free):
            block = operator.block(kernel, point[None], free[:, None], x, scores)[:, 0]
            return jnp.sum(jnp.where(jnp.arange(len(x)) == index, 0.0, block))

        return jax.grad(projection)(own)

    rows = (x[:count], jnp.moveaxis(scores, 1, 0)[:count], jnp.arange(count))
    return jnp.moveaxis(jax.lax.map(row, rows, batch_size=16), 0, 1)


@float64
def sensitivity(operator: DiscreteOperator, kernel: Kernel, x, scores) -> Sensitivity:
    """For any kernel and witness, some rows at a time."""
    found = np.asarray(_move_slopes(operator, kernel, jnp.asarray(x), jnp.asarray(scores)))
    return bags.chained(operator, x, scores, found[..., 0], found[..., 1:])


@eqx.filter_jit
def _move_slopes(operator, kernel, x, scores):
    def row(arguments):
        point, own, index = arguments
        counted = (jnp.arange(len(x)) != index).astype(jnp.float64)
        return operator.slopes(kernel, point[None], own[:, None], x, scores, counted[None])[:, 0]

    rows = (x, jnp.moveaxis(scores, 1, 0), jnp.arange(len(x)))
    return jnp.moveaxis(jax.lax.map(row, rows, batch_size=16), 0, 1)


def check_finite_sums(kernel: Kernel, sums: np.ndarray) -> None:
    if not np.isfinite(sums).all():
        index = int(np.argwhere(~np.isfinite(sums).all(0))[0, 0])
        raise ValueError(
            f"kernel: the Stein kernel of {kernel} is not finite at observation {index}. "
            "The kernel must be smooth everywhere, also where both observations are equal; and the scores must not overflow."
        )


def on_device(tree):
    """Array leaves as JAX arrays, so that no tile transfers them again."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, tree)


def tile_rows(operator: SteinOperator, kernel: Kernel, n: int, dim: int, models: int = 2) -> int:
    """Rows of a tile: equal parts, within a budget of memory, in a multiple that lets nearby n share a compilation."""
    if isinstance(operator, DiscreteOperator):
        entries = 2 * dim * operator.choices + 2 * operator.choices**2  # numbers kept for each pair of a tile
        largest = min(ELEMENTWISE_TILE, max(8, int(np.sqrt(BUDGET / (8 * entries)))))
    elif by_products(kernel):
        largest = TILE if models <= UNROLLED_MODELS else MANY_MODELS_TILE
    else:
        largest = min(ELEMENTWISE_TILE, max(8, BUDGET // (8 * dim * dim)))
    blocks = -(-n // largest)
    return -(-n // (blocks * MULTIPLE)) * MULTIPLE


def by_products(kernel: Kernel) -> bool:
    """Whether the kernel's Langevin block is matrix products and element-wise work on n x m arrays."""
    if isinstance(kernel, Weighted):
        return by_products(kernel.base)
    if isinstance(kernel, Sum):
        return by_products(kernel.a) and by_products(kernel.b)
    return isinstance(kernel, (Radial, PerCoordinate))
