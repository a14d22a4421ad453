"""Comparisons of topic models: the paper's problems (Section 4.3, Appendix C.3), and ties where
neither model is better.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from scipy import optimize
from scipy.special import gammaln

import lksd
from lksd.models import LDA

TOPICS, WORDS, LENGTH = 3, 10_000, 50


class Problem(NamedTuple):
    """Documents from ``data``; is Q closer than P?"""

    data: LDA
    p: LDA
    q: LDA
    length: int

    def sample(self, n: int, seed: int) -> np.ndarray:
        return documents(self.data, n, self.length, seed)


def documents(model: LDA, n: int, length: int, seed: int) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(_documents(model, jax.random.split(jax.random.key(seed), n), length))


@eqx.filter_jit
def _documents(model, keys, length):
    return jax.vmap(lambda key: model.sample(key, length)[1])(keys)


def words(
    rng: np.random.Generator, spread: float = 1.0, size: int = WORDS, count: int = TOPICS
) -> np.ndarray:
    return rng.dirichlet(np.full(size, spread), count)


def prior(concentration: float, topics: np.ndarray) -> LDA:
    return LDA(np.full(len(topics), concentration), topics)


def prior_sparsity(delta_p: float, delta_q: float, spread: float = 1.0) -> Callable[[int], Problem]:
    """LDA Problems 1 and 2; with ``spread`` 0.1 those of sparse topics. The topics are
    drawn once.
    """
    topics = words(np.random.default_rng(0), spread)
    problem = Problem(
        prior(0.1, topics), prior(0.1 + delta_p, topics), prior(0.1 + delta_q, topics), LENGTH
    )
    return lambda trial: problem


def topic_perturbation(delta_p: float, delta_q: float = 0.01) -> Callable[[int], Problem]:
    rng = np.random.default_rng(0)
    topics, other = words(rng), words(rng)
    p, q = (prior(0.1, (1 - delta) * topics + delta * other) for delta in (delta_p, delta_q))
    problem = Problem(prior(0.1, topics), p, q, LENGTH)
    return lambda trial: problem


def identical(size: int = 200, length: int = 20) -> Callable[[int], Problem]:
    """P = Q, away from the data; their scores differ by the noise of the chains."""
    topics = words(np.random.default_rng(0), size=size)
    problem = Problem(prior(0.1, topics), prior(0.6, topics), prior(0.6, topics), length)
    return lambda trial: problem


def mirror(size: int = 40, length: int = 20, shift: float = 0.8) -> Problem:
    """Topics and their images under half a turn of the alphabet, which takes P to Q and leaves the
    data's law alone.

    The word probabilities rise and fall along the alphabet, so that its own order serves as the
    vocabulary's.
    """
    half = np.exp(1.5 * np.cos(2 * np.pi * np.arange(size) / (size / 2)))
    first = half * np.exp(1.2 * np.cos(2 * np.pi * np.arange(size) / size))
    topics = np.stack([first, np.roll(first, size // 2)])
    topics /= topics.sum(1, keepdims=True)
    p, q = (LDA(np.array(a), topics) for a in ((0.3 + shift, 0.3), (0.3, 0.3 + shift)))
    return Problem(LDA(np.array([0.3, 0.3]), topics), p, q, length)


# ---------------------------------------------------------------- an asymmetric tie on a tiny
# alphabet, by exact scores

TINY, SHORT = 4, 6
MEDIAN = 8.0  # of the squared distances of bags of the data's law


def bags() -> np.ndarray:
    return np.array(list(combinations_with_replacement(range(TINY), SHORT)), dtype=np.int32)


def law(model: LDA) -> np.ndarray:
    """The probability of every bag, by summing over the counts of the two topics' words."""
    first, second = model.topics
    a, b = model.concentration
    ends = np.arange(SHORT + 1)
    moments = np.exp(
        gammaln(a + ends)
        + gammaln(b + SHORT - ends)
        - gammaln(a + b + SHORT)
        - gammaln(a)
        - gammaln(b)
        + gammaln(a + b)
    )
    masses = []
    for bag in bags():
        polynomial = np.ones(1)
        for word in bag:
            polynomial = np.convolve(polynomial, [second[word], first[word]])
        arrangements = np.exp(
            gammaln(SHORT + 1) - gammaln(np.bincount(bag, minlength=TINY) + 1).sum()
        )
        masses.append(arrangements * polynomial @ moments)
    return np.array(masses)


def discrepancy(model: LDA, operator, kernel, mass: np.ndarray) -> float:
    """KSD^2 of the model to a law of the bags."""
    x = bags()
    scores = lksd.estimate_scores(model, x, operator=operator, exact=True).score
    return float(mass @ lksd.stein.stein_kernel(operator, kernel, x, scores) @ mass)


@cache
def asymmetric(scale: float = 1.0) -> tuple[Problem, tuple]:
    """P has other topics, Q another prior; both operators, with IMQ at this squared scale, see both
    as equally far from the data.

    Two unknowns, the weights of the data's two topics in Q, for two equations.
    """
    topics = np.array([[0.45, 0.3, 0.15, 0.1], [0.1, 0.2, 0.3, 0.4]])
    data = LDA(np.array([0.5, 0.5]), topics)
    p = LDA(
        data.concentration,
        0.6 * topics + 0.4 * np.array([[0.25, 0.25, 0.25, 0.25], [0.4, 0.1, 0.4, 0.1]]),
    )
    operators = lksd.discrete_operators(data, p)
    kernel, mass = lksd.kernels.BagOfWords(lksd.kernels.IMQ(scale), TINY), law(data)
    wanted = np.array([discrepancy(p, operator, kernel, mass) for operator in operators])

    def gap(logs):
        q = LDA(np.exp(logs), topics)
        return (
            np.array([discrepancy(q, operator, kernel, mass) for operator in operators]) / wanted
            - 1
        )

    found = optimize.root(gap, np.log([2.0, 0.5]), tol=1e-10)
    if not found.success or np.abs(found.fun).max() > 1e-7:
        raise RuntimeError(f"no tie found: {found.message}")
    return Problem(data, p, LDA(np.exp(found.x), topics), SHORT), operators
