"""The operator on the sphere: the Stein identity by quadrature, the closed form by differentiation,
models of directions.
"""

import jax
import ksd
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gamma, gammaln
from studies import above

import lksd
from lksd import kernels as k
from lksd.models import VonMisesFisherMixture
from lksd.stein import Spherical, stein_kernel

RNG = np.random.default_rng(0)
MIXTURE = VonMisesFisherMixture([0.3, 0.7], [[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]], [4.0, 9.0])


def directions(n, dim, rng=RNG):
    x = rng.normal(size=(n, dim))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def sphere_grid(dim):
    """Points of the circle or the sphere with the weights of a quadrature that is exact for smooth
    functions to rounding.
    """
    angles = 2 * np.pi * np.arange(60) / 60
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    if dim == 2:
        return circle, np.full(60, 2 * np.pi / 60)
    height, weight = np.polynomial.legendre.leggauss(40)
    points = [np.append(np.sqrt(1 - h**2) * c, h) for h in height for c in circle]
    return np.array(points), np.repeat(weight, 60) * 2 * np.pi / 60


def log_density(x, model):
    """Of the mixture, by SciPy."""
    parts = [
        w * stats.vonmises_fisher(m, c).pdf(x)
        for w, m, c in zip(model.weights, model.means, model.concentrations, strict=True)
    ]
    return np.log(np.sum(parts, 0))


def score(x, model, step=1e-6):
    """Its gradient along the sphere, by differences of the density at x moved and put back on the
    sphere.
    """
    found = np.zeros_like(x)
    for d in range(x.shape[1]):
        ends = [x + sign * step * np.eye(x.shape[1])[d] for sign in (1, -1)]
        up, down = (
            log_density(end / np.linalg.norm(end, axis=1, keepdims=True), model) for end in ends
        )
        found[:, d] = (up - down) / (2 * step)
    return found


def tangential(x, vectors):
    return vectors - np.sum(x * vectors, 1, keepdims=True) * x


@pytest.mark.parametrize(
    ("dim", "kernel"), [(2, k.Gaussian(0.5)), (3, k.IMQ(0.7)), (3, k.IMQ(np.linspace(0.5, 1.5, 3)))]
)
def test_stein_identity_by_quadrature(dim, kernel):
    means = [[0.0, 1.0], [0.6, -0.8]] if dim == 2 else [[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]]
    model = VonMisesFisherMixture([0.4, 0.6], means, [2.0, 5.0])
    points, weights = sphere_grid(dim)
    mass = weights * np.exp(log_density(points, model))
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    scores, y = np.array(jax.vmap(jax.grad(model.log_marginal))(points)), directions(5, dim)
    h = stein_kernel(Spherical(), kernel, points, scores, y, RNG.normal(size=y.shape))
    size = mass @ np.abs(h)
    assert np.all(np.abs(mass @ h) < 1e-5 * size)
    # the uniform law's scores
    shifted = stein_kernel(Spherical(), kernel, points, 0 * scores, y, RNG.normal(size=y.shape))
    assert np.all(np.abs(mass @ shifted) > 1e-3 * size)


def test_closed_forms_agree_with_differentiation():
    kernel = k.Sum(k.IMQ(0.7), k.Gaussian(2.0))
    x, y = directions(6, 4), directions(5, 4)
    s, t = RNG.normal(size=x.shape), RNG.normal(size=y.shape)
    closed = stein_kernel(Spherical(), kernel, x, s, y, t)
    plain = stein_kernel(Spherical(), lambda a, b: kernel(a, b), x, s, y, t)
    np.testing.assert_allclose(closed, plain, rtol=1e-10, atol=1e-10)


def test_only_the_tangential_part_of_a_score_counts():
    x = directions(6, 3)
    s = RNG.normal(size=x.shape)
    np.testing.assert_allclose(
        stein_kernel(Spherical(), k.IMQ(), x, s),
        stein_kernel(Spherical(), k.IMQ(), x, tangential(x, s) + 7 * x),
        rtol=1e-9,
    )


