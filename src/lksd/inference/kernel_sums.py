"""Sums of kernel values between samples, for several prefixes of them: every pair is visited once, for all sizes and, between
documents, for all kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._float64 import float64
from ..kernels import BagOfWords, Kernel, Radial, kernel_block, named_errors
from ..kernels.radial import whiten

TILE = 1_024
POINTWISE_TILE = 128
TABLE = 2**22  # distances of documents up to which kernel values are looked up


class Prefixes(NamedTuple):
    """Sums of the rows of a Gram matrix over its first columns, for each of several numbers of columns."""

    sums: np.ndarray  # (widths, rows)
    widths: tuple[int, ...]

    def at(self, width: int, rows: int) -> np.ndarray:
        return self.sums[self.widths.index(width), :rows]


@dataclass(frozen=True)
class Bags:
    """Word counts of documents, and their squared lengths."""

    counts: Any  # a sparse (n, words) array
    squares: np.ndarray

    @classmethod
    def of(cls, tokens: np.ndarray, words: int) -> Bags:
        """Those of documents that are padded with -1."""
        from scipy import sparse

        rows, places = (index.astype(np.int32) for index in np.nonzero(tokens >= 0))
        counts = sparse.csr_array(
            (np.ones(len(rows), np.int64), (rows, tokens[rows, places].astype(np.int32))), shape=(len(tokens), words)
        )
        return cls(counts, counts.power(2).sum(1))

    def __len__(self) -> int:
        return len(self.squares)

    def __getitem__(self, rows: slice) -> Bags:
        return Bags(self.counts[rows], self.squares[rows])


def bag_distances(x: np.ndarray, y: np.ndarray, words: int) -> np.ndarray:
    """Squared distances of word counts."""
    of_x, of_y = Bags.of(x, words), Bags.of(y, words)
    return of_x.squares[:, None] + of_y.squares - 2 * (of_x.counts @ of_y.counts.T).toarray()


@float64
def own_sums(kernels: tuple[Kernel, ...], y: np.ndarray, widths: tuple[int, ...]) -> list[Prefixes]:
    """Of k(y_i, y_j) over j != i, for each kernel."""
    made = []
    for group, (points,) in groups(kernels, y):
        sums, found = np.zeros((len(group), len(widths), len(y))), blocks(widths, tile_size(kernels[0]))
        for number, left in enumerate(found):
            for right in found[number:]:
                rows, columns = tile_sums(group, points, left, points, right, own=left is right)
                sums[:, right.segment :, left.start : left.end] += rows[:, None]
                if left is not right:
                    sums[:, left.segment :, right.start : right.end] += columns[:, None]
        made += [Prefixes(one, tuple(widths)) for one in sums]
    return made


@float64
def cross_sums(
    kernels: tuple[Kernel, ...], x: np.ndarray, y: np.ndarray, sizes: tuple[int, ...], counts: tuple[int, ...]
) -> list[tuple[Prefixes, Prefixes]]:
    """At each x over the first ``counts`` of y, and at each y over the first ``sizes`` of x, for each kernel."""
    made = []
    for group, (at_x, at_y) in groups(kernels, x, y):
        over_y, over_x = np.zeros((len(group), len(counts), len(x))), np.zeros((len(group), len(sizes), len(y)))
        for left in blocks(sizes, tile_size(kernels[0])):
            for right in blocks(counts, tile_size(kernels[0])):
                rows, columns = tile_sums(group, at_x, left, at_y, right)
                over_y[:, right.segment :, left.start : left.end] += rows[:, None]
                over_x[:, left.segment :, right.start : right.end] += columns[:, None]
        made += [
            (Prefixes(rows, tuple(counts)), Prefixes(columns, tuple(sizes))) for rows, columns in zip(over_y, over_x, strict=True)
        ]
    return made


def groups(kernels: tuple[Kernel, ...], *samples: np.ndarray) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """Kernels that can share a visit of the pairs, with the samples in the form that they take."""
    of_bags = [kernel for kernel in kernels if isinstance(kernel, BagOfWords)]
    if of_bags:
        words = of_bags[0].n_values
        assert len(of_bags) == len(kernels)
        assert all(kernel.n_values == words for kernel in of_bags)
        bags = [Bags.of(one, words) for one in samples]
        largest = 2 * max(int(one.squares.max()) for one in bags)
        yield tuple(profile(kernel, largest) for kernel in of_bags), bags
    else:
        for kernel in kernels:
            plain, taken = without_preconditioner(kernel, *samples)
            yield (plain,), taken


def profile(kernel: BagOfWords, largest: int) -> Callable[[np.ndarray], np.ndarray]:
    """k as a function of squared distances, which are whole numbers: looked up where there are few enough."""
    if largest < TABLE:
        return np.asarray(_of_distances(kernel, np.arange(largest + 1.0))).take

    def evaluated(rho: np.ndarray) -> np.ndarray:
        size = 1 << (rho.size - 1).bit_length()  # few programs
        return np.asarray(_of_distances(kernel, np.pad(rho.ravel(), (0, size - rho.size))))[: rho.size].reshape(rho.shape)

    return evaluated


def without_preconditioner(kernel: Kernel, *samples: np.ndarray) -> tuple[Kernel, list[np.ndarray]]:
    """The same kernel values with a full preconditioner taken into the data, once instead of in every tile."""
    if not isinstance(kernel, Radial) or np.ndim(kernel.preconditioner) < 2:
        return kernel, list(samples)
    whitened = [np.asarray(whiten(jnp.asarray(kernel.preconditioner), jnp.asarray(one))) for one in samples]
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
    segments = enumerate(zip((0, *widths), widths, strict=False))
    return [
        Block(j, min(j + tile, end), number, min(tile, end - start))
        for number, (start, end) in segments
        for j in range(start, end, tile)
    ]


def tile_size(kernel: Kernel) -> int:
    return TILE if kernel.domain == "real" or isinstance(kernel, BagOfWords) else POINTWISE_TILE


def tile_sums(kernels: tuple[Any, ...], x: Any, left: Block, y: Any, right: Block, own: bool = False):
    """Row and column sums of k(x_i, y_j) over a tile for each kernel, without i = j where the samples are one (``own``)."""
    if isinstance(x, Bags):
        return bag_sums(kernels, x[left.there], y[right.there], own)
    (kernel,) = kernels
    tile = kernel_tile(kernel, x[left.there], y[right.there], (left.width, right.width))
    if own:
        np.fill_diagonal(tile, 0.0)
    return tile.sum(1)[None], tile.sum(0)[None]


def bag_sums(profiles: tuple[Any, ...], x: Bags, y: Bags, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """As if no two documents had a word in common, which squared lengths alone decide; then what those with one add to that."""
    common = x.counts @ y.counts.T
    row, column = np.repeat(np.arange(len(x)), np.diff(common.indptr)), common.indices
    far = x.squares[row] + y.squares[column]
    near = far - 2 * common.data
    (of_x, place_x, times_x), (of_y, place_y, times_y) = (
        np.unique(one.squares, return_inverse=True, return_counts=True) for one in (x, y)
    )
    rows, columns = np.empty((len(profiles), len(x))), np.empty((len(profiles), len(y)))
    for number, value in enumerate(profiles):
        apart, gain, itself = value(of_x[:, None] + of_y), value(near) - value(far), 0.0
        if own:
            gain, itself = gain * (row != column), value(2 * x.squares)
        rows[number] = (apart @ times_y)[place_x] - itself + np.bincount(row, gain, len(x))
        columns[number] = (times_x @ apart)[place_y] - itself + np.bincount(column, gain, len(y))
    return rows, columns


def kernel_tile(kernel: Kernel, x: np.ndarray, y: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """k(x_i, y_j), by a program for tiles of this ``shape``."""
    with named_errors(kernel, x.shape[1]):
        return np.array(_block(kernel, edge(x, shape[0]), edge(y, shape[1])))[: len(x), : len(y)]


def edge(array: np.ndarray, size: int) -> np.ndarray:
    """Rows repeated up to ``size``, so that all tiles have one shape."""
    return np.pad(array, ((0, size - len(array)), (0, 0)), mode="edge")


@eqx.filter_jit
def _block(kernel: Kernel, x, y):
    return kernel_block(kernel, jnp.asarray(x), jnp.asarray(y))


@eqx.filter_jit
def _of_distances(kernel: BagOfWords, rho):
    return kernel.of_distance(jnp.asarray(rho), 0)
