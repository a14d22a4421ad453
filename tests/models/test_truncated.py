"""Truncated PPCA against quadrature: its normaliser, its scores by HMC, and the exchange algorithm
without the normaliser.
"""

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import oracles
import pytest
from scipy import stats

import lksd
from lksd.models import LatentVariableModel, TruncatedPPCA
from lksd.models.base import float64_leaves
from lksd.models.truncated import ball_mass
from lksd.samplers import HMC, Exchange

MODEL = TruncatedPPCA(np.array([[1.5], [0.7]]), 0.8, 2.5, 1.5)
X = np.array([[0.2, 0.1], [1.2, 0.9], [-1.4, 0.6], [1.9, -0.5], [0.1, -1.9], [2.2, 0.8]])
BALLS = [
    (100, 45.0, 50.0),
    (2, 1.5, 2.5),
    (1, 1.0, 1.01),
    (3, 0.0, 20.0),
    (7, 0.5, 4.0),
    (200, 10.0, 16.0),
    (10, 0.001, 0.01),
]


class Unnormalised(LatentVariableModel):
    """The same model without its normaliser, as a user who does not know it would write it."""

    model: TruncatedPPCA

    normalised = False

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return self.model.log_bump(x) - jnp.sum((x - self.model.weight @ z) ** 2) / (
            2 * self.model.noise_scale**2
        )

    def initial(self, key, x):
        return self.model.initial(key, x)

    def sample(self, key):
        return self.model.sample(key)

    def sample_likelihood(self, key, z):
        return self.model.sample_likelihood(key, z)


def masses(dim, flat_radius, radius, lengths):
    with jax.enable_x64(True):
        return np.asarray(
            jax.jit(jax.vmap(ball_mass(dim, flat_radius, radius)))(jnp.asarray(lengths) ** 2)
        )


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_mass_of_a_ball(ball):
    """At the centre, about the edge and far outside, against adaptive quadrature of the noncentral
    chi-squared density.
    """
    dim, _, radius = ball
    edge = np.sqrt(max(radius**2 - dim, 0.0))
    lengths = np.concatenate(
        [
            [0.0, 1e-9, 0.3],
            edge + np.array([0.01, 0.5, 1.0, 3.0, 7.0]),
            edge * np.array([0.5, 0.9, 1.1]),
        ]
    )
    exact = [oracles.log_ball_mass(length, *ball) for length in lengths]
    np.testing.assert_allclose(masses(*ball, lengths), exact, rtol=1e-10, atol=1e-10)


def test_mass_far_from_the_ball():
    """In three dimensions the density of the length is elementary, so that it can be followed as
    far as one likes.
    """
    lengths = np.array([25.0, 40.0, 100.0, 1e3, 3e3])
    exact = [oracles.log_ball_mass_in_space(length, 10.0, 20.0) for length in lengths]
    np.testing.assert_allclose(masses(3, 10.0, 20.0, lengths), exact, rtol=1e-11, atol=1e-10)
    # past the table, where the leading term is all that counts
    beyond = masses(3, 10.0, 20.0, np.array([2e4]))
    np.testing.assert_allclose(beyond, oracles.log_ball_mass_in_space(2e4, 10.0, 20.0), rtol=1e-5)


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_slope_of_the_mass(ball):
    """dZ_D / d(a^2 / 2) = Z_(D+2) - Z_D: a noncentral chi-squared law is a Poisson mixture of
    central ones.
    """
    dim, *radii = ball
    lengths = np.linspace(0.0, 2 * radii[1] + 5, 200)
    expected = np.expm1(masses(dim + 2, *radii, lengths) - masses(*ball, lengths)) / 2
    with jax.enable_x64(True):
        slope = jax.jit(jax.vmap(jax.grad(ball_mass(*ball))))(jnp.asarray(lengths) ** 2)
    np.testing.assert_allclose(slope, expected, rtol=1e-7, atol=1e-8)


def test_scores_by_the_default_sampler():
    check_scores(
        lksd.estimate_scores(MODEL, np.repeat(X, 8, 0), warmup=200, draws=1_000), X, "HMC", 40
    )


