"""The relative maximum mean discrepancy test with three sample sizes (Appendix B.5)."""

from __future__ import annotations

import math

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
    # Row means: of the model's own Gram matrix without the diagonal, and of the data at each point.
    own_p, own_q = own_means(kernel, from_p), own_means(kernel, from_q)
    data_p, p_data = cross_means(kernel, data, from_p)
    data_q, q_data = cross_means(kernel, data, from_q)
    own_data = own_means(kernel, data).mean()
    mmd_p = float(own_p.mean() - 2 * data_p.mean() + own_data)
    mmd_q = float(own_q.mean() - 2 * data_q.mean() + own_data)
    difference = float(own_p.mean() - own_q.mean() - 2 * (data_p.mean() - data_q.mean()))
    # 4 Var_x / n_P + 4 Var_y / n_Q + 4 Var_z / n_R with sample variances of f-hat and g-hat.
    variance = 4 * (
        np.var(own_p - p_data, ddof=1) / len(from_p)
        + np.var(own_q - q_data, ddof=1) / len(from_q)
        + np.var(data_p - data_q, ddof=1) / len(data)
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
        n=len(data),
        kernel=str(kernel),
        seed=0,
        difference=difference,
        standard_error=error,
        null=null,
        mmd_p=mmd_p,
        mmd_q=mmd_q,
        n_p=len(from_p),
        n_q=len(from_q),
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
    size = TILE if kernel.domain == "real" else POINTWISE_TILE
    rows, columns = np.zeros(len(x)), np.zeros(len(y))
    for i in range(0, len(x), size):
        for j in range(i if symmetric else 0, len(y), size):
            left, right = x[i : i + size], y[j : j + size]
            with named_errors(kernel, x.shape[1]):
                block = np.asarray(_block(kernel, edge(left, min(size, len(x))), edge(right, min(size, len(y)))))
            block = block[: len(left), : len(right)]
            if symmetric and i == j:
                block = np.triu(block, 1)
            rows[i : i + size] += block.sum(1)
            columns[j : j + size] += block.sum(0)
    return rows, columns


def edge(array: np.ndarray, size: int) -> np.ndarray:
    """Rows repeated up to ``size``, so that all tiles have one shape."""
    return np.pad(array, ((0, size - len(array)), (0, 0)), mode="edge")


@eqx.filter_jit
def _block(kernel: Kernel, x, y):
    return kernel_block(kernel, jnp.asarray(x), jnp.asarray(y))
