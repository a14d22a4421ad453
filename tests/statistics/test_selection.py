"""RelPSI on exact normal vectors, and far out."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import erfcx

from lksd.statistics.multiplicity import selective_pvalues, upper_truncated


@pytest.mark.parametrize("others", [0.0, 0.5])
def test_uniform_given_the_choice(others):
    """The first two models tie; where one of them is chosen, the other's p-value is uniform."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6)) / 2
    mean = np.array([0.0, 0.0, *[others] * 4])
    found = []
    for z in mean + rng.normal(size=(12_000, 6)) @ root.T:
        chosen = int(np.argmin(z))
        if chosen < 2:
            found.append(selective_pvalues(z, root @ root.T, chosen)[1 - chosen])
    assert len(found) > 3_000
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_a_margin_moves_the_null():
    rng = np.random.default_rng(1)
    z = np.array([0.0, 0.7]) + rng.normal(size=(8_000, 2))
    found = [selective_pvalues(one, np.eye(2), 0, margin=0.7)[1] for one in z if one[0] < one[1]]
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_two_independent_models_by_hand():
    """y = z_2 - z_1 given y >= 0."""
    p = selective_pvalues(np.array([0.0, 1.5]), np.eye(2), 0)
    assert p[0] == 1.0
    assert p[1] == pytest.approx(stats.norm.sf(1.5 / math.sqrt(2)) / 0.5)


@pytest.mark.parametrize(
    ("low", "t"), [(5.0, 5.1), (30.0, 30.01), (300.0, 300.001), (2_000.0, 2_000.0001), (-3.0, 40.0)]
)
def test_far_tails(low, t):
    """Against the scaled complementary error function."""

    def scaled(a):
        return erfcx(a / math.sqrt(2))

    expected = (
        math.exp((low**2 - t**2) / 2) * scaled(t) / scaled(low)
        if low > 0
        else stats.norm.sf(t) / stats.norm.sf(low)
    )
    assert upper_truncated(t, low, math.inf) == pytest.approx(expected, rel=1e-5)
    assert upper_truncated(-low - 0.1, -low - 1.0, -low) == pytest.approx(
        1 - upper_truncated(low + 0.1, low, low + 1.0), abs=1e-9
    )


def test_always_a_probability():
    rng = np.random.default_rng(2)
    for scale in (1e-8, 1.0, 1e8):
        z = scale * rng.normal(size=8) * 10.0 ** rng.integers(0, 6, 8)
        root = rng.normal(size=(8, 3))
        p = selective_pvalues(z, root @ root.T, int(np.argmin(z)))
        assert np.isfinite(p).all()
        assert ((p >= 0) & (p <= 1)).all()
    assert (selective_pvalues(np.zeros(3), np.zeros((3, 3)), 0) == 1).all()
