"""Goodness of fit of one model."""

import numpy as np
import oracles
import pytest

import lksd
from lksd.kernels import IMQ
from lksd.stein import Langevin, stein_kernel


def test_equals_brute_force():
    x = np.random.default_rng(0).normal(size=(12, 2))
    h = stein_kernel(Langevin(), IMQ(2.0), x, -x)
    result = lksd.goodness_of_fit_scores(x, -x, IMQ(2.0), seed=4)
    draws = np.random.default_rng(4).integers(0, 12, size=(1999, 12))
    replicates = []
    for draw in draws:
        w = np.bincount(draw, minlength=12) - 1.0
        replicates.append(w @ oracles.off_diagonal(h) @ w / 11)
    statistic = 12 * oracles.u_statistic(h)
    assert result.statistic == pytest.approx(statistic, rel=1e-9)
    assert result.pvalue == (np.sum(np.array(replicates) >= statistic) + 1) / 2000
    assert result.contributions.sum() == pytest.approx(result.ksd)


def test_the_pvalue_is_never_zero():
    x = np.random.default_rng(1).normal(size=(50, 2))
    result = lksd.goodness_of_fit_scores(x, -(x - 5), IMQ(2.0))
    assert result.reject
    assert result.pvalue == 1 / 2000


def test_right_and_wrong_models():
    x = np.random.default_rng(2).normal(size=(300, 2))
    kernel = IMQ.median(x)
    assert not lksd.goodness_of_fit_scores(x, -x, kernel).reject
    assert lksd.goodness_of_fit_scores(x, -x / 2, kernel).reject
