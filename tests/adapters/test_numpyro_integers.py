"""NumPyro models of integers with a real latent, as people write them: densities by hand, scores by
quadrature.
"""

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.special import logsumexp
from scipy import stats

import lksd
from lksd.adapters import from_numpyro
from lksd.models import LatentVariableModel

SLOPES, OFFSETS, CUTS = (
    np.array([1.0, 0.5, -1.2]),
    np.array([0.2, -0.4, 0.1]),
    np.array([-1.0, 0.0, 1.0]),
)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


def logits(z):
    return z * SLOPES + OFFSETS


def rows(z):
    return jnp.stack([jnp.zeros_like(logits(z)), logits(z), -logits(z) / 2], -1)


LAWS = {  # given z with a last axis of length one
    "Bernoulli, probs": lambda z: dist.Bernoulli(probs=jax.nn.sigmoid(logits(z))),
    "Bernoulli, logits": lambda z: dist.Bernoulli(logits=logits(z)),
    "Binomial": lambda z: dist.Binomial(total_count=4, logits=logits(z)),
    "Binomial, probs": lambda z: dist.Binomial(4, probs=jax.nn.sigmoid(logits(z))),
    "Binomial of an array": lambda z: dist.Binomial(jnp.array([4, 4, 4]), logits=logits(z)),
    "Categorical": lambda z: dist.Categorical(logits=rows(z)),
    "Categorical, probs": lambda z: dist.Categorical(probs=jax.nn.softmax(rows(z))),
    "OrderedLogistic": lambda z: dist.OrderedLogistic(logits(z), CUTS),
    "zero-inflated": lambda z: dist.ZeroInflatedDistribution(
        dist.Binomial(4, logits=logits(z)), gate=0.3
    ),
    "mixture": lambda z: dist.MixtureSameFamily(
        dist.Categorical(jnp.array([0.3, 0.7])),
        dist.Bernoulli(logits=jnp.stack([logits(z), -logits(z)], -1)),
    ),
}
SIZES = {name: {"Be": 2, "Bi": 5, "Ca": 3, "Or": 4, "ze": 5, "mi": 2}[name[:2]] for name in LAWS}


def as_event(law):
    def model(x=None):
        z = numpyro.sample("z", dist.Normal())
        numpyro.sample("x", law(z[None]).to_event(1), obs=x)

    return model


def in_a_plate(law):
    def model(x):
        z = numpyro.sample("z", dist.Normal())
        with numpyro.plate("items", 3):
            numpyro.sample("x", law(z[None]), obs=x)

    return model


def over_people(law):
    def model(x=None):
        with numpyro.plate("people", 20):
            z = numpyro.sample("z", dist.Normal())
            numpyro.sample("x", law(z[..., None]).to_event(1), obs=x)

    return model


def over_people_and_items(law):
    def model(x=None):
        with numpyro.plate("people", 20, subsample_size=5, dim=-2):
            z = numpyro.sample("z", dist.Normal())
            with numpyro.plate("items", 3, dim=-1):
                numpyro.sample("x", law(z), obs=x)

    return model


LAYOUTS = [as_event, in_a_plate, over_people, over_people_and_items]
FORMS = [(name, LAYOUTS[number % 4]) for number, name in enumerate(LAWS)] + [
    ("Bernoulli, logits", one) for one in LAYOUTS
]


class Integrated(LatentVariableModel):
    """The same model as a class, with its probabilities by quadrature; it is not a
    NumPyro model.
    """

    law: str
    n_values: int

    def log_terms(self, z):
        """(3, n_values), by hand."""
        a = (jnp.asarray(SLOPES) * z + OFFSETS)[:, None]
        values = jnp.arange(self.n_values)
        if self.law.startswith("Bernoulli"):
            return jnp.where(values == 1, jax.nn.log_sigmoid(a), jax.nn.log_sigmoid(-a))
        if self.law.startswith(("Binomial", "zero")):
            choose = jnp.log(jnp.array([1.0, 4.0, 6.0, 4.0, 1.0]))
            own = choose + values * jax.nn.log_sigmoid(a) + (4 - values) * jax.nn.log_sigmoid(-a)
            return own if self.law[0] == "B" else jnp.log(0.7 * jnp.exp(own) + 0.3 * (values == 0))
        if self.law.startswith("Categorical"):
            return jax.nn.log_softmax(jnp.concatenate([0 * a, a, -a / 2], 1))
        if self.law == "mixture":
            sign = jnp.where(values == 1, 1.0, -1.0)
            return jnp.log(0.3 * jax.nn.sigmoid(sign * a) + 0.7 * jax.nn.sigmoid(-sign * a))
        below = jnp.concatenate([0 * a, jax.nn.sigmoid(jnp.asarray(CUTS) - a), 0 * a + 1], 1)
        return jnp.log(jnp.diff(below, axis=1))

    def log_prior(self, z):
        return -(z**2) / 2

    def log_likelihood(self, x, z):
        return jnp.sum(jnp.take_along_axis(self.log_terms(z), x[:, None], 1))

    def log_marginal(self, x):
        return logsumexp(
            jax.vmap(lambda z: self.log_likelihood(x, z))(jnp.asarray(NODES)),
            b=jnp.asarray(WEIGHTS),
        )

    def sample(self, key):
        key_z, key_x = jax.random.split(key)
        z = jax.random.normal(key_z)
        return z, jax.random.categorical(key_x, self.log_terms(z)).astype(jnp.int32)


