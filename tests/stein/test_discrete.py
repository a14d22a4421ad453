"""Difference, Barker and Gibbs Stein kernels against their definitions, written out on small
lattices.
"""

import itertools

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from scipy import sparse

from lksd.kernels import (
    IMQ,
    BagOfWords,
    Gaussian,
    Hamming,
    Kernel,
    OneHot,
    Product,
    Sum,
    Weighted,
    gram,
)
from lksd.stein import Barker, Difference, Gibbs, stein_kernel

L, DIM = 3, 3


class Own(Kernel):
    def __call__(self, x, y):
        return 1 / (1 + jnp.sum(jnp.abs(x - y))) + 0.2 * (x[0] == y[0])


def word_weight(x):
    return 1 / (1 + jnp.sum(x))


KERNELS = {
    "hamming": Hamming(),
    "one-hot": OneHot(IMQ(1.5), L),
    "one-hot gaussian": OneHot(Gaussian(2.0), L),
    "bag of words": BagOfWords(IMQ(2.0), L),
    "bag of words gaussian": BagOfWords(Gaussian(3.0), L),
    "sum": Sum(Hamming(), BagOfWords(IMQ(), L)),
    "product": Product(Hamming(), OneHot(IMQ(), L)),
    "weighted": Weighted(BagOfWords(IMQ(), L), word_weight),
    "own": Own(),
    "sum with own": Sum(Own(), Hamming()),
}
OPERATORS = {"difference": Difference, "barker": Barker, "gibbs": Gibbs}
CASES = [
    (operator, witness, order)
    for operator, witness, order in itertools.product(
        OPERATORS, ("per-coordinate", "shared"), (None, (2, 0, 1))
    )
    if not (operator == "gibbs" and order)
]
# for kernels that only combine others
SPARSE = [("difference", "per-coordinate", None), ("barker", "shared", None)]


def build(name, witness, order=None, n_values=L):
    if name == "gibbs":
        return Gibbs(n_values, witness=witness)
    return OPERATORS[name](n_values, order=order, witness=witness)


def scores(name, pmf, points, order, n_values=L):
    if name == "difference":
        return oracles.difference_scores(pmf, points, order)
    if name == "barker":
        return oracles.barker_scores(pmf, points, order)
    return oracles.gibbs_scores(pmf, points, n_values)


def plain(kernel):
    """The kernel as a table over the lattice, so that the oracle is arithmetic only."""
    points = oracles.lattice(L, DIM)
    values = gram(kernel, points, points)
    index = {tuple(int(v) for v in point): i for i, point in enumerate(points)}
    return lambda x, y: values[index[tuple(x)], index[tuple(y)]]


