"""Whether latents that a model simulates explain an observation far better than where its chains
went.

Chains begin at draws from the prior. A basin that has little of the prior, and nearly all of the
posterior where data lie that the model hardly expects, may be entered by no chain at all, and
chains that all sit in the wrong basin agree. So ``DRAWS`` draws from the prior are made for every
observation, one of them chosen with probabilities proportional to its likelihood, which is nearly a
draw from the posterior where latents are few, and its density is compared with that of the chains.
Where it is higher by more than ``MARGIN``, and half of the latent's dimension, by which the top of
a normal density exceeds its mean, the observation is run again from both places. The ``WORST``
observations, where chains have the lowest density, get ``LOOKS`` times as many draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._keys import elsewhere_keys
from ..models.base import Simulates
from ..models.simulation import of_length
from .batches import Groups, Run, Setup, Work, in_batches
from .chains import Plan

DRAWS = 256
MARGIN = 4.0
WORST, LOOKS = 16, 16


class Found(NamedTuple):
    """One simulated latent for each of n observations."""

    level: Any  # (n,), log p(x, z)
    point: Any  # (n, Dz), unconstrained and flattened


def better_points(
    model: Any, every: list[Run], groups: Groups, ids: list[np.ndarray], seed: int, setup: Setup
) -> tuple[np.ndarray, ...]:
    """For each group (n, Dz): a simulated latent where it is far better than the chains, else NaN;
    without columns where nothing can be simulated.
    """
    if model.any_length or not isinstance(model, Simulates):
        return tuple(np.zeros((len(own), 0)) for own in ids)
    plan, label = Plan(1, 0, 1, DRAWS, 0), "simulated latents"
    work = Work(simulated, (model,), plan, Found._make, Found(0, 0), label)
    looks = [looked_at(run.level) for run in every]
    given = []
    for (points, _), own, rows in zip(groups, ids, looks, strict=True):
        keys = [elsewhere_keys(seed, own[part], look) for look, part in enumerate(rows)]
        every_row = np.concatenate(rows)
        given.append(
            (jax.tree.map(lambda leaf, k=every_row: leaf[k], points), np.concatenate(keys))
        )
    # cheaper to repeat than to keep
    found = in_batches(work, given, setup._replace(checkpoint=None))
    return tuple(map(better_of, found, every, map(np.concatenate, looks)))


def looked_at(level: np.ndarray) -> list[np.ndarray]:
    """The rows that draws are made for at each look: all, then the worst again and again."""
    worst = np.argsort(level, kind="stable")[:WORST]
    return [np.arange(len(level)), *[worst] * (LOOKS - 1)]


def better_of(found: Found, run: Run, rows: np.ndarray) -> np.ndarray:
    """The best of what was found for each row, where it is far better than the chains."""
    order = np.argsort(found.level, kind="stable")  # the best of a row comes last, and stays
    level, point = np.empty(len(run.level)), np.empty((len(run.level), found.point.shape[1]))
    level[rows[order]], point[rows[order]] = found.level[order], found.point[order]
    with np.errstate(invalid="ignore"):  # where neither can explain the observation
        excess = level - run.level - point.shape[1] / 2
    return np.where(excess[:, None] > MARGIN, point, np.nan)


def simulated(model: Any, points, keys, plan: Plan):
    """Of each observation of a batch: log p(x, z) and the unconstrained latent of the draw that was
    chosen.
    """

    def observation(point, key):
        source = of_length(model, point.x.shape[0])

        def draw(key):
            u = model.unconstrain(source.sample(key)[0])
            return u, model.log_likelihood(point.x, model.constrain(u))

        key_choice, key_draws = jax.random.split(key)
        latents, likelihoods = jax.vmap(draw)(jax.random.split(key_draws, plan.batch_draws))
        usable = jnp.where(jnp.isfinite(likelihoods), likelihoods, -jnp.inf)
        chosen = jnp.argmax(usable + jax.random.gumbel(key_choice, usable.shape))
        u = jax.tree.map(lambda leaf: leaf[chosen], latents)
        flat = [jnp.ravel(leaf).astype(jnp.float64) for leaf in jax.tree.leaves(u)]
        return Found(model.log_prior(model.constrain(u)) + usable[chosen], jnp.concatenate(flat))

    return jax.vmap(observation)(points, keys)
