"""The shared-witness Stein kernel of bag-of-words kernels, at the cost of what documents have in common.

A move of document i replaces one of its words: it adds the signed word vector u to the counts B_i. With w a move of j,

    |B_i + u - B_j - w|^2 = |B_i - B_j|^2 + (2 u'(B_i - B_j) + |u|^2) + (2 w'(B_j - B_i) + |w|^2) - 2 u'w.

The two changes in brackets take few values, so the moves of a document are grouped by them, and the double sum over
moves is one over pairs of groups; the pairs of moves that share a word (u'w != 0) are then corrected one by one. Equal
words of a document make equal moves, which count once with their weights added. A kernel value is an entry of a table
over the integer distances. All of it is sparse algebra and counting, hence SciPy and NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from .._float64 import float64
from ..kernels import BagOfWords, Kernel
from .base import SteinOperator
from .discrete import DiscreteOperator
from .moves import Moves

ENTRIES = 4_000_000  # of the table (moves of a tile) x (documents of a tile)


class Bags(NamedTuple):
    """Documents with their moves, those of one document in a row."""

    counts: sparse.csr_array  # (n, L)
    squares: Int[np.ndarray, " n"]
    stay: Float[np.ndarray, "S n"]  # the weight of the document itself, summed over its words
    words: sparse.csr_array  # (R, L): the signed word vectors u of the moves
    owner: Int[np.ndarray, " R"]  # the document of each move
    weights: Float[np.ndarray, "S R"]
    own: Int[np.ndarray, " R"]  # u'B + |u|^2 / 2 in the own document, half the change it makes there

    def part(self, first: int, last: int) -> Bags:
        """The documents from ``first`` to ``last``."""
        a, b = np.searchsorted(self.owner, [first, last])
        return Bags(
            self.counts[first:last],
            self.squares[first:last],
            self.stay[:, first:last],
            self.words[a:b],
            self.owner[a:b] - first,
            self.weights[:, a:b],
            self.own[a:b],
        )


class Tokens(NamedTuple):
    """Which move each replacement of each word is: (n, D, M), -1 where there is no word."""

    moves: Int[np.ndarray, "n D M"]


class Crossed(NamedTuple):
    """Where a move meets a word of another document: u'B there, for the few pairs where it is not zero."""

    move: Int[np.ndarray, " N"]
    document: Int[np.ndarray, " N"]
    overlap: Int[np.ndarray, " N"]
    table: Int[np.ndarray, "R m"]  # the same for all pairs


class Pairs(NamedTuple):
    """What a tile of documents has in common; a group is a halved change, counted from ``lowest``."""

    distances: Int[np.ndarray, "n m"]
    crossed_x: Crossed
    crossed_y: Crossed
    lowest: int
    groups: int
    profiles: Float[np.ndarray, "G n m"]  # the kernel after changes that sum to 2 lowest, 2 lowest + 1, ...


def fits(operator: SteinOperator, kernel: Kernel) -> bool:
    """Whether the Stein kernel is of the form that this file computes."""
    return isinstance(operator, DiscreteOperator) and operator.witness == "shared" and isinstance(kernel, BagOfWords)


@float64
def moves_of(operator: DiscreteOperator, x: np.ndarray, scores: np.ndarray) -> Moves:
    """The operator's moves as NumPy arrays."""
    return jax.tree.map(np.asarray, operator.existing(jnp.asarray(x), jnp.asarray(scores)))


def prepare(operator: DiscreteOperator, x: Int[np.ndarray, "n D"], scores: Float[np.ndarray, "S n ..."]) -> tuple[Bags, Tokens]:
    moves = moves_of(operator, x, scores)
    n, size, count = len(x), operator.n_values, moves.values.shape[-1]
    there = x >= 0
    rows, places = np.nonzero(there)
    found = x[there].astype(np.int64)
    counts = sparse.csr_array((np.ones(len(rows), np.int32), (rows, found)), (n, size))
    counts.sum_duplicates()
    # Words that are equal, in one document and with the same replacement, are one move.
    keys = ((rows[:, None] * size + found[:, None]) * count + np.arange(count)).ravel()
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    owner, total = unique // (size * count), len(unique)
    old, new = np.repeat(found, count)[first], moves.values[there].ravel()[first].astype(np.int64)
    given = moves.weights[:, there].reshape(len(scores), -1)
    weights = np.stack([np.bincount(inverse, row, total) for row in given])
    lines = np.arange(total)
    words = sparse.csr_array(
        (np.repeat([-1, 1], total).astype(np.int32), (np.concatenate([lines, lines]), np.concatenate([old, new]))), (total, size)
    )
    words.sum_duplicates()
    own = (words * counts[owner]).sum(1) + (old != new)
    tokens = np.full((*x.shape, count), -1)
    tokens[there] = inverse.reshape(-1, count)
    squares = (counts**2).sum(1)
    return Bags(counts, squares, moves.stay.sum(-1), words, owner, weights, own), Tokens(tokens)


