"""What a latent variable model is."""

from __future__ import annotations

from abc import abstractmethod
from functools import wraps
from inspect import signature
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._jax import float64_values


class LatentVariableModel(eqx.Module):
    """One observation x and its latent z: a prior and a likelihood.

    A subclass gives ``log_prior(z)`` and ``log_likelihood(x, z)``, and ``sample(key) -> (z, x)`` or
    ``initial(key, x) -> z``, from which the shape of z is known. z is any pytree of real arrays. Additive
    constants of either density may be left out. A term in x must stay, also one without z: the score is its gradient.

    A latent with constraints (positive, in an interval) must give ``constrain(u) -> z`` from unconstrained reals u
    and its inverse ``unconstrain(z) -> u``; chains then run on u, with the Jacobian found by differentiation.

    A likelihood whose missing normaliser depends on z declares ``normalised = False`` and gives
    ``sample_likelihood(key, z) -> x``, for the exchange algorithm.

    For speed it may give ``log_likelihood_at(x)``, which returns log p(x | z) as a function of z and computes what depends on x
    alone once for all z. Chains alone use it, so here a term without z may be left out.

    It may offer more, and what it offers is used: ``log_marginal(x)`` or ``marginal_score(x)``, log p(x) or its
    gradient, exactly; ``sample_posterior(key, x) -> z``, exact draws; ``gibbs(key, x, z) -> z``, a sweep that
    leaves the posterior invariant, for latents (or parts of them) that are integers; ``coupled_gibbs(key, x, z, other) ->
    (z, other)``, the same for two chains that are to meet.

    It may offer ``smoothed(scale)``, the model of x + scale * noise for a scale that is a number or one for each column.

    A model of integers in 0 .. L-1 declares ``n_values``, L, as a field or property; its scores come from the ratios
    p(x with x_d -> v | z) / p(x | z). It may offer ``marginal_ratios(x, values)``, the exact p(x with x_d -> v) / p(x) for
    values (D, M), and ``averaged_ratios(x, values, z)``, the ratios with part of the latent integrated out
    given the rest; and ``value_probabilities()``, the mean probability of each value as an (L,) NumPy array: where all models of a
    call have it, the operators order the values by it, so that neighbours are about equally frequent, else they stand in their own
    order. It declares ``exchangeable = True`` where the order of the coordinates does not matter, and
    ``any_length = True`` where it takes observations padded with -1; ``sample(key, length)`` then takes the length.

    A model of graphs declares ``graphs = True`` and ``n_values = 2``; an observation is the edges (``lksd.graphs.edges``).

    A model of real numbers declares its ``support`` where that is not all of space: "positive", "unit" (between 0 and 1),
    "simplex", a pair of bounds such as ``(0, 10)``, or a tuple with one of these for each column. Models are then compared in
    coordinates without a boundary. "real" says that all real numbers are meant, also where the data are positive or integers.

    A model of unit vectors declares ``directional = True``; its densities are those on the sphere, written for any x in space.

    Fields that are integers, booleans or strings are static; numbers and arrays become float64 leaves, so
    that models of one shape share one compilation.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, lksd
    >>> class Scale(lksd.models.LatentVariableModel):
    ...     spread: float = 1.0
    ...     dim: int = 3
    ...
    ...     def log_prior(self, z):
    ...         return -(z**2) / (2 * self.spread**2)
    ...
    ...     def log_likelihood(self, x, z):
    ...         return -self.dim * z - jnp.sum(x**2) * jnp.exp(-2 * z) / 2
    ...
    ...     def sample(self, key):
    ...         key_z, key_x = jax.random.split(key)
    ...         z = self.spread * jax.random.normal(key_z)
    ...         return z, jnp.exp(z) * jax.random.normal(key_x, (self.dim,))
    """

    normalised: ClassVar[bool] = True
    complete: ClassVar[bool] = True  # whether the densities have every term that depends on the parameters
    exchangeable: ClassVar[bool] = False
    any_length: ClassVar[bool] = False
    directional: ClassVar[bool] = False
    support: ClassVar[Any] = None  # nothing declared
    graphs: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...] | None] = None  # the names of x's columns

    @abstractmethod
    def log_prior(self, z):
        """log p(z), up to a constant."""

    @abstractmethod
    def log_likelihood(self, x, z):
        """log p(x | z), up to a constant; a term in x alone is part of the score and must stay."""

    def constrain(self, u):
        """z from unconstrained reals."""
        return u

    def unconstrain(self, z):
        """The inverse of ``constrain``."""
        return z

    def log_jacobian(self, u):
        """log |det dz/du|; by differentiation, so override it only for speed or where z and u differ in size."""
        if type(self).constrain is LatentVariableModel.constrain:
            return jnp.zeros(())
        flat, restore = ravel_pytree(u)
        jacobian = jax.jacfwd(lambda v: ravel_pytree(self.constrain(restore(v)))[0])(flat)
        if jacobian.shape[0] != jacobian.shape[1]:
            raise ValueError(
                f"constrain: expected as many numbers out as in; got {jacobian.shape[1]} to {jacobian.shape[0]}. "
                "Give log_jacobian(u) for such a transform."
            )
        return jnp.linalg.slogdet(jacobian)[1]

    def __str__(self) -> str:
        return type(self).__name__


class Around(LatentVariableModel):
    """A model that has the latent of another, and changes something else."""

    model: Any

    def log_prior(self, z):
        return self.model.log_prior(z)

    def constrain(self, u):
        return self.model.constrain(u)

    def unconstrain(self, z):
        return self.model.unconstrain(z)

    def log_jacobian(self, u):
        return self.model.log_jacobian(u)


class OfLength(Around):
    """A model of observations of any length, of which one length is simulated."""

    length: int = eqx.field(static=True)

    def log_likelihood(self, x, z):
        return self.model.log_likelihood(x, z)

    def sample(self, key):
        return self.model.sample(key, self.length)


def of_length(model: Any, length: int) -> Any:
    """The model with ``sample(key)``, where its own takes a length too."""
    takes = hasattr(model, "sample") and "length" in signature(model.sample).parameters
    return OfLength(model, length) if takes else model


def simulation(method):
    """The decorator of a ``sample`` that users call too: in double precision, or in the caller's where it is traced."""

    @float64_values
    @wraps(method)
    def wrapper(self, *args, **kwargs):
        return method(jax.tree.map(lambda leaf: leaf if callable(leaf) else jnp.asarray(leaf), self), *args, **kwargs)

    return wrapper


def as_columns(names) -> tuple[str, ...] | None:
    """The converter of a model's ``columns``."""
    return None if names is None else tuple(map(str, names))


def check_columns(names: tuple[str, ...] | None, dim: int) -> None:
    if names is not None and (len(names) != dim or len(set(names)) < dim):
        raise ValueError(f"columns: expected {dim} different names, one for each column of x; got {names}. Name them all.")


def float64_leaves(tree):
    """Numbers and arrays as float64 JAX arrays; integers, booleans, strings and functions as they are."""

    def convert(leaf):
        if isinstance(leaf, (float, np.floating)) or (
            isinstance(leaf, (np.ndarray, jax.Array)) and jnp.issubdtype(leaf.dtype, jnp.floating)
        ):
            return jnp.asarray(leaf, jnp.float64)
        return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf

    return jax.tree.map(convert, tree)
