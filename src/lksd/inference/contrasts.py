"""The differences of models under one kernel and operator: estimates, standard errors, and how they
are judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ..engines import Engine
from ..options import Decision
from ..statistics import ustatistic
from ..statistics.multiplicity import Family, root_of, unit
from ..statistics.nulls import (
    BOOTSTRAP_LIMIT,
    SMALLEST_ALPHA,
    Calibration,
    Edgeworth,
    Evidence,
    NullDistribution,
    replicate_count,
)
from ..statistics.ustatistic import Pairs, against_last, all_pairs, multinomial_weights
from ..stein import GramSums
from ..stein.gram import matrix_sums
from .hypotheses import Tested

ROUNDING = 1e-13  # a spread of the difference this far below the models' own scale is rounding
# numbers of all models' Gram matrices up to which calibration="auto" bootstraps
MATRIX_CELLS = 2**27
AT_ONCE = 1_000  # observations
SENSITIVE_ROWS = 10_000  # documents up to which it is found how the row sums depend on each of them
# of an observation in an incomplete U-statistic, to tell its variance components apart
FEWEST_PARTNERS = 8
CLAIMED = 100  # observations from which on tests are held to their level (docs/null-problems.md)
# share of the projections in the variance of U below which the normal approximation is in doubt
DEGENERATE = 0.1


def pairs_of(pairs: int, n: int) -> int | None:
    """How many pairs of n observations to take; None for all of them."""
    if pairs >= n * (n - 1) // 2:
        return None
    if pairs < FEWEST_PARTNERS * n / 2:
        raise ValueError(
            f"pairs: expected at least {FEWEST_PARTNERS * n // 2}, {FEWEST_PARTNERS} partners for "
            f"each of {n} observations; got {pairs}. Take more, or leave it out."
        )
    return pairs


class Contrasts(NamedTuple):
    """All differences of two models: T is (estimate - margin) / error, never computed where the
    error is nil.
    """

    hypothesis: Tested
    sums: GramSums  # of the models against the last of them
    pairs: Pairs
    rows: np.ndarray  # (A, n)
    zeta: ustatistic.Components
    difference: np.ndarray  # (A,), U
    estimate: np.ndarray  # (A,), U or its regularised form
    # (A,), 0 where the difference varies at rounding level, NaN where the variance estimate is
    # negative
    error: np.ndarray
    # both without regularisation that was not asked for: what replicates are replicates of
    plain: tuple[np.ndarray, np.ndarray]
    live: np.ndarray  # (A,), whether there is a T to judge
    alike: np.ndarray  # (A,), whether the scores agree to rounding
    regularised: np.ndarray  # (A,)
    expansion: Edgeworth | None  # a and c of each difference, where they are wanted
    replicates: np.ndarray | None  # (A, B), of T under a difference of zero
    # (C, k), what each observation, or pair of them, adds to the models' estimates
    influences: np.ndarray
    seed: int  # of the resamples
    nulls: tuple[NullDistribution, ...] | None = None  # of each T, by the user's own calibration
    mirrored: bool = False  # whether these are of the models in the other order

    def turned(self) -> Contrasts:
        """The same with the models of each pair in the other order: what is tested by it, not the
        sums behind it.
        """
        expansion = self.expansion and Edgeworth(-self.expansion.a, -self.expansion.c)
        return self._replace(
            rows=-self.rows,
            difference=-self.difference,
            estimate=-self.estimate,
            plain=(-self.plain[0], self.plain[1]),
            expansion=expansion,
            replicates=None if self.replicates is None else -self.replicates,
            influences=-self.influences,
            mirrored=not self.mirrored,
        )

    def normal_scores(self, t: np.ndarray, backwards: bool) -> np.ndarray:
        """The standard normal values that lie as far out as T of each live difference does in its
        null distribution.
        """
        nulls = [one for one, live in zip(self.nulls or (), self.live, strict=True) if live]
        other = backwards != self.mirrored
        return -ndtri(
            [
                one.lower(-a) if other else one.upper(a)
                for one, a in zip(nulls, t.tolist(), strict=True)
            ]
        )

    def statistics(self, margin: float) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                self.live,
                (self.estimate - margin) / self.error,
                np.where(self.error == 0, 0.0, math.nan),
            )


def studentise(
    family: Sequence[Tested],
    decision: Decision,
    seed: int,
    engine: Engine | None = None,
    sensitive: bool = False,
    known: list[np.ndarray] | None = None,
) -> list[Contrasts]:
    """Every hypothesis, on the same resamples; from all models' Gram matrices (S, n, n) where those
    are ``known``.
    """
    n, models = len(family[0].x), len(family[0].scores)
    sensitive = sensitive and n <= SENSITIVE_ROWS
    pairs = None if decision.pairs is None else pairs_of(decision.pairs, n)
    chosen = choose_calibration(decision, pairs, n, models)
    weights = (
        multinomial_weights(n, replicate_count(decision.alpha, models), seed)
        if chosen == "bootstrap"
        else None
    )
    whole = decision.guarded and weights is not None  # for the expansion beside the bootstrap
    against, found = against_last(models), []
    for number, one in enumerate(family):
        if known is not None:
            assert pairs is None
            sums = matrix_sums(known[number], against)
        else:
            sums = one.sums(
                against,
                None if whole else weights,
                sensitive=sensitive,
                whole=whole,
                pairs=pairs,
                seed=seed,
                engine=engine,
            )
        found.append(contrasts_of(one, sums, decision, seed, chosen, weights))
    return found


def choose_calibration(decision: Decision, pairs: int | None, n: int, models: int) -> str:
    if isinstance(decision.calibration, Calibration):
        return "own"
    if decision.variance not in ("auto", "jackknife") or pairs is not None:
        return "normal"
    if decision.calibration != "auto":
        return decision.calibration
    small = n <= BOOTSTRAP_LIMIT and (models - 1) * n**2 <= MATRIX_CELLS
    return "bootstrap" if small and decision.alpha >= SMALLEST_ALPHA else "edgeworth"


def contrasts_of(
    hypothesis: Tested,
    sums: GramSums,
    decision: Decision,
    seed: int,
    calibration: str,
    weights: np.ndarray | None,
) -> Contrasts:
    scores, n = hypothesis.scores, len(hypothesis.x)
    pairs = all_pairs(len(scores))
    alike = np.array([agree(scores[i], scores[j]) for i, j in zip(*pairs, strict=True)])
    rows = np.where(alike[:, None], 0.0, pairs.of(sums.rows))
    squares = np.where(alike, 0.0, pairs.squared(sums.squares))
    zeta = ustatistic.components(rows, squares, sums.partners)
    difference = ustatistic.u_statistic(rows)
    if sums.partners is not None:
        variance = ustatistic.incomplete_variance(zeta, sums.partners)
    elif decision.variance == "ustat":
        variance = ustatistic.ustat_variance(rows, squares)
    elif decision.variance == "vstat":
        variance = ustatistic.vstat_variance(rows, pairs.of(sums.diagonal))
    else:
        variance = ustatistic.jackknife_variance(rows)
    scale = np.abs(sums.model_diagonal).mean(1)
    rounding = ROUNDING * (scale[pairs.first] + scale[pairs.second]) / 2
    estimate, error = difference, error_of(variance, n, np.where(alike, np.inf, rounding))
    plain, influences = (estimate, error), 2 * ustatistic.centred(sums.rows) / (n - 2)
    regularised = np.full(len(alike), decision.variance == "regularised")
    # the other calibrations are those of U itself
    if decision.variance == "auto" and decision.guarded and sums.partners is None:
        regularised = ~alike & (linear_share(n, zeta) < DEGENERATE) & (np.abs(difference) <= error)
    if regularised.any():
        order = np.random.default_rng(seed).permutation(n)[: n - n % 2]
        at_pairs = hypothesis.at_pairs(order, against_last(len(scores)))
        other = ustatistic.regularised(rows, order, pairs.of(at_pairs))
        estimate = np.where(regularised, other.estimate, estimate)
        error = np.where(regularised & (error > 0), error_of(other.variance, n, rounding), error)
        if decision.variance == "regularised":
            plain, influences = (
                (estimate, error),
                ustatistic.regularised(sums.rows, order, at_pairs).influence,
            )
    replicates = None
    if weights is not None:
        replicates = hypothesis.replicates(sums, weights, pairs)
    expanded = calibration == "edgeworth" or (calibration == "bootstrap" and decision.guarded)
    return Contrasts(
        hypothesis=hypothesis,
        sums=sums,
        pairs=pairs,
        rows=rows,
        zeta=zeta,
        difference=difference,
        estimate=np.where(alike, 0.0, estimate),
        error=error,
        plain=plain,
        live=(error > 0) & (plain[1] > 0),
        alike=alike,
        regularised=regularised,
        expansion=hypothesis.expansion(sums, rows, pairs, seed) if expanded else None,
        replicates=replicates,
        influences=influences,
        seed=seed,
        nulls=own_nulls(decision.calibration, estimate, error, rows)
        if calibration == "own"
        else None,
    )


def own_nulls(
    calibration: Any, estimate: np.ndarray, error: np.ndarray, rows: np.ndarray
) -> tuple[NullDistribution, ...]:
    """The distribution of T for every difference that varies; the normal one for others, which are
    not judged.
    """
    n, found = rows.shape[1], []
    influences = 2 * ustatistic.centred(rows) / (n - 2)
    for value, deviation, own in zip(estimate.tolist(), error.tolist(), influences, strict=True):
        null = (
            calibration.null(Evidence(n, value / deviation, value, deviation, own))
            if deviation > 0
            else Edgeworth()
        )
        if not isinstance(null, NullDistribution):
            raise TypeError(
                f"calibration: expected {type(calibration).__name__}.null to return a "
                f"lksd.statistics.NullDistribution; got {null!r}. Return an instance of a subclass."
            )
        found.append(null)
    return tuple(found)


def error_of(variance: np.ndarray, n: int, rounding: np.ndarray) -> np.ndarray:
    """sqrt(v / n); 0 where v is that of rounding, NaN where it is negative."""
    root = np.sqrt(np.where(variance < 0, math.nan, variance))
    return np.where(root <= rounding, 0.0, root / math.sqrt(n))


def agree(score_p: np.ndarray, score_q: np.ndarray) -> bool:
    """Whether two models' scores are equal up to rounding; models that differ do so among the first
    observations.
    """
    for start in range(0, len(score_p), AT_ONCE):
        p, q = score_p[start : start + AT_ONCE], score_q[start : start + AT_ONCE]
        if not np.abs(p - q).max() <= ROUNDING * max(np.abs(p).max(), np.abs(q).max()):
            return False
    return True


def linear_share(n: int, zeta: ustatistic.Components) -> np.ndarray:
    """The part of Var(U) that the projections make: where it is small, U is nearly degenerate and
    not normal.
    """
    linear, whole = 4 * (n - 2) * zeta.zeta_1, 4 * (n - 2) * zeta.zeta_1 + 2 * zeta.zeta_2
    return np.where(linear > 0, linear / np.where(whole > 0, whole, 1.0), 0.0)


def said_of_pairs(test: Contrasts) -> str:
    """How many pairs of observations were taken, and what that costs."""
    partners = test.sums.partners
    assert partners is not None
    n, zeta = len(partners), test.zeta._replace(zeta_1=np.maximum(test.zeta.zeta_1, 0.0))
    known = ustatistic.Components(*(part[test.live] for part in zeta))
    whole = n * ustatistic.hoeffding_variance(n, known)
    more = np.max(ustatistic.incomplete_variance(known, partners) / whole, initial=1.0) - 1
    return (
        f"{partners.sum() // 2:,} of {n * (n - 1) // 2:,} pairs of observations are taken, which "
        f"adds {more:.1%} to the variance."
    )


def said_of_size(test: Contrasts, decision: Decision) -> list[str]:
    """What a small sample may hide; the level is claimed for the default test alone."""
    n = test.rows.shape[1]
    if n >= CLAIMED or not test.live.any() or not decision.guarded or decision.variance != "auto":
        return []
    claim = f"n = {n} is small: the level is claimed from n = {CLAIMED} on"
    return [f"{claim}; with fewer observations rare ones may be missing, and p-values too small."]


# ------------------------------------------------------------- as a family of one-sided hypotheses


def family_of(tests: list[Contrasts], decision: Decision, both: bool) -> Family:
    """The live differences of all tests, one after another; where ``both`` sides count, then all of
    them turned round.

    Where the regularised form was chosen for a difference that is nearly degenerate, its T and the
    plain one must both be large: its normal score is the smaller of the two.
    """
    live = np.concatenate([test.live for test in tests])

    def joined(parts) -> np.ndarray:
        every = np.concatenate(list(parts))[live]
        return np.concatenate([every, -every]) if both else every

    def studentised(estimates: list[np.ndarray], errors: list[np.ndarray]) -> np.ndarray:
        error = np.tile(np.concatenate(errors)[live], 1 + both)
        return (joined(estimates) - decision.margin) / error

    plain = studentised([test.plain[0] for test in tests], [test.plain[1] for test in tests])
    replicates = None
    if tests[0].replicates is not None:
        replicates = joined(test.replicates for test in tests)
    scores = None
    if tests[0].nulls is not None:
        halves = np.split(plain, 1 + both)
        ends = np.cumsum([test.live.sum() for test in tests])[:-1]
        scores = np.concatenate(
            [
                test.normal_scores(t, bool(side))
                for side, half in enumerate(halves)
                for test, t in zip(tests, np.split(half, ends), strict=True)
            ]
        )
    elif replicates is None or decision.guarded:
        scores = plain
        if tests[0].expansion is not None:
            a, c = (joined(getattr(test.expansion, name) for test in tests) for name in "ac")
            transformed = Edgeworth(a, c).transformed(plain)
            scores = np.minimum(transformed, plain) if decision.guarded else transformed
        scores = np.minimum(
            scores,
            np.where(
                np.tile(np.concatenate([test.regularised for test in tests])[live], 1 + both),
                studentised([test.estimate for test in tests], [test.error for test in tests]),
                np.inf,
            ),
        )
    return Family(plain, scores, joined(factors_of(tests)), replicates)


def factors_of(tests: list[Contrasts]) -> list[np.ndarray]:
    """For every test the rows, of length one, whose inner products are the correlations of all
    differences of all tests.
    """
    root = root_of(np.concatenate([ustatistic.centred(test.influences) for test in tests]))
    ends = np.cumsum([len(test.influences) for test in tests])
    return [
        unit(test.pairs.of(own)) for test, own in zip(tests, np.split(root, ends[:-1]), strict=True)
    ]
