"""Several hypotheses at once: p-values adjusted by step-down max-T (Romano and Wolf 2005), min-p
(Westfall and Young 1993), Holm or Bonferroni; and a selective test, whether a model is worse than
the one that the same data chose (RelPSI, Lim et al. 2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr, ndtr

from .nulls import Bootstrap

NORMAL_DRAWS = 19_999
CELLS = 2**22  # numbers of the draws that are held at once
CORRECTIONS = ("min-p", "max-t", "holm", "bonferroni")


class Family(NamedTuple):
    """Hypotheses that are rejected where T is large.

    ``scores`` are the standard normal values that lie as far out as the ``statistics`` do,
    ``factors`` (rows of length one) the root of their correlation. ``replicates`` of the statistics
    are drawn jointly.
    """

    statistics: Float[np.ndarray, " A"]
    scores: Float[np.ndarray, " A"] | None  # None where the replicates alone decide
    factors: Float[np.ndarray, "A r"]
    replicates: Float[np.ndarray, "A B"] | None


class Adjusted(NamedTuple):
    """Adjusted p-values, and the distributions of the largest of all scores and of all
    statistics.
    """

    pvalues: Float[np.ndarray, " A"]
    largest_score: Bootstrap | None = None
    largest_statistic: Bootstrap | None = None


def adjust(family: Family, correction: str, seed: int) -> Adjusted:
    """The larger of the p-values by normal scores and by replicates, each adjusted for all
    hypotheses.

    By "min-p" every statistic is first replaced by its place among its own replicates: where those
    of one hypothesis have heavy tails, their largest would hide all others.
    """
    if correction in ("holm", "bonferroni"):
        return Adjusted(by_count(marginal(family), correction))
    pvalues, score, statistic = np.zeros(len(family.statistics)), None, None
    if family.scores is not None:
        pvalues, score = step_down(family.scores, normal_draws(family.factors, seed))
        # beyond what draws can resolve
        pvalues = np.minimum(pvalues, by_count(ndtr(-family.scores), "holm"))
    if family.replicates is not None:
        resampled, statistic = step_down(family.statistics, [family.replicates])
        if correction == "min-p":
            places, of_replicates = own_places(family.statistics, family.replicates)
            resampled, _ = step_down(places, [of_replicates])
        pvalues = np.maximum(pvalues, resampled)
    return Adjusted(np.maximum(pvalues, marginal(family)), score, statistic)


def step_down(
    statistics: Float[np.ndarray, " A"], draws: Iterable[Float[np.ndarray, "A _"]]
) -> tuple[Float[np.ndarray, " A"], Bootstrap]:
    """P(max over this and all less significant hypotheses >= t), made monotone; and the
    distribution of the largest of all.
    """
    order = np.argsort(-statistics, kind="stable")
    counts, largest = np.zeros(len(order)), []
    for chunk in draws:
        # NaN: a resample without spread, which speaks for no rejection
        known = np.where(np.isnan(chunk), np.inf, chunk)[order]
        tops = np.maximum.accumulate(known[::-1], 0)[::-1]
        counts += (tops >= statistics[order, None]).sum(1)
        largest.append(tops[0])
    replicates = np.concatenate(largest)
    pvalues = np.empty(len(order))
    pvalues[order] = np.maximum.accumulate((counts + 1) / (len(replicates) + 1))
    return pvalues, Bootstrap.of(replicates)


def own_places(
    statistics: Float[np.ndarray, " A"], replicates: Float[np.ndarray, "A B"]
) -> tuple[Float[np.ndarray, " A"], Float[np.ndarray, "A B"]]:
    """How many of a hypothesis's own replicates are smaller than its T, and than each replicate;
    those without spread are larger than any.
    """
    known = np.where(np.isnan(replicates), np.inf, replicates)
    smaller = [
        np.searchsorted(np.sort(own), [t, *own], "left")
        for t, own in zip(statistics, known, strict=True)
    ]
    places = np.array(smaller, dtype=np.float64).reshape(len(statistics), -1)
    return places[:, 0], places[:, 1:]


def normal_draws(
    factors: Float[np.ndarray, "A r"], seed: int
) -> Iterator[Float[np.ndarray, "A _"]]:
    """Draws from N(0, factors factors'), some at a time."""
    rng, size = np.random.default_rng(seed), max(1, CELLS // len(factors))
    for start in range(0, NORMAL_DRAWS, size):
        yield factors @ rng.standard_normal((factors.shape[1], min(size, NORMAL_DRAWS - start)))


def root_of(influences: Float[np.ndarray, "C k"]) -> Float[np.ndarray, "C r"]:
    """Rows with the inner products of the influences, in as few columns as that takes."""
    values, vectors = np.linalg.eigh(influences @ influences.T)
    kept = values > len(values) * np.finfo(float).eps * values.max(initial=0.0)
    return vectors[:, kept] * np.sqrt(values[kept])


def unit(rows: Float[np.ndarray, "A r"]) -> Float[np.ndarray, "A r"]:
    """Rows of length one; those of length zero stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def marginal(family: Family) -> Float[np.ndarray, " A"]:
    """Each hypothesis's own p-value."""
    pvalues = np.zeros(len(family.statistics)) if family.scores is None else ndtr(-family.scores)
    if family.replicates is not None:
        beyond = ~(family.replicates < family.statistics[:, None])  # NaN counts as beyond
        pvalues = np.maximum(pvalues, (beyond.sum(1) + 1) / (family.replicates.shape[1] + 1))
    return pvalues


def by_count(pvalues: Float[np.ndarray, " A"], correction: str) -> Float[np.ndarray, " A"]:
    """Bonferroni's p-values: times their number; Holm's: times the number of those that are not
    smaller, made monotone.
    """
    count = len(pvalues)
    if correction == "bonferroni":
        return np.minimum(1.0, count * pvalues)
    order = np.argsort(pvalues, kind="stable")
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(
        1.0, np.maximum.accumulate((count - np.arange(count)) * pvalues[order])
    )
    return adjusted


def selective_pvalues(
    estimates: Float[np.ndarray, " M"],
    covariance: Float[np.ndarray, "M M"],
    chosen: int,
    margin: float = 0.0,
) -> Float[np.ndarray, " M"]:
    """P-values of H0: model i is worse than the chosen one by at most ``margin``, given that the
    chosen one came out best.

    With z ~ N(mu, covariance) and y = z_i - z_chosen, the others' leads w_k = z_k - z_chosen are
    rho_k y + r_k with r_k independent of y. The choice, all w_k >= 0, cuts y to an interval, and y
    is a truncated normal.
    """
    leads = estimates - estimates[chosen]
    pvalues = np.ones(len(estimates))
    for i in range(len(estimates)):
        # Cov(w_k, y) for all k
        shared = (
            covariance[:, i]
            - covariance[:, chosen]
            - covariance[chosen, i]
            + covariance[chosen, chosen]
        )
        if i == chosen or not shared[i] > 0:
            continue
        slopes = shared / shared[i]
        slopes[chosen] = 0.0
        rest = leads - slopes * leads[i]
        ends = -rest / np.where(slopes == 0, 1.0, slopes)
        low = float(ends[slopes > 0].max())  # the model's own condition among them: y >= 0
        high = float(ends[slopes < 0].min(initial=math.inf))
        sd = math.sqrt(shared[i])
        pvalues[i] = upper_truncated(
            (leads[i] - margin) / sd, (low - margin) / sd, (high - margin) / sd
        )
    return pvalues


def upper_truncated(t: float, low: float, high: float) -> float:
    """P(Z >= t | low <= Z <= high) for a standard normal Z, in logarithms, so that no tail is too
    far.
    """
    t = min(max(t, low), high)
    whole = log_mass(low, high)
    return 1.0 if whole == -math.inf else min(1.0, math.exp(log_mass(t, high) - whole))


def log_mass(low: float, high: float) -> float:
    """log P(low <= Z <= high), on the side of zero where both tails are small."""
    if low + high < 0:
        low, high = -high, -low
    larger, smaller = float(log_ndtr(-low)), float(log_ndtr(-high))
    return -math.inf if larger == smaller else larger + math.log1p(-math.exp(smaller - larger))
