"""Does one model fit at all? A degenerate U-statistic, so its null distribution is bootstrapped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._keywords import Options
from ..engines import Engine
from ..options import Decision
from ..results.fit import GoodnessOfFitResult
from ..results.records import read_only
from ..statistics.nulls import Calibration, Evidence, replicate_count
from ..statistics.resampling import multinomial_weights
from ..statistics.ustatistic import centred, u_statistic
from ..stein import gram_sums
from .diagnosis import diagnose
from .doubts import Case
from .hypotheses import Hypothesis
from .influence import contribution_notes, row_doubts
from .unconverged import chain_doubts

if TYPE_CHECKING:
    from ..problem import Problem


def conclude_fit(problem: Problem, engine: Engine) -> GoodnessOfFitResult:
    """The answer about one model."""
    decision, seed = problem.options.decision, problem.options.run.seed
    ((name, part),) = problem.evidence(engine).items()
    family = only_one(part.family)

    def test(family: list[Hypothesis]) -> GoodnessOfFitResult:
        return judge_fit(family[0], decision, seed, engine)

    result = test(family)
    case = Case(lambda: result, family, test, lambda one: one.reject)
    doubt = chain_doubts(case, problem.named.names, {name: part})
    doubt = doubt.also(row_doubts(case, problem.observations.values, part.scores[0].index))
    quality = diagnose(family[0], part, result.null_deviation / result.n)
    notes = (*problem.notes_with(part), *contribution_notes(result.contributions[None]))
    return doubt.applied(replace(result, diagnostics=doubt.of(quality), notes=notes))


def conclude_given_fit(family: list[Hypothesis], options: Options, engine: Engine) -> GoodnessOfFitResult:
    """The answer from scores that are given."""

    def test(family: list[Hypothesis]) -> GoodnessOfFitResult:
        return judge_fit(family[0], options.decision, options.run.seed, engine)

    result = test(only_one(family))
    doubt = row_doubts(Case(lambda: result, family, test, lambda one: one.reject), family[0].x)
    return doubt.applied(replace(result, notes=contribution_notes(result.contributions[None])))


def only_one(family: list[Hypothesis]) -> list[Hypothesis]:
    if len(family) > 1:
        raise ValueError("kernel and operator: expected one of each for a goodness-of-fit test; got several. Test them one by one.")
    return family


def judge_fit(hypothesis: Hypothesis, decision: Decision, seed: int, engine: Engine) -> GoodnessOfFitResult:
    """The statistic against its bootstrap, or against the distribution that the user's calibration says."""
    n, alpha, own = len(hypothesis.x), decision.alpha, isinstance(decision.calibration, Calibration)
    weights = multinomial_weights(n, 0 if own else replicate_count(alpha), seed) - 1
    sums = gram_sums(hypothesis.operator, hypothesis.kernel, hypothesis.x, hypothesis.scores, np.ones(1), weights, engine=engine)
    ksd = float(u_statistic(sums.rows))
    statistic, replicates = n * ksd, np.sum(weights * sums.products, 0) / (n - 1)
    pvalue, deviation, null = (int(np.sum(replicates >= statistic)) + 1) / (len(replicates) + 1), 0.0, None
    if isinstance(decision.calibration, Calibration):
        deviation = float(np.sqrt(2 * np.sum(sums.squares) / (n * (n - 1)))) if sums.squares is not None else 0.0
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
