"""Discrete Stein kernels as sums over moves.

Every discrete operator acts on a function through the point itself and through points that differ
in one coordinate: (A_d f)(x) = stay_d(x) f(x) + sum_i weight_di(x) f(x with x_d -> value_di). With
one witness for each coordinate h = sum_d A_d^x A_d^y k; with a shared witness h = sum_{d,e} A_d^x
A_e^y k.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._jax import on_processor
from ..kernels import BagOfWords, Graphs, Kernel, Radial, Weighted
from ..kernels.compose import Pair
from ..kernels.discrete import Mismatches, distances_from_products


class Moves(NamedTuple):
    """The signed measure by which an operator acts at n points, for S models and M moves a
    coordinate.
    """

    stay: Float[Array, "S n D"]
    values: Int[Array, "n D M"]
    weights: Float[Array, "S n D M"]


def matched_block(
    kernel: Kernel, x: Int[Array, "n D"], moves_x: Moves, y: Int[Array, "m D"], moves_y: Moves
) -> Float[Array, "S n m"]:
    """sum_d A_d^x A_d^y k: one witness for each coordinate, positions matched."""
    k = kernel_of_moves(kernel, x, with_stay(x, moves_x.values), y, with_stay(y, moves_y.values))
    choices = jnp.arange(moves_x.values.shape[-1] + 1)

    def add_coordinate(total, terms):
        d, weights_x, weights_y = terms  # weights (S, n, M + 1)
        table = jax.vmap(lambda i: jax.vmap(lambda j: k(d, i, d, j))(choices))(choices)
        return total + jnp.einsum("sni,smj,ijnm->snm", weights_x, weights_y, table), None

    terms = (jnp.arange(x.shape[-1]), all_weights(moves_x), all_weights(moves_y))
    start = jnp.zeros((len(moves_x.stay), len(x), len(y)), moves_x.stay.dtype)
    return jax.lax.scan(add_coordinate, start, terms)[0]


def shared_block(
    kernel: Kernel, x: Int[Array, "n D"], moves_x: Moves, y: Int[Array, "m D"], moves_y: Moves
) -> Float[Array, "S n m"]:
    """sum_{d,e} A_d^x A_e^y k: one witness for all coordinates, no matching of positions."""
    k = kernel_of_moves(kernel, x, with_stay(x, moves_x.values), y, with_stay(y, moves_y.values))

    def add_move_of_x(total, move):
        d, i, weight = move
        return total + weight[:, :, None] * witness(k, moves_y, d, i), None

    staying = moves_x.stay.sum(-1)[:, :, None] * witness(k, moves_y, 0, 0)
    return jax.lax.scan(add_move_of_x, staying, list_moves(moves_x))[0]


def witness(k: Callable, moves_y: Moves, d, i) -> Float[Array, "S n m"]:
    """(A^y k)(x with choice i at d, y), one witness for all coordinates."""
    staying = moves_y.stay.sum(-1)[:, None, :] * k(d, i, 0, 0)

    def term(e, j, weight):
        return weight[:, None, :] * k(d, i, e, j)

    if on_processor():  # a running sum stays in a processor's cache
        return jax.lax.scan(
            lambda total, move: (total + term(*move), None), staying, list_moves(moves_y)
        )[0]
    return staying + jnp.sum(jax.vmap(term)(*list_moves(moves_y)), 0)  # one fused reduction


def matched_slopes(
    kernel: Kernel,
    x: Int[Array, "n D"],
    values: Int[Array, "n D M"],
    y: Int[Array, "m D"],
    moves_y: Moves,
    counted: Float[Array, "n m"],
) -> Float[Array, "S n D C"]:
    """sum_j of the counted (A_d^y k)(x_i after a choice at d, y_j), the choice to stay first."""
    k = kernel_of_moves(kernel, x, with_stay(x, values), y, with_stay(y, moves_y.values))
    choices = jnp.arange(values.shape[-1] + 1)

    def coordinate(terms):
        d, weights_y = terms  # weights (S, m, M + 1)
        table = jax.vmap(lambda i: jax.vmap(lambda j: k(d, i, d, j))(choices))(choices)
        return jnp.einsum("smj,ijnm,nm->sni", weights_y, table, counted)

    return jnp.moveaxis(
        jax.lax.map(coordinate, (jnp.arange(x.shape[-1]), all_weights(moves_y))), 0, 2
    )


def shared_slopes(
    kernel: Kernel,
    x: Int[Array, "n D"],
    values: Int[Array, "n D M"],
    y: Int[Array, "m D"],
    moves_y: Moves,
    counted: Float[Array, "n m"],
) -> Float[Array, "S n D C"]:
    """The same with (A^y k)(x_i after a choice at d, y_j)."""
    k = kernel_of_moves(kernel, x, with_stay(x, values), y, with_stay(y, moves_y.values))

    def sum_at(d, i):
        return jnp.sum(witness(k, moves_y, d, i) * counted, 2)

    staying = jnp.broadcast_to(sum_at(0, 0)[:, :, None, None], (len(moves_y.stay), *x.shape, 1))
    _, dim, choices = values.shape
    found = jax.lax.map(lambda move: sum_at(*move), positions_of_moves(dim, choices))
    moving = jnp.moveaxis(found.reshape(dim, choices, *found.shape[1:]), (0, 1), (2, 3))
    return jnp.concatenate([staying, moving], -1)


def with_stay(x, values):
    """The values with the coordinate's own value in front, so that move 0 stays: (n, D, M + 1)."""
    return jnp.concatenate([x[..., None], values], -1)


