"""From what a caller asks for to criteria of the data and all models of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._validation import check_choice
from ..models.base import LatentVariableModel
from .base import CRITERIA, Additive, Criterion


def read_criterion(choice: Any, name: str = "criterion") -> Criterion:
    """A criterion from an object, a class or a name."""
    if isinstance(choice, Criterion):
        return choice
    if isinstance(choice, type) and issubclass(choice, Criterion):
        return choice()
    if not isinstance(choice, str):
        raise TypeError(
            f"{name}: expected a criterion of lksd.criteria or one of {', '.join(CRITERIA)}; got "
            f"{choice!r}. Give a name or an object."
        )
    check_choice(name, choice, list(CRITERIA))
    return CRITERIA[choice]()


def read_criteria(choice: Any) -> tuple[Additive, ...]:
    """Additive criteria, each once."""
    every = choice if isinstance(choice, (tuple, list)) else (choice,)
    found = [read_criterion(one, "criteria") for one in every]
    for one in found:
        if not isinstance(one, Additive):
            raise ValueError(
                f"criteria: expected criteria that add up over the observations; got {one}. The "
                "scores themselves are what it takes: leave it out."
            )
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise ValueError(f"criteria: expected each once; got {', '.join(names)}. Leave one out.")
    return tuple(one for one in found if isinstance(one, Additive))


def locate_criteria(
    criteria: Sequence[Additive],
    domain: Any,
    supports: dict[str, Any],
    observations: Any,
    models: Sequence[Any],
    exact: bool | None,
    holdout: np.ndarray | None = None,
) -> tuple[Additive, ...]:
    """The criteria with what they take from the data; one that a model does not have is refused."""
    if not criteria:
        return ()
    for one in criteria:
        for model in models:
            if isinstance(model, LatentVariableModel):
                obstacle = one.obstacle(model, exact)
                if obstacle is not None:
                    raise ValueError(
                        f"criterion: {one} is not to be had, since {model} {obstacle}."
                    )
    if domain.coordinates is None and supports:
        domain = domain.located(supports, observations, None, None)
    x = domain.transform("x", observations.values)
    return tuple(
        one.locate(domain, x, models, x if holdout is None else holdout) for one in criteria
    )
