"""The relative test on scores: which of two models is closer to the data (Section 3)?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._compile import one_call
from .._progress import progress_wanted
from .._validation import noted
from ..engines import opened
from ..results.comparison import ComparisonResult
from ..results.records import as_settings, read_only
from ..statistics import ustatistic
from ..statistics.multiplicity import adjust
from ..statistics.nulls import Bootstrap, Conservative, Edgeworth, NullDistribution, Steadied
from .beside_mmd import MMDTest, with_mmd
from .contrasts import Contrasts, Options, family_of, said_of_pairs, said_of_size, studentise
from .doubts import Case
from .hypotheses import Hypothesis, hypotheses
from .influence import contribution_notes, row_doubts

NAMES = {"max-t": "max-T", "holm": "Holm", "bonferroni": "Bonferroni"}
KEPT = {
    "negative": "the U-statistic estimate of the variance is negative, so the null hypothesis is kept; use variance='jackknife'.",
    "rounding": (
        "the difference varies at rounding level only, so the null hypothesis is kept; "
        "is the kernel's scale far too small, or are the observations all alike?"
    ),
}
STEADIED = (
    "U is nearly degenerate, since the models are too alike or too close to the data for this kernel and sample, and its normal "
    "approximation is in doubt: the regularised statistic is used, with a p-value that is never below that of U itself."
)


@noted
@one_call
def compare_scores(
    x,
    score_p,
    score_q,
    kernel,
    *,
    operator=None,
    alternative: str = "greater",
    alpha: float = 0.05,
    margin: float = 0.0,
    variance: str = "auto",
    calibration: str = "auto",
    correction: str = "max-t",
    pairs: int | None = None,
    seed: int = 0,
    mask=None,
    engine=None,
    progress: bool | None = None,
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
        Several kernels or operators are tested together, and p-values corrected for that.
    operator : operator, name, or tuple of them
        Default: Langevin, for continuous data. A name means a shared witness and the values in their own order; scores of
        ``estimate_scores`` belong to its ``.operator``, so give that.
    alternative : "greater" or "two-sided"
        H1: Q fits better; or: one of them fits better.
    margin : float
        A difference of the squared discrepancies that is too small to matter: H0 is KSD_P^2 - KSD_Q^2 <= margin.
    variance : "auto", "jackknife", "ustat", "vstat" or "regularised"
        The paper's estimators, and one that is made for (nearly) identical models. "auto" is the jackknife, and the
        regularised one where the U-statistic is nearly degenerate and ``calibration`` is "auto"; the result says which was used.
    calibration : "auto", "bootstrap", "edgeworth" or "normal"
        "normal" is the paper's. "auto" takes the bootstrap up to 1,000 observations and the expansion
        beyond, and never a p-value below the normal one.
    correction : "max-t", "holm" or "bonferroni"
        For several kernels or operators. Step-down max-T uses how they depend on each other, the others do not.
    pairs : int, optional
        For n too large for all pairs of observations: take at least so many, chosen by ``seed``, and count the variance that this
        adds. The p-value is then normal.
    mask : (n, D) boolean array, optional
        False where an observation lacks a position (discrete operators).
    engine : None, "dask", address or dask.distributed.Client
        Where the work is done; default: this process, on all its devices. The digits do not depend on it.
    progress : bool, optional
        Whether to show a line while it runs; default: on a terminal or in a notebook.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> result = lksd.compare_scores(x, -(x - 1), -x, lksd.kernels.IMQ.median(x))  # P = N(1, I), Q = N(0, I)
    >>> result.reject, result.difference > 0
    (True, True)
    """
    options = Options(alternative, alpha, margin, variance, calibration, correction, seed, pairs).checked()
    family = hypotheses(x, (score_p, score_q), ("score_p", "score_q"), kernel, operator, mask)
    with progress_wanted(progress), opened(engine) as place:
        result, shown = decide(studentise(family, options, place), options)

        def test(family: list[Hypothesis]) -> ComparisonResult:
            return decide(studentise(family, options, place), options)[0]

        doubt = row_doubts(Case(lambda: result, family, test, verdict), x)
    settings = as_settings({"kernel": kernel, "operator": operator} | options._asdict())
    return doubt.applied(replace(result, notes=(*result.notes, *contribution_notes(shown.rows)), settings=settings))


def verdict(result: ComparisonResult) -> tuple[str | None, bool]:
    """Which of the models fits better, if one does, and whether tests disagree on that."""
    return result.favours, result.disputed


def decide(tests: list[Contrasts], options: Options, mmd: MMDTest | None = None) -> tuple[ComparisonResult, Contrasts]:
    """The result, and the test that it tells of: of several, the most significant in either direction."""
    if len(tests) == 1 and mmd is None:
        return judge(tests[0], options), tests[0]
    forward, reverse = pvalues_both_ways(tests, mmd, options)
    results = [
        record(test, options, null_of(test, options), float(p), float(r))
        for test, p, r in zip(tests, forward, reverse, strict=False)
    ]
    best = min(range(len(results)), key=lambda number: results[number].significance)
    result = replace(results[best], tests=tuple(results), pvalue=float(forward.min()), pvalue_reverse=float(reverse.min()))
    beside = None
    if mmd is not None:
        beside = replace(mmd.result, pvalue=float(forward[-1]), pvalue_reverse=float(reverse[-1]))
        beside = replace(beside, reject=is_rejected(beside.direction, options))
    result = replace(result, mmd=beside, notes=(*result.notes, said_of_family(len(results), beside is not None, options)))
    return replace(result, reject=is_rejected(result.better_role, options)), tests[best]


def is_rejected(favours: str | None, options: Options) -> bool:
    """Whether the null hypothesis falls, if this model is shown to fit better."""
    return favours is not None and (options.two_sided or favours == "Q")


