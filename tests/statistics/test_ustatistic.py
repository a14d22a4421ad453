"""Closed forms from row sums against brute force with every row left out."""

import numpy as np
import oracles
import pytest

from lksd.statistics import ustatistic

N = 9


@pytest.fixture(params=range(3))
def h(request):
    a = np.random.default_rng(request.param).normal(size=(N, N)) + request.param
    return a + a.T


def rows(h):
    return oracles.off_diagonal(h).sum(1)


def squares(h):
    return np.sum(oracles.off_diagonal(h) ** 2)


def test_u_statistic(h):
    assert ustatistic.u_statistic(rows(h)) == pytest.approx(oracles.u_statistic(h), rel=1e-12)


def test_jackknife(h):
    assert ustatistic.jackknife_variance(rows(h)) == pytest.approx(oracles.jackknife(h), rel=1e-10)


def test_components_and_variances(h):
    assert ustatistic.components(rows(h), squares(h)) == pytest.approx(
        oracles.zetas(h), rel=1e-9, abs=1e-12
    )
    assert ustatistic.ustat_variance(rows(h), squares(h)) == pytest.approx(
        oracles.ustat_variance(h), rel=1e-9, abs=1e-12
    )
    assert ustatistic.vstat_variance(rows(h), np.diag(h)) == pytest.approx(
        oracles.vstat_variance(h), rel=1e-10
    )


def test_regularised(h):
    order = np.random.default_rng(7).permutation(N)[:8]
    pairs = np.array([h[order[2 * j], order[2 * j + 1]] for j in range(4)])
    u, eps = oracles.u_statistic(h), N ** (-1 / 3)
    projection = rows(h) / (N - 1)
    g = [
        2 * (projection[order[2 * j]] + projection[order[2 * j + 1]] - 2 * u)
        + 2 * eps * (pairs[j] - pairs.mean())
        for j in range(4)
    ]
    estimate, variance, influence = ustatistic.regularised(rows(h), order, pairs)
    np.testing.assert_allclose(influence, np.array(g) / (1 + eps))
    assert estimate == pytest.approx((u + eps * pairs.mean()) / (1 + eps), rel=1e-12)
    assert variance == pytest.approx(np.var(g, ddof=1) / 2 / (1 + eps) ** 2, rel=1e-12)


def test_required_n_is_the_smallest():
    zeta = ustatistic.Components(2.0, 30.0)
    n = ustatistic.required_n(0.3, zeta, 2.5)
    assert 2.5 * np.sqrt(ustatistic.hoeffding_variance(n, zeta)) <= 0.3
    assert 2.5 * np.sqrt(ustatistic.hoeffding_variance(n - 1, zeta)) > 0.3
    assert ustatistic.required_n(0.0, zeta, 2.5) == np.inf
    assert ustatistic.required_n(-1.0, zeta, 2.5) == np.inf
    assert ustatistic.required_n(1e9, zeta, 2.5) == 4
