"""Kernels on {0, ..., L-1}^D, mostly of an integer distance, so that replacing one coordinate is
O(1); and kernels on graphs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._documents import as_tokens, word_counts
from .._jax import float64_values, program
from .._validation import check_count, check_range, check_size
from ..graphs import nodes
from .base import Domain, Kernel, as_kernel
from .radial import IMQ, Radial, subset


class IntegerDistance(Kernel):
    """A kernel f(rho(x, y)) of an integer distance; -1 marks a position that a document lacks."""

    domain: ClassVar[Domain] = "discrete"

    @abstractmethod
    def distance(self, x, y):
        """rho(x, y) for one pair."""

    @abstractmethod
    def of_distance(self, rho, dim: int):
        """f(rho) for observations of ``dim`` columns."""

    @float64_values
    def __call__(self, x, y):
        return self.of_distance(self.distance(jnp.asarray(x), jnp.asarray(y)), x.shape[-1])


class Mismatches(IntegerDistance):
    """A kernel of the number of coordinates that differ."""

    def distance(self, x, y):
        return jnp.sum(x != y)


class Hamming(Mismatches):
    """exp(-d_H) with d_H the share of coordinates that differ, as in the paper."""

    def of_distance(self, rho, dim: int):
        return jnp.exp(-jnp.asarray(rho, jnp.float64) / dim)


class OneHot(Mismatches):
    """A radial kernel on the one-hot encoding: the squared distance is twice the number of
    mismatches.
    """

    base: Radial
    n_values: int = eqx.field(static=True, converter=partial(check_size, "n_values"))

    def __check_init__(self):
        check_base("OneHot", self.base)

    def of_distance(self, rho, dim: int):
        return self.base.profile(2 * rho / self.base.preconditioner).value

    def __str__(self) -> str:
        return f"OneHot({self.base})"


class BagOfWords(IntegerDistance):
    """A radial kernel on word counts; the work depends on the document lengths, not on the
    vocabulary.

    Observations are token ids (n, D), token-id lists, or SciPy sparse counts. ``median`` takes the
    scale of the base kernel from them, the default of ``compare``: with a scale far below the
    distances between documents, a text that occurs twice outweighs all others.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> kernel = lksd.kernels.BagOfWords(lksd.kernels.IMQ(), vocabulary_size=200_000)
    >>> round(float(kernel(np.array([3, 7, 7]), np.array([7, 3, 9]))), 6)  # squared distance 2
    0.57735
    """

    base: Radial
    vocabulary_size: int = eqx.field(static=True, converter=partial(check_size, "vocabulary_size"))

    def __check_init__(self):
        check_base("BagOfWords", self.base)

    @classmethod
    def median(cls, x, vocabulary_size: int, base: type[Radial] = IMQ, mask=None) -> BagOfWords:
        """The kernel whose squared scale is the median of the squared distances between the word
        counts of ``x``, at least 1.

        ``mask`` marks the positions that exist in an array of token ids.
        """
        tokens, size = as_tokens(x, mask), check_size("vocabulary_size", vocabulary_size)
        check_range("x", tokens, size)
        return cls.at_median(tokens, size, base)

    @classmethod
    def at_median(
        cls, tokens: np.ndarray, vocabulary_size: int, base: type[Radial] = IMQ
    ) -> BagOfWords:
        """The same for documents that are read: ids, and -1 after the end."""
        scale, source = bag_median(tokens, vocabulary_size)
        return cls(base(scale, source=source), vocabulary_size)

    def distance(self, x, y):
        return document_distances(x[None], y[None])[0, 0]

    def of_distance(self, rho, dim: int):
        return self.base.profile(rho / self.base.preconditioner).value

    @property
    def n_values(self) -> int:
        return self.vocabulary_size

    def __str__(self) -> str:
        return f"BagOfWords({self.base})"


def check_base(name: str, base) -> None:
    if not isinstance(base, Radial) or base.preconditioner.ndim != 0:
        raise ValueError(
            f"{name}: expected a radial kernel with a scalar preconditioner, such as "
            f"IMQ(preconditioner=2.0); got {base}. Its squared scale is in units of the encoded "
            "distance."
        )


def document_distances(x: Int[Array, "n D"], y: Int[Array, "m D"]) -> Int[Array, "n m"]:
    """The squared distances between the word counts of documents x_i and y_j."""
    return distances_from_products(own_products(x), own_products(y), products(x, y))


def products(x: Int[Array, "n D"], y: Int[Array, "m D"]) -> Int[Array, "n m"]:
    """The inner products of the word counts: how many pairs of equal words two documents have."""

    def add_position(total, column):
        return total + jnp.sum(
            (x[:, None] == column[:, None]) & (x >= 0)[:, None], -1, dtype=jnp.int32
        ), None

    return jax.lax.scan(add_position, jnp.zeros((len(x), len(y)), jnp.int32), y.T)[0]


def own_products(x: Int[Array, "n D"]) -> Int[Array, " n"]:
    return jax.vmap(lambda row: products(row[None], row[None])[0, 0])(x)


def distances_from_products(squares_x, squares_y, common):
    """|B_i - B_j|^2 from |B_i|^2, |B_j|^2 and B_i'B_j, for arrays of JAX or NumPy: the one distance
    of bags of words.
    """
    return squares_x[:, None] + squares_y - 2 * common


@program
def values_at(kernel: BagOfWords, distances):
    """The kernel at squared distances."""
    return kernel.of_distance(jnp.asarray(distances), 0)


def bag_median(tokens: np.ndarray, words: int) -> tuple[np.ndarray, str]:
    """The median of the squared distances between word counts, at least 1: documents that differ
    are no closer.
    """
    check_count("x", len(tokens), minimum=2)
    rows, pairs = subset(tokens)
    counts = word_counts(rows, words)
    common = (counts @ counts.T).toarray()
    squares = np.diag(common)
    distances = distances_from_products(squares, squares, common)[np.triu_indices(len(rows), 1)]
    return np.maximum(np.median(distances), 1.0), f"median of {pairs}"


class Graphs(Kernel):
    """A kernel on graphs: ``base`` of two adjacency matrices or, where ``features`` are given, of
    the features of each.

    Parameters
    ----------
    base : kernel or function
        k(A, B) for two (N, N) matrices; or k(f, g) for two vectors of features.
    features : function, optional
        From an (N, N) adjacency matrix to a vector, written with jax.numpy. Kernels of features are
        much faster, since the features of every graph are computed once.

    Examples
    --------
    >>> import numpy as np, lksd
    >>> path = np.array([1, 0, 0, 1, 0, 1])  # the edges of a graph of four nodes
    >>> star = np.array([1, 1, 1, 0, 0, 0])
    >>> degrees = lambda matrix: matrix.sum(0).sort()
    >>> kernel = lksd.kernels.Graphs(lksd.kernels.IMQ(), features=degrees)
    >>> round(float(kernel(path, star)), 4), float(kernel(star, star))
    (0.5774, 1.0)
    """

    base: Kernel
    features: Callable | None

    def __init__(self, base, features: Callable | None = None):
        self.base = as_kernel(base)
        self.features = features

    domain: ClassVar[Domain] = "discrete"
    n_values: ClassVar[int] = 2

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
        features = (
            "" if self.features is None else f" of {getattr(self.features, '__name__', 'features')}"
        )
        return f"Graphs({self.base}{features})"
