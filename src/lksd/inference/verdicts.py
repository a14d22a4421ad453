"""One primary criterion decides; the others stand beside it, as secondary endpoints of a trial do.

The primary is fixed before the data are looked at, and is not corrected for the others. These are
corrected among themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import warn
from ..engines import Engine
from ..kernels import IMQ, BagOfWords
from ..results.base import DifferenceResult, read_only
from ..results.comparison import ComparisonResult
from ..results.details import Diagnostics, Pointwise, Words
from ..results.ranking import RankResult
from ..statistics.multiplicity import by_count
from .chains import chain_doubts, chain_quality, warn_of_noise
from .comparison import OF_KSD, case_of_losses, conclude_comparison, conclude_losses, words_of
from .doubts import Case, Doubts, row_doubts
from .hypotheses import Hypothesis
from .losses import Losses, check_losses
from .mmd import mmd_test
from .ranking import best_of, case_of_ranking, conclude_ranking, rank_losses

if TYPE_CHECKING:
    from ..problem import Findings, Problem

# The shape of tails above which means are not trusted; from few draws some seem to have it by
# chance, so that up to a small share of them those alone count that have no mean at all.
HEAVY, SPARSE, HEAVIEST = 0.7, 0.02, 1.0


def compare_by_criteria(
    findings: dict[str, Findings], engine: Engine, problem: Problem, also_mmd: bool
) -> ComparisonResult:
    """The answer about two models by an additive criterion, with what the others say."""
    (part,), options = findings.values(), problem.options
    every = losses_of(problem, part)
    decision = replace(options.decision, pairs=None)  # there are none in a mean
    secondary = additive_beside(problem, part, every[1:])
    ksd = None
    if problem.choice.of("ksd"):
        beside = options._replace(decision=replace(options.decision, margin=0.0))
        ksd = conclude_comparison(findings, beside, engine, problem, also_mmd)
        secondary.append(ksd)
    secondary += mmd_beside(problem, part)
    own = options._replace(decision=decision)
    result = conclude_losses(every[0], own)
    case = case_of_losses(result, every[0], own)
    doubt = chain_doubts(case, problem.named.names, findings)
    doubt = doubt.also(
        row_doubts(
            case, problem.observations.values, part.scores[0].index, looked_at(problem, part)
        )
    )
    doubt = doubt.also(tail_doubts(case, problem, part))
    quality = chain_quality(part.scores) if ksd is None else ksd.diagnostics
    quality = with_noise(quality, part, result.criterion, result.n * result.standard_error**2)
    known = {} if ksd is None else {name: getattr(ksd, name) for name in OF_KSD}
    return doubt.applied(
        replace(
            result,
            **known,
            diagnostics=doubt.of(replace(quality, unconverged=(), withheld=None)),
            kept=problem.observations.rows,
            words=words_by_losses(problem, part),
            notes=(*result.notes, *problem.notes_with(part)),
            beside=adjusted(secondary),
            pointwise=pointwise_of(problem, part),
        )
    )


def beside_the_ksd(
    result: ComparisonResult, findings: dict[str, Findings], problem: Problem
) -> ComparisonResult:
    """The verdict of the kernel test, with what the others say."""
    part = next(iter(findings.values()))
    every = losses_of(problem, part) if problem.criteria else []
    secondary = [*additive_beside(problem, part, every), *mmd_beside(problem, part)]
    pointwise = pointwise_of(problem, part) if every else None
    return replace(result, beside=adjusted(secondary), pointwise=pointwise)


def additive_beside(
    problem: Problem, part: Findings, losses: list[Losses]
) -> list[DifferenceResult]:
    """The results of additive criteria that do not decide."""
    options = problem.options
    found: list[DifferenceResult] = []
    decision = replace(options.decision, pairs=None, margin=0.0)
    chains = chain_quality(part.scores)
    for one in losses:
        result = conclude_losses(one, options._replace(decision=decision))
        variance = result.n * result.standard_error**2
        quality = with_noise(chains, part, one.criterion, variance, False)
        found.append(replace(result, diagnostics=quality))
    return found


def mmd_beside(problem: Problem, part: Findings) -> list[DifferenceResult]:
    """The relative MMD, where it is asked for beside other criteria."""
    return [mmd_test(problem, part.prepared).result] if problem.choice.of("mmd") else []


def rank_by_criteria(findings: dict[str, Findings], engine: Engine, problem: Problem) -> RankResult:
    """The answer about several models by an additive criterion, with what the others say."""
    (part,), options, names = findings.values(), problem.options, problem.named.names
    every = losses_of(problem, part)
    decision = replace(options.decision, pairs=None)
    beside = options._replace(decision=replace(options.decision, margin=0.0))
    secondary = rankings_beside(problem, every[1:])
    if problem.choice.of("ksd"):
        ksd = conclude_ranking(findings, names, beside, engine, problem)
        secondary.append(replace(ksd, diagnostics=()))
    own = options._replace(decision=decision)
    result = rank_losses(every[0], names, own)
    case = case_of_ranking(result, every[0], names, own)
    doubt = chain_doubts(case, names, findings)
    doubt = doubt.also(
        row_doubts(
            best_of(case),
            problem.observations.values,
            part.scores[0].index,
            looked_at(problem, part),
        )
    )
    doubt = doubt.also(tail_doubts(case, problem, part))
    quality = {
        name: doubt.of(chain_quality([one]), name)
        for name, one in zip(names, part.scores, strict=True)
    }
    return doubt.applied(
        replace(
            result,
            diagnostics=tuple(quality[name] for name in result.names),
            notes=(*result.notes, *problem.notes_with(part)),
            beside=tuple(secondary),
            pointwise=pointwise_of(problem, part),
        )
    )


def ranked_beside(
    result: RankResult, findings: dict[str, Findings], problem: Problem
) -> RankResult:
    """The ranking by the kernel test, with those by additive criteria beside it."""
    if not problem.criteria:
        return result
    part = next(iter(findings.values()))
    every = rankings_beside(problem, losses_of(problem, part))
    return replace(result, beside=tuple(every), pointwise=pointwise_of(problem, part))


def rankings_beside(problem: Problem, losses: list[Losses]) -> list[RankResult]:
    """The rankings by additive criteria that do not decide."""
    options = problem.options
    own = options._replace(decision=replace(options.decision, pairs=None, margin=0.0))
    return [rank_losses(one, problem.named.names, own) for one in losses]


def looked_at(problem: Problem, part: Findings) -> list[Hypothesis]:
    """Where observations far from all others, and copies, are looked for: in the hypotheses of the
    kernel test, or in the data and scores alone.
    """
    if part.family:
        return part.family
    scores = tuple(one.part("score")[0] for one in part.scores)
    return [data_alone(problem, problem.observations.values, scores)]


def data_alone(
    problem: Problem, values: np.ndarray, scores: tuple[np.ndarray, ...] = ()
) -> Hypothesis:
    """Observations of a problem's kind in the place of a hypothesis about them."""
    operator, kernel = problem.operators[0], None
    exchangeable = all(one.exchangeable for one in problem.named.models)
    if problem.domain.kind == "documents" and exchangeable:
        kernel = BagOfWords(IMQ(), operator.n_values)  # type: ignore[attr-defined]
    return Hypothesis(kernel, operator, values, scores)  # type: ignore[arg-type]


