"""Incomplete U-statistics: their variance by enumeration, their level, and what the result says."""

from itertools import product

import ksd
import numpy as np
import oracles
import pytest
import studies
from scipy import stats

import lksd
from lksd.kernels import IMQ
from lksd.statistics.ustatistic import (
    Components,
    components,
    hoeffding_variance,
    incomplete_variance,
    u_statistic,
)
from lksd.stein.gram import Tiling

KERNEL = IMQ(2.0)


def enumerated(tiling: Tiling, met: np.ndarray):
    """U, zeta_1 and zeta_2 of every sample from three equally likely values, and the truth."""
    table = np.array([[0.3, -0.5, 1.1], [-0.5, 0.9, 0.2], [1.1, 0.2, -1.4]])
    samples = np.array(list(product(range(3), repeat=tiling.n)))
    h = table[samples[:, :, None], samples[:, None, :]] * met
    factor = tiling.n * (tiling.n - 1) / met.sum()
    rows, squares = factor * h.sum(2), factor * np.sum(h**2, (1, 2))
    truth = Components(table.mean(1).var(), table.var())
    return u_statistic(rows), components(rows, squares, met.sum(1)), table.mean(), truth


@pytest.mark.parametrize(
    "tiling", [Tiling(8, 2, 1), Tiling(8, 3, 0), Tiling(7, 1, 2), Tiling(7, 7)]
)
def test_variance_by_enumeration(tiling):
    """Over all samples the estimates have no bias, and Var(U) is what the formula says; with all
    pairs it is the paper's.
    """
    met = oracles.pairs_met(tiling)
    u, found, mean, truth = enumerated(tiling, met)
    np.testing.assert_allclose(u.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(found.zeta_1.mean(), truth.zeta_1, rtol=1e-10)
    np.testing.assert_allclose(found.zeta_2.mean(), truth.zeta_2, rtol=1e-10)
    np.testing.assert_allclose(
        incomplete_variance(truth, met.sum(1)), tiling.n * u.var(), rtol=1e-10
    )
    if tiling.reach is None:
        np.testing.assert_allclose(
            incomplete_variance(truth, met.sum(1)), tiling.n * hoeffding_variance(tiling.n, truth)
        )


def statistics(trial, pairs: int, trials: int) -> np.ndarray:
    found = []
    for number in range(trials):
        x, p, q = trial(np.random.default_rng([number, 11]))
        found.append(lksd.compare_scores(x, p, q, KERNEL, pairs=pairs, seed=number).statistic)
    return np.array(found)


@pytest.mark.parametrize(
    "trial", [studies.mirror(2, 200), studies.identical_noisy(2, 200)], ids=["mirror", "identical"]
)
def test_the_statistic_is_normal_where_models_tie(trial):
    """Also for models that are the same, where the complete U-statistic is not normal."""
    assert stats.kstest(statistics(trial, 1_500, 400), "norm").pvalue > 0.001


def test_more_pairs_cost_less_variance():
    x, p, q = studies.identical_noisy(3, 2_000, shift=0.0)(np.random.default_rng(0))
    few, many, every = (
        lksd.compare_scores(x, p, q, KERNEL, pairs=pairs) for pairs in (10_000, 200_000, 10**7)
    )
    assert few.standard_error > 3 * many.standard_error > 3 * every.standard_error
    assert few.variance == many.variance == "incomplete"
    assert every.variance == "jackknife"
    assert "of 1,999,000 pairs of observations are taken, which adds" in str(few)
    assert few.difference == pytest.approx(every.difference, abs=4 * few.standard_error)
    assert few.contributions.sum() == pytest.approx(few.difference)


def test_pairs_are_chosen_by_the_seed():
    x, p, q = studies.shifts(3, 500, 0.5, 0.3)(np.random.default_rng(0))
    first, again, other = (
        lksd.compare_scores(x, p, q, KERNEL, pairs=5_000, seed=seed) for seed in (1, 1, 2)
    )
    assert first.difference == again.difference != other.difference


def test_ranking_by_some_pairs(tmp_path):
    x = np.random.default_rng(0).normal(size=(1_000, 2))
    scores = {"far": -(x - 1.0), "near": -(x - 0.7), "right": -x}
    result = lksd.rank_scores(x, scores, KERNEL, pairs=20_000)
    assert result.names == ("right", "near", "far")
    assert result.confidence_set == ("right",)
    assert "pairs of observations" in str(result)
    compared = lksd.compare_scores(x, scores["far"], scores["right"], KERNEL, pairs=20_000)
    compared.to_json(tmp_path / "result.json")
    assert str(lksd.load_result(tmp_path / "result.json")) == str(compared)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": 0}, "pairs: expected a positive integer"),
        ({"pairs": 1e6}, "pairs: expected a positive integer"),
        ({"pairs": True}, "pairs: expected a positive integer"),
        (
            {"pairs": 100},
            "pairs: expected at least 400, 8 partners for each of 100 observations; got 100",
        ),
        ({"pairs": 1_000, "variance": "jackknife"}, "pairs: expected with variance='auto'"),
        ({"pairs": 1_000, "calibration": "bootstrap"}, "pairs: expected with variance='auto'"),
    ],
)
def test_bad_input(options, message):
    x = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(ValueError, match=message):
        lksd.compare_scores(x, -x, -x / 2, KERNEL, **options)


@pytest.mark.parametrize(
    "call",
    [
        ksd.compare,
        lambda x, p, q, **options: ksd.rank(x, {"p": p, "q": q}, **options),
    ],
)
def test_too_few_pairs_are_refused_before_any_chain_runs(call, monkeypatch):
    monkeypatch.setattr("lksd.scores.estimate.estimate", lambda *_, **__: pytest.fail("chains ran"))
    p, q = (lksd.models.PPCA(np.ones((2, 1)), scale) for scale in (1.0, 2.0))
    with pytest.raises(ValueError, match="pairs: expected at least 400"):
        call(np.random.default_rng(0).normal(size=(100, 2)), p, q, pairs=100)
