"""Designs of pairs against their definition, and the sums over them against the dense matrix."""

import numpy as np
import pytest
from oracles import pairs_met

from lksd.engines import Local
from lksd.kernels import IMQ, BagOfWords, Hamming
from lksd.stein import Difference, Langevin, gram_sums, stein_kernel, tiles
from lksd.stein.gram import sum_tiles, tiling_of


@pytest.mark.parametrize("n", [20, 37, 100, 180])
@pytest.mark.parametrize("largest", [3, 8, 64])
@pytest.mark.parametrize("pairs", [None, 60, 150, 600, 13_688, 10**6])
def test_every_pair_is_met_once_or_not_at_all(n, largest, pairs):
    tiling = tiling_of(n, largest, pairs)
    count = pairs_met(tiling)
    assert count.max() == 1
    np.testing.assert_array_equal(count.sum(1), tiling.partners)
    assert tiling.rows <= max(largest, 16)
    if pairs is None or pairs >= n * (n - 1) // 2:
        assert tiling.reach is None
        assert (tiling.partners == n - 1).all()
    else:
        assert pairs <= count.sum() // 2 <= n * (n - 1) // 2
    if tiling.reach is not None:
        assert tiling.partners.max() - tiling.partners.min() <= 2 * tiling.rows


def test_the_number_of_pairs_is_near_what_was_asked_for():
    for n, pairs in ((10_000, 10**6), (100_000, 10**7), (1_000_000, 10**9)):
        taken = tiling_of(n, 512, pairs).partners.sum() / 2
        assert pairs <= taken <= 1.1 * pairs


def continuous(rng):
    return Langevin(), IMQ(2.0), rng.normal(size=(60, 3)), rng.normal(size=(2, 60, 3))


def documents(rng):
    return (
        Difference(9, witness="shared"),
        BagOfWords(IMQ(), 9),
        rng.integers(0, 9, (60, 5)).astype(np.int32),
        rng.random((2, 60, 5)),
    )


def sequences(rng):
    return Difference(9), Hamming(), *documents(rng)[2:]


@pytest.mark.parametrize("problem", [continuous, documents, sequences])
def test_sums_over_some_pairs_equal_dense_ones(problem):
    operator, kernel, x, scores = problem(np.random.default_rng(0))
    n, pairs, tile, seed = 60, 500, 8, 3
    sums = gram_sums(
        operator, kernel, x, scores, [1.0, -1.0], tile=tile, pairs=pairs, seed=seed, sensitive=True
    )
    tiling, order = tiling_of(n, tile, pairs), np.random.default_rng([seed, n]).permutation(n)
    count = np.zeros((n, n))
    count[np.ix_(order, order)] = pairs_met(tiling)
    each = np.stack([stein_kernel(operator, kernel, x, score) for score in scores])
    factor = n * (n - 1) / count.sum()
    h = each[0] - each[1]
    np.testing.assert_allclose(sums.rows, factor * (h * count).sum(1), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        sums.model_rows, factor * (each * count).sum(2), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(sums.squares, factor * (h**2 * count).sum(), rtol=1e-10)
    np.testing.assert_allclose(
        sums.model_diagonal, np.einsum("sii->si", each), rtol=1e-9, atol=1e-11
    )
    np.testing.assert_array_equal(sums.partners, count.sum(1))
    if problem is documents:  # what the positions add makes the row sums
        np.testing.assert_allclose(
            sums.sensitivity.positions.sum(2), sums.model_rows, rtol=1e-9, atol=1e-9
        )
    if problem is sequences:  # here it comes from all pairs
        np.testing.assert_allclose(
            sums.sensitivity.positions.sum(2),
            (each - each * np.eye(n)).sum(2),
            rtol=1e-9,
            atol=1e-9,
        )


@pytest.mark.parametrize("pairs", [None, 500])
@pytest.mark.parametrize("together", [1, 4, 1000])
def test_parts_of_any_number_of_tiles_give_the_same_sums(together, pairs):
    operator, kernel, x, scores = continuous(np.random.default_rng(0))
    by_rows = tiling_of(60, 8, pairs)
    tiling = tiling_of(60, 8, pairs, together)
    parts = list(tiling.parts())
    assert [tile for part in parts for tile in part] == [
        tile for part in by_rows.parts() for tile in part
    ]
    assert len({len(part) for part in parts[:-1]}) <= 1

    def sums(tiling):
        problem = tiles.Problem(
            operator,
            kernel,
            np.array([[1.0, -1.0]]),
            x,
            list(scores),
            np.ones((60, 1)),
            tiling,
            False,
        )
        return sum_tiles(Local(), tiles.ready, problem)

    for one, other in zip(sums(tiling)[:4], sums(by_rows)[:4], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_tile_that_is_nowhere_adds_nothing():
    operator, kernel, x, scores = continuous(np.random.default_rng(0))
    tiling = tiling_of(60, 8, None, 100)
    problem = tiles.Problem(
        operator, kernel, np.array([[1.0, -1.0]]), x, list(scores), np.ones((60, 1)), tiling, False
    )
    add = tiles.ready(problem)
    nowhere = (tiles.NOWHERE, tiles.NOWHERE)
    for one, other in zip(
        add([(0, 0), (0, 3)])[:3], add([(0, 0), nowhere, (0, 3), nowhere])[:3], strict=True
    ):
        np.testing.assert_array_equal(one, other)
