"""Kernels made from kernels, and several kernels to be tested together."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx

from .._jax import float64_values
from .base import Domain, Kernel, as_kernel
from .radial import IMQ, PerCoordinate, check_sample, median_preconditioner

SCALES = {"half the": 0.25, "": 1.0, "twice the": 4.0}  # factors of the squared median distance


class Weighted(Kernel):
    """k(x, y) w(x) w(y): tames heavy scores (polynomial weight) or a bounded domain (bump weight)."""

    base: Kernel = eqx.field(converter=as_kernel)
    weight: Callable

    def __check_init__(self):
        if not callable(self.weight):
            raise TypeError(f"weight: expected a function w(x), such as lksd.kernels.BallBump(radius=1.0); got {self.weight!r}.")

    @property
    def domain(self) -> Domain:
        return self.base.domain

    @float64_values
    def __call__(self, x, y):
        return self.base(x, y) * self.weight(x) * self.weight(y)

    def __str__(self) -> str:
        return f"Weighted({self.base}, {self.weight})"


class Pair(Kernel):
    """Two kernels joined."""

    a: Kernel = eqx.field(converter=as_kernel)
    b: Kernel = eqx.field(converter=as_kernel)

    def __check_init__(self):
        if {self.a.domain, self.b.domain} == {"real", "discrete"}:
            raise ValueError(
                f"{type(self).__name__}: expected two kernels on the same space; got {self.a} for real "
                f"and {self.b} for discrete data. Use two of a kind."
            )

    @property
    def domain(self) -> Domain:
        return self.a.domain if self.b.domain == "any" else self.b.domain

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.a}, {self.b})"


class Sum(Pair):
    """a(x, y) + b(x, y)."""

    @float64_values
    def __call__(self, x, y):
        return self.a(x, y) + self.b(x, y)


class Product(Pair):
    """a(x, y) b(x, y)."""

    @float64_values
    def __call__(self, x, y):
        return self.a(x, y) * self.b(x, y)


def family(x) -> list[Kernel]:
    """Kernels that see different things, for ``kernel=`` of ``compare`` and ``rank``, which correct for their number.

    IMQ at half the median distance, at the median and at twice the median; one kernel for each coordinate; and IMQ with the
    covariance of ``x``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.family(x))
    >>> len(result.tests), len(result.rejected)
    (5, 5)
    """
    squared, source = median_preconditioner(check_sample(x))
    scales = [IMQ(factor * squared, source=f"{name} {source}".strip()) for name, factor in SCALES.items()]
    return [*scales, PerCoordinate.median(x), IMQ.covariance(x)]
