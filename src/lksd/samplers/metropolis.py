"""Metropolis samplers of real latents: HMC, NUTS, MALA, the random walk, and the exchange algorithm
for unknown normalisers.

BlackJAX is imported where it is used: it takes as long to load as JAX itself. Its HMC factors the
mass matrix at every step, so the default is written out here.

Step size and metric come from data simulated from the model, never from the test data. A pair (z,
x) from the model's joint law has z distributed as the posterior given x, so tuning needs no chain.
The mass matrix is E[g g'] over such pairs with g = grad_z log p(x, z): the posterior precision
where the posterior is Gaussian. The step size is the largest on a grid whose mean acceptance over
one transition, started at such pairs, meets the target; the rate falls with the step, so bisection
finds it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._jax import compiled
from ..models import LatentVariableModel
from ..models.base import Simulates, float64_leaves
from ..models.behaviour import seen
from ..models.simulation import of_length
from .base import Info, Sampler, State, apply, given_integers, log_posterior, root, state_at

# a quarter of a standard normal's period: the next draw is nearly independent
TRAJECTORY = np.pi / 2
JITTER = 0.2  # of the step size, against trajectories that return to their start
MAX_STEPS = 64
DIVERGENT = 1000.0  # loss of log density along a trajectory
PAIRS = 400  # simulated, for the metric
STEP_PAIRS = 200  # of them for the step size
GRID = np.geomspace(1.0, 1.0e-5, 61)  # step sizes as parts of the largest
RIDGE = 1e-6
TARGET = 0.8  # acceptance, of chains that tune themselves
LARGEST = 1.0  # step size of these
OFFSET = 5  # steps that the first guess of a variance is worth


def optional_float64(value):
    return None if value is None else np.asarray(value, dtype=np.float64)


class WithFactor(Sampler):
    """A step size and a metric, with the factor of it that a step needs."""

    step_size: Any = eqx.field(default=None, converter=optional_float64)
    inverse_mass_matrix: Any = eqx.field(default=None, converter=optional_float64)
    factor: Any = None  # of the inverse mass matrix, once it is known

    def init(self, model, x, z):
        return state_at(model, x, z)


class HMC(WithFactor):
    """Hamiltonian Monte Carlo with a dense metric: few, long steps, the same number for all
    observations.

    Parameters
    ----------
    step_size : float, optional
        Tuned to an acceptance rate of 0.8 on simulated data if not given.
    inverse_mass_matrix : (Dz, Dz) or (Dz,) array, optional
        An estimate of the posterior covariance; E[g g']^-1 on simulated data if not given.
    """

    def tuned(self, model, key, length) -> HMC:
        # two steps a trajectory at least
        return tune(self, model, key, length, target=0.8, largest=1.0)

    def step(self, key, state, model, x):
        start, restore = ravel_pytree(state.position)
        factor = self.factor  # C = L L'
        # All of a step's randomness in one draw, in (-1, 1), since on a processor it costs as much
        # as the gradients.
        uniforms = jax.random.uniform(
            key, (start.size + 2,), start.dtype, np.nextafter(-1.0, 0.0), 1.0
        )
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
        steps = tune(
            HMC(self.step_size, self.inverse_mass_matrix),
            model,
            key,
            length,
            target=0.8,
            largest=1.0,
        )
        return NUTS(steps.step_size, steps.inverse_mass_matrix)

    def init(self, model, x, z):
        from blackjax.mcmc import nuts

        return nuts.init(z, log_posterior(model, x))

    def step(self, key, state, model, x):
        from blackjax.mcmc import nuts

        state, info = nuts.build_kernel()(
            key, state, log_posterior(model, x), self.step_size, self.inverse_mass_matrix
        )
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
    """Gaussian steps of standard deviation ``step_size`` in every direction; no
    gradients needed.
    """

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

        state, info = random_walk.build_additive_step()(
            key, state, log_posterior(model, x), propose
        )
        return state, Info(info.acceptance_rate, jnp.zeros((), bool))


class Exchange(WithFactor):
    """Langevin proposals in a dense metric, accepted with the help of data drawn from the
    likelihood at the proposal (Murray, Ghahramani and MacKay 2006).

    With f the unnormalised likelihood and w ~ p(. | z'), the unknown normalisers cancel in
    p(z') f(x | z') f(w | z) / (p(z) f(x | z) f(w | z')).

    Parameters
    ----------
    step_size : float, optional
        Tuned to an acceptance rate of 0.4 on simulated data if not given.
    inverse_mass_matrix : (Dz, Dz) or (Dz,) array, optional
        An estimate of the posterior covariance; from simulated data if not given.
    """

    def tuned(self, model, key, length) -> Exchange:
        return tune(self, model, key, length, target=0.4, largest=2.0)

    def step(self, key, state, model, x):
        key_move, key_data, key_accept = jax.random.split(key, 3)
        here, restore = ravel_pytree(state.position)
        gradient = ravel_pytree(state.gradient)[0]
        factor = self.factor  # C = L L'
        noise = jax.random.normal(key_move, here.shape, here.dtype)
        # u' = u + step^2/2 C g + step L noise
        there = here + self.step_size * apply(
            factor, self.step_size / 2 * apply(factor.T, gradient) + noise
        )
        proposed = self.init(model, x, restore(there))
        # The way back takes the noise -(noise + step/2 L'(g + g')).
        back = noise + self.step_size / 2 * apply(
            factor.T, gradient + ravel_pytree(proposed.gradient)[0]
        )
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


def tune(
    sampler, model: LatentVariableModel, key, length: int, target: float, largest: float = 3.0
):
    """``sampler`` with the fields that are None filled in, its step size at most ``largest``."""
    metric = getattr(sampler, "inverse_mass_matrix", 0.0)
    if sampler.step_size is not None and metric is not None:
        return factored(sampler)
    if not isinstance(model, Simulates):
        raise ValueError(
            f"sampler: expected a model with sample(key), on whose data a {type(sampler).__name__} "
            f"can be tuned; {model} has none. Add it, or give step_size and inverse_mass_matrix."
        )
    arguments = (float64_leaves(sampler), of_length(model, length), key, target, largest)
    return compiled(fill, *arguments, seen=seen(model, length, sampler))(*arguments)


def fill(sampler, model, key, target, largest):
    key_pairs, key_steps = jax.random.split(key)
    z, x = jax.vmap(model.sample)(jax.random.split(key_pairs, PAIRS))
    z = jax.vmap(model.unconstrain)(z)
    if getattr(sampler, "inverse_mass_matrix", 0.0) is None:
        sampler = filled(sampler, "inverse_mass_matrix", inverse_mass(model, z, x))
    sampler = factored(sampler)
    if sampler.step_size is None:
        few_z, few_x = jax.tree.map(lambda leaf: leaf[:STEP_PAIRS], (z, x))
        keys = jax.random.split(key_steps, STEP_PAIRS)
        step_sizes = largest * jnp.asarray(GRID)

        def narrow(_, ends):
            low, high = ends  # the grid falls: the first good one lies in [low, high]
            middle = (low + high) // 2
            good = (
                acceptance(
                    filled(sampler, "step_size", step_sizes[middle]), model, few_z, few_x, keys
                )
                >= target
            )
            return jnp.where(good, low, middle + 1), jnp.where(good, middle, high)

        rounds = int(np.ceil(np.log2(len(GRID))))
        _, found = jax.lax.fori_loop(
            0, rounds, narrow, (jnp.asarray(0), jnp.asarray(len(GRID) - 1))
        )
        sampler = filled(sampler, "step_size", step_sizes[found])
    return sampler


def factored(sampler):
    """With the factor of its metric, where it wants one: programs that call LAPACK cannot run side
    by side, so chains do not.
    """
    return (
        filled(sampler, "factor", root(jnp.asarray(sampler.inverse_mass_matrix)))
        if hasattr(sampler, "factor")
        else sampler
    )


def filled(sampler: Sampler, name: str, value) -> Any:
    return eqx.tree_at(
        lambda s: getattr(s, name), sampler, value, is_leaf=lambda leaf: leaf is None
    )


def inverse_mass(model, z, x):
    def gradient(z, x):
        conditional, reals = given_integers(model, z)
        return ravel_pytree(jax.grad(log_posterior(conditional, x))(reals))[0]

    gradients = jax.vmap(gradient)(z, x)
    mass = gradients.T @ gradients / len(gradients)
    return jnp.linalg.inv(mass + RIDGE * jnp.trace(mass) / len(mass) * jnp.eye(len(mass)))


def acceptance(sampler, model, z, x, keys):
    def one(key, z, x):
        conditional, reals = given_integers(model, z)
        return sampler.step(key, sampler.init(conditional, x, reals), conditional, x)[1].acceptance

    return jnp.mean(jax.vmap(one)(keys, z, x))


class AdaptiveState(NamedTuple):
    """A point, and what the chain has learnt so far."""

    point: State
    log_step: jax.Array
    mean: jax.Array
    variance: jax.Array
    taken: jax.Array  # steps


class AdaptiveHMC(Sampler):
    """HMC in which every chain tunes its own step size and diagonal metric during its first steps,
    and then no more.

    A chain sees its own observation alone, so chains of different observations stay independent.
    The default for models that have ``initial(key, x)`` and no ``sample(key)``.

    Parameters
    ----------
    adapting : int
        Steps during which it adapts. The warm-up should not be shorter.
    factor : (Dz, Dz) or (Dz,) array, optional
        L of a metric L L' to keep, so that the step size alone is tuned.
    """

    adapting: int = 200
    factor: Any = None

    def tuned(self, model, key, length) -> AdaptiveHMC:
        return self

    def init(self, model, x, z):
        flat = ravel_pytree(z)[0]
        return AdaptiveState(
            state_at(model, x, z), jnp.log(0.1), flat, jnp.ones_like(flat), jnp.zeros((), jnp.int32)
        )

    def step(self, key, state: Any, model, x):
        factor = jnp.sqrt(state.variance) if self.factor is None else self.factor
        sampler = filled(filled(HMC(), "step_size", jnp.exp(state.log_step)), "factor", factor)
        point, info = sampler.step(key, state.point, model, x)
        count = state.taken + 1
        # Robbins and Monro: the logarithm of the step rises where too many proposals are accepted.
        log_step = jnp.minimum(
            state.log_step + count**-0.6 * (info.acceptance - TARGET), jnp.log(LARGEST)
        )
        deviation = ravel_pytree(point.position)[0] - state.mean
        gain = (count + OFFSET) ** -0.8
        learnt = AdaptiveState(
            point,
            log_step,
            state.mean + gain * deviation,
            state.variance + gain * (deviation**2 - state.variance),
            count,
        )
        done = state._replace(point=point, taken=count)
        return jax.tree.map(
            lambda new, old: jnp.where(count <= self.adapting, new, old), learnt, done
        ), info

    def position(self, state):
        return state.point.position
