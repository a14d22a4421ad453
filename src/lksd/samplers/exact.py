"""Independent draws from a posterior in closed form."""

from __future__ import annotations

import jax.numpy as jnp

from ..models import LatentVariableModel
from ..models.base import HasPosterior
from .base import Info, Sampler


class Exact(Sampler):
    """Independent draws by the model's ``sample_posterior``."""

    def tuned(self, model: LatentVariableModel, key, length: int) -> Exact:
        if not isinstance(model, HasPosterior):
            raise ValueError(f"sampler: {model} has no sample_posterior, so exact draws are not to be had. Use HMC() or NUTS().")
        return self

    def init(self, model, x, z):
        return z

    def step(self, key, state, model, x):
        return model.unconstrain(model.sample_posterior(key, x)), Info(jnp.ones(()), jnp.zeros((), bool))

    def position(self, state):
        return state