@pytest.mark.parametrize(
    "model",
    [Unnormalised(MODEL), pytest.param(MODEL, marks=pytest.mark.slow)],
    ids=["unknown", "known but not used"],
)
def test_scores_by_exchange(model):
    """Not so near the edge that the rejection sampler gives up."""
    sampler = None if isinstance(model, Unnormalised) else Exchange()
    x = X[:4]
    check_scores(
        lksd.estimate_scores(model, np.repeat(x, 8, 0), sampler=sampler, warmup=200, draws=2_000),
        x,
        "Exchange",
        10,
    )


def check_scores(found, x, sampler, power):
    """Within five standard errors of the exact scores, and ``power`` of them from those that ignore
    the normaliser.
    """
    error = np.sqrt(np.mean(found.mcse.reshape(-1, 8, 2) ** 2, 1) / 8)
    exact, wrong = (
        oracles.truncated_score(MODEL, x),
        oracles.truncated_score(MODEL, x, normalise=False),
    )
    assert np.abs((found.score.reshape(-1, 8, 2).mean(1) - exact) / error).max() < 5
    assert np.abs((wrong - exact) / error).max() > power
    assert found.method.startswith(sampler)


def test_samples_lie_in_the_ball_with_the_right_law():
    with jax.enable_x64(True):
        sample = jax.jit(jax.vmap(float64_leaves(MODEL).sample))
        z, x = (np.asarray(part) for part in sample(jax.random.split(jax.random.key(0), 4000)))
    assert np.linalg.norm(x, axis=1).max() < 2.5
    assert stats.kstest(z[:, 0], "norm").pvalue > 1e-4
    grid, cumulative = oracles.truncated_first_coordinate(MODEL)
    assert stats.kstest(x[:, 0], lambda point: np.interp(point, grid, cumulative)).pvalue > 1e-4


@pytest.mark.slow
def test_the_papers_setting():
    weight = np.random.default_rng(0).random((100, 10))
    model = TruncatedPPCA(weight, 1.0, 50.0, 45.0)
    with jax.enable_x64(True):
        x = np.asarray(
            jax.jit(jax.vmap(float64_leaves(model).sample))(
                jax.random.split(jax.random.key(0), 16)
            )[1]
        )
    found = lksd.estimate_scores(model, x)
    assert found.rhat.max() < 1.1
    # so far inside the ball the untruncated model's score is the same
    plain = lksd.estimate_scores(lksd.models.PPCA(weight, 1.0), x).score
    inside = np.linalg.norm(x, axis=1) < 35
    assert inside.sum() > 8
    np.testing.assert_allclose(found.score[inside], plain[inside], atol=1e-6)


def test_the_papers_sampler_is_the_exchange_algorithm():
    result = ksd.compare(X, MODEL, MODEL, preset="paper", warmup=2, draws=10)
    assert result.diagnostics.method_p.startswith(
        "Exchange, 1 chain of 10 draws after 2, plain means"
    )


def test_draws_of_parameters_have_their_own_normalisers():
    scales = np.array([0.5, 0.8])
    both = lksd.models.PosteriorPredictive(MODEL, {"noise_scale": scales})
    for index, scale in enumerate(scales):
        alone = TruncatedPPCA(MODEL.weight, scale, 2.5, 1.5)
        with jax.enable_x64(True):
            z, x = jnp.array([1.2]), jnp.array([0.4, 0.1])
            assert both.log_likelihood(x, (index, z)) == pytest.approx(
                float(alone.log_likelihood(x, z)), abs=1e-12
            )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: TruncatedPPCA(np.ones((2, 1)), 1.0, 1.0, 2.0),
            "expected 0 <= flat_radius < radius",
        ),
        (lambda: TruncatedPPCA(np.ones((2, 1)), -1.0, 2.0, 1.0), "noise_scale: expected positive"),
        (
            lambda: lksd.estimate_scores(Unnormalised(MODEL), X, sampler=HMC()),
            "unknown normaliser.*Use Exchange",
        ),
        (
            lambda: lksd.estimate_scores(MODEL, np.vstack([X, [[3.0, 0.0]]])),
            "log_likelihood is not finite .* observation 6",
        ),
        (
            lambda: lksd.estimate_scores(
                lksd.models.PPCA(np.ones((2, 1)), 1.0), X, exact=False, sampler=Exchange()
            ),
            "sample_likeli",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
