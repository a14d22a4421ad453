"""The sparse form of the shared witness against the operators' own definition."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lksd.kernels import IMQ, BagOfWords, Gaussian, Hamming
from lksd.stein import Barker, Difference, Gibbs, gram_sums
from lksd.stein.bags import calm_first, kernel_table, meet, prepare, tile_size
from lksd.stein.moves import Moves, matched_block, shared_block
from lksd.stein.tiles import sensitivity

SIZE = 7
KERNELS = [BagOfWords(IMQ(2.0), SIZE), BagOfWords(Gaussian(5.0), SIZE)]


def operators():
    order = np.random.default_rng(3).permutation(SIZE)
    for average in (False, True):
        yield Difference(SIZE, order=order, witness="shared", average=average)
        yield Barker(SIZE, witness="shared", average=average)
    yield Gibbs(SIZE, witness="shared")


def documents(n=30, dim=6, seed=0):
    """Documents of one to six words, many of them repeated, two of them equal."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, SIZE, (n, dim)).astype(np.int32)
    for row, length in zip(x, rng.integers(1, dim + 1, n), strict=True):
        row[length:] = -1
    x[0] = x[-1]
    return x


def dense(operator, kernel, x, scores):
    with jax.enable_x64(True):
        return np.asarray(
            operator.block(
                kernel, jnp.asarray(x), jnp.asarray(scores), jnp.asarray(x), jnp.asarray(scores)
            )
        )


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("operator", [*operators()], ids=str)
def test_every_sum_equals_the_definition(operator, kernel):
    x, rng = documents(), np.random.default_rng(1)
    scores, weights, contrast = (
        rng.normal(size=(2, *operator.score_shape(x))),
        rng.normal(size=(len(x), 3)),
        np.array([1.0, -1.0]),
    )
    h = dense(operator, kernel, x, scores)
    off = h * (1 - np.eye(len(x)))
    difference = off[0] - off[1]
    for tile in (None, 7, 30):
        sums = gram_sums(operator, kernel, x, scores, contrast, weights, tile, whole=True)
        scale = np.abs(h).max()
        np.testing.assert_allclose(sums.model_rows, off.sum(2), atol=1e-12 * scale * len(x))
        np.testing.assert_allclose(sums.model_diagonal, np.einsum("sii->si", h), atol=1e-12 * scale)
        np.testing.assert_allclose(sums.rows, difference.sum(1), atol=1e-12 * scale * len(x))
        np.testing.assert_allclose(sums.squares, np.sum(difference**2), rtol=1e-11)
        np.testing.assert_allclose(sums.products, difference @ weights, atol=1e-11 * scale * len(x))
        np.testing.assert_allclose(sums.matrix, difference, atol=1e-12 * scale)


def test_documents_that_repeat_words_come_last():
    x = documents()
    most = [np.unique(row[row >= 0], return_counts=True)[1].max() for row in x]
    assert len(set(most)) > 2
    np.testing.assert_array_equal(calm_first(x), np.argsort(most, kind="stable"))


def differentiated(operator, kernel, x, scores):
    """The derivatives of the row sums by automatic differentiation."""
    with jax.enable_x64(True):
        off = 1 - jnp.eye(len(x))
        points, fixed = jnp.asarray(x), jnp.asarray(scores)
        return np.asarray(
            jax.grad(
                lambda free: jnp.sum(operator.block(kernel, points, free, points, fixed) * off)
            )(fixed)
        )


@pytest.mark.parametrize(
    ("operator", "kernel"),
    [
        *((operator, KERNELS[0]) for operator in [*operators(), Difference(SIZE)]),
        (Barker(SIZE, witness="shared"), Hamming()),
        (Barker(SIZE), Hamming()),
    ],
    ids=str,
)
def test_sensitivity_equals_differentiation(operator, kernel):
    x, rng = documents(), np.random.default_rng(2)
    scores = rng.normal(size=(2, *operator.score_shape(x)))
    slopes = differentiated(operator, kernel, x, scores)
    off = dense(operator, kernel, x, scores) * (1 - np.eye(len(x)))
    every = [
        gram_sums(operator, kernel, x, scores, [1.0, -1.0], tile=tile, sensitive=True)
        for tile in (None, 7)
    ]
    for found in (sensitivity(operator, kernel, x, scores), *(sums.sensitivity for sums in every)):
        np.testing.assert_allclose(found.scores, slopes, atol=1e-11)
        # the positions share a row sum among them
        np.testing.assert_allclose(found.positions.sum(2), off.sum(2), atol=1e-11)


@pytest.mark.parametrize(
    "operator", [Barker(SIZE, witness="shared", average=True), Difference(SIZE)], ids=str
)
def test_parts_of_positions(operator):
    """What a position adds is what is lost without its moves."""
    x, rng, kernel = documents(), np.random.default_rng(3), KERNELS[0]
    scores = rng.normal(size=(2, *operator.score_shape(x)))
    found = gram_sums(
        operator, kernel, x, scores, [1.0, -1.0], sensitive=True
    ).sensitivity.positions
    with jax.enable_x64(True):
        points, given = jnp.asarray(x), jnp.asarray(scores)
        moves = operator.existing(points, given)
        form = jax.jit(
            partial(shared_block if operator.witness == "shared" else matched_block, kernel)
        )
        for d in (0, 4):
            keep = jnp.arange(x.shape[1]) != d
            without = Moves(moves.stay * keep, moves.values, moves.weights * keep[:, None])
            lost = form(points, moves, points, moves) - form(points, without, points, moves)
            np.testing.assert_allclose(
                found[:, :, d], np.sum(np.asarray(lost) * (1 - np.eye(len(x))), 2), atol=1e-11
            )


def test_what_two_tiles_share_stays_small():
    """Documents of few words share most of them: the pairs of moves that share one fill memory."""
    size, rng = 50, np.random.default_rng(0)
    operator, x = Barker(size, witness="shared"), rng.integers(0, size, (200, 30)).astype(np.int32)
    with jax.enable_x64(True):
        bags, _ = prepare(operator, x, rng.normal(size=(2, *operator.score_shape(x))))
        tile = bags.part(0, tile_size(bags))
        meeting = meet(kernel_table(BagOfWords(IMQ(2.0), size), bags), tile, tile)
    arrays = [*meeting.corrections, *meeting.crossed_x, *meeting.crossed_y, meeting.profiles]
    assert sum(array.nbytes for array in arrays) < 2**24
