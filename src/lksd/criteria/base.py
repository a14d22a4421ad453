"""What every criterion is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, ndtri

from ..models.base import LatentVariableModel

ROUNDING = 1e-15  # of a loss, at least
BISECTIONS = 50
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
    positions of an observation, also its parts, and the shapes of the tails of what they average.
    """

    values: Float[np.ndarray, " n"]
    errors: Float[np.ndarray, " n"]
    positions: Float[np.ndarray, "n D"] | None = None
    tails: Float[np.ndarray, "n D"] | None = None


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

    Few batches of a skewed quantity may miss its tail, and their variance is then far too small. So
    the variance of an observation is what one half of the batches, every second one, is expected to
    have given the other half: what all observations together say (empirical Bayes from replicates).
    """
    m = batches.shape[1]
    if m < 4:
        return np.full(len(batches), np.nan)
    halves = np.stack([batches[:, ::2].var(1, ddof=1), batches[:, 1::2].var(1, ddof=1)])
    variance = expected_given(halves.ravel(), halves[::-1].ravel()).reshape(halves.shape).mean(0)
    return np.hypot(np.sqrt(variance / m), ROUNDING * np.abs(batches).max(1))


def expected_given(
    own: Float[np.ndarray, " k"], other: Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """The expectation exp(a + b c) of each of the ``own`` variances, c being the normal score of
    the rank of the ``other``; from b = 0, where others say nothing, upwards.

    Gamma regression, in which ratios of variances to their expectations average to one however
    skewed they are. The logarithm of the mean ratio is convex in b, so its slope is bisected; b has
    a normal prior of the weight of one variance, which bounds it where most variances are zero.
    """
    from scipy.stats import rankdata  # which takes long to import

    if not own.any():
        return own
    c = ndtri((rankdata(other) - 0.5) / len(other))

    def logs(b: float) -> np.ndarray:
        return np.log(own, out=np.full(len(own), -np.inf), where=own > 0) - b * c

    def falls(b: float) -> bool:
        return bool(len(c) * np.average(c, weights=np.exp(logs(b) - logs(b).max())) > b)

    low, high = 0.0, len(c) * float(c.max(initial=0.0))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if falls(middle) else (low, middle)
    return np.exp(logsumexp(logs(low)) - np.log(len(c)) + low * c)


def by_chain(batch_means: Float[np.ndarray, "n C B ..."]) -> Float[np.ndarray, "n C ..."]:
    """The means of each chain; those of the two halves of one, where there is one alone."""
    chains, batches = batch_means.shape[1:3]
    if chains > 1 or batches < 2:
        return batch_means.mean(2)
    half = batches // 2
    parts = batch_means[:, 0, :half].mean(1), batch_means[:, 0, half:].mean(1)
    return np.stack(parts, 1)
