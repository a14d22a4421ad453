"""NumPyro models against native ones and exact answers."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import lksd
from lksd.adapters import from_numpyro
from lksd.models import PPCA, FactorAnalysis, GaussianMixture, PosteriorPredictive
from lksd.scores.identity import check_identity

RNG = np.random.default_rng(0)
D, K, N = 4, 2, 50
WEIGHT = RNG.normal(size=(D, K))
MEAN = RNG.normal(size=D)
NOISE = np.array([0.3, 0.5, 0.7, 0.9])
X = MEAN + RNG.normal(size=(16, K)) @ WEIGHT.T + RNG.normal(size=(16, D))


def standard_normal(size):
    return dist.Normal().expand([size]).to_event(1)


def factors(x=None, size=N):
    """Many observations in a plate; weight and noise are global, one a sample site and one a param
    site.
    """
    weight = numpyro.sample("weight", dist.Normal().expand([D, K]).to_event(2))
    noise = numpyro.param("noise", jnp.ones(D))
    with numpyro.plate("n", size):
        z = numpyro.sample("z", standard_normal(K))
        centre = numpyro.deterministic("centre", z @ weight.T + MEAN)
        numpyro.sample("x", dist.Normal(centre, noise).to_event(1), obs=x)


def one_factor_model(x):
    """One observation, its coordinates in a plate."""
    z = numpyro.sample("z", standard_normal(K))
    with numpyro.plate("coordinates", D):
        numpyro.sample("x", dist.Normal(WEIGHT @ z + MEAN, jnp.sqrt(NOISE)), obs=x)


def low_rank(x=None):
    """The factors as a multivariate normal, two latents."""
    a = numpyro.sample("a", dist.Normal())
    b = numpyro.sample("b", dist.MultivariateNormal(jnp.zeros(1), jnp.eye(1)))
    law = dist.MultivariateNormal(MEAN + WEIGHT @ jnp.array([a, b[0]]), jnp.diag(NOISE))
    numpyro.sample("x", law, obs=x)


PARAMS = {"weight": WEIGHT, "noise": np.sqrt(NOISE)}
EXACT = lksd.estimate_scores(FactorAnalysis(WEIGHT, NOISE, mean=MEAN), X).score


@pytest.mark.parametrize(
    "model",
    [
        lambda: from_numpyro(factors, observed="x", params=PARAMS),
        lambda: from_numpyro(
            factors, observed="x", params=PARAMS, args=(X,), kwargs={"size": len(X)}
        ),
        lambda: from_numpyro(one_factor_model),
        lambda: from_numpyro(low_rank),
    ],
    ids=["plate", "plate with data", "one observation", "two latents"],
)
def test_factor_analysis_is_exact(model):
    made = model()
    found = lksd.estimate_scores(made, X)
    assert found.method == "exact marginal score"
    np.testing.assert_allclose(found.score, EXACT, rtol=1e-10, atol=1e-12)
    # so that chains take the coefficients, as those of native models do
    assert made.quadratic.likelihood


@pytest.mark.slow
def test_chains_of_a_ppca_agree_with_the_native_one():
    params = {"weight": WEIGHT, "noise": np.full(D, 0.5)}
    ours = lksd.estimate_scores(
        from_numpyro(factors, "x", params), X, exact=False, control_variates="none"
    )
    native = lksd.estimate_scores(PPCA(WEIGHT, 0.5, mean=MEAN), X)
    z = (ours.score - native.score) / ours.mcse
    assert np.abs(z).max() < 5
    assert 0.6 < z.std() < 1.5
    assert ours.two_starts


def test_draws_of_global_parameters():
    weights = WEIGHT + 0.2 * RNG.normal(size=(2, 6, D, K))  # by chain
    # Local and deterministic sites, as MCMC.get_samples() has them, are passed over.
    given = {
        "weight": weights,
        "noise": np.sqrt(NOISE),
        "z": np.zeros((12, N, K)),
        "centre": np.zeros((12, N, D)),
    }
    found = from_numpyro(factors, "x", given)
    native = PosteriorPredictive(
        FactorAnalysis(WEIGHT, NOISE, mean=MEAN), {"loadings": weights.reshape(-1, D, K)}
    )
    assert found.size == 12
    np.testing.assert_allclose(
        lksd.estimate_scores(found, X).score, lksd.estimate_scores(native, X).score, rtol=1e-10
    )


SLOPES = np.array([1.0, -0.5])


def two_level(x=None):
    precision = numpyro.sample("precision", dist.Gamma(3.0, 2.0))
    share = numpyro.sample("share", dist.Beta(2.0, 3.0))
    numpyro.sample("x", dist.Normal(3 * share * SLOPES, precision**-0.5).to_event(1), obs=x)


def two_level_score(x):
    """By a grid over both latents."""
    precision, share = np.meshgrid(
        np.linspace(1e-3, 15, 1500), (np.arange(400) + 0.5) / 400, indexing="ij"
    )
    residual = x - 3 * share[..., None] * SLOPES
    log_joint = stats.gamma(3, scale=0.5).logpdf(precision) + stats.beta(2, 3).logpdf(share)
    log_joint += np.log(precision) - precision * (residual**2).sum(-1) / 2
    weights = np.exp(log_joint - log_joint.max())
    return -(weights * precision * np.moveaxis(residual, -1, 0)).sum((1, 2)) / weights.sum()


def test_a_two_level_model_with_constrained_latents():
    model = from_numpyro(two_level)
    x = RNG.normal(size=(16, 2))
    found = lksd.estimate_scores(model, x, draws=1000)
    # a step size for each chain: posteriors differ in scale
    assert found.method.startswith("AdaptiveHMC")
    exact = np.array([two_level_score(one) for one in x])
    assert np.abs((found.score - exact) / found.mcse).max() < 5
    assert np.abs(found.score - exact).max() < 0.1
    with jax.enable_x64(True):
        z, _ = model.sample(jax.random.key(0))
        u = model.unconstrain(z)
        np.testing.assert_allclose(model.constrain(u)["share"], z["share"], rtol=1e-12)
        # log |dz/du| of exp and of the logistic function
        expected = np.log(z["precision"]) + np.log(z["share"] * (1 - z["share"]))
        np.testing.assert_allclose(model.log_jacobian(u), expected, rtol=1e-10)
        np.testing.assert_allclose(
            model.log_prior(z),
            stats.gamma(3, scale=0.5).logpdf(z["precision"]) + stats.beta(2, 3).logpdf(z["share"]),
            rtol=1e-10,
        )


@pytest.mark.slow
def test_supports_that_depend_on_other_latents():
    def nested(x=None):
        with numpyro.plate("n", 7):
            top = numpyro.sample("top", dist.HalfNormal(2.0))
            part = numpyro.sample("part", dist.Uniform(0.0, top))
            shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
            numpyro.sample("x", dist.Normal(part[..., None] * shares, 1.0).to_event(1), obs=x)

    model = from_numpyro(nested)
    with jax.enable_x64(True):
        z, x = model.sample(jax.random.key(0))
        assert {name: value.shape for name, value in z.items()} == {
            "top": (),
            "part": (),
            "shares": (3,),
        }
        assert x.shape == (3,)
        u = model.unconstrain(z)
        assert u["shares"].shape == (2,)
        for name, value in model.constrain(u).items():
            np.testing.assert_allclose(value, z[name], rtol=1e-9)
        moved = model.constrain(jax.tree.map(lambda leaf: leaf + 3.0, u))
        assert 0 < moved["part"] < moved["top"]


MEANS = np.array([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]])
SHARES = np.array([0.2, 0.5, 0.3])


def mixture(x=None):
    with numpyro.plate("n", 30):
        c = numpyro.sample("c", dist.Categorical(SHARES))
        numpyro.sample("x", dist.Normal(jnp.asarray(MEANS)[c], 0.8).to_event(1), obs=x)


def test_a_mixture_is_summed_exactly():
    native = GaussianMixture(SHARES, MEANS, np.broadcast_to(0.64 * np.eye(2), (3, 2, 2)))
    x = RNG.normal(size=(16, 2))
    found = lksd.estimate_scores(from_numpyro(mixture), x)
    assert found.method == "exact marginal score"
    np.testing.assert_allclose(found.score, lksd.estimate_scores(native, x).score, rtol=1e-10)


def test_discrete_latents_above_real_ones():
    """c ~ Bernoulli, d_1, d_2 given c, z given c, x given all: every term by hand."""

    def model(x=None):
        c = numpyro.sample("c", dist.Bernoulli(0.3))
        with numpyro.plate("two", 2):
            d = numpyro.sample("d", dist.Bernoulli(0.2 + 0.5 * c))
        z = numpyro.sample("z", dist.Normal(2.0 * c, 1.0))
        numpyro.sample("x", dist.Normal(z + d, 0.5).to_event(1), obs=x)

    made, z, x = from_numpyro(model), 0.7, np.array([0.4, 1.3])
    prior = joint = 0.0
    for c, weight in ((0, 0.7), (1, 0.3)):
        of_z = weight * stats.norm(2 * c).pdf(z)
        own = 0.2 + 0.5 * c
        each = (1 - own) * stats.norm(z, 0.5).pdf(x) + own * stats.norm(z + 1, 0.5).pdf(x)
        prior, joint = prior + of_z, joint + of_z * each.prod()
    with jax.enable_x64(True):
        latent = {"z": jnp.asarray(z)}
        np.testing.assert_allclose(made.log_prior(latent), np.log(prior), rtol=1e-12)
        np.testing.assert_allclose(
            made.log_likelihood(jnp.asarray(x), latent), np.log(joint / prior), rtol=1e-12
        )


def test_integers_are_observed():
    tables = RNG.dirichlet(np.ones(3), size=2)

    def classes(x=None):
        c = numpyro.sample("c", dist.Bernoulli(0.4))
        with numpyro.plate("positions", 4):
            numpyro.sample("x", dist.Categorical(jnp.asarray(tables)[c]), obs=x)

    model = from_numpyro(classes)
    assert model.n_values == 3
    x = RNG.integers(0, 3, size=(16, 4))

    def density(rows):
        return 0.6 * tables[0][rows].prod(-1) + 0.4 * tables[1][rows].prod(-1)

    operator = lksd.stein.Difference(3)
    # (n, D, D)
    moved = np.stack([np.where(np.arange(4) == d, (x + 1) % 3, x) for d in range(4)], 1)
    ratios = density(moved) / density(x)[:, None]
    np.testing.assert_allclose(
        lksd.estimate_scores(model, x, operator=operator).score, ratios - 1, rtol=1e-9
    )


def test_the_function_is_traced_once_and_as_it_was():
    calls, shift = [], {"by": 1.0}

    def model(x=None):
        calls.append(1)
        z = numpyro.sample("z", standard_normal(1))
        numpyro.sample("x", dist.Normal(z + shift["by"], 1.0).to_event(1), obs=x)

    made = from_numpyro(model)
    before, shift["by"] = len(calls), 100.0
    x = np.zeros((4, 1))
    np.testing.assert_allclose(lksd.estimate_scores(made, x).score, 0.5)
    assert len(calls) == before
    again = from_numpyro(model)  # with the new value, which is a constant of the program
    np.testing.assert_allclose(lksd.estimate_scores(again, x).score, 50.0)


def test_models_of_one_form_share_a_program():
    a, b = (
        from_numpyro(factors, "x", {"weight": scale * WEIGHT, "noise": np.ones(D)})
        for scale in (1.0, 2.0)
    )
    assert jax.tree.structure(a) == jax.tree.structure(b)


# ---------------------------------------------------------------- bad input


def site_twice(x=None):
    numpyro.sample("x", dist.Normal(), obs=x)
    numpyro.sample("x", dist.Normal(), obs=x)


def observed_twice(x=None):
    z = numpyro.sample("z", dist.Normal())
    numpyro.sample("x", dist.Normal(z, 1.0), obs=x)
    numpyro.sample("y", dist.Normal(z, 1.0), obs=1.0)


def with_offsets(x=None):
    with numpyro.plate("n", N) as index:
        z = numpyro.sample("z", dist.Normal(jnp.arange(N)[index] / 10.0, 1.0))
        numpyro.sample("x", dist.Normal(z, 1.0), obs=x)


def with_covariates(x=None):
    with numpyro.plate("n", N):
        z = numpyro.sample("z", dist.Normal())
        numpyro.sample("x", dist.Normal(z * jnp.arange(N), 1.0), obs=x)


def effects(x=None):
    with numpyro.plate("n", N) as index:
        z = numpyro.sample("z", dist.Normal())
        numpyro.sample("x", dist.Normal(z + jnp.linspace(0.0, 1.0, N)[index], 1.0), obs=x)


def unbounded(x=None):
    count = numpyro.sample("count", dist.Poisson(3.0))
    numpyro.sample("x", dist.Normal(count, 1.0), obs=x)


def counts(x=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    numpyro.sample("x", dist.Poisson(rate), obs=x)


def many_switches(x=None):
    with numpyro.plate("switches", 20):
        on = numpyro.sample("on", dist.Bernoulli(0.5))
    numpyro.sample("x", dist.Normal(on.sum(), 1.0), obs=x)


def broken(x):
    numpyro.sample("x", dist.Normal(jnp.zeros(3) + jnp.zeros(2), 1.0), obs=x)


BAD = {
    "missing site": (
        lambda: from_numpyro(factors, "y", PARAMS),
        ValueError,
        "no 'y'. Its sites: weight, z, x",
    ),
    "site twice": (
        lambda: from_numpyro(site_twice),
        ValueError,
        "sites that occur once; .*`x` duplicated",
    ),
    "observed twice": (
        lambda: from_numpyro(observed_twice),
        ValueError,
        "'x' to be the only observed site .*'y' is observed too",
    ),
    "another shape": (
        lambda: lksd.estimate_scores(from_numpyro(factors, "x", PARAMS), X[:, :3]),
        ValueError,
        "fails on observations of 3 columns .expected 4 numbers in x, as the observed site has; "
        "got 3",
    ),
    "index in a latent": (
        lambda: from_numpyro(with_offsets),
        ValueError,
        "latents .*depends on the observation's index",
    ),
    "an array over observations": (
        lambda: from_numpyro(with_covariates),
        ValueError,
        "site 'x' has values for 50 observations when one is wanted, so it depends on the "
        "observation's index",
    ),
    "index in x": (
        lambda: from_numpyro(effects),
        ValueError,
        "density of x .*observations 0 and 1 .*depends on the observation's index",
    ),
    "global without params": (
        lambda: from_numpyro(factors, "x", {"noise": np.ones(D)}),
        ValueError,
        "params: expected values or draws for the global sites .*'weight' are outside the plate "
        "'n'",
    ),
    "param of another shape": (
        lambda: from_numpyro(factors, "x", PARAMS | {"weight": WEIGHT.T}),
        ValueError,
        r"params: expected shape \(4, 2\) for 'weight', or draws .*got \(2, 4\)",
    ),
    "unknown param": (
        lambda: from_numpyro(factors, "x", PARAMS | {"w": 1.0}),
        ValueError,
        "got 'w'. Its sites: weight",
    ),
    "draws of different number": (
        lambda: from_numpyro(
            factors, "x", {"weight": np.zeros((3, D, K)), "noise": np.ones((4, D))}
        ),
        ValueError,
        "same number of draws .*'weight': 3, 'noise': 4",
    ),
    "unknown plate": (
        lambda: from_numpyro(factors, "x", PARAMS, plate="m"),
        ValueError,
        "plate: .*'n'.*got 'm'",
    ),
    "unbounded latent": (
        lambda: from_numpyro(unbounded),
        ValueError,
        "finitely many values.*'count' has a Poisson",
    ),
    "unbounded observation": (
        lambda: from_numpyro(counts),
        ValueError,
        "'x' has a Poisson, whose values cannot be listed",
    ),
    "too many outcomes": (
        lambda: from_numpyro(many_switches),
        ValueError,
        "10,000 outcomes.*'on' has 2 to the power of 20",
    ),
    "model that fails": (
        lambda: from_numpyro(broken),
        ValueError,
        "model: running it fails .*args and kwargs",
    ),
    "no function": (
        lambda: from_numpyro(3),
        TypeError,
        "model: expected a NumPyro model, a function; got int",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()


def kinds(x=None):
    kind = numpyro.sample("kind", dist.Categorical(jnp.array([0.2, 0.3, 0.5])))
    numpyro.sample(
        "x", dist.Normal(jnp.asarray(WEIGHT)[:3, 0][kind] * jnp.arange(D), 0.5).to_event(1), obs=x
    )


def bounded_latents(x=None):
    rate = numpyro.sample("rate", dist.Gamma(1.5, 2.0))
    share = numpyro.sample("share", dist.Beta(0.7, 3.0))
    spread = numpyro.sample("spread", dist.HalfNormal())
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.array([1.0, 2.0, 0.5, 1.5])))
    numpyro.sample("x", dist.StudentT(3.0, rate * shares + share, 0.1 + spread).to_event(1), obs=x)


@pytest.mark.parametrize("model", [one_factor_model, low_rank, kinds, bounded_latents])
def test_what_a_model_simulates_fits_its_densities(model):
    """The noise of x was once drawn with the key of the first latent."""
    for exact in (None, False):
        assert check_identity(from_numpyro(model), X[:1], 0, exact=exact) == ()
