"""A real question on real data: how many factors describe handwritten digits?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..models import FactorAnalysis

QUESTION = "Is a factor analysis with 10 factors closer to {n} held-out handwritten digits than one with 2?"


class Problem(NamedTuple):
    """Data that neither model was fitted on, with pictures of them."""

    x: np.ndarray
    images: np.ndarray
    p: FactorAnalysis
    q: FactorAnalysis
    names: tuple[str, str]


def digits() -> Problem:
    """Two factor analyses fitted on one half of scikit-learn's digits, and the other half."""
    try:
        from sklearn import decomposition
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("the demo needs scikit-learn, which is not installed. Run: pip install 'lksd[sklearn]'") from error
    loaded = load_digits()
    pixels = loaded.data[:, loaded.data.std(axis=0) > 2] / 16  # those that are nearly always white carry nothing
    order = np.random.default_rng(0).permutation(len(pixels))
    train, test = order[:900], order[900:]

    def fitted(factors: int) -> FactorAnalysis:
        model = decomposition.FactorAnalysis(factors).fit(pixels[train])
        return FactorAnalysis(model.components_.T, model.noise_variance_, model.mean_)

    names = ("factor analysis with 2 factors", "factor analysis with 10 factors")
    return Problem(pixels[test], 16 - loaded.images[test], fitted(2), fitted(10), names)
