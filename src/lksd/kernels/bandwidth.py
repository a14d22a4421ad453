"""Scales taken from data. The hypothesis tested is the one at the scale reported."""

from __future__ import annotations

import numpy as np

from .._documents import word_counts
from .._validation import check_count, check_number, check_reals

SUBSET = 2_000
_SUBSET_SEED = 0


def check_sample(x) -> np.ndarray:
    rows = check_reals("x", x)
    check_count("x", len(rows), minimum=2)
    return rows


def subset(x: np.ndarray) -> tuple[np.ndarray, str]:
    """All rows up to ``SUBSET``, beyond that a fixed random subset; and how to say so."""
    if len(x) <= SUBSET:
        return x, "all pairs"
    rows = np.random.default_rng(_SUBSET_SEED).choice(len(x), SUBSET, replace=False)
    return x[np.sort(rows)], f"a fixed subset of {SUBSET} rows"


def median_preconditioner(x) -> tuple[np.ndarray, str]:
    """The squared median of the pairwise Euclidean distances."""
    from scipy.spatial.distance import pdist

    rows, pairs = subset(check_sample(x))
    scale = float(np.median(pdist(rows)))
    if scale == 0:
        raise ValueError(
            "x: the median distance between observations is zero, so at least half of the pairs are identical. "
            "Give the scale yourself, for example IMQ(preconditioner=1.0)."
        )
    return np.asarray(scale**2), f"median of {pairs}"


def coordinate_medians(x) -> tuple[np.ndarray, str]:
    """The squared median of |x_id - x_jd| for every coordinate d."""
    from scipy.spatial.distance import pdist

    rows, pairs = subset(check_sample(x))
    scales = np.array([np.median(pdist(column[:, None])) for column in rows.T])
    if not scales.all():
        column = int(np.flatnonzero(scales == 0)[0])
        raise ValueError(
            f"x: the median distance in column {column} is zero, so at least half of its pairs are equal. "
            "Drop the column, or give the scales yourself."
        )
    return scales**2, f"median of each coordinate over {pairs}"


def bag_median(tokens: np.ndarray, words: int) -> tuple[np.ndarray, str]:
    """The median of the squared distances between word counts, at least 1: documents that differ are no closer."""
    check_count("x", len(tokens), minimum=2)
    rows, pairs = subset(tokens)
    counts = word_counts(rows, words)
    common = (counts @ counts.T).toarray()
    squares = np.diag(common)
    distances = (squares[:, None] + squares - 2 * common)[np.triu_indices(len(rows), 1)]
    return np.maximum(np.median(distances), 1.0), f"median of {pairs}"


def covariance_preconditioner(x, shrinkage: float) -> tuple[np.ndarray, str]:
    """(1 - shrinkage) S + shrinkage tr(S)/D I with S the sample covariance."""
    rows = check_sample(x)
    n, dim = rows.shape
    if not 0 <= check_number("shrinkage", shrinkage) <= 1:
        raise ValueError(f"shrinkage: expected a number between 0 and 1; got {shrinkage}. 0 is the paper's choice.")
    if shrinkage == 0 and n <= dim + 1:
        raise ValueError(
            f"x: {n} observations in {dim} dimensions make all Mahalanobis distances equal without shrinkage. "
            f"Set shrinkage > 0, or estimate the covariance on at least {dim + 2} other observations."
        )
    covariance = np.atleast_2d(np.cov(rows, rowvar=False))
    average = np.trace(covariance) / dim
    if average == 0:
        raise ValueError("x: all observations are equal, so their covariance is zero. Give the preconditioner yourself.")
    matrix = (1 - shrinkage) * covariance + shrinkage * average * np.eye(dim)
    return matrix, f"covariance with shrinkage {shrinkage:g}"
