"""compare_scores against brute force, symmetries and special cases."""

import threading
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
import oracles
import pandas
import polars
import pytest
from scipy import stats

import lksd
from lksd.kernels import IMQ, BagOfWords, Gaussian, Hamming, PerCoordinate
from lksd.stein import Barker, Difference, Gibbs, Langevin, gram_sums, stein_kernel

N, DIM = 14, 3


def data(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, DIM))
    return x, -(x - 0.4) + 0.1 * rng.normal(size=x.shape), -x / 1.3


def dense(x, p, q, kernel):
    h_p, h_q = (stein_kernel(Langevin(), kernel, x, score) for score in (p, q))
    return h_p, h_q, h_p - h_q


@pytest.mark.parametrize("variance", ["jackknife", "ustat", "vstat"])
def test_every_field_equals_brute_force(variance):
    x, p, q = data()
    kernel = IMQ(2.0)
    h_p, h_q, h = dense(x, p, q, kernel)
    result = lksd.compare_scores(
        x,
        p,
        q,
        kernel,
        variance=variance,
        calibration="normal" if variance != "jackknife" else "auto",
    )
    v = {
        "jackknife": oracles.jackknife,
        "ustat": oracles.ustat_variance,
        "vstat": oracles.vstat_variance,
    }[variance](h)
    assert v > 0
    assert result.difference == pytest.approx(oracles.u_statistic(h), rel=1e-10)
    assert result.standard_error == pytest.approx(np.sqrt(v / N), rel=1e-9)
    assert result.statistic == pytest.approx(
        np.sqrt(N) * oracles.u_statistic(h) / np.sqrt(v), rel=1e-9
    )
    assert result.ksd_p == pytest.approx(oracles.u_statistic(h_p), rel=1e-10)
    assert result.ksd_q == pytest.approx(oracles.u_statistic(h_q), rel=1e-10)
    assert result.ksd_p_error == pytest.approx(np.sqrt(oracles.jackknife(h_p) / N), rel=1e-9)
    assert result.ksd_q_error == pytest.approx(np.sqrt(oracles.jackknife(h_q) / N), rel=1e-9)
    np.testing.assert_allclose(
        result.contributions, oracles.off_diagonal(h).sum(1) / (N * (N - 1)), rtol=1e-9
    )
    assert result.contributions.sum() == pytest.approx(result.difference, rel=1e-12)
    assert result.zeta == pytest.approx(oracles.zetas(h), rel=1e-9)
    assert result.n == N
    zeta_1, zeta_2 = oracles.zetas(h)
    size = result.required_n(0.9)
    quantiles = stats.norm.ppf(0.95) + stats.norm.ppf(0.9)

    def spread(n):
        return np.sqrt(max((4 * (n - 2) * zeta_1 + 2 * zeta_2) / (n * (n - 1)), 0))

    if result.difference > 0:
        assert result.difference >= quantiles * spread(size)
    else:
        assert size == np.inf


def test_normal_calibration_is_the_papers():
    x, p, q = data(60)
    result = lksd.compare_scores(x, p, q, IMQ(2.0), calibration="normal", alpha=0.1)
    assert result.pvalue == pytest.approx(stats.norm.sf(result.statistic), rel=1e-10)
    assert result.reject == (result.statistic > stats.norm.ppf(0.9))
    low, high = result.confidence_interval(0.9)
    assert (high - low) / 2 == pytest.approx(stats.norm.ppf(0.95) * result.standard_error, rel=1e-9)
    both = lksd.compare_scores(x, p, q, IMQ(2.0), calibration="normal", alternative="two-sided")
    assert both.pvalue == pytest.approx(2 * stats.norm.sf(abs(both.statistic)), rel=1e-10)


def test_default_is_the_larger_of_bootstrap_and_normal():
    x, p, q = data(60)
    results = {
        c: lksd.compare_scores(x, p, q, IMQ(2.0), calibration=c).pvalue
        for c in ("auto", "bootstrap", "normal")
    }
    assert results["auto"] == max(results["bootstrap"], results["normal"])


def test_edgeworth_takes_over_for_large_samples():
    x, p, q = data(1_200)
    results = {
        c: lksd.compare_scores(x, q, p, IMQ(2.0), calibration=c)
        for c in ("auto", "edgeworth", "normal")
    }
    assert "Edgeworth" in results["auto"].calibration
    assert results["auto"].pvalue == max(results["edgeworth"].pvalue, results["normal"].pvalue)


