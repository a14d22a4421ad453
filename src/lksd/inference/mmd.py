"""The relative maximum mean discrepancy test with three sample sizes (Appendix B.5)."""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._documents import as_tokens, is_ragged, is_sparse
from .._float64 import float64
from .._validation import check_count, check_probability, check_range, check_reals
from ..kernels import BagOfWords, Kernel, as_kernel, check_on, kernel_block, named_errors
from .calibration import Edgeworth
from .results import MMDResult
from .settings import as_settings

TILE = 1_024
POINTWISE_TILE = 128


def relative_mmd(x, y_p, y_q, kernel, *, alpha: float = 0.05) -> MMDResult:
    """Test H0: MMD(P, data) <= MMD(Q, data), from samples of both models.

    Parameters
    ----------
    x : (n_R, D) array
        The data.
    y_p, y_q : (n_P, D) and (n_Q, D) arrays
        Independent samples from the two models; the three sizes may differ.
    kernel : kernel or function k(x, y)

    Examples
    --------
    >>> import numpy as np, lksd
    >>> rng = np.random.default_rng(0)
    >>> x, y_p, y_q = rng.normal(size=(200, 2)), rng.normal(1, 1, (300, 2)), rng.normal(size=(400, 2))
    >>> lksd.relative_mmd(x, y_p, y_q, lksd.kernels.Gaussian.median(x)).reject
    True
    """
    alpha = check_probability("alpha", alpha)
    kernel = as_kernel(kernel)
    data, from_p, from_q = samples(kernel, {"x": x, "y_p": y_p, "y_q": y_q})
    check_on(kernel, data, scalar=True)
    p, q = (SampleMeans(own_means(kernel, one), *cross_means(kernel, data, one)) for one in (from_p, from_q))
    return judge_means(p, q, own_means(kernel, data).mean(), kernel, alpha)


class SampleMeans(NamedTuple):
    """Row means of a model's sample y: its own Gram matrix without the diagonal, and the means between it and the data."""

    own: np.ndarray  # (n_P,)
    at_data: np.ndarray  # (n_R,), over y at each x
    at_sample: np.ndarray  # (n_P,), over x at each y


def judge_means(p: SampleMeans, q: SampleMeans, own_data: float, kernel: Kernel, alpha: float) -> MMDResult:
    """The test from all the means that it needs, which samples of several sizes and models can share."""
    n = len(p.at_data)
    mmd_p, mmd_q = (float(one.own.mean() - 2 * one.at_data.mean() + own_data) for one in (p, q))
    difference = float(p.own.mean() - q.own.mean() - 2 * (p.at_data.mean() - q.at_data.mean()))
    # 4 Var_x / n_P + 4 Var_y / n_Q + 4 Var_z / n_R with sample variances of f-hat and g-hat.
    variance = 4 * (
        np.var(p.own - p.at_sample, ddof=1) / len(p.own)
        + np.var(q.own - q.at_sample, ddof=1) / len(q.own)
        + np.var(p.at_data - q.at_data, ddof=1) / n
    )
    if not math.isfinite(variance):
        raise ValueError(f"kernel: {kernel} is not finite on these samples. Check its parameters and the size of the data.")
    error = math.sqrt(variance)
    null = Edgeworth()
    decidable = error > 0
    statistic = difference / error if decidable else 0.0
    return MMDResult(
        statistic=statistic,
        pvalue=null.upper(statistic) if decidable else 1.0,
        reject=bool(decidable and difference > error * null.upper_quantile(alpha)),
        alpha=alpha,
        n=n,
        kernel=str(kernel),
        seed=0,
        difference=difference,
        standard_error=error,
        estimate=difference,
        null=null,
        mmd_p=mmd_p,
        mmd_q=mmd_q,
        n_p=len(p.own),
        n_q=len(q.own),
        settings=as_settings({"kernel": kernel, "alpha": alpha}),
    )


