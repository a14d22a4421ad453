"""Models of data with Gaussian noise added."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._jax import as_float64
from .base import HasGibbs, HasPosterior, LatentVariableModel, Simulates, Smooths, start_of


class Smoothed(LatentVariableModel):
    """x = y + scale * noise with y from ``model``: the latent is that of the model, and y.

    Fisher's identity then reads grad log p(x) = E[(y - x) / scale^2 | x].
    """

    model: Any
    scale: np.ndarray = eqx.field(converter=as_float64)

    support: ClassVar[Any] = "real"

    def log_prior(self, z):
        inner, y = z
        return self.model.log_prior(inner) + self.model.log_likelihood(y, inner)

    def log_likelihood(self, x, z):
        return -jnp.sum(((x - z[1]) / self.scale) ** 2) / 2

    def constrain(self, u):
        return self.model.constrain(u[0]), u[1]

    def unconstrain(self, z):
        return self.model.unconstrain(z[0]), z[1]

    def log_jacobian(self, u):
        return self.model.log_jacobian(u[0])

    @property
    def sample(self):
        """Exists where the model simulates, else None."""
        return self.simulate if isinstance(self.model, Simulates) else None

    def simulate(self, key):
        key_y, key_noise = jax.random.split(key)
        inner, y = self.model.sample(key_y)
        return (inner, y), y + self.scale * jax.random.normal(key_noise, y.shape, y.dtype)

    def initial(self, key, x):
        """At y = x: a y from elsewhere might be in a mode that it never leaves."""
        return start_of(self.model, key, x), x

    @property
    def gibbs(self):
        """Exists where the model sweeps over its latent or draws it, else None."""
        return self.sweep if isinstance(self.model, (HasGibbs, HasPosterior)) else None

    def sweep(self, key, x, z):
        inner, y = z
        return (self.model.gibbs(key, y, inner) if isinstance(self.model, HasGibbs) else self.model.sample_posterior(key, y)), y

    def __str__(self) -> str:
        return f"smoothed {self.model}"


def smoothed(model: Any, scale) -> Any:
    """The law of x + scale * noise for x from ``model``: the model's own ``smoothed(scale)``, or noise as one more latent."""
    return model.smoothed(scale) if isinstance(model, Smooths) else Smoothed(model, scale)
