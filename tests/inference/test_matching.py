"""Scores are used with the observations that they were made at, and with no others; kernels and
numbers are checked at the door.
"""

from dataclasses import replace

import ksd
import numpy as np
import pandas
import polars
import pytest
from scipy.sparse import csr_array

import lksd
from lksd.kernels import IMQ, Hamming, Kernel, Sum
from lksd.models import LDA, PPCA
from lksd.scores.result import row_digests

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(size=(N, 3))
WEIGHT = RNG.random((3, 1))
P, Q = (lksd.estimate_scores(PPCA(WEIGHT, noise), X) for noise in (2.0, 1.0))
KERNEL = IMQ(2.0)
ORDER = RNG.permutation(N)
NAMES = ["a", "b", "c"]

CALLS = {
    "compare": lambda x, p, q: ksd.compare(x, p, q, kernel=KERNEL),
    "rank": lambda x, p, q: ksd.rank(x, {"one": p, "two": q}, kernel=KERNEL),
    "goodness_of_fit": lambda x, p, q: lksd.goodness_of_fit(x, p, kernel=KERNEL),
    "compare_scores": lambda x, p, q: lksd.compare_scores(x, p, q, KERNEL),
    "rank_scores": lambda x, p, q: lksd.rank_scores(x, {"one": p, "two": q}, KERNEL),
    "goodness_of_fit_scores": lambda x, p, q: lksd.goodness_of_fit_scores(x, p, KERNEL),
}
CHANGED = np.array(X)
CHANGED[7, 1] += 1e-12
OTHERS = {
    "shuffled": (X[ORDER], "the same in another order: row 0 of x is row"),
    "scaled": (100 * X, "40 of the rows of x differ, the first of them row 0"),
    "one number": (CHANGED, "1 of the rows of x differ, the first of them row 7"),
    "other columns": (X[:, ::-1], "40 of the rows of x differ"),
    "fewer": (X[:30], "expected the 40 observations .* got 30"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("case", OTHERS)
def test_other_observations_are_refused(name, case):
    x, message = OTHERS[case]
    with pytest.raises(
        ValueError, match=f"^x: expected the 40 observations that the scores.* {message}|{message}"
    ):
        CALLS[name](x, P, Q)


@pytest.mark.parametrize("name", CALLS)
def test_the_same_observations_in_any_form(name):
    wanted = CALLS[name](X, P, Q)
    for x in (
        np.asfortranarray(X),
        X.tolist(),
        pandas.DataFrame(X, columns=NAMES),
        polars.DataFrame(X, schema=NAMES),
    ):
        assert CALLS[name](x, P, Q).statistic == wanted.statistic
    single = X.astype(np.float32)
    scores = [lksd.estimate_scores(PPCA(WEIGHT, noise), single) for noise in (2.0, 1.0)]
    assert CALLS[name](single.astype(np.float64), *scores).n == N


@pytest.mark.parametrize("name", CALLS)
def test_scores_by_ids(name):
    part = ORDER[:25]
    found, wanted = (
        CALLS[name](X[part], P.at(part), Q.at(part)),
        [lksd.estimate_scores(PPCA(WEIGHT, s), X[part]) for s in (2.0, 1.0)],
    )
    assert found.statistic == pytest.approx(CALLS[name](X[part], *wanted).statistic, rel=1e-9)
    for bad, message in (
        ([0, 99], "there is no 99"),
        ([0.5], "a list of ids"),
        (3, "a list of ids"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            P.at(bad)


def test_ids_that_differ():
    other = replace(Q, index=Q.index + 5)
    for call in (
        lambda: ksd.compare(X, P, other),
        lambda: ksd.rank(X, {"p": P, "q": other}),
        lambda: ksd.compare(X, P, Q, index=np.arange(1, 41)),
    ):
        with pytest.raises(ValueError, match="index: expected one id for each observation"):
            call()


def test_files_without_a_digest_are_used_with_a_note(tmp_path):
    replace(P, observed=None).save(tmp_path / "old.npz")
    old = lksd.load_scores(tmp_path / "old.npz")
    with pytest.warns(lksd.LksdWarning, match="saved without a digest"):
        found = ksd.compare(X, old, Q)
    assert any("nothing says that they belong to x" in note for note in found.notes)
    with pytest.raises(ValueError, match="expected the 40 observations"):
        ksd.compare(X[:30], old, Q.at(np.arange(30)))


def test_columns_by_name():
    frame = pandas.DataFrame(X, columns=NAMES)
    p, q = (lksd.estimate_scores(PPCA(WEIGHT, noise), frame) for noise in (2.0, 1.0))
    turned = frame[["c", "a", "b"]]
    # rotating columns of data and scores alike leaves a radial kernel's statistic as it is
    for name in CALLS:
        assert CALLS[name](turned, p, q).statistic == pytest.approx(
            CALLS[name](frame, p, q).statistic, rel=1e-9
        )
        with pytest.raises(ValueError, match="lacks 'a'"):
            CALLS[name](frame.rename(columns={"a": "z"}), p, q)


def test_labelled_frames():
    labels = [f"row {i}" for i in range(N)]
    x, p, q = (
        pandas.DataFrame(array, columns=NAMES, index=labels) for array in (X, P.score, Q.score)
    )
    wanted = lksd.compare_scores(X, P.score, Q.score, KERNEL).statistic
    assert lksd.compare_scores(x, p.iloc[ORDER], q[["b", "c", "a"]], KERNEL).statistic == wanted
    assert lksd.compare_scores(x, P.score, q.reset_index(drop=True), KERNEL).statistic == wanted
    with pytest.raises(ValueError, match="score_p: expected rows with the labels of x, each once"):
        lksd.compare_scores(x, p.rename(index={"row 3": "other"}), q, KERNEL)
    with pytest.raises(ValueError, match="Put them in the order of x"):
        lksd.compare_scores(X, p, q.iloc[ORDER], KERNEL)
    plain = pandas.DataFrame(X)
    with pytest.raises(ValueError, match="Give both the same index"):
        lksd.compare_scores(
            plain.iloc[ORDER], pandas.DataFrame(P.score), pandas.DataFrame(Q.score), KERNEL
        )


def test_documents_in_any_form():
    topics = LDA(np.ones(2), np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]))
    documents = [sorted(RNG.integers(0, 4, 3 + i % 4).tolist()) for i in range(12)]
    counts = csr_array(np.array([np.bincount(one, minlength=4) for one in documents]))
    made = lksd.estimate_scores(topics, documents)
    again = lksd.estimate_scores(topics, counts)
    np.testing.assert_array_equal(made.observed, again.observed)
    wanted = lksd.goodness_of_fit(documents, made).statistic
    for x in (counts, [np.array(one) for one in documents]):
        assert lksd.goodness_of_fit(x, made).statistic == wanted
    short = [i for i, one in enumerate(documents) if len(one) < 6]
    assert lksd.goodness_of_fit([documents[i] for i in short], made.at(short)).n == len(short)
    with pytest.raises(ValueError, match=r"the first of them row 0|another order"):
        lksd.goodness_of_fit(documents[::-1], made)


def test_digests_tell_rows_apart():
    whole = row_digests(RNG.integers(0, 2, (20_000, 40)).astype(np.int32))
    assert len(np.unique(whole)) == 20_000
    assert row_digests(np.array([[0.0, -0.0]])) == row_digests(np.array([[-0.0, 0.0]]))
    assert row_digests(np.array([[1, 2, -1]], np.int32)) == row_digests(
        np.array([[1, 2]], np.int32)
    )
    assert (
        len(np.unique(row_digests(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 0.0], [0.0, 1.0]])))) == 4
    )


