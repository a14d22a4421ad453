"""Weight functions w(x) for ``Weighted`` kernels (Appendix B.1 and B.3 of the paper)."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64, float64_values


class Polynomial(eqx.Module):
    """(1 + |x|^2)^-delta; delta >= 1/2 bounds the Stein kernel of scores that grow linearly."""

    delta: np.ndarray = eqx.field(default=0.5, converter=as_float64)

    def __check_init__(self):
        if self.delta.ndim or not 0 < self.delta < np.inf:
            raise ValueError(f"delta: expected one positive number; got {self.delta}. 0.5 suffices for linear scores.")

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
        if self.radius.ndim or self.flat_radius.ndim or not 0 <= self.flat_radius < self.radius < np.inf:
            raise ValueError(
                f"BallBump: expected 0 <= flat_radius < radius; got flat_radius {self.flat_radius} and radius {self.radius}. "
                "The bump falls from 1 to 0 between the two."
            )

    @float64_values
    def __call__(self, x):
        return jnp.exp(log_ball_bump(jnp.asarray(x), self.center, self.flat_radius, self.radius))

    def __str__(self) -> str:
        return f"BallBump(radius = {float(self.radius):g}, flat_radius = {float(self.flat_radius):g})"


class BoxBump(eqx.Module):
    """A product over coordinates: 0 outside (lower, upper), 1 farther than ``margin`` from both faces."""

    lower: np.ndarray = eqx.field(converter=as_float64)
    upper: np.ndarray = eqx.field(converter=as_float64)
    margin: np.ndarray = eqx.field(converter=as_float64)

    def __init__(self, lower, upper, margin=None):
        self.lower, self.upper = as_float64(lower), as_float64(upper)
        width = self.upper - self.lower
        self.margin = as_float64(width / 10 if margin is None else margin)
        if not (np.isfinite(width).all() and (width > 0).all() and (self.margin > 0).all() and (2 * self.margin <= width).all()):
            raise ValueError(
                f"BoxBump: expected lower < upper and 0 < margin <= half the width; got lower {self.lower}, upper {self.upper}, "
                f"margin {self.margin}. The bump falls from 1 to 0 within margin of each face."
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
