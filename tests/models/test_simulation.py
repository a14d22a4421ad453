"""Data simulated by a user, who knows nothing of precision: no warning, one observation or many at
once.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lksd import models

W = np.random.default_rng(0).normal(size=(3, 2))
MODELS = {
    "PPCA": models.PPCA(W, 0.5),
    "factor analysis": models.FactorAnalysis(W, [0.5, 1.0, 2.0]),
    "mixture": models.GaussianMixture([0.3, 0.7], W.T, np.stack([np.eye(3)] * 2)),
    "truncated PPCA": models.TruncatedPPCA(W, 0.5, 4.0, 3.0),
    "Dirichlet process mixture": models.DirichletProcessMixture(np.zeros(3), 1.0, 1.0, 1.0, W.T),
    "posterior predictive": models.PosteriorPredictive(
        models.PPCA(W, 0.5), {"weight": np.stack([W, 2 * W])}
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_observation_and_many(name):
    model, keys = MODELS[name], jax.random.split(jax.random.key(0), 5)
    _, x = model.sample(keys[0])
    assert x.dtype == jnp.float64
    many = jax.jit(jax.vmap(lambda key: model.sample(key)[1]))(keys)
    assert many.shape == (5, 3)
    assert np.isfinite(many).all()
