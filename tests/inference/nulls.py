"""Problems in which the null hypothesis is true, most of them ties: no model is closer to the data
than the other.

Mirror images tie by symmetry. Asymmetric ties (one model wrong in one way, the other in another)
are found by quadrature for Gaussian data and by enumeration for discrete data, so that both
population discrepancies are equal to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import NamedTuple

import ksd
import numpy as np
import oracles
import studies
import topic_problems
from scipy import optimize

import lksd
from lksd.inference.contrasts import CLAIMED
from lksd.kernels import IMQ, Gaussian, Hamming, PerCoordinate
from lksd.stein import Barker, Difference, Gibbs

SIZES, SMALL_SIZES = (CLAIMED, 2 * CLAIMED), (50,)  # the second show what small samples do


class Null(NamedTuple):
    """A problem: whether the trial with this number rejects a true null hypothesis."""

    family: str
    tie: str
    kernel: str
    operator: str
    n: int
    rejects: Callable[[int], bool]


# ------------------------------------------------------------- scores of Gaussian models


def of_scores(
    tie: str,
    trial: Callable,
    kernel: Callable,
    called: str,
    n: int,
    family: str = "given scores",
    **options,
) -> Null:
    def rejects(number: int) -> bool:
        x, p, q = trial(np.random.default_rng([number, n]))
        return lksd.compare_scores(x, p, q, kernel(x), seed=number, **options).reject

    return Null(family, tie, called, "Langevin", n, rejects)


def nearly_equal(dim: int, n: int) -> studies.Trial:
    """Mirror images so close to each other that their scores differ by 2 % of the data's spread."""
    return studies.mirror(dim, n, shift=0.01)


def eight(dim: int) -> list:
    scale = oracles.median_scale(dim)
    return [
        *(IMQ(f * scale) for f in (0.1, 0.3, 1.0, 3.0, 10.0)),
        Gaussian(scale),
        Gaussian(4 * scale),
        own_kernel(dim),
    ]


def own_kernel(dim: int) -> PerCoordinate:
    return PerCoordinate(
        IMQ(oracles.median_scale(dim) / 4), IMQ(np.full(dim, oracles.coordinate_median_scale()))
    )


def gaussian_problems(sizes: tuple[int, ...]):
    def imq(dim):
        return lambda x: IMQ(oracles.median_scale(dim))

    for dim, n, swapped in product((1, 5), sizes, (False, True)):
        side = "Q shifted, P wide" if swapped else "P shifted, Q wide"
        yield of_scores(
            f"asymmetric, {side}, D = {dim}",
            studies.asymmetric(dim, n, swapped),
            imq(dim),
            "IMQ",
            n,
        )
    for sigma in (0.6, 2.0):
        trial = studies.tied(oracles.asymmetric_tie(1, sigma), sizes[0], swapped=sigma > 1)
        yield of_scores(f"asymmetric, sigma {sigma}, D = 1", trial, imq(1), "IMQ", sizes[0])
    for n in sizes:
        trial = studies.tied(oracles.per_coordinate_tie(5), n, swapped=True)
        yield of_scores(
            "asymmetric, Q shifted, P wide, D = 5",
            trial,
            lambda x: own_kernel(5),
            "per coordinate",
            n,
        )
        yield of_scores(
            "mirror, D = 5", studies.mirror(5, n), PerCoordinate.median, "per coordinate, from x", n
        )
        yield of_scores(
            "mirror, D = 5", studies.mirror(5, n), Gaussian.median, "Gaussian, from x", n
        )
        yield of_scores("mirror, D = 20", studies.mirror(20, n), IMQ.median, "IMQ, from x", n)
        yield of_scores(
            "mirror, D = 1", studies.mirror(1, n), imq(1), "IMQ", n, alternative="two-sided"
        )
        for shift, far in ((0.0, "P = Q = R"), (0.5, "P = Q"), (2.0, "P = Q far from R")):
            yield of_scores(
                f"{far}, noisy scores, D = 5",
                studies.identical_noisy(5, n, shift),
                imq(5),
                "IMQ",
                n,
            )
        yield of_scores(
            "P = Q = R, noisy scores, D = 1", studies.identical_noisy(1, n, 0.0), imq(1), "IMQ", n
        )
        yield of_scores("nearly equal, D = 5", nearly_equal(5, n), imq(5), "IMQ", n)
    for correction in ("max-t", "holm", "bonferroni"):
        trial = studies.mirror(2, sizes[0])
        yield of_scores(
            "mirror, D = 2",
            trial,
            lambda x: eight(2),
            f"eight, {correction}",
            sizes[0],
            correction=correction,
        )
    yield of_scores(
        "P = Q, same scores, D = 5",
        studies.identical_noisy(5, sizes[0], 0.5, noise=0.0),
        imq(5),
        "IMQ",
        sizes[0],
    )
    trial, margin = at_margin(sizes[0])
    yield of_scores("at a margin, D = 5", trial, imq(5), "IMQ", sizes[0], margin=margin)


