"""Losses from anywhere: the mean as a U-statistic of degree one."""

import numpy as np
import pytest
from scipy import stats

import lksd

RNG = np.random.default_rng(7)
A, B = RNG.normal(size=(2, 150)) ** 2


def test_a_difference_of_means():
    result = lksd.compare_pointwise(A + 0.2, B, calibration="normal")
    d = A + 0.2 - B
    assert result.statistic == pytest.approx(stats.ttest_1samp(d, 0).statistic, rel=1e-12)
    assert result.pvalue == pytest.approx(2 * stats.norm.sf(abs(result.statistic)), rel=1e-9)
    assert (result.difference, result.standard_error) == pytest.approx((d.mean(), stats.sem(d)))
    np.testing.assert_allclose(result.contributions, d / len(d), rtol=1e-9)
    assert (result.loss_p, result.loss_q) == pytest.approx((np.mean(A) + 0.2, np.mean(B)))
    assert np.isnan(result.ksd_p)
    wanted = stats.norm.isf(0.025) + stats.norm.isf(0.2)
    assert result.required_n(0.8) == np.ceil((wanted * d.std(ddof=1) / abs(d.mean())) ** 2)


def test_the_expansion_is_halls():
    """a = gamma / (3 root n) and c = gamma / (6 root n) for the skewness gamma of the mean."""
    rng = np.random.default_rng(957)
    d = rng.exponential(size=4_000)
    null = lksd.compare_pointwise(d, np.zeros(4_000), calibration="edgeworth").null
    gamma = stats.skew(d)
    assert null.a == pytest.approx(gamma / (3 * np.sqrt(4_000)), rel=2e-3)
    assert null.c == pytest.approx(gamma / (6 * np.sqrt(4_000)), rel=2e-3)


def test_the_bootstrap_resamples_the_mean():
    rng = np.random.default_rng(795)
    d = rng.exponential(size=60)
    null = lksd.compare_pointwise(d, np.zeros(60), calibration="bootstrap", seed=3).null
    chosen = np.random.default_rng(3).integers(0, 60, size=(1_999, 60))
    sample = d[chosen]
    wanted = (sample.mean(1) - d.mean()) / stats.sem(sample, axis=1)
    np.testing.assert_allclose(null.replicates, np.sort(wanted), rtol=1e-8)


@pytest.mark.parametrize("n", [100, 1_500])
def test_the_level_at_a_skewed_tie(n):
    """Exact binomial: at most 143 of 2,000 at level .05; the plain t test has more at n = 100."""
    rng = np.random.default_rng(n)
    trials = 2_000 if n == 100 else 400
    samples = rng.exponential(size=(trials, n)) - 1
    found = sum(
        lksd.compare_pointwise(one, np.zeros(n), calibration="edgeworth").reject for one in samples
    )
    assert found <= stats.binom.isf(0.001, trials, 0.05)


def test_exchanged_models_are_mirror_images():
    one, other = lksd.compare_pointwise(A, B + 0.3), lksd.compare_pointwise(B + 0.3, A)
    assert (one.pvalue, one.statistic) == (other.pvalue, -other.statistic)
    low, high = other.confidence_interval()
    assert one.confidence_interval() == pytest.approx((-high, -low), rel=1e-12)
    np.testing.assert_array_equal(one.contributions, -other.contributions)
    assert one.breakdown == other.breakdown


def test_names_labels_and_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = [f"row {i}" for i in range(150)]
    losses = {"wide": pandas.Series(A + 1, rows), "right": pandas.Series(B, rows)}
    result = lksd.compare_pointwise(losses)
    assert result.favours == "right"
    assert result.labels[:2] == ("row 0", "row 1")
    assert result.sentence.startswith("right fits better than wide (p = ")
    result.to_json(tmp_path / "result.json")
    assert lksd.load_result(tmp_path / "result.json").sentence == result.sentence
    result.to_html(tmp_path / "report.html")
    losses["right"] = losses["right"][::-1]
    with pytest.raises(ValueError, match="their labels differ"):
        lksd.compare_pointwise(losses)


def test_a_ranking():
    losses = {"a": A, "b": A[::-1].copy(), "c": A + 2 + 0.1 * B}
    result = lksd.rank_pointwise(losses)
    assert set(result.confidence_set) == {"a", "b"}
    assert result.names[2] == "c"
    pair = lksd.compare_pointwise(losses["c"], losses["a"])
    i, j = result.position("c"), result.position("a")
    assert result.differences[i, j] == pytest.approx(pair.difference)
    assert "mean loss" in str(result)


def test_few_observations_that_decide_are_said():
    rng = np.random.default_rng(0)
    d = rng.normal(0.3, 1.0, 200)
    assert lksd.compare_pointwise(d, np.zeros(200)).caution is None
    d = 0.05 * rng.normal(size=200)
    d[:8] = -np.linspace(3, 6, 8)
    result = lksd.compare_pointwise(d, np.zeros(200))
    assert result.favours == "P"
    assert result.caution == "decided by 10 of 200 observations"
    assert result.sentence.endswith(", decided by 10 of 200 observations.")
    assert 0 < result.breakdown <= 8


def test_the_margin_is_in_units_of_the_loss():
    rng = np.random.default_rng(534)
    d = rng.normal(1.0, 1.0, 300)
    assert lksd.compare_pointwise(d, np.zeros(300)).favours == "Q"
    assert lksd.compare_pointwise(d, np.zeros(300), margin=0.95).favours is None


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ((A, B[:-1]), "same observations; got 150 and 149"),
        ((A[:3], B[:3]), "at least 4 observations"),
        ((np.append(A, np.inf), np.append(B, 1.0)), "observation 150 is infinite"),
        ((np.append(A, np.nan), np.append(B, 1.0)), "finite numbers; got nan"),
        ((np.ones((20, 2)), np.ones((20, 2))), r"shape \(n,\); got shape \(20, 2\)"),
    ],
)
def test_bad_losses(losses, said):
    with pytest.raises(ValueError, match=said):
        lksd.compare_pointwise(*losses)


def test_equal_losses():
    result = lksd.compare_pointwise(A, A)
    assert (result.statistic, result.pvalue) == (0.0, 1.0)
    assert "indistinguishable" in result.sentence