class Turned(Kernel):
    def __call__(self, x, y):
        return -KERNEL(x, y)


def distance(x, y):
    return abs(x - y).sum()


KERNELS = {
    "sign": Turned(),
    "distance": distance,
    "difference": lambda x, y: IMQ(1.0)(x, y) - 2 * IMQ(4.0)(x, y),
    "sum": Sum(IMQ(9.0), distance),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_are_not_positive_definite(name):
    kernel = KERNELS[name]
    calls = [
        lambda: ksd.compare(X, P, Q, kernel=kernel),
        lambda: lksd.rank_scores(X, {"one": P, "two": Q}, [IMQ(1.0), kernel]),
        lambda: lksd.goodness_of_fit(X, P, kernel=kernel),
        lambda: lksd.relative_mmd(X, X + 1, X - 1, kernel),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=r"kernel: expected a positive definite one; .* eigenvalues from -"
        ):
            call()
    tokens = RNG.integers(0, 3, (20, 4))
    with pytest.raises(ValueError, match="positive definite"):
        lksd.goodness_of_fit_scores(
            tokens,
            np.zeros((20, 4)),
            lambda x, y: -Hamming()(x, y),
            operator=lksd.stein.Difference(3, witness="shared"),
        )
    with pytest.raises(ValueError, match="expected a symmetric one"):
        ksd.compare(X, P, Q, kernel=lambda x, y: IMQ(1.0)(x, y) * (2 + x[0]))


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x, y: x @ y,
        lambda x, y: (1 + x @ y) ** 3,
        lambda x, y: IMQ(1.0)(x, y).astype("float32"),
    ],
)
def test_kernels_that_are_positive_semidefinite(kernel):
    assert ksd.compare(X, P, Q, kernel=kernel).n == N


@pytest.mark.parametrize("size", [1e41, 1e100, 1e300])
def test_numbers_that_are_too_large(size):
    wild = np.array(P.score)
    wild[3, 1] = -size
    for call in (
        lambda: lksd.compare_scores(X, wild, Q.score, KERNEL),
        lambda: ksd.compare(X, replace(P, score=wild), Q),
    ):
        with pytest.raises(
            ValueError, match=r"expected numbers below 1e\+40 in size.* at index \(3, 1\)"
        ):
            call()
    with pytest.raises(ValueError, match=r"x: expected numbers below 1e\+40"):
        ksd.compare(size * X, PPCA(WEIGHT, 1.0), PPCA(WEIGHT, 2.0))


def test_numbers_that_are_just_not_too_large(tmp_path):
    """Their powers are finite, so that the answer is that of the same scores in other units."""
    scale = 9e39 / max(np.abs(P.score).max(), np.abs(Q.score).max())
    found, wanted = (
        lksd.compare_scores(X / s, P.score * s, Q.score * s, IMQ(2.0 / s**2)) for s in (scale, 1.0)
    )
    assert found.pvalue == wanted.pvalue
    assert found.statistic == pytest.approx(wanted.statistic, rel=1e-9)
    found.to_html(tmp_path / "report.html")
