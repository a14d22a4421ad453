"""The Fisher score of real data (Hyvärinen 2005), whose discrepancy is E |s_p - s_r|^2."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..models.base import HasMarginal, HasMarginalScore, kind_of
from ..supports import Coordinates
from .base import Additive, Losses, by_chain, spread_error
from .dataflow import depends_on

EXACT_COLUMNS = 128  # up to which the trace of second derivatives is taken in every column
PROBES = 8  # random directions at each draw, with more columns


def as_metric(given: Any) -> np.ndarray | None:
    """The diagonal of M."""
    try:
        metric = None if given is None else np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        metric = np.zeros(1)  # which is refused
    usable = metric is None or (metric.ndim == 1 and ((metric > 0) & np.isfinite(metric)).all())
    if not usable:
        raise ValueError(
            f"metric: expected one positive number for each column; got {given!r}. Give the "
            "variances of the columns."
        )
    return metric


class Fisher(Additive):
    """The Fisher score H = s'M s + 2 tr(M grad^2 log p(x)), from draws of the latent by Louis'
    identity: with g the gradient of log p(x | z),

        H = 2 E[tr(M grad_x^2 log p(x | z)) + g'M g | x] - s'M s.

    The square of s is a product of means over different chains, so that no noise biases it. It
    needs no normaliser. M is diagonal; the default is the variances of the data, so that units do
    not matter. Positive and bounded data are compared in coordinates without a boundary, unit
    vectors on the sphere, with M = I.

    Parameters
    ----------
    metric : (D,) array, optional
        The diagonal of M, in the coordinates of the test.
    """

    name: ClassVar[str] = "fisher"

    metric: Any = eqx.field(default=None, converter=as_metric)
    lower: Any = None  # the ends of bounded columns
    upper: Any = None
    # of each column, which ends it has: 1 below, 2 above, 3 both; empty for all of space
    ends: tuple[int, ...] = eqx.field(default=(), static=True)
    simplex: int = eqx.field(default=0, static=True)  # the parts of each simplex
    sphere: bool = eqx.field(default=False, static=True)

    def obstacle(self, model, exact):
        kind = kind_of(model)
        if kind not in ("reals", "directions"):
            return "describes integers; use the conditional criterion"
        return None

    def locate(self, domain, x, models, source):
        found = self
        coordinates: Coordinates | None = domain.coordinates
        if coordinates is not None:
            below, above = np.isfinite(coordinates.lower), np.isfinite(coordinates.upper)
            found = replace(
                found,
                lower=np.where(below, coordinates.lower, 0.0),
                upper=np.where(above, coordinates.upper, 0.0),
                simplex=coordinates.simplex,
                ends=tuple((below + 2 * above).tolist()),
            )
        if domain.kind == "directions":
            return replace(found, sphere=True, metric=np.ones(x.shape[1]))
        if self.metric is None:
            metric = np.var(source, axis=0, ddof=1)
            if found.simplex:  # the same in all directions, so that the order of parts is nothing
                metric = np.full_like(metric, metric.mean())
            return replace(found, metric=np.where(metric > 0, metric, 1.0))
        if self.metric.shape != x.shape[1:]:
            raise ValueError(
                f"metric: expected {x.shape[1]} numbers, one for each column; got "
                f"{len(self.metric)}. Give one for each."
            )
        return found

    @property
    def basis(self):
        """The metric and the coordinates, to six digits."""
        parts = (self.metric, self.lower, self.upper)
        told = ["" if part is None else " ".join(f"{one:.6g}" for one in part) for part in parts]
        return "; ".join([*told, f"{self.ends}, {self.simplex}, {self.sphere}"])

    def reorder(self, order):
        parts = self.metric, self.lower, self.upper
        metric, lower, upper = (None if part is None else part[order] for part in parts)
        if self.simplex:  # whose coordinates are ratios of all parts
            metric = self.metric
        ends = tuple(self.ends[i] for i in order) if self.ends else ()
        return replace(self, metric=metric, lower=lower, upper=upper, ends=ends)

    # -------------------------------------------------- coordinates without a boundary

    def place(self, u):
        """x at the coordinates u."""
        if self.simplex:
            return simplex_point(u, self.simplex)
        x, ends = u, np.array(self.ends, int)
        for kind, inverse in enumerate((None, below, above, between)):
            columns = np.flatnonzero(ends == kind)
            if inverse is not None and len(columns):
                given = u[columns], self.lower[columns], self.upper[columns]
                x = x.at[columns].set(inverse(*given))
        return x

    def log_volume(self, u):
        """log |det dx/du|, up to a constant."""
        if self.simplex:
            return jnp.sum(jnp.log(simplex_point(u, self.simplex)))
        ends = np.array(self.ends, int)
        both = u[ends == 3]
        return (
            jnp.sum(u[ends == 1])
            - jnp.sum(u[ends == 2])
            + jnp.sum(jax.nn.log_sigmoid(both) + jax.nn.log_sigmoid(-both))
        )

    def coordinates(self, x):
        """u at x, the inverse of ``place``."""
        if self.simplex:
            return (jnp.log(x.reshape(-1, self.simplex)) @ ratio_basis(self.simplex)).ravel()
        ends, u = np.array(self.ends, int), x
        for kind in (1, 2, 3):
            columns = np.flatnonzero(ends == kind)
            if len(columns):
                left, right = x[columns] - self.lower[columns], self.upper[columns] - x[columns]
                own = (jnp.log(left) if kind != 2 else 0.0) - (jnp.log(right) if kind != 1 else 0.0)
                u = u.at[columns].set(own)
        return u

    @property
    def is_moved(self) -> bool:
        return bool(self.ends)

    def in_coordinates(self, log_density, x):
        """The point, and the log density there as a function of it."""
        if not self.is_moved:
            return x, log_density
        return self.coordinates(x), lambda u: log_density(self.place(u)) + self.log_volume(u)

    # -------------------------------------------------- what is computed

    def exact(self, model, x):
        if not isinstance(model, (HasMarginal, HasMarginalScore)):
            return None
        u, slope = self.marginal_slope(model, x)
        s = self.tangent(u, slope(u))
        return jnp.sum(self.metric * s**2) + 2 * self.trace(slope, u)

    def marginal_slope(self, model, x):
        """The point in the coordinates of the test, and the score there as a function of it."""
        if isinstance(model, HasMarginal):
            u, density = self.in_coordinates(lambda y: model.log_marginal(y), x)
            return u, jax.grad(density)
        u, volume = self.in_coordinates(lambda y: 0.0, x)
        return u, partial(self.moved_score, model.marginal_score, jax.grad(volume))

    def moved_score(self, score, volume, u):
        if not self.is_moved:
            return score(u)
        x, pull = jax.vjp(self.place, u)
        return pull(score(x))[0] + volume(u)

    def tangent(self, u, slope):
        return slope - u * jnp.sum(u * slope) if self.sphere else slope

    def trace(self, slope, u, key=None):
        """tr(M H), H the derivative of ``slope``; on the sphere its Laplacian. From random
        directions where a ``key`` is given for them.
        """

        def along(v):
            return jax.jvp(slope, (u,), (v,))[1] @ v

        size = u.shape[0]
        if self.sphere:
            total = jnp.sum(jax.vmap(along)(jnp.eye(size))) - along(u)
            return total - (size - 1) * (u @ slope(u))
        roots = jnp.sqrt(jnp.asarray(self.metric))
        if key is None:
            return jnp.sum(jax.vmap(along)(jnp.diag(roots)))
        signs = jax.random.rademacher(key, (PROBES, size), roots.dtype)
        return jnp.mean(jax.vmap(along)(signs * roots))

    def likelihood_slope(self, model, x, z):
        u, density = self.in_coordinates(lambda y: model.log_likelihood(y, z), x)
        return u, jax.grad(density)

    def prepare(self, model, x, z):
        """The trace, where it does not depend on z: that of a Gaussian likelihood, for example."""

        def trace(z):
            u, slope = self.likelihood_slope(model, x, z)
            return self.trace(slope, u)

        return None if depends_on(trace, z) else trace(z)

    def observe(self, model, x, z, key, prepared):
        u, slope = self.likelihood_slope(model, x, z)
        probed = not self.sphere and u.shape[0] > EXACT_COLUMNS
        trace = self.trace(slope, u, key if probed else None) if prepared is None else prepared
        g = self.tangent(u, slope(u))
        return (trace + jnp.sum(self.metric * g**2))[None]

    def evaluate(self, x, means, observed):
        """``means`` are those of the score in x."""
        if self.is_moved:
            means = self.moved_means(x, means)
        if self.sphere:
            means = means - x[:, None, None] * np.sum(x[:, None, None] * means, -1, keepdims=True)
        s, metric = by_chain(means), np.asarray(self.metric)
        chains, total = s.shape[1], s.sum(1)
        squares = np.sum(metric * total**2, -1) - np.sum(metric * s**2, (1, 2))
        cross = squares / (chains * (chains - 1)) if chains > 1 else np.sum(metric * total**2, -1)
        values = 2 * observed[..., 0].mean((1, 2)) - cross
        linear = observed[..., 0] - np.einsum("ncbd,d,nd->ncb", means, metric, total / chains)
        first = 2 * spread_error(linear.reshape(len(linear), -1))
        return Losses(values, np.sqrt(first**2 + product_variance(means, metric)))

    def moved_means(self, x, means):
        """Scores of the coordinates from scores of x."""
        lower = np.where(np.isin(self.ends, (1, 3)), self.lower, -np.inf)
        upper = np.where(np.isin(self.ends, (2, 3)), self.upper, np.inf)
        return Coordinates(lower, upper, self.simplex).score(x, means)


def product_variance(means: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Of the product of the errors of two chains' mean scores, averaged over all pairs of chains:
    what is left of the noise where the terms of first order are small.
    """
    chains, batches = means.shape[1:3]
    if chains < 2 or batches < 2:
        return np.zeros(len(means))
    each = means.var(2, ddof=1).mean(1) / batches  # of one chain's mean
    return np.sum((metric * each) ** 2, -1) * 2 / (chains * (chains - 1))


def below(u, lower, upper):
    return lower + jnp.exp(u)


def above(u, lower, upper):
    return upper - jnp.exp(-u)


def between(u, lower, upper):
    return lower + (upper - lower) * jax.nn.sigmoid(u)


def ratio_basis(parts: int) -> np.ndarray:
    """An orthonormal basis of the vectors that add up to zero."""
    return Coordinates(np.zeros(parts), np.full(parts, np.inf), parts).basis


def simplex_point(u, parts: int):
    return jax.nn.softmax(u.reshape(-1, parts - 1) @ ratio_basis(parts).T, axis=-1).ravel()
