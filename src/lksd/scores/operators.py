"""Which Stein operators a comparison of models uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_choice, warn
from ..models import Discrete, KnowsValues
from ..stein import Barker, Difference, DiscreteOperator, Gibbs, Langevin, Spherical, SteinOperator, vocabulary_order

DISCRETE = {"difference": Difference, "barker": Barker, "gibbs": Gibbs}
CONTINUOUS: dict[str, Any] = {"langevin": Langevin, "spherical": Spherical}
NAMES = (*CONTINUOUS, *DISCRETE)
BOTH = ("difference", "barker")


def is_discrete(model: Any) -> bool:
    """Whether a model describes integers in 0 .. n_values - 1."""
    return isinstance(model, Discrete)


def discrete_operators(*models, names: tuple[str, ...] = BOTH) -> tuple[DiscreteOperator, ...]:
    """The operators of these names with our defaults for these models: a shared witness, and an order of the values
    from the models' mean probabilities of them.

    Scores of several models can be compared only if they were estimated with the same operators.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> rng = np.random.default_rng(0)
    >>> p, q = (lksd.models.LDA(0.1 * np.ones(2), rng.dirichlet(np.ones(30), 2)) for _ in range(2))
    >>> [str(operator) for operator in lksd.discrete_operators(p, q)]  # doctest: +ELLIPSIS
    ['Difference(30 values, shared witness, ordered...)', 'Barker(30 values, shared witness, ordered...)']
    """
    size, average = check_alphabets(models), all(model.any_length or model.graphs for model in models)
    options: dict[str, Any] = {"witness": "shared", "average": average}
    built: list[DiscreteOperator] = []
    for name in names:
        kind = DISCRETE[check_choice("operator", name, DISCRETE)]
        built.append(Gibbs(size, **options) if kind is Gibbs else kind(size, order=order_from(models), **options))
    return tuple(built)


def check_alphabets(models) -> int:
    """The number of values, the same for all models."""
    sizes = [int(model.n_values) for model in models]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"p and q: expected models of the same vocabulary; got {' and '.join(map(str, sizes))} values. "
            "Give the documents as words, or the models from lksd.adapters.share_vocabulary(p, q)."
        )
    words = [model.vocabulary.words for model in models if model.vocabulary is not None]
    for other in words[1:]:
        if other != words[0]:
            index = next(i for i, (a, b) in enumerate(zip(words[0], other, strict=True)) if a != b)
            raise ValueError(
                f"p and q: expected models of the same vocabulary; word {index} is {words[0][index]!r} in one and "
                f"{other[index]!r} in the other. Give the documents as words, or the models from "
                "lksd.adapters.share_vocabulary(p, q)."
            )
    return sizes[0]


def order_from(models) -> np.ndarray | None:
    """The order by the mean probability of each value, where all models say it."""
    if not all(isinstance(model, KnowsValues) for model in models):
        return None
    return vocabulary_order(np.mean([model.value_probabilities() for model in models], 0))


def operators_for(operator, models) -> tuple[SteinOperator, ...]:
    """A name, an object, a tuple of them, or nothing, as operators for these models, all discrete or all continuous."""
    wanted = tuple(operator) if isinstance(operator, (tuple, list)) else None if operator is None else (operator,)
    if not is_discrete(models[0]):
        return (continuous_operator(wanted, models),)
    size, built = check_alphabets(models), []
    without = values_without_probability(models)
    if without and (wanted is None or any(choice == "difference" or isinstance(choice, Difference) for choice in wanted)):
        warn(
            f"operator: {without} values have probability zero under a model, and the difference operator's mean is then not zero "
            f"under that model{'; Barker alone is used' if wanted is None else ''}. Smooth the probabilities, or use 'barker'."
        )
    default = ("gibbs",) if all(model.graphs for model in models) else ("barker",) if without else BOTH
    for choice in default if wanted is None else wanted:
        if isinstance(choice, str):
            check_choice("operator", choice, NAMES)
        if is_continuous(choice):
            raise ValueError(
                f"operator: expected a discrete one for {models[0]}, whose data are integers; got {str(choice).capitalize()}. "
                "Leave it out, or use 'difference', 'barker' or 'gibbs'."
            )
        if not isinstance(choice, (str, DiscreteOperator)):
            raise TypeError(f"operator: expected an operator or one of {', '.join(DISCRETE)}; got {choice!r}. Give an instance.")
        one = discrete_operators(*models, names=(choice,))[0] if isinstance(choice, str) else choice
        if one.n_values != size:
            raise ValueError(f"operator: expected {size} values as in the model; got {one.n_values}. Give both the same size.")
        built.append(one)
    if not built:
        raise ValueError("operator: expected at least one; got an empty list. Leave it out for the default.")
    return tuple(built)


def values_without_probability(models) -> int:
    """How many values some model can never produce, where the models say it."""
    known = [model.value_probabilities() for model in models if isinstance(model, KnowsValues)]
    return int(np.sum(np.min(known, 0) == 0)) if known else 0


def is_continuous(choice) -> bool:
    """Whether a name or an operator is one for real data."""
    return choice in CONTINUOUS if isinstance(choice, str) else isinstance(choice, tuple(CONTINUOUS.values()))


def continuous_operator(wanted: tuple | None, models) -> SteinOperator:
    """Spherical for models of unit vectors, else Langevin; what is asked for must fit."""
    directional = [model.directional for model in models]
    if any(directional) and not all(directional):
        raise ValueError("p and q: expected models of the same kind of data; one takes unit vectors alone. Compare like with like.")
    name = "spherical" if any(directional) else "langevin"
    if wanted is None:
        return CONTINUOUS[name]()
    choice = wanted[0] if len(wanted) == 1 else None
    found: Any = CONTINUOUS[choice]() if is_continuous(choice) and isinstance(choice, str) else choice
    if not is_continuous(found):
        raise ValueError(f"operator: expected '{name}' for models of continuous data; got {wanted!r}. Leave it out.")
    if any(directional) and isinstance(found, Langevin):
        raise ValueError(f"operator: expected 'spherical' for {models[0]}, a model of unit vectors; got Langevin. Leave it out.")
    return found
