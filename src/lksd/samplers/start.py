"""Where chains begin, when not where the model says."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._jax import as_float64


class Start(eqx.Module):
    """A law of the unconstrained latent u at the beginning of a chain."""

    @abstractmethod
    def __call__(self, key, u, model):
        """A point of the same structure as ``u``."""


class NormalStart(Start):
    """N(mean, scale^2 I); ``mean`` a number or one for each coordinate of u."""

    mean: np.ndarray = eqx.field(default=0.0, converter=as_float64)
    scale: np.ndarray = eqx.field(default=1.0, converter=as_float64)

    def __call__(self, key, u, model):
        flat, restore = ravel_pytree(u)
        return restore(jnp.broadcast_to(self.mean, flat.shape) + self.scale * jax.random.normal(key, flat.shape, flat.dtype))


class BoxStart(Start):
    """Uniform between ``low`` and ``high`` in every coordinate of u."""

    low: np.ndarray = eqx.field(default=-2.0, converter=as_float64)
    high: np.ndarray = eqx.field(default=2.0, converter=as_float64)

    def __check_init__(self):
        if not (self.low < self.high).all():
            raise ValueError(f"BoxStart: expected low < high; got {self.low} and {self.high}. Give the box's two ends.")

    def __call__(self, key, u, model):
        flat, restore = ravel_pytree(u)
        return restore(self.low + (self.high - self.low) * jax.random.uniform(key, flat.shape, flat.dtype))


class UniformStart(Start):
    """Every discrete latent uniform over its values, as many as the model's ``n_latent_values`` says; -1 stays."""

    def __call__(self, key, u, model):
        drawn = jax.random.randint(key, u.shape, 0, model.n_latent_values, u.dtype)
        return jnp.where(u >= 0, drawn, u)
