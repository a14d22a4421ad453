"""The Dirichlet process mixture against the sum over all partitions of its training data."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from scipy import stats

import lksd
from lksd.models import DirichletProcessMixture
from lksd.models.base import float64_leaves

RNG = np.random.default_rng(0)


def model(count=5, dim=10, base_variance=1.0, likelihood_variance=2.0, concentration=1.0):
    train = np.sqrt(3) * np.random.default_rng(count).normal(size=(count, dim))
    return DirichletProcessMixture(
        np.ones(dim) / np.sqrt(dim), base_variance, likelihood_variance, concentration, train
    )


@pytest.mark.parametrize(
    "given",
    [model(), model(1, 3), model(4, 2, np.array([1.0, 3.0]), np.array([0.5, 2.0]), 0.3)],
    ids=["the paper's", "one point", "a variance for each coordinate"],
)
def test_exact_score_by_all_partitions(given):
    x = np.sqrt(3) * RNG.normal(size=(20, given.train.shape[1]))
    log_density, score = oracles.dirichlet_predictive(given, x)
    found = lksd.estimate_scores(given, x)
    assert found.method == "exact marginal score"
    np.testing.assert_allclose(found.score, score, rtol=1e-10, atol=1e-12)
    with jax.enable_x64(True):
        moved = float64_leaves(given)
        np.testing.assert_allclose(
            [moved.log_marginal(jnp.asarray(point)) for point in x], log_density, rtol=1e-10
        )


def test_gibbs_scores_at_the_papers_lengths():
    given = model()
    x = np.sqrt(3) * RNG.normal(size=(60, 10))
    _, score = oracles.dirichlet_predictive(given, x)
    found = lksd.estimate_scores(given, x, exact=False, warmup=1000, draws=500)
    assert np.sqrt(np.mean((found.score - score) ** 2)) < 0.02
    z = (found.score - score) / found.mcse
    assert 0.8 < z.std() < 1.3
    assert found.method.startswith("Gibbs")


def test_sweeps_leave_the_partitions_law():
    """Many short chains of three points: the five partitions come up as often as their posterior
    says.
    """
    given = model(3, 2)
    expected = dict(oracles.partition_posterior(given))
    with jax.enable_x64(True):
        moved = float64_leaves(given)
        z, _ = jax.vmap(moved.sample)(jax.random.split(jax.random.key(0), 4000))
    names = [
        tuple(tuple(row == label) for label in dict.fromkeys(row.tolist())) for row in np.asarray(z)
    ]
    observed = [sum(name == other for name in names) for other in expected]
    assert sum(observed) == 4000
    assert stats.chisquare(observed, 4000 * np.array(list(expected.values()))).pvalue > 1e-4


def test_samples_have_the_predictive_law():
    given = model(4, 1)
    with jax.enable_x64(True):
        _, x = jax.vmap(float64_leaves(given).sample)(jax.random.split(jax.random.key(1), 4000))
    grid = np.linspace(-15, 15, 3001)
    density = np.exp(oracles.dirichlet_predictive(given, grid[:, None])[0])
    cumulative = np.cumsum(density) * (grid[1] - grid[0])
    assert cumulative[-1] == pytest.approx(1, abs=1e-6)
    assert (
        stats.kstest(np.asarray(x)[:, 0], lambda point: np.interp(point, grid, cumulative)).pvalue
        > 1e-4
    )


def test_a_larger_training_set_has_no_exact_score():
    given = model(9, 2)
    with pytest.raises(ValueError, match="has neither log_marginal"):
        lksd.estimate_scores(given, RNG.normal(size=(5, 2)), exact=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": np.ones(3)}, r"train: expected an \(n_train, D\) array; got shape \(3,\)"),
        ({"train": np.full((3, 2), np.nan)}, "train: expected finite"),
        ({"base_variance": -1.0}, "base_variance: expected positive"),
        ({"concentration": 0.0}, "concentration: expected positive"),
        ({"base_mean": np.ones(3)}, r"base_mean: expected a number or shape \(2,\)"),
    ],
)
def test_bad_parameters(change, message):
    given = {
        "base_mean": 0.0,
        "base_variance": 1.0,
        "likelihood_variance": 1.0,
        "concentration": 1.0,
        "train": np.ones((3, 2)),
    }
    with pytest.raises(ValueError, match=message):
        DirichletProcessMixture(**(given | change))
