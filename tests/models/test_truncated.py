"""Truncated PPCA and the exchange algorithm against quadrature."""

import jax
import numpy as np
import oracles
import pytest
from scipy import stats

import lksd
from lksd.models import TruncatedPPCA
from lksd.models.base import float64_leaves
from lksd.samplers import HMC, Exchange

MODEL = TruncatedPPCA(np.array([[1.5], [0.7]]), 0.8, 2.5, 1.5)
X = np.array([[0.2, 0.1], [1.2, 0.9], [-1.4, 0.6], [1.9, -0.5], [0.1, -1.9], [2.2, 0.8]])


def test_scores_by_exchange():
    found = lksd.estimate_scores(MODEL, np.repeat(X, 8, 0), warmup=500, draws=8_000)
    error = np.sqrt(np.mean(found.mcse.reshape(6, 8, 2) ** 2, 1) / 8)
    exact = oracles.truncated_score(MODEL, X)
    z = (found.score.reshape(6, 8, 2).mean(1) - exact) / error
    assert np.abs(z).max() < 5
    assert found.method.startswith("Exchange")
    wrong = oracles.truncated_score(MODEL, X, normalise=False)  # what a chain that ignores the normaliser finds
    assert np.abs((wrong - exact) / error).max() > 20


def test_samples_lie_in_the_ball_with_the_right_law():
    with jax.enable_x64(True):
        z, x = (np.asarray(part) for part in jax.vmap(float64_leaves(MODEL).sample)(jax.random.split(jax.random.key(0), 4000)))
    assert np.linalg.norm(x, axis=1).max() < 2.5
    assert stats.kstest(z[:, 0], "norm").pvalue > 1e-4
    grid, cumulative = oracles.truncated_first_coordinate(MODEL)
    assert stats.kstest(x[:, 0], lambda point: np.interp(point, grid, cumulative)).pvalue > 1e-4


def test_the_papers_setting_mixes():
    weight = np.random.default_rng(0).random((100, 10))
    model = TruncatedPPCA(weight, 1.0, 50.0, 45.0)
    with jax.enable_x64(True):
        x = np.asarray(jax.vmap(float64_leaves(model).sample)(jax.random.split(jax.random.key(0), 16))[1])
    found = lksd.estimate_scores(model, x, warmup=300, draws=2000)
    assert found.rhat.max() < 1.2
    # so far inside the ball the untruncated model's score is the same
    plain = lksd.estimate_scores(lksd.models.PPCA(weight, 1.0), x).score
    inside = np.linalg.norm(x, axis=1) < 35
    assert inside.sum() > 8
    assert np.abs((found.score - plain) / found.mcse)[inside].max() < 7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TruncatedPPCA(np.ones((2, 1)), 1.0, 1.0, 2.0), "expected 0 <= flat_radius < radius"),
        (lambda: TruncatedPPCA(np.ones((2, 1)), -1.0, 2.0, 1.0), "noise_scale: expected positive"),
        (lambda: lksd.estimate_scores(MODEL, X, sampler=HMC()), "unknown normaliser.*Use Exchange"),
        (lambda: lksd.estimate_scores(MODEL, np.vstack([X, [[3.0, 0.0]]])), "log_likelihood is not finite .* observation 6"),
        (lambda: lksd.estimate_scores(lksd.models.PPCA(np.ones((2, 1)), 1.0), X, exact=False, sampler=Exchange()), "sample_likeli"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
