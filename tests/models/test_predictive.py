"""Mixtures over draws of global parameters."""

import jax.numpy as jnp
import ksd
import numpy as np
import pytest

import lksd
from lksd.models import PPCA, LatentVariableModel, PosteriorPredictive

RNG = np.random.default_rng(0)
WEIGHTS = np.array([[1.0], [0.5], [-0.7]]) + 0.15 * RNG.normal(size=(12, 3, 1))
SCALES = np.linspace(0.6, 1.1, 12)
X = RNG.normal(size=(16, 3))


def mixture_score(x):
    """By each draw's Gaussian law."""
    total, gradient = 0.0, 0.0
    for weight, scale in zip(WEIGHTS, SCALES, strict=True):
        precision = np.linalg.inv(weight @ weight.T + scale**2 * np.eye(3))
        density = np.sqrt(np.linalg.det(precision)) * np.exp(-x @ precision @ x / 2)
        total, gradient = total + density, gradient - density * precision @ x
    return gradient / total


EXACT = np.array([mixture_score(x) for x in X])


@pytest.mark.parametrize(
    "model", [PPCA, PPCA(WEIGHTS[0], 1.0), lambda weight, noise_scale: PPCA(weight, noise_scale)]
)
def test_exact_score_of_the_mixture(model):
    predictive = PosteriorPredictive(model, {"weight": WEIGHTS, "noise_scale": SCALES})
    np.testing.assert_allclose(
        lksd.estimate_scores(predictive, X).score, EXACT, rtol=1e-10, atol=1e-12
    )


def test_sampled_scores_of_the_mixture():
    predictive = PosteriorPredictive(PPCA, {"weight": WEIGHTS, "noise_scale": SCALES})
    found = lksd.estimate_scores(predictive, X, exact=False, draws=8000, control_variates="none")
    assert found.method.startswith("WithinGibbs(HMC)")
    z = (found.score - EXACT) / found.mcse
    assert np.abs(z).max() < 5
    assert 0.6 < z.std() < 1.5


@pytest.mark.slow
def test_control_variates_still_help_and_stay_right():
    predictive = PosteriorPredictive(PPCA, {"weight": WEIGHTS, "noise_scale": SCALES})
    plain, found = (
        lksd.estimate_scores(predictive, X, exact=False, control_variates=c, draws=2000)
        for c in ("none", "auto")
    )
    assert np.median(found.mcse) < 0.7 * np.median(plain.mcse)
    assert np.abs((found.score - EXACT) / found.mcse).max() < 6


def test_the_hypothesis_is_named():
    predictive = PosteriorPredictive(PPCA(WEIGHTS[0], 1.0), {"weight": WEIGHTS})
    result = ksd.compare(X, predictive, PPCA(WEIGHTS[0], 1.0))
    assert any("mixture of the 12 draws" in note for note in result.notes)


def test_integers_inside_the_model_move_too():
    """A mixture over draws of a mixture's means, whose own latent is the component."""
    model = lksd.models.GaussianMixture(
        [0.3, 0.7], np.zeros((2, 2)), np.array([np.eye(2), 2 * np.eye(2)])
    )
    predictive = PosteriorPredictive(
        model, {"means": np.random.default_rng(1).normal(size=(5, 2, 2))}
    )
    x = X[:8, :2]
    exact = lksd.estimate_scores(predictive, x)
    assert exact.method == "exact marginal score"
    found = lksd.estimate_scores(predictive, x, exact=False, draws=4000, warmup=100)
    assert np.abs((found.score - exact.score) / found.mcse).max() < 5


class Scaled(LatentVariableModel):
    """A positive latent: x | z ~ N(0, z I), z ~ Gamma(3, 1)."""

    dim: int = 2
    shape: float = 3.0

    def log_prior(self, z):
        return (self.shape - 1) * jnp.log(z) - z

    def log_likelihood(self, x, z):
        return -jnp.sum(x**2) / (2 * z) - self.dim * jnp.log(z) / 2

    def constrain(self, u):
        return jnp.exp(u)

    def unconstrain(self, z):
        return jnp.log(z)

    def initial(self, key, x):
        return jnp.ones(())


def scaled_score(x, shape=3.0):
    z = np.linspace(1e-4, 60, 400_001)
    log_weights = (shape - 1) * np.log(z) - z - x @ x / (2 * z) - len(x) / 2 * np.log(z)
    weights = np.exp(log_weights - log_weights.max())
    return -x * (weights / z).sum() / weights.sum()


def test_a_constrained_latent():
    sampler = lksd.samplers.HMC(step_size=0.5, inverse_mass_matrix=[0.3])
    found = lksd.estimate_scores(Scaled(), X[:, :2], sampler=sampler, draws=4000)
    exact = np.array([scaled_score(x) for x in X[:, :2]])
    assert np.abs((found.score - exact) / found.mcse).max() < 5
    assert np.abs(found.score - exact).max() < 0.05


class Widened(Scaled):
    def constrain(self, u):
        return jnp.stack([jnp.exp(u), jnp.exp(u)])

    def log_prior(self, z):
        return -jnp.sum(z)

    def log_likelihood(self, x, z):
        return -jnp.sum(x**2) / (2 * z[0])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: PosteriorPredictive(PPCA, {}), ValueError, "draws: expected a dict of arrays"),
        (
            lambda: PosteriorPredictive(PPCA, {"weight": WEIGHTS, "noise_scale": SCALES[:3]}),
            ValueError,
            "same number of draws",
        ),
        (
            lambda: PosteriorPredictive(PPCA, {"weight": WEIGHTS, "noise_scale": -SCALES}),
            ValueError,
            "number 0 makes no model",
        ),
        (
            lambda: PosteriorPredictive(PPCA, {"weights": WEIGHTS}),
            ValueError,
            "number 0 makes no model",
        ),
        (
            lambda: PosteriorPredictive(lambda a: Scaled(dim=int(10 * a)), {"a": SCALES}),
            TypeError,
            "field that differs",
        ),
        (
            lambda: PosteriorPredictive(
                lksd.models.DirichletProcessMixture(0.0, 1.0, 1.0, 1.0, X),
                {"concentration": SCALES},
            ),
            TypeError,
            "every term that depends on its parameters",
        ),
        (
            lambda: PosteriorPredictive(lambda a: a, {"a": SCALES}),
            TypeError,
            "expected a LatentVariableModel",
        ),
        (
            lambda: lksd.estimate_scores(
                Widened(), X[:, :2], sampler=lksd.samplers.HMC(0.5, [0.3])
            ),
            ValueError,
            "constrain: expected as many numbers out as in; got 1 to 2",
        ),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
