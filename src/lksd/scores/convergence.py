"""When the chains of an observation count as converged: one set of thresholds for the whole
library.

Chains have not converged where one of these holds:

- they left the finite numbers, accepted no proposal, or diverged in most steps (``faults``);
- rank-normalised split R-hat is above ``LARGEST_RHAT``: chains, or the halves of one, are in
  different places;
- the draws of a single chain are all the same, so that nothing tells a point mass from a chain that
  is stuck;
- the effective sample size is below ``LEAST_ESS``, or ``LEAST_SHARE`` of the draws where these are
  few: batch means then depend on each other, and the standard error is too small;
- more than ``LARGEST_DIVERGENT`` of the steps diverged: there are places that the chains do not
  reach;
- halves of chains have means of the score that differ by more than the batch means explain, in an F
  test of level ``DISAGREEMENT`` over all coordinates: the score itself is in doubt, whatever R-hat
  says of the log density.

All but the first need ``JUDGED`` draws a chain, below which they say nothing.

Chains of a real latent that have converged are not ``settled`` where the score's mean over a batch
of draws is more than ``OUTLYING`` times as far from the median of all batches as they usually are:
one that came late from a far beginning, or was held up in a tail. The few draws there make most of
the error, so that such observations are run again too, but no verdict is withheld for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import fdtri, ndtri

from .._text import rhat_text
from .chains import Plan

LARGEST_RHAT = 1.1
LEAST_ESS = 20  # one effective draw for each of the batches whose means give the standard error
LEAST_SHARE = 0.05
LARGEST_DIVERGENT = 0.01
DISAGREEMENT = 1e-4
OUTLYING = 20.0  # beyond which one of 20 normal batch means lies with probability 1e-5
JUDGED = 50
LEAST_DRAWS = 8  # of a chain, without which there is no R-hat
ROUNDING = 1e-8  # of the size of a score: differences below this are none

FAULTS = (
    "log_prior is not finite at the initial point",
    "log_likelihood is not finite at the initial point",
    "the score of x given z is not finite at the initial point",
    "the chain left the finite numbers",
    "most steps of every chain diverged",
    "no proposal was accepted, so that chains never moved",
)
MODEL_FAULTS = 4  # the first ones, of which the model is the cause more often than the sampler
OF_MODEL = (
    "model",
    "Check that the densities are finite there, or give initial(key, x) or a smaller step_size.",
)
OF_SAMPLER = "sampler", "Give a smaller step_size, or look for a flaw in the density."
REMEDY = "Raise warmup and draws, try another sampler, or see whether z has several basins."
NAMED = 5  # observations in a warning


class Judgement(NamedTuple):
    """Of n observations."""

    faults: Bool[np.ndarray, "n 6"]
    converged: Bool[np.ndarray, " n"]
    settled: Bool[np.ndarray, " n"]  # converged, and no batch of draws lies far from all others

    def without(self, better: Float[np.ndarray, "n Dz"]) -> Judgement:
        """Not settled where there is a better latent: no row of NaN."""
        return self._replace(settled=self.settled & ~np.isfinite(better).any(axis=1))


def judge(run, plan: Plan, anywhere: bool, real: bool = False) -> Judgement:
    """Each observation of a ``Run``; chains may begin ``anywhere`` where the sampler does not look
    at the density, and a ``real`` latent may come late from a far beginning.
    """
    draws = plan.batches * plan.batch_draws
    starts = np.isfinite(run.start).all(1) | anywhere
    diverged = np.all(run.divergences > draws / 2, axis=1)
    faults = np.column_stack([~starts, ~run.finite, diverged, run.acceptance == 0])
    usable = np.asarray(~faults.any(axis=1))
    if draws < JUDGED:
        return Judgement(faults, usable, usable)
    steady = run.divergences.sum(1) <= LARGEST_DIVERGENT * plan.chains * draws
    moving = ~np.isnan(run.rhat) if plan.chains == 1 else True
    converged = np.asarray(
        usable
        & moving
        & steady
        & have_mixed(run.rhat, run.ess, plan.chains * draws)
        & (run.disagreement <= 1)
    )
    settled = converged & ~outlying(run.plain.batch_means) if real else converged
    return Judgement(faults, converged, settled)


def have_mixed(
    rhat: Float[np.ndarray, " n"], ess: Float[np.ndarray, " n"], draws: int
) -> Bool[np.ndarray, " n"]:
    """Whether R-hat and ESS of so many draws are good enough.

    R-hat is NaN where all draws of all chains are the same, as from a point mass.
    """
    return ~(rhat > LARGEST_RHAT) & (ess >= min(LEAST_ESS, LEAST_SHARE * draws))


def disagreement(means: Float[np.ndarray, "n C B D"]) -> Float[np.ndarray, " n"]:
    """How far halves of chains differ in the mean of the score: the largest F of all coordinates
    over its critical value.
    """
    chains, batches, dim = means.shape[1:]
    half = batches // 2
    if half < 2:
        return np.zeros(len(means))
    halves = np.concatenate([means[:, :, :half], means[:, :, -half:]], axis=1)  # (n, 2 C, half, D)
    scale = ROUNDING * np.abs(halves).max(axis=(1, 2))
    between, within = half * halves.mean(2).var(axis=1, ddof=1), halves.var(axis=2, ddof=1).mean(1)
    critical = fdtri(2 * chains - 1, 2 * chains * (half - 1), 1 - DISAGREEMENT / dim)
    with np.errstate(invalid="ignore"):
        ratios = between / (within + scale**2 + np.finfo(np.float64).tiny)
    return np.nan_to_num(ratios, nan=np.inf).max(1) / critical


def outlying(means: Float[np.ndarray, "n C B D"]) -> Bool[np.ndarray, " n"]:
    """Whether the mean of a batch lies far from those of all others, in the units of their median
    distance from the middle.
    """
    every = means.reshape(len(means), -1, means.shape[-1])
    middle = np.median(every, axis=1, keepdims=True)
    distances = np.linalg.norm(every - middle, axis=2)
    rounding = ROUNDING * np.linalg.norm(middle, axis=2)[:, 0]
    return distances.max(1) > OUTLYING * np.maximum(np.median(distances, axis=1), rounding)


def refuse_all(faults: Bool[np.ndarray, "n 6"], ids: np.ndarray) -> None:
    """An error where every observation has one of the faults of which the model is the cause."""
    everywhere = faults & faults.all(0) & (np.arange(len(FAULTS)) < MODEL_FAULTS)
    refuse(everywhere, ids)


def refuse(faults: Bool[np.ndarray, "n 6"], ids: np.ndarray) -> None:
    """An error where an observation has no usable chains."""
    for number, (fault, found) in enumerate(zip(FAULTS, faults.T, strict=True)):
        if found.any():
            role, remedy = OF_MODEL if number < MODEL_FAULTS else OF_SAMPLER
            where = (
                f"for observation {ids[np.argmax(found)]} ({int(found.sum())} of {len(found)} "
                "observations)"
            )
            raise ValueError(f"{role}: {fault} {where}. {remedy}")


def unconverged_warning(
    converged: np.ndarray, rhat: np.ndarray, ess: np.ndarray, ids: np.ndarray, remedy: str = REMEDY
) -> str:
    """Which observations, and how bad the worst of them is."""
    where = np.flatnonzero(~converged)
    worst = where[np.argmax(np.nan_to_num(rhat[where], nan=1.0))]
    named = ", ".join(str(i) for i in ids[where[:NAMED]]) + (
        f" and {len(where) - NAMED} more" if len(where) > NAMED else ""
    )
    quality = (
        f"R-hat is {rhat_text(rhat[worst])} and ESS {ess[worst]:.0f} at observation {ids[worst]}"
    )
    return (
        f"chains have not converged at {len(where)} of {len(converged)} observations ({named}): "
        f"{quality}. {remedy}"
    )


# -------------------------------------------------- rank-normalised split R-hat and bulk ESS
# (Vehtari et al. 2021) In NumPy: a sort of many short columns takes a compiled JAX program twenty
# times as long.


def worst_rhat_and_ess(
    traces: Float[np.ndarray, "n C M 2"],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The larger R-hat and the smaller ESS of the two quantities traced; NaN for chains too short
    to say.

    R-hat is NaN too where all draws of both quantities are the same.
    """
    if traces.shape[2] < LEAST_DRAWS:
        unknown = np.full(len(traces), np.nan)
        return unknown, unknown
    # what is not finite is refused with a better message than R-hat
    finite = np.where(np.isfinite(traces), traces, 0.0)
    rhat, ess = rhat_and_ess(np.moveaxis(finite, 0, 2))
    return np.fmax.reduce(rhat, axis=-1), ess.min(-1)


