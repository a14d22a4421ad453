"""The keywords of the verbs, as type checkers and their readers see them.

A verb says which keywords it takes by the type of its ``**keywords``. What a keyword means, its
default and its checks stand in ``options.py`` alone; a test holds the two lists together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, cleandoc, signature
from typing import Any, ParamSpec, TypedDict, TypeVar, get_args, get_type_hints

from ._jax import one_call
from ._validation import noted
from .options import RECORDS, Chains, Decision, Record, Run
from .samplers import Sampler, Start
from .statistics import Calibration

Params = ParamSpec("Params")
Result = TypeVar("Result")


class FitKeywords(TypedDict, total=False):
    """Of a decision about one model."""

    decision: Decision
    alpha: float
    calibration: str | Calibration


class PairsKeywords(FitKeywords, total=False):
    """Of a decision about all pairs of several models."""

    margin: float
    variance: str
    correction: str
    pairs: int | None


class DecisionKeywords(PairsKeywords, total=False):
    """Of a decision about two models."""

    alternative: str


class ChainsKeywords(TypedDict, total=False):
    """Of scores by chains."""

    chains: int | Chains | None
    sampler: Sampler | None
    warmup: int | None
    draws: int | None
    exact: bool | None
    unbiased: bool
    meeting_limit: int | None
    control_variates: str
    initial: Start | None


class DocumentsKeywords(TypedDict, total=False):
    """Of how observations are read."""

    index: Any
    counts: bool | None
    drop_empty: bool


class ReadingKeywords(DocumentsKeywords, total=False):
    """Of how observations are read and compared."""

    holdout: Any
    standardise: bool
    smooth: Any


class ComputeKeywords(TypedDict, total=False):
    """Of how a call with scores is computed."""

    run: Run
    seed: int
    engine: Any
    progress: bool | None


class RunKeywords(ComputeKeywords, total=False):
    """Of how a call with models is computed."""

    checkpoint: Any
    batch_size: int | None


class EstimateKeywords(ChainsKeywords, DocumentsKeywords, RunKeywords, total=False):
    """Of ``estimate_scores``."""


class CompareKeywords(DecisionKeywords, ChainsKeywords, ReadingKeywords, RunKeywords, total=False):
    """Of ``compare``."""


class RankKeywords(PairsKeywords, ChainsKeywords, ReadingKeywords, RunKeywords, total=False):
    """Of ``rank``."""


class GoodnessOfFitKeywords(FitKeywords, ChainsKeywords, ReadingKeywords, RunKeywords, total=False):
    """Of ``goodness_of_fit``."""


class CompareScoresKeywords(DecisionKeywords, ComputeKeywords, total=False):
    """Of ``compare_scores``."""


class RankScoresKeywords(PairsKeywords, ComputeKeywords, total=False):
    """Of ``rank_scores``."""


class PointwiseKeywords(FitKeywords, total=False):
    """Of ``compare_pointwise``."""

    alternative: str
    margin: float
    run: Run
    seed: int


class RankPointwiseKeywords(FitKeywords, total=False):
    """Of ``rank_pointwise``."""

    margin: float
    correction: str
    run: Run
    seed: int


class ChooseKeywords(RankPointwiseKeywords, ChainsKeywords, RunKeywords, total=False):
    """Of ``choose``."""

    counts: bool | None


class FitScoresKeywords(FitKeywords, ComputeKeywords, total=False):
    """Of ``goodness_of_fit_scores``."""


def verb(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """The decorator of a public function: its options are in its signature and its help.

    What models read from outside is looked at once for the time of the call, and warnings that
    are given on the way become notes of the result.
    """
    return verb_with()(function)


def verb_with(**defaults: Any) -> Callable[[Callable[Params, Result]], Callable[Params, Result]]:
    """The same with some defaults of its own, which hold where no record is given."""
    return lambda function: as_verb(function, defaults)


def as_verb(
    function: Callable[Params, Result], defaults: dict[str, Any]
) -> Callable[Params, Result]:
    wrapper: Any = noted(one_call(function))
    wrapper.defaults = defaults
    types = get_type_hints(get_args(get_type_hints(function, include_extras=True)["keywords"])[0])
    own = signature(function).parameters.values()
    parameters = [one for one in own if one.kind != Parameter.VAR_KEYWORD]
    texts = []
    for kind in RECORDS:
        known = {one.name: one.default for one in fields(kind)} | {kind.keyword: None} | defaults
        explained = parameter_texts(kind)
        names = dict.fromkeys([*(one.name for one in fields(kind)), kind.keyword])
        for name in [one for one in names if one in types]:
            parameters.append(
                Parameter(name, Parameter.KEYWORD_ONLY, default=known[name], annotation=types[name])
            )
            texts.append(explained[name])
    wrapper.__signature__ = signature(function).replace(parameters=parameters)
    before, examples, after = cleandoc(function.__doc__ or "").partition("\nExamples\n")
    wrapper.__doc__ = "\n".join([before.rstrip(), *texts, examples + after])
    return wrapper


def parameter_texts(kind: type[Record]) -> dict[str, str]:
    """What the docstring of a record says of each option, and of the record as one."""
    found: dict[str, str] = {}
    name = ""
    for line in cleandoc(kind.__doc__ or "").partition("----------\n")[2].splitlines():
        if line and not line.startswith(" "):
            name = line.partition(" :")[0]
        found[name] = f"{found[name]}\n{line}" if name in found else line
    whole = (
        f"{kind.keyword} : lksd.{kind.__name__}, optional\n    The options of a {kind.__name__} "
        "record as one."
    )
    return {kind.keyword: whole} | {one: text.rstrip() for one, text in found.items()}
