"""The relative MMD on prefixes of the data and of the models' samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..inference.kernel_sums import Prefixes, cross_sums, own_sums
from ..inference.mmd import SampleMeans
from ..kernels import Kernel


class Sample(NamedTuple):
    """All that the tests need of one model's sample: against itself, and against the data from both sides."""

    own: Prefixes
    at_data: Prefixes
    at_sample: Prefixes

    def means(self, n: int, count: int) -> SampleMeans:
        """The means for the first n data points and the first ``count`` of the model's."""
        own = self.own.at(count, count) / (count - 1)
        return SampleMeans(own, self.at_data.at(count, n) / count, self.at_sample.at(n, count) / n)


class Means(NamedTuple):
    """All that ``relative_mmd`` computes of its three samples."""

    p: SampleMeans
    q: SampleMeans
    data: float


def means_of(p: Sample, q: Sample, own_data: Prefixes, n: int, count: int) -> Means:
    """Those of the first n data points and the first ``count`` of each model's."""
    return Means(p.means(n, count), q.means(n, count), float(np.mean(own_data.at(n, n) / (n - 1))))


def sample_sums(
    kernels: tuple[Kernel, ...], x: np.ndarray, y: np.ndarray, sizes: tuple[int, ...], counts: tuple[int, ...]
) -> list[Sample]:
    """The sums of a sample y of the model for each kernel, for some sizes of the data x and of y."""
    own, cross = own_sums(kernels, y, counts), cross_sums(kernels, x, y, sizes, counts)
    return [Sample(among, *between) for among, between in zip(own, cross, strict=True)]
