"""Every bad input ends in one sentence: what was expected, what came, what to do."""

import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from scipy import sparse

import lksd
from lksd import kernels as k
from lksd import stein

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
S = RNG.normal(size=(20, 3))
T = RNG.integers(0, 4, (20, 3))
IMQ = k.IMQ(2.0)
BAG = k.BagOfWords(k.IMQ(), 4)


def with_value(array, index, value):
    changed = np.array(array, dtype=float)
    changed[index] = value
    return changed


def compare(x=X, p=S, q=-X, kernel=IMQ, **options):
    return lksd.compare_scores(x, p, q, kernel, **options)


def discrete(x=T, p=S, q=S + 1, kernel=BAG, operator=None, **options):
    return lksd.compare_scores(x, p, q, kernel, operator=operator or stein.Difference(4), **options)


CASES = {
    "NaN in the data": (
        lambda: compare(x=with_value(X, (3, 1), np.nan)),
        ValueError,
        r"x: .*nan at index \(3, 1\)",
    ),
    "infinity in the data": (
        lambda: compare(x=with_value(X, (0, 0), np.inf)),
        ValueError,
        r"x: .*inf at index \(0, 0\)",
    ),
    "NaN in a score": (
        lambda: compare(q=with_value(S, (7, 2), np.nan)),
        ValueError,
        r"score_q: .*nan at index \(7, 2\)",
    ),
    "too few observations": (
        lambda: compare(x=X[:3], p=S[:3], q=S[:3]),
        ValueError,
        "at least 4 observations; got 3",
    ),
    "scores of another length": (
        lambda: compare(p=S[:10]),
        ValueError,
        r"score_p: expected shape \(20, 3\).*got \(10, 3\)",
    ),
    "scores of another width": (
        lambda: compare(q=S[:, :2]),
        ValueError,
        r"score_q: expected shape \(20, 3\).*got \(20, 2\)",
    ),
    "three axes": (
        lambda: compare(x=X[None]),
        ValueError,
        r"x: expected shape \(n, D\); got \(1, 20, 3\)",
    ),
    "no columns": (lambda: compare(x=X[:, :0]), ValueError, r"x: expected shape \(n, D\)"),
    "text": (lambda: compare(x=np.array([["a"] * 3] * 20)), TypeError, "x: expected real numbers"),
    "objects": (
        lambda: compare(x=np.array([[None] * 3] * 20)),
        (TypeError, ValueError),
        "x: expected",
    ),
    "complex numbers": (
        lambda: compare(x=X + 1j),
        TypeError,
        "x: expected real numbers; got values of type complex128",
    ),
    "ragged reals": (
        lambda: compare(x=[[1.0, 2.0], [1.0]] * 10),
        TypeError,
        "x: expected a rectangular array",
    ),
    "constant data": (
        lambda: compare(x=np.ones((20, 3))),
        ValueError,
        "x: expected observations that differ",
    ),
    "alpha 0": (
        lambda: compare(alpha=0.0),
        ValueError,
        "alpha: expected a number strictly between 0 and 1; got 0.0",
    ),
    "alpha 5": (lambda: compare(alpha=5), ValueError, "alpha: .*got 5"),
    "alpha as text": (lambda: compare(alpha="0.05"), ValueError, "alpha: .*got '0.05'"),
    "unknown variance": (
        lambda: compare(variance="jack"),
        ValueError,
        "variance: expected one of 'auto', 'jackknife'.*got 'jack'",
    ),
    "unknown calibration": (
        lambda: compare(calibration="exact"),
        ValueError,
        "calibration: expected one of 'auto'",
    ),
    "unknown alternative": (
        lambda: compare(alternative="less"),
        ValueError,
        "alternative: expected one of 'greater', 'two-sided'; got 'less'",
    ),
    "bootstrap with another variance": (
        lambda: compare(variance="ustat", calibration="bootstrap"),
        ValueError,
        "calibration: expected 'normal' or 'auto' with variance='ustat'",
    ),
    "unknown operator": (
        lambda: compare(operator="langvin"),
        ValueError,
        "operator: expected one of 'langevin'.*got 'langvin'",
    ),
    "operator of another type": (
        lambda: compare(operator=3),
        TypeError,
        "operator: expected an operator object",
    ),
    "operator class": (
        lambda: compare(operator=stein.Langevin),
        TypeError,
        "operator: .*Give an instance",
    ),
    "kernel class": (lambda: compare(kernel=k.IMQ), TypeError, "kernel: .*Give an instance"),
    "kernel by name": (
        lambda: compare(kernel="imq"),
        TypeError,
        "kernel: expected a kernel object",
    ),
    "no kernel at all": (lambda: compare(kernel=[]), ValueError, "expected at least one of each"),
    "seed": (
        lambda: compare(seed=-1),
        ValueError,
        "seed: expected an integer of at least 0; got -1",
    ),
    "seed as text": (lambda: compare(seed="a"), ValueError, "seed: expected an integer"),
    "mask with continuous data": (
        lambda: compare(mask=np.ones((20, 3), bool)),
        ValueError,
        "mask: only discrete operators",
    ),
    "sparse matrix as reals": (
        lambda: compare(x=sparse.csr_array(X)),
        TypeError,
        "x: got a sparse matrix",
    ),
    "discrete kernel with Langevin": (
        lambda: compare(kernel=k.Hamming(), operator="langevin"),
        ValueError,
        "kernel: expected one on real",
    ),
    "discrete kernel without operator": (
        lambda: compare(kernel=k.Hamming()),
        ValueError,
        "operator: expected one for discrete data",
    ),
    "scores for one of two operators": (
        lambda: discrete(operator=(stein.Difference(4), stein.Barker(4))),
        ValueError,
        "score_p: expected a tuple of 2 arrays",
    ),
    # preconditioners and scales
    "negative preconditioner": (
        lambda: k.IMQ(-1.0),
        ValueError,
        "preconditioner: expected positive values; the smallest is -1",
    ),
    "zero in the diagonal": (
        lambda: k.Gaussian(np.array([1.0, 0.0])),
        ValueError,
        "preconditioner: expected positive",
    ),
    "indefinite matrix": (
        lambda: k.IMQ(np.array([[1.0, 2.0], [2.0, 1.0]])),
        ValueError,
        "positive definite matrix; its smallest eigenvalue is -1",
    ),
    "asymmetric matrix": (
        lambda: k.IMQ(np.array([[1.0, 0.5], [0.0, 1.0]])),
        ValueError,
        "symmetric",
    ),
    "data as preconditioner": (
        lambda: k.IMQ(X),
        ValueError,
        r"preconditioner: expected a scalar.*got shape \(20, 3\)",
    ),
    "NaN preconditioner": (lambda: k.IMQ(np.nan), ValueError, "preconditioner: expected finite"),
    "preconditioner of another width": (
        lambda: compare(kernel=k.IMQ(np.ones(5))),
        ValueError,
        "observations of 3 columns",
    ),
    "preconditioner matrix of another width": (
        lambda: compare(kernel=k.Gaussian(np.eye(2))),
        ValueError,
        "observations of 3 columns",
    ),
    "beta": (
        lambda: k.IMQ(beta=1.0),
        ValueError,
        "beta: expected a number between 0 and 1; got 1.0",
    ),
    "c": (lambda: k.IMQ(c=0.0), ValueError, "c: expected one positive number; got 0.0"),
    "median of constant data": (
        lambda: k.IMQ.median(np.ones((10, 2))),
        ValueError,
        "median distance between observations is zero",
    ),
    "median of a constant column": (
        lambda: k.PerCoordinate.median(np.column_stack([X, np.ones(20)])),
        ValueError,
        "column 3 is constant and has no scale",
    ),
    "covariance of too few": (
        lambda: k.IMQ.covariance(X[:4], shrinkage=0.0),
        ValueError,
        "4 observations in 3 dimensions",
    ),
    "shrinkage": (
        lambda: k.IMQ.covariance(X, shrinkage=2.0),
        ValueError,
        "shrinkage: expected a number between 0 and 1; got 2",
    ),
    "covariance of constant data": (
        lambda: k.IMQ.covariance(np.ones((10, 2))),
        ValueError,
        "covariance is zero",
    ),
    "one-hot of a matrix scale": (
        lambda: k.OneHot(k.IMQ(np.ones(3)), 4),
        ValueError,
        "OneHot: expected a radial kernel with a scalar",
    ),
    "bag of a bag": (
        lambda: k.BagOfWords(k.Hamming(), 4),
        ValueError,
        "BagOfWords: expected a radial kernel",
    ),
    "vocabulary of one": (
        lambda: k.BagOfWords(k.IMQ(), 1),
        ValueError,
        "vocabulary_size: expected an integer of at least 2",
    ),
    "sum over two spaces": (
        lambda: k.Sum(k.IMQ(), k.Hamming()),
        ValueError,
        "Sum: expected two kernels on the same space",
    ),
    "per-coordinate of a bag": (
        lambda: k.PerCoordinate(BAG, IMQ),
        TypeError,
        "PerCoordinate: expected two radial kernels",
    ),
    "per-coordinate with a matrix": (
        lambda: k.PerCoordinate(IMQ, k.IMQ(np.eye(3))),
        ValueError,
        "PerCoordinate: expected own scales",
    ),
    "weight": (lambda: k.Weighted(IMQ, 3.0), TypeError, "weight: expected a function"),
    "polynomial": (lambda: k.Polynomial(-1.0), ValueError, "delta: expected one positive number"),
    "ball": (
        lambda: k.BallBump(radius=1.0, flat_radius=2.0),
        ValueError,
        "BallBump: expected 0 <= flat_radius < radius",
    ),
    "box": (lambda: k.BoxBump(1.0, 0.0), ValueError, "BoxBump: expected lower < upper"),
    # discrete data
    "fractions": (
        lambda: discrete(x=T + 0.5),
        ValueError,
        r"x: expected integers for a discrete operator; got \d.5 at index \(0, 0\)",
    ),
    "a continuous column": (
        lambda: discrete(x=np.column_stack([T[:, :2], X[:, 0]])),
        ValueError,
        "do not mix the two kinds of column",
    ),
    "too large a value": (
        lambda: discrete(x=with_value(T, (5, 1), 4)),
        ValueError,
        r"from 0 to 3; got 4 at index \(5, 1\)",
    ),
    "a negative value": (
        lambda: discrete(x=with_value(T, (5, 1), -1)),
        ValueError,
        r"at least 0; got -1 at index \(5, 1\)",
    ),
    "continuous kernel": (
        lambda: discrete(kernel=IMQ),
        ValueError,
        "kernel: expected one on discrete data",
    ),
    "another alphabet": (
        lambda: discrete(kernel=k.BagOfWords(k.IMQ(), 9)),
        ValueError,
        "alphabet of 4 values as in the operator; got 9",
    ),
    "name without alphabet": (
        lambda: discrete(kernel=k.Hamming(), operator="difference"),
        ValueError,
        r"Use lksd.stein.Difference\(n_values\)",
    ),
    "Barker scores of the wrong shape": (
        lambda: discrete(operator=stein.Barker(4)),
        ValueError,
        r"expected shape \(20, 3, 2\)",
    ),
    "Gibbs scores of the wrong shape": (
        lambda: discrete(operator=stein.Gibbs(4)),
        ValueError,
        r"expected shape \(20, 3, 4\)",
    ),
    "one value": (
        lambda: stein.Difference(1),
        ValueError,
        "n_values: expected an integer of at least 2; got 1",
    ),
    "order": (
        lambda: stein.Difference(3, order=[0, 1, 1]),
        ValueError,
        "order: expected a permutation of 0 .. 2",
    ),
    "short order": (
        lambda: stein.Barker(3, order=[0, 1]),
        ValueError,
        "order: expected a permutation",
    ),
    "witness": (
        lambda: stein.Barker(3, witness="common"),
        ValueError,
        "witness: expected one of 'per-coordinate', 'shared'",
    ),
    "mask of another shape": (
        lambda: discrete(mask=np.ones((20, 2), bool)),
        ValueError,
        "mask: expected booleans of x's shape",
    ),
    "an observation without positions": (
        lambda: discrete(mask=np.arange(20)[:, None].repeat(3, 1) != 6),
        ValueError,
        "mask: observation 6 has no position",
    ),
    "an empty document": (
        lambda: discrete(x=[[1, 2]] * 19 + [[]]),
        ValueError,
        r"document 19 \(counting from 0\) is empty. Remove it, and its scores",
    ),
    "a negative token": (
        lambda: discrete(x=[[1, 2]] * 19 + [[-1]]),
        ValueError,
        r"document 19 \(counting from 0\) has the negative token id -1",
    ),
    "words instead of ids": (
        lambda: discrete(x=[["a", "b"]] * 19 + [["c"]]),
        TypeError,
        r"document 0 \(counting from 0\) is not",
    ),
    "counts with positions": (
        lambda: discrete(x=sparse.csr_array(T)),
        ValueError,
        'Use witness="shared"',
    ),
    "fractional counts": (
        lambda: discrete(
            x=sparse.csr_array(T + 0.5), operator=stein.Difference(4, witness="shared")
        ),
        ValueError,
        "expected non-negative integer counts; document 0",
    ),
    "masked array": (
        lambda: compare(x=np.ma.masked_greater(X, 1.0)),
        ValueError,
        "x: expected no missing values",
    ),
    "a frame with missing values": (
        lambda: compare(x=pandas.DataFrame({"a": [1, None] * 10, "b": range(20)}, dtype="Int64")),
        TypeError,
        r"x: expected numbers; got <NA> at index \(1, 0\)",
    ),
    "numbers as text": (
        lambda: compare(x=pandas.DataFrame({"a": ["1", "2"] * 10})),
        TypeError,
        "x: expected numbers; got '1'",
    ),
    "a kernel that is not smooth": (
        lambda: compare(kernel=lambda a, b: jnp.exp(-jnp.linalg.norm(a - b))),
        ValueError,
        "kernel: .*not finite at observation 0.*also where both observations are equal",
    ),
    "a kernel in NumPy": (
        lambda: compare(kernel=lambda a, b: np.exp(-np.asarray(a - b) @ (a - b))),
        ValueError,
        "write it with jax.numpy",
    ),
    "a kernel with a branch": (
        lambda: compare(kernel=lambda a, b: a @ b if a[0] > 0 else 1.0),
        ValueError,
        "without if on values",
    ),
    "singular covariance": (
        lambda: k.IMQ.covariance(
            np.column_stack([X[:, 0], X[:, 1], X[:, 0] + X[:, 1]]), shrinkage=0.0
        ),
        ValueError,
        "positive definite",
    ),
    "beta as text": (
        lambda: k.IMQ(beta="a"),
        TypeError,
        "beta: expected one finite number; got 'a'",
    ),
    "c as an array": (lambda: k.IMQ(c=np.ones(2)), TypeError, "c: expected one finite number"),
    "preconditioner as text": (
        lambda: k.IMQ("median"),
        TypeError,
        "preconditioner: expected numbers; got 'median'",
    ),
    "shrinkage as text": (
        lambda: k.IMQ.covariance(X, shrinkage="a"),
        TypeError,
        "shrinkage: expected one finite number",
    ),
    "ball with three radii": (lambda: k.BallBump(np.ones(3)), ValueError, "BallBump: expected"),
    "number of values as text": (
        lambda: stein.Difference("4", order=[0, 1]),
        ValueError,
        "n_values: expected an integer",
    ),
    "variance as an array": (
        lambda: compare(variance=np.array(["jackknife"])),
        ValueError,
        "variance: expected one of",
    ),
    "no documents": (
        lambda: discrete(x=np.zeros((0, 3), int), p=np.zeros((0, 3)), q=np.zeros((0, 3))),
        ValueError,
        "at least 4 observations",
    ),
    "token ids beyond 2^31": (
        lambda: discrete(x=[[2**32 + 1, 1]] * 19 + [[1]]),
        ValueError,
        "ids must lie below 2.31",
    ),
    "scores of too few documents": (
        lambda: discrete(x=[[1, 2], [1]] * 10, p=[[0.1, 0.2], [0.1]] * 5),
        ValueError,
        "score_p: expected scores of 20 documents; got 10",
    ),
    "scores that do not follow the documents": (
        lambda: discrete(x=[[1, 2], [1]] * 10, p=[[0.1], [0.1, 0.2]] * 10),
        ValueError,
        r"score_p: expected shape \(2,\) for document 0 \(counting from 0\); got \(1,\)",
    ),
    "counts with a kernel of positions": (
        lambda: discrete(
            x=sparse.csr_array(T + 1),
            kernel=k.Hamming(),
            operator=stein.Difference(4, witness="shared"),
        ),
        ValueError,
        "kernel: expected BagOfWords for word counts",
    ),
    "a bootstrap for a tiny level": (
        lambda: compare(alpha=1e-6, calibration="bootstrap"),
        ValueError,
        "alpha: expected at least 0.0005",
    ),
    "MMD of counts with a real kernel": (
        lambda: lksd.relative_mmd(*[sparse.csr_array(T)] * 3, IMQ),
        ValueError,
        "kernel: expected one for documents",
    ),
    "MMD widths of a discrete kernel": (
        lambda: lksd.relative_mmd(T, T[:, :2], T, k.Hamming()),
        ValueError,
        "y_p: expected 3 columns",
    ),
    "MMD of nothing": (
        lambda: lksd.relative_mmd([], S, S, IMQ),
        ValueError,
        "x: expected at least 4 observations; got 0",
    ),
    # other tests
    "goodness of fit with several kernels": (
        lambda: lksd.goodness_of_fit_scores(X, S, [IMQ, IMQ]),
        ValueError,
        "got several",
    ),
    "goodness of fit shape": (
        lambda: lksd.goodness_of_fit_scores(X, S[:5], IMQ),
        ValueError,
        r"scores: expected shape \(20, 3\)",
    ),
    "MMD columns": (
        lambda: lksd.relative_mmd(X, S[:, :2], S, IMQ),
        ValueError,
        "y_p: expected 3 columns as in x; got 2",
    ),
    "MMD sample size": (
        lambda: lksd.relative_mmd(X, S, S[:2], IMQ),
        ValueError,
        "y_q: expected at least 4 observations; got 2",
    ),
    "MMD NaN": (
        lambda: lksd.relative_mmd(X, with_value(S, (1, 1), np.nan), S, IMQ),
        ValueError,
        r"y_p: .*nan at index \(1, 1\)",
    ),
    "MMD of a matrix-valued kernel": (
        lambda: lksd.relative_mmd(X, S, S, k.PerCoordinate(IMQ, IMQ)),
        ValueError,
        "one number for a pair",
    ),
    "MMD alpha": (lambda: lksd.relative_mmd(X, S, S, IMQ, alpha=1.0), ValueError, "alpha"),
    "kernel that returns NaN": (
        lambda: compare(kernel=lambda x, y: jnp.sqrt(-1 - jnp.sum((x - y) ** 2))),
        ValueError,
        "kernel: .*not finite at observation 0",
    ),
    "interval level": (
        lambda: compare().confidence_interval(95),
        ValueError,
        "level: expected a number strictly between 0 and 1; got 95",
    ),
    "power": (
        lambda: compare().required_n(80),
        ValueError,
        "power: expected a number strictly between 0 and 1; got 80",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    call, kind, message = CASES[name]
    with pytest.raises(kind, match=message):
        call()
