"""Trials with factor models that are wrong in the same ways: too few factors against more."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

ITEMS, FACTORS = 25, 5


@cache
def answers(seed: int = 1, persons: int = 2_800) -> np.ndarray:
    """Six ordered answers to 25 items: five correlated factors, cross-loadings, a style of
    answering, items that go together in pairs, skewed thresholds.
    """
    rng = np.random.default_rng(seed)
    own = np.repeat(np.eye(FACTORS), ITEMS // FACTORS, axis=0)
    signs = np.where(rng.random((ITEMS, 1)) < 0.7, 1, -1)
    loadings = own * rng.uniform(0.45, 0.85, (ITEMS, 1)) * signs
    loadings += rng.normal(0, 0.12, loadings.shape)
    correlations = 0.25 + 0.75 * np.eye(FACTORS)
    factors = rng.normal(size=(persons, FACTORS)) @ np.linalg.cholesky(correlations).T
    style = rng.normal(size=(persons, 1)) * np.where(rng.random(ITEMS) < 0.5, 0.35, -0.1)
    noise = rng.normal(size=(persons, ITEMS))
    noise[:, 1::5] += 0.5 * noise[:, 0::5]
    common = np.diag(loadings @ correlations @ loadings.T)
    y = factors @ loadings.T + style + np.sqrt(np.maximum(0.2, 1 - common)) * noise
    y = (y - y.mean(0)) / y.std(0)
    thresholds = np.array([-1.6, -0.9, -0.2, 0.5, 1.3]) + rng.normal(0, 0.7, (ITEMS, 1))
    return 1.0 + (y[:, :, None] > thresholds).sum(-1)


def fitted_score(training: np.ndarray, factors: int, x: np.ndarray) -> np.ndarray:
    """The score of a factor model fitted by maximum likelihood."""
    from sklearn.decomposition import FactorAnalysis

    model = FactorAnalysis(factors, max_iter=2_000, tol=1e-4).fit(training)
    return -(x - model.mean_) @ model.get_precision()


def split(data: np.ndarray, training: int, n: int, counts: tuple[int, int]):
    """Trials that fit both models on some rows and compare them on others."""

    def trial(rng):
        rows = data[rng.permutation(len(data))]
        x = rows[training : training + n]
        return x, *(fitted_score(rows[:training], count, x) for count in counts)

    return trial


def questionnaire(smaller: int, larger: int, n: int):
    return split(answers(), 500, n, (smaller, larger))


@cache
def abilities(tables: Path) -> np.ndarray:
    """24 tests of school children, each over its standard deviation."""
    rows = np.genfromtxt(tables / "holzinger_swineford.csv", delimiter=",", names=True)
    names = [name for name in rows.dtype.names if name.startswith("t")][:24]
    x = np.column_stack([rows[name] for name in names])
    x = x[~np.isnan(x).any(1)]
    return x / x.std(0)


def holzinger_swineford(tables: Path, smaller: int, larger: int):
    return split(abilities(tables), 150, 151, (smaller, larger))
