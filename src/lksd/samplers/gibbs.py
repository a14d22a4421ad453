"""Draws that a model itself offers: exact ones, and Gibbs sweeps, alone or around a sampler of the
real part of the latent.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from ..models import LatentVariableModel
from ..models.base import HasGibbs, HasPosterior
from .base import Info, Sampler, given_integers, split_latent
from .metropolis import HMC


class AtLatent(Sampler):
    """A sampler whose state is the latent itself."""

    def init(self, model, x, z):
        return z

    def position(self, state):
        return state


class Exact(AtLatent):
    """Independent draws by the model's ``sample_posterior``."""

    def tuned(self, model: LatentVariableModel, key, length: int) -> Exact:
        if not isinstance(model, HasPosterior):
            raise ValueError(
                f"sampler: {model} has no sample_posterior, so exact draws are not to be had. Use "
                "HMC() or NUTS()."
            )
        return self

    def step(self, key, state, model, x):
        return model.unconstrain(model.sample_posterior(key, x)), Info(
            jnp.ones(()), jnp.zeros((), bool)
        )


class Gibbs(AtLatent):
    """The model's ``gibbs(key, x, z)``, one sweep a step."""

    def tuned(self, model: LatentVariableModel, key, length: int) -> Gibbs:
        check_gibbs(model)
        return self

    def step(self, key, state, model, x):
        z = model.gibbs(key, x, model.constrain(state))
        return model.unconstrain(z), Info(jnp.ones(()), jnp.zeros((), bool))


class WithinGibbs(AtLatent):
    """For latents with reals and integers: the model's ``gibbs`` for the integers, ``reals`` for
    the rest.
    """

    reals: Sampler = eqx.field(default_factory=HMC)

    def tuned(self, model: LatentVariableModel, key, length: int) -> WithinGibbs:
        check_gibbs(model)
        return WithinGibbs(self.reals.tuned(model, key, length))

    def step(self, key, state, model, x):
        key_reals, key_integers = jax.random.split(key)
        conditional, reals = given_integers(model, state)
        inner, info = self.reals.step(
            key_reals, self.reals.init(conditional, x, reals), conditional, x
        )
        u = eqx.combine(self.reals.position(inner), split_latent(state)[1])
        return model.unconstrain(model.gibbs(key_integers, x, model.constrain(u))), info

    def __str__(self) -> str:
        return f"WithinGibbs({self.reals})"


def check_gibbs(model) -> None:
    if not isinstance(model, HasGibbs):
        raise ValueError(
            f"sampler: {model} has no gibbs(key, x, z), without which the integers in its latent "
            "cannot be sampled. Add it, or sum the integers out of the likelihood."
        )
