"""Models against their closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lksd.models import PPCA, FactorAnalysis, GaussianMixture
from lksd.models.base import float64_leaves

RNG = np.random.default_rng(0)
MATRIX, MEAN = RNG.normal(size=(4, 2)), RNG.normal(size=4)
VARIANCES = np.array([0.5, 1.0, 2.0, 0.3])
GAUSSIANS = {
    "ppca": (PPCA(MATRIX, 0.7, MEAN), MATRIX @ MATRIX.T + 0.49 * np.eye(4)),
    "factor analysis": (
        FactorAnalysis(MATRIX, VARIANCES, MEAN),
        MATRIX @ MATRIX.T + np.diag(VARIANCES),
    ),
}


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_score_and_posterior(name):
    model, covariance = GAUSSIANS[name]
    x = RNG.normal(size=4)
    joint = np.block([[np.eye(2), MATRIX.T], [MATRIX, covariance]])
    with jax.enable_x64(True):
        model = float64_leaves(model)
        np.testing.assert_allclose(
            model.marginal_score(jnp.asarray(x)), -np.linalg.solve(covariance, x - MEAN), rtol=1e-10
        )
        assert float(model.log_marginal(jnp.asarray(x))) == pytest.approx(
            stats.multivariate_normal(MEAN, covariance).logpdf(x), rel=1e-10
        )
        mean, precision = model.posterior(jnp.asarray(x))
        draws = jax.vmap(lambda key: model.sample_posterior(key, jnp.asarray(x)))(
            jax.random.split(jax.random.key(0), 4000)
        )
    gain = joint[:2, 2:] @ np.linalg.inv(covariance)
    np.testing.assert_allclose(mean, gain @ (x - MEAN), rtol=1e-10)
    posterior = np.eye(2) - gain @ MATRIX
    np.testing.assert_allclose(np.linalg.inv(precision), posterior, rtol=1e-8)
    z = np.linalg.solve(np.linalg.cholesky(posterior), (np.asarray(draws) - np.asarray(mean)).T)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_samples(name):
    model, covariance = GAUSSIANS[name]
    with jax.enable_x64(True):
        model = float64_leaves(model)
        _, x = jax.vmap(model.sample)(jax.random.split(jax.random.key(1), 4000))
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (np.asarray(x) - MEAN).T)
    assert stats.kstest(whitened.ravel(), "norm").pvalue > 1e-4


def test_mixture():
    weights, means = np.array([0.2, 0.5, 0.3]), RNG.normal(size=(3, 2)) * 2
    roots = RNG.normal(size=(3, 2, 2))
    covariances = roots @ np.swapaxes(roots, 1, 2) + 0.3 * np.eye(2)
    model = GaussianMixture(weights, means, covariances)

    def log_density(x):
        return np.log(
            sum(
                w * stats.multivariate_normal(m, c).pdf(x)
                for w, m, c in zip(weights, means, covariances, strict=True)
            )
        )

    x = RNG.normal(size=2)
    step = 1e-5
    numeric = [
        (log_density(x + step * e) - log_density(x - step * e)) / (2 * step) for e in np.eye(2)
    ]
    responsibilities = np.array(
        [
            w * stats.multivariate_normal(m, c).pdf(x)
            for w, m, c in zip(weights, means, covariances, strict=True)
        ]
    )
    with jax.enable_x64(True):
        model = float64_leaves(model)
        np.testing.assert_allclose(
            jax.grad(model.log_marginal)(jnp.asarray(x)), numeric, rtol=1e-7, atol=1e-8
        )
        assert float(model.log_marginal(jnp.asarray(x))) == pytest.approx(log_density(x), rel=1e-10)
        z = jax.vmap(lambda key: model.sample_posterior(key, jnp.asarray(x)))(
            jax.random.split(jax.random.key(0), 3000)
        )
    observed = np.bincount(np.asarray(z), minlength=3)
    assert stats.chisquare(observed, 3000 * responsibilities / responsibilities.sum()).pvalue > 1e-4


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PPCA(np.ones(3), 1.0), r"weight: expected a \(D, Dz\) matrix; got shape \(3,\)"),
        (lambda: PPCA(np.ones((3, 1)), 0.0), "noise_scale: expected positive"),
        (
            lambda: PPCA(np.ones((3, 1)), 1.0, np.ones(2)),
            r"mean: expected a number or shape \(3,\)",
        ),
        (lambda: PPCA(np.full((3, 1), np.nan), 1.0), "weight: expected finite"),
        (
            lambda: FactorAnalysis(np.ones((3, 1)), np.ones(2)),
            r"noise_variance: expected positive numbers of shape \(3,\)",
        ),
        (
            lambda: GaussianMixture([0.5, 0.5], np.ones((2, 1)), np.ones((2, 1))),
            "GaussianMixture: expected weights",
        ),
        (
            lambda: GaussianMixture([0.5, 0.6], np.ones((2, 1)), np.ones((2, 1, 1))),
            "weights: expected positive numbers that sum to 1",
        ),
        (
            lambda: GaussianMixture([0.5, 0.5], np.ones((2, 1)), -np.ones((2, 1, 1))),
            "number 0 is not",
        ),
    ],
)
def test_bad_parameters(build, message):
    with pytest.raises(ValueError, match=message):
        build()
