"""What a posterior sampler is: ``init`` and ``step`` for one observation and one chain."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax

from ..models import LatentVariableModel


class Info(NamedTuple):
    """How a step went."""

    acceptance: jax.Array
    divergent: jax.Array


class Sampler(eqx.Module):
    """A Markov chain that leaves the posterior of z given one x invariant."""

    @abstractmethod
    def tuned(self, model: LatentVariableModel, key) -> Sampler:
        """The sampler with everything fixed, tuned on data simulated from the model and never on the test data."""

    @abstractmethod
    def init(self, model: LatentVariableModel, x, z) -> Any:
        """The chain's state at z."""

    @abstractmethod
    def step(self, key, state, model: LatentVariableModel, x) -> tuple[Any, Info]:
        """One transition."""

    @abstractmethod
    def position(self, state):
        """z of a state."""


def log_posterior(model: LatentVariableModel, x):
    """log p(x, z) as a function of z."""
    return lambda z: model.log_prior(z) + model.log_likelihood(x, z)
