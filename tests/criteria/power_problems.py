"""Problems in which Q is closer to the data than P, each with the exact log densities that a user
would otherwise compare.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import topic_problems
from scipy import special, stats

from lksd.models import LDA, PPCA, GaussianMixture
from lksd.reproduce.problems import ppca

LogDensities = Callable[[Any, np.ndarray], np.ndarray]


class Trial(NamedTuple):
    """A sample, the two models, and log p of observations under a model."""

    x: np.ndarray
    p: Any
    q: Any
    log_densities: LogDensities


# ---------------------------------------------------------------- Gaussian models


def normal_log_densities(model: PPCA, x: np.ndarray) -> np.ndarray:
    weight, mean = np.asarray(model.weight), np.broadcast_to(model.mean, x.shape[1:])
    covariance = weight @ weight.T + float(model.noise_scale) ** 2 * np.eye(len(weight))
    return stats.multivariate_normal(mean, covariance).logpdf(x)


def perturbed_weight(delta_p: float, delta_q: float, n: int, rng: np.random.Generator) -> Trial:
    """PPCA Problem 2: one weight of 100 x 10 is off."""
    dim = 100
    weight = ppca.weight(dim)
    x = rng.normal(size=(n, ppca.LATENT)) @ weight.T + rng.normal(size=(n, dim))
    p, q = (ppca.perturbed(delta, dim) for delta in (delta_p, delta_q))
    return Trial(x, p, q, normal_log_densities)


def fitted_ppca(x: np.ndarray, factors: int) -> PPCA:
    """By maximum likelihood (Tipping and Bishop 1999)."""
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = values[factors:].mean()
    weight = vectors[:, :factors] * np.sqrt(values[:factors] - noise)
    return PPCA(weight, np.sqrt(noise), mean=x.mean(0))


def draw_loadings(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(12, 3)) * [1.0, 0.8, 0.45]


def factor_count(loadings: np.ndarray, n: int, rng: np.random.Generator) -> Trial:
    """Three factors, of which the last is weak; models with two and three, fitted on 500 rows."""
    rows = rng.normal(size=(500 + n, 3)) @ loadings.T + rng.normal(size=(500 + n, 12))
    p, q = (fitted_ppca(rows[:500], factors) for factors in (2, 3))
    return Trial(rows[500:], p, q, normal_log_densities)


def factors_at_random(n: int, rng: np.random.Generator) -> Trial:
    return factor_count(draw_loadings(rng), n, rng)


# The first seeds of loadings whose third factor a one-sided t test of the exact difference of log
# densities finds in .86 to .96 of the samples of 100 (on average in .91, of 200 in .99).
CLEAR_FACTORS = (3, 5, 7, 8)


def clear_factors(n: int, rng: np.random.Generator) -> Trial:
    chosen = np.random.default_rng(rng.choice(CLEAR_FACTORS))
    return factor_count(draw_loadings(chosen), n, rng)


# ---------------------------------------------------------------- mixtures

WEIGHTS = np.array([0.5, 0.3, 0.2])


def mixture_log_densities(model: GaussianMixture, x: np.ndarray) -> np.ndarray:
    parts = [
        np.log(weight) + stats.multivariate_normal(mean, covariance).logpdf(x)
        for weight, mean, covariance in zip(
            *(np.asarray(one) for one in (model.weights, model.means, model.covariances)),
            strict=True,
        )
    ]
    return special.logsumexp(parts, axis=0)


def draw_means(rng: np.random.Generator) -> np.ndarray:
    return 1.2 * rng.normal(size=(3, 4))


def merged_mixture(means: np.ndarray, n: int, rng: np.random.Generator) -> Trial:
    """P has two components of three in one, with their moments; Q has its means off by 0.1."""
    x = means[rng.choice(3, n, p=WEIGHTS)] + rng.normal(size=(n, 4))
    share = WEIGHTS[1:] / WEIGHTS[1:].sum()
    centre = share @ means[1:]
    apart = means[1:] - centre
    covariance = np.eye(4) + (share * apart.T) @ apart
    p = GaussianMixture([0.5, 0.5], [means[0], centre], [np.eye(4), covariance])
    q = GaussianMixture(WEIGHTS, means + 0.1, [np.eye(4)] * 3)
    return Trial(x, p, q, mixture_log_densities)


def merged_at_random(n: int, rng: np.random.Generator) -> Trial:
    return merged_mixture(draw_means(rng), n, rng)


# The first seeds of means for which the exact difference of log densities has a mean of .256 +-
# .012 of its standard deviations, so that a one-sided t test of it finds the merged components in
# .82, .97 and 1.00 of the samples of 100, 200 and 400; averaged over all means it is far less.
CLEAR_MEANS = (8, 55, 103, 230, 277)


def clearly_merged(n: int, rng: np.random.Generator) -> Trial:
    return merged_mixture(draw_means(np.random.default_rng(rng.choice(CLEAR_MEANS))), n, rng)


# ---------------------------------------------------------------- topics


def document_log_densities(model: LDA, x: np.ndarray) -> np.ndarray:
    """log p(x) of documents of one length under three topics, by dynamic programming.

    ``table[i, j]`` is the sum over all assignments of the words so far with i words of the first
    topic and j of the second; what the prior gives to the counts is the same for all of them.
    """
    a, topics = np.asarray(model.concentration), np.asarray(model.topics)
    n, length = x.shape
    table, logs = np.zeros((n, length + 1, length + 1)), np.zeros(n)
    table[:, 0, 0] = 1.0
    for word in x.T:
        first, second, third = topics[:, word][:, :, None, None]
        grown = third * table
        grown[:, 1:] += first * table[:, :-1]
        grown[:, :, 1:] += second * table[:, :, :-1]
        size = grown.sum((1, 2), keepdims=True)
        table, logs = grown / size, logs + np.log(size[:, 0, 0])
    i, j = np.ogrid[: length + 1, : length + 1]
    there = i + j <= length
    counts = np.stack(np.broadcast_arrays(i, j, np.where(there, length - i - j, 0)), -1)
    prior = special.gammaln(a + counts).sum(-1) - special.gammaln(a).sum()
    prior += special.gammaln(a.sum()) - special.gammaln(a.sum() + length)
    return logs + np.log(np.sum(table * np.where(there, np.exp(prior), 0.0), (1, 2)))


def topics(problem: topic_problems.Problem, n: int, rng: np.random.Generator) -> Trial:
    x = problem.sample(n, int(rng.integers(2**31)))
    return Trial(x, problem.p, problem.q, document_log_densities)


# ---------------------------------------------------------------- the list


class PowerProblem(NamedTuple):
    """A problem at one sample size, and the power that its criterion is to reach."""

    name: str
    criterion: str
    n: int
    wanted: float
    trial: Callable[[np.random.Generator], Trial]


def gaussian_problems() -> list[PowerProblem]:
    found = [
        PowerProblem("PPCA (2, 1)", "fisher", 50, 0.95, partial(perturbed_weight, 2.0, 1.0, 50)),
        PowerProblem("PPCA (3, 1)", "fisher", 50, 0.95, partial(perturbed_weight, 3.0, 1.0, 50)),
    ]
    for n, wanted in ((100, 0.78), (200, 0.95)):
        found.append(PowerProblem("factor count", "fisher", n, wanted, partial(clear_factors, n)))
    for n, wanted in ((200, 0.65), (400, 0.95)):
        trial = partial(clearly_merged, n)
        found.append(PowerProblem("merged mixture", "fisher", n, wanted, trial))
    return found


def random_problems() -> list[PowerProblem]:
    """Other parameters in every sample; the power wanted is a share of the exact test's."""
    found = [
        PowerProblem("factors at random", "fisher", n, 0.78 / 0.91, partial(factors_at_random, n))
        for n in (100, 200)
    ]
    trial = partial(merged_at_random, 200)
    return [*found, PowerProblem("means at random", "fisher", 200, 0.65 / 0.97, trial)]


def topic_model_problems() -> list[PowerProblem]:
    problems = {
        "topics .16, .06": (topic_problems.topic_perturbation(0.16, 0.06), 0.95),
        "topics .06, .01": (topic_problems.topic_perturbation(0.06, 0.01), 0.68),
        "prior (1.0, .5)": (topic_problems.prior_sparsity(1.0, 0.5), 0.95),
    }
    return [
        PowerProblem(f"LDA {name}", "conditional", 50, wanted, partial(topics, problem(0), 50))
        for name, (problem, wanted) in problems.items()
    ]
