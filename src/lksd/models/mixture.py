"""Finite mixtures of Gaussians, and of von Mises-Fisher laws on the unit sphere; the latent is the
component.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy.special import gammaln, xlogy

from .._jax import as_float64
from .._validation import check_finite
from ..stein.base import TOLERANCE
from .base import LatentVariableModel, as_columns, check_columns, simulation


class FiniteMixture(LatentVariableModel):
    """P(z = k) = weights[k]; a subclass gives the densities of x in each component."""

    complete: ClassVar[bool] = True
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
    columns: tuple[str, ...] | None = eqx.field(  # type: ignore[misc]
        default=None, static=True, converter=as_columns, kw_only=True
    )

    support: ClassVar[Any] = "real"

    def __check_init__(self):
        count, dim = self.means.shape if self.means.ndim == 2 else (0, 0)
        if (
            self.weights.shape != (count,)
            or self.covariances.shape != (count, dim, dim)
            or not count
        ):
            raise ValueError(
                "GaussianMixture: expected weights (K,), means (K, D) and covariances (K, D, D); "
                f"got {self.weights.shape}, {self.means.shape} and {self.covariances.shape}. Give "
                "full covariance matrices."
            )
        check_weights(self.weights)
        check_columns(self.columns, dim)
        for k, covariance in enumerate(self.covariances):
            smallest = (
                np.linalg.eigvalsh(covariance)[0] if np.isfinite(covariance).all() else np.nan
            )
            if not np.allclose(covariance, covariance.T) or not smallest > 0:
                raise ValueError(
                    f"covariances: expected symmetric positive definite matrices; number {k} is "
                    f"not (smallest eigenvalue {smallest:g}). Add a small multiple of the identity."
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
        return GaussianMixture(
            self.weights, self.means, self.covariances + added, columns=self.columns
        )

    @simulation
    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.categorical(key_z, jnp.log(self.weights))
        mean, covariance = self.means[z], self.covariances[z]
        return z, mean + jnp.linalg.cholesky(covariance) @ jax.random.normal(key_x, mean.shape)


def check_weights(weights: np.ndarray) -> None:
    if not (weights > 0).all() or abs(weights.sum() - 1) > 1e-6:
        raise ValueError(
            f"weights: expected positive numbers that sum to 1; they sum to {weights.sum():g}. "
            "Normalise them."
        )


class VonMisesFisherMixture(FiniteMixture):
    """Directions: p(x | z = k) proportional to exp(concentrations[k] means[k]'x) on the unit
    sphere, P(z = k) = weights[k].

    Parameters
    ----------
    weights : (K,) array
    means : (K, D) array
        Unit vectors.
    concentrations : (K,) array
        0 is the uniform law.

    Examples
    --------
    >>> import jax, numpy as np, lksd
    >>> model = lksd.models.VonMisesFisherMixture([0.5, 0.5], np.eye(3)[:2], [10.0, 20.0])
    >>> z, x = model.sample(jax.random.key(0))
    >>> round(float(np.linalg.norm(x)), 6)
    1.0
    """

    weights: np.ndarray
    means: np.ndarray
    concentrations: np.ndarray
    log_normalisers: np.ndarray

    directional: ClassVar[bool] = True

    def __init__(self, weights, means, concentrations):
        self.weights, self.means, self.concentrations = (
            as_float64(weights),
            as_float64(means),
            as_float64(concentrations),
        )
        count, dim = self.means.shape if self.means.ndim == 2 else (0, 0)
        if (
            self.weights.shape != (count,)
            or self.concentrations.shape != (count,)
            or not count
            or dim < 2
        ):
            raise ValueError(
                "VonMisesFisherMixture: expected weights (K,), means (K, D) with D at least 2, and "
                f"concentrations (K,); got {self.weights.shape}, {self.means.shape} and "
                f"{self.concentrations.shape}. Give one of each a component."
            )
        check_weights(self.weights)
        check_finite("means", self.means)
        if (check_finite("concentrations", self.concentrations) < 0).any():
            raise ValueError(
                "concentrations: expected numbers of at least 0; got "
                f"{self.concentrations.min():g}. Turn the mean."
            )
        lengths = np.linalg.norm(self.means, axis=1)
        if (off := np.abs(lengths - 1)).max() > TOLERANCE:
            raise ValueError(
                f"means: expected unit vectors; number {int(off.argmax())} has length "
                f"{lengths[off.argmax()]:.6g}. Divide each row by its length."
            )
        self.means = self.means / lengths[:, None]
        self.log_normalisers = np.array(
            [log_normaliser(dim, float(k)) for k in self.concentrations]
        )

    def log_densities(self, x):
        """log p(x | z = k) for every k, with respect to the surface measure."""
        return self.log_normalisers + self.concentrations * (self.means @ x)

    @simulation
    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.categorical(key_z, jnp.log(self.weights))
        return z, von_mises_fisher(key_x, self.means[z], self.concentrations[z])


def log_normaliser(dim: int, concentration: float) -> float:
    """log of kappa^v / ((2 pi)^(D/2) I_v(kappa)), v = D/2 - 1, by the power series of the Bessel
    function, all terms positive.
    """
    order = dim / 2 - 1
    # beyond the largest, which lies below kappa/2
    terms = np.arange(int(concentration) + 10 * int(np.sqrt(concentration)) + 60)
    logs = xlogy(2 * terms, concentration / 2) - gammaln(terms + 1) - gammaln(terms + order + 1)
    return float(order * np.log(2) - dim / 2 * np.log(2 * np.pi) - np.logaddexp.reduce(logs))


def von_mises_fisher(key, mean, concentration):
    """A draw by Wood's rejection sampler (1994) for the cosine w to the mean, the direction around
    it uniform.
    """
    rest = mean.shape[0] - 1
    b = rest / (2 * concentration + jnp.sqrt(4 * concentration**2 + rest**2))
    centre = (1 - b) / (1 + b)
    level = concentration * centre + rest * jnp.log1p(-(centre**2))

    def propose(state):
        key, _, _ = state
        key, key_beta, key_accept = jax.random.split(key, 3)
        squares = jnp.sum(jax.random.normal(key_beta, (2, rest), mean.dtype) ** 2, 1)
        beta = squares[0] / jnp.sum(squares)  # Beta(rest / 2, rest / 2)
        w = (1 - (1 + b) * beta) / (1 - (1 - b) * beta)
        log_ratio = concentration * w + rest * jnp.log1p(-centre * w) - level
        return key, w, jnp.log(jax.random.uniform(key_accept, (), mean.dtype)) <= log_ratio

    key_cosine, key_around = jax.random.split(key)
    start = (key_cosine, jnp.zeros((), mean.dtype), jnp.asarray(False))
    _, w, _ = jax.lax.while_loop(lambda state: ~state[2], propose, start)
    around = jax.random.normal(key_around, mean.shape, mean.dtype)
    around = around - (around @ mean) * mean
    return w * mean + jnp.sqrt(jnp.maximum(1 - w**2, 0.0)) * around / jnp.linalg.norm(around)
