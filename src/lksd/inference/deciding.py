"""Which words decide a comparison of discrete models."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..results.details import Words
from ..results.records import read_only
from ..scores.checks import speaks_of_words
from .contrasts import Contrasts, against_last


def deciding_words(test: Contrasts, models: list[Any]) -> Words | None:
    """What each word of the data adds to the difference, the largest first; None for real data and graphs."""
    if any(model.graphs for model in models) or test.sums.sensitivity is None or test.alike.any():
        return None
    x, n = test.hypothesis.x, len(test.hypothesis.x)
    sums = np.tensordot(against_last(2)[0], test.sums.sensitivity.positions, 1) / (n * (n - 1))
    ids, inverse = np.unique(x[x >= 0], return_inverse=True)
    totals = np.bincount(inverse, sums[x >= 0])
    order = np.argsort(-np.abs(totals), kind="stable")
    vocabulary = next((model.vocabulary for model in models if getattr(model, "vocabulary", None) is not None), None)
    names = () if vocabulary is None else tuple(vocabulary.words[i] for i in ids[order])
    return Words(read_only(ids[order]), read_only(totals[order]), names, speaks_of_words(*models))
