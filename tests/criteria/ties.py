"""Ties of additive criteria: two models whose mean losses are equal under the law of the data.

Normal models of data with mean zero have mean losses in closed form, whatever the law of the data;
discrete laws are enumerated; others tie by symmetry or by quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple
from zlib import crc32

import nulls
import numpy as np
import topic_problems
from scale_mixture import ScaleMixture, fisher_losses, log_densities
from scipy import optimize

import lksd
from lksd.models import LDA, BetaBinomial, FactorAnalysis, GaussianMixture, StochasticBlockModel


class Tie(NamedTuple):
    """Two models, and a function (trials, n, rng) -> the losses (trials, n) of both."""

    name: str
    criterion: str
    losses: Callable[[int, int, np.random.Generator], Sequence[np.ndarray]]

    def samples(self, trials: int, n: int) -> Sequence[np.ndarray]:
        seed = crc32(str(self).encode())
        return self.losses(trials, n, np.random.default_rng([seed, n]))

    def __str__(self) -> str:
        return f"{self.criterion}, {self.name}"


def losses_of(
    criterion: Any, models: Sequence[Any], x: np.ndarray, rng: np.random.Generator, **options
) -> list[np.ndarray]:
    """Of each model at x (trials, n, ...), all trials at once, with chains of its own."""
    rows, seed = x.reshape(-1, *x.shape[2:]), int(rng.integers(2**30))
    found = [
        lksd.estimate_scores(model, rows, criteria=criterion, seed=seed + role, **options)
        for role, model in enumerate(models)
    ]
    return [one.losses[:, 0].reshape(x.shape[:2]) for one in found]


# ---------------------------------------------------------------- normal models


def normal(mean: np.ndarray, variance: float) -> FactorAnalysis:
    """N(mean, variance I)."""
    dim = len(mean)
    return FactorAnalysis(np.zeros((dim, 1)), np.full(dim, variance), mean)


def draw_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def draw_contaminated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A tenth of the entries is three times as wide; all have variance one."""
    wide = np.where(rng.random(shape) < 0.1, 3.0, 1.0)
    return wide * rng.normal(size=shape) / np.sqrt(1.8)


def mean_loss(criterion: str, dim: int, shift: float, variance: float) -> float:
    """Of N(shift e_1, variance I) at data of mean zero whose entries have variance one, up to a
    constant.
    """
    second = dim + shift**2
    if criterion == "log":
        return dim * np.log(variance) / 2 + second / (2 * variance)
    return second / variance**2 - 2 * dim / variance


def asymmetric(criterion: str, dim: int, variance: float, law: Callable = draw_normal) -> Tie:
    """P has another mean, Q another variance."""
    target = mean_loss(criterion, dim, 0.0, variance)
    shift = optimize.brentq(
        lambda one: mean_loss(criterion, dim, one, 1.0) - target, 0.0, 100.0, xtol=1e-14
    )
    models = normal(shift * np.eye(dim)[0], 1.0), normal(np.zeros(dim), variance)
    said = law.__name__.removeprefix("draw_")
    return of_real(f"{said}, D = {dim}, mean or variance {variance}", criterion, law, models, dim)


def mirrored(criterion: str, dim: int, shift: float) -> Tie:
    models = [normal(sign * shift * np.eye(dim)[0], 1.0) for sign in (1, -1)]
    return of_real(f"mirror, D = {dim}, shift {shift}", criterion, draw_normal, models, dim)


def of_real(name: str, criterion: str, law: Callable, models: Sequence, dim: int) -> Tie:
    """With the variances of the population as the metric, at which the tie is exact."""
    chosen = lksd.criteria.Fisher(np.ones(dim)) if criterion == "fisher" else criterion

    def losses(trials, n, rng):
        x = law(rng, (trials, n, dim))
        return losses_of(chosen, models, x, rng, exact=True)

    return Tie(name, criterion, losses)


# ---------------------------------------------------------------- enumerated laws