def losses_of(problem: Problem, part: Findings) -> list[Losses]:
    """The losses by every additive criterion, the primary first."""
    found = []
    for one in problem.criteria:
        columns = []
        for name, scores in zip(problem.named.names, part.scores, strict=True):
            own = scores.loss(one.name)
            columns.append(check_losses(f"{one.name} of {name}", own))
        known = {scores.loss_bases[scores.criteria.index(one.name)] for scores in part.scores}
        if len(known) > 1:
            raise ValueError(
                f"criterion: expected {one} scores of all models in the same coordinates, metric "
                "and form; those given were estimated in others. Estimate them anew on this data, "
                f"all with the same lksd.criteria.{type(one).__name__}."
            )
        found.append(Losses(one.name, tuple(columns)))
    return found


def tail_doubts(case: Case, problem: Problem, part: Findings) -> Doubts:
    """Of conditional probabilities that rest on ratios with heavy tails: the answer is withheld
    where it is another without them.
    """
    tails = [one.loss_tails for one in part.scores if one.loss_tails is not None]
    if problem.choice.primary.name != "conditional" or not tails:
        return Doubts()
    there = np.asarray(problem.observations.values) >= 0
    worst, limit = np.where(there, np.fmax.reduce(tails), 0.0), HEAVY
    if np.sum(worst > HEAVY) <= SPARSE * there.sum():
        limit = HEAVIEST
    heavy = worst > limit
    if not heavy.any():
        return Doubts()
    (losses,) = case.family
    parts = [(heavy * np.asarray(one.loss_positions)).sum(1) for one in part.scores]
    kept = tuple(own - less for own, less in zip(losses.scores, parts, strict=True))
    turned = case.changes(case.test([losses._replace(scores=kept)]))
    said = (
        f"{heavy.sum()} of {there.sum()} conditional probabilities are means of ratios with heavy "
        f"tails (k above {limit:g}), and may be far off"
    )
    advice = "Raise draws, or integrate part of the latent out by averaged_ratios(x, values, z)."
    withheld = f"the answer is another without the parts in doubt: {said}." if turned else None
    return Doubts((f"{said}. {advice}",), withheld)


