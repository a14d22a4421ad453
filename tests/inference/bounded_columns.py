"""One column of bounded or positive data in coordinates without an edge, with the scores of the
true model and of one whose scale, or concentration, is 1.5 times the true one.
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import expit, logit


def beta(a: float, b: float):
    def score(y, factor):
        return factor * (a - (a + b) * expit(y))

    return lambda rng, n: logit(np.clip(rng.beta(a, b, n), 1e-12, 1 - 1e-12)), score


def truncated_normal(sd: float, low: float, high: float, mean: float):
    ends = (low - mean) / sd, (high - mean) / sd

    def draw(rng, n):
        x = stats.truncnorm(*ends, mean, sd).rvs(n, random_state=rng)
        return logit((x - low) / (high - low))

    def score(y, factor):
        u = expit(y)
        slope = (high - low) * u * (1 - u)
        return -(low + (high - low) * u - mean) / (factor * sd) ** 2 * slope + 1 - 2 * u

    return draw, score


def gamma(shape: float):
    return lambda rng, n: np.log(rng.gamma(shape, size=n)), (
        lambda y, factor: shape - np.exp(y) / factor
    )


def half_cauchy():
    return lambda rng, n: np.log(np.abs(rng.standard_cauchy(n))), (
        lambda y, factor: 1 - 2 * np.exp(2 * y) / (factor**2 + np.exp(2 * y))
    )


FAMILIES = {
    "uniform": beta(1, 1),
    "beta 3, 1.5": beta(3, 1.5),
    "beta .5, .5": beta(0.5, 0.5),
    "beta 2, 2": beta(2, 2),
    "normal on (-1, 1)": truncated_normal(0.5, -1, 1, 0),
    "normal on (0, 3)": truncated_normal(0.8, 0, 3, 1),
    "exponential": gamma(1.0),
    "gamma .7": gamma(0.7),
    "half-Cauchy": half_cauchy(),
}


def trial(name: str, rng: np.random.Generator, n: int):
    """The data, the score of the wrong model and that of the right one."""
    draw, score = FAMILIES[name]
    y = draw(rng, n)[:, None]
    return y, score(y, 1.5), score(y, 1.0)