def test_edgeworth_from_a_subset_is_close_to_all(monkeypatch):
    from lksd.inference import hypotheses

    x, p, q = data(1_500)
    whole = lksd.compare_scores(x, p, q, IMQ(2.0), calibration="edgeworth").null
    monkeypatch.setattr(hypotheses, "EDGEWORTH_ROWS", 700)
    part = lksd.compare_scores(x, p, q, IMQ(2.0), calibration="edgeworth").null
    assert part != whole
    assert part.c == pytest.approx(whole.c, abs=0.02)
    assert part.a == pytest.approx(whole.a, abs=0.02)


@pytest.mark.parametrize("variance", ["jackknife", "ustat", "vstat", "regularised"])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_swapping_the_models_negates_everything(variance, alternative):
    x, p, q = data(40)
    options = {"variance": variance, "alternative": alternative}
    one, other = (
        lksd.compare_scores(x, p, q, IMQ(2.0), **options),
        lksd.compare_scores(x, q, p, IMQ(2.0), **options),
    )
    assert one.statistic == -other.statistic
    assert one.difference == -other.difference
    np.testing.assert_array_equal(one.contributions, -other.contributions)
    assert (one.ksd_p, one.ksd_q) == (other.ksd_q, other.ksd_p)
    low, high = one.confidence_interval()
    assert other.confidence_interval() == pytest.approx((-high, -low))
    if alternative == "two-sided":
        assert one.pvalue == pytest.approx(other.pvalue)


@pytest.mark.parametrize("variance", ["jackknife", "ustat", "vstat", "regularised"])
@pytest.mark.parametrize("change", [0.0, 1e-15])
def test_identical_scores_are_indistinguishable(variance, change):
    x, p, _ = data(40)
    for alternative in ("greater", "two-sided"):
        result = lksd.compare_scores(
            x, p, p * (1 + change), IMQ(2.0), variance=variance, alternative=alternative
        )
        assert (result.statistic, result.pvalue, result.reject, result.difference) == (
            0.0,
            1.0,
            False,
            0.0,
        )
        assert "indistinguishable" in str(result)
        assert result.confidence_interval() == (0.0, 0.0)
        assert result.required_n() == np.inf


def test_close_models_are_still_compared():
    """A relative change of 1e-9 in the scores is far above rounding."""
    x = data(200)[0]
    wide = lksd.compare_scores(x, -(x - 0.4) * (1 + 1e-9), -(x - 0.4), IMQ(2.0))
    assert not wide.indistinguishable
    assert wide.statistic == pytest.approx(
        lksd.compare_scores(x, -(x - 0.4) * (1 + 1e-6), -(x - 0.4), IMQ(2.0)).statistic, rel=1e-3
    )


def test_negative_variance_keeps_the_null():
    """Two right models whose scores differ by noise: the U-statistic variance is negative in about
    half of the samples.
    """
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(20, 1))
        p, q = (-x + 0.1 * rng.normal(size=x.shape) for _ in range(2))
        result = lksd.compare_scores(x, p, q, IMQ(1.0), variance="ustat")
        if np.isnan(result.standard_error):
            found += 1
            assert (result.pvalue, result.reject) == (1.0, False)
            assert "negative" in str(result)
            assert result.confidence_interval() == (-np.inf, np.inf)
    assert found > 0


def test_regularised_statistic_equals_its_formula():
    x, p, q = data(15)
    *_, h = dense(x, p, q, IMQ(2.0))
    result = lksd.compare_scores(x, p, q, IMQ(2.0), variance="regularised", seed=3)
    order = np.random.default_rng(3).permutation(15)[:14]
    pairs = h[order[0::2], order[1::2]]
    eps, u = 15 ** (-1 / 3), oracles.u_statistic(h)
    r = oracles.off_diagonal(h).sum(1) / 14
    g = 2 * (r[order[0::2]] + r[order[1::2]] - 2 * u) + 2 * eps * (pairs - pairs.mean())
    assert result.statistic == pytest.approx(
        np.sqrt(15) * (u + eps * pairs.mean()) / np.sqrt(np.var(g, ddof=1) / 2), rel=1e-9
    )


def test_a_kernel_that_is_zero_between_observations_does_not_make_models_alike():
    x, p, q = data(30)
    result = lksd.compare_scores(x, p, q, Gaussian(1e-8))
    assert (result.pvalue, result.reject, result.indistinguishable) == (1.0, False, False)
    assert "rounding level" in str(result)
    assert "scores agree" not in str(result)