def data(native, n):
    with jax.enable_x64(True):
        return np.asarray(jax.vmap(native.sample)(jax.random.split(jax.random.key(1), n))[1])


QUICK = ("Bernoulli, probs", "Binomial", "Categorical", "OrderedLogistic", "mixture")


@pytest.mark.parametrize(
    ("name", "layout"),
    [pytest.param(*form, marks=() if form[0] in QUICK else pytest.mark.slow) for form in FORMS],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_densities_and_draws(name, layout):
    made, native = from_numpyro(layout(LAWS[name])), Integrated(name, SIZES[name])
    assert made.n_values == SIZES[name]
    assert made.support is None
    with jax.enable_x64(True):
        z, x = made.sample(jax.random.key(0))
        assert x.dtype == jnp.int32
        for point in (x, x.astype(jnp.int64), (x + 1) % SIZES[name]):
            np.testing.assert_allclose(
                made.log_likelihood(point, z),
                native.log_likelihood(point, z["z"].ravel()[0]),
                rtol=1e-9,
            )
        np.testing.assert_allclose(made.log_prior(z), stats.norm.logpdf(z["z"]).sum(), rtol=1e-9)


def agree_with_quadrature(name, layout, n):
    made, native = from_numpyro(layout(LAWS[name])), Integrated(name, SIZES[name])
    x = data(native, n)
    operators = (lksd.stein.Difference(SIZES[name]), lksd.stein.Barker(SIZES[name]))
    found, exact = (
        lksd.estimate_scores(one, x, operator=operators, draws=4000) for one in (made, native)
    )
    assert found.method.startswith("HMC")
    assert exact.method == "exact marginal score"
    for ours, theirs, error in zip(found.score, exact.score, found.mcse, strict=True):
        assert np.sqrt(np.mean(((ours - theirs) / error) ** 2)) < 1.5
        assert np.mean(error**2) < 0.1**2 * np.mean(theirs**2)  # which says something


def test_scores_agree_with_quadrature():
    agree_with_quadrature("OrderedLogistic", over_people_and_items, 10)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), FORMS, ids=lambda one: getattr(one, "__name__", one))
def test_scores_of_every_form_agree_with_quadrature(name, layout):
    agree_with_quadrature(name, layout, 40)


@pytest.mark.slow
def test_they_are_compared_ranked_and_tested():
    native = Integrated("Bernoulli, logits", 2)
    true = from_numpyro(over_people_and_items(LAWS["Bernoulli, logits"]))
    wrong = from_numpyro(as_event(lambda z: dist.Bernoulli(logits=-2 * logits(z) + 1.5)))
    x, few = data(native, 200), {"warmup": 50, "draws": 40}
    assert ksd.compare(x, wrong, true, **few).reject
    assert lksd.goodness_of_fit(x, wrong, **few).reject
    assert not lksd.goodness_of_fit(x, true, **few).reject
    assert ksd.rank(x, {"wrong": wrong, "true": true}, **few).sentence.startswith("true fits best")


def unequal(x=None):
    z = numpyro.sample("z", dist.Normal())
    numpyro.sample("x", dist.Binomial(jnp.array([2, 3, 4]), logits=z).to_event(1), obs=x)


def from_one(x=None):
    numpyro.sample("x", dist.DiscreteUniform(1, 4).expand([3]).to_event(1), obs=x)


def latent_number(x=None):
    c = numpyro.sample("c", dist.Binomial(3, 0.5))
    numpyro.sample("x", dist.Binomial(c + 1, 0.5).expand([3]).to_event(1), obs=x)


def multinomial(x=None):
    z = numpyro.sample("z", dist.Normal())
    numpyro.sample("x", dist.Multinomial(5, logits=logits(z)), obs=x)


BAD = {
    "numbers of values": (
        unequal,
        r"the same L in all columns; 'x' has a BinomialLogits with 0 .. 2, 0 .. 3, 0 .. 4. Shift",
    ),
    "values from 1": (from_one, r"integers 0 .. L-1 .*'x' has a DiscreteUniform with 1 .. 4"),
    "latent number of values": (
        latent_number,
        "support of 'x' that does not depend on latents; its ends depend on 'c'",
    ),
    "multinomial": (multinomial, "or of integers 0 .. L-1; 'x' has the constraint Multinomial"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    model, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        from_numpyro(model)
