"""Does one model fit at all? A degenerate U-statistic, so its null distribution is bootstrapped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..engines import Engine
from ..options import Decision, Options
from ..results.base import read_only
from ..results.fit import GoodnessOfFitResult
from ..statistics.nulls import Calibration, Evidence, replicate_count
from ..statistics.ustatistic import centred, multinomial_weights, u_statistic
from ..stein import gram_sums
from .chains import chain_doubts, diagnose
from .doubts import Case, contribution_notes, row_doubts
from .hypotheses import Hypothesis

if TYPE_CHECKING:
    from ..problem import Findings, Problem


def conclude_fit(
    part: Findings, options: Options, engine: Engine, problem: Problem | None = None
) -> GoodnessOfFitResult:
    """The answer about one model; without a ``problem`` about scores that are given."""
    if len(part.family) > 1:
        raise ValueError(
            "kernel and operator: expected one of each for a goodness-of-fit test; got several. "
            "Test them one by one."
        )

    def test(family: list[Hypothesis]) -> GoodnessOfFitResult:
        return judge_fit(family[0], options.decision, options.run.seed, engine)

    result = test(part.family)
    case = Case(lambda: result, part.family, test, lambda one: one.reject)
    about_rows = contribution_notes(result.contributions[None])
    if problem is None:
        return row_doubts(case, part.family[0].x).applied(replace(result, notes=about_rows))
    doubt = chain_doubts(case, problem.named.names, {"": part})
    doubt = doubt.also(row_doubts(case, problem.observations.values, part.scores[0].index))
    quality = diagnose(part.family[0], part, result.null_deviation / result.n)
    return doubt.applied(
        replace(
            result, diagnostics=doubt.of(quality), notes=(*problem.notes_with(part), *about_rows)
        )
    )


def judge_fit(
    hypothesis: Hypothesis, decision: Decision, seed: int, engine: Engine
) -> GoodnessOfFitResult:
    """The statistic against its bootstrap, or against the distribution that the user's calibration
    says.
    """
    n, alpha, own = len(hypothesis.x), decision.alpha, isinstance(decision.calibration, Calibration)
    weights = multinomial_weights(n, 0 if own else replicate_count(alpha), seed) - 1
    sums = gram_sums(
        hypothesis.operator,
        hypothesis.kernel,
        hypothesis.x,
        hypothesis.scores,
        np.ones(1),
        weights,
        engine=engine,
    )
    ksd = float(u_statistic(sums.rows))
    statistic, replicates = n * ksd, np.sum(weights * sums.products, 0) / (n - 1)
    pvalue, deviation, null = (
        (int(np.sum(replicates >= statistic)) + 1) / (len(replicates) + 1),
        0.0,
        None,
    )
    if isinstance(decision.calibration, Calibration):
        deviation = (
            float(np.sqrt(2 * np.sum(sums.squares) / (n * (n - 1))))
            if sums.squares is not None
            else 0.0
        )
        influences = 2 * centred(sums.rows) / (n - 2)
        null = decision.calibration.null(Evidence(n, statistic, ksd, deviation / n, influences))
        pvalue = float(null.upper(statistic))
    return GoodnessOfFitResult(
        statistic=statistic,
        pvalue=pvalue,
        reject=pvalue <= alpha,
        alpha=alpha,
        n=n,
        kernel=str(hypothesis.kernel),
        seed=seed,
        ksd=ksd,
        operator=hypothesis.operator_name,
        contributions=read_only(sums.rows / (n * (n - 1))),
        replicates=len(replicates),
        null_deviation=deviation if own else float(replicates.std()),
        null=null,
    )
