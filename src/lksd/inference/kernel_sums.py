"""Sums of kernel values between samples, for several prefixes of them: every pair is visited once,
for all sizes and, between documents, for all kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._documents import word_counts
from .._jax import float64, program
from ..kernels import IMQ, BagOfWords, Gaussian, Kernel, Radial, kernel_block, named_errors
from ..kernels.discrete import distances_from_products, values_at
from ..kernels.radial import whiten

TILE = 1_024
POINTWISE_TILE = 128
FREQUENT = 1 / 24  # share of documents with a word from which on it is taken by dense products
TABLE = 2**22  # squared distances of documents up to which kernel values are looked up
EXACT = 2**23  # and up to which single precision has them exactly


class Prefixes(NamedTuple):
    """Sums of the rows of a Gram matrix over its first columns, for each of several numbers of
    columns.
    """

    sums: np.ndarray  # (widths, rows)
    widths: tuple[int, ...]

    def at(self, width: int, rows: int) -> np.ndarray:
        return self.sums[self.widths.index(width), :rows]


@dataclass(frozen=True)
class Bags:
    """Word counts of documents as sparse (n, words) arrays, and their squared lengths."""

    frequent: Any  # of the words that many documents have
    rare: Any  # of all others
    squares: np.ndarray

    @classmethod
    def of(cls, samples: tuple[np.ndarray, ...], words: int) -> list[Bags]:
        """Those of several samples of documents, which are padded with -1."""
        counts = [word_counts(tokens, words) for tokens in samples]
        shares = sum(np.bincount(one.indices, minlength=words) for one in counts) / sum(
            map(len, samples)
        )
        many = np.flatnonzero(shares > FREQUENT)
        squares = [np.asarray(one.power(2).sum(1)) for one in counts]
        dtype = np.float32 if 2 * max(one.max() for one in squares) < EXACT else np.float64
        return [
            cls(one[:, many].astype(dtype), without(one, many).astype(dtype), square.astype(dtype))
            for one, square in zip(counts, squares, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.squares)

    def __getitem__(self, rows: slice) -> Bags:
        return Bags(self.frequent[rows], self.rare[rows], self.squares[rows])

    def distances(self, other: Bags) -> np.ndarray:
        """Squared distances to other documents, at the cost of the rare words that they have in
        common.
        """
        common = (self.rare @ other.rare.T).toarray()
        common += self.frequent.toarray() @ other.frequent.toarray().T
        return distances_from_products(self.squares, other.squares, common)


def without(counts, words: np.ndarray):
    """The same without some words."""
    kept = np.ones(counts.shape[1])
    kept[words] = 0.0
    others = counts.multiply(kept[None]).tocsr()
    others.eliminate_zeros()
    return others


def bag_distances(x: np.ndarray, y: np.ndarray, words: int) -> np.ndarray:
    """Squared distances of word counts."""
    of_x, of_y = Bags.of((x, y), words)
    return of_x.distances(of_y)


@float64
def own_sums(kernels: tuple[Kernel, ...], y: np.ndarray, widths: tuple[int, ...]) -> list[Prefixes]:
    """Of k(y_i, y_j) over j != i, for each kernel."""
    made = []
    for group in groups(kernels, y):
        (points,) = group.samples
        sums, found = (
            np.zeros((len(group.kernels), len(widths), len(y))),
            blocks(widths, group.tile),
        )
        for number, left in enumerate(found):
            for right in found[number:]:
                rows, columns = tile_sums(
                    group.kernels, points, left, points, right, own=left is right
                )
                sums[:, right.segment :, left.start : left.end] += rows[:, None]
                if left is not right:
                    sums[:, left.segment :, right.start : right.end] += columns[:, None]
        made += [Prefixes(one, tuple(widths)) for one in sums]
    return made


@float64
def cross_sums(
    kernels: tuple[Kernel, ...],
    x: np.ndarray,
    y: np.ndarray,
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
) -> list[tuple[Prefixes, Prefixes]]:
    """At each x over the first ``counts`` of y, and at each y over the first ``sizes`` of x, for
    each kernel.
    """
    made = []
    for group in groups(kernels, x, y):
        at_x, at_y = group.samples
        over_y, over_x = (
            np.zeros((len(group.kernels), len(widths), n))
            for widths, n in ((counts, len(x)), (sizes, len(y)))
        )
        for left in blocks(sizes, group.tile):
            for right in blocks(counts, group.tile):
                rows, columns = tile_sums(group.kernels, at_x, left, at_y, right)
                over_y[:, right.segment :, left.start : left.end] += rows[:, None]
                over_x[:, left.segment :, right.start : right.end] += columns[:, None]
        made += [
            (Prefixes(rows, tuple(counts)), Prefixes(columns, tuple(sizes)))
            for rows, columns in zip(over_y, over_x, strict=True)
        ]
    return made


class Group(NamedTuple):
    """Kernels that share a visit of the pairs, with the samples in the form that they take."""

    kernels: tuple[Any, ...]
    samples: list[Any]
    tile: int


def groups(kernels: tuple[Kernel, ...], *samples: np.ndarray) -> Iterator[Group]:
    """All kernels of word counts together where there are no others, in their order; or each kernel
    alone.
    """
    of_bags = [kernel for kernel in kernels if isinstance(kernel, BagOfWords)]
    if len(of_bags) == len(kernels) and len({kernel.n_values for kernel in of_bags}) == 1:
        bags = Bags.of(samples, of_bags[0].n_values)
        largest = 2 * max(int(one.squares.max()) for one in bags)
        yield Group(tuple(profile(kernel, largest) for kernel in of_bags), bags, TILE)
        return
    for kernel in kernels:
        if isinstance(kernel, BagOfWords):
            yield from groups((kernel,), *samples)
        else:
            plain, taken = without_preconditioner(kernel, *samples)
            yield Group((plain,), taken, TILE if kernel.domain == "real" else POINTWISE_TILE)


def profile(kernel: BagOfWords, largest: int) -> Callable[[np.ndarray], np.ndarray]:
    """k as a function of squared distances, which are whole numbers: looked up where there are few
    enough.
    """
    if largest < TABLE:
        size = 1 << (largest + 1).bit_length()  # few programs
        values = np.asarray(values_at(kernel, np.arange(float(size))))
        return lambda rho: values.take(rho.astype(np.intp))
    return lambda rho: np.array(values_at(kernel, rho))


def without_preconditioner(kernel: Kernel, *samples: np.ndarray) -> tuple[Kernel, list[np.ndarray]]:
    """The same kernel values with a full preconditioner taken into the data, once instead of in
    every tile.
    """
    if not (
        isinstance(kernel, Radial)
        and type(kernel) in (IMQ, Gaussian)
        and np.ndim(kernel.preconditioner) == 2
    ):
        return kernel, list(samples)
    centre = samples[0].mean(0)
    whitened = [
        np.asarray(whiten(jnp.asarray(kernel.preconditioner), jnp.asarray(one - centre)))
        for one in samples
    ]
    return eqx.tree_at(lambda one: one.preconditioner, kernel, np.ones(())), whitened


class Block(NamedTuple):
    """Some columns, all in the same prefixes: from ``segment`` on."""

    start: int
    end: int
    segment: int
    width: int  # of a tile's program, in which few enough are compiled

    @property
    def there(self) -> slice:
        return slice(self.start, self.end)


def blocks(widths: tuple[int, ...], tile: int) -> list[Block]:
    """The columns up to the last width in tiles that end where a prefix ends."""
    assert list(widths) == sorted(widths)
    segments = enumerate(zip((0, *widths), widths, strict=False))
    return [
        Block(j, min(j + tile, end), number, min(tile, end - start))
        for number, (start, end) in segments
        for j in range(start, end, tile)
    ]


def tile_sums(
    kernels: tuple[Any, ...], x: Any, left: Block, y: Any, right: Block, own: bool = False
):
    """Row and column sums of k(x_i, y_j) over a tile for each kernel, without i = j where the
    samples are one (``own``).
    """
    x, y = x[left.there], y[right.there]
    rows, columns = np.empty((len(kernels), len(x))), np.empty((len(kernels), len(y)))
    rho = x.distances(y) if isinstance(x, Bags) else None
    for number, kernel in enumerate(kernels):
        tile = kernel_tile(kernel, x, y, (left.width, right.width)) if rho is None else kernel(rho)
        if own:
            np.fill_diagonal(tile, 0.0)
        rows[number], columns[number] = tile.sum(1), tile.sum(0)
    return rows, columns


def kernel_tile(kernel: Kernel, x: np.ndarray, y: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """k(x_i, y_j), by a program for tiles of this ``shape``."""
    with named_errors(kernel, x.shape[1]):
        return np.array(_block(kernel, edge(x, shape[0]), edge(y, shape[1])))[: len(x), : len(y)]


def edge(array: np.ndarray, size: int) -> np.ndarray:
    """Rows repeated up to ``size``, so that all tiles have one shape."""
    return np.pad(array, ((0, size - len(array)), (0, 0)), mode="edge")


@program
def _block(kernel: Kernel, x, y):
    return kernel_block(kernel, jnp.asarray(x), jnp.asarray(y))
