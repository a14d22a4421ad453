"""Tiles against the dense matrix."""

import jax
import numpy as np
import pytest

from lksd.kernels import IMQ, BagOfWords, Hamming, PerCoordinate, Polynomial, Sum, Weighted
from lksd.stein import Barker, Difference, Langevin, gram_sums, paired, stein_kernel
from lksd.stein.gram import gram_matrix, matrix_sums

N, DIM, L = 37, 4, 5


def continuous():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, DIM)), rng.normal(size=(2, N, DIM))


def discrete(width=()):
    rng = np.random.default_rng(1)
    return rng.integers(0, L, (N, DIM)).astype(np.int32), rng.random((2, N, DIM, *width))


CASES = {
    "imq": (Langevin(), IMQ(3.0), continuous()),
    "per coordinate": (Langevin(), PerCoordinate(IMQ(3.0), IMQ(1.0)), continuous()),
    "weighted sum": (Langevin(), Weighted(Sum(IMQ(1.0), IMQ(9.0)), Polynomial()), continuous()),
    "difference": (
        Difference(L, order=np.array([1, 3, 0, 4, 2])),
        BagOfWords(IMQ(), L),
        discrete(),
    ),
    "difference shared": (Difference(L, witness="shared"), BagOfWords(IMQ(), L), discrete()),
    "barker": (Barker(L), Hamming(), discrete((2,))),
}


def dense(operator, kernel, x, scores):
    return np.stack([stein_kernel(operator, kernel, x, score) for score in scores])


@pytest.mark.parametrize("name", CASES)
def test_sums_equal_dense(name):
    operator, kernel, (x, scores) = CASES[name]
    each = dense(operator, kernel, x, scores)
    h = each[0] - each[1]
    off, weights = h - np.diag(np.diag(h)), np.random.default_rng(2).normal(size=(N, 3))
    for tile in (None, 9):
        sums = gram_sums(operator, kernel, x, scores, [1.0, -1.0], weights, tile=tile)
        largest = np.abs(off.sum(1)).max()
        np.testing.assert_allclose(sums.rows, off.sum(1), atol=1e-12 * largest, rtol=0)
        np.testing.assert_allclose(
            sums.model_rows,
            [(m - np.diag(np.diag(m))).sum(1) for m in each],
            rtol=1e-11,
            atol=1e-11,
        )
        np.testing.assert_allclose(sums.squares, np.sum(off**2), rtol=1e-12)
        np.testing.assert_allclose(sums.diagonal, np.diag(h), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(sums.products, off @ weights, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_sums_from_known_matrices(name):
    operator, kernel, (x, scores) = CASES[name]
    matrices = np.stack([gram_matrix(operator, kernel, x, score) for score in scores])
    expected = dense(operator, kernel, x, scores)
    np.testing.assert_allclose(matrices, expected, atol=1e-12 * np.abs(expected).max(), rtol=0)
    contrasts = np.array([[1.0, -1.0], [0.0, 1.0]])
    known, computed = (
        matrix_sums(matrices, contrasts),
        gram_sums(operator, kernel, x, scores, contrasts, whole=True),
    )
    for field in ("model_rows", "model_diagonal", "rows", "squares", "diagonal", "matrix"):
        value = getattr(computed, field)
        np.testing.assert_allclose(
            getattr(known, field), value, atol=1e-11 * np.abs(value).max(), rtol=0
        )


@pytest.mark.parametrize("name", ["imq", "difference"])
def test_row_order_changes_nothing(name):
    operator, kernel, (x, scores) = CASES[name]
    order = np.random.default_rng(3).permutation(N)
    rows = gram_sums(operator, kernel, x, scores, [1.0, -1.0], tile=9).rows
    permuted = gram_sums(operator, kernel, x[order], scores[:, order], [1.0, -1.0], tile=9).rows
    np.testing.assert_allclose(permuted, rows[order], atol=1e-12 * np.abs(rows).max(), rtol=0)


def test_tile_size_at_length():
    rng = np.random.default_rng(4)
    x, scores = rng.normal(size=(1500, 6)) + 3.0, rng.normal(size=(2, 1500, 6))
    rows = [
        gram_sums(Langevin(), IMQ(10.0), x, scores, [1.0, -1.0], tile=tile).rows
        for tile in (None, 1500, 333)
    ]
    for other in rows[1:]:
        np.testing.assert_allclose(other, rows[0], atol=1e-12 * np.abs(rows[0]).max(), rtol=0)


def test_paired():
    operator, kernel, (x, scores) = CASES["imq"]
    values = paired(operator, kernel, x[:9], scores[:, :9], x[9:18], scores[:, 9:18])
    expected = dense(operator, kernel, x, scores)[:, np.arange(9), np.arange(9, 18)]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_one_compilation_serves_all_values_of_the_same_shapes():
    with jax.log_compiles(False):
        operator, _, (x, scores) = CASES["imq"]
        gram_sums(operator, IMQ(2.0), x, scores, [1.0, -1.0])
        traces = []
        original = Langevin.block

        def counting(self, *arguments):
            traces.append(1)
            return original(self, *arguments)

        Langevin.block = counting
        try:
            for scale in (3.0, 4.0, 5.0):
                gram_sums(operator, IMQ(scale), x + scale, scale * scores, [1.0, -1.0])
        finally:
            Langevin.block = original
    assert not traces
