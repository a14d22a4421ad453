"""The exchange algorithm (Murray, Ghahramani and MacKay 2006) for likelihoods with unknown normalisers."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .base import Info, Sampler, apply, state_at
from .gradient import optional_float64
from .tuning import tune


class Exchange(Sampler):
    """Langevin proposals in a dense metric, accepted with the help of data drawn from the likelihood at the proposal.

    With f the unnormalised likelihood and w ~ p(. | z'), the unknown normalisers cancel in
    p(z') f(x | z') f(w | z) / (p(z) f(x | z) f(w | z')).

    Parameters
    ----------
    step_size : float, optional
        Tuned to an acceptance rate of 0.4 on simulated data if not given.
    inverse_mass_matrix : (Dz, Dz) or (Dz,) array, optional
        An estimate of the posterior covariance; from simulated data if not given.
    """

    step_size: Any = eqx.field(default=None, converter=optional_float64)
    inverse_mass_matrix: Any = eqx.field(default=None, converter=optional_float64)
    factor: Any = None  # of the inverse mass matrix, once it is known

    def tuned(self, model, key, length) -> Exchange:
        return tune(self, model, key, length, target=0.4, largest=2.0)

    def init(self, model, x, z):
        return state_at(model, x, z)

    def step(self, key, state, model, x):
        key_move, key_data, key_accept = jax.random.split(key, 3)
        here, restore = ravel_pytree(state.position)
        gradient = ravel_pytree(state.gradient)[0]
        factor = self.factor  # C = L L'
        noise = jax.random.normal(key_move, here.shape, here.dtype)
        # u' = u + step^2/2 C g + step L noise
        there = here + self.step_size * apply(factor, self.step_size / 2 * apply(factor.T, gradient) + noise)
        proposed = self.init(model, x, restore(there))
        # The way back takes the noise -(noise + step/2 L'(g + g')).
        back = noise + self.step_size / 2 * apply(factor.T, gradient + ravel_pytree(proposed.gradient)[0])
        z, z_new = model.constrain(state.position), model.constrain(proposed.position)
        w = model.sample_likelihood(key_data, z_new)
        log_ratio = (
            proposed.log_density
            - state.log_density
            + (jnp.sum(noise**2) - jnp.sum(back**2)) / 2
            + model.log_likelihood(w, z)
            - model.log_likelihood(w, z_new)
        )
        accepted = jnp.log(jax.random.uniform(key_accept, (), here.dtype)) < log_ratio
        state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposed, state)
        return state, Info(jnp.exp(jnp.minimum(log_ratio, 0.0)), jnp.zeros((), bool))

    def position(self, state):
        return state.position
