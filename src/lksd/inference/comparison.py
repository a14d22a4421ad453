"""The relative test on scores: which of two models is closer to the data (Section 3)?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from .._validation import check_choice, check_probability, check_seed
from ..stein import GramSums, gram_sums, paired
from . import ustatistic
from .calibration import (
    BOOTSTRAP_LIMIT,
    EDGEWORTH_ROWS,
    SMALLEST_ALPHA,
    Bootstrap,
    Conservative,
    Edgeworth,
    NullDistribution,
    edgeworth,
    multinomial_weights,
    replicate_count,
    studentised_replicates,
)
from .hypotheses import Hypothesis, hypotheses
from .multiplicity import largest, normal_replicates
from .records import read_only
from .results import ComparisonResult
from .settings import as_settings

CONTRAST = np.array([1.0, -1.0])
VARIANCES = ("jackknife", "ustat", "vstat", "regularised")
CALIBRATIONS = ("auto", "bootstrap", "edgeworth", "normal")
ALTERNATIVES = ("greater", "two-sided")
ROUNDING = 1e-13  # a spread of the difference this far below the models' own scale is rounding


class Settings(NamedTuple):
    """How the hypotheses are judged."""

    alternative: str
    alpha: float
    variance: str
    calibration: str  # "bootstrap", "edgeworth" or "normal"
    guarded: bool  # whether no p-value may fall below the normal one
    seed: int
    sensitive: bool  # whether the sensitivity of the row sums is wanted too


class Studentised(NamedTuple):
    """One hypothesis before calibration: the statistic is numerator / error, never computed where error is nil."""

    hypothesis: Hypothesis
    sums: GramSums
    numerator: float
    error: float
    influence: np.ndarray  # of each observation, or pair of them, on the numerator
    notes: tuple[str, ...]
    indistinguishable: bool = False

    @property
    def statistic(self) -> float:
        return self.numerator / self.error if self.error > 0 else 0.0 if self.error == 0 else math.nan


def compare_scores(
    x,
    score_p,
    score_q,
    kernel,
    *,
    operator=None,
    alternative: str = "greater",
    alpha: float = 0.05,
    variance: str = "jackknife",
    calibration: str = "auto",
    seed: int = 0,
    mask=None,
) -> ComparisonResult:
    """Test H0: P fits at least as well as Q, from the scores of both models at the data.

    Parameters
    ----------
    x : (n, D) array, data frame, list of token-id lists, or sparse counts
        Independent observations that neither model was fitted on. Counts are read as documents whose tokens
        stand in ascending order of the word id; scores follow that order.
    score_p, score_q : arrays
        The models' scores at ``x`` in the shape that ``operator`` says; a tuple of them where
        several operators are given.
    kernel : kernel, function k(x, y), or a list of them
        Several kernels or operators are tested together with a max-T correction.
    operator : operator, name, or tuple of them
        Default: Langevin, for continuous data. A name means a shared witness and the values in their own order; scores of
        ``estimate_scores`` belong to its ``.operator``, so give that.
    alternative : "greater" or "two-sided"
        H1: Q fits better; or: one of them fits better.
    variance : "jackknife", "ustat", "vstat" or "regularised"
        The paper's estimators, and one that is made for (nearly) identical models.
    calibration : "auto", "bootstrap", "edgeworth" or "normal"
        "normal" is the paper's. "auto" takes the bootstrap up to 1,000 observations and the expansion
        beyond, and never a p-value below the normal one.
    mask : (n, D) boolean array, optional
        False where an observation lacks a position (discrete operators).

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.IMQ.median(x))  # P = N(1, I), Q = N(0, I)
    >>> result.reject, result.difference > 0
    (True, True)
    """
    options = Options(alternative, alpha, variance, calibration, seed).checked()
    family = hypotheses(x, (score_p, score_q), ("score_p", "score_q"), kernel, operator, mask)
    result, _ = decide(family, options, sensitive=False)
    return replace(result, settings=as_settings({"kernel": kernel, "operator": operator} | options._asdict()))


class Options(NamedTuple):
    """What the caller wants."""

    alternative: str
    alpha: float
    variance: str
    calibration: str
    seed: int

    def checked(self) -> Options:
        check_choice("alternative", self.alternative, ALTERNATIVES)
        check_choice("variance", self.variance, VARIANCES)
        check_calibration(self.calibration, self.variance)
        if self.calibration == "bootstrap":
            replicate_count(check_probability("alpha", self.alpha))
        return self._replace(alpha=check_probability("alpha", self.alpha), seed=check_seed(self.seed))


def decide(family: list[Hypothesis], options: Options, sensitive: bool) -> tuple[ComparisonResult, Studentised]:
    """The result, and the test that it tells of: the most significant of several."""
    n = len(family[0].x)
    chosen = choose_calibration(options.calibration, options.variance, n, options.alpha)
    settings = Settings(
        options.alternative, options.alpha, options.variance, chosen, options.calibration == "auto", options.seed, sensitive
    )
    weights = multinomial_weights(n, replicate_count(options.alpha), options.seed) if chosen == "bootstrap" else None
    tests = [studentise(hypothesis, settings, weights) for hypothesis in family]
    if len(tests) == 1:
        return judge(tests[0], settings, calibrate(tests[0], settings, weights)), tests[0]
    result, best = judge_family(tests, settings, weights)
    return result, tests[best]


def check_calibration(calibration: str, variance: str) -> None:
    check_choice("calibration", calibration, CALIBRATIONS)
    if variance != "jackknife" and calibration in ("bootstrap", "edgeworth"):
        raise ValueError(
            f"calibration: expected 'normal' or 'auto' with variance={variance!r}; got {calibration!r}. "
            "The bootstrap and the expansion are made for the jackknife variance."
        )


def choose_calibration(calibration: str, variance: str, n: int, alpha: float) -> str:
    if variance != "jackknife":
        return "normal"
    if calibration != "auto":
        return calibration
    return "bootstrap" if n <= BOOTSTRAP_LIMIT and alpha >= SMALLEST_ALPHA else "edgeworth"


def studentise(hypothesis: Hypothesis, settings: Settings, weights: np.ndarray | None) -> Studentised:
    """The numerator of T and its standard error sqrt(v / n)."""
    whole = settings.guarded and weights is not None  # for the expansion beside the bootstrap
    sums = gram_sums(
        hypothesis.operator,
        hypothesis.kernel,
        hypothesis.x,
        hypothesis.scores,
        CONTRAST,
        weights,
        sensitive=settings.sensitive,
        whole=whole,
    )
    n = len(sums.rows)
    difference, notes = ustatistic.u_statistic(sums.rows), hypothesis.notes
    numerator, influence = difference, sums.rows
    if settings.variance == "jackknife":
        variance = ustatistic.jackknife_variance(sums.rows)
    elif settings.variance == "ustat":
        variance = ustatistic.ustat_variance(sums.rows, sums.squares)
    elif settings.variance == "vstat":
        variance = ustatistic.vstat_variance(sums.rows, sums.diagonal)
    else:
        order = np.random.default_rng(settings.seed).permutation(n)[: n - n % 2]
        numerator, variance, influence = ustatistic.regularised(sums.rows, order, pair_values(hypothesis, order))
    scale = np.abs(sums.model_diagonal).mean()
    if agree(hypothesis.scores):
        return Studentised(hypothesis, zeroed(sums), 0.0, 0.0, influence, notes, indistinguishable=True)
    if variance < 0:
        note = "the U-statistic estimate of the variance is negative, so the null hypothesis is kept; use variance='jackknife'."
        return Studentised(hypothesis, sums, numerator, math.nan, influence, (*notes, note))
    if math.sqrt(variance) <= ROUNDING * scale:
        note = (
            "the difference varies at rounding level only, so the null hypothesis is kept; "
            "is the kernel's scale far too small, or are the observations all alike?"
        )
        return Studentised(hypothesis, sums, numerator, 0.0, influence, (*notes, note))
    return Studentised(hypothesis, sums, numerator, math.sqrt(variance / n), influence, notes)


def agree(scores: np.ndarray) -> bool:
    """Whether the two models' scores are equal up to rounding."""
    return bool(np.abs(scores[0] - scores[1]).max() <= ROUNDING * np.abs(scores).max())


