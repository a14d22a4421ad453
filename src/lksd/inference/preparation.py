"""From data, models and options to what the tests on scores take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._documents import Filled, drop_empty_documents, read_documents
from .._far import column_spreads
from .._validation import about, check_count, check_reals, joined, warn
from .._vocabulary import as_documents, holds_words, is_words, vocabularies_of, word_columns
from ..adapters.topics import share_vocabulary
from ..engines import Engine
from ..kernels import IMQ, BagOfWords, Hamming, Kernel, PerCoordinate
from ..models import LatentVariableModel, SimulatesLikelihood
from ..samplers import NUTS, Exchange
from ..scores import ScoreEstimate, estimate_scores, is_discrete, operators_for, takes_gradients
from ..scores.checkpoint import Checkpoint
from ..scores.operators import DISCRETE
from ..stein import DiscreteOperator, Spherical, SteinOperator
from .contrasts import pairs_of
from .matching import is_called, named, same

UNEVEN = 100  # ratio of column scales that is reported
PAPER = {"chains": 1, "exact": False, "control_variates": "none"}
PAPER_LENGTHS = {False: {"warmup": 200, "draws": 500}, True: {"warmup": 80, "draws": 20}}  # real data; sweeps over documents


class Prepared(NamedTuple):
    """What the test on scores takes."""

    x: np.ndarray
    mask: np.ndarray | None
    scores: list[tuple[np.ndarray, ...]]  # of each model, for each operator
    operators: tuple[SteinOperator, ...]
    kernel: Any
    units: np.ndarray  # what the columns were divided by
    notes: tuple[str, ...]


def check_roles(models: dict[str, Any]) -> None:
    """Every one a model or scores, all of the same kind of data."""
    for name, model in models.items():
        if not isinstance(model, (LatentVariableModel, ScoreEstimate)):
            raise TypeError(
                f"{name}: expected a lksd.models.LatentVariableModel or a ScoreEstimate; got {model!r}. Give an instance."
            )
    kinds = {name: describes_integers(model) for name, model in models.items()}
    if len(set(kinds.values())) > 1:
        said = " and ".join(f"{name} describes {'integers' if discrete else 'real numbers'}" for name, discrete in kinds.items())
        raise ValueError(f"{joined(models)}: expected models of the same kind of data; {said}. Compare models of the same data.")


def check_enough(x, pairs: int | None = None) -> None:
    """Before any chain runs."""
    shape = getattr(x, "shape", None)
    if shape == ():
        raise ValueError(f"x: expected shape (n, D); got one number, {x!r}. Put one observation in each row.")
    if shape or hasattr(x, "__len__"):
        n = shape[0] if shape else len(x)
        check_count("x", n)
        pairs_of(pairs, n)


def read_all(x, models: list[Any], counts: bool | None, drop_empty: bool) -> tuple[Filled, list[Any]]:
    """The data, documents of words as ids and without empty ones if that is wanted; and the models, on one vocabulary."""
    if not drop_empty:
        x, models, notes = read_words(x, models, counts)
        return Filled(x, notes=notes), models
    if not describes_integers(models[0]):
        raise ValueError("drop_empty: expected with models of documents; these describe real numbers. Leave it out.")
    x, models, notes = read_words(x, models, counts, drop_empty)
    first: Any = models[0]
    first = first.operators[0] if isinstance(first, ScoreEstimate) else first
    filled = drop_empty_documents(x, first.n_values, counts)
    check_enough(filled.x)
    return filled._replace(notes=(*notes, *filled.notes)), models


def read_words(x, models: list[Any], counts: bool | None, drop_empty: bool = False) -> tuple[Any, list[Any], tuple[str, ...]]:
    """Documents of words as ids, topic models of different words on one vocabulary, and what was left out."""
    estimated = any(isinstance(model, ScoreEstimate) for model in models)
    if estimated and (is_words(x) or (counts and word_columns(x))):
        raise ValueError(
            "x: expected word ids beside scores that are already estimated, or an array of counts in their order; got words. "
            "Give the ids that they belong to."
        )
    if not holds_words(x, models, counts):
        return x, models, ()
    given = vocabularies_of(models)
    if any(other != given[0] for other in given[1:]):
        models = list(share_vocabulary(*models))
    documents, notes = as_documents(x, vocabularies_of(models)[0], drop_empty)
    return documents, models, notes


def describes_integers(model) -> bool:
    if isinstance(model, ScoreEstimate):
        return isinstance(model.operators[0], DiscreteOperator)
    return is_discrete(model)


def common_operators(models: list[Any], operator, paper: bool) -> tuple[SteinOperator, ...]:
    """The operators that all scores belong to: those of scores that are given, else as asked for."""
    given = [model.operators for model in models if isinstance(model, ScoreEstimate)]
    own = [model for model in models if not isinstance(model, ScoreEstimate)]
    if not given:
        return operators_for(papers_operator(operator, own[0]) if paper and is_discrete(own[0]) else operator, own)
    if any(not same(given[0], other) for other in given[1:]):
        raise ValueError(
            f"p and q: expected scores of the same operators; got {named(given[0])} and {named(given[1])}"
            ", or the same with another order of the values. Estimate both with operator=lksd.discrete_operators(p, q)."
        )
    wanted = given[0] if operator is None else tuple(operator) if isinstance(operator, (tuple, list)) else (operator,)
    if len(wanted) != len(given[0]) or not all(is_called(one, choice) for one, choice in zip(given[0], wanted, strict=True)):
        raise ValueError(
            f"operator: expected {named(given[0])}, to which the scores given belong; got {named(wanted)}. Leave it out."
        )
    return operators_for(given[0], own) if own else given[0]


def papers_operator(operator, model):
    """A name as the paper's operator: one witness for each coordinate, the values in their own order."""
    if isinstance(operator, (tuple, list)):
        return tuple(papers_operator(one, model) for one in operator)
    name = "difference" if operator is None else operator
    return DISCRETE[name](model.n_values) if isinstance(name, str) and name in DISCRETE else operator


