"""How many? Candidates are compared at observations that they were not fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from scipy.sparse import csr_array

from ._keywords import ChooseKeywords, verb
from ._validation import (
    MINIMUM_OBSERVATIONS,
    check_choice,
    check_count,
    check_finite,
    check_integers,
    column_names,
    to_numpy,
)
from .crossfit import CrossFit, Failure, Partitions, Scores, cross_fit
from .domains.reals import row_names
from .engines import opened, track
from .fitting.base import Fit
from .fitting.fits import Fits
from .fitting.procedures import Procedure, as_procedure
from .inference.chains import chain_doubts
from .inference.doubts import row_doubts
from .inference.losses import Losses
from .inference.ranking import best_of, case_of_ranking, rank_losses
from .inference.verdicts import data_alone
from .models import GaussianMixture
from .options import Options
from .problem import Findings
from .results.base import as_settings, read_only
from .results.choice import LISTED, Choice
from .results.ranking import list_names
from .scores.checkpoint import as_checkpoint
from .statistics.folds import centre_within, spread_pvalue

COLLAPSED = 1e-3  # of a column's variance, in a component
UNSTABLE = 1e-3  # the level at which folds are said to differ by more than chance


@verb
def choose(
    x: Any,
    fit: Any,
    candidates: Any,
    *,
    folds: int = 5,
    repeats: int = 1,
    criterion: Any = "auto",
    names: Sequence[str] | None = None,
    failures: str = "leave out",
    check: bool = True,
    **keywords: Unpack[ChooseKeywords],
) -> Choice:
    """How many factors, topics, clusters or states describe the data best?

    The observations are split into folds. Each candidate is fitted to all folds but one and scored
    on that one, so that every observation is scored by a model that has not seen it. All
    differences of the mean scores are tested together.

    Parameters
    ----------
    x : (n, D) array
        Independent observations, in any form that ``compare`` takes.
    fit : function, estimator of scikit-learn, or "factors", "mixture", "topics" or "states"
        How a candidate is fitted. A function ``fit(train, candidate)`` returns a model: one of
        ``lksd.models``, or a fitted one of scikit-learn, gensim or tomotopy; it is called with
        ``seed=`` if it takes one. An estimator, such as ``FactorAnalysis()``, is copied for each
        fit. A name is a family that this library fits itself.
    candidates : list, range, or dict of lists
        What to choose from, from the simplest on: numbers of factors, dicts of the parameters of an
        estimator, or anything that ``fit`` understands. A dict of lists stands for all
        combinations.
    folds : int
        Into how many parts the observations are split.
    repeats : int
        How many random partitions to average; each takes as long as the first.
    criterion : name or object of lksd.criteria
        As in ``compare``, one that adds up over the observations.
    names : strings, optional
        What the candidates are called.
    failures : "leave out" or "raise"
        What happens where a candidate cannot be fitted or scored: it is left out and named in the
        result, or the call ends with an error.
    check : bool
        As in ``compare``.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 8)) + rng.normal(size=(200, 8))
    >>> choice = lksd.choose(x, "factors", range(1, 5))
    >>> choice.simplest, choice.best in choice.confidence_set
    ('2 factors', True)
    """
    options = Options.read(choose, keywords).two_sided()
    check_choice("failures", failures, ("leave out", "raise"))
    partitions = Partitions.read(check_rows(x), folds, repeats, options.run.seed)
    given = options
    if isinstance(fit, str) and fit == "topics":
        x = as_documents(x, options.reading.counts)
        options = options._replace(reading=replace(options.reading, counts=None))
    procedure = as_procedure(x, fit, candidates, names)
    work = CrossFit(x, procedure, partitions, criterion, options, check, failures == "raise")
    kept = Fits.open(as_checkpoint(options.run.checkpoint), x, procedure, partitions)
    total = 2 * repeats * folds * len(procedure.labels) + 1
    with (
        opened(options.run.engine, options.run.progress) as engine,
        track(f"choosing among {len(procedure.labels)} candidates", total, 0.0) as advance,
        opened(engine, False),  # of the stages inside
    ):
        result = conclude_choice(work, cross_fit(work, engine, kept, advance))
        final = work.fit_to_all(result.simplest)
        advance(1)
    if isinstance(final, Failure):  # what was found of the candidates stays
        reason = f"it cannot be fitted to all observations, so there is no model: {final.reason}"
        final = Fit(None, (reason.removesuffix("."),))  # type: ignore[arg-type]
    chosen = {"fit": fit, "candidates": list(procedure.labels), "folds": folds, "repeats": repeats}
    chosen |= {"criterion": criterion, "failures": failures, "check": check}
    return replace(
        result,
        model=final.model,
        topics=top_words(final.model),
        notes=(*result.notes, *(f"{result.simplest}: {note}." for note in final.notes)),
        settings=as_settings(chosen | given.of(choose)),
    )


def check_rows(x: Any) -> int:
    """How many observations there are; missing numbers are refused before anything is fitted."""
    shape = getattr(x, "shape", None)
    if shape == () or not (shape or hasattr(x, "__len__")):
        raise TypeError(f"x: expected observations; got {x!r}. Put one in each row.")
    n = int(shape[0]) if shape else len(x)
    check_count("x", n, MINIMUM_OBSERVATIONS)
    if shape and not hasattr(x, "tocsr"):
        check_finite("x", to_numpy("x", x))
    return n


def as_documents(x: Any, counts: bool | None) -> Any:
    """A table of counts as a sparse matrix, or as documents of the words that name its columns; a
    table of ids as lists of them.
    """
    if counts is None or not hasattr(x, "shape") or hasattr(x, "tocsr"):
        return x
    values, words = check_integers("x", x), column_names(x)
    if not counts:
        return [row[row >= 0].tolist() for row in values]
    if (values < 0).any():
        raise ValueError("x: expected counts of at least 0; got a negative one. Check the data.")
    return (
        csr_array(values) if words is None else [np.repeat(words, row).tolist() for row in values]
    )


def conclude_choice(work: CrossFit, scores: Scores) -> Choice:
    """The answer about all candidates from their losses."""
    options, fold = work.options, work.partitions.fold
    centred = np.mean([centre_within(*one) for one in zip(scores.losses, fold, strict=True)], 0)
    problem = scores.parts[0].problem
    name = problem.choice.primary.name
    losses = Losses(name, tuple(centred.T))
    ranking = rank_losses(losses, scores.labels, options)
    case = best_of(case_of_ranking(ranking, losses, scores.labels, options))
    doubt = chain_doubts(case, scores.labels, {"": Findings([], scores.candidates)})  # type: ignore[arg-type]
    values = out_of_fold_values(scores, fold[0])
    doubt = doubt.also(row_doubts(case, values, None, [data_alone(problem, values)]))
    ranking = doubt.applied(ranking)
    places = [work.procedure.labels.index(label) for label in scores.labels]
    parts = [(repeat, inside) for repeat, inside in work.partitions.parts()]
    notes = (*scores.notes, *ranking.notes, *unstable_notes(ranking.names, scores, fold))
    result = Choice(
        statistic=ranking.statistic,
        pvalue=ranking.pvalue,
        reject=ranking.reject,
        alpha=ranking.alpha,
        n=ranking.n,
        kernel="",
        seed=work.partitions.seed,
        withheld=ranking.withheld,
        candidates=scores.labels,
        short=tuple(work.procedure.short_labels[place] for place in places),
        noun=work.procedure.noun,
        ranking=replace(ranking, notes=()),
        losses=read_only(scores.losses.mean(0)),
        loss_errors=read_only(np.stack([one.loss_errors for one in scores.candidates], 1)),
        fold_losses=read_only(np.stack([scores.losses[r, rows].mean(0) for r, rows in parts])),
        fold_numbers=read_only(fold.copy()),
        folds=work.partitions.folds,
        repeats=len(fold),
        procedure=work.procedure.said,
        failures=tuple(f"{label}: {reason}" for label, reason in scores.failed.items()),
        labels=row_names(work.x),
        notes=tuple(dict.fromkeys(notes)),
    )
    result = replace(result, notes=(*result.notes, *order_notes(result, work.procedure)))
    return with_collapsed(result, scores)


def order_notes(result: Choice, procedure: Procedure) -> list[str]:
    """Of the best candidate at the edge, and of candidates that do not go up."""
    if not procedure.noun:
        return []
    numbers = [float(one) for one in procedure.short_labels]
    best = float(result.short_name(result.best))
    notes = []
    if best == max(numbers):
        notes.append(
            f"{result.best} is the largest candidate: more {result.noun}s may fit better still."
        )
    if numbers != sorted(numbers):
        notes.append("the candidates do not go up; the first of them counts as the simplest.")
    return notes


def with_collapsed(result: Choice, scores: Scores) -> Choice:
    """Without a verdict where the best are mixtures with components on single values, at which
    densities grow without bound.
    """
    found: dict[str, None] = {}
    for part in scores.parts:
        models = zip(part.problem.named.names, part.problem.named.models, strict=True)
        spread = np.var(part.problem.holdout, axis=0) if part.problem.holdout is not None else None
        for name, model in models:
            if isinstance(model, GaussianMixture) and spread is not None:
                own = np.diagonal(np.asarray(model.covariances), axis1=1, axis2=2)
                found |= {name: None} if (own < COLLAPSED * spread).any() else {}
    if not found:
        return result
    said = (
        f"components of {list_names(tuple(found))} shrink onto single values of a column, where "
        "their density grows without bound"
    )
    if result.withheld is not None or not set(found) & set(result.confidence_set):
        return replace(result, notes=(*result.notes, f"{said}."))
    reason = f"{said}. Values that recur, as those of questionnaires, need a model of integers."
    ranking = replace(result.ranking, withheld=reason, reject=False)
    return replace(result, ranking=ranking, withheld=reason, reject=False)


def out_of_fold_values(scores: Scores, fold: np.ndarray) -> np.ndarray:
    """The observations as they were scored, in their order."""
    found = [part.problem.observations.values for part in scores.parts]
    width = max(one.shape[1] for one in found)
    values = np.full((len(fold), width), -1, dtype=found[0].dtype)  # after the end of a document
    for number, one in enumerate(found):
        values[fold == number, : one.shape[1]] = one
    return values


def unstable_notes(names: Sequence[str], scores: Scores, fold: np.ndarray) -> list[str]:
    """Of candidates whose differences to the best vary too much between folds."""
    best, found = scores.labels.index(names[0]), []
    for number, label in enumerate(scores.labels):
        own = [
            spread_pvalue(one[:, number] - one[:, best], rows)
            for one, rows in zip(scores.losses, fold, strict=True)
            if number != best
        ]
        if own and min(own) * len(own) < UNSTABLE:
            found.append(label)
    if not found:
        return []
    return [
        f"the difference to the best varies more between folds than within them for "
        f"{', '.join(found)}: fits depend much on which observations are left out, so that "
        "intervals may be too short. Average several partitions with repeats=."
    ]


def top_words(model: Any) -> tuple[tuple[str, ...], ...]:
    """The most probable words of each topic, where the model has topics with words."""
    vocabulary = getattr(model, "vocabulary", None)
    if vocabulary is None:
        return ()
    order = np.argsort(-np.asarray(model.topics), axis=1, kind="stable")[:, :LISTED]
    return tuple(tuple(vocabulary.words[word] for word in one) for one in order)
