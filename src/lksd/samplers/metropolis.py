"""Metropolis samplers of real latents: HMC, NUTS, MALA, the random walk, and the exchange algorithm for unknown normalisers.

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


class RandomWalk(Sampler):
    """Gaussian steps of standard deviation ``step_size`` in every direction; no gradients needed."""

    step_size: Any = eqx.field(default=None, converter=optional_float64)

    def tuned(self, model, key, length) -> RandomWalk:
        return tune(self, model, key, length, target=0.3)

    def init(self, model, x, z):
        from blackjax.mcmc import random_walk

        return random_walk.init(z, log_posterior(model, x))

    def step(self, key, state, model, x):
        from blackjax.mcmc import random_walk

        def propose(key_step, position):
            flat, restore = ravel_pytree(position)
            return restore(self.step_size * jax.random.normal(key_step, flat.shape, flat.dtype))

        state, info = random_walk.build_additive_step()(key, state, log_posterior(model, x), propose)
        return state, Info(info.acceptance_rate, jnp.zeros((), bool))


class Exchange(Sampler):
    """Langevin proposals in a dense metric, accepted with the help of data drawn from the likelihood at the proposal
    (Murray, Ghahramani and MacKay 2006).

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
