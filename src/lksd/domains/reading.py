"""From data and models to their domain."""

from __future__ import annotations

from typing import Any

from .._validation import joined
from ..models.base import kind_of as kind_of_model
from ..options import Reading
from .base import Domain, Observations, check_enough, is_estimate
from .integers import Categories, Documents, Graphs
from .reals import Directions, Reals

DOMAINS: dict[str, type[Domain]] = {
    one.kind: one for one in (Reals, Directions, Categories, Documents, Graphs)
}


def read_data(
    x: Any, models: dict[str, Any], reading: Reading, least: int
) -> tuple[Domain, Observations, list[Any]]:
    """The domain that all models share, the observations, and the models as they take these."""
    check_enough(x, least)
    found = domain_of(models).read(x, list(models.values()), reading)
    check_enough(found[1].values, least)
    return found


def domain_of(models: dict[str, Any]) -> type[Domain]:
    """The kind of data that all models describe."""
    kinds = {name: kind_of(model) for name, model in models.items()}
    words = {name: DOMAINS[kind].describes for name, kind in kinds.items()}
    if len(set(words.values())) > 1:
        said = " and ".join(f"{name} describes {what}" for name, what in words.items())
        raise ValueError(
            f"{joined(models)}: expected models of the same kind of data; {said}. "
            "Compare models of the same data."
        )
    own = set(kinds.values())
    if "directions" in own and len(own) > 1:
        raise ValueError(
            "p and q: expected models of the same kind of data; one takes unit vectors alone. "
            "Compare like with like."
        )
    return DOMAINS[own.pop() if len(own) == 1 else "categories"]


def kind_of(model: Any) -> str:
    """The name of the kind of data that a model, or scores, describe."""
    return model.kind if is_estimate(model) else kind_of_model(model)
