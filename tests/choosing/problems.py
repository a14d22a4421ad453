"""Problems whose answer is known: data, candidates, and the true risk of every fitted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

import lksd
from lksd.fitting.base import Fit

FRESH = 2_000  # units from which a risk is known where there is no closed form


class Problem(NamedTuple):
    """A way to draw observations, how candidates are fitted, and the mean loss of a model at new
    observations.
    """

    draw: Callable[[np.random.Generator], tuple[Any, Callable[[Any], float]]]
    fit: Any
    candidates: Sequence[int]


class Recorded:
    """A procedure that keeps the models which it has fitted."""

    def __init__(self, fit: Callable):
        self.fit, self.models = fit, []

    def __call__(self, train: Any, candidate: int, seed: int) -> Fit:
        found = self.fit(train, candidate, seed)
        self.models.append((candidate, found.model))
        return found


def outcome(problem: Problem, seed: int, **options) -> tuple[lksd.Choice, dict[int, float]]:
    """The choice on one sample, and the true risk of each candidate: the mean over its fits."""
    x, risk = problem.draw(np.random.default_rng(seed))
    fit = Recorded(problem.fit)
    choice = lksd.choose(x, fit, problem.candidates, seed=seed, check=False, **options)
    fits: dict[int, list[float]] = {k: [] for k in problem.candidates}
    folds = choice.folds * choice.repeats
    for candidate, model in fit.models[: folds * len(fits)]:
        fits[candidate].append(risk(model))
    sizes = np.concatenate([np.bincount(one) for one in choice.fold_numbers])
    return choice, {k: float(np.average(own, weights=sizes)) for k, own in fits.items()}


# ------------------------------------------------------------- Gaussian models


def gaussian_risk(model: Any, covariance: np.ndarray) -> float:
    """-E log p(x) for x ~ N(0, covariance), of a linear Gaussian model."""
    matrix = np.asarray(model.matrix)
    own = matrix @ matrix.T + np.diag(np.broadcast_to(model.variances, len(matrix)))
    mean = np.asarray(model.location)
    inside = np.trace(np.linalg.solve(own, covariance)) + mean @ np.linalg.solve(own, mean)
    return float(inside + np.linalg.slogdet(own)[1] + len(mean) * np.log(2 * np.pi)) / 2


def factors(n: int, dim: int, strengths: Sequence[float], unequal: bool):
    """Factors of these strengths, with noise of variance 1, or between 1/2 and 2."""

    def draw(rng):
        loadings = rng.normal(size=(dim, len(strengths))) * strengths
        noise = rng.uniform(0.5, 2.0, dim) if unequal else np.ones(dim)
        covariance = loadings @ loadings.T + np.diag(noise)
        x = rng.normal(size=(n, len(strengths))) @ loadings.T
        x = x + rng.normal(size=(n, dim)) * np.sqrt(noise)
        return x, lambda model: gaussian_risk(model, covariance)

    return draw


def fit_ppca(train: np.ndarray, count: int, seed: int) -> Fit:
    """Maximum likelihood (Tipping and Bishop 1999)."""
    values, vectors = np.linalg.eigh(np.cov(train.T, bias=True))
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = values[count:].mean()
    weight = vectors[:, :count] * np.sqrt(np.maximum(values[:count] - noise, 0.0))
    return Fit(lksd.models.PPCA(weight, np.sqrt(noise), mean=train.mean(0)))


# ------------------------------------------------------------- mixtures and chains


def mixture(n: int, dim: int, apart: float):
    """Three components of equal weight whose means are so far apart."""

    def draw(rng):
        basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        means = apart / np.sqrt(2) * basis[:3]

        def sample(count):
            return means[rng.integers(3, size=count)] + rng.normal(size=(count, dim))

        x, fresh = sample(n), sample(FRESH)
        return x, lambda model: mixture_loss(model, fresh)

    return draw


def mixture_loss(model: Any, x: np.ndarray) -> float:
    each = []
    for weight, mean, covariance in zip(
        *(np.asarray(part) for part in (model.weights, model.means, model.covariances)), strict=True
    ):
        root = np.linalg.cholesky(covariance)
        z = np.linalg.solve(root, (x - mean).T)
        volume = np.log(np.diag(root)).sum() + x.shape[1] * np.log(2 * np.pi) / 2
        each.append(np.log(weight) - np.sum(z**2, 0) / 2 - volume)
    return float(-logsumexp(each, axis=0).mean())


def states(n: int, length: int):
    """A chain of three states that mostly stay, with six values."""

    def draw(rng):
        transition = 0.1 + 0.7 * np.eye(3)
        emission = rng.dirichlet(np.full(6, 0.5), 3)

        def sample(count):
            z = rng.integers(3, size=count)
            steps = []
            for _ in range(length):
                chance = rng.random((count, 1))
                steps.append((chance > np.cumsum(emission[z], 1)).sum(1))
                z = (rng.random((count, 1)) > np.cumsum(transition[z], 1)).sum(1)
            return np.minimum(np.stack(steps, 1), 5)

        x, fresh = sample(n), sample(FRESH)
        x[0, 0] = 5  # so that all values are known to be possible
        return x, lambda model: chain_loss(model, fresh)

    return draw


def chain_loss(model: Any, x: np.ndarray) -> float:
    """-log p by the forward algorithm."""
    emission, forward, total = np.asarray(model.emission), np.asarray(model.first), 0.0
    for step in range(x.shape[1]):
        forward = forward * emission[:, x[:, step]].T
        size = forward.sum(1, keepdims=True)
        total = total + np.log(size[:, 0])
        forward = forward / size @ np.asarray(model.transition)
    return float(-np.mean(total))


# ------------------------------------------------------------- topics


def topics(n: int, words: int, length: int):
    """Five topics of 200 words; the true risk is that of the conditional score."""

    def draw(rng):
        every = rng.dirichlet(np.full(words, 0.1), 5)

        def sample(count):
            shares = rng.dirichlet(np.full(5, 0.2), count)
            return [rng.choice(words, size=length, p=share @ every).tolist() for share in shares]

        x, fresh = sample(n), sample(FRESH // 4)
        x[0][0] = words - 1  # so that all words are known to be possible

        def risk(model):
            found = lksd.estimate_scores(model, fresh, criteria="conditional", warmup=50, draws=100)
            return float(found.loss("conditional").mean())

        return x, risk

    return draw


def chain_fit(train, count, seed):
    return lksd.fitting.fit_states(train, count, seed, n_values=6)


def topic_fit(train, count, seed):
    return lksd.fitting.fit_topics(train, count, seed, n_values=200)


PPCA = (1.2, 0.9, 0.7, 0.5)
PROBLEMS = {
    "ppca": Problem(factors(200, 20, PPCA, False), fit_ppca, range(1, 9)),
    "ppca, n = 100": Problem(factors(100, 20, PPCA, False), fit_ppca, range(1, 9)),
    "ppca, n = 500": Problem(factors(500, 20, PPCA, False), fit_ppca, range(1, 9)),
    "factors": Problem(
        factors(200, 12, (1.2, 0.9, 0.7), True), lksd.fitting.fit_factors, range(1, 9)
    ),
    "mixture": Problem(mixture(200, 4, 3.0), lksd.fitting.fit_mixture, range(1, 9)),
    "states": Problem(states(100, 30), chain_fit, range(1, 7)),
    "topics": Problem(topics(150, 200, 40), topic_fit, (2, 3, 5, 8, 12)),
}
