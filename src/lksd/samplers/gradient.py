"""Samplers that follow the gradient: HMC, NUTS and MALA.

BlackJAX is imported where it is used: it takes as long to load as JAX itself. Its HMC factors the mass matrix at every step, so
the default is written out here.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .base import Info, Sampler, State, apply, log_posterior, state_at
from .tuning import tune

TRAJECTORY = np.pi / 2  # a quarter of a standard normal's period: the next draw is nearly independent
JITTER = 0.2  # of the step size, against trajectories that return to their start
MAX_STEPS = 64
DIVERGENT = 1000.0  # loss of log density along a trajectory


def optional_float64(value):
    return None if value is None else np.asarray(value, dtype=np.float64)


class HMC(Sampler):
    """Hamiltonian Monte Carlo with a dense metric: few, long steps, the same number for all observations.

    Parameters
    ----------
    step_size : float, optional
        Tuned to an acceptance rate of 0.8 on simulated data if not given.
    inverse_mass_matrix : (Dz, Dz) or (Dz,) array, optional
        An estimate of the posterior covariance; E[g g']^-1 on simulated data if not given.
    """

    step_size: Any = eqx.field(default=None, converter=optional_float64)
    inverse_mass_matrix: Any = eqx.field(default=None, converter=optional_float64)
    factor: Any = None  # of the inverse mass matrix, once it is known

    def tuned(self, model, key, length) -> HMC:
        return tune(self, model, key, length, target=0.8, largest=1.0)  # two steps a trajectory at least

    def init(self, model, x, z):
        return state_at(model, x, z)

    def step(self, key, state, model, x):
        start, restore = ravel_pytree(state.position)
        factor = self.factor  # C = L L'
        # All of a step's randomness in one draw, in (-1, 1), since on a processor it costs as much as the gradients.
        uniforms = jax.random.uniform(key, (start.size + 2,), start.dtype, np.nextafter(-1.0, 0.0), 1.0)
        noise = np.sqrt(2) * jax.lax.erf_inv(uniforms[2:])  # standard normal
        step = self.step_size * (1 + JITTER * uniforms[0])
        steps = jnp.clip(jnp.ceil(TRAJECTORY / self.step_size), 1, MAX_STEPS).astype(jnp.int32)
        density = jax.value_and_grad(lambda flat: log_posterior(model, x)(restore(flat)))

        def leapfrog(_, state):
            u, momentum, _, gradient = state  # L' times the momentum, which is standard normal
            momentum = momentum + step / 2 * apply(factor.T, gradient)
            u = u + step * apply(factor, momentum)
            log_density, gradient = density(u)
            return u, momentum + step / 2 * apply(factor.T, gradient), log_density, gradient

        first = (start, noise, state.log_density, ravel_pytree(state.gradient)[0])
        u, momentum, log_density, gradient = jax.lax.fori_loop(0, steps, leapfrog, first)
        change = log_density - state.log_density + (jnp.sum(noise**2) - jnp.sum(momentum**2)) / 2
        log_ratio = jnp.where(jnp.isnan(change), -jnp.inf, change)
        accepted = jnp.log((1 + uniforms[1]) / 2) < log_ratio
        proposed = State(restore(u), log_density, restore(gradient))
        state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposed, state)
        return state, Info(jnp.exp(jnp.minimum(log_ratio, 0.0)), log_ratio < -DIVERGENT)

    def position(self, state):
        return state.position


class NUTS(Sampler):
    """The no-U-turn sampler with a dense metric; parameters as for HMC."""

    step_size: Any = eqx.field(default=None, converter=optional_float64)
    inverse_mass_matrix: Any = eqx.field(default=None, converter=optional_float64)

    def tuned(self, model, key, length) -> NUTS:
        steps = tune(HMC(self.step_size, self.inverse_mass_matrix), model, key, length, target=0.8, largest=1.0)
        return NUTS(steps.step_size, steps.inverse_mass_matrix)

    def init(self, model, x, z):
        from blackjax.mcmc import nuts

        return nuts.init(z, log_posterior(model, x))

    def step(self, key, state, model, x):
        from blackjax.mcmc import nuts

        state, info = nuts.build_kernel()(key, state, log_posterior(model, x), self.step_size, self.inverse_mass_matrix)
        return state, Info(info.acceptance_rate, info.is_divergent)

    def position(self, state):
        return state.position


class MALA(Sampler):
    """The Metropolis-adjusted Langevin algorithm: z + step_size grad + sqrt(2 step_size) noise."""

    step_size: Any = eqx.field(default=None, converter=optional_float64)

    def tuned(self, model, key, length) -> MALA:
        return tune(self, model, key, length, target=0.574)

    def init(self, model, x, z):
        from blackjax.mcmc import mala

        return mala.init(z, log_posterior(model, x))

    def step(self, key, state, model, x):
        from blackjax.mcmc import mala

        state, info = mala.build_kernel()(key, state, log_posterior(model, x), self.step_size)
        return state, Info(info.acceptance_rate, jnp.zeros((), bool))

    def position(self, state):
        return state.position
