"""A model whose density is an integral over one number, and its Fisher loss by quadrature."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import lksd


class ScaleMixture(lksd.models.LatentVariableModel):
    """x given z is N(0, e^{2z} I), and z is N(0, spread^2)."""

    spread: float = 0.5
    dim: int = 2

    def log_prior(self, z):
        return -(z**2) / (2 * self.spread**2)

    def log_likelihood(self, x, z):
        return -self.dim * z - jnp.sum(x**2) * jnp.exp(-2 * z) / 2

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = self.spread * jax.random.normal(key_z)
        return z, jnp.exp(z) * jax.random.normal(key_x, (self.dim,))


def log_density(model: ScaleMixture, x: jax.Array) -> jax.Array:
    """By the trapezoidal rule, up to a constant."""
    nodes = model.spread * jnp.linspace(-8.0, 8.0, 2_001)
    return jax.nn.logsumexp(
        jax.vmap(lambda z: model.log_likelihood(x, z) + model.log_prior(z))(nodes)
    )


def log_densities(model: ScaleMixture, x: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        points = jnp.asarray(x, jnp.float64)
        return np.asarray(jax.lax.map(lambda one: log_density(model, one), points, batch_size=64))


def by_differentiation(density: Callable, x: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """s'M s + 2 tr(M H) of a log density."""

    def one(point):
        slope = jax.grad(density)(point)
        return jnp.sum(metric * slope**2) + 2 * jnp.sum(
            metric * jnp.diag(jax.hessian(density)(point))
        )

    with jax.enable_x64(True):
        points = jnp.asarray(x, jnp.float64)
        return np.asarray(jax.lax.map(one, points, batch_size=64))


def fisher_losses(model: ScaleMixture, x: np.ndarray, metric: np.ndarray) -> np.ndarray:
    return by_differentiation(lambda y: log_density(model, y), x, metric)
