"""Which words decide a comparison of discrete models."""

from __future__ import annotations

import numpy as np

from ..domains import Domain, Integers
from ..results.details import Words
from ..results.records import read_only
from .contrasts import Contrasts, against_last


def deciding_words(test: Contrasts, domain: Domain) -> Words | None:
    """What each word of the data adds to the difference, the largest first; None for real data and graphs."""
    if not isinstance(domain, Integers) or domain.kind == "graphs" or test.sums.sensitivity is None or test.alike.any():
        return None
    x, n = test.hypothesis.x, len(test.hypothesis.x)
    sums = np.tensordot(against_last(2)[0], test.sums.sensitivity.positions, 1) / (n * (n - 1))
    ids, inverse = np.unique(x[x >= 0], return_inverse=True)
    totals = np.bincount(inverse, sums[x >= 0])
    order = np.argsort(-np.abs(totals), kind="stable")
    vocabulary = domain.vocabulary
    names = () if vocabulary is None else tuple(vocabulary.words[i] for i in ids[order])
    return Words(read_only(ids[order]), read_only(totals[order]), names, domain.documents)
