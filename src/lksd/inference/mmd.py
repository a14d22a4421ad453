"""The relative maximum mean discrepancy test with three sample sizes (Appendix B.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._documents import as_tokens, is_ragged, is_sparse
from .._jax import one_call
from .._validation import (
    check_count,
    check_probability,
    check_range,
    check_reals,
    column_names,
    in_columns,
)
from ..domains import Domain, Prepared
from ..kernels import BagOfWords, Kernel, as_kernel, check_on
from ..models import Simulates
from ..models.simulation import draw
from ..options import Decision, Options
from ..results.base import as_settings
from ..results.comparison import MMDResult
from ..statistics import ustatistic
from ..statistics.multiplicity import Family
from ..statistics.nulls import Edgeworth
from ..statistics.ustatistic import multinomial_weights
from .contrasts import Contrasts
from .kernel_sums import cross_sums, own_sums

if TYPE_CHECKING:
    from ..problem import Problem

SAMPLES = 2_000  # from each model, or as many as there are observations


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
    >>> x = rng.normal(size=(200, 2))
    >>> y_p, y_q = rng.normal(1, 1, (300, 2)), rng.normal(size=(400, 2))
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
    """Row means of a model's sample y: its own Gram matrix without the diagonal, and the means
    between it and the data.
    """

    own: np.ndarray  # (n_P,)
    at_data: np.ndarray  # (n_R,), over y at each x
    at_sample: np.ndarray  # (n_P,), over x at each y


def judge_means(
    p: SampleMeans, q: SampleMeans, own_data: float, kernel: Kernel, alpha: float
) -> MMDResult:
    """The test from all the means that it needs, which samples of several sizes and models can
    share.
    """
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
        raise ValueError(
            f"kernel: {kernel} is not finite on these samples. Check its parameters and the size "
            "of the data."
        )
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
    """The three samples checked and in one form: reals, or tokens, documents padded to a common
    length.
    """
    documents = any(is_sparse(one) or is_ragged(one) for one in given.values())
    if kernel.domain != "discrete":
        if documents:
            raise ValueError(
                f"kernel: expected one for documents, such as BagOfWords(IMQ(), L); got {kernel}. "
                "Or give plain arrays."
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
        return [
            np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=-1)
            for array in arrays
        ]
    for name, array in zip(given, arrays, strict=True):
        if array.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"{name}: expected {arrays[0].shape[1]} columns as in x; got {array.shape[1]}. Use "
                "the same coordinates."
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


# ------------------------------------------------------------- beside the kernel Stein tests: each
# sees what the other misses


class MMDTest(NamedTuple):
    """The test before its p-value is adjusted; its covariance with the others comes from the data
    alone.
    """

    result: MMDResult
    influence: np.ndarray  # (n,), of each observation on the difference
    noise: float  # the standard error that the models' samples add

    @property
    def live(self) -> bool:
        return self.result.standard_error > 0

    def turned(self) -> MMDTest:
        """The same with the models in the other order."""
        return self._replace(
            result=replace(self.result, statistic=-self.result.statistic), influence=-self.influence
        )


def check_samples(models: dict[str, Any], options: Options) -> None:
    margin, pairs, smooth = options.decision.margin, options.decision.pairs, options.reading.smooth
    for name, model in models.items():
        if not isinstance(model, Simulates):
            raise ValueError(
                f"also_mmd: expected models with sample(key); {name} has none. Give the model "
                "itself, with sample."
            )
    if smooth is not None:
        raise ValueError(
            f"also_mmd: expected the data as they are; got smooth={smooth!r}. The MMD sees weights "
            "without it; leave it out."
        )
    if pairs is not None:
        raise ValueError(
            f"also_mmd: expected all pairs of observations; got pairs={pairs}. Leave one of them "
            "out."
        )
    if margin:
        raise ValueError(
            f"also_mmd: expected margin=0, which is in units of the KSD alone; got {margin}. Leave "
            "one of them out."
        )


def mmd_test(problem: Problem, prepared: Prepared) -> MMDTest:
    """Samples from both models against the data, all in the units of the test."""
    own, options = problem.choice.of("mmd"), problem.options
    chosen = None if own is None else own.kernel
    kernel = problem.domain.mmd_kernel(prepared) if chosen is None else as_kernel(chosen)
    count = SAMPLES if own is None or own.samples is None else own.samples
    samples = samples_of(problem.named.models, prepared, problem.domain, options.run.seed, count)
    p, q = (sample_means(kernel, prepared.x, y) for y in samples)
    return mmd_of_means(
        p, q, own_means(kernel, prepared.x).mean(), kernel, options.decision.alpha, options.run.seed
    )


def mmd_of_means(
    p: SampleMeans, q: SampleMeans, own_data: float, kernel: Kernel, alpha: float, seed: int
) -> MMDTest:
    result = judge_means(p, q, own_data, kernel, alpha)
    influence = -2 * ustatistic.centred(p.at_data - q.at_data)
    own = np.sum(influence**2) / (len(influence) * (len(influence) - 1))
    return MMDTest(
        replace(result, seed=seed), influence, math.sqrt(max(result.standard_error**2 - own, 0.0))
    )


def samples_of(
    models: Sequence[Any],
    prepared: Prepared,
    domain: Domain,
    seed: int,
    count: int = SAMPLES,
) -> list[np.ndarray]:
    """Independent samples of both models, the same ones whichever model is named first.

    The random numbers cannot depend on the role, so an order of pilots, made with the same numbers
    for both, says which model is the first. Models that draw the same all along are one model, with
    one sample.
    """
    one, other = (sampled(model, prepared, domain, 0, seed, count) for model in models)
    if np.array_equal(one, other):
        return [one, other]
    streams = (1, 2) if one.tobytes() < other.tobytes() else (2, 1)
    return [
        sampled(model, prepared, domain, stream, seed, count)
        for model, stream in zip(models, streams, strict=True)
    ]


def sampled(
    model: Any, prepared: Prepared, domain: Domain, stream: int, seed: int, count: int
) -> np.ndarray:
    """A sample of the model; documents as long as those of the data."""
    x = prepared.x
    count = max(count, len(x))
    own_seed = int(np.random.SeedSequence([seed, stream]).generate_state(1)[0])
    y = domain.draws(model, draw(model, count, own_seed, x.shape[1]))
    if y.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"also_mmd: expected samples of {x.shape[1]} columns as in x; {model} gives "
            f"{y.shape[1:]}."
        )
    if not np.issubdtype(x.dtype, np.integer):
        return y / prepared.units
    there = (x >= 0)[np.arange(count) % len(x)]
    return np.where(there, y, -1).astype(x.dtype)


def with_mmd(family: Family, tests: list[Contrasts], mmd: MMDTest, decision: Decision) -> Family:
    """The family with the MMD after the other differences, on each side that counts."""
    sides = 1 + decision.two_sided
    t = np.array([mmd.result.statistic])

    def added(values: np.ndarray | None, own: np.ndarray) -> np.ndarray | None:
        if values is None:
            return None
        halves = np.split(values, sides)
        signs = (1, -1)[:sides]
        return np.concatenate(
            [part for half, sign in zip(halves, signs, strict=True) for part in (half, sign * own)]
        )

    replicates = None
    if family.replicates is not None:
        replicates = added(
            family.replicates, resampled(mmd, family.replicates.shape[1], mmd.result.seed)[None]
        )
    return Family(
        statistics=np.asarray(added(family.statistics, t)),
        scores=added(family.scores, t),
        factors=factors_with(family.factors, sides, correlations(tests, mmd)),
        replicates=replicates,
    )


def correlations(tests: list[Contrasts], mmd: MMDTest) -> np.ndarray:
    """Of the MMD with each live difference, by what each observation adds to both."""
    n = len(mmd.influence)
    rows = np.concatenate([test.rows[test.live] for test in tests])
    psi = 2 * ustatistic.centred(rows) / (n - 2)
    lengths = np.linalg.norm(psi, axis=1) * n * mmd.result.standard_error
    return psi @ mmd.influence / np.where(lengths > 0, lengths, 1.0)


def factors_with(factors: np.ndarray, sides: int, rho: np.ndarray) -> np.ndarray:
    """A row of length one with these inner products, in one more column."""
    half = np.split(factors, sides)[0]
    row = np.linalg.lstsq(half, rho, rcond=None)[0] if len(half) else np.zeros(factors.shape[1])
    row = row / max(1.0, float(np.linalg.norm(row)))
    own = np.append(row, math.sqrt(max(1.0 - float(row @ row), 0.0)))
    one_side = np.concatenate([np.pad(half, ((0, 0), (0, 1))), own[None]])
    return np.concatenate([one_side, -one_side]) if sides == 2 else one_side


def resampled(mmd: MMDTest, count: int, seed: int) -> np.ndarray:
    """T* of the MMD on the same resamples of the data as the other tests; the models' samples add
    normal noise.
    """
    n = len(mmd.influence)
    weights = multinomial_weights(n, count, seed)
    mean = mmd.influence @ weights / n
    variance = (mmd.influence**2 @ weights / n - mean**2) / (n - 1) + mmd.noise**2
    noise = mmd.noise * np.random.default_rng([seed, 2]).standard_normal(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, (mean + noise) / np.sqrt(variance), np.nan)