def cross(moves: Bags, others: Bags) -> Crossed:
    found = (moves.words @ others.counts.T).tocoo()
    move, document = found.coords
    table = np.zeros(found.shape, np.int32)
    table[move, document] = found.data
    return Crossed(move, document, found.data, table)


def common(kernel: BagOfWords, x: Bags, y: Bags) -> Pairs:
    distances = x.squares[:, None] + y.squares - 2 * (x.counts @ y.counts.T).toarray()
    crossed_x, crossed_y = cross(x, y), cross(y, x)
    changes = [one.own for one in (x, y)]
    changes += [one.own[crossed.move] - crossed.overlap for one, crossed in ((x, crossed_x), (y, crossed_y))]
    lowest = int(min(change.min(initial=0) for change in changes))
    groups = int(max(change.max(initial=0) for change in changes)) - lowest + 1
    table = kernel_table(kernel, int(distances.max()) + 4 * (groups + abs(lowest)) + 5)
    sums = 2 * lowest + np.arange(2 * groups - 1)
    # Sums of changes that no pair of moves makes may lead below zero, and cancel in the corrections.
    profiles = np.stack([table[np.maximum(distances + 2 * change, 0)] for change in sums])
    return Pairs(distances, crossed_x, crossed_y, lowest, groups, profiles)


def kernel_table(kernel: BagOfWords, size: int) -> Float[np.ndarray, " size"]:
    """The kernel at the distances 0, 1, ..., up to a power of two."""
    return _table(kernel, 1 << (size - 1).bit_length())


@float64
def _table(kernel: BagOfWords, size: int) -> np.ndarray:
    return np.asarray(kernel.of_distance(jnp.arange(size), 0))


def grouped(bags: Bags, crossed: Crossed, pairs: Pairs, m: int) -> Float[np.ndarray, "S G n m"]:
    """The weights of the moves of each document, summed over those with the same change against each other document."""
    n, groups, own = len(bags.squares), pairs.groups, bags.own - pairs.lowest
    distinct = bags.weights[:1] if (bags.weights == bags.weights[0]).all() else bags.weights  # Difference: alike for all models
    cells = bags.owner[crossed.move] * m + crossed.document
    before, after = own[crossed.move], own[crossed.move] - crossed.overlap
    moved = np.concatenate([after * (n * m) + cells, before * (n * m) + cells])
    sums = []
    for weights in distinct:
        alone = np.bincount(own * n + bags.owner, weights, groups * n).reshape(groups, n, 1)
        changed = weights[crossed.move]
        sums.append(alone + np.bincount(moved, np.concatenate([changed, -changed]), groups * n * m).reshape(groups, n, m))
    return np.broadcast_to(np.stack(sums), (len(bags.weights), groups, n, m))


def witness_values(pairs: Pairs, y: Bags, n: int) -> Float[np.ndarray, "S G n m"]:
    """(A^y k)(x_i after a change, y_j) by groups of changes, pairs of moves with a word in common not yet right."""
    weights = np.swapaxes(grouped(y, pairs.crossed_y, pairs, n), 2, 3)
    values = np.empty(weights.shape)
    for group in range(pairs.groups):
        np.multiply(y.stay[:, None], pairs.profiles[group - pairs.lowest], out=values[:, group])
        for other in range(pairs.groups):
            values[:, group] += weights[:, other] * pairs.profiles[group + other]
    return values


class Corrections(NamedTuple):
    """The pairs of moves with a word in common, and what each adds to the kernel as the groups have it."""

    row: Int[np.ndarray, " C"]  # move of x
    column: Int[np.ndarray, " C"]  # move of y
    change: Float[np.ndarray, " C"]


def corrections(kernel: BagOfWords, pairs: Pairs, x: Bags, y: Bags) -> Corrections:
    shared = (x.words @ y.words.T).tocoo()  # u'w
    row, column = shared.coords
    i, j = x.owner[row], y.owner[column]
    change_x, change_y = x.own[row] - pairs.crossed_x.table[row, j], y.own[column] - pairs.crossed_y.table[column, i]
    apart = pairs.distances[i, j] + 2 * (change_x + change_y)
    table = kernel_table(kernel, int(apart.max(initial=0)) + 5)
    right, wrong = apart - 2 * shared.data, np.maximum(apart, 0)
    return Corrections(row, column, table[right] - table[wrong])


