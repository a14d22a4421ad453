"""Where x can lie, as NumPyro and PyMC say it, and Stein's identity in the coordinates that belong
to it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm
import pytest

from lksd.adapters import from_numpyro, from_pymc
from lksd.supports import REAL, Coordinates, Support

INF, PI, D = np.inf, np.pi, 2
POSITIVE, UNIT = Support((0.0,), (INF,)), Support((0.0,), (1.0,))
N, LARGEST = 20_000, 4.5
T = dist.transforms
HALVES = np.array([0.5, 0.5])


def numpyro_model(law):
    """The law of all columns, or of an event; its scale depends on a class, over which the density
    is summed.
    """

    def model(x=None):
        c = numpyro.sample("c", dist.Bernoulli(0.3))
        made = law(1.0 + c)
        made = made if made.event_dim else made.expand([D]).to_event(1)
        numpyro.sample("x", made, obs=x)

    return lambda: from_numpyro(model)


def plated(law):
    """The same over observations, with the columns in a plate of their own."""

    def model(x=None):
        with numpyro.plate("n", 5, dim=-2):
            c = numpyro.sample("c", dist.Bernoulli(0.3))
            with numpyro.plate("columns", D, dim=-1):
                numpyro.sample("x", law(1.0 + c), obs=x)

    return lambda: from_numpyro(model)


def pymc_model(law, observed=HALVES):
    def build():
        with pm.Model() as model:
            law("x", observed)
        return from_pymc(model)

    return build


NUMPYRO = {
    "Normal": (numpyro_model(lambda s: dist.Normal(0.0, s)), REAL),
    "MultivariateNormal": (
        numpyro_model(lambda s: dist.MultivariateNormal(jnp.zeros(D), s * jnp.eye(D))),
        REAL,
    ),
    "Exponential": (numpyro_model(lambda s: dist.Exponential(1 / s)), POSITIVE),
    "Exponential in plates": (plated(lambda s: dist.Exponential(1 / s)), POSITIVE),
    "HalfNormal": (numpyro_model(lambda s: dist.HalfNormal(s)), POSITIVE),
    "HalfCauchy": (numpyro_model(lambda s: dist.HalfCauchy(s)), POSITIVE),
    "Gamma": (numpyro_model(lambda s: dist.Gamma(0.7, s)), POSITIVE),
    "InverseGamma": (numpyro_model(lambda s: dist.InverseGamma(2.0, s)), POSITIVE),
    "Weibull": (numpyro_model(lambda s: dist.Weibull(s, 1.0)), POSITIVE),
    "LogNormal": (numpyro_model(lambda s: dist.LogNormal(0.0, s)), POSITIVE),
    "Uniform": (numpyro_model(lambda s: dist.Uniform(-1.0, 2.0)), Support((-1.0,), (2.0,))),
    "Uniform of each column": (
        numpyro_model(lambda s: dist.Uniform(0.0, jnp.array([1.0, 3.0])).to_event(1)),
        Support((0.0, 0.0), (1.0, 3.0)),
    ),
    "Beta": (numpyro_model(lambda s: dist.Beta(1.0, s)), UNIT),
    "BetaProportion": (numpyro_model(lambda s: dist.BetaProportion(0.3, 2.0 * s)), UNIT),
    "Kumaraswamy": (numpyro_model(lambda s: dist.Kumaraswamy(s, 1.5)), UNIT),
    "Pareto": (numpyro_model(lambda s: dist.Pareto(0.5, 1.0 + s)), Support((0.5,), (INF,))),
    "TruncatedNormal below": (
        numpyro_model(lambda s: dist.TruncatedNormal(0.0, s, low=0.3)),
        Support((0.3,), (INF,)),
    ),
    "TruncatedNormal above": (
        numpyro_model(lambda s: dist.TruncatedNormal(0.0, s, high=0.3)),
        Support((-INF,), (0.3,)),
    ),
    "TruncatedNormal": (
        numpyro_model(lambda s: dist.TruncatedNormal(0.0, s, low=-0.5, high=1.0)),
        Support((-0.5,), (1.0,)),
    ),
    "VonMises": (numpyro_model(lambda s: dist.VonMises(0.0, s)), Support((-PI,), (PI,))),
    "logit normal": (
        numpyro_model(
            lambda s: dist.TransformedDistribution(dist.Normal(0.0, s), T.SigmoidTransform())
        ),
        UNIT,
    ),
    "transforms of a bounded law": (
        numpyro_model(
            lambda s: dist.TransformedDistribution(
                dist.HalfNormal(s), [T.AffineTransform(0.0, -1.0), T.ExpTransform()]
            )
        ),
        UNIT,
    ),
    "Dirichlet": (
        numpyro_model(lambda s: dist.Dirichlet(s * jnp.array([0.7, 1.0, 2.0]))),
        Support(simplex=3),
    ),
    "two Dirichlets": (
        numpyro_model(lambda s: dist.Dirichlet(s * jnp.ones((2, 3))).to_event(1)),
        Support(simplex=3),
    ),
    "mixture of one family": (
        numpyro_model(
            lambda s: dist.MixtureSameFamily(
                dist.Categorical(HALVES), dist.Gamma(jnp.array([1.0, 3.0]), s)
            ),
        ),
        POSITIVE,
    ),
    "mixture of two families": (
        numpyro_model(
            lambda s: dist.MixtureGeneral(
                dist.Categorical(HALVES), [dist.Gamma(1.0, s), dist.LogNormal(0.0, s)]
            )
        ),
        POSITIVE,
    ),
}
SIMPLEX = np.ones(3) / 3
PYMC = {
    "Normal": (pymc_model(lambda name, x: pm.Normal(name, observed=x)), REAL),
    "StudentT": (pymc_model(lambda name, x: pm.StudentT(name, 5.0, observed=x)), REAL),
    "Exponential": (pymc_model(lambda name, x: pm.Exponential(name, 2.0, observed=x)), POSITIVE),
    "HalfNormal": (pymc_model(lambda name, x: pm.HalfNormal(name, 2.0, observed=x)), POSITIVE),
    "Gamma": (pymc_model(lambda name, x: pm.Gamma(name, 0.7, 1.0, observed=x)), POSITIVE),
    "LogNormal": (pymc_model(lambda name, x: pm.LogNormal(name, observed=x)), POSITIVE),
    "Weibull": (pymc_model(lambda name, x: pm.Weibull(name, 1.0, 2.0, observed=x)), POSITIVE),
    "Uniform": (
        pymc_model(lambda name, x: pm.Uniform(name, -1.0, 2.0, observed=x)),
        Support((-1.0,), (2.0,)),
    ),
    "Uniform of each column": (
        pymc_model(lambda name, x: pm.Uniform(name, 0.0, [1.0, 3.0], observed=x)),
        Support((0.0, 0.0), (1.0, 3.0)),
    ),
    "Beta": (pymc_model(lambda name, x: pm.Beta(name, 1.0, 1.0, observed=x)), UNIT),
    "Triangular": (
        pymc_model(lambda name, x: pm.Triangular(name, lower=0, upper=3, c=1, observed=x)),
        Support((0.0,), (3.0,)),
    ),
    "Pareto": (
        pymc_model(lambda name, x: pm.Pareto(name, 3.0, 0.25, observed=x)),
        Support((0.25,), (INF,)),
    ),
    "VonMises": (
        pymc_model(lambda name, x: pm.VonMises(name, 0.0, 1.0, observed=x)),
        Support((-PI,), (PI,)),
    ),
    "LogitNormal": (pymc_model(lambda name, x: pm.LogitNormal(name, observed=x)), UNIT),
    "TruncatedNormal": (
        pymc_model(lambda name, x: pm.TruncatedNormal(name, 0.5, 1.0, lower=0.0, observed=x)),
        Support((0.0,), (INF,)),
    ),
    "Truncated": (
        pymc_model(
            lambda name, x: pm.Truncated(name, pm.Exponential.dist(1.0), upper=2.0, observed=x)
        ),
        Support((0.0,), (2.0,)),
    ),
    "Mixture": (
        pymc_model(
            lambda name, x: pm.Mixture(
                name, HALVES, [pm.Gamma.dist(2, 1), pm.LogNormal.dist()], observed=x
            )
        ),
        POSITIVE,
    ),
    "Dirichlet": (
        pymc_model(lambda name, x: pm.Dirichlet(name, [0.7, 1.0, 2.0], observed=x), SIMPLEX),
        Support(simplex=3),
    ),
}
EVERY = {
    f"{package} {name}": case
    for package, cases in (("NumPyro", NUMPYRO), ("PyMC", PYMC))
    for name, case in cases.items()
}


QUICK = {
    "NumPyro": (
        "Uniform of each column",
        "Pareto",
        "TruncatedNormal",
        "transforms of a bounded law",
        "two Dirichlets",
    ),
    "PyMC": (
        "StudentT",
        "Weibull",
        "Uniform of each column",
        "LogitNormal",
        "Truncated",
        "Dirichlet",
    ),
}


def marked(name):
    package, _, law = name.partition(" ")
    return pytest.param(name, marks=() if law in QUICK[package] else pytest.mark.slow)


@pytest.mark.parametrize("name", [marked(name) for name in EVERY])
def test_supports(name):
    build, expected = EVERY[name]
    assert build().support == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_the_identity_in_the_coordinates_of_a_support(name):
    model = EVERY[name][0]()
    x, score = draws_and_scores(model)
    coordinates = Coordinates.of(model.support, x.shape[1])
    assert coordinates.inside(x).all()
    u, s = coordinates.forward(x), coordinates.score(x, score)
    for terms in (s, s * u + 1):
        assert np.abs(terms.mean(0) / (terms.std(0) / np.sqrt(N))).max() < LARGEST


def draws_and_scores(model):
    """N draws of x and the gradients of the exact log density at them."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), N)
        x = jax.jit(jax.vmap(lambda key: model.sample(key)[1]))(keys)
        assert model.log_marginal is not None
        return np.asarray(x), np.asarray(jax.jit(jax.vmap(jax.grad(model.integrated)))(x))
