"""From models and data to an answer in one call."""

import ksd
import numpy as np
import pytest
from scipy import stats

import lksd
from lksd.kernels import IMQ, Standardised
from lksd.models import PPCA
from lksd.samplers import MALA


def problem(n, delta_p, delta_q, dim=10, latent=3, seed=0):
    rng = np.random.default_rng(seed)
    weight = rng.random((dim, latent))
    x = rng.normal(size=(n, latent)) @ weight.T + rng.normal(size=(n, dim))

    def perturbed(delta):
        changed = weight.copy()
        changed[0, 0] += delta
        return PPCA(changed, 1.0)

    return x, perturbed(delta_p), perturbed(delta_q)


@pytest.mark.slow
def test_exact_and_sampled_scores_agree():
    x, p, q = problem(80, 3.0, 0.5)
    exact, sampled = ksd.compare(x, p, q), ksd.compare(x, p, q, exact=False)
    assert sampled.statistic == pytest.approx(exact.statistic, rel=1e-6)
    assert exact.diagnostics.method_p == "exact marginal score"
    assert exact.diagnostics.noise_share is None
    assert sampled.diagnostics.noise_share < 1e-10  # control variates leave nothing
    assert "Standardised" in exact.kernel
    assert str(sampled.diagnostics) in str(sampled)


@pytest.mark.slow
def test_share_of_noise_against_repeated_seeds():
    """The share predicts how much of Var(T) vanishes when only the chains are drawn again."""
    x, p, q = problem(60, 3.0, 0.5)
    q_scores = lksd.estimate_scores(q, x)
    options = {"exact": False, "warmup": 100, "draws": 40, "control_variates": "none"}
    runs = [
        ksd.compare(x, lksd.estimate_scores(p, x, seed=seed, **options), q_scores, kernel=IMQ(20.0))
        for seed in range(40)
    ]
    seen = np.var([run.difference for run in runs], ddof=1)
    predicted = np.mean([run.diagnostics.noise_share * run.standard_error**2 for run in runs])
    assert predicted / 3 < seen < 3 * predicted


def test_score_estimates_are_reused(tmp_path):
    x, p, q = problem(40, 3.0, 0.5)
    path = tmp_path / "p.npz"
    lksd.estimate_scores(p, x).save(path)
    assert ksd.compare(x, lksd.load_scores(path), q).statistic == ksd.compare(x, p, q).statistic


def test_preset_is_the_papers():
    x, p, q = problem(40, 3.0, 0.5)
    result = ksd.compare(x, p, q, preset="paper", warmup=50, draws=40)
    assert result.calibration == "normal"
    assert result.kernel == str(IMQ.median(x))
    assert result.diagnostics.method_p.startswith("NUTS, 1 chain of 40 draws after 50, plain means")
    assert result.pvalue == pytest.approx(stats.norm.sf(result.statistic))


def test_beginnings_that_chains_remember_are_warned_of():
    x, p, q = problem(60, 3.0, 0.5)
    good = ksd.compare(x, p, q, exact=False)
    assert good.diagnostics.start_shift < 0.01
    slow = {
        "exact": False,
        "sampler": MALA(step_size=1e-5),
        "warmup": 10,
        "draws": 20,
        "control_variates": "none",
    }
    with pytest.warns(lksd.LksdWarning, match="began at different points still differ"):
        result = ksd.compare(x, lksd.estimate_scores(p, x, **slow), q, kernel=IMQ(20.0))
    assert result.diagnostics.start_shift > 0.5
    assert "starting points shift T by at most" in str(result)


def test_scales_from_a_holdout():
    x, p, q = problem(60, 3.0, 0.5)
    holdout = 5 * np.random.default_rng(9).normal(size=(50, 10))
    result = ksd.compare(x, p, q, holdout=holdout)
    assert result.kernel == str(Standardised.median(holdout))
    assert "the kernel's scales come from a holdout of 50 observations." in result.notes
    with pytest.raises(ValueError, match="holdout: expected 10 columns"):
        ksd.compare(x, p, q, holdout=holdout[:, :3])


def test_standardise_makes_units_irrelevant():
    x, p, q = problem(60, 3.0, 0.5)
    units = np.geomspace(1, 1000, 10)
    scaled = [lksd.models.FactorAnalysis(one.weight * units[:, None], units**2) for one in (p, q)]
    with pytest.warns(lksd.LksdWarning, match="columns differ in scale by a factor of"):
        ksd.compare(x * units, *scaled, kernel=IMQ.median(x * units))
    plain = [ksd.compare(*data).statistic for data in ((x, p, q), (x * units, *scaled))]
    assert plain[0] == pytest.approx(plain[1], rel=1e-8)  # nor do they matter by default
    results = [ksd.compare(*data, standardise=True) for data in ((x, p, q), (x * units, *scaled))]
    assert results[0].statistic == pytest.approx(results[1].statistic, rel=1e-8)
    sampled = ksd.compare(x * units, *scaled, standardise=True, exact=False)
    assert sampled.statistic == pytest.approx(results[0].statistic, rel=1e-6)
    with pytest.raises(ValueError, match="column 2 of x is constant"):
        ksd.compare(np.where(np.arange(10) == 2, 0.0, x), p, q, standardise=True)


def test_json_keeps_the_diagnostics(tmp_path):
    x, p, q = problem(30, 3.0, 0.5)
    result = ksd.compare(x, p, q, exact=False, draws=50)
    result.to_json(tmp_path / "r.json")
    assert lksd.load_result(tmp_path / "r.json").diagnostics == result.diagnostics


def test_goodness_of_fit():
    x, p, q = problem(150, 3.0, 0.0)
    assert lksd.goodness_of_fit(x, p).reject
    assert not lksd.goodness_of_fit(x, q).reject


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda x, p, q: ksd.compare(x, p, 3),
            TypeError,
            "q: expected a lksd.models.LatentVariableModel, or a fitted model",
        ),
        (
            lambda x, p, q: ksd.compare(x, p, q, operator="barker"),
            ValueError,
            "operator: expected 'langevin'",
        ),
        (
            lambda x, p, q: ksd.compare(x, p, q, preset="papers"),
            ValueError,
            "preset: expected one of 'paper'",
        ),
        (
            lambda x, p, q: ksd.compare(x[:, :4], p, q, exact=False),
            ValueError,
            r"expected sample\(key\) of PPCA .* shape \(4,\)",
        ),
        (
            lambda x, p, q: ksd.compare(x, lksd.estimate_scores(p, x[:10]), q),
            ValueError,
            "expected the 10 observations that the scores of P belong to, in their order; got 30",
        ),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call(*problem(30, 3.0, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "least"), [(100, 0.7), (200, 0.97)])
def test_power_of_the_default_kernel_in_the_papers_second_problem(n, least):
    """PPCA, D = 100, Dz = 10, perturbations (2, 1)."""
    rejected = radial = 0
    for trial in range(200):
        x, p, q = problem(n, 2.0, 1.0, dim=100, latent=10, seed=trial)
        rejected += ksd.compare(x, p, q, seed=trial).reject
        radial += ksd.compare(x, p, q, seed=trial, kernel=IMQ.median(x)).reject
    print(
        f"\nPPCA Problem 2 | n = {n} | default {rejected / 200:.3f} | IMQ-median {radial / 200:.3f}"
    )
    assert rejected / 200 >= least