def pair_values(hypothesis: Hypothesis, order: np.ndarray) -> np.ndarray:
    """H at disjoint pairs of observations."""
    first, second = order[0::2], order[1::2]
    x, scores = hypothesis.x, hypothesis.scores
    return CONTRAST @ paired(hypothesis.operator, hypothesis.kernel, x[first], scores[:, first], x[second], scores[:, second])


def zeroed(sums: GramSums) -> GramSums:
    """The sums of a contrast that is zero up to rounding."""
    return sums._replace(rows=0 * sums.rows, squares=0.0, diagonal=0 * sums.diagonal, products=0 * sums.products, matrix=None)


def calibrate(test: Studentised, settings: Settings, weights: np.ndarray | None) -> NullDistribution:
    """The distribution of T under a true difference of zero."""
    if not test.error > 0 or settings.calibration == "normal":
        return Edgeworth()
    if weights is None:
        corrected: tuple[NullDistribution, ...] = (expansion(test, settings),)
    else:
        corrected = (Bootstrap.of(studentised_replicates(test.sums, weights)),)
        if settings.guarded:
            corrected = (*corrected, expansion(test, settings))
    return Conservative(corrected) if settings.guarded else corrected[0]


def expansion(test: Studentised, settings: Settings) -> Edgeworth:
    """The Edgeworth expansion; g'Hg comes from at most ``EDGEWORTH_ROWS`` observations."""
    rows, hypothesis = test.sums.rows, test.hypothesis
    n = len(rows)
    subset, g = np.arange(n), rows / (n - 1) - ustatistic.u_statistic(rows)
    if test.sums.matrix is not None:
        return edgeworth(rows, subset, float(g @ test.sums.matrix @ g))
    if n > EDGEWORTH_ROWS:
        subset = np.sort(np.random.default_rng(settings.seed).choice(n, EDGEWORTH_ROWS, replace=False))
    g = g[subset]
    part = gram_sums(
        hypothesis.operator, hypothesis.kernel, hypothesis.x[subset], hypothesis.scores[:, subset], CONTRAST, g[:, None]
    )
    return edgeworth(rows, subset, float(g @ (part.products[:, 0] - part.diagonal * g)))


