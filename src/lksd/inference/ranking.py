"""All differences of several models at once, from their scores."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from ..engines import Engine
from ..options import Decision, Options
from ..results.base import read_only
from ..results.ranking import RankResult, list_names
from ..statistics import ustatistic
from ..statistics.multiplicity import Adjusted, adjust, selective_pvalues
from ..statistics.nulls import Edgeworth, largest_of
from .chains import chain_doubts, chain_quality
from .contrasts import Contrasts, family_of, said_of_pairs, said_of_size, studentise
from .doubts import Case, contribution_notes, few_decide, row_doubts, serial_notes
from .hypotheses import Hypothesis
from .losses import Losses

if TYPE_CHECKING:
    from ..problem import Findings, Problem


def conclude_ranking(
    findings: dict[str, Findings],
    names: tuple[str, ...],
    options: Options,
    engine: Engine,
    problem: Problem | None = None,
) -> RankResult:
    """The answer about several models; without a ``problem`` about scores that are given."""
    decision, seed = options.decision, options.run.seed
    family = [one for part in findings.values() for one in part.family]
    tests = studentise(family, decision, seed, engine)
    result = rank_all(tests, names, decision)

    def test(family: list[Hypothesis]) -> RankResult:
        return rank_all(studentise(family, decision, seed, engine), names, decision)

    case = Case(lambda: result, family, test, lambda one: frozenset(one.better))
    about_rows = contribution_notes(np.concatenate([one.rows for one in tests]))
    if problem is None:
        return row_doubts(best_of(case), family[0].x).applied(
            replace(result, notes=(*result.notes, *about_rows))
        )
    part = next(iter(findings.values()))
    doubt = chain_doubts(case, names, findings)
    doubt = doubt.also(row_doubts(best_of(case), problem.observations.values, part.scores[0].index))
    quality = {
        name: doubt.of(chain_quality([one]), name)
        for name, one in zip(names, part.scores, strict=True)
    }
    notes = (*result.notes, *problem.notes_with(part), *about_rows)
    return doubt.applied(
        replace(result, diagnostics=tuple(quality[name] for name in result.names), notes=notes)
    )


def rank_losses(losses: Losses, names: tuple[str, ...], options: Options) -> RankResult:
    """The answer about several models from their losses."""
    tests = studentise([losses], options.decision, options.run.seed)
    result = rank_all(tests, names, options.decision)
    case = case_of_ranking(result, losses, names, options)
    found = [few_decide(case, one - other) for one, other in combinations(losses.scores, 2)]
    caution = next(filter(None, found), None)
    return replace(result, caution=caution, notes=(*result.notes, *serial_notes(tests[0].rows)))


def case_of_ranking(
    result: RankResult, losses: Losses, names: tuple[str, ...], options: Options
) -> Case:
    """The ranking from losses, and how it is found from fewer or other ones."""
    decision, seed = options.decision, options.run.seed

    def test(family: list[Losses]) -> RankResult:
        return rank_all(studentise(family, decision, seed), names, decision)

    return Case(lambda: result, [losses], test, lambda one: frozenset(one.better))


def best_of(case: Case) -> Case:
    """The same, where the answer is which models may be the best."""
    return case._replace(verdict=lambda one: frozenset(one.confidence_set))


def rank_all(tests: list[Contrasts], names: tuple[str, ...], decision: Decision) -> RankResult:
    """The ranking by one kernel and operator, with the verdict of all of them."""
    decision = decision.settled(len(tests))
    live = np.concatenate([test.live for test in tests])
    adjusted = Adjusted(np.ones(0))
    if live.any():
        adjusted = adjust(family_of(tests, decision, both=True), decision.correction, tests[0].seed)
    # that the first fits at least as well, and that the second does
    pvalues = np.ones((2, len(live)))
    pvalues[:, live] = adjusted.pvalues.reshape(2, -1)
    count = len(tests[0].difference)
    results = [
        ranked(
            test,
            names,
            pvalues[:, number * count : (number + 1) * count],
            adjusted,
            int(2 * live.sum()),
            decision,
        )
        for number, test in enumerate(tests)
    ]
    if len(results) == 1:
        return results[0]
    every = [together(shown, results) for shown in results]
    fair = [number for number, one in enumerate(every) if one.names[0] in one.confidence_set]
    best = min(
        fair or range(len(every)),
        key=lambda number: (results[number].pvalue, -abs(results[number].statistic)),
    )
    return every[best]


def together(shown: RankResult, results: list[RankResult]) -> RankResult:
    """The table of one kernel and operator with the p-values of all: the smallest for each pair of
    models.
    """
    places = [[one.position(name) for name in shown.names] for one in results]
    pvalues = np.min(
        [one.pvalues[np.ix_(place, place)] for one, place in zip(results, places, strict=True)], 0
    )
    result = replace(
        shown, pvalue=float(pvalues.min()), pvalues=read_only(pvalues), tests=tuple(results)
    )
    note = (
        f"discrepancies and intervals are those of one of {len(results)} kernels and operators; "
        "p-values and the confidence set are those of all, which are corrected together."
    )
    disputes = [
        f"the tests disagree on the order of {list_names(group)}." for group in result.disputed
    ]
    return replace(
        result, reject=bool(result.shown_worse.any()), notes=(*shown.notes, note, *disputes)
    )


def ranked(
    test: Contrasts,
    names: tuple[str, ...],
    pvalues: np.ndarray,
    adjusted: Adjusted,
    hypotheses: int,
    decision: Decision,
) -> RankResult:
    """One kernel and operator, the models in their order."""
    n, models = test.rows.shape[1], len(names)
    values = ustatistic.u_statistic(test.sums.model_rows)
    errors = np.sqrt(ustatistic.jackknife_variance(test.sums.model_rows) / n)
    order = np.argsort(values, kind="stable")
    known = read_only(values[order]), read_only(errors[order])
    unknown = read_only(np.full(models, np.nan))
    additive = test.hypothesis.criterion != "ksd"
    lower, upper = simultaneous_ends(test, adjusted, hypotheses, decision)
    # to the last model, where common parts cancel
    against = np.concatenate([ustatistic.u_statistic(test.sums.rows), [0.0]])
    psi = 2 * ustatistic.centred(np.concatenate([test.sums.rows, np.zeros((1, n))])) / (n - 2)
    selective = selective_pvalues(
        against, psi @ psi.T / (n * (n - 1)), int(order[0]), decision.margin
    )
    sides = (test.statistics(decision.margin), -test.statistics(-decision.margin))
    statistics = [np.zeros(1), *(side[test.live] for side in sides)]
    grid = np.ix_(order, order)

    def matrix(one_way: np.ndarray, other_way: np.ndarray, same: float) -> np.ndarray:
        found = np.full((models, models), same)
        found[test.pairs.first, test.pairs.second] = one_way
        found[test.pairs.second, test.pairs.first] = other_way
        return read_only(found[grid])

    return RankResult(
        statistic=float(np.concatenate(statistics).max()),
        pvalue=float(pvalues.min()),
        reject=bool(pvalues.min() <= decision.alpha),
        alpha=decision.alpha,
        n=n,
        kernel=str(test.hypothesis.kernel),
        seed=test.seed,
        names=tuple(names[i] for i in order),
        ksd=unknown if additive else known[0],
        ksd_errors=unknown if additive else known[1],
        criterion=test.hypothesis.criterion,
        losses=known[0] if additive else None,
        loss_errors=known[1] if additive else None,
        differences=matrix(test.difference, -test.difference, 0.0),
        standard_errors=matrix(test.error, test.error, 0.0),
        pvalues=matrix(pvalues[0], pvalues[1], 1.0),
        lower=matrix(lower, -upper, 0.0),
        selective_pvalues=read_only(selective[order]),
        margin=decision.margin,
        correction=decision.correction,
        operator=test.hypothesis.operator_name,
        calibration=calibration_of(test, decision),
        notes=(*test.hypothesis.notes, *notes_of(test, names, decision)),
    )


def simultaneous_ends(
    test: Contrasts, adjusted: Adjusted, hypotheses: int, decision: Decision
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of intervals that hold all true differences at once with probability 1 - alpha."""
    if adjusted.largest_score is not None:
        z = adjusted.largest_score.upper_quantile(decision.alpha)
    else:
        z = float(-ndtri(decision.alpha / max(hypotheses, 1)))
    resampled = (
        -np.inf
        if adjusted.largest_statistic is None
        else adjusted.largest_statistic.upper_quantile(decision.alpha)
    )
    above, below = np.full((2, len(test.error)), z)
    if test.expansion is not None:
        null = Edgeworth(
            *(np.where(test.live, part, 0.0) for part in (test.expansion.a, test.expansion.c))
        )
        above, below = null.quantile(z), -null.quantile(-z)
        if decision.guarded:
            above, below = np.maximum(above, z), np.maximum(below, z)
    if test.nulls is not None:
        tail = float(ndtr(-z))
        above = np.array([one.upper_quantile(tail) for one in test.nulls])
        below = np.array([-one.lower_quantile(tail) for one in test.nulls])
    estimate, error = test.plain
    lower, upper = (
        estimate - error * np.maximum(above, resampled),
        estimate + error * np.maximum(below, resampled),
    )
    steadied = test.regularised  # both forms of the difference must exclude a value
    lower = np.where(steadied, np.minimum(lower, test.estimate - z * test.error), lower)
    upper = np.where(steadied, np.maximum(upper, test.estimate + z * test.error), upper)
    known = [np.where(test.alike, 0.0, unknown) for unknown in (-np.inf, np.inf)]
    return np.where(test.live, lower, known[0]), np.where(test.live, upper, known[1])


