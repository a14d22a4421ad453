"""Rejection rates over simulated trials, for tests of level and power."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import oracles
from scipy import stats

import lksd

# -> x, score_p, score_q
Trial = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]


def asymmetric(dim: int, n: int, swapped: bool) -> Trial:
    return tied(oracles.asymmetric_tie(dim), n, swapped)


def tied(tie: oracles.Tie, n: int, swapped: bool) -> Trial:
    def trial(rng):
        x = rng.normal(size=(n, tie.dim))
        score_p, score_q = tie.scores(x)
        return (x, score_q, score_p) if swapped else (x, score_p, score_q)

    return trial


def mirror(dim: int, n: int, shift: float = 0.5) -> Trial:
    def trial(rng):
        x, m = rng.normal(size=(n, dim)), shift * np.eye(dim)[0]
        return x, -(x - m), -(x + m)

    return trial


def identical_noisy(dim: int, n: int, shift: float = 0.5, noise: float = 0.5) -> Trial:
    """The same model twice, its scores known up to independent noise; shift 0 is P = Q = R."""

    def trial(rng):
        x, m = rng.normal(size=(n, dim)), shift * np.eye(dim)[0]
        return x, *(-(x - m) + noise * rng.normal(size=x.shape) for _ in range(2))

    return trial


def shifts(dim: int, n: int, shift_p: float, shift_q: float) -> Trial:
    """An alternative: P farther from the data than Q, in opposite directions."""

    def trial(rng):
        x, e = rng.normal(size=(n, dim)), np.eye(dim)[0]
        return x, -(x - shift_p * e), -(x + shift_q * e)

    return trial


def rejections(trial: Trial, kernel, trials: int, seed: int, **options) -> int:
    rng = np.random.default_rng(seed)
    return sum(
        lksd.compare_scores(*trial(rng), kernel, seed=index, **options).reject
        for index in range(trials)
    )


def above(rejected: int, trials: int, level: float = 0.055) -> float:
    """The p-value of an exact binomial test of "the rejection rate is at most ``level``"."""
    return stats.binomtest(rejected, trials, level, alternative="greater").pvalue
