"""What chains do to an answer: how well they did, in terms of the test they serve, and when it is
withheld for their sake.

It is withheld where chains that have not converged are more than ``DOUBTED`` of the observations
(chains that cannot cross between basins agree by luck at others, so that the whole model is in
doubt); where too few are left without them; where the answer without them is another; and where it
is another with the scores that one of their chains says, taken at each such observation to the side
that raises, or lowers, the model's discrepancy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._text import pvalue_text
from .._validation import MINIMUM_OBSERVATIONS, warn
from ..results.base import read_only
from ..results.details import NOISY, SHIFTED, Diagnostics, Unconverged
from ..scores import ScoreEstimate
from ..scores.lengths import project
from ..stein import score_slopes
from ..stein.discrete import Sensitivity
from .doubts import LISTED, Case, Doubts
from .hypotheses import Hypothesis
from .losses import Losses

if TYPE_CHECKING:
    from ..problem import Findings

# observations whose noise is measured, and those from which slopes are taken
ROWS, COLUMNS = 128, 1_000
SIGNIFICANT = 3.0
DOUBTED = 0.02  # share of the observations


def chain_quality(scores: list[ScoreEstimate]) -> Diagnostics:
    """How the scores were made, and the worst of their chains."""
    worst: dict[str, np.ndarray] = {}
    for name, pick in (("rhat", np.fmax), ("ess", np.fmin)):
        known = [value for one in scores if np.isfinite(value := getattr(one, name)).any()]
        if known:
            worst[name] = read_only(pick.reduce(known))
    rhats, esses = worst.get("rhat"), worst.get("ess")
    return Diagnostics(
        method_p=scores[0].method,
        method_q=scores[1].method if len(scores) > 1 else None,
        rhat=None if rhats is None else float(np.nanmax(rhats)),
        ess=None if esses is None else float(np.nanmin(esses)),
        divergences=int(sum(one.divergences.sum() for one in scores)),
        rhats=rhats,
        esses=esses,
    )


def diagnose(
    hypothesis: Hypothesis, findings: Findings, error: float, known: Sensitivity | None = None
) -> Diagnostics:
    """Also the share of MCMC noise in the test's variance, and what is left of the chains'
    beginnings.

    Both come from g_i, the slope of h_1 in the score of observation i, on a subset of the
    observations. The share is mean_i 4 Var(g_i' score_i) / v, from the batch means. The shift is
    the difference that chains with different beginnings make to T: 2 mean_i g_i' (score_i -
    score'_i) over its standard ``error`` (of the fit of one model: the standard deviation that U
    has where the model fits). The slopes are taken from the sensitivity of the row sums where that
    is ``known``.
    """
    estimates, quality = findings.scores, chain_quality(findings.scores)
    sampled = [one for one in estimates if one.part("batch_means")[0].shape[1]]
    if not error > 0 or not sampled:
        return quality
    number = findings.number(hypothesis)
    means = [one.part("batch_means")[number] for one in estimates]
    n, (rows, slopes) = len(hypothesis.x), row_slopes(hypothesis, known)
    slopes = slopes * findings.prepared.units
    parts = [  # the models' parts in U(P) - U(Q), for rows, chains and batches
        sign * project(part, rows, slope)
        for sign, part, slope in zip((1, -1), means, slopes, strict=False)
        if part.shape[1]
    ]
    if len({part.shape for part in parts}) == 1:
        parts = [np.sum(parts, 0)]  # chains with the same keys move together
    if any(part[0].size < 2 for part in parts):
        return quality  # one mean says nothing about its error
    share = noise_share(parts, n * error**2)
    shift = start_shift(parts, error) if all(one.two_starts for one in sampled) else None
    return replace(quality, noise_share=share, start_shift=shift)


def row_slopes(hypothesis: Hypothesis, known: Sensitivity | None) -> tuple[np.ndarray, np.ndarray]:
    """Some observations, and the slope of h_1 in the score of each: all of them where that is
    known.
    """
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
    warn_of_noise(share)
    return share


def warn_of_noise(share: float) -> None:
    if share > NOISY:
        warn(f"MCMC noise makes {share:.0%} of the test's variance; raise draws.")


def start_shift(projected: list[np.ndarray], standard_error: float) -> float:
    """Even and odd chains began at different kinds of points; warn where they differ by more than
    the batch means explain.
    """
    differences, noise = np.zeros(len(projected[0])), np.zeros(len(projected[0]))
    for part in projected:
        for kind, sign in ((part[:, 0::2], 1), (part[:, 1::2], -1)):
            means = kind.reshape(len(kind), -1)
            differences += sign * means.mean(1)
            noise += means.var(axis=1, ddof=1) / means.shape[1] if means.shape[1] > 1 else np.inf
    shift = abs(differences.mean())
    if 2 * shift / standard_error > SHIFTED and shift > SIGNIFICANT * np.sqrt(noise.sum()) / len(
        noise
    ):
        warn(
            "chains that began at different points still differ: T moves by "
            f"{2 * shift / standard_error:.1f}. Raise warmup, or try another sampler."
        )
    return float(2 * shift / standard_error)


# ------------------------------------------------------------- chains that have not converged


def chain_doubts(case: Case, names: Sequence[str], made: dict[str, Findings]) -> Doubts:
    """Of chains that have not converged; ``made`` has the scores of every smoothing in
    the family.
    """
    ids = next(iter(made.values())).scores[0].index
    failed: dict[str, np.ndarray] = {}
    for number, name in enumerate(names):
        own = np.zeros(len(ids), dtype=bool)
        for one in made.values():
            if (converged := one.scores[number].converged) is not None:
                own |= ~converged
        if own.any():
            failed[name] = own
    if not failed:
        return Doubts()
    rows = np.logical_or.reduce(list(failed.values()))
    without = case.without(rows) if (~rows).sum() >= MINIMUM_OBSERVATIONS else None
    found = tuple(as_record(name, ids[own], len(own), without) for name, own in failed.items())
    withheld = reason(case, found, without, lambda: other_answers(names, failed, made, case))
    return Doubts(tuple(f"{one}." for one in found), withheld, found)


def as_record(name: str, ids: np.ndarray, n: int, without: Any) -> Unconverged:
    observations = tuple(int(i) for i in ids)
    if without is None:
        return Unconverged(name, observations, n)
    return Unconverged(
        name, observations, n, float(without.statistic), float(without.pvalue), bool(without.reject)
    )


def reason(
    case: Case, found: tuple[Unconverged, ...], without: Any, others: Callable[[], Iterator]
) -> str | None:
    """Why the verdict is withheld, if it is."""
    for one in found:
        if len(one.observations) > max(1.0, DOUBTED * one.n):
            return (
                f"the chains of {one.model} have not converged at {len(one.observations)} of "
                f"{one.n} observations, so that its scores are in doubt everywhere, also where "
                "chains happen to agree."
            )
    where = " and ".join(
        f"{one.places(LISTED)}, where the chains of {one.model} have not converged" for one in found
    )
    if without is None:
        return f"too few observations are left without {where}."
    if case.changes(without):
        p = pvalue_text(case.answer().pvalue)
        return (
            f"the answer depends on {where}: {pvalue_text(without.pvalue)} without them, {p} with "
            "them."
        )
    if any(case.changes(other) for other in others()):
        return f"the answer depends on {where}: single chains there have scores that would turn it."
    return None


def other_answers(
    names: Sequence[str], failed: dict[str, np.ndarray], made: dict[str, Findings], case: Case
) -> Iterator[Any]:
    """The results with scores of single chains that raise the discrepancy of a model the most, and
    that lower it the most.
    """
    for name, rows in failed.items():
        number = list(names).index(name)
        for sign in (1, -1):
            yield case.test(
                [
                    with_other_losses(one, number, rows, made, sign)
                    if isinstance(one, Losses)
                    else with_extremes(one, number, np.flatnonzero(rows), made[one.smoothing], sign)
                    for one in case.family
                ]
            )


def with_other_losses(
    losses: Losses, number: int, rows: np.ndarray, made: dict[str, Findings], sign: int
) -> Losses:
    """The losses of model ``number`` at ``rows`` as far off as their errors allow."""
    (part,) = made.values()
    errors = np.nan_to_num(part.scores[number].loss(losses.criterion, "loss_errors"))
    moved = losses.scores[number] + sign * SIGNIFICANT * np.where(rows, errors, 0.0)
    return losses._replace(scores=(*losses.scores[:number], moved, *losses.scores[number + 1 :]))


def with_extremes(
    hypothesis: Hypothesis, number: int, rows: np.ndarray, made: Findings, sign: int
) -> Hypothesis:
    """The hypothesis with the scores of model ``number`` at ``rows`` as one chain has them, the
    most to one side.
    """
    operator = made.number(hypothesis)
    means = made.scores[number].part("batch_means")[operator][rows].mean(2)  # (k, C, ...)
    own = made.scores[number].part("score")[operator][rows]
    moves = (means - own[:, None]) * made.prepared.units
    others = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(len(hypothesis.x)), rows))[
        :COLUMNS
    ]
    order = np.concatenate([rows, others])
    x, scores = hypothesis.at(order)
    slopes = score_slopes(
        hypothesis.operator, hypothesis.kernel, x, scores[number : number + 1], len(rows)
    )[0]
    # (k, C)
    gains = sign * np.sum((moves * slopes[:, None]).reshape(*moves.shape[:2], -1), axis=-1)
    best = np.argmax(gains, axis=1)
    moved = hypothesis.scores[number].copy()
    moved[rows] += moves[np.arange(len(rows)), best]
    return hypothesis._replace(
        scores=(*hypothesis.scores[:number], moved, *hypothesis.scores[number + 1 :])
    )
