"""Columns by their names: those of a data frame in the order that a model was fitted with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps

import numpy as np

from .._validation import column_names, column_order, to_numpy
from ..stein import DiscreteOperator
from .checks import row_digests
from .result import ScoreEstimate


def by_column_name(estimate: Callable[..., ScoreEstimate]) -> Callable[..., ScoreEstimate]:
    """Give ``estimate`` the columns in the model's order, where both sides have names, and its scores in that of the data."""

    @wraps(estimate)
    def wrapper(model, x, **options) -> ScoreEstimate:
        names = column_names(x)
        order = column_order("x", names, getattr(model, "columns", None), f"the columns of {model}")
        if order is None:
            found = estimate(model, x, **options)
            return found if isinstance(found.operators[0], DiscreteOperator) else replace(found, columns=names)
        found = with_columns(estimate(model, to_numpy("x", x)[:, order], **options), np.argsort(order))
        return replace(found, columns=names, observed=row_digests(found.operators[0].observations(x)))

    return wrapper


def with_columns(scores: ScoreEstimate, order: Sequence[int] | np.ndarray) -> ScoreEstimate:
    """The scores with their coordinates in another order."""
    support = None if scores.support is None else scores.support.reordered(order)
    return scores.changed(lambda name, part: np.take(part, order, 3 if name == "batch_means" else 1), support=support)
