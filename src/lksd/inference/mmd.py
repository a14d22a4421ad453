"""The relative maximum mean discrepancy test with three sample sizes (Appendix B.5)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._documents import as_tokens, is_ragged, is_sparse
from .._jax import one_call
from .._validation import check_count, check_probability, check_range, check_reals, column_names, in_columns
from ..kernels import BagOfWords, Kernel, as_kernel, check_on
from ..results.comparison import MMDResult
from ..results.records import as_settings
from ..statistics.nulls import Edgeworth
from .kernel_sums import cross_sums, own_sums


@one_call
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
    p, q = (sample_means(kernel, data, one) for one in (from_p, from_q))
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
        pvalue_reverse=null.lower(statistic) if decidable else 1.0,
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
        columns = column_names(given["x"])
        arrays = [check_reals(name, in_columns(columns, one, name)) for name, one in given.items()]
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


def sample_means(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> SampleMeans:
    """All that the test needs of the model's sample ``y``."""
    ((at_data, at_sample),) = cross_sums((kernel,), x, y, (len(x),), (len(y),))
    return SampleMeans(own_means(kernel, y), at_data.sums[0] / len(y), at_sample.sums[0] / len(x))


def own_means(kernel: Kernel, y: np.ndarray) -> np.ndarray:
    """(n-1)^-1 sum_{l != i} k(y_l, y_i)."""
    (sums,) = own_sums((kernel,), y, (len(y),))
    return sums.sums[0] / (len(y) - 1)
