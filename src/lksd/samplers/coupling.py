"""Two chains that move together, each as its sampler says, until they meet and stay together
(Jacob, O'Leary and Atchade 2020).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import singledispatch
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .base import State, apply, given_integers, split_latent, state_at
from .gibbs import Exact, Gibbs, WithinGibbs
from .metropolis import HMC, MALA, RandomWalk

# of the posterior's spread: the Metropolis step after an HMC step, which brings chains that are
# close together
NUDGE = 0.05


class Coupling(eqx.Module):
    """A step of two chains. Each alone follows one Markov kernel that leaves its posterior
    invariant; equal chains stay equal.
    """

    def init(self, model, x, u) -> Any:
        """A chain's state at the unconstrained u."""
        return u

    @abstractmethod
    def step(self, key, a, b, models, x) -> tuple[Any, Any]:
        """The next states of both chains, each in its own of two ``models``, which differ where
        integers are given.
        """

    def position(self, state):
        """The unconstrained latent of a state."""
        return state.position if isinstance(state, State) else state


@singledispatch
def coupled(sampler) -> Coupling:
    """How two chains of this sampler are coupled."""
    raise ValueError(
        f"sampler: no coupling of two chains is known for {sampler}, and unbiased scores need one. "
        "Use HMC(), MALA(), RandomWalk(), Gibbs() or Exact()."
    )


class Redrawn(Coupling):
    """Exact draws: both chains take the same one."""

    def step(self, key, a, b, models, x):
        draw = models[0].unconstrain(models[0].sample_posterior(key, x))
        return draw, draw


class Sweeps(Coupling):
    """Gibbs sweeps: by the model's ``coupled_gibbs(key, x, z, z')``."""

    def step(self, key, a, b, models, x):
        z_a, z_b = models[0].constrain(a), models[1].constrain(b)
        z_a, z_b = models[0].coupled_gibbs(key, x, z_a, z_b)
        return models[0].unconstrain(z_a), models[1].unconstrain(z_b)


class Metropolis(Coupling):
    """Proposals N(u + drift grad, L L'), drawn from the reflection-maximal coupling, and a common
    uniform to accept them.
    """

    drift: Any
    factor: Any  # L, or its diagonal; None for a multiple of the identity
    inverse: Any

    def init(self, model, x, u):
        return state_at(model, x, u)

    def step(self, key, a, b, models, x):
        key_noise, key_same, key_accept = jax.random.split(key, 3)
        (u_a, restore), (u_b, _) = ravel_pytree(a.position), ravel_pytree(b.position)
        factor, inverse = (
            jnp.broadcast_to(part, u_a.shape) if part.ndim == 0 else part
            for part in (self.factor, self.inverse)
        )

        def mean(u, state):
            return u + self.drift * ravel_pytree(state.gradient)[0]

        def log_proposal(to, u, state):
            return -jnp.sum(apply(inverse, to - mean(u, state)) ** 2) / 2

        def decide(state, u, there, model):
            new = state_at(model, x, restore(there))
            log_ratio = (
                new.log_density
                - state.log_density
                + log_proposal(u, there, new)
                - log_proposal(there, u, state)
            )
            # NaN is not accepted
            return jax.tree.map(lambda n, o: jnp.where(log_uniform < log_ratio, n, o), new, state)

        mean_a, mean_b = mean(u_a, a), mean(u_b, b)
        noise, apart = (
            jax.random.normal(key_noise, u_a.shape, u_a.dtype),
            apply(inverse, mean_a - mean_b),
        )
        # of the densities of b's and a's proposals at a's
        log_same = (jnp.sum(noise**2) - jnp.sum((noise + apart) ** 2)) / 2
        same = jnp.log(jax.random.uniform(key_same, (), u_a.dtype)) < log_same
        direction = apart / jnp.maximum(jnp.linalg.norm(apart), jnp.finfo(u_a.dtype).tiny)
        reflected = noise - 2 * (direction @ noise) * direction
        there_a = mean_a + apply(factor, noise)
        there_b = jnp.where(same, there_a, mean_b + apply(factor, reflected))
        log_uniform = jnp.log(jax.random.uniform(key_accept, (), u_a.dtype))
        return decide(a, u_a, there_a, models[0]), decide(b, u_b, there_b, models[1])


class Trajectories(Coupling):
    """HMC with common momenta, which brings chains together, then a small Metropolis step, in which
    they meet.
    """

    hmc: HMC
    nudge: Metropolis

    def init(self, model, x, u):
        return state_at(model, x, u)

    def step(self, key, a, b, models, x):
        key_move, key_nudge = jax.random.split(key)
        a, b = (
            self.hmc.step(key_move, state, model, x)[0]
            for state, model in zip((a, b), models, strict=True)
        )
        return self.nudge.step(key_nudge, a, b, models, x)


class Both(Coupling):
    """Reals by one coupling, given the integers of each chain; then sweeps over the integers."""

    reals: Coupling

    def step(self, key, a, b, models, x):
        key_reals, key_integers = jax.random.split(key)
        (model_a, reals_a), (model_b, reals_b) = (
            given_integers(model, u) for model, u in zip(models, (a, b), strict=True)
        )
        starts = self.reals.init(model_a, x, reals_a), self.reals.init(model_b, x, reals_b)
        moved = self.reals.step(key_reals, *starts, (model_a, model_b), x)
        a, b = (
            eqx.combine(self.reals.position(one), split_latent(u)[1])
            for one, u in zip(moved, (a, b), strict=True)
        )
        return Sweeps().step(key_integers, a, b, models, x)


@coupled.register
def _(sampler: Exact) -> Coupling:
    return Redrawn()


@coupled.register
def _(sampler: Gibbs) -> Coupling:
    return Sweeps()


@coupled.register
def _(sampler: WithinGibbs) -> Coupling:
    return Both(coupled(sampler.reals))


@coupled.register
def _(sampler: MALA) -> Coupling:
    scale = jnp.sqrt(2 * jnp.asarray(sampler.step_size))
    return Metropolis(jnp.asarray(sampler.step_size), scale, 1 / scale)


@coupled.register
def _(sampler: RandomWalk) -> Coupling:
    scale = jnp.asarray(sampler.step_size)
    return Metropolis(jnp.zeros(()), scale, 1 / scale)


@coupled.register
def _(sampler: HMC) -> Coupling:
    factor = NUDGE * jnp.asarray(sampler.factor)
    inverse = 1 / factor if factor.ndim < 2 else jnp.linalg.inv(factor)
    return Trajectories(sampler, Metropolis(jnp.zeros(()), factor, inverse))


def equal(a, b):
    """Whether two latents are the same, to the last bit."""
    return jnp.all(ravel_pytree(a)[0] == ravel_pytree(b)[0])
