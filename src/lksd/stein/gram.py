"""The Stein Gram matrix, reduced in tiles: no n x n array is ever held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from .._jax import float64, room
from ..engines import Engine, Local, track
from ..kernels import BagOfWords, Kernel
from . import bags, tiles
from .base import SteinOperator
from .discrete import Sensitivity
from .tiles import Tiles, TileSums, plus

BUDGET = 2**26  # bytes for the tables of one tile on a processor
SHARE = 32  # of an accelerator's memory, as a divisor: the same there
ACCELERATOR_TILE = 6_144  # larger ones are hardly faster, and seven of them are held at a time
ACCELERATOR_TILES = 256  # in one part of the work
MULTIPLE = 16


class GramSums(NamedTuple):
    """What the tests need of the S Gram matrices H_s and of their contrast H = sum_s c_s H_s, or of
    C contrasts.
    """

    model_rows: Float[np.ndarray, "S n"]  # row sums of each H_s without the diagonal
    model_diagonal: Float[np.ndarray, "S n"]
    rows: Float[np.ndarray, "*C n"]  # row sums of H without the diagonal
    squares: Any  # the sum of H_ij^2 over i != j; of C contrasts, all their inner products (C, C)
    diagonal: Float[np.ndarray, "*C n"]  # H_ii
    products: Float[np.ndarray, "*C n B"]  # H W without the diagonal of H, for weights W (n, B)
    sensitivity: Sensitivity | None = None  # of the row sums, where asked for and data are discrete
    matrix: Float[np.ndarray, "*C n n"] | None = None  # H with a diagonal of zeros, where asked for
    # of each observation, where not all pairs are taken
    partners: Int[np.ndarray, " n"] | None = None


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
        Take at least so many pairs of observations instead of all; ``seed`` chooses them. Row sums
        and squares are then multiplied to stand for all pairs. It does not go with ``weights`` and
        ``whole``.
    engine : Engine, optional
        Where the tiles are computed; default: this process. The digits do not depend on it.
    """
    n, contrasts = len(x), np.atleast_2d(np.asarray(contrast, dtype=np.float64))
    weights = np.zeros((n, 0)) if weights is None else np.asarray(weights, dtype=np.float64)
    sensitive, engine = sensitive and operator.by_moves, engine or Local()
    on_processors = engine.backend == "cpu"
    by_words = (
        on_processors
        and isinstance(kernel, BagOfWords)
        and operator.by_moves
        and operator.witness == "shared"  # type: ignore[attr-defined]
    )
    place: Any = slice(None)
    scores, slopes = list(scores), None
    if pairs is not None or by_words:
        order = (
            bags.calm_first(x) if pairs is None else np.random.default_rng([seed, n]).permutation(n)
        )
        x, scores, weights, place = (
            x[order],
            [score[order] for score in scores],
            weights[order],
            np.argsort(order),
        )
    if by_words:
        every, tokens = bags.prepare(operator, x, np.stack(scores))  # type: ignore[arg-type]
        tiling = tiling_of(n, tile or bags.tile_size(every), pairs)
        table = bags.kernel_table(kernel, every)  # type: ignore[arg-type]
        problem: Any = bags.WordProblem(every, table, contrasts, weights, tiling, sensitive, whole)
        total = sum_tiles(engine, bags.ready_by_words, problem)
        if sensitive:
            slopes = bags.sensitivity(operator, x, np.stack(scores), total.slopes, tokens)  # type: ignore[arg-type]
    else:
        memory = None if on_processors else engine.memory
        usual, fits = operator.tile(
            kernel, x.shape[1], len(scores), (BUDGET if memory is None else memory // SHARE) // 8
        )
        largest = tile or max(8, int(min(usual if memory is None else ACCELERATOR_TILE, fits)))
        tiling = tiling_of(n, largest, pairs, None if on_processors or whole else ACCELERATOR_TILES)
        problem = tiles.Problem(operator, kernel, contrasts, x, scores, weights, tiling, whole)
        total = sum_tiles(engine, tiles.ready, problem, 1)
        if sensitive:
            slopes = tiles.sensitivity(operator, kernel, x, np.stack(scores))  # type: ignore[arg-type]
    finite = np.isfinite(total.rows).all(0) & np.isfinite(total.diagonal).all(0)
    if not finite.all():
        raise ValueError(
            f"kernel: the Stein kernel of {kernel} is not finite at observation "
            f"{int(np.argmin(finite))}. The kernel must be smooth everywhere, also where both "
            "observations are equal; and the scores must not overflow."
        )
    # so that sums over some pairs estimate those over all
    factor = 1.0 if tiling.reach is None else tiling.factor
    part = factor if by_words else 1.0
    if whole:
        upper = np.triu(total.matrix)
        matrix = (upper + np.swapaxes(upper, 1, 2))[:, place][:, :, place]
    sums = GramSums(
        model_rows=factor * total.rows[:, place],
        model_diagonal=total.diagonal[:, place],
        rows=factor * (contrasts @ total.rows)[:, place],
        squares=factor * total.squares,
        diagonal=(contrasts @ total.diagonal)[:, place],
        products=total.products[:, place],
        sensitivity=slopes
        and Sensitivity(part * slopes.scores[:, place], part * slopes.positions[:, place]),
        matrix=matrix if whole else None,
        partners=None if tiling.reach is None else tiling.partners[place],
    )
    if np.ndim(contrast) == 2:
        return sums
    return sums._replace(  # of one contrast, without the axis of contrasts
        rows=sums.rows[0],
        squares=float(sums.squares[0, 0]),
        diagonal=sums.diagonal[0],
        products=sums.products[0],
        matrix=None if sums.matrix is None else sums.matrix[0],
    )


def gram_matrix(operator: SteinOperator, kernel: Kernel, x, score) -> Float[np.ndarray, "n n"]:
    """H of one model, for n small enough to hold it."""
    sums = gram_sums(operator, kernel, x, (score,), np.ones((1, 1)), whole=True)
    assert sums.matrix is not None
    return sums.matrix[0] + np.diag(sums.diagonal[0])


def matrix_sums(
    matrices: Float[np.ndarray, "S n n"], contrasts: Float[np.ndarray, "C S"]
) -> GramSums:
    """What ``gram_sums`` gives, without products, from all models' matrices where they
    are known.
    """
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


def sum_tiles(
    engine: Engine, setup: Callable[[Any], Callable], problem: Any, at_once: int | None = None
) -> TileSums:
    """All tiles together, in their order whoever computed them, so that the digits are always the
    same.
    """
    tiling, diagonals, matrices = problem.tiling, [], []
    total: Any = None
    slopes: dict[int, tuple] = {}
    with track("kernel", tiling.tiles) as advance:
        for part, found in zip(
            tiling.parts(), engine.map(setup, problem, tiling.parts(), at_once), strict=True
        ):
            sums = found.rows, found.squares, found.products
            total = sums if total is None else plus(total, sums)
            diagonals.append(found.diagonal)
            matrices.append(found.matrix)
            for j, more in found.slopes.items():
                slopes[j] = plus(slopes[j], more) if j in slopes else more
            advance(len(part))
    (rows, squares, products), n = total, tiling.n
    return TileSums(
        rows=rows[:, :n],
        squares=squares,
        products=products[:, :n],
        diagonal=np.concatenate(diagonals, 1)[:, :n],
        matrix=np.concatenate(matrices, 1)[:, :n, :n],
        slopes=slopes
        and bags.Slopes(
            *map(np.hstack, zip(*map(slopes.__getitem__, sorted(slopes)), strict=True))
        ),
    )


class Tiling(NamedTuple):
    """Blocks of observations; each meets itself and blocks after it: all of them, or the next few,
    the first after the last.

    In a random order of the observations the second is an incomplete U-statistic whose pairs are
    all different.
    """

    n: int
    rows: int  # of a block; the last may have fewer
    reach: int | None = None  # how many blocks each meets after itself; None for all
    together: int | None = None  # how many tiles are one part of the work; None for a row of them

    @property
    def blocks(self) -> int:
        return -(-self.n // self.rows)

    @property
    def tiles(self) -> int:
        return (
            self.blocks * (self.blocks + 1) // 2
            if self.reach is None
            else self.blocks * (self.reach + 1)
        )

    def parts(self) -> Iterator[Tiles]:
        """The tiles in each part of the work: a row of them, the one on the diagonal first; or so
        many ``together``.
        """
        blocks, waiting = self.blocks, []
        for i in range(blocks):
            width = blocks - i if self.reach is None else self.reach + 1
            waiting += [(i, (i + k) % blocks) for k in range(width)]
            while waiting and (i == blocks - 1 or len(waiting) >= (self.together or 1)):
                yield waiting[: self.together]
                waiting = waiting[self.together :] if self.together else []

    def edges(self, i: int) -> tuple[int, int]:
        return i * self.rows, min((i + 1) * self.rows, self.n)

    @property
    def partners(self) -> Int[np.ndarray, " n"]:
        """With how many others each observation is paired."""
        if self.reach is None:
            return np.full(self.n, self.n - 1)
        sizes = np.diff([first for first, _ in map(self.edges, range(self.blocks))], append=self.n)
        met = (
            sizes
            - 1
            + sum(np.roll(sizes, k) + np.roll(sizes, -k) for k in range(1, self.reach + 1))
        )
        return np.repeat(met, sizes)

    @property
    def factor(self) -> float:
        """By which sums over the pairs are multiplied to stand for all pairs."""
        return 1.0 if self.reach is None else self.n * (self.n - 1) / self.partners.sum()


def tiling_of(
    n: int, largest: int, pairs: int | None = None, together: int | None = None
) -> Tiling:
    """Tiles of at most ``largest`` rows, in a multiple that lets nearby n share a compilation; at
    least so many pairs.

    About ``together`` tiles are one part of the work, or a row of them.
    """
    blocks = -(-n // largest)
    found = Tiling(n, min(room(-(-n // blocks), MULTIPLE), largest))
    if pairs is not None and pairs < n * (n - 1) // 2:
        partners = 2 * pairs / n
        reach = max(0, int(np.ceil(((partners + 1) / largest - 1) / 2)))
        blocks = max(1, int(n // np.ceil((partners + 1) / (2 * reach + 1))))
        some = Tiling(n, -(-n // blocks), reach)
        if 2 * reach + 1 <= some.blocks:  # else some pairs would be taken twice
            found = some
    return (
        found
        if together is None
        else found._replace(together=-(-found.tiles // -(-found.tiles // together)))
    )