class Law(NamedTuple):
    """All observations with their probabilities, and two models that tie."""

    points: np.ndarray
    mass: np.ndarray
    models: tuple[Any, Any]

    def sample(self, trials: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Which points."""
        return rng.choice(len(self.mass), (trials, n), p=self.mass)


def losses_at(criterion: str, model: Any, points: np.ndarray) -> np.ndarray:
    return lksd.estimate_scores(model, points, criteria=criterion, exact=True).losses[:, 0]


def tied_law(criterion, points, data, p, q_of: Callable, bounds) -> Law:
    """P as given, and Q = q_of(t) with the t at which both have the same mean loss."""
    mass = data if isinstance(data, np.ndarray) else nulls.law_of(data, points)
    target = mass @ losses_at(criterion, p, points)
    t = optimize.brentq(
        lambda t: mass @ losses_at(criterion, q_of(t), points) - target, *bounds, xtol=1e-12
    )
    return Law(points, mass, (p, q_of(t)))


def counts(trials: int, dim: int) -> np.ndarray:
    return np.array(list(product(range(trials + 1), repeat=dim)), dtype=np.int32)


@cache
def binomial_law(criterion: str, trials: int, prior: float, dim: int) -> Law:
    """P has another mean, Q another spread."""

    def model(a, b):
        return BetaBinomial(trials, a, b)

    return tied_law(
        criterion,
        counts(trials, dim),
        model(prior, prior),
        model(1.25 * prior, prior),
        lambda t: model(prior * t, prior * t),
        (1.01, 20.0),
    )


# With a wider prior the tie would hang on one value of a probability of .003.
MANY_VALUES = binomial_law, "conditional", 40, 12.0, 1


@cache
def markov_law(criterion: str) -> Law:
    markov, points = nulls.markov, counts(1, 6)
    return tied_law(criterion, points, markov(0.7), markov(0.7, 0.6), markov, (0.71, 0.99))


@cache
def topic_law() -> Law:
    """P has other topics, Q another prior."""
    topics = np.array([[0.45, 0.3, 0.15, 0.1], [0.1, 0.2, 0.3, 0.4]])
    others = np.array([[0.25, 0.25, 0.25, 0.25], [0.4, 0.1, 0.4, 0.1]])
    data = LDA(np.array([0.5, 0.5]), topics)
    p = LDA(data.concentration, 0.6 * topics + 0.4 * others)
    return tied_law(
        "conditional",
        topic_problems.bags(),
        topic_problems.law(data),
        p,
        lambda t: LDA(np.array([0.5 * t, 0.5 / t]), topics),
        (1.05, 20.0),
    )


@cache
def graph_law() -> Law:
    """Edges of 0.4 everywhere; P has two blocks, Q too many edges."""
    points = counts(1, len(list(combinations(range(4), 2))))
    edges = points.sum(1)
    mass = 0.4**edges * 0.6 ** (points.shape[1] - edges)
    p = StochasticBlockModel([0.5, 0.5], [[0.7, 0.2], [0.2, 0.7]], 4)
    return tied_law(
        "conditional",
        points,
        mass,
        p,
        lambda t: StochasticBlockModel([1.0], [[t]], 4),
        (0.41, 0.9),
    )


def of_law(name: str, criterion: str, make: Callable[..., Law], *given: Any) -> Tie:
    """By exact losses, computed once for each point."""

    def losses(trials, n, rng):
        law = make(*given)
        chosen = law.sample(trials, n, rng)
        return [losses_at(criterion, one, law.points)[chosen] for one in law.models]

    return Tie(name, criterion, losses)


def of_chains(name: str, criterion: str, make: Callable[..., Law], *given: Any) -> Tie:
    """By chains for every observation."""

    def losses(trials, n, rng):
        law = make(*given)
        x = law.points[law.sample(trials, n, rng)]
        return losses_of(criterion, law.models, x, rng, exact=False)

    return Tie(f"{name}, by chains", criterion, losses)


# ---------------------------------------------------------------- latent variables, by chains


def mixtures_by_chains() -> Tie:
    """Mirror images: the weights of two components exchanged."""
    means, covariances = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.stack([np.eye(2)] * 2)
    models = [GaussianMixture([w, 1 - w], means, covariances) for w in (0.7, 0.3)]

    def losses(trials, n, rng):
        x = means[rng.integers(0, 2, (trials, n))] + rng.normal(size=(trials, n, 2))
        return losses_of(lksd.criteria.Fisher(np.ones(2)), models, x, rng, exact=False)

    return Tie("mixtures, mirror, by chains", "fisher", losses)


@cache
def scale_models() -> tuple[ScaleMixture, ScaleMixture]:
    """P with a wider spread of the scales than the data's, Q with a narrower one, by quadrature."""
    grid = np.sinh(np.linspace(-6.0, 6.0, 2_001))[:, None]
    data = ScaleMixture(SPREAD, dim=1)
    density = np.exp(log_densities(data, grid))
    mass = density * np.gradient(grid[:, 0])

    def mean(spread):
        return mass @ fisher_losses(ScaleMixture(spread, dim=1), grid, np.ones(1)) / mass.sum()

    target = mean(WIDE)
    narrow = optimize.brentq(lambda spread: mean(spread) - target, 0.05, SPREAD, xtol=1e-10)
    return ScaleMixture(WIDE, dim=1), ScaleMixture(narrow, dim=1)


SPREAD, WIDE = 0.5, 0.65


def of_scale_mixtures() -> Tie:
    def losses(trials, n, rng):
        x = np.exp(SPREAD * rng.normal(size=(trials, n, 1))) * rng.normal(size=(trials, n, 1))
        return losses_of(lksd.criteria.Fisher(np.ones(1)), scale_models(), x, rng)

    return Tie("scale mixtures, wide or narrow, by chains", "fisher", losses)


def of_topics(name: str, problem: topic_problems.Problem) -> Tie:
    def losses(trials, n, rng):
        x = problem.sample(trials * n, int(rng.integers(2**30))).reshape(trials, n, -1)
        return losses_of("conditional", (problem.p, problem.q), x, rng, exact=False)

    return Tie(f"{name}, by chains", "conditional", losses)


def mirrored_topics() -> Tie:
    return of_topics("topic models, mirror", topic_problems.mirror())


def identical_topics() -> Tie:
    """Losses that differ by the noise of the chains alone."""
    return of_topics("the same topic model twice", topic_problems.identical()(0))


# ---------------------------------------------------------------- the lists


def exact_ties() -> list[Tie]:
    found = []
    for criterion in ("log", "fisher"):
        found += [asymmetric(criterion, dim, 2.25) for dim in (1, 5, 20)]
        found += [asymmetric(criterion, dim, 0.5) for dim in (1, 5)]
        found += [asymmetric(criterion, 5, 2.25, draw_contaminated)]
        found += [mirrored(criterion, dim, 0.5) for dim in (1, 5)]
        found += [mirrored(criterion, 5, 0.01)]
    return [*found, *discrete_ties()]


def skewed_ties() -> list[Tie]:
    """Differences of a skewness of seven, more than the calibration corrects at n = 100."""
    return [asymmetric(criterion, 1, 2.25, draw_contaminated) for criterion in ("log", "fisher")]


def discrete_ties() -> list[Tie]:
    return [
        of_law("hidden Markov, asymmetric", "log", markov_law, "log"),
        of_law("hidden Markov, asymmetric", "conditional", markov_law, "conditional"),
        of_law("beta-binomial, 10 trials", "log", binomial_law, "log", 10, 2.0, 2),
        of_law("beta-binomial, 10 trials", "conditional", binomial_law, "conditional", 10, 2.0, 2),
        of_law("beta-binomial, 40 trials", "conditional", *MANY_VALUES),
        of_law("topics or prior", "conditional", topic_law),
        of_law("blocks or edges", "conditional", graph_law),
    ]


def ties_by_chains() -> list[Tie]:
    return [
        mixtures_by_chains(),
        of_scale_mixtures(),
        mirrored_topics(),
        identical_topics(),
        of_chains("topics or prior", "conditional", topic_law),
        of_chains("beta-binomial, 40 trials", "conditional", *MANY_VALUES),
        of_chains("blocks or edges", "conditional", graph_law),
    ]


# For large samples, in which the bias of a logarithm would show.
LAWS_OF_MANY: dict[str, Callable[[], Law]] = {
    "topics or prior": topic_law,
    "beta-binomial, 40 trials": lambda: binomial_law(*MANY_VALUES[1:]),
}


def by_chains_and_exactly(law: Law, trials: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Conditional losses at the same samples: (by chains or exactly, model, trial, observation)."""
    chosen = law.sample(trials, n, rng)
    exact = [losses_at("conditional", one, law.points)[chosen] for one in law.models]
    x = law.points[chosen]
    return np.stack([losses_of("conditional", law.models, x, rng, exact=False), exact])
