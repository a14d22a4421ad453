"""The conditional log score of integers: minus the log pseudo-likelihood (Besag 1975)."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from ..models.base import ANY, Discrete, SumsValues
from .base import Additive, Losses, by_chain, spread_error

FEW = 32  # values up to which the probabilities of all of them are taken


class Conditional(Additive):
    """The conditional log score -sum_d log p(x_d | x_-d), whose discrepancy is the sum of the
    Kullback-Leibler divergences of all conditional distributions.

    It needs ratios of probabilities alone: 1 / p(x_d | x_-d) is the sum over all values v of
    p(x with x_d -> v) / p(x). Where the models do not offer that sum and there are many values, it
    is the pairwise form: the sum of log(1 + p(x with x_d -> v) / p(x)) over the two neighbours v of
    x_d, which is as proper, since each pair is seen from both of its ends. The smallest and the
    largest value have one neighbour, and log 2 stands for the other in every model: they are no
    neighbours of each other, since draws given the one say nothing about the other. The logarithm
    of a mean over draws is corrected for its bias by the jackknife over chains.
    """

    name: ClassVar[str] = "conditional"

    pairwise: bool = eqx.field(static=True, default=False)

    def obstacle(self, model, exact):
        if not isinstance(model, Discrete):
            return "describes real numbers; use the Fisher criterion"
        return None

    def locate(self, domain, x, models, source):
        known = [one for one in models if isinstance(one, Discrete)]  # estimates have their form
        few = all(one.n_values <= FEW or isinstance(one, SumsValues) for one in known)
        return Conditional(pairwise=not few)

    @property
    def basis(self):
        return "the neighbours of each value" if self.pairwise else "all values"

    def targets(self, model: Any, x: np.ndarray) -> np.ndarray:
        if self.pairwise:
            steps = np.stack([x + 1, x - 1], -1).clip(0, model.n_values - 1)
        elif isinstance(model, SumsValues):
            steps = np.full((*x.shape, 1), ANY)
        else:
            steps = np.broadcast_to(np.arange(model.n_values), (*x.shape, model.n_values))
        return np.where(x[..., None] >= 0, steps, -1)

    def evaluate(self, x, means, observed):
        """``means`` are those of the ratios (n, C, B, D, M)."""
        there = x >= 0
        each = 1 + means if self.pairwise else means.sum(-1, keepdims=True)
        each = np.where(there[:, None, None, :, None], each, 1.0)
        # one ratio is that of x itself; control variates can lead below it
        chains, total = by_chain(each), np.maximum(each.mean((1, 2)), 1.0)
        values = np.log(total)
        if chains.shape[1] > 1:  # the jackknife over chains: log of a mean is too small
            k = chains.shape[1]
            others = np.maximum((chains.sum(1, keepdims=True) - chains) / (k - 1), 1.0)
            values = k * values - (k - 1) * np.log(others).mean(1)
        linear = np.sum(each / total[:, None, None], (3, 4))
        errors = spread_error(linear.reshape(len(linear), -1))
        return Losses(values.sum((1, 2)), errors, values.sum(2))
