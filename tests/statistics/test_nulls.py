"""The calibrations against literal resampling and literal sums."""

import numpy as np
import oracles
import pytest
from scipy import stats

from lksd.statistics import multiplicity, nulls
from lksd.statistics.ustatistic import all_pairs, multinomial_weights, studentised_replicates

N = 12


def matrix(seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(N, 3)) ** 2
    return a @ np.diag([1.0, -0.7, 0.3]) @ a.T


def replicates_of(h, weights):
    """Of a model whose matrix is h plus another's, in which nothing but the diagonal counts."""
    off, other = oracles.off_diagonal(h), np.full(N, 10.0)
    diagonal = np.stack([np.diag(h) + other, other])
    return studentised_replicates(
        off.sum(1)[None], diagonal, weights, all_pairs(2), products=(off @ weights)[None]
    )[0]


def test_bootstrap_equals_resampling_rows():
    """T* from weights is T of the resampled matrix, centred at the mean of H."""
    h = matrix()
    draws = np.random.default_rng(1).integers(0, N, size=(20, N))
    weights = np.stack([np.bincount(draw, minlength=N) for draw in draws], 1).astype(float)
    replicates = replicates_of(h, weights)
    for draw, t in zip(draws, replicates, strict=True):
        resampled = h[np.ix_(draw, draw)]
        expected = (
            np.sqrt(N)
            * (oracles.u_statistic(resampled) - h.mean())
            / np.sqrt(oracles.jackknife(resampled))
        )
        assert t == pytest.approx(expected, rel=1e-9)


def test_multinomial_weights():
    weights = multinomial_weights(7, 3000, seed=0)
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
    curvature = (
        sum(g[i] * q[i, j] * g[j] for i in range(N) for j in range(N) if i != j)
        / (N * (N - 1))
        / s**3
    )
    fitted = nulls.expansions(rows[None], np.arange(N), np.array([g @ oracles.off_diagonal(h) @ g]))
    assert fitted.a == pytest.approx((2 * skewness + 3 * curvature) / (6 * np.sqrt(N)), rel=1e-9)
    assert fitted.c == pytest.approx((skewness + 3 * curvature) / (6 * np.sqrt(N)), rel=1e-9)


@pytest.mark.parametrize(
    "null", [nulls.Edgeworth(), nulls.Edgeworth(0.2, -0.1), nulls.Edgeworth(-0.3, 0.2)]
)
def test_edgeworth_quantiles_invert_the_tails(null):
    for probability in (0.001, 0.05, 0.5, 0.9):
        assert null.upper(null.upper_quantile(probability)) == pytest.approx(probability, rel=1e-9)
        assert null.lower(null.lower_quantile(probability)) == pytest.approx(probability, rel=1e-9)


def test_bootstrap_quantile_and_pvalue_decide_alike():
    replicates = np.random.default_rng(3).normal(size=199)
    null = nulls.Bootstrap.of(replicates)
    for alpha in (0.01, 0.05, 0.1):
        for t in np.concatenate([replicates, replicates + 1e-9, [9.0, -9.0]]):
            assert (null.upper(t) <= alpha) == (t > null.upper_quantile(alpha))
            assert (null.lower(t) <= alpha) == (t < null.lower_quantile(alpha))
    assert null.upper(1e9) == 1 / 200
    assert null.upper_quantile(0.001) == np.inf


def test_conservative_takes_the_larger():
    null = nulls.Conservative((nulls.Edgeworth(0.1, -0.2),))
    for t in (-2.0, 0.3, 2.0):
        assert null.upper(t) == max(null.corrected[0].upper(t), stats.norm.sf(t))
        assert null.lower(t) == max(null.corrected[0].lower(t), stats.norm.cdf(t))
    assert null.upper_quantile(0.05) >= stats.norm.ppf(0.95) - 1e-12
    assert null.lower_quantile(0.05) <= stats.norm.ppf(0.05) + 1e-12


def test_edgeworth_corrects_a_skewed_u_statistic():
    """The kernel (x + y)/2 gives the t-statistic of exponential data, whose expansion
    is classical.
    """
    rng = np.random.default_rng(4)
    n, trials = 60, 3_000
    corrected = plain = 0
    for _ in range(trials):
        x = rng.exponential(size=n) - 1
        rows = ((x[:, None] + x) / 2).sum(1) - x
        t = np.sqrt(n) * x.mean() / x.std(ddof=1)
        g = rows / (n - 1) - rows.sum() / (n * (n - 1))
        h = (x[:, None] + x) / 2
        terms = nulls.expansions(
            rows[None], np.arange(n), np.array([g @ oracles.off_diagonal(h) @ g])
        )
        null = nulls.Edgeworth(terms.a[0], terms.c[0])
        corrected += null.lower(t) <= 0.05
        plain += stats.norm.cdf(t) <= 0.05
    assert stats.binomtest(plain, trials, 0.055, alternative="greater").pvalue < 1e-6
    assert stats.binomtest(corrected, trials, 0.06, alternative="greater").pvalue > 0.001


def test_largest_of_normals():
    """Two of three are perfectly correlated and count once; the least significant is judged by
    itself.
    """
    factors = multiplicity.unit(
        multiplicity.root_of(np.random.default_rng(5).normal(size=(2, 400)))[[0, 0, 1]]
    )
    statistics = np.array([2.0, 2.0, 1.0])
    pvalues, largest = multiplicity.step_down(
        statistics, multiplicity.normal_draws(factors, seed=0)
    )
    correlation = factors[0] @ factors[2]
    both = stats.multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    for found, expected in (
        (pvalues[0], 1 - both.cdf([2.0, 2.0])),
        (pvalues[2], stats.norm.sf(1.0)),
    ):
        assert stats.binomtest(round(found * 20_000) - 1, 19_999, expected).pvalue > 0.001
    assert largest.upper(2.0) == pvalues[0] == pvalues[1]


def test_step_down_equals_its_definition():
    """Each statistic against the largest of those that are not more significant; p-values never
    fall along the order.
    """
    rng = np.random.default_rng(6)
    replicates, statistics = rng.normal(size=(5, 99)), rng.normal(size=5) + 1
    pvalues, _ = multiplicity.step_down(statistics, [replicates[:, :40], replicates[:, 40:]])
    largest = 0.0
    for k in np.argsort(-statistics):
        remaining = statistics <= statistics[k]
        own = (1 + np.sum(replicates[remaining].max(0) >= statistics[k])) / 100
        largest = max(largest, own)
        assert pvalues[k] == pytest.approx(largest)


def test_holm_and_bonferroni():
    pvalues = np.array([0.01, 0.04, 0.03, 0.5])
    np.testing.assert_allclose(
        multiplicity.by_count(pvalues, "bonferroni"), [0.04, 0.16, 0.12, 1.0]
    )
    np.testing.assert_allclose(multiplicity.by_count(pvalues, "holm"), [0.04, 0.09, 0.09, 0.5])
