"""The relative MMD on samples from the models, judged together with the kernel Stein tests: each sees what the other misses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._keywords import Options
from ..domains import Domain, Prepared
from ..kernels import Kernel
from ..models import Simulates
from ..models.base import draw
from ..options import Decision
from ..results.comparison import MMDResult
from ..statistics import ustatistic
from ..statistics.multiplicity import Family
from ..statistics.resampling import multinomial_weights
from .contrasts import Contrasts
from .mmd import SampleMeans, judge_means, own_means, sample_means

if TYPE_CHECKING:
    from ..problem import Problem

SAMPLES = 2_000  # from each model, or as many as there are observations


class MMDTest(NamedTuple):
    """The test before its p-value is adjusted; its covariance with the others comes from the data alone."""

    result: MMDResult
    influence: np.ndarray  # (n,), of each observation on the difference
    noise: float  # the standard error that the models' samples add

    @property
    def live(self) -> bool:
        return self.result.standard_error > 0

    def turned(self) -> MMDTest:
        """The same with the models in the other order."""
        return self._replace(result=replace(self.result, statistic=-self.result.statistic), influence=-self.influence)


def check_samples(models: dict[str, Any], options: Options) -> None:
    margin, pairs, smooth = options.decision.margin, options.decision.pairs, options.reading.smooth
    for name, model in models.items():
        if not isinstance(model, Simulates):
            raise ValueError(f"also_mmd: expected models with sample(key); {name} has none. Give the model itself, with sample.")
    if smooth is not None:
        raise ValueError(
            f"also_mmd: expected the data as they are; got smooth={smooth!r}. The MMD sees weights without it; leave it out."
        )
    if pairs is not None:
        raise ValueError(f"also_mmd: expected all pairs of observations; got pairs={pairs}. Leave one of them out.")
    if margin:
        raise ValueError(f"also_mmd: expected margin=0, which is in units of the KSD alone; got {margin}. Leave one of them out.")


def mmd_test(problem: Problem, prepared: Prepared) -> MMDTest:
    """Samples from both models against the data, all in the units of the test."""
    kernel, options = problem.domain.mmd_kernel(prepared), problem.options
    samples = samples_of(problem.named.models, prepared, problem.domain, options.run.seed)
    p, q = (sample_means(kernel, prepared.x, y) for y in samples)
    return mmd_of_means(p, q, own_means(kernel, prepared.x).mean(), kernel, options.decision.alpha, options.run.seed)


def mmd_of_means(p: SampleMeans, q: SampleMeans, own_data: float, kernel: Kernel, alpha: float, seed: int) -> MMDTest:
    result = judge_means(p, q, own_data, kernel, alpha)
    influence = -2 * ustatistic.centred(p.at_data - q.at_data)
    own = np.sum(influence**2) / (len(influence) * (len(influence) - 1))
    return MMDTest(replace(result, seed=seed), influence, math.sqrt(max(result.standard_error**2 - own, 0.0)))


def samples_of(models: Sequence[Any], prepared: Prepared, domain: Domain, seed: int) -> list[np.ndarray]:
    """Independent samples of both models, the same ones whichever model is named first.

    The random numbers cannot depend on the role, so an order of pilots, made with the same numbers for both,
    says which model is the first. Models that draw the same all along are one model, with one sample.
    """
    one, other = (sampled(model, prepared, domain, 0, seed) for model in models)
    if np.array_equal(one, other):
        return [one, other]
    streams = (1, 2) if one.tobytes() < other.tobytes() else (2, 1)
    return [sampled(model, prepared, domain, stream, seed) for model, stream in zip(models, streams, strict=True)]


def sampled(model: Any, prepared: Prepared, domain: Domain, stream: int, seed: int) -> np.ndarray:
    """A sample of the model; documents as long as those of the data."""
    x = prepared.x
    count = max(SAMPLES, len(x))
    own_seed = int(np.random.SeedSequence([seed, stream]).generate_state(1)[0])
    y = domain.draws(model, draw(model, count, own_seed, x.shape[1]))
    if y.shape[1:] != x.shape[1:]:
        raise ValueError(f"also_mmd: expected samples of {x.shape[1]} columns as in x; {model} gives {y.shape[1:]}.")
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
        return np.concatenate([part for half, sign in zip(halves, signs, strict=True) for part in (half, sign * own)])

    replicates = None
    if family.replicates is not None:
        replicates = added(family.replicates, resampled(mmd, family.replicates.shape[1], mmd.result.seed)[None])
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
    """T* of the MMD on the same resamples of the data as the other tests; the models' samples add normal noise."""
    n = len(mmd.influence)
    weights = multinomial_weights(n, count, seed)
    mean = mmd.influence @ weights / n
    variance = (mmd.influence**2 @ weights / n - mean**2) / (n - 1) + mmd.noise**2
    noise = mmd.noise * np.random.default_rng([seed, 2]).standard_normal(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, (mean + noise) / np.sqrt(variance), np.nan)
