"""PyMC models against native ones and hand-written densities."""

import jax
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import lksd
from lksd.adapters import from_pymc
from lksd.models import PPCA, PosteriorPredictive

RNG = np.random.default_rng(0)
D, K = 4, 2
WEIGHT = RNG.normal(size=(D, K))
X = RNG.normal(size=(16, D))
EXACT = lksd.estimate_scores(PPCA(WEIGHT, 0.5, mean=1.0), X).score
PARAMS = {"weight": WEIGHT, "noise": 0.5}


def ppca(row):
    """As people write it: for the rows that it is given."""
    with pm.Model() as model:
        weight = pm.Normal("weight", shape=(D, K))
        noise = pm.HalfNormal("noise")
        z = pm.Normal("z", shape=(*row.shape[:-1], K))
        centre = pm.Deterministic("centre", z @ weight.T + 1.0)
        pm.Normal("x", centre, noise, observed=row)
    return model


@pytest.mark.parametrize("row", [X[0], X[:1]], ids=["a vector", "one row"])
def test_ppca_is_exact(row):
    found = lksd.estimate_scores(from_pymc(ppca(row), observed="x", params=PARAMS), X)
    assert found.method == "exact marginal score"
    np.testing.assert_allclose(found.score, EXACT, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_chains_of_a_ppca_agree_with_the_native_one():
    found = lksd.estimate_scores(from_pymc(ppca(X[0]), params=PARAMS), X, exact=False, control_variates="none")
    z = (found.score - EXACT) / found.mcse
    assert np.abs(z).max() < 5
    assert 0.6 < z.std() < 1.5


def test_draws_of_global_variables():
    weights = WEIGHT + 0.2 * RNG.normal(size=(2, 6, D, K))
    found = from_pymc(ppca(X[0]), params={"weight": weights, "noise": 0.5})
    native = PosteriorPredictive(PPCA(WEIGHT, 0.5, mean=1.0), {"weight": weights.reshape(-1, D, K)})
    np.testing.assert_allclose(lksd.estimate_scores(found, X).score, lksd.estimate_scores(native, X).score, rtol=1e-10)


@pytest.mark.slow
def test_constrained_latents():
    with pm.Model() as model:
        precision = pm.Gamma("precision", 3.0, 2.0)
        top = pm.Beta("top", 2.0, 3.0)
        part = pm.Uniform("part", 0.0, top)
        pm.Normal("x", part, precision**-0.5, observed=np.zeros(2))
    made = from_pymc(model)
    with jax.enable_x64(True):
        z, x = made.sample(jax.random.key(3))
        u = made.unconstrain(z)
        for name, value in made.constrain(u).items():
            np.testing.assert_allclose(value, z[name], rtol=1e-9)
        laws = stats.gamma(3, scale=0.5), stats.beta(2, 3), stats.uniform(0, float(z["top"]))
        prior = sum(law.logpdf(float(z[name])) for law, name in zip(laws, ("precision", "top", "part"), strict=True))
        np.testing.assert_allclose(made.log_prior(z), prior, atol=1e-6)  # PyTensor's constants are in single precision
        own = stats.norm(float(z["part"]), float(z["precision"]) ** -0.5).logpdf(np.asarray(x)).sum()
        np.testing.assert_allclose(made.log_likelihood(x, z), own, atol=1e-6)
        inside, whole = float(z["part"]), float(z["top"])
        jacobian = np.log(float(z["precision"]) * whole * (1 - whole) * inside * (whole - inside) / whole)
        np.testing.assert_allclose(made.log_jacobian(u), jacobian, rtol=1e-9)


def with_integers():
    with pm.Model() as model:
        c = pm.Bernoulli("c", 0.5)
        pm.Normal("x", c, 1.0, observed=np.zeros(2))
    return model


def observed_twice():
    with pm.Model() as model:
        z = pm.Normal("z")
        pm.Normal("x", z, observed=np.zeros(2))
        pm.Normal("y", z, observed=np.zeros(2))
    return model


BAD = {
    "missing variable": (lambda: from_pymc(ppca(X[0]), "y"), ValueError, "no 'y'. Its variables: weight, noise, z, x"),
    "observed twice": (lambda: from_pymc(observed_twice()), ValueError, "'y' is observed too"),
    "integers": (lambda: from_pymc(with_integers()), ValueError, "expected real variables; 'c' .* are integers. Sum a discrete"),
    "many rows": (
        lambda: from_pymc(ppca(X), params=PARAMS),
        ValueError,
        r"model of one observation; 'x' .* has shape \(16, 4\), and 'z' a first axis of 16 too. Build the model on one row",
    ),
    "param of another shape": (
        lambda: from_pymc(ppca(X[0]), params=PARAMS | {"weight": WEIGHT.T}),
        ValueError,
        r"expected shape \(4, 2\) for 'weight'.*got \(2, 4\)",
    ),
    "unknown param": (lambda: from_pymc(ppca(X[0]), params={"w": 1.0}), ValueError, "params: .*got 'w'. Its sites: weight"),
    "data of another width": (
        lambda: lksd.estimate_scores(from_pymc(ppca(X[0]), params=PARAMS), X[:, :3]),
        ValueError,
        "expected 4 numbers in x",
    ),
    "no model": (lambda: from_pymc(ppca), TypeError, "model: expected a pymc.Model; got function"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()
