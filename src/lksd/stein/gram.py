"""The Stein Gram matrix, reduced in tiles: no n x n array is ever held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .._jax import float64
from .._progress import track
from ..engines import Engine, Local
from ..kernels import BagOfWords, Kernel
from . import bag_tiles, bags, tiles
from .bags import Sensitivity
from .base import SteinOperator
from .slopes import sensitivity
from .tiling import ACCELERATOR_TILES, TileSums, Tiling, largest_tile, plus, tiling_of


class GramSums(NamedTuple):
    """What the tests need of the S Gram matrices H_s and of their contrast H = sum_s c_s H_s, or of C contrasts."""

    model_rows: Float[np.ndarray, "S n"]  # row sums of each H_s without the diagonal
    model_diagonal: Float[np.ndarray, "S n"]
    rows: Float[np.ndarray, "*C n"]  # row sums of H without the diagonal
    squares: Any  # the sum of H_ij^2 over i != j; of C contrasts, all their inner products (C, C)
    diagonal: Float[np.ndarray, "*C n"]  # H_ii
    products: Float[np.ndarray, "*C n B"]  # H W without the diagonal of H, for weights W (n, B)
    sensitivity: Sensitivity | None = None  # of the row sums, where asked for and data are discrete
    matrix: Float[np.ndarray, "*C n n"] | None = None  # H with a diagonal of zeros, where asked for
    partners: Int[np.ndarray, " n"] | None = None  # of each observation, where not all pairs are taken


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
    pairs: int | None = None,
    seed: int = 0,
    engine: Engine | None = None,
) -> GramSums:
    """Reduce the Gram matrices of S models, each unordered pair of tiles computed once.

    Parameters
    ----------
    x : (n, D) array
        Checked observations (``operator.observations``).
    scores : (S, n, ...) array, or S arrays
    contrast : (S,) or (C, S) array
        The coefficients c of H, for example (1, -1) for a comparison; or a row for each of several.
    weights : (n, B) array, optional
    tile : int, optional
        Rows of a tile. Changes time and memory, not the answer.
    sensitive : bool
        Whether to add the ``sensitivity`` of the row sums, for discrete data.
    whole : bool
        Whether to add the ``matrix`` itself, for small n.
    pairs : int, optional
        Take at least so many pairs of observations instead of all; ``seed`` chooses them. Row sums and squares are then
        multiplied to stand for all pairs. It does not go with ``weights`` and ``whole``.
    engine : Engine, optional
        Where the tiles are computed; default: this process. The digits do not depend on it.
    """
    n, contrasts = len(x), np.atleast_2d(np.asarray(contrast, dtype=np.float64))
    weights = np.zeros((n, 0)) if weights is None else np.asarray(weights, dtype=np.float64)
    sensitive, engine = sensitive and operator.by_moves, engine or Local()
    on_processors = engine.backend == "cpu"
    by_words = on_processors and isinstance(kernel, BagOfWords) and operator.by_moves and operator.witness == "shared"  # type: ignore[attr-defined]
    order = None
    if pairs is not None:
        order = np.random.default_rng([seed, n]).permutation(n)
    elif by_words:
        order = bags.calm_first(x)
    scores = list(scores)
    if order is not None:
        x, scores, weights = x[order], [score[order] for score in scores], weights[order]
    if by_words:
        every, tokens = bags.prepare(operator, x, np.stack(scores))  # type: ignore[arg-type]
        tiling = tiling_of(n, tile or bags.tile_size(every), pairs)
        table = bags.kernel_table(kernel, every)  # type: ignore[arg-type]
        total = added(engine, bag_tiles.ready, bag_tiles.Problem(every, table, contrasts, weights, tiling, sensitive, whole))
        slopes = bags.sensitivity(operator, x, np.stack(scores), total.slopes, tokens) if sensitive else None  # type: ignore[arg-type]
        slopes = slopes and Sensitivity(*(tiling.factor * part for part in slopes))
    else:
        largest = tile or largest_tile(operator, kernel, x.shape[1], len(scores), None if on_processors else engine.memory)
        tiling = tiling_of(n, largest, pairs, None if on_processors or whole else ACCELERATOR_TILES)
        problem = tiles.Problem(operator, kernel, contrasts, x, scores, weights, tiling, whole)
        total = added(engine, tiles.ready, problem, 1)
        slopes = sensitivity(operator, kernel, x, np.stack(scores)) if sensitive else None  # type: ignore[arg-type]
    check_finite_sums(kernel, np.concatenate([total.rows, total.diagonal]))
    sums = GramSums(
        model_rows=total.rows,
        model_diagonal=total.diagonal,
        rows=contrasts @ total.rows,
        squares=total.squares,
        diagonal=contrasts @ total.diagonal,
        products=total.products,
        sensitivity=slopes,
        matrix=mirrored(total.matrix) if whole else None,
    )
    if tiling.reach is not None:
        sums = standing_for_all(sums, tiling)
    if order is not None:
        sums = as_they_stood(sums, np.argsort(order))
    return sums if np.ndim(contrast) == 2 else alone(sums)


def gram_matrix(operator: SteinOperator, kernel: Kernel, x, score) -> Float[np.ndarray, "n n"]:
    """H of one model, for n small enough to hold it."""
    sums = gram_sums(operator, kernel, x, (score,), np.ones((1, 1)), whole=True)
    assert sums.matrix is not None
    return sums.matrix[0] + np.diag(sums.diagonal[0])


def matrix_sums(matrices: Float[np.ndarray, "S n n"], contrasts: Float[np.ndarray, "C S"]) -> GramSums:
    """What ``gram_sums`` gives, without products, from all models' matrices where they are known."""
    apart = matrices * (1 - np.eye(matrices.shape[1]))
    diagonal, rows = np.diagonal(matrices, axis1=1, axis2=2), apart.sum(2)
    matrix = np.tensordot(contrasts, apart, 1)
    flat = matrix.reshape(len(contrasts), -1)
    return GramSums(
        model_rows=rows,
        model_diagonal=diagonal,
        rows=contrasts @ rows,
        squares=flat @ flat.T,
        diagonal=contrasts @ diagonal,
        products=np.zeros((*matrix.shape[:2], 0)),
        matrix=matrix,
    )