def test_undecided_results_ask_for_more_than_they_had():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(40, 1))
        p, q = (-(x - 0.1) + 0.3 * rng.normal(size=x.shape) for _ in range(2))
        sentence = lksd.compare_scores(x, p, q, IMQ(1.0)).sentence
        if "new sample of" in sentence:
            assert int(sentence.split("new sample of ")[1].split(" ")[0].replace(",", "")) > 40


def test_tiny_levels_are_reached():
    x = np.random.default_rng(0).normal(size=(300, 2))
    for kernel in (IMQ(2.0), [IMQ(2.0), IMQ(8.0)]):
        result = lksd.compare_scores(x, -(x - 1.5), -x, kernel, alpha=1e-8)
        assert result.reject
        assert result.pvalue < 1e-8


def test_one_far_outlier_costs_no_precision():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    x[7] = 1e6
    p, q = -x + 0.1, -x / 1.2
    rows = [
        gram_sums(Langevin(), IMQ(2.0), x, np.stack([p, q]), [1.0, -1.0], tile=tile).rows
        for tile in (None, 7)
    ]
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-12 * np.abs(rows[0]).max(), rtol=0)


def test_callable_objects_are_kernels():
    @dataclass
    class Plain:
        scale: float

        def __call__(self, a, b):
            return jax.numpy.exp(-jax.numpy.sum((a - b) ** 2) / self.scale)

    class Module(eqx.Module):
        scale: jax.Array

        def __call__(self, a, b):
            return jax.numpy.exp(-jax.numpy.sum((a - b) ** 2) / self.scale)

    x, p, q = data(20)
    expected = lksd.compare_scores(x, p, q, Gaussian(1.5)).statistic
    for kernel in (
        Plain(3.0),
        Module(jax.numpy.asarray(3.0)),
        lambda a, b: jax.numpy.exp(-((a - b) ** 2).sum() / 3),
    ):
        assert lksd.compare_scores(x, p, q, kernel).statistic == pytest.approx(expected, rel=1e-9)


def test_kernels_may_be_mapped_under_default_precision():
    x = data(20)[0]
    mapped = jax.vmap(lambda a: IMQ(2.0)(a, x[0]))(x)
    np.testing.assert_allclose(mapped, [float(IMQ(2.0)(a, x[0])) for a in x], rtol=1e-5)


# ------------------------------------------------------------- several hypotheses


def test_family_of_kernels():
    x, p, q = data(80)
    kernels = [IMQ.median(x), Gaussian.median(x), PerCoordinate.median(x)]
    result = lksd.compare_scores(x, p, q, kernels)
    alone = [lksd.compare_scores(x, p, q, kernel) for kernel in kernels]
    assert [t.statistic for t in result.tests] == pytest.approx([a.statistic for a in alone])
    # the correction is upwards
    assert all(t.pvalue >= a.pvalue - 0.01 for t, a in zip(result.tests, alone, strict=True))
    assert result.pvalue == min(t.pvalue for t in result.tests)
    assert result.kernel in str(result)
    assert "min-p" in str(result)


def test_family_with_one_member_repeated_is_that_member():
    x, p, q = data(80)
    kernel = IMQ(2.0)
    one = lksd.compare_scores(x, p, q, kernel, calibration="bootstrap")
    three = lksd.compare_scores(x, p, q, [kernel] * 3, calibration="bootstrap")
    assert three.pvalue == one.pvalue


@pytest.mark.parametrize("calibration", ["auto", "bootstrap", "edgeworth", "normal"])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_family_under_every_calibration(calibration, alternative):
    x, p, q = data(60)
    result = lksd.compare_scores(
        x, p, q, [IMQ(1.0), IMQ(4.0)], calibration=calibration, alternative=alternative
    )
    assert len(result.tests) == 2
    assert 0 < result.pvalue <= 1
    same = lksd.compare_scores(
        x, p, p, [IMQ(1.0), IMQ(4.0)], calibration=calibration, alternative=alternative
    )
    assert (same.pvalue, same.statistic, same.reject) == (1.0, 0.0, False)


def test_family_of_discrete_operators():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (30, 3))
    operators = (Difference(4), Barker(4, witness="shared"), Gibbs(4))
    shapes = [operator.score_shape(x) for operator in operators]
    p, q = (tuple(rng.random(shape) for shape in shapes) for _ in range(2))
    result = lksd.compare_scores(x, p, q, [Hamming(), BagOfWords(IMQ(), 4)], operator=operators)
    assert len(result.tests) == 6
    single = lksd.compare_scores(x, p[1], q[1], Hamming(), operator=operators[1])
    assert result.tests[2].statistic == pytest.approx(single.statistic)


# ------------------------------------------------------------- precision and forms of data


