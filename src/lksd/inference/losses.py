"""Additive losses: one number for each observation and model, whoever computed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_count, check_finite, to_numpy
from ..domains.reals import row_labels, row_names
from ..statistics import ustatistic
from ..statistics.nulls import Edgeworth, expansions, projections
from ..statistics.ustatistic import Pairs, mean_replicates
from ..stein import GramSums


class Losses(NamedTuple):
    """An additive criterion, with each model's loss at every observation.

    The mean of d is the U-statistic of H_ij = (d_i + d_j) / 2, whose sums are known without H.
    """

    criterion: str
    scores: tuple[np.ndarray, ...]  # (n,) of each model
    notes: tuple[str, ...] = ()
    kernel: str = ""
    smoothing: str = ""
    order: None = None

    @property
    def x(self) -> np.ndarray:
        return self.scores[0]

    @property
    def operator_name(self) -> str:
        return self.criterion

    def contributions(self, rows: np.ndarray) -> np.ndarray:
        n = rows.shape[-1]
        return (2 * rows - rows.sum(-1, keepdims=True) / (n - 1)) / (n * (n - 2))

    def only(self, rows: np.ndarray) -> Losses:
        """The same on some of the observations."""
        return self._replace(scores=tuple(loss[rows] for loss in self.scores))

    def sums(self, contrasts: np.ndarray, weights: np.ndarray | None, **options) -> GramSums:
        losses = np.stack(self.scores)
        n, d = losses.shape[1], contrasts @ losses
        total = d.sum(1)
        return GramSums(
            model_rows=((n - 2) * losses + losses.sum(1, keepdims=True)) / 2,
            model_diagonal=losses,
            rows=((n - 2) * d + total[:, None]) / 2,
            squares=((n - 2) * d @ d.T + np.outer(total, total)) / 2,
            diagonal=d,
            products=np.zeros((*d.shape, 0)),
        )

    def at_pairs(self, order: np.ndarray, contrasts: np.ndarray) -> np.ndarray:
        losses = contrasts @ np.stack(self.scores)
        return (losses[:, order[0::2]] + losses[:, order[1::2]]) / 2

    def replicates(self, sums: GramSums, weights: np.ndarray, pairs: Pairs) -> np.ndarray:
        return mean_replicates(sums.diagonal, weights, pairs)

    def expansion(self, sums: GramSums, rows: np.ndarray, pairs: Pairs, seed: int) -> Edgeworth:
        d, g = ustatistic.centred(pairs.of(sums.diagonal)), projections(rows)
        quadratic = np.sum(g * d * (g.sum(1, keepdims=True) - g), 1)
        centred = ((rows.shape[1] - 2) * d) / 2  # the rows of H for a difference of zero
        return expansions(centred, np.arange(rows.shape[1]), quadratic)


def read_losses(given: Mapping[str, Any]) -> tuple[Losses, tuple[str, ...] | None]:
    """The losses of each model by the name of its argument, and the labels of the observations."""
    found: dict[str, np.ndarray] = {}
    labels: dict[str, tuple[str, ...] | None] = {}
    index: dict[str, Any] = {}
    for name, value in given.items():
        losses = to_numpy(name, value)
        if losses.ndim != 1 or losses.dtype.kind not in "iufb":
            raise ValueError(
                f"{name}: expected one number for each observation, shape (n,); got shape "
                f"{losses.shape} of {losses.dtype}. Give the loss of every observation."
            )
        found[name] = check_losses(name, losses.astype(np.float64))
        if (own := row_labels(value)) is not None:
            index[name], labels[name] = own, row_names(value)
    first = next(iter(found))
    check_count(first, len(found[first]))
    for name, losses in found.items():
        if len(losses) != len(found[first]):
            raise ValueError(
                f"{first} and {name}: expected losses at the same observations; got "
                f"{len(found[first])} and {len(losses)}. Compute both on the same data."
            )
    different = [name for name in index if not index[name].equals(next(iter(index.values())))]
    if different:
        one, other = next(iter(index)), different[0]
        raise ValueError(
            f"{one} and {other}: expected the same observations in the same order; their labels "
            "differ. Sort both by their labels."
        )
    return Losses("loss", tuple(found.values())), next(iter(labels.values()), None)


def check_losses(name: str, losses: np.ndarray) -> np.ndarray:
    """Finite losses; an infinite one decides everything by itself, and is not averaged."""
    infinite = np.flatnonzero(losses == np.inf)
    if infinite.size:
        raise ValueError(
            f"{name}: expected finite losses; that of observation {infinite[0]} is infinite "
            f"({infinite.size} such observations). The model says that it cannot happen: leave it "
            "out for all models, or give it a small probability."
        )
    return check_finite(name, losses)
