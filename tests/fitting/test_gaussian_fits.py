"""Factor analyses and mixtures against the equations of the maximum, and scikit-learn."""

import numpy as np
import polars
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn import decomposition, mixture

from lksd.fitting import fit_factors, fit_mixture, gaussian

RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(8, 3))
NOISE = RNG.uniform(0.3, 2, 8)
UNITS = 10.0 ** np.array([-6, 0, 3, -1, 1, 2, 0, 5])


def table(n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return 3 + rng.normal(size=(n, 3)) @ WEIGHTS.T + NOISE * rng.normal(size=(n, 8))


def covariance(model) -> np.ndarray:
    return model.loadings @ model.loadings.T + np.diag(model.noise_variance)


def log_likelihood(model, x) -> float:
    return multivariate_normal(model.mean, covariance(model)).logpdf(x).sum()


def mixture_log_likelihood(model, x) -> float:
    parts = zip(model.weights, model.means, model.covariances, strict=True)
    return np.log(sum(w * multivariate_normal(m, c).pdf(x) for w, m, c in parts)).sum()


# ------------------------------------------------------------- factors


@pytest.mark.parametrize("count", [1, 3, 7])
def test_the_misfit_is_the_likelihood(count):
    """At any noise, with the loadings that belong to it: against the density itself, and the
    gradient against differences.
    """
    x = table(50)
    x = (x - x.mean(0)) / x.std(0)
    correlations, found = np.corrcoef(x.T), []
    for log_noise in np.log(RNG.uniform(0.1, 0.9, (4, 8))):
        value, slope = gaussian.misfit(log_noise, correlations, count)
        loadings = gaussian.loadings_at(correlations, np.exp(log_noise), count)
        law = multivariate_normal(np.zeros(8), loadings @ loadings.T + np.diag(np.exp(log_noise)))
        found.append(value + 2 * law.logpdf(x).mean())
        numeric = approx_fprime(
            log_noise, lambda one: gaussian.misfit(one, correlations, count)[0], 1e-7
        )
        np.testing.assert_allclose(slope, numeric, atol=1e-5)
    np.testing.assert_allclose(found, -8 * np.log(2 * np.pi), rtol=1e-12)


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_likelihood_is_greater(n, count):
    """Nothing that scikit-learn finds within the bound is better, and where the bound does not hold
    it, the model has the variances of the data.
    """
    x = table(n)
    found = fit_factors(x, count, seed=0)
    assert found.notes == ()
    ours = log_likelihood(found.model, x)
    other = decomposition.FactorAnalysis(count, tol=1e-8, max_iter=3000).fit(x)
    if (other.noise_variance_ > gaussian.SMALLEST_NOISE * x.var(0)).all():
        assert ours > other.score_samples(x).sum() - 1e-3
    inside = found.model.noise_variance > 1.001 * gaussian.SMALLEST_NOISE * x.var(0)
    assert inside.any()
    variances = np.diag(covariance(found.model))
    np.testing.assert_allclose(variances[inside], x.var(0)[inside], rtol=1e-3)


def test_factors_in_any_units():
    x = table(100)
    plain, scaled = fit_factors(x, 3, 0).model, fit_factors(x * UNITS, 3, 0).model
    np.testing.assert_allclose(
        covariance(scaled), covariance(plain) * np.outer(UNITS, UNITS), rtol=1e-4
    )


def test_a_column_without_noise_keeps_some():
    """The likelihood rises as the noise of the first column, a factor itself, vanishes."""
    rng = np.random.default_rng(3)
    factor = rng.normal(size=300)
    x = factor[:, None] + np.array([1e-3, 1, 1, 1]) * rng.normal(size=(300, 4))
    noise = fit_factors(x, 1, 0).model.noise_variance
    assert noise[0] == pytest.approx(gaussian.SMALLEST_NOISE * x[:, 0].var(), rel=1e-6)
    assert (noise[1:] > 0.5).all()


def test_fewer_observations_than_columns():
    model = fit_factors(table(6), 2, 0).model
    assert np.isfinite(model.loadings).all()
    assert (model.noise_variance > 0).all()


def test_names_of_columns():
    frame = polars.DataFrame(table(20), schema=list("abcdefgh"))
    assert fit_factors(frame, 1, 0).model.columns == tuple("abcdefgh")
    assert fit_mixture(frame, 1, 0).model.columns == tuple("abcdefgh")
    assert fit_factors(table(20), 1, 0).model.columns is None


# ------------------------------------------------------------- mixtures

CENTRES = np.array([[0.0, 0], [8, 0], [0, 8]])


def clusters(n: int = 600) -> np.ndarray:
    rng = np.random.default_rng(1)
    return CENTRES[rng.integers(0, 3, n)] + rng.normal(size=(n, 2))


@pytest.mark.parametrize("kind", gaussian.COVARIANCES)
def test_clusters_are_found(kind):
    """Means within five standard errors."""
    model = fit_mixture(clusters(), 3, 0, kind).model
    order = [int(np.argmin(((model.means - one) ** 2).sum(1))) for one in CENTRES]
    assert sorted(order) == [0, 1, 2]
    errors = 5 / np.sqrt(600 * model.weights[order])[:, None]
    assert (np.abs(model.means[order] - CENTRES) < errors).all()


def test_forms_of_covariances():
    x = clusters() * [1, 100]
    tied, diag, spherical = (
        fit_mixture(x, 2, 0, kind).model.covariances for kind in ("tied", "diag", "spherical")
    )
    np.testing.assert_array_equal(tied[0], tied[1])
    assert (diag[:, [0, 1], [1, 0]] == 0).all()
    assert (diag[:, 0, 0] < diag[:, 1, 1]).all()
    np.testing.assert_allclose(spherical, spherical[:, :1, :1] * np.eye(2), rtol=1e-12)


def test_no_start_of_scikit_learn_is_better():
    x = clusters(150)
    x = (x - x.mean(0)) / x.std(0)
    ours = mixture_log_likelihood(fit_mixture(x, 4, 0).model, x)
    for seed in range(5):
        other = mixture.GaussianMixture(4, reg_covar=gaussian.FLOOR, random_state=seed).fit(x)
        assert ours > other.score(x) * len(x) - 0.01 * len(x)


def test_mixtures_in_any_units():
    x, units = clusters(), np.array([1e-6, 1e4])
    plain, scaled = fit_mixture(x, 3, 0).model, fit_mixture(x * units, 3, 0).model
    np.testing.assert_allclose(scaled.means, plain.means * units, rtol=1e-6, atol=1e-9 * units[1])
    np.testing.assert_allclose(
        scaled.covariances, plain.covariances * np.outer(units, units), rtol=1e-6
    )


def test_repeated_points_make_no_component_of_their_own():
    x = np.vstack([clusters(60), np.ones((20, 2))])
    smallest = np.linalg.eigvalsh(fit_mixture(x, 4, 0).model.covariances).min()
    assert smallest > 0.5 * gaussian.FLOOR * x.var(0).min()


# ------------------------------------------------------------- both


@pytest.mark.parametrize("fit", [fit_factors, fit_mixture])
def test_stopping_early_is_said(fit, monkeypatch):
    monkeypatch.setattr(gaussian, "STEPS", 1)
    monkeypatch.setattr(gaussian, "STARTS", 1)
    (note,) = fit(table(100), 4, 0).notes
    assert "1 steps" in note


def hole():
    x = table(10)
    x[3, 2] = np.nan
    return x


BAD = {
    "no factors": (fit_factors, (table(20), 0, 0), "count: expected an integer of at least 1"),
    "half a factor": (fit_factors, (table(20), 1.5, 0), "count: expected an integer.*got 1.5"),
    "all factors": (fit_factors, (table(20), 8, 0), "at most 7 factors.*8 columns; got 8"),
    "one column": (fit_factors, (np.arange(9.0), 1, 0), "at most 0 factors"),
    "no clusters": (fit_mixture, (table(20), 0, 0), "count: expected an integer of at least 1"),
    "many clusters": (fit_mixture, (table(20), 21, 0), "at most 20 components.*got 21"),
    "covariance": (fit_mixture, (table(20), 2, 0, "round"), "covariance: expected one of 'full'"),
    "NaN": (fit_factors, (hole(), 1, 0), r"train: expected finite.*got nan at index \(3, 2\)"),
    "NaN in a mixture": (fit_mixture, (hole(), 1, 0), "train: expected finite"),
    "a constant": (fit_factors, (np.ones((9, 3)), 1, 0), "columns that vary; column 0 has one"),
    "one row": (fit_mixture, (table(1), 1, 0), "train: expected at least 2 observations; got 1"),
    "seed": (fit_mixture, (table(9), 1, -1), "seed: expected an integer of at least 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    fit, given, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        fit(*given)


def test_a_constant_is_named():
    frame = polars.DataFrame({"a": [1.0, 2, 3], "b": [2.0, 2, 2]})
    with pytest.raises(ValueError, match="column 'b' has one value only"):
        fit_mixture(frame, 1, 0)
