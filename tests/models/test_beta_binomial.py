"""The beta-binomial model against its closed forms and quadrature."""

import re

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import oracles
import pytest
from scipy import special, stats

import lksd
from lksd.models import BetaBinomial
from lksd.models.base import float64_leaves
from lksd.samplers import HMC, Exact

MODEL = BetaBinomial(trials=2, alpha=1.5, beta=2.5)
OPERATORS = (lksd.stein.Difference(3), lksd.stein.Barker(3))


def probability(model, x):
    """p(x) by Gauss-Jacobi quadrature over theta, exact for its polynomials."""
    node, weight = special.roots_jacobi(30, model.beta - 1, model.alpha - 1)
    likelihood = np.prod(stats.binom.pmf(np.array(x)[:, None], model.trials, (1 + node) / 2), 0)
    return weight @ likelihood / weight.sum()


def many(function, count=5000):
    """float64 draws by ``function(key)``."""
    with jax.enable_x64(True):
        return jax.jit(jax.vmap(function))(jax.random.split(jax.random.key(0), count))


@pytest.mark.parametrize("trials", [1, 5])
def test_one_count(trials):
    model, law = BetaBinomial(trials, 0.7, 2.0), stats.betabinom(trials, 0.7, 2.0)
    every = np.arange(trials + 1)
    np.testing.assert_allclose(model.value_probabilities(), law.pmf(every), rtol=1e-12)
    with jax.enable_x64(True):
        logs = jax.vmap(float64_leaves(model).log_marginal)(jnp.asarray(every)[:, None])
    np.testing.assert_allclose(logs, law.logpmf(every), rtol=1e-11)


@pytest.mark.parametrize("length", [3, 2])
def test_several_counts_by_quadrature(length):
    pmf = {tuple(x): probability(MODEL, x) for x in oracles.lattice(3, length).tolist()}
    assert sum(pmf.values()) == pytest.approx(1, abs=1e-12)
    x = np.pad(np.array(list(pmf), np.int32), ((0, 0), (0, 3 - length)), constant_values=-1)
    values = np.tile(np.arange(3), (3, 1))
    with jax.enable_x64(True):
        model = float64_leaves(MODEL)
        both = jax.jit(
            jax.vmap(
                lambda point: (model.log_marginal(point), model.marginal_ratios(point, values))
            )
        )
        logs, ratios = (np.asarray(part) for part in both(x))
    np.testing.assert_allclose(np.exp(logs), list(pmf.values()), rtol=1e-11)
    for point, row in zip(pmf, ratios, strict=True):
        expected = [
            [pmf[oracles.replaced(point, d, v)] / pmf[point] for v in range(3)]
            for d in range(length)
        ]
        np.testing.assert_allclose(row[:length], expected, rtol=1e-11)


def test_densities_and_transform():
    x, theta = np.array([2, 0, 1, -1]), 0.3
    with jax.enable_x64(True):
        prior, likelihood = (
            MODEL.log_prior(jnp.asarray(theta)),
            MODEL.log_likelihood(jnp.asarray(x), jnp.asarray(theta)),
        )
        u = MODEL.unconstrain(jnp.asarray(theta))
        back, slope, log_jacobian = (
            MODEL.constrain(u),
            jax.grad(MODEL.constrain)(u),
            MODEL.log_jacobian(u),
        )
    assert float(prior) == pytest.approx(stats.beta(1.5, 2.5).logpdf(theta), rel=1e-12)
    assert float(likelihood) == pytest.approx(stats.binom(2, theta).logpmf(x[:3]).sum(), rel=1e-12)
    assert float(back) == pytest.approx(theta, rel=1e-12)
    assert float(log_jacobian) == pytest.approx(np.log(slope), rel=1e-12)