def samples(kernel: Kernel, given: dict) -> list[np.ndarray]:
    """The three samples checked and in one form: reals, or tokens, documents padded to a common length."""
    documents = any(is_sparse(one) or is_ragged(one) for one in given.values())
    if kernel.domain != "discrete":
        if documents:
            raise ValueError(
                f"kernel: expected one for documents, such as BagOfWords(IMQ(), L); got {kernel}. Or give plain arrays."
            )
        arrays = [check_reals(name, one) for name, one in given.items()]
    else:
        arrays = [as_tokens(one) for one in given.values()]
        for name, tokens in zip(given, arrays, strict=True):
            check_range(name, tokens, getattr(kernel, "n_values", np.iinfo(np.int32).max))
    for name, array in zip(given, arrays, strict=True):
        check_count(name, len(array))
    width = max(array.shape[1] for array in arrays)
    if documents or isinstance(kernel, BagOfWords):
        return [np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=-1) for array in arrays]
    for name, array in zip(given, arrays, strict=True):
        if array.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"{name}: expected {arrays[0].shape[1]} columns as in x; got {array.shape[1]}. Use the same coordinates."
            )
    return arrays


def own_means(kernel: Kernel, y: np.ndarray) -> np.ndarray:
    """(n-1)^-1 sum_{l != i} k(y_l, y_i)."""
    rows, columns = kernel_sums(kernel, y, y, symmetric=True)
    return (rows + columns) / (len(y) - 1)


def cross_means(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The means over y at each x, and over x at each y."""
    rows, columns = kernel_sums(kernel, x, y, symmetric=False)
    return rows / len(y), columns / len(x)


@float64
def kernel_sums(kernel: Kernel, x: np.ndarray, y: np.ndarray, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row and column sums of k(x_i, y_j) in tiles; of the strict upper triangle only where ``symmetric``."""
    size = TILE if kernel.domain == "real" or isinstance(kernel, BagOfWords) else POINTWISE_TILE
    rows, columns = np.zeros(len(x)), np.zeros(len(y))
    for i in range(0, len(x), size):
        for j in range(i if symmetric else 0, len(y), size):
            block = kernel_tile(kernel, x[i : i + size], y[j : j + size], (min(size, len(x)), min(size, len(y))))
            if symmetric and i == j:
                block = np.triu(block, 1)
            rows[i : i + size] += block.sum(1)
            columns[j : j + size] += block.sum(0)
    return rows, columns


def kernel_tile(kernel: Kernel, x: np.ndarray, y: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """k(x_i, y_j), by a program for tiles of this ``shape``."""
    if isinstance(kernel, BagOfWords):
        rho = np.pad(bag_distances(x, y, kernel.n_values), ((0, shape[0] - len(x)), (0, shape[1] - len(y))))
        return np.asarray(_of_distances(kernel, rho))[: len(x), : len(y)]
    with named_errors(kernel, x.shape[1]):
        return np.asarray(_block(kernel, edge(x, shape[0]), edge(y, shape[1])))[: len(x), : len(y)]


def bag_distances(x: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
    """Squared distances of word counts, at the cost of the words that documents have in common."""
    bags_x, bags_y = bags(x, size), bags(y, size)
    norms_x, norms_y = bags_x.power(2).sum(1), bags_y.power(2).sum(1)
    return norms_x[:, None] + norms_y - 2 * (bags_x @ bags_y.T).toarray()


def bags(tokens: np.ndarray, size: int):
    """Word counts of documents that are padded with -1, as a sparse array."""
    from scipy import sparse

    rows, places = np.nonzero(tokens >= 0)
    return sparse.csr_array((np.ones(len(rows)), (rows, tokens[rows, places])), shape=(len(tokens), size))


def edge(array: np.ndarray, size: int) -> np.ndarray:
    """Rows repeated up to ``size``, so that all tiles have one shape."""
    return np.pad(array, ((0, size - len(array)), (0, 0)), mode="edge")


@eqx.filter_jit
def _block(kernel: Kernel, x, y):
    return kernel_block(kernel, jnp.asarray(x), jnp.asarray(y))


@eqx.filter_jit
def _of_distances(kernel: BagOfWords, rho):
    return kernel.of_distance(jnp.asarray(rho), 0)