def calibration_of(test: Contrasts, decision: Decision) -> str:
    if test.nulls is not None:
        return str(test.nulls[0])
    used = ["joint bootstrap"] * (test.replicates is not None) + ["Edgeworth"] * (
        test.expansion is not None
    )
    if not used:
        return "normal"
    return largest_of([*used, "normal"]) if decision.guarded else used[0]


def notes_of(test: Contrasts, names: tuple[str, ...], decision: Decision) -> list[str]:
    def listed(which: np.ndarray) -> str:
        pairs = [
            f"{names[i]} and {names[j]}"
            for i, j in zip(*(side[which] for side in test.pairs), strict=True)
        ]
        return ", ".join(pairs[:3]) + (
            f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
        )

    notes = [said_of_pairs(test)] if test.sums.partners is not None else []
    if test.alike.any():
        notes.append(
            f"indistinguishable, since their scores agree to rounding: {listed(test.alike)}."
        )
    if (kept := ~test.live & ~test.alike).any():
        notes.append(f"the difference has no usable variance, so it is not judged: {listed(kept)}.")
    if decision.variance == "auto" and (steadied := test.regularised & test.live).any():
        notes.append(
            "U is nearly degenerate, so that its normal approximation is in doubt and the "
            f"regularised statistic is used: {listed(steadied)}."
        )
    return [*notes, *said_of_size(test, decision)]