def judge(test: Studentised, settings: Settings, null: NullDistribution) -> ComparisonResult:
    """The decision: U against the threshold (Algorithm 1)."""
    decidable = test.error > 0
    if settings.alternative == "greater":
        pvalue = null.upper(test.statistic) if decidable else 1.0
        reject = decidable and test.numerator > test.error * null.upper_quantile(settings.alpha)
    else:
        tails = min(null.upper(test.statistic), null.lower(test.statistic)) if decidable else 0.5
        pvalue = min(1.0, 2 * tails)
        reject = decidable and not (
            test.error * null.lower_quantile(settings.alpha / 2)
            <= test.numerator
            <= test.error * null.upper_quantile(settings.alpha / 2)
        )
    return record(test, settings, pvalue, bool(reject), null)


def judge_family(tests: list[Studentised], settings: Settings, weights: np.ndarray | None) -> tuple[ComparisonResult, int]:
    """Single-step max-T over all hypotheses; the whole is told by its most significant member, whose number is returned too."""
    nulls = [calibrate(test, settings, weights) for test in tests]
    live = [index for index, test in enumerate(tests) if test.error > 0]
    pvalues = np.ones(len(tests))
    if live:
        pvalues[live] = adjusted_pvalues([tests[i] for i in live], [nulls[i] for i in live], settings, weights)
    results = [
        record(test, settings, float(pvalue), bool(pvalue <= settings.alpha), null)
        for test, null, pvalue in zip(tests, nulls, pvalues, strict=True)
    ]
    two_sided = settings.alternative == "two-sided"
    significance = [(one.pvalue, -abs(one.statistic) if two_sided else -one.statistic) for one in results]
    best = min(range(len(results)), key=significance.__getitem__)
    note = f"the most significant of {len(results)} hypotheses is shown; p-values are adjusted (max-T), intervals are not."
    return replace(results[best], tests=tuple(results), notes=(*results[best].notes, note)), best


def adjusted_pvalues(
    tests: list[Studentised], nulls: list[NullDistribution], settings: Settings, weights: np.ndarray | None
) -> np.ndarray:
    """P(max_a T_a >= t) for each t, from joint resamples, joint normal draws, or the larger of both."""
    two_sided = settings.alternative == "two-sided"
    statistics = np.array([test.statistic for test in tests])
    influences = np.stack([test.influence for test in tests])
    normal = largest(normal_replicates(influences, settings.seed), two_sided)

    def bounded(scores: np.ndarray) -> np.ndarray:
        return np.minimum(exceedances(normal, scores, two_sided), bonferroni(scores, two_sided))

    if weights is None:
        return bounded(np.array([null.normal_score(t, two_sided) for null, t in zip(nulls, statistics, strict=True)]))
    resampled = largest(np.stack([studentised_replicates(test.sums, weights) for test in tests]), two_sided)
    pvalues = exceedances(resampled, statistics, two_sided)
    if not settings.guarded:
        return pvalues
    expanded = [Conservative((expansion(test, settings),)).normal_score(test.statistic, two_sided) for test in tests]
    return np.maximum(pvalues, bounded(np.array(expanded)))


def bonferroni(scores: np.ndarray, two_sided: bool) -> np.ndarray:
    """A bound on P(max_a Z_a >= t) that reaches beyond what draws can resolve."""
    return len(scores) * (2 * ndtr(-np.abs(scores)) if two_sided else ndtr(-scores))


def exceedances(joint: NullDistribution, statistics: np.ndarray, two_sided: bool) -> np.ndarray:
    return np.array([joint.upper(abs(t) if two_sided else t) for t in statistics])


def record(test: Studentised, settings: Settings, pvalue: float, reject: bool, null: NullDistribution) -> ComparisonResult:
    sums = test.sums
    n = len(sums.rows)
    errors = [math.sqrt(ustatistic.jackknife_variance(rows) / n) for rows in sums.model_rows]
    ksd_p, ksd_q = (ustatistic.u_statistic(rows) for rows in sums.model_rows)
    return ComparisonResult(
        statistic=float(test.statistic),
        pvalue=float(pvalue),
        reject=reject,
        alpha=settings.alpha,
        n=n,
        kernel=str(test.hypothesis.kernel),
        seed=settings.seed,
        difference=ustatistic.u_statistic(sums.rows),
        standard_error=float(test.error),
        null=null,
        ksd_p=ksd_p,
        ksd_q=ksd_q,
        ksd_p_error=errors[0],
        ksd_q_error=errors[1],
        alternative=settings.alternative,
        variance=settings.variance,
        operator=test.hypothesis.operator_name,
        order=getattr(test.hypothesis.operator, "order", None),
        contributions=read_only(sums.rows / (n * (n - 1))),
        zeta=ustatistic.components(sums.rows, sums.squares),
        notes=test.notes,
        indistinguishable=test.indistinguishable,
    )
