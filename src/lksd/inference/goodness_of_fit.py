"""Does one model fit at all? A degenerate U-statistic, so its null distribution is bootstrapped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._compile import one_call
from .._progress import progress_wanted
from .._validation import check_probability, check_seed, noted
from ..engines import Engine, opened
from ..results.fit import GoodnessOfFitResult
from ..results.records import as_settings, read_only
from ..statistics.nulls import replicate_count
from ..statistics.resampling import multinomial_weights
from ..statistics.ustatistic import u_statistic
from ..stein import gram_sums
from .doubts import Case
from .hypotheses import Hypothesis, hypotheses
from .influence import contribution_notes, row_doubts


@noted
@one_call
def goodness_of_fit_scores(
    x,
    scores,
    kernel,
    *,
    operator=None,
    alpha: float = 0.05,
    seed: int = 0,
    mask=None,
    engine=None,
    progress: bool | None = None,
) -> GoodnessOfFitResult:
    """Test H0: the data come from the model, from its scores at the data.

    The null distribution of n KSD^2 is that of a degenerate U-statistic; it is approximated by the
    bootstrap sum_{i != j} (w_i - 1)(w_j - 1) H_ij / (n - 1), w multinomial (Arcones and Giné 1992).

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> lksd.goodness_of_fit_scores(x, -(x - 1), lksd.kernels.IMQ.median(x)).reject  # P = N(1, I)
    True
    """
    family = hypothesis_of(x, scores, kernel, operator, mask)
    with progress_wanted(progress), opened(engine) as place:
        result = judge_fit(family[0], alpha, seed, place)
        case = Case(lambda: result, family, lambda family: judge_fit(family[0], alpha, seed, place), lambda one: one.reject)
        doubt = row_doubts(case, x)
    settings = as_settings({"kernel": kernel, "operator": operator, "alpha": alpha, "seed": seed})
    return doubt.applied(replace(result, notes=contribution_notes(result.contributions[None]), settings=settings))


def hypothesis_of(x, scores, kernel, operator, mask) -> list[Hypothesis]:
    """The only one."""
    if isinstance(kernel, (list, tuple)) or isinstance(operator, (list, tuple)):
        raise ValueError("kernel and operator: expected one of each for a goodness-of-fit test; got several. Test them one by one.")
    return hypotheses(x, (scores,), ("scores",), kernel, operator, mask)


def judge_fit(hypothesis: Hypothesis, alpha: float, seed: int, engine: Engine) -> GoodnessOfFitResult:
    """The statistic against its bootstrap."""
    alpha, seed = check_probability("alpha", alpha), check_seed(seed)
    n = len(hypothesis.x)
    weights = multinomial_weights(n, replicate_count(alpha), seed) - 1
    sums = gram_sums(hypothesis.operator, hypothesis.kernel, hypothesis.x, hypothesis.scores, np.ones(1), weights, engine=engine)
    ksd = float(u_statistic(sums.rows))
    replicates = np.sum(weights * sums.products, 0) / (n - 1)
    statistic = n * ksd
    pvalue = (int(np.sum(replicates >= statistic)) + 1) / (len(replicates) + 1)
    return GoodnessOfFitResult(
        statistic=statistic,
        pvalue=pvalue,
        reject=pvalue <= alpha,
        alpha=alpha,
        n=n,
        kernel=str(hypothesis.kernel),
        seed=seed,
        ksd=ksd,
        operator=str(hypothesis.operator),
        contributions=read_only(sums.rows / (n * (n - 1))),
        replicates=len(replicates),
        null_deviation=float(replicates.std()),
    )
