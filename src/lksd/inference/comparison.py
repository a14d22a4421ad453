"""The relative test on scores: which of two models is closer to the data (Section 3)?"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..domains import Domain, Integers
from ..engines import Engine
from ..options import Decision, Options
from ..results.base import read_only
from ..results.comparison import ComparisonResult
from ..results.details import Words
from ..statistics import ustatistic
from ..statistics.multiplicity import adjust
from ..statistics.nulls import Bootstrap, Conservative, Edgeworth, NullDistribution, Steadied
from .chains import chain_doubts, diagnose
from .contrasts import Contrasts, family_of, said_of_pairs, said_of_size, studentise
from .doubts import Case, contribution_notes, few_decide, row_doubts, serial_notes
from .hypotheses import Hypothesis
from .losses import Losses
from .mmd import MMDTest, mmd_test, with_mmd

if TYPE_CHECKING:
    from ..problem import Findings, Problem

# fields of a result: what the criterion says of each model, and the standard errors
OF_KSD = ("ksd_p", "ksd_q", "ksd_p_error", "ksd_q_error")
OF_LOSSES = ("loss_p", "loss_q", "loss_p_error", "loss_q_error")
NAMES = {"min-p": "min-p", "max-t": "max-T", "holm": "Holm", "bonferroni": "Bonferroni"}
KEPT = {
    "negative": "the U-statistic estimate of the variance is negative, so the null hypothesis is "
    "kept; use variance='jackknife'.",
    "rounding": (
        "the difference varies at rounding level only, so the null hypothesis is kept; is the "
        "kernel's scale far too small, or are the observations all alike?"
    ),
}
STEADIED = (
    "U is nearly degenerate, since the models are too alike or too close to the data for this "
    "kernel and sample, and its normal approximation is in doubt: the regularised statistic is "
    "used, with a p-value that is never below that of U itself."
)


def conclude_comparison(
    findings: dict[str, Findings],
    options: Options,
    engine: Engine,
    problem: Problem | None = None,
    also_mmd: bool = False,
) -> ComparisonResult:
    """The answer about two models; without a ``problem`` about scores that are given."""
    decision, seed = options.decision, options.run.seed
    family = [one for part in findings.values() for one in part.family]
    tests = studentise(family, decision, seed, engine, sensitive=problem is not None)
    mmd = (
        mmd_test(problem, next(iter(findings.values())).prepared)
        if problem is not None and also_mmd
        else None
    )
    result, shown = decide(tests, decision, mmd)

    def by_scores(family: list[Hypothesis]) -> ComparisonResult:
        return decide(studentise(family, decision, seed, engine), decision)[0]

    case = Case(
        cache(lambda: by_scores(family) if also_mmd else result), family, by_scores, verdict
    )
    about_rows = contribution_notes(shown.rows)
    if problem is None:
        return row_doubts(case, family[0].x).applied(
            replace(result, notes=(*result.notes, *about_rows))
        )
    assert isinstance(shown.hypothesis, Hypothesis)
    part = findings[shown.hypothesis.smoothing]
    doubt = chain_doubts(case, problem.named.names, findings)
    doubt = doubt.also(row_doubts(case, problem.observations.values, part.scores[0].index))
    quality = diagnose(shown.hypothesis, part, result.standard_error, shown.sums.sensitivity)
    notes = (*result.notes, *problem.notes_with(part), *about_rows)
    rows, words = problem.observations.rows, deciding_words(shown, problem.domain)
    return doubt.applied(
        replace(result, diagnostics=doubt.of(quality), words=words, kept=rows, notes=notes)
    )


def conclude_losses(losses: Losses, options: Options) -> ComparisonResult:
    """The answer about two models from their losses."""
    decision = options.decision
    tests = studentise([losses], decision, options.run.seed)
    result = decide(tests, decision)[0]
    said = few_decide(case_of_losses(result, losses, options), losses.scores[0] - losses.scores[1])
    notes = [*result.notes, *serial_notes(tests[0].rows)]
    if said is not None and result.favours is None:
        notes.append(f"that no model is preferred is {said}: without them one would be.")
        said = None
    withheld = None
    if result.standard_error == 0 and result.difference != 0:
        withheld = (
            "the difference is the same at every observation, so that there is no spread by which "
            "to judge it. Check the losses."
        )
    return replace(result, caution=said, notes=tuple(notes), withheld=withheld)


def case_of_losses(result: ComparisonResult, losses: Losses, options: Options) -> Case:
    """The answer from losses, and how it is found from fewer or other ones."""
    decision, seed = options.decision, options.run.seed

    def test(family: list[Losses]) -> ComparisonResult:
        return decide(studentise(family, decision, seed), decision)[0]

    return Case(lambda: result, [losses], test, verdict)


def verdict(result: ComparisonResult) -> tuple[str | None, bool]:
    """Which of the models fits better, if one does, and whether tests disagree on that."""
    return result.favours, result.disputed


def decide(
    tests: list[Contrasts], decision: Decision, mmd: MMDTest | None = None
) -> tuple[ComparisonResult, Contrasts]:
    """The result, and the test that it tells of: of several, the most significant in either
    direction.
    """
    decision = decision.settled(len(tests))
    if len(tests) == 1 and mmd is None:
        return judge(tests[0], decision), tests[0]
    forward, reverse = pvalues_both_ways(tests, mmd, decision)
    results = [
        record(test, decision, null_of(test, decision), float(p), float(r))
        for test, p, r in zip(tests, forward, reverse, strict=False)
    ]
    best = min(range(len(results)), key=lambda number: results[number].significance)
    result = replace(
        results[best],
        tests=tuple(results),
        pvalue=float(forward.min()),
        pvalue_reverse=float(reverse.min()),
    )
    beside = None
    if mmd is not None:
        beside = replace(mmd.result, pvalue=float(forward[-1]), pvalue_reverse=float(reverse[-1]))
        beside = replace(beside, reject=is_rejected(beside.direction, decision))
    result = replace(
        result,
        mmd=beside,
        notes=(*result.notes, said_of_family(len(results), beside is not None, decision)),
    )
    return replace(result, reject=is_rejected(result.better_role, decision)), tests[best]


def is_rejected(favours: str | None, decision: Decision) -> bool:
    """Whether the null hypothesis falls, if this model is shown to fit better."""
    return favours is not None and (decision.two_sided or favours == "Q")


def said_of_family(count: int, beside_mmd: bool, decision: Decision) -> str:
    called = NAMES[decision.correction]
    if count == 1:
        return (
            f"p-values are adjusted for testing the KSD and the MMD ({called}), intervals are not."
        )
    beside = ", beside the MMD" if beside_mmd else ""
    return (
        f"the most significant of {count} hypotheses is shown{beside}; p-values are adjusted "
        f"({called}), intervals are not."
    )


def pvalues_both_ways(
    tests: list[Contrasts], mmd: MMDTest | None, decision: Decision
) -> tuple[np.ndarray, np.ndarray]:
    """The adjusted p-values of all tests, the MMD last, and those of the tests with the models
    exchanged.

    Each direction is a family of its own, and the reverse one is literally that of the exchanged
    call. Where both sides are tested as one, the family has them all, and begins with the side on
    which the first difference lies, whichever model is named first.
    """
    turned = [test.turned() for test in tests]
    mmd_turned = mmd and mmd.turned()
    if not decision.two_sided:
        return adjusted_pvalues(tests, mmd, decision), adjusted_pvalues(
            turned, mmd_turned, decision
        )
    statistics = [
        *(test.statistics(0.0)[0] for test in tests),
        mmd.result.statistic if mmd is not None else 0.0,
    ]
    backwards = next((t < 0 for t in statistics if abs(t) > 0), False)
    pvalues = (
        adjusted_pvalues(turned, mmd_turned, decision)
        if backwards
        else adjusted_pvalues(tests, mmd, decision)
    )
    return pvalues, pvalues


def adjusted_pvalues(tests: list[Contrasts], mmd: MMDTest | None, decision: Decision) -> np.ndarray:
    """Of both sides of a difference, where both count, the smaller; the correction is for both.
    What has no T has p = 1.
    """
    live = np.array([*(test.live[0] for test in tests), *([mmd.live] if mmd is not None else [])])
    pvalues = np.ones(len(live))
    if live.any():
        family = family_of(tests, decision, decision.two_sided)
        if mmd is not None and mmd.live:
            family = with_mmd(family, tests, mmd, decision)
        found = adjust(family, decision.correction, tests[0].seed).pvalues
        pvalues[live] = found.reshape(1 + decision.two_sided, -1).min(0)
    return pvalues


def judge(test: Contrasts, decision: Decision) -> ComparisonResult:
    """One hypothesis: the estimate against the distribution of T (Algorithm 1), in both
    directions.
    """
    null = null_of(test, decision)
    if not test.live[0]:
        return record(test, decision, null, 1.0, 1.0)
    estimate, error, margin = float(test.estimate[0]), float(test.error[0]), decision.margin
    forward, reverse = (
        null.upper((estimate - margin) / error),
        null.lower((estimate + margin) / error),
    )
    if decision.two_sided:
        forward = reverse = min(1.0, 2 * min(forward, reverse))
    return record(test, decision, null, forward, reverse)


def null_of(test: Contrasts, decision: Decision) -> NullDistribution:
    """The distribution of T under a true difference of zero."""
    if not test.live[0]:
        return Edgeworth()
    if test.nulls is not None:
        return test.nulls[0]
    corrected: list[NullDistribution] = []
    if test.replicates is not None:
        corrected.append(Bootstrap.of(test.replicates[0]))
    if test.expansion is not None:
        corrected.append(Edgeworth(float(test.expansion.a[0]), float(test.expansion.c[0])))
    if not corrected:
        return Edgeworth()
    null = Conservative(tuple(corrected)) if decision.guarded else corrected[0]
    if not test.regularised[0]:
        return null
    (plain,), (error,) = test.plain
    return Steadied(
        null, float(error / test.error[0]), float((test.estimate[0] - plain) / test.error[0])
    )


def record(
    test: Contrasts, decision: Decision, null: NullDistribution, pvalue: float, reverse: float
) -> ComparisonResult:
    n, rows = test.rows.shape[1], test.sums.model_rows
    values = ustatistic.u_statistic(rows).tolist()
    errors = np.sqrt(ustatistic.jackknife_variance(rows) / n).tolist()
    names = OF_KSD if test.hypothesis.criterion == "ksd" else OF_LOSSES
    estimates = dict.fromkeys(OF_KSD, math.nan) | dict(zip(names, values + errors, strict=True))
    towards_p = decision.two_sided and test.estimate[0] < 0
    result = ComparisonResult(
        statistic=float(test.statistics(-decision.margin if towards_p else decision.margin)[0]),
        pvalue=float(pvalue),
        pvalue_reverse=float(reverse),
        reject=False,
        alpha=decision.alpha,
        n=n,
        kernel=str(test.hypothesis.kernel),
        seed=test.seed,
        difference=float(test.difference[0]),
        standard_error=float(test.error[0]),
        null=null,
        estimate=float(test.estimate[0]),
        margin=decision.margin,
        criterion=test.hypothesis.criterion,
        **estimates,
        alternative=decision.alternative,
        variance=variance_of(test, decision),
        correction=decision.correction,
        operator=test.hypothesis.operator_name,
        order=test.hypothesis.order,
        contributions=read_only(test.hypothesis.contributions(test.rows[0])),
        zeta=ustatistic.Components(float(test.zeta.zeta_1[0]), float(test.zeta.zeta_2[0])),
        notes=(*test.hypothesis.notes, *notes_of(test, decision)),
        indistinguishable=bool(test.alike[0]),
    )
    return replace(result, reject=is_rejected(result.direction, decision))


def variance_of(test: Contrasts, decision: Decision) -> str:
    if decision.variance != "auto":
        return decision.variance
    if test.sums.partners is not None:
        return "incomplete"
    return "regularised" if test.regularised[0] else "jackknife"


def notes_of(test: Contrasts, decision: Decision) -> list[str]:
    if test.alike[0]:
        return []
    if not test.live[0]:
        return [KEPT["rounding" if test.error[0] == 0 else "negative"]]
    if test.sums.partners is not None:
        return [said_of_pairs(test), *said_of_size(test, decision)]
    steadied = test.regularised[0] and decision.variance == "auto"
    return [*([STEADIED] if steadied else []), *said_of_size(test, decision)]


def deciding_words(test: Contrasts, domain: Domain) -> Words | None:
    """What each word of the data adds to the difference, the largest first; None for real data and
    graphs.
    """
    if test.sums.sensitivity is None or test.alike.any():
        return None
    x, n = test.hypothesis.x, len(test.hypothesis.x)
    sums = np.tensordot(ustatistic.against_last(2)[0], test.sums.sensitivity.positions, 1) / (
        n * (n - 1)
    )
    return words_of(x, sums, domain)


def words_of(x: np.ndarray, parts: np.ndarray, domain: Domain) -> Words | None:
    """What each word adds, from what every position of every observation adds."""
    if not isinstance(domain, Integers) or domain.kind == "graphs":
        return None
    ids, inverse = np.unique(x[x >= 0], return_inverse=True)
    totals = np.bincount(inverse, parts[x >= 0])
    order = np.argsort(-np.abs(totals), kind="stable")
    vocabulary = domain.vocabulary
    names = () if vocabulary is None else tuple(vocabulary.words[i] for i in ids[order])
    return Words(read_only(ids[order]), read_only(totals[order]), names, domain.documents)