@pytest.mark.parametrize(("dim", "concentration"), [(3, 30.0), (10, 5.0)])
def test_normaliser_and_draws(dim, concentration):
    model = VonMisesFisherMixture([1.0], np.eye(dim)[:1], [concentration])
    # to the mean; its density is proportional to exp(kappa cos) sin^(D - 2)
    angle = np.linspace(0, np.pi, 4001)
    cdf = integrate.cumulative_simpson(
        np.exp(concentration * (np.cos(angle) - 1)) * np.sin(angle) ** (dim - 2), x=angle, initial=0
    )
    around = 2 * np.pi ** ((dim - 1) / 2) / gamma((dim - 1) / 2)
    assert model.log_normalisers[0] == pytest.approx(
        -np.log(around * cdf[-1]) - concentration, rel=1e-8
    )
    draws = np.asarray(
        jax.vmap(lambda key: model.sample(key)[1])(jax.random.split(jax.random.key(dim), 2000))
    )
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1, atol=1e-5)
    found = np.arccos(np.clip(draws[:, 0], -1, 1))
    assert stats.kstest(found, lambda t: np.interp(t, angle, cdf / cdf[-1])).pvalue > 0.001
    assert stats.binomtest(int(np.sum(draws[:, 1] > 0)), len(draws)).pvalue > 0.001


def test_normaliser_far_out():
    """In 1,000 dimensions I_v(10) is below the smallest number; for kappa = 10^4 it is beyond the
    largest.
    """
    far = VonMisesFisherMixture([1.0], np.eye(1000)[:1], [10.0]).log_normalisers[0]
    area = np.log(2) + 500 * np.log(np.pi) - gammaln(500)
    # E exp(kappa w), w nearly N(0, 1/D)
    assert far == pytest.approx(-area - 10.0**2 / (2 * 1000), abs=1e-4)
    sharp = VonMisesFisherMixture([1.0], np.eye(3)[:1], [1e4]).log_normalisers[0]
    assert sharp == pytest.approx(np.log(1e4 / (2 * np.pi)) - 1e4, abs=1e-8)


def test_fishers_identity():
    """The exact score is that of the density; the mean of the components' scores over posterior
    draws is the exact score.
    """
    x = directions(200, 3)
    shares = np.asarray(jax.vmap(MIXTURE.responsibilities)(x)).min(1)
    x = x[np.argsort(-shares)[:20]]  # where both components are likely
    exact = lksd.estimate_scores(MIXTURE, x)
    assert str(exact.operator) == "Spherical"
    np.testing.assert_allclose(tangential(x, exact.score), score(x, MIXTURE), atol=1e-6)
    sampled = lksd.estimate_scores(MIXTURE, x, exact=False, draws=2000)
    z = np.linalg.norm(sampled.score - exact.score, axis=1) / np.linalg.norm(sampled.mcse, axis=1)
    assert 0.1 < np.median(z) < 1.5
    assert z.max() < 5


def concentration_trial(rng, n, kappa_p, kappa_q, kappa=10.0):
    """Data from a law of concentration kappa about the first axis; P and Q have other
    concentrations.
    """
    # on the sphere in space the cosine's law is exponential
    w = 1 + np.log(rng.uniform(np.exp(-2 * kappa), 1, n)) / kappa
    x = np.column_stack([w, np.sqrt(1 - w**2)[:, None] * directions(n, 2, rng)])
    mean = np.eye(3)[0]
    return x, np.broadcast_to(kappa_p * mean, x.shape), np.broadcast_to(kappa_q * mean, x.shape)


def concentration_rejections(n, trials, seed, *kappas):
    rng, kernel = np.random.default_rng(seed), k.IMQ(0.3)
    found = [
        lksd.compare_scores(
            *concentration_trial(rng, n, *kappas), kernel, operator="spherical", seed=i
        )
        for i in range(trials)
    ]
    return sum(one.reject for one in found)


