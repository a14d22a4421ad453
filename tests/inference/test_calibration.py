"""The calibrations against literal resampling and literal sums."""

import numpy as np
import oracles
import pytest
from scipy import stats

from lksd.inference import calibration
from lksd.inference.multiplicity import largest, normal_replicates
from lksd.stein import GramSums

N = 12


def matrix(seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(N, 3)) ** 2
    return a @ np.diag([1.0, -0.7, 0.3]) @ a.T


def sums_of(h, weights):
    off = oracles.off_diagonal(h)
    return GramSums(off[None].sum(2), np.diag(h)[None], off.sum(1), float(np.sum(off**2)), np.diag(h), h @ weights)


def test_bootstrap_equals_resampling_rows():
    """T* from weights is T of the resampled matrix, centred at the mean of H."""
    h = matrix()
    draws = np.random.default_rng(1).integers(0, N, size=(20, N))
    weights = np.stack([np.bincount(draw, minlength=N) for draw in draws], 1).astype(float)
    replicates = calibration.studentised_replicates(sums_of(h, weights), weights)
    for draw, t in zip(draws, replicates, strict=True):
        resampled = h[np.ix_(draw, draw)]
        expected = np.sqrt(N) * (oracles.u_statistic(resampled) - h.mean()) / np.sqrt(oracles.jackknife(resampled))
        assert t == pytest.approx(expected, rel=1e-9)


def test_multinomial_weights():
    weights = calibration.multinomial_weights(7, 3000, seed=0)
    assert weights.shape == (7, 3000)
    assert (weights.sum(0) == 7).all()
    assert stats.chisquare(weights.sum(1)).pvalue > 1e-4


def test_edgeworth_equals_its_formula():
    h = matrix(2)
    rows = oracles.off_diagonal(h).sum(1)
    u = oracles.u_statistic(h)
    g = rows / (N - 1) - u
    s = np.sqrt(oracles.jackknife(h)) / 2
    q = h - u - g[:, None] - g
    skewness = np.mean(g**3) / s**3
    curvature = sum(g[i] * q[i, j] * g[j] for i in range(N) for j in range(N) if i != j) / (N * (N - 1)) / s**3
    fitted = calibration.edgeworth(rows, np.arange(N), float(g @ oracles.off_diagonal(h) @ g))
    assert fitted.a == pytest.approx((2 * skewness + 3 * curvature) / (6 * np.sqrt(N)), rel=1e-9)
    assert fitted.c == pytest.approx((skewness + 3 * curvature) / (6 * np.sqrt(N)), rel=1e-9)


@pytest.mark.parametrize("null", [calibration.Edgeworth(), calibration.Edgeworth(0.2, -0.1), calibration.Edgeworth(-0.3, 0.2)])
def test_edgeworth_quantiles_invert_the_tails(null):
    for probability in (0.001, 0.05, 0.5, 0.9):
        assert null.upper(null.upper_quantile(probability)) == pytest.approx(probability, rel=1e-9)
        assert null.lower(null.lower_quantile(probability)) == pytest.approx(probability, rel=1e-9)


def test_bootstrap_quantile_and_pvalue_decide_alike():
    replicates = np.random.default_rng(3).normal(size=199)
    null = calibration.Bootstrap.of(replicates)
    for alpha in (0.01, 0.05, 0.1):
        for t in np.concatenate([replicates, replicates + 1e-9, [9.0, -9.0]]):
            assert (null.upper(t) <= alpha) == (t > null.upper_quantile(alpha))
            assert (null.lower(t) <= alpha) == (t < null.lower_quantile(alpha))
    assert null.upper(1e9) == 1 / 200
    assert null.upper_quantile(0.001) == np.inf


def test_conservative_takes_the_larger():
    null = calibration.Conservative((calibration.Edgeworth(0.1, -0.2),))
    for t in (-2.0, 0.3, 2.0):
        assert null.upper(t) == max(null.corrected[0].upper(t), stats.norm.sf(t))
        assert null.lower(t) == max(null.corrected[0].lower(t), stats.norm.cdf(t))
    assert null.upper_quantile(0.05) >= stats.norm.ppf(0.95) - 1e-12
    assert null.lower_quantile(0.05) <= stats.norm.ppf(0.05) + 1e-12


def test_edgeworth_corrects_a_skewed_u_statistic():
    """The kernel (x + y)/2 gives the t-statistic of exponential data, whose expansion is classical."""
    rng = np.random.default_rng(4)
    n, trials = 60, 3_000
    corrected = plain = 0
    for _ in range(trials):
        x = rng.exponential(size=n) - 1
        rows = ((x[:, None] + x) / 2).sum(1) - x
        t = np.sqrt(n) * x.mean() / x.std(ddof=1)
        g = rows / (n - 1) - rows.sum() / (n * (n - 1))
        h = (x[:, None] + x) / 2
        null = calibration.edgeworth(rows, np.arange(n), float(g @ oracles.off_diagonal(h) @ g))
        corrected += null.lower(t) <= 0.05
        plain += stats.norm.cdf(t) <= 0.05
    assert stats.binomtest(plain, trials, 0.055, alternative="greater").pvalue < 1e-6
    assert stats.binomtest(corrected, trials, 0.06, alternative="greater").pvalue > 0.001


def test_largest_of_normals():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(3, 400))
    rows[1] = rows[0]  # perfectly correlated: two of three count once
    null = largest(normal_replicates(rows, seed=0), two_sided=False)
    correlation = np.corrcoef(rows[0], rows[2])[0, 1]
    both = stats.multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    for t in (1.0, 2.0):
        expected = 1 - both.cdf([t, t])
        count = round(null.upper(t) * 20_000) - 1
        assert stats.binomtest(count, 19_999, expected).pvalue > 0.001
