"""What observations whose chains have not converged do to an answer, and when it is withheld for their sake.

It is withheld where they are more than ``DOUBTED`` of the observations (chains that cannot cross between basins agree by luck at
others, so that the whole model is in doubt); where too few are left without them; where the answer without them is another; and
where it is another with the scores that one of their chains says, taken at each such observation to the side that raises, or
lowers, the model's discrepancy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._text import pvalue_text
from .._validation import MINIMUM_OBSERVATIONS
from ..scores import ScoreEstimate
from ..stein import score_slopes
from .details import Diagnostics, Unconverged
from .hypotheses import Hypothesis
from .preparation import Prepared

DOUBTED = 0.02  # share of the observations
COLUMNS = 1_000  # observations from which slopes are taken
LISTED = 5  # observations in a sentence


class Made(NamedTuple):
    """The scores behind hypotheses: an estimate of each model, and what the test takes of them."""

    scores: list[ScoreEstimate]
    prepared: Prepared


class Doubts(NamedTuple):
    """Where chains have not converged, with the answer without them, and why the verdict is withheld, if it is."""

    found: tuple[Unconverged, ...] = ()
    withheld: str | None = None

    def of(self, quality: Diagnostics, name: str | None = None) -> Diagnostics:
        """In the diagnostics of one model, or of all."""
        own = tuple(one for one in self.found if name is None or one.model == name)
        return replace(quality, unconverged=own, withheld=self.withheld) if own else quality

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{one}." for one in self.found)

    def applied(self, result: Any) -> Any:
        """The result without its verdict, where that is withheld."""
        if self.withheld is None:
            return result
        without = {"reject": False, "withheld": self.withheld}
        tests = {"tests": tuple(replace(one, **without) for one in result.tests)} if hasattr(result, "tests") else {}
        return replace(result, **without, **tests)


def doubts(
    answer: Callable[[], Any],
    names: Sequence[str],
    made: dict[str, Made],
    family: list[Hypothesis],
    test: Callable[[list[Hypothesis]], Any],
    verdict: Callable[[Any], Any],
) -> Doubts:
    """Of the ``answer`` that ``test`` gives on the ``family``; ``made`` has the scores of every smoothing in it.

    ``verdict`` takes of an answer what must not change.
    """
    failed = {name: rows for number, name in enumerate(names) if (rows := failed_rows(number, made)).any()}
    if not failed:
        return Doubts()
    left = ~np.logical_or.reduce(list(failed.values()))
    enough = left.sum() >= MINIMUM_OBSERVATIONS
    without = test([one.only(left) for one in family]) if enough else None
    ids = next(iter(made.values())).scores[0].index
    found = tuple(as_record(name, ids[rows], len(left), without) for name, rows in failed.items())
    return Doubts(found, reason(answer(), found, without, verdict, lambda: other_answers(names, failed, made, family, test)))


def failed_rows(number: int, made: dict[str, Made]) -> np.ndarray:
    """Where chains of a model have not converged, under any smoothing."""
    estimates = [one.scores[number] for one in made.values()]
    nowhere = np.zeros(len(estimates[0].index), dtype=bool)
    return np.logical_or.reduce([nowhere if one.converged is None else ~one.converged for one in estimates])


def as_record(name: str, ids: np.ndarray, n: int, without: Any) -> Unconverged:
    observations = tuple(int(i) for i in ids)
    if without is None:
        return Unconverged(name, observations, n)
    return Unconverged(name, observations, n, float(without.statistic), float(without.pvalue), bool(without.reject))


def reason(result: Any, found: tuple[Unconverged, ...], without: Any, verdict: Callable, others: Callable) -> str | None:
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
    if verdict(without) != verdict(result):
        return f"the answer depends on {where}: {pvalue_text(without.pvalue)} without them, {pvalue_text(result.pvalue)} with them."
    if any(verdict(other) != verdict(result) for other in others()):
        return f"the answer depends on {where}: single chains there have scores that would turn it."
    return None


def other_answers(
    names: Sequence[str], failed: dict[str, np.ndarray], made: dict[str, Made], family: list[Hypothesis], test: Callable
) -> Iterator[Any]:
    """The results with scores of single chains that raise the discrepancy of a model the most, and that lower it the most."""
    for name, rows in failed.items():
        number = list(names).index(name)
        for sign in (1, -1):
            yield test([with_extremes(one, number, np.flatnonzero(rows), made[one.smoothing], sign) for one in family])


def with_extremes(hypothesis: Hypothesis, number: int, rows: np.ndarray, made: Made, sign: int) -> Hypothesis:
    """The hypothesis with the scores of model ``number`` at ``rows`` as one chain has them, the most to one side."""
    operator = next(i for i, one in enumerate(made.prepared.operators) if one is hypothesis.operator)
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
