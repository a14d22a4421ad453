"""What observations whose chains have not converged do to an answer, and when it is withheld for their sake.

It is withheld where they are more than ``DOUBTED`` of the observations (chains that cannot cross between basins agree by luck at
others, so that the whole model is in doubt); where too few are left without them; where the answer without them is another; and
where it is another with the scores that one of their chains says, taken at each such observation to the side that raises, or
lowers, the model's discrepancy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._text import pvalue_text
from .._validation import MINIMUM_OBSERVATIONS
from ..results.details import Unconverged
from ..stein import score_slopes
from .doubts import Case, Doubts
from .hypotheses import Hypothesis

if TYPE_CHECKING:
    from ..problem import Evidence

DOUBTED = 0.02  # share of the observations
COLUMNS = 1_000  # observations from which slopes are taken
LISTED = 5  # observations in a sentence


def chain_doubts(case: Case, names: Sequence[str], made: dict[str, Evidence]) -> Doubts:
    """Of chains that have not converged; ``made`` has the scores of every smoothing in the family."""
    failed = {name: rows for number, name in enumerate(names) if (rows := failed_rows(number, made)).any()}
    if not failed:
        return Doubts()
    rows = np.logical_or.reduce(list(failed.values()))
    without = case.without(rows) if (~rows).sum() >= MINIMUM_OBSERVATIONS else None
    ids = next(iter(made.values())).scores[0].index
    found = tuple(as_record(name, ids[own], len(own), without) for name, own in failed.items())
    withheld = reason(case, found, without, lambda: other_answers(names, failed, made, case))
    return Doubts(tuple(f"{one}." for one in found), withheld, found)


def failed_rows(number: int, made: dict[str, Evidence]) -> np.ndarray:
    """Where chains of a model have not converged, under any smoothing."""
    estimates = [one.scores[number] for one in made.values()]
    nowhere = np.zeros(len(estimates[0].index), dtype=bool)
    return np.logical_or.reduce([nowhere if one.converged is None else ~one.converged for one in estimates])


def as_record(name: str, ids: np.ndarray, n: int, without: Any) -> Unconverged:
    observations = tuple(int(i) for i in ids)
    if without is None:
        return Unconverged(name, observations, n)
    return Unconverged(name, observations, n, float(without.statistic), float(without.pvalue), bool(without.reject))


def reason(case: Case, found: tuple[Unconverged, ...], without: Any, others: Callable[[], Iterator]) -> str | None:
    """Why the verdict is withheld, if it is."""
    for one in found:
        if len(one.observations) > max(1.0, DOUBTED * one.n):
            return (
                f"the chains of {one.model} have not converged at {len(one.observations)} of {one.n} observations, "
                "so that its scores are in doubt everywhere, also where chains happen to agree."
            )
    where = " and ".join(f"{one.places(LISTED)}, where the chains of {one.model} have not converged" for one in found)
    if without is None:
        return f"too few observations are left without {where}."
    if case.changes(without):
        p = pvalue_text(case.answer().pvalue)
        return f"the answer depends on {where}: {pvalue_text(without.pvalue)} without them, {p} with them."
    if any(case.changes(other) for other in others()):
        return f"the answer depends on {where}: single chains there have scores that would turn it."
    return None


def other_answers(names: Sequence[str], failed: dict[str, np.ndarray], made: dict[str, Evidence], case: Case) -> Iterator[Any]:
    """The results with scores of single chains that raise the discrepancy of a model the most, and that lower it the most."""
    for name, rows in failed.items():
        number = list(names).index(name)
        for sign in (1, -1):
            yield case.test([with_extremes(one, number, np.flatnonzero(rows), made[one.smoothing], sign) for one in case.family])


def with_extremes(hypothesis: Hypothesis, number: int, rows: np.ndarray, made: Evidence, sign: int) -> Hypothesis:
    """The hypothesis with the scores of model ``number`` at ``rows`` as one chain has them, the most to one side."""
    operator = made.number(hypothesis)
    means = made.scores[number].part("batch_means")[operator][rows].mean(2)  # (k, C, ...)
    own = made.scores[number].part("score")[operator][rows]
    moves = (means - own[:, None]) * made.prepared.units
    others = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(len(hypothesis.x)), rows))[:COLUMNS]
    order = np.concatenate([rows, others])
    x, scores = hypothesis.at(order)
    slopes = score_slopes(hypothesis.operator, hypothesis.kernel, x, scores[number : number + 1], len(rows))[0]
    gains = sign * np.sum((moves * slopes[:, None]).reshape(*moves.shape[:2], -1), axis=-1)  # (k, C)
    best = np.argmax(gains, axis=1)
    moved = hypothesis.scores[number].copy()
    moved[rows] += moves[np.arange(len(rows)), best]
    return hypothesis._replace(scores=(*hypothesis.scores[:number], moved, *hypothesis.scores[number + 1 :]))
