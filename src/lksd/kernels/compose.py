"""Kernels made from kernels and weight functions (Appendix B.1 and B.3 of the paper), and several
kernels to be tested together.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64, float64_values
from .base import Domain, Kernel, as_kernel
from .radial import IMQ, PerCoordinate, check_sample, median_preconditioner

SCALES = {"half the": 0.25, "": 1.0, "twice the": 4.0}  # factors of the squared median distance


class Weighted(Kernel):
    """k(x, y) w(x) w(y): tames heavy scores (polynomial weight) or a bounded domain
    (bump weight).
    """

    base: Kernel = eqx.field(converter=as_kernel)
    weight: Callable

    def __check_init__(self):
        if not callable(self.weight):
            raise TypeError(
                "weight: expected a function w(x), such as lksd.kernels.BallBump(radius=1.0); got "
                f"{self.weight!r}."
            )

    @property
    def domain(self) -> Domain:  # type: ignore[override]
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

    join: ClassVar[Callable]  # of the two values

    @float64_values
    def __call__(self, x, y):
        return self.join(self.a(x, y), self.b(x, y))

    def __check_init__(self):
        if {self.a.domain, self.b.domain} == {"real", "discrete"}:
            raise ValueError(
                f"{type(self).__name__}: expected two kernels on the same space; got {self.a} for "
                f"real and {self.b} for discrete data. Use two of a kind."
            )

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.a.domain if self.b.domain == "any" else self.b.domain

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.a}, {self.b})"


class Sum(Pair):
    """a(x, y) + b(x, y)."""

    join: ClassVar[Callable] = operator.add


class Product(Pair):
    """a(x, y) b(x, y)."""

    join: ClassVar[Callable] = operator.mul


def family(x) -> list[Kernel]:
    """Kernels that see different things, for ``kernel=`` of ``compare`` and ``rank``, which correct
    for their number.

    IMQ at half the median distance, at the median and at twice the median; one kernel for each
    coordinate; and IMQ with the covariance of ``x``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.family(x))
    >>> len(result.tests), len(result.rejected)
    (5, 5)
    """
    squared, source = median_preconditioner(check_sample(x))
    scales = [
        IMQ(factor * squared, source=f"{name} {source}".strip()) for name, factor in SCALES.items()
    ]
    return [*scales, PerCoordinate.median(x), IMQ.covariance(x)]


class Polynomial(eqx.Module):
    """(1 + |x|^2)^-delta; delta >= 1/2 bounds the Stein kernel of scores that grow linearly."""

    delta: np.ndarray = eqx.field(default=0.5, converter=as_float64)

    def __check_init__(self):
        if self.delta.ndim or not 0 < self.delta < np.inf:
            raise ValueError(
                f"delta: expected one positive number; got {self.delta}. 0.5 suffices for linear "
                "scores."
            )

    @float64_values
    def __call__(self, x):
        return (1 + jnp.sum(jnp.asarray(x) ** 2)) ** -self.delta

    def __str__(self) -> str:
        return f"Polynomial(delta = {float(self.delta):g})"


class BallBump(eqx.Module):
    """1 within ``flat_radius`` of the centre, 0 beyond ``radius``, smooth between."""

    radius: np.ndarray = eqx.field(converter=as_float64)
    flat_radius: np.ndarray = eqx.field(default=0.0, converter=as_float64)
    center: np.ndarray = eqx.field(default=0.0, converter=as_float64)

    def __check_init__(self):
        if (
            self.radius.ndim
            or self.flat_radius.ndim
            or not 0 <= self.flat_radius < self.radius < np.inf
        ):
            raise ValueError(
                f"BallBump: expected 0 <= flat_radius < radius; got flat_radius {self.flat_radius} "
                f"and radius {self.radius}. The bump falls from 1 to 0 between the two."
            )

    @float64_values
    def __call__(self, x):
        return jnp.exp(log_ball_bump(jnp.asarray(x), self.center, self.flat_radius, self.radius))

    def __str__(self) -> str:
        return (
            f"BallBump(radius = {float(self.radius):g}, flat_radius = {float(self.flat_radius):g})"
        )


class BoxBump(eqx.Module):
    """A product over coordinates: 0 outside (lower, upper), 1 farther than ``margin`` from both
    faces.
    """

    lower: np.ndarray = eqx.field(converter=as_float64)
    upper: np.ndarray = eqx.field(converter=as_float64)
    margin: np.ndarray = eqx.field(converter=as_float64)

    def __init__(self, lower, upper, margin=None):
        self.lower, self.upper = as_float64(lower), as_float64(upper)
        width = self.upper - self.lower
        self.margin = as_float64(width / 10 if margin is None else margin)
        if not (
            np.isfinite(width).all()
            and (width > 0).all()
            and (self.margin > 0).all()
            and (2 * self.margin <= width).all()
        ):
            raise ValueError(
                "BoxBump: expected lower < upper and 0 < margin <= half the width; got lower "
                f"{self.lower}, upper {self.upper}, margin {self.margin}. The bump falls from 1 to "
                "0 within margin of each face."
            )

    @float64_values
    def __call__(self, x):
        x = jnp.asarray(x)
        to_face = jnp.minimum(x - self.lower, self.upper - x)
        return jnp.exp(jnp.sum(log_smooth_step(1 - to_face / self.margin)))

    def __str__(self) -> str:
        return f"BoxBump(lower = {self.lower}, upper = {self.upper}, margin = {self.margin})"


def log_smooth_step(t):
    """The logarithm of an infinitely smooth function that is 1 for t <= 0 and 0 for t >= 1."""
    inside = (t > 0) & (t < 1)
    safe = jnp.where(inside, t, 0.5)
    # f(1 - t) / (f(t) + f(1 - t)) with f(t) = exp(-1/t), written as a logistic function.
    between = -jnp.logaddexp(0.0, 1 / (1 - safe) - 1 / safe)
    return jnp.where(inside, between, jnp.where(t <= 0, 0.0, -jnp.inf))


def log_ball_bump(x, center, flat_radius, radius):
    """0 within ``flat_radius`` of the centre, -inf beyond ``radius``, smooth between."""
    squared = jnp.sum((x - center) ** 2)
    outer = squared > flat_radius**2
    distance = jnp.sqrt(jnp.where(outer, squared, 1.0))
    return jnp.where(outer, log_smooth_step((distance - flat_radius) / (radius - flat_radius)), 0.0)
