"""The default kernel of real data: its units and scales, what it bears, and what it sees."""

import arxiv
import bounded_columns
import factor_counts
import numpy as np
import pytest
from scipy import stats

import lksd
from lksd.domains.reals import default_kernel
from lksd.kernels import IMQ, Gaussian, PerCoordinate, Standardised, family

TABLES = arxiv.ABSTRACTS.parents[1] / "tables"
SIGNIFICANT = 0.001


def scores(x, shift):
    return -(x - shift)


def test_a_column_that_is_mostly_one_value_has_a_scale():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=60), rng.random(60) < 0.2, np.ones(60)])
    kernel = default_kernel(x)
    assert isinstance(kernel, Standardised)
    distances = np.abs(x[:, None, :] - x)[np.triu_indices(60, 1)]
    np.testing.assert_allclose(kernel.scales[0], np.median(distances[:, 0]))
    np.testing.assert_allclose(kernel.scales[1], distances[:, 1].mean())
    np.testing.assert_allclose(kernel.scales[2], kernel.scales[:2].mean())  # a constant one
    assert "mean in 2 of them where it is zero" in str(kernel)
    # and so it does in the other kernels with a scale for each column
    own = PerCoordinate.median(x[:, :2]).own.preconditioner
    np.testing.assert_allclose(own, kernel.scales[:2] ** 2)
    assert len(family(x[:, :2])) == 5


def test_one_column_that_is_mostly_one_value():
    x = (np.arange(50) % 4 == 0)[:, None] + 0.0
    assert "mean of all pairs" in str(default_kernel(x))
    with pytest.raises(ValueError, match="the median distance between observations is zero"):
        IMQ.median(x)


@pytest.mark.parametrize("dim", [1, 3, 12])
def test_the_scale_is_local_and_units_do_not_matter(dim):
    x = np.random.default_rng(dim).normal(size=(80, dim))
    units = np.geomspace(0.01, 100, dim)
    a, b = default_kernel(x), default_kernel(x * units)
    np.testing.assert_allclose(b.scales, a.scales * units)
    np.testing.assert_allclose(b.base.base.preconditioner, a.base.base.preconditioner)
    squared = Gaussian.median(x / a.scales).preconditioner
    np.testing.assert_allclose(a.base.base.preconditioner, max(2 / dim, 0.25) * squared)
    plain = lksd.compare_scores(x, scores(x, 0.6), scores(x, -0.3), a)
    other = lksd.compare_scores(x * units, scores(x, 0.6) / units, scores(x, -0.3) / units, b)
    assert plain.statistic == pytest.approx(other.statistic, rel=1e-8)
    assert plain.ksd_p == pytest.approx(other.ksd_p, rel=1e-8)


def test_one_far_observation_does_not_decide():
    """Nor do two that are alike, such as a code for a missing value, hide what the rest says."""
    x = np.random.default_rng(1).normal(size=(150, 3))
    clean = lksd.compare_scores(x, scores(x, 0.8), scores(x, 0.1), default_kernel(x))
    far = np.concatenate([x, [[-999.0, 0.0, 0.0]]])
    result = lksd.compare_scores(far, scores(far, 0.8), scores(far, 0.1), default_kernel(far))
    assert clean.reject
    assert result.statistic == pytest.approx(clean.statistic, rel=0.05)


# ------------------------------------------------------------------------ power (slow)

OTHERS = {
    "IMQ": IMQ.median,
    "IMQ, covariance": IMQ.covariance,
    "Gaussian": Gaussian.median,
    "per coordinate": PerCoordinate.median,
    "family": family,
}


def found_and_wrong(trial, kernel, trials: int) -> np.ndarray:
    """How often the larger model comes out better, and how often the smaller."""
    counts = np.zeros(2, int)
    for number in range(trials):
        x, p, q = trial(np.random.default_rng([number, 24]))
        result = lksd.compare_scores(x, p, q, kernel(x), seed=number)
        counts += [result.favours == "Q", result.favours == "P"]
    return counts


def check_against_others(trial, trials: int) -> None:
    own, wrong = found_and_wrong(trial, default_kernel, trials)
    others = {name: found_and_wrong(trial, one, trials)[0] for name, one in OTHERS.items()}
    print(f"\ndefault {own} of {trials}, wrong {wrong} | {others}")
    assert own >= 0.8 * max(others.values())
    assert stats.binomtest(wrong, trials, 0.05, alternative="greater").pvalue > SIGNIFICANT


@pytest.mark.slow
@pytest.mark.parametrize(("smaller", "n"), [(1, 250), (3, 500)])
def test_factor_counts_of_questionnaires(smaller, n):
    """25 items with six answers, which no factor model describes, 5 factors against fewer."""
    check_against_others(factor_counts.questionnaire(smaller, 5, n), 24)


@pytest.mark.slow
@pytest.mark.skipif(not TABLES.exists(), reason=f"the tables are not at {TABLES}")
@pytest.mark.parametrize(("smaller", "larger"), [(1, 3), (1, 4), (1, 5)])
def test_factor_counts_of_ability_tests(smaller, larger):
    check_against_others(factor_counts.holzinger_swineford(TABLES, smaller, larger), 24)


@pytest.mark.slow
@pytest.mark.parametrize("name", bounded_columns.FAMILIES)
def test_a_wrong_scale_of_bounded_data_is_found(name):
    """A scale, or between two bounds a concentration, 1.5 times the true one; n = 200."""
    trials, rejected, level = 60, 0, 0
    for number in range(trials):
        x, wrong, right = bounded_columns.trial(name, np.random.default_rng([number, 21]), 200)
        kernel = default_kernel(x)
        rejected += lksd.goodness_of_fit_scores(x, wrong, kernel, seed=number).reject
        level += lksd.goodness_of_fit_scores(x, right, kernel, seed=number).reject
    print(f"\nwrong scale, {name}: {rejected / trials:.2f}, right {level / trials:.2f}")
    assert stats.binomtest(rejected, trials, 0.8, alternative="less").pvalue > 0.01
    assert stats.binomtest(level, trials, 0.055, alternative="greater").pvalue > SIGNIFICANT
