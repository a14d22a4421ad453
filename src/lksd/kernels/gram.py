"""Blocks of a kernel's Gram matrix."""

from __future__ import annotations

from functools import singledispatch

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from .._jax import float64, on_processor
from .base import Kernel, as_kernel
from .compose import Pair, Weighted
from .discrete import BagOfWords, document_distances
from .radial import Radial, precondition


@float64
def gram(kernel, x, y) -> np.ndarray:
    """The matrix k(x_i, y_j) in double precision, for inspection of small samples."""
    return np.asarray(kernel_block(as_kernel(kernel), jnp.asarray(x), jnp.asarray(y)))


@singledispatch
def kernel_block(kernel: Kernel, x: Num[Array, "n D"], y: Num[Array, "m D"]) -> Float[Array, "n m"]:
    """k(x_i, y_j) for any kernel, by its pointwise form; the versions below are faster."""
    return jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))(x, y).astype(jnp.float64)


@kernel_block.register
def _(kernel: Radial, x, y):
    x, y = centre(x, y)
    dual_x, dual_y = precondition(kernel.preconditioner, x), precondition(kernel.preconditioner, y)
    return kernel.profile(squared_distances(x, dual_x, y, dual_y)).value


@kernel_block.register
def _(kernel: BagOfWords, x, y):
    return kernel.of_distance(document_distances(x, y), x.shape[-1])


@kernel_block.register
def _(kernel: Weighted, x, y):
    weight = jax.vmap(kernel.weight)
    return kernel_block(kernel.base, x, y) * weight(x)[:, None] * weight(y)


@kernel_block.register
def _(kernel: Pair, x, y):
    return kernel.join(kernel_block(kernel.a, x, y), kernel_block(kernel.b, x, y))


def centre(x, y):
    """Both samples moved by the same vector, against cancellation in |x|^2 + |y|^2 - 2 x'y.

    The median of three medians of three rows, so that no single outlier carries the origin away
    from the bulk.
    """
    rows = x[(jnp.arange(9) * len(x)) // 9]
    shift = middle(*(middle(*rows[k : k + 3]) for k in (0, 3, 6)))
    return x - shift, y - shift


def middle(a, b, c):
    """The median of three, without sorting."""
    return jnp.maximum(jnp.minimum(a, b), jnp.minimum(jnp.maximum(a, b), c))


def squared_distances(x, dual_x, y, dual_y):
    """(x_i - y_j)'(dual x_i - dual y_j) by one matrix product."""
    norms_x, norms_y = jnp.sum(x * dual_x, -1), jnp.sum(y * dual_y, -1)
    return jnp.maximum(product_plus(-2 * x, dual_y, norms_x, norms_y), 0.0)


def product_plus(
    a: Float[Array, "n E"],
    b: Float[Array, "m E"],
    row: Float[Array, " n"],
    column: Float[Array, " m"],
) -> Float[Array, "n m"]:
    """a b' + row_i + column_j; on a processor the added terms ride along in the product, which
    spares passes over the block.
    """
    if not on_processor():
        return a @ b.T + row[:, None] + column
    ones_a, ones_b = jnp.ones((len(a), 1)), jnp.ones((len(b), 1))
    return (
        jnp.concatenate([a, row[:, None], ones_a], -1)
        @ jnp.concatenate([b, ones_b, column[:, None]], -1).T
    )