@pytest.mark.parametrize(
    ("name", "case"),
    [
        (name, case)
        for name in KERNELS
        for case in CASES
        if name in ("hamming", "bag of words", "own") or case in SPARSE
    ],
    ids=str,
)
def test_block_equals_definition(name, case):
    operator, witness, order = case
    cycle = np.arange(L) if order is None else np.array(order)
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, L, (4, DIM)), rng.integers(0, L, (3, DIM))
    y[0] = x[0]
    shape = {"difference": (), "barker": (2,), "gibbs": (L,)}[operator]
    s, t = rng.normal(size=(4, DIM, *shape)), rng.normal(size=(3, DIM, *shape))
    table = plain(KERNELS[name])
    expected = [
        [
            oracles.discrete_stein_kernel(operator, table, a, u, b, v, cycle, witness == "shared")
            for b, v in zip(y, t, strict=True)
        ]
        for a, u in zip(x, s, strict=True)
    ]
    block = stein_kernel(build(operator, witness, order), KERNELS[name], x, s, y, t)
    np.testing.assert_allclose(block, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("name", ["bag of words", "own"])
def test_stein_identity_by_enumeration(name, case):
    operator, witness, order = case
    cycle = np.arange(L) if order is None else np.array(order)
    pmf = oracles.random_pmf(L, DIM, seed=1)
    points = oracles.lattice(L, DIM)
    mass = np.array([pmf[tuple(point)] for point in points])
    s = scores(operator, pmf, points, cycle)
    h = stein_kernel(build(operator, witness, order), KERNELS[name], points, s)
    np.testing.assert_allclose(h @ mass, 0, atol=1e-10 * np.abs(h).max())
    other = oracles.random_pmf(L, DIM, seed=2)
    elsewhere = np.array([other[tuple(point)] for point in points])
    assert np.abs(h @ elsewhere).max() > 1e-3  # and only under the model


def test_two_values_have_one_neighbour():
    rng = np.random.default_rng(0)
    x, s = rng.integers(0, 2, (4, 3)), rng.random((4, 3, 2))
    kernel = Hamming()
    changed = s.copy()
    changed[..., 1] = 7.0
    h = stein_kernel(Barker(2), kernel, x, s)
    np.testing.assert_array_equal(h, stein_kernel(Barker(2), kernel, x, changed))
    pmf = oracles.random_pmf(2, 3, seed=3)
    points = oracles.lattice(2, 3)
    h = stein_kernel(Barker(2), kernel, points, oracles.barker_scores(pmf, points, np.arange(2)))
    np.testing.assert_allclose(h @ [pmf[tuple(point)] for point in points], 0, atol=1e-12)


# ------------------------------------------------------------- documents of different length


def mixed_lengths():
    """All documents of length 1, 2 and 3 over three words, an exchangeable law for each length, and
    its scores.
    """
    documents, mass, score = [], [], []
    cycle = np.arange(L)
    for length, share in ((1, 0.2), (2, 0.5), (3, 0.3)):
        points = oracles.lattice(L, length)
        pmf = oracles.random_pmf(L, length, seed=length)
        documents += [list(map(int, point)) for point in points]
        mass += [share * pmf[tuple(point)] for point in points]
        score += list(oracles.difference_scores(pmf, points, cycle))
    return documents, np.array(mass), score


@pytest.mark.parametrize("witness", ["per-coordinate", "shared"])
@pytest.mark.parametrize("name", ["hamming", "bag of words"])
def test_stein_identity_with_mixed_lengths(name, witness):
    documents, mass, score = mixed_lengths()
    h = stein_kernel(Difference(L, witness=witness), KERNELS[name], documents, score)
    np.testing.assert_allclose(h @ mass, 0, atol=1e-12 * np.abs(h).max())


@pytest.mark.parametrize("witness", ["per-coordinate", "shared"])
def test_mixed_lengths_equal_definition(witness):
    documents, _, score = mixed_lengths()
    kernel = BagOfWords(IMQ(2.0), L)

    def bag(x, y):
        counts = np.bincount(x, minlength=L) - np.bincount(y, minlength=L)
        return 1 / np.sqrt(1 + counts @ counts / 2.0)

    h = stein_kernel(Difference(L, witness=witness), kernel, documents, score)
    chosen = [0, 2, 5, 9, 14, 30]
    for i, j in itertools.product(chosen, chosen):
        expected = (
            oracles.discrete_stein_kernel(
                "difference",
                bag,
                documents[i],
                score[i],
                documents[j],
                score[j],
                np.arange(L),
                witness == "shared",
            )
            if witness == "shared" or len(documents[i]) == len(documents[j])
            else matched(bag, documents, score, i, j)
        )
        np.testing.assert_allclose(h[i, j], expected, rtol=1e-11, atol=1e-12)


def matched(bag, documents, score, i, j):
    """Only the positions that both documents have."""
    both = min(len(documents[i]), len(documents[j]))
    total = 0.0
    for d in range(both):

        def inner(u, d=d):
            return oracles.apply_operator(
                "difference", lambda v: bag(u, v), tuple(documents[j]), d, score[j][d], np.arange(L)
            )

        total += oracles.apply_operator(
            "difference", inner, tuple(documents[i]), d, score[i][d], np.arange(L)
        )
    return total


def test_sparse_counts_equal_token_lists():
    documents, _, score = mixed_lengths()
    ordered = [sorted(document) for document in documents]
    counts = sparse.csr_array(
        np.array([np.bincount(document, minlength=L) for document in documents])
    )
    operator, kernel = Difference(L, witness="shared"), KERNELS["bag of words"]
    np.testing.assert_array_equal(
        stein_kernel(operator, kernel, counts, score),
        stein_kernel(operator, kernel, ordered, score),
    )


def test_permuting_the_positions_of_an_exchangeable_model():
    rng = np.random.default_rng(4)
    x, s = rng.integers(0, L, (6, 4)), rng.normal(size=(6, 4))
    order = np.array([2, 0, 3, 1])
    for witness in ("per-coordinate", "shared"):
        for kernel in (Hamming(), BagOfWords(IMQ(), L)):
            operator = Difference(L, witness=witness)
            h = stein_kernel(operator, kernel, x, s)
            np.testing.assert_allclose(
                stein_kernel(operator, kernel, x[:, order], s[:, order]), h, rtol=1e-12, atol=1e-12
            )
