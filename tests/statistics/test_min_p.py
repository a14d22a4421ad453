"""Hypotheses of which one has resamples with heavy tails: min-p, and what max-T makes of them."""

import numpy as np
from scipy import stats

from lksd.options import Decision
from lksd.statistics.multiplicity import Family, adjust, own_places

TRIALS, REPLICATES = 400, 499


def family(rng, signal: float) -> Family:
    """A normal T with a signal beside one whose distribution, and replicates, have heavy tails."""
    heavy = rng.standard_t(1.2, REPLICATES + 1)
    normal = 0.5 * np.tanh(heavy) + np.sqrt(0.75) * rng.normal(size=REPLICATES + 1)
    every = np.array([heavy, normal])
    statistics = every[:, 0] + [0.0, signal]
    return Family(statistics, None, np.eye(2), every[:, 1:])


def rejections(correction: str, signal: float) -> int:
    rng = np.random.default_rng(7)
    found = [adjust(family(rng, signal), correction, 0).pvalues for _ in range(TRIALS)]
    return int((np.min(found, 1) <= 0.05).sum())


def test_heavy_tails_do_not_hide_the_other_hypothesis():
    alone = stats.norm.sf(stats.norm.ppf(0.95) - 3)
    assert rejections("min-p", 3.0) >= 0.85 * alone * TRIALS
    assert rejections("max-t", 3.0) <= 0.3 * TRIALS


def test_level():
    """Exactly: all of T and its replicates are exchangeable here."""
    assert stats.binomtest(
        rejections("min-p", 0.0), TRIALS, 0.055, alternative="greater"
    ).pvalue > (0.001)
    assert rejections("min-p", 0.0) >= 0.02 * TRIALS  # nor far below it


def test_against_the_definition():
    """min over hypotheses of the share of its replicates that are as large, by brute force."""
    rng = np.random.default_rng(3)
    replicates, statistics = rng.normal(size=(3, 60)), np.array([0.5, 2.4, 1.1])
    replicates[1, 4] = np.nan  # a resample without spread is beyond all
    known = np.where(np.isnan(replicates), np.inf, replicates)
    own = [[np.mean(row < t) for t in (s, *row)] for s, row in zip(statistics, known, strict=True)]
    places, of_replicates = own_places(statistics, replicates)
    np.testing.assert_allclose(places / 60, [one[0] for one in own])
    np.testing.assert_allclose(of_replicates / 60, [one[1:] for one in own])
    expected, bound = np.empty(3), 0.0
    for rank, index in enumerate(np.argsort(-places)):
        left = np.argsort(-places)[rank:]
        share = (np.sum(of_replicates[left].max(0) >= places[index]) + 1) / 61
        expected[index] = bound = max(bound, share)
    found = adjust(Family(statistics, None, np.eye(3), replicates), "min-p", 0).pvalues
    np.testing.assert_allclose(found, expected)


def test_one_hypothesis_and_models_keep_max_t():
    assert Decision().settled(1).correction == "max-t"
    assert Decision().settled(2).correction == "min-p"
    assert Decision(correction="max-t").settled(2).correction == "max-t"