def block(kernel: BagOfWords, x: Bags, y: Bags) -> Float[np.ndarray, "S n m"]:
    """h(x_i, y_j) for all models."""
    shape = (len(x.squares), len(y.squares))
    pairs = common(kernel, x, y)
    values = witness_values(pairs, y, shape[0])
    h = x.stay[:, :, None] * values[:, -pairs.lowest]
    weights = grouped(x, pairs.crossed_x, pairs, shape[1])
    for group in range(pairs.groups):
        h += weights[:, group] * values[:, group]
    found = corrections(kernel, pairs, x, y)
    cells = x.owner[found.row] * shape[1] + y.owner[found.column]
    for s in range(len(h)):
        extra = x.weights[s, found.row] * y.weights[s, found.column] * found.change
        h[s] += np.bincount(cells, extra, h[s].size).reshape(shape)
    return h


class Slopes(NamedTuple):
    """The derivatives of sum_j h(x_i, y_j) in the weights of x: of staying, and of each move."""

    stay: Float[np.ndarray, "S n"]
    moves: Float[np.ndarray, "S R"]


def slopes(kernel: BagOfWords, x: Bags, y: Bags, counted: Float[np.ndarray, "n m"]) -> Slopes:
    """Over the pairs that ``counted`` marks with 1."""
    pairs = common(kernel, x, y)
    values = witness_values(pairs, y, len(x.squares)) * counted
    found, crossed = corrections(kernel, pairs, x, y), pairs.crossed_x
    marked = found.change * counted[x.owner[found.row], y.owner[found.column]]
    own, owner = x.own - pairs.lowest, x.owner[crossed.move]
    before, after = own[crossed.move], own[crossed.move] - crossed.overlap
    moves = []
    for value, weights in zip(values, y.weights, strict=True):
        changed = value[after, owner, crossed.document] - value[before, owner, crossed.document]
        total = value.sum(2)[own, x.owner] + np.bincount(crossed.move, changed, len(own))
        moves.append(total + np.bincount(found.row, weights[found.column] * marked, len(own)))
    return Slopes(values[:, -pairs.lowest].sum(2), np.stack(moves))


def row_slopes(kernel: BagOfWords, bags: Bags, count: int) -> Slopes:
    """The slopes of sum_{j != i} h(x_i, x_j) for the first ``count`` documents, over all others."""
    n, size = len(bags.squares), tile_size(bags)
    parts = []
    for first in range(0, count, size):
        x = bags.part(first, last := min(first + size, count))
        total = None
        for start in range(0, n, size):
            y = bags.part(start, end := min(start + size, n))
            apart = (np.arange(first, last)[:, None] != np.arange(start, end)).astype(np.float64)
            found = slopes(kernel, x, y, apart)
            total = found if total is None else Slopes(total.stay + found.stay, total.moves + found.moves)
        parts.append(total)
    return Slopes(*(np.concatenate(part, 1) for part in zip(*parts, strict=True)))


def at_tokens(found: Slopes, tokens: Tokens) -> Float[np.ndarray, "S n D M"]:
    """The slope in the weight of each replacement of each word, zero where there is no word."""
    return np.where(tokens.moves >= 0, found.moves[:, np.maximum(tokens.moves, 0)], 0.0)


def position_sums(operator: DiscreteOperator, kernel: BagOfWords, x, scores) -> Float[np.ndarray, "S n D"]:
    bags, tokens = prepare(operator, x, scores)
    found, moves = row_slopes(kernel, bags, len(x)), moves_of(operator, x, scores)
    return moves.stay * found.stay[..., None] + np.sum(moves.weights * at_tokens(found, tokens), -1)


def score_slopes(operator: DiscreteOperator, kernel: BagOfWords, x, scores, count: int) -> np.ndarray:
    """The derivatives in the scores of the first ``count`` documents, divided by the number of others."""
    bags, tokens = prepare(operator, x, scores)
    found = row_slopes(kernel, bags, count)
    own = jnp.asarray(x[:count])

    def weights(scores):
        moves = operator.existing(own, scores)
        return moves.stay, moves.weights

    _, back = jax.vjp(weights, jnp.asarray(scores[:, :count]))
    at_stay = np.broadcast_to(found.stay[..., None], (*found.stay.shape, x.shape[1]))
    at_moves = at_tokens(found, Tokens(tokens.moves[:count]))
    return np.asarray(back((jnp.asarray(at_stay), jnp.asarray(at_moves)))[0]) / (len(x) - 1)


def tile_size(bags: Bags) -> int:
    """Documents of a tile, so that the table of changes stays within its budget."""
    each = max(1.0, len(bags.owner) / len(bags.squares))
    return max(1, min(len(bags.squares), int(np.sqrt(ENTRIES / each))))
