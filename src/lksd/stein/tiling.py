"""Which pairs of observations are compared, and in which tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from .._jax import room
from ..kernels import Kernel
from .base import SteinOperator

BUDGET = 2**26  # bytes for the tables of one tile on a processor
SHARE = 32  # of an accelerator's memory, as a divisor: the same there
ACCELERATOR_TILE = 6_144  # larger ones are hardly faster, and seven of them are held at a time
ACCELERATOR_TILES = 256  # in one part of the work
ACCELERATOR_PAIRS = 2**14  # matched rows at a time
MULTIPLE = 16
Tiles = list[tuple[int, int]]  # the row and the column of each


class Tiling(NamedTuple):
    """Blocks of observations; each meets itself and blocks after it: all of them, or the next few, the first after the last.

    In a random order of the observations the second is an incomplete U-statistic whose pairs are all different.
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
        return self.blocks * (self.blocks + 1) // 2 if self.reach is None else self.blocks * (self.reach + 1)

    def parts(self) -> Iterator[Tiles]:
        """The tiles in each part of the work: a row of them, the one on the diagonal first; or so many ``together``."""
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
        met = sizes - 1 + sum(np.roll(sizes, k) + np.roll(sizes, -k) for k in range(1, self.reach + 1))
        return np.repeat(met, sizes)

    @property
    def factor(self) -> float:
        """By which sums over the pairs are multiplied to stand for all pairs."""
        return 1.0 if self.reach is None else self.n * (self.n - 1) / self.partners.sum()


class TileSums(NamedTuple):
    """What some tiles add: each of those off the diagonal stands for its transpose too."""

    rows: Any  # (S, n): row sums without the diagonal, of the models
    squares: Any  # (C, C), of the contrasts
    products: Any  # (C, n, B), of the contrasts, without the diagonal
    diagonal: Any  # (S, m), of the models, at the observations whose tile on the diagonal is among them
    matrix: Any  # (C, m, n), of the contrasts, for a whole row of tiles; or without columns where it is not wanted
    slopes: Any  # by the number of the block, where asked for


def plus(total: tuple | None, more: tuple) -> tuple:
    """Both, part by part; the first may still be missing."""
    return more if total is None else tuple(a + b for a, b in zip(total, more, strict=True))


def tiling_of(n: int, largest: int, pairs: int | None = None, together: int | None = None) -> Tiling:
    """Tiles of at most ``largest`` rows, in a multiple that lets nearby n share a compilation; at least so many pairs.

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
    return found if together is None else found._replace(together=-(-found.tiles // -(-found.tiles // together)))


def largest_tile(operator: SteinOperator, kernel: Kernel, dim: int, models: int, memory: int | None) -> int:
    """Rows of a tile within a budget: on a processor its cache, on an accelerator with so much memory a share of that."""
    usual, fits = operator.tile(kernel, dim, models, (BUDGET if memory is None else memory // SHARE) // 8)
    return max(8, int(min(usual if memory is None else ACCELERATOR_TILE, fits)))