def at_margin(n: int) -> tuple[studies.Trial, float]:
    """P farther from the data than Q, by exactly the margin."""
    scale = oracles.median_scale(5)
    return studies.shifts(5, n, 0.8, 0.4), oracles.ksd_shifted(0.8, 5, scale) - oracles.ksd_shifted(
        0.4, 5, scale
    )


# ------------------------------------------------------------- latent variable models of real data,
# mirror images


def reflected(family: str, data, p, q, n: int, tie: str) -> Null:
    """Models that a reflection of the first coordinate exchanges, while it leaves the data's law
    alone.
    """
    from lksd.models.simulation import draw

    def rejects(number: int) -> bool:
        return ksd.compare(draw(data, n, number), p, q, seed=number).reject

    return Null(family, tie, "default, from x", "Langevin", n, rejects)


def latent_problems(sizes: tuple[int, ...]):
    weight = np.array([[0.0, 0.0], [1.0, 0.3], [0.5, -0.7], [-0.4, 0.9]])
    for n in sizes:
        turned = [weight + sign * np.outer(np.eye(4)[0], [0.8, 0.0]) for sign in (1, -1)]
        models = lksd.models.PPCA(weight, 1.0), *(lksd.models.PPCA(one, 1.0) for one in turned)
        yield reflected("PPCA", *models, n, "mirror, weights")
        shifted = [
            lksd.models.PPCA(weight, 1.0, mean=sign * 0.5 * np.eye(4)[0]) for sign in (1, -1)
        ]
        yield reflected("PPCA", lksd.models.PPCA(weight, 1.0), *shifted, n, "mirror, means")
        noise = np.array([1.0, 0.5, 2.0, 1.5])
        models = (
            lksd.models.FactorAnalysis(weight, noise),
            *(lksd.models.FactorAnalysis(one, noise) for one in turned),
        )
        yield reflected("factor analysis", *models, n, "mirror, loadings")
        means, covariances = np.array([[-1.5, 0.0], [1.5, 0.0]]), np.stack([np.eye(2)] * 2)
        mixtures = [
            lksd.models.GaussianMixture([w, 1 - w], means, covariances) for w in (0.5, 0.8, 0.2)
        ]
        yield reflected("Gaussian mixture", *mixtures, n, "mirror, weights")


# ------------------------------------------------------------- discrete models on spaces that can
# be enumerated


class Enumerated(NamedTuple):
    """All observations, their probabilities, and the scores of both models at them."""

    points: np.ndarray
    mass: np.ndarray
    scores: tuple[np.ndarray, np.ndarray]


def of_points(family: str, tie: str, law: Enumerated, kernel, operator, n: int) -> Null:
    def rejects(number: int) -> bool:
        chosen = np.random.default_rng([number, n]).choice(len(law.mass), n, p=law.mass)
        p, q = (score[chosen] for score in law.scores)
        return lksd.compare_scores(
            law.points[chosen], p, q, kernel, operator=operator, seed=number
        ).reject

    return Null(family, tie, str(kernel).split("(")[0], type(operator).__name__, n, rejects)


def scores_at(model, operator, points) -> np.ndarray:
    return lksd.estimate_scores(model, points, operator=operator, exact=True).score


def law_of(model, points: np.ndarray) -> np.ndarray:
    """Probabilities of all points from the exact ratios p(x with x_d -> v) / p(x), multiplied along
    paths from the first point.
    """
    operator = Gibbs(int(points.max()) + 1)
    conditional = scores_at(model, operator, points)
    index = {tuple(point): number for number, point in enumerate(points.tolist())}
    logs = np.full(len(points), np.nan)
    logs[0], waiting = 0.0, [0]
    while waiting:
        here = waiting.pop()
        for d, value in product(range(points.shape[1]), range(operator.n_values)):
            there = index[(*points[here, :d].tolist(), value, *points[here, d + 1 :].tolist())]
            if np.isnan(logs[there]):
                logs[there] = logs[here] + np.log(
                    conditional[here, d, value] / conditional[here, d, points[here, d]]
                )
                waiting.append(there)
    mass = np.exp(logs - logs.max())
    return mass / mass.sum()


def tied_models(data, p, q_of: Callable, bounds, operator, kernel, points) -> Enumerated:
    """P as given, and Q = q_of(t) with the t at which both are equally far from the data."""
    mass = law_of(data, points)

    def discrepancy(model) -> float:
        return float(
            mass
            @ lksd.stein.stein_kernel(operator, kernel, points, scores_at(model, operator, points))
            @ mass
        )

    wanted = discrepancy(p)
    t = optimize.brentq(lambda t: discrepancy(q_of(t)) / wanted - 1, *bounds, xtol=1e-12)
    return Enumerated(
        points, mass, tuple(scores_at(model, operator, points) for model in (p, q_of(t)))
    )


