"""Folds, and the variance of a mean over them."""

import numpy as np
import pytest
from scipy import stats

from lksd.statistics.folds import assign_folds, centre_within, spread_pvalue


@pytest.mark.parametrize(("n", "folds"), [(10, 5), (11, 5), (7, 7), (200, 3)])
def test_folds_have_equal_sizes_up_to_one_and_follow_from_the_seed(n, folds):
    fold = assign_folds(n, folds, 3)
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    assert len(sizes) == folds
    np.testing.assert_array_equal(fold, assign_folds(n, folds, 3))
    assert not np.array_equal(fold, assign_folds(n, folds, 3, repeat=1)) or n == folds


def test_the_variance_is_the_pooled_one_within_folds():
    rng = np.random.default_rng(0)
    fold = assign_folds(53, 5, 0)
    losses = rng.normal(size=(53, 3)) + 10.0 * fold[:, None]
    centred = centre_within(losses, fold)
    np.testing.assert_allclose(centred.mean(0), losses.mean(0), rtol=1e-13)
    pooled = sum(
        (len(own) - 1) * own.var(0, ddof=1) for own in (losses[fold == j] for j in range(5))
    ) / (53 - 5)
    np.testing.assert_allclose(centred.var(0, ddof=1), pooled, rtol=1e-12)


def test_the_test_of_folds_is_the_analysis_of_variance():
    rng = np.random.default_rng(1)
    fold = assign_folds(60, 4, 0)
    d = rng.normal(size=60) + 0.3 * fold
    expected = stats.f_oneway(*(d[fold == j] for j in range(4))).pvalue
    assert spread_pvalue(d, fold) == pytest.approx(expected, rel=1e-10)
    assert spread_pvalue(np.zeros(60), fold) == 1.0
