"""Basins that no chain enters: seen where simulated latents explain an observation better than its
chains do; scores against quadrature.
"""

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pytest

import lksd
from lksd.models import PPCA, LatentVariableModel


class RareBasin(LatentVariableModel):
    """z near 3, seldom near -3, and nothing between that a chain could cross."""

    weight: float  # of the basin at -3
    slope: float = 1.0  # x | z ~ N(slope z, 1)

    def log_prior(self, z):
        return jnp.logaddexp(
            jnp.log(1 - self.weight) - 50 * (z[0] - 3) ** 2,
            jnp.log(self.weight) - 50 * (z[0] + 3) ** 2,
        )

    def log_likelihood(self, x, z):
        return -jnp.sum((x - self.slope * z) ** 2) / 2

    def sample(self, key):
        key_side, key_z, key_x = jax.random.split(key, 3)
        side = jnp.where(jax.random.uniform(key_side) < self.weight, -3.0, 3.0)
        z = side + jax.random.normal(key_z, (1,)) / 10
        return z, self.slope * z + jax.random.normal(key_x, (1,))


def exact_score(model, x):
    z = np.concatenate([np.linspace(-4, -2, 2_001), np.linspace(2, 4, 2_001)])
    log_density = np.asarray(jax.vmap(lambda one: model.log_prior(one[None]))(z)) - (
        (x - model.slope * z) ** 2 / 2
    )
    weights = np.exp(log_density - log_density.max(1, keepdims=True))
    return (weights * (model.slope * z - x)).sum(1, keepdims=True) / weights.sum(1, keepdims=True)


@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_basin_with_data_but_hardly_any_prior_is_never_an_unqualified_verdict(share, seed):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((80, 1)) < share, -3.0, 3.0) + rng.normal(size=(80, 1))
    model = RareBasin(0.002)
    found = lksd.estimate_scores(model, x, seed=seed)
    off = np.abs(found.score - exact_score(model, x))[:, 0] > 1
    assert off.sum() > 2  # chains at -3 do not leave the basin at 3
    assert not found.converged[off].all()
    answer = ksd.compare(x, found, PPCA(3 * np.ones((1, 1)), 1.0))
    assert not answer.reject
    assert answer.sentence.startswith("Withheld: the chains of ")


@pytest.mark.filterwarnings("error::lksd.LksdWarning")
def test_a_basin_of_a_quarter_per_cent_everywhere_does_no_harm():
    """It may stay unseen (docs/limits.md)."""
    model, x = RareBasin(0.0025, 0.1), 0.3 + np.random.default_rng(0).normal(size=(80, 1))
    found, other = lksd.estimate_scores(model, x), lksd.estimate_scores(PPCA([[1.0]], 1.0), x)
    with_chains, exact = (
        lksd.compare_scores(x, score, other.score, lksd.kernels.IMQ(1.0), alternative="two-sided")
        for score in (found.score, exact_score(model, x))
    )
    assert abs(with_chains.statistic - exact.statistic) < 0.1


@pytest.mark.filterwarnings("error::lksd.LksdWarning")
@pytest.mark.parametrize("width", [1, 6])
def test_nothing_is_run_again_where_chains_are_where_the_posterior_is(width):
    rng = np.random.default_rng(0)
    model = PPCA(rng.normal(size=(8, width)), 0.3)
    x = 3 * rng.normal(size=(100, 8))
    assert lksd.estimate_scores(model, x, exact=False).notes == ()
