"""From what a caller names to a procedure that fits its candidates: a family by its name, an
estimator of scikit-learn, or a function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from .._text import visible
from .._validation import check_choice, to_numpy
from .._vocabulary import Vocabulary
from ..adapters.recognition import EXPECTED, recognise
from .base import Fit, seed_of_package, steady
from .gaussian import fit_factors, fit_mixture
from .markov import fit_states
from .topics import fit_topics, topic_trainer

COUNT = "count"  # the option of a family that says how many
NOUNS = {  # what an estimator's n_components are
    "FactorAnalysis": "factor",
    "PCA": "component",
    "GaussianMixture": "component",
    "BayesianGaussianMixture": "component",
    "LatentDirichletAllocation": "topic",
}
MOST = 1_000  # candidates


class Procedure(NamedTuple):
    """How a candidate is fitted to observations, and what the candidates are called."""

    fit: Callable[[Any, Any, int], Fit]  # from the observations, the candidate and a seed
    candidates: tuple[Any, ...]
    labels: tuple[str, ...]
    noun: str = ""  # of what there may be more or fewer, where the candidates are numbers of it
    parallel: bool = True  # whether several fits may run at the same time in one process
    said: str = ""  # how, in words

    @property
    def short_labels(self) -> tuple[str, ...]:
        """The numbers alone, where the candidates are numbers of something."""
        if not self.noun:
            return self.labels
        return tuple(label.removesuffix("s").removesuffix(f" {self.noun}") for label in self.labels)


def as_procedure(x: Any, fit: Any, candidates: Any, names: Sequence[str] | None) -> Procedure:
    """The procedure that a caller means; ``x`` are all observations."""
    if isinstance(fit, str):
        found = of_family(x, fit, candidates)
    elif hasattr(fit, "fit") and hasattr(fit, "get_params") and not isinstance(fit, type):
        found = of_estimator(fit, candidates)
    elif callable(fit) and not isinstance(fit, type):
        found = of_function(fit, candidates)
    else:
        raise TypeError(
            f"fit: expected a function fit(train, candidate), an estimator of scikit-learn, or one "
            f"of {', '.join(map(repr, FAMILIES))}; got {fit!r}. Give one of them."
        )
    if names is not None:
        if isinstance(names, str) or len(names) != len(found.candidates):
            raise ValueError(
                f"names: expected one for each of {len(found.candidates)} candidates; got "
                f"{names!r}. Name them all, or leave names out."
            )
        found = found._replace(labels=tuple(map(str, names)), noun="")
    twice = [label for label, times in Counter(found.labels).items() if times > 1]
    if twice:
        raise ValueError(
            f"candidates: expected different ones; got {visible(twice[0])!r} twice. Leave one out."
        )
    if not 2 <= len(found.labels) <= MOST:
        raise ValueError(
            f"candidates: expected from 2 to {MOST:,} of them; got {len(found.labels)}. Give the "
            "numbers that are to be compared, such as range(1, 11)."
        )
    return found


def listed(candidates: Any) -> list[Any]:
    """The candidates one by one; of a grid of options all combinations."""
    if isinstance(candidates, Mapping):
        options = {name: as_list(name, values) for name, values in candidates.items()}
        return [dict(zip(options, chosen, strict=True)) for chosen in product(*options.values())]
    return as_list("candidates", candidates)


def as_list(name: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(
            f"{name}: expected several values; got {values!r}. Give a list or a range of them."
        )
    return [one.item() if isinstance(one, np.generic) else one for one in values]


def counted(count: Any, noun: str) -> str:
    """3 factors."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def label_of(candidate: Any, counter: str = "", noun: str = "") -> str:
    """What a candidate is called, in words."""
    if not isinstance(candidate, Mapping):
        return counted(candidate, noun) if noun else str(candidate)
    others = [
        value if isinstance(value, str) else f"{name} {value}"
        for name, value in candidate.items()
        if not noun or name != counter
    ]
    if not noun or counter not in candidate:
        return ", ".join(others)
    count = counted(candidate[counter], noun)
    return f"{count} ({', '.join(others)})" if others else count


# ------------------------------------------------------------- functions


def of_function(fit: Callable, candidates: Any) -> Procedure:
    """A function fit(train, candidate), which is called with a ``seed`` if it takes one."""
    every = listed(candidates)
    try:
        seeded = "seed" in signature(fit).parameters
    except (TypeError, ValueError):  # of a built-in, whose parameters are not known
        seeded = False
    return Procedure(
        partial(call, fit, seeded),
        tuple(every),
        tuple(map(label_of, every)),
        parallel=False,
        said=getattr(fit, "__name__", type(fit).__name__),
    )


def call(fit: Callable, seeded: bool, train: Any, candidate: Any, seed: int) -> Fit:
    found = fit(train, candidate, seed=seed) if seeded else fit(train, candidate)
    if isinstance(found, Fit):
        return found
    model = recognise(found)
    if model is None:
        raise TypeError(
            f"fit: expected it to return {EXPECTED}; got {type(found).__name__}. Return the fitted "
            "model."
        )
    return Fit(model)


# ------------------------------------------------------------- estimators of scikit-learn


