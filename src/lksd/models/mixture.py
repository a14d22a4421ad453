"""Finite Gaussian mixtures; the latent is the component."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from .._jax import as_float64
from .base import LatentVariableModel, as_columns, check_columns, simulation


class FiniteMixture(LatentVariableModel):
    """P(z = k) = weights[k]; a subclass gives the densities of x in each component."""

    weights: eqx.AbstractVar[np.ndarray]

    @abstractmethod
    def log_densities(self, x):
        """log p(x | z = k) for every k."""

    def log_prior(self, z):
        return jnp.log(self.weights)[z]

    def log_likelihood(self, x, z):
        return self.log_densities(x)[z]

    def responsibilities(self, x):
        """P(z = k | x)."""
        return jax.nn.softmax(jnp.log(self.weights) + self.log_densities(x))

    def sample_posterior(self, key, x):
        return jax.random.categorical(key, jnp.log(self.weights) + self.log_densities(x))

    def log_marginal(self, x):
        return logsumexp(jnp.log(self.weights) + self.log_densities(x))


class GaussianMixture(FiniteMixture):
    """x | z = k ~ N(means[k], covariances[k]), P(z = k) = weights[k].

    Parameters
    ----------
    weights : (K,) array
    means : (K, D) array
    covariances : (K, D, D) array
    columns : sequence of str, optional
        The names of x's columns, by which those of a data frame are found.
    """

    weights: np.ndarray = eqx.field(converter=as_float64)
    means: np.ndarray = eqx.field(converter=as_float64)
    covariances: np.ndarray = eqx.field(converter=as_float64)
    columns: tuple[str, ...] | None = eqx.field(default=None, static=True, converter=as_columns, kw_only=True)  # type: ignore[misc]

    support: ClassVar[Any] = "real"

    def __check_init__(self):
        count, dim = self.means.shape if self.means.ndim == 2 else (0, 0)
        if self.weights.shape != (count,) or self.covariances.shape != (count, dim, dim) or not count:
            raise ValueError(
                "GaussianMixture: expected weights (K,), means (K, D) and covariances (K, D, D); "
                f"got {self.weights.shape}, {self.means.shape} and {self.covariances.shape}. Give full covariance matrices."
            )
        check_weights(self.weights)
        check_columns(self.columns, dim)
        for k, covariance in enumerate(self.covariances):
            smallest = np.linalg.eigvalsh(covariance)[0] if np.isfinite(covariance).all() else np.nan
            if not np.allclose(covariance, covariance.T) or not smallest > 0:
                raise ValueError(
                    f"covariances: expected symmetric positive definite matrices; number {k} is not "
                    f"(smallest eigenvalue {smallest:g}). Add a small multiple of the identity."
                )

    def log_densities(self, x):
        """log N(x; means[k], covariances[k]) for every k."""
        residuals = jnp.linalg.solve(self.covariances, (x - self.means)[..., None])[..., 0]
        _, log_determinants = jnp.linalg.slogdet(self.covariances)
        quadratic = jnp.sum((x - self.means) * residuals, -1)
        return -(quadratic + log_determinants + x.shape[-1] * jnp.log(2 * jnp.pi)) / 2

    def smoothed(self, scale) -> GaussianMixture:
        """The model of x + scale * noise."""
        added = np.diag(np.broadcast_to(np.square(scale), self.means.shape[1:]))
        return GaussianMixture(self.weights, self.means, self.covariances + added, columns=self.columns)

    @simulation
    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.categorical(key_z, jnp.log(self.weights))
        mean, covariance = self.means[z], self.covariances[z]
        return z, mean + jnp.linalg.cholesky(covariance) @ jax.random.normal(key_x, mean.shape)


def check_weights(weights: np.ndarray) -> None:
    if not (weights > 0).all() or abs(weights.sum() - 1) > 1e-6:
        raise ValueError(f"weights: expected positive numbers that sum to 1; they sum to {weights.sum():g}. Normalise them.")
