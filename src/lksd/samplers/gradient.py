"""Samplers that follow the gradient: HMC, NUTS and MALA.

BlackJAX is imported where it is used: it takes as long to load as JAX itself.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .base import Info, Sampler, log_posterior
from .tuning import tune

TRAJECTORY = np.pi / 2  # a quarter of a standard normal's period: the next draw is nearly independent
JITTER = 0.2  # of the step size, against trajectories that return to their start
MAX_STEPS = 64


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

    def tuned(self, model, key, length) -> HMC:
        return tune(self, model, key, length, target=0.8, largest=1.0)  # two steps a trajectory at least

    def init(self, model, x, z):
        from blackjax.mcmc import hmc

        return hmc.init(z, log_posterior(model, x))

    def step(self, key, state, model, x):
        from blackjax.mcmc import hmc

        key_jitter, key_step = jax.random.split(key)
        step_size = self.step_size * jax.random.uniform(key_jitter, (), minval=1 - JITTER, maxval=1 + JITTER)
        steps = jnp.clip(jnp.ceil(TRAJECTORY / self.step_size), 1, MAX_STEPS).astype(jnp.int32)
        state, info = hmc.build_kernel()(key_step, state, log_posterior(model, x), step_size, self.inverse_mass_matrix, steps)
        return state, Info(info.acceptance_rate, info.is_divergent)

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
