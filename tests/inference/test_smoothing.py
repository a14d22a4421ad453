"""Blurred data and models: exact laws, the blindness that it cures, and its level."""

import jax
import jax.numpy as jnp
import ksd
import numpy as np
import pytest
from scipy import stats
from studies import above

import lksd
from lksd.inference.smoothing import blur
from lksd.models import PPCA, FactorAnalysis, GaussianMixture, LatentVariableModel
from lksd.models.composed import Smoothed, smoothed

RNG = np.random.default_rng(0)


def two_modes(weight):
    return GaussianMixture([weight, 1 - weight], [[-4.0], [4.0]], np.ones((2, 1, 1)))


def halves(rng, n=300):
    return np.where(rng.random((n, 1)) < 0.5, -4.0, 4.0) + rng.normal(size=(n, 1))


class Curve(LatentVariableModel):
    """A model with no closed form: a normal whose mean is z and whose spread is one."""

    def log_prior(self, z):
        return -jnp.sum(z**2) / 2

    def log_likelihood(self, x, z):
        return -jnp.sum((x - z) ** 2) / 2

    def sample(self, key):
        first, second = jax.random.split(key)
        z = jax.random.normal(first, (2,))
        return z, z + jax.random.normal(second, (2,))


@pytest.mark.parametrize("scale", [0.7, np.array([0.5, 1.5, 1.0])], ids=["scalar", "columns"])
def test_smoothed_laws(scale):
    """Covariances grow by scale^2."""
    added = np.diag(np.broadcast_to(np.square(scale), 3))
    weight, x = RNG.normal(size=(3, 2)), RNG.normal(size=3)
    normal = stats.multivariate_normal
    for model, own in (
        (PPCA(weight, 0.5), 0.25 * np.eye(3)),
        (FactorAnalysis(weight, [0.1, 0.2, 0.3]), np.diag([0.1, 0.2, 0.3])),
    ):
        expected = normal(np.zeros(3), weight @ weight.T + own + added).logpdf(x)
        with jax.enable_x64(True):
            assert float(smoothed(model, scale).log_marginal(x)) == pytest.approx(expected)
    mixture = GaussianMixture([0.3, 0.7], weight.T, [np.eye(3), 2 * np.eye(3)])
    parts = [
        w * normal(m, c + added).pdf(x)
        for w, m, c in zip([0.3, 0.7], weight.T, mixture.covariances, strict=True)
    ]
    with jax.enable_x64(True):
        assert float(smoothed(mixture, scale).log_marginal(x)) == pytest.approx(np.log(sum(parts)))


def test_the_generic_identity():
    """E[(y - x) / scale^2 | x] by chains on (z, y) is the score of N(0, (2 + scale^2) I)."""
    model, x = smoothed(Curve(), 0.8), 2 * RNG.normal(size=(20, 2))
    assert isinstance(model, Smoothed)
    # HMC() tunes itself
    sampler = lksd.samplers.HMC(step_size=0.5, inverse_mass_matrix=np.full(4, 0.4))
    found = lksd.estimate_scores(model, x, sampler=sampler)
    # the control variate is exact for a Gaussian
    np.testing.assert_allclose(found.score, -x / (2 + 0.8**2), atol=1e-6)


def test_noise_belongs_to_an_observation():
    x = np.zeros((10, 2))
    all_rows, part = (
        blur(x, np.asarray(2.0), 3, np.arange(10)),
        blur(x[:4], np.asarray(2.0), 3, np.arange(4)),
    )
    np.testing.assert_array_equal(all_rows[:4], part)
    np.testing.assert_array_equal(all_rows, 2 * blur(x, np.asarray(1.0), 3, np.arange(10)))
    many = blur(np.zeros((2000, 1)), np.asarray(1.0), 0, np.arange(2000))
    assert stats.kstest(many[:, 0], "norm").pvalue > 0.001