@pytest.mark.parametrize("sampler", [None, Exact()], ids=["default", "Exact"])
def test_scores_within_their_errors(sampler):
    """Between 8 and 16 successes of 24 the ratios have a fourth moment, so their errors can be
    judged.
    """
    rng = np.random.default_rng(0)
    x = [row for row in rng.binomial(2, 0.5, (80, 12)) if 8 <= row.sum() <= 16][:30]
    x = [*x, *(row[:11] for row in x[:10] if 8 <= row[:11].sum() <= 14)]
    exact = lksd.estimate_scores(MODEL, x, operator=OPERATORS, exact=True)
    found = lksd.estimate_scores(
        MODEL, x, operator=OPERATORS, exact=False, sampler=sampler, draws=2000
    )
    assert found.method.startswith(str(sampler or HMC()))
    for score, expected, mcse in zip(found.score, exact.score, found.mcse, strict=True):
        z = (score - expected)[mcse > 0] / mcse[mcse > 0]
        assert z.size > 400
        assert np.abs(z).max() < 5
        # all positions of an observation share its draws, so there are some 40 independent z
        assert 0.5 < np.mean(z**2) < 2


def test_posterior_and_joint_draws():
    x = jnp.array([2, 1, 1, -1])
    draws = many(
        lambda key: (MODEL.sample_posterior(key, x), MODEL.initial(key, x), *MODEL.sample(key, 3))
    )
    posterior, prior, theta, counts = (np.asarray(part) for part in draws)
    assert stats.kstest(posterior, stats.beta(1.5 + 4, 2.5 + 2).cdf).pvalue > 1e-4
    assert stats.kstest(prior, stats.beta(1.5, 2.5).cdf).pvalue > 1e-4
    points = oracles.lattice(3, 3)
    observed = np.bincount(counts @ [9, 3, 1], minlength=27)
    assert (
        stats.chisquare(
            observed, len(counts) * np.array([probability(MODEL, point) for point in points])
        ).pvalue
        > 1e-4
    )
    for successes in (0, 3, 6):
        own = theta[counts.sum(1) == successes]
        assert stats.kstest(own, stats.beta(1.5 + successes, 2.5 + 6 - successes).cdf).pvalue > 1e-4


def test_probabilities_next_to_zero_and_one_stay_inside():
    model = BetaBinomial(3, 0.02, 0.02)

    def draw(key):
        theta = model.initial(key, None)
        return theta, model.log_prior(theta) + model.log_likelihood(jnp.array([0, 3]), theta)

    theta, logs = (np.asarray(part) for part in many(draw, 1000))
    assert ((theta > 0) & (theta < 1) & np.isfinite(logs)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0, 1.0, 1.0), "trials: expected an integer of at least 1; got 0"),
        ((2.5, 1.0, 1.0), "trials: expected an integer of at least 1; got 2.5"),
        ((2, 0.0, 1.0), "alpha: expected one positive number; got 0.0"),
        ((2, 1.0, np.ones(2)), r"beta: expected one positive number; got \[1. 1.\]"),
        ((2, 1.0, np.nan), "beta: expected one positive number; got nan"),
    ],
)
def test_bad_parameters(given, message):
    with pytest.raises(ValueError, match=message):
        BetaBinomial(*given)


def test_results_and_errors_do_not_speak_of_documents_and_words():
    model, other = BetaBinomial(4, 2.0, 3.0), BetaBinomial(4, 1.0, 1.0)
    x = [[1, 2, 0], [], [4, 4], *np.random.default_rng(0).integers(0, 5, (30, 3)).tolist()]
    result = lksd.compare(x, model, other, drop_empty=True)
    text = f"{result} {ksd.compare(x, model, other, drop_empty=True)}"
    assert "1 of 33 observations have no values" in text
    with pytest.raises(ValueError, match="same values; got 5 and 6 values") as error:
        lksd.compare(x, model, BetaBinomial(5, 1.0, 1.0), drop_empty=True)
    said = f"{text} {error.value}".replace("BagOfWords", "")
    assert not re.search(r"\b(documents?|words?|vocabulary)\b", said)
