"""Cross-fitted losses: which observations are left out together, and the variance of their mean."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import fdtrc


def assign_folds(n: int, folds: int, seed: int, repeat: int = 0) -> Int[np.ndarray, " n"]:
    """The fold of each observation: random, and of equal sizes up to one."""
    order = np.random.default_rng([seed, repeat]).permutation(n)
    found = np.empty(n, dtype=np.int64)
    found[order] = np.arange(n) % folds
    return found


def centre_within(
    losses: Float[np.ndarray, "n models"], fold: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n models"]:
    """Losses with the same means whose spread is that within the folds.

    Given the fitted models, the mean of the losses of a fold is the risk of its model plus noise
    that the spread within the fold tells. So the error of the mean over all folds, as an estimate
    of the mean risk of all the models that were fitted, is that of the pooled variance within them
    (Bayle, Bayle, Janson and Mackey 2020), where the fits are stable. It has n - folds degrees of
    freedom, while a sample variance counts n - 1.
    """
    n, sizes = len(losses), np.bincount(fold)
    sums = np.zeros((len(sizes), losses.shape[1]))
    np.add.at(sums, fold, losses)
    within = losses - (sums / sizes[:, None])[fold]
    return losses.mean(0) + within * np.sqrt((n - 1) / (n - len(sizes)))


def spread_pvalue(difference: Float[np.ndarray, " n"], fold: Int[np.ndarray, " n"]) -> float:
    """For H0: the folds' means of a difference vary no more than its spread within them explains
    (an F test).
    """
    sizes = np.bincount(fold)
    sums = np.bincount(fold, weights=difference)
    centres, between, within = sums / sizes, len(sizes) - 1, len(fold) - len(sizes)
    inner = np.sum((difference - centres[fold]) ** 2) / within
    outer = np.sum(sizes * (centres - difference.mean()) ** 2) / between
    return float(fdtrc(between, within, outer / inner)) if inner > 0 else 1.0
