"""What every criterion is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from ..models.base import LatentVariableModel

PRIOR, ROUNDING = 4, 1e-16
CRITERIA: dict[str, type[Criterion]] = {}  # by their names


class Criterion(eqx.Module):
    """What "fits better" means. A subclass is known by its ``name`` as soon as it is defined."""

    name: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.name:
            CRITERIA[cls.name] = cls

    def __str__(self) -> str:
        return self.name


class Losses(NamedTuple):
    """One loss for each observation, and its Monte Carlo standard error; where it is a sum over the
    positions of an observation, also its parts.
    """

    values: Float[np.ndarray, " n"]
    errors: Float[np.ndarray, " n"]
    positions: Float[np.ndarray, "n D"] | None = None


class Additive(Criterion):
    """A criterion that adds up: the mean of a loss at each observation, smaller where the model
    fits better.

    A subclass has a ``name`` and says what is averaged over posterior draws: ``observe(model, x, z,
    key, prepared)`` for one observation x and one draw z of its latent, written in ``jax.numpy``,
    returns an array of one axis; a random ``key``, and what ``prepare`` has computed once for the
    observation, are there where they are needed.
    ``evaluate`` makes losses of these averages; by default the loss is their first entry. A model
    for which ``exact(model, x)`` is not None needs no draws.
    """

    @property
    def basis(self) -> str:
        """What losses must have in common to be compared: coordinates, metric, or form."""
        return ""

    def obstacle(self, model: LatentVariableModel, exact: bool | None) -> str | None:
        """Why the model has no such loss, in words that follow its name; None where it has one."""
        return None

    def locate(self, domain: Any, x: np.ndarray, models: Sequence[Any], source: Any) -> Additive:
        """The criterion with what it takes from the data, the same for all models of a call; the
        observations x are those of the domain, ``source`` those from which scales are taken.
        """
        return self

    def reorder(self, order: Any) -> Additive:
        """The criterion for observations with their columns in another order."""
        return self

    def targets(self, model: Any, x: np.ndarray) -> np.ndarray | None:
        """The replacements (n, D, M) whose ratios of probabilities are wanted, of integers."""
        return None

    def exact(self, model: Any, x: Any) -> Any:
        """The loss at one observation in closed form; None where there is none."""
        return None

    def prepare(self, model: Any, x: Any, z: Any) -> Any:
        """What does not change with the draws of one observation, computed once for all of them."""
        return None

    def observe(self, model: Any, x: Any, z: Any, key: Any, prepared: Any) -> Any:
        """What is averaged over the draws; None where scores or ratios are enough."""
        return None

    def evaluate(
        self,
        x: np.ndarray,
        means: Float[np.ndarray, "n C B ..."],
        observed: Float[np.ndarray, "n C B k"],
    ) -> Losses:
        """The losses from batch means over C chains: of the scores or ratios, and of what was
        observed.
        """
        return mean_losses(observed[..., 0])


def mean_losses(batch_means: Float[np.ndarray, "n C B"]) -> Losses:
    """Plain means, with the standard errors that the spread of the batches gives."""
    flat = batch_means.reshape(len(batch_means), -1)
    return Losses(flat.mean(1), spread_error(flat))


def spread_error(batches: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
    """The standard error of the mean of m batches, for each observation; NaN for too few of them.

    Variances are moderated, as in Smyth (2004): drawn towards the typical one of all observations,
    with the weight of ``PRIOR`` batches, since few batches of a skewed quantity may miss its tail.
    They are larger than the unbiased estimates by (m - 1) / (m - 3), so that squared ratios of
    errors to them, which have Student's distribution, are one on average.
    """
    m = batches.shape[1]
    if m < 4:
        return np.full(len(batches), np.nan)
    variance = batches.var(1, ddof=1)
    known = variance[variance > ROUNDING * variance.max(initial=0.0)]
    if len(known):
        typical = np.exp(np.mean(np.log(known)))
        variance = ((m - 1) * variance + PRIOR * typical) / (m - 1 + PRIOR)
    return np.sqrt(variance * (m - 1) / (m - 3) / m)


def by_chain(batch_means: Float[np.ndarray, "n C B ..."]) -> Float[np.ndarray, "n C ..."]:
    """The means of each chain; those of the two halves of one, where there is one alone."""
    chains, batches = batch_means.shape[1:3]
    if chains > 1 or batches < 2:
        return batch_means.mean(2)
    half = batches // 2
    parts = batch_means[:, 0, :half].mean(1), batch_means[:, 0, half:].mean(1)
    return np.stack(parts, 1)
