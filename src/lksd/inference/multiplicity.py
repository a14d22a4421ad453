"""Several hypotheses at once: the distribution of the largest statistic (single-step max-T)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from .calibration import Bootstrap, NullDistribution

NORMAL_DRAWS = 19_999


def largest(replicates: Float[np.ndarray, "A B"], two_sided: bool) -> NullDistribution:
    """The distribution of max_a T_a (or max_a |T_a|) from joint replicates (A, B)."""
    return Bootstrap.of((np.abs(replicates) if two_sided else replicates).max(0))  # NaN, a resample without spread, stays


def normal_replicates(rows: Float[np.ndarray, "A n"], seed: int) -> Float[np.ndarray, "A B"]:
    """Draws from N(0, corr psi) with psi_i^a proportional to r_i^a - mean r^a: (A, B)."""
    centred = rows - rows.mean(1, keepdims=True)
    scale = np.linalg.norm(centred, axis=1, keepdims=True)
    psi = centred / np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(psi @ psi.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return root @ np.random.default_rng(seed).standard_normal((len(rows), NORMAL_DRAWS))
