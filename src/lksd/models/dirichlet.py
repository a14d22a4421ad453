"""Dirichlet process mixtures of Gaussians, conditioned on training data (Section 4.2, Appendix A).

The cluster means are integrated out: the latent is the partition of the training data alone, and
given it the predictive density of a new observation is a finite Gaussian mixture.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from .._jax import as_float64
from .._validation import check_finite
from .base import LatentVariableModel, simulation
from .gaussian import LOG_2PI

ENUMERATED = 8  # training points up to which all partitions are summed (4,140 of them)
SWEEPS = 200  # before a partition counts as a draw from its posterior


class DirichletProcessMixture(LatentVariableModel):
    """The predictive law of x given ``train``: x | c ~ N(c, likelihood_variance I), c ~ F, F ~ DP.

    Parameters
    ----------
    base_mean : float or (D,) array
    base_variance, likelihood_variance : float or (D,) array
        The base measure is N(base_mean, base_variance I).
    concentration : float
        The total mass of the base measure.
    train : (n_train, D) array
    """

    base_mean: np.ndarray = eqx.field(converter=as_float64)
    base_variance: np.ndarray = eqx.field(converter=as_float64)
    likelihood_variance: np.ndarray = eqx.field(converter=as_float64)
    concentration: np.ndarray = eqx.field(converter=as_float64)
    train: np.ndarray = eqx.field(converter=as_float64)

    def __check_init__(self):
        if self.train.ndim != 2 or 0 in self.train.shape:
            raise ValueError(
                f"train: expected an (n_train, D) array; got shape {self.train.shape}. Give one "
                "row a training point."
            )
        check_finite("train", self.train)
        for name in ("base_mean", "base_variance", "likelihood_variance"):
            value = getattr(self, name)
            if value.shape not in ((), self.train.shape[1:]):
                raise ValueError(
                    f"{name}: expected a number or shape {self.train.shape[1:]}; got "
                    f"{value.shape}. Give one for each coordinate."
                )
            check_finite(name, np.atleast_1d(value))
        for name in ("base_variance", "likelihood_variance", "concentration"):
            value = getattr(self, name)
            if not (value > 0).all():
                raise ValueError(
                    f"{name}: expected positive; got {value}. Variances and the total mass are "
                    "positive."
                )

    complete: ClassVar[bool] = False  # p(train) is missing
    support: ClassVar[Any] = "real"

    # -------------------------------------------------- the partition of the training data

    def log_prior(self, z):
        """log p(partition | train), up to a constant: the urn scheme times each cluster's marginal
        likelihood.
        """
        counts, sums = self.clusters(z)
        return jnp.sum(self.log_block(counts, sums))

    def clusters(self, labels):
        """Size and sum (about the base mean) of each of n_train possible clusters."""
        members = jax.nn.one_hot(labels, len(self.train), dtype=float)
        return members.sum(0), members.T @ (self.train - self.base_mean)

    def log_block(self, counts, sums):
        """What a cluster adds to the log posterior of a partition; 0 for an empty one."""
        ratio = jnp.broadcast_to(self.base_variance / self.likelihood_variance, sums.shape[1:])
        shrunk = 1 + counts[:, None] * ratio
        log_marginal = (
            jnp.sum(sums**2 * ratio / (self.likelihood_variance * shrunk) - jnp.log(shrunk), -1) / 2
        )
        filled = counts > 0
        urn = jnp.log(self.concentration) + gammaln(jnp.where(filled, counts, 1.0))
        return jnp.where(filled, urn + log_marginal, 0.0)

    def log_predictives(self, x, counts, sums):
        """log N(x; .) for a cluster with these members, its mean integrated out; an empty one is
        the base measure's.
        """
        gain, variance = self.predictive(counts[:, None])  # one column, or one for each coordinate
        squares = (x - self.base_mean - gain * sums) ** 2
        repeats = x.shape[-1] // variance.shape[-1]
        quadratic = (
            jnp.sum(squares, -1) / variance[:, 0]
            if repeats > 1
            else jnp.sum(squares / variance, -1)
        )
        return -(quadratic + repeats * jnp.sum(jnp.log(variance), -1) + x.shape[-1] * LOG_2PI) / 2

    def predictive(self, counts):
        """The weight of a cluster's sum in its predictive mean, and the predictive variance."""
        gain = self.base_variance / (self.likelihood_variance + counts * self.base_variance)
        return gain, self.likelihood_variance * (1 + gain)

    def initial(self, key, x):
        return jax.random.randint(key, (len(self.train),), 0, len(self.train))

    def sweep(self, uniforms, labels):
        """Random-scan Gibbs, reversible for p(partition | train): n_train times one label given the
        others.

        ``uniforms`` are 2 n_train numbers in (0, 1): half for the choice of places, half for the
        labels. Returns the labels, and size and sum of each cluster.
        """
        count = len(self.train)
        counts, sums = self.clusters(labels)
        places, centred = jnp.arange(count), self.train - self.base_mean

        def update(state, uniforms):
            labels, counts, sums = state
            site = jnp.minimum((uniforms[0] * count).astype(labels.dtype), count - 1)
            own = places == labels[site]
            counts, sums = counts - own, sums - jnp.where(own[:, None], centred[site], 0.0)
            # an empty place: there is one, the site's own if no other
            new = places == jnp.argmin(counts)
            # The largest density has a positive weight: those of empty places are all the new
            # cluster's.
            log_densities = self.log_predictives(self.train[site], counts, sums)
            below = jnp.cumsum(
                jnp.where(new, self.concentration, counts)
                * jnp.exp(log_densities - jnp.max(log_densities))
            )
            own = places == jnp.sum(below < uniforms[1] * below[-1])
            labels = jnp.where(places == site, jnp.argmax(own).astype(labels.dtype), labels)
            return (labels, counts + own, sums + jnp.where(own[:, None], centred[site], 0.0)), None

        return jax.lax.scan(update, (labels, counts, sums), (uniforms[:count], uniforms[count:]))[0]

    # -------------------------------------------------- a new observation

    def log_likelihood(self, x, z):
        """log p(x | partition): an old cluster with probability proportional to its size, or a new
        one.
        """
        counts, sums = self.clusters(z)
        return self.log_mixture(x, counts, sums)

    def log_mixture(self, x, weights, sums, counts=None):
        """The predictive mixture; ``weights`` are the (expected) sizes of clusters of ``counts``
        members.
        """
        counts = weights if counts is None else counts
        old = jnp.log(weights) + self.log_predictives(x, counts, sums)
        new = jnp.log(self.concentration) + self.log_predictives(
            x, jnp.zeros(1), jnp.zeros((1, x.shape[0]))
        )
        return logsumexp(jnp.concatenate([old, new])) - jnp.log(
            len(self.train) + self.concentration
        )

    def gibbs(self, key, x, z):
        """A sweep over the training data as proposal, accepted by p(x | z') / p(x | z): the sweep
        is reversible for p(z).
        """
        uniforms = jax.random.uniform(key, (2 * len(self.train) + 1,), x.dtype)
        proposal, counts, sums = self.sweep(uniforms[1:], z)
        log_ratio = self.log_mixture(x, counts, sums) - self.log_likelihood(x, z)
        return jnp.where(jnp.log(uniforms[0]) < log_ratio, proposal, z)

    @simulation
    def sample(self, key):
        key_start, key_sweeps, key_label, key_x = jax.random.split(key, 4)
        start = self.initial(key_start, None)
        uniforms = jax.random.uniform(key_sweeps, (SWEEPS, 2 * len(self.train)))
        z = jax.lax.scan(lambda labels, one: (self.sweep(one, labels)[0], None), start, uniforms)[0]
        counts, sums = self.clusters(z)
        counts, sums = (
            jnp.append(counts, 0.0),
            jnp.concatenate([sums, jnp.zeros((1, sums.shape[1]))]),
        )
        weights = counts.at[-1].set(self.concentration)
        label = jax.random.categorical(key_label, jnp.log(weights))
        gain, variance = self.predictive(counts[label])
        noise = jax.random.normal(key_x, sums.shape[1:], sums.dtype)
        return z, self.base_mean + gain * sums[label] + jnp.sqrt(variance) * noise

    @property
    def log_marginal(self):
        """log p(x | train) as a function of x, by all partitions of a small training set; None for
        a larger one.
        """
        return self.enumerated if len(self.train) <= ENUMERATED else None

    def enumerated(self, x):
        members, blocks = subsets(len(self.train)), partitions(len(self.train))
        counts, sums = jnp.asarray(members.sum(1)), members @ (self.train - self.base_mean)
        probabilities = jax.nn.softmax(blocks @ self.log_block(counts, sums))
        return self.log_mixture(x, counts * (probabilities @ blocks), sums, counts)


def subsets(count: int) -> np.ndarray:
    """The members of every non-empty subset, as (2^count - 1, count) zeros and ones."""
    return (np.arange(1, 2**count)[:, None] >> np.arange(count) & 1).astype(np.float64)


@cache
def partitions(count: int) -> np.ndarray:
    """Which subsets are the blocks of each partition of ``count`` points: (Bell(count), 2^count -
    1) zeros and ones.
    """
    found: list[list[int]] = [[]]
    for point in range(count):
        alone = [[*blocks, 1 << point] for blocks in found]
        joined = [
            [*blocks[:k], block | 1 << point, *blocks[k + 1 :]]
            for blocks in found
            for k, block in enumerate(blocks)
        ]
        found = alone + joined
    table = np.zeros((len(found), 2**count - 1))
    for row, blocks in zip(table, found, strict=True):
        row[np.array(blocks) - 1] = 1
    return table