def test_power_of_a_concentration_comparison():
    assert concentration_rejections(200, 10, 1, 18.0, 10.0) >= 9
    assert concentration_rejections(200, 5, 1, 10.0, 18.0) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kappas", [(8.0, 12.0), (12.0, 8.0)])
def test_level_of_a_concentration_comparison(kappas):
    """KSD^2 is proportional to the square of the difference in concentration, so 10 - 2 and 10 + 2
    tie, not as mirror images.
    """
    trials = 2000
    rejected = concentration_rejections(100, trials, 2, *kappas)
    assert above(rejected, trials) > 0.001, rejected / trials


@pytest.mark.slow
def test_compare_takes_directions():
    x = np.asarray(
        jax.vmap(lambda key: MIXTURE.sample(key)[1])(jax.random.split(jax.random.key(0), 100))
    )
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    other = VonMisesFisherMixture(MIXTURE.weights, MIXTURE.means, [12.0, 3.0])
    result = ksd.compare(x, other, MIXTURE)
    assert result.reject
    assert result.operator == "Spherical"
    assert result.kernel.startswith("IMQ")


def test_scores_are_saved_with_their_operator(tmp_path):
    scores = lksd.estimate_scores(MIXTURE, directions(10, 3))
    scores.save(tmp_path / "scores.npz")
    assert isinstance(lksd.load_scores(tmp_path / "scores.npz").operator, Spherical)


X = directions(20, 3)
NORMAL = lksd.models.GaussianMixture([1.0], [[0.0, 0.0, 0.0]], [np.eye(3)])
CASES = {
    "off the sphere": (
        lambda: ksd.compare(1.01 * X, MIXTURE, MIXTURE),
        r"length 1, up to 1e-06; observation \d+ has length 1.01 ",
    ),
    "one off the sphere": (
        lambda: lksd.compare_scores(
            X + 2e-6 * X * (np.arange(20) == 7)[:, None], X, -X, k.IMQ(), operator="spherical"
        ),
        r"observation 7 has length 1.000002 \(1 such",
    ),
    "one coordinate": (lambda: Spherical().observations(np.ones((5, 1))), "at least 2 coordinates"),
    "a mask": (lambda: Spherical().observations(X, mask=X > 0), "mask: only discrete"),
    "a discrete kernel": (
        lambda: lksd.compare_scores(X, X, -X, k.Hamming(), operator=Spherical()),
        "kernel: expected one number",
    ),
    "a kernel a coordinate": (
        lambda: ksd.compare(X, MIXTURE, MIXTURE, kernel=k.PerCoordinate.median(X)),
        "kernel: expected one number",
    ),
    "standardised": (
        lambda: ksd.compare(X, MIXTURE, MIXTURE, standardise=True),
        "standardise: .*leave the sphere",
    ),
    "Langevin": (
        lambda: ksd.compare(X, MIXTURE, MIXTURE, operator="langevin"),
        "operator: expected 'spherical'",
    ),
    "mixed kinds": (lambda: ksd.compare(X, MIXTURE, NORMAL), "p and q: .*unit vectors"),
    "means off the sphere": (
        lambda: VonMisesFisherMixture([1.0], [[1.0, 1.0]], [1.0]),
        "means: .*number 0 has length 1.41",
    ),
    "negative concentration": (
        lambda: VonMisesFisherMixture([1.0], [[1.0, 0.0]], [-1.0]),
        "concentrations: .*got -1",
    ),
    "shapes": (lambda: VonMisesFisherMixture([1.0], [[1.0, 0.0]], [1.0, 2.0]), "expected weights"),
    "weights": (lambda: VonMisesFisherMixture([0.5], [[1.0, 0.0]], [1.0]), "weights: .*sum to 0.5"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_rounding_off_the_sphere_is_forgiven():
    x = X.astype(np.float32)
    np.testing.assert_allclose(np.linalg.norm(Spherical().observations(x), axis=1), 1, atol=1e-15)