def test_isolated_modes_are_warned_of_and_seen():
    """Weights .9/.1 and .6/.4 of modes at +-4 where the truth is one half: unseen without noise,
    seen with it.
    """
    plain, blurred = [], []
    for trial in range(4):
        x = halves(np.random.default_rng(100 + trial))
        with pytest.warns(
            lksd.LksdWarning, match="components of P and Q share no observations.*smooth='auto'"
        ):
            plain.append(ksd.compare(x, two_modes(0.9), two_modes(0.6), seed=trial))
        blurred.append(ksd.compare(x, two_modes(0.9), two_modes(0.6), seed=trial, smooth="auto"))
    assert sum(one.reject for one in plain) == 0
    assert sum(one.reject for one in blurred) == 4
    assert [one.operator for one in blurred[0].tests] == [
        f"Langevin, data and models blurred by {scale} standard deviations"
        for scale in ("0.25", "0.5", "1")
    ]
    assert any("components of P and Q" in note for note in plain[0].notes)
    assert blurred[0].settings["smooth"] == "auto"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
def test_power_and_level_of_the_ladder():
    trials, counts = 200, np.zeros(4, int)
    for trial in range(trials):
        x = halves(np.random.default_rng(100 + trial))
        # the last two tie
        pairs = [(0.9, 0.6, None), (0.9, 0.6, "auto"), (0.7, 0.3, "auto"), (0.3, 0.7, "auto")]
        counts += [
            ksd.compare(x, two_modes(p), two_modes(q), seed=trial, smooth=smooth).reject
            for p, q, smooth in pairs
        ]
    assert counts[0] < 0.05 * trials
    assert counts[1] >= 0.9 * trials
    assert min(above(int(count), trials) for count in counts[2:]) > 0.001, counts


@pytest.mark.slow
def test_own_scales():
    x = halves(RNG, 100)
    result = ksd.compare(x, two_modes(0.9), two_modes(0.6), smooth=(2, 4.0))
    assert [one.operator for one in result.tests] == [
        f"Langevin, data and models blurred by {scale}" for scale in (2, 4)
    ]
    one = ksd.compare(x, two_modes(0.9), two_modes(0.6), smooth=2.0)
    assert one.statistic == pytest.approx(result.tests[0].statistic, rel=1e-12)
    assert one.tests == ()


def test_components_that_overlap_are_not_warned_of():
    model = GaussianMixture([0.5, 0.5], [[-2.0], [2.0]], np.ones((2, 1, 1)))
    ksd.compare(
        RNG.normal(size=(50, 1)), model, GaussianMixture([1.0], [[0.0]], np.ones((1, 1, 1)))
    )


X = halves(RNG, 20)
TOPICS = lksd.models.LDA([1.0], [[0.5, 0.5]])
ROUND = lksd.models.VonMisesFisherMixture([1.0], [[1.0, 0.0]], [1.0])
CASES = {
    "negative": (
        lambda: ksd.compare(X, two_modes(0.5), two_modes(0.6), smooth=-1),
        'smooth: expected "auto".*got -1',
    ),
    "a word": (
        lambda: ksd.compare(X, two_modes(0.5), two_modes(0.6), smooth="much"),
        "smooth: .*got 'much'",
    ),
    "nothing": (
        lambda: ksd.compare(X, two_modes(0.5), two_modes(0.6), smooth=[]),
        "smooth: expected",
    ),
    "infinite": (
        lambda: ksd.compare(X, two_modes(0.5), two_modes(0.6), smooth=np.inf),
        "smooth: expected",
    ),
    "scores": (
        lambda: ksd.compare(X, lksd.estimate_scores(two_modes(0.5), X), two_modes(0.6), smooth=1.0),
        "smooth: expected models.*p is scores",
    ),
    "documents": (
        lambda: ksd.compare([[0, 1]] * 5, TOPICS, TOPICS, smooth=1.0),
        "smooth: expected models of real vectors; LDA",
    ),
    "directions": (
        lambda: ksd.compare(np.eye(2)[[0, 1, 0, 1]], ROUND, ROUND, smooth=1.0),
        "smooth: expected models of real vectors",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()
