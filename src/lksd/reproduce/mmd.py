"""The relative MMD on prefixes: every kernel value is computed once for all sample sizes."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._float64 import float64
from ..inference.mmd import SampleMeans, kernel_tile
from ..kernels import Kernel, Radial
from ..kernels.radial import whiten

TILE = 1_024


class Prefixes(NamedTuple):
    """Sums of the rows of a Gram matrix over its first columns, for each of several numbers of columns."""

    sums: np.ndarray  # (widths, rows)
    widths: tuple[int, ...]

    def at(self, width: int, rows: int) -> np.ndarray:
        return self.sums[self.widths.index(width), :rows]


class Sample(NamedTuple):
    """All that the tests need of one model's sample: against itself, and against the data from both sides."""

    own: Prefixes
    at_data: Prefixes
    at_sample: Prefixes

    def means(self, n: int, count: int, largest_value: float) -> SampleMeans:
        """The means for the first n data points and the first ``count`` of the model's."""
        own = (self.own.at(count, count) - largest_value) / (count - 1)  # without the diagonal, where k = k(x, x)
        return SampleMeans(own, self.at_data.at(count, n) / count, self.at_sample.at(n, count) / n)


class Means(NamedTuple):
    """All that ``relative_mmd`` computes of its three samples."""

    p: SampleMeans
    q: SampleMeans
    data: float


def means_of(p: Sample, q: Sample, own_data: Prefixes, n: int, count: int, kernel: Kernel) -> Means:
    """Those of the first n data points and the first ``count`` of each model's."""
    top = peak(kernel)
    return Means(p.means(n, count, top), q.means(n, count, top), float(np.mean((own_data.at(n, n) - top) / (n - 1))))


def sample_sums(kernel: Kernel, x: np.ndarray, y: np.ndarray, sizes: tuple[int, ...], counts: tuple[int, ...]) -> Sample:
    """The sums of a sample y of the model, for some sizes of the data x and of y."""
    kernel, (x, y) = plain(kernel, x, y)
    return Sample(own_sums(kernel, y, counts), prefix_sums(kernel, x, y, counts), prefix_sums(kernel, y, x, sizes))


def data_sums(kernel: Kernel, x: np.ndarray, sizes: tuple[int, ...]) -> Prefixes:
    kernel, (x,) = plain(kernel, x)
    return own_sums(kernel, x, sizes)


class Block(NamedTuple):
    """Some columns, all in the same prefixes: from ``segment`` on."""

    start: int
    end: int
    segment: int
    width: int  # of a tile's program, in which few enough are compiled


def blocks(widths: tuple[int, ...]) -> list[Block]:
    """The columns up to the last width in tiles that end where a prefix ends."""
    segments = enumerate(zip((0, *widths), widths, strict=False))
    return [
        Block(j, min(j + TILE, end), number, min(TILE, end - start))
        for number, (start, end) in segments
        for j in range(start, end, TILE)
    ]


@float64
def own_sums(kernel: Kernel, y: np.ndarray, widths: tuple[int, ...]) -> Prefixes:
    """Each pair is visited once."""
    sums, found = np.zeros((len(widths), len(y))), blocks(widths)
    for number, left in enumerate(found):
        for right in found[number:]:
            tile = kernel_tile(kernel, y[left.start : left.end], y[right.start : right.end], (left.width, right.width))
            sums[right.segment :, left.start : left.end] += tile.sum(1)
            if right.start > left.start:
                sums[left.segment :, right.start : right.end] += tile.sum(0)
    return Prefixes(sums, tuple(widths))


@float64
def prefix_sums(kernel: Kernel, rows: np.ndarray, columns: np.ndarray, widths: tuple[int, ...]) -> Prefixes:
    """Sums over the first columns at each row."""
    sums, height = np.zeros((len(widths), len(rows))), min(TILE, len(rows))
    for right in blocks(widths):
        for i in range(0, len(rows), TILE):
            tile = kernel_tile(kernel, rows[i : i + TILE], columns[right.start : right.end], (height, right.width))
            sums[right.segment :, i : i + TILE] += tile.sum(1)
    return Prefixes(sums, tuple(widths))


@float64
def plain(kernel: Kernel, *samples: np.ndarray) -> tuple[Kernel, list[np.ndarray]]:
    """The same kernel values with a full preconditioner taken into the data, once instead of in every tile."""
    if not isinstance(kernel, Radial) or np.ndim(kernel.preconditioner) < 2:
        return kernel, list(samples)
    whitened = [np.asarray(whiten(jnp.asarray(kernel.preconditioner), jnp.asarray(one))) for one in samples]
    return eqx.tree_at(lambda one: one.preconditioner, kernel, np.ones(())), whitened


def peak(kernel: Kernel) -> float:
    """k(x, x), which is 1 for the paper's kernels."""
    radial = kernel if isinstance(kernel, Radial) else kernel.base  # type: ignore[attr-defined]
    return float(radial.profile(np.zeros(())).value)
