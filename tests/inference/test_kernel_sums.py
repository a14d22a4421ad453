"""Sums over prefixes against the Gram matrix itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lksd._jax import float64
from lksd.inference import kernel_sums
from lksd.inference.kernel_sums import cross_sums, own_sums
from lksd.kernels import IMQ, BagOfWords, Gaussian, as_kernel

WORDS = 12


def documents(n: int, seed: int) -> np.ndarray:
    """Documents of 0 to 9 of few words, so that many are common and some repeat."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, WORDS, (n, 9)).astype(np.int32)
    return np.where(np.arange(9) < rng.integers(0, 10, (n, 1)), tokens, -1)


def points(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3))


@float64
def gram(kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array(
        jax.vmap(lambda a: jax.vmap(lambda b: kernel(a, b))(jnp.asarray(y)))(jnp.asarray(x))
    )


BAGS = (
    BagOfWords(IMQ(), WORDS),
    BagOfWords(Gaussian(0.5), WORDS),
    BagOfWords(Gaussian(1e-6), WORDS),
)
REAL = (IMQ(2.0), Gaussian.covariance(points(50, 3)), as_kernel(lambda a, b: 1 + a @ b))


@pytest.mark.parametrize(
    ("kernels", "sample", "table"),
    [(BAGS, documents, 1_000), (BAGS, documents, 1), (REAL, points, 0)],
    ids=["documents", "documents without a table", "points"],
)
def test_sums_are_those_of_the_gram_matrix(kernels, sample, table, monkeypatch):
    monkeypatch.setattr(kernel_sums, "TABLE", table)
    for name in ("TILE", "POINTWISE_TILE"):
        monkeypatch.setattr(kernel_sums, name, 16)
    x, y, sizes, counts = sample(30, 0), sample(40, 1), (7, 30), (20, 37, 40)
    own, cross = own_sums(kernels, y, counts), cross_sums(kernels, x, y, sizes, counts)
    for kernel, among, (at_x, at_y) in zip(kernels, own, cross, strict=True):
        within, between = gram(kernel, y, y), gram(kernel, x, y)
        np.fill_diagonal(within, 0.0)
        for count in counts:
            np.testing.assert_allclose(
                among.at(count, count), within[:count, :count].sum(1), rtol=1e-12, atol=1e-14
            )
            np.testing.assert_allclose(
                at_x.at(count, 30), between[:, :count].sum(1), rtol=1e-12, atol=1e-14
            )
        for n in sizes:
            np.testing.assert_allclose(at_y.at(n, 40), between[:n].sum(0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("table", [2**22, 1])
def test_distances_of_word_counts(table, monkeypatch):
    monkeypatch.setattr(kernel_sums, "TABLE", table)
    x, y = documents(20, 0), documents(30, 1)
    counts_x, counts_y = (
        np.array([np.bincount(row[row >= 0], minlength=WORDS) for row in one]) for one in (x, y)
    )
    expected = ((counts_x[:, None] - counts_y) ** 2).sum(2)
    np.testing.assert_array_equal(kernel_sums.bag_distances(x, y, WORDS), expected)


def test_distances_of_long_documents_are_exact():
    x = np.zeros((2, 30_001), np.int32)
    x[1, 0] = 1
    np.testing.assert_array_equal(kernel_sums.bag_distances(x, x, 2), [[0, 2], [2, 0]])
    np.testing.assert_array_equal(
        kernel_sums.bag_distances(x[:1], x[:, :1], 2), [[30_000**2, 30_001**2 + 1]]
    )


def test_a_full_preconditioner_far_from_the_origin():
    x, y = points(30, 0), points(40, 1)
    kernel = IMQ.covariance(points(50, 3) @ np.diag([1.0, 1e-2, 1e-4]))
    near, far = (
        cross_sums((kernel,), x + shift, y + shift, (30,), (40,))[0][0].sums
        for shift in (0.0, 2.0**20)
    )
    expected = gram(kernel, x + 2.0**20, y + 2.0**20).sum(1)
    np.testing.assert_allclose(far[0], expected, rtol=1e-9)
    assert not np.array_equal(near, far)  # the data themselves are rounded there


def test_a_kernel_that_reads_its_preconditioner_keeps_it():
    class Normalised(Gaussian):
        def profile(self, squared):
            return jax.tree.map(
                lambda part: part / jnp.linalg.det(self.preconditioner), super().profile(squared)
            )

    x, y = points(8, 0), points(9, 1)
    kernel = Normalised(np.diag([1.0, 2.0, 3.0]))
    ((rows, _),) = cross_sums((kernel,), x, y, (8,), (9,))
    np.testing.assert_allclose(rows.sums[0], gram(kernel, x, y).sum(1), rtol=1e-12)
