"""The MMD beside the KSD: one family, one verdict, and samples that do not depend on the roles."""

import ksd
import numpy as np
import pytest
from scipy import stats

import lksd
from lksd.domains import Prepared, Reals
from lksd.inference.mmd import samples_of


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(0)
    weight = rng.random((4, 2))
    x = rng.normal(size=(80, 2)) @ weight.T + rng.normal(size=(80, 4))
    return x, {f"noise {s}": lksd.models.PPCA(weight, s) for s in (2.0, 1.0, 1.4)}


def test_the_mmd_beside_the_ksd(factors):
    x, models = factors
    p, q = models["noise 2.0"], models["noise 1.0"]
    alone, both = ksd.compare(x, p, q), ksd.compare(x, p, q, also_mmd=True)
    (alone_of_both,) = both.tests
    assert (both.statistic, alone_of_both.statistic) == (alone.statistic, alone.statistic)
    assert alone_of_both.pvalue >= alone.pvalue
    assert both.pvalue == min(alone_of_both.pvalue, both.mmd.pvalue)
    assert both.mmd.pvalue >= stats.norm.sf(both.mmd.statistic)
    assert "MMD" in both.rejected[-1]
    assert both.sentence == f"Q fits better than P by the KSD and the MMD (p = {both.pvalue:.4f})."
    again = ksd.compare(x, q, p, also_mmd=True, alternative="two-sided")
    assert again.mmd.reject
    assert again.mmd.sentence.startswith("P fits better than Q")


def apart(weight):
    """Two components that share no observation: scores do not see how much of the data each has."""
    return lksd.models.GaussianMixture([weight, 1 - weight], [[-6.0], [6.0]], np.ones((2, 1, 1)))


@pytest.mark.filterwarnings("ignore::lksd.LksdWarning")
def test_what_the_mmd_alone_sees_is_the_verdict():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(100) < 0.8, -6.0, 6.0)[:, None] + rng.normal(size=(100, 1))
    found = ksd.compare(x, apart(0.5), apart(0.8), also_mmd=True)
    assert found.tests[0].pvalue > 0.05
    assert (found.pvalue, found.reject) == (found.mmd.pvalue, True)
    assert found.pvalue <= 0.05
    assert found.sentence == f"Q fits better than P by the MMD (p = {found.pvalue:.4f})."
    assert found.rejected == (f"MMD, {found.mmd.kernel}",)


def test_a_model_beside_itself_has_one_sample(factors):
    x, models = factors
    one = models["noise 1.0"]
    found = ksd.compare(x, one, one, also_mmd=True)
    assert found.mmd.difference == 0
    assert (found.mmd.reject, found.reject, found.favours) == (False, False, None)
    assert (
        found.sentence
        == "The models are indistinguishable on this data: their scores agree to rounding."
    )


def test_samples_belong_to_the_model_and_not_to_its_role(factors):
    x, models = factors
    p, q = models["noise 1.0"], models["noise 2.0"]
    prepared = Prepared(x, [], (), None, np.ones(x.shape[1]), ())
    (from_p, from_q), (again_q, again_p) = (
        samples_of(pair, prepared, Reals(), 0) for pair in ([p, q], [q, p])
    )
    np.testing.assert_array_equal(from_p, again_p)
    np.testing.assert_array_equal(from_q, again_q)
    both = np.corrcoef(from_p.ravel(), from_q.ravel())[0, 1]
    # independent, though their random numbers come from one seed
    assert abs(both) < 4 / np.sqrt(len(from_p))


@pytest.mark.slow
def test_level_beside_the_mmd():
    """Loadings that are rotated make the same distribution from other draws: neither is better, in
    either direction.
    """
    rng = np.random.default_rng(0)
    weight, (a, b) = rng.normal(size=(3, 2)), (0.6, 0.8)
    p, q = (
        lksd.models.PPCA(weight, 1.2),
        lksd.models.PPCA(weight @ np.array([[a, -b], [b, a]]), 1.2),
    )
    ways = []
    for seed in range(300):
        x = rng.normal(size=(60, 2)) @ weight.T + rng.normal(size=(60, 3))
        ways.append(ksd.compare(x, p, q, also_mmd=True, seed=seed).favours)
    print(f"\nbeside the MMD: Q {ways.count('Q')}, P {ways.count('P')} of 300")
    for way in "PQ":
        assert stats.binomtest(ways.count(way), 300, 0.05, alternative="greater").pvalue > 0.001
