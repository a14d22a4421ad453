"""What a posterior sampler is: ``init`` and ``step`` for one observation and one chain, on
unconstrained latents; its start.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._jax import as_float64
from ..models import LatentVariableModel


class Info(NamedTuple):
    """How a step went."""

    acceptance: jax.Array
    divergent: jax.Array


class State(NamedTuple):
    """A point with the log posterior, up to a constant, and its gradient."""

    position: Any
    log_density: jax.Array
    gradient: Any


class Sampler(eqx.Module):
    """A Markov chain that leaves the posterior of z given one x invariant."""

    @abstractmethod
    def tuned(self, model: LatentVariableModel, key, length: int) -> Sampler:
        """The sampler with everything fixed, tuned on data simulated from the model and never on
        the test data.
        """

    @abstractmethod
    def init(self, model: LatentVariableModel, x, z) -> Any:
        """The chain's state at z."""

    @abstractmethod
    def step(self, key, state, model: LatentVariableModel, x) -> tuple[Any, Info]:
        """One transition."""

    def position(self, state):
        """The unconstrained latent of a state."""
        return state.position

    def __str__(self) -> str:
        return type(self).__name__


def log_posterior(model: Any, x):
    """log p(x, z) as a function of the unconstrained u, where z = constrain(u), up to a
    constant.
    """
    log_likelihood = model.log_likelihood_at(x)

    def density(u):
        z = model.constrain(u)
        return model.log_prior(z) + log_likelihood(z) + model.log_jacobian(u)

    return density


def state_at(model: LatentVariableModel, x, z) -> State:
    return State(z, *jax.value_and_grad(log_posterior(model, x))(z))


def root(covariance):
    """L with L L' = covariance; of a diagonal matrix, given by its diagonal, L's diagonal."""
    return jnp.sqrt(covariance) if covariance.ndim == 1 else jnp.linalg.cholesky(covariance)


def apply(matrix, vector):
    return matrix * vector if matrix.ndim == 1 else matrix @ vector


def split_latent(u):
    """The real part of a latent, on which gradients exist, and the integers."""
    return eqx.partition(u, lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jnp.floating))


class Conditional(LatentVariableModel):
    """A model of the real part of the latent, the integers given."""

    model: LatentVariableModel
    integers: Any

    def log_prior(self, z):
        return self.model.log_prior(eqx.combine(z, self.integers))

    def log_likelihood(self, x, z):
        return self.model.log_likelihood(x, eqx.combine(z, self.integers))

    def constrain(self, u):
        return split_latent(self.model.constrain(eqx.combine(u, self.integers)))[0]

    def log_jacobian(self, u):
        return self.model.log_jacobian(eqx.combine(u, self.integers))


def given_integers(model: LatentVariableModel, u) -> tuple[LatentVariableModel, Any]:
    """The model of the real part of ``u`` and that part: the model itself where nothing else is in
    ``u``.
    """
    reals, integers = split_latent(u)
    return (Conditional(model, integers), reals) if jax.tree.leaves(integers) else (model, u)


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
        return restore(
            jnp.broadcast_to(self.mean, flat.shape)
            + self.scale * jax.random.normal(key, flat.shape, flat.dtype)
        )


class BoxStart(Start):
    """Uniform between ``low`` and ``high`` in every coordinate of u."""

    low: np.ndarray = eqx.field(default=-2.0, converter=as_float64)
    high: np.ndarray = eqx.field(default=2.0, converter=as_float64)

    def __check_init__(self):
        if not (self.low < self.high).all():
            raise ValueError(
                f"BoxStart: expected low < high; got {self.low} and {self.high}. Give the box's "
                "two ends."
            )

    def __call__(self, key, u, model):
        flat, restore = ravel_pytree(u)
        return restore(
            self.low + (self.high - self.low) * jax.random.uniform(key, flat.shape, flat.dtype)
        )


class UniformStart(Start):
    """Every discrete latent uniform over its values, as many as the model's ``n_latent_values``
    says; -1 stays.
    """

    def __call__(self, key, u, model):
        drawn = jax.random.randint(key, u.shape, 0, model.n_latent_values, u.dtype)
        return jnp.where(u >= 0, drawn, u)
