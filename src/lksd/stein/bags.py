"""The shared-witness Stein kernel of bag-of-words kernels, at the cost of what documents have in
common.

A move of document i replaces one of its words: it adds the signed word vector u to the counts B_i.
With w a move of j,

    |B_i + u - B_j - w|^2
        = |B_i - B_j|^2 + (2 u'(B_i - B_j) + |u|^2) + (2 w'(B_j - B_i) + |w|^2) - 2 u'w.

The two changes in brackets take few values, so the moves of a document are grouped by them, and the
double sum over moves is one over pairs of groups; the pairs of moves that share a word (u'w != 0)
are then corrected one by one. Equal words of a document make equal moves, which count once with
their weights added. A kernel value is an entry of a table over the integer distances. All of it is
sparse algebra and counting, hence SciPy and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from .._jax import in_parts, program
from ..kernels import BagOfWords
from ..kernels.discrete import distances_from_products, values_at
from .discrete import ROWS, DiscreteOperator, Sensitivity, chain_rule
from .moves import Moves
from .tiles import Tiles, TileSums, plus

if TYPE_CHECKING:
    from .gram import Tiling

ENTRIES = 4_000_000  # of the table (moves of a tile) x (documents of a tile)
LARGEST_TILE = 50  # documents: larger ones are no faster, and what two tiles share fills memory


class Bags(NamedTuple):
    """Documents with their moves, those of one document in a row."""

    counts: sparse.csr_array  # (n, L)
    squares: Int[np.ndarray, " n"]
    stay: Float[np.ndarray, "S n"]  # the weight of the document itself, summed over its words
    words: sparse.csr_array  # (R, L): the signed word vectors u of the moves
    owner: Int[np.ndarray, " R"]  # the document of each move
    weights: Float[np.ndarray, "S R"]
    # u'B + |u|^2 / 2 in the own document, half the change it makes there
    own: Int[np.ndarray, " R"]

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


class Crossings(NamedTuple):
    """Where a move meets a word of another document: u'B there, for the few pairs where it is not
    zero.
    """

    move: Int[np.ndarray, " N"]
    document: Int[np.ndarray, " N"]
    overlap: Int[np.ndarray, " N"]
    table: Int[np.ndarray, "R m"]  # the same for all pairs


class Corrections(NamedTuple):
    """The pairs of moves with a word in common, and what each adds to the kernel as the groups have
    it.
    """

    move_x: Int[np.ndarray, " C"]
    move_y: Int[np.ndarray, " C"]
    change: Float[np.ndarray, " C"]


class Meeting(NamedTuple):
    """What n documents x and m documents y have in common; a group is a halved change, counted from
    ``lowest``.
    """

    x: Bags
    y: Bags
    crossed_x: Crossings
    crossed_y: Crossings
    lowest: int
    groups: int
    # the kernel after changes that sum to 2 lowest, 2 lowest + 1, ...
    profiles: Float[np.ndarray, "n H m"]
    corrections: Corrections

    def swap(self) -> Meeting:
        found = self.corrections
        return Meeting(
            self.y,
            self.x,
            self.crossed_y,
            self.crossed_x,
            self.lowest,
            self.groups,
            np.swapaxes(self.profiles, 0, 2),
            Corrections(found.move_y, found.move_x, found.change),
        )


class Slopes(NamedTuple):
    """The derivatives of sum_j h(x_i, y_j) in the weights of x: of staying, and of each move."""

    stay: Float[np.ndarray, "S n"]
    moves: Float[np.ndarray, "S R"]


def calm_first(x: Int[np.ndarray, "n D"]) -> Int[np.ndarray, " n"]:
    """An order of the documents by how often they repeat a word, so that few tiles have moves of
    large changes.
    """
    row = np.nonzero(x >= 0)[0]
    keys, counts = np.unique(row * (int(x.max()) + 1) + x[x >= 0], return_counts=True)
    repeats = np.ones(len(x), int)
    np.maximum.at(repeats, keys // (int(x.max()) + 1), counts)
    return np.argsort(repeats, kind="stable")


@program
def _moves(operator, x, scores):
    """With the axis of observations first."""
    moves = operator.existing(x, jnp.swapaxes(scores, 0, 1))
    return jnp.swapaxes(moves.stay, 0, 1), moves.values, jnp.swapaxes(moves.weights, 0, 1)


def prepare(
    operator: DiscreteOperator, x: Int[np.ndarray, "n D"], scores: Float[np.ndarray, "S n ..."]
) -> tuple[Bags, np.ndarray]:
    """The documents as bags, and which move each replacement of each word is: (n, D, M), -1 where
    there is no word.
    """
    stay, values, weights = in_parts(
        partial(_moves, operator), (x, np.swapaxes(scores, 0, 1)), ROWS, ROWS
    )
    moves: Any = Moves(np.swapaxes(stay, 0, 1), values, np.swapaxes(weights, 0, 1))
    n, size, choices = len(x), operator.n_values, moves.values.shape[-1]
    there = x >= 0
    row = np.nonzero(there)[0]
    # Equal words of one document are one, with their weights added.
    keys, first, inverse, number = np.unique(
        row * size + x[there].astype(np.int64),
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    documents, old, total = keys // size, np.repeat(keys % size, choices), len(keys) * choices
    new = moves.values[there][first].ravel().astype(np.int64)
    counts = sparse.csr_array(
        (number, keys % size, np.searchsorted(documents, np.arange(n + 1))), (n, size)
    )
    words = sparse.csr_array(
        (np.tile([-1, 1], total), np.stack([old, new], 1).ravel(), 2 * np.arange(total + 1)),
        (total, size),
    )
    weights = np.stack(
        [
            np.stack([np.bincount(inverse, column, len(keys)) for column in one.T], 1).ravel()
            for one in moves.weights[:, there]
        ]
    )
    owner = np.repeat(documents, choices)
    reached = np.minimum(np.searchsorted(keys, owner * size + new), len(keys) - 1)
    there_too = np.where(keys[reached] == owner * size + new, number[reached], 0)
    own = there_too - np.repeat(number, choices) + (old != new)
    tokens = np.full((*x.shape, choices), -1)
    tokens[there] = inverse[:, None] * choices + np.arange(choices)
    squares = np.bincount(documents, number**2, n).astype(np.int64)
    return Bags(counts, squares, moves.stay.sum(-1), words, owner, weights, own), tokens


def meet(table: Float[np.ndarray, " T"], x: Bags, y: Bags) -> Meeting:
    distances = distances_from_products(x.squares, y.squares, (x.counts @ y.counts.T).toarray())
    crossed_x, crossed_y = cross(x, y), cross(y, x)
    changes = [
        x.own,
        y.own,
        x.own[crossed_x.move] - crossed_x.overlap,
        y.own[crossed_y.move] - crossed_y.overlap,
    ]
    lowest = int(min(change.min(initial=0) for change in changes))
    groups = int(max(change.max(initial=0) for change in changes)) - lowest + 1
    sums = 2 * lowest + np.arange(2 * groups - 1)
    # Sums of changes that no pair of moves makes may lead beyond the table; what they find cancels
    # or has no weight.
    profiles = table.take(distances[:, None] + 2 * sums[:, None], mode="clip")
    return Meeting(
        x,
        y,
        crossed_x,
        crossed_y,
        lowest,
        groups,
        profiles,
        corrections(table, x, y, distances, crossed_x, crossed_y),
    )


def cross(moves: Bags, others: Bags) -> Crossings:
    found = (moves.words @ others.counts.T).tocoo()
    move, document = found.coords
    table = np.zeros(found.shape, np.int32)
    table[move, document] = found.data
    return Crossings(move, document, found.data, table)


def corrections(
    table, x: Bags, y: Bags, distances, crossed_x: Crossings, crossed_y: Crossings
) -> Corrections:
    shared = (x.words @ y.words.T).tocoo()  # u'w
    row, column = shared.coords
    n, m = distances.shape
    i, j = x.owner.take(row), y.owner.take(column)
    changes = (
        x.own.take(row)
        - crossed_x.table.take(row * m + j)
        + y.own.take(column)
        - crossed_y.table.take(column * n + i)
    )
    apart = distances.take(i * m + j) + 2 * changes
    return Corrections(
        row,
        column,
        table.take(apart - 2 * shared.data, mode="clip") - table.take(apart, mode="clip"),
    )


def kernel_table(kernel: BagOfWords, bags: Bags) -> Float[np.ndarray, " T"]:
    """The kernel at all distances that two documents can have after a move each, up to a power of
    two.
    """
    longest = int((2 * np.sqrt(bags.squares.max()) + 2 * np.sqrt(2)) ** 2) + 5
    return np.asarray(values_at(kernel, np.arange(1 << longest.bit_length())))


def group_weights(meeting: Meeting) -> Float[np.ndarray, "S G n m"]:
    """The weights of the moves of each x_i, summed over those with the same change against each
    y_j; S is 1 where all are alike.
    """
    bags, crossed, groups = meeting.x, meeting.crossed_x, meeting.groups
    n, m, own = len(bags.squares), len(meeting.y.squares), bags.own - meeting.lowest
    # Difference: alike for all models
    distinct = bags.weights[:1] if (bags.weights == bags.weights[0]).all() else bags.weights
    cells = bags.owner.take(crossed.move) * m + crossed.document
    before = own.take(crossed.move)
    moved = np.concatenate([(before - crossed.overlap) * (n * m) + cells, before * (n * m) + cells])
    sums = []
    for weights in distinct:
        alone = np.bincount(own * n + bags.owner, weights, groups * n).reshape(groups, n, 1)
        changed = weights.take(crossed.move)
        sums.append(
            alone
            + np.bincount(moved, np.concatenate([changed, -changed]), groups * n * m).reshape(
                groups, n, m
            )
        )
    return np.stack(sums)


def witness_values(meeting: Meeting) -> Float[np.ndarray, "S G n m"]:
    """(A^y k)(x_i after a change, y_j) by groups of changes, pairs of moves with a word in common
    not yet right.
    """
    y, groups, profiles = meeting.y, meeting.groups, np.ascontiguousarray(meeting.profiles)
    weights = np.ascontiguousarray(np.moveaxis(group_weights(meeting.swap()), 3, 0))  # (n, S, G, m)
    values = np.zeros((len(y.stay), groups, len(profiles), len(y.squares)))
    for group, documents in enumerate(reachable_groups(meeting).T):
        # Most documents at once, or one by one where only those that repeat a word often have such
        # a change.
        for i in [slice(None)] if documents.mean() > 0.5 else np.flatnonzero(documents):
            moving = profiles[i, group : group + groups]
            values[:, group, i] = np.einsum(
                "sm,...m->s...m", y.stay, profiles[i, group - meeting.lowest]
            )
            values[:, group, i] += np.einsum("...sgm,...gm->s...m", weights[i], moving)
    return values


def reachable_groups(meeting: Meeting) -> Bool[np.ndarray, "n G"]:
    """The groups that each x_i, or some move of it, belongs to."""
    x, crossed = meeting.x, meeting.crossed_x
    found, own = np.zeros((len(x.squares), meeting.groups), bool), x.own - meeting.lowest
    found[:, -meeting.lowest] = True
    found[x.owner, own] = True
    found[x.owner.take(crossed.move), own.take(crossed.move) - crossed.overlap] = True
    return found


def block(meeting: Meeting, values: Float[np.ndarray, "S G n m"]) -> Float[np.ndarray, "S n m"]:
    """h(x_i, y_j) for all models, from the witness values."""
    x, y, found = meeting.x, meeting.y, meeting.corrections
    h = x.stay[:, :, None] * values[:, -meeting.lowest]
    weights = group_weights(meeting)
    for group in np.flatnonzero(reachable_groups(meeting).any(0)):
        h += weights[:, group] * values[:, group]
    cells = x.owner.take(found.move_x) * h.shape[2] + y.owner.take(found.move_y)
    for own, other, one in zip(x.weights, y.weights, h, strict=True):
        extra = own.take(found.move_x) * other.take(found.move_y) * found.change
        one += np.bincount(cells, extra, one.size).reshape(one.shape)
    return h


def slopes(meeting: Meeting, values: Float[np.ndarray, "S G n m"], same: bool) -> Slopes:
    """Over all pairs; where x and y are the ``same`` documents, without those of a document with
    itself.
    """
    x, y, crossed, found = meeting.x, meeting.y, meeting.crossed_x, meeting.corrections
    if same:
        values = values * (1 - np.eye(len(x.squares)))
        found = found._replace(
            change=np.where(x.owner[found.move_x] == y.owner[found.move_y], 0.0, found.change)
        )
    n, m, own = len(x.squares), len(y.squares), x.own - meeting.lowest
    before = (own.take(crossed.move) * n + x.owner.take(crossed.move)) * m + crossed.document
    after = before - crossed.overlap * (n * m)
    moves = []
    for value, weights in zip(values, y.weights, strict=True):
        changed = value.take(after) - value.take(before)
        total = value.sum(2)[own, x.owner] + np.bincount(crossed.move, changed, len(own))
        moves.append(
            total + np.bincount(found.move_x, weights.take(found.move_y) * found.change, len(own))
        )
    return Slopes(values[:, -meeting.lowest].sum(2), np.stack(moves))


def sensitivity(
    operator: DiscreteOperator, x, scores, found: Slopes, tokens: Int[np.ndarray, "n D M"]
) -> Sensitivity:
    """From the slopes in the weights of the moves that differ to those at all positions."""
    at_moves = np.where(tokens >= 0, found.moves[:, np.maximum(tokens, 0)], 0.0)
    return chain_rule(
        operator,
        x,
        scores,
        np.broadcast_to(found.stay[..., None], (*found.stay.shape, x.shape[1])),
        at_moves,
    )


def tile_size(bags: Bags) -> int:
    """Documents of a tile, so that the table of changes stays within its budget."""
    groups = 4 * int(bags.counts.data.max()) + 4  # at most
    each = max(1.0, len(bags.owner) / len(bags.squares), groups)
    return max(1, min(len(bags.squares), LARGEST_TILE, int(np.sqrt(ENTRIES / each))))


class WordProblem(NamedTuple):
    """What all rows of tiles share."""

    bags: Bags
    table: Float[np.ndarray, " T"]
    contrasts: Float[np.ndarray, "C S"]
    weights: Float[np.ndarray, "n B"]
    tiling: Tiling
    sensitive: bool
    whole: bool


def ready_by_words(problem: WordProblem) -> Callable[[Tiles], TileSums]:
    """The function that adds up a row of tiles."""
    tiling, contrasts, weights = problem.tiling, problem.contrasts, problem.weights
    (count, models), n = contrasts.shape, tiling.n
    parts = [problem.bags.part(*tiling.edges(j)) for j in range(tiling.blocks)]

    def add_row(tiles: Tiles) -> TileSums:
        own = slice(*tiling.edges(tiles[0][0]))
        length = own.stop - own.start
        sums, squares = np.zeros((models, n)), np.zeros((count, count))
        products, matrix = (
            np.zeros((count, *weights.shape)),
            np.zeros((count, length, n if problem.whole else 0)),
        )
        diagonal = np.zeros((models, length))
        found: dict[int, tuple] = {}
        for i, j in tiles:
            other, meeting = slice(*tiling.edges(j)), meet(problem.table, parts[i], parts[j])
            values = witness_values(meeting)
            blocks = block(meeting, values)
            if problem.sensitive:
                new = {i: slopes(meeting, values, i == j)}
                if i != j:
                    swapped = meeting.swap()
                    new[j] = slopes(swapped, witness_values(swapped), False)
                for k, one in new.items():
                    found[k] = plus(found[k], one) if k in found else one
            if i == j:
                diagonal = np.einsum("sii->si", blocks).copy()
                blocks[:, np.arange(length), np.arange(length)] = 0.0
            h = np.tensordot(contrasts, blocks, 1)
            if problem.whole:
                matrix[:, :, other] = h
            flat = h.reshape(count, -1)
            sums[:, own] += blocks.sum(2)
            squares += (1 + (i != j)) * (flat @ flat.T)
            products[:, own] += h @ weights[other]
            if i != j:
                sums[:, other] += blocks.sum(1)
                products[:, other] += np.swapaxes(h, 1, 2) @ weights[own]
        return TileSums(sums, squares, products, diagonal, matrix, found)

    return add_row