def said_of_family(count: int, beside_mmd: bool, options: Options) -> str:
    called = NAMES[options.correction]
    if count == 1:
        return f"p-values are adjusted for testing the KSD and the MMD ({called}), intervals are not."
    beside = ", beside the MMD" if beside_mmd else ""
    return f"the most significant of {count} hypotheses is shown{beside}; p-values are adjusted ({called}), intervals are not."


def pvalues_both_ways(tests: list[Contrasts], mmd: MMDTest | None, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """The adjusted p-values of all tests, the MMD last, and those of the tests with the models exchanged.

    Each direction is a family of its own, and the reverse one is literally that of the exchanged call. Where both sides are tested
    as one, the family has them all, and begins with the side on which the first difference lies, whichever model is named first.
    """
    turned = [test.turned() for test in tests]
    mmd_turned = mmd and mmd.turned()
    if not options.two_sided:
        return adjusted_pvalues(tests, mmd, options), adjusted_pvalues(turned, mmd_turned, options)
    statistics = [*(test.statistics(0.0)[0] for test in tests), mmd.result.statistic if mmd is not None else 0.0]
    backwards = next((t < 0 for t in statistics if abs(t) > 0), False)
    pvalues = adjusted_pvalues(turned, mmd_turned, options) if backwards else adjusted_pvalues(tests, mmd, options)
    return pvalues, pvalues


def adjusted_pvalues(tests: list[Contrasts], mmd: MMDTest | None, options: Options) -> np.ndarray:
    """Of both sides of a difference, where both count, the smaller; the correction is for both. What has no T has p = 1."""
    live = np.array([*(test.live[0] for test in tests), *([mmd.live] if mmd is not None else [])])
    pvalues = np.ones(len(live))
    if live.any():
        family = family_of(tests, options, options.two_sided)
        if mmd is not None and mmd.live:
            family = with_mmd(family, tests, mmd, options)
        found = adjust(family, options.correction, options.seed).pvalues
        pvalues[live] = found.reshape(1 + options.two_sided, -1).min(0)
    return pvalues


def judge(test: Contrasts, options: Options) -> ComparisonResult:
    """One hypothesis: the estimate against the distribution of T (Algorithm 1), in both directions."""
    null = null_of(test, options)
    if not test.live[0]:
        return record(test, options, null, 1.0, 1.0)
    estimate, error, margin = float(test.estimate[0]), float(test.error[0]), options.margin
    forward, reverse = null.upper((estimate - margin) / error), null.lower((estimate + margin) / error)
    if options.two_sided:
        forward = reverse = min(1.0, 2 * min(forward, reverse))
    return record(test, options, null, forward, reverse)


def null_of(test: Contrasts, options: Options) -> NullDistribution:
    """The distribution of T under a true difference of zero."""
    if not test.live[0]:
        return Edgeworth()
    corrected: list[NullDistribution] = []
    if test.replicates is not None:
        corrected.append(Bootstrap.of(test.replicates[0]))
    if test.expansion is not None:
        corrected.append(Edgeworth(float(test.expansion.a[0]), float(test.expansion.c[0])))
    if not corrected:
        return Edgeworth()
    null = Conservative(tuple(corrected)) if options.guarded else corrected[0]
    if not test.regularised[0]:
        return null
    (plain,), (error,) = test.plain
    return Steadied(null, float(error / test.error[0]), float((test.estimate[0] - plain) / test.error[0]))


def record(test: Contrasts, options: Options, null: NullDistribution, pvalue: float, reverse: float) -> ComparisonResult:
    n, rows = test.rows.shape[1], test.sums.model_rows
    ksd_p, ksd_q = (float(ksd) for ksd in ustatistic.u_statistic(rows))
    ksd_p_error, ksd_q_error = (math.sqrt(variance / n) for variance in ustatistic.jackknife_variance(rows))
    towards_p = options.two_sided and test.estimate[0] < 0
    result = ComparisonResult(
        statistic=float(test.statistics(-options.margin if towards_p else options.margin)[0]),
        pvalue=float(pvalue),
        pvalue_reverse=float(reverse),
        reject=False,
        alpha=options.alpha,
        n=n,
        kernel=str(test.hypothesis.kernel),
        seed=options.seed,
        difference=float(test.difference[0]),
        standard_error=float(test.error[0]),
        null=null,
        estimate=float(test.estimate[0]),
        margin=options.margin,
        ksd_p=ksd_p,
        ksd_q=ksd_q,
        ksd_p_error=ksd_p_error,
        ksd_q_error=ksd_q_error,
        alternative=options.alternative,
        variance=variance_of(test, options),
        correction=options.correction,
        operator=test.hypothesis.operator_name,
        order=getattr(test.hypothesis.operator, "order", None),
        contributions=read_only(test.rows[0] / (n * (n - 1))),
        zeta=ustatistic.Components(*(float(part[0]) for part in test.zeta)),
        notes=(*test.hypothesis.notes, *notes_of(test, options)),
        indistinguishable=bool(test.alike[0]),
    )
    return replace(result, reject=is_rejected(result.direction, options))


def variance_of(test: Contrasts, options: Options) -> str:
    if options.variance != "auto":
        return options.variance
    if test.sums.partners is not None:
        return "incomplete"
    return "regularised" if test.regularised[0] else "jackknife"


def notes_of(test: Contrasts, options: Options) -> list[str]:
    if test.alike[0]:
        return []
    if not test.live[0]:
        return [KEPT["rounding" if test.error[0] == 0 else "negative"]]
    if test.sums.partners is not None:
        return [said_of_pairs(test), *said_of_size(test, options)]
    steadied = test.regularised[0] and options.variance == "auto"
    return [*([STEADIED] if steadied else []), *said_of_size(test, options)]
