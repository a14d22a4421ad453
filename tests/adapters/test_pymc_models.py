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
    found = lksd.estimate_scores(
        from_pymc(ppca(X[0]), params=PARAMS), X, exact=False, control_variates="none"
    )
    z = (found.score - EXACT) / found.mcse
    assert np.abs(z).max() < 5
    assert 0.6 < z.std() < 1.5


def test_draws_of_global_variables():
    weights = WEIGHT + 0.2 * RNG.normal(size=(2, 6, D, K))
    found = from_pymc(ppca(X[0]), params={"weight": weights, "noise": 0.5})
    native = PosteriorPredictive(PPCA(WEIGHT, 0.5, mean=1.0), {"weight": weights.reshape(-1, D, K)})
    np.testing.assert_allclose(
        lksd.estimate_scores(found, X).score, lksd.estimate_scores(native, X).score, rtol=1e-10
    )


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
        prior = sum(
            law.logpdf(float(z[name]))
            for law, name in zip(laws, ("precision", "top", "part"), strict=True)
        )
        # PyTensor's constants are in single precision
        np.testing.assert_allclose(made.log_prior(z), prior, atol=1e-6)
        own = (
            stats.norm(float(z["part"]), float(z["precision"]) ** -0.5).logpdf(np.asarray(x)).sum()
        )
        np.testing.assert_allclose(made.log_likelihood(x, z), own, atol=1e-6)
        inside, whole = float(z["part"]), float(z["top"])
        jacobian = np.log(
            float(z["precision"]) * whole * (1 - whole) * inside * (whole - inside) / whole
        )
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


def test_columns_have_the_names_of_the_coordinates():
    with pm.Model(coords={"item": ["a", "b"], "person": [0]}) as model:
        z = pm.Normal("z", dims="person")
        pm.Normal("x", z[:, None], observed=np.zeros((1, 2)), dims=("person", "item"))
    assert from_pymc(model).columns == ("a", "b")
    assert from_pymc(ppca(X[0]), params=PARAMS).columns is None


def of_x(law):
    def build():
        with pm.Model() as model:
            law(pm.Normal("z"))
        return model

    return build


def bound_by_a_variable():
    with pm.Model() as model:
        top = pm.HalfNormal("top")
        pm.Uniform("x", 0.0, top, observed=np.full(2, 0.1))
    return model


def test_bounds_from_global_variables():
    assert from_pymc(bound_by_a_variable(), params={"top": 2.0}).support == lksd.supports.Support(
        (0.0,), (2.0,)
    )


TWO = np.full(2, 0.1)
SUPPORTS = {
    "bounds by a latent": (
        lambda: from_pymc(bound_by_a_variable()),
        "support of 'x' that does not depend on latents; .* 'top'",
    ),
    "bounds that differ between draws": (
        lambda: from_pymc(bound_by_a_variable(), params={"top": np.array([1.0, 2.0])}),
        "same support of 'x' for all draws of the parameters; one of its ends is between 1 and 2",
    ),
    "mixture of different supports": (
        lambda: from_pymc(
            of_x(
                lambda z: pm.Mixture(
                    "x", [0.5, 0.5], [pm.Gamma.dist(2, 1), pm.Normal.dist(z)], observed=TWO
                )
            )()
        ),
        "'x' has a mixture of components that lie in different places",
    ),
    "mixture of different bounds": (
        lambda: from_pymc(
            of_x(lambda z: pm.Mixture("x", [0.5, 0.5], pm.Uniform.dist(0, [1, 2]), observed=TWO))()
        ),
        "same support of 'x' for all components of the mixture; one of its ends is between 1 and 2",
    ),
    "zero sum": (
        lambda: from_pymc(
            of_x(lambda z: pm.ZeroSumNormal("x", shape=2, observed=np.array([1.0, -1.0])))()
        ),
        "'x' has a constraint of the kind ZeroSumTransform",
    ),
    "hurdle": (
        lambda: from_pymc(of_x(lambda z: pm.HurdleGamma("x", 0.5, 2.0, 1.0, observed=TWO))()),
        "single numbers with a",
    ),
    "not in JAX": (
        lambda: from_pymc(of_x(lambda z: pm.Rice("x", 1.0, 1.0, observed=TWO))()),
        "distributions that PyMC has in JAX; it lacks one .*rice",
    ),
}


@pytest.mark.parametrize("name", SUPPORTS)
def test_supports_that_are_refused(name):
    call, message = SUPPORTS[name]
    with pytest.raises(ValueError, match=message):
        call()


BAD = {
    "missing variable": (
        lambda: from_pymc(ppca(X[0]), "y"),
        ValueError,
        "no 'y'. Its variables: weight, noise, z, x",
    ),
    "observed twice": (lambda: from_pymc(observed_twice()), ValueError, "'y' is observed too"),
    "integers": (
        lambda: from_pymc(with_integers()),
        ValueError,
        "expected real variables; 'c' .* are integers. Sum a discrete",
    ),
    "many rows": (
        lambda: from_pymc(ppca(X), params=PARAMS),
        ValueError,
        r"model of one observation; 'x' .* has shape \(16, 4\), and 'z' a first axis of 16 too. "
        r"Build the model on one row",
    ),
    "param of another shape": (
        lambda: from_pymc(ppca(X[0]), params=PARAMS | {"weight": WEIGHT.T}),
        ValueError,
        r"expected shape \(4, 2\) for 'weight'.*got \(2, 4\)",
    ),
    "unknown param": (
        lambda: from_pymc(ppca(X[0]), params={"w": 1.0}),
        ValueError,
        "params: .*got 'w'. Its sites: weight",
    ),
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
