"""Errors over whole families: tied models, several kernels, both operators; nearly identical
models.
"""

import nulls
import numpy as np
import oracles
import pytest
import studies
from scipy import stats

import lksd
from lksd.kernels import IMQ

SIGNIFICANT = 0.001
FEW, MANY = 60, 2_000
DEGENERATE = {
    "identical, exact": lambda dim, n: studies.identical_noisy(dim, n, 0.5, noise=0.0),
    "identical, noisy": studies.identical_noisy,
    "P = Q = R": lambda dim, n: studies.identical_noisy(dim, n, shift=0.0),
    "P = Q far from R": lambda dim, n: studies.identical_noisy(dim, n, shift=2.0),
    "nearly equal": nulls.nearly_equal,
}


def rejected(rejects, trials: int) -> int:
    return sum(rejects(number) for number in range(trials))


def tied_ranking(number: int) -> lksd.RankResult:
    return lksd.rank_scores(*nulls.tied_scores(number, 50), IMQ(nulls.six_tied()[1]), seed=number)


MIRROR = studies.mirror(2, 40)


def eight_kernels(number: int, correction: str = "max-t", trial=MIRROR) -> bool:
    x, p, q = trial(np.random.default_rng([number, 8]))
    return lksd.compare_scores(x, p, q, nulls.eight(2), seed=number, correction=correction).reject


def test_the_six_models_tie():
    """The means of all differences over large samples are nil within their standard errors."""
    kernel = IMQ(nulls.six_tied()[1])
    found = [
        lksd.rank_scores(*nulls.tied_scores(number, 500), kernel, calibration="normal")
        for number in range(30)
    ]
    ksd = np.array([one.ksd[np.argsort(one.names)] for one in found])
    differences = ksd[:, 1:] - ksd[:, :1]
    assert (np.abs(differences.mean(0)) < 4 * differences.std(0, ddof=1) / np.sqrt(30)).all()


def test_few_false_rejections_among_six_tied_models():
    assert (
        studies.above(rejected(lambda number: tied_ranking(number).reject, FEW), FEW) > SIGNIFICANT
    )


@pytest.mark.slow
def test_familywise_error_of_six_tied_models():
    results = [tied_ranking(number) for number in range(MANY)]
    errors = sum(one.reject for one in results)
    missed = sum("model 0" not in one.confidence_set for one in results)
    print(
        f"\nfamilywise error | six tied models | {errors / MANY:.4f} | one of the best is not in "
        f"the set {missed / MANY:.4f}"
    )
    assert studies.above(errors, MANY) > SIGNIFICANT


@pytest.mark.slow
def test_the_confidence_set_covers_the_best_model():
    """Three models in a row, the first the best by little."""
    kernel, missed = IMQ(oracles.median_scale(2)), 0
    for number in range(MANY):
        x = np.random.default_rng([number, 3]).normal(size=(50, 2))
        scores = {str(m): -(x - m * np.eye(2)[0]) for m in (0.4, -0.45, 0.5)}
        missed += "0.4" not in lksd.rank_scores(x, scores, kernel, seed=number).confidence_set
    print(f"\nconfidence set | misses the best {missed / MANY:.4f}")
    assert studies.above(missed, MANY) > SIGNIFICANT


@pytest.mark.slow
def test_familywise_error_of_eight_kernels():
    errors = rejected(eight_kernels, MANY)
    print(f"\nfamilywise error | eight kernels, mirror images | {errors / MANY:.4f}")
    assert studies.above(errors, MANY) > SIGNIFICANT


@pytest.mark.slow
def test_familywise_error_of_both_operators():
    errors = rejected(nulls.both_operators(50).rejects, MANY)
    print(f"\nfamilywise error | difference and Barker, asymmetric tie | {errors / MANY:.4f}")
    assert studies.above(errors, MANY) > SIGNIFICANT


@pytest.mark.slow
def test_max_t_is_as_powerful_as_holm():
    trial = studies.shifts(2, 40, 1.0, 0.3)
    power = {
        c: rejected(lambda number, c=c: eight_kernels(number, c, trial), 300) / 300
        for c in ("max-t", "holm", "bonferroni")
    }
    print(f"\npower of eight kernels | {power}")
    assert power["max-t"] >= power["holm"] >= power["bonferroni"]
    assert 0.2 < power["max-t"] < 0.98


@pytest.mark.parametrize(("trials"), [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DEGENERATE)
def test_level_where_models_are_alike(name, trials):
    errors = studies.rejections(
        DEGENERATE[name](5, 50), IMQ(oracles.median_scale(5)), trials, seed=3
    )
    if trials == MANY:
        print(f"\nlevel by default | {name} | D = 5, n = 50 | {errors / trials:.4f}")
    assert studies.above(errors, trials) > SIGNIFICANT
    if name == "identical, exact":
        assert errors == 0


def test_degeneracy_is_detected_and_said():
    kernel = IMQ(oracles.median_scale(5))
    found = {
        name: [
            lksd.compare_scores(*trial(np.random.default_rng(seed)), kernel, seed=seed)
            for seed in range(20)
        ]
        for name, trial in (
            ("right", studies.identical_noisy(5, 100, 0.0)),
            ("apart", studies.shifts(5, 100, 0.6, 0.3)),
        )
    }
    regularised = [one for one in found["right"] if one.variance == "regularised"]
    assert 6 <= len(regularised) <= 18  # about three in five by chance
    assert all("U is nearly degenerate" in str(one) for one in regularised)
    assert {one.variance for one in found["apart"]} == {"jackknife"}
    x, p, q = studies.identical_noisy(5, 100, 0.0)(np.random.default_rng(regularised[0].seed))
    one = regularised[0]
    asked, plain = (
        lksd.compare_scores(x, p, q, kernel, seed=one.seed, variance=v)
        for v in ("regularised", "jackknife")
    )
    assert one.statistic == asked.statistic
    # never below that of U itself
    assert one.pvalue == pytest.approx(max(asked.pvalue, plain.pvalue))
    assert one.confidence_interval() == pytest.approx(
        (
            min(a.confidence_interval()[0] for a in (asked, plain)),
            max(a.confidence_interval()[1] for a in (asked, plain)),
        )
    )


@pytest.mark.slow
def test_the_regularised_statistic_costs_little_power():
    """Paired trials of a non-degenerate alternative, the same threshold for both."""
    trial, kernel = studies.shifts(5, 100, 0.7, 0.3), IMQ(oracles.median_scale(5))
    power = {
        v: studies.rejections(trial, kernel, 1_000, seed=5, variance=v, calibration="normal")
        / 1_000
        for v in ("jackknife", "regularised")
    }
    print(f"\npower | non-degenerate alternative | {power}")
    assert power["regularised"] >= power["jackknife"] - 0.02


def test_margin_is_where_the_null_ends():
    """At a margin that equals the true difference few reject; without it most do."""
    trial, margin = nulls.at_margin(100)
    kernel = IMQ(oracles.median_scale(5))
    assert (
        studies.above(studies.rejections(trial, kernel, FEW, seed=7, margin=margin), FEW)
        > SIGNIFICANT
    )
    assert (
        stats.binomtest(
            studies.rejections(trial, kernel, FEW, seed=7), FEW, 0.2, alternative="greater"
        ).pvalue
        < 1e-6
    )