def all_weights(moves: Moves):
    """Weights of staying and moving, the coordinate first: (D, S, n, M + 1)."""
    return jnp.moveaxis(jnp.concatenate([moves.stay[..., None], moves.weights], -1), 2, 0)


def list_moves(moves: Moves):
    """All moves of all coordinates in one list: coordinate, choice (from 1), weight (S, n)."""
    _, dim, choices = moves.values.shape
    weights = jnp.moveaxis(moves.weights, (2, 3), (0, 1))
    return *positions_of_moves(dim, choices), weights.reshape(dim * choices, *weights.shape[2:])


def positions_of_moves(dim: int, choices: int):
    """The coordinate and the choice (from 1) of every move."""
    d, i = jnp.meshgrid(jnp.arange(dim), jnp.arange(1, choices + 1), indexing="ij")
    return d.ravel(), i.ravel()


@singledispatch
def kernel_of_moves(
    kernel: Kernel,
    x: Int[Array, "n D"],
    values_x: Int[Array, "n D M"],
    y: Int[Array, "m D"],
    values_y: Int[Array, "m D M"],
) -> Callable:
    """A function (d, i, e, j) -> block of k(x with choice i at d, y with choice j at e); choice 0
    stays.

    This version serves any kernel by calling it; those below know what one replacement changes.
    """

    def evaluate(d, i, e, j):
        x_moved = x.at[:, d].set(values_x[:, d, i])
        y_moved = y.at[:, e].set(values_y[:, e, j])
        pairs = jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))
        return pairs(x_moved, y_moved).astype(jnp.float64)

    return evaluate


@kernel_of_moves.register
def _(
    kernel: Mismatches,
    x: Int[Array, "n D"],
    values_x: Int[Array, "n D M"],
    y: Int[Array, "m D"],
    values_y: Int[Array, "m D M"],
) -> Callable:
    mismatches = jax.lax.scan(
        lambda total, column: (total + (column[0][:, None] != column[1]), None),
        jnp.zeros((len(x), len(y)), jnp.int32),
        (x.T, y.T),
    )[0]

    def differ(a, b):
        return (a[:, None] != b).astype(jnp.int32)

    def evaluate(d, i, e, j):
        a, b = values_x[:, d, i], values_y[:, e, j]
        same = differ(a, b) - differ(x[:, d], y[:, d])
        apart = (
            differ(a, y[:, d])
            - differ(x[:, d], y[:, d])
            + differ(x[:, e], b)
            - differ(x[:, e], y[:, e])
        )
        return kernel.of_distance(mismatches + jnp.where(d == e, same, apart), x.shape[-1])

    return evaluate


@kernel_of_moves.register
def _(
    kernel: BagOfWords,
    x: Int[Array, "n D"],
    values_x: Int[Array, "n D M"],
    y: Int[Array, "m D"],
    values_y: Int[Array, "m D M"],
) -> Callable:
    # |B_x + u - B_y - w|^2 = |B_x - B_y|^2 + (2 u'(B_x - B_y) + |u|^2) + (-2 w'(B_x - B_y) + |w|^2)
    # - 2 u'w with u, w the signed word vectors of the two moves: every moved distance is O(1) from
    # tables of counts.
    own_x, own_y = own_counts(x, values_x), own_counts(y, values_y)  # (D, M + 1, n)
    # (D, M + 1, n, m), (D, M + 1, m, n)
    across_x, across_y = counts(y, values_x), counts(x, values_y)
    change_x = changes(own_x[..., None] - across_x, values_x[..., None])
    change_y = jnp.swapaxes(changes(own_y[..., None] - across_y, values_y[..., None]), -1, -2)
    squares_x, squares_y = present(x, own_x[:, 0]), present(y, own_y[:, 0])
    common = jnp.sum(jnp.where((x >= 0).T[..., None], across_x[:, 0], 0), 0, dtype=jnp.int32)
    distance = distances_from_products(squares_x, squares_y, common)

    def evaluate(d, i, e, j):
        a, b, v, w = x[:, d, None], y[:, e], values_x[:, d, i, None], values_y[:, e, j]
        alike = (v == w).astype(jnp.int32) - (v == b) - (a == w) + (a == b)  # u'w
        moved_distance = distance + change_x[d, i] + change_y[e, j] - 2 * alike
        # Moves at positions that do not exist have weight zero and no meaning, but must stay
        # finite.
        return kernel.of_distance(jnp.maximum(moved_distance, 0), x.shape[-1])

    return evaluate


