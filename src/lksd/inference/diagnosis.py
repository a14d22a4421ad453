"""How well the chains did, in terms of the test they serve."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._validation import warn
from ..results.details import NOISY, SHIFTED, Diagnostics
from ..results.records import read_only
from ..scores import ScoreEstimate
from ..scores.lengths import projected
from ..stein import score_slopes
from ..stein.bags import Sensitivity
from .hypotheses import Hypothesis

if TYPE_CHECKING:
    from ..problem import Evidence

ROWS, COLUMNS = 128, 1_000  # observations whose noise is measured, and those they are paired with
SIGNIFICANT = 3.0


def chain_quality(scores: list[ScoreEstimate]) -> Diagnostics:
    """How the scores were made, and the worst of their chains."""

    def worst(values, pick) -> np.ndarray | None:
        known = [value for value in values if np.isfinite(value).any()]
        return read_only(pick.reduce(known)) if known else None

    rhats, esses = worst([one.rhat for one in scores], np.fmax), worst([one.ess for one in scores], np.fmin)
    return Diagnostics(
        method_p=scores[0].method,
        method_q=scores[1].method if len(scores) > 1 else None,
        rhat=None if rhats is None else float(np.nanmax(rhats)),
        ess=None if esses is None else float(np.nanmin(esses)),
        divergences=int(sum(one.divergences.sum() for one in scores)),
        rhats=rhats,
        esses=esses,
    )


def diagnose(hypothesis: Hypothesis, evidence: Evidence, error: float, known: Sensitivity | None = None) -> Diagnostics:
    """Also the share of MCMC noise in the test's variance, and what is left of the chains' beginnings.

    Both come from g_i, the slope of h_1 in the score of observation i, on a subset of the observations. The share is
    mean_i 4 Var(g_i' score_i) / v, from the batch means. The shift is the difference that chains with different
    beginnings make to T: 2 mean_i g_i' (score_i - score'_i) over its standard ``error`` (of the fit of one model: the
    standard deviation that U has where the model fits). The slopes are taken from the sensitivity of the row sums where that is
    ``known``.
    """
    estimates, number = evidence.scores, evidence.number(hypothesis)
    quality = chain_quality(estimates)
    means = [one.part("batch_means")[number] for one in estimates]
    sampled = [one for one, part in zip(estimates, means, strict=True) if part.shape[1]]
    if not error > 0 or not sampled:
        return quality
    n, (rows, slopes) = len(hypothesis.x), row_slopes(hypothesis, known)
    slopes = slopes * evidence.prepared.units
    parts = [  # the models' parts in U(P) - U(Q), for rows, chains and batches
        sign * projected(part, rows, slope) for sign, part, slope in zip((1, -1), means, slopes, strict=False) if part.shape[1]
    ]
    if len({part.shape for part in parts}) == 1:
        parts = [np.sum(parts, 0)]  # chains with the same keys move together
    if any(part[0].size < 2 for part in parts):
        return quality  # one mean says nothing about its error
    share = noise_share(parts, n * error**2)
    shift = start_shift(parts, error) if all(one.two_starts for one in sampled) else None
    return replace(quality, noise_share=share, start_shift=shift)


def row_slopes(hypothesis: Hypothesis, known: Sensitivity | None) -> tuple[np.ndarray, np.ndarray]:
    """Some observations, and the slope of h_1 in the score of each: all of them where that is known."""
    n = len(hypothesis.x)
    if known is not None:
        return np.arange(n), known.scores / (n - 1)
    columns = np.random.default_rng(0).permutation(n)[:COLUMNS]
    slopes = score_slopes(hypothesis.operator, hypothesis.kernel, *hypothesis.at(columns), ROWS)
    return columns[:ROWS], slopes / (len(columns) - 1)


def noise_share(projected: list[np.ndarray], variance: float) -> float:
    batches = [part.reshape(len(part), -1) for part in projected]
    noise = sum(float(np.mean(part.var(axis=1, ddof=1))) / part.shape[1] for part in batches)
    share = 4 * noise / variance
    if share > NOISY:
        warn(f"MCMC noise makes {share:.0%} of the test's variance; raise draws.")
    return share


def start_shift(projected: list[np.ndarray], standard_error: float) -> float:
    """Even and odd chains began at different kinds of points; warn where they differ by more than the batch means explain."""
    differences, noise = np.zeros(len(projected[0])), np.zeros(len(projected[0]))
    for part in projected:
        for kind, sign in ((part[:, 0::2], 1), (part[:, 1::2], -1)):
            means = kind.reshape(len(kind), -1)
            differences += sign * means.mean(1)
            noise += means.var(axis=1, ddof=1) / means.shape[1] if means.shape[1] > 1 else np.inf
    shift = abs(differences.mean())
    if 2 * shift / standard_error > SHIFTED and shift > SIGNIFICANT * np.sqrt(noise.sum()) / len(noise):
        warn(
            "chains that began at different points still differ: "
            f"T moves by {2 * shift / standard_error:.1f}. Raise warmup, or try another sampler."
        )
    return float(2 * shift / standard_error)
