"""Which pairs of observations are compared, and in which tiles."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from .._padding import room

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
        return sum(self.width(i) for i in range(self.blocks))

    def parts(self) -> Iterator[Tiles]:
        """The tiles in each part of the work."""
        rows = ([(i, (i + k) % self.blocks) for k in range(self.width(i))] for i in range(self.blocks))
        if self.together is None:
            yield from rows
            return
        every = chain.from_iterable(rows)
        while part := list(islice(every, self.together)):
            yield part

    def width(self, i: int) -> int:
        """How many tiles stand in row i, the one on the diagonal first."""
        return self.blocks - i if self.reach is None else self.reach + 1

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
    found = tiles_for(n, largest, pairs)
    return found if together is None else found._replace(together=-(-found.tiles // -(-found.tiles // together)))


def tiles_for(n: int, largest: int, pairs: int | None) -> Tiling:
    if pairs is not None and pairs < n * (n - 1) // 2:
        partners = 2 * pairs / n
        reach = max(0, int(np.ceil(((partners + 1) / largest - 1) / 2)))
        blocks = max(1, int(n // np.ceil((partners + 1) / (2 * reach + 1))))
        found = Tiling(n, -(-n // blocks), reach)
        if 2 * reach + 1 <= found.blocks:  # else some pairs would be taken twice
            return found
    blocks = -(-n // largest)
    return Tiling(n, min(room(-(-n // blocks), MULTIPLE), largest))
