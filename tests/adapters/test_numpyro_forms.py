"""Ways to write NumPyro models beside plain sites and plates: each is right, or is refused by a
sentence.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import cond, scan
from numpyro.infer import MCMC, NUTS
from numpyro.infer.reparam import LocScaleReparam
from scipy import stats

import lksd
from lksd.adapters import from_numpyro

RNG = np.random.default_rng(0)
D = 4
X = RNG.normal(size=(12, D))
WEIGHT, ROWS = np.array([1.0, 0.5, -1.0, 0.3]), np.array([0, 1, 1, 0])


def gaussian_scores(covariance, x=X, mean=0.0):
    return -np.linalg.solve(covariance, (x - mean).T).T


def walk(x=None):
    """A random walk observed with noise, both inside a scan."""
    start = numpyro.sample("start", dist.Normal())

    def step(before, y):
        now = numpyro.sample("path", dist.Normal(before, 1.0))
        numpyro.sample("x", dist.Normal(now, 0.5), obs=y)
        return now, None

    scan(step, start, x, length=D)


def walk_without(x=None):
    """The same with the noise after the scan."""
    start = numpyro.sample("start", dist.Normal())

    def step(before, _):
        now = numpyro.sample("path", dist.Normal(before, 1.0))
        return now, now

    _, path = scan(step, start, jnp.arange(D))
    numpyro.sample("x", dist.Normal(path, 0.5).to_event(1), obs=x)


def walk_of_many(x=None):
    """The same for many observations."""
    with numpyro.plate("n", 7):
        start = numpyro.sample("start", dist.Normal())

    def step(before, y):
        with numpyro.plate("n", 7):
            now = numpyro.sample("path", dist.Normal(before, 1.0))
            numpyro.sample("x", dist.Normal(now, 0.5), obs=y)
        return now, None

    scan(step, start, x, length=D)


def walk_with_data():
    walk(np.zeros(D))


@pytest.mark.parametrize(
    "model", [walk, walk_without, walk_with_data], ids=lambda one: one.__name__
)
def test_a_scan(model):
    covariance = 1 + np.minimum.outer(np.arange(1, D + 1), np.arange(1, D + 1)) + 0.25 * np.eye(D)
    made = from_numpyro(model)
    np.testing.assert_allclose(
        lksd.estimate_scores(made, X).score, gaussian_scores(covariance), rtol=1e-9
    )
    with jax.enable_x64(True):  # every step has randomness of its own
        x = np.asarray(
            jax.vmap(lambda key: made.sample(key)[1])(jax.random.split(jax.random.key(0), 4000))
        )
    assert np.abs(np.cov(x.T) - covariance).max() < 5 * np.sqrt(2 / 4000) * covariance.max()


def test_a_scan_with_constraints():
    def model(x=None):
        def step(before, y):
            now = numpyro.sample("path", dist.LogNormal(jnp.log(before), 0.5))
            numpyro.sample("x", dist.Normal(now, 0.5), obs=y)
            return now, None

        scan(step, 1.0, x, length=D)

    made = from_numpyro(model)
    with jax.enable_x64(True):
        z, x = made.sample(jax.random.key(0))
        u = made.unconstrain(z)
        np.testing.assert_allclose(u["path"], np.log(z["path"]), rtol=1e-12)
        np.testing.assert_allclose(made.constrain(u)["path"], z["path"], rtol=1e-12)
        np.testing.assert_allclose(made.log_jacobian(u), np.log(z["path"]).sum(), rtol=1e-12)
        steps = np.log(z["path"]) - np.log(np.append(1.0, z["path"][:-1]))
        prior = stats.norm(0, 0.5).logpdf(steps).sum() - np.log(z["path"]).sum()
        np.testing.assert_allclose(made.log_prior(z), prior, rtol=1e-9)
        np.testing.assert_allclose(
            made.log_likelihood(x, z), stats.norm(z["path"], 0.5).logpdf(x).sum(), rtol=1e-9
        )


def test_a_hidden_markov_model_in_a_scan():
    moves, start = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.9, 0.1])

    def model(x=None):
        def step(before, y):
            now = numpyro.sample("c", dist.Categorical(jnp.asarray(moves)[before]))
            numpyro.sample("x", dist.Normal(2.0 * now, 1.0), obs=y)
            return now, None

        scan(step, 0, x, length=D)

    made, x = from_numpyro(model), X[0]
    forward = start * stats.norm([0, 2]).pdf(x[0])
    for value in x[1:]:
        forward = forward @ moves * stats.norm([0, 2]).pdf(value)
    with jax.enable_x64(True):
        np.testing.assert_allclose(
            made.log_marginal(jnp.asarray(x)), np.log(forward.sum()), rtol=1e-10
        )


def constant(x=None):
    z = numpyro.sample("z", dist.Normal().expand([2]).to_event(1))
    numpyro.sample("x", dist.Normal(z[ROWS] * WEIGHT, 0.5).to_event(1), obs=x)


def test_after_mcmc_in_single_precision():
    """JAX hands the constants that a program in single precision has used to programs in double
    precision.
    """
    sampled = MCMC(NUTS(constant), num_warmup=2, num_samples=2, progress_bar=False)
    sampled.run(jax.random.key(0), X[0])
    loadings = WEIGHT[:, None] * np.eye(2)[ROWS]
    exact = gaussian_scores(loadings @ loadings.T + 0.25 * np.eye(D))
    np.testing.assert_allclose(
        lksd.estimate_scores(from_numpyro(constant), X).score, exact, rtol=1e-10
    )
    sampled.run(jax.random.key(0), X[0])  # and the other way round
    np.testing.assert_allclose(
        lksd.estimate_scores(from_numpyro(constant), X).score, exact, rtol=1e-10
    )


def reparametrised(x=None):
    with handlers.reparam(config={"z": LocScaleReparam(0)}):
        z = numpyro.sample("z", dist.Normal(1.0, 2.0))
    numpyro.sample("x", dist.Normal(z * jnp.ones(D), 1.0).to_event(1), obs=x)


def subsampled(x=None):
    with numpyro.plate("n", 100, subsample_size=10):
        z = numpyro.sample("z", dist.Normal(1.0, 2.0))
        numpyro.sample("x", dist.Normal(z[..., None] * jnp.ones(D), 1.0).to_event(1), obs=x)


def named(x=None):
    with numpyro.plate("n", 9, dim=-2):
        z = numpyro.sample("z", dist.Normal(1.0, 2.0))
        centre = numpyro.deterministic("centre", 1.0 * z)
        with numpyro.plate("columns", D, dim=-1):
            numpyro.sample("x", dist.Normal(centre, 1.0), obs=x)


@pytest.mark.parametrize("model", [reparametrised, subsampled, named], ids=lambda one: one.__name__)
def test_other_forms(model):
    exact = gaussian_scores(4.0 + np.eye(D), mean=1.0)
    np.testing.assert_allclose(lksd.estimate_scores(from_numpyro(model), X).score, exact, rtol=1e-9)


def test_a_branch():
    def model(x=None):
        z = numpyro.sample("z", dist.Normal())
        h = cond(
            z > 0,
            lambda _: numpyro.sample("h", dist.Normal(1.0, 1.0)),
            lambda _: numpyro.sample("h", dist.Normal(-1.0, 2.0)),
            None,
        )
        numpyro.sample("x", dist.Normal(h * jnp.ones(D), 0.5).to_event(1), obs=x)

    made = from_numpyro(model)
    with jax.enable_x64(True):
        for z, law in ((0.5, stats.norm(1, 1)), (-0.5, stats.norm(-1, 2))):
            found = made.log_prior({"z": jnp.asarray(z), "h": jnp.asarray(0.3)})
            np.testing.assert_allclose(found, stats.norm.logpdf(z) + law.logpdf(0.3), rtol=1e-10)


def bounds_of(**sites):
    """A model of x below a bound that is a global site."""

    def model(x=None):
        top = numpyro.sample("top", dist.Gamma(2.0, 1.0))
        with numpyro.plate("n", 5):
            z = numpyro.sample("z", dist.Normal())
            numpyro.sample(
                "x",
                dist.TruncatedNormal(z[..., None] * jnp.ones(2), 1.0, high=top).to_event(1),
                obs=x,
            )

    return from_numpyro(model, params=sites)


def test_bounds_from_global_parameters():
    expected = lksd.supports.Support((-np.inf,), (3.0,))
    assert bounds_of(top=3.0).support == expected
    assert bounds_of(top=np.full(4, 3.0)).models.support == expected


# ---------------------------------------------------------------- bad input


def site(law, **latents):
    def model(x=None):
        values = [numpyro.sample(name, one) for name, one in latents.items()]
        numpyro.sample("x", law(*values), obs=x)

    return lambda: from_numpyro(model)


def scaled(x=None):
    with numpyro.plate("n", 7), handlers.scale(scale=0.5):
        z = numpyro.sample("z", dist.Normal())
        numpyro.sample("x", dist.Normal(z[..., None] * jnp.ones(D), 1.0).to_event(1), obs=x)


def masked(x=None):
    z = numpyro.sample("z", dist.Normal())
    with numpyro.plate("columns", 2), handlers.mask(mask=jnp.array([True, False])):
        numpyro.sample("x", dist.Normal(z, 1.0), obs=x)


def weighted(x=None):
    z = numpyro.sample("z", dist.Normal())
    numpyro.factor("weight", -(z**2))
    numpyro.sample("x", dist.Normal(z, 1.0), obs=x)


def plate_around_scan(x=None):
    with numpyro.plate("n", 7):
        z = numpyro.sample("z", dist.Normal())
        scan(
            lambda before, y: (numpyro.sample("x", dist.Normal(before, 1.0), obs=y), None),
            z,
            x,
            length=D,
        )


def bounded_by_class(x=None):
    c = numpyro.sample("c", dist.Bernoulli(0.5))
    z = numpyro.sample("z", dist.Uniform(0.0, 1.0 + c))
    numpyro.sample("x", dist.Normal(z, 1.0), obs=x)


def class_within_class(x=None):
    c = numpyro.sample("c", dist.Binomial(3, 0.5))
    d = numpyro.sample("d", dist.Binomial(c, 0.5))
    numpyro.sample("x", dist.Normal(d, 1.0), obs=x)


BAD = {
    "bounds of x by a latent": (
        site(lambda z: dist.Uniform(0.0, z), z=dist.Gamma(2.0, 1.0)),
        "support of 'x' that does not depend on latents; its ends depend on 'z'.*Use a law whose "
        "support is fixed",
    ),
    "bounds of x by a class": (
        site(lambda c: dist.Uniform(0.0, 1.0 + c), c=dist.Bernoulli(0.5)),
        "its ends depend on 'c'",
    ),
    "bounds of a latent by a class": (
        lambda: from_numpyro(bounded_by_class),
        "latents whose support does not depend on discrete ones; that of 'z' depends on 'c'",
    ),
    "range of a class by a class": (
        lambda: from_numpyro(class_within_class),
        "support of 'd' that does not depend on latents; its ends depend on 'c'",
    ),
    "bounds that differ between draws": (
        lambda: bounds_of(top=np.array([2.0, 3.0])),
        "same support of 'x' for all draws of the parameters; one of its ends is between 2 and 3",
    ),
    "mixture of different supports": (
        site(
            lambda: dist.MixtureGeneral(
                dist.Categorical(jnp.array([0.5, 0.5])),
                [dist.Gamma(2.0, 1.0), dist.Normal()],
                support=dist.constraints.real,
            )
        ),
        "'x' has a mixture of components that lie in different places",
    ),
    "ordered": (
        site(
            lambda: dist.TransformedDistribution(
                dist.Normal().expand([3]).to_event(1), dist.transforms.OrderedTransform()
            )
        ),
        "'x' has the constraint OrderedVector. Use another distribution, or transform x",
    ),
    "matrices": (site(lambda: dist.LKJCholesky(3)), "'x' has the constraint CorrCholesky"),
    "unit vectors": (
        site(lambda: dist.ProjectedNormal(jnp.ones(3))),
        "'x' has the constraint Sphere",
    ),
    "censored": (
        site(
            lambda: dist.RightCensoredDistribution(
                dist.Exponential(1.0), jnp.array([0, 1])
            ).to_event(1)
        ),
        "'x' has single numbers with a probability of their own",
    ),
    "a single number": (
        site(lambda z: dist.Delta(z), z=dist.Normal()),
        "'x' has single numbers with a probability",
    ),
    "an improper prior": (
        site(lambda z: dist.Normal(z, 1.0), z=dist.ImproperUniform(dist.constraints.real, (), ())),
        "sites that can be simulated; the distribution of one cannot. Replace an improper prior",
    ),
    "a scale": (lambda: from_numpyro(scaled), "expected no scaled densities; site 'z' has a scale"),
    "a mask": (
        lambda: from_numpyro(masked),
        "expected whole densities; site 'x' has a mask. Missing values are not supported",
    ),
    "a factor": (
        lambda: from_numpyro(weighted),
        "'weight' is observed too .a factor counts as observed",
    ),
    "a plate of observations in a scan": (
        lambda: from_numpyro(walk_of_many),
        "plate of observations, 'n', outside of a scan; site 'path' has it inside",
    ),
    "a plate around a scan": (
        lambda: from_numpyro(plate_around_scan),
        "running it fails .NotImplementedError: Cannot use control flow primitive under a `plate`",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call()
