"""The options of a call as plain values, to be kept with its result."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._validation import column_names
from ..scores import ScoreEstimate


def as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Every option as it was given; objects by their text, arrays by their shape."""
    return {name: plain(value) for name, value in options.items()}


def plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, ScoreEstimate):
        return f"scores {value.method}"
    if isinstance(value, (tuple, list)) and len(value) <= 20:
        return [plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        return f"array of shape {value.shape}" if value.shape else value.item()
    if column_names(value) is not None:
        return f"data frame of shape {tuple(value.shape)}"
    return getattr(value, "__name__", str(value))