def words_by_losses(problem: Problem, part: Findings) -> Words | None:
    """What each word, or each column of items, adds to the difference of conditional scores."""
    parts = [one.loss_positions for one in part.scores if one.loss_positions is not None]
    if problem.choice.primary.name != "conditional" or len(parts) < 2:
        return None
    x, domain = problem.observations.values, problem.domain
    each = (parts[0] - parts[1]) / len(x)
    if domain.kind != "categories":
        return words_of(x, each, domain)
    totals = each.sum(0)
    order = np.argsort(-np.abs(totals), kind="stable")
    names = tuple(domain.columns[i] for i in order) if domain.columns else ()  # type: ignore[attr-defined]
    return Words(read_only(order), read_only(totals[order]), names, False, True)


def with_noise(
    quality: Any, part: Findings, name: str, variance: float, primary: bool = True
) -> Diagnostics:
    """The diagnostics with the share of MCMC noise in the variance of a difference."""
    errors = [one.loss(name, "loss_errors") for one in part.scores]
    if not np.any(errors):
        return replace(quality, noise_share=None, start_shift=None)
    if np.isnan(errors).all(1).any():
        if primary:
            warn("there are too few draws to know how noisy the losses are; raise draws.")
        return replace(quality, noise_share=None, start_shift=None)
    noise = float(np.sum([np.nanmean(own**2) for own in errors]))
    share = noise / variance if variance > 0 else 0.0
    if primary:
        warn_of_noise(share)
    return replace(quality, noise_share=min(share, 1.0), start_shift=None)


def pointwise_of(problem: Problem, part: Findings) -> Pointwise:
    """The losses of all observations, models and criteria."""
    names = tuple(one.name for one in problem.criteria)
    losses, errors = (
        np.stack([np.stack([one.loss(name, kind) for name in names], 1) for one in part.scores], 1)
        for kind in ("losses", "loss_errors")
    )
    return Pointwise(names, read_only(losses), read_only(errors))


def adjusted(results: list[Any]) -> tuple[Any, ...]:
    """Secondary results, each with its p-values adjusted for all of them (Holm)."""
    if len(results) < 2:
        return tuple(results)
    forward = by_count(np.array([one.pvalue for one in results]), "holm")
    reverse = by_count(np.array([one.pvalue_reverse for one in results]), "holm")
    found = []
    for one, p, r in zip(results, forward.tolist(), reverse.tolist(), strict=True):
        changed = replace(one, pvalue=p, pvalue_reverse=r)
        if getattr(one, "tests", ()):
            raised = [
                replace(
                    test,
                    pvalue=min(1.0, test.pvalue * p / max(one.pvalue, 1e-300)),
                    pvalue_reverse=min(
                        1.0, test.pvalue_reverse * r / max(one.pvalue_reverse, 1e-300)
                    ),
                )
                for test in one.tests
            ]
            tests = tuple(
                replace(test, reject=test.reject and test.direction is not None) for test in raised
            )
            changed = replace(changed, tests=tests)
        found.append(replace(changed, reject=one.reject and changed.better_role is not None))
    return tuple(found)