def of_estimator(estimator: Any, candidates: Any) -> Procedure:
    """An estimator of scikit-learn, whose parameters are the candidates."""
    kind = type(estimator).__name__
    known = estimator.get_params()
    every = [
        one if isinstance(one, Mapping) else {"n_components": one} for one in listed(candidates)
    ]
    for one in every:
        for name in one:
            if name not in known:
                raise ValueError(
                    f"candidates: expected parameters of {kind}; got {name!r}. It has "
                    f"{', '.join(sorted(known))}."
                )
    noun = NOUNS.get(kind, "")
    alone = all(set(one) == {"n_components"} for one in every)
    return Procedure(
        partial(fit_estimator, estimator),
        tuple(every),
        tuple(label_of(one, "n_components", noun) for one in every),
        noun if alone else "",
        said=f"{kind} of scikit-learn",
    )


def fit_estimator(estimator: Any, train: Any, candidate: dict[str, Any], seed: int) -> Fit:
    from sklearn.base import clone

    own = clone(estimator).set_params(**candidate)
    if own.get_params().get("random_state", 0) is None:
        own.set_params(random_state=seed_of_package(seed))
    with steady():
        own.fit(train)
    model = recognise(own)
    if model is None:
        raise TypeError(
            f"fit: expected an estimator with a density; got {type(own).__name__}. Use PCA, "
            "FactorAnalysis, GaussianMixture, BayesianGaussianMixture or "
            "LatentDirichletAllocation, or a function that returns a model."
        )
    return Fit(model, unconverged(own))


def unconverged(estimator: Any) -> tuple[str, ...]:
    """Whether a fitted estimator says that it has not converged."""
    steps, most = getattr(estimator, "n_iter_", None), getattr(estimator, "max_iter", None)
    if type(estimator).__name__ == "LatentDirichletAllocation":
        return ()  # runs all of its steps, unless it is told to look at its bound
    stopped = isinstance(steps, int) and isinstance(most, int) and steps >= most
    if getattr(estimator, "converged_", not stopped):
        return ()
    return (f"the fit stopped after {steps} steps without converging",)


# ------------------------------------------------------------- families


class Family(NamedTuple):
    """A family of models, of which the candidates are the numbers of something."""

    noun: str
    fit: Callable[..., Fit]
    # what its fits need to know of all observations: options of ``fit``
    common: Callable[[Any], dict[str, Any]] = lambda x: {}
    said: Callable[[dict[str, Any]], str] = str


def of_family(x: Any, name: str, candidates: Any) -> Procedure:
    """A family by its name; candidates are numbers, or dicts of the options of its fit."""
    family = FAMILIES[check_choice("fit", name, FAMILIES)]
    every = [one if isinstance(one, Mapping) else {COUNT: one} for one in listed(candidates)]
    options = set(signature(family.fit).parameters) - {"train", "seed"}
    common = family.common(x)
    for one in every:
        if COUNT not in one or set(one) - options - set(common):
            raise ValueError(
                f"candidates: expected numbers of {family.noun}s, or dicts with "
                f"{', '.join(sorted(options - set(common)))}; got {one!r}. Give such candidates."
            )
        count = one[COUNT]
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(
                f"candidates: expected whole numbers of {family.noun}s from 1 on; got {count!r}. "
                "Give such numbers."
            )
    return Procedure(
        partial(fit_family, family.fit, common),
        tuple(every),
        tuple(label_of(one, COUNT, family.noun) for one in every),
        family.noun if all(set(one) == {COUNT} for one in every) else "",
        said=family.said(common),
    )


def fit_family(
    fit: Callable[..., Fit], common: dict[str, Any], train: Any, candidate: Any, seed: int
) -> Fit:
    options = common | candidate
    if options.get("emission") == "gaussian":
        options.pop("n_values", None)
    return fit(train, seed=seed, **options)


def words_of(x: Any) -> dict[str, Any]:
    """All words of all documents, so that none is impossible where a part of them lacks it."""
    if hasattr(x, "tocsr"):
        return {"n_values": x.shape[1]}
    if hasattr(x, "shape"):
        raise ValueError(
            "x: a dense table could hold word counts or word ids. Say counts=True for counts, or "
            "counts=False for ids."
        )
    every = {word for one in x for word in (one.tolist() if hasattr(one, "tolist") else one)}
    if every and all(isinstance(word, str) for word in every):
        return {"vocabulary": Vocabulary(tuple(sorted(every)))}
    if not every or any(isinstance(word, bool) or not isinstance(word, int) for word in every):
        raise ValueError(
            "x: expected documents as lists of words, lists of word ids, or a sparse matrix of "
            "counts; got something else. Split texts into words first."
        )
    return {"n_values": max(every) + 1}


def values_of(x: Any) -> dict[str, Any]:
    """What sequences are made of: so many values, where they are whole numbers, or reals."""
    parts = x if isinstance(x, (list, tuple)) else [x]
    every = [to_numpy("x", one) for one in parts]
    if not all(one.size for one in every):
        raise ValueError(
            "x: expected sequences with at least one step; one is empty. Leave it out."
        )
    whole = all((one == np.rint(one)).all() for one in every)
    if not whole:
        return {"emission": "gaussian"}
    return {"emission": "categorical", "n_values": int(max(one.max() for one in every)) + 1}


def chains_said(common: dict[str, Any]) -> str:
    values = common.get("n_values")
    return (
        f"hidden Markov models of {values} values, EM"
        if values
        else "Gaussian hidden Markov models, EM"
    )


FAMILIES = {
    "factors": Family("factor", fit_factors, said=lambda _: "factor analysis, maximum likelihood"),
    "mixture": Family("component", fit_mixture, said=lambda _: "mixtures of Gaussians, EM"),
    "topics": Family(
        "topic",
        fit_topics,
        words_of,
        lambda _: f"latent Dirichlet allocation, {topic_trainer()}",
    ),
    "states": Family("state", fit_states, values_of, chains_said),
}
