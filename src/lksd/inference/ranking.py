"""All differences of several models at once, from their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._compile import one_call
from .._progress import progress_wanted
from .._validation import noted
from ..engines import opened
from ..results.ranking import RankResult, list_names
from ..results.records import as_settings, read_only
from ..statistics import ustatistic
from ..statistics.multiplicity import Adjusted, adjust
from ..statistics.nulls import Edgeworth, largest_of
from ..statistics.selection import selective_pvalues
from .contrasts import Contrasts, Options, family_of, said_of_pairs, said_of_size, studentise
from .doubts import Case
from .hypotheses import Hypothesis, hypotheses
from .influence import contribution_notes, row_doubts


@noted
@one_call
def rank_scores(
    x,
    scores,
    kernel,
    *,
    operator=None,
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
) -> RankResult:
    """Rank models by how close they are to the data, from their scores at the data.

    All ordered pairs of models are tested together: that one fits at least as well as the other. The parameters that
    are not described here are those of ``compare_scores``.

    Parameters
    ----------
    scores : dict of arrays, or list of (name, array)
        Each model's scores at ``x`` by its name; tuples of arrays where several operators are given.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> scores = {"far": -(x - 1), "near": -(x - 0.5), "right": -x}
    >>> result = lksd.rank_scores(x, scores, lksd.kernels.IMQ.median(x))
    >>> result.names, result.confidence_set
    (('right', 'near', 'far'), ('right',))
    """
    options = Options("two-sided", alpha, margin, variance, calibration, correction, seed, pairs).checked()
    named = check_names("scores", scores)
    family = hypotheses(x, tuple(named.values()), tuple(named), kernel, operator, mask)
    with progress_wanted(progress), opened(engine) as place:

        def test(family: list[Hypothesis]) -> RankResult:
            return rank_all(studentise(family, options, place), tuple(named), options)[0]

        tests = studentise(family, options, place)
        result, _ = rank_all(tests, tuple(named), options)
        doubt = row_doubts(best_of(Case(lambda: result, family, test, lambda one: None)), x)
    notes = (*result.notes, *contribution_notes(np.concatenate([one.rows for one in tests])))
    settings = ranking_settings({"kernel": kernel, "operator": operator}, options)
    return doubt.applied(replace(result, notes=notes, settings=settings))


def best_of(case: Case) -> Case:
    """The same, where the answer is which models may be the best."""
    return case._replace(verdict=lambda one: frozenset(one.confidence_set))


def check_names(role: str, models) -> dict[str, Any]:
    """At least two models, each with a name of its own."""
    if not isinstance(models, Mapping) and not (
        isinstance(models, (list, tuple)) and all(isinstance(entry, (list, tuple)) and len(entry) == 2 for entry in models)
    ):
        raise TypeError(
            f"{role}: expected a dict of models by their names, or a list of (name, model); got {type(models).__name__}. "
            "Name the models."
        )
    entries = list(models.items() if isinstance(models, Mapping) else models)
    for name, _ in entries:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"{role}: expected names that are text; got {name!r}. Use strings as names.")
    names = [name for name, _ in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{role}: expected a different name for every model; got {twice[0]!r} twice. Rename one.")
    if len(names) < 2:
        raise ValueError(f"{role}: expected at least two models to rank; got {len(names)}. Test one alone with goodness_of_fit.")
    return dict(entries)


def ranking_settings(chosen: dict[str, Any], options: Options) -> dict[str, Any]:
    return as_settings(chosen | {name: value for name, value in options._asdict().items() if name != "alternative"})


def rank_all(tests: list[Contrasts], names: tuple[str, ...], options: Options) -> tuple[RankResult, Contrasts]:
    """The ranking by one kernel and operator, with the verdict of all of them."""
    live = np.concatenate([test.live for test in tests])
    adjusted = Adjusted(np.ones(0))
    if live.any():
        adjusted = adjust(family_of(tests, options, both=True), options.correction, options.seed)
    pvalues = np.ones((2, len(live)))  # that the first fits at least as well, and that the second does
    pvalues[:, live] = adjusted.pvalues.reshape(2, -1)
    count = len(tests[0].difference)
    results = [
        ranked(test, names, pvalues[:, number * count : (number + 1) * count], adjusted, int(2 * live.sum()), options)
        for number, test in enumerate(tests)
    ]
    if len(results) == 1:
        return results[0], tests[0]
    every = [together(shown, results) for shown in results]
    fair = [number for number, one in enumerate(every) if one.names[0] in one.confidence_set]
    best = min(fair or range(len(every)), key=lambda number: (results[number].pvalue, -abs(results[number].statistic)))
    return every[best], tests[best]


def together(shown: RankResult, results: list[RankResult]) -> RankResult:
    """The table of one kernel and operator with the p-values of all: the smallest for each pair of models."""
    places = [[one.position(name) for name in shown.names] for one in results]
    pvalues = np.min([one.pvalues[np.ix_(place, place)] for one, place in zip(results, places, strict=True)], 0)
    result = replace(shown, pvalue=float(pvalues.min()), pvalues=read_only(pvalues), tests=tuple(results))
    note = (
        f"discrepancies and intervals are those of one of {len(results)} kernels and operators; "
        "p-values and the confidence set are those of all, which are corrected together."
    )
    disputes = [f"the tests disagree on the order of {list_names(group)}." for group in result.disputed]
    return replace(result, reject=bool(result.shown_worse.any()), notes=(*shown.notes, note, *disputes))


def ranked(
    test: Contrasts, names: tuple[str, ...], pvalues: np.ndarray, adjusted: Adjusted, hypotheses: int, options: Options
) -> RankResult:
    """One kernel and operator, the models in their order."""
    n, models = test.rows.shape[1], len(names)
    ksd = ustatistic.u_statistic(test.sums.model_rows)
    order = np.argsort(ksd, kind="stable")
    lower, upper = simultaneous_ends(test, adjusted, hypotheses, options)
    against = np.concatenate([ustatistic.u_statistic(test.sums.rows), [0.0]])  # to the last model, where common parts cancel
    psi = 2 * ustatistic.centred(np.concatenate([test.sums.rows, np.zeros((1, n))])) / (n - 2)
    selective = selective_pvalues(against, psi @ psi.T / (n * (n - 1)), int(order[0]), options.margin)
    statistics = [np.zeros(1), *(side[test.live] for side in (test.statistics(options.margin), -test.statistics(-options.margin)))]
    grid = np.ix_(order, order)

    def matrix(one_way: np.ndarray, other_way: np.ndarray, same: float) -> np.ndarray:
        found = np.full((models, models), same)
        found[test.pairs.first, test.pairs.second] = one_way
        found[test.pairs.second, test.pairs.first] = other_way
        return read_only(found[grid])

    return RankResult(
        statistic=float(np.concatenate(statistics).max()),
        pvalue=float(pvalues.min()),
        reject=bool(pvalues.min() <= options.alpha),
        alpha=options.alpha,
        n=n,
        kernel=str(test.hypothesis.kernel),
        seed=options.seed,
        names=tuple(names[i] for i in order),
        ksd=read_only(ksd[order]),
        ksd_errors=read_only(np.sqrt(ustatistic.jackknife_variance(test.sums.model_rows) / n)[order]),
        differences=matrix(test.difference, -test.difference, 0.0),
        standard_errors=matrix(test.error, test.error, 0.0),
        pvalues=matrix(pvalues[0], pvalues[1], 1.0),
        lower=matrix(lower, -upper, 0.0),
        selective_pvalues=read_only(selective[order]),
        margin=options.margin,
        correction=options.correction,
        operator=test.hypothesis.operator_name,
        calibration=calibration_of(test, options),
        notes=(*test.hypothesis.notes, *notes_of(test, names, options)),
    )


def simultaneous_ends(test: Contrasts, adjusted: Adjusted, hypotheses: int, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of intervals that hold all true differences at once with probability 1 - alpha."""
    if adjusted.largest_score is not None:
        z = adjusted.largest_score.upper_quantile(options.alpha)
    else:
        z = float(-ndtri(options.alpha / max(hypotheses, 1)))
    resampled = -np.inf if adjusted.largest_statistic is None else adjusted.largest_statistic.upper_quantile(options.alpha)
    above, below = np.full((2, len(test.error)), z)
    if test.expansion is not None:
        null = Edgeworth(*(np.where(test.live, part, 0.0) for part in (test.expansion.a, test.expansion.c)))
        above, below = null.quantile(z), -null.quantile(-z)
        if options.guarded:
            above, below = np.maximum(above, z), np.maximum(below, z)
    estimate, error = test.plain
    lower, upper = estimate - error * np.maximum(above, resampled), estimate + error * np.maximum(below, resampled)
    steadied = test.regularised  # both forms of the difference must exclude a value
    lower = np.where(steadied, np.minimum(lower, test.estimate - z * test.error), lower)
    upper = np.where(steadied, np.maximum(upper, test.estimate + z * test.error), upper)
    known = [np.where(test.alike, 0.0, unknown) for unknown in (-np.inf, np.inf)]
    return np.where(test.live, lower, known[0]), np.where(test.live, upper, known[1])


def calibration_of(test: Contrasts, options: Options) -> str:
    used = ["joint bootstrap"] * (test.replicates is not None) + ["Edgeworth"] * (test.expansion is not None)
    if not used:
        return "normal"
    return largest_of([*used, "normal"]) if options.guarded else used[0]


def notes_of(test: Contrasts, names: tuple[str, ...], options: Options) -> list[str]:
    def listed(which: np.ndarray) -> str:
        pairs = [f"{names[i]} and {names[j]}" for i, j in zip(*(side[which] for side in test.pairs), strict=True)]
        return ", ".join(pairs[:3]) + (f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else "")

    notes = [said_of_pairs(test)] if test.sums.partners is not None else []
    if test.alike.any():
        notes.append(f"indistinguishable, since their scores agree to rounding: {listed(test.alike)}.")
    if (kept := ~test.live & ~test.alike).any():
        notes.append(f"the difference has no usable variance, so it is not judged: {listed(kept)}.")
    if options.variance == "auto" and (steadied := test.regularised & test.live).any():
        notes.append(
            "U is nearly degenerate, so that its normal approximation is in doubt and the regularised statistic is used: "
            f"{listed(steadied)}."
        )
    return [*notes, *said_of_size(test, options)]
