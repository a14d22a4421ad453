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

TILE = 512  # rows of a tile of matrix products; its square in float64 stays near a processor's cache
ELEMENTWISE_TILE = 128
BUDGET = 2**26  # bytes for the tables of one tile
MULTIPLE = 16


class GramSums(NamedTuple):
    """What the tests need of the S Gram matrices H_s and of their contrast H = sum_s c_s H_s."""

    model_rows: Float[np.ndarray, "S n"]  # row sums of each H_s without the diagonal
    model_diagonal: Float[np.ndarray, "S n"]
    rows: Float[np.ndarray, " n"]  # row sums of H without the diagonal
    squares: float  # the sum of H_ij^2 over i != j
    diagonal: Float[np.ndarray, " n"]  # H_ii
    products: Float[np.ndarray, "n B"]  # H W with the diagonal, for weights W (n, B)
    sensitivity: Sensitivity | None = None  # of the row sums, where asked for and data are discrete
    matrix: Float[np.ndarray, "n n"] | None = None  # H with a diagonal of zeros, where asked for


class _Sums(eqx.Module):
    """The accumulators on the device."""

    rows: jax.Array  # (S + 1, n): the models', then the contrast's
    squares: jax.Array
    products: jax.Array


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
    contrast : (S,) array
        The coefficients c of H, for example (1, -1) for a comparison.
    weights : (n, B) array, optional
    tile : int, optional
        Rows of a tile. Changes time and memory, not the answer.
    sensitive : bool
        Whether to add the ``sensitivity`` of the row sums, for discrete data.
    whole : bool
        Whether to add the ``matrix`` itself, for small n.
    """
    n = len(x)
    weights = np.zeros((n, 0)) if weights is None else np.asarray(weights, dtype=np.float64)
    if bags.fits(operator, kernel):
        arrays = (np.asarray(scores), np.asarray(contrast, dtype=np.float64), weights)
        return _sums_of_bags(operator, kernel, x, *arrays, tile, sensitive, whole)
    rows = tile_rows(operator, kernel, *x.shape) if tile is None else min(tile, n)
    blocks = -(-n // rows)
    length = blocks * rows

    def padded(array, axis: int):
        # The last row repeated, so that padding never lies far from the data.
        width = [(0, 0)] * array.ndim
        width[axis] = (0, length - n)
        return jnp.asarray(np.pad(array, width, mode="edge"))

    data = (padded(x, 0), padded(np.asarray(scores), 1), padded(weights, 0))
    arrays, static = eqx.partition(on_device((operator, kernel)), eqx.is_array)
    fixed = (arrays, jnp.asarray(contrast, dtype=jnp.float64), data, jnp.asarray(n))
    sums = _Sums(jnp.zeros((len(scores) + 1, length)), jnp.zeros(()), jnp.zeros((length, weights.shape[1])))
    matrix = np.empty((length, length)) if whole else None
    with named_errors(kernel, x.shape[1]), track("kernel", blocks * (blocks + 1) // 2) as advance:
        for i in range(blocks):
            for j in range(i, blocks):
                sums, h = _add_tile(sums, fixed, np.array([i, j]), static, rows)
                if matrix is not None:
                    row, column = slice(i * rows, (i + 1) * rows), slice(j * rows, (j + 1) * rows)
                    matrix[row, column], matrix[column, row] = h, h.T
            jax.block_until_ready(sums)
            advance(blocks - i)
    row_sums = np.asarray(sums.rows)[:, :n]
    model_diagonal = paired(operator, kernel, data[0], data[1], data[0], data[1])[:, :n]
    check_finite_sums(kernel, np.concatenate([row_sums, model_diagonal]))
    diagonal = np.asarray(contrast, dtype=np.float64) @ model_diagonal
    return GramSums(
        model_rows=row_sums[:-1],
        model_diagonal=model_diagonal,
        rows=row_sums[-1],
        squares=float(sums.squares),
        diagonal=diagonal,
        products=np.asarray(sums.products)[:n] + diagonal[:, None] * weights,
        sensitivity=sensitivity(operator, kernel, x, scores) if sensitive and isinstance(operator, DiscreteOperator) else None,
        matrix=None if matrix is None else matrix[:n, :n],
    )


def _sums_of_bags(
    operator: Any, kernel: Any, x, scores, contrast, weights, tile: int | None, sensitive: bool, whole: bool
) -> GramSums:
    """The same where documents are compared by their words alone."""
    every, tokens = bags.prepare(operator, x, scores)
    n, table = len(x), bags.kernel_table(kernel, every)
    rows = min(tile or bags.tile_size(every), n)
    edges = [(first, min(first + rows, n)) for first in range(0, n, rows)]
    parts = [every.part(*edge) for edge in edges]
    pairs = [(i, j) for i in range(len(edges)) for j in range(i, len(edges))]
    sums, diagonal, products, squares = np.zeros((len(scores) + 1, n)), np.zeros((len(scores), n)), np.zeros(weights.shape), 0.0
    matrix = np.empty((n, n)) if whole else None
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
            h = np.tensordot(contrast, blocks, 1)
            if matrix is not None:
                matrix[row, column], matrix[column, row] = h, h.T
            with_contrast = np.concatenate([blocks, h[None]])
            sums[:, row] += with_contrast.sum(2)
            squares += (1 + (i != j)) * float(np.sum(h**2))
            if matrix is None:
                products[row] += h @ weights[column]
            if i != j:  # a tile off the diagonal stands for its transpose too
                sums[:, column] += with_contrast.sum(1)
                if matrix is None:
                    products[column] += h.T @ weights[row]
            for k, part in found:
                slopes[k] = bags.Slopes(slopes[k].stay + part.stay, slopes[k].moves + part.moves)
            advance(1)
    if matrix is not None:
        products = matrix @ weights
    own = contrast @ diagonal
    total = bags.Slopes(*(np.concatenate(part, 1) for part in zip(*slopes, strict=True)))
    found = bags.sensitivity(operator, x, scores, total, tokens) if sensitive else None
    return GramSums(sums[:-1], diagonal, sums[-1], squares, own, products + own[:, None] * weights, found, matrix)


@partial(jax.jit, static_argnames=("static", "rows"), donate_argnames="sums")
def _add_tile(sums: _Sums, fixed, position, static, rows: int) -> tuple[_Sums, jax.Array]:
    """The sums with the tile at a position added, and the contrast's tile itself."""
    arrays, contrast, (x, scores, weights), n = fixed
    operator, kernel = eqx.combine(arrays, static)
    i, j = position

    def at(array, index, axis=0):
        return jax.lax.dynamic_slice_in_dim(array, index * rows, rows, axis)

    def add(array, index, values, axis=0):
        return jax.lax.dynamic_update_slice_in_dim(array, at(array, index, axis) + values, index * rows, axis)

    row, column = i * rows + jnp.arange(rows), j * rows + jnp.arange(rows)
    counted = (row[:, None] != column) & (row < n)[:, None] & (column < n)
    blocks = operator.block(kernel, at(x, i), at(scores, i, 1), at(x, j), at(scores, j, 1))
    blocks = [jnp.where(counted, block, 0.0) for block in blocks]
    h = sum(c * block for c, block in zip(contrast, blocks, strict=True))
    mirrored = (i != j).astype(h.dtype)  # a tile off the diagonal stands for its transpose too
    every = [*blocks, h]
    rows_i, rows_j = (jnp.stack([part.sum(axis) for part in every]) for axis in (1, 0))
    products = add(sums.products, i, h @ at(weights, j))
    products = jax.lax.cond(i == j, lambda: products, lambda: add(products, j, h.T @ at(weights, i)))
    added = _Sums(
        rows=add(add(sums.rows, i, rows_i, 1), j, mirrored * rows_j, 1),
        squares=sums.squares + (1 + mirrored) * jnp.sum(h**2),
        products=products,
    )
    return added, h


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


def tile_rows(operator: SteinOperator, kernel: Kernel, n: int, dim: int) -> int:
    """Rows of a tile: equal parts, within a budget of memory, in a multiple that lets nearby n share a compilation."""
    if isinstance(operator, DiscreteOperator):
        entries = 2 * dim * operator.choices + 2 * operator.choices**2  # numbers kept for each pair of a tile
        largest = min(ELEMENTWISE_TILE, max(8, int(np.sqrt(BUDGET / (8 * entries)))))
    elif by_products(kernel):
        largest = TILE
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
