"""Kernels made from kernels."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from .._float64 import float64_values
from .bandwidth import coordinate_medians, median_preconditioner
from .base import Domain, Kernel, as_kernel
from .radial import IMQ, Radial


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


class PerCoordinate(Kernel):
    """One kernel for each coordinate: k_d(x, y) = base(x, y) own(x_d, y_d).

    In high dimension a radial kernel is nearly constant and sees little but linear features; a
    factor that lives on the coordinate itself keeps the test sensitive to its shape.

    Parameters
    ----------
    base : Radial
        The kernel on whole observations.
    own : Radial
        The one-dimensional factor; its preconditioner is one squared scale for all coordinates or
        a (D,) array of them.
    """

    base: Radial
    own: Radial

    @property
    def domain(self) -> Domain:
        return "real"

    def __check_init__(self):
        if not isinstance(self.base, Radial) or not isinstance(self.own, Radial):
            raise TypeError(f"PerCoordinate: expected two radial kernels; got {self.base} and {self.own}. Use IMQ or Gaussian.")
        if self.own.preconditioner.ndim > 1:
            raise ValueError(
                f"PerCoordinate: expected own scales as a scalar or (D,); got shape {self.own.preconditioner.shape}. "
                "They are one-dimensional kernels."
            )

    @classmethod
    def median(cls, x, base: type[Radial] = IMQ, own: type[Radial] = IMQ) -> PerCoordinate:
        """Each coordinate's own median distance for ``own``, half the median distance of whole observations for ``base``.

        At half the median the factor on whole observations still tells near from far in high dimension; docs/kernels.md
        has the study behind it.
        """
        scales, own_source = coordinate_medians(x)
        squared, source = median_preconditioner(x)
        return cls(base(squared / 4, source=f"half the {source}"), own(scales, source=own_source))

    @float64_values
    def __call__(self, x, y):
        r = (jnp.asarray(x) - jnp.asarray(y)) ** 2 / self.own.preconditioner
        return self.base(x, y) * self.own.profile(r).value

    def __str__(self) -> str:
        return f"PerCoordinate({self.base}, {self.own})"
