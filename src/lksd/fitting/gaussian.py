"""Factor analysis by maximum likelihood, and mixtures of Gaussians by EM."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._validation import check_choice, check_count, check_reals, column_names
from ..adapters._packages import needed
from ..adapters.fitted import full_covariances
from ..models import FactorAnalysis, GaussianMixture
from .base import Fit, check_how_many, seed_of_package, steady

COVARIANCES = ("full", "tied", "diag", "spherical")
STEPS = 1000
# The least part of a column's variance that is noise. Without a bound the likelihood may have its
# maximum where a column has none.
SMALLEST_NOISE = 0.005
STARTS = 3  # of factor analysis: the usual one, and random ones
FLAT = 1e-4  # the slope of the log likelihood of one observation, at a maximum
MIXTURE_STARTS = 5
FLOOR = 1e-4  # added to the variances of a component, in units of those of the data
SETTLED = 1e-5  # the change of the log likelihood of one observation in the last step


class Standardised(NamedTuple):
    """Columns without their means, in units of their own."""

    values: np.ndarray
    mean: np.ndarray
    scale: np.ndarray


def fit_factors(train: Any, count: int, seed: int) -> Fit:
    """Factor analysis by maximum likelihood, where at least 1/200 of each column's variance is
    noise.

    Parameters
    ----------
    train : (n, D) array or data frame
    count : int
        How many factors.
    seed : int
        Of further starting points beside the usual one.
    """
    x = standardised(train)
    n, dim = x.values.shape
    count = check_how_many(count, dim - 1, "factors", f"which are fewer than the {dim} columns")
    rng = np.random.default_rng(seed_of_package(seed))
    with steady():
        correlations = x.values.T @ x.values / n
        noise, converged = best_noise(correlations, count, rng)
        loadings = loadings_at(correlations, noise, count)
    model = FactorAnalysis(
        loadings * x.scale[:, None], noise * x.scale**2, x.mean, columns=column_names(train)
    )
    said = f"the maximum of the likelihood was not reached in {STEPS} steps"
    return Fit(model, () if converged else (said,))


def fit_mixture(train: Any, count: int, seed: int, covariance: str = "full") -> Fit:
    """A mixture of Gaussians by scikit-learn's EM, the best of several starts.

    EM runs on columns in units of their own (in one unit where covariances are spherical), in which
    a small number is added to all variances: no component shrinks to a point.

    Parameters
    ----------
    train : (n, D) array or data frame
    count : int
        How many components.
    seed : int
    covariance : str
        full, tied, diag or spherical.
    """
    check_choice("covariance", covariance, COVARIANCES)
    x = standardised(train, together=covariance == "spherical")
    n = len(x.values)
    count = check_how_many(count, n, "components", "as many as there are observations")
    mixture = needed("fit_mixture", "sklearn.mixture", "sklearn")
    with steady():
        found = mixture.GaussianMixture(
            count,
            covariance_type=covariance,
            reg_covar=FLOOR,
            tol=SETTLED,
            max_iter=STEPS,
            n_init=MIXTURE_STARTS,
            random_state=seed_of_package(seed),
        ).fit(x.values)
    model = GaussianMixture(
        found.weights_ / found.weights_.sum(),
        found.means_ * x.scale + x.mean,
        full_covariances(found) * np.outer(x.scale, x.scale),
        columns=column_names(train),
    )
    said = f"EM stopped after {STEPS} steps without converging"
    return Fit(model, () if found.converged_ else (said,))


def standardised(train: Any, together: bool = False) -> Standardised:
    # sums of one order, in whichever the numbers are stored
    x = np.ascontiguousarray(check_reals("train", train))
    check_count("train", len(x), 2)
    mean, scale = x.mean(0), x.std(0)
    # beyond rounding
    constant = np.flatnonzero(scale <= 1e-12 * np.abs(mean))
    if constant.size:
        names = column_names(train)
        which = int(constant[0]) if names is None else repr(names[constant[0]])
        raise ValueError(
            f"train: expected columns that vary; column {which} has one value only. Leave it out."
        )
    if together:
        scale = np.full_like(scale, np.sqrt(np.mean(scale**2)))
    return Standardised((x - mean) / scale, mean, scale)


def best_noise(
    correlations: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, bool]:
    """The noise variances of greatest likelihood, and whether that is a maximum."""
    from scipy.optimize import minimize

    dim = len(correlations)
    usual = (1 - count / (2 * dim)) / np.diag(np.linalg.inv(correlations + 1e-3 * np.eye(dim)))
    starts = [usual, *rng.uniform(0.1, 0.9, (STARTS - 1, dim))]
    low = np.log(SMALLEST_NOISE)
    found = [
        minimize(
            misfit,
            np.clip(np.log(start), low, 0),
            args=(correlations, count),
            jac=True,
            method="L-BFGS-B",
            bounds=[(low, 0)] * dim,
            options={"maxiter": STEPS, "maxfun": 20 * STEPS, "ftol": 1e-11, "gtol": 1e-7},
        )
        for start in starts
    ]
    best = min(found, key=lambda one: one.fun)
    inside = best.x - np.clip(best.x - best.jac, low, 0)  # without slopes that bounds hold up
    return np.exp(best.x), bool(np.abs(inside).max() < FLAT)


def misfit(log_noise: np.ndarray, correlations: np.ndarray, count: int) -> tuple[float, np.ndarray]:
    """Minus twice the log likelihood of one observation at the best loadings, up to a constant, and
    its gradient.
    """
    noise = np.exp(log_noise)
    values, vectors = leading(correlations, noise)
    strengths = np.ones_like(values)
    strengths[:count] = np.maximum(values[:count], 1)
    found = log_noise.sum() + np.sum(np.log(strengths) + values / strengths)
    # the diagonal of the model's covariance minus that of the data, in units of the noise
    excess = (vectors**2) @ (strengths - values)
    return float(found), excess


def leading(correlations: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of the correlations in units of the noise, the largest first."""
    root = np.sqrt(noise)
    values, vectors = np.linalg.eigh(correlations / np.outer(root, root))
    return values[::-1], vectors[:, ::-1]


def loadings_at(correlations: np.ndarray, noise: np.ndarray, count: int) -> np.ndarray:
    """The loadings of greatest likelihood given the noise; the largest of each factor is
    positive.
    """
    values, vectors = leading(correlations, noise)
    found = np.sqrt(noise)[:, None] * vectors[:, :count]
    found = found * np.sqrt(np.maximum(values[:count] - 1, 0))
    largest = np.take_along_axis(found, np.abs(found).argmax(0)[None], 0)
    return found * np.where(largest < 0, -1.0, 1.0)