def test_float64_with_default_settings_and_from_threads():
    x, p, q = data(30)
    found = {}

    def work():
        found["result"] = lksd.compare_scores(x.astype(np.float32), p, q, IMQ(2.0))
        found["x64"] = jax.config.jax_enable_x64

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    here = lksd.compare_scores(x.astype(np.float32), p, q, IMQ(2.0))
    assert found["result"].statistic == here.statistic
    assert not found["x64"]
    assert here.contributions.dtype == np.float64
    h = dense(x, p, q, IMQ(2.0))[2]
    assert lksd.compare_scores(x, p, q, IMQ(2.0)).difference == pytest.approx(
        oracles.u_statistic(h), rel=1e-12
    )


def test_forms_of_data():
    x, p, q = data(30)
    frame = pandas.DataFrame(x, columns=list("abc"))
    jax_arrays = [jax.numpy.asarray(a) for a in (p, q)]
    with jax.enable_x64(True):
        exact = [jax.numpy.asarray(a) for a in (p, q)]
    assert (
        lksd.compare_scores(polars.DataFrame(x), p, q, IMQ(2.0)).statistic
        == lksd.compare_scores(x, p, q, IMQ(2.0)).statistic
    )
    assert (
        lksd.compare_scores(frame, p, q, IMQ(2.0)).statistic
        == lksd.compare_scores(x, *exact, IMQ(2.0)).statistic
    )
    assert lksd.compare_scores(x.tolist(), *jax_arrays, IMQ(2.0)).statistic == pytest.approx(
        lksd.compare_scores(x, p, q, IMQ(2.0)).statistic, rel=1e-4
    )
    one = lksd.compare_scores(x[:, 0], p[:, 0], q[:, 0], IMQ(2.0))
    assert one.statistic == lksd.compare_scores(x[:, :1], p[:, :1], q[:, :1], IMQ(2.0)).statistic


def test_mask_equals_ragged_documents():
    rng = np.random.default_rng(2)
    documents = [rng.integers(0, 5, length).tolist() for length in rng.integers(2, 6, 20)]
    width = max(map(len, documents))
    mask = np.array([[d < len(document) for d in range(width)] for document in documents])
    x = np.array([document + [0] * (width - len(document)) for document in documents])
    p, q = rng.random((2, 20, width))
    for witness in ("per-coordinate", "shared"):
        options = {"operator": Difference(5, witness=witness)}
        masked = lksd.compare_scores(
            x,
            np.where(mask, p, np.nan),
            np.where(mask, q, np.nan),
            BagOfWords(IMQ(), 5),
            mask=mask,
            **options,
        )
        ragged = lksd.compare_scores(documents, p, q, BagOfWords(IMQ(), 5), **options)
        assert masked.statistic == ragged.statistic


# ------------------------------------------------------------- the quantity that is estimated


def test_ksd_of_gaussians_within_monte_carlo_error():
    """U(P) and U(Q) against quadrature, at a fixed seed, by their own standard errors."""
    dim, n, scale = 3, 3_000, 4.0
    x = np.random.default_rng(11).normal(size=(n, dim))
    shift, sigma = 0.7, 1.4
    result = lksd.compare_scores(x, -(x - shift * np.eye(dim)[0]), -x / sigma**2, IMQ(scale))
    exact_p, exact_q = oracles.ksd_shifted(shift, dim, scale), oracles.ksd_scaled(sigma, dim, scale)
    assert abs(result.ksd_p - exact_p) < 3 * result.ksd_p_error
    assert abs(result.ksd_q - exact_q) < 3 * result.ksd_q_error
    assert abs(result.difference - (exact_p - exact_q)) < 3 * result.standard_error
    low, high = result.confidence_interval(0.99)
    assert low < exact_p - exact_q < high


@pytest.mark.parametrize("n", [99, 100])
def test_small_samples_are_said_to_be_small(n):
    x = np.random.default_rng(0).normal(size=(n, 2))
    scores = {"near": -x, "far": -(x - 1), "farther": -(x - 2)}
    for notes in (
        lksd.compare_scores(x, scores["far"], scores["near"], IMQ(2.0)).notes,
        lksd.rank_scores(x, scores, IMQ(2.0)).notes,
    ):
        assert any(note.startswith(f"n = {n} is small: ") for note in notes) == (n < 100)
    alone = (
        lksd.rank_scores(x, {"one": -x, "the same": -x}, IMQ(2.0)),
        lksd.compare_scores(x, -x + 1, -x, IMQ(2.0), calibration="normal"),
    )
    # nothing to judge, and a level never claimed
    assert not any("small" in note for result in alone for note in result.notes)