def added(engine: Engine, setup: Callable[[Any], Callable], problem: Any, at_once: int | None = None) -> TileSums:
    """All tiles together, in their order whoever computed them, so that the digits are always the same."""
    tiling, diagonals, matrices, sums = problem.tiling, [], [], None
    slopes: dict[int, tuple] = {}
    with track("kernel", tiling.tiles) as advance:
        for part, found in zip(tiling.parts(), engine.map(setup, problem, tiling.parts(), at_once), strict=True):
            sums = plus(sums, (found.rows, found.squares, found.products))
            diagonals.append(found.diagonal)
            matrices.append(found.matrix)
            for j, more in found.slopes.items():
                slopes[j] = plus(slopes.get(j), more)
            advance(len(part))
    assert sums is not None
    n = tiling.n
    return TileSums(
        rows=sums[0][:, :n],
        squares=sums[1],
        products=sums[2][:, :n],
        diagonal=np.concatenate(diagonals, 1)[:, :n],
        matrix=np.concatenate(matrices, 1)[:, :n, :n],
        slopes=bags.Slopes(*(np.concatenate(part, 1) for part in zip(*(slopes[j] for j in sorted(slopes)), strict=True)))
        if slopes
        else None,
    )


def mirrored(matrix: np.ndarray) -> np.ndarray:
    """The upper triangle of each matrix, and its transpose below."""
    upper = np.triu(matrix)
    return upper + np.swapaxes(upper, 1, 2)


def standing_for_all(sums: GramSums, tiling: Tiling) -> GramSums:
    """Sums over some pairs, multiplied so that they estimate those over all."""
    factor = tiling.factor
    return sums._replace(
        model_rows=factor * sums.model_rows,
        rows=factor * sums.rows,
        squares=factor * sums.squares,
        partners=tiling.partners,
    )


def as_they_stood(sums: GramSums, place: Int[np.ndarray, " n"]) -> GramSums:
    """The observations where they stood before."""
    known = sums.sensitivity
    return sums._replace(
        model_rows=sums.model_rows[:, place],
        model_diagonal=sums.model_diagonal[:, place],
        rows=sums.rows[:, place],
        diagonal=sums.diagonal[:, place],
        products=sums.products[:, place],
        matrix=None if sums.matrix is None else sums.matrix[:, place][:, :, place],
        sensitivity=None if known is None else Sensitivity(*(part[:, place] for part in known)),
        partners=None if sums.partners is None else sums.partners[place],
    )


def alone(sums: GramSums) -> GramSums:
    """The sums of one contrast, without the axis of contrasts."""
    return sums._replace(
        rows=sums.rows[0],
        squares=float(sums.squares[0, 0]),
        diagonal=sums.diagonal[0],
        products=sums.products[0],
        matrix=None if sums.matrix is None else sums.matrix[0],
    )


def check_finite_sums(kernel: Kernel, sums: np.ndarray) -> None:
    if not np.isfinite(sums).all():
        index = int(np.argwhere(~np.isfinite(sums).all(0))[0, 0])
        raise ValueError(
            f"kernel: the Stein kernel of {kernel} is not finite at observation {index}. "
            "The kernel must be smooth everywhere, also where both observations are equal; and the scores must not overflow."
        )