def binomial(a: float, b: float):
    return lksd.models.BetaBinomial(10, a, b)


def markov(stay: float, tilt: float = 0.5):
    """Two hidden states that stay with this probability, and emit two values that ``tilt`` makes
    unequal.
    """
    transition = np.array([[stay, 1 - stay], [1 - stay, stay]])
    emission = np.array([[0.8, 0.2], [0.2, 0.8]]) * [tilt, 1 - tilt]
    return lksd.models.HiddenMarkov(
        [0.5, 0.5], transition, emission / emission.sum(1, keepdims=True)
    )


@cache
def discrete_laws() -> list[tuple]:
    counts = np.arange(11)[:, None].astype(np.int32)
    found = []
    for operator in (Difference(11), Barker(11), Gibbs(11)):
        law = tied_models(
            binomial(2, 2),
            binomial(2.5, 2),
            lambda t: binomial(2 * t, 2 * t),
            (1.05, 12.0),
            operator,
            Hamming(),
            counts,
        )
        found.append(("beta-binomial", "asymmetric", law, Hamming(), operator))
    sequences = np.array(list(product(range(2), repeat=6)), dtype=np.int32)
    for operator in (Difference(2), Barker(2, witness="shared")):
        law = tied_models(
            markov(0.7),
            markov(0.7, 0.6),
            lambda t: markov(t),
            (0.71, 0.99),
            operator,
            Hamming(),
            sequences,
        )
        found.append(("hidden Markov", "asymmetric", law, Hamming(), operator))
    problem, operators = topic_problems.asymmetric()
    bags, kernel = topic_problems.bags(), lksd.kernels.BagOfWords(IMQ(), topic_problems.TINY)
    for operator in operators:
        scores = tuple(scores_at(model, operator, bags) for model in (problem.p, problem.q))
        found.append(
            (
                "LDA",
                "asymmetric",
                Enumerated(bags, topic_problems.law(problem.data), scores),
                kernel,
                operator,
            )
        )
    return found


def discrete_problems(sizes: tuple[int, ...]):
    for (family, tie, law, kernel, operator), n in product(discrete_laws(), sizes):
        yield of_points(family, tie, law, kernel, operator, n)
        if operator.__class__ is not Gibbs:
            swapped = law._replace(scores=law.scores[::-1])
            yield of_points(family, f"{tie}, swapped", swapped, kernel, operator, n)
    for n in sizes:
        yield both_operators(n)


def both_operators(n: int) -> Null:
    """Difference and Barker together, on the topic models that tie for both."""
    laws = [
        (law, kernel, operator)
        for family, _, law, kernel, operator in discrete_laws()
        if family == "LDA"
    ]
    operators, kernel = tuple(operator for _, _, operator in laws), laws[0][1]

    def rejects(number: int) -> bool:
        chosen = np.random.default_rng([number, n]).choice(
            len(laws[0][0].mass), n, p=laws[0][0].mass
        )
        p, q = (tuple(law.scores[role][chosen] for law, _, _ in laws) for role in range(2))
        return lksd.compare_scores(
            laws[0][0].points[chosen], p, q, kernel, operator=operators, seed=number
        ).reject

    return Null("LDA", "asymmetric", "BagOfWords", "Difference and Barker", n, rejects)


# ------------------------------------------------------------- rankings


@cache
def six_tied(dim: int = 2) -> tuple[tuple, float]:
    """Four models displaced in different directions, one too wide and one too narrow, all equally
    far from N(0, I).
    """
    tie = oracles.asymmetric_tie(dim)
    target = oracles.ksd_scaled(tie.sigma, dim, tie.scale)
    narrow = optimize.brentq(
        lambda s: oracles.ksd_scaled(s, dim, tie.scale) - target, 0.3, 0.999, xtol=1e-14
    )
    shifts = [sign * tie.shift * np.eye(dim)[d] for d in range(2) for sign in (1, -1)]
    return (
        *((shift, 1.0) for shift in shifts),
        (np.zeros(dim), tie.sigma),
        (np.zeros(dim), narrow),
    ), tie.scale


def tied_scores(number: int, n: int, dim: int = 2) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    x = np.random.default_rng([number, n, 6]).normal(size=(n, dim))
    return x, {
        f"model {i}": -(x - mean) / sigma**2 for i, (mean, sigma) in enumerate(six_tied(dim)[0])
    }


def ranking_problems(sizes: tuple[int, ...]):
    kernel = IMQ(six_tied()[1])
    for n in sizes:

        def rejects(number: int, n: int = n) -> bool:
            return lksd.rank_scores(*tied_scores(number, n), kernel, seed=number).reject

        yield Null(
            "six models ranked", "asymmetric, all tied, D = 2", "IMQ", "Langevin", n, rejects
        )


def problems(sizes: tuple[int, ...]) -> list[Null]:
    return [
        one
        for kind in (gaussian_problems, latent_problems, discrete_problems, ranking_problems)
        for one in kind(sizes)
    ]
