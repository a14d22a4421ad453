"""Kernels on graphs."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from .._jax import float64_values
from ..graphs import nodes
from .base import Domain, Kernel, as_kernel


class Graphs(Kernel):
    """A kernel on graphs: ``base`` of two adjacency matrices or, where ``features`` are given, of the features of each.

    Parameters
    ----------
    base : kernel or function
        k(A, B) for two (N, N) matrices; or k(f, g) for two vectors of features.
    features : function, optional
        From an (N, N) adjacency matrix to a vector, written with jax.numpy. Kernels of features are much faster, since
        the features of every graph are computed once.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> path, star = np.array([1, 0, 0, 1, 0, 1]), np.array([1, 1, 1, 0, 0, 0])  # the edges of two graphs of four nodes
    >>> kernel = lksd.kernels.Graphs(lksd.kernels.IMQ(), features=lambda matrix: matrix.sum(0).sort())  # by their degrees
    >>> round(float(kernel(path, star)), 4), float(kernel(star, star))
    (0.5774, 1.0)
    """

    base: Kernel
    features: Callable | None

    def __init__(self, base, features: Callable | None = None):
        self.base = as_kernel(base)
        self.features = features

    @property
    def domain(self) -> Domain:
        return "discrete"

    @property
    def n_values(self) -> int:
        return 2

    def encoded(self, x):
        """What the base takes of the graph with edges ``x``."""
        count = nodes(x.shape[-1])
        upper = jnp.zeros((count, count), jnp.float64).at[np.triu_indices(count, 1)].set(x)
        matrix = upper + upper.T
        return matrix if self.features is None else self.features(matrix)

    @float64_values
    def __call__(self, x, y):
        return self.base(self.encoded(jnp.asarray(x)), self.encoded(jnp.asarray(y)))

    def __str__(self) -> str:
        features = "" if self.features is None else f" of {getattr(self.features, '__name__', 'features')}"
        return f"Graphs({self.base}{features})"