def rhat_and_ess(
    traces: Float[np.ndarray, "C M *rest"],
) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """R-hat: the larger of that of the rank-normalised draws and of their distance from the median;
    and the bulk ESS.
    """
    halves = split(traces)
    normal = rank_normalise(halves)
    folded = rank_normalise(np.abs(halves - np.median(halves, axis=(0, 1))))
    return np.maximum(plain_rhat(normal), plain_rhat(folded)), plain_ess(normal)


def split(traces: np.ndarray) -> np.ndarray:
    """Every chain as two of half its length."""
    half = traces.shape[1] // 2
    return np.concatenate([traces[:, :half], traces[:, -half:]])


def rank_normalise(draws: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks over all chains, ties averaged."""
    from scipy.stats import rankdata

    count = draws.shape[0] * draws.shape[1]
    ranks = rankdata(draws.reshape(count, -1), axis=0)
    return ndtri((ranks - 3 / 8) / (count + 1 / 4)).reshape(draws.shape)


def plain_rhat(draws: np.ndarray) -> np.ndarray:
    length = draws.shape[1]
    within, between = draws.var(axis=1, ddof=1).mean(0), draws.mean(1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((length - 1) / length + between / within)


def plain_ess(draws: np.ndarray) -> np.ndarray:
    """Effective sample size by Geyer's initial monotone sequence; all draws count where none
    differs.

    Correlations are summed by pairs of lags, each pair at most the one before, up to the first pair
    that is not positive; of that pair the correlation at its even lag counts once.
    """
    chains, length = draws.shape[:2]
    covariances = autocovariances(draws).mean(0)  # (M, ...)
    within = covariances[0] * length / (length - 1)
    total = covariances[0] + draws.mean(1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = 1 - (within - covariances) / total
        correlations[0] = 1
        count = (length - 3) // 2 + 1  # of pairs; the last lags rest on too few products
        even, odd = correlations[0 : 2 * count : 2], correlations[1 : 2 * count : 2]
        pairs = even + odd
        last = np.where((pairs <= 0).any(0), np.argmax(pairs <= 0, axis=0), count - 1)
        before = np.arange(count).reshape(-1, *(1,) * last.ndim) < last
        monotone = np.minimum.accumulate(np.where(before, pairs, np.inf), axis=0)
        final_even, final_pair = (
            np.take_along_axis(part, last[None], axis=0)[0] for part in (even, pairs)
        )
        final = np.where((final_even > 0) | (final_pair >= 0), final_even, 0.0)
        time = np.maximum(
            -1 + 2 * np.where(before, monotone, 0.0).sum(0) + final, 1 / np.log10(chains * length)
        )
    apart = draws.max(axis=(0, 1)) - draws.min(axis=(0, 1)) > np.finfo(np.float64).resolution
    return np.where(apart, chains * length / time, chains * length)


def autocovariances(draws: np.ndarray) -> np.ndarray:
    """Of each chain along axis 1, by the fast Fourier transform."""
    length = draws.shape[1]
    spectrum = np.fft.rfft(draws - draws.mean(1, keepdims=True), 2 * length, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :length] / length
