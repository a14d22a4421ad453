"""A model from a pair of log densities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..models import LatentVariableModel
from ..models.base import simulation


class Pair(LatentVariableModel):
    """A model whose log densities are given as functions."""

    prior: Callable
    likelihood: Callable
    support: Any = eqx.field(static=True, kw_only=True, default=None)  # type: ignore[misc]

    def log_prior(self, z):
        return self.prior(z)

    def log_likelihood(self, x, z):
        return self.likelihood(x, z)


class SimulatedPair(Pair):
    """With a function that simulates."""

    simulate: Callable

    @simulation
    def sample(self, key):
        return self.simulate(key)


class StartedPair(Pair):
    """With a latent near which chains begin, or a function that says where."""

    start: Any

    def initial(self, key, x):
        if callable(self.start):
            return self.start(key, x)
        leaves, structure = jax.tree.flatten(self.start)
        keys = jax.random.split(key, len(leaves))
        moved = [
            leaf + jax.random.uniform(k, leaf.shape, minval=-1.0, maxval=1.0)
            for leaf, k in zip(leaves, keys, strict=True)
        ]
        return jax.tree.unflatten(structure, moved)


def from_functions(
    log_prior: Callable,
    log_likelihood: Callable,
    *,
    initial: Any = None,
    sample: Callable | None = None,
    support: Any = None,
) -> Pair:
    """A model of one observation from its two log densities, as BlackJAX users have them.

    Without ``sample`` every chain tunes its own step size and metric as it starts
    (``lksd.samplers.AdaptiveHMC``). Parameters that the functions close over become constants of
    the compiled program; a class of your own (``LatentVariableModel``) compiles once for all.

    Parameters
    ----------
    log_prior : function of z
    log_likelihood : function of x and z
        Written in ``jax.numpy``; z is a pytree of unconstrained reals. Additive constants may be
        left out; a term in x must stay, also one without z, since the score is its gradient.
    initial : pytree, or function of a key and x, optional
        A latent of the right shape, near which chains begin (each coordinate moved by up to 1), or
        where they begin.
    sample : function of a key, optional
        Returns (z, x) from the model.
    support : str, pair of bounds, or one of these for each column, optional
        Where observations can lie: "real", "positive", "unit", "simplex" or bounds; see
        ``LatentVariableModel``.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, lksd
    >>> model = lksd.adapters.from_functions(
    ...     lambda z: -jnp.sum(z**2) / 2,
    ...     lambda x, z: -jnp.sum((x - z) ** 2) / 2,
    ...     initial=np.zeros(3),
    ... )
    >>> x = np.random.default_rng(0).normal(size=(10, 3))
    >>> bool(np.abs(lksd.estimate_scores(model, x).score + x / 2).max() < 1e-8)
    True
    """
    for name, function in (("log_prior", log_prior), ("log_likelihood", log_likelihood)):
        if not callable(function):
            raise TypeError(
                f"{name}: expected a function; got {type(function).__name__}. Write it in "
                "jax.numpy."
            )
    if sample is not None:
        if not callable(sample) or initial is not None:
            raise TypeError(
                "sample: expected a function of a key, without initial, which it replaces. Give "
                "one of the two."
            )
        return SimulatedPair(log_prior, log_likelihood, sample, support=as_tuples(support))
    if initial is None:
        raise ValueError(
            "initial: expected a latent, from which the shape of z is known, or sample(key); got "
            "neither. Give np.zeros(k)."
        )
    start = (
        initial
        if callable(initial)
        else jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), initial)
    )
    return StartedPair(log_prior, log_likelihood, start, support=as_tuples(support))


def as_tuples(support: Any) -> Any:
    """Lists as tuples, which a compiled program may carry."""
    return (
        tuple(as_tuples(part) for part in support)
        if isinstance(support, (list, tuple))
        else support
    )
