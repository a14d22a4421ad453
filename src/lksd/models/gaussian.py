"""Linear Gaussian models: probabilistic PCA and factor analysis."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64
from .._validation import check_finite
from .base import LatentVariableModel, as_columns, check_columns, simulation

LOG_2PI = np.log(2 * np.pi)


class LinearGaussian(LatentVariableModel):
    """x | z ~ N(A z + location, diag(variances)), z ~ N(0, I): everything is in closed form."""

    support: ClassVar[Any] = "real"
    complete: ClassVar[bool] = True

    @property
    def location(self):
        """The mean of x."""
        return self.mean  # type: ignore[attr-defined]

    @property
    @abstractmethod
    def matrix(self):
        """A, of shape (D, Dz)."""

    @property
    @abstractmethod
    def variances(self):
        """The noise variances, a scalar or (D,)."""

    def log_prior(self, z):
        return -(jnp.sum(z**2) + z.size * LOG_2PI) / 2

    def log_likelihood(self, x, z):
        return (
            -jnp.sum(
                (x - self.matrix @ z - self.location) ** 2 / self.variances
                + jnp.log(self.variances)
                + LOG_2PI
            )
            / 2
        )

    def log_likelihood_at(self, x):
        """The same as a function of z, up to a constant: b'z - z'G z / 2, with D in b
        and G alone.
        """
        scaled = self.matrix.T / self.variances
        b, gram = scaled @ (x - self.location), scaled @ self.matrix
        return lambda z: b @ z - z @ gram @ z / 2

    @simulation
    def sample(self, key):
        dim, latent_dim = self.matrix.shape
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z, (latent_dim,))
        noise = jax.random.normal(key_x, (dim,))
        return z, self.matrix @ z + self.location + jnp.sqrt(self.variances) * noise

    def smoothed(self, scale) -> FactorAnalysis:
        """The model of x + scale * noise."""
        variances = np.broadcast_to(self.variances + np.square(scale), self.matrix.shape[:1])
        return FactorAnalysis(self.matrix, variances, self.location, columns=self.columns)

    def posterior(self, x):
        """Mean and precision of z given x."""
        scaled = self.matrix.T / self.variances
        precision = jnp.eye(self.matrix.shape[1]) + scaled @ self.matrix
        return jnp.linalg.solve(precision, scaled @ (x - self.location)), precision

    def sample_posterior(self, key, x):
        mean, precision = self.posterior(x)
        noise = jax.random.normal(key, mean.shape, mean.dtype)
        return mean + jax.scipy.linalg.solve_triangular(
            jnp.linalg.cholesky(precision), noise, lower=True, trans=1
        )

    def log_marginal(self, x):
        """log N(x; location, A A' + diag(variances)): p(x, z) / p(z | x) at the posterior mean."""
        mean, precision = self.posterior(x)
        log_posterior = (jnp.linalg.slogdet(precision)[1] - mean.size * LOG_2PI) / 2
        return self.log_prior(mean) + self.log_likelihood(x, mean) - log_posterior

    def marginal_score(self, x):
        """-(A A' + diag(variances))^-1 (x - mean), by Woodbury's identity."""
        mean, _ = self.posterior(x)
        return -(x - self.location - self.matrix @ mean) / self.variances


class PPCA(LinearGaussian):
    """Probabilistic PCA: x | z ~ N(weight z + mean, noise_scale^2 I).

    Parameters
    ----------
    weight : (D, Dz) array
    noise_scale : float
    mean : float or (D,) array
    columns : sequence of str, optional
        The names of x's columns, by which those of a data frame are found.
    """

    weight: np.ndarray = eqx.field(converter=as_float64)
    noise_scale: np.ndarray = eqx.field(converter=as_float64)
    mean: np.ndarray = eqx.field(default=0.0, converter=as_float64)
    columns: tuple[str, ...] | None = eqx.field(  # type: ignore[misc]
        default=None, static=True, converter=as_columns, kw_only=True
    )

    def __check_init__(self):
        check_shapes("weight", self.weight, "noise_scale", self.noise_scale, (), self.mean)
        check_columns(self.columns, len(self.weight))

    @property
    def matrix(self):
        return self.weight

    @property
    def variances(self):
        return self.noise_scale**2


class FactorAnalysis(LinearGaussian):
    """Factor analysis: x | z ~ N(loadings z + mean, diag(noise_variance)).

    Parameters
    ----------
    loadings : (D, Dz) array
    noise_variance : (D,) array
    mean : float or (D,) array
    columns : sequence of str, optional
        The names of x's columns, by which those of a data frame are found.
    """

    loadings: np.ndarray = eqx.field(converter=as_float64)
    noise_variance: np.ndarray = eqx.field(converter=as_float64)
    mean: np.ndarray = eqx.field(default=0.0, converter=as_float64)
    columns: tuple[str, ...] | None = eqx.field(  # type: ignore[misc]
        default=None, static=True, converter=as_columns, kw_only=True
    )

    def __check_init__(self):
        check_shapes(
            "loadings",
            self.loadings,
            "noise_variance",
            self.noise_variance,
            self.loadings.shape[:1],
            self.mean,
        )
        check_columns(self.columns, len(self.loadings))

    @property
    def matrix(self):
        return self.loadings

    @property
    def variances(self):
        return self.noise_variance


def check_shapes(name, matrix, noise_name, noise, noise_shape, mean) -> None:
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"{name}: expected a (D, Dz) matrix; got shape {matrix.shape}. Give one row for each "
            "coordinate of x."
        )
    if noise.shape != noise_shape or not (noise > 0).all():
        raise ValueError(
            f"{noise_name}: expected positive numbers of shape {noise_shape}; got shape "
            f"{noise.shape}, the smallest {noise.min():g}. Noise of zero makes the density "
            "degenerate."
        )
    if mean.shape not in ((), matrix.shape[:1]):
        raise ValueError(
            f"mean: expected a number or shape {matrix.shape[:1]}; got {mean.shape}. Give one for "
            "each coordinate of x."
        )
    for part_name, part in ((name, matrix), (noise_name, noise), ("mean", mean)):
        check_finite(part_name, np.atleast_1d(part))