def papers_options(options: dict, discrete: bool) -> dict:
    """The sampling options of the paper, where the caller says nothing else."""
    return PAPER | PAPER_LENGTHS[discrete] | {name: value for name, value in options.items() if value is not None}


def placed(engine: Engine, checkpoint: Checkpoint | None, label: str = "") -> dict[str, Any]:
    """The options of one of several estimates: where it runs, and its part of the checkpoint. They do not change its digits."""
    return {"engine": engine, "checkpoint": checkpoint and checkpoint.labelled(label)}


def as_scores(model, x, operators: tuple[SteinOperator, ...], options: dict, paper: bool, name: str = "") -> ScoreEstimate:
    """The model's scores; warnings say its ``name``."""
    if isinstance(model, ScoreEstimate):
        return model
    if paper and options.get("sampler") is None and takes_gradients(model, x, options.get("counts")):
        options = options | {"sampler": Exchange() if isinstance(model, SimulatesLikelihood) else NUTS()}
    with about(name):
        return estimate_scores(model, x, operator=operators if is_discrete(model) else operators[0], **options)


def prepare(
    x, scores: list[ScoreEstimate], kernel, holdout, standardise: bool, counts: bool | None, paper: bool = False
) -> Prepared:
    """The data and scores in the units of the test, and the kernel on them."""
    operators = scores[0].operators
    if isinstance(operators[0], DiscreteOperator):
        if holdout is not None or standardise:
            raise ValueError("holdout and standardise: expected with real data only; these are integers. Leave them out.")
        return prepare_discrete(x, scores, kernel, counts, paper)
    data, given, notes = operators[0].observations(x), [one.score for one in scores], []
    spherical = isinstance(operators[0], Spherical)
    if spherical and standardise:
        raise ValueError("standardise: expected without unit vectors, which would leave the sphere. Leave it out.")
    spread, units = column_spreads(data), np.ones(data.shape[1])
    source = data if holdout is None else check_reals("holdout", holdout)
    if source.shape[1:] != data.shape[1:]:
        raise ValueError(f"holdout: expected {data.shape[1]} columns as in x; got {source.shape[1]}. Give data of the same kind.")
    if standardise:
        if not spread.all():
            raise ValueError(f"standardise: column {int(np.argmin(spread))} of x is constant and has no scale. Drop it.")
        units = spread
        data, source, given = data / units, source / units, [score * units for score in given]
        notes.append("columns are divided by their standard deviations; the hypothesis is about data in these units.")
    elif (ratio := spread.max() / spread[spread > 0].min(initial=np.inf)) > UNEVEN:
        warn(f"x: columns differ in scale by a factor of {ratio:.0f}, and the largest dominate; consider standardise=True.")
    if kernel is None:
        kernel = IMQ.median(source) if paper or spherical else default_kernel(source)
        if holdout is not None:
            notes.append(f"the kernel's scales come from a holdout of {len(source)} observations.")
    return Prepared(data, None, [(score,) for score in given], operators, kernel, units, tuple(notes))


def default_kernel(x) -> Kernel:
    """A kernel for each coordinate at its own median scale; radial for one column, or where a column is mostly constant."""
    if x.shape[1] == 1:
        return IMQ.median(x)  # with the factor on the coordinate it would be two kernels on the same number
    try:
        return PerCoordinate.median(x)
    except ValueError:
        return IMQ.median(x)


def default_discrete_kernel(tokens: np.ndarray, there: np.ndarray, size: int, paper: bool) -> Kernel:
    """IMQ on the bag of words: at the median scale, or at the paper's."""
    return BagOfWords(IMQ(), size) if paper else BagOfWords.median(tokens, size, mask=there)


def prepare_discrete(x, scores: list[ScoreEstimate], kernel, counts: bool | None, paper: bool) -> Prepared:
    operators = scores[0].operators
    size = operators[0].n_values  # type: ignore[attr-defined]
    tokens = read_documents(x, size, counts)
    there = tokens >= 0
    if kernel is None:
        kernel = default_discrete_kernel(tokens, there, size, paper) if all(one.exchangeable for one in scores) else Hamming()
    parts = [one.part("score") for one in scores]
    return Prepared(tokens, None if there.all() else there, parts, operators, kernel, np.ones(()), ())
