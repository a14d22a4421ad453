"""A smooth step, for kernels on bounded domains and for truncated models."""

from __future__ import annotations

import jax.numpy as jnp


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
