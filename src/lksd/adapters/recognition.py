"""Fitted objects of other packages, known by the package that they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..models import LatentVariableModel
from .fitted import from_gensim, from_sklearn, from_tomotopy

READERS: dict[str, Callable[[Any], LatentVariableModel]] = {
    "gensim": from_gensim,
    "sklearn": from_sklearn,
    "tomotopy": from_tomotopy,
}
EXPECTED = (
    "a lksd.models.LatentVariableModel, or a fitted model of gensim, scikit-learn or tomotopy"
)


def recognise(value: Any) -> LatentVariableModel | None:
    """A model as it is, or what the adapter of its package makes of it; None for anything else."""
    if isinstance(value, LatentVariableModel):
        return value
    reader = READERS.get(type(value).__module__.partition(".")[0])
    return None if reader is None else reader(value)


def adapter_for(value: Any) -> str:
    """What to do with an object that is not a model by itself."""
    package = type(value).__module__.partition(".")[0]
    if package in ("pymc", "numpyro"):
        return f"Read it with lksd.adapters.from_{package}."
    if isinstance(value, type):
        return "Give an instance."
    if callable(value):
        return "Read a NumPyro program with lksd.adapters.from_numpyro."
    return "Give an instance."