@kernel_of_moves.register
def _(
    kernel: Pair,
    x: Int[Array, "n D"],
    values_x: Int[Array, "n D M"],
    y: Int[Array, "m D"],
    values_y: Int[Array, "m D M"],
) -> Callable:
    a, b = (kernel_of_moves(part, x, values_x, y, values_y) for part in (kernel.a, kernel.b))
    return lambda *move: kernel.join(a(*move), b(*move))


@kernel_of_moves.register
def _(
    kernel: Weighted,
    x: Int[Array, "n D"],
    values_x: Int[Array, "n D M"],
    y: Int[Array, "m D"],
    values_y: Int[Array, "m D M"],
) -> Callable:
    base = kernel_of_moves(kernel.base, x, values_x, y, values_y)
    weight = jax.vmap(kernel.weight)

    def evaluate(d, i, e, j):
        w_x, w_y = (
            weight(x.at[:, d].set(values_x[:, d, i])),
            weight(y.at[:, e].set(values_y[:, e, j])),
        )
        return base(d, i, e, j) * w_x[:, None] * w_y

    return evaluate


@kernel_of_moves.register
def _(
    kernel: Graphs,
    x: Int[Array, "n D"],
    values_x: Int[Array, "n D M"],
    y: Int[Array, "m D"],
    values_y: Int[Array, "m D M"],
) -> Callable:
    if kernel.features is None:
        return kernel_of_moves.dispatch(Kernel)(kernel, x, values_x, y, values_y)
    features_x, features_y = (
        features_of_moves(kernel, x, values_x),
        features_of_moves(kernel, y, values_y),
    )
    base: Any = kernel.base
    pointwise = base
    if isinstance(base, Radial):  # its metric is applied once, not for every pair
        features_x, features_y = (
            whiten(base.preconditioner, part) for part in (features_x, features_y)
        )

        def pointwise(f, g):
            return base.profile(jnp.sum((f - g) ** 2)).value

    pairs = jax.vmap(jax.vmap(pointwise, (None, 0)), (0, None))
    return lambda d, i, e, j: pairs(features_x[d, i], features_y[e, j]).astype(jnp.float64)


def whiten(preconditioner, vectors):
    """L^-1 v for each vector, where L L' is the preconditioner."""
    if preconditioner.ndim < 2:
        return vectors / jnp.sqrt(preconditioner)
    return vectors @ jnp.linalg.inv(jnp.linalg.cholesky(preconditioner)).T


def features_of_moves(
    kernel: Graphs, x: Int[Array, "n D"], values: Int[Array, "n D M"]
) -> Float[Array, "D M n F"]:
    """The features of every graph after every choice at every place."""

    def after(d):
        return jax.vmap(lambda column: jax.vmap(kernel.encoded)(x.at[:, d].set(column)), 1)(
            values[:, d]
        )

    return jax.lax.map(after, jnp.arange(x.shape[1]))


def counts(documents: Int[Array, "m D"], words: Int[Array, "n E M"]) -> Int[Array, "E M n m"]:
    """How often each word (n, D, M) occurs in each document (m, D): (D, M, n, m)."""
    words = jnp.moveaxis(words, 0, -1)[..., None]

    def add_position(total, column):
        return total + (words == column), None

    start = jnp.zeros((*words.shape[:-1], len(documents)), jnp.int32)
    return jax.lax.scan(add_position, start, documents.T)[0]


def own_counts(documents: Int[Array, "n D"], words: Int[Array, "n D M"]) -> Int[Array, "D M n"]:
    """How often each word occurs in its own document."""
    return jax.vmap(
        lambda document, own: counts(document[None], own[None])[..., 0, 0], out_axes=-1
    )(documents, words)


def changes(excess, values):
    """2 u'(B - B') + |u|^2 for the move of coordinate d to its choice; excess = B - B' at those
    words.
    """
    values = jnp.moveaxis(values, 0, -2)
    leaves = values != values[:, :1]
    return 2 * (excess - excess[:, :1]) + 2 * leaves.astype(jnp.int32)


def present(documents, own):
    """|B|^2, the sum over the tokens that exist of their own count."""
    return jnp.sum(jnp.where((documents >= 0).T, own, 0), 0)
